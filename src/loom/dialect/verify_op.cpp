#include "loom/dialect/verify_op.h"

#include <fmt/core.h>

#include <algorithm>

#include "loom/dialect/encoding_info.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"

namespace loom::detail {

// --- Order --------------------------------------------------------------------------------------

Order::Order(const Module& module)
    : module_(module),
      order_(module.op_count(), kNone),
      end_(module.op_count(), kNone),
      region_begin_(module.region_count(), kNone),
      region_end_(module.region_count(), 0) {}

void Order::number(OpId root, std::vector<OpId>& nested) {
  const size_t first = nested.size();
  order_[root.index()] = next_++;
  for_each_nested(module_, root, [&](OpId op) {
    order_[op.index()] = next_++;
    nested.push_back(op);
  });
  const auto close = [&](OpId op) {
    uint32_t end = order_[op.index()];
    for (unsigned i = 0; i < module_.op(op).region_count; ++i) {
      const RegionId id = module_.op_region(op, i);
      const Region& region = module_.region(id);
      if (!region.first.valid()) continue;
      region_begin_[id.index()] = order_[region.first.index()];
      region_end_[id.index()] = end_[region.last.index()];
      end = std::max(end, region_end_[id.index()]);
    }
    end_[op.index()] = end;
  };
  for (size_t i = nested.size(); i > first; --i) close(nested[i - 1]);
  close(root);
}

bool Order::visible(ValueId value, OpId op) const {
  const Value& v = module_.value(value);
  const uint32_t place = order_[op.index()];
  if (v.kind != ValueKind::Result) {
    return region_begin_[v.owner] <= place && place <= region_end_[v.owner];
  }
  const RegionId region = module_.op(OpId(v.owner)).parent;
  return order_[v.owner] != kNone && region.valid() && end_[v.owner] < place &&
         place <= region_end_[region.index()];
}

bool Order::visible_in_signature(ValueId value, RegionId region) const {
  const Value& v = module_.value(value);
  if (v.kind != ValueKind::Result && v.owner == region.index()) return true;
  const OpId parent = module_.region(region).parent;
  return parent.valid() && visible(value, parent);
}

// --- OpChecker: counts and attributes -----------------------------------------------------------

OpChecker::OpChecker(VerifyContext& context, const Order& order)
    : c_(context),
      module_(context.module),
      order_(order),
      broken_(context.module.value_count()),
      reported_encoding_(context.module.types.size()) {}

bool OpChecker::check_shape(OpId op) {
  const auto kind = static_cast<size_t>(module_.op(op).kind);
  if (kind >= kOpKindCount) {
    c_.error(op, Diag::StructureUnknownOpKind, {{"kind", std::to_string(kind)}});
    return false;
  }
  const OpInfo& info = op_info(module_.op(op).kind);
  return check_counts(op, info) && check_attrs(op, info);
}

namespace {

std::string expected_operands(const OpInfo& info) {
  size_t least = 0;
  bool more = false;
  for (const OperandSpec& spec : info.operands) {
    least += spec.arity == Arity::Single;
    more |= spec.arity != Arity::Single;
  }
  return fmt::format("{}{}", more ? "at least " : "", least);
}

bool groups_fit(const Module& module, OpId id, const OpInfo& info) {
  const Op& op = module.op(id);
  if (!info.has_groups) return op.group_count == 0 && op.operand_count == info.operands.size();
  const auto sizes = module.group_sizes(id);
  if (sizes.size() != info.operands.size()) return false;
  uint64_t total = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Arity arity = info.operands[i].arity;
    if (arity == Arity::Single && sizes[i] != 1) return false;
    if (arity == Arity::Optional && sizes[i] > 1) return false;
    total += sizes[i];
  }
  return total == op.operand_count;
}

// A list of results has its own count; nothing else may.
bool results_fit(const Op& op, const OpInfo& info) {
  const bool list = !info.results.empty() && info.results.back().arity == Arity::Variadic;
  return list ? op.result_count + 1u >= info.results.size()
              : op.result_count == info.results.size();
}

bool takes_arguments(const OpInfo& info, unsigned region) {
  for (const FormatElement& element : info.format) {
    switch (element.kind) {
      case FormatKind::Signature:
      case FormatKind::ResultSig:
      case FormatKind::InductionArg:
      case FormatKind::IterArgs:
      case FormatKind::BodyArgs:
      case FormatKind::KeyArg:
        if (element.a == static_cast<int>(region)) return true;
        break;
      default:
        break;
    }
  }
  return false;
}

}  // namespace

