#include "loom/target/x86/report.h"

#include <numeric>

#include "kernel_harness.h"

namespace loom::test {
namespace {

struct Reported {
  std::string output;
  Report report;

  const ReportFields& entry(std::string_view kind, std::string_view name) const {
    const ReportEntry* const found = report.find(kind, name);
    EXPECT_NE(found, nullptr) << name;
    return found->fields;
  }
};

Reported compile(const std::string& text, OutputForm form = OutputForm::Object,
                 const X86Options& options = {}) {
  Fixture fixture(text);
  EXPECT_TRUE(fixture.module) << messages(fixture.diagnostics);
  Reported made;
  const auto output =
      compile_x86_reported(*fixture.module, {}, form, options, made.report, fixture.diagnostics);
  EXPECT_TRUE(output) << messages(fixture.diagnostics);
  const auto plain = compile_x86(*fixture.module, {}, form, options, fixture.diagnostics);
  EXPECT_EQ(output, plain) << "a report changes the output";
  made.output = output.value_or("");
  return made;
}

uint64_t count_of(const ReportFields& fields, FieldId id) {
  EXPECT_TRUE(fields.has(id)) << field_info(id).name;
  const auto* const value = fields.get<uint64_t>(id);
  return value == nullptr ? ~uint64_t{0} : *value;
}

uint64_t sum_of(const ReportFields& fields, FieldId id) {
  EXPECT_TRUE(fields.has(id)) << field_info(id).name;
  uint64_t sum = 0;
  for (const auto& [name, count] : *fields.get<ReportCounts>(id)) sum += count;
  return sum;
}

uint64_t part_of(const ReportFields& fields, FieldId id, std::string_view part) {
  for (const auto& [name, count] : *fields.get<ReportCounts>(id)) {
    if (name == part) return count;
  }
  return 0;
}

// y[i] = x[i] * x[i] for n elements, with the body of the loop to fill in.
std::string loop_kernel(std::string_view statements, std::string_view head = "") {
  return std::string(head) + R"(kernel.def @k(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%count: index, %from: buffer, %to: buffer) {
  %from0, %to0 = buffer.assume.noalias %from, %to : buffer, buffer
  %zero = index.constant 0 : index
  %step = index.constant 1 : index
  %base = index.constant 0 : offset
  %x = buffer.view %from0[%base] : buffer -> view<[%count]xf32>
  %y = buffer.view %to0[%base] : buffer -> view<[%count]xf32>
  scf.for %i = [%zero to %count step %step] {
    %v = view.load %x[%i] : view<[%count]xf32> -> f32
)" + std::string(statements) +
         R"(    view.store %r, %y[%i] : f32, view<[%count]xf32>
  }
  kernel.return
}
)";
}
constexpr std::string_view kSquare = "    %r = scalar.mulf %v, %v : f32\n";

TEST(X86Report, TheMixAddsUpToTheInstructions) {
  const Reported made = compile(Fixture::read("elementwise.loom"));
  size_t kernels = 0;
  for (const ReportEntry& entry : made.report.entries) {
    if (entry.kind != "kernel") continue;
    ++kernels;
    EXPECT_EQ(sum_of(entry.fields, FieldId::InstructionMix),
              count_of(entry.fields, FieldId::Instructions));
    EXPECT_GT(count_of(entry.fields, FieldId::CodeBytes),
              count_of(entry.fields, FieldId::Instructions));
    EXPECT_GE(count_of(entry.fields, FieldId::Instructions),
              sum_of(entry.fields, FieldId::VectorInstructions));
    EXPECT_EQ(part_of(entry.fields, FieldId::InstructionMix, "return"), 1u);
  }
  EXPECT_GE(kernels, 1u);
  EXPECT_EQ(count_of(made.entry("module", "object"), FieldId::OutputBytes), made.output.size());
}

