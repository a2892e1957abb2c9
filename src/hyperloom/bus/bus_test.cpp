#include "hyperloom/bus/bus.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "hyperloom/bus/sqlite.h"
#include "hyperloom/bus/tasks.h"
#include "hyperloom/core/testing.h"

namespace hyperloom::bus {
namespace {

using Variables = std::map<std::string, std::string>;

class BusTest : public testing::Test {
 protected:
  BusTest() : database_(open().value()), bus_(database_) {}

  Result<std::shared_ptr<Database>> open(Variables variables = {}) const {
    return Database::open(path(), Environment(std::move(variables)));
  }
  std::filesystem::path path() const { return folder_ / "storage" / "coordinator.db"; }

  static Message message(const std::string& from, const std::string& to,
                         const std::string& topic = "observation") {
    Message result;
    result.from_agent = from;
    result.to_agent = to;
    result.topic = topic;
    return result;
  }
  // As many messages as fit a few transactions.
  void fill(size_t count, const std::string& topic = "observation") {
    while (count > 0) {
      std::vector<Message> some(std::min<size_t>(count, 2000), message("a", "b", topic));
      count -= some.size();
      ASSERT_TRUE(bus_.append_all(std::move(some)));
    }
  }
  int64_t count(std::string_view sql) const {
    const std::lock_guard lock(database_->impl().mutex);
    Query query(database_->impl(), sql);
    EXPECT_TRUE(query.step().value());
    return query.integer(0);
  }

