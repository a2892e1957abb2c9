#include "loom/pass/licm.h"

#include <algorithm>
#include <vector>

#include "loom/pass/analysis.h"
#include "loom/pass/kind_tables.h"
#include "loom/pass/region_walk.h"
#include "loom/pass/rewriter.h"

namespace loom {
namespace {

using enum OpKind;

// Writes that are compared one by one; a loop with more keeps its loads.
constexpr unsigned kMaxWrites = 16;
// Loops that one operation leaves in one run.
constexpr unsigned kMaxLoops = 64;
const IntDomain kIndex = IntDomain::of(ScalarKind::Index);

// Plans on an unchanged module, so that facts hold, and moves afterwards.
class Mover {
 public:
  Mover(Module& module, OpId root, RegionId body)
      : module_(module), body_(body), facts_(module, root, body) {}

  void run() {
    measure();
    for_each_in_body([&](OpId op) { plan(op); });
    for (const Move& move : moves_) {
      module_.detach(move.op);
      module_.insert_before(move.before, move.op);
    }
  }

 private:
  struct Move {
    OpId op, before;
  };
  struct LoopInfo {
    OpId writes[kMaxWrites];
    unsigned write_count = 0;
    bool clobbers = false;  // more writes than fit, or another effect
    std::optional<bool> runs;
  };

  template <class F>
  void for_each_in_body(F&& f) {
    for (OpId op = module_.region(body_).first; op.valid();) {
      const OpId next = next_in_region_tree(module_, op, body_);
      f(op);
      op = next;
    }
  }

  // Depths of regions, and what each loop does to memory.
  void measure() {
    depth_.assign(module_.region_count(), 0);
    home_.resize(module_.value_count());
    loop_of_.assign(module_.op_count(), 0);
    infos_.emplace_back();
    for_each_in_body([&](OpId op) {
      const Op& o = module_.op(op);
      for (unsigned i = 0; i < o.region_count; ++i) {
        depth_[module_.op_region(op, i).index()] = depth_[o.parent.index()] + 1;
      }
      for (unsigned i = 0; i < o.result_count; ++i) {
        home_[module_.result(op, i).index()] = depth_[o.parent.index()];
      }
      if (is_loop(o.kind)) {
        loop_of_[op.index()] = static_cast<uint32_t>(infos_.size());
        infos_.emplace_back();
      }
      note_effect(op);
    });
  }

  static bool is_loop(OpKind kind) { return kind == ScfFor || kind == ScfWhile; }

  bool touches(OpId op) const {
    const OpKind kind = module_.op(op).kind;
    switch (effect_of(kind)) {
      case Effect::Pure:
      case Effect::Nested:
      case Effect::Alloc:
      case Effect::Hint:
        return false;
      case Effect::Read:
        return kind != ViewLoad || is_volatile(op);
      case Effect::Call:
        return !module_.has_attr(op, attr_slot(FuncCall, "pure"));
      default:
        return true;
    }
  }
  bool is_volatile(OpId op) const {
    return (flags_of(module_, op, attr_slot(ViewLoad, "flags")) & kVolatile) != 0;
  }

  // A loop that is full already is inside loops that are full.
  void note_effect(OpId op) {
    if (!touches(op)) return;
    for (RegionId region = module_.op(op).parent; region != body_;) {
      const OpId holder = module_.region(region).parent;
      if (is_loop(module_.op(holder).kind)) {
        LoopInfo& info = infos_[loop_of_[holder.index()]];
        if (info.clobbers) return;
        if (module_.op(op).kind != ViewStore || info.write_count == kMaxWrites) {
          info.clobbers = true;
        } else {
          info.writes[info.write_count++] = op;
        }
      }
      region = module_.op(holder).parent;
    }
  }

  // The nesting depth at which the value is available.
  uint32_t home(ValueId value) const {
    const Value& v = module_.value(value);
    return v.kind == ValueKind::Result ? home_[value.index()] : depth_[v.owner];
  }

