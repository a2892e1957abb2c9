// Reads arbitrary bytes as a `.loomcmd`; what is accepted must print and write back to itself.
#include <cstdlib>
#include <cstring>

#include "loom/base/hash.h"
#include "loom/command/artifact.h"
#include "loom/command/artifact_layout.h"
#include "loom/command/cmd_core.h"

namespace {

// Version, size and checksum are made to fit, so that the fuzzer reaches what lies behind them.
std::string with_fitting_header(std::string_view data) {
  std::string bytes(data);
  loom::artifact::Header header;
  if (bytes.size() < sizeof header) return bytes;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.major = loom::kCommandMajor;
  header.minor = loom::kCommandMinor;
  header.file_size = bytes.size();
  header.hash = loom::hash_bytes(std::string_view(bytes).substr(sizeof header));
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes = with_fitting_header({reinterpret_cast<const char*>(data), size});
  loom::SourceFiles files;
  loom::Diagnostics diagnostics;
  const auto artifact = loom::CommandArtifact::copy(files, bytes, "fuzz.loomcmd", diagnostics);
  if (!artifact) {
    if (!diagnostics.has_errors()) std::abort();
    return 0;
  }
  (void)loom::cmd_core_text(artifact->program());
  const std::string again = loom::write_artifact(artifact->program());
  loom::Diagnostics second;
  if (!loom::CommandArtifact::copy(files, again, "again.loomcmd", second)) std::abort();
  return 0;
}
