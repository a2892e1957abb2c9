#include "hyperloom/integrate/diff.h"

#include <fmt/format.h>

#include <charconv>

namespace hyperloom::integrate {
namespace {

bool starts(std::string_view text, std::string_view prefix) { return text.starts_with(prefix); }

// A name in git's C-like quotes, from its opening quote on. Sets `used` to the length with quotes.
std::optional<std::string> unquote(std::string_view text, size_t& used) {
  std::string result;
  for (size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      used = i + 1;
      return result;
    }
    if (c != '\\') {
      result += c;
      continue;
    }
    if (++i >= text.size()) return std::nullopt;
    static constexpr std::string_view kLetters = "abtnvfr\"\\";
    static constexpr std::string_view kMeanings = "\a\b\t\n\v\f\r\"\\";
    const size_t letter = kLetters.find(text[i]);
    if (letter != std::string_view::npos) {
      result += kMeanings[letter];
      continue;
    }
    int value = 0;
    const size_t digits = std::min<size_t>(3, text.size() - i);
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + i + digits, value, 8);
    if (error != std::errc() || end != text.data() + i + 3 || value > 255) return std::nullopt;
    result += static_cast<char>(value);
    i += 2;
  }
  return std::nullopt;
}

// The name in the rest of a line: quoted, or up to a tab (which `diff -u` puts before the date).
std::optional<std::string> name_of(std::string_view rest) {
  if (starts(rest, "\"")) {
    size_t used = 0;
    return unquote(rest, used);
  }
  return std::string(rest.substr(0, rest.find('\t')));
}

struct Part {
  std::optional<std::string> old_name;  // of "---", of a rename or copy, of "diff --git"
  std::optional<std::string> new_name;
  std::optional<unsigned> mode;
  bool added = false;
  bool deleted = false;
  bool renamed = false;
  bool copied = false;
  bool binary = false;
  bool changed = false;  // something was said about it besides its head
  bool named = false;    // by "---" and "+++"
  bool git = false;
  size_t line = 0;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  Result<std::vector<DiffEntry>> run() {
    while (next()) {
      Result<void> done = line();
      if (!done) return std::unexpected(done.error());
    }
    if (auto done = finish(); !done) return std::unexpected(done.error());
    if (entries_.empty()) return std::unexpected(wrong("names no file"));
    return std::move(entries_);
  }

 private:
  Error wrong(std::string_view what) const {
    return {"invalid_diff", fmt::format("{}:{}: {}", name_, number_, what),
            "give the output of `git diff` or `diff -u`"};
  }
  bool next() {
    if (rest_.empty()) return false;
    const size_t end = rest_.find('\n');
    line_ = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    if (line_.ends_with('\r')) line_.remove_suffix(1);
    ++number_;
    return true;
  }

  Result<void> line() {
    if (starts(line_, "diff --git ")) return git_head(line_.substr(11));
    if (starts(line_, "--- ") && starts(rest_, "+++ ")) return names();
    if (!open_) return {};
    if (starts(line_, "@@ ")) return hunk();
    if (part_.git) return git_line();
    return {};
  }

  Result<void> git_head(std::string_view names) {
    if (auto done = finish(); !done) return done;
    open_ = true;
    part_ = {.git = true, .line = number_};
    return split_names(names);
  }

  // "a/x b/x" or "\"a/x\" \"b/x\"". Without quotes and renames both names are the same, which is
  // how names with spaces are told apart; a rename gives them on lines of their own.
  Result<void> split_names(std::string_view names) {
    if (starts(names, "\"")) {
      size_t used = 0;
      part_.old_name = unquote(names, used);
      if (!part_.old_name || used + 1 >= names.size()) return std::unexpected(wrong("a bad name"));
      part_.new_name = name_of(names.substr(used + 1));
      if (!part_.new_name) return std::unexpected(wrong("a bad name"));
      return {};
    }
    if (names.ends_with('"')) {
      const size_t quote = names.find(" \"");
      if (quote == std::string_view::npos) return std::unexpected(wrong("a bad name"));
      part_.old_name = std::string(names.substr(0, quote));
      part_.new_name = name_of(names.substr(quote + 1));
      if (!part_.new_name) return std::unexpected(wrong("a bad name"));
      return {};
    }
    for (size_t space = names.find(' '); space != std::string_view::npos;
         space = names.find(' ', space + 1)) {
      const std::string_view left = names.substr(0, space);
      const std::string_view right = names.substr(space + 1);
      if (left == right ||
          (starts(left, "a/") && starts(right, "b/") && left.substr(2) == right.substr(2))) {
        part_.old_name = std::string(left);
        part_.new_name = std::string(right);
        return {};
      }
    }
    return {};
  }

  Result<void> git_line() {
    const auto word = [&](std::string_view prefix) {
      if (!starts(line_, prefix)) return false;
      line_.remove_prefix(prefix.size());
      part_.changed = true;
      return true;
    };
    if (word("new file mode ")) {
      part_.added = true;
      return mode();
    }
    if (word("deleted file mode ")) {
      part_.deleted = true;
      return {};
    }
    if (word("new mode ")) return mode();
    if (word("rename from ") || word("copy from ")) return plain_name(part_.old_name);
    if (word("rename to ")) {
      part_.renamed = true;
      return plain_name(part_.new_name);
    }
    if (word("copy to ")) {
      part_.copied = true;
      return plain_name(part_.new_name);
    }
    if (word("GIT binary patch") || (starts(line_, "Binary files ") && line_.ends_with("differ"))) {
      part_.binary = part_.changed = true;
    }
    return {};
  }

