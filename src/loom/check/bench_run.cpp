#include "loom/check/bench_run.h"

#include <utility>

#include "loom/dialect/op_kind.h"

namespace loom::check {
namespace {

std::optional<double> rate(uint64_t work, const std::optional<Measurement>& measurement) {
  if (work == 0 || !measurement || measurement->batches.empty()) return std::nullopt;
  return static_cast<double>(work) / measurement->summary().p50;  // a nanosecond's is 1e9 a second
}

}  // namespace

std::optional<double> WorkItem::gigabytes_per_second() const {
  return rate(work[static_cast<size_t>(WorkUnit::Bytes)], measurement);
}

std::optional<double> WorkItem::gigaflops() const {
  return rate(work[static_cast<size_t>(WorkUnit::Flops)], measurement);
}

std::string_view state_name(WorkItem::State state) {
  switch (state) {
    case WorkItem::State::Planned:
      return "planned";
    case WorkItem::State::Passed:
      return "passed";
    case WorkItem::State::Measured:
      return "measured";
    case WorkItem::State::Failed:
      return "failed";
    case WorkItem::State::Unplannable:
      break;
  }
  return "unplannable";
}

BenchRun::BenchRun(const Module& module, const BenchPlan& plan, CpuLauncher* launcher,
                   const BenchOptions& options)
    : module_(module),
      plan_(plan),
      launcher_(launcher),
      options_(options),
      context_(run_context(module, options.test, launcher)) {
  results_.plan = &plan;
  results_.items.resize(plan.plan.samples.size());
}

bool BenchRun::check(std::string& problem) {
  // Only what can be run is given to workers.
  Plan runnable;
  runnable.cases = plan_.plan.cases;
  std::vector<uint32_t> item_of;
  for (uint32_t i = 0; i < plan_.plan.samples.size(); ++i) {
    const Sample& sample = plan_.plan.samples[i];
    const Case& of = plan_.plan.cases[sample.place];
    if (of.issues.empty()) {
      runnable.samples.push_back(sample);
      item_of.push_back(i);
      continue;
    }
    results_.items[i].state = WorkItem::State::Unplannable;
    for (const Diagnostic& issue : of.issues) {
      results_.items[i].issues.push_back(render_issue(issue, module_.files()));
    }
  }
  const auto done = [&](size_t number, SampleReport&& report) {
    WorkItem& item = results_.items[item_of[number]];
    item.issues = std::move(report.issues);
    item.state = report.outcome == Outcome::Passed        ? WorkItem::State::Passed
                 : report.outcome == Outcome::Unplannable ? WorkItem::State::Unplannable
                                                          : WorkItem::State::Failed;
  };
  return run_samples(runnable, context_, options_.test.workers, done, problem);
}

std::unique_ptr<TimedWork> BenchRun::work(uint32_t item, const TimedWork* like,
                                          Diagnostics& diagnostics) {
  const Sample& sample = plan_.plan.samples[item];
  auto made = make_timed_work(context_, launcher_, plan_.plan.cases[sample.place], sample.ordinal,
                              options_.work, like, diagnostics);
  if (made) {
    results_.items[item].ring = made->ring;
    results_.items[item].set_bytes = made->set_bytes;
  }
  return made;
}

void BenchRun::fail(uint32_t item, const Diagnostics& diagnostics) {
  results_.items[item].state = WorkItem::State::Failed;
  for (const Diagnostic& issue : diagnostics.all()) {
    results_.items[item].issues.push_back(render_issue(issue, module_.files()));
  }
}

void BenchRun::time(uint32_t item) {
  Diagnostics diagnostics;
  const auto timed = work(item, nullptr, diagnostics);
  auto measured = timed ? measure(*timed, options_.measure, diagnostics) : std::nullopt;
  if (!measured) return fail(item, diagnostics);
  results_.items[item].state = WorkItem::State::Measured;
  results_.items[item].work = timed->work;
  if (options_.profile_final_batch) {
    std::vector<ProfiledDispatch> dispatches;
    timed->restore();
    if (!timed->profile(measured->batch_size, dispatches, diagnostics)) {
      return fail(item, diagnostics);
    }
    results_.items[item].profile = chrome_trace(dispatches);
  }
  results_.items[item].measurement = std::move(*measured);
}

bool BenchRun::compare(uint32_t a, uint32_t b, std::string name_a, std::string name_b) {
  Diagnostics diagnostics;
  const auto first = work(a, nullptr, diagnostics);
  const auto second = first ? work(b, first.get(), diagnostics) : nullptr;
  auto measured =
      second ? measure_both(*first, *second, options_.measure, diagnostics) : std::nullopt;
  if (!measured) {
    fail(first ? b : a, diagnostics);
    return false;
  }
  results_.comparisons.push_back(
      {a, b, std::move(name_a), std::move(name_b), std::move(*measured)});
  return true;
}

}  // namespace loom::check
