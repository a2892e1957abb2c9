#include "hyperloom/core/child.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "hyperloom/core/spawn.h"

namespace hyperloom {
namespace {

constexpr double kGraceSeconds = 5;
constexpr double kReapSeconds = 1;
constexpr double kDrainSeconds = 2;
constexpr int kSliceMs = 50;  // how late a stop is seen, at most

// Keeps the last `limit` bytes of what it is given.
class Tail {
 public:
  void add(std::string_view bytes, size_t limit) {
    text_ += bytes;
    // Cutting seldom keeps the cost per byte constant.
    if (text_.size() / 2 > limit) cut(limit);
  }
  void cut(size_t limit) {
    if (text_.size() <= limit) return;
    text_.erase(0, text_.size() - limit);
    cut_ = true;
  }
  std::string& text() { return text_; }
  bool was_cut() const { return cut_; }

 private:
  std::string text_;
  bool cut_ = false;
};

}  // namespace

struct Child::Impl {
  Spawned spawned;
  size_t limit = 0;
  std::string lines;  // of standard output, not yet taken
  Tail output;        // of a child that is run to its end
  Tail errors;
  bool keeps_lines = true;
  bool ended = false;
  ChildResult result;

  ~Impl() { end(0); }

  bool exited() const;
  void wait(int timeout_ms, bool to_write);
  void pump();
  void read_stream(Descriptor& from, bool is_output);
  void end(int exit_code);
  void end_group(int& status);
  void settle();
  std::unexpected<Error> give_up(const char* error_class, int exit_code, std::string message);
  std::optional<std::unexpected<Error>> stopped(const Deadline& deadline,
                                                const std::stop_token& stop);
  std::string how_it_ended() const;
};

// Looks without reaping, so that the group's number stays taken until end().
bool Child::Impl::exited() const {
  siginfo_t info{};
  const int done =
      waitid(P_PID, static_cast<id_t>(spawned.process.pid), &info, WEXITED | WNOHANG | WNOWAIT);
  return done != 0 || info.si_pid != 0;
}

void Child::Impl::wait(int timeout_ms, bool to_write) {
  std::array<pollfd, 4> rows = {{{spawned.output.get(), POLLIN, 0},
                                 {spawned.errors.get(), POLLIN, 0},
                                 {spawned.alive.get(), POLLIN, 0},
                                 {to_write ? spawned.input.get() : -1, POLLOUT, 0}}};
  poll(rows.data(), rows.size(), timeout_ms);
}

void Child::Impl::read_stream(Descriptor& from, bool is_output) {
  std::array<char, 65536> block;
  while (from.open()) {
    // Lines that nobody takes stay in the pipe, and the child waits.
    if (is_output && keeps_lines && lines.size() > limit) return;
    const ssize_t size = read(from.get(), block.data(), block.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size <= 0) {
      from.reset();
      return;
    }
    const std::string_view bytes(block.data(), static_cast<size_t>(size));
    if (!is_output) {
      errors.add(bytes, limit);
    } else if (keeps_lines) {
      lines += bytes;
    } else {
      output.add(bytes, limit);
    }
  }
}

void Child::Impl::pump() {
  read_stream(spawned.output, true);
  read_stream(spawned.errors, false);
}

// SIGTERM, grace, SIGKILL, all to the group, whose leader is not reaped before.
void Child::Impl::end_group(int& status) {
  const pid_t pid = spawned.process.pid;
  const auto wait_for_end = [&](double seconds) {
    const Deadline deadline = Deadline::in_seconds(seconds);
    while (!exited() && !deadline.passed()) {
      wait(kSliceMs, false);
      keeps_lines = false;
      pump();
    }
  };
  if (!exited()) {
    kill(-pid, SIGTERM);
    wait_for_end(kGraceSeconds);
  }
  kill(-pid, SIGKILL);
  wait_for_end(kReapSeconds);
  const Deadline drain = Deadline::in_seconds(kDrainSeconds);
  keeps_lines = false;
  pump();
  while ((spawned.output.open() || spawned.errors.open()) && !drain.passed()) {
    std::array<pollfd, 2> rows = {
        {{spawned.output.get(), POLLIN, 0}, {spawned.errors.get(), POLLIN, 0}}};
    poll(rows.data(), rows.size(), kSliceMs);
    pump();
  }
  // A leader that the system holds in an uninterruptible call is left to be reaped at our own end.
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
    status = info.si_code == CLD_EXITED ? info.si_status : -info.si_status;
  }
}

