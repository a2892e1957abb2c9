#include "loom/pass/interchange.h"

#include <algorithm>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/pass/analysis.h"
#include "loom/pass/kind_tables.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kBounds = 3;       // lo, hi, step
constexpr unsigned kMaxSteps = 64;    // operations that an index is followed through
constexpr size_t kMaxAccesses = 256;  // of one nest

RegionId body_of(const Module& module, OpId loop) { return module.op_region(loop, 0); }
ValueId induction_of(const Module& module, OpId loop) {
  return module.args(body_of(module, loop))[0];
}

bool is_plain(const Module& module, OpId loop) {
  return module.op(loop).kind == ScfFor && module.operands(loop).size() == kBounds &&
         module.op(loop).result_count == 0 && !module.has_attr(loop, attr_slot(ScfFor, "unroll")) &&
         !module.has_attr(loop, attr_slot(ScfFor, "schedule"));
}

// The one loop in the body, behind operations that may move; invalid where there is more.
OpId inner_of(const Module& module, OpId outer) {
  OpId inner;
  bool only = true;
  for_each_op(module, body_of(module, outer), [&](OpId op) {
    const OpKind kind = module.op(op).kind;
    if (kind == ScfYield) return;
    if (inner.valid()) {
      only = false;
    } else if (kind == ScfFor) {
      inner = op;
    } else {
      only = only && module.op(op).region_count == 0 &&
             (effect_of(kind) == Effect::Pure || kind == ViewLoad);
    }
  });
  return only ? inner : OpId();
}

struct MemoryAccess {
  OpId op;
  ValueId view;
  std::span<const ValueId> indices;
  AttrId static_indices;
  bool writes = false;
};

class Nest {
 public:
  Nest(const Module& module, OpId root, OpId outer, OpId inner)
      : module_(module),
        facts_(module, root),
        outer_(outer),
        outer_index_(induction_of(module, outer)),
        inner_index_(induction_of(module, inner)) {}

  bool may_change_places() {
    if (!collect()) return false;
    for (const MemoryAccess& write : accesses_) {
      if (!write.writes) continue;
      for (const MemoryAccess& other : accesses_) {
        if (!keeps_order(write, other)) return false;
      }
    }
    return true;
  }

  // Whether the value is made in front of the nest.
  bool is_outside(ValueId value) const {
    const Value& v = module_.value(value);
    const RegionId home = v.kind == ValueKind::Result
                              ? module_.op(module_.defining_op(value)).parent
                              : RegionId(v.owner);
    for (RegionId region = home; region.valid();) {
      const OpId holder = module_.region(region).parent;
      if (holder == outer_) return false;
      if (!holder.valid()) break;
      region = module_.op(holder).parent;
    }
    return true;
  }

 private:
  bool collect() {
    bool known = true;
    for_each_nested(module_, outer_, [&](OpId op) {
      const OpKind kind = module_.op(op).kind;
      if (kind == ViewLoad || kind == ViewStore) {
        known = known && !is_volatile(module_, op) && accesses_.size() < kMaxAccesses;
        add(op, kind == ViewStore);
        return;
      }
      const Effect effect = effect_of(kind);
      known = known && (effect == Effect::Pure || effect == Effect::Nested) && kind != ScfWhile;
    });
    return known;
  }

  void add(OpId op, bool writes) {
    const unsigned view = writes ? operand_slot(ViewStore, "w") : operand_slot(ViewLoad, "w");
    const unsigned slot =
        writes ? attr_slot(ViewStore, "static_index") : attr_slot(ViewLoad, "static_index");
    accesses_.push_back({op, module_.operand(op, view), module_.operands(op).subspan(view + 1),
                         module_.attr_ids(op)[slot], writes});
  }

  bool keeps_order(const MemoryAccess& write, const MemoryAccess& other) {
    if (write.view != other.view || write.static_indices != other.static_indices ||
        !std::ranges::equal(write.indices, other.indices)) {
      return !facts_.may_overlap(write.op, write.view, other.op, other.view);
    }
    // Iterations that meet in one element agree in the loop that an index counts along with, and
    // so come in the order of the other loop, before and after.
    bool counts = false;
    for (const ValueId index : write.indices) {
      switch (kind_of(index)) {
        case IndexKind::Fixed:
          break;
        case IndexKind::Counts:
          counts = true;
          break;
        case IndexKind::Unknown:
          return false;
      }
    }
    return counts;
  }

  // How an index changes from iteration to iteration.
  enum class IndexKind : uint8_t {
    Fixed,   // not at all
    Counts,  // with one of the two loops: other numbers give other values
    Unknown,
  };

  IndexKind kind_of(ValueId index) const {
    // An index and what does not change, added or subtracted.
    for (unsigned step = 0; step < kMaxSteps; ++step) {
      if (index == outer_index_ || index == inner_index_) return IndexKind::Counts;
      if (is_outside(index)) return IndexKind::Fixed;
      const OpId made = module_.defining_op(index);
      if (!made.valid()) return IndexKind::Unknown;
      const OpKind kind = module_.op(made).kind;
      if (kind != IndexAdd && kind != IndexSub) return IndexKind::Unknown;
      const ValueId a = module_.operand(made, 0), b = module_.operand(made, 1);
      if (!is_outside(a) && !is_outside(b)) return IndexKind::Unknown;
      index = is_outside(a) ? b : a;
    }
    return IndexKind::Unknown;
  }

  const Module& module_;
  FactAnalysis facts_;
  const OpId outer_;
  const ValueId outer_index_, inner_index_;
  std::vector<MemoryAccess> accesses_;
};

}  // namespace

bool can_interchange(const Module& module, OpId root, OpId outer) {
  if (!is_plain(module, outer)) return false;
  const OpId inner = inner_of(module, outer);
  if (!inner.valid() || !is_plain(module, inner)) return false;
  Nest nest(module, root, outer, inner);
  const bool outside = std::ranges::all_of(module.operands(inner),
                                           [&](ValueId bound) { return nest.is_outside(bound); });
  return outside && nest.may_change_places();
}

// The operations stay; bounds and induction variables change places.
void interchange(Module& module, OpId outer) {
  const OpId inner = inner_of(module, outer);
  const RegionId outside = body_of(module, outer), inside = body_of(module, inner);
  const OpId first = module.region(inside).first;
  std::vector<OpId> front;
  for_each_op(module, outside, [&](OpId op) {
    if (op != inner && module.op(op).kind != ScfYield) front.push_back(op);
  });
  for (OpId op : front) {
    module.detach(op);
    if (first.valid()) {
      module.insert_before(first, op);
    } else {
      module.append(inside, op);
    }
  }
  for (unsigned i = 0; i < kBounds; ++i) {
    const ValueId bound = module.operand(outer, i);
    module.set_operand(outer, i, module.operand(inner, i));
    module.set_operand(inner, i, bound);
  }
  const ValueId outer_index = module.args(outside)[0], inner_index = module.args(inside)[0];
  module.set_args(outside, std::span(&inner_index, 1), 1);
  module.set_args(inside, std::span(&outer_index, 1), 1);
}

}  // namespace loom
