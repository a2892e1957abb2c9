#include "loom/dialect/poison.h"

#include <algorithm>

#include "loom/ir/walk.h"

namespace loom::detail {
namespace {

using enum OpKind;

constexpr unsigned kForInit = operand_slot(ScfFor, "init");

bool makes_poison(OpKind kind) { return kind == ScalarPoison || kind == VectorPoison; }

// Follows each poisoned value to its users once.
class PoisonFlow {
 public:
  PoisonFlow(const VerifyContext& context, std::span<const OpId> ops)
      : c_(context), m_(context.module), poisoned_(m_.value_count()) {
    index_users(ops);
    for (const OpId op : ops) {
      if (c_.sound(op) && makes_poison(m_.op(op).kind)) mark(m_.result(op));
    }
  }

  std::vector<bool> run() {
    while (!open_.empty()) {
      const ValueId value = open_.back();
      open_.pop_back();
      for (uint32_t i = first_[value.index()]; i < first_[value.index() + 1]; ++i) {
        step(users_[i].op, users_[i].operand);
      }
    }
    return std::move(poisoned_);
  }

 private:
  struct Use {
    OpId op;
    unsigned operand;
  };

  void index_users(std::span<const OpId> ops) {
    first_.assign(m_.value_count() + 1, 0);
    const auto each = [&](auto&& f) {
      for (const OpId op : ops) {
        if (!c_.sound(op)) continue;
        for (unsigned i = 0; i < m_.op(op).operand_count; ++i) {
          if (m_.operand(op, i).valid()) f(m_.operand(op, i).index(), Use{op, i});
        }
      }
    };
    each([&](uint32_t value, Use) { ++first_[value + 1]; });
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    users_.resize(first_.back());
    std::vector<uint32_t> next(first_.begin(), first_.end() - 1);
    each([&](uint32_t value, Use use) { users_[next[value]++] = use; });
  }

  void mark(ValueId value) {
    if (!value.valid() || poisoned_[value.index()]) return;
    poisoned_[value.index()] = true;
    open_.push_back(value);
  }
  void mark_result(OpId op, unsigned i) {
    if (i < m_.op(op).result_count) mark(m_.result(op, i));
  }
  void mark_results(OpId op) {
    for (unsigned i = 0; i < m_.op(op).result_count; ++i) mark_result(op, i);
  }
  void mark_arg(OpId op, unsigned region, unsigned i) {
    if (region >= m_.op(op).region_count) return;
    const auto args = m_.args(m_.op_region(op, region));
    if (i < args.size()) mark(args[i]);
  }

  // The region or row that a constant first operand chooses among `count`.
  std::optional<unsigned> chosen(OpId op) const {
    const auto value = c_.constant(m_.operand(op, 0));
    if (!value) return std::nullopt;
    const OpKind kind = m_.op(op).kind;
    if (kind == ScfIf || kind == ScfSelect) return *value != 0 ? 0 : 1;
    const auto keys = m_.attr(op, attr_slot(ScfSwitch, "keys")).ints;
    return static_cast<unsigned>(std::ranges::find(keys, *value) - keys.begin());
  }

  void step(OpId op, unsigned operand) {
    const OpInfo& info = op_info(m_.op(op).kind);
    switch (info.kind) {
      case IndexAssume:
      case ScalarAssume:
        return mark_result(op, operand);
      case ScfSelect:
        if (const auto arm = chosen(op); !arm || operand == *arm + 1) mark_results(op);
        return;
      case ScfLookup:
        return step_lookup(op, operand);
      case ScfIf:
      case ScfSwitch:
        return mark_results(op);
      case ScfFor:
        return step_for(op, operand);
      case ScfWhile:
        return mark_arg(op, 0, operand);
      case ScfYield:
      case ScfCondition:
        return leave(op, operand);
      default:
        if (info.effect == Effect::Pure && !info.has(trait::Terminator)) mark_results(op);
    }
  }

  void step_lookup(OpId op, unsigned operand) {
    const unsigned width = m_.op(op).result_count;
    if (operand == 0 || width == 0) return mark_results(op);
    const unsigned row = (operand - 1) / width;
    if (const auto taken = chosen(op); taken && *taken != row) return;
    mark_result(op, (operand - 1) % width);
  }

  void step_for(OpId op, unsigned operand) {
    const auto inits = operand_group(m_, op, kForInit);
    const auto begin = static_cast<unsigned>(inits.data() - m_.operands(op).data());
    if (operand < begin) {
      mark_arg(op, 0, 0);
      return mark_results(op);
    }
    if (operand - begin >= inits.size()) return;
    carry(op, operand - begin);
  }
  void carry(OpId loop, unsigned i) {
    mark_arg(loop, 0, i + 1);
    mark_result(loop, i);
  }

  // The values that end a region go to the operation around it.
  void leave(OpId terminator, unsigned operand) {
    const OpId parent = parent_op(m_, terminator);
    if (!parent.valid() || !c_.sound(parent)) return;
    const OpKind kind = m_.op(parent).kind;
    if (m_.op(terminator).kind == ScfCondition) {
      if (operand == 0) return mark_results(parent);
      mark_arg(parent, 1, operand - 1);
      return mark_result(parent, operand - 1);
    }
    if (kind == ScfFor) return carry(parent, operand);
    if (kind == ScfWhile) return mark_arg(parent, 0, operand);
    if (kind != ScfIf && kind != ScfSwitch) return;
    const unsigned region = m_.op(terminator).parent.index() - m_.op(parent).region_begin;
    if (const auto taken = chosen(parent); taken && *taken != region) return;
    mark_result(parent, operand);
  }

  const VerifyContext& c_;
  const Module& m_;
  std::vector<bool> poisoned_;
  std::vector<ValueId> open_;
  std::vector<uint32_t> first_;  // by value: its users begin there
  std::vector<Use> users_;
};

}  // namespace

std::vector<bool> poisoned_values(const VerifyContext& context, std::span<const OpId> ops) {
  const bool any = std::ranges::any_of(
      ops, [&](OpId op) { return context.sound(op) && makes_poison(context.module.op(op).kind); });
  return any ? PoisonFlow(context, ops).run() : std::vector<bool>();
}

}  // namespace loom::detail
