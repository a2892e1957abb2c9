#include "hyperloom/bus/lanes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "hyperloom/bus/sqlite.h"
#include "hyperloom/core/testing.h"

namespace hyperloom::bus {
namespace {

class LanesTest : public testing::Test {
 protected:
  LanesTest() : database_(open()), lanes_(database_) {}
  std::shared_ptr<Database> open() const {
    return Database::open(folder_ / "coordinator.db",
                          Environment(std::map<std::string, std::string>{}))
        .value();
  }
  // Runs `body` in a process of its own, which then ends without giving anything back.
  template <class Body>
  void in_killed_process(Body body) {
    const pid_t child = ::fork();
    if (child == 0) {
      body();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  std::string try_class(const std::string& lane) {
    const auto lease = lanes_.try_acquire(lane, "test");
    return lease ? "" : lease.error().error_class;
  }
  static Deadline soon() { return Deadline::in_seconds(0); }

  TempFolder folder_;
  std::shared_ptr<Database> database_;
  Lanes lanes_;
};

using Spec_2_5_Lanes = LanesTest;

TEST_F(Spec_2_5_Lanes, LaneOfCapacityOneIsBusyUntilItIsGivenBack) {
  for (const char* lane : {"server_lifecycle", "workspace_mutation", "benchmark_lane",
                           "profile_lane", "research_lane", "gpu_research_lane", "build_lane"}) {
    {
      const auto lease = lanes_.try_acquire(lane, "first");
      ASSERT_TRUE(lease && lease->held()) << lane;
      const auto second = lanes_.try_acquire(lane, "second");
      ASSERT_FALSE(second);
      EXPECT_EQ(second.error().error_class, "lane_busy");
      EXPECT_NE(second.error().message.find("first"), std::string::npos);
    }
    EXPECT_EQ(try_class(lane), "");
  }
  EXPECT_EQ(try_class("no_lane"), "unknown_lane");
}

TEST_F(Spec_2_5_Lanes, DeviceLanesExcludeEachOtherAndNoOthers) {
  const std::set<std::string> exclusive = {"benchmark_lane", "profile_lane", "server_lifecycle",
                                           "gpu_research_lane"};
  for (const std::string& held : exclusive) {
    const auto lease = lanes_.try_acquire(held, "first");
    ASSERT_TRUE(lease);
    for (const char* lane : {"server_lifecycle", "workspace_mutation", "benchmark_lane",
                             "profile_lane", "research_lane", "gpu_research_lane", "build_lane"}) {
      EXPECT_EQ(try_class(lane), exclusive.contains(lane) ? "lane_busy" : "") << held << lane;
    }
  }
}

TEST_F(Spec_2_5_Lanes, LaneOfGreaterCapacityIsFull) {
  ASSERT_TRUE(
      database_->impl().execute("UPDATE lane_capacity SET capacity = 2 WHERE lane = 'build_lane'"));
  const auto first = lanes_.try_acquire("build_lane", "a");
  const auto second = lanes_.try_acquire("build_lane", "b");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(try_class("build_lane"), "lane_full");
}

TEST_F(Spec_2_5_Lanes, LeaseOfADeadProcessIsReclaimed) {
  in_killed_process([&] {
    Lanes mine(Database::open(folder_ / "coordinator.db",
                              Environment(std::map<std::string, std::string>{}))
                   .value());
    auto lease = mine.try_acquire("benchmark_lane", "dies");
    std::string device;
    auto leased = mine.acquire_device({"cpu:0"}, device, Deadline(), {});
    if (!lease || !leased) ::_exit(1);
    ::_exit(0);
  });
  EXPECT_EQ(try_class("benchmark_lane"), "");
  std::string device;
  EXPECT_TRUE(lanes_.acquire_device({"cpu:0"}, device, soon(), {}));
}

TEST_F(Spec_2_5_Lanes, LeaseOfAReusedPidIsReclaimed) {
  // The pid lives, but started at another time than the holder did.
  const std::string sql = "INSERT INTO leases VALUES ('build_lane', '" +
                          std::to_string(::getpid()) + ":1:1', NULL, 'old', 1, '', NULL, '')";
  ASSERT_TRUE(database_->impl().execute(sql.c_str()));
  EXPECT_EQ(try_class("build_lane"), "");
}

TEST_F(LanesTest, WaitEndsAtTheDeadlineOrWhenStopped) {
  const auto held = lanes_.try_acquire("build_lane", "first");
  const auto late = lanes_.acquire("build_lane", "second", soon(), {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().error_class, "lane_timeout");
  std::stop_source stop;
  stop.request_stop();
  const auto stopped = lanes_.acquire("build_lane", "second", Deadline(), stop.get_token());
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().error_class, "cancelled");
}

TEST_F(LanesTest, EverybodyGetsTheLaneAndNobodyTwoAtOnce) {
  std::atomic<int> inside = 0;
  std::atomic<int> done = 0;
  std::atomic<bool> overlapped = false;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto lease =
          lanes_.acquire(i % 2 == 0 ? "benchmark_lane" : "profile_lane", "measure", Deadline(), {});
      if (!lease) return;
      if (++inside > 1) overlapped = true;
      std::this_thread::yield();
      --inside;
      ++done;
    });
  }
  threads.clear();
  EXPECT_EQ(done, 8);
  EXPECT_FALSE(overlapped);
}

TEST_F(LanesTest, EachDeviceIsLeasedOnce) {
  const std::vector<std::string> devices = {"cpu:0", "gpu:0"};
  std::string first;
  std::string second;
  std::string third;
  auto a = lanes_.acquire_device(devices, first, soon(), {});
  auto b = lanes_.acquire_device(devices, second, soon(), {});
  ASSERT_TRUE(a && b);
  EXPECT_EQ((std::set<std::string>{first, second}),
            std::set<std::string>(devices.begin(), devices.end()));
  EXPECT_FALSE(lanes_.acquire_device(devices, third, soon(), {}));
  *b = Lease();
  ASSERT_TRUE(lanes_.acquire_device(devices, third, soon(), {}));
  EXPECT_EQ(third, second);
  EXPECT_EQ(lanes_.acquire_device({}, third, soon(), {}).error().error_class, "unknown_lane");
}

TEST_F(LanesTest, LeaseThatTheDiskKeptFromBeingGivenBackIsFree) {
  {
    auto lease = lanes_.try_acquire("build_lane", "first");
    ASSERT_TRUE(lease);
    const FullDisk full(1);
    *lease = Lease();
  }
  EXPECT_EQ(try_class("build_lane"), "");
}

}  // namespace
}  // namespace hyperloom::bus
