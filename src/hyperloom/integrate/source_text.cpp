#include "hyperloom/integrate/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
#include <regex>

namespace hyperloom::integrate {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// A line that stands for lines which the author left out, as in "// ... unchanged ...".
bool elides(std::string_view line) {
  static constexpr std::array<std::string_view, 4> kWords = {"existing code", "rest of the",
                                                             "remaining code", "unchanged"};
  while (!line.empty() && std::string_view("/#;* \t").contains(line.front())) {
    line.remove_prefix(1);
  }
  if (!line.starts_with("...")) return false;
  const std::string_view rest = trimmed(line.substr(3));
  return rest.empty() ||
         std::ranges::any_of(kWords, [&](std::string_view word) { return rest.starts_with(word); });
}

std::optional<std::string> not_source(std::string_view text) {
  if (is_blank(text)) return "it is empty";
  if (text.contains('\0')) return "it holds binary data";
  size_t number = 0;
  bool first = true;
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view line(part.begin(), part.end());
    ++number;
    if (line.starts_with("```")) return fmt::format("line {} is a fence of Markdown", number);
    if (elides(line)) return fmt::format("line {} stands for lines that are left out", number);
    if (line.starts_with("<<<<<<< ") || line.starts_with(">>>>>>> ")) {
      return fmt::format("line {} is the mark of a conflict", number);
    }
    if (!first || is_blank(line)) continue;
    first = false;
    if (line.starts_with("diff --git ") || line.starts_with("--- a/") || line.starts_with("@@ -") ||
        line.starts_with("*** Begin Patch")) {
      return "it is a diff; a diff needs snapshot_dir";
    }
  }
  return std::nullopt;
}

std::ptrdiff_t open_brackets(std::string_view text) {
  return std::ranges::count(text, '{') - std::ranges::count(text, '}');
}

void collect(std::string_view text, const std::regex& pattern, std::vector<std::string>& names) {
  // Line by line: the matcher is recursive over what it matches.
  for (const auto part : std::views::split(text, '\n')) {
    const std::string_view whole(part.begin(), part.end());
    const std::string line(whole.substr(0, 4096));
    for (std::sregex_iterator at(line.begin(), line.end(), pattern), end; at != end; ++at) {
      names.push_back((*at)[1]);
    }
  }
}

bool defines_module(std::string_view text) {
  return text.contains("PYBIND11_MODULE") || text.contains("TORCH_LIBRARY");
}

}  // namespace

std::vector<std::string> host_entries(std::string_view text, std::string_view extension) {
  static const std::regex program(R"(command\.program\.def\s+public\s+(@[\w.$-]+))");
  static const std::regex c_function(R"re(extern\s+"C"[^(;]*?(\w+)\s*\()re");
  static const std::regex binding(R"re(\.(?:def|impl)\(\s*"(\w+)")re");
  std::vector<std::string> names;
  if (extension == ".loom") {
    collect(text, program, names);
  } else {
    collect(text, c_function, names);
    collect(text, binding, names);
  }
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

std::optional<std::string> refuse_replacement(std::string_view original, std::string_view text,
                                              std::string_view extension) {
  if (auto why = not_source(text)) return why;
  if (open_brackets(original) == 0 && open_brackets(text) != 0) {
    return "its braces do not match, so it is not complete";
  }
  const std::vector<std::string> there = host_entries(text, extension);
  for (const std::string& name : host_entries(original, extension)) {
    if (!std::ranges::binary_search(there, name)) {
      return fmt::format("the host entry {} of the original is gone", name);
    }
  }
  if (original.contains("namespace aiter") && !text.contains("namespace aiter")) {
    return "namespace aiter of the original is gone";
  }
  if (!defines_module(original) && defines_module(text)) {
    return "it defines a binding module that the original does not";
  }
  return std::nullopt;
}

}  // namespace hyperloom::integrate
