#include "loom/dialect/eval_vector.h"
#include "loom/pass/fold_util.h"

namespace loom::detail {

using enum OpKind;

Ref uniform_lane(Rewriter& rewriter, Ref vector) {
  const Module& module = rewriter.module();
  const OpId op = rewriter.defining(vector);
  if (!op.valid()) return Ref();
  if (rewriter.kind_of(op) == VectorSplat) return rewriter.operand(op, 0);
  if (rewriter.kind_of(op) != VectorConstant) return Ref();
  const auto value = from_literal(module.attr(op, attr_slot(VectorConstant, "value")),
                                  rewriter.element_of(vector));
  return value ? rewriter.constant(*value) : Ref();
}

namespace {

bool has_lanes(const Type& type) {
  for (const Dim dim : type.dims) {
    if (dim.is_dynamic() || dim.extent() == 0) return false;
  }
  return true;
}

bool is_empty(const Type& type) {
  for (const Dim dim : type.dims) {
    if (!dim.is_dynamic() && dim.extent() == 0) return true;
  }
  return false;
}

// Equal lanes stay equal: computes one of them. A vector that may have no lanes stays, as the
// scalar operation could be undefined where no lane is.
FoldResult fold_uniform(Rewriter& rewriter, const FoldInput& input, OpKind scalar) {
  FoldStep one{.kind = scalar, .flags = input.attrs.flags};
  if (!has_lanes(rewriter.module().types[input.result])) return FoldResult::none();
  one.type = TypeStore::scalar(rewriter.element(input.result));
  for (const Ref operand : input.operands) {
    const Ref lane = uniform_lane(rewriter, operand);
    if (!lane.valid()) return FoldResult::none();
    one.operands[one.count++] = lane;
  }
  return rule<"equal lanes">(build(one, step(VectorSplat, input.result, {Ref()})));
}

// A mask whose lanes are all true or all false by the ranges of its bounds.
FoldResult fold_mask_range(Rewriter& rewriter, const FoldInput& input) {
  const Type& type = rewriter.module().types[input.result];
  if (!has_lanes(type) || type.dims.size() != 1) return FoldResult::none();
  const IntFacts lo = rewriter.facts(input.operands[0]), hi = rewriter.facts(input.operands[1]);
  const IntFacts by = rewriter.facts(input.operands[2]);
  int64_t way = 0, last = 0;
  const IntDomain domain = IntDomain::of(rewriter.element_of(input.operands[0]));
  if (by.lo < 0 || __builtin_mul_overflow(by.hi, type.dims[0].extent() - 1, &way) ||
      __builtin_add_overflow(lo.hi, way, &last) || last > domain.hi) {
    return FoldResult::none();
  }
  const bool all = last < hi.lo;
  const bool none = lo.lo >= hi.hi || rewriter.related(Compare::Slt, input.operands[0],
                                                       input.operands[1]) == std::optional(false);
  if (!all && !none) return FoldResult::none();
  return rule<"vector.mask.range decided">(
      build(step(VectorSplat, input.result, {rewriter.integer(ScalarKind::I1, all ? 1 : 0)})));
}

}  // namespace

bool is_foldable_vector(OpKind kind) {
  switch (kind) {
    case VectorBroadcast:
    case VectorSlice:
    case VectorBitcast:
    case VectorSelect:
    case VectorExtract:
    case VectorReduce:
    case VectorMaskRange:
      return true;
    default: {
      // Operations without attributes other than flags.
      const OpInfo& info = op_info(kind);
      const bool plain =
          info.attrs.empty() || (info.attrs.size() == 1 && info.attrs[0].form == AttrForm::Flags);
      return plain && info.operands.size() <= 3 && info.has(trait::SameType) &&
             lanewise_scalar_op(kind).has_value();
    }
  }
}

FoldResult fold_vector(Rewriter& rewriter, const FoldInput& input) {
  const Ref first = input.operands[0];
  switch (input.kind) {
    case VectorBroadcast:
    case VectorSlice:
    case VectorBitcast:
      // The same type leaves nothing to repeat, to leave out or to reinterpret.
      if (rewriter.type_of(first) != input.result) return FoldResult::none();
      return rule<"vector identity">(FoldResult::of(first));
    case VectorSelect:
      if (input.operands[1] == input.operands[2]) {
        return rule<"vector.select equals">(FoldResult::of(input.operands[1]));
      }
      if (const Ref mask = uniform_lane(rewriter, first); mask.valid()) {
        if (const auto value = rewriter.exact(mask)) {
          return rule<"vector.select decided">(
              FoldResult::of(input.operands[value->bits != 0 ? 1 : 2]));
        }
      }
      return FoldResult::none();
    case VectorExtract:
      if (!rewriter.module().types.is_scalar(input.result)) return FoldResult::none();
      if (const Ref lane = uniform_lane(rewriter, first); lane.valid()) {
        return rule<"vector.extract of equal lanes">(FoldResult::of(lane));
      }
      return FoldResult::none();
    case VectorMaskRange:
      return fold_mask_range(rewriter, input);
    case VectorReduce:
      if (!is_empty(rewriter.module().types[rewriter.type_of(first)])) return FoldResult::none();
      return rule<"vector.reduce of nothing">(FoldResult::of(input.operands[1]));
    default:
      return fold_uniform(rewriter, input, *lanewise_scalar_op(input.kind));
  }
}

}  // namespace loom::detail