bool OpChecker::check_counts(OpId id, const OpInfo& info) {
  const Op& op = module_.op(id);
  const auto count_error = [&](Diag diag, std::string expected, size_t found) {
    c_.error(id, diag,
             {{"op", std::string(info.name)},
              {"expected", std::move(expected)},
              {"found", std::to_string(found)}});
    return false;
  };
  if (!groups_fit(module_, id, info)) {
    return count_error(Diag::StructureOperandCount, expected_operands(info), op.operand_count);
  }
  if (!results_fit(op, info)) {
    return count_error(Diag::StructureResultCount, std::to_string(info.results.size()),
                       op.result_count);
  }
  if (info.repeats_regions() ? op.region_count + size_t{1} < info.regions.size()
                             : op.region_count != info.regions.size()) {
    return count_error(Diag::StructureRegionCount, std::to_string(info.regions.size()),
                       op.region_count);
  }
  unsigned bodies = 0;
  unsigned bodies_needed = 0;
  for (unsigned i = 0; i < op.region_count; ++i) {
    const RegionSpec& spec = info.region(i, op.region_count);
    const Region& region = module_.region(module_.op_region(id, i));
    const bool needed = !spec.signature && !(spec.optional && !region.has_body);
    bodies += region.has_body || region.first.valid();
    bodies_needed += needed;
    if (region.arg_split > region.arg_count ||
        (region.arg_count > 0 && !takes_arguments(info, i))) {
      return c_.same_count(id, fmt::format("arguments of region '{}'", spec.name), region.arg_count,
                           "its contract", 0);
    }
  }
  if (bodies != bodies_needed) {
    return count_error(Diag::StructureRegionCount, std::to_string(bodies_needed), bodies);
  }
  return true;
}

bool OpChecker::check_attrs(OpId op, const OpInfo& info) {
  const auto ids = module_.attr_ids(op);
  if (ids.size() != info.attrs.size()) {
    c_.bad_literal(
        op, "*",
        fmt::format("there are {} attribute slots instead of {}", ids.size(), info.attrs.size()));
    return false;
  }
  bool fits = true;
  for (size_t slot = 0; slot < ids.size(); ++slot) {
    const AttrSpec& spec = info.attrs[slot];
    if (ids[slot].valid()) {
      fits &= check_attr(op, spec, module_.attrs[ids[slot]]);
    } else if (!spec.optional) {
      c_.bad_literal(op, spec.name, "it is missing");
      fits = false;
    }
  }
  if (!fits) return false;
  for (const FormatElement& element : info.format) {
    const auto group = [&] {
      return operand_group(module_, op, static_cast<unsigned>(element.a)).size();
    };
    if (element.kind == FormatKind::OperandDict) {
      const AttrId keys = ids[static_cast<size_t>(element.b)];
      const size_t count = keys.valid() ? module_.attrs[keys].entries.size() : 0;
      if (!c_.same_count(op, "keyed operands", group(), "their keys", count)) return false;
    }
    if (element.kind == FormatKind::PackList) {
      const size_t count = module_.attrs[ids[static_cast<size_t>(element.b)]].ints.size();
      if (!c_.same_count(op, "sizes", group(), "alignments", count)) return false;
    }
    if (element.kind == FormatKind::Cases) {
      const size_t count = module_.attrs[ids[static_cast<size_t>(element.b)]].ints.size();
      if (!c_.same_count(op, "cases", module_.op(op).region_count - size_t{1}, "keys", count)) {
        return false;
      }
    }
    if (element.kind == FormatKind::LookupRows) {
      const size_t rows = module_.attrs[ids[static_cast<size_t>(element.b)]].ints.size();
      const size_t needed = rows * module_.op(op).result_count;
      if (!c_.same_count(op, "values of all rows", group(), "rows of one value for each result",
                         needed)) {
        return false;
      }
    }
    if (element.kind != FormatKind::IndexList) continue;
    const AttrId list = ids[static_cast<size_t>(element.b)];
    const size_t dynamic =
        list.valid()
            ? static_cast<size_t>(std::ranges::count(module_.attrs[list].ints, kDynamicIndex))
            : 0;
    if (!c_.same_count(op, "index operands", group(), "places for them", dynamic)) return false;
  }
  return true;
}

