#include "loom/runtime/parameters/parameter_file.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

namespace loom {
namespace {

class ParameterFiles : public ::testing::Test {
 protected:
  ParameterFiles() { std::filesystem::create_directories(folder_); }
  ~ParameterFiles() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::vector<std::string>& keys) {
    std::vector<ParameterSource> sources;
    for (const std::string& key : keys) {
      sources.push_back({key, {ElementType::F32, {2}}, data_});
    }
    const std::string path = (folder_ / name).string();
    const auto text = build_parameter_file(*format_from_path(name), path, sources, diagnostics_);
    EXPECT_TRUE(text && write_file(path, *text));
    return path;
  }
  std::string last_message() const {
    return diagnostics_.all().empty() ? "" : diagnostics_.all().back().message();
  }

  std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) /
                                  ("loom-parameters-" + std::to_string(::getpid()));
  std::vector<std::byte> data_ = std::vector<std::byte>(8, std::byte{1});
  Diagnostics diagnostics_;
};

TEST_F(ParameterFiles, EntriesSurviveAMove) {
  const std::string path = write("a.safetensors", {"first", "second"});
  auto file = ParameterFile::open(path, diagnostics_);
  ASSERT_TRUE(file);
  const std::byte* bytes = file->find("second")->bytes.data();
  const ParameterFile moved = std::move(*file);
  EXPECT_EQ(moved.find("second")->bytes.data(), bytes);
  EXPECT_EQ(moved.entries()[0].name, "first");
  EXPECT_EQ(std::to_integer<int>(moved.find("first")->bytes[7]), 1);
  EXPECT_EQ(moved.find("third"), nullptr);
}

TEST_F(ParameterFiles, ContentDecidesTheFormat) {
  const std::string path = write("a.gguf", {"w"});
  const std::string other = (folder_ / "a.safetensors").string();
  std::filesystem::rename(path, other);
  const auto file = ParameterFile::open(other, diagnostics_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->format(), FileFormat::Gguf);
}

TEST_F(ParameterFiles, ErrorsNameTheFile) {
  EXPECT_FALSE(ParameterFile::open((folder_ / "none.gguf").string(), diagnostics_));
  EXPECT_EQ(last_message(),
            "cannot read '" + (folder_ / "none.gguf").string() + "': No such file or directory");
  const std::string bad = (folder_ / "bad.gguf").string();
  ASSERT_TRUE(write_file(bad, "GGUF"));
  EXPECT_FALSE(ParameterFile::open(bad, diagnostics_));
  EXPECT_EQ(last_message(), "cannot read the parameter file '" + bad +
                                "': the file ends inside the header (at byte 4)");
  EXPECT_FALSE(ParameterFile::open(folder_.string(), diagnostics_));
  EXPECT_EQ(last_message(), "cannot read '" + folder_.string() + "': is not a regular file");
}

TEST_F(ParameterFiles, ArrayFileChecksTheStatedType) {
  const std::string path = write("x.npy", {"x"});
  const auto array = ArrayFile::open(path, std::nullopt, diagnostics_);
  ASSERT_TRUE(array);
  EXPECT_EQ(to_string(array->type), "2xf32");
  EXPECT_TRUE(ArrayFile::open(path, parse_array_type("2xf32").value(), diagnostics_));
  EXPECT_FALSE(diagnostics_.has_errors());
  EXPECT_FALSE(ArrayFile::open(path, parse_array_type("4xf16").value(), diagnostics_));
  EXPECT_EQ(diag_code(diagnostics_.all()[0].id), "RUN/001");
  EXPECT_EQ(last_message(), "'" + path + "' holds 2xf32 but 4xf16 is stated");
  EXPECT_FALSE(ArrayFile::open(write("a.gguf", {"w"}), std::nullopt, diagnostics_));
  EXPECT_EQ(diag_code(diagnostics_.all()[1].id), "RUN/007");
}

TEST_F(ParameterFiles, SetLooksIntoTheRootsOwnFilesFirst) {
  ParameterSet set;
  const std::string shared = write("shared.gguf", {"w", "only.shared"});
  const std::string own = write("own.safetensors", {"w"});
  ASSERT_TRUE(set.open(shared, "", diagnostics_));
  ASSERT_TRUE(set.open(own, "draft", diagnostics_));
  EXPECT_EQ(set.file_count(), 2u);
  EXPECT_EQ(set.find("model", "w").file->path(), shared);
  EXPECT_EQ(set.find("draft", "w").file->path(), own);
  EXPECT_EQ(set.find("draft", "only.shared").file->path(), shared);
  EXPECT_FALSE(set.find("model", "none"));
}

TEST_F(ParameterFiles, SetRefusesOneNameFromTwoFiles) {
  ParameterSet set;
  const std::string first = write("first.gguf", {"a", "b"});
  const std::string second = write("second.gguf", {"b", "c"});
  ASSERT_TRUE(set.open(first, "", diagnostics_));
  EXPECT_FALSE(set.open(second, "", diagnostics_));
  ASSERT_EQ(diagnostics_.all().size(), 1u);
  EXPECT_EQ(last_message(), "cannot read the parameter file '" + second +
                                "': parameter \"b\" is also in '" + first + "'");
  EXPECT_FALSE(set.find("", "c"));
}

TEST_F(ParameterFiles, SetNamesTheClosestKey) {
  ParameterSet set;
  ASSERT_TRUE(set.open(write("a.gguf", {"blk.0.weight", "blk.1.weight"}), "", diagnostics_));
  EXPECT_EQ(set.closest("", "blk.1.weigth"), "blk.1.weight");
  EXPECT_EQ(set.closest("", "embedding.table"), "");
}

}  // namespace
}  // namespace loom
