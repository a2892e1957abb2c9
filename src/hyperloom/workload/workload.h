// What is optimized, seen from the optimizer: a tree of sources, variants of it that are built and
// loaded side by side, and what may be measured of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "hyperloom/core/json.h"
#include "hyperloom/core/time.h"

namespace hyperloom::workload {

namespace fs = std::filesystem;

// A state of the sources plus what is bound at load.
struct Variant {
  fs::path tree;               // folder that holds the source files under their relative paths
  Json envs = Json::object();  // configuration key -> value, over what the workload itself binds
};

// A variant that is loaded. `content_hash` is over the executable code and the schedule that are
// loaded, not over sources: equal hashes run the same instructions.
struct Loaded {
  std::string content_hash;
  std::vector<std::string> kernels;  // symbols that the program launches, without '@'
  double build_seconds = 0;
};

// How two variants' outputs agree on one set of inputs.
struct Agreement {
  bool correct = false;    // within the tolerances of their types, no value untouched
  double accuracy = 0;     // fraction of output elements within tolerance, 0 to 1
  double worst_error = 0;  // relative
  std::string where;       // "output %out[17]" of the worst or first wrong element; empty if none
  std::string reference;   // "interpreter" or "original program"
};

// One dispatch of a profiled issue.
struct Dispatch {
  std::string kernel;
  uint64_t begin_ns = 0;  // from the issue's begin
  uint64_t end_ns = 0;
  uint32_t thread = 0;
  uint64_t workgroups = 0;
  uint64_t bytes = 0;  // read and written, where the program says so; 0 unknown
  std::string source_file;
  uint32_t source_line = 0;
  // Arithmetic operations that it surely did, of the element type that has most of them: "f32",
  // "f64", "i32" or "i64". 0 unknown.
  uint64_t operations = 0;
  std::string operation_type;
};

// A process of its own in which variants are built and run, so that code that hangs, crashes or
// writes where it must not ends that process and nothing else. When the stop token is set or a
// deadline passes, its process group is killed. One caller at a time.
//
// Errors of every call: "build_failed" (message of the compiler with its place), "workload_failed"
// (the runtime refuses the issue), "workload_crashed" (signal), "workload_hung" (deadline),
// "workload_garbage" (an answer that is none), "cancelled", "missing_compiler". After one of the
// last five the bench is dead, each further call fails alike, and a new one is started.
class Bench {
 public:
  virtual ~Bench() = default;
  // Builds the variant under `name`; the same name again replaces it.
  virtual Result<Loaded> load(const std::string& name, const Variant& variant) = 0;
  // One sample: issues a second, over about `seconds` of repeated issues on a hot program.
  virtual Result<double> throughput(const std::string& name, double seconds) = 0;
  // Nanoseconds of one issue that `kernel` takes (all its dispatches), as the median of `issues`.
  virtual Result<double> kernel_ns(const std::string& name, const std::string& kernel,
                                   unsigned issues) = 0;
  // Runs both on the inputs of the seed (`adversarial`: zeros, infinities, NaN, denormals and the
  // largest values among them; `held_out`: shapes too that differ, where the program leaves some
  // open), outputs poisoned before. `reference` may be "": the frozen reference of the workload.
  virtual Result<Agreement> compare(const std::string& name, const std::string& reference,
                                    uint64_t seed, bool adversarial, bool held_out) = 0;
  virtual Result<std::vector<Dispatch>> trace(const std::string& name) = 0;
};

// Immutable but for what start() makes; any thread.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string framework() const = 0;  // "loom"
  virtual std::string name() const = 0;
  // What the manifest keeps: files, root, parameters, inputs, device. open_workload() takes it
  // back.
  virtual Json describe() const = 0;
  // The folder of the sources, absolute, and the files of it, relative and sorted.
  virtual fs::path tree() const = 0;
  virtual std::vector<fs::path> files() const = 0;
  virtual std::string device() const = 0;  // "cpu:0"
  // A fresh process. `deadline` bounds each single call on it besides the call's own limits.
  virtual Result<std::unique_ptr<Bench>> start(double call_timeout_seconds,
                                               std::stop_token stop) const = 0;
  // Every process that it starts from here on carries `token` (core/process.h), by which the next
  // owner of the session finds those that outlived this one.
  virtual void mark_processes(const std::string& /*token*/) {}
  // What the device can do at most, measured there in a fresh process: rows of {name, value, unit,
  // device, method, threads, ts} (peaks.h). Errors: "not_available" where nothing measures it,
  // those of a bench.
  virtual Result<Json> measure_peaks(std::stop_token /*stop*/) const {
    return fail("not_available", "the workload measures no peaks");
  }
};

// Errors: "invalid_workload" naming the field, "missing_source".
Result<std::unique_ptr<Workload>> open_workload(const Json& description);

// A workload file: the description as JSON, whose "tree" is relative to the file's own folder and
// made absolute here. Errors: "unreadable_file", "invalid_json", "invalid_workload".
Result<Json> read_workload_file(const fs::path& path);

// sha256 over the sorted (relative path, mode, content hash) of `files` below `tree`.
// Errors: "unreadable_file".
Result<std::string> tree_hash(const fs::path& tree, const std::vector<fs::path>& files);

}  // namespace hyperloom::workload
