#include "hyperloom/coordinator/options.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace hyperloom::coordinator {
namespace {

// Reads a field into its place; a field of another type is an error that names it.
class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}

  template <class T>
  void read(const char* name, T& into) {
    const Json& value = value_of(json_, name);
    if (value.is_null()) return;
    if (fits<T>(value)) {
      into = value.get<T>();
    } else if (problem_.empty()) {
      problem_ = fmt::format("option '{}' is {}", name, compact(value));
    }
  }
  const std::string& problem() const { return problem_; }

 private:
  template <class T>
  static bool fits(const Json& value) {
    if constexpr (std::is_same_v<T, bool>) return value.is_boolean();
    if constexpr (std::is_same_v<T, std::string>) return value.is_string();
    if constexpr (std::is_same_v<T, uint64_t>) return value.is_number_unsigned();
    return value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
  }
  const Json& json_;
  std::string problem_;
};

// The one list of fields, for both directions.
template <class Options, class Visit>
void each_field(Options& o, Visit&& visit) {
  visit("budget_seconds", o.budget_seconds);
  visit("closing_grace_seconds", o.closing_grace_seconds);
  visit("kernel_cap_seconds", o.kernel_cap_seconds);
  visit("kernel_enabled", o.kernel_enabled);
  visit("auto_kernel_opt", o.auto_kernel_opt);
  visit("allow_empty_kernel_shape", o.allow_empty_kernel_shape);
  visit("kernel", o.kernel);
  visit("seed", o.seed);
  visit("strict_phase", o.strict_phase);
  visit("transcript", o.transcript);
  visit("record", o.record);
  visit("replay", o.replay);
}

}  // namespace

Json to_json(const Options& options) {
  Json json = Json::object();
  each_field(options, [&](const char* name, const auto& value) { json[name] = value; });
  return json;
}

Result<Options> options_from(const Json& json) {
  Options options;
  Reader reader(json);
  each_field(options, [&](const char* name, auto& value) { reader.read(name, value); });
  if (!reader.problem().empty()) return fail("invalid_options", reader.problem());
  return options;
}

Result<double> parse_duration(const std::string& text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (error != std::errc() || factor == 0 || !std::isfinite(value) || value <= 0) {
    return fail("invalid_duration", fmt::format("'{}' is no duration", text),
                "write seconds, or a number with s, m or h: 90s, 15m, 2h");
  }
  return value * factor;
}

}  // namespace hyperloom::coordinator
