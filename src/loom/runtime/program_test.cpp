// What materialization and binding refuse, and where parameters end up.
#include "loom/runtime/program.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "loom/runtime/parameters/parameter_file.h"
#include "loom/runtime/parameters/safetensors.h"

namespace loom {
namespace {

class NoInvocation final : public Invocation {
 public:
  explicit NoInvocation(const Program& program) : Invocation(program) {}

 protected:
  void place(uint32_t row, std::byte* base) override { placed.emplace_back(row, base); }
  void run() override { ++runs; }
  void run_traced(Trace&) override { ++runs; }
  void run_stepped(const StepObserver&) override { ++runs; }

 public:
  std::span<const std::byte> slab_bytes() const override { return {}; }
  std::vector<std::pair<uint32_t, std::byte*>> placed;
  int runs = 0;
};

class PlainProgram final : public Program {
 public:
  bool make(const ProgramSource& source, Diagnostics& diagnostics) {
    return prepare(source, diagnostics);
  }
  std::unique_ptr<Invocation> make_invocation() const override {
    return std::make_unique<NoInvocation>(*this);
  }
};

// A program over the roots `weights`, `in` and `out` that dispatches one entry.
PreparedPlan make_plan() {
  PreparedPlan plan;
  plan.entries.push_back({"scale", "scale", "", {1, 1, 1}, 0});
  PreparedProgram& program = plan.programs.emplace_back();
  program.symbol = "main";
  program.roots = {"weights", "in", "out"};
  program.bindings = {{1, "in"}, {2, "out"}};
  program.slots = {0};
  program.commands = {{0, 0, 2, {1, 1, 1}}};
  program.arguments = {{Argument::Kind::Buffer, 0, {StorageClass::Rebindable, 0, 16, 32}},
                       {Argument::Kind::Buffer, 0, {StorageClass::Rebindable, 1}}};
  program.schedule = {{ScheduleNode::Kind::Serial, 0, 2}, {ScheduleNode::Kind::Command, 0, 2}};
  return plan;
}

constexpr std::array<EntryAddress, 1> kEntry = {1};

std::vector<std::string> messages(const Diagnostics& diagnostics) {
  std::vector<std::string> texts;
  for (const Diagnostic& d : diagnostics.all()) {
    texts.push_back(diag_code(d.id) + ": " + d.message() +
                    (d.hint().empty() ? "" : " (" + d.hint() + ")"));
  }
  return texts;
}

// A safetensors file over memory, whose data begins at `misalignment` past a multiple of 4096.
struct WeightsFile {
  WeightsFile(const std::vector<ParameterSource>& sources, size_t misalignment) {
    const std::string file = *write_safetensors(sources);
    const size_t header = file.find('}', file.rfind("data_offsets")) + 1;
    size_t data = 8;
    uint64_t header_size = 0;
    std::memcpy(&header_size, file.data(), 8);
    data += header_size;
    EXPECT_LE(header, data);
    buffer = *Buffer::allocate(file.size() + 8192, 4096);
    std::byte* start = buffer.bytes().data() + 4096 - data % 4096 + misalignment;
    std::memcpy(start, file.data(), file.size());
    bytes = {start, file.size()};
  }
  Buffer buffer;
  std::span<const std::byte> bytes;
};

const std::array<float, 8> kFloats = {1, 2, 3, 4, 5, 6, 7, 8};

ParameterSource source(const std::string& name, uint64_t floats) {
  return {name,
          {ElementType::F32, {floats}},
          std::as_bytes(std::span(kFloats)).first(static_cast<size_t>(floats) * 4)};
}

TEST(Program, BindingsAreFoundByNameAndSourceOrdinal) {
  const PreparedPlan plan = make_plan();
  ParameterSet parameters;
  Diagnostics diagnostics;
  PlainProgram program;
  ASSERT_TRUE(program.make({{plan, plan.programs[0]}, &parameters, kEntry, {}}, diagnostics));
  NoInvocation invocation(program);
  std::array<std::byte, 48> in = {};
  std::array<std::byte, 4> out = {};
  EXPECT_TRUE(invocation.bind(1, in, diagnostics));
  EXPECT_TRUE(invocation.bind("out", out, diagnostics));
  EXPECT_TRUE(invocation.issue(diagnostics));
  EXPECT_EQ(invocation.placed,
            (std::vector<std::pair<uint32_t, std::byte*>>{{0, in.data()}, {1, out.data()}}));
  EXPECT_EQ(invocation.runs, 1);

  EXPECT_FALSE(invocation.bind(0, in, diagnostics));
  EXPECT_FALSE(invocation.bind(7, in, diagnostics));
  EXPECT_FALSE(invocation.bind("weights", in, diagnostics));
  EXPECT_EQ(
      messages(diagnostics),
      (std::vector<std::string>{
          "RUN/011: '@main' has no binding '0' that takes storage; it has %in, %out",
          "RUN/011: '@main' has no binding '7' that takes storage; it has %in, %out",
          "RUN/011: '@main' has no binding '%weights' that takes storage; it has %in, %out"}));
}

TEST(Program, StorageMustHoldWhatDispatchesAndViewsReach) {
  const PreparedPlan plan = make_plan();
  ParameterSet parameters;
  Diagnostics diagnostics;
  PlainProgram program;
  const std::array<StorageNeed, 2> needs = {{{8, 1}, {64, 64}}};
  ASSERT_TRUE(program.make({{plan, plan.programs[0]}, &parameters, kEntry, needs}, diagnostics));
  NoInvocation invocation(program);
  alignas(64) std::array<std::byte, 80> bytes = {};
  const std::span<std::byte> all(bytes);
  EXPECT_TRUE(invocation.bind("in", all.first(48), diagnostics));
  EXPECT_FALSE(invocation.bind("in", all.first(47), diagnostics));
  EXPECT_FALSE(invocation.bind("out", all.first(63), diagnostics));
  EXPECT_FALSE(invocation.bind("out", all.subspan(16), diagnostics));
  EXPECT_EQ(
      messages(diagnostics),
      (std::vector<std::string>{
          "RUN/002: binding 'in' has 47 bytes but a view of it needs 48 (bind a larger buffer)",
          "RUN/002: binding 'out' has 63 bytes but a view of it needs 64 (bind a larger "
          "buffer)",
          "RUN/010: storage of binding 'out' does not start at a multiple of 64 bytes (bind "
          "storage with that alignment)"}));
  EXPECT_EQ(invocation.placed.size(), 1u);
  EXPECT_FALSE(invocation.issue(diagnostics));
  EXPECT_EQ(invocation.runs, 0);
}

TEST(Program, MissingEntriesAndUncountableDispatchesAreReported) {
  PreparedPlan plan = make_plan();
  plan.programs[0].commands[0].count = {0xffffffffu, 0xffffffffu, 0xffffffffu};
  ParameterSet parameters;
  Diagnostics diagnostics;
  PlainProgram program;
  const std::array<EntryAddress, 1> none = {0};
  EXPECT_FALSE(program.make({{plan, plan.programs[0]}, &parameters, none, {}}, diagnostics));
  EXPECT_EQ(messages(diagnostics),
            (std::vector<std::string>{
                "RUN/009: entry '@scale' of '@main' has no executable",
                "RUN/012: a dispatch of '@scale' has 4294967295 x 4294967295 x 4294967295 "
                "workgroups, more than can be numbered"}));
}

TEST(Placement, AlignedBytesAreUsedWhereTheyAreMapped) {
  const WeightsFile weights({source("a", 3), source("b", 4)}, 0);
  PreparedPlan plan = make_plan();
  plan.programs[0].parameters = {{0, "a", 12, 4}, {0, "b", 16, 4}};
  ParameterSet parameters;
  Diagnostics diagnostics;
  auto file = ParameterFile::from_bytes(weights.bytes, "w.safetensors", diagnostics);
  ASSERT_TRUE(file && parameters.add(std::move(*file), "weights", diagnostics));
  const auto placed = ParameterPlacement::resolve(plan.programs[0], parameters, {}, diagnostics);
  ASSERT_TRUE(placed);
  EXPECT_TRUE(placed->copies().empty());
  EXPECT_EQ(placed->addresses()[0], parameters.find("weights", "a").entry->bytes.data());
  EXPECT_EQ(placed->addresses()[1], parameters.find("weights", "b").entry->bytes.data());
}

TEST(Placement, MisalignedBytesArePackedInTableOrder) {
  const WeightsFile weights({source("a", 3), source("b", 4), source("c", 8)}, 1);
  PreparedPlan plan = make_plan();
  // `c` asks for nothing, so it stays; `d` would follow at 512.
  plan.programs[0].parameters = {{0, "a", 12, 4}, {0, "c", 32, 1}, {0, "b", 16, 4}};
  ParameterSet parameters;
  Diagnostics diagnostics;
  auto file = ParameterFile::from_bytes(weights.bytes, "w.safetensors", diagnostics);
  ASSERT_TRUE(file && parameters.add(std::move(*file), "", diagnostics));
  const auto placed = ParameterPlacement::resolve(plan.programs[0], parameters, {}, diagnostics);
  ASSERT_TRUE(placed);
  ASSERT_EQ(placed->copies().size(), 2u);
  EXPECT_EQ(placed->copies()[0].row, 0u);
  EXPECT_EQ(placed->copies()[0].offset, 0u);
  EXPECT_EQ(placed->copies()[0].file, "w.safetensors");
  EXPECT_EQ(placed->copies()[1].row, 2u);
  EXPECT_EQ(placed->copies()[1].offset, 256u);
  EXPECT_FALSE(diagnostics.has_errors());
  EXPECT_EQ(messages(diagnostics),
            (std::vector<std::string>{
                "RUN/016: 2 parameters of 'w.safetensors' (28 bytes) were copied, as they do not "
                "begin at a multiple of their alignment there; \"a\" needs 4"}));
  EXPECT_EQ(placed->block().size(), 272u);
  EXPECT_EQ(placed->addresses()[0], placed->block().data());
  EXPECT_EQ(placed->addresses()[2], placed->block().data() + 256);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(placed->block().data()) % 256, 0u);
  EXPECT_EQ(std::memcmp(placed->addresses()[0], kFloats.data(), 12), 0);
  EXPECT_EQ(std::memcmp(placed->addresses()[2], kFloats.data(), 16), 0);
  EXPECT_EQ(placed->addresses()[1], parameters.find("", "c").entry->bytes.data());
}

TEST(Placement, GreaterAlignmentsThanAPageAreMet) {
  const WeightsFile weights({source("a", 3), source("b", 4)}, 4);
  PreparedPlan plan = make_plan();
  plan.programs[0].parameters = {{0, "a", 12, 1024}, {0, "b", 16, 8192}};
  ParameterSet parameters;
  Diagnostics diagnostics;
  auto file = ParameterFile::from_bytes(weights.bytes, "w.safetensors", diagnostics);
  ASSERT_TRUE(file && parameters.add(std::move(*file), "", diagnostics));
  const auto placed = ParameterPlacement::resolve(plan.programs[0], parameters, {}, diagnostics);
  ASSERT_TRUE(placed);
  EXPECT_EQ(placed->copies().back().offset, 8192u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(placed->addresses()[0]) % 1024, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(placed->addresses()[1]) % 8192, 0u);
}

TEST(Placement, MissingAndWrongKeysAreReportedTogether) {
  const WeightsFile weights({source("blk.12.weight", 8), source("blk.13.weight", 3)}, 0);
  PreparedPlan plan = make_plan();
  plan.programs[0].parameters = {{0, "blk.13.weight", 32, 4}, {0, "blk.12.weights", 32, 4}};
  ParameterSet parameters;
  Diagnostics diagnostics;
  EXPECT_FALSE(ParameterPlacement::resolve(plan.programs[0], parameters, {}, diagnostics));
  auto file = ParameterFile::from_bytes(weights.bytes, "w.safetensors", diagnostics);
  ASSERT_TRUE(file && parameters.add(std::move(*file), "weights", diagnostics));
  EXPECT_FALSE(ParameterPlacement::resolve(plan.programs[0], parameters, {}, diagnostics));
  const std::string flag = " (pass a .gguf or .safetensors file with --parameters=%weights=FILE)";
  EXPECT_EQ(
      messages(diagnostics),
      (std::vector<std::string>{
          "RUN/004: parameter \"blk.13.weight\" of root 'weights' is in none of the parameter "
          "files" +
              flag,
          "RUN/004: parameter \"blk.12.weights\" of root 'weights' is in none of the parameter "
          "files" +
              flag,
          "RUN/005: parameter \"blk.13.weight\" has 12 bytes in 'w.safetensors' but the "
          "program needs 32",
          "RUN/004: parameter \"blk.12.weights\" of root 'weights' is in none of the parameter "
          "files (did you mean \"blk.12.weight\"?)"}));
}

}  // namespace
}  // namespace loom
