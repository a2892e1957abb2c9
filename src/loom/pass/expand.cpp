#include "loom/pass/expand.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/dialect/hooks.h"
#include "loom/pass/fold_results.h"
#include "loom/pass/inline.h"
#include "loom/pass/region_walk.h"
#include "loom/pass/selector.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kCallCallee = attr_slot(FuncCall, "callee");
constexpr unsigned kCallPure = attr_slot(FuncCall, "pure");
constexpr unsigned kCallInlining = attr_slot(FuncCall, "inlining");
constexpr unsigned kDefInlining = attr_slot(FuncDef, "inlining");
constexpr unsigned kForUnroll = attr_slot(ScfFor, "unroll");
constexpr unsigned kForLo = operand_slot(ScfFor, "lo");
constexpr unsigned kForHi = operand_slot(ScfFor, "hi");
constexpr unsigned kForStep = operand_slot(ScfFor, "step");
constexpr unsigned kForInit = operand_slot(ScfFor, "init");
constexpr unsigned kForBody = region_slot(ScfFor, "body");
constexpr unsigned kDefBody = region_slot(FuncDef, "body");
static_assert(kDefBody == region_slot(TemplateDef, "body"));

// Order of the words in the dialect tables.
enum class Temperature : uint8_t { Hot, Cold };

// Visits are cheaper than created operations, so many more are allowed: a loop that folds away
// completely leaves nothing behind.
constexpr uint64_t kVisitsPerOperation = 16;

bool is_word(const Module& module, OpId op, unsigned slot, Inlining wanted) {
  return module.has_attr(op, slot) && module.attr(op, slot).bits == static_cast<uint64_t>(wanted);
}

}  // namespace

bool is_command_program(const Module& module, OpId root) {
  return module.op(root).kind == CommandProgramDef;
}

Expander::Expander(PassContext& context, Rewriter& rewriter, OpId root,
                   const ExpandOptions& options)
    : module_(context.module()),
      diagnostics_(context.diagnostics()),
      rewriter_(rewriter),
      options_(options),
      command_program_(is_command_program(context.module(), root)),
      open_{root} {}

// --- what to expand -----------------------------------------------------------------------------

bool Expander::refuse_call(OpId call, OpId callee, std::string detail) {
  failed_ = true;
  Diagnostic& diagnostic = diagnostics_.emit(
      Diag::LoweringInline, module_.location(call),
      {{"function", std::string(module_.strings.text(callee_name(module_, call)))},
       {"detail", detail}});
  if (callee.valid()) diagnostic.notes.push_back({module_.location(callee), "declared here"});
  return false;
}

bool Expander::callee_is_open(OpId callee) const {
  return std::ranges::find(open_, callee) != open_.end();
}

bool Expander::wants_call(OpId call) { return call_target(call).valid(); }

// The policy of inline.h for a call that nothing obliges or forbids.
bool Expander::is_worth_entering(OpId call, OpId callee) {
  if (created_ >= kInlineGrowth || open_.size() > kInlineDepth) return false;
  // Code for another place or target stays where it is.
  if (module_.has_attr(callee, attr_slot(FuncDef, "calling")) ||
      module_.has_attr(callee, attr_slot(FuncDef, "target"))) {
    return false;
  }
  const auto is = [&](Temperature wanted) {
    constexpr unsigned kOfCall = attr_slot(FuncCall, "temperature");
    const bool stated = module_.has_attr(call, kOfCall);
    const OpId says = stated ? call : callee;
    const unsigned slot = stated ? kOfCall : attr_slot(FuncDef, "temperature");
    return module_.has_attr(says, slot) &&
           module_.attr(says, slot).bits == static_cast<uint64_t>(wanted);
  };
  if (options_.large_calls) return true;
  if (is(Temperature::Cold)) return false;
  uint32_t& size = body_size_[callee.index()];
  const RegionId body = module_.op_region(callee, kDefBody);
  if (size == 0) {
    OpId op = module_.region(body).first;
    for (; op.valid() && size <= kInlineHotSize; op = next_in_region_tree(module_, op, body)) {
      ++size;
    }
  }
  return size <= (is(Temperature::Hot) ? kInlineHotSize : kInlineSize);
}

