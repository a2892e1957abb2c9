#include "loom/pass/dce.h"

#include "loom/pass/kind_tables.h"
#include "loom/pass/region_walk.h"
#include "loom/pass/rewriter.h"

namespace loom {
namespace {

constexpr unsigned kCallPure = attr_slot(OpKind::FuncCall, "pure");
static_assert(kCallPure == attr_slot(OpKind::TemplateApply, "pure") &&
              kCallPure == attr_slot(OpKind::TemplateCall, "pure"));

class Eliminator {
 public:
  Eliminator(Module& module, PassWorkspace& space) : module_(module), space_(space) {
    ++space_.epoch;
    if (space_.live.size() < module_.value_count()) space_.live.resize(module_.value_count(), 0);
    reach(space_.op_effect, module_.op_count());
  }

  // Backwards, every use of a result is seen before the operation itself.
  void run(RegionId body) {
    note_effects(body);
    OpId id = last_nested(body);
    while (id.valid()) {
      const OpId op = id;
      // A structured operation is met first from behind its last region.
      const bool removable = !has_effect(op) && !results_live(op);
      if (removable) {
        id = before(op, body);
        module_.erase(op);
        continue;
      }
      mark_uses(op);
      id = before_entering(op, body);
    }
  }

 private:
  bool own_effect(OpId op) const {
    const OpKind kind = module_.op(op).kind;
    // A terminator goes with its region, never alone.
    if (kind_has(kind, trait::Terminator)) return true;
    switch (effect_of(kind)) {
      case Effect::Pure:
      case Effect::Alloc:
      case Effect::Nested:
        return false;
      case Effect::Read:
        return is_volatile(module_, op);
      case Effect::Call:
        return !module_.has_attr(op, kCallPure);
      default:
        return true;
    }
  }

  // Which operations hold something with an effect besides terminators; filled bottom-up by walking
  // the parents of every operation with an effect until one is marked already.
  void note_effects(RegionId body) {
    for (OpId id = module_.region(body).first; id.valid();
         id = next_in_region_tree(module_, id, body)) {
      const bool effect = own_effect(id);
      space_.op_effect[id.index()] = effect ? 1 : 0;
      if (!effect || kind_has(module_.op(id).kind, trait::Terminator)) continue;
      RegionId region = module_.op(id).parent;
      while (region != body) {
        const OpId parent = module_.region(region).parent;
        if (space_.op_effect[parent.index()] != 0) break;
        space_.op_effect[parent.index()] = 1;
        region = module_.op(parent).parent;
      }
    }
  }

  bool has_effect(OpId op) const { return space_.op_effect[op.index()] != 0; }

  bool results_live(OpId op) const {
    const Op& o = module_.op(op);
    for (unsigned i = 0; i < o.result_count; ++i) {
      if (space_.live[o.result_begin + i] == space_.epoch) return true;
    }
    return false;
  }

  void mark(ValueId value) {
    if (value.valid()) space_.live[value.index()] = space_.epoch;
  }
  void mark_type(TypeId id) {
    if (module_.types.is_scalar(id)) return;
    const Type& type = module_.types[id];
    for (Dim dim : type.dims) {
      if (dim.is_dynamic()) mark(dim.value());
    }
    mark(type.encoding_value);
  }

  void mark_uses(OpId op) {
    for (ValueId value : module_.operands(op)) mark(value);
    const Op& o = module_.op(op);
    for (unsigned i = 0; i < o.result_count; ++i) mark_type(module_.type_of(module_.result(op, i)));
    for (unsigned i = 0; i < o.region_count; ++i) {
      for (ValueId arg : module_.args(module_.op_region(op, i))) mark_type(module_.type_of(arg));
    }
    if (o.kind != OpKind::IndexAssume && o.kind != OpKind::ScalarAssume) return;
    for (AttrId attr : module_.attr_ids(op)) {
      if (!attr.valid()) continue;
      for (const Predicate& predicate : module_.attrs[attr].predicates) {
        for (unsigned i = 0; i < predicate.arity(); ++i) mark(predicate.args[i].value);
      }
    }
  }

  // --- reverse order: an operation before what it nests, later siblings first ---
  OpId last_nested(RegionId region) const { return module_.region(region).last; }

  // The last operation inside `op`, or else what comes before it.
  OpId before_entering(OpId op, RegionId body) const {
    for (unsigned i = module_.op(op).region_count; i-- > 0;) {
      const OpId last = module_.region(module_.op_region(op, i)).last;
      if (last.valid()) return last;
    }
    return before(op, body);
  }
  OpId before(OpId op, RegionId body) const {
    while (true) {
      const Op& o = module_.op(op);
      if (o.prev.valid()) return o.prev;
      if (o.parent == body) return {};
      const OpId parent = module_.region(o.parent).parent;
      const Op& holder = module_.op(parent);
      for (unsigned i = o.parent.index() - holder.region_begin; i-- > 0;) {
        const OpId last = module_.region(module_.op_region(parent, i)).last;
        if (last.valid()) return last;
      }
      op = parent;
    }
  }

  Module& module_;
  PassWorkspace& space_;
};

}  // namespace

bool dce(PassContext& context, OpId root) {
  for_each_body(context.module(), root, [&](RegionId body) {
    Eliminator(context.module(), context.workspace()).run(body);
  });
  return true;
}

}  // namespace loom
