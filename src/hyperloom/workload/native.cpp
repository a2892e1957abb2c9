#include "hyperloom/workload/native.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace hyperloom::workload {
namespace {

// The last lines of what a worker said before it died.
std::string last_words(const ChildResult& result) {
  constexpr size_t kMost = 2000;
  std::string text = result.errors;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  if (text.empty()) return "";
  if (text.size() > kMost) text = "..." + text.substr(text.size() - kMost);
  return "; it said: " + text;
}

class NativeBench final : public Bench {
 public:
  NativeBench(Child child, double timeout, std::stop_token stop)
      : child_(std::move(child)), timeout_(timeout), stop_(std::move(stop)) {}

  // Sends a request and waits for its answer.
  Result<Json> call(Json request);

  Result<Loaded> load(const std::string& name, const Variant& variant) override;
  Result<double> throughput(const std::string& name, double seconds) override;
  Result<double> kernel_ns(const std::string& name, const std::string& kernel,
                           unsigned issues) override;
  Result<Agreement> compare(const std::string& name, const std::string& reference, uint64_t seed,
                            bool adversarial, bool held_out) override;
  Result<std::vector<Dispatch>> trace(const std::string& name) override;

 private:
  std::unexpected<Error> die(const std::string& error_class, std::string message);
  std::unexpected<Error> die_of(const Error& error);
  std::unexpected<Error> garbage(const std::string& line);
  Result<double> positive(Result<Json> answer);

  Child child_;
  double timeout_;
  std::stop_token stop_;
  uint64_t next_id_ = 1;
  std::string last_line_;
  std::optional<Error> dead_;
};

std::unexpected<Error> NativeBench::die(const std::string& error_class, std::string message) {
  const ChildResult& result = child_.end();
  dead_ = Error{error_class, std::move(message) + last_words(result), ""};
  return std::unexpected(*dead_);
}

std::unexpected<Error> NativeBench::garbage(const std::string& line) {
  return die("workload_garbage", fmt::format("the worker answered '{}'", line.substr(0, 200)));
}

std::unexpected<Error> NativeBench::die_of(const Error& error) {
  if (error.error_class == "cancelled") return die("cancelled", "stopped by request");
  if (error.error_class == "child_timeout") {
    return die("workload_hung", fmt::format("no answer within {:g} seconds", timeout_));
  }
  if (error.error_class == "child_garbage") return die("workload_garbage", error.message);
  const ChildResult& result = child_.end();
  const std::string how =
      result.signal != 0 ? fmt::format("signal {} ({})", result.signal, strsignal(result.signal))
                         : fmt::format("exit code {}", result.exit_code);
  return die("workload_crashed", fmt::format("the worker ended with {}", how));
}

Result<Json> NativeBench::call(Json request) {
  if (dead_) return std::unexpected(*dead_);
  const uint64_t id = next_id_++;
  request["id"] = id;
  const Deadline deadline = Deadline::in_seconds(timeout_);
  if (auto sent = child_.write_line(compact(request), deadline, stop_); !sent) {
    return die_of(sent.error());
  }
  auto line = child_.read_line(deadline, stop_);
  if (!line) return die_of(line.error());
  auto answer = parse_json(*line, "answer");
  if (!answer || !answer->is_object() || value_of(*answer, "id") != id ||
      !value_of(*answer, "ok").is_boolean()) {
    return garbage(*line);
  }
  last_line_ = std::move(*line);
  if (flag_of(*answer, "ok")) return std::move(*answer);
  return std::unexpected(Error{text_of(*answer, "error_class", "workload_garbage"),
                               text_of(*answer, "message"), text_of(*answer, "hint")});
}

Result<Loaded> NativeBench::load(const std::string& name, const Variant& variant) {
  auto answer = call({{"op", "load"},
                      {"name", name},
                      {"tree", variant.tree.string()},
                      {"envs", variant.envs.is_object() ? variant.envs : Json::object()}});
  if (!answer) return std::unexpected(answer.error());
  Loaded loaded;
  loaded.content_hash = text_of(*answer, "content_hash");
  loaded.build_seconds = number_of(*answer, "build_seconds");
  const Json& kernels = value_of(*answer, "kernels");
  if (loaded.content_hash.empty() || !kernels.is_array()) return garbage(last_line_);
  for (const Json& kernel : kernels) {
    if (!kernel.is_string()) return garbage(last_line_);
    loaded.kernels.push_back(kernel.get<std::string>());
  }
  return loaded;
}

Result<double> NativeBench::positive(Result<Json> answer) {
  if (!answer) return std::unexpected(answer.error());
  const Json& value = value_of(*answer, "value");
  if (!value.is_number() || value.get<double>() < 0) return garbage(last_line_);
  return value.get<double>();
}

Result<double> NativeBench::throughput(const std::string& name, double seconds) {
  return positive(call({{"op", "throughput"}, {"name", name}, {"seconds", seconds}}));
}

Result<double> NativeBench::kernel_ns(const std::string& name, const std::string& kernel,
                                      unsigned issues) {
  return positive(
      call({{"op", "kernel_ns"}, {"name", name}, {"kernel", kernel}, {"issues", issues}}));
}

Result<Agreement> NativeBench::compare(const std::string& name, const std::string& reference,
                                       uint64_t seed, bool adversarial, bool held_out) {
  auto answer = call({{"op", "compare"},
                      {"name", name},
                      {"reference", reference},
                      {"seed", seed},
                      {"adversarial", adversarial},
                      {"held_out", held_out}});
  if (!answer) return std::unexpected(answer.error());
  if (!value_of(*answer, "correct").is_boolean() || !value_of(*answer, "accuracy").is_number()) {
    return garbage(last_line_);
  }
  return Agreement{.correct = flag_of(*answer, "correct"),
                   .accuracy = number_of(*answer, "accuracy"),
                   .worst_error = number_of(*answer, "worst_error"),
                   .where = text_of(*answer, "where"),
                   .reference = text_of(*answer, "reference")};
}

Result<std::vector<Dispatch>> NativeBench::trace(const std::string& name) {
  auto answer = call({{"op", "trace"}, {"name", name}});
  if (!answer) return std::unexpected(answer.error());
  const Json& rows = value_of(*answer, "dispatches");
  if (!rows.is_array()) return garbage(last_line_);
  std::vector<Dispatch> dispatches;
  const auto count = [](const Json& row, const char* field) {
    const Json& value = value_of(row, field);
    return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
  };
  for (const Json& row : rows) {
    Dispatch dispatch;
    dispatch.kernel = text_of(row, "kernel");
    dispatch.begin_ns = count(row, "begin_ns");
    dispatch.end_ns = count(row, "end_ns");
    dispatch.thread = static_cast<uint32_t>(count(row, "thread"));
    dispatch.workgroups = count(row, "workgroups");
    dispatch.bytes = count(row, "bytes");
    dispatch.source_file = text_of(row, "source_file");
    dispatch.source_line = static_cast<uint32_t>(count(row, "source_line"));
    dispatch.operations = count(row, "operations");
    dispatch.operation_type = text_of(row, "operation_type");
    if (dispatch.kernel.empty() || dispatch.end_ns < dispatch.begin_ns) return garbage(last_line_);
    dispatches.push_back(std::move(dispatch));
  }
  return dispatches;
}

Result<std::unique_ptr<NativeBench>> start_worker(const Description& description,
                                                  const std::string& token, double timeout,
                                                  std::stop_token stop) {
  ChildOptions options;
  options.session_token = token;
  options.command = worker_command();
  // Lines hold traces, at most; what a worker says on the way is cut to the same size.
  options.output_limit = size_t{64} << 20;
  auto child = Child::start(options);
  if (!child) {
    return fail("missing_compiler", child.error().message,
                "the program must be able to start itself; HYPERLOOM_WORKER names another one");
  }
  auto bench = std::make_unique<NativeBench>(std::move(*child), timeout, std::move(stop));
  auto opened = bench->call({{"op", "open"}, {"description", description.json()}});
  if (!opened) {
    Error error = opened.error();
    // The loader ends a program whose libraries are missing with 127.
    if (error.message.find("exit code 127") != std::string::npos) {
      error.error_class = "missing_compiler";
    }
    return std::unexpected(std::move(error));
  }
  return bench;
}

}  // namespace

