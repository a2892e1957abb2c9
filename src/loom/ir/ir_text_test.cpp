#include "loom/ir/ir_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace loom {
namespace {

TEST(IrText, FloatsHaveAFractionAndTheShortestDigits) {
  EXPECT_EQ(float_text(0.0), "0.0");
  EXPECT_EQ(float_text(-0.0), "-0.0");
  EXPECT_EQ(float_text(3.0), "3.0");
  EXPECT_EQ(float_text(0.1), "0.1");
  EXPECT_EQ(float_text(static_cast<double>(0.1f)), "0.10000000149011612");
  EXPECT_EQ(float_text(100000.0), "100000.0");
  EXPECT_EQ(float_text(1e-5), "1.0e-5");
  EXPECT_EQ(float_text(1e16), "1.0e16");
  EXPECT_EQ(float_text(1.7976931348623157e308), "1.7976931348623157e308");
  EXPECT_EQ(float_text(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(float_text(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(float_text(std::nan("")), "nan");
}

TEST(IrText, TypesNameTheirExtentsAndAttachments) {
  SourceFiles files;
  Module module(files);
  const ValueId named =
      module.create_value(TypeStore::scalar(ScalarKind::Index), module.strings.intern("m"));
  const ValueId unnamed = module.create_value(TypeStore::scalar(ScalarKind::Index), StringId());
  const Dim dims[] = {Dim::fixed(4), Dim::dynamic(named), Dim::dynamic(unnamed)};
  const int64_t strides[] = {64, 1};
  const DictEntry parameter[] = {
      {module.strings.intern("strides"), module.attrs.intern(Attr::int_list(strides))}};
  Attr encoding{.kind = AttrKind::Encoding, .bits = module.strings.intern("e.strided").index()};
  encoding.entries = parameter;
  const TypeId type = module.types.intern({.kind = TypeKind::View,
                                           .element = ScalarKind::F32,
                                           .dims = dims,
                                           .encoding = module.attrs.intern(encoding),
                                           .align = 16});
  EXPECT_EQ(type_text(module, type),
            "view<4x[%m]x[%1]xf32, #e.strided<strides=[64, 1]>, align(16)>");
  const uint32_t numbers[] = {9, 7};
  std::string out;
  append_type(out, module, type, numbers);
  EXPECT_NE(out.find("[%m_9]x[%7]"), std::string::npos);
  EXPECT_EQ(type_text(module, module.types.opaque(TypeKind::EncodingLayout)), "encoding<layout>");
  EXPECT_EQ(type_text(module, module.types.intern({.kind = TypeKind::View})), "view<index>");
}

TEST(IrText, PredicatesAndStrings) {
  SourceFiles files;
  Module module(files);
  const ValueId n =
      module.create_value(TypeStore::scalar(ScalarKind::Index), module.strings.intern("n"));
  const Predicate range{
      PredicateKind::Range,
      {PredicateArg::of(n), PredicateArg::of(int64_t{-1}), PredicateArg::of(int64_t{127})}};
  EXPECT_EQ(predicate_text(module, range), "range(%n, -1, 127)");
  const AttrId text = module.attrs.intern(
      {.kind = AttrKind::String, .bits = module.strings.intern("a\"\\\n\x01").index()});
  EXPECT_EQ(attr_text(module, text), "\"a\\\"\\\\\\n\\u0001\"");
}

}  // namespace
}  // namespace loom
