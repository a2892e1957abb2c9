#include "loom/command/artifact.h"

#include <gtest/gtest.h>

#include <cstring>

#include "loom/base/hash.h"
#include "loom/command/artifact_layout.h"
#include "loom/command/cmd_core.h"
#include "loom/command/schedule.h"
#include "loom/command/test_plan.h"

namespace loom {
namespace {

std::optional<CommandArtifact> read(const std::string& bytes, Diagnostics& diagnostics) {
  SourceFiles files;
  return CommandArtifact::copy(files, bytes, "x.loomcmd", diagnostics);
}

std::string write(const PreparedPlan& plan) { return write_artifact({plan, plan.programs[0]}); }

// Makes the checksum fit again, so that what lies behind it is reached.
void rehash(std::string& bytes) {
  const uint64_t hash = hash_bytes(std::string_view(bytes).substr(sizeof(artifact::Header)));
  std::memcpy(bytes.data() + offsetof(artifact::Header, hash), &hash, sizeof hash);
}

TEST(Artifact, ReadsBackWhatWasWritten) {
  const PreparedPlan plan = make_test_plan();
  const std::string bytes = write(plan);
  Diagnostics diagnostics;
  const auto again = read(bytes, diagnostics);
  ASSERT_TRUE(again);
  EXPECT_EQ(cmd_core_text(again->program()), cmd_core_text({plan, plan.programs[0]}));
  EXPECT_EQ(write_artifact(again->program()), bytes);
}

PreparedPlan plan_with_counts() {
  PreparedPlan plan = make_test_plan();
  PreparedProgram& program = plan.programs[0];
  program.transients = {{"counts", 64, 24, 16}};
  program.indirect_storage = {{StorageClass::Transient, 0, 12, kCountBytes},
                              {StorageClass::Rebindable, 1, 4, kCountBytes}};
  program.commands[2].indirect = 0;
  program.commands[3].indirect = 1;
  return plan;
}

TEST(Artifact, KeepsTransientsAndIndirectCounts) {
  const PreparedPlan plan = plan_with_counts();
  Diagnostics diagnostics;
  const auto again = read(write(plan), diagnostics);
  ASSERT_TRUE(again);
  const ProgramView& program = again->program();
  EXPECT_EQ(cmd_core_text(program), cmd_core_text({plan, plan.programs[0]}));
  EXPECT_EQ(program.slab().bytes, 88u);
  EXPECT_EQ(program.count_form(program.commands()[2]), CountForm::DynamicIndirect);
  EXPECT_EQ(program.count_form(program.commands()[3]), CountForm::StaticIndirect);
}

TEST(Artifact, CountsAndTransientsOutOfPlaceAreRefused) {
  const auto refused = [](auto&& damage) {
    PreparedPlan plan = plan_with_counts();
    damage(plan.programs[0]);
    Diagnostics diagnostics;
    return !read(write(plan), diagnostics);
  };
  EXPECT_FALSE(refused([](PreparedProgram&) {}));
  EXPECT_TRUE(refused([](PreparedProgram& p) { p.transients[0].offset = 8; }));
  EXPECT_TRUE(refused([](PreparedProgram& p) { p.transients[0].alignment = 3; }));
  EXPECT_TRUE(refused([](PreparedProgram& p) { p.transients[0].length = 23; }));
  EXPECT_TRUE(refused([](PreparedProgram& p) { p.indirect_storage[1].offset = 6; }));
  EXPECT_TRUE(refused([](PreparedProgram& p) { p.commands[2].indirect = 2; }));
}

TEST(Artifact, SymbolsThatNeedEscapesAreRefused) {
  for (const char* symbol : {"a\"b", "a\\b", "a\nb", "a b", "\x7f", ""}) {
    PreparedPlan plan = make_test_plan();
    plan.entries[0].symbol = symbol;
    Diagnostics diagnostics;
    EXPECT_FALSE(read(write(plan), diagnostics)) << symbol;
    plan = make_test_plan();
    plan.programs[0].symbol = symbol;
    EXPECT_FALSE(read(write(plan), diagnostics)) << symbol;
  }
}

TEST(Artifact, SectionsAreAligned) {
  const PreparedPlan plan = make_test_plan();
  const std::string bytes = write(plan);
  for (uint32_t i = 0; i < artifact::kSectionCount; ++i) {
    artifact::SectionRow row;
    std::memcpy(&row, bytes.data() + sizeof(artifact::Header) + i * sizeof row, sizeof row);
    EXPECT_EQ(row.offset % 8, 0u);
  }
  EXPECT_EQ(bytes.size() % 8, 0u);
}

TEST(Artifact, AnotherMajorVersionIsRefused) {
  const PreparedPlan plan = make_test_plan();
  std::string bytes = write(plan);
  bytes[offsetof(artifact::Header, major)] = 9;
  Diagnostics diagnostics;
  EXPECT_FALSE(read(bytes, diagnostics));
  ASSERT_EQ(diagnostics.error_count(), 1u);
  EXPECT_EQ(diag_code(diagnostics.all()[0].id), "BINARY/001");
  EXPECT_EQ(diagnostics.all()[0].param("found"), "9.0");
}

TEST(Artifact, EveryTruncationIsDiagnosed) {
  const PreparedPlan plan = plan_with_counts();
  const std::string bytes = write(plan);
  for (size_t size = 0; size < bytes.size(); ++size) {
    Diagnostics diagnostics;
    EXPECT_FALSE(read(bytes.substr(0, size), diagnostics)) << size;
    EXPECT_TRUE(diagnostics.has_errors()) << size;
  }
}

TEST(Artifact, EveryFlippedBitIsDiagnosed) {
  const PreparedPlan plan = plan_with_counts();
  const std::string bytes = write(plan);
  for (size_t i = 0; i < bytes.size() * 8; ++i) {
    std::string damaged = bytes;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    Diagnostics diagnostics;
    EXPECT_FALSE(read(damaged, diagnostics)) << i;
  }
}

// With a fitting checksum a flip may be harmless, but what is accepted must be consistent.
TEST(Artifact, FlipsBehindTheChecksumAreHarmlessOrDiagnosed) {
  const PreparedPlan plan = plan_with_counts();
  const std::string bytes = write(plan);
  size_t refused = 0;
  for (size_t i = sizeof(artifact::Header) * 8; i < bytes.size() * 8; ++i) {
    std::string damaged = bytes;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ (1 << (i % 8)));
    rehash(damaged);
    Diagnostics diagnostics;
    const auto read_back = read(damaged, diagnostics);
    EXPECT_NE(read_back.has_value(), diagnostics.has_errors()) << i;
    if (!read_back) {
      ++refused;
      continue;
    }
    const ProgramView& program = read_back->program();
    (void)cmd_core_text(program);
    (void)wave_numbers(program);
    for (size_t row = 0; row < program.transient_count(); ++row) {
      const auto transient = program.transient(row);
      EXPECT_LE(transient.offset + transient.length, program.slab().bytes) << i;
    }
    for (const DispatchCommand& command : program.commands()) {
      EXPECT_LT(command.slot, program.slot_count()) << i;
      if (command.indirect == DispatchCommand::kDirect) continue;
      ASSERT_LT(command.indirect, program.indirect_storage().size()) << i;
      EXPECT_EQ(program.indirect_storage()[command.indirect].offset % 4, 0u) << i;
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(Artifact, FileNamesArePortable) {
  EXPECT_EQ(artifact_file_name("model.two$layer-1"), "model.two$layer-1.loomcmd");
  EXPECT_EQ(artifact_file_name("a/b"), "a_b.loomcmd");
}

}  // namespace
}  // namespace loom
