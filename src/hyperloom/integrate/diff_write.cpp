#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "hyperloom/integrate/diff.h"

namespace hyperloom::integrate {
namespace {

constexpr size_t kContext = 3;
// Past this many changed lines a shortest edit is not looked for: all lines between the common
// beginning and end are replaced.
constexpr size_t kMaxEdits = 1000;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const size_t size = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return lines;
}

using Lines = std::vector<std::string_view>;

struct Edit {
  char kind;  // ' ', '-', '+'
  std::string_view line;
};

// The greedy shortest edit of Myers (1986), on the part between `begin` and the ends. Empty when it
// takes too many steps.
class ShortestEdit {
 public:
  ShortestEdit(const Lines& a, const Lines& b, size_t begin, size_t a_end, size_t b_end)
      : a_(a), b_(b), begin_(begin), n_(a_end - begin), m_(b_end - begin) {}

  // (in A, in B) pairs of equal lines, ascending; nothing when there was no short edit.
  bool run(std::vector<std::pair<size_t, size_t>>& matches) {
    const size_t limit = std::min(n_ + m_, kMaxEdits);
    const size_t width = 2 * limit + 3;
    const size_t middle = limit + 1;
    std::vector<size_t> reach(width, 0);
    std::vector<std::vector<size_t>> history;
    for (size_t d = 0; d <= limit; ++d) {
      history.push_back({reach.begin() + static_cast<ptrdiff_t>(middle - d - 1),
                         reach.begin() + static_cast<ptrdiff_t>(middle + d + 2)});
      for (size_t step = 0; step <= d; ++step) {
        const size_t at = middle - d + 2 * step;  // diagonal k = at - middle
        const bool down = step == 0 || (step != d && reach[at - 1] < reach[at + 1]);
        size_t x = down ? reach[at + 1] : reach[at - 1] + 1;
        // The row; a diagonal that lies outside of B is never followed.
        if (x + middle < at) continue;
        size_t y = x + middle - at;
        while (x < n_ && y < m_ && a_[begin_ + x] == b_[begin_ + y]) {
          ++x;
          ++y;
        }
        reach[at] = x;
        if (x >= n_ && y >= m_) {
          walk_back(history, d, x, y, matches);
          return true;
        }
      }
    }
    return false;
  }

 private:
  // history[d] holds the reaches before round d of diagonals -d-1 .. d+1.
  void walk_back(const std::vector<std::vector<size_t>>& history, size_t d, size_t x, size_t y,
                 std::vector<std::pair<size_t, size_t>>& matches) const {
    for (; d > 0; --d) {
      const std::vector<size_t>& before = history[d];
      const size_t at = x + d + 1 - y;  // index of diagonal x - y
      const bool first = x + d == y;
      const bool last = x == y + d;
      const bool down = first || (!last && before[at - 1] < before[at + 1]);
      const size_t from_x = down ? before[at + 1] : before[at - 1];
      const size_t from_y = down ? from_x + y - x - 1 : from_x + 1 + y - x;
      const size_t turn_x = down ? from_x : from_x + 1;
      while (x > turn_x) {
        --x;
        --y;
        matches.emplace_back(begin_ + x, begin_ + y);
      }
      x = from_x;
      y = from_y;
    }
    while (x > 0 && y > 0) {
      --x;
      --y;
      matches.emplace_back(begin_ + x, begin_ + y);
    }
    std::ranges::reverse(matches);
  }

