#include "hyperloom/trace/input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "hyperloom/trace/chrome.h"

namespace hyperloom::trace {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostFiles = 10'000;
constexpr size_t kMostProbes = 8;
constexpr uintmax_t kMostBytes = uintmax_t{512} << 20;

enum class FileClass : uint8_t { Merged, Normal, Decode, Fragment, Derived };

// Whether `text` holds `before`, digits, and `after`.
bool has_numbered(std::string_view text, std::string_view before, std::string_view after) {
  for (size_t at = text.find(before); at != std::string_view::npos;
       at = text.find(before, at + 1)) {
    size_t end = at + before.size();
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    if (end > at + before.size() && text.substr(end).starts_with(after)) return true;
  }
  return false;
}

bool is_fragment(const fs::path& inside) {
  const std::string name = inside.filename().string();
  if (name.find("graph_capture") != std::string::npos || has_numbered(name, "bs_", "")) return true;
  const fs::path folders = inside.parent_path();
  return std::ranges::any_of(
      folders, [](const fs::path& part) { return part.string().starts_with("capture"); });
}

FileClass class_of(const fs::path& inside) {
  const std::string name = inside.filename().string();
  const auto holds = [&](std::string_view word) { return name.find(word) != std::string::npos; };
  if (holds("steady_state") || holds("split")) return FileClass::Derived;
  if (name.starts_with("merged-")) return FileClass::Merged;
  if (is_fragment(inside)) return FileClass::Fragment;
  return has_numbered(name, "TP-", "-DECODE") ? FileClass::Decode : FileClass::Normal;
}

bool is_trace_name(const std::string& name) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{".json", ".trace", ".json.gz", ".trace.json.gz"},
      [&](std::string_view ending) { return name.ends_with(ending); });
}

struct Candidate {
  FileClass file_class;
  uintmax_t size;
  fs::path path;
};

std::vector<Candidate> ranked(const fs::path& folder) {
  std::vector<Candidate> all;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator it(folder, options, error), end;
       !error && it != end && all.size() < kMostFiles; it.increment(error)) {
    if (!it->is_regular_file(error) || !is_trace_name(it->path().filename().string())) continue;
    const uintmax_t size = it->file_size(error);
    if (error) break;
    all.push_back({class_of(it->path().lexically_relative(folder)), size, it->path()});
  }
  std::ranges::sort(all, [](const Candidate& a, const Candidate& b) {
    return std::tuple(a.file_class, b.size, a.path) < std::tuple(b.file_class, a.size, b.path);
  });
  return all;
}

Json warning(const char* code, std::string message) {
  return {{"code", code}, {"message", std::move(message)}};
}

}  // namespace

std::vector<fs::path> rank_inputs(const fs::path& folder) {
  std::vector<fs::path> paths;
  for (const Candidate& candidate : ranked(folder)) paths.push_back(candidate.path);
  return paths;
}

Result<Input> select_input(const fs::path& path) {
  Input input;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    auto dispatches = read_trace(path);
    if (!dispatches) return std::unexpected(dispatches.error());
    input.path = path;
    input.dispatches = std::move(*dispatches);
    return input;
  }
  const std::vector<Candidate> all = ranked(path);
  if (all.empty()) {
    return fail("missing_trace_input", fmt::format("there is no trace below '{}'", path.string()));
  }
  std::optional<Error> first_error;
  uintmax_t bytes = 0;
  for (size_t i = 0; i < std::min(all.size(), kMostProbes); ++i) {
    bytes += all[i].size;
    if (i > 0 && bytes > kMostBytes) break;
    auto dispatches = read_trace(all[i].path);
    if (!dispatches && !first_error) first_error = dispatches.error();
    if (!dispatches || dispatches->empty()) continue;
    input.path = all[i].path;
    input.dispatches = std::move(*dispatches);
    if (i > 0) {
      input.warnings.push_back(warning("trace_analysis_input_promoted",
                                       fmt::format("'{}' has no kernels; '{}' is taken",
                                                   all[0].path.string(), all[i].path.string())));
    }
    const auto is_other = [](const Candidate& one) {
      return one.file_class != FileClass::Fragment;
    };
    if (std::ranges::none_of(all, is_other)) {
      input.warnings.push_back(
          warning("trace_input_capture_only", "only fragments of captures are there"));
    }
    return input;
  }
  if (first_error) return std::unexpected(*first_error);
  return fail("missing_trace_input", fmt::format("no trace below '{}' has kernels", path.string()));
}

}  // namespace hyperloom::trace
