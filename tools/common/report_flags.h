// The flags that ask for a compile report, and where it goes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/cli.h"
#include "common/link_flags.h"
#include "loom/report/report.h"

namespace loom {

struct ReportFlags {
  std::string form = "none";
  std::string output;  // empty: standard error

  void declare(CLI::App& app);
  bool wanted() const { return form != "none"; }

  // A report with the identity of the source: `linked` as it is before any pass, whose kernel
  // bodies are open, and what the link flags bind.
  Report start(const Module& linked, const LinkFlags& link) const;
  // Puts the steps in front of those that the report's first entry has.
  static void add_steps(const std::vector<std::pair<std::string, double>>& steps, Report& report);
  // Stages the report beside the product, which it appears with; nothing where it goes to standard
  // error. False after a report.
  bool stage(Tool& tool, OutputSet& outputs, const Report& report) const;
  // Prints the report where no file is named.
  void print(const Report& report) const;

 private:
  std::string text(const Report& report) const;
};

}  // namespace loom
