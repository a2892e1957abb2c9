// A session around a fake workload, and choices that are written in its sources.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <mutex>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "hyperloom/core/testing.h"
#include "hyperloom/optimize/ledger.h"
#include "hyperloom/optimize/run.h"
#include "hyperloom/optimize/testing.h"
#include "hyperloom/workload/fake.h"
#include "loom/base/file.h"

namespace hyperloom::optimize {

// A line "fake: option KEY VALUE VALUE ..." is an axis; choosing writes the `config.def @KEY` of
// the same file. Of one kernel: the axes of the files that name it.
class TextSpace final : public Space {
 public:
  TextSpace(fs::path tree, const std::vector<fs::path>& files, const std::string& kernel)
      : tree_(std::move(tree)) {
    for (const fs::path& file : files) {
      const auto text = loom::read_file((tree_ / file).string()).value();
      if (text.find("fake: kernel " + kernel) == std::string::npos) continue;
      std::ifstream stream(tree_ / file);
      for (std::string line; std::getline(stream, line);) {
        const size_t at = line.find("fake: option ");
        if (at == std::string::npos) continue;
        auto words = workload::fake_detail::words_of(line.substr(at + 13));
        axes_.push_back({words[0], {words.begin() + 1, words.end()}});
        files_.push_back(file);
      }
    }
  }
  const std::vector<Axis>& axes() const override { return axes_; }
  Result<Change> change(const Point& point) const override {
    Change change;
    for (size_t i = 0; i < point.size(); ++i) {
      if (point[i] == 0) continue;
      auto [slot, fresh] = change.files.try_emplace(files_[i]);
      if (fresh) slot->second = loom::read_file((tree_ / files_[i]).string()).value();
      const std::regex definition("config\\.def @" + axes_[i].name + " = \\S+");
      slot->second =
          std::regex_replace(slot->second, definition,
                             "config.def @" + axes_[i].name + " = " + axes_[i].options[point[i]]);
      change.words.push_back(axes_[i].name + " = " + axes_[i].options[point[i]]);
    }
    return change;
  }

 private:
  fs::path tree_;
  std::vector<Axis> axes_;
  std::vector<fs::path> files_;
};

class SessionTest : public testing::Test {
 protected:
  // Kernel k00i of file "i.loom", symbol "ki", `ns` nanoseconds, with `lines` besides.
  void add_kernel(int i, double ns, const std::string& lines) {
    const std::string number = std::to_string(i);
    write(number + ".loom", "// fake: kernel k" + number + " " + std::to_string(ns) + "\n" + lines);
    files_.push_back(number + ".loom");
    Json made = row("k00" + number, 20 + i, number + ".loom");
    made["name"] = "k" + number;
    made["shapes"] = {"(4,4)f32"};
    made["shape_provenance"] = "native_trace";
    candidates_["hot_kernels"].push_back(made);
  }
  // One with a single choice, which is twice as fast.
  void add_fast_kernel(int i) {
    const std::string number = std::to_string(i);
    const std::string key = "tile" + number;
    add_kernel(i, 1000,
               "config.def @" + key + " = 4 : index\n// fake: option " + key +
                   " 4 8\n// fake: when " + key + " 8 k" + number + " 0.5\n");
  }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(tree() / name) << text;
  }
  std::string read(const fs::path& path) const {
    return loom::read_file(path.string()).value_or("<missing>");
  }
  fs::path tree() const { return folder_ / "tree"; }

  void SetUp() override {
    fs::create_directories(tree());
    values_["HYPERLOOM_KERNEL_AGENT_ROOT"] = folder_.path().string();
  }

  // After the kernels are there.
  void open() {
    workload_ = std::make_unique<workload::FakeWorkload>(tree(), files_);
    environment_ = std::make_unique<Environment>(values_);
    layout_ = session::Layout::make(folder_ / "data", "s1").value();
    session_ = std::make_unique<session::Session>(
        session::Session::create(layout_, workload_->describe(), Json::object()).value());
    database_ = bus::Database::open(layout_.database(), *environment_).value();
    bus_ = std::make_unique<bus::Bus>(database_);
    lanes_ = std::make_unique<bus::Lanes>(database_);
    fs::create_directories(layout_.run());
    ASSERT_TRUE(write_json(layout_.candidates(), candidates_));
    const auto hash = workload::tree_hash(tree(), workload_->files());
    ASSERT_TRUE(session_->state().update("test", [&](Json& state) {
      state["last_trace_analyze"] = {{"candidates_path", layout_.candidates().string()},
                                     {"tree_hash", *hash}};
    }));
  }

  task::Context context() {
    return {.session = *session_,
            .environment = *environment_,
            .workload = *workload_,
            .meter = meter_,
            .bus = *bus_,
            .lanes = *lanes_,
            .stop = stop_.get_token(),
            .deadline = deadline_,
            .progress = [this](const task::Progress& what) {
              const std::lock_guard lock(mutex_);
              progress_.push_back(what);
            }};
  }
  Engines engines() {
    return {backends_, [this](const task::Context&, const std::string& kernel) {
              std::unique_ptr<Space> space =
                  std::make_unique<TextSpace>(tree(), workload_->files(), kernel);
              return Result<std::unique_ptr<Space>>(std::move(space));
            }};
  }
  void use_forge() { values_["KERNEL_OPT_BACKEND_ORDER"] = "forge"; }

  // As the coordinator does: what comes back is recorded.
  Json optimize(const Json& payload = Json::object()) {
    const task::Context lent = context();
    const auto record = [&](const Json& result) {
      partial_.push_back(result);
      ASSERT_TRUE(session_->state().update(
          "test", [&](Json& state) { record_kernel_opt(state, result, *environment_); }));
    };
    Json result = run_optimization(payload, lent, record, engines());
    if (!flag_of(result, "batch_mode")) {
      record(result);
      partial_.pop_back();
    }
    return result;
  }
  std::vector<Json> attempt_rows() const {
    std::ifstream file(layout_.attempts());
    std::vector<Json> rows;
    for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
    return rows;
  }
  static std::string decision_of(const Json& result) {
    return text_of(value_of(result, "proposal"), "decision");
  }

  TempFolder folder_;
  std::map<std::string, std::string> values_;
  std::vector<fs::path> files_;
  Json candidates_ = {{"hot_kernels", Json::array()}, {"task_groups", Json::array()}};
  std::unique_ptr<workload::FakeWorkload> workload_;
  std::unique_ptr<Environment> environment_;
  session::Layout layout_;
  std::unique_ptr<session::Session> session_;
  std::shared_ptr<bus::Database> database_;
  std::unique_ptr<bus::Bus> bus_;
  std::unique_ptr<bus::Lanes> lanes_;
  workload::Meter meter_;
  std::stop_source stop_;
  Deadline deadline_;
  Backends backends_ = installed_backends();
  std::mutex mutex_;
  std::vector<task::Progress> progress_;
  std::vector<Json> partial_;
};

// Lines of a kernel that is twice as fast with tile 8, wrong with 16, and does not build with 32.
inline std::string tile_lines(const std::string& kernel, const std::string& key) {
  return "config.def @" + key + " = 4 : index\n// fake: option " + key +
         " 4 8 16 32\n// fake: when " + key + " 8 " + kernel + " 0.5\n// fake: wrong " + key +
         " 16\n// fake: build_failed " + key + " 32\n";
}

}  // namespace hyperloom::optimize
