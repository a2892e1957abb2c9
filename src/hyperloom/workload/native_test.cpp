// Real programs in real worker processes.
#include "hyperloom/workload/native.h"
#include "hyperloom/core/process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "hyperloom/workload/test_tree.h"

namespace hyperloom::workload {
namespace {

// Adds one to each of %n values; @tile is a configuration that changes the code, not the result.
constexpr const char* kProgram = R"(config.decl @tile : %value: index where [range(%value, 1, 8)]

kernel.def @add(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%n: index, %from: buffer, %to: buffer) where [range(%n, 1, 4096)] {
  %base = index.constant 0 : offset
  %zero = index.constant 0 : index
  %step = config.get @tile : index
  %inner = index.constant 1 : index
  %in = buffer.view %from[%base] : buffer -> view<[%n]xf32>
  %out = buffer.view %to[%base] : buffer -> view<[%n]xf32>
  %b = scalar.constant 1.0 : f32
  scf.for %i = [%zero to %n step %step]() -> () {
    %end0 = index.add %i, %step : index
    %end = index.min %end0, %n : index
    scf.for %k = [%i to %end step %inner]() -> () {
      %a = view.load %in[%k] : view<[%n]xf32> -> f32
      %c = scalar.addf %a, %b : f32
      view.store %c, %out[%k] : f32, view<[%n]xf32>
    }
  }
  kernel.return
}

command.program.def public @run(%n: index) launch(%input: buffer, %output: buffer) where [range(%n, 1, 4096)] {
  kernel.launch @add[%n](%n, %input, %output) : [index](index, buffer, buffer)
  command.return
}
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

const fs::path kExample = HYPERLOOM_EXAMPLE_WORKLOAD;

class Native : public TestTree {
 protected:
  static Json description(const fs::path& tree) {
    return {{"tree", tree.string()},
            {"files", {"model.loom"}},
            {"root", "@run"},
            {"config", {{"tile", 1}}},
            {"specialize", {{"n", 512}}},
            {"inputs",
             {{{"name", "%input"}, {"type", "512xf32"}, {"random", {-2, 2}}},
              {{"name", "%output"}, {"type", "512xf32"}}}},
            {"held_out",
             {{{"specialize", {{"n", 77}}},
               {"inputs",
                {{{"name", "input"}, {"type", "77xf32"}},
                 {{"name", "output"}, {"type", "77xf32"}}}}}}}};
  }
  void SetUp() override {
    TestTree::SetUp();
    write("tree/model.loom", kProgram);
    auto opened = open_workload(description(folder() / "tree"));
    ASSERT_TRUE(opened) << opened.error().message;
    workload_ = std::move(*opened);
  }
  void TearDown() override {
    unsetenv("HYPERLOOM_WORKER_FAULT");
    unsetenv("HYPERLOOM_WORKER");
    TestTree::TearDown();
  }
  std::unique_ptr<Bench> start(double timeout = 120, std::stop_token stop = {}) {
    auto bench = workload_->start(timeout, std::move(stop));
    EXPECT_TRUE(bench) << bench.error().message;
    return bench ? std::move(*bench) : nullptr;
  }
  // A copy of the sources with a change, as an attempt has it.
  fs::path changed(const std::string& name, const std::string& from, const std::string& to) {
    write(name + "/model.loom", replaced(kProgram, from, to));
    return folder() / name;
  }
  std::unique_ptr<Workload> workload_;
};

TEST_F(Native, Spec_4_8_TheFrameworkIsLoom) {
  EXPECT_EQ(workload_->framework(), "loom");
  EXPECT_EQ(workload_->device(), "cpu:0");
  EXPECT_EQ(workload_->name(), "run");
  EXPECT_EQ(workload_->files(), std::vector<fs::path>{"model.loom"});
}

TEST_F(Native, AVariantIsBuiltTimedAndTraced) {
  const auto bench = start();
  const auto loaded = bench->load("a", {workload_->tree()});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->kernels, std::vector<std::string>{"add"});
  EXPECT_EQ(loaded->content_hash.size(), 64u);
  EXPECT_GT(*bench->throughput("a", 0.01), 0);
  EXPECT_GT(*bench->kernel_ns("a", "add", 5), 0);
  const auto trace = bench->trace("a");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->size(), 1u);
  EXPECT_EQ(trace->front().kernel, "add");
  EXPECT_EQ(trace->front().workgroups, 1u);
  EXPECT_EQ(trace->front().bytes, 2u * 512 * 4);
  EXPECT_EQ(trace->front().source_file, "model.loom");
  EXPECT_EQ(trace->front().source_line, 3u);
}

