#include "loom/dialect/schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "loom/dialect/encoding_info.h"

namespace loom {
namespace {

using Kind = NumericFormat::Kind;

constexpr NumericFormat kFormats[] = {
    {"f64", Kind::Ieee, 64, 52, 1023},
    {"f32", Kind::Ieee, 32, 23, 127},
    {"tf32", Kind::Ieee, 32, 23, 127},
    {"f16", Kind::Ieee, 16, 10, 15},
    {"bf16", Kind::Ieee, 16, 7, 127},
    {"i32", Kind::Signed, 32, 0, 0},
    {"u32", Kind::Unsigned, 32, 0, 0},
    {"i16", Kind::Signed, 16, 0, 0},
    {"u16", Kind::Unsigned, 16, 0, 0},
    {"i8", Kind::Signed, 8, 0, 0},
    {"u8", Kind::Unsigned, 8, 0, 0},
    {"i6", Kind::Signed, 6, 0, 0},
    {"u6", Kind::Unsigned, 6, 0, 0},
    {"i5", Kind::Signed, 5, 0, 0},
    {"u5", Kind::Unsigned, 5, 0, 0},
    {"i4", Kind::Signed, 4, 0, 0},
    {"u4", Kind::Unsigned, 4, 0, 0},
    {"i3", Kind::Signed, 3, 0, 0},
    {"u3", Kind::Unsigned, 3, 0, 0},
    {"i2", Kind::Signed, 2, 0, 0},
    {"u2", Kind::Unsigned, 2, 0, 0},
    {"i1", Kind::Signed, 1, 0, 0},
    {"u1", Kind::Unsigned, 1, 0, 0},
    {"f8e4m3", Kind::Ieee, 8, 3, 7},
    {"f8e5m2", Kind::Ieee, 8, 2, 15},
    {"f8e4m3fn", Kind::FiniteNan, 8, 3, 7},
    {"f8e4m3fnuz", Kind::NegZeroNan, 8, 3, 8},
    {"f8e5m2fnuz", Kind::NegZeroNan, 8, 2, 16},
    {"e8m0", Kind::Scale, 8, 0, 127},
    {"bf8", Kind::Ieee, 8, 2, 15},
    {"f6e3m2", Kind::Finite, 6, 2, 3},
    {"f6e2m3", Kind::Finite, 6, 3, 1},
    {"bf6", Kind::Finite, 6, 2, 3},
    {"f4e2m1", Kind::Finite, 4, 1, 1},
    {"quant_i8", Kind::Signed, 8, 0, 0},
    {"quant_i6", Kind::Signed, 6, 0, 0},
    {"quant_i4", Kind::Signed, 4, 0, 0},
};

struct RecordFamily {
  std::string_view name;
  std::array<std::string_view, 3> auxiliaries;
};
constexpr RecordFamily kRecords[] = {
    {"ggml.q4_0", {"scale", "", ""}},
    {"ggml.q8_0", {"scale", "", ""}},
    {"ggml.q4_k", {"scale", "secondary_scale", "minimum"}},
    {"ggml.q5_k", {"scale", "secondary_scale", "minimum"}},
    {"ggml.q6_k", {"scale", "secondary_scale", ""}},
    {"ggml.q8_1_x4", {"scale", "sum_correction", ""}},
};

const RecordFamily* find_record(std::string_view family) {
  const auto found = std::ranges::find(kRecords, family, &RecordFamily::name);
  return found == std::end(kRecords) ? nullptr : &*found;
}

const Attr* parameter(const Module& module, const Attr& schema, std::string_view name) {
  for (const DictEntry& entry : schema.entries) {
    if (entry.key.valid() && module.strings.text(entry.key) == name) {
      return &module.attrs[entry.value];
    }
  }
  return nullptr;
}

}  // namespace

const NumericFormat* numeric_format(std::string_view name) {
  const auto found = std::ranges::find(kFormats, name, &NumericFormat::name);
  return found == std::end(kFormats) ? nullptr : &*found;
}

double decode_number(const NumericFormat& format, uint64_t code) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const uint64_t all = format.bits == 64 ? ~uint64_t{0} : (uint64_t{1} << format.bits) - 1;
  code &= all;
  const unsigned unused = 64u - format.bits;
  if (format.kind == Kind::Unsigned) return static_cast<double>(code);
  if (format.kind == Kind::Signed) {
    return static_cast<double>(static_cast<int64_t>(code << unused) >> unused);
  }
  if (format.kind == Kind::Scale) {
    return code == all ? kNan : std::ldexp(1.0, static_cast<int>(code) - format.bias);
  }
  const uint64_t sign_bit = uint64_t{1} << (format.bits - 1);
  const bool negative = (code & sign_bit) != 0;
  if (format.kind == Kind::NegZeroNan && code == sign_bit) return kNan;
  const uint64_t magnitude = code & (sign_bit - 1);
  if (format.kind == Kind::FiniteNan && magnitude == sign_bit - 1) return kNan;
  const uint64_t fraction = magnitude & ((uint64_t{1} << format.mantissa) - 1);
  const auto exponent = static_cast<int>(magnitude >> format.mantissa);
  const int greatest = (1 << (format.bits - 1 - format.mantissa)) - 1;
  double value = 0;
  if (format.kind == Kind::Ieee && exponent == greatest) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : kNan;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(fraction), 1 - format.bias - format.mantissa);
  } else {
    const uint64_t significand = fraction | uint64_t{1} << format.mantissa;
    value = std::ldexp(static_cast<double>(significand), exponent - format.bias - format.mantissa);
  }
  return negative ? -value : value;
}