  uint32_t needed_depth(OpId op) const {
    uint32_t depth = 0;
    const auto need = [&](ValueId value) { depth = std::max(depth, home(value)); };
    for (ValueId value : module_.operands(op)) need(value);
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      const Type& type = module_.types[module_.type_of(module_.result(op, i))];
      for (Dim dim : type.dims) {
        if (dim.is_dynamic()) need(dim.value());
      }
      if (type.encoding_value.valid()) need(type.encoding_value);
    }
    for (AttrId attr : module_.attr_ids(op)) {
      if (!attr.valid()) continue;
      for (const Predicate& predicate : module_.attrs[attr].predicates) {
        for (unsigned i = 0; i < predicate.arity(); ++i) {
          if (predicate.args[i].is_value()) need(predicate.args[i].value);
        }
      }
    }
    return depth;
  }

  bool is_candidate(OpId op) const {
    const Op& o = module_.op(op);
    if (o.result_count == 0 || o.region_count != 0 || kind_has(o.kind, trait::Terminator)) {
      return false;
    }
    switch (effect_of(o.kind)) {
      case Effect::Pure:
        return true;
      case Effect::Read:
        return o.kind == ViewLoad && !is_volatile(op);
      case Effect::Call:
        return module_.has_attr(op, attr_slot(FuncCall, "pure"));
      default:
        return false;
    }
  }

  void plan(OpId op) {
    if (!is_candidate(op) || module_.op(op).parent == body_) return;
    const uint32_t needed = needed_depth(op);
    OpId target;
    RegionId region = module_.op(op).parent;
    bool direct = true;  // every execution of the loop's body reaches the operation
    for (unsigned loops = 0; region != body_ && loops < kMaxLoops;) {
      const OpId holder = module_.region(region).parent;
      const RegionId outside = module_.op(holder).parent;
      if (depth_[outside.index()] < needed) break;
      if (is_loop(module_.op(holder).kind)) {
        ++loops;
        const bool sure = direct && runs(holder, region);
        if (!(sure ? may_leave(op, holder) : is_harmless(op, holder))) break;
        target = holder;
        direct = sure;
      } else {
        direct = false;
      }
      region = outside;
    }
    if (!target.valid()) return;
    moves_.push_back({op, target});
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      home_[module_.result(op, i).index()] = depth_[module_.op(target).parent.index()];
    }
  }

  // Whether the region runs whenever the loop is reached. A while loop always decides once.
  bool runs(OpId loop, RegionId region) {
    if (module_.op(loop).kind == ScfWhile) return region == module_.op_region(loop, 0);
    LoopInfo& info = infos_[loop_of_[loop.index()]];
    if (!info.runs) {
      info.runs = facts_.compare(Compare::Slt, module_.operand(loop, operand_slot(ScfFor, "lo")),
                                 module_.operand(loop, operand_slot(ScfFor, "hi")), loop) == true;
    }
    return *info.runs;
  }

  // Of an operation that the first iteration executes anyway.
  bool may_leave(OpId op, OpId loop) {
    if (module_.op(op).kind != ViewLoad) return true;
    const LoopInfo& info = infos_[loop_of_[loop.index()]];
    if (info.clobbers) return false;
    const StorageFacts read = facts_.storage(op, module_.operand(op, 0));
    for (unsigned i = 0; i < info.write_count; ++i) {
      const OpId store = info.writes[i];
      const ValueId view = module_.operand(store, operand_slot(ViewStore, "w"));
      if (may_overlap(read, facts_.storage(store, view))) return false;
    }
    return true;
  }

  // Facts that hold before the loop. What only moves there has none of its own: its facts may come
  // from a condition around its old place.
  IntFacts outside(OpId op, unsigned i, OpId loop) {
    const ValueId value = module_.operand(op, i);
    const OpId made = module_.defining_op(value);
    const bool moved = made.valid() && depth_[module_.op(made).parent.index()] != home(value);
    const Type& type = module_.types[module_.type_of(value)];
    return moved ? IntFacts::of(IntDomain::of(type.element)) : facts_.at(loop, value);
  }

  bool within(const IntFacts& exact_result, ScalarKind kind) const {
    // A result at the end of the domain may have been cut there.
    const IntDomain domain = IntDomain::of(kind);
    return exact_result.lo > domain.lo && exact_result.hi < domain.hi;
  }