// The definition to enter; invalid when the call stays or was refused.
OpId Expander::call_target(OpId call) {
  if (module_.op(call).kind == TemplateCall) return template_target(call);
  const OpId callee = module_.symbol(module_.attr(call, kCallCallee).string());
  if (!callee.valid()) return {};
  const bool defined = module_.op(callee).kind == FuncDef;
  const bool pure = module_.has_attr(call, kCallPure);
  const bool obliged = is_word(module_, call, kCallInlining, Inlining::Inline) ||
                       (defined && is_word(module_, callee, kDefInlining, Inlining::Inline));
  const bool refused = is_word(module_, call, kCallInlining, Inlining::NoInline) ||
                       (defined && is_word(module_, callee, kDefInlining, Inlining::NoInline));
  const bool wanted =
      obliged || (pure && command_program_) ||
      (!refused && ((pure && options_.pure_calls) ||
                    (defined && options_.small_calls && is_worth_entering(call, callee))));
  if (!wanted) return {};
  if (!defined) {
    if (obliged || command_program_) refuse_call(call, callee, "it has no body here");
    return {};
  }
  if (callee_is_open(callee)) {
    if (obliged || command_program_) refuse_call(call, callee, "it calls itself");
    return {};
  }
  return callee;
}

// An implementation with a body always ends up in its caller; one without stays for its target.
OpId Expander::template_target(OpId call) {
  const OpId callee = module_.symbol(callee_name(module_, call));
  if (!callee.valid()) return {};
  if (module_.op(callee).kind != TemplateDef) {
    if (command_program_) refuse_call(call, callee, "a target supplies it");
    return {};
  }
  if (!callee_is_open(callee)) return callee;
  refuse_call(call, callee, "it calls itself");
  return {};
}

std::optional<LoopCount> Expander::loop_wanted(OpId loop, Ref lo, Ref hi, Ref step) const {
  if (!options_.loops) return std::nullopt;
  if (!module_.has_attr(loop, kForUnroll) && !options_.exact_loops && !command_program_) {
    return std::nullopt;
  }
  return loop_count(rewriter_, lo, hi, step);
}

std::optional<LoopCount> Expander::wants_loop(OpId loop) {
  return loop_wanted(loop, rewriter_.operand(loop, kForLo), rewriter_.operand(loop, kForHi),
                     rewriter_.operand(loop, kForStep));
}

bool Expander::may_stay(OpId loop) {
  // The topology check of a command program names what kept the loop open.
  if (command_program_ || !module_.has_attr(loop, kForUnroll)) return true;
  failed_ = true;
  diagnostics_.emit(Diag::LoweringUnroll, module_.location(loop));
  return false;
}

bool Expander::too_large(OpId op) {
  failed_ = true;
  diagnostics_.emit(Diag::LoweringTooLarge, module_.location(op),
                    {{"op", std::string(op_info(module_.op(op).kind).name)},
                     {"limit", fmt::format("{}", options_.max_operations)}});
  return false;
}

// --- entering -----------------------------------------------------------------------------------

bool Expander::expand_call(OpId call) {
  if (!enter_call(call, InsertionPoint::at(module_, call))) return !failed_;
  return run();
}

bool Expander::expand_loop(OpId loop, const LoopCount& count) {
  if (count.trips / kVisitsPerOperation > options_.max_operations) return too_large(loop);
  enter_loop(loop, count, InsertionPoint::at(module_, loop));
  return run();
}

// An extent that the callee's signature introduces is the extent of the actual argument.
void Expander::bind_extents(TypeId formal_id, Ref actual, RegionId owner) {
  if (module_.types.is_scalar(formal_id)) return;
  const Type formal = module_.types[formal_id];
  if (!formal.mentions_values()) return;
  const Type given = module_.types[rewriter_.type_of(actual)];
  for (size_t i = 0; i < formal.dims.size() && i < given.dims.size(); ++i) {
    if (!formal.dims[i].is_dynamic()) continue;
    const ValueId extent = formal.dims[i].value();
    const Value& value = module_.value(extent);
    if (value.kind != ValueKind::Extent || value.owner != owner.index()) continue;
    const Dim dim = given.dims[i];
    rewriter_.replace(extent, dim.is_dynamic()
                                  ? rewriter_.resolve(dim.value())
                                  : rewriter_.integer(ScalarKind::Index, dim.extent()));
  }
}

