#include "loom/pass/cse.h"

#include <algorithm>

#include "loom/pass/kind_tables.h"
#include "loom/pass/rewriter.h"

namespace loom {
namespace {

constexpr unsigned kCallPure = attr_slot(OpKind::FuncCall, "pure");
static_assert(kCallPure == attr_slot(OpKind::TemplateApply, "pure") &&
              kCallPure == attr_slot(OpKind::TemplateCall, "pure"));

// An open-addressed table of the operations that dominate the sweep's place. Entries leave in the
// reverse order of their insertion, which keeps every probe sequence intact.
class Merger {
 public:
  Merger(PassContext& context, RegionId body)
      : module_(context.module()), space_(context.workspace()), rewriter_(context, body) {
    space_.cse_table.assign(kSmallTable, {});
    space_.cse_log.clear();
  }

  void run(RegionId body) {
    OpId id = module_.region(body).first;
    while (true) {
      if (!id.valid()) {
        if (scopes_.empty()) return;
        id = leave();
        continue;
      }
      const OpId op = id;
      id = module_.op(op).next;
      visit(op);
      if (module_.op(op).region_count != 0) id = enter(op, 0);
    }
  }

 private:
  static constexpr size_t kSmallTable = 64;
  struct Scope {
    OpId op;
    unsigned region;
    size_t mark;
  };

  void visit(OpId op) {
    if (rewriter_.adopt_constant(op)) return;
    rewriter_.remap(op);
    if (!mergeable(op)) return;
    const uint32_t hash = hash_of(op);
    const size_t slot = find(op, hash);
    const OpId equal = space_.cse_table[slot].op;
    if (!equal.valid()) return insert({op, hash}, slot);
    for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
      rewriter_.replace(module_.result(op, i), Ref::value(module_.result(equal, i)));
    }
    module_.erase(op);
  }

  bool mergeable(OpId op) const {
    const Op& o = module_.op(op);
    if (o.result_count == 0 || o.region_count != 0) return false;
    switch (effect_of(o.kind)) {
      case Effect::Pure:
        return true;
      case Effect::Call:
        return module_.has_attr(op, kCallPure);
      default:
        return false;
    }
  }

  bool is_swapped_order(OpId op) const {
    return kind_has(module_.op(op).kind, trait::Commutative) &&
           module_.operand(op, 1) < module_.operand(op, 0);
  }

  uint32_t hash_of(OpId op) const {
    const auto operands = module_.operands(op);
    uint64_t hash = static_cast<uint64_t>(module_.op(op).kind);
    if (is_swapped_order(op)) {
      hash = hash_combine(hash, operands[1].index());
      hash = hash_combine(hash, operands[0].index());
    } else {
      for (ValueId value : operands) hash = hash_combine(hash, value.index());
    }
    for (AttrId attr : module_.attr_ids(op)) hash = hash_combine(hash, attr.index());
    return static_cast<uint32_t>(hash_combine(hash, module_.type_of(module_.result(op)).index()));
  }

  bool equal(OpId a, OpId b) const {
    if (module_.op(a).kind != module_.op(b).kind) return false;
    if (module_.op(a).result_count != module_.op(b).result_count) return false;
    for (unsigned i = 0; i < module_.op(a).result_count; ++i) {
      if (module_.type_of(module_.result(a, i)) != module_.type_of(module_.result(b, i))) {
        return false;
      }
    }
    if (!std::ranges::equal(module_.attr_ids(a), module_.attr_ids(b))) return false;
    if (!std::ranges::equal(module_.group_sizes(a), module_.group_sizes(b))) return false;
    const auto x = module_.operands(a), y = module_.operands(b);
    if (std::ranges::equal(x, y)) return true;
    return kind_has(module_.op(a).kind, trait::Commutative) && x[0] == y[1] && x[1] == y[0];
  }

  // The slot of an equal operation, or the free one where it belongs.
  size_t find(OpId op, uint32_t hash) const {
    const size_t mask = space_.cse_table.size() - 1;
    size_t slot = hash & mask;
    while (space_.cse_table[slot].op.valid() &&
           (space_.cse_table[slot].hash != hash || !equal(space_.cse_table[slot].op, op))) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }
  // The slot of this very operation, or the free one where it belongs.
  size_t place_of(const PassWorkspace::Available& entry) const {
    const size_t mask = space_.cse_table.size() - 1;
    size_t slot = entry.hash & mask;
    while (space_.cse_table[slot].op.valid() && space_.cse_table[slot].op != entry.op) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  void insert(PassWorkspace::Available entry, size_t slot) {
    space_.cse_table[slot] = entry;
    space_.cse_log.push_back(entry);
    if (space_.cse_log.size() * 2 <= space_.cse_table.size()) return;
    space_.cse_table.assign(space_.cse_table.size() * 2, {});
    for (const auto& logged : space_.cse_log) space_.cse_table[place_of(logged)] = logged;
  }

  OpId enter(OpId op, unsigned region) {
    scopes_.push_back({op, region, space_.cse_log.size()});
    return module_.region(module_.op_region(op, region)).first;
  }

  // Forgets what the finished region computed and returns where the sweep goes on.
  OpId leave() {
    const Scope scope = scopes_.back();
    scopes_.pop_back();
    while (space_.cse_log.size() > scope.mark) {
      space_.cse_table[place_of(space_.cse_log.back())] = {};
      space_.cse_log.pop_back();
    }
    if (scope.region + 1 < module_.op(scope.op).region_count) {
      return enter(scope.op, scope.region + 1);
    }
    return module_.op(scope.op).next;
  }

  Module& module_;
  PassWorkspace& space_;
  Rewriter rewriter_;
  std::vector<Scope> scopes_;
};

}  // namespace

bool cse(PassContext& context, OpId root) {
  for_each_body(context.module(), root, [&](RegionId body) { Merger(context, body).run(body); });
  return true;
}

}  // namespace loom
