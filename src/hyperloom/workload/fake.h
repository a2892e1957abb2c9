// A workload for tests: what it measures is written in its sources, so that whoever changes a file
// changes the result, and every run gives the same numbers.
//
// A line of any source file that holds "fake:" says something; the rest of the file is text.
//
//   fake: kernel NAME NS                one issue spends NS nanoseconds in NAME
//   fake: fixed NS                      and NS outside of every kernel
//   fake: when KEY VALUE NAME FACTOR    times FACTOR for NAME while the configuration KEY is VALUE
//   fake: text WORD NAME FACTOR         times FACTOR for NAME while another line of the file holds
//                                       WORD
//   fake: wrong [KEY VALUE]             wrong outputs (while KEY is VALUE)
//   fake: wrong_adversarial             wrong on adversarial inputs alone
//   fake: accuracy FRACTION             of the outputs on held-out inputs
//   fake: compare_failed [KEY VALUE]    has no outputs to compare
//   fake: build_failed [KEY VALUE]      does not build
//   fake: crash | hang | garbage [KEY VALUE]   when it is run
//
// A line that begins with "//~" leaves no trace in the code that is loaded.
//
// A KEY has the value that the variant binds, else that of a line `config.def @KEY = VALUE : type`.
#pragma once

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hyperloom/workload/workload.h"
#include "loom/base/hash.h"

namespace hyperloom::workload {

// Shared by a fake workload and its benches; all calls may come from any thread.
struct FakeScript {
  // Called in front of every bench call with "load A", "throughput A", "kernel_ns A k",
  // "compare A B", "trace A"; it may change files, stop the run or throw.
  std::function<void(const std::string& call)> before;
  // Relative deviations of the samples of throughput(), used in turn over all benches; empty: none.
  std::vector<double> noise;
  // What measure_peaks() answers, each time logged as "peaks"; without rows it is not available.
  Json peaks = Json::array();
  // For a content hash: throughput instead of what the sources say.
  std::map<std::string, double> throughput;

  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex);
    return log;
  }
  size_t count(const std::string& word) const {
    const std::lock_guard lock(mutex);
    return static_cast<size_t>(std::ranges::count_if(
        log, [&](const std::string& call) { return call.find(word) != std::string::npos; }));
  }

  mutable std::mutex mutex;
  std::vector<std::string> log;
  size_t next_noise = 0;
  std::atomic<int> starts{0};
  std::atomic<int> timing{0};        // timed calls that run at this moment
  std::atomic<int> most_timings{0};  // the most that ever ran at once
  // How long a timed call takes, for tests that look for overlap.
  std::chrono::milliseconds pause{0};
};

// What the directives of one variant say.
struct FakeProgram {
  std::map<std::string, double> kernel_ns;
  double fixed_ns = 0;
  double accuracy = 1;
  bool wrong = false;
  bool wrong_adversarial = false;
  bool compare_failed = false;
  std::string build_failed;
  std::string fault;  // an error class
  std::string hash;

  double total_ns() const {
    double total = fixed_ns;
    for (const auto& [name, ns] : kernel_ns) total += ns;
    return total;
  }
};

