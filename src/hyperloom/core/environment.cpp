#include "hyperloom/core/environment.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "loom/base/check.h"

namespace hyperloom {
namespace {

using enum EnvKind;

constexpr EnvRow kTable[] = {
#define HL_ENV(name, kind, fallback, meaning) {name, kind, fallback, meaning},
#include "hyperloom/core/environment.def"
#undef HL_ENV
};

const EnvRow* find_row(std::string_view name) {
  const auto* found = std::ranges::find(kTable, name, &EnvRow::name);
  return found == std::end(kTable) ? nullptr : found;
}

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return std::nullopt;
  }
  return value;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_flag(std::string_view text) {
  static constexpr std::array kWords = {"1", "true", "yes", "on", "0", "false", "no", "off", ""};
  return std::ranges::find(kWords, lower(text)) != kWords.end();
}

bool fits(EnvKind kind, std::string_view text) {
  switch (kind) {
    case Text:
    case Path:
      return true;
    case Flag:
      return is_flag(text);
    case Integer:
      return text.empty() || parse_number<int64_t>(text).has_value();
    case Number:
      return text.empty() || parse_number<double>(text).has_value();
  }
  return false;
}

std::string_view kind_words(EnvKind kind) {
  switch (kind) {
    case Flag:
      return "one of 1, true, yes, on, 0, false, no, off";
    case Integer:
      return "an integer";
    case Number:
      return "a finite number";
    case Text:
    case Path:
      break;
  }
  return "text";
}

}  // namespace

std::span<const EnvRow> environment_table() { return kTable; }

Environment Environment::of_process() {
  std::map<std::string, std::string> values;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    values.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return Environment(std::move(values));
}

std::optional<std::string> Environment::raw(std::string_view name) const {
  const auto found = values_.find(std::string(name));
  if (found == values_.end()) return std::nullopt;
  return found->second;
}

std::string Environment::text(std::string_view name) const {
  const EnvRow* row = find_row(name);
  LOOM_CHECK(row != nullptr, "an environment variable has a row in environment.def");
  const auto value = raw(name);
  // Only text may be meant to be empty: an empty number or flag is as good as unset.
  if (value && fits(row->kind, *value) && (!value->empty() || row->kind == Text)) return *value;
  return std::string(row->fallback);
}

bool Environment::flag(std::string_view name) const { return is_truthy(text(name)); }

int64_t Environment::integer(std::string_view name) const {
  return parse_number<int64_t>(text(name)).value_or(0);
}

double Environment::number(std::string_view name) const {
  return parse_number<double>(text(name)).value_or(0);
}

bool Environment::has(std::string_view name) const {
  const EnvRow* row = find_row(name);
  const auto value = raw(name);
  return row != nullptr && value && !value->empty() && fits(row->kind, *value);
}

std::vector<Error> Environment::check() const {
  std::vector<Error> errors;
  for (const EnvRow& row : kTable) {
    const auto value = raw(row.name);
    if (!value || fits(row.kind, *value)) continue;
    errors.push_back({"invalid_environment", fmt::format("{} is '{}'", row.name, *value),
                      fmt::format("set it to {}, or unset it", kind_words(row.kind))});
  }
  return errors;
}

bool is_truthy(std::string_view text) {
  const std::string word = lower(text);
  return word == "1" || word == "true" || word == "yes" || word == "on";
}

std::string environment_help() {
  std::string result;
  for (const EnvRow& row : kTable) {
    result += fmt::format("{} (default: {})\n    {}\n", row.name,
                          row.fallback.empty() ? "unset" : row.fallback, row.meaning);
  }
  return result;
}

}  // namespace hyperloom
