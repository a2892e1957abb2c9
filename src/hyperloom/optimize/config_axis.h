// Configuration keys of a Loom module as axes of a search.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hyperloom::optimize {

// What restricts the integer values of a key.
struct IntegerRange {
  std::optional<int64_t> minimum;
  std::optional<int64_t> maximum;
  int64_t multiple_of = 1;
  bool power_of_two = false;
};

// Values worth trying in place of `current`, ascending, without it: all of a range of up to 16,
// else powers of two around it (from a sixteenth to sixteen times), as far as the range allows
// them.
std::vector<int64_t> neighbours(int64_t current, const IntegerRange& range);

// `text` with the value of `config.def @key = value : type` on line `line` (from 1) replaced.
// Nothing when that line does not define the key in this form.
std::optional<std::string> replace_config_value(std::string_view text, unsigned line,
                                                std::string_view key, std::string_view value);

}  // namespace hyperloom::optimize