bool Expander::enter_call(OpId call, InsertionPoint place) {
  const OpId callee = call_target(call);
  if (!callee.valid()) return false;
  Frame frame;
  frame.kind = FrameKind::Call;
  frame.source = call;
  frame.place = place;
  const RegionId body = module_.op_region(callee, kDefBody);
  frame.next = module_.region(body).first;
  const auto formals = module_.args(body);
  // All actuals are read before any formal is bound: a table entry may be left from another visit.
  refs_.clear();
  for (size_t i = 0; i < formals.size(); ++i) {
    refs_.push_back(rewriter_.operand(call, static_cast<unsigned>(i)));
  }
  for (size_t i = 0; i < formals.size(); ++i) rewriter_.replace(formals[i], refs_[i]);
  for (size_t i = 0; i < formals.size(); ++i) {
    bind_extents(module_.type_of(formals[i]), refs_[i], body);
  }
  frames_.push_back(frame);
  open_.push_back(callee);
  return true;
}

void Expander::enter_loop(OpId loop, const LoopCount& count, InsertionPoint place) {
  Frame frame;
  frame.kind = FrameKind::Loop;
  frame.source = loop;
  frame.place = place;
  frame.body = module_.op_region(loop, kForBody);
  frame.iv_kind = rewriter_.element(module_.type_of(module_.args(frame.body)[0]));
  frame.count = count;
  refs_.clear();
  for (ValueId init : operand_group(module_, loop, kForInit)) {
    refs_.push_back(rewriter_.resolve(init));
  }
  if (count.trips == 0) {
    for (size_t i = 0; i < refs_.size(); ++i) {
      rewriter_.replace(module_.result(loop, static_cast<unsigned>(i)), refs_[i]);
    }
    return;
  }
  frame.next = module_.region(frame.body).first;
  begin_iteration(frame);
  frames_.push_back(frame);
}

bool Expander::expand_copies(OpId loop, InsertionPoint place, Ref base, int64_t step,
                             uint64_t copies, std::span<const ValueId> carried) {
  Frame frame;
  frame.kind = FrameKind::Loop;
  frame.source = loop;
  frame.place = place;
  frame.body = module_.op_region(loop, kForBody);
  frame.iv_kind = rewriter_.element(module_.type_of(module_.args(frame.body)[0]));
  frame.base = base;
  frame.count = {0, step, copies};
  refs_.clear();
  for (ValueId value : carried) refs_.push_back(Ref::value(value));
  frame.next = module_.region(frame.body).first;
  begin_iteration(frame);
  frames_.push_back(frame);
  return run();
}

bool Expander::expand_slice(OpId loop, std::span<const OpId> ops, InsertionPoint place,
                            Ref induction) {
  rewriter_.replace(module_.args(module_.op_region(loop, kForBody))[0], induction);
  Frame frame;
  frame.kind = FrameKind::Branch;
  frame.source = loop;
  frame.place = place;
  frames_.push_back(frame);
  for (const OpId op : ops) {
    if (!visit(op)) return false;
  }
  frames_.pop_back();
  return !failed_;
}

Ref Expander::offset_from(const Frame& frame, Ref distance) {
  const Ref operands[] = {frame.base, distance};
  const TypeId type = TypeStore::scalar(frame.iv_kind);
  const Location location = module_.location(frame.source);
  const Ref folded = rewriter_.fold_at({IndexAdd, operands, {}, type}, frame.place, location);
  if (folded.valid()) return folded;
  return rewriter_.create(IndexAdd, operands, AttrId(), type, frame.place, location);
}

// `refs_` holds the carried values.
void Expander::begin_iteration(const Frame& frame) {
  const auto args = module_.args(frame.body);
  const uint64_t value = static_cast<uint64_t>(frame.count.first) +
                         frame.done * static_cast<uint64_t>(frame.count.step);
  Ref induction = rewriter_.constant(from_bits(frame.iv_kind, value));
  if (frame.base.valid()) induction = frame.done == 0 ? frame.base : offset_from(frame, induction);
  rewriter_.replace(args[0], induction);
  for (size_t i = 1; i < args.size(); ++i) rewriter_.replace(args[i], refs_[i - 1]);
}