namespace {

bool form_fits(AttrForm form, AttrKind kind) {
  switch (form) {
    case AttrForm::Unit:
      return kind == AttrKind::Unit;
    case AttrForm::Integer:
      return kind == AttrKind::Integer;
    case AttrForm::Float:
      return kind == AttrKind::Float;
    case AttrForm::Literal:
      return kind == AttrKind::Integer || kind == AttrKind::Float || kind == AttrKind::Bool ||
             kind == AttrKind::Encoding;
    case AttrForm::String:
      return kind == AttrKind::String;
    case AttrForm::Symbol:
    case AttrForm::SymbolDef:
      return kind == AttrKind::Symbol;
    case AttrForm::Enum:
      return kind == AttrKind::Enum;
    case AttrForm::Flags:
      return kind == AttrKind::Flags;
    case AttrForm::IndexList:
    case AttrForm::IntList:
      return kind == AttrKind::IntList;
    case AttrForm::Predicates:
      return kind == AttrKind::Predicates;
    case AttrForm::Type:
      return kind == AttrKind::Type;
    case AttrForm::Dict:
    case AttrForm::Keys:
      return kind == AttrKind::Dict;
    case AttrForm::Encoding:
      return kind == AttrKind::Encoding;
    case AttrForm::List:
      return kind == AttrKind::List || kind == AttrKind::IntList || kind == AttrKind::SymbolList;
    case AttrForm::Symbols:
      return kind == AttrKind::SymbolList;
    case AttrForm::Name:
      return kind == AttrKind::Word;
  }
  return false;
}

std::string_view form_text(AttrForm form) {
  switch (form) {
    case AttrForm::Unit:
      return "a modifier word";
    case AttrForm::Integer:
      return "an integer";
    case AttrForm::Float:
      return "a float";
    case AttrForm::Literal:
      return "an integer, float or boolean";
    case AttrForm::String:
      return "a string";
    case AttrForm::Symbol:
    case AttrForm::SymbolDef:
      return "a symbol";
    case AttrForm::Enum:
      return "one of its words";
    case AttrForm::Flags:
      return "a list of flags";
    case AttrForm::IndexList:
    case AttrForm::IntList:
      return "a list of integers";
    case AttrForm::Predicates:
      return "a list of predicates";
    case AttrForm::Type:
      return "a type";
    case AttrForm::Dict:
      return "a dictionary";
    case AttrForm::Keys:
      return "the keys of its operands";
    case AttrForm::Encoding:
      return "an encoding";
    case AttrForm::List:
      return "a list";
    case AttrForm::Symbols:
      return "a list of symbols";
    case AttrForm::Name:
      return "a name";
  }
  return "";
}

}  // namespace

