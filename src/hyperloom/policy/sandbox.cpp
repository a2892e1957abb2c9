#include "hyperloom/policy/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <deque>

namespace hyperloom::policy {
namespace {

constexpr size_t kMaxComponents = 256;
constexpr int kMaxLinks = 40;
constexpr size_t kMaxLength = 4096;

struct Row {
  std::string_view key;
  PathRole role;
};
using enum PathRole;
constexpr Row kRows[] = {
#define HL_PATH(key, role) {key, role},
#include "hyperloom/policy/path_fields.def"
#undef HL_PATH
};

constexpr std::array<std::string_view, 11> kAbsent = {
    "not found", "none", "n/a",          "null",           "unknown",        "unresolved",
    "missing",   "tbd",  "<unresolved>", "aiter (vendor)", "triton (vendor)"};

std::deque<std::string> components_of(std::string_view path) {
  std::deque<std::string> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end > 0 && path.substr(0, end) != ".") parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

// Walks from the root of the file system; each entry is a handle that was opened without following.
class Walk {
 public:
  Walk() : root_(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) {}
  Walk(const Walk&) = delete;
  Walk& operator=(const Walk&) = delete;
  ~Walk() {
    while (!entries_.empty()) up();
    if (root_ >= 0) ::close(root_);
  }

  // The problem, or "".
  std::string go(std::deque<std::string> parts) {
    int links = 0;
    while (!parts.empty()) {
      const std::string part = std::move(parts.front());
      parts.pop_front();
      if (part == "..") {
        up();
        continue;
      }
      if (entries_.size() >= kMaxComponents) return "has too many components";
      const int fd = is_missing() ? -1 : ::openat(top(), part.c_str(), kFlags);
      if (fd < 0) {
        if (!is_missing() && errno != ENOENT && errno != ENOTDIR) return std::strerror(errno);
        entries_.push_back({part, -1});
        continue;
      }
      struct stat info{};
      if (::fstat(fd, &info) != 0 || !S_ISLNK(info.st_mode)) {
        entries_.push_back({part, fd});
        continue;
      }
      const std::string target = read_link(fd);
      ::close(fd);
      if (target.empty() || ++links > kMaxLinks) return "has a symbolic link that leads nowhere";
      if (target.front() == '/') {
        while (!entries_.empty()) up();
      }
      const std::deque<std::string> inner = components_of(target);
      parts.insert(parts.begin(), inner.begin(), inner.end());
    }
    return "";
  }
  fs::path path() const {
    std::string result;
    for (const Entry& entry : entries_) result += "/" + entry.name;
    return result.empty() ? "/" : result;
  }

 private:
  static constexpr int kFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  struct Entry {
    std::string name;
    int fd;  // -1: does not exist
  };
  int top() const { return entries_.empty() ? root_ : entries_.back().fd; }
  bool is_missing() const { return top() < 0; }
  void up() {
    if (entries_.empty()) return;
    if (entries_.back().fd >= 0) ::close(entries_.back().fd);
    entries_.pop_back();
  }
  static std::string read_link(int fd) {
    std::array<char, kMaxLength> target{};
    const ssize_t size = ::readlinkat(fd, "", target.data(), target.size());
    return size > 0 ? std::string(target.data(), static_cast<size_t>(size)) : "";
  }

