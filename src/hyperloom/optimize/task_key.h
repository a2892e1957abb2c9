// The identity of a kernel's task in the attempt ledger.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"

namespace hyperloom::optimize {

// The row's source file, "" where it names none or one of the words that mean none.
std::string source_of(const Json& row);

// The key of a row or result in the ledger: its `task_group_key`, else that of its `task_group`,
// else compact JSON {kind: legacy-kernel, kernel_id, source_file, version: 1}.
std::string task_key(const Json& row);
// The key of a kernel that belongs to no group.
std::string legacy_task_key(const std::string& kernel_id, const std::string& source_file);

// The strings of a list; whatever else it holds is left out.
std::vector<std::string> strings_of(const Json& list);

// The ledger `kernel_opt_task_attempts`, found by every name that an entry has. Borrows the ledger.
class LedgerIndex {
 public:
  explicit LedgerIndex(const Json& ledger);
  // The entry of a group or row: by its key, by a legacy key of either side, or, for a group
  // without a key, by group id and the current id of its primary kernel. Null when there is none.
  const Json* find(const std::string& key, const std::vector<std::string>& legacy_keys) const;
  const Json* find_group(const std::string& group_id, const std::string& primary_id) const;
  // Entries whose current kernel id is `kernel_id`.
  const std::vector<const Json*>& of_kernel(const std::string& kernel_id) const;

 private:
  std::map<std::string, const Json*> by_key_;
  std::map<std::string, const Json*> by_alias_;
  std::map<std::pair<std::string, std::string>, const Json*> by_group_;
  std::map<std::string, std::vector<const Json*>> by_kernel_;
};

}  // namespace hyperloom::optimize
