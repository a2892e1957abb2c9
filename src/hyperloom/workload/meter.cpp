#include "hyperloom/workload/meter.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include "hyperloom/core/fault.h"
#include "loom/base/file.h"

namespace hyperloom::workload {
namespace {

// {"key", "value"} or {"key", "error": {"error_class", "message", "hint"}}.
Json row_of(const std::string& key, const Result<Json>& value) {
  if (value) return {{"key", key}, {"value", *value}};
  return {{"key", key},
          {"error",
           {{"error_class", value.error().error_class},
            {"message", value.error().message},
            {"hint", value.error().hint}}}};
}

Result<Json> value_in(const Json& row) {
  if (row.contains("value")) return row["value"];
  const Json& error = value_of(row, "error");
  return fail(text_of(error, "error_class"), text_of(error, "message"), text_of(error, "hint"));
}

bool is_row(const Json& row) {
  return row.is_object() && value_of(row, "key").is_string() &&
         (row.contains("value") || value_of(row, "error").is_object());
}

// A stop is no measurement: recorded, it would stop every later run.
bool is_recorded(const Result<Json>& value) {
  return value || value.error().error_class != "cancelled";
}

}  // namespace

struct Meter::Impl {
  std::mutex mutex;
  std::map<std::string, Json> known;
  std::string path;
  int file = -1;

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (file >= 0) close(file);
  }
  Result<void> read(const std::filesystem::path& replay);
  Result<void> open(const std::filesystem::path& record);
  Result<void> append(const Json& row) const;
};

Result<void> Meter::Impl::read(const std::filesystem::path& replay) {
  const auto text = loom::read_file(replay.string());
  if (!text) {
    return fail("unreadable_file",
                fmt::format("cannot read '{}': {}", replay.string(), text.error().reason));
  }
  size_t number = 0;
  for (size_t at = 0; at < text->size();) {
    const size_t end = text->find('\n', at);
    // A line without an end is one that a kill cut off.
    if (end == std::string::npos) break;
    const std::string line = text->substr(at, end - at);
    at = end + 1;
    const std::string name = fmt::format("{}:{}", replay.string(), ++number);
    auto row = parse_json(line, name);
    if (!row) return std::unexpected(row.error());
    if (!is_row(*row)) return fail("invalid_json", fmt::format("{} is no measurement", name));
    const std::string key = row->at("key").get<std::string>();
    known[key] = std::move(*row);
  }
  return {};
}

Result<void> Meter::Impl::open(const std::filesystem::path& record) {
  path = record.string();
  std::error_code ignored;
  std::filesystem::create_directories(record.parent_path(), ignored);
  const auto refused = [&] {
    return fail("unwritable_file", fmt::format("cannot write '{}': {}", path, strerror(errno)));
  };
  file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) return refused();
  if (!std::filesystem::is_regular_file(record, ignored)) return {};
  // A line that a kill cut off goes, so that the next one begins a line.
  const auto text = loom::read_file(path);
  if (!text) return refused();
  const size_t whole = text->rfind('\n') == std::string::npos ? 0 : text->rfind('\n') + 1;
  if (ftruncate(file, static_cast<off_t>(whole)) != 0) return refused();
  if (lseek(file, 0, SEEK_END) < 0) return refused();
  return {};
}

Result<void> Meter::Impl::append(const Json& row) const {
  if (file < 0) return {};
  fault_point("measurement");
  const std::string line = compact(row) + "\n";
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t size = ::write(file, line.data() + written, line.size() - written);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    written += static_cast<size_t>(size);
  }
  if (written == line.size() && fdatasync(file) == 0) return {};
  const int reason = errno;
  // What was half written would make the next line unreadable.
  const off_t end = lseek(file, 0, SEEK_CUR) - static_cast<off_t>(written);
  if (ftruncate(file, end) == 0) lseek(file, end, SEEK_SET);
  return fail("unwritable_file", fmt::format("cannot write '{}': {}", path, strerror(reason)));
}

Meter::Meter() : impl_(std::make_unique<Impl>()) {}
Meter::Meter(Meter&&) noexcept = default;
Meter& Meter::operator=(Meter&&) noexcept = default;
Meter::~Meter() = default;

Result<Meter> Meter::open(const std::filesystem::path& record,
                          const std::filesystem::path& replay) {
  Meter meter;
  std::error_code ignored;
  const bool same = !record.empty() && record == replay;
  // A run that goes on may not have measured anything yet.
  const bool first = same && !std::filesystem::exists(replay, ignored);
  if (!replay.empty() && !first) {
    if (auto read = meter.impl_->read(replay); !read) return std::unexpected(read.error());
  }
  if (!record.empty()) {
    if (auto made = meter.impl_->open(record); !made) return std::unexpected(made.error());
  }
  return meter;
}

Result<Json> Meter::value(const std::string& key, const std::function<Result<Json>()>& measure) {
  {
    const std::lock_guard lock(impl_->mutex);
    const auto found = impl_->known.find(key);
    if (found != impl_->known.end()) return value_in(found->second);
  }
  // Unlocked, as it may take minutes.
  Result<Json> measured = measure();
  if (!is_recorded(measured)) return measured;
  const std::lock_guard lock(impl_->mutex);
  const Json row = row_of(key, measured);
  if (auto done = impl_->append(row); !done) return std::unexpected(done.error());
  if (impl_->file >= 0) impl_->known[key] = row;
  return measured;
}

}  // namespace hyperloom::workload
