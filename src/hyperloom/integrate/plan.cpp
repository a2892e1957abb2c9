#include "hyperloom/integrate/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <span>
#include <sstream>

#include "hyperloom/integrate/commands.h"
#include "hyperloom/integrate/diff.h"
#include "hyperloom/integrate/source_text.h"
#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace hyperloom::integrate {
namespace {

std::unexpected<Error> refused(const fs::path& path, std::string_view why, std::string hint = "") {
  return fail("refused_patch", fmt::format("{}: {}", path.string(), why), std::move(hint));
}

Result<fs::path> path_field(const Json& options, const char* name) {
  const Json& value = value_of(options, name);
  if (value.is_null()) return fs::path();
  if (!value.is_string() || value.get_ref<const std::string&>().contains('\0')) {
    return fail("invalid_payload", fmt::format("'{}' must be a path", name));
  }
  return fs::path(value.get<std::string>());
}

Result<std::string> read_text(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return fail("missing_integration_inputs", path.string() + ": is no file");
  }
  if (fs::file_size(path, error) > (uintmax_t{64} << 20)) {
    return refused(path, "is larger than 64 MiB");
  }
  auto text = loom::read_file(path.string());
  if (!text) return fail("unreadable_file", path.string() + ": " + text.error().reason);
  return std::move(*text);
}

bool is_inside(const fs::path& path, const fs::path& root) {
  const auto [end, at] = std::ranges::mismatch(root, path);
  return end == root.end() && at != path.end();
}

// Words of the command. It is run without a shell, so what only a shell understands is a mistake or
// worse.
Result<std::vector<std::string>> split_command(const std::string& command) {
  if (command.find_first_of("|&;<>$`\\\"'(){}*?[]~#\n\r") != std::string::npos) {
    return fail("invalid_rebuild_command", fmt::format("'{}' needs a shell", command),
                "give one program and its arguments");
  }
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The known root that holds the file, the innermost one; the file's folder when it need not be
// known.
Result<fs::path> root_of(const fs::path& target, const PatchRequest& request) {
  fs::path best;
  for (const fs::path& root : request.known_roots) {
    std::error_code error;
    const fs::path real = fs::canonical(root, error);
    if (error || !is_inside(target, real)) continue;
    if (real.native().size() > best.native().size()) best = real;
  }
  if (!best.empty()) return best;
  if (request.allow_unknown_target) return target.parent_path();
  return refused(target, "is in none of the known source trees",
                 "name its tree, or allow unknown targets");
}

Result<PatchPlan> plan_single(const PatchRequest& request) {
  static constexpr std::array<std::string_view, 5> kNoSource = {".txt", ".md", ".log", ".patch",
                                                                ".diff"};
  std::error_code error;
  const fs::path target = fs::canonical(request.target_file, error);
  if (error || !fs::is_regular_file(target, error)) {
    return fail("missing_integration_inputs", request.target_file.string() + ": is no file");
  }
  auto text = read_text(request.patch_path);
  if (!text) return std::unexpected(text.error());
  const std::string extension = request.patch_path.extension().string();
  if (std::ranges::find(kNoSource, extension) != kNoSource.end()) {
    return refused(request.patch_path, fmt::format("a {} file is no source", extension));
  }
  if (extension != target.extension()) {
    return refused(request.patch_path, fmt::format("ends in '{}' and its target in '{}'", extension,
                                                   target.extension().string()));
  }
  const auto root = root_of(target, request);
  if (!root) return std::unexpected(root.error());
  const auto original = read_text(target);
  if (!original) return std::unexpected(original.error());
  if (const auto why = refuse_replacement(*original, *text, extension)) {
    return refused(request.patch_path, *why);
  }
  if (extension == ".py") {
    if (auto checked = check_python(request.patch_path); !checked) {
      return std::unexpected(checked.error());
    }
  }
  PatchPlan plan;
  plan.root = *root;
  FileChange change{.path = target.lexically_relative(*root)};
  change.content = std::move(*text);
  plan.header["mode"] = "single";
  plan.header["descriptors"] = Json::array({{{"op", "write"}, {"path", change.path.string()}}});
  plan.changes.push_back(std::move(change));
  return plan;
}

// The last entry of a path wins, as it does when a diff is applied.
std::vector<DiffEntry> last_of_each_path(std::vector<DiffEntry> entries) {
  std::vector<DiffEntry> result;
  std::set<std::string> seen;
  for (auto at = entries.rbegin(); at != entries.rend(); ++at) {
    if (seen.insert(at->path).second) result.push_back(std::move(*at));
  }
  std::ranges::reverse(result);
  return result;
}

Result<PatchPlan> plan_snapshot(const PatchRequest& request) {
  const auto text = read_text(request.patch_path);
  if (!text) return std::unexpected(text.error());
  auto parsed = parse_diff(*text, request.patch_path.string());
  if (!parsed) return std::unexpected(parsed.error());
  const auto repo = TreeFiles::open(request.repo);
  if (!repo) return fail("missing_integration_inputs", repo.error().message);
  if (!request.allow_unknown_target &&
      std::ranges::none_of(request.known_roots, [&](const fs::path& root) {
        std::error_code error;
        const fs::path real = fs::canonical(root, error);
        return !error && (real == repo->root() || is_inside(repo->root(), real));
      })) {
    return refused(repo->root(), "is none of the known source trees",
                   "name its tree, or allow unknown targets");
  }
  const auto snapshot = TreeFiles::open(request.snapshot_dir);
  if (!snapshot) return fail("missing_integration_inputs", snapshot.error().message);
  PatchPlan plan;
  plan.root = repo->root();
  plan.header["mode"] = "snapshot";
  plan.header["descriptors"] = descriptors_of(*parsed);
  for (const DiffEntry& entry : last_of_each_path(std::move(*parsed))) {
    const auto path = relative_inside(entry.path);
    if (!path) return std::unexpected(path.error());
    const auto there = repo->read(*path);
    if (!there) return std::unexpected(there.error());
    FileChange change{
        .path = *path, .remove = entry.op == DiffEntry::Op::Delete, .mode = entry.mode};
    if (change.remove) {
      if (!*there) return refused(repo->root() / *path, "is to be deleted and is not there");
    } else {
      auto file = snapshot->read(*path);
      if (!file) return std::unexpected(file.error());
      if (!*file) return refused(snapshot->root() / *path, "is named by the diff and is not there");
      change.content = std::move((*file)->content);
    }
    plan.changes.push_back(std::move(change));
  }
  return plan;
}

}  // namespace

