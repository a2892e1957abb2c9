#include "hyperloom/workload/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>

#include "hyperloom/core/json.h"
#include "hyperloom/workload/built.h"
#include "hyperloom/workload/description.h"
#include "hyperloom/workload/peaks.h"
#include "loom/base/file.h"

namespace hyperloom::workload {
namespace {

using Clock = std::chrono::steady_clock;

// Operations that the reference interpreter may take for one comparison: about a second.
constexpr uint64_t kInterpreterSteps = uint64_t{1} << 21;
// Results of the frozen reference that are kept for the next candidate.
constexpr size_t kKeptBytes = size_t{256} << 20;
constexpr size_t kMeasuredShape = SIZE_MAX;  // number of the shape that is not held out

// One line of sources to build, and what was built of it for each shape that was asked for.
struct Loadable {
  Built::Sources sources;
  Built::Sources libraries;
  Json envs = Json::object();
  std::map<size_t, std::unique_ptr<Built>> built;
};

class Worker {
 public:
  Result<Json> answer(const Json& request);

 private:
  Result<Json> open(const Json& request);
  Result<Json> load(const Json& request);
  Result<Json> throughput(const Json& request);
  Result<Json> kernel_ns(const Json& request);
  Result<Json> compare(const Json& request);
  Result<Json> trace(const Json& request);

  const Shape& shape(size_t number) const {
    return number == kMeasuredShape ? description_->shape : description_->held_out[number];
  }
  Result<Storages*> storages(size_t number);
  Result<Built*> built(const std::string& name, size_t number);
  // The program bound to filled storage and issued once, so that it is hot.
  Result<Built*> hot(const Json& request);
  // What a reference gives, and what the reference is.
  struct Expected {
    std::vector<std::vector<std::byte>> results;
    std::string reference;
    size_t bytes() const;
  };
  Result<const Expected*> expected(const std::string& name, size_t number, const Draw& draw);
  Result<Expected> run_reference(const std::string& name, size_t number, const Draw& draw);

