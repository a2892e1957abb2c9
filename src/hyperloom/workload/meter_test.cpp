#include "hyperloom/workload/meter.h"

#include <fstream>

#include "hyperloom/workload/test_tree.h"
#include "hyperloom/workload/workload.h"

namespace hyperloom::workload {
namespace {

class MeterTest : public TestTree {
 protected:
  std::filesystem::path file() const { return folder() / "measurements.jsonl"; }
  std::string content() const {
    std::ifstream in(file());
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

Result<Json> never() {
  ADD_FAILURE() << "measured again";
  return 0;
}

TEST_F(MeterTest, MeasuresEveryTimeWithoutFiles) {
  Meter meter;
  int calls = 0;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(meter.value("k", [&] { return Json(++calls); }));
  EXPECT_EQ(calls, 2);
}

TEST_F(MeterTest, AReplayAnswersFromTheRecordAndMeasuresNothing) {
  auto record = Meter::open(file(), "");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(*record->value("pair|a|b|0", [] { return Json(1.25); }), 1.25);
  EXPECT_EQ(
      record->value("load|c", [] { return fail("build_failed", "m", "h"); }).error().error_class,
      "build_failed");
  auto replay = Meter::open("", file());
  ASSERT_TRUE(replay);
  EXPECT_EQ(*replay->value("pair|a|b|0", never), 1.25);
  const auto failed = replay->value("load|c", never);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message, "m");
  EXPECT_EQ(failed.error().hint, "h");
  EXPECT_EQ(*replay->value("new", [] { return Json(3); }), 3);
}

TEST_F(MeterTest, AKilledRunGoesOnAfterItsLastWholeLine) {
  {
    auto meter = Meter::open(file(), file());
    ASSERT_TRUE(meter) << meter.error().message;
    EXPECT_TRUE(meter->value("a", [] { return Json(1); }));
  }
  std::ofstream(file(), std::ios::app) << R"({"key":"b","val)";
  auto meter = Meter::open(file(), file());
  ASSERT_TRUE(meter) << meter.error().message;
  EXPECT_EQ(*meter->value("a", never), 1);
  EXPECT_EQ(*meter->value("b", [] { return Json(2); }), 2);
  EXPECT_EQ(content(), "{\"key\":\"a\",\"value\":1}\n{\"key\":\"b\",\"value\":2}\n");
  EXPECT_EQ(*Meter::open("", file())->value("b", never), 2);
}

TEST_F(MeterTest, AStopIsNotRecorded) {
  auto meter = Meter::open(file(), file());
  EXPECT_FALSE(meter->value("a", [] { return fail("cancelled", "stopped"); }));
  EXPECT_EQ(content(), "");
  EXPECT_EQ(*meter->value("a", [] { return Json(2); }), 2);
}

TEST_F(MeterTest, FilesThatCannotBeUsedAreErrors) {
  EXPECT_EQ(Meter::open("", file()).error().error_class, "unreadable_file");
  write("measurements.jsonl", "not json\n");
  const auto broken = Meter::open("", file());
  EXPECT_EQ(broken.error().error_class, "invalid_json");
  EXPECT_NE(broken.error().message.find("measurements.jsonl:1"), std::string::npos);
  write("measurements.jsonl", "{\"key\":1}\n");
  EXPECT_EQ(Meter::open("", file()).error().error_class, "invalid_json");
  EXPECT_EQ(Meter::open(folder(), "").error().error_class, "unwritable_file");
}

// A full disk must not leave half a line in front of the next one.
TEST_F(MeterTest, ADiskThatIsFullIsAnErrorOfTheMeasurement) {
  auto meter = Meter::open("/dev/full", "");
  if (!meter) GTEST_SKIP() << meter.error().message;
  const auto value = meter->value("a", [] { return Json(1); });
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().error_class, "unwritable_file");
}

class Spec_1_6 : public TestTree {};

TEST_F(Spec_1_6, TheTreeHashIsOverPathsModesAndContents) {
  const std::vector<fs::path> files = {"a.loom", "b/c.loom"};
  write("a.loom", "one");
  write("b/c.loom", "two");
  const auto hash = [&](const std::vector<fs::path>& of) {
    return tree_hash(folder(), of).value_or("none");
  };
  const std::string first = hash(files);
  EXPECT_EQ(first.size(), 64u);
  EXPECT_EQ(hash({"b/c.loom", "a.loom"}), first);
  write("cache.o", "build output is no source");
  EXPECT_EQ(hash(files), first);
  write("a.loom", "other");
  EXPECT_NE(hash(files), first);
  write("a.loom", "one");
  EXPECT_EQ(hash(files), first);
  fs::permissions(folder() / "a.loom", fs::perms::owner_all);
  EXPECT_NE(hash(files), first);
  EXPECT_NE(hash({"a.loom"}), first);
  fs::remove(folder() / "a.loom");
  const auto gone = tree_hash(folder(), files);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().error_class, "unreadable_file");
}

}  // namespace
}  // namespace hyperloom::workload
