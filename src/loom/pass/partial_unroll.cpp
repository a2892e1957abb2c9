#include "loom/pass/partial_unroll.h"

#include <fmt/format.h>

#include "loom/ir/walk.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kLo = operand_slot(ScfFor, "lo");
constexpr unsigned kHi = operand_slot(ScfFor, "hi");
constexpr unsigned kStep = operand_slot(ScfFor, "step");
constexpr unsigned kInit = operand_slot(ScfFor, "init");
constexpr unsigned kDepth = operand_slot(ScfFor, "depth");
constexpr unsigned kFactor = operand_slot(ScfFor, "factor");
constexpr unsigned kSchedule = attr_slot(ScfFor, "schedule");
constexpr int64_t kMaxFactor = 65535;

class Splitter {
 public:
  Splitter(PassContext& context, Rewriter& rewriter, Expander& expander, OpId loop)
      : module_(context.module()),
        diagnostics_(context.diagnostics()),
        rewriter_(rewriter),
        expander_(expander),
        loop_(loop),
        place_(InsertionPoint::at(module_, loop)),
        kind_(rewriter.element_of(rewriter.operand(loop, kLo))) {}

  PartialUnroll run() {
    const Ref factor = rewriter_.resolve(operand_group(module_, loop_, kFactor)[0]);
    const auto copies = rewriter_.exact_int(factor);
    if (!copies || *copies < 1 || *copies > kMaxFactor) return refuse(copies);
    if (*copies == 1) {
      if (!module_.has_attr(loop_, kSchedule)) set_policy(loop_, false, false);
      return {};
    }
    if (types_mention_values() || !plan(*copies)) return {};
    if (!main_end_.valid()) {  // not even one round of copies
      set_policy(loop_, false, false);
      return {};
    }
    const OpId main = make_main();
    if (!fill(main, static_cast<uint64_t>(*copies))) return {{}, false};
    finish(main);
    return {main, true};
  }

 private:
  PartialUnroll refuse(std::optional<int64_t> copies) {
    diagnostics_.emit(
        Diag::LoweringLoopPolicy, module_.location(loop_),
        {{"clause", "unroll"},
         {"limit", fmt::format("{}", kMaxFactor)},
         {"operand", copies ? "it" : "its operand"},
         {"detail", copies ? fmt::format("is {}", *copies) : std::string("is not exact")}});
    return {{}, false};
  }

  bool types_mention_values() const {
    for (unsigned i = 0; i < module_.op(loop_).result_count; ++i) {
      if (module_.types[module_.type_of(module_.result(loop_, i))].mentions_values()) return true;
    }
    return false;
  }

  Ref number(int64_t value) { return rewriter_.integer(kind_, value); }
  Ref emit(OpKind kind, std::initializer_list<Ref> operands) {
    const std::span<const Ref> span(operands.begin(), operands.size());
    const TypeId type = TypeStore::scalar(kind_);
    const Ref folded = rewriter_.fold_at({kind, span, {}, type}, place_, module_.location(loop_));
    if (folded.valid()) return folded;
    return rewriter_.create(kind, span, AttrId(), type, place_, module_.location(loop_));
  }

  // Finds the end of the main loop. False when the loop has to stay as it is.
  bool plan(int64_t copies) {
    const Ref lo = rewriter_.operand(loop_, kLo), hi = rewriter_.operand(loop_, kHi);
    const Ref step = rewriter_.operand(loop_, kStep);
    const auto by = rewriter_.exact_int(step);
    int64_t wide = 0;
    if (!by || *by <= 0 || __builtin_mul_overflow(*by, copies, &wide)) return false;
    step_ = *by;
    wide_ = wide;
    if (const auto count = loop_count(rewriter_, lo, hi, step)) {
      const uint64_t rounds = count->trips / static_cast<uint64_t>(copies);
      remainder_ = count->trips % static_cast<uint64_t>(copies) != 0;
      if (rounds == 0) return true;
      // Without a remainder the end may lie behind the last index.
      int64_t length = 0, end = 0;
      if (__builtin_mul_overflow(static_cast<int64_t>(rounds), wide, &length) ||
          __builtin_add_overflow(count->first, length, &end)) {
        return false;
      }
      main_end_ = number(end);
      return true;
    }
    // The distance must be representable.
    if (kind_ != ScalarKind::Index || !rewriter_.facts(lo).non_negative()) return false;
    const Ref distance = emit(IndexSub, {emit(IndexMax, {hi, lo}), lo});
    const Ref rounds = emit(IndexDiv, {distance, number(wide)});
    main_end_ = emit(IndexMadd, {rounds, number(wide), lo});
    return true;
  }

