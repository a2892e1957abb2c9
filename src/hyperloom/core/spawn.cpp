#include "hyperloom/core/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <mutex>
#include <thread>

namespace hyperloom {
namespace {

// The system sends a child its parent-death signal when the *thread* that made it ends. So one
// thread, which never ends, makes them all.
class SpawnThread {
 public:
  static SpawnThread& get() {
    // Never destroyed, as its thread runs until the process ends. A forked process has another one.
    static std::mutex mutex;
    static std::map<pid_t, SpawnThread*>* const of_process = new std::map<pid_t, SpawnThread*>;
    const std::lock_guard lock(mutex);
    SpawnThread*& thread = (*of_process)[getpid()];
    if (thread == nullptr) thread = new SpawnThread;
    return *thread;
  }

  void run(const std::function<void()>& work) {
    const std::lock_guard turn(turn_);
    std::unique_lock lock(mutex_);
    work_ = &work;
    changed_.notify_all();
    changed_.wait(lock, [&] { return work_ == nullptr; });
  }

 private:
  SpawnThread() {
    std::thread([this] { serve(); }).detach();
  }

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return work_ != nullptr; });
      (*work_)();
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex turn_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
};

struct Pipe {
  Descriptor read;
  Descriptor write;
};

bool make_pipe(Pipe& pipe) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  pipe = {Descriptor(ends[0]), Descriptor(ends[1])};
  return true;
}

bool make_socket(Pipe& pipe) {
  std::array<int, 2> ends{};
  // A socket, as a write to one whose reader is gone can be kept from raising SIGPIPE.
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return false;
  pipe = {Descriptor(ends[0]), Descriptor(ends[1])};
  return true;
}

void make_unblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

std::vector<std::string> environment_rows(const ChildOptions& options) {
  std::map<std::string, std::string> values = options.environment;
  if (!options.session_token.empty()) values[kSessionTokenVariable] = options.session_token;
  std::vector<std::string> rows;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string row(*entry);
    if (!values.contains(row.substr(0, row.find('=')))) rows.push_back(row);
  }
  for (const auto& [name, value] : values) rows.push_back(name + "=" + value);
  return rows;
}

std::vector<char*> pointers(std::vector<std::string>& rows) {
  std::vector<char*> result;
  for (std::string& row : rows) result.push_back(row.data());
  result.push_back(nullptr);
  return result;
}

// The program's path: of several threads' memory only what was made before may be used after fork,
// so it is looked up before.
std::string find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* const path = getenv("PATH");
  const std::string folders = path == nullptr ? "/usr/bin:/bin" : path;
  for (size_t at = 0; at <= folders.size();) {
    const size_t end = std::min(folders.find(':', at), folders.size());
    const std::string candidate = folders.substr(at, end - at) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return name;
}

struct Image {
  const char* program;
  const char* folder;  // null: stay
  char* const* arguments;
  char* const* environment;
  int input, output, errors, report;
  pid_t parent;
};

// In the child, where only async-signal-safe calls are allowed. Never returns.
[[noreturn]] void become(const Image& image) {
  const auto give_up = [&] {
    const int reason = errno;
    (void)!write(image.report, &reason, sizeof reason);
    _exit(127);
  };
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != image.parent) _exit(127);  // it died before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) {
    signal(number, SIG_DFL);
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (image.folder != nullptr && chdir(image.folder) != 0) give_up();
  // All of them lie above 2, so none is overwritten before it is used.
  if (dup2(image.input, 0) < 0 || dup2(image.output, 1) < 0 || dup2(image.errors, 2) < 0) give_up();
  execve(image.program, image.arguments, image.environment);
  give_up();
  _exit(127);
}

// Descriptors 0 to 2 may be closed in this process; what is made then must not take their place.
void lift(Descriptor& descriptor) {
  if (descriptor.get() > 2) return;
  descriptor = Descriptor(fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 3));
}

std::unexpected<Error> not_started(const std::string& program, int reason) {
  return fail("child_not_started",
              fmt::format("cannot start '{}': {}", program, std::strerror(reason)));
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int Descriptor::release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

void Descriptor::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<Spawned> spawn(const ChildOptions& options, bool with_input) {
  if (options.command.empty()) return not_started("", ENOENT);
  const std::string program = find_program(options.command[0]);
  std::vector<std::string> arguments = options.command;
  std::vector<std::string> environment = environment_rows(options);
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(environment);

  Pipe input, output, errors, report;
  const bool made =
      (with_input ? make_socket(input)
                  : (input.read = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC))).open()) &&
      make_pipe(output) && make_pipe(errors) && make_pipe(report);
  if (!made) return not_started(program, errno);
  for (Descriptor* end : {&input.read, &output.write, &errors.write, &report.write}) lift(*end);
  const std::string folder = options.folder.string();
  const Image image{program.c_str(),
                    folder.empty() ? nullptr : folder.c_str(),
                    argv.data(),
                    envp.data(),
                    input.read.get(),
                    output.write.get(),
                    errors.write.get(),
                    report.write.get(),
                    getpid()};
  pid_t pid = -1;
  int reason = 0;
  SpawnThread::get().run([&] {
    pid = fork();
    if (pid == 0) become(image);
    reason = errno;
  });
  if (pid < 0) return not_started(program, reason);
  report.write.reset();
  ssize_t size = 0;
  do {
    size = read(report.read.get(), &reason, sizeof reason);
  } while (size < 0 && errno == EINTR);
  if (size == sizeof reason) {
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED);
    return not_started(program, reason);
  }
  Spawned spawned;
  spawned.process = find_process(pid).value_or(ProcessId{pid, 0});
  spawned.alive = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (with_input) spawned.input = std::move(input.write);
  spawned.output = std::move(output.read);
  spawned.errors = std::move(errors.read);
  for (const Descriptor* end : {&spawned.input, &spawned.output, &spawned.errors}) {
    if (end->open()) make_unblocking(end->get());
  }
  return spawned;
}

}  // namespace hyperloom
