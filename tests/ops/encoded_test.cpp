// Decode and encode of every schema that settles its numbers.
#include "cases.h"
#include "loom/dialect/encoding_info.h"
#include "loom/dialect/numeric.h"

namespace loom::ops {
namespace {

constexpr std::string_view kHead = R"(kernel.def @k() {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%a: buffer, %b: buffer, %s: buffer, %t: buffer) {
  %base = index.constant 0 : offset
)";

ScalarKind kind_of(std::string_view name) { return *scalar_from_name(name); }

// Decodes `payload` lanes into `count` lanes of `to`.
std::string decoder(std::string_view spec, std::string_view role, std::string_view payload,
                    size_t count, std::string_view to, std::string_view aux = "") {
  return fmt::format(R"({}  %av = buffer.view %a[%base] : buffer -> view<{}>
  %bv = buffer.view %b[%base] : buffer -> view<{}x{}>
  %schema = encoding.define #{} : encoding<{}>
  %p = vector.load %av[0] : view<{}> -> vector<{}>
{}  %r = vector.decode %p using %schema {}: vector<{}>, encoding<{}> -> vector<{}x{}>
  vector.store %r, %bv[0] : vector<{}x{}>, view<{}x{}>
  kernel.return
}}
)",
                     kHead, payload, count, to, spec, role, payload, payload,
                     aux.empty()
                         ? ""
                         : fmt::format("  %sv = buffer.view %s[%base] : buffer -> view<{0}>\n"
                                       "  %tv = buffer.view %t[%base] : buffer -> view<{0}>\n"
                                       "  %x = vector.load %sv[0] : view<{0}> -> vector<{0}>\n"
                                       "  %y = vector.load %tv[0] : view<{0}> -> vector<{0}>\n",
                                       aux.substr(0, aux.find('|'))),
                     aux.empty() ? "" : fmt::format("{{{}}} ", aux.substr(aux.find('|') + 1)),
                     payload, role, count, to, count, to, count, to);
}

TEST(Encoded, RecordsOfEveryFamilyDecode) {
  for (const std::string_view family :
       {"ggml.q4_0", "ggml.q8_0", "ggml.q4_k", "ggml.q5_k", "ggml.q6_k", "ggml.q8_1_x4"}) {
    const StorageRecord record = find_encoding_family(family)->record;
    for (const size_t records : {1, 3}) {
      for (const std::string_view to : {"f32", "f16", "bf16", "f64", "f8E5M2"}) {
        if (records * record.elements > 512) continue;
        SCOPED_TRACE(fmt::format("{} records of {} to {}", records, family, to));
        for (const bool words : {false, true}) {
          if (words && records > 1) continue;
          const size_t bytes = records * record.bytes;
          Program program(
              decoder(family, "storage",
                      words ? fmt::format("{}xi16", bytes / 2) : fmt::format("{}xi8", bytes),
                      records * record.elements, to));
          Buffer payload = noise(ScalarKind::I8, bytes, records);
          program.expect_same({payload, zeros(kind_of(to), records * record.elements),
                               zeros(ScalarKind::I8, 4), zeros(ScalarKind::I8, 4)});
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Records in the rows of a matrix, and a payload that is not loaded but computed.
TEST(Encoded, RecordsDecodeWhereverTheyCameFrom) {
  Program rows(fmt::format(R"({}  %two = index.constant 2 : index
  %av = buffer.view %a[%base] : buffer -> view<4x34xi8>
  %bv = buffer.view %b[%base] : buffer -> view<2x32xf32>
  %schema = encoding.define #ggml.q8_0 : encoding<storage>
  %p = vector.load %av[%two, 0] : view<4x34xi8> -> vector<2x34xi8>
  %r = vector.decode %p using %schema : vector<2x34xi8>, encoding<storage> -> vector<2x32xf32>
  vector.store %r, %bv[0, 0] : vector<2x32xf32>, view<2x32xf32>
  kernel.return
}}
)",
                           kHead));
  rows.expect_same({noise(ScalarKind::I8, 136, 1), zeros(ScalarKind::F32, 64),
                    zeros(ScalarKind::I8, 4), zeros(ScalarKind::I8, 4)});
  Program computed(fmt::format(R"({}  %av = buffer.view %a[%base] : buffer -> view<18xi8>
  %bv = buffer.view %b[%base] : buffer -> view<32xf32>
  %schema = encoding.define #ggml.q4_0 : encoding<storage>
  %p = vector.load %av[0] : view<18xi8> -> vector<18xi8>
  %q = vector.addi %p, %p : vector<18xi8>
  %r = vector.decode %q using %schema : vector<18xi8>, encoding<storage> -> vector<32xf32>
  vector.store %r, %bv[0] : vector<32xf32>, view<32xf32>
  kernel.return
}}
)",
                               kHead));
  computed.expect_same({noise(ScalarKind::I8, 18, 1), zeros(ScalarKind::F32, 32),
                        zeros(ScalarKind::I8, 4), zeros(ScalarKind::I8, 4)});
}

