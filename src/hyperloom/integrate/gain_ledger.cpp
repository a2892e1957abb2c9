#include "hyperloom/integrate/gain_ledger.h"

#include <cmath>

namespace hyperloom::integrate {
namespace {

constexpr double kMillion = 1e6;

Json& rows(Json& state) {
  Json& ledger = state["gain_ledger"];
  if (!ledger.is_array()) ledger = Json::array();
  return ledger;
}

void add_row(Json& state, const char* kind, const std::string& integration_id, int64_t after,
             const std::string& ts) {
  const int64_t before = ledger_final(state);
  Json& ledger = rows(state);
  ledger.push_back({{"seq", ledger.size() + 1},
                    {"kind", kind},
                    {"integration_id", integration_id},
                    {"before", before},
                    {"after", after},
                    {"delta_tput", after - before},
                    {"ts", ts}});
}

void revalue(Json& state, const std::string& ts) {
  state["cumulative_gain_validated"] = ledger_gain_pct(state);
  state["cumulative_gain_validated_ts"] = ts;
  state["cumulative_gain_validated_stack_len"] = value_of(state, "optimization_stack").size();
}

}  // namespace

int64_t to_millionths(double throughput) {
  constexpr double kLimit = 9e12;
  if (!std::isfinite(throughput) || std::abs(throughput) > kLimit) return 0;
  return std::llround(throughput * kMillion);
}

double from_millionths(int64_t millionths) { return static_cast<double>(millionths) / kMillion; }

int64_t ledger_baseline(const Json& state) {
  return to_millionths(number_of(state, "baseline_tput"));
}

int64_t ledger_final(const Json& state) {
  const Json& ledger = value_of(state, "gain_ledger");
  if (!ledger.is_array() || ledger.empty()) return ledger_baseline(state);
  return value_of(ledger.back(), "after").get<int64_t>();
}

double ledger_gain_pct(const Json& state) {
  const int64_t baseline = ledger_baseline(state);
  if (baseline <= 0) return 0;
  return 100 * static_cast<double>(ledger_final(state) - baseline) / static_cast<double>(baseline);
}

void add_rebaseline(Json& state, double measured, const std::string& ts) {
  const int64_t after = to_millionths(measured);
  if (after != ledger_final(state)) add_row(state, "rebaseline", "", after, ts);
  revalue(state, ts);
}

void add_keep(Json& state, const std::string& integration_id, double a, double b,
              const std::string& ts) {
  add_rebaseline(state, a, ts);
  add_row(state, "keep", integration_id, to_millionths(b), ts);
  revalue(state, ts);
}

void lift_to_current_best(Json& state, const Kept& kept) {
  Json entry = kept.entry;
  entry["action"] = kept.action;
  entry["integration_id"] = kept.integration_id;
  entry["gain_pct"] = kept.gain_pct;
  // Taken from the ledger's whole numbers, so that the two never differ.
  entry["delta_tput"] = from_millionths(to_millionths(kept.tput_b) - to_millionths(kept.tput_a));
  entry["extra_envs"] = kept.extra_envs;
  entry["ts"] = kept.ts;
  Json& stack = state["optimization_stack"];
  if (!stack.is_array()) stack = Json::array();
  stack.push_back(std::move(entry));
  Json& gains = state["gain_per_stack_entry"];
  if (!gains.is_array()) gains = Json::array();
  gains.push_back(kept.gain_pct);

  add_keep(state, kept.integration_id, kept.tput_a, kept.tput_b, kept.ts);
  state["current_best"] = {{"tput", from_millionths(to_millionths(kept.tput_b))},
                           {"action", kept.action},
                           {"integration_id", kept.integration_id},
                           {"extra_server_args", kept.extra_server_args},
                           {"extra_envs", kept.extra_envs},
                           {"ts", kept.ts}};
}

}  // namespace hyperloom::integrate