bool OpChecker::check_attr(OpId op, const AttrSpec& spec, const Attr& attr) {
  if (!form_fits(spec.form, attr.kind)) {
    c_.bad_literal(op, spec.name, fmt::format("it must be {}", form_text(spec.form)));
    return false;
  }
  const auto out_of_range = [&](uint64_t value) {
    c_.error(op, Diag::StructureEnumRange,
             {{"value", std::to_string(value)}, {"attribute", std::string(spec.name)}});
    return false;
  };
  if (spec.form == AttrForm::Enum) {
    return attr.bits < enum_info(spec.enum_id).cases.size() || out_of_range(attr.bits);
  }
  if (spec.form == AttrForm::Flags) {
    const size_t count = flag_set_info(spec.flags).flags.size();
    return attr.bits < (uint64_t{1} << count) || out_of_range(attr.bits);
  }
  for (const Predicate& predicate : attr.predicates) {
    const PredicateInfo& info = predicate_info(predicate.kind);
    for (unsigned i = 3; i > info.arguments; --i) {
      if (predicate.args[i - 1] == PredicateArg{}) continue;
      c_.error(op, Diag::StructurePredicateArity,
               {{"name", std::string(info.text)},
                {"expected", std::to_string(info.arguments)},
                {"found", std::to_string(i)}});
      return false;
    }
  }
  return true;
}

// --- OpChecker: values and types ----------------------------------------------------------------

bool OpChecker::check_op(OpId op) {
  const OpInfo& info = op_info(module_.op(op).kind);
  const bool operands_fit = check_operands(op, info);
  const bool results_fit = check_results(op, info, operands_fit);
  check_signatures(op, info);
  if (!operands_fit || !results_fit) return false;
  const bool same = check_same_types(op, info);
  check_predicates(op, info);
  return same;
}

void OpChecker::not_visible(OpId op, ValueId value) {
  c_.error(op, Diag::DominanceUndefined, {{"name", value_name_text(module_, value)}});
}

bool OpChecker::check_operands(OpId op, const OpInfo& info) {
  bool fits = true;
  TypeId reported;  // the operands of one type are reported once
  for (unsigned group = 0; group < info.operands.size(); ++group) {
    const Constraint& constraint = *info.operands[group].constraint;
    for (const ValueId value : operand_group(module_, op, group)) {
      if (!order_.visible(value, op)) {
        not_visible(op, value);
        fits = false;
      }
      const TypeId type = module_.type_of(value);
      if (constraint.accepts(module_.types[type])) continue;
      fits = false;
      if (is_broken(value) || (info.has(trait::SameType) && reported == type)) continue;
      reported = type;
      c_.error(op, Diag::TypeOperandConstraint,
               {{"op", std::string(info.name)},
                {"operand", value_name_text(module_, value)},
                {"type", type_text(module_, type)},
                {"constraint", std::string(constraint.text)}});
    }
  }
  return fits;
}

bool OpChecker::check_results(OpId op, const OpInfo& info, bool operands_fit) {
  const unsigned count = module_.op(op).result_count;
  bool fits = true;
  for (unsigned i = 0; i < count; ++i) {
    const ResultSpec& spec = info.results[std::min<size_t>(i, info.results.size() - 1)];
    const ValueId value = module_.result(op, i);
    const TypeId type = module_.type_of(value);
    if (!module_.types.is_scalar(type)) check_type(op, type, RegionId(), RegionId());
    if (spec.constraint->accepts(module_.types[type])) continue;
    fits = false;
    broken_[value.index()] = true;
    // A result that repeats the type of a rejected operand is the same mistake, unless the operand
    // itself was accepted where it came from.
    if (!operands_fit && std::ranges::any_of(module_.operands(op),
                                             [&](ValueId operand) { return is_broken(operand); })) {
      continue;
    }
    const bool needs_index_constant =
        module_.op(op).kind == OpKind::ScalarConstant && module_.types.is_scalar(type);
    c_.error(op, Diag::TypeResultConstraint,
             {{"op", std::string(info.name)},
              {"result", value_name_text(module_, value)},
              {"type", type_text(module_, type)},
              {"constraint", std::string(spec.constraint->text)},
              {"repair", needs_index_constant ? "use index.constant" : ""}});
  }
  return fits;
}

