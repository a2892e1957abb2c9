#include "loom/dialect/eval_vector.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <initializer_list>
#include <set>

#include "loom/dialect/op_info.h"
#include "loom/dialect/records.h"
#include "loom/dialect/schema.h"

namespace loom {
namespace {

using enum OpKind;
using enum ScalarKind;

LaneValues lanes(ScalarKind element, std::vector<int64_t> shape,
                 const std::function<double(size_t)>& value) {
  LaneValues result{.element = element, .shape = std::move(shape), .lanes = {}, .fragment = {}};
  for (size_t i = 0; i < lane_count(result.shape); ++i) {
    const double v = value(i);
    result.lanes.push_back(
        is_float(element)
            ? from_double(element, v).bits
            : from_bits(element, static_cast<uint64_t>(static_cast<int64_t>(v))).bits);
  }
  return result;
}

LaneValues scalar(ScalarKind kind, double value) {
  return lanes(kind, {}, [&](size_t) { return value; });
}

std::vector<double> numbers(const LaneValues& values) {
  std::vector<double> result;
  for (size_t i = 0; i < values.lanes.size(); ++i) result.push_back(to_double(values.at(i)));
  return result;
}

// Builds one operation from its row and computes it.
class EvalVector : public testing::Test {
 protected:
  struct Named {
    std::string_view name;
    Attr attr;
  };
  TypeId type(ScalarKind element, const std::vector<int64_t>& shape) {
    if (shape.empty()) return TypeStore::scalar(element);
    std::vector<Dim> dims;
    for (const int64_t extent : shape) dims.push_back(Dim::fixed(extent));
    return module_.types.intern({.kind = TypeKind::Vector, .element = element, .dims = dims});
  }
  std::vector<LaneValues> run(OpKind kind, const std::vector<LaneValues>& operands,
                              std::vector<LaneValues> results,
                              std::initializer_list<Named> attrs = {},
                              std::vector<uint32_t> groups = {}) {
    const OpInfo& info = op_info(kind);
    std::vector<AttrId> slots(info.attrs.size());
    for (const Named& named : attrs) {
      for (size_t i = 0; i < slots.size(); ++i) {
        if (info.attrs[i].name == named.name) slots[i] = module_.attrs.intern(named.attr);
      }
    }
    std::vector<ValueId> values;
    for (const LaneValues& operand : operands) {
      values.push_back(module_.create_value(type(operand.element, operand.shape), StringId()));
    }
    if (schema_.valid()) values[1] = schema_;
    std::vector<TypeId> types;
    for (const LaneValues& result : results) types.push_back(type(result.element, result.shape));
    if (info.has_groups && groups.empty()) groups.assign(info.operands.size(), 1);
    const OpId op = module_.create(
        {.kind = kind, .operands = values, .groups = groups, .results = types, .attrs = slots});
    status_ = evaluate_vector(module_, op, operands, results);
    return results;
  }
  LaneValues one(OpKind kind, const std::vector<LaneValues>& operands, ScalarKind element,
                 std::vector<int64_t> shape, std::initializer_list<Named> attrs = {},
                 std::vector<uint32_t> groups = {}) {
    auto results =
        run(kind, operands,
            {{.element = element, .shape = std::move(shape), .lanes = {}, .fragment = {}}}, attrs,
            std::move(groups));
    EXPECT_EQ(status_, EvalStatus::Ok) << op_info(kind).name;
    return results[0];
  }
  void define_schema(std::string_view family,
                     std::vector<std::pair<std::string_view, Attr>> parameters) {
    std::vector<DictEntry> entries;
    for (const auto& [key, value] : parameters) {
      entries.push_back({module_.strings.intern(key), module_.attrs.intern(value)});
    }
    Attr spec{.kind = AttrKind::Encoding, .bits = module_.strings.intern(family).index()};
    spec.entries = entries;
    std::vector<AttrId> slots(op_info(EncodingDefine).attrs.size());
    slots[attr_slot(EncodingDefine, "spec")] = module_.attrs.intern(spec);
    const TypeId types[] = {module_.types.opaque(TypeKind::EncodingSchema)};
    const uint32_t groups[] = {0};
    const OpId op = module_.create(
        {.kind = EncodingDefine, .groups = groups, .results = types, .attrs = slots});
    schema_ = module_.result(op);
  }
  Attr word(std::string_view text) { return Attr::word(module_.strings.intern(text)); }
  Attr keys(std::initializer_list<std::string_view> names) {
    entries_.clear();
    for (const std::string_view name : names) {
      entries_.push_back({module_.strings.intern(name), module_.attrs.intern(Attr::unit())});
    }
    Attr dict{.kind = AttrKind::Dict};
    dict.entries = entries_;
    return dict;
  }

