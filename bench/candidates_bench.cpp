// Candidates a minute: one batch of run_optimization on a matrix product with two tile sizes, from
// an empty session to the proposal. Prints {"candidates_per_minute", "candidates", "seconds",
// "speedup"}. Usage: bench_candidates SOURCE CONFIGURATION SIZE (more is not looked at).
#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hyperloom/bus/database.h"
#include "hyperloom/optimize/loom_space.h"
#include "hyperloom/optimize/run.h"
#include "hyperloom/workload/worker.h"

namespace {

using namespace hyperloom;
namespace fs = std::filesystem;

// The configuration keys of a space, which come first, without the rewrites of sources: what the
// peer searches as well.
class KeysAlone final : public optimize::Space {
 public:
  explicit KeysAlone(std::unique_ptr<Space> all) : all_(std::move(all)) {
    for (const optimize::Axis& axis : all_->axes()) {
      if (axis.name.starts_with("tile.")) axes_.push_back(axis);
    }
  }
  const std::vector<optimize::Axis>& axes() const override { return axes_; }
  Result<optimize::Change> change(const optimize::Point& point) const override {
    optimize::Point padded = point;
    padded.resize(all_->axes().size(), 0);
    return all_->change(padded);
  }

 private:
  std::unique_ptr<Space> all_;
  std::vector<optimize::Axis> axes_;
};

Result<std::unique_ptr<optimize::Space>> open_keys(const task::Context& context,
                                                   const std::string& kernel) {
  auto all = optimize::open_loom_space(context, kernel);
  if (!all) return std::unexpected(all.error());
  return std::make_unique<KeysAlone>(std::move(*all));
}

int complain(const std::string& what) {
  fmt::print(stderr, "bench_candidates: {}\n", what);
  return 1;
}

Json describe(const fs::path& source, const std::string& configuration, const std::string& type) {
  return {{"tree", source.parent_path().string()},
          {"files", {source.filename().string(), configuration}},
          {"root", "@run"},
          {"threads", 1},
          {"inputs",
           {{{"name", "%a"}, {"type", type}, {"random", {-1, 1}}},
            {{"name", "%b"}, {"type", type}, {"random", {-1, 1}}},
            {{"name", "%c"}, {"type", type}}}}};
}

int measure(const fs::path& source, const std::string& configuration, const std::string& size,
            const fs::path& folder) {
  const std::string type = size + "x" + size + "xf32";
  const auto workload =
      workload::open_workload(describe(fs::canonical(source), configuration, type));
  if (!workload) return complain(workload.error().message);
  const Environment environment(
      {{"KERNEL_OPT_BACKEND_ORDER", "forge"}, {"HYPERLOOM_KERNEL_AGENT_ROOT", folder.string()}});
  const auto layout = session::Layout::make(folder, "bench").value();
  auto session = session::Session::create(layout, (*workload)->describe(), Json::object());
  if (!session) return complain(session.error().message);
  auto database = bus::Database::open(layout.database(), environment);
  if (!database) return complain(database.error().message);
  bus::Bus bus(*database);
  bus::Lanes lanes(*database);
  workload::Meter meter;
  const task::Context context{.session = *session,
                              .environment = environment,
                              .workload = **workload,
                              .meter = meter,
                              .bus = bus,
                              .lanes = lanes,
                              .stop = {},
                              .deadline = {},
                              .progress = {}};
  const Json candidate = {{"kernel_id", "k001"},
                          {"name", "product"},
                          {"source_file", source.filename().string()},
                          {"reusable_native_kernel", true},
                          {"gpu_pct", 100.0},
                          {"shapes", {"(" + size + "," + size + ")f32"}}};
  const auto begin = std::chrono::steady_clock::now();
  const Json result = optimize::run_optimization({{"candidate", candidate}}, context, {},
                                                 {optimize::installed_backends(), open_keys});
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (text_of(result, "status") != "ok") return complain(result.dump());
  const double candidates = number_of(value_of(result["attempts"][0], "forge_result"), "evaluated");
  const Json report = {{"candidates", candidates},
                       {"seconds", seconds},
                       {"candidates_per_minute", candidates / seconds * 60},
                       {"speedup", value_of(result["verification"], "micro_speedup")}};
  fmt::print("{}\n", report.dump());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") {
    return hyperloom::workload::run_worker(argc, argv);
  }
  if (argc < 4) return complain("usage: bench_candidates SOURCE CONFIGURATION SIZE");
  std::string pattern = (fs::temp_directory_path() / "bench_candidates.XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) return complain("no temporary folder");
  const int status = measure(argv[1], fs::path(argv[2]).filename(), argv[3], pattern);
  std::error_code ignored;
  fs::remove_all(pattern, ignored);
  return status;
}
