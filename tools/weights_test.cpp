// loom-weights as a user runs it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "loom/base/file.h"

namespace loom {
namespace {

class LoomWeights : public ::testing::Test {
 protected:
  LoomWeights() { std::filesystem::create_directories(folder_); }
  ~LoomWeights() override { std::filesystem::remove_all(folder_); }

  // Runs in a folder of its own; standard output and standard error come back together.
  int run(const std::string& arguments) {
    const std::string command =
        "cd '" + folder_.string() + "' && '" LOOM_BIN "/loom-weights' " + arguments + " 2>&1";
    std::FILE* pipe = ::popen(command.c_str(), "r");
    if (pipe == nullptr) return -1;
    output_.clear();
    char buffer[4096];
    while (const size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
      output_.append(buffer, count);
    }
    const int status = ::pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string content(const std::string& name) const {
    return read_file((folder_ / name).string()).value_or("no such file");
  }

  std::filesystem::path folder_ =
      std::filesystem::path(::testing::TempDir()) / ("loom-weights-" + std::to_string(::getpid()));
  std::string output_;
};

TEST_F(LoomWeights, MakesAndListsGguf) {
  ASSERT_EQ(run("make --output=w.gguf 'blk.{0..1}.w=2x4xf32:iota:1:0.5' h=3xbf16:1"), 0) << output_;
  EXPECT_EQ(output_, "");
  ASSERT_EQ(run("list w.gguf"), 0);
  EXPECT_EQ(output_,
            "w.gguf: GGUF version 3, 3 parameters, 288 bytes\n"
            "  NAME     TYPE  SHAPE  BYTES  OFFSET  ALIGN\n"
            "  blk.0.w  f32   2x4       32     192     64\n"
            "  blk.1.w  f32   2x4       32     224     32\n"
            "  h        bf16  3          6     256    256\n");
}

TEST_F(LoomWeights, ListsAsJson) {
  ASSERT_EQ(run("make --output=w.safetensors w=2x3xf8E4M3:500 s=f64:1"), 0) << output_;
  ASSERT_EQ(run("list --format=json w.safetensors"), 0);
  const auto list = nlohmann::json::parse(output_);
  EXPECT_EQ(list[0]["format"], "safetensors");
  EXPECT_EQ(list[0]["parameters"].size(), 2u);
  EXPECT_EQ(list[0]["parameters"][1]["name"], "w");
  EXPECT_EQ(list[0]["parameters"][1]["type"], "f8E4M3");
  EXPECT_EQ(list[0]["parameters"][1]["shape"], nlohmann::json({2, 3}));
  EXPECT_EQ(content("w.safetensors").substr(list[0]["parameters"][1]["offset"], 6),
            "\x7e\x7e\x7e\x7e\x7e\x7e");
}

TEST_F(LoomWeights, CopiesArraysFromNpy) {
  ASSERT_EQ(run("make x.npy 4xf32:random:7:-1:1"), 0) << output_;
  ASSERT_EQ(run("make --output=a.gguf w=@x.npy"), 0) << output_;
  ASSERT_EQ(run("make --output=b.gguf w=4xf32:random:7:-1:1"), 0) << output_;
  EXPECT_EQ(content("a.gguf"), content("b.gguf"));
  ASSERT_EQ(run("make --output=c.gguf w=5xf32:@x.npy"), 1);
  EXPECT_EQ(output_, "error[RUN/001]: 'x.npy' holds 4xf32 but 5xf32 is stated\n");
  EXPECT_EQ(content("c.gguf"), "no such file");
}

TEST_F(LoomWeights, UsageIsTwo) {
  EXPECT_EQ(run(""), 2);
  EXPECT_EQ(run("make --output=w.txt w=f32:1"), 2);
  EXPECT_EQ(output_,
            "error[USAGE/001]: 'w.txt' ends in none of .gguf, .safetensors and .npy\n"
            "  hint: --help lists the flags\n");
  EXPECT_EQ(run("make --output=w.gguf f32:1"), 2);
  EXPECT_EQ(run("make w.npy"), 2);
  EXPECT_EQ(run("make w.npy 2xi8:iota:127:200"), 2);
  EXPECT_EQ(run("list --format=yaml w.npy"), 2);
  EXPECT_EQ(std::filesystem::is_empty(folder_), true);
}

TEST_F(LoomWeights, WhatAFormatCannotHoldIsOne) {
  EXPECT_EQ(run("make w.npy 2xbf16:1"), 1);
  EXPECT_EQ(output_, "error[RUN/008]: cannot build 'w.npy': npy has no element type for bf16\n");
  EXPECT_EQ(run("make --output=no/w.gguf w=f32:1"), 1);
  EXPECT_EQ(output_, "error[IO/002]: cannot write 'no/w.gguf': No such file or directory\n");
  EXPECT_EQ(std::filesystem::is_empty(folder_), true);
}

TEST_F(LoomWeights, ADamagedFileDoesNotHideTheOthers) {
  ASSERT_EQ(run("make good.npy 2xf32:1"), 0);
  ASSERT_TRUE(write_file((folder_ / "bad.gguf").string(), content("good.npy").substr(0, 100)));
  EXPECT_EQ(run("list bad.gguf good.npy --diagnostics=json"), 1);
  EXPECT_NE(output_.find("good.npy: npy version 1, 1 parameter"), std::string::npos) << output_;
  EXPECT_NE(output_.find("{\"severity\":\"error\",\"code\":\"RUN/007\""), std::string::npos);
  EXPECT_NE(output_.find("\"file\":\"bad.gguf\""), std::string::npos);
}

}  // namespace
}  // namespace loom
