// What there is to run: the cases of a module, their samples, and what stands in the way.
//
//   const Plan plan = make_plan(module, options, traits);
//   for (const Sample& sample : plan.samples) ... plan.cases[sample.place] ...
//
// Planning reads operations and attributes only; nothing is generated, compiled or executed. It
// costs time linear in the operations of the cases.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/check/providers.h"
#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom::check {

// A parameter of a case and the values it takes.
struct Parameter {
  enum class Form : uint8_t { Linear, Doubling, Choice };
  OpId op;
  std::string_view name;  // of its clause, or else of its value; may be empty
  Form form = Form::Linear;
  bool is_seed = false;
  int64_t first = 0;
  uint64_t step = 1;                // Linear
  std::span<const int64_t> values;  // Choice
  uint64_t count = 0;               // 0: more than 64 bits hold

  int64_t value(uint64_t place) const;
};

struct Case {
  OpId op;
  std::string_view name;              // without '@'
  std::vector<Parameter> parameters;  // in the order of the text
  uint64_t samples = 1;               // the product of the counts
  std::string skipped;                // why; empty where it runs
  std::vector<Diagnostic> issues;     // why it cannot be run; none where it can
  std::vector<OpId> kernels;          // that it launches, each once

  // The place of each parameter's value at a sample; the last parameter is the fastest.
  void decode(uint64_t ordinal, std::vector<uint64_t>& places) const;
  // "n=100, seed=7"; empty without parameters.
  std::string parameters_text(uint64_t ordinal) const;
};

struct Sample {
  uint32_t place = 0;    // of the case in the plan
  uint64_t ordinal = 0;  // in its case
};

struct PlanOptions {
  std::vector<std::string> cases;  // without '@'; none: all of them
  std::optional<uint64_t> sample;  // that one of each case only
  std::optional<uint64_t> most;    // samples of a case, the first ones
};

struct Plan {
  std::vector<Case> cases;      // the chosen ones, in module order
  std::vector<Sample> samples;  // of cases that can be run and are not skipped
};

// Without --sample or a limit a case may have so many samples.
inline constexpr uint64_t kMostSamples = uint64_t{1} << 20;

// Issues of cases are CHECK/002. Names in `options.cases` that are no cases are passed over.
Plan make_plan(const Module& module, const PlanOptions& options, const DeviceTraits& device);

// Names of all cases, in module order.
std::vector<std::string_view> case_names(const Module& module);

}  // namespace loom::check
