#include "hyperloom/optimize/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "hyperloom/lane/gates.h"
#include "hyperloom/optimize/run_again.h"
#include "hyperloom/optimize/task_key.h"

namespace hyperloom::optimize {
namespace {

constexpr SkipReasonRow kReasons[] = {
#define HL_SKIP(name, word, meaning) {word, meaning},
#include "hyperloom/optimize/skip_reasons.def"
#undef HL_SKIP
};

// The first field of `object` that is neither absent nor of the type that it has to be.
struct FieldRule {
  std::string_view name;
  bool (*fits)(const Json&);
};
bool is_object(const Json& value) { return value.is_null() || value.is_object(); }
bool is_array(const Json& value) { return value.is_null() || value.is_array(); }

constexpr FieldRule kStateFields[] = {
    {"kernel_opt_task_attempts", is_object},
    {"rejected_kernel_ids", is_array},
    {"optimization_stack", is_array},
    {"last_trace_analyze", is_object},
};

// Two spellings of one path compare equal.
std::string normal(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().string();
}

struct Group {
  const Json* json = nullptr;
  std::string key;
  std::vector<std::string> legacy_keys;
  std::string primary;
  std::vector<size_t> members;  // rows, in the order of the group's own list
};

class Selector {
 public:
  Selector(const Json& state, const Environment& environment,
           const std::set<std::string>& in_flight, const std::vector<const Json*>& rows)
      : state_(state),
        environment_(environment),
        in_flight_(in_flight),
        rows_(rows),
        reasons_(rows.size()),
        taken_(rows.size(), false),
        ledger_(value_of(state, "kernel_opt_task_attempts")) {
    for (std::string& id : strings_of(value_of(state, "rejected_kernel_ids"))) {
      rejected_.insert(std::move(id));
    }
    read_stack();
  }

  Selection run(const Json& candidates) {
    read_groups(value_of(candidates, "task_groups"));
    for (size_t row = 0; row < rows_.size(); ++row) check_row(row);
    for (const Group& group : groups_) check_group_settled(group);
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (open(row) && group_of_[row] == kNoGroup) check_row_settled(row);
    }
    for (const Group& group : groups_) take_group(group);
    take_ungrouped(reusable_ids(candidates));
    return finish();
  }

 private:
  static constexpr size_t kNoGroup = SIZE_MAX;

  std::string id_of(size_t row) const { return text_of(*rows_[row], "kernel_id"); }
  bool open(size_t row) const { return !taken_[row] && !reasons_[row]; }
  void skip(size_t row, SkipReason reason, const std::string& value = "", std::string detail = "") {
    std::string text(kReasons[static_cast<size_t>(reason)].word);
    if (!value.empty()) text += "=" + value;
    reasons_[row] = Skipped{id_of(row), reason, std::move(text), std::move(detail), *rows_[row]};
  }
  void skip_open(const Group& group, SkipReason reason, const std::string& value = "",
                 const std::string& detail = "") {
    for (const size_t row : group.members) {
      if (open(row)) skip(row, reason, value, detail);
    }
  }

  void read_stack() {
    const Json& stack = value_of(state_, "optimization_stack");
    if (!stack.is_array()) return;
    for (const Json& entry : stack) {
      for (const char* field : {"target_file", "source_file"}) {
        if (auto file = text_of(entry, field); !file.empty()) stack_files_.insert(normal(file));
      }
      for (const std::string& file : strings_of(value_of(entry, "write_paths"))) {
        stack_files_.insert(normal(file));
      }
      const std::string action = text_of(entry, "action");
      if (action != "integrate" && action != "collective") continue;
      if (auto key = text_of(entry, "task_group_key"); !key.empty()) {
        stack_keys_.insert(std::move(key));
      }
    }
  }

  void read_groups(const Json& list) {
    std::map<std::string, size_t> row_of;
    for (size_t row = 0; row < rows_.size(); ++row) row_of.try_emplace(id_of(row), row);
    group_of_.assign(rows_.size(), kNoGroup);
    if (!list.is_array()) return;
    for (const Json& json : list) {
      Group group{&json,
                  text_of(json, "task_group_key"),
                  strings_of(value_of(json, "legacy_task_group_keys")),
                  text_of(json, "primary_kernel_id"),
                  {}};
      for (const std::string& id : strings_of(value_of(json, "kernel_ids"))) {
        const auto found = row_of.find(id);
        if (found == row_of.end() || group_of_[found->second] != kNoGroup) continue;
        group_of_[found->second] = groups_.size();
        group.members.push_back(found->second);
      }
      groups_.push_back(std::move(group));
    }
  }

  std::set<std::string> reusable_ids(const Json& candidates) const {
    const Json& analysis = value_of(state_, "last_trace_analyze");
    const Json& own = value_of(candidates, "reusable_native_kernel_ids");
    const auto ids =
        strings_of(own.is_array() ? own : value_of(analysis, "reusable_native_kernel_ids"));
    return {ids.begin(), ids.end()};
  }

