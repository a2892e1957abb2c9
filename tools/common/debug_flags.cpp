#include "common/debug_flags.h"

#include "loom/base/file.h"

namespace loom {
namespace {

// Whether another process traces this one, as debuggers do.
bool is_traced() {
  constexpr std::string_view kKey = "TracerPid:\t";
  const auto status = read_file("/proc/self/status");
  if (!status) return false;
  const size_t at = status->find(kKey);
  return at != std::string::npos && status->compare(at + kKey.size(), 2, "0\n") != 0;
}

}  // namespace

void DebugFlags::declare(CLI::App& app) {
  app.add_option(
         "--debugger", debugger,
         "show source lines of kernels to gdb and lldb, and compile them without optimization: "
         "on, off, or auto when one runs this program")
      ->check(CLI::IsMember({"auto", "on", "off"}))
      ->capture_default_str();
}

void PerfFlag::declare(CLI::App& app) {
  app.add_option("--perf-dump", folder,
                 "folder that gets jit-PID.dump, with which perf shows kernels by name and source "
                 "line");
}

bool DebugFlags::wanted() const { return debugger == "on" || (debugger == "auto" && is_traced()); }

}  // namespace loom
