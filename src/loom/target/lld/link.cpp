#include "loom/target/lld/link.h"

#include <fmt/format.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>

#include <mutex>
#include <string_view>

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

}  // namespace

FileResult<std::string> link_shared_object(const SharedObjectParts& parts) {
  const ScratchFolder folder("link");
  if (folder.path().empty()) return std::unexpected(folder.problem());
  const std::string output = folder.path() + "/output";
  std::vector<std::string> args = {"ld.lld",
                                   "-shared",
                                   "--no-undefined",
                                   "--build-id=none",
                                   "--threads=1",
                                   "--hash-style=gnu",
                                   "-znow",
                                   "--strip-debug",
                                   "-o",
                                   output,
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
  return read_file(output);
}

}  // namespace loom