// `exit_code`, unless 0, stands in place of the child's own.
void Child::Impl::end(int exit_code) {
  if (ended) return;
  ended = true;
  const bool by_itself = exited();
  spawned.input.reset();
  int status = 0;
  end_group(status);
  if (by_itself && status < 0) result.signal = -status;
  result.exit_code = exit_code != 0 ? exit_code : status < 0 ? 128 - status : status;
  output.cut(limit);
  errors.cut(limit);
  result.truncated = output.was_cut() || errors.was_cut();
  result.output = std::move(output.text());
  result.errors = std::move(errors.text());
  spawned.output.reset();
  spawned.errors.reset();
  spawned.alive.reset();
}

// A child whose streams have closed is about to end by itself.
void Child::Impl::settle() {
  const Deadline deadline = Deadline::in_seconds(kReapSeconds);
  while (!exited() && !deadline.passed()) wait(kSliceMs, false);
}

std::string Child::Impl::how_it_ended() const {
  if (result.signal != 0) {
    return fmt::format("died of signal {} ({})", result.signal, strsignal(result.signal));
  }
  return fmt::format("ended with exit code {}", result.exit_code);
}

std::unexpected<Error> Child::Impl::give_up(const char* error_class, int exit_code,
                                            std::string message) {
  end(exit_code);
  return fail(error_class, message.empty() ? "the child " + how_it_ended() : std::move(message));
}

std::optional<std::unexpected<Error>> Child::Impl::stopped(const Deadline& deadline,
                                                           const std::stop_token& stop) {
  if (stop.stop_requested()) return give_up("cancelled", kExitCancelled, "stopped by request");
  if (deadline.passed()) {
    return give_up("child_timeout", kExitOvertime, "the child did not answer in time");
  }
  return std::nullopt;
}

Child::Child(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Child::Child(Child&&) noexcept = default;
Child& Child::operator=(Child&&) noexcept = default;
Child::~Child() = default;

Result<Child> Child::start(const ChildOptions& options) {
  auto spawned = spawn(options, true);
  if (!spawned) return std::unexpected(std::move(spawned.error()));
  auto impl = std::make_unique<Impl>();
  impl->spawned = std::move(*spawned);
  impl->limit = options.output_limit;
  return Child(std::move(impl));
}

Result<void> Child::write_line(std::string_view line, const Deadline& deadline,
                               const std::stop_token& stop) {
  const std::string bytes = std::string(line) + '\n';
  std::string_view rest = bytes;
  while (!impl_->ended) {
    if (auto end = impl_->stopped(deadline, stop)) return std::move(*end);
    const ssize_t sent = send(impl_->spawned.input.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) break;
    if (sent > 0) rest.remove_prefix(static_cast<size_t>(sent));
    if (rest.empty()) return {};
    impl_->pump();
    impl_->wait(kSliceMs, true);
  }
  if (!impl_->ended) impl_->settle();
  return impl_->give_up("child_exited", 0, "");
}

Result<std::string> Child::read_line(const Deadline& deadline, const std::stop_token& stop) {
  size_t searched = 0;
  while (true) {
    const size_t end = impl_->lines.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = impl_->lines.substr(0, end);
      impl_->lines.erase(0, end + 1);
      return line;
    }
    if (impl_->ended) break;
    searched = impl_->lines.size();
    if (searched > impl_->limit) {
      return impl_->give_up("child_garbage", 0,
                            fmt::format("the child wrote a line of over {} bytes", impl_->limit));
    }
    if (auto stop_now = impl_->stopped(deadline, stop)) return std::move(*stop_now);
    const bool gone = impl_->exited();
    impl_->pump();
    if (impl_->lines.size() > searched) continue;
    if (gone) break;
    if (!impl_->spawned.output.open()) {
      impl_->settle();
      break;
    }
    const double left = std::min(deadline.seconds_left() * 1000, double{kSliceMs});
    impl_->wait(static_cast<int>(left) + 1, false);
  }
  return impl_->give_up("child_exited", 0, "");
}

const ChildResult& Child::end() {
  impl_->end(0);
  return impl_->result;
}

ProcessId Child::process() const { return impl_->spawned.process; }

Result<ChildResult> run_child(const ChildOptions& options, const Deadline& deadline,
                              const std::stop_token& stop) {
  auto spawned = spawn(options, false);
  if (!spawned) return std::unexpected(std::move(spawned.error()));
  Child::Impl child;
  child.spawned = std::move(*spawned);
  child.limit = options.output_limit;
  child.keeps_lines = false;
  int exit_code = 0;
  while (!child.exited()) {
    exit_code = stop.stop_requested() ? kExitCancelled : deadline.passed() ? kExitOvertime : 0;
    if (exit_code != 0) break;
    child.pump();
    const double left = std::min(deadline.seconds_left() * 1000, double{kSliceMs});
    child.wait(static_cast<int>(left) + 1, false);
  }
  child.end(exit_code);
  return std::move(child.result);
}

}  // namespace hyperloom