  SourceFiles files_;
  Module module_{files_};
  EvalStatus status_ = EvalStatus::Ok;
  ValueId schema_;
  std::vector<DictEntry> entries_;
};

double index_of(size_t i) { return static_cast<double>(i); }

TEST_F(EvalVector, LanewiseOperationsFollowTheScalarOneInEveryLane) {
  const auto a = lanes(F32, {2, 3}, [](size_t i) { return 1.5 * index_of(i) - 2; });
  const auto b = lanes(F32, {2, 3}, [](size_t i) { return 0.25 * index_of(i) + 1; });
  const auto sum = numbers(one(VectorAddF, {a, b}, F32, {2, 3}));
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(sum[i], 1.75 * index_of(i) - 1);
  const auto below = one(VectorCmpF, {a, b}, I1, {2, 3},
                         {{"predicate", Attr::enumeration(uint64_t(CmpFPredicate::Olt))}});
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(below.lanes[i] != 0, 1.25 * index_of(i) < 3);
  const auto zero = lanes(I32, {2}, [](size_t) { return 0; });
  run(VectorDivSI, {zero, zero}, {zero});
  EXPECT_EQ(status_, EvalStatus::ContractViolation);
}

// Every lanewise row names a scalar operation with as many operands.
TEST_F(EvalVector, EveryLanewiseRowHasItsScalarOperation) {
  std::set<std::string_view> lanewise;
  for (const OpKind kind : kAllOpKinds) {
    const auto scalar_kind = lanewise_scalar_op(kind);
    if (!scalar_kind) continue;
    const OpInfo& info = op_info(kind);
    lanewise.insert(info.name);
    EXPECT_EQ(info.name.substr(7), op_info(*scalar_kind).name.substr(7));
    EXPECT_EQ(info.operands.size(), op_info(*scalar_kind).operands.size()) << info.name;
    EXPECT_EQ(info.effect, Effect::Pure);
  }
  for (const std::string_view name : {"vector.addf", "vector.cmpi", "vector.fmaf", "vector.extf"}) {
    EXPECT_TRUE(lanewise.contains(name)) << name;
  }
  for (const std::string_view name : {"vector.bitcast", "vector.constant", "vector.splat"}) {
    EXPECT_FALSE(lanewise.contains(name)) << name;
  }
}

TEST_F(EvalVector, ConstructsLanes) {
  EXPECT_EQ(numbers(one(VectorConstant, {}, I8, {3}, {{"value", Attr::integer(-4)}})),
            (std::vector<double>{-4, -4, -4}));
  EXPECT_EQ(numbers(one(VectorSplat, {scalar(F16, 0.5)}, F16, {2})),
            (std::vector<double>{0.5, 0.5}));
  EXPECT_EQ(numbers(one(VectorIota, {scalar(I8, 126), scalar(I8, 1)}, I8, {3})),
            (std::vector<double>{126, 127, -128}));
  EXPECT_EQ(
      one(VectorMaskRange, {scalar(Index, 1), scalar(Index, 5), scalar(Index, 2)}, I1, {4}).lanes,
      (std::vector<uint64_t>{1, 1, 0, 0}));
  EXPECT_EQ(numbers(one(VectorFromElements, {scalar(F32, 1), scalar(F32, 2)}, F32, {2}, {}, {2})),
            (std::vector<double>{1, 2}));
  const auto table = lanes(F32, {4}, [](size_t i) { return 10 * index_of(i); });
  const auto places = lanes(I32, {2}, [](size_t i) { return 3 - index_of(i); });
  EXPECT_EQ(numbers(one(VectorTableLookup, {table, places}, F32, {2})),
            (std::vector<double>{30, 20}));
  run(VectorTableLookup, {table, lanes(I32, {2}, [](size_t) { return 4; })}, {places});
  EXPECT_EQ(status_, EvalStatus::ContractViolation);
}

TEST_F(EvalVector, MovesLanes) {
  const auto grid = lanes(I32, {2, 3}, index_of);
  static const int64_t kSwap[] = {1, 0};
  EXPECT_EQ(
      numbers(one(VectorTranspose, {grid}, I32, {3, 2}, {{"permutation", Attr::int_list(kSwap)}})),
      (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(numbers(one(VectorBroadcast, {lanes(I32, {2, 1}, index_of)}, I32, {2, 2, 3})),
            (std::vector<double>{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
  static const int64_t kRow[] = {1};
  static const int64_t kCell[] = {kDynamicIndex, 2};
  EXPECT_EQ(numbers(one(VectorExtract, {grid}, I32, {3}, {{"static_index", Attr::int_list(kRow)}},
                        {1, 0})),
            (std::vector<double>{3, 4, 5}));
  EXPECT_EQ(numbers(one(VectorExtract, {grid, scalar(Index, 1)}, I32, {},
                        {{"static_index", Attr::int_list(kCell)}})),
            (std::vector<double>{5}));
  EXPECT_EQ(numbers(one(VectorInsert, {scalar(I32, 9), grid, scalar(Index, 0)}, I32, {2, 3},
                        {{"static_index", Attr::int_list(kCell)}})),
            (std::vector<double>{0, 1, 9, 3, 4, 5}));
  static const int64_t kOrigin[] = {0, kDynamicIndex};
  EXPECT_EQ(numbers(one(VectorSlice, {grid, scalar(Index, 1)}, I32, {2, 2},
                        {{"static_index", Attr::int_list(kOrigin)}})),
            (std::vector<double>{1, 2, 4, 5}));
  run(VectorSlice, {grid, scalar(Index, 2)}, {lanes(I32, {2, 2}, index_of)},
      {{"static_index", Attr::int_list(kOrigin)}});
  EXPECT_EQ(status_, EvalStatus::ContractViolation);
  EXPECT_EQ(numbers(one(VectorConcat,
                        {grid, lanes(I32, {2, 1}, [](size_t i) { return 7 + index_of(i); })}, I32,
                        {2, 4}, {{"axis", Attr::integer(1)}}, {2})),
            (std::vector<double>{0, 1, 2, 7, 3, 4, 5, 8}));
  static const int64_t kLanes[] = {2, 2, 0};
  EXPECT_EQ(numbers(one(VectorShuffle, {lanes(I32, {3}, index_of)}, I32, {3},
                        {{"lanes", Attr::int_list(kLanes)}})),
            (std::vector<double>{2, 2, 0}));
  EXPECT_EQ(numbers(one(VectorInterleave,
                        {grid, lanes(I32, {2, 3}, [](size_t i) { return 10 + index_of(i); })}, I32,
                        {4, 3}, {{"axis", Attr::integer(0)}})),
            (std::vector<double>{0, 1, 2, 10, 11, 12, 3, 4, 5, 13, 14, 15}));
  const auto halves =
      run(VectorDeinterleave, {lanes(I32, {4}, index_of)},
          {lanes(I32, {2}, index_of), lanes(I32, {2}, index_of)}, {{"axis", Attr::integer(0)}});
  EXPECT_EQ(numbers(halves[0]), (std::vector<double>{0, 2}));
  EXPECT_EQ(numbers(halves[1]), (std::vector<double>{1, 3}));
}

TEST_F(EvalVector, ReinterpretsBits) {
  const LaneValues word{.element = I32, .shape = {1}, .lanes = {0x76543210}, .fragment = {}};
  EXPECT_EQ(one(VectorBitcast, {word}, I8, {4}).lanes,
            (std::vector<uint64_t>{0x10, 0x32, 0x54, 0x76}));
  EXPECT_EQ(one(VectorBitunpackU, {word}, I8, {8}, {{"width", Attr::integer(4)}}).lanes,
            (std::vector<uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  const LaneValues negative{.element = I8, .shape = {1}, .lanes = {0xf2}, .fragment = {}};
  EXPECT_EQ(numbers(one(VectorBitunpackS, {negative}, I8, {2}, {{"width", Attr::integer(4)}})),
            (std::vector<double>{2, -1}));
  const auto small = lanes(I8, {8}, [](size_t i) { return 7 - index_of(i); });
  EXPECT_EQ(one(VectorBitpack, {small}, I32, {1}, {{"width", Attr::integer(4)}}).lanes,
            (std::vector<uint64_t>{0x01234567}));
  EXPECT_EQ(one(VectorBitfieldExtractU, {word}, I8, {1},
                {{"offset", Attr::integer(12)}, {"width", Attr::integer(8)}})
                .lanes,
            (std::vector<uint64_t>{0x43}));
  const LaneValues field{.element = I8, .shape = {1}, .lanes = {0xff}, .fragment = {}};
  EXPECT_EQ(one(VectorBitfieldInsert, {field, word}, I32, {1},
                {{"offset", Attr::integer(4)}, {"width", Attr::integer(8)}})
                .lanes,
            (std::vector<uint64_t>{0x76543ff0}));
}

TEST_F(EvalVector, ReducesInLaneOrder) {
  // 1 is lost behind 2^24, so the order shows.
  const auto values = lanes(F32, {3}, [](size_t i) {
    return i == 0 ? 16777216.0 : i == 1 ? 1.0 : -16777216.0;
  });
  const Attr add = Attr::enumeration(uint64_t(CombiningKind::AddF));
  EXPECT_EQ(numbers(one(VectorReduce, {values, scalar(F32, 0)}, F32, {},
                        {{"kind", add}, {"flags", Attr::flags(kReassoc)}}))[0],
            0.0);
  EXPECT_EQ(numbers(one(VectorReduce, {lanes(F32, {0}, index_of), scalar(F32, 7)}, F32, {},
                        {{"kind", add}}))[0],
            7.0);
  const auto cube = lanes(I32, {2, 3, 2}, index_of);
  static const int64_t kOuter[] = {0, 2};
  EXPECT_EQ(
      numbers(one(VectorReduceAxes, {cube, lanes(I32, {3}, [](size_t) { return 100; })}, I32, {3},
                  {{"kind", Attr::enumeration(uint64_t(CombiningKind::AddI))},
                   {"axes", Attr::int_list(kOuter)}})),
      (std::vector<double>{100 + 0 + 1 + 6 + 7, 100 + 2 + 3 + 8 + 9, 100 + 4 + 5 + 10 + 11}));
  EXPECT_EQ(numbers(one(VectorDotF,
                        {lanes(F32, {3}, index_of), lanes(F32, {3}, index_of), scalar(F32, 1)}, F32,
                        {}))[0],
            6.0);
}

TEST_F(EvalVector, DotsGroups) {
  const auto halves = lanes(F16, {4}, [](size_t i) { return index_of(i) + 1; });
  EXPECT_EQ(numbers(one(VectorDot2F, {halves, halves, lanes(F32, {2}, [](size_t) { return 0.5; })},
                        F32, {2})),
            (std::vector<double>{5.5, 25.5}));
  const LaneValues bytes{.element = I8, .shape = {4}, .lanes = {0xff, 2, 3, 0x80}, .fragment = {}};
  const auto sum = [&](FactorSigns signs) {
    return numbers(one(VectorDot4I, {bytes, bytes, lanes(I32, {1}, [](size_t) { return 1; })}, I32,
                       {1}, {{"kind", Attr::enumeration(uint64_t(signs))}}))[0];
  };
  EXPECT_EQ(sum(FactorSigns::SS), 1 + 1 + 4 + 9 + 128.0 * 128);
  EXPECT_EQ(sum(FactorSigns::UU), 1 + 255.0 * 255 + 4 + 9 + 128.0 * 128);
  EXPECT_EQ(sum(FactorSigns::US), 1 - 255.0 + 4 + 9 - 128.0 * 128);
  const LaneValues nibbles{.element = I32, .shape = {1}, .lanes = {0xf0000002}, .fragment = {}};
  const auto nibble_sum = [&](FactorSigns signs) {
    return numbers(one(VectorDot8I4, {nibbles, nibbles, lanes(I32, {1}, [](size_t) { return 0; })},
                       I32, {1}, {{"kind", Attr::enumeration(uint64_t(signs))}}))[0];
  };
  EXPECT_EQ(nibble_sum(FactorSigns::SS), 5.0);
  EXPECT_EQ(nibble_sum(FactorSigns::UU), 229.0);
  // 0x38 is 1 with four exponent bits and 0.5 with five; 0x3c is 1.5 and 1.
  const LaneValues codes{.element = I32, .shape = {1}, .lanes = {0x00003c38}, .fragment = {}};
  EXPECT_EQ(numbers(one(VectorDot4F8, {codes, codes, lanes(F32, {1}, [](size_t) { return 0; })},
                        F32, {1}, {{"kind", Attr::enumeration(uint64_t(DotF8Kind::Fp8Bf8))}}))[0],
            1 * 0.5 + 1.5 * 1);
}

TEST_F(EvalVector, MultipliesRowMajorMatricesBlockByBlock) {
  constexpr int64_t kB = 2, kM = 2, kN = 3, kK = 4;
  auto a = lanes(I8, {kB * kM * kK}, [](size_t i) { return static_cast<double>(i % 7) - 3; });
  auto b = lanes(I8, {kB * kK * kN}, [](size_t i) { return static_cast<double>(i % 5) - 2; });
  const auto c = lanes(I32, {kB * kM * kN}, index_of);
  a.fragment = {FragmentRole::Lhs, kB, kM, kK};
  b.fragment = {FragmentRole::Rhs, kB, kK, kN};
  const auto sum = one(VectorMma, {a, b, c}, I32, {kB * kM * kN});
  const auto x = numbers(a), y = numbers(b), z = numbers(c), out = numbers(sum);
  for (size_t block = 0; block < kB; ++block) {
    for (size_t m = 0; m < kM; ++m) {
      for (size_t n = 0; n < kN; ++n) {
        const size_t at = (block * kM + m) * kN + n;
        double expected = z[at];
        for (size_t k = 0; k < kK; ++k) {
          expected += x[(block * kM + m) * kK + k] * y[(block * kK + k) * kN + n];
        }
        EXPECT_EQ(out[at], expected);
      }
    }
  }
  EXPECT_EQ(sum.fragment, (FragmentShape{FragmentRole::Result, kB, kM, kN}));
  const auto full = lanes(I8, {1}, [](size_t) { return 100; });
  const LaneValues most{.element = I16, .shape = {1}, .lanes = {0x7fff}, .fragment = {}};
  EXPECT_EQ(
      numbers(one(VectorMma, {full, full, most}, I16, {1}, {{"flags", Attr::flags(kSaturate)}}))[0],
      32767.0);
  EXPECT_EQ(numbers(one(VectorMma, {full, full, most}, I16, {1}))[0], 32767.0 + 10000 - 65536);
}

TEST_F(EvalVector, DecodesAndEncodesOperands) {
  define_schema("encoding.operand", {{"payload_elements", Attr::integer(4)},
                                     {"element_format", word("i4")},
                                     {"payload_packing", word("little_endian_nibbles")},
                                     {"affine", word("scale_only")}});
  const LaneValues payload{.element = I16, .shape = {1}, .lanes = {0x8f21}, .fragment = {}};
  const auto scale = lanes(F16, {2}, [](size_t i) { return i == 0 ? 0.5 : 2.0; });
  const Attr names = keys({"scale"});
  const auto decoded = one(VectorDecode, {payload, {}, scale}, F32, {4}, {{"keys", names}});
  EXPECT_EQ(numbers(decoded), (std::vector<double>{0.5, 1.0, -2.0, -16.0}));
  EXPECT_EQ(one(VectorEncode, {decoded, {}, scale}, I16, {1}, {{"keys", names}}).lanes,
            payload.lanes);
  run(VectorDecode, {payload, {}}, {decoded}, {}, {1, 1, 0});
  EXPECT_EQ(status_, EvalStatus::NotEvaluable);
}

TEST_F(EvalVector, DecodesRecords) {
  define_schema("ggml.q4_0", {});
  auto record = lanes(I8, {18}, [](size_t i) { return static_cast<double>(i); });
  record.lanes[0] = 0x00;
  record.lanes[1] = 0x38;  // 0.5
  const auto values = numbers(one(VectorDecode, {record, {}}, F32, {32}, {}, {1, 1, 0}));
  for (size_t i = 0; i < 16; ++i) {
    const auto byte = static_cast<int>(record.lanes[2 + i]);
    EXPECT_EQ(values[i], 0.5 * ((byte & 15) - 8));
    EXPECT_EQ(values[16 + i], 0.5 * ((byte >> 4) - 8));
  }
}

TEST(Records, SixBitScalesOfTheKFamilies) {
  std::vector<uint8_t> bytes(176);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(37 * i + 11);
  std::vector<RecordElement> four, five;
  ASSERT_TRUE(read_records("ggml.q4_k", std::span(bytes).first(144), four));
  ASSERT_TRUE(read_records("ggml.q5_k", bytes, five));
  ASSERT_EQ(four.size(), 256u);
  const uint8_t* s = bytes.data() + 4;
  EXPECT_EQ(four[32 * 2].subscale, s[2] & 63);
  EXPECT_EQ(four[32 * 2].minimum, s[6] & 63);
  EXPECT_EQ(four[32 * 6].subscale, (s[10] & 15) | ((s[2] >> 6) << 4));
  EXPECT_EQ(four[32 * 6].minimum, (s[10] >> 4) | ((s[6] >> 6) << 4));
  EXPECT_EQ(four[32 * 3 + 5].code, bytes[16 + 32 + 5] >> 4);
  EXPECT_EQ(five[32 * 3 + 5].code, (bytes[48 + 32 + 5] >> 4) | ((bytes[16 + 5] >> 3 & 1) << 4));
  std::vector<RecordElement> none;
  EXPECT_FALSE(read_records("ggml.q4_k", std::span(bytes).first(143), none));
  EXPECT_FALSE(read_records("ggml.unknown", bytes, none));
}

TEST(Records, SixBitElementsAndInterleavedBlocks) {
  std::vector<uint8_t> bytes(210);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(91 * i + 7);
  std::vector<RecordElement> six;
  ASSERT_TRUE(read_records("ggml.q6_k", bytes, six));
  // Element 128 + 32 * 3 + 9: high nibble of byte 64 + 32 + 9, bits 6 and 7 of byte 128 + 32 + 9.
  EXPECT_EQ(six[233].code, ((bytes[105] >> 4) | (bytes[169] >> 6) << 4) - 32);
  EXPECT_EQ(six[233].subscale, static_cast<int8_t>(bytes[192 + 14]));
  EXPECT_EQ(six[0].scale, bytes[208] | bytes[209] << 8);
  std::vector<RecordElement> blocks;
  ASSERT_TRUE(read_records("ggml.q8_1_x4", std::span(bytes).first(144), blocks));
  EXPECT_EQ(blocks[70].scale, bytes[8] | bytes[9] << 8);
  EXPECT_EQ(blocks[70].code, static_cast<int8_t>(bytes[86]));
}

TEST(NumericFormats, SpecialCodes) {
  const auto value = [](std::string_view name, uint64_t code) {
    return decode_number(*numeric_format(name), code);
  };
  EXPECT_EQ(value("f8e4m3fn", 0x7e), 448.0);
  EXPECT_TRUE(std::isnan(value("f8e4m3fn", 0x7f)));
  EXPECT_TRUE(std::isnan(value("f8e4m3fnuz", 0x80)));
  EXPECT_EQ(value("f8e4m3fnuz", 0x7f), 240.0);
  EXPECT_TRUE(std::isinf(value("f8e4m3", 0x78)));
  EXPECT_EQ(value("f8e5m2fnuz", 0x7f), 57344.0);
  EXPECT_EQ(value("e8m0", 128), 2.0);
  EXPECT_EQ(value("f4e2m1", 0x7), 6.0);
  EXPECT_EQ(value("f6e2m3", 0x3f), -7.5);
  EXPECT_EQ(value("i4", 0x8), -8.0);
  EXPECT_EQ(numeric_format("codebook_index"), nullptr);
}

}  // namespace
}  // namespace loom
