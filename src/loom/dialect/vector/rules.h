// What the rules of the vector operations share.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/dialect/hooks.h"
#include "loom/dialect/memory_rules.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {

inline const Type& type_of(const VerifyContext& c, ValueId value) {
  return c.module.types[c.module.type_of(value)];
}
inline const Type& result_type(const VerifyContext& c, OpId op, unsigned i = 0) {
  return type_of(c, c.module.result(op, i));
}
inline std::string operand_label(const VerifyContext& c, ValueId value) {
  return "operand " + c.name(value);
}
inline std::string result_label(const VerifyContext& c, OpId op, unsigned i = 0) {
  return "result " + c.name(c.module.result(op, i));
}

// TYPE/003
void bad_operand(VerifyContext& c, OpId op, ValueId value, std::string constraint);
// SHAPE/001
void bad_shape(VerifyContext& c, OpId op, std::string detail);
// SHAPE/002; true when equal
bool check_same_shape(VerifyContext& c, OpId op, std::string a, const Type& type_a, std::string b,
                      const Type& type_b);
// TYPE/002 between two values
bool check_elements(VerifyContext& c, OpId op, const Type& a, const Type& b);
// SUBRANGE/002
bool check_axis(VerifyContext& c, OpId op, int64_t axis, ValueId vector);

// The product of the extents; nullopt when one is dynamic or the product overflows.
std::optional<int64_t> static_lanes(const Type& type);
// Whether both sides hold the same number of bits, `bits_*` in each lane; nullopt when their
// dynamic extents leave it open.
std::optional<bool> same_bits(const Type& a, uint64_t bits_a, const Type& b, uint64_t bits_b);

// An exact integer behind each place of an index list, where one is known.
std::vector<std::optional<int64_t>> exact_places(const VerifyContext& c, OpId op,
                                                 std::span<const ValueId> operands,
                                                 std::span<const int64_t> places);
// SUBRANGE/004 on one axis.
void out_of_bounds(VerifyContext& c, OpId op, std::string index, Dim extent, size_t axis);

// "vector<4xf32>", or "f32" where no extents are left.
std::string vector_text(const VerifyContext& c, std::span<const Dim> dims, ScalarKind element);
// Whether `type` is the vector of these extents, or the scalar where none are left.
bool is_vector_of(const Type& type, std::span<const Dim> dims, ScalarKind element);

bool is_float_kind(CombiningKind kind);

// --- one function per family --------------------------------------------------------------------
void vector_constant(VerifyContext& c, OpId op);
void vector_splat(VerifyContext& c, OpId op);
void vector_iota(VerifyContext& c, OpId op);
void vector_broadcast(VerifyContext& c, OpId op);
void vector_from_elements(VerifyContext& c, OpId op);
void vector_extract(VerifyContext& c, OpId op);
void vector_insert(VerifyContext& c, OpId op);
void vector_slice(VerifyContext& c, OpId op);
void vector_concat(VerifyContext& c, OpId op);
void vector_transpose(VerifyContext& c, OpId op);
void vector_shuffle(VerifyContext& c, OpId op);
void vector_interleave(VerifyContext& c, OpId op);
void vector_deinterleave(VerifyContext& c, OpId op);
void vector_poison(VerifyContext& c, OpId op);
void vector_table_lookup(VerifyContext& c, OpId op);

void vector_select(VerifyContext& c, OpId op);
void vector_test(VerifyContext& c, OpId op);  // cmpi, cmpf, isnanf, isinff, isfinitef
void vector_cast(VerifyContext& c, OpId op);
void vector_gelu(VerifyContext& c, OpId op);
void vector_bitcast(VerifyContext& c, OpId op);
void vector_bitfield(VerifyContext& c, OpId op);
void vector_bitfield_insert(VerifyContext& c, OpId op);
void vector_bitpack(VerifyContext& c, OpId op);
void vector_reduce(VerifyContext& c, OpId op);
void vector_reduce_axes(VerifyContext& c, OpId op);
void vector_dot(VerifyContext& c, OpId op);
void vector_dot_groups(VerifyContext& c, OpId op);

void vector_memory(VerifyContext& c, OpId op);  // every load, store, gather, scatter and atomic

void vector_fragment(VerifyContext& c, OpId op);
void vector_fragment_memory(VerifyContext& c, OpId op);
void vector_fragment_repack(VerifyContext& c, OpId op);
void vector_mma(VerifyContext& c, OpId op);
void vector_code(VerifyContext& c, OpId op);  // decode and encode

}  // namespace loom::verify
