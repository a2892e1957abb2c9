#include "example.h"

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "loom/dialect/op_info.h"
#include "loom/link/literal.h"

namespace loom::test {
namespace {

struct Literals {
  std::vector<std::string> tokens;
  bool list = false;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool take(std::string_view word) {
    skip();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string word(std::string_view stops) {
    skip();
    const size_t end = std::min(text_.find_first_of(stops, at_), text_.size());
    std::string found(text_.substr(at_, end - at_));
    at_ = end;
    while (found.ends_with(' ')) found.pop_back();
    return found;
  }
  bool done() {
    skip();
    return at_ == text_.size();
  }
  // `(a, [b, c])`, or one value without parentheses.
  std::optional<std::vector<Literals>> values() {
    std::vector<Literals> all;
    const bool several = take("(");
    if (several && take(")")) return all;
    do {
      Literals one;
      one.list = take("[");
      if (!one.list) {
        one.tokens.push_back(word(",)]"));
      } else if (!take("]")) {
        do one.tokens.push_back(word(",]"));
        while (take(","));
        if (!take("]")) return std::nullopt;
      }
      all.push_back(std::move(one));
    } while (several && take(","));
    if (several && !take(")")) return std::nullopt;
    return all;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::string_view text_;
  size_t at_ = 0;
};

std::optional<ScalarValue> scalar(std::string_view text, ScalarKind kind) {
  if (is_float(kind)) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    if (text == "nan") return quiet_nan(kind);
    if (text == "inf") return from_double(kind, kInf);
    if (text == "-inf") return from_double(kind, -kInf);
  }
  const auto literal = parse_literal(text, kind);
  return literal ? from_literal(*literal, kind) : std::nullopt;
}

// The literals as a value of the type; lanes give the extent that a vector's type leaves open.
std::optional<LaneValues> value_of(const Module& module, TypeId id, const Literals& literals) {
  const Type& type = module.types[id];
  if (type.is_scalar() == literals.list) return std::nullopt;
  LaneValues value{type.element, {}, {}, {}};
  for (Dim dim : type.dims) {
    value.shape.push_back(dim.is_dynamic() ? static_cast<int64_t>(literals.tokens.size())
                                           : dim.extent());
  }
  if (lane_count(value.shape) != literals.tokens.size()) return std::nullopt;
  for (const std::string& token : literals.tokens) {
    const auto lane = scalar(token, type.element);
    if (!lane) return std::nullopt;
    value.lanes.push_back(lane->bits);
  }
  return value;
}

std::string text_of(const LaneValues& value) {
  std::string text;
  for (size_t i = 0; i < value.lanes.size(); ++i) {
    const ScalarValue lane = value.at(i);
    text += fmt::format(
        "{}{}", i == 0 ? "" : ", ",
        is_float(lane.kind) ? fmt::to_string(to_double(lane)) : fmt::to_string(as_signed(lane)));
  }
  return fmt::format("[{}]", text);
}

bool equal(const LaneValues& a, const LaneValues& b) {
  if (a.element != b.element || a.lanes.size() != b.lanes.size()) return false;
  for (size_t i = 0; i < a.lanes.size(); ++i) {
    const bool both_nan = is_float(a.element) && is_nan(a.at(i)) && is_nan(b.at(i));
    if (!both_nan && a.lanes[i] != b.lanes[i]) return false;
  }
  return true;
}

}  // namespace

std::vector<std::string> example_calls(std::string_view source) {
  std::vector<std::string> calls;
  for (size_t at = 0; at < source.size();) {
    const size_t end = std::min(source.find('\n', at), source.size());
    const std::string_view line = source.substr(at, end - at);
    if (line.starts_with("// @")) calls.emplace_back(line.substr(3));
    at = end + 1;
  }
  return calls;
}

std::string check_example(const Module& module, std::string_view call,
                          const InterpOptions& options) {
  Reader reader(call);
  if (!reader.take("@")) return "a call begins with @";
  const std::string symbol = reader.word("(");
  const OpId function = module.symbol(symbol);
  if (!function.valid() || module.op(function).kind != OpKind::FuncDef) {
    return fmt::format("there is no function '@{}'", symbol);
  }
  const auto literals = reader.values();
  const auto formals = module.args(module.op_region(function, 0));
  const auto named = module.args(module.op_region(function, 1));
  if (!literals || literals->size() != formals.size()) {
    return fmt::format("'@{}' takes {} arguments", symbol, formals.size());
  }
  std::vector<InterpArgument> arguments;
  for (size_t i = 0; i < formals.size(); ++i) {
    auto value = value_of(module, module.type_of(formals[i]), (*literals)[i]);
    if (!value) return fmt::format("argument {} does not fit its type", i);
    arguments.emplace_back(std::move(*value));
  }
  Diagnostics diagnostics;
  const auto results = run_function(module, symbol, arguments, options, diagnostics);
  std::string reported;
  for (const Diagnostic& one : diagnostics.all()) {
    reported +=
        fmt::format("{} at line {}: {}\n", diag_code(one.id), one.location.line, one.message());
  }
  if (reader.take("fails:")) {
    const std::string code = reader.word(" ");
    if (results) return fmt::format("it does not fail with {}", code);
    return diag_code(diagnostics.all().front().id) == code ? "" : reported;
  }
  if (!reader.take("=")) return "'=' or 'fails:' is expected";
  const auto expected = reader.values();
  if (!expected || !reader.done() || expected->size() != named.size()) {
    return fmt::format("'@{}' has {} results", symbol, named.size());
  }
  if (!results) return reported;
  for (size_t i = 0; i < named.size(); ++i) {
    const auto value = value_of(module, module.type_of(named[i]), (*expected)[i]);
    if (!value) return fmt::format("result {} does not fit its type", i);
    if (!equal(*value, (*results)[i])) {
      return fmt::format("result {} is {} and not {}", i, text_of((*results)[i]), text_of(*value));
    }
  }
  return "";
}

}  // namespace loom::test
