#include "loom/command/project.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/ir/clone.h"
#include "loom/ir/walk.h"
#include "loom/pass/canonicalize.h"
#include "loom/pass/constants.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/inline.h"

namespace loom {
namespace {

constexpr unsigned kLaunchCallee = attr_slot(OpKind::KernelLaunch, "callee");
constexpr unsigned kDispatchCallee = attr_slot(OpKind::KernelDispatch, "callee");
constexpr unsigned kConfigRegion = region_slot(OpKind::KernelDef, "config");

class Projector {
 public:
  Projector(PassContext& context, const TargetFacts& target)
      : context_(context),
        module_(context.module()),
        diagnostics_(context.diagnostics()),
        target_(target) {}

  std::optional<Projection> run(std::span<const OpId> programs) {
    for (OpId program : programs) {
      std::vector<OpId> sites;
      for_each_nested(module_, program, [&](OpId id) {
        const OpKind kind = module_.op(id).kind;
        if (kind == OpKind::KernelLaunch || kind == OpKind::KernelDispatch) sites.push_back(id);
      });
      for (OpId site : sites) {
        const bool launch = module_.op(site).kind == OpKind::KernelLaunch;
        const ProjectedKernel* kernel =
            project(site, module_.attr(site, launch ? kLaunchCallee : kDispatchCallee).string());
        if (kernel == nullptr) return std::nullopt;
        if (launch) rewrite(site, *kernel);
      }
    }
    return std::move(projection_);
  }

  OpId config(OpId kernel) {
    keep_sizes_ = true;
    const ProjectedKernel projected = make_config(kernel, symbol_name(module_, kernel));
    return projected.config.valid() && !has_open_fact(projected) ? projected.config : OpId();
  }

 private:
  const ProjectedKernel* project(OpId site, StringId symbol) {
    if (const auto found = projection_.find(symbol); found != projection_.end()) {
      return &found->second;
    }
    const OpId kernel = module_.symbol(symbol);
    LOOM_CHECK(kernel.valid(), "a verified launch names a symbol of its module");
    const OpKind kind = module_.op(kernel).kind;
    if (kind == OpKind::KernelEntryDecl) {
      return &projection_
                  .emplace(symbol, ProjectedKernel{kernel, OpId(), stated_size(kernel), false})
                  .first->second;
    }
    if (kind != OpKind::KernelDef) {
      diagnostics_
          .emit(Diag::LoweringUnresolvedKernel, module_.location(kernel),
                {{"symbol", std::string(module_.strings.text(symbol))}})
          .notes.push_back({module_.location(site), "launched here"});
      return nullptr;
    }
    ProjectedKernel projected = make_config(kernel, symbol);
    if (!projected.config.valid() || has_open_fact(projected)) return nullptr;
    return &projection_.emplace(symbol, projected).first->second;
  }

  // The workgroup size that an external entry's declaration states.
  std::optional<std::array<uint32_t, 3>> stated_size(OpId entry) const {
    constexpr unsigned kSize = attr_slot(OpKind::KernelEntryDecl, "workgroup_size");
    if (!module_.has_attr(entry, kSize)) return std::nullopt;
    std::array<uint32_t, 3> size{};
    for (size_t i = 0; i < 3; ++i) {
      const int64_t extent = module_.attr(entry, kSize).ints[i];
      if (extent > std::numeric_limits<uint32_t>::max()) return std::nullopt;
      size[i] = static_cast<uint32_t>(extent);
    }
    return size;
  }

  StringId config_name(StringId symbol) {
    const std::string base = fmt::format("{}$config", module_.strings.text(symbol));
    std::string name = base;
    for (unsigned i = 0; module_.symbol(module_.strings.intern(name)).valid(); ++i) {
      name = fmt::format("{}${}", base, i);
    }
    return module_.strings.intern(name);
  }

  ProjectedKernel make_config(OpId kernel, StringId symbol) {
    std::vector<AttrId> attrs(op_info(OpKind::FuncDef).attrs.size());
    const StringId name = config_name(symbol);
    attrs[attr_slot(OpKind::FuncDef, "pure")] = module_.attrs.intern(Attr::unit());
    attrs[attr_slot(OpKind::FuncDef, "name")] = module_.attrs.intern(Attr::symbol(name));
    const Location location = module_.location(kernel);
    const OpId function = module_.create(
        {.kind = OpKind::FuncDef, .attrs = attrs, .regions = 2, .location = location});
    const RegionId body = module_.op_region(function, 0);
    const RegionId source = module_.op_region(kernel, kConfigRegion);
    Cloner cloner(module_, module_);
    cloner.clone_args(source, body);
    cloner.clone_body(source, body);
    // The configuration's terminator becomes a return of counts and sizes.
    const OpId config = module_.region(body).last;
    const auto counts = operand_group(module_, config, 0);
    const auto sizes = operand_group(module_, config, 1);
    std::vector<ValueId> values(counts.begin(), counts.end());
    values.insert(values.end(), sizes.begin(), sizes.end());
    module_.erase(config);
    append_return(body, values, location);
    const RegionId results = module_.op_region(function, 1);
    const TypeId index = TypeStore::scalar(ScalarKind::Index);
    for (size_t i = 0; i < values.size(); ++i) module_.add_arg(results, index, StringId());
    module_.append(module_.body(), function);
    module_.define_symbol(name, function);
    ProjectedKernel projected{kernel, function, std::nullopt, uses_templates(module_, function)};
    // What a called function asks of the target is decided, too.
    if (keep_sizes_ && !inline_calls(context_, function, {.pure_calls = true})) return {};
    const SelectOptions select{.final = true, .target = target_of(kernel), .format = {}};
    if (!expand_templates(context_, function, select)) return {};
    canonicalize(context_, function);
    projected.fixed_size = fixed_size(body);
    if (projected.fixed_size && !keep_sizes_) {
      keep_counts_only(function);
      canonicalize(context_, function);
    }
    return projected;
  }