  // Rule 1: what a row says of itself.
  void check_row(size_t row) {
    const Json& json = *rows_[row];
    const std::string id = id_of(row);
    if (id.empty()) return skip(row, SkipReason::MissingId);
    if (!seen_.insert(id).second) return skip(row, SkipReason::DuplicateId);
    if (auto gate = text_of(json, "blocked_by"); !gate.empty()) {
      return skip(row, SkipReason::BlockedByGate, gate);
    }
    const Json& dispatchable = value_of(json, "shape_dispatchable");
    if (dispatchable.is_boolean() && !dispatchable.get<bool>()) {
      return skip(row, SkipReason::ShapeNotDispatchable);
    }
    if (lane::is_collective(json)) return skip(row, SkipReason::CollectiveLane);
    if (!flag_of(json, "reusable_native_kernel")) return skip(row, SkipReason::NotReusable);
    if (source_of(json).empty()) skip(row, SkipReason::NoSource);
  }

  const Json* entry_of(const Group& group) const {
    if (const Json* entry = ledger_.find(group.key, group.legacy_keys)) return entry;
    return group.key.empty()
               ? ledger_.find_group(text_of(*group.json, "task_group_id"), group.primary)
               : nullptr;
  }

  static bool gave_up(const Json& entry, const std::string& source) {
    return text_of(entry, "last_source_file") == source &&
           (!text_of(entry, "rejected_reason").empty() ||
            text_of(entry, "integration_status") == "rejected");
  }

  // Whether the id was rejected for this very task: an id alone is a rank, which another analysis
  // may have given to another kernel.
  bool is_rejected(size_t row, const Group* group) const {
    const std::string id = id_of(row);
    if (!rejected_.contains(id)) return false;
    const std::string source = source_of(*rows_[row]);
    if (group != nullptr) {
      const Json* entry = entry_of(*group);
      if (!group->key.empty() || entry != nullptr)
        return entry != nullptr && gave_up(*entry, source);
    }
    const std::vector<const Json*>& entries = ledger_.of_kernel(id);
    return entries.empty() ||
           std::ranges::any_of(entries, [&](const Json* entry) { return gave_up(*entry, source); });
  }

  bool is_integrated(size_t row) const {
    const Json& json = *rows_[row];
    const auto key = text_of(json, "task_group_key");
    return (!key.empty() && stack_keys_.contains(key)) ||
           stack_files_.contains(normal(source_of(json)));
  }
  bool is_integrated(const Group& group) const {
    if (stack_keys_.contains(group.key)) return true;
    if (std::ranges::any_of(group.legacy_keys,
                            [&](const std::string& key) { return stack_keys_.contains(key); })) {
      return true;
    }
    return std::ranges::any_of(group.members, [&](size_t row) { return is_integrated(row); });
  }

  // Rule 2, for a group and for a row of none.
  void check_group_settled(const Group& group) {
    const auto rejected = [&](size_t row) { return is_rejected(row, &group); };
    if (std::ranges::all_of(group.members, rejected)) skip_open(group, SkipReason::Rejected);
    if (is_integrated(group)) skip_open(group, SkipReason::AlreadyIntegrated);
  }
  void check_row_settled(size_t row) {
    if (is_rejected(row, nullptr)) return skip(row, SkipReason::Rejected);
    if (is_integrated(row)) skip(row, SkipReason::AlreadyIntegrated);
  }

  static std::string floor_text(double floor) { return fmt::format("{}", floor); }

  // Rule 4: one task for each group.
  void take_group(const Group& group) {
    if (std::ranges::any_of(group.members,
                            [&](size_t row) { return in_flight_.contains(id_of(row)); })) {
      return skip_open(group, SkipReason::GroupInFlight);
    }
    const Json* entry = entry_of(group);
    const auto usable = [&](size_t row) {
      return open(row) && (entry != nullptr || !is_rejected(row, &group));
    };
    const auto representative = [&]() -> std::optional<size_t> {
      for (const size_t row : group.members) {
        if (id_of(row) == group.primary && usable(row)) return row;
      }
      const auto first = std::ranges::find_if(group.members, usable);
      return first == group.members.end() ? std::nullopt : std::optional(*first);
    }();
    if (!representative) return skip_open(group, SkipReason::GroupExhausted);
    const Json& row = *rows_[*representative];
    if (entry != nullptr) {
      const RunAgain again = may_run_again(*entry, source_of(row), environment_);
      if (!again.allowed) {
        return skip_open(group, SkipReason::GroupTaskComplete, "", std::string(again.reason));
      }
    }
    const double floor = effective_floor(row, environment_);
    if (effective_share(row) < floor) {
      return skip_open(group, SkipReason::BelowFloor, floor_text(floor));
    }
    Json copy = row;
    copy["task_group"] = *group.json;
    take(*representative, std::move(copy));
    skip_open(group, SkipReason::TaskGroupMember, id_of(*representative));
  }

