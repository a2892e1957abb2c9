// Clones code while folding it: the engine of inline and unroll.
//
// Source operations are visited in execution order with a table from source values to results. What
// folds is never created; a branch with an exact condition is entered, a loop with an exact count
// is run, a call is entered, and only the rest is emitted. The cost is linear in the visits.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "loom/pass/loop.h"
#include "loom/pass/pass_context.h"

namespace loom {

struct ExpandOptions {
  bool calls = false;        // enter func.call where the language obliges
  bool pure_calls = false;   // also those without an `inline` obligation
  bool small_calls = false;  // also those that the policy of inline.h asks for
  bool large_calls = false;  // with small_calls: of any size
  bool loops = false;        // run loops that `unroll` obliges
  bool exact_loops = false;  // run every loop with exact bounds
  uint64_t max_operations = uint64_t{1} << 24;
};

// The root may not keep calls or loops.
bool is_command_program(const Module& module, OpId root);

class Expander {
 public:
  Expander(PassContext& context, Rewriter& rewriter, OpId root, const ExpandOptions& options);

  // Whether the call has to be replaced by its callee's body; reports LOWERING/044 when it must be
  // but cannot, and then sets failed().
  bool wants_call(OpId call);
  // Whether the loop has to be expanded, with its count; operands must be remapped.
  std::optional<LoopCount> wants_loop(OpId loop);

  // Whether an unexpanded loop is legal; reports LOWERING/003 when `unroll` forbids it.
  bool may_stay(OpId loop);

  // Expands the operation before itself and maps its results; the caller erases it. False when an
  // error was reported.
  bool expand_call(OpId call);
  bool expand_loop(OpId loop, const LoopCount& count);
  // Clones `copies` consecutive iterations of the loop to `place`, the first with induction value
  // `base` and the given carried values; the loop's results then mean what the last one yields.
  bool expand_copies(OpId loop, InsertionPoint place, Ref base, int64_t step, uint64_t copies,
                     std::span<const ValueId> carried);
  // Clones single operations of the loop's body without nested ones, in their order, for the
  // iteration with this induction value.
  bool expand_slice(OpId loop, std::span<const OpId> ops, InsertionPoint place, Ref induction);
  // Later copies leave these operations out; the caller says what their results mean. Ascending.
  void leave_out(std::vector<OpId> ops) { left_out_ = std::move(ops); }
  bool failed() const { return failed_; }

 private:
  enum class FrameKind : uint8_t { Region, Branch, Loop, Call };
  struct Frame {
    FrameKind kind = FrameKind::Region;
    OpId source;  // a structured operation, func.call, or the operation whose region is cloned
    OpId next;    // next source operation
    InsertionPoint place;
    // Region: the clone and the number of the region in progress.
    OpId copy;
    unsigned region = 0;
    // Loop
    RegionId body;
    ScalarKind iv_kind = ScalarKind::Index;
    Ref base;  // value of the first iteration where it is not exact
    LoopCount count;
    uint64_t done = 0;
  };

  bool run();
  bool visit(OpId op);
  void end_frame(OpId terminator);
  void end_iteration(Frame& frame, OpId terminator);
  void end_region(Frame& frame);
  void begin_iteration(const Frame& frame);
  bool enter_call(OpId call, InsertionPoint place);
  void enter_loop(OpId loop, const LoopCount& count, InsertionPoint place);
  bool enter_branch(OpId op);
  bool enter_while(OpId op);
  void enter_in_place(OpId op, RegionId region);
  bool try_results(OpId op);
  Ref offset_from(const Frame& frame, Ref distance);
  void enter_regions(OpId source, OpId copy);
  void start_region(Frame& frame);
  void bind_extents(TypeId formal, Ref actual, RegionId owner);
  void map_results(OpId op, OpId terminator);
  OpId clone(OpId op);
  bool try_fold(OpId op);
  bool callee_is_open(OpId callee) const;
  bool is_worth_entering(OpId call, OpId callee);
  bool refuse_call(OpId call, OpId callee, std::string detail);
  bool too_large(OpId op);
  std::optional<LoopCount> loop_wanted(OpId loop, Ref lo, Ref hi, Ref step) const;
  OpId call_target(OpId call);
  OpId template_target(OpId call);

  Module& module_;
  Diagnostics& diagnostics_;
  Rewriter& rewriter_;
  const ExpandOptions options_;
  const bool command_program_;
  std::vector<Frame> frames_;
  std::vector<OpId> open_;                            // the root and the callees being expanded
  std::unordered_map<uint32_t, uint32_t> body_size_;  // of functions
  std::vector<OpId> left_out_;
  std::vector<Ref> refs_;
  std::vector<ValueId> values_;
  std::vector<TypeId> types_;
  std::vector<AttrId> attrs_;
  uint64_t created_ = 0;
  uint64_t visits_ = 0;
  bool failed_ = false;
};

}  // namespace loom
