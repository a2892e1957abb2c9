#include "hyperloom/app/opened.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "hyperloom/coordinator/coordinator.h"
#include "hyperloom/core/env_file.h"
#include "hyperloom/core/resources.h"

namespace hyperloom::app {
namespace {

namespace fs = std::filesystem;

fs::path sessions_of(const fs::path& root) { return root / "sessions"; }

// Every way to run a session goes through here; looking at one does not.
Result<void> check_nodes(const Environment& environment) {
  const int64_t nodes = environment.integer("INFERENCE_OPTIMIZER_NODES");
  if (nodes < 2) return {};
  return fail("not_available", fmt::format("a workload on {} nodes", nodes),
              "unset INFERENCE_OPTIMIZER_NODES to run on this machine");
}

}  // namespace

Result<Environment> load_environment() {
  Environment environment = Environment::of_process();
  const auto root = kernel_agent_root(environment);
  if (root) {
    auto with_file = with_env_file(environment, *root / ".env");
    if (!with_file) return with_file;
    environment = std::move(*with_file);
  } else if (environment.has("HYPERLOOM_KERNEL_AGENT_ROOT")) {
    return std::unexpected(root.error());
  }
  if (const auto problems = environment.check(); !problems.empty()) {
    return std::unexpected(problems.front());
  }
  return environment;
}

Result<session::Layout> find_session(const Environment& environment, const std::string& id) {
  const fs::path root = session::data_root(environment);
  if (!id.empty()) {
    auto layout = session::Layout::make(root, id);
    if (layout && !fs::exists(layout->manifest())) {
      return fail("session_not_found",
                  fmt::format("there is no session '{}' in {}", id, sessions_of(root).string()),
                  "start one with 'hyperloom optimize', or set USER_DATA_PATH");
    }
    return layout;
  }
  std::string newest;
  fs::file_time_type newest_time;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(sessions_of(root), error)) {
    const auto time = fs::last_write_time(entry.path() / "manifest.json", error);
    if (error) continue;
    const std::string name = entry.path().filename().string();
    if (newest.empty() || time > newest_time || (time == newest_time && name > newest)) {
      newest = name;
      newest_time = time;
    }
  }
  if (newest.empty()) {
    return fail("session_not_found",
                fmt::format("there is no session in {}", sessions_of(root).string()),
                "start one with 'hyperloom optimize', or set USER_DATA_PATH");
  }
  return session::Layout::make(root, newest);
}

std::string new_session_id(const fs::path& root) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string base = fmt::format("s{:%Y%m%d-%H%M%S}", fmt::gmtime(now));
  std::string id = base;
  for (int i = 2; fs::exists(sessions_of(root) / id); ++i) id = fmt::format("{}-{}", base, i);
  return id;
}

Result<void> Opened::open_stores(const session::Layout& layout) {
  workload_->mark_processes(layout.session.string());
  auto database = bus::Database::open(layout.database(), environment_);
  if (!database) return std::unexpected(database.error());
  auto meter = workload::Meter::open(options_.record, options_.replay);
  if (!meter) return std::unexpected(meter.error());
  meter_.emplace(std::move(*meter));
  bus_.emplace(*database);
  tasks_.emplace(*database);
  lanes_.emplace(*database);
  return {};
}

Result<std::unique_ptr<Opened>> Opened::create(const Environment& environment,
                                               const session::Layout& layout,
                                               std::unique_ptr<workload::Workload> workload,
                                               const coordinator::Options& options) {
  if (auto one = check_nodes(environment); !one) return std::unexpected(one.error());
  std::unique_ptr<Opened> opened(new Opened(environment, options, std::move(workload)));
  auto made = session::Session::create(layout, opened->workload_->describe(),
                                       coordinator::to_json(options));
  if (!made) return std::unexpected(made.error());
  opened->session_.emplace(std::move(*made));
  const Json initial = coordinator::initial_state(*opened->workload_, options, environment);
  auto saved = opened->session_->state().update("initial_state",
                                                [&](Json& state) { state.update(initial); });
  if (!saved) return std::unexpected(saved.error());
  if (auto stores = opened->open_stores(layout); !stores) return std::unexpected(stores.error());
  return opened;
}

Result<std::unique_ptr<Opened>> Opened::resume(const Environment& environment,
                                               const session::Layout& layout) {
  if (auto one = check_nodes(environment); !one) return std::unexpected(one.error());
  auto session = session::Session::resume(layout);
  if (!session) return std::unexpected(session.error());
  auto options = coordinator::options_from(value_of(session->manifest(), "options"));
  if (!options) return std::unexpected(options.error());
  auto workload = workload::open_workload(value_of(session->manifest(), "workload"));
  if (!workload) return std::unexpected(workload.error());
  std::unique_ptr<Opened> opened(new Opened(environment, *options, std::move(*workload)));
  opened->session_.emplace(std::move(*session));
  // A kill may have come between the session and its first fields.
  if (opened->session_->state().get("phase").is_null()) {
    const Json initial = coordinator::initial_state(*opened->workload_, *options, environment);
    auto saved = opened->session_->state().update("initial_state",
                                                  [&](Json& state) { state.update(initial); });
    if (!saved) return std::unexpected(saved.error());
  }
  if (auto stores = opened->open_stores(layout); !stores) return std::unexpected(stores.error());
  return opened;
}

task::Context Opened::context(std::stop_token stop,
                              std::function<void(const task::Progress&)> progress) {
  return {.session = *session_,
          .environment = environment_,
          .workload = *workload_,
          .meter = *meter_,
          .bus = *bus_,
          .lanes = *lanes_,
          .stop = std::move(stop),
          .deadline = Deadline(),
          .progress = std::move(progress),
          .seed = options_.seed};
}

}  // namespace hyperloom::app
