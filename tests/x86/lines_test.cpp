// Line tables of objects, as debuggers read them.
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Object/SymbolSize.h>

#include <map>
#include <set>

#include "kernel_harness.h"

namespace loom::test {
namespace {

constexpr std::string_view kText = R"(func.def pure inline @twice(%v: f32) -> (f32) {
  %r = scalar.addf %v, %v : f32
  func.return %r : f32
}

func.def pure noinline @square(%v: f32) -> (f32) {
  %r = scalar.mulf %v, %v : f32
  func.return %r : f32
}

kernel.def @k(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%data: buffer) {
  %i = kernel.workgroup.id<x> : index
  %base = index.constant 0 : offset
  %v = buffer.view %data[%base] : buffer -> view<64xf32>
  %x = view.load %v[%i] : view<64xf32> -> f32
  %y = func.call pure @twice(%x) : (f32) -> (f32)
  %z = func.call pure @square(%y) : (f32) -> (f32)
  view.store %z, %v[%i] : f32, view<64xf32>
  kernel.return
}
)";

struct Lines {
  std::map<std::string, std::set<uint32_t>> of;  // by function
  std::set<std::string> inlined;                 // functions that a place is inlined from
  std::set<std::string> files;
};

Lines lines_of(const std::string& object) {
  Lines lines;
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef({object.data(), object.size()}, "object"));
  if (!file) {
    ADD_FAILURE() << llvm::toString(file.takeError());
    return lines;
  }
  const auto context = llvm::DWARFContext::create(**file);
  llvm::DILineInfoSpecifier wanted;
  wanted.FNKind = llvm::DINameKind::ShortName;
  wanted.FLIKind = llvm::DILineInfoSpecifier::FileLineInfoKind::RawValue;
  for (const auto& [symbol, size] : llvm::object::computeSymbolSizes(**file)) {
    const auto type = llvm::cantFail(symbol.getType());
    if (type != llvm::object::SymbolRef::ST_Function) continue;
    const llvm::object::SectionRef section = *llvm::cantFail(symbol.getSection());
    const uint64_t begin = llvm::cantFail(symbol.getAddress());
    const std::string name = llvm::cantFail(symbol.getName()).str();
    for (uint64_t at = begin; at < begin + size; ++at) {
      const auto frames = context->getInliningInfoForAddress({at, section.getIndex()}, wanted);
      for (uint32_t i = 0; i < frames.getNumberOfFrames(); ++i) {
        const llvm::DILineInfo& frame = frames.getFrame(i);
        lines.of[name].insert(frame.Line);
        lines.files.insert(frame.FileName);
        if (i + 1 < frames.getNumberOfFrames()) lines.inlined.insert(frame.FunctionName);
      }
    }
  }
  return lines;
}

std::string object_of(std::string_view text, const X86Options& options = {}) {
  Fixture fixture{std::string(text)};
  const auto object =
      compile_x86(*fixture.module, {}, OutputForm::Object, options, fixture.diagnostics);
  EXPECT_TRUE(object) << messages(fixture.diagnostics);
  return object.value_or("");
}

class X86Lines : public ::testing::TestWithParam<int> {};

TEST_P(X86Lines, CodeBelongsToTheLinesOfItsOperations) {
  const Lines lines = lines_of(object_of(kText, {.opt_level = GetParam()}));
  EXPECT_EQ(lines.files, std::set<std::string>{"test.loom"});
  ASSERT_TRUE(lines.of.contains("k"));
  const std::set<uint32_t>& kernel = lines.of.at("k");
  for (const uint32_t line : {11u, 18u, 20u, 21u}) EXPECT_TRUE(kernel.contains(line)) << line;
  ASSERT_TRUE(lines.of.contains("loom.square"));
  EXPECT_TRUE(lines.of.at("loom.square").contains(7));
}

TEST_P(X86Lines, WhatIsInlinedKeepsItsLines) {
  const Lines lines = lines_of(object_of(kText, {.opt_level = GetParam()}));
  EXPECT_TRUE(lines.of.at("k").contains(2));
  EXPECT_TRUE(lines.of.at("k").contains(19));
  EXPECT_TRUE(lines.inlined.contains("twice"));
}

INSTANTIATE_TEST_SUITE_P(Levels, X86Lines, ::testing::Values(0, 2));

TEST(X86LinesOf, AModuleWithoutPlacesHasNoDebugInformation) {
  Fixture fixture{std::string(kText)};
  for (OpId op = fixture.module->region(fixture.module->body()).first; op.valid();
       op = fixture.module->op(op).next) {
    fixture.module->set_location(op, {});
  }
  const auto object = compile_x86(*fixture.module, {}, OutputForm::Object, {}, fixture.diagnostics);
  ASSERT_TRUE(object);
  EXPECT_EQ(object->find(".debug_line"), std::string::npos);
}

TEST(X86LinesOf, WhatPeopleReadHasNoPlaces) {
  for (const OutputForm form : {OutputForm::Assembly, OutputForm::LlvmIr}) {
    Fixture fixture{std::string(kText)};
    const auto text = compile_x86(*fixture.module, {}, form, {}, fixture.diagnostics);
    ASSERT_TRUE(text);
    EXPECT_EQ(text->find("test.loom"), std::string::npos);
  }
}

}  // namespace
}  // namespace loom::test
