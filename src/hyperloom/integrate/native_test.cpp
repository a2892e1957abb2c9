// Integrations of a real program in real worker processes. What they measure decides nothing here.
#include <gtest/gtest.h>

#include <cstdlib>

#include "hyperloom/integrate/base_copy.h"
#include "hyperloom/integrate/integrate_testing.h"

namespace hyperloom::integrate {
namespace {

constexpr const char* kProgram = R"(kernel.def @double(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%n: index, %from: buffer, %to: buffer) where [range(%n, 1, 64)] {
  %i = kernel.workgroup.id<x> : index
  %base = index.constant 0 : offset
  %in = buffer.view %from[%base] : buffer -> view<[%n]xf32>
  %out = buffer.view %to[%base] : buffer -> view<[%n]xf32>
  %value = view.load %in[%i] : view<[%n]xf32> -> f32
  %sum = scalar.addf %value, %value : f32
  view.store %sum, %out[%i] : f32, view<[%n]xf32>
  kernel.return
}

command.program.def public @run() launch(%input: buffer, %output: buffer) {
  %n = index.constant 64 : index
  kernel.launch @double[%n](%n, %input, %output) : [index](index, buffer, buffer)
  command.return
}
)";

// The fake session's state, bus and lanes around a native workload.
class Native : public Integrate {
 protected:
  void SetUp() override {
    world_.write("tree/model.loom", kProgram);
    Integrate::SetUp();
    auto opened =
        workload::open_workload({{"tree", world_.tree().string()},
                                 {"files", {"model.loom"}},
                                 {"root", "@run"},
                                 {"inputs",
                                  {{{"name", "%input"}, {"type", "64xf32"}, {"random", {-2, 2}}},
                                   {{"name", "%output"}, {"type", "64xf32"}}}}});
    ASSERT_TRUE(opened) << opened.error().message;
    workload_ = std::move(*opened);
    world_.change([&](Json& state) {
      state["last_trace_analyze"]["tree_hash"] =
          *workload::tree_hash(world_.tree(), workload_->files());
    });
  }
  void TearDown() override { ::unsetenv("HYPERLOOM_WORKER_FAULT"); }
  Json run(const std::string& source) {
    world_.write("candidates/c.loom", source);
    const task::Context fake = world_.context();
    const task::Context context{.session = fake.session,
                                .environment = fake.environment,
                                .workload = *workload_,
                                .meter = fake.meter,
                                .bus = fake.bus,
                                .lanes = fake.lanes,
                                .stop = fake.stop,
                                .deadline = fake.deadline};
    return integrate({{"kernel_id", "k001"},
                      {"patch_path", (world_.base() / "candidates/c.loom").string()},
                      {"target_file", "model.loom"},
                      {"sample_seconds", 0.005},
                      {"max_pairs", 6}},
                     context);
  }
  static std::string with(const std::string& from, const std::string& to) {
    std::string text = kProgram;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, from.size(), to);
  }
  std::unique_ptr<workload::Workload> workload_;
};

TEST_F(Native, TheCopyOfTheOriginalIsTheSameCode) {
  ASSERT_TRUE(copy_base(*workload_, nullptr, world_.base() / "copy"));
  const auto bench = workload_->start(120, {});
  ASSERT_TRUE(bench);
  const auto a = (*bench)->load("a", {world_.base() / "copy"});
  const auto b = (*bench)->load("b", {world_.tree()});
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->content_hash, b->content_hash);
}

TEST_F(Native, ACommentIsNoCandidate) {
  const Json result = run(with("  %sum =", "  // faster\n  %sum ="));
  EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW source_import_disproved") << result;
  EXPECT_EQ(picture(world_.tree()), before_);
}

TEST_F(Native, ACandidateThatDoesNotCompileIsRevertedWithItsPlace) {
  const Json result = run(with("scalar.addf %value, %value", "scalar.addf %value, %absent"));
  EXPECT_EQ(World::verdict(result), "REVERT build_failed") << result;
  EXPECT_TRUE(text_of(result, "error").contains("model.loom:10:30")) << result;
  EXPECT_EQ(picture(world_.tree()), before_);
}

TEST_F(Native, AWorkloadThatDiesOrAnswersGarbageIsNoVerdict) {
  for (const auto& [fault, error_class] : {std::pair{"crash", "workload_crashed"},
                                           {"garbage", "workload_garbage"},
                                           {"exit", "workload_crashed"}}) {
    ::setenv("HYPERLOOM_WORKER_FAULT", (std::string("throughput:") + fault).c_str(), 1);
    const Json result = run(with("scalar.addf %value, %value", "scalar.subf %value, %value"));
    EXPECT_EQ(World::verdict(result), "NEEDS_REVIEW evaluation_impossible") << result;
    EXPECT_EQ(text_of(result, "error_class"), error_class);
    EXPECT_EQ(picture(world_.tree()), before_);
  }
}

// Whatever is measured: it is wrong, so it is not kept.
TEST_F(Native, WrongResultsAreNeverKept) {
  const Json result = run(with("scalar.addf %value, %value", "scalar.subf %value, %value"));
  EXPECT_EQ(text_of(result, "decision"), "REVERT") << result;
  EXPECT_EQ(result["source_import_confirmed"], true);
  EXPECT_EQ(picture(world_.tree()), before_);
}

}  // namespace
}  // namespace hyperloom::integrate
