#include "loom/pass/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/base/check.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/pass/canonicalize.h"
#include "loom/pass/contracts.h"
#include "loom/pass/cse.h"
#include "loom/pass/dce.h"
#include "loom/pass/inline.h"
#include "loom/pass/licm.h"
#include "loom/pass/pipeline.h"
#include "loom/pass/select_templates.h"
#include "loom/pass/unroll.h"

namespace loom {
namespace {

bool inline_default(PassContext& context, OpId root) {
  return inline_calls(context, root, {.policy = true});
}
bool select_final(PassContext& context, OpId root) { return select_templates(context, root); }
bool select_early(PassContext& context, OpId root) {
  return select_templates(context, root, {.final = false, .target = {}, .format = {}});
}
bool unroll_default(PassContext& context, OpId root) { return unroll(context, root); }

constexpr PassInfo kPasses[] = {
#define LOOM_PASS(name, run, doc) {name, run, doc},
#include "loom/pass/passes.def"
};

// Families are replaced where their arguments decide, whatever the target is; the rest stays for
// the compilation for one. Exact loops are expanded between two rounds of folding, so that each
// sees what the other found. What stays a loop is pipelined as it comes out of that.
constexpr std::string_view kDefaultPipeline[] = {
    "contracts", "select-templates-early", "inline", "canonicalize", "cse", "unroll",
    "pipeline",  "canonicalize",           "licm",   "cse",          "dce"};

bool names(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

}  // namespace

std::span<const std::string_view> default_pipeline() { return kDefaultPipeline; }

std::span<const PassInfo> all_passes() { return kPasses; }

const PassInfo* find_pass(std::string_view name) {
  const auto* const found = std::ranges::find(kPasses, name, &PassInfo::name);
  return found == std::end(kPasses) ? nullptr : found;
}

bool PassRunner::run(PassContext& context, OpId root,
                     std::initializer_list<std::string_view> passes) {
  for (std::string_view name : passes) {
    const PassInfo* pass = find_pass(name);
    LOOM_CHECK(pass != nullptr, "a pipeline names an unknown pass");
    if (!step(name, context, root, [&] { return pass->run(context, root); })) return false;
  }
  return true;
}

bool PassRunner::run_module(PassContext& context, std::span<const std::string> passes) {
  const Module& module = context.module();
  std::vector<OpId> roots;
  for_each_op(module, module.body(), [&](OpId op) {
    const Op& symbol = module.op(op);
    const OpInfo& info = op_info(symbol.kind);
    for (unsigned i = 0; i < symbol.region_count; ++i) {
      if (!info.regions[i].isolated) continue;
      roots.push_back(op);
      return;
    }
  });
  for (const std::string& name : passes) {
    const PassInfo* pass = find_pass(name);
    LOOM_CHECK(pass != nullptr, "a pipeline names an unknown pass");
    const bool ok = step(name, context, OpId(), [&] {
      return std::ranges::all_of(roots, [&](OpId root) { return pass->run(context, root); });
    });
    if (!ok) return false;
  }
  return true;
}

bool PassRunner::step(std::string_view name, PassContext& context, OpId root,
                      const std::function<bool()>& body) {
  if (stopped_ || names(options_.disabled, name)) return true;
  stopped_ = name == options_.stop_after;
  const auto begin = std::chrono::steady_clock::now();
  const bool ok = body();
  if (options_.time) {
    auto row = std::ranges::find(timings_, name, &PassTiming::name);
    if (row == timings_.end()) row = timings_.insert(row, {std::string(name)});
    row->time += std::chrono::steady_clock::now() - begin;
    ++row->runs;
  }
  if (!ok) return false;
  if (options_.verify && !options_.verify(context.module(), root, context.diagnostics())) {
    return false;
  }
  const bool print = names(options_.print_after, name) || names(options_.print_after, "all");
  if (options_.print && print) options_.print(name, context.module(), root);
  return true;
}

std::string PassRunner::timing_text() const {
  std::string text;
  std::chrono::nanoseconds total{};
  const auto line = [&](std::chrono::nanoseconds time, uint64_t runs, std::string_view name) {
    const std::chrono::duration<double, std::milli> ms = time;
    text += fmt::format("{:>10.3f} ms  {:>3}x  {}\n", ms.count(), runs, name);
  };
  uint64_t runs = 0;
  for (const PassTiming& timing : timings_) {
    line(timing.time, timing.runs, timing.name);
    total += timing.time;
    runs += timing.runs;
  }
  line(total, runs, "total");
  return text;
}

}  // namespace loom