std::vector<std::string> worker_command() {
  const char* const stated = getenv("HYPERLOOM_WORKER");
  const bool use_stated = stated != nullptr && *stated != '\0';
  return {use_stated ? stated : "/proc/self/exe", "worker"};
}

std::vector<fs::path> NativeWorkload::files() const {
  std::vector<fs::path> all = description_.files;
  all.insert(all.end(), description_.libraries.begin(), description_.libraries.end());
  std::ranges::sort(all);
  return all;
}

Result<std::unique_ptr<Bench>> NativeWorkload::start(double call_timeout_seconds,
                                                     std::stop_token stop) const {
  auto bench = start_worker(description_, token_, call_timeout_seconds, std::move(stop));
  if (!bench) return std::unexpected(bench.error());
  return std::unique_ptr<Bench>(std::move(*bench));
}

Result<Json> NativeWorkload::measure_peaks(std::stop_token stop) const {
  constexpr double kMostSeconds = 120;
  auto bench = start_worker(description_, token_, kMostSeconds, std::move(stop));
  if (!bench) return std::unexpected(bench.error());
  auto answer = (*bench)->call({{"op", "peaks"}});
  if (!answer) return std::unexpected(answer.error());
  const Json& peaks = value_of(*answer, "peaks");
  if (!peaks.is_array()) return fail("workload_garbage", "the worker measured no peaks");
  return peaks;
}

Result<Json> read_workload_file(const fs::path& path) {
  auto json = read_json(path);
  if (!json) return json;
  if (!json->is_object()) {
    return fail("invalid_workload", fmt::format("'{}' holds no object", path.string()));
  }
  const fs::path folder = fs::absolute(path).parent_path();
  (*json)["tree"] = (folder / text_of(*json, "tree", ".")).lexically_normal().string();
  return json;
}

Result<std::unique_ptr<Workload>> open_workload(const Json& description) {
  auto read = read_description(description);
  if (!read) return std::unexpected(read.error());
  return std::make_unique<NativeWorkload>(std::move(*read));
}

}  // namespace hyperloom::workload
