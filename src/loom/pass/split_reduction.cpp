#include "loom/pass/split_reduction.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/pass/unroll.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kInit = operand_slot(ScfFor, "init");
constexpr unsigned kFactor = operand_slot(ScfFor, "factor");
constexpr uint64_t kReassociate = 1;  // of FastMath

bool combines(const Module& module, OpId op) {
  switch (module.op(op).kind) {
    case ScalarAddI:
    case ScalarMulI:
      return flags_of(module, op, attr_slot(ScalarAddI, "flags")) == 0;
    case ScalarAndI:
    case ScalarOrI:
    case ScalarXorI:
      return true;
    case ScalarAddF:
      return (flags_of(module, op, attr_slot(ScalarAddF, "flags")) & kReassociate) != 0;
    default:
      return false;
  }
}

unsigned uses_in(const Module& module, OpId root, ValueId value) {
  unsigned uses = 0;
  for_each_nested(module, root, [&](OpId op) {
    uses += static_cast<unsigned>(std::ranges::count(module.operands(op), value));
    for (AttrId attr : module.attr_ids(op)) {
      if (!attr.valid()) continue;
      for (const Predicate& predicate : module.attrs[attr].predicates) {
        for (unsigned i = 0; i < predicate.arity(); ++i) {
          uses += predicate.args[i].is_value() && predicate.args[i].value == value ? 1 : 0;
        }
      }
    }
  });
  return uses;
}

// The combinations from the carried number to the yielded one, in order; empty where the loop is
// no reduction. Each number between them is used once.
std::vector<OpId> chain_of(const Module& module, OpId loop) {
  const RegionId body = module.op_region(loop, 0);
  const OpId yield = module.region(body).last;
  if (module.op(loop).result_count != 1 || module.args(body).size() != 2) return {};
  if (!yield.valid() || module.op(yield).kind != ScfYield) return {};
  const ValueId carried = module.args(body)[1];
  std::vector<OpId> chain;
  ValueId value = module.operand(yield, 0);
  while (value != carried) {
    const OpId made = module.defining_op(value);
    if (!made.valid() || module.op(made).parent != body || !combines(module, made)) return {};
    if (!chain.empty() && module.op(made).kind != module.op(chain.back()).kind) return {};
    if (uses_in(module, loop, value) != 1) return {};
    chain.push_back(made);
    // On which side the number so far comes in.
    const ValueId a = module.operand(made, 0), b = module.operand(made, 1);
    const auto continues = [&](ValueId side) {
      if (side == carried) return true;
      const OpId before = module.defining_op(side);
      return before.valid() && module.op(before).parent == body &&
             module.op(before).kind == module.op(made).kind;
    };
    if (a == b) return {};
    if (a == carried || b == carried) {
      value = carried;
    } else if (continues(a)) {
      value = a;
    } else {
      value = b;
    }
  }
  if (uses_in(module, loop, carried) != 1) return {};
  std::ranges::reverse(chain);
  return chain;
}

// The number that combining with changes nothing.
AttrId neutral(Module& module, OpKind kind, TypeId type) {
  if (kind == ScalarAddF) return module.attrs.intern(Attr::floating(-0.0));
  if (kind == ScalarMulI) return module.attrs.intern(Attr::integer(1));
  const bool is_bit = module.types[type].element == ScalarKind::I1;
  if (kind == ScalarAndI) return module.attrs.intern(Attr::integer(is_bit ? 1 : -1));
  return module.attrs.intern(Attr::integer(0));
}

class Splitter {
 public:
  Splitter(Module& module, OpId root, OpId loop, std::vector<OpId> chain)
      : module_(module), root_(root), loop_(loop), chain_(std::move(chain)) {}

  void run() {
    const TypeId type = module_.type_of(module_.result(loop_));
    const OpKind kind = module_.op(chain_[0]).kind;
    const OpId wide = make_loop(type, kind);
    const RegionId from = module_.op_region(loop_, 0), to = module_.op_region(wide, 0);
    std::vector<ValueId> args(module_.args(from).begin(), module_.args(from).end());
    const ValueId carried = args[1];
    for (size_t i = 1; i < chain_.size(); ++i) {
      args.push_back(module_.create_value(type, module_.value(carried).name));
    }
    module_.set_args(to, args, static_cast<uint32_t>(args.size()));
    module_.region(to).has_body = true;
    std::vector<OpId> work;
    for_each_op(module_, from, [&](OpId op) { work.push_back(op); });
    for (OpId op : work) {
      module_.detach(op);
      module_.append(to, op);
    }
    separate(args, work.back());
    combine(wide, kind, type);
    module_.erase(loop_);
  }

