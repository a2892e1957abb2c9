#include "loom/link/literal.h"

#include <charconv>
#include <cmath>

#include "loom/dialect/numeric.h"

namespace loom {
namespace {

std::optional<int64_t> parse_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  if (hex) text.remove_prefix(2);
  uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), magnitude, hex ? 16 : 10);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  constexpr uint64_t kTop = uint64_t{1} << 63;
  if (negative) {
    return magnitude <= kTop ? std::optional(static_cast<int64_t>(0 - magnitude)) : std::nullopt;
  }
  return magnitude < kTop ? std::optional(static_cast<int64_t>(magnitude)) : std::nullopt;
}

std::optional<double> parse_float(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Attr> parse_literal(std::string_view text, ScalarKind kind) {
  std::optional<Attr> literal;
  if (text == "true" || text == "false") {
    literal = Attr::boolean(text == "true");
  } else if (const auto integer = parse_integer(text)) {
    literal =
        is_float(kind) ? Attr::floating(static_cast<double>(*integer)) : Attr::integer(*integer);
  } else if (const auto number = parse_float(text)) {
    literal = Attr::floating(*number);
  }
  if (!literal) return std::nullopt;
  const auto value = from_literal(*literal, kind);
  return value ? std::optional(to_literal(*value)) : std::nullopt;
}

}  // namespace loom
