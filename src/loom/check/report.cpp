#include "loom/check/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace loom::check {
namespace {

using Json = nlohmann::ordered_json;

Json issue_json(const RenderedIssue& issue) { return Json::parse(issue.json, nullptr, false); }

std::string plural(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

Json parameters_json(const Case& of, uint64_t ordinal) {
  std::vector<uint64_t> places;
  of.decode(ordinal, places);
  Json made = Json::object();
  for (size_t i = 0; i < of.parameters.size(); ++i) {
    const std::string name =
        of.parameters[i].name.empty() ? fmt::format("#{}", i) : std::string(of.parameters[i].name);
    made[name] = of.parameters[i].value(places[i]);
  }
  return made;
}

// Characters that XML does not take are left out.
std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out.push_back(c);
    }
  }
  return out;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string junit_case(std::string_view of, std::string_view name, double seconds,
                       std::string_view element, std::string_view message,
                       std::string_view content) {
  std::string out = fmt::format("    <testcase classname=\"{}\" name=\"{}\" time=\"{:.6f}\"",
                                xml_text(of), xml_text(name), seconds);
  if (element.empty()) return out + "/>\n";
  out += fmt::format(">\n      <{} message=\"{}\">{}</{}>\n    </testcase>\n", element,
                     xml_text(message), xml_text(content), element);
  return out;
}

std::string all_text(const std::vector<RenderedIssue>& issues) {
  std::string text;
  for (const RenderedIssue& issue : issues) text += issue.text;
  return text;
}

}  // namespace

TestResults::Counts TestResults::counts() const {
  Counts made;
  made.cases = plan->cases.size();
  made.samples = samples.size();
  for (const SampleReport& sample : samples) {
    made.passed += sample.outcome == Outcome::Passed ? 1 : 0;
    made.failed += sample.outcome == Outcome::Failed ? 1 : 0;
    made.unplannable_samples += sample.outcome == Outcome::Unplannable ? 1 : 0;
  }
  for (const Case& of : plan->cases) {
    made.unplannable_cases += of.issues.empty() ? 0 : 1;
    made.skipped_cases += of.issues.empty() && !of.skipped.empty() ? 1 : 0;
  }
  return made;
}

std::string summary_text(const TestResults& results) {
  const TestResults::Counts counts = results.counts();
  std::string unplannable = "nothing unplannable";
  if (counts.unplannable_cases + counts.unplannable_samples != 0) {
    unplannable = fmt::format("{} and {} unplannable", plural(counts.unplannable_cases, "case"),
                              plural(counts.unplannable_samples, "sample"));
  }
  return fmt::format("{}, {} on {}: {} passed, {} failed, {} skipped, {}\n",
                     plural(counts.cases, "case"), plural(counts.samples, "sample"), results.device,
                     counts.passed, counts.failed, plural(counts.skipped_cases, "case"),
                     unplannable);
}

std::string test_json(const TestResults& results) {
  const TestResults::Counts counts = results.counts();
  Json made;
  made["schema"] = "loom.test.v0";
  made["device"] = results.device;
  made["case_count"] = counts.cases;
  made["sample_count"] = counts.samples;
  made["passed_sample_count"] = counts.passed;
  made["failed_sample_count"] = counts.failed;
  made["skipped_case_count"] = counts.skipped_cases;
  made["planning_issue_count"] = counts.unplannable_cases + counts.unplannable_samples;
  made["seconds"] = results.seconds;
  Json& samples = made["samples"] = Json::array();
  for (size_t i = 0; i < results.samples.size(); ++i) {
    const Sample& at = results.plan->samples[i];
    const Case& of = results.plan->cases[at.place];
    const SampleReport& report = results.samples[i];
    Json sample;
    sample["case"] = of.name;
    sample["sample_ordinal"] = at.ordinal;
    sample["parameters"] = parameters_json(of, at.ordinal);
    sample["outcome"] = outcome_name(report.outcome);
    sample["passed"] = report.outcome == Outcome::Passed;
    sample["seconds"] = report.seconds;
    sample["issues"] = Json::array();
    for (const RenderedIssue& issue : report.issues) sample["issues"].push_back(issue_json(issue));
    samples.push_back(std::move(sample));
  }
  Json& skipped = made["skipped_cases"] = Json::array();
  Json& issues = made["planning_issues"] = Json::array();
  for (size_t i = 0; i < results.plan->cases.size(); ++i) {
    const Case& of = results.plan->cases[i];
    for (const RenderedIssue& issue : results.issues[i]) {
      issues.push_back({{"case", of.name}, {"issue", issue_json(issue)}});
    }
    if (of.issues.empty() && !of.skipped.empty()) {
      skipped.push_back({{"case", of.name}, {"reason", of.skipped}});
    }
  }
  return made.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string test_junit(const TestResults& results, const std::string& suite) {
  const TestResults::Counts counts = results.counts();
  const uint64_t errors = counts.unplannable_cases + counts.unplannable_samples;
  const uint64_t tests = counts.samples + counts.unplannable_cases + counts.skipped_cases;
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  out += fmt::format(
      "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" "
      "time=\"{:.6f}\">\n",
      xml_text(suite), tests, counts.failed, errors, counts.skipped_cases, results.seconds);
  for (size_t i = 0; i < results.samples.size(); ++i) {
    const Sample& at = results.plan->samples[i];
    const Case& of = results.plan->cases[at.place];
    const SampleReport& report = results.samples[i];
    const bool passed = report.outcome == Outcome::Passed;
    const std::string parameters = of.parameters_text(at.ordinal);
    out += junit_case(
        of.name,
        fmt::format("sample {}{}", at.ordinal, parameters.empty() ? "" : ": " + parameters),
        report.seconds, passed ? "" : (report.outcome == Outcome::Failed ? "failure" : "error"),
        report.issues.empty() ? "" : first_line(report.issues[0].text), all_text(report.issues));
  }
  for (size_t i = 0; i < results.plan->cases.size(); ++i) {
    const Case& of = results.plan->cases[i];
    if (!of.issues.empty()) {
      out += junit_case(of.name, "planning", 0, "error", first_line(results.issues[i][0].text),
                        all_text(results.issues[i]));
    } else if (!of.skipped.empty()) {
      out += junit_case(of.name, "planning", 0, "skipped", of.skipped, "");
    }
  }
  return out + "  </testsuite>\n</testsuites>\n";
}

}  // namespace loom::check
