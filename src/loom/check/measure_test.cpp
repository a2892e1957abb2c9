#include "loom/check/measure.h"

#include <gtest/gtest.h>

namespace loom::check {
namespace {

// Work whose time is exact: a clock that only it moves.
class FakeWork final : public TimedWork {
 public:
  FakeWork(double& now, double seconds) : now_(now), seconds_(seconds) {}
  bool run(uint64_t count, Diagnostics& diagnostics) override {
    done += count;
    now_ += seconds_ * static_cast<double>(count);
    if (done < fails_after) return true;
    diagnostics.emit(Diag::RunLimit, {}, {{"limit", "a test"}, {"repair", ""}});
    return false;
  }
  void restore() override {
    ++restored;
    now_ += 0.001;  // is not part of any number
  }

  uint64_t done = 0;
  uint64_t restored = 0;
  uint64_t fails_after = ~uint64_t{0};

 private:
  double& now_;
  double seconds_;
};

class Measuring : public testing::Test {
 protected:
  MeasureOptions options() {
    MeasureOptions made{.warm_up = 0.01, .least_time = 0.1, .most_time = 100};
    made.clock = [this] { return now; };
    return made;
  }
  double now = 5;
  Diagnostics diagnostics;
};

TEST_F(Measuring, BatchesAreLongEnoughForTheClockAndRestoringIsNotTimed) {
  FakeWork work(now, 1e-6);
  const auto found = measure(work, options(), diagnostics);
  ASSERT_TRUE(found.has_value());
  EXPECT_GE(static_cast<double>(found->batch_size) * 1e-6, 1e-3);
  EXPECT_LE(static_cast<double>(found->batch_size) * 1e-6, 2e-2);
  EXPECT_NEAR(found->summary().p50, 1000, 1e-3);
  EXPECT_NEAR(found->summary().most, 1000, 1e-3);
  EXPECT_GE(static_cast<double>(found->batches.size()) * static_cast<double>(found->batch_size),
            0.1 / 1e-6);
  EXPECT_GE(work.restored, found->batches.size());
  EXPECT_FALSE(found->capped);
}

TEST_F(Measuring, TheCapEndsWorkThatIsTooLong) {
  FakeWork work(now, 30);
  const auto found = measure(work, options(), diagnostics);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->capped);
  EXPECT_EQ(found->batch_size, 1u);
  EXPECT_LE(work.done, 5u);
}

TEST_F(Measuring, RepetitionsAndBatchSizesAreTakenAsTheyAre) {
  FakeWork work(now, 1e-6);
  MeasureOptions fixed = options();
  fixed.warm_up = 0;
  fixed.batch_size = 7;
  fixed.repetitions = 3;
  const auto found = measure(work, fixed, diagnostics);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->batches.size(), 3u);
  EXPECT_EQ(work.done, 7u * 4);  // one batch to warm up
}

TEST_F(Measuring, BatchesEndWhereInputsWouldBeUsedTwice) {
  FakeWork work(now, 1e-6);
  work.most_batch = 5;
  const auto found = measure(work, options(), diagnostics);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->batch_size, 5u);
  MeasureOptions larger = options();
  larger.batch_size = 100;
  EXPECT_EQ(measure(work, larger, diagnostics)->batch_size, 5u);
}

TEST_F(Measuring, SidesTakeTurns) {
  FakeWork a(now, 1e-6);
  FakeWork b(now, 1.05e-6);
  const auto found = measure_both(a, b, options(), diagnostics);
  ASSERT_TRUE(found && found->difference);
  EXPECT_EQ(found->a.batches.size(), found->b.batches.size() + 1);
  EXPECT_NEAR(found->difference->ratio, 1.05, 1e-6);
  EXPECT_TRUE(found->difference->different);
  MeasureOptions robin = options();
  robin.interleave = Interleave::RoundRobin;
  const auto other = measure_both(a, b, robin, diagnostics);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->a.batches.size(), other->b.batches.size());
}

TEST_F(Measuring, TooFewPairsGiveNoDifference) {
  FakeWork a(now, 3);
  FakeWork b(now, 3);
  const auto found = measure_both(a, b, options(), diagnostics);
  ASSERT_TRUE(found.has_value());
  EXPECT_FALSE(found->difference.has_value());
  EXPECT_TRUE(found->a.capped);
}

TEST_F(Measuring, WorkThatFailsHasNoNumber) {
  FakeWork work(now, 1e-3);
  work.fails_after = 20;
  EXPECT_FALSE(measure(work, options(), diagnostics).has_value());
  EXPECT_TRUE(diagnostics.has_errors());
}

// What CHECK/006 says.
TEST(Noise, TimesThatAreFarApartAreNamed) {
  EXPECT_NE(noise_text({.count = 9, .p10 = 10, .p50 = 10, .p90 = 14}).find("spread of 40%"),
            std::string::npos);
  EXPECT_EQ(noise_text({.count = 9, .p10 = 10, .p50 = 10, .p90 = 11}).find("spread"),
            std::string::npos);
}

}  // namespace
}  // namespace loom::check
