#include "loom/check/bench_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "loom/dialect/op_kind.h"
#include "loom/target/x86/codegen.h"

namespace loom::check {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string_view measure_name(Measure measure) {
  return measure == Measure::CaseEndToEnd ? "case_end_to_end" : "dispatch_complete";
}

std::string_view interleave_name(Interleave interleave) {
  return interleave == Interleave::Ababa ? "ABABA" : "round-robin";
}

Json summary_json(const Summary& summary) {
  return {{"batches", summary.count}, {"min", summary.least}, {"p10", summary.p10},
          {"p50", summary.p50},       {"p90", summary.p90},   {"p99", summary.p99},
          {"max", summary.most},      {"mean", summary.mean}, {"spread", summary.spread()}};
}

Json measurement_json(const Measurement& measurement) {
  Json made;
  made["operation_timing_ns"] = summary_json(measurement.summary());
  made["batch_size"] = measurement.batch_size;
  made["seconds"] = measurement.seconds;
  made["capped"] = measurement.capped;
  return made;
}

Json identity_json(const DeviceIdentity& device) {
  return {{"device", device.device},
          {"processor", device.processor},
          {"processors", device.processors},
          {"threads", device.threads},
          {"memory_bytes", device.memory_bytes},
          {"code_generator", device.code_generator},
          {"version", device.version}};
}

Json policy_json(const BenchOptions& options) {
  Json made;
  made["measure"] = measure_name(options.work.measure);
  made["warm_up_seconds"] = options.measure.warm_up;
  made["least_seconds"] = options.measure.least_time;
  made["most_seconds"] = options.measure.most_time;
  if (options.measure.batch_size != 0) made["batch_size"] = options.measure.batch_size;
  if (options.measure.repetitions != 0) made["repetitions"] = options.measure.repetitions;
  return made;
}

Json item_json(const BenchResults& results, uint32_t number) {
  const WorkItem& item = results.items[number];
  const Sample& sample = results.plan->plan.samples[number];
  const Case& of = results.plan->plan.cases[sample.place];
  Json made;
  made["work_item_index"] = number;
  made["case"] = of.name;
  made["sample_ordinal"] = sample.ordinal;
  made["parameters"] = of.parameters_text(sample.ordinal);
  made["state"] = state_name(item.state);
  // Unknown is absent.
  if (item.ring != 0) made["input_ring_count"] = item.ring;
  if (item.set_bytes != 0) made["input_set_bytes"] = item.set_bytes;
  if (const uint64_t bytes = item.work[0]) made["stated_bytes"] = bytes;
  if (const uint64_t flops = item.work[1]) made["stated_flops"] = flops;
  if (item.measurement) made["measurement"] = measurement_json(*item.measurement);
  if (const auto rate = item.gigabytes_per_second()) made["gigabytes_per_second"] = *rate;
  if (const auto rate = item.gigaflops()) made["gigaflops"] = *rate;
  made["issues"] = Json::array();
  for (const RenderedIssue& issue : item.issues) {
    made["issues"].push_back(Json::parse(issue.json, nullptr, false));
  }
  return made;
}

Json comparison_json(const Compared& compared) {
  Json made;
  made["a"] = compared.name_a;
  made["b"] = compared.name_b;
  made["work_item_index_a"] = compared.a;
  made["work_item_index_b"] = compared.b;
  made["measurement_a"] = measurement_json(compared.measured.a);
  made["measurement_b"] = measurement_json(compared.measured.b);
  made["seconds"] = compared.measured.seconds;
  if (const auto& found = compared.measured.difference) {
    made["pairs"] = found->pairs;
    made["ratio"] = found->ratio;
    made["interval_99"] = {found->low, found->high};
    made["noise_floor"] = found->floor;
    made["different"] = found->different;
  }
  return made;
}

Json summary_json(const BenchResults& results) {
  const auto count = [&](WorkItem::State state) {
    return std::ranges::count(results.items, state, &WorkItem::state);
  };
  return {{"benchmark_count", results.plan->benchmarks.size() + results.plan->refused.size()},
          {"work_item_count", results.items.size()},
          {"measured_count", count(WorkItem::State::Measured)},
          {"failed_count", count(WorkItem::State::Failed)},
          {"unplannable_count", count(WorkItem::State::Unplannable)},
          {"comparison_count", results.comparisons.size()}};
}

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "";
}

std::string time_text(double nanoseconds) {
  if (nanoseconds < 1e3) return fmt::format("{:.1f} ns", nanoseconds);
  if (nanoseconds < 1e6) return fmt::format("{:.3f} us", nanoseconds / 1e3);
  if (nanoseconds < 1e9) return fmt::format("{:.3f} ms", nanoseconds / 1e6);
  return fmt::format("{:.3f} s", nanoseconds / 1e9);
}

std::string names_of(const BenchPlan& plan, uint32_t item) {
  std::string names;
  for (const Benchmark& benchmark : plan.benchmarks) {
    if (benchmark.work_item == item) names += (names.empty() ? "@" : ", @") + benchmark.name;
  }
  return names;
}

std::string sample_text(const BenchPlan& plan, uint32_t item) {
  const Sample& sample = plan.plan.samples[item];
  const Case& of = plan.plan.cases[sample.place];
  const std::string parameters = of.parameters_text(sample.ordinal);
  return fmt::format("@{} sample {}{}", of.name, sample.ordinal,
                     parameters.empty() ? "" : " (" + parameters + ")");
}

}  // namespace

