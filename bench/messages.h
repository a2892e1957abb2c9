#pragma once

// What both sides of suite `hyperloom` send, and where.

#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "timing.h"

namespace loom::bench {

// A file system of the disk, and one in memory, where the sync of a commit costs nothing.
struct Place {
  std::string_view name;
  std::filesystem::path folder;
  int messages;
};

// The size of a request with a few parameters.
inline std::string payload_text(int number) {
  return fmt::format(
      R"({{"kind":"run_optimization","params":{{"candidates_path":"kernel_candidates.json",)"
      R"("kernel_id":"k{:06}","session_id":"bench"}},"target_agent":"kernel_agent"}})",
      number);
}

// How many were there before: the log is as long as retention leaves it.
inline constexpr int kBefore = 5000;

// Prints messages a second for each place: `send(folder, messages)` gives the seconds that they
// took, each committed by itself, in a folder that is empty before and gone afterwards.
template <typename Send>
int measure_places(const std::filesystem::path& work, Send&& send) {
  namespace fs = std::filesystem;
  const Place places[] = {
      {"disk", work / "messages", 500},
      {"memory", fs::path("/dev/shm") / fmt::format("messages-{}", ::getpid()), 20'000}};
  std::string fields;
  for (const Place& place : places) {
    std::error_code error;
    fs::remove_all(place.folder, error);
    if (!fs::create_directories(place.folder, error)) {
      fmt::print(stderr, "cannot make {}: {}\n", place.folder.string(), error.message());
      return 1;
    }
    const double seconds = send(place.folder, place.messages);
    fs::remove_all(place.folder, error);
    if (!(seconds > 0)) return 1;
    fields += fmt::format("{}\"{}\": {:.3f}", fields.empty() ? "" : ", ", place.name,
                          place.messages / seconds);
  }
  fmt::print("{{{}}}\n", fields);
  return 0;
}

}  // namespace loom::bench
