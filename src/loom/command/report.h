// Compile reports of command programs.
#pragma once

#include "loom/command/plan.h"
#include "loom/report/report.h"

namespace loom {

// Adds an entry for the whole plan and one for each program.
void report_plan(const PreparedPlan& plan, Report& report);

}  // namespace loom