  const Lines& a_;
  const Lines& b_;
  size_t begin_;
  size_t n_;
  size_t m_;
};

std::vector<Edit> edits_of(const Lines& a, const Lines& b) {
  size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) ++begin;
  size_t a_end = a.size();
  size_t b_end = b.size();
  while (a_end > begin && b_end > begin && a[a_end - 1] == b[b_end - 1]) {
    --a_end;
    --b_end;
  }
  std::vector<std::pair<size_t, size_t>> matches;
  if (!ShortestEdit(a, b, begin, a_end, b_end).run(matches)) matches.clear();
  matches.emplace_back(a_end, b_end);
  std::vector<Edit> edits;
  edits.reserve(a.size() + b.size());
  for (size_t i = 0; i < begin; ++i) edits.push_back({' ', a[i]});
  size_t x = begin;
  size_t y = begin;
  for (const auto& [match_x, match_y] : matches) {
    while (x < match_x) edits.push_back({'-', a[x++]});
    while (y < match_y) edits.push_back({'+', b[y++]});
    if (x < a_end) {
      edits.push_back({' ', a[x]});
      ++x;
      ++y;
    }
  }
  for (size_t i = a_end; i < a.size(); ++i) edits.push_back({' ', a[i]});
  return edits;
}

std::string quoted(const std::string& name) {
  const bool plain = std::ranges::all_of(
      name, [](unsigned char c) { return c > ' ' && c < 127 && c != '"' && c != '\\'; });
  if (plain) return name;
  std::string result = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += fmt::format("\\{}", c);
    } else if (byte < ' ' || byte >= 127) {
      result += fmt::format("\\{:03o}", byte);
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string range_text(size_t start, size_t count) {
  // An empty range names the line before it.
  const size_t line = count == 0 ? start : start + 1;
  return count == 1 ? fmt::format("{}", line) : fmt::format("{},{}", line, count);
}

std::string hunks_of(const std::vector<Edit>& edits) {
  std::string result;
  size_t a_line = 0;
  size_t b_line = 0;
  size_t i = 0;
  while (i < edits.size()) {
    size_t change = i;
    while (change < edits.size() && edits[change].kind == ' ') ++change;
    if (change == edits.size()) break;
    const size_t begin = change - std::min(change - i, kContext);
    a_line += begin - i;
    b_line += begin - i;
    // Up to where twice the context has no change.
    size_t end = change;
    for (size_t quiet = 0; end < edits.size() && quiet <= 2 * kContext; ++end) {
      quiet = edits[end].kind == ' ' ? quiet + 1 : 0;
    }
    while (end > change && edits[end - 1].kind == ' ') --end;
    end = std::min(edits.size(), end + kContext);
    size_t a_count = 0;
    size_t b_count = 0;
    std::string body;
    for (size_t at = begin; at < end; ++at) {
      a_count += edits[at].kind != '+';
      b_count += edits[at].kind != '-';
      body += edits[at].kind;
      body += edits[at].line;
      if (!edits[at].line.ends_with('\n')) body += "\n\\ No newline at end of file\n";
    }
    result += fmt::format("@@ -{} +{} @@\n{}", range_text(a_line, a_count),
                          range_text(b_line, b_count), body);
    a_line += a_count;
    b_line += b_count;
    i = end;
  }
  return result;
}

}  // namespace

std::string write_diff(const std::string& path, const std::optional<DiffSide>& before,
                       const std::optional<DiffSide>& after) {
  if (!before && !after) return "";
  const bool same_content = before && after && before->content == after->content;
  if (same_content && before->mode == after->mode) return "";
  std::string result = fmt::format("diff --git {} {}\n", quoted("a/" + path), quoted("b/" + path));
  // git knows two kinds of files: those that may be run and those that may not.
  const auto mode = [](const DiffSide& side) { return side.mode & 0100 ? "100755" : "100644"; };
  if (!before) result += fmt::format("new file mode {}\n", mode(*after));
  if (!after) result += fmt::format("deleted file mode {}\n", mode(*before));
  if (before && after && std::string_view(mode(*before)) != mode(*after)) {
    result += fmt::format("old mode {}\nnew mode {}\n", mode(*before), mode(*after));
  }
  const std::string_view old_text = before ? before->content : std::string_view();
  const std::string_view new_text = after ? after->content : std::string_view();
  if (old_text == new_text) return result;
  result += fmt::format("--- {}\n+++ {}\n", before ? quoted("a/" + path) : "/dev/null",
                        after ? quoted("b/" + path) : "/dev/null");
  return result + hunks_of(edits_of(lines_of(old_text), lines_of(new_text)));
}

}  // namespace hyperloom::integrate
