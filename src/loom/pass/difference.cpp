#include "loom/pass/difference.h"

#include <algorithm>
#include <array>

#include "loom/pass/fact_flow.h"

namespace loom {
namespace {

using enum OpKind;
__extension__ typedef __int128 Wide;

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr unsigned kReach = 12;

// Values bounded by one start: upward `start <= value + weight`, downward `value <= start +
// weight`.
class Chain {
 public:
  struct Node {
    Ref value;
    Wide weight;
    bool by_relation;
  };

  Chain(const Rewriter& rewriter, std::span<const Relation> relations, Ref start, bool upward)
      : rewriter_(rewriter), upward_(upward) {
    add(start, 0, false);
    for (unsigned i = 0; i < count_; ++i) {
      const Node node = nodes_[i];
      for (const Relation& relation : relations) follow(node, relation);
      structure(node);
    }
  }

  std::span<const Node> nodes() const { return {nodes_.data(), count_}; }

  // The best bound of the start itself by the ranges of what it is chained to.
  Wide range_bound() const {
    std::optional<Wide> best;
    for (const Node& node : nodes()) {
      const IntFacts facts = rewriter_.facts(node.value);
      const Wide bound = upward_ ? Wide{facts.hi} + node.weight : Wide{facts.lo} - node.weight;
      if (!best || (upward_ ? bound < *best : bound > *best)) best = bound;
    }
    return *best;
  }

 private:
  void add(Ref value, Wide weight, bool by_relation) {
    for (unsigned i = 0; i < count_; ++i) {
      if (nodes_[i].value != value) continue;
      // A later, shorter bound is not followed again; it still serves where chains meet.
      nodes_[i].weight = std::min(nodes_[i].weight, weight);
      return;
    }
    if (count_ < kReach) nodes_[count_++] = {value, weight, by_relation};
  }

  // small <= large + weight.
  void edge(const Node& from, Ref small, Ref large, Wide weight, bool by_relation) {
    if (upward_ && small == from.value) {
      add(large, from.weight + weight, by_relation || from.by_relation);
    } else if (!upward_ && large == from.value) {
      add(small, from.weight + weight, by_relation || from.by_relation);
    }
  }

  bool ordered_by_sign(Ref ref) const { return rewriter_.element_of(ref) != ScalarKind::I1; }

  void follow(const Node& node, const Relation& relation) {
    if (relation.a != node.value && relation.b != node.value) return;
    if (!ordered_by_sign(relation.a)) return;
    Compare compare = relation.compare;
    Ref a = relation.a, b = relation.b;
    if (compare == Compare::Sgt || compare == Compare::Sge || compare == Compare::Ugt ||
        compare == Compare::Uge) {
      compare = swapped(compare);
      std::swap(a, b);
    }
    switch (compare) {
      case Compare::Eq:
        edge(node, a, b, 0, true);
        edge(node, b, a, 0, true);
        return;
      case Compare::Slt:
        return edge(node, a, b, -1, true);
      case Compare::Sle:
        return edge(node, a, b, 0, true);
      case Compare::Ult:
      case Compare::Ule:
        // Below a bound that is not negative both orders agree.
        if (!rewriter_.facts(b).non_negative()) return;
        return edge(node, a, b, compare == Compare::Ult ? -1 : 0, true);
      default:
        return;
    }
  }

  void equal(const Node& node, Ref a, Ref b) {
    edge(node, a, b, 0, false);
    edge(node, b, a, 0, false);
  }

  // sum = a + b without wrapping.
  void sum(const Node& node, Ref result, Ref a, Wide lo, Wide hi) {
    if (hi < kMax) edge(node, result, a, hi, false);
    if (lo > kMin) edge(node, a, result, -lo, false);
  }

  // Whether the mathematical result of adding or subtracting is the result.
  bool exact_sum(OpId op, Wide lo, Wide hi) const {
    const Module& module = rewriter_.module();
    const ScalarKind kind = rewriter_.element(module.type_of(module.result(op)));
    if (is_address(kind)) return true;
    const IntDomain domain = IntDomain::of(kind);
    if (lo >= domain.lo && hi <= domain.hi) return true;
    return (eval_attrs(module, op).flags & kNsw) != 0;
  }