// A format, the bits of a code, and a type for the numbers.
struct Format {
  std::string_view name;
  unsigned bits;
};
constexpr Format kFormats[] = {
    {"i8", 8},         {"u8", 8},       {"i6", 6},      {"u6", 6},     {"i5", 5},
    {"u5", 5},         {"i4", 4},       {"u4", 4},      {"i3", 3},     {"u3", 3},
    {"i2", 2},         {"u2", 2},       {"i1", 1},      {"u1", 1},     {"f8e4m3", 8},
    {"f8e5m2", 8},     {"f8e4m3fn", 8}, {"bf8", 8},     {"e8m0", 8},   {"f8e4m3fnuz", 8},
    {"f8e5m2fnuz", 8}, {"f6e3m2", 6},   {"f6e2m3", 6},  {"f4e2m1", 4}, {"i16", 16},
    {"u16", 16},       {"f16", 16},     {"bf16", 16},   {"i32", 32},   {"u32", 32},
    {"f32", 32},       {"f64", 64},     {"quant_i4", 4}};

TEST(Encoded, EveryFormatDecodesFromAStreamAndFromLanes) {
  for (const Format& format : kFormats) {
    for (const std::string_view to : {"f32", "bf16", "f64"}) {
      SCOPED_TRACE(fmt::format("{} to {}", format.name, to));
      const size_t count = 32;
      const std::string spec = fmt::format(
          "encoding.operand<payload_elements=32, element_format={}, payload_packing={}>",
          format.name, format.bits == 4 ? "big_endian_nibbles" : "bitfield_stream");
      Program stream(
          decoder(spec, "schema", fmt::format("{}xi8", count * format.bits / 8), count, to));
      stream.expect_same({noise(ScalarKind::I8, count * format.bits / 8, 7),
                          zeros(kind_of(to), count), zeros(ScalarKind::I8, 4),
                          zeros(ScalarKind::I8, 4)});
      if (format.bits > 32) continue;
      const std::string dense = fmt::format(
          "encoding.operand<payload_elements=32, element_format={}, payload_packing=dense_lanes>",
          format.name);
      Program lanes(decoder(dense, "schema", "32xi32", count, to));
      lanes.expect_same({noise(ScalarKind::I32, count, 8), zeros(kind_of(to), count),
                         zeros(ScalarKind::I8, 4), zeros(ScalarKind::I8, 4)});
      if (HasFailure()) return;
    }
  }
}