namespace fake_detail {

inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

struct Source {
  std::string path;
  std::vector<std::string> lines;
};

inline std::vector<Source> read_sources(const fs::path& tree, const std::vector<fs::path>& files) {
  std::vector<Source> sources;
  for (const fs::path& file : files) {
    std::ifstream stream(tree / file);
    Source source{file.string(), {}};
    for (std::string line; std::getline(stream, line);) source.lines.push_back(line);
    sources.push_back(std::move(source));
  }
  return sources;
}

inline std::map<std::string, std::string> configuration(const std::vector<Source>& sources,
                                                        const Json& envs) {
  std::map<std::string, std::string> values;
  for (const Source& source : sources) {
    for (const std::string& line : source.lines) {
      const auto words = words_of(line);
      if (words.size() < 4 || words[0] != "config.def" || words[2] != "=") continue;
      values[words[1].substr(1)] = words[3];
    }
  }
  for (const auto& [key, value] : envs.items()) {
    values[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return values;
}

class Reader {
 public:
  Reader(const std::vector<Source>& sources, const Json& envs)
      : sources_(sources), values_(configuration(sources, envs)) {
    std::string content = envs.dump();
    for (const Source& source : sources_) {
      content += "\n" + source.path + "\n";
      for (const std::string& line : source.lines) {
        if (!line.starts_with("//~")) content += line + "\n";
        const size_t at = line.find("fake:");
        if (at != std::string::npos) directive(source, words_of(line.substr(at + 5)));
      }
    }
    program_.hash = loom::sha256_hex(content);
    for (const auto& [name, factor] : factors_) {
      const auto found = program_.kernel_ns.find(name);
      if (found != program_.kernel_ns.end()) found->second *= factor;
    }
  }
  FakeProgram take() { return std::move(program_); }

 private:
  // Whether the condition KEY VALUE from `at` on holds; none is true.
  bool holds(const std::vector<std::string>& words, size_t at) const {
    if (words.size() < at + 2) return true;
    const auto found = values_.find(words[at]);
    return found != values_.end() && found->second == words[at + 1];
  }
  static bool mentions(const Source& source, const std::string& word) {
    return std::ranges::any_of(source.lines, [&](const std::string& line) {
      return line.find("fake:") == std::string::npos && line.find(word) != std::string::npos;
    });
  }
  void scale(const std::string& kernel, const std::string& factor) {
    auto& entry = factors_.try_emplace(kernel, 1.0).first->second;
    entry *= std::stod(factor);
  }
  void directive(const Source& source, const std::vector<std::string>& words) {
    if (words.empty()) return;
    const std::string& what = words[0];
    if (what == "kernel") program_.kernel_ns[words.at(1)] = std::stod(words.at(2));
    if (what == "fixed") program_.fixed_ns += std::stod(words.at(1));
    if (what == "when" && holds(words, 1)) scale(words.at(3), words.at(4));
    if (what == "text" && mentions(source, words.at(1))) scale(words.at(2), words.at(3));
    if (what == "accuracy") program_.accuracy = std::stod(words.at(1));
    if (what == "wrong_adversarial") program_.wrong_adversarial = true;
    if (!holds(words, 1)) return;
    if (what == "wrong") program_.wrong = true;
    if (what == "compare_failed") program_.compare_failed = true;
    if (what == "build_failed") program_.build_failed = source.path + ":1:1: does not build";
    if (what == "crash") program_.fault = "workload_crashed";
    if (what == "hang") program_.fault = "workload_hung";
    if (what == "garbage") program_.fault = "workload_garbage";
  }

  const std::vector<Source>& sources_;
  std::map<std::string, std::string> values_;
  std::map<std::string, double> factors_;
  FakeProgram program_;
};

}  // namespace fake_detail

inline FakeProgram read_fake_program(const Variant& variant, const std::vector<fs::path>& files) {
  const auto sources = fake_detail::read_sources(variant.tree, files);
  return fake_detail::Reader(sources, variant.envs).take();
}

class FakeBench final : public Bench {
 public:
  FakeBench(std::shared_ptr<FakeScript> script, std::vector<fs::path> files, FakeProgram original,
            std::stop_token stop)
      : script_(std::move(script)),
        files_(std::move(files)),
        original_(std::move(original)),
        stop_(std::move(stop)) {}

  Result<Loaded> load(const std::string& name, const Variant& variant) override {
    if (auto gone = enter("load " + name)) return std::unexpected(*gone);
    FakeProgram program = read_fake_program(variant, files_);
    if (!program.build_failed.empty()) return fail("build_failed", program.build_failed);
    Loaded loaded{program.hash, {}, 0.001};
    for (const auto& [kernel, ns] : program.kernel_ns) loaded.kernels.push_back(kernel);
    programs_[name] = std::move(program);
    return loaded;
  }

  Result<double> throughput(const std::string& name, double /*seconds*/) override {
    if (auto gone = enter("throughput " + name)) return std::unexpected(*gone);
    const Timing timing(*script_);
    const FakeProgram& program = programs_.at(name);
    if (!program.fault.empty()) return std::unexpected(die(program.fault));
    const std::lock_guard lock(script_->mutex);
    const auto set = script_->throughput.find(program.hash);
    double value = set != script_->throughput.end() ? set->second : 1e9 / program.total_ns();
    if (!script_->noise.empty()) {
      value *= 1 + script_->noise[script_->next_noise++ % script_->noise.size()];
    }
    return value;
  }

  Result<double> kernel_ns(const std::string& name, const std::string& kernel,
                           unsigned /*issues*/) override {
    if (auto gone = enter("kernel_ns " + name + " " + kernel)) return std::unexpected(*gone);
    const Timing timing(*script_);
    const FakeProgram& program = programs_.at(name);
    if (!program.fault.empty()) return std::unexpected(die(program.fault));
    const auto found = program.kernel_ns.find(kernel);
    if (found == program.kernel_ns.end()) return fail("unknown_kernel", "no kernel @" + kernel);
    return found->second;
  }

  Result<Agreement> compare(const std::string& name, const std::string& reference,
                            uint64_t /*seed*/, bool adversarial, bool held_out) override {
    if (auto gone = enter("compare " + name + " " + reference)) return std::unexpected(*gone);
    const FakeProgram& program = programs_.at(name);
    if (!program.fault.empty()) return std::unexpected(die(program.fault));
    if (program.compare_failed) return fail("reference_failed", "there are no outputs");
    Agreement agreement;
    agreement.correct = !program.wrong && !(adversarial && program.wrong_adversarial);
    agreement.accuracy = held_out ? program.accuracy : (agreement.correct ? 1.0 : 0.0);
    agreement.worst_error = agreement.correct ? 0 : 1;
    if (!agreement.correct) agreement.where = "output %out[0]";
    agreement.reference = reference.empty() ? "original program" : reference;
    return agreement;
  }

  Result<std::vector<Dispatch>> trace(const std::string& name) override {
    if (auto gone = enter("trace " + name)) return std::unexpected(*gone);
    const Timing timing(*script_);
    std::vector<Dispatch> dispatches;
    double at = 0;
    for (const auto& [kernel, ns] : programs_.at(name).kernel_ns) {
      Dispatch dispatch;
      dispatch.kernel = kernel;
      dispatch.begin_ns = static_cast<uint64_t>(at);
      at += ns;
      dispatch.end_ns = static_cast<uint64_t>(at);
      dispatch.workgroups = 1;
      dispatch.source_file = files_.empty() ? "" : files_.front().string();
      dispatches.push_back(std::move(dispatch));
    }
    return dispatches;
  }

 private:
  // Counts a timed call while it runs.
  class Timing {
   public:
    explicit Timing(FakeScript& script) : script_(script) {
      const int running = ++script_.timing;
      int most = script_.most_timings;
      while (running > most && !script_.most_timings.compare_exchange_weak(most, running)) {
      }
      if (script_.pause.count() > 0) std::this_thread::sleep_for(script_.pause);
    }
    Timing(const Timing&) = delete;
    Timing& operator=(const Timing&) = delete;
    ~Timing() { --script_.timing; }

   private:
    FakeScript& script_;
  };

  std::optional<Error> enter(const std::string& call) {
    {
      const std::lock_guard lock(script_->mutex);
      script_->log.push_back(call);
    }
    if (script_->before) script_->before(call);
    if (stop_.stop_requested() && !dead_) die("cancelled");
    return dead_;
  }
  Error die(const std::string& error_class) {
    dead_ = Error{error_class, "the fake workload says " + error_class, ""};
    return *dead_;
  }

  std::shared_ptr<FakeScript> script_;
  std::vector<fs::path> files_;
  FakeProgram original_;
  std::stop_token stop_;
  std::map<std::string, FakeProgram> programs_;
  std::optional<Error> dead_;
};

class FakeWorkload final : public Workload {
 public:
  // `tree` holds `files`, which are relative.
  FakeWorkload(fs::path tree, std::vector<fs::path> files)
      : tree_(std::move(tree)), files_(std::move(files)) {
    std::ranges::sort(files_);
    original_ = read_fake_program({tree_}, files_);
  }

  FakeScript& script() const { return *script_; }

  std::string framework() const override { return "loom"; }
  std::string name() const override { return "fake"; }
  Json describe() const override {
    Json files = Json::array();
    for (const fs::path& file : files_) files.push_back(file.string());
    return {{"kind", "fake"}, {"tree", tree_.string()}, {"files", files}, {"device", device()}};
  }
  fs::path tree() const override { return tree_; }
  std::vector<fs::path> files() const override { return files_; }
  std::string device() const override { return "cpu:0"; }
  Result<Json> measure_peaks(std::stop_token stop) const override {
    if (script_->peaks.empty()) return Workload::measure_peaks(stop);
    const std::lock_guard lock(script_->mutex);
    script_->log.emplace_back("peaks");
    return script_->peaks;
  }
  Result<std::unique_ptr<Bench>> start(double /*call_timeout_seconds*/,
                                       std::stop_token stop) const override {
    ++script_->starts;
    return std::make_unique<FakeBench>(script_, files_, original_, std::move(stop));
  }

 private:
  fs::path tree_;
  std::vector<fs::path> files_;
  FakeProgram original_;
  std::shared_ptr<FakeScript> script_ = std::make_shared<FakeScript>();
};

}  // namespace hyperloom::workload
