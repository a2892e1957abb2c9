// Everything that is known about the values of one root, to be asked anywhere in it.
//
//   FactAnalysis facts(module, kernel);
//   facts.at(op, n)                            "[1, 1024] mul 4" inside `scf.if %live`
//   facts.compare(Compare::Slt, i, n, op)      true, false or unknown
//   facts.storage(op, view)                    root, byte range, alignment, space
//   facts.distribution(i)                      Lane
#pragma once

#include <memory>
#include <optional>

#include "loom/dialect/uniformity.h"
#include "loom/facts/float_facts.h"
#include "loom/facts/int_facts.h"
#include "loom/pass/storage_facts.h"

namespace loom {

// A snapshot of one isolated region of a verified module: the module must outlive it and stay
// unchanged. Building is linear in the root (and, for a kernel, in the command programs of the
// module). Asking place after place in the order of the code costs a constant each; jumping costs
// the nesting depth. Not thread-safe; any number of analyses may look at one module at once.
//
// A place is an operation: what holds when it starts. Facts come from types, constants, contracts,
// assume operations, configuration, launch topology, the conditions and loops around the place,
// and the transfer rules. Where nothing can get to, facts may be contradictory.
class FactAnalysis {
 public:
  // Of the body of a function, command program or kernel.
  FactAnalysis(const Module& module, OpId root);
  // Of one isolated region of the root, such as a kernel's configuration.
  FactAnalysis(const Module& module, OpId root, RegionId region);
  ~FactAnalysis();
  FactAnalysis(const FactAnalysis&) = delete;
  FactAnalysis& operator=(const FactAnalysis&) = delete;

  // What is known of an integer, index, offset or i1 value at the place. The type's range for
  // other values.
  IntFacts at(OpId place, ValueId value);
  // Of a float.
  FloatFacts float_at(OpId place, ValueId value);
  std::optional<int64_t> exact(OpId place, ValueId value);
  // Whether `a compare b`; both of one integer-like type.
  std::optional<bool> compare(Compare compare, ValueId a, ValueId b, OpId place);
  // Whether a predicate holds; its values are values of the root.
  std::optional<bool> holds(const Predicate& predicate, OpId place);
  // Of a buffer or view.
  StorageFacts storage(OpId place, ValueId value);
  IntFacts extent(OpId place, ValueId shaped, unsigned axis);
  bool may_overlap(OpId a_place, ValueId a, OpId b_place, ValueId b);
  // The widest set of invocations that see one value.
  Distribution distribution(ValueId value);
  // The static encoding that an encoding value is known to be: by its definition, or because the
  // place is in the true branch of `encoding.isa`. Invalid when unknown.
  AttrId encoding(OpId place, ValueId value);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loom
