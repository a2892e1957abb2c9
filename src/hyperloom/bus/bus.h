// The durable message bus: one ordered log in SQLite, one read cursor for each agent.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hyperloom/core/environment.h"
#include "hyperloom/core/json.h"

namespace hyperloom::bus {

class Database;

struct Message {
  int64_t seq = 0;     // assigned by append; strictly increasing, never used again
  std::string msg_id;  // 32 hexadecimal digits; made by append when empty
  std::string from_agent;
  std::string to_agent;  // "*": everyone
  std::string topic;     // one of topics()
  Json payload = Json::object();
  int priority = 1;         // 0 (most urgent) to 3
  std::string in_reply_to;  // a msg_id, or empty
  std::string ts;           // made by append when empty
};

struct Cursor {
  int64_t last_processed_seq = 0;
  std::string last_processed_msg_id;
  std::string processed_at;
};

// Threads: any; calls take turns. Every call that changes something is durable when it returns.
class Bus {
 public:
  static constexpr size_t kKeptEvents = 5000;
  static constexpr size_t kKeptTasks = 2000;

  explicit Bus(std::shared_ptr<Database> database);

  // Every thousand messages the oldest are pruned along. Errors: "unknown_topic",
  // "invalid_priority", "invalid_message", "duplicate_msg_id", "database" (disk full, ...).
  Result<Message> append(Message message);
  // Several in one transaction: all or none.
  Result<std::vector<Message>> append_all(std::vector<Message> messages);
  // Newest first.
  Result<std::vector<Message>> tail(size_t limit = 200) const;
  // Rows with seq > after_seq that are addressed to the agent or to everyone, ascending.
  Result<std::vector<Message>> replay_for(const std::string& agent, int64_t after_seq,
                                          size_t limit = SIZE_MAX) const;
  Result<std::optional<Message>> lookup(const std::string& msg_id) const;
  // Rows of topic "request" that no row answers, ascending.
  Result<std::vector<Message>> unanswered_requests() const;

  Result<Cursor> cursor(const std::string& agent) const;
  // Never moves backwards: a smaller seq changes nothing.
  Result<void> advance(const std::string& agent, int64_t seq, const std::string& msg_id);
  // Keeps the newest `events` rows, the proposals that no verdict or decision answers, and the
  // newest `tasks` finished tasks.
  Result<void> prune(size_t events = kKeptEvents, size_t tasks = kKeptTasks);

  static const std::vector<std::string>& topics();

 private:
  std::shared_ptr<Database> database_;
};

// The agent's inbox: what a turn renders, and how far it came.
struct Inbox {
  std::vector<Message> rows;
  int64_t last_seq = 0;  // of the highest row, 0 when there is none
  std::string last_msg_id;
};
Result<Inbox> read_inbox(const Bus& bus, const std::string& agent);

}  // namespace hyperloom::bus
