// A folder for one test, gone after it.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace hyperloom::workload {

class TestTree : public testing::Test {
 public:
  const std::filesystem::path& folder() const { return folder_; }
  // `path` below the folder; missing folders are made.
  void write(const std::filesystem::path& path, const std::string& text) const {
    std::filesystem::create_directories((folder_ / path).parent_path());
    std::ofstream(folder_ / path, std::ios::binary) << text;
  }

 protected:
  void SetUp() override {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "hyperloom_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = std::filesystem::canonical(pattern);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

 private:
  std::filesystem::path folder_;
};

}  // namespace hyperloom::workload