// A branch whose condition or selector is exact: its region takes the operation's place.
bool Expander::enter_branch(OpId op) {
  const auto decided = rewriter_.exact_int(rewriter_.operand(op, 0));
  if (!decided) return false;
  const bool is_if = module_.op(op).kind == ScfIf;
  const unsigned chosen = is_if ? (*decided != 0 ? 0 : 1) : row_of(module_, op, *decided);
  enter_in_place(op, module_.op_region(op, chosen));
  return true;
}

// A loop that ends at once computes its first region and forwards what that one does.
bool Expander::enter_while(OpId op) {
  if (!while_never_runs(rewriter_, op)) return false;
  const RegionId before = module_.op_region(op, region_slot(ScfWhile, "before"));
  const auto args = module_.args(before);
  refs_.clear();
  for (unsigned i = 0; i < args.size(); ++i) refs_.push_back(rewriter_.operand(op, i));
  for (unsigned i = 0; i < args.size(); ++i) rewriter_.replace(args[i], refs_[i]);
  enter_in_place(op, before);
  return true;
}

void Expander::enter_in_place(OpId op, RegionId region) {
  Frame frame;
  frame.kind = FrameKind::Branch;
  frame.source = op;
  frame.place = frames_.back().place;
  frame.next = module_.region(region).first;
  if (frame.next.valid()) frames_.push_back(frame);
}

void Expander::enter_regions(OpId source, OpId copy) {
  if (module_.op(source).region_count == 0) return;
  Frame frame;
  frame.kind = FrameKind::Region;
  frame.source = source;
  frame.copy = copy;
  frames_.push_back(frame);
  start_region(frames_.back());
}

void Expander::start_region(Frame& frame) {
  const RegionId from = module_.op_region(frame.source, frame.region);
  const RegionId to = module_.op_region(frame.copy, frame.region);
  frame.next = module_.region(from).first;
  frame.place = {to, OpId()};
  values_.clear();
  const unsigned count = module_.region(from).arg_count;
  for (unsigned i = 0; i < count; ++i) {
    const ValueId arg = module_.args(from)[i];
    const TypeId type = rewriter_.resolve_type(module_.type_of(arg));
    const ValueId made = module_.create_value(type, module_.value(arg).name);
    values_.push_back(made);
    rewriter_.replace(arg, Ref::value(made));
  }
  module_.set_args(to, values_, module_.region(from).arg_split);
  module_.region(to).has_body = module_.region(from).has_body;
}

// --- visiting -----------------------------------------------------------------------------------

bool Expander::run() {
  while (!frames_.empty() && !failed_) {
    Frame& frame = frames_.back();
    const OpId op = frame.next;
    if (++visits_ / kVisitsPerOperation > options_.max_operations) return too_large(frame.source);
    if (!op.valid()) {
      end_frame(OpId());
      continue;
    }
    frame.next = module_.op(op).next;
    if (!visit(op)) return false;
  }
  return !failed_;
}

bool Expander::visit(OpId op) {
  const OpKind kind = module_.op(op).kind;
  if (!left_out_.empty() && std::ranges::binary_search(left_out_, op)) return true;
  switch (kind) {
    case IndexConstant:
    case ScalarConstant:
      if (const auto value = constant_of(module_, op)) {
        rewriter_.replace(module_.result(op), rewriter_.constant(*value));
        return true;
      }
      break;
    case ScfYield:
    case ScfCondition:
    case FuncReturn:
    case TemplateReturn:
      if (frames_.back().kind != FrameKind::Region) {
        end_frame(op);
        return true;
      }
      break;
    case ScfIf:
    case ScfSwitch:
      if (enter_branch(op)) return true;
      break;
    case ScfWhile:
      if (enter_while(op)) return true;
      break;
    case ScfFor:
      if (const auto count = wants_loop(op)) {
        enter_loop(op, *count, frames_.back().place);
        return true;
      }
      if (options_.loops && !may_stay(op)) return false;
      break;
    case FuncCall:
    case TemplateCall:
      if (options_.calls && enter_call(op, frames_.back().place)) return true;
      if (failed_) return false;
      break;
    default:
      if (is_foldable(kind) ? try_fold(op) : try_results(op)) return true;
      break;
  }
  if (++created_ > options_.max_operations) return too_large(op);
  const OpId copy = clone(op);
  rewriter_.insert(copy, frames_.back().place);
  enter_regions(op, copy);
  return true;
}

