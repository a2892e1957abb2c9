#include "loom/check/external_oracle.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>

#include "loom/base/file.h"
#include "loom/base/scratch_folder.h"
#include "loom/runtime/parameters/npy.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace loom::check {
namespace {

// Empty when the command ended with status 0.
std::string run(const std::string& command, const std::string& folder) {
  const std::string script = command + " \"$1\"";
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return fmt::format("no process can be started: {}", std::strerror(errno));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(127);
    ::execl("/bin/sh", "sh", "-c", script.c_str(), "sh", folder.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return "its end was not seen";
  }
  if (WIFSIGNALED(status)) return fmt::format("it ended by signal {}", WTERMSIG(status));
  if (WEXITSTATUS(status) == 127) return fmt::format("'{}' cannot be started", command);
  return WEXITSTATUS(status) == 0 ? ""
                                  : fmt::format("it ended with status {}", WEXITSTATUS(status));
}

std::string write_request(const std::string& folder, const std::string& callee,
                          std::span<const OracleInput> inputs,
                          std::span<const OracleOutput> outputs) {
  nlohmann::ordered_json request;
  request["callee"] = callee;
  request["inputs"] = nlohmann::ordered_json::array();
  request["outputs"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string file = fmt::format("input{}.npy", i);
    const auto array = write_npy(inputs[i].type, inputs[i].bytes);
    if (!array) return array.error().text();
    if (const auto done = write_file(fmt::format("{}/{}", folder, file), *array); !done)
      return done.error().reason;
    request["inputs"].push_back({{"file", file}, {"type", to_string(inputs[i].type)}});
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    request["outputs"].push_back(
        {{"file", fmt::format("output{}.npy", i)}, {"type", to_string(outputs[i].type)}});
  }
  const auto done = write_file(folder + "/request.json", request.dump(2) + "\n");
  return done ? "" : done.error().reason;
}

}  // namespace

bool run_external_oracle(const std::string& name, const std::string& command,
                         const std::string& callee, std::span<const OracleInput> inputs,
                         std::span<const OracleOutput> outputs, Location location,
                         Diagnostics& diagnostics) {
  const ScratchFolder folder("oracle");
  std::string problem = folder.path().empty() ? "there is no temporary folder" : "";
  if (problem.empty()) problem = write_request(folder.path(), callee, inputs, outputs);
  if (problem.empty()) problem = run(command, folder.path());
  for (size_t i = 0; problem.empty() && i < outputs.size(); ++i) {
    Diagnostics found;
    const auto array =
        ArrayFile::open(fmt::format("{}/output{}.npy", folder.path(), i), outputs[i].type, found);
    if (!array) {
      problem = fmt::format("output {} is not there, or no {}", i, to_string(outputs[i].type));
    } else {
      std::ranges::copy(array->bytes, outputs[i].bytes.begin());
    }
  }
  if (problem.empty()) return true;
  diagnostics.emit(Diag::CheckOracle, location,
                   {{"oracle", name}, {"callee", callee}, {"detail", problem}});
  return false;
}

}  // namespace loom::check
