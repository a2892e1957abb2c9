// What is remembered of integrations: attempts by content, rejections, what waits and why.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"
#include "hyperloom/integrate/decision.h"

namespace hyperloom::integrate {

// sha256 over what a patch writes, the environment and the server arguments: the name under which
// attempts are counted and rejections looked up.
std::string recording_key(const std::string& patch_hash, const Json& envs, const Json& server_args);

inline constexpr int64_t kMaxFaults = 2;

// One finished integration, for the record.
struct Outcome {
  std::string key;
  std::string integration_id;  // also of the pending record, where there is one
  std::string request_id;      // of the request that asked for it; empty if none did
  Judgement judgement;
  std::string status = "ok";  // "failed" for a fault
  std::string error_class;
  bool fault = false;
  Json fields = Json::object();  // new_tput, gain_pct, ...: what a measurement gave
  double keep_threshold_pct = 1;
  std::string ts;
};

// The functions below run inside SharedState::update, on its document. Fields that are written:
// `kernel_integrate_attempts`, `rejected_kernel_patches`, and in `pending_kernel_integrations`,
// `small_positives`, `kernel_opt_task_attempts` and `rejected_kernel_ids` the entries of this one.
void record_integration(Json& state, const Outcome& outcome);

// The rejection that concerns a request: by its integration id, or by its key. Null when there is
// none.
const Json& rejection_of(const Json& state, const std::string& integration_id,
                         const std::string& key);

// Attempts that were recorded under the key: the ordinal of the next one.
int64_t attempt_count(const Json& state, const std::string& key);
// The recorded result of an attempt that this request asked for and of whose outcome it was not
// told; null when there is none.
Json recorded_result(const Json& state, const std::string& request_id);

// Whether a record of the queue is still to be integrated: it was not tried, or its last try was a
// fault that may be repeated ("dispatch_failed").
bool is_queued(const Json& record);

// The record that waits under this id, null when there is none.
const Json& pending_record(const Json& state, const std::string& integration_id);

// What is settled, looked up by many records at once. Borrows nothing.
class Settled {
 public:
  explicit Settled(const Json& state);
  // A kept change of one of the candidate's files was made: its sources are those of an older tree.
  bool is_stacked(const Json& record) const;
  bool is_rejected(const Json& record) const;

 private:
  std::set<std::string> stacked_;   // source files, as records and as manifests name them
  std::set<std::string> rejected_;  // integration ids
};
// The files that a candidate changes, as its record names them.
std::vector<std::string> files_of(const Json& record);

}  // namespace hyperloom::integrate
