// What the subcommands of `hyperloom` do. Each prints to standard output what was asked for,
// reports on standard error, and returns the exit status: 0 success, 1 failure, 3 something is
// missing here.
#pragma once

#include <string>

#include "hyperloom/coordinator/options.h"
#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"

namespace hyperloom::app {

// How to speak: text for people, or one JSON object a line.
struct Voice {
  bool json = false;
  bool progress = true;
};

// "hyperloom: error[class]: message" and the hint, or the same as JSON.
int report_error(const Error& error, const Voice& voice);

struct OptimizeRequest {
  Json workload;           // a description, as workload::open_workload() takes it
  std::string session_id;  // empty: a fresh one
  coordinator::Options options;
  bool dry_run = false;  // says what would be done; writes nothing
  std::string report;    // file for a copy of the report, .md or .json; empty: none
};
int optimize(const Environment& environment, const OptimizeRequest& request, const Voice& voice);
int resume(const Environment& environment, const std::string& session_id, const std::string& report,
           const Voice& voice);
int status(const Environment& environment, const std::string& session_id, const Voice& voice);
// `format`: markdown, json, flags (the kept configuration as flags of the other programs) or
// workload (a workload file with the kept configuration bound).
int show_report(const Environment& environment, const std::string& session_id,
                const std::string& format, const std::string& output, const Voice& voice);
int request(const Environment& environment, const std::string& session_id, const std::string& kind,
            const Json& params, const Voice& voice);

// Writes the sources that a session kept as one unified diff; "-" is standard output. Says on
// standard error what a diff of sources cannot hold: kept configuration, and that nothing was kept.
int patch_export(const Environment& environment, const std::string& session_id,
                 const std::string& output, const Voice& voice);
// Takes everything back that a session kept.
int patch_undo(const Environment& environment, const std::string& session_id, const Voice& voice);
int patch_apply(const Json& options, const Voice& voice);
int patch_revert(const Json& options, const Voice& voice);

}  // namespace hyperloom::app
