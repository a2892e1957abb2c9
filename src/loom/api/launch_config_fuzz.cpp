// Any bytes as a launch configuration: refused with a message, or evaluated to a geometry or a
// message. Bytes whose hashes alone are wrong are read as if they were right, so that mutations
// reach what lies behind.
#include <cstdlib>
#include <vector>

#include "loom/api/loom.h"
#include "loom/bytecode/bytecode.h"
#include "loom/ir/module.h"

namespace {

using namespace loom;

std::string with_fitting_hashes(const std::string& bytes) {
  SourceFiles files;
  Diagnostics diagnostics;
  const auto module =
      read_bytecode(files, bytes, "fuzz.loomlaunch", diagnostics, {.check_hashes = false});
  return module ? write_bytecode(*module) : bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const api::Context context;
  api::Messages messages(context);
  const auto config =
      api::LaunchConfig::read(context, with_fitting_hashes(bytes), "fuzz.loomlaunch", messages);
  if (config.has_value() == messages.has_errors()) std::abort();
  if (!config) return 0;
  for (const std::string& kernel : config->kernels()) {
    const auto types = config->workload(kernel);
    if (!types) std::abort();
    for (const uint64_t value : {uint64_t{0}, uint64_t{7}, ~uint64_t{0}}) {
      api::Messages said(context);
      const std::vector<uint64_t> workload(types->size(), value);
      const auto geometry = config->evaluate(kernel, workload, said);
      if (geometry.has_value() == said.has_errors()) std::abort();
    }
  }
  return 0;
}