 private:
  ValueId constant(OpId before, AttrId value, TypeId type) {
    std::vector<AttrId> attrs(op_info(ScalarConstant).attrs.size());
    attrs[attr_slot(ScalarConstant, "value")] = value;
    const OpId op = module_.create({.kind = ScalarConstant,
                                    .results = std::span(&type, 1),
                                    .attrs = attrs,
                                    .location = module_.location(before)});
    module_.insert_before(before, op);
    return module_.result(op);
  }

  OpId make_loop(TypeId type, OpKind kind) {
    const ValueId rest = constant(loop_, neutral(module_, kind, type), type);
    std::vector<ValueId> operands(module_.operands(loop_).begin(),
                                  module_.operands(loop_).begin() + kInit + 1);
    operands.resize(operands.size() + chain_.size() - 1, rest);
    std::vector<uint32_t> groups(module_.group_sizes(loop_).begin(),
                                 module_.group_sizes(loop_).end());
    groups[kInit] = static_cast<uint32_t>(chain_.size());
    for (const unsigned clause : {operand_slot(ScfFor, "depth"), kFactor}) groups[clause] = 0;
    const std::vector<TypeId> results(chain_.size(), type);
    const std::vector<AttrId> attrs(module_.attr_ids(loop_).begin(), module_.attr_ids(loop_).end());
    const OpId wide = module_.create({.kind = ScfFor,
                                      .operands = operands,
                                      .groups = groups,
                                      .results = results,
                                      .attrs = attrs,
                                      .regions = 1,
                                      .location = module_.location(loop_)});
    module_.insert_before(loop_, wide);
    return wide;
  }

  // Each combination takes an accumulator of its own in place of the one before.
  void separate(std::span<const ValueId> args, OpId yield) {
    std::vector<ValueId> sums;
    ValueId before = args[1];
    for (size_t i = 0; i < chain_.size(); ++i) {
      const unsigned side = module_.operand(chain_[i], 0) == before ? 0 : 1;
      module_.set_operand(chain_[i], side, args[1 + i]);
      before = module_.result(chain_[i]);
      sums.push_back(before);
    }
    const auto count = static_cast<uint32_t>(sums.size());
    module_.set_operands(yield, sums, std::span(&count, 1));
  }

  void combine(OpId wide, OpKind kind, TypeId type) {
    const ValueId old = module_.result(loop_);
    ValueId total = module_.result(wide, 0);
    const std::vector<AttrId> attrs(module_.attr_ids(chain_[0]).begin(),
                                    module_.attr_ids(chain_[0]).end());
    for (unsigned i = 1; i < chain_.size(); ++i) {
      const std::vector<ValueId> sides = {total, module_.result(wide, i)};
      const OpId sum = module_.create({.kind = kind,
                                       .operands = sides,
                                       .results = std::span(&type, 1),
                                       .attrs = attrs,
                                       .location = module_.location(loop_)});
      module_.insert_before(loop_, sum);
      total = module_.result(sum);
    }
    for_each_nested(module_, root_, [&](OpId op) {
      for (unsigned i = 0; i < module_.operands(op).size(); ++i) {
        if (module_.operand(op, i) == old) module_.set_operand(op, i, total);
      }
    });
  }

  Module& module_;
  const OpId root_, loop_;
  const std::vector<OpId> chain_;
};

bool mentioned_by_predicate(const Module& module, OpId root, ValueId value) {
  unsigned operands = 0;
  for_each_nested(module, root, [&](OpId op) {
    operands += static_cast<unsigned>(std::ranges::count(module.operands(op), value));
  });
  return uses_in(module, root, value) != operands;
}

}  // namespace

bool can_split_reduction(const Module& module, OpId loop) {
  return module.op(loop).kind == ScfFor && module.operands(loop).size() == kInit + 1 &&
         !module.has_attr(loop, attr_slot(ScfFor, "unroll")) &&
         !module.has_attr(loop, attr_slot(ScfFor, "schedule")) &&
         chain_of(module, loop).size() == 1;
}

bool split_reduction(PassContext& context, OpId root, OpId loop, uint32_t parts) {
  Module& module = context.module();
  const RegionId home = module.op(loop).parent;
  // What the loop becomes has new numbers.
  const auto known = static_cast<uint32_t>(module.op_count());
  set_unroll_factor(module, loop, parts);
  if (!unroll(context, root)) return false;
  for (OpId op = module.region(home).first; op.valid(); op = module.op(op).next) {
    if (op.index() < known || module.op(op).kind != ScfFor) continue;
    std::vector<OpId> chain = chain_of(module, op);
    if (chain.size() != parts) continue;
    if (mentioned_by_predicate(module, root, module.result(op))) return false;
    Splitter(module, root, op, std::move(chain)).run();
    return true;
  }
  return false;
}

}  // namespace loom