bool OpChecker::check_same_types(OpId op, const OpInfo& info) {
  bool same = true;
  const auto operands = module_.operands(op);
  if (info.has(trait::SameType | trait::OperandsSameType)) {
    for (size_t i = 1; i < operands.size(); ++i) {
      if (module_.type_of(operands[i]) == module_.type_of(operands[0])) continue;
      same = false;
      c_.type_mismatch(op, "operand " + c_.name(operands[i]), module_.type_of(operands[i]),
                       "operand " + c_.name(operands[0]), module_.type_of(operands[0]));
    }
  }
  // The loop compares carried types itself, under renaming.
  if (module_.op(op).kind == OpKind::ScfFor) return same;
  for (size_t r = 0; r < info.results.size(); ++r) {
    const ResultSpec& spec = info.results[r];
    if (spec.same_as < 0) continue;
    const auto group = operand_group(module_, op, static_cast<unsigned>(spec.same_as));
    const size_t count = spec.arity == Arity::Variadic ? module_.op(op).result_count - r : 1;
    if (!c_.same_count(op, "results", count, "operands", group.size())) return false;
    for (size_t i = 0; i < count; ++i) {
      const ValueId result = module_.result(op, static_cast<unsigned>(r + i));
      if (module_.type_of(result) == module_.type_of(group[i])) continue;
      same = false;
      c_.type_mismatch(op, "result " + c_.name(result), module_.type_of(result),
                       "operand " + c_.name(group[i]), module_.type_of(group[i]));
    }
  }
  return same;
}

// The signature that a region's types may also mention: named results see the parameters.
void OpChecker::check_signatures(OpId op, const OpInfo& info) {
  RegionId first;
  const unsigned count = module_.op(op).region_count;
  for (unsigned i = 0; i < count; ++i) {
    const RegionId region = module_.op_region(op, i);
    const bool results = info.region(i, count).name == "results";
    if (i == 0) first = region;
    for (const ValueId arg : module_.args(region)) {
      const TypeId type = module_.type_of(arg);
      if (!module_.types.is_scalar(type))
        check_type(op, type, region, results ? first : RegionId());
    }
  }
  for (const AttrId id : module_.attr_ids(op)) {
    if (id.valid() && module_.attrs[id].kind == AttrKind::Type) {
      check_type(op, module_.attrs[id].type(), RegionId(), RegionId());
    }
  }
}

// Whether a type may mention the value at `op`; in a signature, that of either region counts.
bool OpChecker::type_sees(OpId op, ValueId value, RegionId signature, RegionId second) const {
  if (!signature.valid()) return order_.visible(value, op) || module_.defining_op(value) == op;
  return order_.visible_in_signature(value, signature) ||
         (second.valid() && order_.visible_in_signature(value, second));
}

// The encoding attached to a type: its own rules, its role and the rank of its strides.
void OpChecker::check_attachment(OpId op, TypeId id) {
  const Type& type = module_.types[id];
  const bool view = type.kind == TypeKind::View;
  const auto role_error = [&](std::string found) {
    c_.error(op, Diag::TypeAttachment,
             {{"type", type_text(module_, id)},
              {"found", std::move(found)},
              {"constraint", view ? "a layout or a storage encoding" : "an encoding"}});
  };
  const auto fits = [&](std::optional<EncodingRole> role) {
    return !view || role == EncodingRole::Layout || role == EncodingRole::Storage;
  };
  if (type.encoding.valid()) {
    verify::static_encoding(c_, op, type.encoding, {});
    const EncodingFamilyInfo* const family = encoding_family_of(module_, type.encoding);
    if (family != nullptr && !fits(family->role)) {
      return role_error(fmt::format("a {}", role_name(family->role)));
    }
  } else {
    const Type& found = module_.types[module_.type_of(type.encoding_value)];
    if (is_broken(type.encoding_value)) return;
    if (!is_encoding_type(found.kind) || !fits(role_of(found.kind))) {
      return role_error("of type " + type_text(module_, module_.type_of(type.encoding_value)));
    }
  }
  const ElementLayout layout = element_layout(module_, type);
  if (layout.kind != ElementLayout::Strided || layout.strides.size() == type.rank()) return;
  c_.error(op, Diag::ShapeMismatch,
           {{"detail", fmt::format("{} has {} strides for rank {}", type_text(module_, id),
                                   layout.strides.size(), type.rank())}});
}