  int root_;
  std::vector<Entry> entries_;
};

// What cannot be resolved is inside of nothing and holds nothing.
fs::path resolved_root(const fs::path& path) {
  auto resolved = resolve_path(path);
  return resolved ? std::move(*resolved) : fs::path();
}

bool is_inside_any(const fs::path& path, const std::vector<fs::path>& roots) {
  return std::ranges::any_of(roots, [&](const fs::path& root) { return is_inside(path, root); });
}

}  // namespace

Result<fs::path> resolve_path(const fs::path& path) {
  const std::string& text = path.native();
  if (!path.is_absolute()) return fail("invalid_path", "is not absolute");
  if (text.find('\0') != std::string::npos) return fail("invalid_path", "holds a zero byte");
  if (text.size() > kMaxLength) return fail("invalid_path", "is too long");
  Walk walk;
  if (std::string problem = walk.go(components_of(text)); !problem.empty()) {
    return fail("invalid_path", std::move(problem));
  }
  return walk.path();
}

bool is_inside(const fs::path& path, const fs::path& root) {
  const std::string& inner = path.native();
  const std::string& outer = root.native();
  if (outer.empty()) return false;
  if (outer == "/" || inner == outer) return true;
  return inner.size() > outer.size() && inner.starts_with(outer) && inner[outer.size()] == '/';
}

bool is_absent_path(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  std::string word(text);
  std::ranges::transform(word, word.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word.empty() || std::ranges::find(kAbsent, word) != kAbsent.end();
}

std::vector<fs::path> trusted_roots(const Environment& environment, const fs::path& tree) {
  std::vector<fs::path> roots = {tree};
  const std::string list = environment.text("INFERENCE_OPTIMIZER_FRAMEWORK_SOURCE_ROOTS");
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(':', at), list.size());
    fs::path root = list.substr(at, end - at);
    if (root.is_absolute()) roots.push_back(std::move(root));
    at = end + 1;
  }
  return roots;
}

std::optional<PathRole> path_role(std::string_view key) {
  const auto* row = std::ranges::find(kRows, key, &Row::key);
  if (row == std::end(kRows)) return std::nullopt;
  return row->role;
}

void visit_paths(const Json& payload,
                 const std::function<void(const std::string& place, PathRole role,
                                          const std::string& text)>& visit) {
  struct Open {
    const Json* value;
    std::string place;
    std::optional<PathRole> role;
  };
  // A queue instead of recursion: a payload may nest deeply. Order is that of the document.
  std::deque<Open> open = {{&payload, "", std::nullopt}};
  while (!open.empty()) {
    const Open at = std::move(open.front());
    open.pop_front();
    if (at.value->is_string() && at.role) {
      visit(at.place, *at.role, at.value->get_ref<const std::string&>());
    } else if (at.value->is_array()) {
      for (size_t i = 0; i < at.value->size(); ++i) {
        open.push_back({&(*at.value)[i], fmt::format("{}[{}]", at.place, i), at.role});
      }
    } else if (at.value->is_object()) {
      for (const auto& [key, inner] : at.value->items()) {
        const auto own = path_role(key);
        open.push_back(
            {&inner, at.place.empty() ? key : at.place + "." + key, own ? own : at.role});
      }
    }
  }
}

Sandbox::Sandbox(const session::Layout& layout, const std::vector<fs::path>& trusted)
    : session_(layout.session) {
  for (const fs::path& root :
       {layout.session, layout.run(), layout.root / "kernel-agent-workspace"}) {
    own_.push_back(resolved_root(root));
  }
  for (const fs::path& root : trusted) trusted_.push_back(resolved_root(root));
}

std::optional<std::string> Sandbox::refuse(PathRole role, const std::string& text) const {
  if (is_absent_path(text)) return std::nullopt;
  fs::path path = text;
  if (path.is_relative()) {
    const bool of_session = role == ReadSession || trusted_.empty();
    path = (of_session ? session_ : trusted_.front()) / path;
  }
  const auto resolved = resolve_path(path);
  if (!resolved) return resolved.error().message;
  const bool own = is_inside_any(*resolved, own_);
  const bool trusted = is_inside_any(*resolved, trusted_);
  switch (role) {
    case ReadSession:
      if (own) return std::nullopt;
      return "lies outside of the session's folders";
    case ReadFramework:
      if (own || trusted) return std::nullopt;
      return "lies outside of the session's folders and of the trusted source roots";
    case WriteFramework:
      if (trusted) return std::nullopt;
      return "lies outside of the trusted source roots";
  }
  return "has no role";
}

}  // namespace hyperloom::policy
