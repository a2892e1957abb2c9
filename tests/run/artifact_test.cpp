// Artifacts that are used where they lie.
#include <gtest/gtest.h>

#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "api_test.h"
#include "loom/api/profile.h"
#include "loom/command/artifact.h"
#include "loom/runtime/cpu/count_allocations.h"

namespace loom {
namespace {

// A file in a folder of its own.
class ArtifactFile {
 public:
  explicit ArtifactFile(const std::string& bytes) {
    static int count = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("loom-artifact-test-" + std::to_string(getpid()) + "-" + std::to_string(count++));
    std::filesystem::create_directories(folder_);
    std::ofstream(path(), std::ios::binary) << bytes;
  }
  ArtifactFile(const ArtifactFile&) = delete;
  ArtifactFile& operator=(const ArtifactFile&) = delete;
  ~ArtifactFile() { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "x.loomcmd").string(); }

 private:
  std::filesystem::path folder_;
};

// So many launches of one entry over a parameter, a binding and a transient.
std::string artifact_with(uint32_t launches) {
  PreparedPlan plan;
  plan.entries = {{"gain", "gain_entry", "launch(%w: view<4xf32>, %x: buffer)", {4, 1, 1}, -1}};
  PreparedProgram program;
  program.symbol = "model.chain";
  program.roots = {"params", "state"};
  program.parameters = {{0, "mix.0.gain", 16, 4}};
  program.bindings = {{1, "state"}};
  program.transients = {{"hidden", 0, 64, 64}};
  program.slots = {0};
  program.indirect_storage = {{StorageClass::Rebindable, 0, 8, kCountBytes}};
  program.schedule = {{ScheduleNode::Kind::Serial, 0, launches + 1}};
  for (uint32_t i = 0; i < launches; ++i) {
    program.arguments.push_back({Argument::Kind::Buffer, 0, {StorageClass::Fixed, 0, 0, 16}});
    program.arguments.push_back({Argument::Kind::Buffer, 0, {StorageClass::Transient, 0, 0, 64}});
    program.commands.push_back({0, 2 * i, 2, {1, 1, 1}, i == 0 ? 0 : DispatchCommand::kDirect});
    program.schedule.push_back({ScheduleNode::Kind::Command, i, i + 2});
  }
  plan.programs.push_back(std::move(program));
  return write_artifact({plan, plan.programs[0]});
}

template <class Row>
bool lies_in(std::span<const std::byte> bytes, std::span<const Row> part) {
  const auto inside = std::as_bytes(part);
  return !inside.empty() && inside.data() >= bytes.data() &&
         inside.data() + inside.size() <= bytes.data() + bytes.size();
}
bool lies_in(std::span<const std::byte> bytes, std::string_view text) {
  return lies_in(bytes, std::span<const char>(text));
}

TEST(Artifact, RowsAndTextsLieInTheMappedFile) {
  const ArtifactFile file(artifact_with(10));
  SourceFiles files;
  Diagnostics diagnostics;
  auto opened = CommandArtifact::open(files, file.path(), diagnostics);
  ASSERT_TRUE(opened);
  const CommandArtifact artifact = std::move(*opened);
  const std::span<const std::byte> bytes = artifact.bytes();
  EXPECT_EQ(bytes.size(), std::filesystem::file_size(file.path()));
  const ProgramView& program = artifact.program();
  EXPECT_EQ(program.commands().size(), 10u);
  EXPECT_TRUE(lies_in(bytes, program.commands()));
  EXPECT_TRUE(lies_in(bytes, program.arguments()));
  EXPECT_TRUE(lies_in(bytes, program.schedule()));
  EXPECT_TRUE(lies_in(bytes, program.indirect_storage()));
  EXPECT_TRUE(lies_in(bytes, program.symbol()));
  EXPECT_TRUE(lies_in(bytes, program.root(1)));
  EXPECT_TRUE(lies_in(bytes, program.parameter(0).key));
  EXPECT_TRUE(lies_in(bytes, program.binding(0).name));
  EXPECT_TRUE(lies_in(bytes, program.transient(0).name));
  EXPECT_TRUE(lies_in(bytes, program.entry(0).symbol));
  EXPECT_TRUE(lies_in(bytes, program.entry(0).export_name));
  EXPECT_TRUE(lies_in(bytes, program.entry(0).contract));
}

uint64_t allocations_of_opening(uint32_t launches) {
  const ArtifactFile file(artifact_with(launches));
  const std::string path = file.path();
  SourceFiles files;
  Diagnostics diagnostics;
  const uint64_t before = allocation_count();
  const auto artifact = CommandArtifact::open(files, path, diagnostics);
  const uint64_t allocations = allocation_count() - before;
  EXPECT_TRUE(artifact);
  EXPECT_EQ(artifact->program().commands().size(), launches);
  return allocations;
}

TEST(Artifact, OpeningAllocatesNothingForALaunch) {
  const uint64_t few = allocations_of_opening(1'000);
  EXPECT_GT(few, 0u);
  EXPECT_EQ(allocations_of_opening(100'000), few);
}

TEST(Artifact, BytesInMemoryBeginAtAMultipleOfEight) {
  const std::string bytes = artifact_with(3);
  const auto words = std::make_unique<uint64_t[]>(bytes.size() / 8 + 2);
  const std::span<std::byte> room =
      std::as_writable_bytes(std::span(words.get(), bytes.size() / 8 + 2));
  for (const size_t offset : {0u, 8u, 1u, 4u}) {
    const std::span<std::byte> place = room.subspan(offset, bytes.size());
    std::memcpy(place.data(), bytes.data(), bytes.size());
    SourceFiles files;
    Diagnostics diagnostics;
    EXPECT_EQ(CommandArtifact::over(files, place, "x", diagnostics).has_value(), offset % 8 == 0);
    EXPECT_EQ(diagnostics.has_errors(), offset % 8 != 0);
  }
}

// @run of api_test.h, prepared; its one request is compiled as by somebody who has only that.
struct Deployed {
  Deployed() : messages(context) {
    api::Modules library(context);
    library.add(kAddLibrary, "library.loom", messages);
    api::Modules inputs(context);
    inputs.add(kAddProgram, "run.loom", messages);
    auto linked = api::link(inputs, api::Library(std::move(library)), {}, messages);
    if (!linked) return;
    const auto plan = api::prepare(std::move(*linked), {}, messages);
    if (!plan) return;
    bytes = plan->artifact(0);
    code = api::compile(plan->requests()[0], {}, messages);
  }
  api::Context context;
  api::Messages messages;
  std::string bytes;
  std::optional<api::Code> code;
};

TEST(Artifact, ProgramsAreMaterializedFromAMappedFile) {
  Deployed made;
  ASSERT_TRUE(made.code) << made.messages.text();
  std::optional<api::Invocation> invocation;
  std::optional<api::Profile> profile;
  {
    const ArtifactFile file(made.bytes);
    const auto plan = api::Plan::open(made.context, file.path(), made.messages);
    ASSERT_TRUE(plan) << made.messages.text();
    EXPECT_EQ(plan->program_count(), 1u);
    EXPECT_EQ(plan->symbol(0), "run");
    EXPECT_TRUE(plan->requests().empty());
    EXPECT_EQ(plan->artifact(0), made.bytes);
    EXPECT_NE(plan->schedule_text(0).find("wave 1: @add [4, 1, 1]"), std::string::npos);
    // Nothing in the file says how to make code.
    const auto none = api::compile(*plan, {}, made.messages);
    ASSERT_TRUE(none);
    EXPECT_FALSE(api::materialize(api::Device::cpu(1), *plan, 0, *none, {}, made.messages));
    ASSERT_EQ(made.messages.all().size(), 1u);
    EXPECT_EQ(made.messages.all()[0].code, "RUN/009");
    made.messages.clear();
    const auto executables = api::assemble(*plan, {&*made.code, 1}, {}, made.messages);
    ASSERT_TRUE(executables);
    const auto program =
        api::materialize(api::Device::cpu(1), *plan, 0, *executables, {}, made.messages);
    ASSERT_TRUE(program) << made.messages.text();
    invocation.emplace(*program);
    profile.emplace(*program);
  }
  std::array<float, 4> input = {1, 2, 3, 4};
  std::array<float, 4> output = {};
  ASSERT_TRUE(profile);
  ASSERT_EQ(profile->commands().size(), 2u);
  EXPECT_EQ(profile->commands()[1].kernel, "add");
  EXPECT_EQ(profile->commands()[1].wave, 1u);
  EXPECT_TRUE(profile->commands()[1].file.empty());
  ASSERT_TRUE(invocation->bind("input", storage(input), made.messages));
  ASSERT_TRUE(invocation->bind("output", storage(output), made.messages));
  ASSERT_TRUE(invocation->issue(made.messages)) << made.messages.text();
  EXPECT_EQ(output, (std::array<float, 4>{3, 4, 5, 6}));
}

TEST(Artifact, WhatCannotBeOpenedSaysWhy) {
  Deployed made;
  ASSERT_TRUE(made.code) << made.messages.text();
  const auto code_of = [&](const std::string& path) {
    EXPECT_FALSE(api::Plan::open(made.context, path, made.messages));
    const std::string code = made.messages.all().at(0).code;
    made.messages.clear();
    return code;
  };
  EXPECT_EQ(code_of("/nowhere/x.loomcmd"), "IO/001");
  const ArtifactFile empty("");
  EXPECT_EQ(code_of(empty.path()), "BINARY/002");
  std::string other = made.bytes;
  other[8] = 2;
  const ArtifactFile older(other);
  EXPECT_EQ(code_of(older.path()), "BINARY/001");
  other = made.bytes;
  other.back() = static_cast<char>(other.back() ^ 1);
  const ArtifactFile damaged(other);
  EXPECT_EQ(code_of(damaged.path()), "BINARY/002");
}

}  // namespace
}  // namespace loom