TEST_F(Native, EqualCodeHasAnEqualHashWhateverTheSource) {
  const auto bench = start();
  const auto a = bench->load("a", {workload_->tree()});
  const auto b =
      bench->load("b", {changed("b", "kernel.def @add", "// a remark\nkernel.def @add")});
  const auto c = bench->load("c", {workload_->tree(), {{"tile", 4}}});
  ASSERT_TRUE(a && b && c);
  EXPECT_EQ(a->content_hash, b->content_hash);
  EXPECT_NE(a->content_hash, c->content_hash);
}

TEST_F(Native, OutputsAreHeldAgainstTheInterpreterOnFreshSeeds) {
  const auto bench = start();
  ASSERT_TRUE(bench->load("c", {workload_->tree(), {{"tile", 3}}}));
  for (const bool adversarial : {false, true}) {
    for (const bool held_out : {false, true}) {
      const auto agreement = bench->compare("c", "", 7, adversarial, held_out);
      ASSERT_TRUE(agreement) << agreement.error().message;
      EXPECT_TRUE(agreement->correct) << agreement->where;
      EXPECT_EQ(agreement->accuracy, 1);
      EXPECT_EQ(agreement->reference, "interpreter");
    }
  }
}

TEST_F(Native, TheReferenceStaysTheOriginalWhenTheTreeChanges) {
  write("tree/model.loom", replaced(kProgram, "constant 1.0", "constant 2.0"));
  const auto bench = start();
  ASSERT_TRUE(bench->load("now", {workload_->tree()}));
  const auto agreement = bench->compare("now", "", 1, false, false);
  ASSERT_TRUE(agreement);
  EXPECT_FALSE(agreement->correct);
  EXPECT_LT(agreement->accuracy, 0.1);
  EXPECT_EQ(agreement->where, "output %output[0]");
  EXPECT_TRUE(bench->compare("now", "now", 1, false, false)->correct);
  // A resumed session opens what describe() kept.
  const auto again = open_workload(workload_->describe());
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ((*again)->describe(), workload_->describe());
  const auto other = (*again)->start(120, {});
  ASSERT_TRUE((*other)->load("now", {workload_->tree()}));
  EXPECT_FALSE((*other)->compare("now", "", 1, false, false)->correct);
}

TEST_F(Native, AnElementLeftUntouchedIsWrong) {
  const auto bench = start();
  const fs::path tree = changed("b", "[%zero to %n step %step]", "[%step to %n step %step]");
  ASSERT_TRUE(bench->load("b", {tree}));
  const auto agreement = bench->compare("b", "", 1, false, false);
  ASSERT_TRUE(agreement);
  EXPECT_FALSE(agreement->correct);
  EXPECT_EQ(agreement->where, "output %output[0]");
}

TEST_F(Native, AWriteBehindTheOutputIsWrong) {
  const auto bench = start();
  const fs::path tree = changed("b", "view.store %c, %out[%k] : f32, view<[%n]xf32>",
                                "view.store %c, %out[%k] : f32, view<[%n]xf32>\n"
                                "      %four = index.constant 4 : index\n"
                                "      %past = index.add %k, %four : index\n"
                                "      view.store %c, %out[%past] : f32, view<[%n]xf32>");
  ASSERT_TRUE(bench->load("b", {tree}));
  const auto agreement = bench->compare("b", "", 1, false, false);
  ASSERT_TRUE(agreement);
  EXPECT_FALSE(agreement->correct);
  EXPECT_EQ(agreement->where, "bytes behind %output");
}

TEST_F(Native, ABuildThatFailsSaysWhereAndLeavesTheBenchAlive) {
  const auto bench = start();
  const auto broken = bench->load("b", {changed("b", "scalar.addf %a, %b", "scalar.addf %a, %q")});
  ASSERT_FALSE(broken);
  EXPECT_EQ(broken.error().error_class, "build_failed");
  EXPECT_NE(broken.error().message.find("model.loom:"), std::string::npos);
  EXPECT_TRUE(bench->load("a", {workload_->tree()}));
  const auto config = bench->load("c", {workload_->tree(), {{"tile", 9}}});
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().error_class, "build_failed");
}

