#include "hyperloom/optimize/task_key.h"

#include <algorithm>
#include <array>

namespace hyperloom::optimize {

std::string source_of(const Json& row) {
  static constexpr std::array kAbsent = {"not found",  "none",    "n/a", "null",        "unknown",
                                         "unresolved", "missing", "tbd", "<unresolved>"};
  std::string source = text_of(row, "source_file");
  std::string lower = source;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::ranges::find(kAbsent, lower) != kAbsent.end() ? "" : source;
}

std::string legacy_task_key(const std::string& kernel_id, const std::string& source_file) {
  return compact({{"kind", "legacy-kernel"},
                  {"kernel_id", kernel_id},
                  {"source_file", source_file},
                  {"version", 1}});
}

std::string task_key(const Json& row) {
  std::string key = text_of(row, "task_group_key");
  if (key.empty()) key = text_of(value_of(row, "task_group"), "task_group_key");
  return key.empty() ? legacy_task_key(text_of(row, "kernel_id"), source_of(row)) : key;
}

std::vector<std::string> strings_of(const Json& list) {
  std::vector<std::string> result;
  if (!list.is_array()) return result;
  for (const Json& item : list) {
    if (item.is_string()) result.push_back(item.get<std::string>());
  }
  return result;
}

LedgerIndex::LedgerIndex(const Json& ledger) {
  if (!ledger.is_object()) return;
  for (const auto& [key, entry] : ledger.items()) {
    by_key_[key] = &entry;
    if (auto stable = text_of(entry, "stable_task_key"); !stable.empty()) {
      by_alias_.try_emplace(stable, &entry);
    }
    if (auto group_key = text_of(entry, "task_group_key"); !group_key.empty()) {
      by_alias_.try_emplace(group_key, &entry);
    }
    for (const std::string& alias : strings_of(value_of(entry, "legacy_task_group_keys"))) {
      by_alias_.try_emplace(alias, &entry);
    }
    const std::string kernel = text_of(entry, "current_kernel_id", text_of(entry, "kernel_id"));
    if (auto group = text_of(entry, "task_group_id"); !group.empty()) {
      by_group_.try_emplace({group, kernel}, &entry);
    }
    by_kernel_[kernel].push_back(&entry);
  }
}

const Json* LedgerIndex::find(const std::string& key,
                              const std::vector<std::string>& legacy_keys) const {
  const auto look = [&](const std::string& name) -> const Json* {
    if (const auto found = by_key_.find(name); found != by_key_.end()) return found->second;
    if (const auto found = by_alias_.find(name); found != by_alias_.end()) return found->second;
    return nullptr;
  };
  if (!key.empty()) {
    if (const Json* entry = look(key)) return entry;
  }
  for (const std::string& alias : legacy_keys) {
    if (const Json* entry = look(alias)) return entry;
  }
  return nullptr;
}

const Json* LedgerIndex::find_group(const std::string& group_id,
                                    const std::string& primary_id) const {
  const auto found = by_group_.find({group_id, primary_id});
  return found == by_group_.end() ? nullptr : found->second;
}

const std::vector<const Json*>& LedgerIndex::of_kernel(const std::string& kernel_id) const {
  static const std::vector<const Json*> none;
  const auto found = by_kernel_.find(kernel_id);
  return found == by_kernel_.end() ? none : found->second;
}

}  // namespace hyperloom::optimize
