// A session around a fake workload, as the tests of every engine need it. Not for use outside of
// tests.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hyperloom/core/testing.h"
#include "hyperloom/task/context.h"
#include "hyperloom/workload/fake.h"

namespace hyperloom::task {

// Folder `base` holds tree/ (the sources) and data/ (the data root). start() makes session "s1" or
// takes it up again; what is set before it counts.
class FakeSession {
 public:
  explicit FakeSession(std::filesystem::path base) : base_(std::filesystem::canonical(base)) {
    std::filesystem::create_directories(tree());
  }

  std::filesystem::path tree() const { return base_ / "tree"; }
  const std::filesystem::path& base() const { return base_; }
  void write(const std::filesystem::path& name, const std::string& text) const {
    std::filesystem::create_directories((base_ / name).parent_path());
    std::ofstream(base_ / name) << text;
  }
  std::string read(const std::filesystem::path& name) const {
    std::ifstream stream(base_ / name);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  // `files` are relative to the tree.
  void start(std::vector<std::filesystem::path> files) {
    session_.reset();  // gives its lock back
    workload_ = std::make_unique<workload::FakeWorkload>(tree(), std::move(files));
    environment_ = std::make_unique<Environment>(variables);
    layout_ = session::Layout::make(base_ / "data", "s1").value();
    auto opened = std::filesystem::exists(layout_.manifest())
                      ? session::Session::resume(layout_)
                      : session::Session::create(layout_, workload_->describe(), Json::object());
    session_ = std::make_unique<session::Session>(std::move(opened).value());
    database_ = bus::Database::open(layout_.database(), *environment_).value();
    bus_ = std::make_unique<bus::Bus>(database_);
    lanes_ = std::make_unique<bus::Lanes>(database_);
    if (!recording.empty()) {
      const bool there = std::filesystem::exists(recording);
      meter_ = workload::Meter::open(recording, there ? recording : "").value();
    }
  }
  Context context() const {
    return {.session = *session_,
            .environment = *environment_,
            .workload = *workload_,
            .meter = meter_,
            .bus = *bus_,
            .lanes = *lanes_,
            .stop = stop.get_token(),
            .deadline = deadline};
  }
  Json state() const {
    Json copy;
    session_->state().read([&](const Json& document) { copy = document; });
    return copy;
  }
  void change(const std::function<void(Json&)>& how) const {
    ASSERT_TRUE(session_->state().update("test", how));
  }
  const session::Layout& layout() const { return layout_; }
  session::Session& session() const { return *session_; }
  workload::FakeWorkload& workload() const { return *workload_; }
  workload::FakeScript& script() const { return workload_->script(); }
  bus::Lanes& lanes() const { return *lanes_; }
  std::vector<Json> decisions() const {
    std::vector<Json> rows;
    std::ifstream file(layout_.decision_log());
    for (std::string line; std::getline(file, line);) rows.push_back(Json::parse(line));
    return rows;
  }

  std::map<std::string, std::string> variables;
  std::filesystem::path recording;  // of measurements; replayed when it is there
  std::stop_source stop;
  Deadline deadline;

 private:
  std::filesystem::path base_;
  std::unique_ptr<workload::FakeWorkload> workload_;
  std::unique_ptr<Environment> environment_;
  session::Layout layout_;
  std::unique_ptr<session::Session> session_;
  std::shared_ptr<bus::Database> database_;
  std::unique_ptr<bus::Bus> bus_;
  std::unique_ptr<bus::Lanes> lanes_;
  mutable workload::Meter meter_;
};

}  // namespace hyperloom::task
