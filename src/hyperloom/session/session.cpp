#include "hyperloom/session/session.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>

#include "hyperloom/core/durable.h"
#include "hyperloom/core/fault.h"
#include "hyperloom/core/time.h"
#include "hyperloom/session/decision_log.h"
#include "hyperloom/session/lock.h"
#include "loom/base/file.h"

namespace hyperloom::session {
namespace {

constexpr int kManifestVersion = 1;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

Result<Json> read_manifest(const Layout& layout) {
  const fs::path path = layout.manifest();
  if (!is_there(path)) {
    return fail("session_not_found", fmt::format("{}: holds no session", layout.session.string()),
                "start one with 'hyperloom optimize'");
  }
  auto text = loom::read_file(path.string());
  if (!text) {
    return fail("unreadable_file", fmt::format("{}: {}", path.string(), text.error().reason));
  }
  auto manifest = parse_manifest(*text, path.string());
  if (manifest && text_of(*manifest, "session_id") != layout.id) {
    return fail("invalid_manifest",
                fmt::format("{}: is of session '{}', not of '{}'", path.string(),
                            text_of(*manifest, "session_id"), layout.id));
  }
  return manifest;
}

// What a kill between staging and renaming leaves behind: "<name>.<pid>.<n>.tmp".
void remove_staged(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool ours = name.starts_with("state.json.") || name.starts_with("manifest.json.") ||
                      name.starts_with("decisions.jsonl.");
    if (ours && name.ends_with(".tmp")) fs::remove(entry.path(), error);
  }
}

}  // namespace

Result<Json> parse_manifest(std::string_view text, const std::string& name) {
  auto manifest = parse_json(text, name);
  if (!manifest) return manifest;
  if (!manifest->is_object()) return fail("invalid_manifest", name + ": is not a JSON object");
  const Json& version = value_of(*manifest, "schema_version");
  if (version != kManifestVersion) {
    return fail("unknown_schema_version",
                fmt::format("{}: schema_version is {}, and this program reads {}", name,
                            version.is_null() ? "missing" : compact(version), kManifestVersion),
                "use the program that wrote the session");
  }
  for (const char* field : {"session_id", "created_at", "version"}) {
    if (!value_of(*manifest, field).is_string()) {
      return fail("invalid_manifest", fmt::format("{}: '{}' is not a text", name, field));
    }
  }
  for (const char* field : {"workload", "options"}) {
    if (!value_of(*manifest, field).is_object()) {
      return fail("invalid_manifest", fmt::format("{}: '{}' is not an object", name, field));
    }
  }
  return manifest;
}

struct Session::Impl {
  Layout layout;
  std::mutex mutex;  // of lock and log
  Lock lock;
  Json manifest;
  std::optional<SharedState> state;
  std::optional<DecisionLog> log;

  Impl(Layout at, Lock taken) : layout(std::move(at)), lock(std::move(taken)) {}
};

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Session> Session::create(const Layout& layout, const Json& workload, const Json& options) {
  for (const fs::path& folder : {layout.session, layout.session / "storage", layout.reports()}) {
    if (auto made = make_folder(folder); !made) return std::unexpected(made.error());
  }
  auto lock = Lock::take(layout.lock());
  if (!lock) return std::unexpected(lock.error());
  if (is_there(layout.manifest())) {
    return fail("session_exists",
                fmt::format("{}: holds a session already", layout.session.string()),
                "go on with 'hyperloom resume', or choose another name");
  }
  // The manifest is written last and makes the session; what is here without one is the rest of a
  // start that was killed.
  remove_staged(layout.session);
  std::error_code error;
  for (const fs::path& rest : {layout.state(), layout.decision_log()}) fs::remove(rest, error);
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    fs::remove(layout.database().string() + suffix, error);
  }
  auto impl = std::make_unique<Impl>(layout, std::move(*lock));
  auto state = SharedState::create(layout.state(), Json::object());
  if (!state) return std::unexpected(state.error());
  impl->state.emplace(std::move(*state));
  auto log = DecisionLog::open(layout.decision_log());
  if (!log) return std::unexpected(log.error());
  impl->log.emplace(std::move(*log));
  impl->manifest = {{"schema_version", kManifestVersion},
                    {"session_id", layout.id},
                    {"created_at", utc_now()},
                    {"workload", workload},
                    {"options", options},
                    {"version", HYPERLOOM_VERSION}};
  fault_point("session.create");
  if (auto written = write_json(layout.manifest(), impl->manifest); !written) {
    return std::unexpected(written.error());
  }
  return Session(std::move(impl));
}

Result<Session> Session::resume(const Layout& layout) {
  if (auto manifest = read_manifest(layout); !manifest) return std::unexpected(manifest.error());
  auto lock = Lock::take(layout.lock());
  if (!lock) return std::unexpected(lock.error());
  remove_staged(layout.session);
  auto impl = std::make_unique<Impl>(layout, std::move(*lock));
  auto manifest = read_manifest(layout);
  if (!manifest) return std::unexpected(manifest.error());
  impl->manifest = std::move(*manifest);
  auto state = SharedState::load(layout.state());
  if (!state) return std::unexpected(state.error());
  impl->state.emplace(std::move(*state));
  auto log = DecisionLog::open(layout.decision_log());
  if (!log) return std::unexpected(log.error());
  impl->log.emplace(std::move(*log));
  return Session(std::move(impl));
}

Result<Session::View> Session::look(const Layout& layout) {
  View view;
  auto manifest = read_manifest(layout);
  if (!manifest) return std::unexpected(manifest.error());
  view.manifest = std::move(*manifest);
  const std::string path = layout.state().string();
  auto text = loom::read_file(path);
  if (!text) return fail("unreadable_file", fmt::format("{}: {}", path, text.error().reason));
  auto state = parse_state(*text, path);
  if (!state) return std::unexpected(state.error());
  view.state = std::move(*state);
  view.running = Lock::is_held(layout.lock(), view.owner);
  return view;
}

const Layout& Session::layout() const { return impl_->layout; }
const Json& Session::manifest() const { return impl_->manifest; }
SharedState& Session::state() { return *impl_->state; }

void Session::heartbeat() {
  const std::lock_guard guard(impl_->mutex);
  impl_->lock.heartbeat();
}

Result<void> Session::log_decision(const std::string& key, Json row) {
  const std::lock_guard guard(impl_->mutex);
  return impl_->log->append(key, std::move(row));
}

}  // namespace hyperloom::session
