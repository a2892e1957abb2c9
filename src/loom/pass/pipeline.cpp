#include "loom/pass/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "loom/pass/expand.h"
#include "loom/pass/kind_tables.h"
#include "loom/pass/region_walk.h"
#include "loom/pass/signature_facts.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kLo = operand_slot(ScfFor, "lo");
constexpr unsigned kHi = operand_slot(ScfFor, "hi");
constexpr unsigned kStep = operand_slot(ScfFor, "step");
constexpr unsigned kInit = operand_slot(ScfFor, "init");
constexpr unsigned kDepth = operand_slot(ScfFor, "depth");
constexpr int64_t kMaxDepth = 65535;
// Values under way that a loop may carry.
constexpr uint64_t kMaxCarried = uint64_t{1} << 20;

bool is_load(OpKind kind) {
  return kind == ViewLoad || kind == VectorLoad || kind == VectorLoadMask || kind == VectorGather ||
         kind == VectorGatherMask;
}

// The first operation in the loop that must not overlap with other iterations.
OpId obstacle(const Module& module, OpId loop) {
  const RegionId body = module.op_region(loop, 0);
  for (OpId op = module.region(body).first; op.valid();
       op = next_in_region_tree(module, op, body)) {
    const OpKind kind = module.op(op).kind;
    switch (effect_of(kind)) {
      case Effect::Pure:
      case Effect::Alloc:
      case Effect::Hint:
        break;
      case Effect::Nested:
        if (kind == ScfWhile) return op;
        break;
      case Effect::Read:
        if (is_volatile(module, op)) return op;
        break;
      case Effect::Call:
        if (kind == FuncCall && module.has_attr(op, attr_slot(FuncCall, "pure"))) break;
        return op;
      default:
        return op;
    }
  }
  return {};
}

// Rewrites one loop.
class Overlapper {
 public:
  Overlapper(PassContext& context, OpId root, Rewriter& rewriter, Expander& expander, OpId loop)
      : context_(context),
        root_(root),
        module_(context.module()),
        diagnostics_(context.diagnostics()),
        rewriter_(rewriter),
        expander_(expander),
        loop_(loop),
        body_(module_.op_region(loop, 0)),
        kind_(rewriter.element_of(rewriter.operand(loop, kLo))) {}

  // The loop that takes the place of this one, if any does.
  OpId run() {
    const auto depth = rewriter_.exact_int(operand_depth());
    if (!depth || *depth < 1 || *depth > kMaxDepth) return refuse_depth(depth);
    if (*depth == 1) {
      note(false, "a depth of 1 overlaps nothing");
      return drop_clause(loop_);
    }
    if (const OpId op = obstacle(module_, loop_); op.valid()) return refuse_body(op);
    find_slice();
    if (loads_.empty()) {
      note(false, "no load of the loop can run ahead of its iteration");
      return drop_clause(loop_);
    }
    distance_ = static_cast<uint64_t>(*depth) - 1;
    lo_ = rewriter_.operand(loop_, kLo);
    hi_ = rewriter_.operand(loop_, kHi);
    step_ = rewriter_.operand(loop_, kStep);
    if (types_mention_values() || !first_bounds_fit()) {
      note(false, types_mention_values() ? "types of what it carries name values"
                                         : "it is not known that its first bounds do not overflow");
      return {};
    }
    if (distance_ * loads_.size() > kMaxCarried) return refuse_size();
    const Location place = module_.location(loop_);
    const OpId main = rewrite();
    if (main.valid()) {
      note_at(
          place, true,
          fmt::format("{} {} {} ahead", loads_.size(), loads_.size() == 1 ? "load" : "loads",
                      distance_ == 1 ? "1 iteration" : fmt::format("{} iterations", distance_)));
    }
    return main;
  }
  bool ok() const { return ok_; }

 private:
  void note_at(Location place, bool done, std::string detail) {
    if (context_.loop_notes == nullptr) return;
    context_.loop_notes->push_back({root_, place, "pipeline", done, std::move(detail)});
  }
  void note(bool done, std::string detail) {
    note_at(module_.location(loop_), done, std::move(detail));
  }

  Ref operand_depth() const { return rewriter_.resolve(operand_group(module_, loop_, kDepth)[0]); }