  // Whether executing the operation before the loop breaks no contract.
  bool is_harmless(OpId op, OpId loop) {
    const Module& m = module_;
    const OpKind kind = m.op(op).kind;
    const auto of = [&](unsigned i) { return outside(op, i, loop); };
    const auto element = [&] { return m.types[m.type_of(m.result(op))].element; };
    switch (kind) {
      case IndexAdd:
        return within(facts::add(of(0), of(1), IntDomain::of(element())), element());
      case IndexSub: {
        const IntFacts a = of(0), b = of(1);
        const bool positive = element() != ScalarKind::Offset || a.lo >= b.hi;
        return positive && within(facts::sub(a, b, kIndex), ScalarKind::Index);
      }
      case IndexMul:
      case IndexScale: {
        const IntFacts a = of(0), b = of(1);
        return (kind == IndexMul || a.non_negative()) &&
               within(facts::mul(a, b, kIndex), ScalarKind::Index);
      }
      case IndexMadd: {
        const IntFacts product = facts::mul(of(0), of(1), kIndex);
        return within(product, ScalarKind::Index) &&
               within(facts::add(product, of(2), kIndex), ScalarKind::Index);
      }
      case IndexDiv:
      case IndexRem:
        return of(0).non_negative() && of(1).positive();
      case ScalarDivUI:
      case ScalarRemUI:
        return of(1).non_zero;
      case ScalarDivSI:
      case ScalarRemSI:
        // A set i1 is -1 when it is read as signed.
        return element() != ScalarKind::I1 && of(1).positive();
      case IndexShl:
      case IndexShrS:
      case IndexShrU:
      case ScalarShlI:
      case ScalarShrSI:
      case ScalarShrUI: {
        const int64_t width = IntDomain::of(element()).width;
        return !has_flags(op) && of(1).lo >= 0 && of(1).hi < width;
      }
      case ScalarAddI:
      case ScalarSubI:
      case ScalarMulI:
        return !has_flags(op);
      case IndexCast:
        return element() != ScalarKind::Offset &&
               m.types[m.type_of(m.operand(op, 0))].element != ScalarKind::Offset;
      case IndexAssume:
      case ScalarAssume:
      case BufferAssumeNoalias:
      case BufferAssumeAlignment:
      case BufferAssumeMemorySpace:
      case ViewRefine:
        return false;
      case BufferView:
      case ViewSubview:
      case ScfSelect:
      case ConfigGet:
        return true;
      default:
        break;
    }
    if (effect_of(kind) != Effect::Pure) return false;
    return kind_has(kind, trait::KernelQuery) || has_no_contract(kind) || computes_float(op);
  }

  static bool has_no_contract(OpKind kind) {
    switch (kind) {
      case IndexMin:
      case IndexMax:
      case IndexAnd:
      case IndexOr:
      case IndexXor:
      case IndexCmp:
      case ScalarNegI:
      case ScalarAbsI:
      case ScalarMinSI:
      case ScalarMaxSI:
      case ScalarMinUI:
      case ScalarMaxUI:
      case ScalarAndI:
      case ScalarOrI:
      case ScalarXorI:
      case ScalarCmpI:
      case ScalarExtSI:
      case ScalarExtUI:
      case ScalarTruncI:
      case ScalarSIToFP:
      case ScalarUIToFP:
        return true;
      default:
        return false;
    }
  }

  // Scalar operations on floats are defined for every float.
  bool computes_float(OpId op) const {
    if (op_info(module_.op(op).kind).dialect != "scalar") return false;
    return std::ranges::all_of(module_.operands(op), [&](ValueId value) {
      return is_float(module_.types[module_.type_of(value)].element);
    });
  }
  bool has_flags(OpId op) const {
    return module_.op(op).attr_count != 0 && eval_attrs(module_, op).flags != 0;
  }

  Module& module_;
  const RegionId body_;
  FactAnalysis facts_;
  std::vector<uint32_t> depth_;    // by region
  std::vector<uint32_t> home_;     // by value: depth of the region it will be in
  std::vector<uint32_t> loop_of_;  // by op: its position in `infos_`
  std::vector<LoopInfo> infos_;
  std::vector<Move> moves_;
};

}  // namespace

bool licm(PassContext& context, OpId root) {
  if (context.module().op(root).kind == CommandProgramDef) return true;
  for_each_body(context.module(), root,
                [&](RegionId body) { Mover(context.module(), root, body).run(); });
  return true;
}

}  // namespace loom
