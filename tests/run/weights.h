// A parameter file in a folder of its own, for the tests of this folder.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "loom/runtime/parameters/parameter_file.h"

namespace loom {

class WeightsFile {
 public:
  using Rows = std::vector<std::pair<std::string, std::vector<float>>>;

  WeightsFile(const std::string& name, const Rows& rows) {
    static int count = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("loom-run-test-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(folder_);
    std::vector<ParameterSource> sources;
    for (const auto& [key, values] : rows) {
      sources.push_back(
          {key, {ElementType::F32, {values.size()}}, std::as_bytes(std::span(values))});
    }
    Diagnostics diagnostics;
    path_ = folder_ / name;
    const auto bytes =
        build_parameter_file(*format_from_path(name), path_.string(), sources, diagnostics);
    std::ofstream(path_, std::ios::binary) << bytes.value();
  }
  WeightsFile(const WeightsFile&) = delete;
  WeightsFile& operator=(const WeightsFile&) = delete;
  ~WeightsFile() { std::filesystem::remove_all(folder_); }

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

}  // namespace loom
