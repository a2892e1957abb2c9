#include "loom/target/x86/perf_dump.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>

namespace loom {
namespace {

constexpr uint32_t kMagic = 0x4a695444;
constexpr uint32_t kVersion = 1;
constexpr uint32_t kHeaderBytes = 40;
constexpr uint32_t kPrefixBytes = 16;

enum class Record : uint32_t { CodeLoad = 0, DebugInfo = 2 };

// The clock of `perf record -k mono`.
uint64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

template <class T>
void put(std::string& to, T value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void put_text(std::string& to, std::string_view text) {
  to += text;
  to += '\0';
}

std::string record(Record kind, std::string_view content) {
  std::string made;
  put(made, kind);
  put(made, static_cast<uint32_t>(kPrefixBytes + content.size()));
  put(made, now());
  return made.append(content);
}

std::string header() {
  std::string made;
  put(made, kMagic);
  put(made, kVersion);
  put(made, kHeaderBytes);
  put(made, static_cast<uint32_t>(EM_X86_64));
  put(made, uint32_t{0});
  put(made, static_cast<uint32_t>(::getpid()));
  put(made, now());
  put(made, uint64_t{0});
  return made;
}

size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

bool write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(file, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(done));
  }
  return true;
}

}  // namespace

std::expected<std::unique_ptr<PerfDump>, FileError> PerfDump::create(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::string path = fmt::format("{}/jit-{}.dump", folder, ::getpid());
  const auto failed = [&] { return std::unexpected(FileError{path, std::strerror(errno)}); };
  const int file = ::open(path.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0666);
  if (file < 0) return failed();
  // Its event tells perf of the file.
  void* const mapping =
      write_all(file, header())
          ? ::mmap(nullptr, page_bytes(), PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0)
          : MAP_FAILED;
  if (mapping != MAP_FAILED) return std::unique_ptr<PerfDump>(new PerfDump(file, mapping));
  auto error = failed();
  ::close(file);
  return error;
}

PerfDump::~PerfDump() {
  ::munmap(mapping_, page_bytes());
  ::close(file_);
}

void PerfDump::add(std::string_view name, uint64_t address, std::span<const std::byte> code,
                   std::span<const CodeLine> lines) {
  std::string debug;
  put(debug, address);
  put(debug, static_cast<uint64_t>(lines.size()));
  for (const CodeLine& line : lines) {
    put(debug, line.address);
    put(debug, line.line);
    put(debug, uint32_t{0});
    put_text(debug, line.file);
  }
  std::string load;
  put(load, static_cast<uint32_t>(::getpid()));
  put(load, static_cast<uint32_t>(::syscall(SYS_gettid)));
  put(load, address);
  put(load, address);
  put(load, static_cast<uint64_t>(code.size()));

  const std::lock_guard lock(mutex_);
  put(load, next_number_++);
  put_text(load, name);
  load.append(reinterpret_cast<const char*>(code.data()), code.size());
  // The lines of code come before it.
  std::string both;
  if (!lines.empty()) both = record(Record::DebugInfo, debug);
  both += record(Record::CodeLoad, load);
  (void)write_all(file_, both);
}

}  // namespace loom
