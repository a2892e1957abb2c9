#include "loom/dialect/vector/rules.h"

#include <fmt/core.h>

#include <algorithm>

#include "loom/base/check.h"

namespace loom::verify {

VerifyHook vector_hook(OpKind kind) {
  using enum OpKind;
  switch (kind) {
    case VectorConstant:
      return vector_constant;
    case VectorSplat:
      return vector_splat;
    case VectorIota:
      return vector_iota;
    case VectorBroadcast:
      return vector_broadcast;
    case VectorFromElements:
      return vector_from_elements;
    case VectorExtract:
      return vector_extract;
    case VectorInsert:
      return vector_insert;
    case VectorSlice:
      return vector_slice;
    case VectorConcat:
      return vector_concat;
    case VectorTranspose:
      return vector_transpose;
    case VectorShuffle:
      return vector_shuffle;
    case VectorInterleave:
      return vector_interleave;
    case VectorDeinterleave:
      return vector_deinterleave;
    case VectorPoison:
    case VectorEmpty:
      return vector_poison;
    case VectorTableLookup:
      return vector_table_lookup;
    case VectorLoad:
    case VectorStore:
    case VectorLoadMask:
    case VectorStoreMask:
    case VectorGather:
    case VectorScatter:
    case VectorGatherMask:
    case VectorScatterMask:
    case VectorAtomicReduce:
    case VectorAtomicRmw:
    case VectorAtomicReduceMask:
    case VectorAtomicRmwMask:
    case VectorAtomicCmpXchg:
      return vector_memory;
    case VectorSelect:
      return vector_select;
    case VectorCmpI:
    case VectorCmpF:
    case VectorIsNaNF:
    case VectorIsInfF:
    case VectorIsFiniteF:
      return vector_test;
    case VectorExtF:
    case VectorFPTrunc:
    case VectorExtSI:
    case VectorExtUI:
    case VectorTruncI:
    case VectorSIToFP:
    case VectorUIToFP:
    case VectorFPToSI:
    case VectorFPToUI:
      return vector_cast;
    case VectorGeluF:
      return vector_gelu;
    case VectorBitcast:
      return vector_bitcast;
    case VectorBitfieldExtractU:
    case VectorBitfieldExtractS:
      return vector_bitfield;
    case VectorBitfieldInsert:
      return vector_bitfield_insert;
    case VectorBitpack:
    case VectorBitunpackU:
    case VectorBitunpackS:
      return vector_bitpack;
    case VectorReduce:
      return vector_reduce;
    case VectorReduceAxes:
      return vector_reduce_axes;
    case VectorDotF:
      return vector_dot;
    case VectorDot2F:
    case VectorDot4I:
    case VectorDot4F8:
      return vector_dot_groups;
    case VectorFragment:
      return vector_fragment;
    case VectorFragmentLoad:
    case VectorFragmentStore:
      return vector_fragment_memory;
    case VectorFragmentRepack:
      return vector_fragment_repack;
    case VectorMma:
      return vector_mma;
    case VectorDecode:
    case VectorEncode:
      return vector_code;
    default:
      return nullptr;
  }
}

void bad_operand(VerifyContext& c, OpId op, ValueId value, std::string constraint) {
  c.error(op, Diag::TypeOperandConstraint,
          {{"op", std::string(c.op_name(op))},
           {"operand", value_name_text(c.module, value)},
           {"type", c.type(value)},
           {"constraint", std::move(constraint)}});
}

void bad_shape(VerifyContext& c, OpId op, std::string detail) {
  c.error(op, Diag::ShapeMismatch, {{"detail", std::move(detail)}});
}

bool check_same_shape(VerifyContext& c, OpId op, std::string a, const Type& type_a, std::string b,
                      const Type& type_b) {
  if (std::ranges::equal(type_a.dims, type_b.dims)) return true;
  c.error(op, Diag::ShapeDiffers, {{"a", std::move(a)}, {"b", std::move(b)}});
  return false;
}

bool check_elements(VerifyContext& c, OpId op, const Type& a, const Type& b) {
  return check_same_element(c, op, std::string(scalar_name(a.element)), a.element, b.element);
}

bool check_axis(VerifyContext& c, OpId op, int64_t axis, ValueId vector) {
  const auto rank = static_cast<int64_t>(type_of(c, vector).rank());
  if (axis >= 0 && axis < rank) return true;
  c.error(
      op, Diag::SubrangeAxis,
      {{"axis", std::to_string(axis)}, {"rank", std::to_string(rank)}, {"type", c.type(vector)}});
  return false;
}

std::optional<int64_t> static_lanes(const Type& type) {
  int64_t lanes = 1;
  for (const Dim dim : type.dims) {
    if (dim.is_dynamic() || __builtin_mul_overflow(lanes, dim.extent(), &lanes)) {
      return std::nullopt;
    }
  }
  return lanes;
}

std::optional<bool> same_bits(const Type& a, uint64_t bits_a, const Type& b, uint64_t bits_b) {
  __extension__ using Int128 = unsigned __int128;
  std::vector<ValueId> dynamic_a, dynamic_b;
  const auto product = [](const Type& type, uint64_t bits, std::vector<ValueId>& dynamic) {
    Int128 total = bits;
    bool fits = true;
    for (const Dim dim : type.dims) {
      if (dim.is_dynamic()) {
        dynamic.push_back(dim.value());
      } else {
        total *= static_cast<uint64_t>(dim.extent());
        fits &= total < Int128{1} << 64;
        total = fits ? total : 1;
      }
    }
    std::ranges::sort(dynamic);
    return fits ? std::optional(static_cast<uint64_t>(total)) : std::nullopt;
  };
  const auto total_a = product(a, bits_a, dynamic_a);
  const auto total_b = product(b, bits_b, dynamic_b);
  if (dynamic_a != dynamic_b || !total_a || !total_b) return std::nullopt;
  return total_a == total_b;
}

std::vector<std::optional<int64_t>> exact_places(const VerifyContext& c, OpId op,
                                                 std::span<const ValueId> operands,
                                                 std::span<const int64_t> places) {
  std::vector<std::optional<int64_t>> exact;
  size_t next = 0;
  for (const int64_t place : places) {
    exact.push_back(place == kDynamicIndex ? c.constant_at(op, operands[next++])
                                           : std::optional(place));
  }
  return exact;
}

void out_of_bounds(VerifyContext& c, OpId op, std::string index, Dim extent, size_t axis) {
  c.error(op, Diag::SubrangeBounds,
          {{"index", std::move(index)},
           {"extent", extent.is_dynamic() ? value_name_text(c.module, extent.value())
                                          : std::to_string(extent.extent())},
           {"axis", std::to_string(axis)}});
}

std::string vector_text(const VerifyContext& c, std::span<const Dim> dims, ScalarKind element) {
  if (dims.empty()) return std::string(scalar_name(element));
  std::string text = "vector<";
  for (const Dim dim : dims) {
    text += dim.is_dynamic() ? "[" + value_name_text(c.module, dim.value()) + "]"
                             : std::to_string(dim.extent());
    text += 'x';
  }
  return text + std::string(scalar_name(element)) + ">";
}

bool is_vector_of(const Type& type, std::span<const Dim> dims, ScalarKind element) {
  if (type.element != element) return false;
  if (dims.empty()) return type.is_scalar();
  return type.kind == TypeKind::Vector && std::ranges::equal(type.dims, dims);
}

bool is_float_kind(CombiningKind kind) {
  using enum CombiningKind;
  return kind == AddF || kind == MulF || kind >= MinimumF;
}

}  // namespace loom::verify