bool Expander::try_fold(OpId op) {
  const unsigned count = module_.op(op).operand_count;
  refs_.clear();
  for (unsigned i = 0; i < count; ++i) refs_.push_back(rewriter_.operand(op, i));
  const ValueId result = module_.result(op);
  const FoldInput input = {module_.op(op).kind, refs_,
                           module_.op(op).attr_count != 0 ? eval_attrs(module_, op) : EvalAttrs{},
                           rewriter_.resolve_type(module_.type_of(result))};
  const Ref folded = rewriter_.fold_at(input, frames_.back().place, module_.location(op));
  if (!folded.valid()) return false;
  rewriter_.replace(result, folded);
  return true;
}

bool Expander::try_results(OpId op) {
  const unsigned count = module_.op(op).result_count;
  if (count == 0 || !fold_results(rewriter_, op, frames_.back().place, refs_)) return false;
  for (unsigned i = 0; i < count; ++i) rewriter_.replace(module_.result(op, i), refs_[i]);
  return true;
}

OpId Expander::clone(OpId op) {
  const Op source = module_.op(op);
  values_.clear();
  for (unsigned i = 0; i < source.operand_count; ++i) {
    values_.push_back(rewriter_.materialize(rewriter_.operand(op, i)));
  }
  types_.clear();
  for (unsigned i = 0; i < source.result_count; ++i) {
    types_.push_back(rewriter_.resolve_type(module_.type_of(module_.result(op, i))));
  }
  attrs_.clear();
  for (unsigned i = 0; i < source.attr_count; ++i) {
    attrs_.push_back(rewriter_.resolve_attr(module_.attr_ids(op)[i]));
  }
  const OpId copy = module_.create({.kind = source.kind,
                                    .operands = values_,
                                    .groups = module_.group_sizes(op),
                                    .results = types_,
                                    .attrs = attrs_,
                                    .regions = source.region_count,
                                    .location = module_.location(op)});
  for (unsigned i = 0; i < source.result_count; ++i) {
    const ValueId from = module_.result(op, i), to = module_.result(copy, i);
    module_.value(to).name = module_.value(from).name;
    rewriter_.replace(from, Ref::value(to));
  }
  return copy;
}

// --- leaving ------------------------------------------------------------------------------------

void Expander::map_results(OpId op, OpId terminator) {
  const unsigned count = module_.op(op).result_count;
  refs_.clear();
  // A condition stands before the values that it forwards.
  const unsigned first = terminator.valid() && module_.op(terminator).kind == ScfCondition ? 1 : 0;
  for (unsigned i = 0; i < count; ++i) refs_.push_back(rewriter_.operand(terminator, first + i));
  for (unsigned i = 0; i < count; ++i) rewriter_.replace(module_.result(op, i), refs_[i]);
}

void Expander::end_frame(OpId terminator) {
  Frame& frame = frames_.back();
  switch (frame.kind) {
    case FrameKind::Region:
      return end_region(frame);
    case FrameKind::Loop:
      return end_iteration(frame, terminator);
    case FrameKind::Call:
      open_.pop_back();
      [[fallthrough]];
    case FrameKind::Branch:
      map_results(frame.source, terminator);
      frames_.pop_back();
  }
}

void Expander::end_region(Frame& frame) {
  if (++frame.region == module_.op(frame.source).region_count) {
    frames_.pop_back();
    return;
  }
  start_region(frame);
}

void Expander::end_iteration(Frame& frame, OpId terminator) {
  if (++frame.done == frame.count.trips) {
    map_results(frame.source, terminator);
    frames_.pop_back();
    return;
  }
  const unsigned carried = module_.op(frame.source).result_count;
  refs_.clear();
  for (unsigned i = 0; i < carried; ++i) refs_.push_back(rewriter_.operand(terminator, i));
  begin_iteration(frame);
  frame.next = module_.region(frame.body).first;
}

}  // namespace loom
