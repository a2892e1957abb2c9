// What the rows of encoding/ops.def cannot say.
#include <fmt/core.h>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/hooks.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {

using enum OpKind;

void static_encoding(VerifyContext& c, OpId op, AttrId encoding,
                     std::span<const std::string_view> dynamic) {
  for (EncodingProblem& problem : check_encoding(c.module, encoding, dynamic)) {
    switch (problem.kind) {
      case EncodingProblem::Family:
        c.error(op, Diag::ParseUnknownEncoding, {{"name", "#" + problem.family}});
        break;
      case EncodingProblem::Missing:
        c.error(op, Diag::EncodingMissing,
                {{"family", problem.family}, {"parameter", problem.parameter}});
        break;
      case EncodingProblem::Unknown:
        c.error(op, Diag::EncodingUnknown,
                {{"family", problem.family}, {"parameter", problem.parameter}, {"repair", ""}});
        break;
      case EncodingProblem::Type:
        c.error(op, Diag::EncodingType,
                {{"family", problem.family},
                 {"parameter", problem.parameter},
                 {"detail", std::move(problem.detail)}});
        break;
      case EncodingProblem::WrongKind:
        c.error(op, Diag::EncodingKind,
                {{"family", problem.family},
                 {"parameter", problem.parameter},
                 {"found", std::move(problem.found)},
                 {"expected", std::move(problem.expected)}});
        break;
    }
  }
}

void encoding_layout_strided(VerifyContext& c, OpId op) {
  constexpr unsigned kStrides = attr_slot(EncodingLayoutStrided, "static_strides");
  for (const int64_t stride : c.module.attr(op, kStrides).ints) {
    if (stride >= 0 || stride == kDynamicIndex) continue;
    c.bad_attribute(op, "strides", fmt::format("{} is negative", stride));
    return;
  }
}

namespace {

// The role of a static encoding against the role that a type states; the plain `encoding` takes
// any.
void check_role(VerifyContext& c, OpId op, AttrId spec, ValueId value, bool result) {
  const EncodingFamilyInfo* const info = encoding_family_of(c.module, spec);
  const TypeKind kind = c.module.types[c.module.type_of(value)].kind;
  if (info == nullptr || kind == TypeKind::Encoding || role_of(kind) == info->role) return;
  c.type_mismatch(op, (result ? "result " : "operand ") + c.name(value), c.module.type_of(value),
                  attr_text(c.module, spec), c.module.types.opaque(role_type(info->role)));
}

// The operand of a parameter: an index or integer for an integer, an encoding for an encoding.
void check_operand(VerifyContext& c, OpId op, const EncodingFamilyInfo& info,
                   const EncodingParameter& parameter, ValueId value) {
  const Type& type = c.module.types[c.module.type_of(value)];
  const auto wrong = [&](Diag id, std::string_view expected) {
    const std::string family(info.name), name(parameter.name);
    if (id == Diag::EncodingType) {
      c.error(op, id,
              {{"family", family},
               {"parameter", name},
               {"detail", fmt::format("{} has type {} but must be {}", c.name(value), c.type(value),
                                      expected)}});
    } else {
      c.error(op, id,
              {{"family", family},
               {"parameter", name},
               {"found", c.name(value)},
               {"expected", std::string(expected)}});
    }
  };
  switch (parameter.kind) {
    case EncodingParameterKind::Integer:
      if (!type.is_scalar() || (type.element != ScalarKind::Index && !is_integer(type.element))) {
        wrong(Diag::EncodingType, "index or an integer");
      }
      return;
    case EncodingParameterKind::Layout:
      if (type.kind != TypeKind::EncodingLayout) wrong(Diag::EncodingType, "encoding<layout>");
      return;
    case EncodingParameterKind::Schema:
      if (type.kind != TypeKind::EncodingSchema && type.kind != TypeKind::EncodingStorage) {
        wrong(Diag::EncodingType, "encoding<schema>");
      }
      return;
    case EncodingParameterKind::Word:
      return wrong(Diag::EncodingKind, "a static word");
    case EncodingParameterKind::Integers:
      return wrong(Diag::EncodingKind, "a static list of integers");
  }
}

}  // namespace

void encoding_define(VerifyContext& c, OpId op) {
  constexpr unsigned kSpec = attr_slot(EncodingDefine, "spec");
  constexpr unsigned kKeys = attr_slot(EncodingDefine, "keys");
  const AttrId spec = c.module.attr_ids(op)[kSpec];
  const EncodingFamilyInfo* const info = encoding_family_of(c.module, spec);
  const auto operands = c.module.operands(op);
  std::vector<std::string_view> dynamic;
  if (c.module.has_attr(op, kKeys)) {
    for (const DictEntry& entry : c.module.attr(op, kKeys).entries) {
      dynamic.push_back(c.module.strings.text(entry.key));
    }
  }
  static_encoding(c, op, spec, dynamic);
  check_role(c, op, spec, c.module.result(op), true);
  if (info == nullptr) return;
  const auto parameters = encoding_parameters(info->family);
  for (size_t i = 0; i < dynamic.size(); ++i) {
    const EncodingParameter* found = nullptr;
    for (const EncodingParameter& parameter : parameters) {
      if (parameter.name == dynamic[i]) found = &parameter;
    }
    const bool twice = encoding_argument(c.module, spec, dynamic[i]).valid();
    if (found == nullptr || twice) {
      c.error(op, Diag::EncodingUnknown,
              {{"family", std::string(info->name)},
               {"parameter", std::string(dynamic[i])},
               {"repair", twice ? "it is stated statically; drop one of the two" : ""}});
      continue;
    }
    check_operand(c, op, *info, *found, operands[i]);
  }
}

void encoding_isa(VerifyContext& c, OpId op) {
  const AttrId spec = c.module.attr_ids(op)[attr_slot(EncodingIsa, "spec")];
  static_encoding(c, op, spec, {});
  check_role(c, op, spec, c.module.operand(op, 0), false);
}

}  // namespace loom::verify
