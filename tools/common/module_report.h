// What the passes made of a module, for its compile report.
#pragma once

#include <span>
#include <string_view>

#include "loom/pass/pass_context.h"
#include "loom/pass/runner.h"
#include "loom/report/report.h"

namespace loom {

// Adds an entry for the whole, whose printed form is `text`, with the passes that ran, and one for
// each kernel and function that `loops` says something of, in their order.
void report_module(const Module& module, std::string_view text, std::span<const PassTiming> passes,
                   std::span<const LoopNote> loops, Report& report);

}  // namespace loom