DeviceIdentity device_identity(const TestOptions& options, std::string version) {
  DeviceIdentity made;
  made.device = options.device;
  made.processor = processor_name();
  made.processors = std::max(1u, std::thread::hardware_concurrency());
  made.threads = options.threads == 0 ? made.processors : options.threads;
  made.memory_bytes = device_traits(options).memory_bytes;
  if (options.device != "interp") made.code_generator = x86_cpu_identity("native");
  made.version = std::move(version);
  return made;
}

std::string device_json(const DeviceIdentity& device) { return dump(identity_json(device), 2); }

std::string bench_json(const BenchResults& results, const BenchOptions& options,
                       const DeviceIdentity& device, bool raw) {
  Json made;
  made["schema"] = "loom.bench.v0";
  made["summary"] = summary_json(results);
  made["device"] = identity_json(device);
  made["policy"] = policy_json(options);
  Json& items = made["work_items"] = Json::array();
  for (uint32_t i = 0; i < results.items.size(); ++i) {
    items.push_back(item_json(results, i));
    if (raw && results.items[i].measurement) {
      items.back()["batch_ns"] = results.items[i].measurement->batches;
    }
  }
  Json& benchmarks = made["benchmarks"] = Json::array();
  for (const Benchmark& benchmark : results.plan->benchmarks) {
    benchmarks.push_back({{"benchmark", benchmark.name}, {"work_item_index", benchmark.work_item}});
  }
  Json& failures = made["failures"] = Json::array();
  for (uint32_t i = 0; i < results.items.size(); ++i) {
    const WorkItem::State state = results.items[i].state;
    if (state != WorkItem::State::Failed && state != WorkItem::State::Unplannable) continue;
    failures.push_back({{"work_item_index", i}, {"state", state_name(state)}});
  }
  for (const BenchPlan::Refused& refused : results.plan->refused) {
    const Case& of = results.plan->plan.cases[refused.place];
    failures.push_back({{"benchmark", refused.name},
                        {"state", of.skipped.empty() ? "unplannable" : "skipped"},
                        {"reason", of.skipped.empty() ? of.issues[0].message() : of.skipped}});
  }
  Json& comparisons = made["comparisons"] = Json::array();
  for (const Compared& compared : results.comparisons) {
    comparisons.push_back(comparison_json(compared));
    comparisons.back()["interleave"] = interleave_name(options.measure.interleave);
    if (raw) {
      comparisons.back()["batch_ns_a"] = compared.measured.a.batches;
      comparisons.back()["batch_ns_b"] = compared.measured.b.batches;
    }
  }
  made["warnings"] = results.warnings;
  return dump(made, 2);
}

std::string begin_event(const BenchPlan& plan, const BenchOptions& options,
                        const DeviceIdentity& device) {
  Json made;
  made["event"] = "begin";
  made["schema"] = "loom.bench.v0";
  made["device"] = identity_json(device);
  made["policy"] = policy_json(options);
  made["work_item_count"] = plan.plan.samples.size();
  return dump(made, -1);
}

std::string item_event(const BenchResults& results, uint32_t item) {
  Json made;
  made["event"] = "work_item";
  made.update(item_json(results, item));
  return dump(made, -1);
}

std::string comparison_event(const Compared& compared) {
  Json made;
  made["event"] = "comparison";
  made.update(comparison_json(compared));
  return dump(made, -1);
}

std::string end_event(const BenchResults& results) {
  Json made;
  made["event"] = "end";
  made["summary"] = summary_json(results);
  made["warnings"] = results.warnings;
  return dump(made, -1);
}

std::string plan_text(const BenchPlan& plan) {
  std::string text;
  for (uint32_t i = 0; i < plan.plan.samples.size(); ++i) {
    text += fmt::format("work item {}: {}, for {}\n", i, sample_text(plan, i), names_of(plan, i));
  }
  for (const BenchPlan::Refused& refused : plan.refused) {
    const Case& of = plan.plan.cases[refused.place];
    text += fmt::format("@{}: {}\n", refused.name,
                        of.skipped.empty() ? "cannot be run" : "skipped: " + of.skipped);
  }
  return text;
}

std::string item_text(const BenchResults& results, uint32_t number) {
  const WorkItem& item = results.items[number];
  std::string text =
      fmt::format("{:<32} {}", names_of(*results.plan, number), sample_text(*results.plan, number));
  if (!item.measurement) return fmt::format("{}: {}\n", text, state_name(item.state));
  const Summary summary = item.measurement->summary();
  text +=
      fmt::format(": {} (p10 {}, p90 {}), {} batches of {}, {} input set{}", time_text(summary.p50),
                  time_text(summary.p10), time_text(summary.p90), summary.count,
                  item.measurement->batch_size, item.ring, item.ring == 1 ? "" : "s");
  if (const auto rate = item.gigabytes_per_second()) text += fmt::format(", {:.2f} GB/s", *rate);
  if (const auto rate = item.gigaflops()) text += fmt::format(", {:.2f} GFLOP/s", *rate);
  return text + (item.measurement->capped ? ", capped\n" : "\n");
}

std::string comparison_text(const Compared& compared) {
  const auto& found = compared.measured.difference;
  const std::string sides =
      fmt::format("@{} {}, @{} {}", compared.name_a, time_text(compared.measured.a.summary().p50),
                  compared.name_b, time_text(compared.measured.b.summary().p50));
  if (!found) return fmt::format("{}: too few pairs in the time allowed\n", sides);
  const std::string verdict =
      !found->different
          ? "no difference"
          : fmt::format("@{} is {}", compared.name_b, found->ratio > 1 ? "slower" : "faster");
  return fmt::format("{}: {}; ratio {:.4f}, 99% {:.4f} to {:.4f}, noise floor {:.2f}%, {} pairs\n",
                     sides, verdict, found->ratio, found->low, found->high, found->floor * 100,
                     found->pairs);
}

}  // namespace loom::check