  OpId refuse_depth(std::optional<int64_t> depth) {
    ok_ = false;
    diagnostics_.emit(
        Diag::LoweringLoopPolicy, module_.location(loop_),
        {{"clause", "pipeline"},
         {"limit", fmt::format("{}", kMaxDepth)},
         {"operand", depth ? "it" : "its operand"},
         {"detail", depth ? fmt::format("is {}", *depth) : std::string("is not exact")}});
    return {};
  }
  OpId refuse_body(OpId op) {
    ok_ = false;
    const std::string_view name = op_info(module_.op(op).kind).name;
    diagnostics_
        .emit(Diag::LoweringPipeline, module_.location(loop_),
              {{"detail", fmt::format("'{}' in its body has to run in order", name)}})
        .notes.push_back({module_.location(op), "it stands here"});
    return {};
  }
  OpId refuse_size() {
    ok_ = false;
    diagnostics_.emit(
        Diag::LoweringTooLarge, module_.location(loop_),
        {{"op", std::string(op_info(ScfFor).name)}, {"limit", fmt::format("{}", kMaxCarried)}});
    return {};
  }

  OpId drop_clause(OpId loop) {
    std::vector<ValueId> operands;
    std::vector<uint32_t> groups(module_.group_sizes(loop).begin(),
                                 module_.group_sizes(loop).end());
    for (unsigned group = 0; group < groups.size(); ++group) {
      if (group == kDepth) {
        groups[group] = 0;
        continue;
      }
      for (ValueId value : operand_group(module_, loop, group)) operands.push_back(value);
    }
    module_.set_operands(loop, operands, groups);
    return {};
  }

  bool types_mention_values() const {
    for (unsigned i = 0; i < module_.op(loop_).result_count; ++i) {
      if (module_.types[module_.type_of(module_.result(loop_, i))].mentions_values()) return true;
    }
    return false;
  }

  // --- what runs ahead ---

