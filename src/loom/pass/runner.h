// Runs passes by name, with timing, verification and printing after each.
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/pass/pass_context.h"

namespace loom {

struct PassInfo {
  std::string_view name;  // also its file, its flag value and its test
  bool (*run)(PassContext& context, OpId root);
  std::string_view doc;
};
// All passes, in table order (passes.def).
std::span<const PassInfo> all_passes();
const PassInfo* find_pass(std::string_view name);
// What a module goes through where nothing else is asked for.
std::span<const std::string_view> default_pipeline();

struct PassTiming {
  std::string name;
  std::chrono::nanoseconds time{};
  uint64_t runs = 0;
};

// One runner serves one compilation; steps may be passes or a caller's own named phases.
class PassRunner {
 public:
  struct Options {
    // Checks the root after each step; false stops the run (it has reported why).
    std::function<bool(const Module&, OpId root, Diagnostics&)> verify;
    // Called after each step whose name is in `print_after` ("all" means every one).
    std::function<void(std::string_view step, const Module&, OpId root)> print;
    std::vector<std::string> print_after;
    std::vector<std::string> disabled;  // steps that are skipped
    std::string stop_after;             // later steps are skipped
    bool time = false;
  };
  explicit PassRunner(Options options) : options_(std::move(options)) {}
  PassRunner() = default;

  // Runs the named passes in order and stops at the first failure. Names must exist.
  bool run(PassContext& context, OpId root, std::initializer_list<std::string_view> passes);
  // The same over every root of the module that has a body, pass by pass.
  bool run_module(PassContext& context, std::span<const std::string> passes);
  // Runs `body` as the step `name`. An invalid root means the whole module.
  bool step(std::string_view name, PassContext& context, OpId root,
            const std::function<bool()>& body);

  // Whether `stop_after` was reached.
  bool stopped() const { return stopped_; }
  // One row per step name, in first-run order; empty unless `time` is set.
  const std::vector<PassTiming>& timings() const { return timings_; }
  // "  12.345 ms   3x  canonicalize" lines, ending with a total.
  std::string timing_text() const;

 private:
  Options options_;
  std::vector<PassTiming> timings_;
  bool stopped_ = false;
};

}  // namespace loom
