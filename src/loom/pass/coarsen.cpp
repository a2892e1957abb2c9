#include "loom/pass/coarsen.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/ir/clone.h"
#include "loom/ir/walk.h"
#include "loom/pass/analysis.h"
#include "loom/pass/kind_tables.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kConfig = region_slot(KernelDef, "config");
constexpr unsigned kBody = region_slot(KernelDef, "body");

struct Launch {
  OpId config;  // the terminator of the configuration
  ValueId count;
  std::optional<int64_t> exact;
  bool divisible = false;
};

std::optional<Launch> launch_of(const Module& module, OpId kernel, uint32_t factor) {
  const RegionId region = module.op_region(kernel, kConfig);
  Launch launch;
  launch.config = module.region(region).last;
  if (!launch.config.valid() || module.op(launch.config).kind != KernelLaunchConfig) return {};
  FactAnalysis facts(module, kernel, region);
  const auto counts = operand_group(module, launch.config, 0);
  if (counts.empty() || !operand_group(module, launch.config, 2).empty()) return {};
  for (ValueId size : operand_group(module, launch.config, 1)) {
    if (facts.exact(launch.config, size) != 1) return {};
  }
  launch.count = counts[0];
  launch.exact = facts.exact(launch.config, launch.count);
  launch.divisible = facts.at(launch.config, launch.count).divisible_by(factor);
  return launch;
}

// A workgroup that knows of others is not one of several.
bool knows_others(const Module& module, OpId kernel) {
  const RegionId body = module.op_region(kernel, kBody);
  bool knows = false;
  for_each_op(module, body, [&](OpId top) {
    const auto look = [&](OpId op) {
      const OpKind kind = module.op(op).kind;
      const Effect effect = effect_of(kind);
      const bool plain = effect == Effect::Pure || effect == Effect::Read ||
                         effect == Effect::Write || effect == Effect::Nested ||
                         effect == Effect::Hint;
      const bool asks = kind_has(kind, trait::KernelQuery) && kind != KernelWorkgroupId &&
                        kind != KernelWorkitemId;
      const bool leaves = kind == KernelReturn && op != module.region(body).last;
      knows = knows || !plain || asks || leaves;
    };
    look(top);
    for_each_nested(module, top, look);
  });
  return knows;
}

class Builder {
 public:
  Builder(Module& module, OpId before) : module_(module), before_(before) {}

  ValueId constant(int64_t value) {
    const AttrId attr = module_.attrs.intern(Attr::integer(value));
    return make(IndexConstant, {}, attr);
  }
  ValueId make(OpKind kind, std::initializer_list<ValueId> operands, AttrId attr = AttrId()) {
    const TypeId type = TypeStore::scalar(ScalarKind::Index);
    std::vector<AttrId> attrs(op_info(kind).attrs.size());
    if (!attrs.empty()) attrs[0] = attr;
    const OpId op = module_.create({.kind = kind,
                                    .operands = std::span(operands.begin(), operands.size()),
                                    .results = std::span(&type, 1),
                                    .attrs = attrs,
                                    .location = module_.location(before_)});
    module_.insert_before(before_, op);
    return module_.result(op);
  }

 private:
  Module& module_;
  OpId before_;
};

bool is_x_query(const Module& module, OpId op) {
  return module.op(op).kind == KernelWorkgroupId &&
         module.attr(op, attr_slot(KernelWorkgroupId, "axis")).value() == 0;
}

// Queries take nothing, so they may all stand in front.
void lift_queries(Module& module, RegionId body) {
  std::vector<OpId> nested;
  for_each_op(module, body, [&](OpId top) {
    for_each_nested(module, top, [&](OpId op) {
      if (is_x_query(module, op)) nested.push_back(op);
    });
  });
  const OpId first = module.region(body).first;
  for (OpId op : nested) {
    module.detach(op);
    module.insert_before(first, op);
  }
}

}  // namespace

bool can_coarsen(const Module& module, OpId kernel, uint32_t factor) {
  const RegionId body = module.op_region(kernel, kBody);
  if (factor < 2 || !module.region(body).has_body || module.region(body).deferred) return false;
  const auto launch = launch_of(module, kernel, factor);
  if (!launch) return false;
  // Less than two workgroups would be left.
  if (launch->exact && *launch->exact <= int64_t{factor}) return false;
  return (launch->exact || launch->divisible) && !knows_others(module, kernel);
}

void coarsen(Module& module, OpId kernel, uint32_t factor) {
  const Launch launch = *launch_of(module, kernel, factor);
  Builder config(module, launch.config);
  const ValueId fewer = launch.exact
                            ? config.constant((*launch.exact + factor - 1) / factor)
                            : config.make(IndexDiv, {launch.count, config.constant(factor)});
  module.set_operand(launch.config, 0, fewer);

  const RegionId body = module.op_region(kernel, kBody);
  const OpId end_of_body = module.region(body).last;
  lift_queries(module, body);
  std::vector<OpId> work;
  for_each_op(module, body, [&](OpId op) {
    if (op != end_of_body) work.push_back(op);
  });
  Builder place(module, end_of_body);
  std::vector<AttrId> axis(op_info(KernelWorkgroupId).attrs.size());
  axis[attr_slot(KernelWorkgroupId, "axis")] = module.attrs.intern(Attr::enumeration(0));
  const TypeId index = TypeStore::scalar(ScalarKind::Index);
  const OpId id = module.create({.kind = KernelWorkgroupId,
                                 .results = std::span(&index, 1),
                                 .attrs = axis,
                                 .location = module.location(end_of_body)});
  module.insert_before(end_of_body, id);
  const ValueId width = place.constant(factor);
  const ValueId first = place.make(IndexMul, {module.result(id), width});
  ValueId end = place.make(IndexAdd, {first, width});
  if (launch.exact && *launch.exact % factor != 0) {
    end = place.make(IndexMin, {end, place.constant(*launch.exact)});
  }
  const ValueId one = place.constant(1);
  const std::vector<ValueId> bounds = {first, end, one};
  std::vector<uint32_t> groups(op_info(ScfFor).operands.size(), 0);
  for (unsigned i = 0; i < bounds.size(); ++i) groups[i] = 1;
  const std::vector<AttrId> none(op_info(ScfFor).attrs.size());
  const OpId loop = module.create({.kind = ScfFor,
                                   .operands = bounds,
                                   .groups = groups,
                                   .attrs = none,
                                   .regions = 1,
                                   .location = module.location(end_of_body)});
  module.insert_before(end_of_body, loop);
  const RegionId inside = module.op_region(loop, 0);
  const ValueId number = module.create_value(index, StringId());
  module.set_args(inside, std::span(&number, 1), 1);
  module.region(inside).has_body = true;
  // Clones, since types and contracts may mention the old number, too.
  Cloner cloner(module, module);
  for (OpId op : work) {
    if (is_x_query(module, op)) cloner.map(module.result(op), number);
  }
  for (OpId op : work) {
    if (!is_x_query(module, op)) module.append(inside, cloner.clone(op));
  }
  for (const OpId op : std::views::reverse(work)) module.erase(op);
}

}  // namespace loom
