#include "hyperloom/optimize/loom_space.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "hyperloom/optimize/session_testing.h"

namespace hyperloom::optimize {
namespace {

// Adds one to each of %n values, again and again: fewer rounds are the same result sooner. @other
// belongs to a kernel that nobody launches.
constexpr const char* kProgram = R"(config.decl @rounds : %value: index where [range(%value, 1, 64)]
config.decl @width : %value: index where [range(%value, 1, 4)]
config.decl @other : %value: index where [range(%value, 1, 4)]

kernel.def @add(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%n: index, %from: buffer, %to: buffer) where [range(%n, 1, 4096)] {
  %base = index.constant 0 : offset
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %rounds = config.get @rounds : index
  %width = config.get @width : index
  %in = buffer.view %from[%base] : buffer -> view<[%n]xf32>
  %out = buffer.view %to[%base] : buffer -> view<[%n]xf32>
  %b = scalar.constant 1.0 : f32
  scf.for %round = [%zero to %rounds step %one]() -> () {
    scf.for %i = [%zero to %n step %width]() -> () {
      %end0 = index.add %i, %width : index
      %end = index.min %end0, %n : index
      scf.for %k = [%i to %end step %one]() -> () {
        %a = view.load %in[%k] : view<[%n]xf32> -> f32
        %c = scalar.addf %a, %b : f32
        view.store %c, %out[%k] : f32, view<[%n]xf32>
      }
    }
  }
  kernel.return
}

kernel.def @unused(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%n: index) {
  %width = config.get @other : index
  kernel.return
}

command.program.def public @run(%n: index) launch(%input: buffer, %output: buffer) where [range(%n, 1, 4096)] {
  kernel.launch @add[%n](%n, %input, %output) : [index](index, buffer, buffer)
  command.return
}
)";

// A key is declared in one file and gets its value in another.
constexpr const char* kConfiguration = R"(// What was chosen once.
config.def @rounds = 64 : index
config.def @other = 1 : index
)";

class LoomSources : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    use_forge();
    write("model.loom", kProgram);
    write("config.loom", kConfiguration);
    Json made = row("k001", 90, "model.loom");
    made["name"] = "add";
    made["shapes"] = {"(512)f32"};
    made["shape_provenance"] = "native_trace";
    candidates_["hot_kernels"].push_back(made);
    native_ =
        workload::open_workload({{"tree", fs::canonical(tree()).string()},
                                 {"files", {"config.loom", "model.loom"}},
                                 {"root", "@run"},
                                 {"config", {{"width", 1}}},
                                 {"specialize", {{"n", 512}}},
                                 {"inputs",
                                  {{{"name", "%input"}, {"type", "512xf32"}, {"random", {-2, 2}}},
                                   {{"name", "%output"}, {"type", "512xf32"}}}}})
            .value();
  }
  task::Context context() {
    const task::Context of_fake = SessionTest::context();
    return {.session = of_fake.session,
            .environment = of_fake.environment,
            .workload = *native_,
            .meter = of_fake.meter,
            .bus = of_fake.bus,
            .lanes = of_fake.lanes,
            .stop = of_fake.stop,
            .deadline = of_fake.deadline,
            .progress = of_fake.progress};
  }
  void open() {
    files_ = {"config.loom", "model.loom"};
    SessionTest::open();
  }
  std::unique_ptr<Space> space(const std::string& kernel) {
    auto opened = open_loom_space(context(), kernel);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  static std::vector<std::string> names(const Space& space) {
    std::vector<std::string> result;
    for (const Axis& axis : space.axes()) result.push_back(axis.name);
    return result;
  }
  std::unique_ptr<workload::Workload> native_;
};

TEST_F(LoomSources, KeysOfAKernelAreItsAxes) {
  open();
  const auto of_kernel = names(*space("add"));
  EXPECT_EQ(std::count(of_kernel.begin(), of_kernel.end(), "rounds"), 1);
  EXPECT_EQ(std::count(of_kernel.begin(), of_kernel.end(), "width"), 1);
  EXPECT_EQ(std::count(of_kernel.begin(), of_kernel.end(), "other"), 0);
  const auto of_program = names(*space(""));
  EXPECT_EQ(std::count(of_program.begin(), of_program.end(), "other"), 1);
}

TEST_F(LoomSources, OptionsAreInsideOfWhatTheDeclarationAllows) {
  open();
  const auto made = space("add");
  const auto axis = std::ranges::find(made->axes(), "rounds", &Axis::name);
  ASSERT_NE(axis, made->axes().end());
  EXPECT_EQ(axis->options, (std::vector<std::string>{"64", "4", "8", "16", "32"}));
}

