#include "loom/check/workers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>

namespace loom::check {
namespace {

using Clock = std::chrono::steady_clock;

// Samples given to a worker at a time; results still come one by one.
constexpr size_t kChunk = 16;

// --- messages: host byte order, as both ends are one program on one machine ----------------------

void put(std::string& out, uint64_t word) {
  out.append(reinterpret_cast<const char*>(&word), sizeof(word));
}
void put(std::string& out, const std::string& text) {
  put(out, text.size());
  out += text;
}

std::string encode(const SampleReport& report) {
  std::string body;
  put(body, static_cast<uint64_t>(report.outcome));
  uint64_t seconds = 0;
  std::memcpy(&seconds, &report.seconds, sizeof(seconds));
  put(body, seconds);
  put(body, report.issues.size());
  for (const RenderedIssue& issue : report.issues) {
    put(body, issue.text);
    put(body, issue.json);
  }
  std::string message;
  put(message, body);
  return message;
}

class Decoder {
 public:
  explicit Decoder(std::string_view text) : text_(text) {}
  uint64_t word() {
    uint64_t value = 0;
    std::memcpy(&value, text_.data() + at_, sizeof(value));
    at_ += sizeof(value);
    return value;
  }
  std::string text() {
    const auto size = static_cast<size_t>(word());
    std::string value(text_.substr(at_, size));
    at_ += size;
    return value;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

SampleReport decode(std::string_view body) {
  Decoder in(body);
  SampleReport report;
  report.outcome = static_cast<Outcome>(in.word());
  const uint64_t seconds = in.word();
  std::memcpy(&report.seconds, &seconds, sizeof(seconds));
  report.issues.resize(static_cast<size_t>(in.word()));
  for (RenderedIssue& issue : report.issues) {
    issue.text = in.text();
    issue.json = in.text();
  }
  return report;
}

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool read_exactly(int file, void* out, size_t size) {
  auto* at = static_cast<char*>(out);
  while (size != 0) {
    const ssize_t got = ::read(file, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

// --- the worker's side --------------------------------------------------------------------------

// Orders are numbers of samples; the end of them is the end of the worker.
[[noreturn]] void serve(int orders, int results, std::span<const Sample> samples,
                        const WorkerCallbacks& callbacks) {
  // What a kernel does to the process is told by the signal, in every kind of build.
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) ::signal(signal, SIG_DFL);
  const SampleFunction run = callbacks.prepare();
  uint64_t number = 0;
  while (read_exactly(orders, &number, sizeof(number))) {
    const auto start = Clock::now();
    SampleReport report = run(samples[number]);
    report.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (!write_all(results, encode(report))) break;
  }
  ::_exit(0);
}

// --- the parent's side --------------------------------------------------------------------------

struct Worker {
  pid_t process = -1;
  int orders = -1;
  int results = -1;
  std::deque<size_t> given;  // samples, the first of which runs
  Clock::time_point since;   // when it began
  std::string received;      // an incomplete result

  bool alive() const { return process > 0; }
};

class Pool {
 public:
  Pool(std::span<const Sample> samples, const WorkerOptions& options,
       const WorkerCallbacks& callbacks)
      : samples_(samples), options_(options), callbacks_(callbacks), reports_(samples.size()) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (Worker& worker : workers_) stop(worker);
  }

  bool run(std::string& problem) {
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    const size_t jobs =
        std::min<size_t>(options_.jobs != 0 ? options_.jobs : processors, samples_.size());
    workers_.resize(jobs);
    for (Worker& worker : workers_) {
      if (!start(worker, problem)) return false;
    }
    while (told_ < samples_.size()) {
      for (Worker& worker : workers_) give(worker);
      await();
      for (Worker& worker : workers_) {
        const bool work_left = !again_.empty() || next_ < samples_.size();
        if (!worker.alive() && work_left && !start(worker, problem)) return false;
      }
    }
    return true;
  }

 private:
  bool start(Worker& worker, std::string& problem) {
    int orders[2] = {-1, -1};
    int results[2] = {-1, -1};
    if (::pipe2(orders, O_CLOEXEC) != 0 || ::pipe2(results, O_CLOEXEC) != 0) {
      problem = std::strerror(errno);
      for (const int file : orders) close_file(file);
      return false;
    }
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child == 0) {
      // Its own group, so that what it starts is stopped with it.
      ::setpgid(0, 0);
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(0);
      for (const Worker& other : workers_) {
        close_file(other.orders);
        close_file(other.results);
      }
      ::close(orders[1]);
      ::close(results[0]);
      serve(orders[0], results[1], samples_, callbacks_);
    }
    ::close(orders[0]);
    ::close(results[1]);
    if (child < 0) {
      problem = std::strerror(errno);
      ::close(orders[1]);
      ::close(results[0]);
      return false;
    }
    ::setpgid(child, child);
    worker = {.process = child, .orders = orders[1], .results = results[0]};
    ::fcntl(worker.results, F_SETFL, O_NONBLOCK);
    return true;
  }

  static void close_file(int file) {
    if (file >= 0) ::close(file);
  }

  // Ends the worker and returns how it ended.
  static int stop(Worker& worker) {
    int status = 0;
    if (!worker.alive()) return status;
    ::kill(-worker.process, SIGKILL);
    while (::waitpid(worker.process, &status, 0) < 0 && errno == EINTR) {
    }
    close_file(worker.orders);
    close_file(worker.results);
    worker = Worker();
    return status;
  }

  // Keeps a worker busy without taking work from the others at the end.
  void give(Worker& worker) {
    if (!worker.alive() || worker.given.size() > kChunk / 2) return;
    const size_t share = (samples_.size() - next_) / (workers_.size() * 2) + 1;
    size_t count = std::min({kChunk - worker.given.size(), share, samples_.size() - next_});
    if (!again_.empty()) count = std::min(kChunk - worker.given.size(), again_.size());
    if (count == 0 || (!worker.given.empty() && count < 2)) return;
    std::string orders;
    if (worker.given.empty()) worker.since = Clock::now();
    for (size_t i = 0; i < count; ++i) {
      size_t number = next_;
      if (!again_.empty()) {
        number = again_.front();
        again_.pop_front();
      } else {
        ++next_;
      }
      put(orders, number);
      worker.given.push_back(number);
    }
    // A worker that is gone is noticed by its results.
    (void)write_all(worker.orders, orders);
  }

  void await() {
    std::vector<pollfd> files;
    std::vector<Worker*> of;
    for (Worker& worker : workers_) {
      if (!worker.alive()) continue;
      files.push_back({worker.results, POLLIN, 0});
      of.push_back(&worker);
    }
    const int ready = ::poll(files.data(), files.size(), until_timeout());
    for (size_t i = 0; ready > 0 && i < files.size(); ++i) {
      if (files[i].revents != 0) receive(*of[i]);
    }
    for (Worker& worker : workers_) {
      if (worker.alive() && is_late(worker)) {
        lose(worker, fmt::format("it ran longer than {} seconds", options_.timeout), true);
      }
    }
    tell();
  }

  bool is_late(const Worker& worker) const {
    const std::chrono::duration<double> spent = Clock::now() - worker.since;
    return options_.timeout > 0 && !worker.given.empty() && spent.count() >= options_.timeout;
  }

  int until_timeout() const {
    if (options_.timeout <= 0) return -1;
    double least = options_.timeout;
    for (const Worker& worker : workers_) {
      if (!worker.alive() || worker.given.empty()) continue;
      const std::chrono::duration<double> spent = Clock::now() - worker.since;
      least = std::min(least, options_.timeout - spent.count());
    }
    return static_cast<int>(std::clamp(least * 1000 + 1, 1.0, 60000.0));
  }

  void receive(Worker& worker) {
    char bytes[1 << 16];
    for (;;) {
      const ssize_t got = ::read(worker.results, bytes, sizeof(bytes));
      if (got > 0) {
        worker.received.append(bytes, static_cast<size_t>(got));
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      const bool ended = got == 0 || errno != EAGAIN;
      take_results(worker);
      if (ended) lose(worker, "", false);
      return;
    }
  }

  void take_results(Worker& worker) {
    size_t at = 0;
    const std::string_view text = worker.received;
    while (text.size() - at >= sizeof(uint64_t)) {
      uint64_t size = 0;
      std::memcpy(&size, text.data() + at, sizeof(size));
      if (text.size() - at - sizeof(size) < size) break;
      reports_[worker.given.front()] = decode(text.substr(at + sizeof(size), size));
      worker.given.pop_front();
      worker.since = Clock::now();
      at += sizeof(size) + size;
      if (options_.ran) options_.ran();
    }
    worker.received.erase(0, at);
  }

  // The sample that ran is lost; those behind it are given to another worker.
  void lose(Worker& worker, std::string reason, bool late) {
    const std::deque<size_t> given = worker.given;
    const int status = stop(worker);
    if (!late) {
      reason = WIFSIGNALED(status) ? fmt::format("its process ended by signal {} ({})",
                                                 WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                                   : "its process ended";
    }
    if (given.empty()) return;
    reports_[given.front()] = callbacks_.stopped(samples_[given.front()], reason);
    if (options_.ran) options_.ran();
    again_.insert(again_.begin(), given.begin() + 1, given.end());
  }

  void tell() {
    while (told_ < reports_.size() && reports_[told_]) {
      callbacks_.done(told_, std::move(*reports_[told_]));
      reports_[told_].reset();
      ++told_;
    }
  }

  std::span<const Sample> samples_;
  const WorkerOptions& options_;
  const WorkerCallbacks& callbacks_;
  std::vector<Worker> workers_;
  std::vector<std::optional<SampleReport>> reports_;
  std::deque<size_t> again_;  // given to a worker that was lost
  size_t next_ = 0;
  size_t told_ = 0;
};

}  // namespace

bool run_in_workers(std::span<const Sample> samples, const WorkerOptions& options,
                    const WorkerCallbacks& callbacks, std::string& problem) {
  if (samples.empty()) return true;
  Pool pool(samples, options, callbacks);
  return pool.run(problem);
}

}  // namespace loom::check