void OpChecker::check_type(OpId op, TypeId id, RegionId signature, RegionId second_signature) {
  const Type& type = module_.types[id];
  bool attachment_visible = true;
  if (type.encoding_value.valid() &&
      !type_sees(op, type.encoding_value, signature, second_signature)) {
    not_visible(op, type.encoding_value);
    attachment_visible = false;
  }
  if ((type.encoding.valid() || type.encoding_value.valid()) && attachment_visible &&
      !reported_encoding_[id.index()]) {
    reported_encoding_[id.index()] = true;
    check_attachment(op, id);
  }
  for (const Dim dim : type.dims) {
    if (!dim.is_dynamic()) continue;
    const ValueId extent = dim.value();
    if (!type_sees(op, extent, signature, second_signature)) {
      not_visible(op, extent);
      continue;
    }
    const Type& extent_type = module_.types[module_.type_of(extent)];
    if (is_broken(extent) ||
        (extent_type.is_scalar() &&
         (extent_type.element == ScalarKind::Index || is_integer(extent_type.element)))) {
      continue;
    }
    c_.error(op, Diag::TypeMalformed,
             {{"detail", fmt::format("extent [{}] has type {} but must be index",
                                     value_name_text(module_, extent),
                                     type_text(module_, module_.type_of(extent)))}});
  }
}

// --- OpChecker: predicates ----------------------------------------------------------------------

// The signatures whose names a `where` list may mention: the launch group of a kernel, every group
// of anything else.
void OpChecker::check_predicates(OpId op, const OpInfo& info) {
  RegionId first, second;
  const unsigned count = module_.op(op).region_count;
  for (unsigned i = 0; i < count; ++i) {
    if (info.region(i, count).name == "config") continue;
    (first.valid() ? second : first) = module_.op_region(op, i);
  }
  for (const AttrId id : module_.attr_ids(op)) {
    if (!id.valid() || module_.attrs[id].kind != AttrKind::Predicates) continue;
    for (const Predicate& predicate : module_.attrs[id].predicates) {
      check_predicate(op, predicate, first, second);
    }
  }
}

bool OpChecker::owns(OpId op, ValueId value, RegionId first, RegionId second) const {
  if (!first.valid()) {
    const auto operands = module_.operands(op);
    return std::ranges::find(operands, value) != operands.end();
  }
  const Value& v = module_.value(value);
  return v.kind != ValueKind::Result &&
         (v.owner == first.index() || (second.valid() && v.owner == second.index()));
}

void OpChecker::check_predicate(OpId op, const Predicate& predicate, RegionId first,
                                RegionId second) {
  const PredicateInfo& info = predicate_info(predicate.kind);
  const PredicateArg& subject = predicate.args[0];
  if (!subject.is_value() || !owns(op, subject.value, first, second)) {
    c_.error(op, Diag::StructurePredicateOwner, {{"name", std::string(info.text)}});
    return;
  }
  for (unsigned i = 0; i < info.arguments; ++i) {
    if (!predicate.args[i].is_value()) continue;
    const ValueId value = predicate.args[i].value;
    if (!owns(op, value, first, second) && (first.valid() || !order_.visible(value, op))) {
      not_visible(op, value);
      continue;
    }
    const Type& type = module_.types[module_.type_of(value)];
    const bool fits = type.is_scalar() && is_float(type.element) == info.on_float;
    if (fits || is_broken(value)) continue;
    c_.error(op, Diag::TypePredicateDomain,
             {{"predicate", predicate_text(module_, predicate)}, {"type", c_.type(value)}});
  }
}

}  // namespace loom::detail