  TargetFacts target_of(OpId kernel) const {
    constexpr unsigned kTarget = attr_slot(OpKind::KernelDef, "target");
    if (!module_.has_attr(kernel, kTarget)) return target_;
    return record_facts(module_, module_.symbol(module_.attr(kernel, kTarget).string()), target_);
  }

  bool has_open_fact(const ProjectedKernel& projected) {
    OpId open;
    for_each_nested(module_, projected.config, [&](OpId op) {
      if (!open.valid() && module_.op(op).kind == OpKind::TargetSubgroupSize) open = op;
    });
    if (!open.valid()) return false;
    diagnostics_.emit(Diag::CommandTargetFact, module_.location(open),
                      {{"kernel", std::string(symbol_text(module_, projected.kernel))},
                       {"fact", "subgroup size"}});
    return true;
  }

  void append_return(RegionId body, std::span<const ValueId> values, Location location) {
    const auto count = static_cast<uint32_t>(values.size());
    module_.append(body, module_.create({.kind = OpKind::FuncReturn,
                                         .operands = values,
                                         .groups = {&count, 1},
                                         .location = location}));
  }

  std::optional<std::array<uint32_t, 3>> fixed_size(RegionId body) const {
    const auto values = module_.operands(module_.region(body).last);
    std::array<uint32_t, 3> size{};
    for (size_t i = 0; i < 3; ++i) {
      const std::optional<int64_t> exact = exact_int(module_, values[3 + i]);
      if (!exact || *exact < 1 || *exact > std::numeric_limits<uint32_t>::max()) {
        return std::nullopt;
      }
      size[i] = static_cast<uint32_t>(*exact);
    }
    return size;
  }

  void keep_counts_only(OpId function) {
    const OpId ret = module_.region(module_.op_region(function, 0)).last;
    const std::vector<ValueId> values(module_.operands(ret).begin(), module_.operands(ret).end());
    const uint32_t three = 3;
    module_.set_operands(ret, std::span(values).first(3), {&three, 1});
    const RegionId results = module_.op_region(function, 1);
    const std::vector<ValueId> args(module_.args(results).begin(), module_.args(results).end());
    module_.set_args(results, std::span(args).first(3), 3);
  }

  void rewrite(OpId launch, const ProjectedKernel& kernel) {
    const Location location = module_.location(launch);
    const auto workload_span = operand_group(module_, launch, 0);
    const std::vector<ValueId> workload(workload_span.begin(), workload_span.end());
    const auto args_span = operand_group(module_, launch, 1);
    const std::vector<ValueId> args(args_span.begin(), args_span.end());
    const bool sized = !kernel.fixed_size.has_value();
    const std::vector<TypeId> results(sized ? 6 : 3, TypeStore::scalar(ScalarKind::Index));
    std::vector<AttrId> attrs(op_info(OpKind::FuncCall).attrs.size());
    attrs[attr_slot(OpKind::FuncCall, "pure")] = module_.attrs.intern(Attr::unit());
    attrs[attr_slot(OpKind::FuncCall, "callee")] =
        module_.attrs.intern(Attr::symbol(symbol_name(module_, kernel.config)));
    const auto workload_count = static_cast<uint32_t>(workload.size());
    const OpId call = module_.create({.kind = OpKind::FuncCall,
                                      .operands = workload,
                                      .groups = {&workload_count, 1},
                                      .results = results,
                                      .attrs = attrs,
                                      .location = location});
    module_.insert_before(launch, call);
    std::vector<ValueId> operands;
    for (unsigned i = 0; i < 3; ++i) operands.push_back(module_.result(call, i));
    operands.insert(operands.end(), args.begin(), args.end());
    for (unsigned i = 3; i < results.size(); ++i) operands.push_back(module_.result(call, i));
    const uint32_t groups[] = {3, static_cast<uint32_t>(args.size()), sized ? 3u : 0u};
    const AttrId callee = module_.attr_ids(launch)[kLaunchCallee];
    const OpId dispatch = module_.create({.kind = OpKind::KernelDispatch,
                                          .operands = operands,
                                          .groups = groups,
                                          .attrs = {&callee, 1},
                                          .location = location});
    module_.insert_before(launch, dispatch);
    if (const auto found = module_.op_trivia.find(launch.index());
        found != module_.op_trivia.end()) {
      OpTrivia trivia = std::move(found->second);
      module_.op_trivia[call.index()] = std::move(trivia);
    }
    module_.erase(launch);
  }

  PassContext& context_;
  Module& module_;
  Diagnostics& diagnostics_;
  const TargetFacts target_;
  bool keep_sizes_ = false;
  Projection projection_;
};

}  // namespace

std::optional<Projection> project_launches(PassContext& context, std::span<const OpId> programs,
                                           const TargetFacts& target) {
  return Projector(context, target).run(programs);
}

OpId project_config(PassContext& context, OpId kernel, const TargetFacts& target) {
  return Projector(context, target).config(kernel);
}

}  // namespace loom
