#include "loom/check/sample_runner.h"

#include <fmt/format.h>

#include "loom/check/case_host.h"

namespace loom::check {

std::string_view outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::Passed:
      return "passed";
    case Outcome::Failed:
      return "failed";
    case Outcome::Skipped:
      return "skipped";
    case Outcome::Unplannable:
      break;
  }
  return "unplannable";
}

SampleRunner::SampleRunner(const RunContext& context)
    : context_(context), tables_(*context.module) {}

SampleResult SampleRunner::run(const Case& of, uint64_t ordinal) {
  SampleResult result;
  arena_.reset();
  InterpOptions interp = context_.interp;
  interp.tables = &tables_;
  SampleHost host(context_, interp, of, ordinal, arena_, result);
  host.finish(run_case(*context_.module, of.op, host, interp, result.diagnostics));
  return result;
}

}  // namespace loom::check
