// What the tables say about one operation; the generic half of verify.cpp.
#pragma once

#include <vector>

#include "loom/dialect/hooks.h"

namespace loom::detail {

// Pre-order positions of a module's operations: answers what dominates what without walking.
class Order {
 public:
  explicit Order(const Module& module);
  // Numbers `root` and everything nested in it; appends the nested operations in pre-order.
  void number(OpId root, std::vector<OpId>& nested);
  // Whether the value may be used at `op` (by the operation itself, not inside its regions).
  bool visible(ValueId value, OpId op) const;
  // Whether `value` is an argument or extent of `region`, or visible at the op around it.
  bool visible_in_signature(ValueId value, RegionId region) const;
  // The subtree of an operation holds the positions [position, end].
  uint32_t position(OpId op) const { return order_[op.index()]; }
  uint32_t end(OpId op) const { return end_[op.index()]; }

 private:
  static constexpr uint32_t kNone = ~0u;
  const Module& module_;
  uint32_t next_ = 0;
  std::vector<uint32_t> order_, end_;                // by operation
  std::vector<uint32_t> region_begin_, region_end_;  // by region; empty: begin > end
};

// Checks single operations against their rows. Keeps which values have a type that an earlier
// diagnostic already rejected, so that their uses stay quiet.
class OpChecker {
 public:
  OpChecker(VerifyContext& context, const Order& order);

  // Counts, attribute presence, kinds and ranges. The operation may be read by name afterwards.
  bool check_shape(OpId op);
  // Operands, types, predicates. Returns whether hooks may run.
  bool check_op(OpId op);

 private:
  bool check_counts(OpId op, const OpInfo& info);
  bool check_attrs(OpId op, const OpInfo& info);
  bool check_attr(OpId op, const AttrSpec& spec, const Attr& attr);
  bool check_operands(OpId op, const OpInfo& info);
  bool check_results(OpId op, const OpInfo& info, bool operands_fit);
  bool check_same_types(OpId op, const OpInfo& info);
  void check_signatures(OpId op, const OpInfo& info);
  bool type_sees(OpId op, ValueId value, RegionId signature, RegionId second) const;
  void check_attachment(OpId op, TypeId type);
  void check_type(OpId op, TypeId type, RegionId signature, RegionId second_signature);
  void check_predicates(OpId op, const OpInfo& info);
  void check_predicate(OpId op, const Predicate& predicate, RegionId first, RegionId second);
  bool owns(OpId op, ValueId value, RegionId first, RegionId second) const;
  bool is_broken(ValueId value) const { return broken_[value.index()]; }
  void not_visible(OpId op, ValueId value);

  VerifyContext& c_;
  const Module& module_;
  const Order& order_;
  std::vector<bool> broken_;             // by value
  std::vector<bool> reported_encoding_;  // by type: its attachment was checked
};

}  // namespace loom::detail
