#include "loom/target/llvm/encoded_plan.h"

#include <algorithm>
#include <array>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/op_info.h"
#include "loom/target/llvm/llvm_types.h"

namespace loom {
namespace {

using enum OpKind;

static_assert(operand_slot(VectorDecode, "schema") == operand_slot(VectorEncode, "schema") &&
              operand_slot(VectorDecode, "aux") == operand_slot(VectorEncode, "aux") &&
              attr_slot(VectorDecode, "keys") == attr_slot(VectorEncode, "keys"));

struct Affine {
  std::string_view name;
  std::string_view second;
};
constexpr Affine kAffines[] = {{"none", ""},
                               {"scale_only", ""},
                               {"sum_correction", ""},
                               {"scale_plus_min", "minimum"},
                               {"scale_plus_zero_point", "zero_point"},
                               {"scale_plus_bias", "bias"},
                               {"super_scale_times_subscale", "secondary_scale"}};

struct Family {
  std::string_view name;
  std::array<RecordField, 5> fields;
};
constexpr Family kFamilies[] = {
    {"ggml.q4_0", {{{0, 2}, {2, 16}}}},
    {"ggml.q8_0", {{{0, 2}, {2, 32}}}},
    {"ggml.q4_k", {{{0, 2}, {2, 2}, {4, 12}, {16, 128}}}},
    {"ggml.q5_k", {{{0, 2}, {2, 2}, {4, 12}, {16, 32}, {48, 128}}}},
    {"ggml.q6_k", {{{0, 128}, {128, 64}, {192, 16}, {208, 2}}}},
    {"ggml.q8_1_x4", {{{0, 16}, {16, 128}}}},
};

// The auxiliary is there and serves all `count` elements.
bool serves(const Module& module, OpId op, std::string_view name, const OperandSchema& schema,
            uint64_t count) {
  const ValueId value = auxiliary_of(module, op, name);
  if (!value.valid()) return false;
  const Type& type = module.types[module.type_of(value)];
  if (!type.is_scalar() && !static_lanes(type)) return false;
  return auxiliary_run(type.is_scalar() ? 1 : *static_lanes(type), schema.group, count) != 0;
}

bool affine_served(const Module& module, OpId op, const OperandSchema& schema, uint64_t count) {
  if (schema.affine == "none") return true;
  const auto known = std::ranges::find(kAffines, schema.affine, &Affine::name);
  return known != std::end(kAffines) && serves(module, op, "scale", schema, count) &&
         (known->second.empty() || serves(module, op, known->second, schema, count));
}

}  // namespace

ValueId auxiliary_of(const Module& module, OpId op, std::string_view name) {
  constexpr unsigned kKeys = attr_slot(VectorDecode, "keys");
  if (!module.has_attr(op, kKeys)) return ValueId();
  const auto keys = module.attr(op, kKeys).entries;
  const auto values = operand_group(module, op, operand_slot(VectorDecode, "aux"));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (module.strings.text(keys[i].key) == name) return values[i];
  }
  return ValueId();
}

std::string_view second_auxiliary(std::string_view affine) {
  const auto known = std::ranges::find(kAffines, affine, &Affine::name);
  return known == std::end(kAffines) ? std::string_view() : known->second;
}

std::span<const RecordField> record_fields(std::string_view family) {
  const auto found = std::ranges::find(kFamilies, family, &Family::name);
  if (found == std::end(kFamilies)) return {};
  const auto end = std::ranges::find(found->fields, 0u, &RecordField::bytes);
  return {found->fields.begin(), end};
}

std::optional<CodePlan> plan_code(const Module& module, OpId op) {
  const bool decodes = module.op(op).kind == VectorDecode;
  const ValueId operand = module.operand(op, 0);
  const Type& numbers = module.types[module.type_of(decodes ? module.result(op) : operand)];
  const Type& payload = module.types[module.type_of(decodes ? operand : module.result(op))];
  const Attr* const spec =
      constant_schema(module, module.operand(op, operand_slot(VectorDecode, "schema")));
  const auto count = static_lanes(numbers);
  const auto words = static_lanes(payload);
  if (spec == nullptr || !is_float(numbers.element) || !count || !words) return std::nullopt;
  const uint64_t bits = *words * scalar_bits(payload.element);
  CodePlan plan;
  const std::string_view family = schema_family(module, *spec);
  if (is_record_family(family)) {
    const StorageRecord record = find_encoding_family(family)->record;
    const bool whole = *count % record.elements == 0 &&
                       bits == *count / record.elements * record.bytes * uint64_t{8};
    if (!decodes || !whole || module.has_attr(op, attr_slot(VectorDecode, "keys"))) {
      return std::nullopt;
    }
    plan.family = family;
    return plan;
  }
  plan.schema = read_operand_schema(module, *spec);
  const OperandSchema& schema = plan.schema;
  if (!schema.settled() || !affine_served(module, op, schema, *count)) return std::nullopt;
  const unsigned width = schema.format->bits;
  plan.one_per_lane = schema.packing == CodePacking::Lanes && *words == *count &&
                      width <= scalar_bits(payload.element);
  if (!plan.one_per_lane && bits != *count * width) return std::nullopt;
  if (schema.packing == CodePacking::BigNibbles && *count % 2 != 0) return std::nullopt;
  if (decodes) return plan;
  using Kind = NumericFormat::Kind;
  const bool is_integer =
      schema.format->kind == Kind::Signed || schema.format->kind == Kind::Unsigned;
  const std::string_view rounding = schema_word(module, *spec, "rounding");
  const bool nearest = rounding.empty() || rounding == "none" || rounding == "nearest_even";
  const bool scaled = schema.affine == "none" || schema.affine == "scale_only";
  if (!nearest || !scaled || !(is_integer || stored_as(*schema.format))) return std::nullopt;
  return plan;
}

}  // namespace loom