TEST(Encoded, EveryAffineKindScales) {
  const std::pair<std::string_view, std::string_view> kinds[] = {
      {"scale_only", "scale = %x : vector<4x{0}>"},
      {"sum_correction", "scale = %x : vector<4x{0}>, sum_correction = %y : vector<4x{0}>"},
      {"scale_plus_min", "minimum = %y : vector<4x{0}>, scale = %x : vector<4x{0}>"},
      {"scale_plus_zero_point", "scale = %x : vector<4x{0}>, zero_point = %y : vector<4x{0}>"},
      {"scale_plus_bias", "bias = %y : vector<4x{0}>, scale = %x : vector<4x{0}>"},
      {"super_scale_times_subscale",
       "scale = %x : vector<4x{0}>, secondary_scale = %y : vector<4x{0}>"}};
  for (const auto& [affine, keys] : kinds) {
    for (const std::string_view scale : {"f16", "f32", "i8"}) {
      for (const std::string_view to : {"f32", "f16"}) {
        SCOPED_TRACE(fmt::format("{} of {} to {}", affine, scale, to));
        const std::string spec = fmt::format(
            "encoding.u4<payload_elements=32, payload_packing=little_endian_nibbles, affine={}, "
            "scale_group_elements=8>",
            affine);
        Program program(
            decoder(spec, "schema", "4xi32", 32, to,
                    fmt::format("4x{}|", scale) + fmt::format(fmt::runtime(keys), scale)));
        const ScalarKind kind = kind_of(scale);
        const auto scales = [&](uint64_t seed) {
          return is_float(kind) ? special_floats(kind, 4, seed) : noise(kind, 4, seed);
        };
        program.expect_same(
            {noise(ScalarKind::I32, 4, 9), zeros(kind_of(to), 32), scales(1), scales(2)});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Encoded, NumbersEncodeToTheNearestCode) {
  for (const Format& format : kFormats) {
    if (format.name == "e8m0" || format.name.ends_with("fnuz") || format.name.starts_with("f6") ||
        format.name.starts_with("f4") || format.name == "f8e4m3") {
      continue;  // the language leaves these open
    }
    for (const std::string_view from : {"f32", "f16", "f64"}) {
      for (const bool scaled : {false, true}) {
        SCOPED_TRACE(fmt::format("{} to {}, scaled: {}", from, format.name, scaled));
        const std::string spec = fmt::format(
            "encoding.operand<payload_elements=32, element_format={}, payload_packing={}{}>",
            format.name, format.bits == 4 ? "little_endian_nibbles" : "bitfield_stream",
            scaled ? ", affine=scale_only" : "");
        const std::string payload = fmt::format("{}xi8", 4 * format.bits);
        Program program(fmt::format(
            R"({}  %av = buffer.view %a[%base] : buffer -> view<32x{}>
  %bv = buffer.view %b[%base] : buffer -> view<{}>
  %sv = buffer.view %s[%base] : buffer -> view<1xf32>
  %schema = encoding.define #{} : encoding<schema>
  %p = vector.load %av[0] : view<32x{}> -> vector<32x{}>
  %x = vector.load %sv[0] : view<1xf32> -> vector<1xf32>
  %r = vector.encode %p using %schema {}: vector<32x{}>, encoding<schema> -> vector<{}>
  vector.store %r, %bv[0] : vector<{}>, view<{}>
  kernel.return
}}
)",
            kHead, from, payload, spec, from, from, scaled ? "{scale = %x : vector<1xf32>} " : "",
            from, payload, payload, payload));
        // Codes of floats are compared as floats, since a NaN may be any of them.
        const bool is_float_format = format.name.starts_with("f") || format.name.starts_with("bf");
        const ScalarKind kind = format.name == "f16"        ? ScalarKind::F16
                                : format.name == "bf16"     ? ScalarKind::BF16
                                : format.name == "f32"      ? ScalarKind::F32
                                : format.name == "f64"      ? ScalarKind::F64
                                : format.name == "f8e4m3fn" ? ScalarKind::F8E4M3
                                                            : ScalarKind::F8E5M2;
        program.expect_same(
            {special_floats(kind_of(from), 32, 11),
             is_float_format ? zeros(kind, 32) : zeros(ScalarKind::I8, size_t{4} * format.bits),
             buffer_of<float>(ScalarKind::F32, {0.75f}), zeros(ScalarKind::I8, 4)});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Encoded, EncodingsAreToldApart) { expect_all_same(schema_cases()); }

}  // namespace
}  // namespace loom::ops
