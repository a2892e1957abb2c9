#include "loom/target/lld/link.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include "loom/base/file.h"
#include "loom/base/scratch_folder.h"

LLD_HAS_DRIVER(elf)

namespace loom {
namespace {

// What the linker said, on one line and without the folder that nobody can look into.
std::string message_of(std::string said, const ScratchFolder& folder) {
  const std::string place = folder.path() + "/";
  for (size_t at = 0; (at = said.find(place, at)) != std::string::npos;)
    said.erase(at, place.size());
  while (!said.empty() && said.back() == '\n') said.pop_back();
  for (size_t at = 0; (at = said.find('\n', at)) != std::string::npos;) said.replace(at, 1, "; ");
  return said.empty() ? "the linker failed" : said;
}

// A pipe with a name that takes what the linker writes. Into a file it would write through a
// mapping, and a full disk would end the process.
class OutputPipe {
 public:
  explicit OutputPipe(std::string path) : path_(std::move(path)) {
    if (::mkfifo(path_.c_str(), S_IRUSR | S_IWUSR) != 0) {
      problem_ = std::strerror(errno);
      return;
    }
    end_ = ::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (end_ < 0) {
      problem_ = std::strerror(errno);
      return;
    }
    reader_ = std::jthread([this] { read_all(); });
  }
  OutputPipe(const OutputPipe&) = delete;
  OutputPipe& operator=(const OutputPipe&) = delete;
  ~OutputPipe() {
    finish();
    if (end_ >= 0) ::close(end_);
  }
  const std::string& path() const { return path_; }
  const std::string& problem() const { return problem_; }  // empty where the pipe can be written

  // What was written, when nobody writes any more.
  std::string finish() {
    if (!reader_.joinable()) return {};
    // Where nothing was, the reader sees an end only after a beginning.
    const int writer = ::open(path_.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (writer >= 0) ::close(writer);
    reader_.join();
    return std::move(bytes_);
  }

 private:
  void read_all() {
    std::string block(size_t{1} << 16, '\0');
    for (;;) {
      pollfd waits{end_, POLLIN, 0};
      (void)::poll(&waits, 1, -1);
      const ssize_t count = ::read(end_, block.data(), block.size());
      if (count > 0) {
        bytes_.append(block, 0, static_cast<size_t>(count));
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        return;
      }
    }
  }

  std::string path_;
  std::string problem_;
  int end_ = -1;
  std::string bytes_;
  std::jthread reader_;
};

}  // namespace

FileResult<std::string> link_shared_object(const SharedObjectParts& parts) {
  const ScratchFolder folder("link");
  if (folder.path().empty()) return std::unexpected(folder.problem());
  OutputPipe output(folder.path() + "/output");
  if (!output.problem().empty()) {
    return std::unexpected(FileError{output.path(), output.problem()});
  }
  std::vector<std::string> args = {"ld.lld",
                                   "-shared",
                                   "--no-undefined",
                                   "--build-id=none",
                                   "--threads=1",
                                   "--hash-style=gnu",
                                   "-znow",
                                   "--strip-debug",
                                   "-o",
                                   output.path(),
                                   "--soname=" + parts.soname};
  const auto add = [&](const std::vector<std::string>& files, std::string_view ending) {
    for (size_t i = 0; i < files.size(); ++i) {
      args.push_back(fmt::format("{}/{}.{}", folder.path(), i, ending));
      if (auto written = write_file(args.back(), files[i]); !written) return written;
    }
    return FileResult<void>();
  };
  auto added = add(parts.objects, "o");
  args.emplace_back("--as-needed");
  if (added) added = add(parts.libraries, "so");
  if (!added) return std::unexpected(added.error());

  std::vector<const char*> words;
  words.reserve(args.size());
  for (const std::string& arg : args) words.push_back(arg.c_str());
  std::string said;
  {
    static std::mutex linking;
    const std::lock_guard lock(linking);
    llvm::raw_string_ostream errors(said);
    const lld::Result result =
        lld::lldMain(words, llvm::nulls(), errors, {{lld::Gnu, &lld::elf::link}});
    errors.flush();
    if (result.retCode != 0) {
      return std::unexpected(FileError{"", message_of(std::move(said), folder)});
    }
  }
  return output.finish();
}

}  // namespace loom
