// What the pure vector operations compute, exactly and lane by lane.
//
// Folding, the interpreter and the tests share this one definition. A pure function without state;
// safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "loom/dialect/eval.h"

namespace loom {

// What vector.fragment attaches to a value, and vector.mma reads. In this semantics the lanes of a
// fragment are the whole matrix: `blocks` matrices one after another, each row-major.
struct FragmentShape {
  FragmentRole role = FragmentRole::Lhs;
  int64_t blocks = 1;
  int64_t rows = 0;
  int64_t columns = 0;

  friend bool operator==(const FragmentShape&, const FragmentShape&) = default;
};

// A scalar or a vector.
struct LaneValues {
  ScalarKind element = ScalarKind::Index;
  std::vector<int64_t> shape;  // concrete extents; empty for a scalar and for a rank-0 vector
  // One per lane, row-major, as ScalarValue::bits; as many as the product of the extents.
  std::vector<uint64_t> lanes;
  // Carried along with the value wherever it flows; other operations drop it.
  std::optional<FragmentShape> fragment;

  ScalarValue at(size_t lane) const { return {element, lanes[lane]}; }
  friend bool operator==(const LaneValues&, const LaneValues&) = default;
};

// The product of the extents.
size_t lane_count(std::span<const int64_t> shape);

// The scalar operation that a lanewise vector operation does in each lane: scalar.addf for
// vector.addf. Nullopt for every other operation.
std::optional<OpKind> lanewise_scalar_op(OpKind kind);

// The scalar operation that a combining kind stands for: scalar.addi for addi.
OpKind combining_op(CombiningKind kind);
// The same for an atomic kind; nullopt for the exchanges.
std::optional<OpKind> combining_op(AtomicKind kind);
// The value that changes nothing when it is combined with another.
ScalarValue neutral_element(CombiningKind kind, ScalarKind type);

// Computes one pure vector operation of a verified module.
//
// `operands` are the values of module.operands(op), in that order; an operand that is neither
// scalar nor vector (an encoding) is passed as a default LaneValues. `results` has one entry per
// result; the caller sets `shape` to the concrete extents of the result's type, and `element` and
// `lanes` are written when the status is Ok.
//
//   - lanewise operations follow evaluate() in every lane; reductions and dot products combine in
//     lane order, whatever their flags allow
//   - an index outside a vector or table, extents that do not fit and everything that evaluate()
//     calls a contract violation is one here
//   - vector.poison may be any value and is all zeros
//   - vector.decode and vector.encode need a schema that a constant encoding defines; where the
//     language leaves the numbers open they are NotEvaluable, as are memory operations
EvalStatus evaluate_vector(const Module& module, OpId op, std::span<const LaneValues> operands,
                           std::span<LaneValues> results);

}  // namespace loom