  OpId make_main() {
    std::vector<ValueId> operands = {rewriter_.materialize(rewriter_.operand(loop_, kLo)),
                                     rewriter_.materialize(main_end_),
                                     rewriter_.materialize(number(wide_))};
    for (ValueId init : operand_group(module_, loop_, kInit)) operands.push_back(init);
    std::vector<uint32_t> groups(module_.group_sizes(loop_).begin(),
                                 module_.group_sizes(loop_).end());
    for (ValueId depth : operand_group(module_, loop_, kDepth)) operands.push_back(depth);
    const bool scheduled = module_.has_attr(loop_, kSchedule);
    groups[kFactor] = scheduled ? 1 : 0;
    if (scheduled) {
      operands.push_back(rewriter_.materialize(rewriter_.integer(ScalarKind::Index, 1)));
    }
    std::vector<TypeId> types;
    for (unsigned i = 0; i < module_.op(loop_).result_count; ++i) {
      types.push_back(module_.type_of(module_.result(loop_, i)));
    }
    const std::vector<AttrId> attrs(module_.attr_ids(loop_).begin(), module_.attr_ids(loop_).end());
    const OpId main = module_.create({.kind = ScfFor,
                                      .operands = operands,
                                      .groups = groups,
                                      .results = types,
                                      .attrs = attrs,
                                      .regions = 1,
                                      .location = module_.location(loop_)});
    module_.insert_before(loop_, main);
    return main;
  }

  bool fill(OpId main, uint64_t copies) {
    const RegionId from = module_.op_region(loop_, 0), to = module_.op_region(main, 0);
    const std::vector<ValueId> formals(module_.args(from).begin(), module_.args(from).end());
    std::vector<ValueId> args;
    for (ValueId formal : formals) {
      args.push_back(module_.create_value(module_.type_of(formal), module_.value(formal).name));
    }
    module_.set_args(to, args, static_cast<uint32_t>(args.size()));
    module_.region(to).has_body = true;
    if (!expander_.expand_copies(loop_, {to, OpId()}, Ref::value(args[0]), step_, copies,
                                 std::span(args).subspan(1))) {
      return false;
    }
    std::vector<ValueId> yielded;
    for (unsigned i = 0; i < module_.op(loop_).result_count; ++i) {
      yielded.push_back(rewriter_.materialize(rewriter_.resolve(module_.result(loop_, i))));
    }
    if (!yielded.empty()) {
      const auto count = static_cast<uint32_t>(yielded.size());
      module_.append(to, module_.create({.kind = ScfYield,
                                         .operands = yielded,
                                         .groups = {&count, 1},
                                         .location = module_.location(loop_)}));
    }
    return true;
  }

  // The values of the loop mean themselves again.
  void forget_copies() {
    const auto own = [&](ValueId value) { rewriter_.replace(value, Ref::value(value)); };
    const auto own_op = [&](OpId op) {
      const Op o = module_.op(op);
      for (unsigned i = 0; i < o.result_count; ++i) own(module_.result(op, i));
      for (unsigned i = 0; i < o.region_count; ++i) {
        for (ValueId arg : module_.args(module_.op_region(op, i))) own(arg);
      }
    };
    own_op(loop_);
    for_each_nested(module_, loop_, own_op);
  }

  void finish(OpId main) {
    forget_copies();
    const unsigned results = module_.op(loop_).result_count;
    if (!remainder_) {
      for (unsigned i = 0; i < results; ++i) {
        rewriter_.replace(module_.result(loop_, i), Ref::value(module_.result(main, i)));
      }
      module_.erase(loop_);
      return;
    }
    module_.set_operand(loop_, kLo, rewriter_.materialize(main_end_));
    for (unsigned i = 0; i < results; ++i) {
      module_.set_operand(loop_, kInit + i, module_.result(main, i));
    }
    set_policy(loop_, false, false);
    module_.set_attr(loop_, kSchedule, AttrId());
  }

  void set_policy(OpId loop, bool depth, bool factor) {
    std::vector<ValueId> operands;
    std::vector<uint32_t> groups(module_.group_sizes(loop).begin(),
                                 module_.group_sizes(loop).end());
    for (unsigned group = 0; group < groups.size(); ++group) {
      if ((group == kDepth && !depth) || (group == kFactor && !factor)) {
        groups[group] = 0;
        continue;
      }
      for (ValueId value : operand_group(module_, loop, group)) operands.push_back(value);
    }
    module_.set_operands(loop, operands, groups);
  }

  Module& module_;
  Diagnostics& diagnostics_;
  Rewriter& rewriter_;
  Expander& expander_;
  const OpId loop_;
  const InsertionPoint place_;
  const ScalarKind kind_;
  int64_t step_ = 0, wide_ = 0;
  Ref main_end_;
  bool remainder_ = true;
};

}  // namespace

bool wants_partial_unroll(const Module& module, OpId loop) {
  return !operand_group(module, loop, kFactor).empty();
}

PartialUnroll unroll_partially(PassContext& context, Rewriter& rewriter, Expander& expander,
                               OpId loop) {
  return Splitter(context, rewriter, expander, loop).run();
}

}  // namespace loom