  void structure(const Node& node) {
    const OpId op = rewriter_.defining(node.value);
    if (!op.valid()) return;
    const Module& module = rewriter_.module();
    const OpKind kind = rewriter_.kind_of(op);
    if (kind == IndexAssume || kind == ScalarAssume || kind == FuncCall) {
      if (is_float(rewriter_.element_of(node.value))) return;
      std::vector<Relation> own;
      own_relations(rewriter_, op, own);
      for (const Relation& relation : own) {
        if (relation.a == node.value || relation.b == node.value) follow(node, relation);
      }
      // What another value promises about the result is no fact of the operand.
      if (node.by_relation || kind == FuncCall) return;
      const unsigned i = module.value(node.value.value_id()).index;
      return equal(node, node.value, rewriter_.operand(op, i));
    }
    if (module.op(op).operand_count == 0 || module.op(op).operand_count > 3) return;
    const Ref a = rewriter_.operand(op, 0);
    if (module.op(op).operand_count == 1) return convert(node, op, kind, a);
    binary(node, op, kind, a, rewriter_.operand(op, 1));
  }

  void convert(const Node& node, OpId, OpKind kind, Ref a) {
    const IntFacts facts = rewriter_.facts(a);
    const ScalarKind from = rewriter_.element_of(a), to = rewriter_.element_of(node.value);
    switch (kind) {
      case IndexCast: {
        const IntDomain domain = IntDomain::of(to);
        const bool keeps = from == ScalarKind::I1 || to == ScalarKind::Index ||
                           (facts.lo >= domain.lo && facts.hi <= domain.hi);
        if (keeps) equal(node, node.value, a);
        return;
      }
      case ScalarExtSI:
        if (from != ScalarKind::I1) equal(node, node.value, a);
        return;
      case ScalarExtUI:
        if (facts.non_negative()) equal(node, node.value, a);
        return;
      default:
        return;
    }
  }

  void below(const Node& node, Ref limit, Wide weight = 0) {
    edge(node, node.value, limit, weight, false);
  }

  void binary(const Node& node, OpId op, OpKind kind, Ref a, Ref b) {
    if (!ordered_by_sign(node.value) || is_float(rewriter_.element_of(node.value))) return;
    const Ref v = node.value;
    const IntFacts fa = rewriter_.facts(a), fb = rewriter_.facts(b);
    const bool positive = fa.non_negative() && fb.non_negative();
    switch (kind) {
      case IndexAdd:
      case ScalarAddI:
        if (!exact_sum(op, Wide{fa.lo} + fb.lo, Wide{fa.hi} + fb.hi)) return;
        sum(node, v, a, fb.lo, fb.hi);
        return sum(node, v, b, fa.lo, fa.hi);
      case IndexSub:
      case ScalarSubI:
        if (!exact_sum(op, Wide{fa.lo} - fb.hi, Wide{fa.hi} - fb.lo)) return;
        return sum(node, v, a, -Wide{fb.hi}, -Wide{fb.lo});
      case IndexMadd: {
        const IntFacts product = facts::mul(fa, fb, IntDomain::of(ScalarKind::Index));
        return sum(node, v, rewriter_.operand(op, 2), product.lo, product.hi);
      }
      case IndexMul:
        if (fa.non_negative() && fb.positive()) edge(node, a, v, 0, false);
        if (fb.non_negative() && fa.positive()) edge(node, b, v, 0, false);
        return;
      case ScalarMinUI:
      case ScalarMaxUI:
        if (!positive) return;
        [[fallthrough]];
      case IndexMin:
      case ScalarMinSI:
      case IndexMax:
      case ScalarMaxSI: {
        const bool is_min = kind == IndexMin || kind == ScalarMinSI || kind == ScalarMinUI;
        for (const Ref side : {a, b}) edge(node, is_min ? v : side, is_min ? side : v, 0, false);
        return;
      }
      case IndexDiv:
      case ScalarDivSI:
      case ScalarDivUI:
        if (positive) below(node, a);
        return;
      case IndexRem:
      case ScalarRemSI:
      case ScalarRemUI:
        if (positive) {
          below(node, a);
          below(node, b, -1);
        }
        return;
      case IndexAnd:
      case ScalarAndI:
        if (fa.non_negative()) below(node, a);
        if (fb.non_negative()) below(node, b);
        return;
      case IndexShrS:
      case IndexShrU:
      case ScalarShrSI:
      case ScalarShrUI:
        if (fa.non_negative()) below(node, a);
        return;
      default:
        return;
    }
  }

