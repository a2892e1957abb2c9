#include "hyperloom/core/env_file.h"

#include <fmt/format.h>

#include "loom/base/file.h"

namespace hyperloom {
namespace {

using Variables = std::map<std::string, std::string>;

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_'; }
bool is_name_char(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

// One line, read from the left.
class Line {
 public:
  Line(std::string_view text, const Variables& earlier, const Environment& environment)
      : text_(text), earlier_(earlier), environment_(environment) {}

  // Nothing but blanks and a comment.
  bool is_empty() {
    skip_blanks();
    return done() || peek() == '#';
  }
  // Fills in name and value; the problem, or "".
  std::string assignment(std::string& name, std::string& value) {
    skip_blanks();
    name = take_name();
    if (name == "export" && !done() && is_blank(peek())) {
      skip_blanks();
      name = take_name();
    }
    if (name.empty() || done() || peek() != '=') return "is no NAME=value";
    ++at_;
    std::string problem = take_value(value);
    if (!problem.empty()) return problem;
    if (!is_empty()) return "has something behind its value; put the value in quotes";
    return "";
  }

 private:
  bool done() const { return at_ >= text_.size(); }
  char peek() const { return text_[at_]; }
  void skip_blanks() {
    while (!done() && is_blank(peek())) ++at_;
  }
  std::string take_name() {
    const size_t begin = at_;
    if (!done() && is_letter(peek())) {
      while (!done() && is_name_char(peek())) ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string take_value(std::string& value) {
    if (done()) return "";
    if (peek() == '\'') {
      const size_t end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos) return "has a quote that does not end";
      value = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return "";
    }
    const bool quoted = peek() == '"';
    if (quoted) ++at_;
    while (!done() && (quoted ? peek() != '"' : !is_blank(peek()))) {
      if (peek() == '$') {
        if (std::string problem = expand(value); !problem.empty()) return problem;
        continue;
      }
      if (!quoted && (peek() == '"' || peek() == '\'')) return "mixes bare and quoted text";
      if (quoted && peek() == '\\' && at_ + 1 < text_.size() &&
          std::string_view("\"\\$`").find(text_[at_ + 1]) != std::string_view::npos) {
        ++at_;
      }
      value += text_[at_++];
    }
    if (!quoted) return "";
    if (done()) return "has a quote that does not end";
    ++at_;
    return "";
  }

  // At a '$'.
  std::string expand(std::string& value) {
    ++at_;
    if (done() || peek() != '{') {
      const std::string name = take_name();
      value += name.empty() ? "$" : value_of_name(name);
      return "";
    }
    ++at_;
    const std::string name = take_name();
    if (name.empty() || done()) return "has a ${ without a name and its }";
    std::string fallback;
    if (text_.substr(at_).starts_with(":-")) {
      const size_t end = text_.find('}', at_);
      if (end == std::string_view::npos) return "has a ${ without its }";
      fallback = text_.substr(at_ + 2, end - at_ - 2);
      if (fallback.find('$') != std::string::npos) return "expands something inside of a default";
      at_ = end;
    }
    if (peek() != '}') return "has a ${ that is neither ${NAME} nor ${NAME:-default}";
    ++at_;
    const std::string found = value_of_name(name);
    value += found.empty() ? fallback : found;
    return "";
  }

  std::string value_of_name(const std::string& name) const {
    if (const auto set = environment_.raw(name)) return *set;
    const auto found = earlier_.find(name);
    return found == earlier_.end() ? "" : found->second;
  }

  std::string_view text_;
  const Variables& earlier_;
  const Environment& environment_;
  size_t at_ = 0;
};

}  // namespace

Result<Variables> parse_env_file(std::string_view text, const std::string& name,
                                 const Environment& environment) {
  Variables variables;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    Line line(row, variables, environment);
    if (line.is_empty()) continue;
    std::string variable;
    std::string value;
    std::string problem = row.find('\0') == std::string_view::npos
                              ? line.assignment(variable, value)
                              : "holds a zero byte";
    if (!problem.empty()) {
      return fail("invalid_env_file", fmt::format("{}:{}: {}", name, number, problem),
                  "write NAME=value, one a line");
    }
    variables[std::move(variable)] = std::move(value);
  }
  return variables;
}

Result<Environment> with_env_file(const Environment& environment,
                                  const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return environment;
  const auto text = loom::read_file(file.string());
  if (!text) {
    return fail("unreadable_file", fmt::format("{}: {}", file.string(), text.error().reason));
  }
  auto variables = parse_env_file(*text, file.string(), environment);
  if (!variables) return std::unexpected(variables.error());
  return environment.with_defaults(std::move(*variables));
}

}  // namespace hyperloom
