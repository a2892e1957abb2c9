// Everything that a session is made of, opened in the right order and closed in reverse.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "hyperloom/bus/bus.h"
#include "hyperloom/bus/lanes.h"
#include "hyperloom/bus/tasks.h"
#include "hyperloom/coordinator/options.h"
#include "hyperloom/session/session.h"
#include "hyperloom/task/context.h"
#include "hyperloom/workload/meter.h"
#include "hyperloom/workload/workload.h"

namespace hyperloom::app {

// The environment of the process, with the .env beside the shipped template below it. Errors:
// those of with_env_file, and the first variable that has an unusable value.
Result<Environment> load_environment();

// The session that `id` names below the data root; the newest one when it is empty. Errors:
// "session_not_found", "invalid_session_id".
Result<session::Layout> find_session(const Environment& environment, const std::string& id);
// A fresh id: "s" and the time, with a number behind it where that is taken.
std::string new_session_id(const session::fs::path& root);

// Move-only. The context lends from it and lives no longer.
class Opened {
 public:
  // A new session of a workload. Errors: those of the parts.
  static Result<std::unique_ptr<Opened>> create(const Environment& environment,
                                                const session::Layout& layout,
                                                std::unique_ptr<workload::Workload> workload,
                                                const coordinator::Options& options);
  // One that create() made, with its own workload and options.
  static Result<std::unique_ptr<Opened>> resume(const Environment& environment,
                                                const session::Layout& layout);

  task::Context context(std::stop_token stop, std::function<void(const task::Progress&)> progress);
  const coordinator::Options& options() const { return options_; }
  session::Session& session() { return *session_; }
  bus::Tasks& tasks() { return *tasks_; }

 private:
  Opened(const Environment& environment, coordinator::Options options,
         std::unique_ptr<workload::Workload> workload)
      : environment_(environment), options_(std::move(options)), workload_(std::move(workload)) {}
  Result<void> open_stores(const session::Layout& layout);

  Environment environment_;
  coordinator::Options options_;
  std::unique_ptr<workload::Workload> workload_;
  std::optional<session::Session> session_;
  std::optional<workload::Meter> meter_;
  std::optional<bus::Bus> bus_;
  std::optional<bus::Tasks> tasks_;
  std::optional<bus::Lanes> lanes_;
};

}  // namespace hyperloom::app
