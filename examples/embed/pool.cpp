// Compiles the requests of a program on a pool of workers, each as soon as it is published, through
// a folder that keeps their code: embed_pool stages.loom CACHE_FOLDER
#include <array>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "loom/api/loom.h"

namespace api = loom::api;

namespace {

// Takes the requests of one preparation while it runs. What was compiled of a plan that is
// cancelled is dropped with the pool; its code is in the folder, should the request come again.
class CompilePool final : public api::RequestRecipient {
 public:
  CompilePool(std::string cache_folder, size_t workers) : cache_folder_(std::move(cache_folder)) {
    for (size_t i = 0; i < workers; ++i) {
      workers_.emplace_back([this](const std::stop_token& stop) { work(stop); });
    }
  }

  bool take(api::OwnedRequest&& request) override {
    const std::lock_guard lock(mutex_);
    if (codes_.size() <= request.ordinal) codes_.resize(request.ordinal + 1);
    waiting_.push_back(std::move(request));
    ++open_;
    changed_.notify_one();
    return true;
  }

  // The code of every request that was taken, by ordinal, once all are compiled; empty, with the
  // messages in `errors`, when one could not be.
  std::vector<api::Code> finish(std::string& errors) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_ == 0; });
    errors = errors_;
    return errors_.empty() ? std::move(codes_) : std::vector<api::Code>();
  }

 private:
  void work(const std::stop_token& stop) {
    // Of this worker alone, for all of its requests. Messages of requests quote no source, so their
    // context is of no matter.
    api::Workspace workspace;
    api::CompileOptions options;
    options.cache_folder = cache_folder_;
    options.workspace = &workspace;
    const api::Context context;
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
      const api::OwnedRequest request = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      api::Messages messages(context);
      auto code = api::compile(request.view(), options, messages);
      lock.lock();
      if (code) {
        codes_[request.ordinal] = std::move(*code);
      } else {
        errors_ += messages.text();
      }
      --open_;
      changed_.notify_all();
    }
  }

  const std::string cache_folder_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<api::OwnedRequest> waiting_;
  std::vector<api::Code> codes_;  // by ordinal
  size_t open_ = 0;               // requests that are not compiled
  std::string errors_;
  std::vector<std::jthread> workers_;  // the last member: they end before the others
};

int fail(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const api::Context context;
  api::Messages messages(context);
  api::Modules inputs(context);
  if (!inputs.add_file(argv[1], messages)) return fail(messages.text());
  auto linked = api::link(inputs, {}, {.roots = {"stages"}}, messages);
  if (!linked) return fail(messages.text());

  CompilePool pool(argv[2], 4);
  api::PrepareOptions options;
  options.recipient = &pool;
  const auto plan = api::prepare(std::move(*linked), options, messages);
  std::string errors;
  const std::vector<api::Code> codes = pool.finish(errors);
  if (!plan) return fail(messages.text());
  if (!errors.empty()) return fail(errors);
  std::printf("%zu requests\n", codes.size());

  const auto code = api::assemble(*plan, codes, {}, messages);
  if (!code) return fail(messages.text());
  const auto program = api::materialize(api::Device::cpu(), *plan, 0, *code, {}, messages);
  if (!program) return fail(messages.text());
  std::array<float, 4> input = {1, 2, 3, 4};
  std::array<float, 4> output = {};
  api::Invocation invocation(*program);
  if (!invocation.bind("input", std::as_writable_bytes(std::span(input)), messages) ||
      !invocation.bind("output", std::as_writable_bytes(std::span(output)), messages) ||
      !invocation.issue(messages)) {
    return fail(messages.text());
  }
  std::printf("%g %g %g %g\n", output[0], output[1], output[2], output[3]);
  return 0;
}
