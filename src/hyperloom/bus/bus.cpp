#include "hyperloom/bus/bus.h"

#include <fmt/format.h>

#include <algorithm>

#include "hyperloom/bus/sqlite.h"
#include "hyperloom/core/fault.h"
#include "hyperloom/core/time.h"
#include "loom/base/hash.h"

namespace hyperloom::bus {
namespace {

// Messages between two prunings: often enough that the file stays small, seldom enough that the
// cost of one message does not show it.
constexpr size_t kPruneEvery = 1000;

#define HL_COLUMNS "seq, msg_id, from_agent, to_agent, topic, in_reply_to, payload, priority, ts"

Result<Message> message_of(const Query& row, const std::string& path) {
  Message message;
  message.seq = row.integer(0);
  message.msg_id = row.text(1);
  message.from_agent = row.text(2);
  message.to_agent = row.text(3);
  message.topic = row.text(4);
  message.in_reply_to = row.text(5);
  auto payload = parse_json(row.text(6), fmt::format("{}: message {}", path, message.msg_id));
  if (!payload) return std::unexpected(payload.error());
  message.payload = std::move(*payload);
  message.priority = static_cast<int>(row.integer(7));
  message.ts = row.text(8);
  return message;
}

Result<std::vector<Message>> messages_of(Query& query, const std::string& path) {
  std::vector<Message> messages;
  for (;;) {
    auto more = query.step();
    if (!more) return std::unexpected(more.error());
    if (!*more) return messages;
    auto message = message_of(query, path);
    if (!message) return std::unexpected(message.error());
    messages.push_back(std::move(*message));
  }
}

// SQLite takes a negative limit for none.
int64_t limit_of(size_t limit) {
  return limit > static_cast<size_t>(INT64_MAX) ? -1 : static_cast<int64_t>(limit);
}

// Of the form of a version 4 UUID, and the same in every run that sends the same messages.
std::string derived_id(const std::string& session, int64_t seq) {
  std::string id = loom::sha256_hex(fmt::format("message|{}|{}", session, seq)).substr(0, 32);
  id[12] = '4';
  const auto nibble = std::string_view("0123456789abcdef").find(id[16]);
  id[16] = "89ab"[nibble & 3];
  return id;
}

bool is_msg_id(std::string_view id) {
  return id.size() == 32 && std::ranges::all_of(id, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

Result<void> check(const Message& message) {
  if (std::ranges::find(Bus::topics(), message.topic) == Bus::topics().end()) {
    return fail("unknown_topic", fmt::format("'{}' is no topic of the bus", message.topic));
  }
  if (message.priority < 0 || message.priority > 3) {
    return fail("invalid_priority",
                fmt::format("a message has priority {}; 0 to 3 are allowed", message.priority));
  }
  if (!message.msg_id.empty() && !is_msg_id(message.msg_id)) {
    return fail("invalid_message",
                fmt::format("msg_id '{}' is not 32 hexadecimal digits", message.msg_id));
  }
  if (message.from_agent.empty() || message.to_agent.empty()) {
    return fail("invalid_message", "a message names no sender or no receiver");
  }
  if (!message.payload.is_object()) {
    return fail("invalid_message",
                fmt::format("a payload is a {}, not an object", message.payload.type_name()));
  }
  return {};
}

Result<int64_t> last_seq(Database::Impl& database) {
  Query query(database, "SELECT seq FROM sqlite_sequence WHERE name = 'events'");
  auto row = query.step();
  if (!row) return std::unexpected(row.error());
  return *row ? query.integer(0) : 0;
}

Result<void> insert(Database::Impl& database, const Message& message) {
  Query query(database, "INSERT INTO events (" HL_COLUMNS ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  query.bind(message.seq)
      .bind(message.msg_id)
      .bind(message.from_agent)
      .bind(message.to_agent)
      .bind(message.topic)
      .bind_or_null(message.in_reply_to)
      .bind(compact(message.payload))
      .bind(message.priority)
      .bind(message.ts);
  auto inserted = query.run();
  if (!inserted && query.code() == SQLITE_CONSTRAINT_UNIQUE) {
    return fail("duplicate_msg_id", fmt::format("there is a message {} already", message.msg_id));
  }
  return inserted;
}

// Inside a transaction. Each statement walks an index, so that its work is what it removes and at
// most the rows that stay.
Result<void> prune_events(Database::Impl& database, size_t keep) {
  auto last = last_seq(database);
  if (!last) return std::unexpected(last.error());
  // The newest `keep` rows are found on the key; numbers that failed transactions left out are
  // counted by nobody.
  Query oldest(database, "SELECT seq FROM events ORDER BY seq DESC LIMIT 1 OFFSET ?");
  auto more = oldest.bind(limit_of(keep)).step();
  if (!more) return std::unexpected(more.error());
  if (!*more) return {};
  const int64_t bound = oldest.integer(0);
  // A proposal is decided by a verdict or decision that answers it; both are newer than it.
  Query decided(database,
                "DELETE FROM events WHERE seq IN (SELECT p.seq FROM events v CROSS JOIN events p "
                "ON p.msg_id = v.in_reply_to WHERE v.topic IN ('review_verdict', 'decision') "
                "AND p.topic = 'proposal' AND p.seq <= ?)");
  if (auto removed = decided.bind(bound).run(); !removed) return removed;
  for (const std::string& topic : Bus::topics()) {
    if (topic == "proposal") continue;
    Query others(database, "DELETE FROM events WHERE topic = ? AND seq <= ?");
    if (auto removed = others.bind(topic).bind(bound).run(); !removed) return removed;
  }
  return {};
}

Result<void> prune_tasks(Database::Impl& database, size_t keep) {
  Query rest(database,
             "DELETE FROM tasks WHERE task_id IN (SELECT task_id FROM tasks WHERE state IN "
             "('succeeded', 'failed', 'cancelled') ORDER BY updated_at DESC, task_id DESC "
             "LIMIT -1 OFFSET ?)");
  return rest.bind(limit_of(keep)).run();
}

}  // namespace

const std::vector<std::string>& Bus::topics() {
  static const std::vector<std::string> all = {
#define HL_TOPIC(name) name,
#include "hyperloom/bus/topics.def"
#undef HL_TOPIC
  };
  return all;
}

Bus::Bus(std::shared_ptr<Database> database) : database_(std::move(database)) {}

Result<Message> Bus::append(Message message) {
  std::vector<Message> one;
  one.push_back(std::move(message));
  auto appended = append_all(std::move(one));
  if (!appended) return std::unexpected(appended.error());
  return std::move(appended->front());
}

Result<std::vector<Message>> Bus::append_all(std::vector<Message> messages) {
  for (const Message& message : messages) {
    if (auto valid = check(message); !valid) return std::unexpected(valid.error());
  }
  auto& database = database_->impl();
  fault_point("bus.append");
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  auto seq = last_seq(database);
  if (!seq) return std::unexpected(seq.error());
  for (Message& message : messages) {
    message.seq = ++*seq;
    if (message.msg_id.empty()) message.msg_id = derived_id(database.name, message.seq);
    if (message.ts.empty()) message.ts = utc_now();
    if (auto inserted = insert(database, message); !inserted) {
      return std::unexpected(inserted.error());
    }
  }
  database.appended_since_prune += messages.size();
  if (database.appended_since_prune >= kPruneEvery) {
    if (auto pruned = prune_events(database, kKeptEvents); !pruned) {
      return std::unexpected(pruned.error());
    }
    database.appended_since_prune = 0;
  }
  if (auto done = transaction->commit(); !done) return std::unexpected(done.error());
  return messages;
}

Result<std::vector<Message>> Bus::tail(size_t limit) const {
  auto& database = database_->impl();
  const std::lock_guard lock(database.mutex);
  Query query(database, "SELECT " HL_COLUMNS " FROM events ORDER BY seq DESC LIMIT ?");
  return messages_of(query.bind(limit_of(limit)), database.path);
}

Result<std::vector<Message>> Bus::replay_for(const std::string& agent, int64_t after_seq,
                                             size_t limit) const {
  auto& database = database_->impl();
  const std::lock_guard lock(database.mutex);
  // Two walks of the index on the receiver, merged.
  Query query(database, "SELECT " HL_COLUMNS
                        " FROM events WHERE to_agent = ?1 AND seq > ?2 UNION ALL "
                        "SELECT " HL_COLUMNS
                        " FROM events WHERE to_agent = '*' AND ?1 <> '*' AND seq > ?2 "
                        "ORDER BY seq LIMIT ?3");
  return messages_of(query.bind(agent).bind(after_seq).bind(limit_of(limit)), database.path);
}

Result<std::optional<Message>> Bus::lookup(const std::string& msg_id) const {
  auto& database = database_->impl();
  const std::lock_guard lock(database.mutex);
  Query query(database, "SELECT " HL_COLUMNS " FROM events WHERE msg_id = ?");
  auto more = query.bind(msg_id).step();
  if (!more) return std::unexpected(more.error());
  if (!*more) return std::nullopt;
  auto message = message_of(query, database.path);
  if (!message) return std::unexpected(message.error());
  return std::move(*message);
}

Result<std::vector<Message>> Bus::unanswered_requests() const {
  auto& database = database_->impl();
  const std::lock_guard lock(database.mutex);
  Query query(database, "SELECT " HL_COLUMNS
                        " FROM events WHERE topic = 'request' AND msg_id NOT IN (SELECT "
                        "in_reply_to FROM events WHERE topic = 'response' AND in_reply_to IS NOT "
                        "NULL) ORDER BY seq");
  return messages_of(query, database.path);
}

Result<Cursor> Bus::cursor(const std::string& agent) const {
  auto& database = database_->impl();
  const std::lock_guard lock(database.mutex);
  Query query(database,
              "SELECT last_processed_seq, last_processed_msg_id, processed_at FROM cursors WHERE "
              "agent = ?");
  auto more = query.bind(agent).step();
  if (!more) return std::unexpected(more.error());
  if (!*more) return Cursor{};
  return Cursor{query.integer(0), query.text(1), query.text(2)};
}

Result<void> Bus::advance(const std::string& agent, int64_t seq, const std::string& msg_id) {
  auto& database = database_->impl();
  fault_point("bus.advance");
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  Query query(database,
              "INSERT INTO cursors VALUES (?, ?, ?, ?) ON CONFLICT (agent) DO UPDATE SET "
              "last_processed_seq = excluded.last_processed_seq, last_processed_msg_id = "
              "excluded.last_processed_msg_id, processed_at = excluded.processed_at WHERE "
              "excluded.last_processed_seq > last_processed_seq");
  if (auto set = query.bind(agent).bind(seq).bind(msg_id).bind(utc_now()).run(); !set) return set;
  return transaction->commit();
}

Result<void> Bus::prune(size_t events, size_t tasks) {
  auto& database = database_->impl();
  fault_point("bus.prune");
  auto transaction = Transaction::begin(database);
  if (!transaction) return std::unexpected(transaction.error());
  if (auto pruned = prune_events(database, events); !pruned) return pruned;
  if (auto pruned = prune_tasks(database, tasks); !pruned) return pruned;
  return transaction->commit();
}

Result<Inbox> read_inbox(const Bus& bus, const std::string& agent) {
  auto cursor = bus.cursor(agent);
  if (!cursor) return std::unexpected(cursor.error());
  auto rows = bus.replay_for(agent, cursor->last_processed_seq);
  if (!rows) return std::unexpected(rows.error());
  Inbox inbox;
  inbox.rows = std::move(*rows);
  if (!inbox.rows.empty()) {
    inbox.last_seq = inbox.rows.back().seq;
    inbox.last_msg_id = inbox.rows.back().msg_id;
  }
  return inbox;
}

}  // namespace hyperloom::bus