TEST_F(LoomSources, DefinedKeysChangeTheirSourceAndBoundOnesAreBoundAnew) {
  open();
  const auto made = space("add");
  Point point(made->axes().size(), 0);
  for (size_t i = 0; i < point.size(); ++i) {
    if (made->axes()[i].name == "rounds") point[i] = 1;
    if (made->axes()[i].name == "width") point[i] = 3;
  }
  const auto change = made->change(point);
  ASSERT_TRUE(change);
  EXPECT_NE(change->files.at("config.loom").find("config.def @rounds = 4 : index"),
            std::string::npos);
  EXPECT_EQ(change->envs, (Json{{"width", "4"}}));
  EXPECT_TRUE(made->change(Point(point.size(), 0))->empty());
}

TEST_F(LoomSources, KeptConfigurationIsWhereTheSearchBegins) {
  open();
  ASSERT_TRUE(session_->state().update(
      "test", [](Json& state) { state["current_best"] = {{"extra_envs", {{"width", "2"}}}}; }));
  const auto made = space("add");
  const auto axis = std::ranges::find(made->axes(), "width", &Axis::name);
  EXPECT_EQ(axis->options.front(), "2");
}

TEST_F(LoomSources, SourceThatDoesNotVerifyIsNamed) {
  open();
  write("model.loom", "kernel.def\n");
  const auto opened = open_loom_space(context(), "");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().error_class, "invalid_source");
  EXPECT_TRUE(opened.error().message.starts_with("model.loom:2:1: ")) << opened.error().message;
}

TEST_F(LoomSources, RewritesOfAKernelAreItsAxes) {
  open();
  const auto made = space("add");
  const auto axis = std::ranges::find(made->axes(), "unroll @add loop 3", &Axis::name);
  ASSERT_NE(axis, made->axes().end());
  EXPECT_EQ(axis->options.front(), "as it is");
  for (const Axis& one : made->axes()) EXPECT_EQ(one.name.find("@unused"), std::string::npos);
}

TEST_F(LoomSources, RewritesChangeTheirKernelAloneAndGoTogetherWithKeys) {
  open();
  const auto made = space("add");
  Point point(made->axes().size(), 0);
  for (size_t i = 0; i < point.size(); ++i) {
    if (made->axes()[i].name == "rounds" || made->axes()[i].name == "unroll @add loop 3") {
      point[i] = 1;
    }
  }
  const auto change = made->change(point);
  ASSERT_TRUE(change) << change.error().message;
  EXPECT_EQ(change->files.size(), 2U);
  const std::string& text = change->files.at("model.loom");
  EXPECT_NE(text, kProgram);
  const std::string rest =
      std::string(kProgram).substr(std::string(kProgram).find("kernel.def @unused"));
  EXPECT_TRUE(text.ends_with(rest)) << text;
  write("model.loom", text);
  EXPECT_TRUE(open_loom_space(context(), "add")) << "it verifies";
}

// The first candidates of forge, which change one axis each.
class BriefForge final : public Backend {
 public:
  std::string name() const override { return "forge"; }
  Json configuration(const task::Context&) const override {
    return {{"exhaustive_up_to", 1U}, {"most", 8U}, {"pairs", 1U}, {"seeds", 1U}};
  }
  Outcome optimize(Attempt& attempt) override { return forge_->optimize(attempt); }

 private:
  std::unique_ptr<Backend> forge_ = make_forge();
};

// Real code in a real worker: sixteen times less work is faster by any clock.
TEST_F(LoomSources, KernelOfANativeWorkloadIsOptimized) {
  open();
  ASSERT_TRUE(session_->state().update("test", [&](Json& state) {
    state["last_trace_analyze"]["tree_hash"] =
        workload::tree_hash(native_->tree(), native_->files()).value();
  }));
  const Json result = run_optimization(Json::object(), context(), {},
                                       {{std::make_shared<BriefForge>()}, open_loom_space});
  ASSERT_EQ(result["status"], "ok") << result.dump(2);
  EXPECT_EQ(decision_of(result), "KEEP") << result.dump(2);
  EXPECT_EQ(result["verification"]["correctness_passed"], true);
  const Json& bundle = result["verification"]["best_artifact_bundle"];
  const std::string text = read(text_of(bundle, "snapshot_dir") + "/config.loom");
  EXPECT_NE(text.find("config.def @rounds = 4 : index"), std::string::npos)
      << result["attempts"][0]["stdout_tail"].get<std::string>();
}

}  // namespace
}  // namespace hyperloom::optimize
