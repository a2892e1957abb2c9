#include "loom/check/bench_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"

namespace loom::check {
namespace {

using enum OpKind;

std::string benchmark_name(const Module& module, OpId op) {
  constexpr unsigned kName = attr_slot(CheckBenchmark, "name");
  if (module.has_attr(op, kName)) {
    return std::string(module.strings.text(module.attr(op, kName).string()));
  }
  return std::string(symbol_ref(module, op, attr_slot(CheckBenchmark, "case")));
}

// The place of the value among those of the parameter; verified records name one that it takes.
uint64_t place_of(const Parameter& parameter, int64_t value) {
  uint64_t place = 0;
  if (parameter.form == Parameter::Form::Linear) {
    return (static_cast<uint64_t>(value) - static_cast<uint64_t>(parameter.first)) / parameter.step;
  }
  while (place + 1 < parameter.count && parameter.value(place) != value) ++place;
  return place;
}

// The samples that a record stands for.
std::optional<std::vector<uint64_t>> samples_of(const Module& module, OpId op, const Case& of) {
  std::vector<std::optional<uint64_t>> fixed(of.parameters.size());
  constexpr unsigned kParameters = attr_slot(CheckBenchmark, "parameters");
  if (module.has_attr(op, kParameters)) {
    for (const DictEntry& entry : module.attr(op, kParameters).entries) {
      const auto found =
          std::ranges::find(of.parameters, module.strings.text(entry.key), &Parameter::name);
      if (found == of.parameters.end()) continue;
      fixed[static_cast<size_t>(found - of.parameters.begin())] =
          place_of(*found, module.attrs[entry.value].value());
    }
  }
  std::vector<uint64_t> ordinals = {0};
  for (size_t i = 0; i < of.parameters.size(); ++i) {
    const uint64_t count = of.parameters[i].count;
    if (!fixed[i] && (count == 0 || ordinals.size() > kMostSamples / count)) return std::nullopt;
    std::vector<uint64_t> next;
    for (const uint64_t ordinal : ordinals) {
      const uint64_t first = fixed[i].value_or(0);
      const uint64_t last = fixed[i] ? first + 1 : count;
      for (uint64_t place = first; place < last; ++place) next.push_back(ordinal * count + place);
    }
    ordinals = std::move(next);
  }
  return ordinals;
}

}  // namespace

std::vector<std::string> benchmark_names(const Module& module) {
  std::vector<std::string> names;
  for_each_op(module, module.body(), [&](OpId op) {
    if (module.op(op).kind == CheckBenchmark) names.push_back(benchmark_name(module, op));
  });
  return names;
}

BenchPlan make_bench_plan(const Module& module, const std::vector<std::string>& names,
                          const DeviceTraits& device) {
  BenchPlan made;
  std::vector<OpId> records;
  PlanOptions options{.most = 0};  // samples come from the records alone
  for_each_op(module, module.body(), [&](OpId op) {
    if (module.op(op).kind != CheckBenchmark) return;
    if (!names.empty() && std::ranges::find(names, benchmark_name(module, op)) == names.end()) {
      return;
    }
    records.push_back(op);
    options.cases.emplace_back(symbol_ref(module, op, attr_slot(CheckBenchmark, "case")));
  });
  if (records.empty()) return made;
  made.plan = make_plan(module, options, device);
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> items;
  for (const OpId op : records) {
    const std::string_view name = symbol_ref(module, op, attr_slot(CheckBenchmark, "case"));
    const auto of = std::ranges::find(made.plan.cases, name, &Case::name);
    if (of == made.plan.cases.end()) continue;
    const auto place = static_cast<uint32_t>(of - made.plan.cases.begin());
    const auto samples = samples_of(module, op, *of);
    if (!samples && of->issues.empty()) {
      of->issues.push_back(
          {Diag::CheckUnplannable,
           Severity::Error,
           module.location(op),
           {{"case", std::string(name)},
            {"detail", fmt::format("the benchmark leaves more than {} samples open", kMostSamples)},
            {"repair", "state more of the parameters"}},
           {}});
    }
    if (!of->issues.empty() || !of->skipped.empty()) {
      made.refused.push_back({benchmark_name(module, op), place});
      continue;
    }
    for (const uint64_t ordinal : *samples) {
      const auto [item, fresh] =
          items.try_emplace({place, ordinal}, static_cast<uint32_t>(made.plan.samples.size()));
      if (fresh) made.plan.samples.push_back({place, ordinal});
      made.benchmarks.push_back({op, benchmark_name(module, op), item->second});
    }
  }
  return made;
}

}  // namespace loom::check
