// Rules of fragments, matrix products and encoded payloads.
#include <fmt/core.h>

#include <algorithm>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/schema.h"
#include "loom/dialect/vector/rules.h"

namespace loom::verify {
namespace {

using enum OpKind;

// The operands that state a fragment, by the row of its operation.
struct FragmentSlots {
  unsigned blocks, rows, columns;
  int aux;   // operand group of the auxiliaries, or -1
  int keys;  // attribute of their keys, or -1
};

#define LOOM_FRAGMENT_SLOTS(kind) \
  operand_slot(kind, "blocks"), operand_slot(kind, "rows"), operand_slot(kind, "cols")

std::optional<FragmentSlots> fragment_slots(OpKind kind) {
  switch (kind) {
    case VectorFragment:
      return FragmentSlots{LOOM_FRAGMENT_SLOTS(VectorFragment),
                           static_cast<int>(operand_slot(VectorFragment, "aux")),
                           static_cast<int>(attr_slot(VectorFragment, "keys"))};
    case VectorFragmentLoad:
      return FragmentSlots{LOOM_FRAGMENT_SLOTS(VectorFragmentLoad),
                           static_cast<int>(operand_slot(VectorFragmentLoad, "aux")),
                           static_cast<int>(attr_slot(VectorFragmentLoad, "keys"))};
    case VectorFragmentStore:
      return FragmentSlots{LOOM_FRAGMENT_SLOTS(VectorFragmentStore), -1, -1};
    case VectorFragmentRepack:
      return FragmentSlots{LOOM_FRAGMENT_SLOTS(VectorFragmentRepack), -1, -1};
    default:
      return std::nullopt;
  }
}
#undef LOOM_FRAGMENT_SLOTS

FragmentRole role_of(const Module& module, OpId op) {
  static_assert(
      attr_slot(VectorFragment, "role") == 0 && attr_slot(VectorFragmentLoad, "role") == 0 &&
      attr_slot(VectorFragmentStore, "role") == 0 && attr_slot(VectorFragmentRepack, "role") == 0);
  return static_cast<FragmentRole>(module.attr(op, 0).bits);
}

std::string_view role_word(FragmentRole role) {
  return enum_info(EnumId::FragmentRole).cases[static_cast<size_t>(role)];
}

// The keys of an operand dictionary, in the order of its operands.
std::vector<std::string_view> keys_of(const VerifyContext& c, OpId op, unsigned slot) {
  std::vector<std::string_view> keys;
  if (!c.module.has_attr(op, slot)) return keys;
  for (const DictEntry& entry : c.module.attr(op, slot).entries) {
    keys.push_back(c.module.strings.text(entry.key));
  }
  return keys;
}

std::string schema_text(const VerifyContext& c, const Attr* schema) {
  return schema == nullptr ? "the schema"
                           : "'#" + std::string(schema_family(c.module, *schema)) + "'";
}

std::string joined(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  std::string text;
  for (const auto* list : {&a, &b}) {
    for (const std::string_view word : *list) {
      text += text.empty() ? "it takes " : ", ";
      text += word;
    }
  }
  return text.empty() ? "it takes none" : text;
}

// The auxiliaries against what the schema takes: ENCODING/015, ENCODING/016.
void check_auxiliaries(VerifyContext& c, OpId op, const std::vector<std::string_view>& keys,
                       const Attr* schema) {
  Auxiliaries known;
  known.complete = false;
  if (schema != nullptr) known = auxiliaries_of(c.module, *schema);
  for (const std::string_view key : keys) {
    const bool taken = std::ranges::find(known.required, key) != known.required.end() ||
                       std::ranges::find(known.optional, key) != known.optional.end();
    if (is_auxiliary(key) && (taken || !known.complete)) continue;
    c.error(op, Diag::EncodingUnknownAuxiliary,
            {{"op", std::string(c.op_name(op))},
             {"key", std::string(key)},
             {"schema", schema_text(c, schema)},
             {"repair", schema == nullptr ? "" : joined(known.required, known.optional)}});
  }
  for (const std::string_view key : known.required) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    c.error(op, Diag::EncodingMissingAuxiliary,
            {{"op", std::string(c.op_name(op))},
             {"key", std::string(key)},
             {"schema", schema_text(c, schema)},
             {"repair", fmt::format("add '{} = %value : T'", key)}});
  }
}

// What `using` names. Returns whether a schema is there, so that lanes are codes.
bool check_using(VerifyContext& c, OpId op, const FragmentSlots& slots) {
  if (slots.keys < 0) return false;
  auto keys = keys_of(c, op, static_cast<unsigned>(slots.keys));
  if (keys.empty()) return false;
  const auto values = operand_group(c.module, op, static_cast<unsigned>(slots.aux));
  const auto found = std::ranges::find(keys, "schema");
  if (found == keys.end()) {
    c.error(op, Diag::EncodingMissingAuxiliary,
            {{"op", std::string(c.op_name(op))},
             {"key", "schema"},
             {"schema", "a fragment with auxiliaries"},
             {"repair", "add 'schema = %value : encoding<schema>'"}});
    return false;
  }
  const ValueId schema = values[static_cast<size_t>(found - keys.begin())];
  keys.erase(found);
  const TypeKind kind = type_of(c, schema).kind;
  if (kind != TypeKind::EncodingSchema && kind != TypeKind::EncodingStorage) {
    bad_operand(c, op, schema, "encoding<schema> or encoding<storage>");
    return true;
  }
  check_auxiliaries(c, op, keys, constant_schema(c.module, schema));
  return true;
}

struct Extents {
  ValueId blocks, rows, columns;
};

Extents extents_of(const VerifyContext& c, OpId op, const FragmentSlots& slots) {
  const auto one = [&](unsigned slot) {
    const auto values = operand_group(c.module, op, slot);
    return values.empty() ? ValueId() : values.front();
  };
  return {one(slots.blocks), one(slots.rows), one(slots.columns)};
}

std::string extent_text(const VerifyContext& c, ValueId value) {
  if (const auto exact = c.constant(value)) return std::to_string(*exact);
  return value_name_text(c.module, value);
}

std::string shape_text(const VerifyContext& c, const Extents& extents) {
  std::string text;
  if (extents.blocks.valid()) text = extent_text(c, extents.blocks) + " blocks of ";
  return text + extent_text(c, extents.rows) + " x " + extent_text(c, extents.columns);
}

void bad_fragment(VerifyContext& c, OpId op, const Type& vector, const Extents& extents,
                  std::string detail) {
  c.error(op, Diag::ShapeFragment,
          {{"type", vector_text(c, vector.dims, vector.element)},
           {"shape", shape_text(c, extents)},
           {"detail", std::move(detail)}});
}

// Positive extents, and no more lanes than elements.
void check_extents(VerifyContext& c, OpId op, const Extents& extents, const Type& vector,
                   bool encoded) {
  int64_t elements = 1;
  bool known = true;
  for (const ValueId value : {extents.blocks, extents.rows, extents.columns}) {
    if (!value.valid()) continue;
    const auto exact = c.constant(value);
    if (exact && *exact <= 0) return bad_fragment(c, op, vector, extents, "it has no elements");
    known = known && exact && !__builtin_mul_overflow(elements, exact.value_or(1), &elements);
  }
  const auto lanes = static_lanes(vector);
  if (encoded || !known || !lanes || *lanes <= elements) return;
  bad_fragment(c, op, vector, extents, "it has more lanes than the fragment has elements");
}

}  // namespace