TEST(X86Report, VectorsAndAccessesHaveTheWidthOfTheProcessor) {
  const Reported narrow = compile(loop_kernel(kSquare));
  const Reported wide = compile(loop_kernel(kSquare), OutputForm::Object, {.cpu = "x86-64-v3"});
  const auto& by16 = narrow.entry("kernel", "k");
  const auto& by32 = wide.entry("kernel", "k");
  EXPECT_GT(part_of(by16, FieldId::VectorInstructions, "128"), 0u);
  EXPECT_EQ(part_of(by16, FieldId::VectorInstructions, "256"), 0u);
  EXPECT_GT(part_of(by32, FieldId::VectorInstructions, "256"), 0u);
  EXPECT_GT(part_of(by16, FieldId::Loads, "16"), 0u);
  EXPECT_GT(part_of(by32, FieldId::Loads, "32"), 0u);
  EXPECT_GT(part_of(by32, FieldId::Stores, "32"), 0u);
  EXPECT_EQ(part_of(by16, FieldId::Stores, "32"), 0u);
  EXPECT_EQ(part_of(by16, FieldId::LoopOutcomes, "vectorize done"), 1u);
}

TEST(X86Report, WhatIsNotMeasuredIsAbsent) {
  const Reported text = compile(loop_kernel(kSquare), OutputForm::LlvmIr);
  EXPECT_FALSE(text.entry("kernel", "k").has(FieldId::CodeBytes));
  EXPECT_FALSE(text.entry("kernel", "k").has(FieldId::Spills));
  EXPECT_TRUE(text.entry("kernel", "k").has(FieldId::PrivateStorage));
  // The fast register allocator does not count.
  const Reported plain = compile(loop_kernel(kSquare), OutputForm::Object, {.opt_level = 0});
  EXPECT_FALSE(plain.entry("kernel", "k").has(FieldId::Spills));
  EXPECT_TRUE(plain.entry("kernel", "k").has(FieldId::CodeBytes));
  EXPECT_FALSE(plain.entry("kernel", "k").has(FieldId::LoopOutcomes));
}

TEST(X86Report, AssemblyHasTheFactsOfItsObject) {
  const Reported object = compile(loop_kernel(kSquare));
  const Reported assembly = compile(loop_kernel(kSquare), OutputForm::Assembly);
  EXPECT_EQ(count_of(assembly.entry("kernel", "k"), FieldId::CodeBytes),
            count_of(object.entry("kernel", "k"), FieldId::CodeBytes));
}

TEST(X86Report, SpillsAreCounted) {
  // A hundred values that are all alive at once: the last one that is loaded is used first.
  std::string body;
  for (int i = 0; i < 100; ++i) {
    body += "    %a" + std::to_string(i) + " = view.load<volatile> %x[" + std::to_string(i) +
            "] : view<[%count]xf32> -> f32\n";
  }
  body += "    %s0 = scalar.addf %v, %a99 : f32\n";
  for (int i = 1; i < 100; ++i) {
    const std::string n = std::to_string(i);
    body += "    %s" + n + " = scalar.divf %s" + std::to_string(i - 1) + ", %a" +
            std::to_string(99 - i) + " : f32\n";
  }
  body += "    %r = scalar.addf %s99, %a0 : f32\n";
  const Reported made = compile(loop_kernel(body));
  EXPECT_GE(count_of(made.entry("kernel", "k"), FieldId::Spills), 80u);
  EXPECT_GE(count_of(made.entry("kernel", "k"), FieldId::Reloads), 80u);
  EXPECT_GE(count_of(made.entry("kernel", "k"), FieldId::StackBytes), 100u);
}

TEST(X86Report, FunctionsOutOfLineHaveTheirOwnEntries) {
  const std::string function =
      "func.def pure noinline @square(%v: f32) -> (%r: f32) {\n"
      "  %p = scalar.mulf %v, %v : f32\n"
      "  func.return %p : f32\n"
      "}\n\n";
  const Reported made =
      compile(loop_kernel("    %r = func.call pure @square(%v) : (f32) -> (f32)\n", function));
  EXPECT_GT(count_of(made.entry("function", "square"), FieldId::CodeBytes), 0u);
  EXPECT_GT(part_of(made.entry("kernel", "k"), FieldId::InstructionMix, "call"), 0u);
}

TEST(X86Report, IdentitySaysForWhat) {
  const Reported made = compile(loop_kernel(kSquare), OutputForm::Object,
                                {.cpu = "znver3", .denormals = DenormalMode::Flush});
  EXPECT_EQ(*made.report.identity.get<std::string>(FieldId::Cpu), "znver3");
  const auto& flags = *made.report.identity.get<std::vector<std::string>>(FieldId::Flags);
  EXPECT_EQ(flags[1], "denormals=flush");
}

}  // namespace
}  // namespace loom::test