  // Rule 5: rows of no group.
  void take_ungrouped(const std::set<std::string>& reusable) {
    std::map<std::string, std::vector<size_t>> by_source;
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (!open(row)) continue;
      const std::string id = id_of(row);
      if (!reusable.empty() && !reusable.contains(id)) {
        skip(row, SkipReason::NotLive, "", "not_listed_as_reusable");
        continue;
      }
      if (in_flight_.contains(id)) {
        skip(row, SkipReason::NotLive, "", "in_flight");
        continue;
      }
      const std::string source = source_of(*rows_[row]);
      if (const Json* entry = ledger_.find(task_key(*rows_[row]), {})) {
        const RunAgain again = may_run_again(*entry, source, environment_);
        if (!again.allowed) {
          skip(row, SkipReason::NotLive, "", std::string(again.reason));
          continue;
        }
      }
      by_source[source].push_back(row);
    }
    const bool merge = honest_flag(environment_, "HL_KERNEL_OPFANOUT_DEDUP");
    for (const auto& [source, rows] : by_source) {
      if (merge) {
        take_merged(rows);
      } else {
        for (const size_t row : rows) take_above_floor(row, *rows_[row]);
      }
    }
  }

  void take_merged(const std::vector<size_t>& rows) {
    const auto share = [&](size_t row) { return number_of(*rows_[row], "gpu_pct"); };
    const size_t best = *std::ranges::max_element(rows, {}, share);
    Json copy = *rows_[best];
    if (rows.size() > 1) {
      double sum = 0;
      Json collapsed = Json::array();
      for (const size_t row : rows) {
        sum += share(row);
        if (row == best) continue;
        collapsed.push_back(id_of(row));
        skip(row, SkipReason::OpfanoutMerged, id_of(best));
      }
      copy["gpu_pct"] = sum;
      copy["opfanout_collapsed_ids"] = std::move(collapsed);
    }
    take_above_floor(best, std::move(copy));
  }

  void take_above_floor(size_t row, Json copy) {
    const double floor = effective_floor(copy, environment_);
    if (effective_share(copy) < floor) return skip(row, SkipReason::BelowFloor, floor_text(floor));
    take(row, std::move(copy));
  }

  void take(size_t row, Json copy) {
    taken_[row] = true;
    selection_.selected.push_back(std::move(copy));
  }

  Selection finish() {
    std::ranges::sort(selection_.selected, [](const Json& a, const Json& b) {
      const double left = effective_share(a);
      const double right = effective_share(b);
      return left != right ? left > right : text_of(a, "kernel_id") < text_of(b, "kernel_id");
    });
    for (std::optional<Skipped>& skipped : reasons_) {
      if (skipped) selection_.skipped.push_back(std::move(*skipped));
    }
    return std::move(selection_);
  }

  const Json& state_;
  const Environment& environment_;
  const std::set<std::string>& in_flight_;
  const std::vector<const Json*>& rows_;
  std::vector<std::optional<Skipped>> reasons_;
  std::vector<bool> taken_;
  LedgerIndex ledger_;
  std::set<std::string> rejected_;
  std::set<std::string> stack_files_;
  std::set<std::string> stack_keys_;
  std::set<std::string> seen_;
  std::vector<Group> groups_;
  std::vector<size_t> group_of_;
  Selection selection_;
};

Selection unreadable(std::string failure, std::string message) {
  Selection selection;
  selection.failure = std::move(failure);
  selection.message = std::move(message);
  return selection;
}

}  // namespace

std::span<const SkipReasonRow> skip_reasons() { return kReasons; }

std::vector<std::string> Selection::ids() const {
  std::vector<std::string> result;
  for (const Json& row : selected) result.push_back(text_of(row, "kernel_id"));
  return result;
}

const Skipped* Selection::find_skipped(std::string_view kernel_id) const {
  const auto found = std::ranges::find(skipped, kernel_id, &Skipped::kernel_id);
  return found == skipped.end() ? nullptr : &*found;
}

double effective_share(const Json& row) {
  return std::max(number_of(row, "gpu_pct"), number_of(row, "vendor_playbook_aggregate_gpu_pct"));
}

double effective_floor(const Json& row, const Environment& environment) {
  return std::max(environment.number("HYPERLOOM_KERNEL_OPT_MIN_GPU_PCT"),
                  number_of(row, "vendor_playbook_min_gpu_pct_floor"));
}

Selection select_candidates(const Json& candidates, const Json& state,
                            const Environment& environment,
                            const std::set<std::string>& in_flight) {
  if (!candidates.is_object()) {
    return unreadable("candidates_unreadable", "the candidates are no JSON object");
  }
  for (const FieldRule& rule : kStateFields) {
    if (!rule.fits(value_of(state, rule.name))) {
      return unreadable("state_unreadable",
                        fmt::format("the state's `{}` is of another type", rule.name));
    }
  }
  const Json& hot = value_of(candidates, "hot_kernels");
  const Json& list = hot.is_array() ? hot : value_of(candidates, "hot_kernels_top15");
  if (!list.is_array()) {
    return unreadable("candidates_unreadable", "the candidates have no list `hot_kernels`");
  }
  std::vector<const Json*> rows;
  for (const Json& row : list) {
    if (!row.is_object()) {
      return unreadable("candidates_unreadable",
                        fmt::format("row {} of `hot_kernels` is no object", rows.size()));
    }
    rows.push_back(&row);
  }
  return Selector(state, environment, in_flight, rows).run(candidates);
}

}  // namespace hyperloom::optimize