void vector_fragment(VerifyContext& c, OpId op) {
  const OpKind kind = c.module.op(op).kind;
  const FragmentSlots slots = *fragment_slots(kind);
  const Type& vector =
      kind == VectorFragmentLoad ? result_type(c, op) : type_of(c, c.module.operand(op, 0));
  const bool encoded = check_using(c, op, slots);
  check_extents(c, op, extents_of(c, op, slots), vector, encoded);
}

void vector_fragment_repack(VerifyContext& c, OpId op) {
  check_elements(c, op, result_type(c, op), type_of(c, c.module.operand(op, 0)));
  vector_fragment(c, op);
}

// --- matrix products ----------------------------------------------------------------------------

namespace {

// What is known of a factor: the operation that attached the fragment facts, which other
// operations may have carried here.
struct Factor {
  ValueId value;
  OpId op;  // invalid where the facts come through an argument, a region or lanewise arithmetic
  std::optional<FragmentRole> role;
  Extents extents;
  bool encoded = false;
};

Factor factor_of(const VerifyContext& c, ValueId value) {
  Factor factor{.value = value, .op = {}, .role = std::nullopt, .extents = {}};
  const OpId op = c.module.defining_op(value);
  if (!op.valid() || !c.sound(op)) return factor;
  const auto slots = fragment_slots(c.module.op(op).kind);
  if (c.module.op(op).kind == VectorMma) factor.role = FragmentRole::Result;
  if (!slots) return factor;
  factor.op = op;
  factor.role = role_of(c.module, op);
  factor.extents = extents_of(c, op, *slots);
  factor.encoded = slots->keys >= 0 && c.module.has_attr(op, static_cast<unsigned>(slots->keys));
  return factor;
}

void check_role(VerifyContext& c, OpId op, const Factor& factor, FragmentRole role) {
  const bool accumulates = role == FragmentRole::Init && factor.role == FragmentRole::Result;
  if (!factor.role || *factor.role == role || accumulates) return;
  c.error(op, Diag::ShapeFragmentRole,
          {{"operand", value_name_text(c.module, factor.value)},
           {"op", std::string(c.op_name(op))},
           {"found", fmt::format("a fragment with the role {}", role_word(*factor.role))},
           {"role", std::string(role_word(role))}});
}

// Two extents that must be one: exact values decide, unknown ones may be equal.
bool may_equal(const VerifyContext& c, ValueId a, ValueId b, bool absent_is_one) {
  const auto exact = [&](ValueId value) {
    return value.valid() ? c.constant(value) : std::optional<int64_t>(1);
  };
  if ((!a.valid() || !b.valid()) && !absent_is_one) return true;
  const auto x = exact(a);
  const auto y = exact(b);
  return !x || !y || *x == *y;
}

}  // namespace