  const Rewriter& rewriter_;
  const bool upward_;
  std::array<Node, kReach> nodes_;
  unsigned count_ = 0;
};

// A query and the size it stays below, by the language.
bool is_below_by_topology(const Rewriter& rewriter, Ref a, Ref b) {
  const OpId x = rewriter.defining(a), y = rewriter.defining(b);
  if (!x.valid() || !y.valid()) return false;
  const Module& module = rewriter.module();
  const auto same_axis = [&] { return module.attr(x, 0).bits == module.attr(y, 0).bits; };
  switch (rewriter.kind_of(x)) {
    case KernelWorkitemId:
      return rewriter.kind_of(y) == KernelWorkgroupSize && same_axis();
    case KernelWorkgroupId:
      return rewriter.kind_of(y) == KernelWorkgroupCount && same_axis();
    case KernelSubgroupId:
      return rewriter.kind_of(y) == KernelSubgroupCount;
    case KernelSubgroupLaneId:
      return rewriter.kind_of(y) == KernelSubgroupSize;
    default:
      return false;
  }
}

// The best known bound of a - b.
Wide difference(const Rewriter& rewriter, std::span<const Relation> relations, Ref a, Ref b) {
  const Chain above(rewriter, relations, a, true);
  const Chain beneath(rewriter, relations, b, false);
  Wide best = above.range_bound() - beneath.range_bound();
  for (const Chain::Node& x : above.nodes()) {
    for (const Chain::Node& y : beneath.nodes()) {
      const bool same = x.value == y.value;
      if (!same && !is_below_by_topology(rewriter, x.value, y.value)) continue;
      best = std::min<Wide>(best, x.weight + y.weight - (same ? 0 : 1));
    }
  }
  return best;
}

}  // namespace

std::optional<bool> decide(const Rewriter& rewriter, std::span<const Relation> relations,
                           Compare compare, Ref a, Ref b) {
  if (rewriter.element_of(a) == ScalarKind::I1) return std::nullopt;
  if (rewriter.facts(a).empty() || rewriter.facts(b).empty()) return std::nullopt;
  if (compare >= Compare::Ult) {
    if (!rewriter.facts(a).non_negative() || !rewriter.facts(b).non_negative()) return std::nullopt;
    compare =
        static_cast<Compare>(static_cast<unsigned>(compare) - static_cast<unsigned>(Compare::Ult) +
                             static_cast<unsigned>(Compare::Slt));
  }
  if (compare == Compare::Sgt || compare == Compare::Sge) {
    compare = swapped(compare);
    std::swap(a, b);
  }
  const Wide up = difference(rewriter, relations, a, b);
  switch (compare) {
    case Compare::Slt:
      if (up <= -1) return true;
      if (difference(rewriter, relations, b, a) <= 0) return false;
      return std::nullopt;
    case Compare::Sle:
      if (up <= 0) return true;
      if (difference(rewriter, relations, b, a) <= -1) return false;
      return std::nullopt;
    default:
      break;
  }
  const Wide down = difference(rewriter, relations, b, a);
  const bool is_equality = compare == Compare::Eq;
  if (up <= -1 || down <= -1) return !is_equality;
  if (up <= 0 && down <= 0) return is_equality;
  return std::nullopt;
}

}  // namespace loom
