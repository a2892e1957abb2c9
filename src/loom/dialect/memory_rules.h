// Rules that the memory operations of view and vector share.
#pragma once

#include <span>

#include "loom/dialect/hooks.h"

namespace loom::verify {

// One index per axis of the view, and no exact index outside [0, extent - window]: SUBRANGE/001,
// SUBRANGE/004. `window` has one width per axis, or is empty for single elements. Lanes that a mask
// switches off touch no memory, so `masked` accesses may begin anywhere.
void check_view_indices(VerifyContext& c, OpId op, ValueId view, std::span<const ValueId> operands,
                        std::span<const int64_t> places, std::span<const Dim> window,
                        bool masked = false);

// TYPE/002
bool check_same_element(VerifyContext& c, OpId op, std::string a, ScalarKind of_a, ScalarKind of_b);

// The attributes `cache_scope` and `cache_temporal` of a load, store or atomic: STRUCTURE/014.
void check_cache(VerifyContext& c, OpId op);

// The attributes `kind`, `flags` and the orderings of an atomic operation, and its kind against the
// element of `value`: STRUCTURE/014, TYPE/003. Kinds that exchange need a result.
void check_atomic(VerifyContext& c, OpId op, ValueId value);

// The space that the program itself states for a buffer; Unknown where nothing does.
MemorySpace stated_space(const VerifyContext& c, ValueId buffer);

}  // namespace loom::verify