  // Calls f(ValueId) for every value of the loop's body that the operation mentions.
  template <class F>
  void for_each_inner(OpId op, F&& f) const {
    const auto visit = [&](ValueId value) {
      const Value& v = module_.value(value);
      const bool inner = v.kind == ValueKind::Result
                             ? module_.op(OpId(v.owner)).parent == body_
                             : v.kind == ValueKind::Argument && v.owner == body_.index();
      if (inner) f(value);
    };
    for (ValueId value : module_.operands(op)) visit(value);
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      const Type& type = module_.types[module_.type_of(module_.result(op, i))];
      for (Dim dim : type.dims) {
        if (dim.is_dynamic()) visit(dim.value());
      }
      if (type.encoding_value.valid()) visit(type.encoding_value);
    }
    for (AttrId attr : module_.attr_ids(op)) {
      if (!attr.valid()) continue;
      for (const Predicate& predicate : module_.attrs[attr].predicates) {
        for (unsigned i = 0; i < predicate.arity(); ++i) {
          if (predicate.args[i].is_value()) visit(predicate.args[i].value);
        }
      }
    }
  }

  // Loads that follow from the induction variable, and the operations that lead to them.
  void find_slice() {
    struct Early {
      bool varies = false, needed = false;
    };
    std::unordered_map<uint32_t, Early> early;  // by operation
    const auto find = [&](ValueId value) -> Early* {
      const OpId op = module_.defining_op(value);
      const auto found = op.valid() ? early.find(op.index()) : early.end();
      return found != early.end() ? &found->second : nullptr;
    };
    const ValueId induction = module_.args(body_)[0];
    std::vector<OpId> order;
    for (OpId op = module_.region(body_).first; op.valid(); op = module_.op(op).next) {
      const Op& o = module_.op(op);
      const bool load = is_load(o.kind);
      if (o.region_count != 0 || o.result_count == 0) continue;
      if (!load && effect_of(o.kind) != Effect::Pure) continue;
      if (load && module_.types[module_.type_of(module_.result(op))].mentions_values()) continue;
      bool known = true, varies = false;
      for_each_inner(op, [&](ValueId value) {
        if (value == induction) {
          varies = true;
          return;
        }
        const Early* from = find(value);
        known &= from != nullptr;
        varies |= from != nullptr && from->varies;
      });
      if (!known || (load && !varies)) continue;
      early[op.index()] = {varies, load};
      order.push_back(op);
      if (load) loads_.push_back(op);
    }
    for (size_t i = order.size(); i-- > 0;) {
      if (!early[order[i].index()].needed) continue;
      for_each_inner(order[i], [&](ValueId value) {
        if (value != induction) find(value)->needed = true;
      });
    }
    for (const OpId op : order) {
      if (early[op.index()].needed) slice_.push_back(op);
    }
  }

  // --- arithmetic before the loop ---

  Ref number(int64_t value) { return rewriter_.integer(kind_, value); }
  Ref emit(OpKind kind, std::initializer_list<Ref> operands, InsertionPoint place) {
    const std::span<const Ref> span(operands.begin(), operands.size());
    const TypeId type = TypeStore::scalar(kind_);
    const Ref folded = rewriter_.fold_at({kind, span, {}, type}, place, module_.location(loop_));
    if (folded.valid()) return folded;
    return rewriter_.create(kind, span, AttrId(), type, place, module_.location(loop_));
  }
  // The induction value `rounds` iterations after `from`.
  Ref after(Ref from, uint64_t rounds, InsertionPoint place) {
    if (rounds == 0) return from;
    return emit(IndexMadd, {step_, number(static_cast<int64_t>(rounds)), from}, place);
  }
  // Whether the loop has an iteration with this induction value.
  Ref exists(Ref value, InsertionPoint place) {
    const auto relation = kind_ == ScalarKind::Offset ? Compare::Ult : Compare::Slt;
    const Ref operands[] = {value, hi_};
    const TypeId type = TypeStore::scalar(ScalarKind::I1);
    const auto choice = static_cast<uint64_t>(relation);
    const Ref folded = rewriter_.fold_at({IndexCmp, operands, {.choice = choice}, type}, place,
                                         module_.location(loop_));
    if (folded.valid()) return folded;
    return rewriter_.create(IndexCmp, operands, module_.attrs.intern(Attr::enumeration(choice)),
                            type, place, module_.location(loop_));
  }

  // Whether lo + distance * step is representable, whatever the values are, and the distance of the
  // bounds where it is needed.
  bool first_bounds_fit() const {
    const IntFacts lo = rewriter_.facts(lo_), step = rewriter_.facts(step_);
    int64_t ahead = 0, end = 0;
    // Where the last iterations begin is a quotient unless the step is 1.
    if (step.exact() != std::optional<int64_t>(1) && !lo.non_negative()) return false;
    return step.lo > 0 &&
           !__builtin_mul_overflow(step.hi, static_cast<int64_t>(distance_), &ahead) &&
           !__builtin_add_overflow(lo.hi, ahead, &end);
  }

  // --- rewriting ---

  OpId rewrite() {
    before_ = InsertionPoint::at(module_, loop_);
    const size_t loads = loads_.size();
    under_way_.assign(distance_ * loads, ValueId());
    for (uint64_t k = 0; k < distance_; ++k) {
      if (!load_first(k)) return {};
    }
    // max(hi, lo + ahead) - ahead: as many iterations as the loop has beyond the distance.
    const Ref ahead = emit(IndexMul, {step_, number(static_cast<int64_t>(distance_))}, before_);
    const Ref far = emit(IndexMax, {hi_, emit(IndexAdd, {lo_, ahead}, before_)}, before_);
    const Ref end = emit(IndexSub, {far, ahead}, before_);
    const OpId main = make_main(end);
    if (!fill_main(main, ahead)) return {};
    drop_clause(main);
    if (!finish_last(main, behind(end))) return {};
    module_.erase(loop_);
    return main;
  }

  // The induction value of the first iteration behind [lo, end); `end` is not below lo.
  Ref behind(Ref end) {
    if (rewriter_.exact_int(step_) == std::optional<int64_t>(1)) return end;
    const Ref length = emit(IndexSub, {end, lo_}, before_);
    const Ref more = emit(IndexSub, {step_, number(1)}, before_);
    const Ref rounds = emit(IndexDiv, {emit(IndexAdd, {length, more}, before_), step_}, before_);
    return emit(IndexMadd, {rounds, step_, lo_}, before_);
  }

  std::vector<TypeId> load_types() const {
    std::vector<TypeId> types;
    types.reserve(loads_.size());
    for (const OpId load : loads_) types.push_back(module_.type_of(module_.result(load)));
    return types;
  }
  ValueId loaded(size_t i) {
    return rewriter_.materialize(rewriter_.resolve(module_.result(loads_[i])));
  }
  void append_yield(RegionId region, const std::vector<ValueId>& values) {
    const auto count = static_cast<uint32_t>(values.size());
    module_.append(region, module_.create({.kind = ScfYield,
                                           .operands = values,
                                           .groups = {&count, 1},
                                           .location = module_.location(loop_)}));
  }
  OpId make_if(Ref condition, const std::vector<TypeId>& types) {
    const ValueId value = rewriter_.materialize(condition);
    const OpId op = module_.create({.kind = ScfIf,
                                    .operands = {&value, 1},
                                    .results = types,
                                    .regions = 2,
                                    .location = module_.location(loop_)});
    module_.insert_before(loop_, op);
    for (unsigned i = 0; i < 2; ++i) module_.region(module_.op_region(op, i)).has_body = true;
    return op;
  }
  // A value that nobody looks at.
  ValueId nothing(TypeId type, InsertionPoint place) {
    const Ref zero = rewriter_.constant(from_bits(rewriter_.element(type), 0));
    if (module_.types.is_scalar(type)) return rewriter_.materialize(zero);
    return rewriter_.create(VectorSplat, {&zero, 1}, AttrId(), type, place, module_.location(loop_))
        .value_id();
  }

  // The loads of iteration k.
  bool load_first(uint64_t k) {
    const Ref induction = after(lo_, k, before_);
    const Ref condition = exists(induction, before_);
    const auto known = rewriter_.exact_int(condition);
    const size_t loads = loads_.size();
    if (known && *known != 0) {
      if (!expand(induction, before_)) return false;
      for (size_t i = 0; i < loads; ++i) under_way_[k * loads + i] = loaded(i);
      return true;
    }
    const std::vector<TypeId> types = load_types();
    std::vector<ValueId> values;
    if (known) {
      for (size_t i = 0; i < loads; ++i) {
        under_way_[k * loads + i] = nothing(types[i], before_);
      }
      return true;
    }
    const OpId guard = make_if(condition, types);
    const RegionId yes = module_.op_region(guard, 0), no = module_.op_region(guard, 1);
    if (!expand(induction, {yes, OpId()})) return false;
    values.reserve(loads);
    for (size_t i = 0; i < loads; ++i) values.push_back(loaded(i));
    append_yield(yes, values);
    values.clear();
    for (size_t i = 0; i < loads; ++i) values.push_back(nothing(types[i], {no, OpId()}));
    append_yield(no, values);
    for (size_t i = 0; i < loads; ++i) {
      under_way_[k * loads + i] = module_.result(guard, static_cast<unsigned>(i));
    }
    return true;
  }
  bool expand(Ref induction, InsertionPoint place) {
    expander_.leave_out({});
    ok_ = expander_.expand_slice(loop_, slice_, place, induction);
    return ok_;
  }
  // One whole iteration whose loads have been done.
  bool expand_rest(Ref induction, InsertionPoint place, std::span<const ValueId> carried,
                   const ValueId* arrived) {
    std::vector<OpId> done = loads_;
    std::ranges::sort(done);
    expander_.leave_out(std::move(done));
    for (size_t i = 0; i < loads_.size(); ++i) {
      rewriter_.replace(module_.result(loads_[i]), Ref::value(arrived[i]));
    }
    ok_ = expander_.expand_copies(loop_, place, induction, 0, 1, carried);
    expander_.leave_out({});
    return ok_;
  }
  std::vector<ValueId> outcome() {
    std::vector<ValueId> values;
    values.reserve(module_.op(loop_).result_count);
    for (unsigned i = 0; i < module_.op(loop_).result_count; ++i) {
      values.push_back(rewriter_.materialize(rewriter_.resolve(module_.result(loop_, i))));
    }
    return values;
  }
  std::vector<TypeId> result_types() const {
    std::vector<TypeId> types;
    types.reserve(module_.op(loop_).result_count);
    for (unsigned i = 0; i < module_.op(loop_).result_count; ++i) {
      types.push_back(module_.type_of(module_.result(loop_, i)));
    }
    return types;
  }

  OpId make_main(Ref end) {
    std::vector<ValueId> operands = {rewriter_.materialize(lo_), rewriter_.materialize(end),
                                     rewriter_.materialize(step_)};
    std::vector<uint32_t> groups(module_.group_sizes(loop_).begin(),
                                 module_.group_sizes(loop_).end());
    for (unsigned group = kInit; group < groups.size(); ++group) {
      for (ValueId value : operand_group(module_, loop_, group)) operands.push_back(value);
      if (group != kInit) continue;
      operands.insert(operands.end(), under_way_.begin(), under_way_.end());
    }
    groups[kInit] += static_cast<uint32_t>(under_way_.size());
    std::vector<TypeId> types = result_types();
    for (const ValueId value : under_way_) types.push_back(module_.type_of(value));
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

  bool fill_main(OpId main, Ref ahead) {
    const RegionId to = module_.op_region(main, 0);
    std::vector<ValueId> args;
    const std::vector<ValueId> formals(module_.args(body_).begin(), module_.args(body_).end());
    args.reserve(formals.size() + under_way_.size());
    for (ValueId formal : formals) {
      args.push_back(module_.create_value(module_.type_of(formal), module_.value(formal).name));
    }
    for (size_t i = 0; i < under_way_.size(); ++i) {
      const ValueId load = module_.result(loads_[i % loads_.size()]);
      args.push_back(module_.create_value(module_.type_of(load), module_.value(load).name));
    }
    module_.set_args(to, args, static_cast<uint32_t>(args.size()));
    module_.region(to).has_body = true;
    const Ref induction = Ref::value(args[0]);
    const size_t carried = formals.size() - 1, loads = loads_.size();
    if (!expand(emit(IndexAdd, {induction, ahead}, {to, OpId()}), {to, OpId()})) return false;
    std::vector<ValueId> fresh;
    fresh.reserve(loads);
    for (size_t i = 0; i < loads; ++i) fresh.push_back(loaded(i));
    const std::span<const ValueId> all(args);
    if (!expand_rest(induction, {to, OpId()}, all.subspan(1, carried), &args[1 + carried])) {
      return false;
    }
    std::vector<ValueId> yielded = outcome();
    yielded.insert(yielded.end(), args.begin() + static_cast<ptrdiff_t>(1 + carried + loads),
                   args.end());
    yielded.insert(yielded.end(), fresh.begin(), fresh.end());
    append_yield(to, yielded);
    return true;
  }

  // The last iterations; what they need has been loaded.
  bool finish_last(OpId main, Ref begin) {
    const unsigned results = module_.op(loop_).result_count;
    const size_t loads = loads_.size();
    std::vector<ValueId> carried, arrived(under_way_.size());
    for (unsigned i = 0; i < results; ++i) carried.push_back(module_.result(main, i));
    for (size_t i = 0; i < arrived.size(); ++i) {
      arrived[i] = module_.result(main, results + static_cast<unsigned>(i));
    }
    for (uint64_t k = 0; k < distance_; ++k) {
      const Ref induction = after(begin, k, before_);
      const Ref condition = exists(induction, before_);
      const auto known = rewriter_.exact_int(condition);
      if (known && *known == 0) break;
      if (known) {
        if (!expand_rest(induction, before_, carried, &arrived[k * loads])) return false;
        carried = outcome();
        continue;
      }
      const OpId guard = make_if(condition, result_types());
      const RegionId yes = module_.op_region(guard, 0), no = module_.op_region(guard, 1);
      if (!expand_rest(induction, {yes, OpId()}, carried, &arrived[k * loads])) return false;
      if (results == 0) {
        module_.region(no).has_body = false;
        continue;
      }
      append_yield(yes, outcome());
      append_yield(no, carried);
      for (unsigned i = 0; i < results; ++i) carried[i] = module_.result(guard, i);
    }
    for (unsigned i = 0; i < results; ++i) {
      rewriter_.replace(module_.result(loop_, i), Ref::value(carried[i]));
    }
    return true;
  }

  PassContext& context_;
  const OpId root_;
  Module& module_;
  Diagnostics& diagnostics_;
  Rewriter& rewriter_;
  Expander& expander_;
  const OpId loop_;
  const RegionId body_;
  const ScalarKind kind_;
  bool ok_ = true;
  uint64_t distance_ = 0;
  Ref lo_, hi_, step_;
  InsertionPoint before_;
  std::vector<OpId> loads_, slice_;  // in body order
  std::vector<ValueId> under_way_;   // loads of iteration 0, then of iteration 1, ...
};

}  // namespace

bool pipeline(PassContext& context, OpId root) {
  Module& module = context.module();
  if (is_command_program(module, root)) return true;
  bool ok = true;
  for_each_body(module, root, [&](RegionId body) {
    Rewriter rewriter(context, body);
    assume_signature(rewriter, root, body);
    Expander expander(context, rewriter, root, {});
    for (OpId id = module.region(body).first; id.valid() && ok;) {
      const OpId op = id;
      if (rewriter.kind_of(op) == ScfFor && !operand_group(module, op, kDepth).empty()) {
        rewriter.remap(op);
        Overlapper overlapper(context, root, rewriter, expander, op);
        const OpId main = overlapper.run();
        ok = overlapper.ok();
        id = next_in_region_tree(module, main.valid() ? main : op, body);
        continue;
      }
      id = next_in_region_tree(module, op, body);
      if (!rewriter.adopt_constant(op)) rewriter.remap(op);
    }
  });
  return ok;
}

}  // namespace loom
