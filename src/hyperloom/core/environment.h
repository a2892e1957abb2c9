// The environment variables that steer the optimizer, read once and from one table.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hyperloom/core/error.h"

namespace hyperloom {

enum class EnvKind : uint8_t { Text, Flag, Integer, Number, Path };

struct EnvRow {
  std::string_view name;
  EnvKind kind;
  std::string_view fallback;  // empty: unset
  std::string_view meaning;
};

// In the order of the table.
std::span<const EnvRow> environment_table();

// A snapshot of the variables, so that nothing changes under a running session and tests need not
// touch the process. Immutable after construction; any thread may read it.
class Environment {
 public:
  // The process's own variables.
  static Environment of_process();
  // Exactly these.
  explicit Environment(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  // This one, and those of `values` that it does not set.
  Environment with_defaults(std::map<std::string, std::string> values) const {
    std::map<std::string, std::string> merged = values_;
    merged.merge(values);
    return Environment(std::move(merged));
  }
  // What is set, the empty text included; nothing when it is unset.
  std::optional<std::string> raw(std::string_view name) const;
  // The value, or the table's default; names that have no row are a breached invariant. A value
  // that is not of the row's kind reads as the default, and check() reports it.
  std::string text(std::string_view name) const;
  bool flag(std::string_view name) const;
  int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  // Whether it is set to a usable value.
  bool has(std::string_view name) const;
  const std::map<std::string, std::string>& all() const { return values_; }
  // One "invalid_environment" for each variable whose value is not of its kind.
  std::vector<Error> check() const;

 private:
  std::map<std::string, std::string> values_;
};

// 1, true, yes, on, in any case.
bool is_truthy(std::string_view text);

// For `--help-env`: name, default and meaning of each row.
std::string environment_help();

}  // namespace hyperloom
