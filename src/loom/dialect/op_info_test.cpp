#include "loom/dialect/op_info.h"

#include <gtest/gtest.h>

#include <set>

namespace loom {
namespace {

TEST(OpInfo, EveryRowParsesAndIsFoundByItsName) {
  for (size_t i = 0; i < kOpKindCount; ++i) {
    const OpInfo& info = op_info(static_cast<OpKind>(i));
    EXPECT_EQ(op_from_name(info.name), info.kind) << info.name;
    EXPECT_FALSE(info.doc.empty()) << info.name;
    EXPECT_TRUE(is_known_dialect(info.dialect));
  }
}

// What a column declares but no format word writes could not be read back from text.
TEST(OpInfo, EveryOperandAttributeAndRegionIsWritten) {
  for (size_t i = 0; i < kOpKindCount; ++i) {
    const OpInfo& info = op_info(static_cast<OpKind>(i));
    std::set<int> operands, attrs, regions;
    bool dict = false;
    for (const FormatElement& element : info.format) {
      switch (element.kind) {
        case FormatKind::Operand:
        case FormatKind::OperandClause:
          operands.insert(element.a);
          break;
        case FormatKind::IndexList:
        case FormatKind::OperandDict:
          operands.insert(element.a);
          attrs.insert(element.b);
          break;
        case FormatKind::IterArgs:
          operands.insert(element.b);
          break;
        case FormatKind::Attr:
        case FormatKind::Flags:
        case FormatKind::Word:
          attrs.insert(element.a);
          break;
        case FormatKind::Parameter:
        case FormatKind::Clause:
        case FormatKind::RangeClause:
          attrs.insert(element.a);
          attrs.insert(element.b);
          break;
        case FormatKind::Dict:
          dict = true;
          break;
        case FormatKind::Signature:
        case FormatKind::ResultSig:
        case FormatKind::KeyArg:
        case FormatKind::Region:
        case FormatKind::InductionArg:
          regions.insert(element.a);
          break;
        case FormatKind::Cases:
          regions.insert(element.a);
          regions.insert(element.a + 1);
          attrs.insert(element.b);
          break;
        case FormatKind::LookupRows:
        case FormatKind::PackList:
          operands.insert(element.a);
          attrs.insert(element.b);
          break;
        default:
          break;
      }
    }
    for (size_t k = 0; k < info.operands.size(); ++k) {
      EXPECT_TRUE(operands.contains(static_cast<int>(k)))
          << info.name << " " << info.operands[k].name;
    }
    for (size_t k = 0; k < info.attrs.size(); ++k) {
      EXPECT_TRUE(info.attrs[k].in_dict ? dict : attrs.contains(static_cast<int>(k)))
          << info.name << " " << info.attrs[k].name;
    }
    for (size_t k = 0; k < info.regions.size(); ++k) {
      EXPECT_TRUE(regions.contains(static_cast<int>(k)))
          << info.name << " " << info.regions[k].name;
    }
  }
}

TEST(OpInfo, SlotsByNameAreTheRowsOwn) {
  const OpInfo& info = op_info(OpKind::KernelDef);
  EXPECT_EQ(info.attrs[attr_slot(OpKind::KernelDef, "export")].name, "export");
  EXPECT_EQ(info.regions[region_slot(OpKind::KernelDef, "body")].name, "body");
  EXPECT_EQ(op_info(OpKind::ScfFor).operands[operand_slot(OpKind::ScfFor, "step")].name, "step");
}

TEST(OpInfo, EnumeratorsMatchTheEnumTable) {
  EXPECT_EQ(enum_info(EnumId::CmpIPredicate).find("uge"), unsigned(CmpIPredicate::Uge));
  EXPECT_EQ(enum_info(EnumId::CmpFPredicate).find("uno"), unsigned(CmpFPredicate::Uno));
  EXPECT_EQ(enum_info(EnumId::WriteMode).find("on_failure"), unsigned(WriteMode::OnFailure));
  EXPECT_EQ(enum_info(EnumId::WorkUnit).find("flops"), unsigned(WorkUnit::Flops));
  EXPECT_EQ(enum_info(EnumId::CombiningKind).find("maxnumf"), unsigned(CombiningKind::MaxNumF));
  EXPECT_EQ(enum_info(EnumId::AtomicKind).find("maxnumf"), unsigned(AtomicKind::MaxNumF));
  EXPECT_EQ(enum_info(EnumId::Ordering).find("seq_cst"), unsigned(Ordering::SeqCst));
  EXPECT_EQ(enum_info(EnumId::ClampMode).find("ieee"), unsigned(ClampMode::Ieee));
  EXPECT_EQ(enum_info(EnumId::Dot4Kind).find("u8u8"), unsigned(FactorSigns::UU));
  EXPECT_EQ(enum_info(EnumId::Dot8Kind).find("s4u4"), unsigned(FactorSigns::SU));
  EXPECT_EQ(enum_info(EnumId::DotF8Kind).find("bf8bf8"), unsigned(DotF8Kind::Bf8Bf8));
  EXPECT_EQ(enum_info(EnumId::FragmentRole).find("result"), unsigned(FragmentRole::Result));
  EXPECT_EQ(enum_info(EnumId::CacheScope).find("system"), unsigned(CacheScope::System));
  EXPECT_EQ(enum_info(EnumId::CacheTemporal).find("bypass"), unsigned(CacheTemporal::Bypass));
  EXPECT_EQ(enum_info(EnumId::MemorySpace).find("generic"), unsigned(MemorySpace::Generic));
  EXPECT_EQ(enum_info(EnumId::Axis).find("z"), unsigned(Axis::Z));
  EXPECT_EQ(enum_info(EnumId::Inlining).find("noinline"), unsigned(Inlining::NoInline));
  EXPECT_EQ(flag_set_info(FlagSetId::FastMath).find("afn"), kAfn);
  EXPECT_EQ(flag_set_info(FlagSetId::FastMath).find("fast"), 127u);
  EXPECT_EQ(flag_set_info(FlagSetId::Overflow).find("nuw"), kNuw);
  EXPECT_EQ(flag_set_info(FlagSetId::MemoryFlags).find("volatile"), kVolatile);
  EXPECT_EQ(flag_set_info(FlagSetId::Atomic).find("noftz"), kNoFtz);
  EXPECT_EQ(flag_set_info(FlagSetId::Mma).find("saturate"), kSaturate);
}

}  // namespace
}  // namespace loom
