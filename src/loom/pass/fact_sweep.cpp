#include "loom/pass/fact_sweep.h"

#include <algorithm>

#include "loom/ir/walk.h"
#include "loom/pass/kind_tables.h"
#include "loom/pass/pass_context.h"
#include "loom/pass/signature_facts.h"

namespace loom {

using enum OpKind;

FactSweep::FactSweep(PassContext& context, const KernelTopology& topology, OpId root,
                     RegionId region)
    : module_(context.module()), topology_(topology), rewriter_(context, region), region_(region) {
  learn_signature(rewriter_, root, region);
  sweep();
  std::ranges::sort(inside_, {}, &Inside::region);
}

void FactSweep::sweep() {
  struct Place {
    OpId op;
    unsigned region;
  };
  std::vector<Place> places;
  OpId next = module_.region(region_).first;
  while (true) {
    if (next.valid()) {
      const OpId op = next;
      visit(op);
      next = module_.op(op).next;
      if (module_.op(op).region_count == 0) continue;
      places.push_back({op, 0});
    } else {
      if (places.empty()) return;
      close();
      if (++places.back().region == module_.op(places.back().op).region_count) {
        learn_joined(rewriter_, places.back().op);
        next = module_.op(places.back().op).next;
        places.pop_back();
        continue;
      }
    }
    open(places.back().op, places.back().region);
    next = module_.region(module_.op_region(places.back().op, places.back().region)).first;
  }
}

void FactSweep::visit(OpId op) {
  const Op shape = module_.op(op);
  for (unsigned i = 0; i < shape.result_count; ++i) learn_type(rewriter_, module_.result(op, i));
  if (const auto value = constant_of(module_, op)) {
    // The pool answers for the constant; equal constants are one value to the relations.
    return rewriter_.replace(module_.result(op), rewriter_.constant(*value));
  }
  switch (shape.kind) {
    case IndexAssume:
    case ScalarAssume:
      return learn_assume(rewriter_, op);
    case ConfigGet:
      return learn_config(rewriter_, op);
    case FuncCall:
      return learn_call(rewriter_, op);
    default:
      break;
  }
  if (kind_has(shape.kind, trait::KernelQuery)) return learn_query(rewriter_, op, topology_);
  if (!is_foldable(shape.kind) || shape.operand_count > 3) return;
  Ref operands[3];
  for (unsigned i = 0; i < shape.operand_count; ++i) operands[i] = rewriter_.operand(op, i);
  const EvalAttrs attrs = shape.attr_count != 0 ? eval_attrs(module_, op) : EvalAttrs{};
  const TypeId type = module_.type_of(module_.result(op));
  if (!module_.types.is_scalar(type)) return;
  learn_result(rewriter_, {shape.kind, {operands, shape.operand_count}, attrs, type},
               module_.result(op));
}

void FactSweep::open(OpId op, unsigned region) {
  const RegionId id = module_.op_region(op, region);
  open_.push_back({id, rewriter_.fact_mark(), rewriter_.relations().size()});
  learn_region(rewriter_, op, region);
  Inside inside{id, static_cast<uint32_t>(lessons_.size()), 0,
                static_cast<uint32_t>(relations_.size()), 0};
  for (const ValueId value : rewriter_.changed_since(open_.back().facts)) {
    lessons_.push_back({value, rewriter_.facts(Ref::value(value))});
  }
  const auto& known = rewriter_.relations();
  relations_.insert(relations_.end(),
                    known.begin() + static_cast<ptrdiff_t>(open_.back().relations), known.end());
  inside.lessons = static_cast<uint32_t>(lessons_.size()) - inside.first_lesson;
  inside.relations = static_cast<uint32_t>(relations_.size()) - inside.first_relation;
  inside_.push_back(inside);
}

// What the region taught about outer values is forgotten; facts of its own values stay, since
// nothing outside can mention them.
void FactSweep::close() {
  const Open last = open_.back();
  open_.pop_back();
  rewriter_.forget_lessons(last.facts, last.region);
  rewriter_.relations().resize(last.relations);
}

void FactSweep::enter(RegionId region) {
  reach(open_at_, module_.region_count());
  path_.clear();
  RegionId id = region;
  while (id != region_ && open_at_[id.index()] == 0) {
    path_.push_back(id);
    id = module_.op(module_.region(id).parent).parent;
  }
  const size_t common = id == region_ ? 0 : open_at_[id.index()];
  while (open_.size() > common) {
    rewriter_.restore_facts(open_.back().facts);
    rewriter_.relations().resize(open_.back().relations);
    open_at_[open_.back().region.index()] = 0;
    open_.pop_back();
  }
  for (; !path_.empty(); path_.pop_back()) reopen(path_.back());
}

void FactSweep::reopen(RegionId region) {
  open_.push_back({region, rewriter_.fact_mark(), rewriter_.relations().size()});
  open_at_[region.index()] = static_cast<uint32_t>(open_.size());
  const auto found = std::ranges::lower_bound(inside_, region, {}, &Inside::region);
  if (found == inside_.end() || found->region != region) return;
  for (uint32_t k = 0; k < found->lessons; ++k) {
    const Lesson& lesson = lessons_[found->first_lesson + k];
    rewriter_.refine_facts(lesson.value, lesson.facts);
  }
  const auto begin = relations_.begin() + found->first_relation;
  rewriter_.relations().insert(rewriter_.relations().end(), begin, begin + found->relations);
}

// --- topology -----------------------------------------------------------------------------------

namespace {

// Whether something may dispatch the kernel with counts of its own: here, or where nobody sees it.
bool may_have_own_counts(const Module& module, OpId kernel) {
  if (module.has_attr(kernel, attr_slot(KernelDef, "retain")) ||
      module.has_attr(kernel, attr_slot(KernelDef, "export"))) {
    return true;
  }
  bool found = false;
  for_each_op(module, module.body(), [&](OpId symbol) {
    if (found || module.op(symbol).kind != CommandProgramDef) return;
    for_each_nested(module, symbol, [&](OpId op) {
      found |= module.op(op).kind == KernelDispatch &&
               symbol_ref(module, op, attr_slot(KernelDispatch, "callee")) ==
                   symbol_text(module, kernel);
    });
  });
  return found;
}

}  // namespace

KernelTopology kernel_topology(PassContext& context, OpId root) {
  const Module& module = context.module();
  KernelTopology topology;
  if (module.op(root).kind != KernelDef) return topology;
  const RegionId config = module.op_region(root, 0);
  const OpId end = module.region(config).last;
  if (!end.valid() || module.op(end).kind != KernelLaunchConfig) return topology;
  const bool own_counts = may_have_own_counts(module, root);
  const KernelTopology unknown;
  FactSweep sweep(context, unknown, root, config);
  const auto read = [&](unsigned group, std::array<IntFacts, 3>& into) {
    const auto values = operand_group(module, end, group);
    for (unsigned i = 0; i < values.size() && i < 3; ++i) {
      const IntFacts known = sweep.state().facts(sweep.state().resolve(values[i]));
      const IntFacts both = meet(known, into[i]);
      if (!both.empty()) into[i] = both;
    }
  };
  if (!own_counts) {
    read(operand_slot(KernelLaunchConfig, "workgroups"), topology.workgroup_count);
  }
  read(operand_slot(KernelLaunchConfig, "workgroup_size"), topology.workgroup_size);
  return topology;
}

}  // namespace loom