  Result<void> mode() {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(line_.data(), line_.data() + line_.size(), value, 8);
    if (error != std::errc() || end != line_.data() + line_.size()) {
      return std::unexpected(wrong("a bad mode"));
    }
    if (value >> 12 != 010) return std::unexpected(wrong("a mode that is not a regular file's"));
    part_.mode = value & 0777;
    return {};
  }

  // Names of rename and copy lines have no a/ or b/ in front.
  Result<void> plain_name(std::optional<std::string>& where) {
    auto found = name_of(line_);
    if (!found) return std::unexpected(wrong("a bad name"));
    where = "x/" + *found;
    return {};
  }

  Result<void> names() {
    if (!part_.git || part_.named) {
      if (auto done = finish(); !done) return done;
      open_ = true;
      part_ = {.line = number_};
    }
    part_.changed = true;
    part_.named = true;
    const auto before = name_of(line_.substr(4));
    next();
    const auto after = name_of(line_.substr(4));
    if (!before || !after || before->empty() || after->empty()) {
      return std::unexpected(wrong("a bad name"));
    }
    if (*before == "/dev/null") {
      part_.added = true;
    } else if (!part_.renamed && !part_.copied) {
      part_.old_name = *before;
    }
    if (*after == "/dev/null") {
      part_.deleted = true;
    } else if (!part_.renamed && !part_.copied) {
      part_.new_name = *after;
    }
    return {};
  }

  // "@@ -l,c +l,c @@": skips exactly that many lines, so that a line of the file that looks like a
  // head is not taken for one.
  Result<void> hunk() {
    size_t before = 0;
    size_t after = 0;
    std::string_view text = line_.substr(3);
    if (!range(text, '-', before) || !starts(text, " ")) {
      return std::unexpected(wrong("a bad hunk"));
    }
    text.remove_prefix(1);
    if (!range(text, '+', after) || !starts(text, " @@")) {
      return std::unexpected(wrong("a bad hunk"));
    }
    while (before > 0 || after > 0) {
      if (!next()) return std::unexpected(wrong("the hunk ends early"));
      const char kind = line_.empty() ? ' ' : line_[0];
      if (kind == '\\') continue;
      if (kind != ' ' && kind != '-' && kind != '+') {
        return std::unexpected(wrong("the hunk ends early"));
      }
      if (kind != '+' && before-- == 0) return std::unexpected(wrong("the hunk is too long"));
      if (kind != '-' && after-- == 0) return std::unexpected(wrong("the hunk is too long"));
    }
    return {};
  }
  static bool range(std::string_view& text, char sign, size_t& count) {
    if (text.empty() || text[0] != sign) return false;
    const char* end = text.data() + text.size();
    size_t start = 0;
    auto [at, error] = std::from_chars(text.data() + 1, end, start);
    if (error != std::errc()) return false;
    count = 1;
    if (at != end && *at == ',') {
      const auto [last, bad] = std::from_chars(at + 1, end, count);
      if (bad != std::errc()) return false;
      at = last;
    }
    text.remove_prefix(static_cast<size_t>(at - text.data()));
    return true;
  }

  // Without its first component where both sides have the prefixes that git gives them.
  static std::string stripped(const std::string& name, char side, bool other_has) {
    if (!other_has || name.size() < 3 || name[1] != '/') return name;
    return name[0] == side || name[0] == 'x' ? name.substr(2) : name;
  }

  Result<void> finish() {
    if (!open_) return {};
    open_ = false;
    if (!part_.changed) return {};
    const auto& old_name = part_.old_name;
    const auto& new_name = part_.new_name;
    if ((!old_name && (part_.deleted || part_.renamed)) || (!new_name && !part_.deleted)) {
      return std::unexpected(wrong("a file without a name"));
    }
    const bool elsewhere = part_.renamed || part_.copied;
    const bool old_has = !old_name || elsewhere || starts(*old_name, "a/");
    const bool new_has = !new_name || elsewhere || starts(*new_name, "b/");
    const bool both = old_has && new_has;
    if (part_.deleted || part_.renamed) {
      entries_.push_back({.op = DiffEntry::Op::Delete, .path = stripped(*old_name, 'a', both)});
    }
    if (!part_.deleted) {
      entries_.push_back(
          {.path = stripped(*new_name, 'b', both), .mode = part_.mode, .binary = part_.binary});
    }
    return {};
  }

  std::string_view rest_;
  const std::string& name_;
  std::string_view line_;
  size_t number_ = 0;
  bool open_ = false;
  Part part_;
  std::vector<DiffEntry> entries_;
};

}  // namespace

Result<std::vector<DiffEntry>> parse_diff(std::string_view text, const std::string& name) {
  return Parser(text, name).run();
}

Json descriptors_of(const std::vector<DiffEntry>& entries) {
  Json result = Json::array();
  for (const DiffEntry& entry : entries) {
    Json row = {{"op", entry.op == DiffEntry::Op::Write ? "write" : "delete"},
                {"path", entry.path}};
    if (entry.mode) row["mode"] = fmt::format("{:04o}", *entry.mode);
    if (entry.binary) row["binary"] = true;
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace hyperloom::integrate