// Each fault, and that nothing is left running after it.
void expect_dead(Bench& bench, const std::string& error_class) {
  const auto value = bench.throughput("a", 0.01);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().error_class, error_class) << value.error().message;
  // Dead is dead, and says the same.
  EXPECT_EQ(bench.trace("a").error().error_class, error_class);
  const auto children = run_child(
      {.command = {"/bin/sh", "-c", "pgrep -P " + std::to_string(getpid()) + " | grep -v $$"}});
  ASSERT_TRUE(children);
  EXPECT_EQ(children->output, "");
}

TEST_F(Native, AWorkerThatHangsIsEnded) {
  setenv("HYPERLOOM_WORKER_FAULT", "throughput:hang", 1);
  const auto bench = start(5);
  ASSERT_TRUE(bench->load("a", {workload_->tree()}));
  expect_dead(*bench, "workload_hung");
}

TEST_F(Native, AWorkerThatCrashesIsAnErrorThatNamesTheSignal) {
  setenv("HYPERLOOM_WORKER_FAULT", "throughput:crash", 1);
  const auto bench = start();
  ASSERT_TRUE(bench->load("a", {workload_->tree()}));
  const auto value = bench->throughput("a", 0.01);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().error_class, "workload_crashed");
  EXPECT_NE(value.error().message.find("signal 11"), std::string::npos) << value.error().message;
  expect_dead(*bench, "workload_crashed");
}

TEST_F(Native, AWorkerThatPrintsGarbageIsEnded) {
  setenv("HYPERLOOM_WORKER_FAULT", "throughput:garbage", 1);
  const auto bench = start();
  ASSERT_TRUE(bench->load("a", {workload_->tree()}));
  expect_dead(*bench, "workload_garbage");
}

TEST_F(Native, AProgramThatNeverEndsHangsOnlyItsWorker) {
  const auto bench = start(3);
  const fs::path tree = changed("b", "  %b = scalar.constant 1.0 : f32\n",
                                "  %none = scalar.constant 0.0 : f32\n"
                                "  %more = scalar.constant 1.0 : f32\n"
                                "  %ages = index.constant 1125899906842624 : index\n"
                                "  %b = scf.for %q = [%zero to %ages step %inner]"
                                "(%t = %none : f32) -> (f32) {\n"
                                "    %sum = scalar.addf %t, %more : f32\n"
                                "    scf.yield %sum : f32\n"
                                "  }\n");
  const auto loaded = bench->load("a", {tree});
  ASSERT_TRUE(loaded) << loaded.error().message;
  const auto value = bench->throughput("a", 0.01);
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().error_class, "workload_hung");
}

TEST_F(Native, Spec_12_ItsWorkersCarryTheTokenOfTheSession) {
  const std::string token = (folder() / "sessions/one").string();
  workload_->mark_processes(token);
  const auto bench = start();
  EXPECT_EQ(processes_with_token(token).size(), 1u);
}

TEST_F(Native, AStopEndsACallAtOnce) {
  setenv("HYPERLOOM_WORKER_FAULT", "throughput:hang", 1);
  std::stop_source stop;
  const auto bench = start(600, stop.get_token());
  ASSERT_TRUE(bench->load("a", {workload_->tree()}));
  std::jthread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stop.request_stop();
  });
  expect_dead(*bench, "cancelled");
}

TEST_F(Native, AWorkerThatCannotBeStartedIsAMissingCompiler) {
  setenv("HYPERLOOM_WORKER", "/nowhere/hyperloom", 1);
  const auto bench = workload_->start(10, {});
  ASSERT_FALSE(bench);
  EXPECT_EQ(bench.error().error_class, "missing_compiler");
  EXPECT_NE(bench.error().message.find("/nowhere/hyperloom"), std::string::npos);
}

TEST_F(Native, Spec_5_10_PeaksAreMeasuredOnThisMachine) {
  const auto peaks = workload_->measure_peaks({});
  ASSERT_TRUE(peaks) << peaks.error().message;
  std::vector<std::string> names;
  for (const Json& row : *peaks) {
    names.push_back(text_of(row, "name"));
    EXPECT_GT(number_of(row, "value"), 1e6) << row;
    for (const char* field : {"unit", "device", "method", "ts"}) {
      EXPECT_NE(text_of(row, field), "") << field;
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"compute_f32", "compute_f64", "compute_i32",
                                             "compute_i64", "bandwidth"}));
}

