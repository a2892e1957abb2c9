// From a request row to its response.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hyperloom/coordinator/services.h"

namespace hyperloom::coordinator {

inline constexpr const char* kKernelAgent = "kernel_agent";

// A request row that is on the bus.
struct RequestRow {
  std::string msg_id;
  std::string role;    // who asked, and gets the response
  std::string target;  // "kernel_agent"
  std::string kind;
  Json payload;               // as it was sent
  std::string redispatch_of;  // the row that was interrupted, or empty
};

// An interrupted request that is to be dispatched once more.
struct Redispatch {
  std::string msg_id;
  std::string role;
  std::string kind;
  Json params;               // merged
  bool synthesized = false;  // a phase started it, and starts it again when it is entered
};

// One caller at a time. Errors of every call are those of bus and state: the session cannot go on.
class RequestFlow {
 public:
  explicit RequestFlow(Services& services) : services_(services) {}

  // Steps 3 to 9 for a row that is on the bus: answers it once and gives the result.
  Result<Json> answer(const RequestRow& row);

  // Work that the coordinator starts itself looks as if the request had come over the bus: a
  // request row, `run`, and the response with `source` "kernel_entry_auto". What `run` throws is a
  // failed result. An interrupted request of the same kind and identity that waits for its second
  // try is the one that this is.
  Result<Json> post_synthesized(const std::string& kind, const Json& params,
                                const std::function<Json(const std::string& request_id)>& run);

  // After a kill: answers each request row that has no response as failed / interrupted, records
  // it, and gives those that are dispatched once more, in their order. A second try that was
  // interrupted again is recorded and left.
  Result<std::vector<Redispatch>> answer_interrupted();
  // The second try of a request that a role had sent: a new row, then as answer().
  Result<Json> redispatch(const Redispatch& interrupted);

 private:
  struct Ran {
    Json result;
    std::string source;
    std::string detail;  // of the lifecycle's end, or empty for the result's status
  };
  Result<std::string> append_request(const std::string& role, const std::string& kind,
                                     const Json& params, const std::string& redispatch_of);
  Result<void> respond(const RequestRow& row, const Json& result, const std::string& source);
  Result<Json> refuse(const RequestRow& row, const std::string& error_class,
                      const std::string& error, const Json& more = Json::object());
  Result<void> start(const RequestRow& row);
  Result<void> finish(const RequestRow& row, const Ran& ran, double seconds);
  Json complete(const RequestRow& row, Json payload) const;
  bool answer_from_state(const RequestRow& row, const Json& payload, Ran& ran) const;
  Json run_handler(const RequestRow& row, const Json& payload);
  Json guarded(const std::string& kind, const std::function<Json()>& run);

  Services& services_;
};

}  // namespace hyperloom::coordinator
