#include "loom/pass/fold_results.h"

#include <algorithm>

#include "loom/pass/fold_util.h"
#include "loom/pass/selector.h"

namespace loom {
namespace {

using enum OpKind;
using detail::is_poison;

constexpr unsigned kBefore = region_slot(ScfWhile, "before");

// Rounds up to a power of two; false beyond the domain of an offset.
bool align_up(uint64_t& offset, uint64_t alignment) {
  if (__builtin_add_overflow(offset, alignment - 1, &offset)) return false;
  offset -= offset % alignment;
  return static_cast<int64_t>(offset) >= 0;
}

bool fold_pack(Rewriter& rewriter, OpId op, std::vector<Ref>& results) {
  const Module& module = rewriter.module();
  const auto alignments = module.attr(op, attr_slot(BufferPack, "align")).ints;
  uint64_t total = 0, greatest = 1;
  results.assign(1, Ref());
  for (unsigned i = 0; i < alignments.size(); ++i) {
    const auto size = rewriter.exact(rewriter.operand(op, i));
    const auto alignment = static_cast<uint64_t>(alignments[i]);
    if (!size || !align_up(total, alignment)) return false;
    results.push_back(rewriter.integer(ScalarKind::Offset, static_cast<int64_t>(total)));
    if (__builtin_add_overflow(total, size->bits, &total)) return false;
    greatest = std::max(greatest, alignment);
  }
  if (!align_up(total, greatest)) return false;
  results[0] = rewriter.integer(ScalarKind::Offset, static_cast<int64_t>(total));
  note_fold<"buffer.pack exact">();
  return true;
}

bool fold_lookup(Rewriter& rewriter, OpId op, std::vector<Ref>& results) {
  const auto selector = rewriter.exact_int(rewriter.operand(op, 0));
  if (!selector) return false;
  const unsigned width = rewriter.module().op(op).result_count;
  const unsigned first = 1 + row_of(rewriter.module(), op, *selector) * width;
  results.clear();
  for (unsigned i = 0; i < width; ++i) {
    // The default's values follow those of the last row.
    results.push_back(rewriter.operand(op, first + i));
  }
  note_fold<"scf.lookup decided">();
  return true;
}

// Operations with one result are left to fold().
bool fold_poison(Rewriter& rewriter, OpId op, InsertionPoint place, std::vector<Ref>& results) {
  const Module& module = rewriter.module();
  const Op shape = module.op(op);
  if (shape.result_count < 2 || !detail::carries_poison(shape.kind)) return false;
  bool any = false;
  for (unsigned i = 0; i < shape.operand_count && !any; ++i) {
    any = is_poison(rewriter, rewriter.operand(op, i));
  }
  if (!any) return false;
  results.clear();
  for (unsigned i = 0; i < shape.result_count; ++i) {
    const TypeId type = rewriter.resolve_type(module.type_of(module.result(op, i)));
    const FoldStep poison = detail::poison_of(rewriter, type);
    results.push_back(rewriter.create(poison.kind, {}, AttrId(), type, place, module.location(op)));
  }
  note_fold<"poison of several results">();
  return true;
}

}  // namespace

bool while_never_runs(const Rewriter& rewriter, OpId op) {
  const Module& module = rewriter.module();
  const RegionId before = module.op_region(op, kBefore);
  const OpId last = module.region(before).last;
  if (!last.valid() || module.op(last).kind != ScfCondition) return false;
  const ValueId condition = module.operand(last, 0);
  const OpId made = module.defining_op(condition);
  if (made.valid() && module.op(made).parent == before) {
    // A replacement of a value of the region may be left from another visit; a constant is itself.
    const auto value = constant_of(module, made);
    return value && value->bits == 0;
  }
  Ref known = rewriter.resolve(condition);
  const auto args = module.args(before);
  if (const auto at = std::ranges::find(args, condition); at != args.end()) {
    known = rewriter.operand(op, static_cast<unsigned>(at - args.begin()));
  }
  const auto value = rewriter.exact(known);
  return value && value->bits == 0;
}

bool fold_results(Rewriter& rewriter, OpId op, InsertionPoint place, std::vector<Ref>& results) {
  switch (rewriter.kind_of(op)) {
    case BufferPack:
      return fold_pack(rewriter, op, results);
    case ScfLookup:
      return fold_lookup(rewriter, op, results);
    default:
      return fold_poison(rewriter, op, place, results);
  }
}

}  // namespace loom