const Attr* constant_schema(const Module& module, ValueId schema) {
  const auto encoding = static_encoding_of(module, schema);
  return encoding && encoding->attr.valid() ? &module.attrs[encoding->attr] : nullptr;
}

std::string_view schema_family(const Module& module, const Attr& schema) {
  return module.strings.text(schema.string());
}

bool is_record_family(std::string_view family) { return find_record(family) != nullptr; }

std::string_view schema_word(const Module& module, const Attr& schema, std::string_view name) {
  constexpr std::string_view kPrefix = "encoding.";
  if (const Attr* found = parameter(module, schema, name)) {
    if (found->kind == AttrKind::Word || found->kind == AttrKind::String) {
      return module.strings.text(found->string());
    }
    if (found->kind == AttrKind::Type) return scalar_name(module.types[found->type()].element);
    return {};
  }
  // `#encoding.u4` is the operand family with that element format.
  const std::string_view family = schema_family(module, schema);
  if (name != "element_format" || !family.starts_with(kPrefix)) return {};
  const NumericFormat* format = numeric_format(family.substr(kPrefix.size()));
  return format == nullptr ? std::string_view() : format->name;
}

std::optional<int64_t> schema_integer(const Module& module, const Attr& schema,
                                      std::string_view name) {
  const Attr* found = parameter(module, schema, name);
  if (found == nullptr || found->kind != AttrKind::Integer) return std::nullopt;
  return found->value();
}

namespace {

CodePacking packing_of(std::string_view word) {
  if (word.empty() || word == "none" || word == "dense_lanes") return CodePacking::Lanes;
  if (word == "little_endian_nibbles" || word == "bitfield_stream") return CodePacking::Stream;
  return word == "big_endian_nibbles" ? CodePacking::BigNibbles : CodePacking::Other;
}

}  // namespace

OperandSchema read_operand_schema(const Module& module, const Attr& schema) {
  OperandSchema result;
  result.format = numeric_format(schema_word(module, schema, "element_format"));
  result.packing = packing_of(schema_word(module, schema, "payload_packing"));
  result.affine = schema_word(module, schema, "affine");
  if (result.affine.empty()) result.affine = "none";
  result.group = static_cast<size_t>(
      std::max<int64_t>(0, schema_integer(module, schema, "scale_group_elements").value_or(0)));
  for (const std::string_view name : {"codebook", "sparsity"}) {
    const std::string_view word = schema_word(module, schema, name);
    if (!word.empty() && word != "none") result.format = nullptr;
  }
  return result;
}

size_t auxiliary_run(size_t lanes, size_t group, size_t count) {
  if (lanes == 0) return 0;
  size_t run = lanes == 1 ? count : group;
  if (run == 0 && count % lanes == 0) run = count / lanes;
  return lanes * run < count ? 0 : run;
}

std::optional<ScalarKind> stored_as(const NumericFormat& format) {
  if (format.name == "f8e4m3fn") return ScalarKind::F8E4M3;
  if (format.name == "f8e5m2" || format.name == "bf8") return ScalarKind::F8E5M2;
  const auto kind = scalar_from_name(format.name);
  return kind && is_float(*kind) ? kind : std::nullopt;
}

bool is_auxiliary(std::string_view key) {
  std::string_view cases = encoding_enum("auxiliary key");
  while (!cases.empty()) {
    const size_t end = std::min(cases.find(' '), cases.size());
    if (cases.substr(0, end) == key) return true;
    cases.remove_prefix(std::min(end + 1, cases.size()));
  }
  return false;
}

Auxiliaries auxiliaries_of(const Module& module, const Attr& schema) {
  Auxiliaries result;
  const std::string_view family = schema_family(module, schema);
  if (const RecordFamily* record = find_record(family)) {
    for (const std::string_view key : record->auxiliaries) {
      if (!key.empty()) result.optional.push_back(key);
    }
    return result;
  }
  const bool operand =
      family == "encoding.operand" || !schema_word(module, schema, "element_format").empty();
  if (!operand) {
    result.complete = false;
    return result;
  }
  const std::string_view affine = schema_word(module, schema, "affine");
  if (!affine.empty() && affine != "none") result.required.push_back("scale");
  if (affine == "scale_plus_min") result.required.push_back("minimum");
  if (affine == "scale_plus_zero_point") result.required.push_back("zero_point");
  if (affine == "scale_plus_bias") result.required.push_back("bias");
  if (affine == "super_scale_times_subscale") result.required.push_back("secondary_scale");
  if (affine == "sum_correction") result.required.push_back("sum_correction");
  const std::string_view codebook = schema_word(module, schema, "codebook");
  if (codebook == "dynamic_table_operand") result.required.push_back("codebook");
  const std::string_view sparsity = schema_word(module, schema, "sparsity");
  if (!sparsity.empty() && sparsity != "none") result.complete = false;
  return result;
}

}  // namespace loom