  std::optional<Description> description_;
  std::optional<loom::api::Device> device_;
  loom::api::Context context_;
  std::map<std::string, Loadable> variants_;
  std::map<size_t, Storages> storages_;
  std::map<size_t, bool> interpretable_;
  Expected last_expected_;
  std::map<std::pair<size_t, Draw>, Expected> kept_;  // of the frozen reference
  size_t kept_bytes_ = 0;
};

Result<Json> Worker::open(const Json& request) {
  auto description = read_description(value_of(request, "description"));
  if (!description) return std::unexpected(description.error());
  description_ = std::move(*description);
  device_ = loom::api::Device::cpu(description_->threads);
  const auto frozen = [&](const std::vector<fs::path>& files, Built::Sources& to) {
    for (const fs::path& file : files) {
      to.emplace_back(file.generic_string(), description_->original.at(file.generic_string()));
    }
  };
  // The frozen reference is the variant without a name.
  Loadable original;
  frozen(description_->files, original.sources);
  frozen(description_->libraries, original.libraries);
  variants_[""] = std::move(original);
  return Json{{"device", "cpu:0"}};
}

Result<Storages*> Worker::storages(size_t number) {
  const auto found = storages_.find(number);
  if (found != storages_.end()) return &found->second;
  auto made = Storages::make(context_, *device_, shape(number));
  if (!made) return std::unexpected(made.error());
  return &storages_.emplace(number, std::move(*made)).first->second;
}

Result<Built*> Worker::built(const std::string& name, size_t number) {
  const auto found = variants_.find(name);
  if (found == variants_.end()) {
    return fail("build_failed", fmt::format("no variant '{}' is loaded", name));
  }
  Loadable& variant = found->second;
  std::unique_ptr<Built>& slot = variant.built[number];
  if (slot == nullptr) {
    auto made = Built::make(*description_, shape(number), variant.sources, variant.libraries,
                            variant.envs, *device_);
    if (!made) return std::unexpected(made.error());
    auto storage = storages(number);
    if (!storage) return std::unexpected(storage.error());
    if (auto bound = (*made)->bind(**storage); !bound) return std::unexpected(bound.error());
    slot = std::move(*made);
  }
  return slot.get();
}

Result<Json> Worker::load(const Json& request) {
  const std::string name = text_of(request, "name");
  const fs::path tree = text_of(request, "tree");
  Loadable variant;
  variant.envs = value_of(request, "envs");
  const auto read = [&](const std::vector<fs::path>& files, Built::Sources& to) -> Result<void> {
    for (const fs::path& file : files) {
      auto text = loom::read_file((tree / file).string());
      if (!text) {
        return fail("build_failed",
                    fmt::format("cannot read '{}': {}", text.error().path, text.error().reason));
      }
      to.emplace_back(file.generic_string(), std::move(*text));
    }
    return {};
  };
  if (auto done = read(description_->files, variant.sources); !done) {
    return std::unexpected(done.error());
  }
  if (auto done = read(description_->libraries, variant.libraries); !done) {
    return std::unexpected(done.error());
  }
  if (name.empty()) return fail("build_failed", "a variant has a name");
  variants_[name] = std::move(variant);
  auto made = built(name, kMeasuredShape);
  if (!made) {
    variants_.erase(name);
    return std::unexpected(made.error());
  }
  return Json{{"content_hash", (*made)->content_hash()},
              {"kernels", (*made)->kernels()},
              {"build_seconds", (*made)->build_seconds()}};
}

Result<Built*> Worker::hot(const Json& request) {
  auto program = built(text_of(request, "name"), kMeasuredShape);
  if (!program) return program;
  storages_.at(kMeasuredShape).fill({}, kPoison);
  if (auto done = (*program)->issue(); !done) return std::unexpected(done.error());
  return program;
}

Result<Json> Worker::throughput(const Json& request) {
  auto program = hot(request);
  if (!program) return std::unexpected(program.error());
  const std::chrono::duration<double> length(number_of(request, "seconds", 0.1));
  uint64_t issues = 0;
  const auto begin = Clock::now();
  auto now = begin;
  do {
    if (auto done = (*program)->issue(); !done) return std::unexpected(done.error());
    ++issues;
    now = Clock::now();
  } while (now - begin < length);
  return Json{
      {"value", static_cast<double>(issues) / std::chrono::duration<double>(now - begin).count()}};
}

// One dispatch, whichever threads shared it.
struct Span {
  uint64_t begin = UINT64_MAX;
  uint64_t end = 0;
  uint32_t thread = 0;
  uint64_t workgroups = 0;
};

std::vector<Span> dispatch_spans(const loom::api::Profile& profile) {
  std::vector<Span> spans(profile.commands().size());
  for (const loom::api::ProfiledDispatch& part : profile.dispatches()) {
    Span& span = spans[part.command];
    if (part.begin < span.begin) {
      span.begin = part.begin;
      span.thread = part.thread;
    }
    span.end = std::max(span.end, part.end);
    span.workgroups += part.last_workgroup - part.first_workgroup;
  }
  return spans;
}

Result<Json> Worker::kernel_ns(const Json& request) {
  auto program = hot(request);
  if (!program) return std::unexpected(program.error());
  const std::string kernel = text_of(request, "kernel");
  const auto names = (*program)->kernels();
  if (std::ranges::find(names, kernel) == names.end()) {
    return fail("build_failed", fmt::format("the program launches no kernel @{}", kernel),
                fmt::format("it launches {}", fmt::join(names, ", ")));
  }
  std::vector<uint64_t> samples;
  const auto issues = static_cast<size_t>(std::max(1.0, number_of(request, "issues", 1)));
  while (samples.size() < issues) {
    auto profile = (*program)->issue_profiled();
    if (!profile) return std::unexpected(profile.error());
    const auto spans = dispatch_spans(**profile);
    uint64_t total = 0;
    for (size_t i = 0; i < spans.size(); ++i) {
      if ((*profile)->commands()[i].kernel != kernel || spans[i].workgroups == 0) continue;
      total += spans[i].end - spans[i].begin;
    }
    samples.push_back(total);
  }
  const auto middle = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  return Json{{"value", static_cast<double>(*middle)}};
}

size_t Worker::Expected::bytes() const {
  size_t total = 0;
  for (const auto& result : results) total += result.size();
  return total;
}

Result<const Worker::Expected*> Worker::expected(const std::string& name, size_t number,
                                                 const Draw& draw) {
  const std::pair key(number, draw);
  if (name.empty()) {
    if (const auto found = kept_.find(key); found != kept_.end()) return &found->second;
  }
  auto run = run_reference(name, number, draw);
  if (!run) return std::unexpected(run.error());
  const size_t bytes = run->bytes();
  if (!name.empty() || bytes > kKeptBytes) {
    last_expected_ = std::move(*run);
    return &last_expected_;
  }
  if (kept_bytes_ + bytes > kKeptBytes) {
    kept_.clear();
    kept_bytes_ = 0;
  }
  kept_bytes_ += bytes;
  return &kept_.emplace(key, std::move(*run)).first->second;
}

Result<Worker::Expected> Worker::run_reference(const std::string& name, size_t number,
                                               const Draw& draw) {
  auto program = built(name, number);
  if (!program) return std::unexpected(program.error());
  Storages& storage = storages_.at(number);
  if (name.empty() && interpretable_.try_emplace(number, true).first->second) {
    storage.fill(draw, kReferencePoison);
    if ((*program)->interpret(storage, kInterpreterSteps)) {
      return Expected{storage.results(), "interpreter"};
    }
    interpretable_[number] = false;
  }
  storage.fill(draw, kReferencePoison);
  if (auto done = (*program)->issue(); !done) return std::unexpected(done.error());
  return Expected{storage.results(), name.empty() ? "original program" : name};
}

Result<Json> Worker::compare(const Json& request) {
  Draw draw{.seed = value_of(request, "seed").is_number_unsigned()
                        ? value_of(request, "seed").get<uint64_t>()
                        : 0,
            .seeded = true,
            .adversarial = flag_of(request, "adversarial"),
            .held_out = flag_of(request, "held_out")};
  size_t number = kMeasuredShape;
  if (draw.held_out && !description_->held_out.empty()) {
    number = draw.seed % description_->held_out.size();
  }
  auto program = built(text_of(request, "name"), number);
  if (!program) return std::unexpected(program.error());
  auto reference = expected(text_of(request, "reference"), number, draw);
  if (!reference) return std::unexpected(reference.error());
  Storages& storage = storages_.at(number);
  storage.fill(draw, kPoison);
  if (auto done = (*program)->issue(); !done) return std::unexpected(done.error());
  const auto found = storage.results();
  Agreement agreement{.correct = true};
  Count count;
  for (size_t i = 0; i < found.size(); ++i) {
    compare_output(storage.specs()[i], draw.adversarial, found[i], (*reference)->results[i],
                   agreement, count);
  }
  if (const std::string broken = storage.broken_guard(); !broken.empty()) {
    agreement.correct = false;
    agreement.where = fmt::format("bytes behind %{}", broken);
  }
  const double accuracy =
      count.elements == 0 ? 1.0
                          : static_cast<double>(count.within) / static_cast<double>(count.elements);
  // JSON has no infinity.
  const double worst = std::min(agreement.worst_error, std::numeric_limits<double>::max());
  return Json{{"correct", agreement.correct},
              {"accuracy", accuracy},
              {"worst_error", worst},
              {"where", agreement.where},
              {"reference", (*reference)->reference}};
}

Result<Json> Worker::trace(const Json& request) {
  auto program = hot(request);
  if (!program) return std::unexpected(program.error());
  // The profile of the issue of median length stands for them all.
  constexpr size_t kIssues = 9;
  std::vector<std::pair<uint64_t, Json>> issues;
  while (issues.size() < kIssues) {
    auto profile = (*program)->issue_profiled();
    if (!profile) return std::unexpected(profile.error());
    const auto spans = dispatch_spans(**profile);
    Json rows = Json::array();
    for (size_t i = 0; i < spans.size(); ++i) {
      if (spans[i].workgroups == 0) continue;
      const loom::api::ProfiledCommand& command = (*profile)->commands()[i];
      const Built::Place place = (*program)->place_of(command.kernel);
      const Built::Work work = (*program)->work_of(command.kernel);
      uint64_t bytes = 0;
      for (const loom::api::ProfiledOperand& operand : command.operands) bytes += operand.bytes;
      rows.push_back({{"kernel", command.kernel},
                      {"begin_ns", spans[i].begin},
                      {"end_ns", spans[i].end},
                      {"thread", spans[i].thread},
                      {"workgroups", spans[i].workgroups},
                      {"bytes", bytes},
                      {"source_file", place.file},
                      {"source_line", place.line},
                      {"operations", work.operations * spans[i].workgroups},
                      {"operation_type", work.type}});
    }
    issues.emplace_back((*profile)->duration(), std::move(rows));
  }
  const auto middle = issues.begin() + kIssues / 2;
  std::ranges::nth_element(issues, middle, {}, [](const auto& issue) { return issue.first; });
  return Json{{"dispatches", std::move(middle->second)}, {"issue_ns", middle->first}};
}

Result<Json> Worker::answer(const Json& request) {
  const std::string op = text_of(request, "op");
  if (op == "open") return open(request);
  if (!description_) return fail("build_failed", "nothing is open");
  if (op == "load") return load(request);
  if (op == "throughput") return throughput(request);
  if (op == "kernel_ns") return kernel_ns(request);
  if (op == "compare") return compare(request);
  if (op == "trace") return trace(request);
  if (op == "peaks") return Json{{"peaks", measure_peaks(description_->threads)}};
  return fail("build_failed", fmt::format("no operation '{}'", op));
}

// --- lines
// -----------------------------------------------------------------------------------------

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

bool read_line(std::string& pending, std::string& line) {
  std::array<char, 65536> block;
  size_t searched = 0;
  while (true) {
    const size_t end = pending.find('\n', searched);
    if (end != std::string::npos) {
      line = pending.substr(0, end);
      pending.erase(0, end + 1);
      return true;
    }
    searched = pending.size();
    const ssize_t size = read(STDIN_FILENO, block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    pending.append(block.data(), static_cast<size_t>(size));
  }
}

// What tests plant; never returns where the fault is the process's end.
std::optional<std::string> planted_fault(const std::string& op) {
  const char* const planted = getenv("HYPERLOOM_WORKER_FAULT");
  if (planted == nullptr) return std::nullopt;
  const std::string_view fault(planted);
  const size_t colon = fault.find(':');
  if (colon == std::string_view::npos || fault.substr(0, colon) != op) return std::nullopt;
  const std::string_view kind = fault.substr(colon + 1);
  if (kind == "garbage") return "Segmentation fault, probably {\"id\":";
  if (kind == "exit") _exit(3);
  if (kind == "crash") {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  while (kind == "hang") pause();
  return std::nullopt;
}

std::string answer_line(Worker& worker, const std::string& line) {
  Json reply = Json::object();
  Result<Json> result = fail("build_failed", "the request is no JSON");
  const auto request = parse_json(line, "request");
  if (request) {
    reply["id"] = value_of(*request, "id");
    if (const auto garbage = planted_fault(text_of(*request, "op"))) return *garbage;
    try {
      result = worker.answer(*request);
    } catch (const std::bad_alloc&) {
      result = fail("build_failed", "out of memory");
    } catch (const std::exception& error) {
      result = fail("build_failed", error.what());
    }
  }
  if (result) {
    reply.update(*result);
  } else {
    reply["error_class"] = result.error().error_class;
    reply["message"] = result.error().message;
    reply["hint"] = result.error().hint;
  }
  reply["ok"] = result.has_value();
  return compact(reply);
}

}  // namespace

int run_worker(int /*argc*/, char** /*argv*/) {
  const int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
  signal(SIGPIPE, SIG_IGN);
  Worker worker;
  std::string pending, line;
  while (read_line(pending, line)) {
    if (!write_all(out, answer_line(worker, line) + "\n")) break;
  }
  return 0;
}

}  // namespace hyperloom::workload