void vector_mma(VerifyContext& c, OpId op) {
  const Factor lhs = factor_of(c, c.module.operand(op, 0));
  const Factor rhs = factor_of(c, c.module.operand(op, 1));
  const Factor init = factor_of(c, c.module.operand(op, 2));
  check_role(c, op, lhs, FragmentRole::Lhs);
  check_role(c, op, rhs, FragmentRole::Rhs);
  check_role(c, op, init, FragmentRole::Init);
  const auto check = [&](std::string_view name, const Factor& a, ValueId in_a, const Factor& b,
                         ValueId in_b, bool absent_is_one) {
    if (!a.op.valid() || !b.op.valid() || may_equal(c, in_a, in_b, absent_is_one)) return;
    const auto text = [&](ValueId value) {
      return value.valid() ? extent_text(c, value) : std::string("1");
    };
    c.error(
        op, Diag::ShapeContraction,
        {{"op", std::string(c.op_name(op))},
         {"detail", fmt::format("{} and {}: {} is {} in one and {} in the other", c.name(a.value),
                                c.name(b.value), name, text(in_a), text(in_b))}});
  };
  check("k", lhs, lhs.extents.columns, rhs, rhs.extents.rows, false);
  check("m", lhs, lhs.extents.rows, init, init.extents.rows, false);
  check("n", rhs, rhs.extents.columns, init, init.extents.columns, false);
  check("the number of blocks", lhs, lhs.extents.blocks, rhs, rhs.extents.blocks, true);
  check("the number of blocks", lhs, lhs.extents.blocks, init, init.extents.blocks, true);
  const Type& sum = result_type(c, op);
  for (const Factor& factor : {lhs, rhs}) {
    const Type& type = type_of(c, factor.value);
    // Lanes that a schema reads are codes, whatever their type.
    if (!factor.op.valid() || factor.encoded || is_float(type.element) == is_float(sum.element)) {
      continue;
    }
    check_elements(c, op, type, sum);
  }
  const uint64_t flags = flags_of(c.module, op, attr_slot(VectorMma, "flags"));
  if ((flags & kSaturate) != 0 && !is_integer(sum.element)) {
    c.bad_attribute(op, "flags", "saturate needs an integer accumulator");
  }
  if ((flags & ~kSaturate) != 0 && !is_float(sum.element)) {
    c.bad_attribute(op, "flags", "reassoc and afn need a float accumulator");
  }
}

// --- encoded payloads ---------------------------------------------------------------------------

void vector_code(VerifyContext& c, OpId op) {
  static_assert(operand_slot(VectorDecode, "schema") == operand_slot(VectorEncode, "schema") &&
                attr_slot(VectorDecode, "keys") == attr_slot(VectorEncode, "keys"));
  const ValueId schema_value = c.module.operand(op, operand_slot(VectorDecode, "schema"));
  const Attr* schema = constant_schema(c.module, schema_value);
  const auto keys = keys_of(c, op, attr_slot(VectorDecode, "keys"));
  check_auxiliaries(c, op, keys, schema);
  if (schema == nullptr || !keys.empty()) return;
  const EncodingFamilyInfo* family = find_encoding_family(schema_family(c.module, *schema));
  if (family == nullptr || family->record.bytes == 0) return;
  const bool decodes = c.module.op(op).kind == VectorDecode;
  const Type& operand = type_of(c, c.module.operand(op, 0));
  const Type& payload = decodes ? operand : result_type(c, op);
  const auto lanes = static_lanes(decodes ? result_type(c, op) : operand);
  const auto words = static_lanes(payload);
  if (!lanes || !words) return;
  const auto elements = int64_t{family->record.elements};
  const auto record_bits = 8 * int64_t{family->record.bytes};
  int64_t bits = 0;
  const bool overflow =
      __builtin_mul_overflow(*words, static_cast<int64_t>(scalar_bits(payload.element)), &bits);
  if (!overflow && *lanes % elements == 0 && bits % record_bits == 0 &&
      *lanes / elements == bits / record_bits) {
    return;
  }
  bad_shape(
      c, op,
      fmt::format("a record of '#{}' has {} bytes for {} elements, so {} and {} do not match",
                  family->name, family->record.bytes, family->record.elements,
                  vector_text(c, payload.dims, payload.element), fmt::format("{} lanes", *lanes)));
}

}  // namespace loom::verify
