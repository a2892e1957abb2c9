#include "loom/pass/work.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/pass/analysis.h"
#include "loom/pass/kind_tables.h"

namespace loom {
namespace {

using enum OpKind;

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

uint64_t times(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kMost : product;
}
void add_to(uint64_t& sum, uint64_t more) { sum = sum > kMost - more ? kMost : sum + more; }

// Operations that one lane of this kind counts as; 0 for what does not count.
uint64_t weight_of(OpKind kind) {
  const OpInfo& info = op_info(kind);
  if (info.dialect != "scalar" && info.dialect != "vector") return 0;
  const std::string_view name = info.name.substr(info.dialect.size() + 1);
  if (name == "fmaf" || name == "fmai") return 2;
  for (const std::string_view one :
       {"addf", "subf", "mulf", "divf", "minimumf", "maximumf", "minnumf", "maxnumf", "addi",
        "subi", "muli", "minsi", "maxsi", "minui", "maxui"}) {
    if (name == one) return 1;
  }
  return 0;
}

// Known lanes of a result; one for a scalar.
uint64_t lanes_of(const Type& type) {
  uint64_t lanes = 1;
  for (Dim dim : type.dims)
    lanes = times(lanes, dim.is_dynamic() ? 1 : static_cast<uint64_t>(dim.extent()));
  return lanes;
}

class Counter {
 public:
  Counter(const Module& module, OpId kernel)
      : module_(module), kernel_(kernel), facts_(module, kernel) {}

  KernelWork run() {
    const RegionId body = module_.op_region(kernel_, region_slot(KernelDef, "body"));
    runs_[body.index()] = workitems();
    for_each_op(module_, body, [&](OpId top) {
      enter(top);
      for_each_nested(module_, top, [&](OpId op) { enter(op); });
    });
    return work_;
  }

 private:
  uint64_t workitems() const {
    const RegionId config = module_.op_region(kernel_, region_slot(KernelDef, "config"));
    const OpId end = module_.region(config).last;
    if (!end.valid() || module_.op(end).kind != KernelLaunchConfig) return 1;
    FactAnalysis facts(module_, kernel_, config);
    uint64_t items = 1;
    for (ValueId size : operand_group(module_, end, 1)) {
      items = times(items, static_cast<uint64_t>(std::max<int64_t>(1, facts.at(end, size).lo)));
    }
    return items;
  }

  // Counts the operation, and says how often its regions run.
  void enter(OpId op) {
    const auto found = runs_.find(module_.op(op).parent.index());
    const uint64_t runs = found == runs_.end() ? 0 : found->second;
    const Op& o = module_.op(op);
    if (runs == 0) return;
    if (o.kind == ScfFor) {
      runs_[module_.op_region(op, 0).index()] = times(runs, fewest_trips(op));
      return;
    }
    // Which side of a branch runs is not known, and neither is how often a while loop does.
    const uint64_t weight = weight_of(o.kind);
    if (weight == 0 || o.result_count == 0) return;
    const Type& type = module_.types[module_.type_of(module_.result(op))];
    if (uint64_t* const sum = sum_of(type.element)) {
      add_to(*sum, times(runs, times(weight, lanes_of(type))));
    }
  }

  uint64_t fewest_trips(OpId loop) {
    const IntFacts lo = facts_.at(loop, module_.operand(loop, operand_slot(ScfFor, "lo")));
    const IntFacts hi = facts_.at(loop, module_.operand(loop, operand_slot(ScfFor, "hi")));
    const IntFacts step = facts_.at(loop, module_.operand(loop, operand_slot(ScfFor, "step")));
    if (hi.lo <= lo.hi || step.hi <= 0) return 0;
    const uint64_t distance = static_cast<uint64_t>(hi.lo) - static_cast<uint64_t>(lo.hi);
    return (distance - 1) / static_cast<uint64_t>(step.hi) + 1;
  }

  uint64_t* sum_of(ScalarKind element) {
    switch (element) {
      case ScalarKind::F32:
        return &work_.f32;
      case ScalarKind::F64:
        return &work_.f64;
      case ScalarKind::I32:
        return &work_.i32;
      case ScalarKind::I64:
        return &work_.i64;
      default:
        return nullptr;
    }
  }

  const Module& module_;
  const OpId kernel_;
  FactAnalysis facts_;
  std::unordered_map<uint32_t, uint64_t> runs_;  // of a region, for one workgroup
  KernelWork work_;
};

}  // namespace

namespace {

// The values of a kernel's launch arguments, as far as all launches agree.
struct Launches {
  bool seen = false;
  std::vector<std::optional<int64_t>> values;

  void add(std::span<const std::optional<int64_t>> launch) {
    if (!seen) values.assign(launch.begin(), launch.end());
    seen = true;
    for (size_t i = 0; i < values.size(); ++i) {
      if (i >= launch.size() || values[i] != launch[i]) values[i].reset();
    }
  }
};

std::map<uint32_t, Launches> launches_of(const Module& module) {
  std::map<uint32_t, Launches> all;  // by kernel
  for_each_op(module, module.body(), [&](OpId program) {
    if (module.op(program).kind != CommandProgramDef) return;
    FactAnalysis facts(module, program);
    for_each_nested(module, program, [&](OpId op) {
      if (module.op(op).kind != KernelLaunch) return;
      const OpId kernel = module.symbol(symbol_ref(module, op, attr_slot(KernelLaunch, "callee")));
      if (!kernel.valid() || module.op(kernel).kind != KernelDef) return;
      std::vector<std::optional<int64_t>> values;
      for (ValueId value : operand_group(module, op, 1)) {
        const Type& type = module.types[module.type_of(value)];
        const bool is_index = type.is_scalar() && type.element == ScalarKind::Index;
        values.push_back(is_index ? facts.exact(op, value) : std::nullopt);
      }
      all[kernel.index()].add(values);
    });
  });
  return all;
}

void fix_argument(Module& module, RegionId body, ValueId argument, int64_t value) {
  const OpId first = module.region(body).first;
  const TypeId type = TypeStore::scalar(ScalarKind::Index);
  const std::vector<AttrId> attrs = {module.attrs.intern(Attr::integer(value))};
  const OpId constant = module.create({.kind = IndexConstant,
                                       .results = std::span(&type, 1),
                                       .attrs = attrs,
                                       .location = module.location(first)});
  const auto replace = [&](OpId op) {
    for (unsigned i = 0; i < module.operands(op).size(); ++i) {
      if (module.operand(op, i) == argument) module.set_operand(op, i, module.result(constant));
    }
  };
  for_each_op(module, body, [&](OpId top) {
    replace(top);
    for_each_nested(module, top, replace);
  });
  module.insert_before(first, constant);
}

}  // namespace

void fix_launch_arguments(Module& module) {
  for (const auto& [kernel, launches] : launches_of(module)) {
    const RegionId body = module.op_region(OpId(kernel), region_slot(KernelDef, "body"));
    if (module.region(body).deferred || !module.region(body).first.valid()) continue;
    const std::vector<ValueId> args(module.args(body).begin(), module.args(body).end());
    for (size_t i = 0; i < std::min(args.size(), launches.values.size()); ++i) {
      if (launches.values[i]) fix_argument(module, body, args[i], *launches.values[i]);
    }
  }
}

KernelWork kernel_work(const Module& module, OpId kernel) { return Counter(module, kernel).run(); }

}  // namespace loom
