#include "hyperloom/session/state.h"

#include <fmt/format.h>

#include <mutex>

#include "hyperloom/core/durable.h"
#include "hyperloom/core/fault.h"
#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace hyperloom::session {
namespace {

// The fields that are there from the start, and their types ever after.
const Json& initial_fields() {
  static const Json fields = {
      {"baseline_tput", 0.0},
      {"collective_attempts", Json::array()},
      {"collective_only_mode", false},
      {"current_best", Json::object()},
      {"gain_ledger", Json::array()},
      {"gain_per_stack_entry", Json::array()},
      {"kernel_enabled", true},
      {"kernel_integrate_attempts", Json::object()},
      {"kernel_opt_task_attempts", Json::object()},
      {"last_action_failures", Json::array()},
      {"lifecycle_events", Json::array()},
      {"optimization_stack", Json::array()},
      {"pending_kernel_integrations", Json::object()},
      {"policy_denial_history", Json::array()},
      {"policy_denial_streaks", Json::object()},
      {"rejected_kernel_ids", Json::array()},
      {"rejected_kernel_patches", Json::object()},
      {"roofline_snapshots", Json::array()},
  };
  return fields;
}

bool same_kind(const Json& a, const Json& b) {
  return a.type() == b.type() || (a.is_number() && b.is_number());
}

}  // namespace

Result<Json> parse_state(std::string_view text, const std::string& name) {
  auto document = parse_json(text, name);
  if (!document) return document;
  if (!document->is_object()) return fail("invalid_state", name + ": is not a JSON object");
  const Json& version = value_of(*document, "schema_version");
  if (version != SharedState::kSchemaVersion) {
    return fail(
        "unknown_schema_version",
        fmt::format("{}: schema_version is {}, and this program reads {}", name,
                    version.is_null() ? "missing" : compact(version), SharedState::kSchemaVersion),
        "use the program that wrote the session");
  }
  if (!value_of(*document, "revision").is_number_unsigned()) {
    return fail("invalid_state", name + ": 'revision' is not a count");
  }
  for (const auto& [field, initial] : initial_fields().items()) {
    const Json& value = value_of(*document, field);
    if (value.is_null()) {
      (*document)[field] = initial;
    } else if (!same_kind(value, initial)) {
      return fail("invalid_state", fmt::format("{}: '{}' is a {}, not a {}", name, field,
                                               value.type_name(), initial.type_name()));
    }
  }
  return document;
}

struct SharedState::Impl {
  std::filesystem::path path;
  mutable std::mutex mutex;
  Json document;
  uint64_t written_hash = 0;  // of the file's bytes, as last read or written here

  uint64_t revision() const { return document.at("revision").get<uint64_t>(); }
};

SharedState::SharedState(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SharedState::SharedState(SharedState&&) noexcept = default;
SharedState& SharedState::operator=(SharedState&&) noexcept = default;
SharedState::~SharedState() = default;

Result<SharedState> SharedState::create(std::filesystem::path path, Json initial) {
  std::error_code error;
  if (std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    return fail("state_exists", path.string() + ": is there already");
  }
  auto impl = std::make_unique<Impl>();
  impl->document = initial_fields();
  if (initial.is_object()) impl->document.update(initial);
  impl->document["schema_version"] = kSchemaVersion;
  impl->document["revision"] = uint64_t{0};
  const std::string text = pretty(impl->document);
  fault_point("state.create");
  if (auto written = write_durable(path, text); !written) return std::unexpected(written.error());
  impl->written_hash = loom::hash_bytes(text);
  impl->path = std::move(path);
  return SharedState(std::move(impl));
}

Result<SharedState> SharedState::load(std::filesystem::path path) {
  auto text = loom::read_file(path.string());
  if (!text) {
    return fail("unreadable_file", fmt::format("{}: {}", path.string(), text.error().reason));
  }
  auto document = parse_state(*text, path.string());
  if (!document) return std::unexpected(document.error());
  auto impl = std::make_unique<Impl>();
  impl->document = std::move(*document);
  impl->written_hash = loom::hash_bytes(*text);
  impl->path = std::move(path);
  return SharedState(std::move(impl));
}

Result<void> SharedState::update(std::string_view step, const std::function<void(Json&)>& change) {
  const std::lock_guard lock(impl_->mutex);
  Json changed = impl_->document;
  change(changed);
  changed["schema_version"] = kSchemaVersion;
  changed["revision"] = impl_->revision() + 1;
  const std::string name = impl_->path.string();
  const auto on_disk = loom::read_file(name);
  if (!on_disk || loom::hash_bytes(*on_disk) != impl_->written_hash) {
    return fail(
        "state_conflict",
        fmt::format("{}: is not revision {} as it was written here", name, impl_->revision()),
        "let nothing else write the file while the session runs, then resume the session");
  }
  const std::string text = pretty(changed);
  fault_point(step);
  auto written = write_durable(impl_->path, text);
  if (!written) {
    // Where only the folder could not be synced the new content is there, and memory follows it.
    const auto now = loom::read_file(name);
    if (!now || *now != text) return written;
  }
  impl_->document = std::move(changed);
  impl_->written_hash = loom::hash_bytes(text);
  return written;
}

void SharedState::read(const std::function<void(const Json&)>& look) const {
  const std::lock_guard lock(impl_->mutex);
  look(impl_->document);
}

Json SharedState::get(std::string_view field) const {
  const std::lock_guard lock(impl_->mutex);
  return value_of(impl_->document, field);
}

uint64_t SharedState::revision() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->revision();
}

}  // namespace hyperloom::session