std::vector<fs::path> PatchPlan::paths() const {
  std::vector<fs::path> result;
  result.reserve(changes.size());
  for (const FileChange& change : changes) result.push_back(change.path);
  return result;
}

Result<PatchRequest> PatchRequest::read(const Json& options) {
  PatchRequest request;
  request.kernel_id = text_of(options, "kernel_id");
  const auto take = [&](const char* name, fs::path& where) -> Result<void> {
    auto path = path_field(options, name);
    if (!path) return std::unexpected(path.error());
    if (!path->empty()) where = fs::absolute(*path);
    return {};
  };
  for (const auto& [name, where] : {std::pair{"patch_path", &request.patch_path},
                                    {"source_file", &request.target_file},
                                    {"target_file", &request.target_file},
                                    {"snapshot_dir", &request.snapshot_dir},
                                    {"repo", &request.repo},
                                    {"kernel_repo", &request.repo},
                                    {"producer_manifest", &request.producer_manifest}}) {
    if (auto done = take(name, *where); !done) return std::unexpected(done.error());
  }
  const Json& roots = value_of(options, "known_roots");
  if (roots.is_array()) {
    for (const Json& root : roots) {
      if (!root.is_string()) return fail("invalid_payload", "'known_roots' must be paths");
      request.known_roots.emplace_back(root.get<std::string>());
    }
  }
  request.allow_unknown_target = flag_of(options, "allow_unknown_target");
  request.rebuild_command = text_of(options, "rebuild_command");
  request.rebuild_timeout_sec = number_of(options, "rebuild_timeout_sec", 1800);
  if (!(request.rebuild_timeout_sec > 0)) {
    return fail("invalid_payload", "'rebuild_timeout_sec' must be positive");
  }
  request.skip_rebuild = flag_of(options, "skip_rebuild");
  return request;
}

Result<PatchPlan> plan_patch(const PatchRequest& request) {
  if (request.patch_path.empty()) return fail("missing_integration_inputs", "no patch_path");
  const bool snapshot = !request.snapshot_dir.empty();
  if (snapshot ? request.repo.empty() : request.target_file.empty()) {
    return fail("missing_integration_inputs", snapshot ? "no kernel_repo" : "no target_file");
  }
  const auto words = split_command(request.rebuild_command);
  if (!words) return std::unexpected(words.error());
  auto plan = snapshot ? plan_snapshot(request) : plan_single(request);
  if (!plan) return plan;
  plan->header["kernel_id"] = request.kernel_id;
  plan->header["patch_path"] = request.patch_path.string();
  plan->header["target_file"] = (plan->root / plan->changes.front().path).string();
  plan->header["producer_manifest"] = request.producer_manifest.string();
  if (!request.skip_rebuild) plan->rebuild = *words;
  plan->rebuild_timeout_sec = request.rebuild_timeout_sec;
  return plan;
}

Result<PatchPlan> merge_plans(std::vector<PatchPlan> plans) {
  if (plans.empty()) return fail("missing_integration_inputs", "nothing to combine");
  PatchPlan result = std::move(plans.front());
  std::set<fs::path> taken;
  for (const FileChange& change : result.changes) taken.insert(change.path);
  for (PatchPlan& plan : std::span(plans).subspan(1)) {
    if (plan.root != result.root) return refused(plan.root, "is another tree");
    for (FileChange& change : plan.changes) {
      if (!taken.insert(change.path).second) {
        return refused(plan.root / change.path, "is changed by two of the combined patches");
      }
      result.changes.push_back(std::move(change));
    }
    for (const Json& row : plan.header["descriptors"]) result.header["descriptors"].push_back(row);
    result.header["mode"] = "snapshot";
    if (result.rebuild.empty()) result.rebuild = plan.rebuild;
  }
  return result;
}

std::string content_hash(const PatchPlan& plan) {
  std::vector<std::string> rows;
  rows.reserve(plan.changes.size());
  for (const FileChange& change : plan.changes) {
    rows.push_back(compact({{"path", change.path.string()},
                            {"op", change.remove ? "delete" : "write"},
                            {"mode", change.mode ? Json(*change.mode) : Json()},
                            {"sha256", change.remove ? "" : loom::sha256_hex(change.content)}}));
  }
  std::ranges::sort(rows);
  std::string all;
  for (const std::string& row : rows) all += row + "\n";
  return loom::sha256_hex(all);
}

}  // namespace hyperloom::integrate