  TempFolder folder_;
  std::shared_ptr<Database> database_;
  Bus bus_;
};

using Spec_2_2 = BusTest;
using Spec_2_4 = BusTest;
using Spec_2_5 = BusTest;

TEST_F(Spec_2_2, AppendAssignsSeqIdAndTime) {
  const Message first = bus_.append(message("a", "b")).value();
  const Message second = bus_.append(message("a", "b")).value();
  EXPECT_GT(second.seq, first.seq);
  EXPECT_NE(second.msg_id, first.msg_id);
  EXPECT_EQ(first.msg_id.size(), 32U);
  EXPECT_EQ(first.msg_id.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(first.msg_id[12], '4');
  EXPECT_EQ(first.priority, 1);
  EXPECT_EQ(first.ts.size(), std::string("2026-11-30T09:00:00.123456Z").size());
  const Message found = bus_.lookup(first.msg_id)->value();
  EXPECT_EQ(found.seq, first.seq);
  EXPECT_EQ(found.payload, Json::object());
  EXPECT_EQ(found.in_reply_to, "");
  EXPECT_FALSE(bus_.lookup("none")->has_value());
}

TEST_F(Spec_2_2, EveryTopicOfTheSetIsTakenAndNoOther) {
  EXPECT_EQ(Bus::topics().size(), 27U);
  for (const std::string& topic : Bus::topics()) {
    EXPECT_TRUE(bus_.append(message("a", "b", topic))) << topic;
  }
  for (const char* topic : {"", "Request", "lease_dead_holder_reaped"}) {
    EXPECT_EQ(bus_.append(message("a", "b", topic)).error().error_class, "unknown_topic");
  }
}

TEST_F(Spec_2_2, PriorityIsZeroToThree) {
  for (const int priority : {-1, 0, 3, 4}) {
    Message one = message("a", "b");
    one.priority = priority;
    const auto appended = bus_.append(one);
    EXPECT_EQ(appended.has_value(), priority == 0 || priority == 3);
    if (!appended) {
      EXPECT_EQ(appended.error().error_class, "invalid_priority");
    }
  }
}

TEST_F(Spec_2_2, MessageWithoutReceiverOrObjectPayloadIsRefused) {
  Message no_receiver = message("a", "");
  EXPECT_EQ(bus_.append(no_receiver).error().error_class, "invalid_message");
  Message list = message("a", "b");
  list.payload = Json::array();
  EXPECT_EQ(bus_.append(list).error().error_class, "invalid_message");
  Message bad_id = message("a", "b");
  bad_id.msg_id = "not hexadecimal";
  EXPECT_EQ(bus_.append(bad_id).error().error_class, "invalid_message");
}

TEST_F(Spec_2_2, AppendAllIsAllOrNone) {
  Message named = message("a", "b");
  named.msg_id = std::string(32, 'a');
  const auto appended = bus_.append_all({message("a", "b"), named, named});
  ASSERT_FALSE(appended);
  EXPECT_EQ(appended.error().error_class, "duplicate_msg_id");
  EXPECT_TRUE(bus_.tail()->empty());
  EXPECT_TRUE(bus_.append_all({message("a", "b"), named}));
}

TEST_F(Spec_2_2, SeqIsNeverUsedAgainAfterPruning) {
  fill(3);
  ASSERT_TRUE(bus_.prune(0));
  EXPECT_TRUE(bus_.tail()->empty());
  EXPECT_EQ(bus_.append(message("a", "b"))->seq, 4);
}

TEST_F(Spec_2_4, ReplayGivesWhatIsForTheAgentOrEveryone) {
  ASSERT_TRUE(bus_.append_all({message("x", "a"), message("x", "b"), message("x", "*"),
                               message("x", "a"), message("x", "c")}));
  std::vector<int64_t> seen;
  const auto rows = bus_.replay_for("a", 0).value();
  for (const Message& row : rows) seen.push_back(row.seq);
  EXPECT_EQ(seen, (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(bus_.replay_for("a", 1)->size(), 2U);
  EXPECT_EQ(bus_.replay_for("a", 0, 2)->size(), 2U);
  EXPECT_EQ(bus_.replay_for("*", 0)->size(), 1U);
}

TEST_F(Spec_2_4, InboxIsDeliveredUntilTheCursorMoves) {
  fill(2);
  const Inbox inbox = read_inbox(bus_, "b").value();
  ASSERT_EQ(inbox.rows.size(), 2U);
  EXPECT_EQ(read_inbox(bus_, "b")->rows.size(), 2U);
  ASSERT_TRUE(bus_.advance("b", inbox.last_seq, inbox.last_msg_id));
  EXPECT_TRUE(read_inbox(bus_, "b")->rows.empty());
  EXPECT_EQ(read_inbox(bus_, "b")->last_seq, 0);
  const Cursor cursor = bus_.cursor("b").value();
  EXPECT_EQ(cursor.last_processed_seq, inbox.last_seq);
  EXPECT_EQ(cursor.last_processed_msg_id, inbox.last_msg_id);
  EXPECT_FALSE(cursor.processed_at.empty());
}

TEST_F(Spec_2_4, CursorNeverMovesBackwards) {
  ASSERT_TRUE(bus_.advance("b", 10, "ten"));
  ASSERT_TRUE(bus_.advance("b", 9, "nine"));
  EXPECT_EQ(bus_.cursor("b")->last_processed_seq, 10);
  EXPECT_EQ(bus_.cursor("b")->last_processed_msg_id, "ten");
  EXPECT_EQ(bus_.cursor("other")->last_processed_seq, 0);
}

TEST_F(Spec_2_4, TailIsNewestFirstAndTwoHundred) {
  fill(250);
  const auto rows = bus_.tail().value();
  ASSERT_EQ(rows.size(), 200U);
  EXPECT_EQ(rows.front().seq, 250);
  EXPECT_EQ(rows.back().seq, 51);
}

TEST_F(BusTest, RequestsWithoutAResponseAreFound) {
  const Message first = bus_.append(message("orchestration", "kernel_agent", "request")).value();
  const Message second = bus_.append(message("orchestration", "kernel_agent", "request")).value();
  Message response = message("kernel_agent", "orchestration", "response");
  response.in_reply_to = first.msg_id;
  ASSERT_TRUE(bus_.append(response));
  const auto open = bus_.unanswered_requests().value();
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].msg_id, second.msg_id);
}

TEST_F(Spec_2_5, SchemaHasTheTablesAndIndexes) {
  EXPECT_EQ(count("SELECT max(version) FROM schema_version"), 4);
  EXPECT_EQ(count("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('events', "
                  "'cursors', 'tasks', 'leases', 'lane_capacity', 'gpu_leases', "
                  "'schema_version')"),
            7);
  EXPECT_EQ(count("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"),
            6);
  EXPECT_EQ(count("SELECT count(*) FROM lane_capacity WHERE capacity = 1"), 7);
}

TEST_F(Spec_2_5, JournalIsWalAndDurable) {
  {
    const std::lock_guard lock(database_->impl().mutex);
    Query mode(database_->impl(), "PRAGMA journal_mode");
    ASSERT_TRUE(mode.step().value());
    EXPECT_EQ(mode.text(0), "wal");
  }
  EXPECT_EQ(count("PRAGMA synchronous"), 2);
  EXPECT_EQ(count("PRAGMA foreign_keys"), 1);
  EXPECT_EQ(count("PRAGMA busy_timeout"), 30000);
  EXPECT_EQ(count("PRAGMA temp_store"), 2);
}

TEST_F(Spec_2_5, JournalModeFollowsTheVariable) {
  database_.reset();
  bus_ = Bus(nullptr);
  const auto other = open({{"INFERENCE_OPTIMIZER_SQLITE_JOURNAL_MODE", "delete"}}).value();
  Query mode(other->impl(), "PRAGMA journal_mode");
  ASSERT_TRUE(mode.step().value());
  EXPECT_EQ(mode.text(0), "delete");
  const auto lossy = open({{"INFERENCE_OPTIMIZER_SQLITE_JOURNAL_MODE", "OFF"}});
  ASSERT_FALSE(lossy);
  EXPECT_EQ(lossy.error().error_class, "invalid_environment");
}

TEST_F(Spec_2_5, NewestFiveThousandEventsAreKept) {
  fill(12'000);
  EXPECT_LE(count("SELECT count(*) FROM events"), 6000);
  ASSERT_TRUE(bus_.prune());
  EXPECT_EQ(count("SELECT count(*) FROM events"), 5000);
  EXPECT_EQ(count("SELECT max(seq) FROM events"), 12'000);
}

// What the database does for one message does not grow with the number of those before it.
TEST_F(Spec_2_5, AHundredThousandMessagesCostWhatAFewDo) {
  size_t steps = 0;
  const auto count_step = [](void* counter) { return ++*static_cast<size_t*>(counter), 0; };
  const auto steps_of = [&](size_t messages) {
    steps = 0;
    fill(messages);
    return steps;
  };
  sqlite3_progress_handler(database_->impl().handle, 100, count_step, &steps);
  fill(10'000);
  const size_t first = steps_of(10'000);
  const int64_t pages = count("PRAGMA page_count");
  fill(70'000);
  const size_t last = steps_of(10'000);
  EXPECT_EQ(count("SELECT max(seq) FROM events"), 100'000);
  EXPECT_LE(count("SELECT count(*) FROM events"), 6000);
  EXPECT_GT(first, 0u);
  EXPECT_LT(last, first + first / 10);
  EXPECT_LE(count("PRAGMA page_count"), pages + pages / 10);
  sqlite3_progress_handler(database_->impl().handle, 0, nullptr, nullptr);
}

TEST_F(Spec_2_5, UndecidedProposalsAreNeverPruned) {
  const Message open = bus_.append(message("a", "*", "proposal")).value();
  const Message decided = bus_.append(message("a", "*", "proposal")).value();
  Message verdict = message("critic", "a", "review_verdict");
  verdict.in_reply_to = decided.msg_id;
  ASSERT_TRUE(bus_.append(verdict));
  fill(10);
  ASSERT_TRUE(bus_.prune(11));
  EXPECT_TRUE(bus_.lookup(open.msg_id)->has_value());
  EXPECT_FALSE(bus_.lookup(decided.msg_id)->has_value());
}

TEST_F(Spec_2_5, NewestFinishedTasksAreKept) {
  Tasks tasks(database_);
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i) {
    Task task;
    task.kind = "profile";
    task.idempotency_key = "key" + std::to_string(i);
    ids.push_back(tasks.create_or_return_existing(task)->task.task_id);
  }
  for (int i = 1; i < 6; ++i) ASSERT_TRUE(tasks.transition(ids[i], "cancelled"));
  ASSERT_TRUE(bus_.prune(5000, 2));
  std::set<std::string> left;
  for (const std::string& id : ids) {
    if (tasks.find(id)->has_value()) left.insert(id);
  }
  EXPECT_EQ(left, (std::set<std::string>{ids[0], ids[4], ids[5]}));
}

TEST_F(Spec_2_5, MessagesOutliveTheProcess) {
  const Message sent = bus_.append(message("a", "b")).value();
  database_.reset();
  bus_ = Bus(nullptr);
  const Bus again(open().value());
  EXPECT_EQ(again.lookup(sent.msg_id)->value().seq, sent.seq);
}

// The virtual machine's instructions that SQLite runs for one call.
template <class Call>
uint64_t work_of(Database& database, Call call) {
  uint64_t steps = 0;
  sqlite3* handle = database.impl().handle;
  const auto tick = [](void* counter) {
    ++*static_cast<uint64_t*>(counter);
    return 0;
  };
  sqlite3_progress_handler(handle, 1, tick, &steps);
  call();
  sqlite3_progress_handler(handle, 0, nullptr, nullptr);
  return steps;
}

TEST_F(BusTest, HundredThousandMessagesCostNoMoreEachThanTheFirst) {
  const auto append = [&] { ASSERT_TRUE(bus_.append(message("a", "b"))); };
  const auto deliver = [&] {
    const Inbox inbox = read_inbox(bus_, "b").value();
    ASSERT_TRUE(bus_.advance("b", inbox.last_seq, inbox.last_msg_id));
  };
  append();
  const uint64_t first_append = work_of(*database_, append);
  const uint64_t first_thousand = work_of(*database_, [&] { fill(2000); });
  deliver();
  append();
  const uint64_t first_delivery = work_of(*database_, deliver);
  fill(7000);
  const uint64_t early = work_of(*database_, [&] { fill(2000); });
  fill(90'000);
  const uint64_t late = work_of(*database_, [&] { fill(2000); });
  // Deleting what retention removes costs about as much again as adding it.
  EXPECT_LT(early, 4 * first_thousand);
  EXPECT_LT(late, early + early / 10);
  deliver();
  append();
  EXPECT_LE(work_of(*database_, deliver), first_delivery + first_delivery / 10);
  EXPECT_LE(work_of(*database_, append), first_append + first_append / 10);
  EXPECT_LE(count("SELECT count(*) FROM events"), 7000);
}

TEST_F(BusTest, NoStatementScansTheLog) {
  fill(10);
  ASSERT_TRUE(bus_.prune(5));
  ASSERT_TRUE(bus_.lookup("x"));
  ASSERT_TRUE(read_inbox(bus_, "b"));
  ASSERT_TRUE(bus_.advance("b", 1, "x"));
  // Every statement that was prepared until here, besides those of the setup.
  std::vector<std::string> kept;
  for (const auto& [sql, statement] : database_->impl().statements) {
    if (sql.find("events") != std::string_view::npos) kept.push_back(std::string(sql));
  }
  ASSERT_GE(kept.size(), 6U);
  for (const std::string& sql : kept) {
    const std::string explain = "EXPLAIN QUERY PLAN " + sql;
    Query plan(database_->impl(), explain);
    while (plan.step().value()) {
      // The row at which retention ends is counted off from the newest, through the key.
      if (sql.find("OFFSET") != std::string::npos) continue;
      EXPECT_EQ(plan.text(3).find("SCAN events"), std::string::npos) << sql << plan.text(3);
    }
  }
}

TEST_F(BusTest, FullDiskIsAClearErrorAndLosesNothing) {
  const Message kept = bus_.append(message("a", "b")).value();
  {
    const FullDisk full(64 * 1024);
    Result<Message> appended = kept;
    for (int i = 0; i < 100 && appended; ++i) {
      Message big = message("a", "b");
      big.payload["text"] = std::string(8 * 1024, 'x');
      appended = bus_.append(big);
    }
    ASSERT_FALSE(appended);
    EXPECT_EQ(appended.error().error_class, "database");
    EXPECT_NE(appended.error().message.find("coordinator.db"), std::string::npos);
  }
  EXPECT_TRUE(bus_.lookup(kept.msg_id)->has_value());
  EXPECT_TRUE(bus_.append(message("a", "b")));
  EXPECT_TRUE(open());
}

TEST_F(BusTest, DamagedFileIsRefusedWithTheRepair) {
  database_.reset();
  bus_ = Bus(nullptr);
  std::ofstream(path(), std::ios::binary | std::ios::trunc) << std::string(8192, 'x');
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().error_class, "database");
  EXPECT_NE(opened.error().message.find(path().filename().string()), std::string::npos);
  EXPECT_FALSE(opened.error().hint.empty());
}

TEST_F(BusTest, DamageInsideTheFileIsFoundAtTheStart) {
  fill(2000);
  database_.reset();
  bus_ = Bus(nullptr);
  const auto size = std::filesystem::file_size(path());
  ASSERT_GT(size, 40'000U);
  std::fstream file(path(), std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(16'384);
  file << std::string(16'384, '\x5a');
  file.close();
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().error_class, "database");
}

TEST_F(BusTest, FileOfAnotherVersionIsRefused) {
  ASSERT_TRUE(database_->impl().execute("UPDATE schema_version SET version = 5"));
  const auto opened = open();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().error_class, "unknown_schema_version");
  EXPECT_NE(opened.error().message.find("version is 5"), std::string::npos);
}

TEST_F(BusTest, FolderThatCannotBeMadeIsAClearError) {
  std::ofstream(folder_ / "file") << "in the way";
  const auto opened = Database::open(folder_ / "file" / "coordinator.db", Environment(Variables{}));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().error_class, "unwritable_file");
}

}  // namespace
}  // namespace hyperloom::bus