TEST_F(Native, DescriptionsAreCheckedFieldByField) {
  const Json good = description(workload_->tree());
  const auto refused = [&](const char* field, const Json& value) {
    Json json = good;
    json[field] = value;
    const auto opened = open_workload(json);
    EXPECT_FALSE(opened) << field;
    return opened ? std::string() : opened.error().message;
  };
  EXPECT_NE(refused("files", Json::array()).find("'files' is empty"), std::string::npos);
  EXPECT_NE(refused("files", {"../model.loom"}).find("'files[0]'"), std::string::npos);
  EXPECT_NE(refused("files", {"gone.loom"}).find("gone.loom"), std::string::npos);
  EXPECT_NE(refused("root", "").find("'root' is missing"), std::string::npos);
  EXPECT_NE(refused("device", "gpu:0").find("'device'"), std::string::npos);
  EXPECT_NE(refused("colour", 1).find("'colour' is not known"), std::string::npos);
  EXPECT_NE(refused("inputs", {{{"name", "x"}, {"type", "4xf99"}}}).find("inputs[0].type"),
            std::string::npos);
  EXPECT_NE(refused("inputs", {{{"name", "x"}, {"type", "4xf32"}, {"fill", "one"}}})
                .find("inputs[0].fill"),
            std::string::npos);
  EXPECT_NE(refused("threads", -1).find("'threads'"), std::string::npos);
  EXPECT_NE(refused("held_out", {{{"inputs", {{{"name", "z"}, {"type", "1xf32"}}}}}})
                .find("held_out[0].inputs[0].name"),
            std::string::npos);
}

TEST_F(Native, TheExampleStaysRightInAnotherConfiguration) {
  const auto json = read_workload_file(kExample);
  ASSERT_TRUE(json) << json.error().message;
  const auto opened = open_workload(*json);
  ASSERT_TRUE(opened) << opened.error().message;
  const auto bench = (*opened)->start(300, {});
  const auto poor = (*bench)->load("poor", {(*opened)->tree()});
  ASSERT_TRUE(poor) << poor.error().message;
  const auto wide = (*bench)->load("wide", {(*opened)->tree(), {{"project.columns", 64}}});
  ASSERT_TRUE(wide) << wide.error().message;
  EXPECT_NE(poor->content_hash, wide->content_hash);
  EXPECT_EQ(poor->kernels, (std::vector<std::string>{"project", "activate", "total"}));
  const auto trace = (*bench)->trace("wide");
  ASSERT_TRUE(trace) << trace.error().message;
  ASSERT_EQ(trace->size(), 3u);
  EXPECT_EQ((*trace)[0].operations, 64u * 256 * 256 * 2);
  EXPECT_EQ((*trace)[0].operation_type, "f32");
  EXPECT_TRUE((*bench)->compare("wide", "", 3, false, false)->correct);
  // Each seed takes the next of the two shapes; the small one the interpreter can do.
  for (const uint64_t seed : {0, 1}) {
    for (const char* name : {"poor", "wide"}) {
      const auto agreement = (*bench)->compare(name, "", seed, false, true);
      ASSERT_TRUE(agreement) << agreement.error().message;
      EXPECT_TRUE(agreement->correct) << agreement->where;
      EXPECT_EQ(agreement->reference, seed == 0 ? "interpreter" : "original program");
    }
  }
  EXPECT_FALSE((*bench)->load("none", {(*opened)->tree(), {{"project.columns", 3}}}));
}

TEST_F(Native, ABindingThatNobodyDescribesFailsTheBuild) {
  Json json = description(workload_->tree());
  json["inputs"].erase(1);
  json.erase("held_out");
  const auto opened = open_workload(json);
  ASSERT_TRUE(opened);
  const auto bench = (*opened)->start(60, {});
  const auto loaded = (*bench)->load("a", {workload_->tree()});
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().error_class, "build_failed");
  EXPECT_NE(loaded.error().message.find("%output"), std::string::npos);
}

}  // namespace
}  // namespace hyperloom::workload
