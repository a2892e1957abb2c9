// Rewrites one isolated region in a forward sweep: values are replaced through a dense table
// instead of use lists, constants are interned, facts are kept by value.
#pragma once

#include <optional>
#include <span>

#include "loom/dialect/op_info.h"
#include "loom/facts/float_facts.h"
#include "loom/pass/difference.h"
#include "loom/pass/fold.h"
#include "loom/pass/workspace.h"

namespace loom {

class PassContext;

// Position of new operations: before `before`, or at the end of `region` when it is invalid.
struct InsertionPoint {
  RegionId region;
  OpId before;
  static InsertionPoint at(const Module& module, OpId op) { return {module.op(op).parent, op}; }
};

// One object serves one sweep over one isolated region and cleans the workspace up when it dies.
class Rewriter {
 public:
  Rewriter(PassContext& context, RegionId isolated);
  ~Rewriter();
  Rewriter(const Rewriter&) = delete;
  Rewriter& operator=(const Rewriter&) = delete;

  Module& module() { return module_; }
  const Module& module() const { return module_; }
  PassWorkspace& workspace() { return space_; }

  // --- replacement ---
  Ref resolve(ValueId value) const {
    const uint32_t i = value.index();
    if (i < space_.replacement.size() && space_.replacement[i].valid()) {
      return space_.replacement[i];
    }
    return Ref::value(value);
  }
  // Later mentions of `from` mean `to`.
  void replace(ValueId from, Ref to);
  TypeId resolve_type(TypeId type);
  AttrId resolve_attr(AttrId attr);
  // Puts replacements into the operands, result types, region argument types and attributes of the
  // operation (not of nested ones). True when something changed.
  bool remap(OpId op);
  TypeId type_of(Ref ref) const;
  ScalarKind element(TypeId type) const { return module_.types[type].element; }
  ScalarKind element_of(Ref ref) const { return element(type_of(ref)); }

  // --- constants: one operation per value, at the start of the region, made when first needed ---
  Ref constant(const ScalarValue& value);
  Ref integer(ScalarKind kind, int64_t value) {
    return constant(from_bits(kind, static_cast<uint64_t>(value)));
  }
  ValueId materialize(Ref ref);
  // Takes a constant operation met by the sweep into the pool: it moves to the start of the region,
  // or is erased when an equal one is there. False when `op` is not a constant.
  bool adopt_constant(OpId op);
  // The value when it is exact: a constant, or by its facts.
  std::optional<ScalarValue> exact(Ref ref) const;
  std::optional<int64_t> exact_int(Ref ref) const;

  // --- facts ---
  IntFacts facts(Ref ref) const;
  // Replaces what is known about a value until the enclosing scope ends. Empty facts are ignored.
  void set_facts(ValueId value, const IntFacts& facts);
  // Adds to it.
  void refine_facts(ValueId value, const IntFacts& facts);
  // The same for a reference; a constant learns nothing.
  void learn(Ref ref, const IntFacts& more) {
    if (ref.is_value()) refine_facts(ref.value_id(), more);
  }
  // The same for floats. They are learned where a value is made and hold wherever it is visible.
  FloatFacts float_facts(Ref ref) const;
  void refine_float(ValueId value, FloatFacts more);
  size_t fact_mark() const { return undo_.size(); }
  void restore_facts(size_t mark);
  // Values whose facts were set since the mark, with repetitions.
  std::vector<ValueId> changed_since(size_t mark) const;
  // Restores the facts of all values but those of the region itself and its operations.
  void forget_lessons(size_t mark, RegionId region);
  void mark_in_type(TypeId type);
  bool is_in_type(ValueId value) const {
    return value.index() < space_.in_type.size() && space_.in_type[value.index()] != 0;
  }
  std::vector<Relation>& relations() { return relations_; }
  // Whether dominating conditions, contracts and how the values are made decide the comparison.
  std::optional<bool> related(Compare compare, Ref a, Ref b) const;

  // --- folding ---
  // The defining operation of a value; invalid for arguments and constants.
  OpId defining(Ref ref) const;
  OpKind kind_of(OpId op) const { return module_.op(op).kind; }
  // Operand `i` of an operation, resolved.
  Ref operand(OpId op, unsigned i) const { return resolve(module_.operand(op, i)); }
  // Exactly one operation mentions the value. Only the in-place sweep knows; false elsewhere.
  bool single_use(Ref ref);
  void enable_use_counts(OpId root) { use_root_ = root; }
  // Folds until nothing more folds, creating the operations that a rewrite needs. Invalid when the
  // operation stays as it is.
  Ref fold_at(const FoldInput& input, InsertionPoint place, Location location, unsigned round = 0);
  // Creates an operation with one result from resolved operands.
  Ref create(OpKind kind, std::span<const Ref> operands, AttrId flags, TypeId type,
             InsertionPoint place, Location location);
  void insert(OpId op, InsertionPoint place);

 private:
  bool values_replaced_in(const Type& type) const;
  uint32_t intern(const ScalarValue& value);
  void grow_table();
  void insert_constant(OpId op);
  void count_uses();

  Module& module_;
  PassWorkspace& space_;
  const RegionId region_;
  OpId last_constant_;  // constants up to here are the pool's own
  OpId use_root_;
  bool uses_counted_ = false;
  struct Undo {
    uint32_t value;
    uint32_t fact;
  };
  std::vector<Undo> undo_;
  std::vector<Relation> relations_;
};

// The scalar that a constant operation holds; nullopt for every other operation.
std::optional<ScalarValue> constant_of(const Module& module, OpId op);

// Calls f(RegionId) for each isolated region of the root that has operations.
template <class F>
void for_each_body(Module& module, OpId root, F&& f) {
  const OpInfo& info = op_info(module.op(root).kind);
  for (unsigned i = 0; i < module.op(root).region_count; ++i) {
    const RegionId region = module.op_region(root, i);
    const Region& r = module.region(region);
    if (info.regions[i].isolated && r.has_body && !r.deferred) f(region);
  }
}

}  // namespace loom
