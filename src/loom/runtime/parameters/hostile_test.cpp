// Damaged and malicious files end in a diagnostic or are read as something valid. They never reach
// memory outside the file; the sanitizer build checks that on every byte of every entry.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "loom/runtime/parameters/byte_reader.h"
#include "loom/runtime/parameters/gguf.h"
#include "loom/runtime/parameters/npy.h"
#include "loom/runtime/parameters/parameter_file.h"
#include "loom/runtime/parameters/safetensors.h"

namespace loom {
namespace {

// The bytes on the heap at their exact size, so that a read past them is seen.
std::vector<std::byte> exact(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

template <class Parsed>
std::string error_text(const FormatResult<Parsed>& parsed) {
  return parsed ? "no error" : parsed.error().text();
}

// True when the file was accepted. Every byte that an entry claims is touched.
bool read_all(std::string_view text, const std::string& name) {
  const auto bytes = exact(text);
  Diagnostics diagnostics;
  const auto file = ParameterFile::from_bytes(bytes, name, diagnostics);
  EXPECT_NE(file.has_value(), diagnostics.has_errors());
  if (!file) return false;
  unsigned sum = 0;
  for (const ParameterEntry& entry : file->entries()) {
    EXPECT_EQ(file->find(entry.name), &entry);
    for (const std::byte byte : entry.bytes) sum += std::to_integer<unsigned>(byte);
  }
  return sum != std::numeric_limits<unsigned>::max();
}

struct Sample {
  std::string name;
  std::string text;
  size_t header;  // bytes before the data
};

std::vector<Sample> samples() {
  static const std::vector<std::byte> data(96, std::byte{7});
  const std::vector<ParameterSource> sources = {
      {"blk.0.weight", {ElementType::F32, {2, 4}}, std::span(data).first(32)},
      {"blk.1.weight", {ElementType::F16, {3}}, std::span(data).first(6)},
  };
  Diagnostics diagnostics;
  std::vector<Sample> list;
  const auto add = [&](FileFormat format, const std::string& name, size_t count) {
    auto text = build_parameter_file(format, name, std::span(sources).first(count), diagnostics);
    const size_t header = format == FileFormat::Npy ? 128 : text->find("\7\7\7\7");
    list.push_back({name, std::move(*text), header});
  };
  add(FileFormat::Gguf, "a.gguf", 2);
  add(FileFormat::Safetensors, "a.safetensors", 2);
  add(FileFormat::Npy, "a.npy", 1);
  return list;
}

TEST(Hostile, TruncationAtEveryByte) {
  for (const Sample& sample : samples()) {
    ASSERT_TRUE(read_all(sample.text, sample.name));
    // GGUF pads the end of the last tensor; what is missing there is missing from nothing.
    const size_t needed = sample.name == "a.gguf" ? sample.header + 32 + 6 : sample.text.size();
    for (size_t size = 0; size < sample.text.size(); ++size) {
      EXPECT_EQ(read_all(sample.text.substr(0, size), sample.name), size >= needed)
          << sample.name << " cut to " << size;
    }
  }
}

TEST(Hostile, EveryHeaderByteChanged) {
  for (const Sample& sample : samples()) {
    size_t refused = 0;
    for (size_t i = 0; i < sample.header; ++i) {
      for (const unsigned mask : {0x01u, 0x20u, 0x80u, 0xffu}) {
        std::string text = sample.text;
        text[i] = static_cast<char>(static_cast<unsigned char>(text[i]) ^ mask);
        if (!read_all(text, sample.name)) ++refused;
      }
    }
    EXPECT_GT(refused, sample.header) << sample.name;
  }
}

TEST(Hostile, OtherContentIsNoParameterFile) {
  Diagnostics diagnostics;
  const auto bytes = exact("module @m {}\n");
  EXPECT_FALSE(ParameterFile::from_bytes(bytes, "m.loom", diagnostics));
  EXPECT_EQ(diagnostics.all()[0].message(),
            "cannot read the parameter file 'm.loom': it is none of GGUF, safetensors and npy");
  EXPECT_FALSE(ParameterFile::from_bytes({}, "empty", diagnostics));
}

// --- GGUF, field by field ------------------------------------------------------------------------

struct GgufText {
  std::string out = "GGUF";
  GgufText(uint64_t tensors, uint64_t metadata, uint32_t version = 3) {
    u32(version).u64(tensors).u64(metadata);
  }
  GgufText& u32(uint32_t value) { return append_bytes(out, value), *this; }
  GgufText& u64(uint64_t value) { return append_bytes(out, value), *this; }
  GgufText& text(std::string_view value) {
    u64(value.size()).out += value;
    return *this;
  }
  GgufText& tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type,
                   uint64_t offset) {
    text(name).u32(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) u64(dim);
    return u32(type).u64(offset);
  }
  GgufText& data(size_t size, size_t alignment = 32) {
    out.resize((out.size() + alignment - 1) / alignment * alignment);
    out.append(size, '\1');
    return *this;
  }
  std::string error() const { return error_text(read_gguf(exact(out))); }
};

TEST(HostileGguf, Versions) {
  EXPECT_EQ(GgufText(0, 0, 2).error(), "no error");
  EXPECT_EQ(GgufText(0, 0, 1).error(), "GGUF version 1 is not supported; 2 and 3 are (at byte 4)");
  EXPECT_EQ(GgufText(0, 0, 0x03000000).error(), "big-endian GGUF is not supported (at byte 4)");
}

TEST(HostileGguf, CountsBeyondTheFile) {
  EXPECT_EQ(GgufText(~uint64_t{0}, 0).error(),
            "18446744073709551615 tensors do not fit in the file (at byte 8)");
  EXPECT_EQ(GgufText(0, uint64_t{1} << 60).error(),
            "1152921504606846976 metadata values do not fit in the file (at byte 16)");
  EXPECT_EQ(GgufText(0, 1).u64(~uint64_t{0}).data(64).error().find("a metadata key of 1844674"),
            0u);
}

TEST(HostileGguf, MetadataOfEveryTypeIsSkipped) {
  GgufText file(1, 4);
  file.text("nested").u32(9).u32(9).u64(2);
  file.u32(8).u64(2).text("a").text("b");  // [["a", "b"], [7u16]]
  file.u32(2).u64(1).out += std::string("\7\0", 2);
  file.text("empty").u32(9).u32(8).u64(0);
  file.text("flag").u32(7).out += '\1';
  file.text("general.alignment").u32(4).u32(64);
  file.tensor("w", {2}, 0, 64).data(64 + 8, 64);
  const auto bytes = exact(file.out);
  const auto parsed = read_gguf(bytes);
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(parsed->entries[0].offset % 64, 0u);
  EXPECT_EQ(parsed->entries[0].bytes.size(), 8u);
}

TEST(HostileGguf, MetadataIsValidated) {
  EXPECT_EQ(GgufText(0, 1).text("k").u32(77).data(8).error(),
            "unknown metadata type 77 (at byte 37)");
  EXPECT_EQ(GgufText(0, 1).text("k").u32(9).u32(77).u64(0).error(),
            "unknown metadata type 77 (at byte 49)");
  EXPECT_EQ(GgufText(0, 1).text("k").u32(9).u32(10).u64(uint64_t{1} << 61).data(8).error(),
            "the file ends inside a metadata value (at byte 49)");
  GgufText flag(0, 1);
  flag.text("k").u32(7).out += '\2';
  EXPECT_EQ(flag.error(), "a boolean is neither 0 nor 1 (at byte 37)");
  EXPECT_EQ(GgufText(0, 2).text("k").u32(4).u32(1).text("k").u32(4).u32(1).error(),
            "metadata key 'k' occurs twice (at byte 41)");
  EXPECT_EQ(GgufText(0, 1).text("general.alignment").u32(4).u32(24).error(),
            "general.alignment 24 is not a power of two (at byte 53)");
  EXPECT_EQ(GgufText(0, 1).text("general.alignment").u32(4).u32(0).error(),
            "general.alignment 0 is not a power of two (at byte 53)");
  EXPECT_EQ(GgufText(0, 1).text("general.alignment").u32(10).u64(32).error(),
            "general.alignment is not a 32-bit unsigned integer (at byte 53)");
}

TEST(HostileGguf, DeeplyNestedMetadataEnds) {
  GgufText file(0, 1);
  file.text("k").u32(9);
  for (int depth = 0; depth < 100'000; ++depth) file.u32(9).u64(1);
  file.u32(8).u64(0);
  EXPECT_EQ(file.error(), "no error");
}

TEST(HostileGguf, Tensors) {
  EXPECT_EQ(GgufText(1, 0).tensor("w", {3, 2}, 0, 0).data(24).error(), "no error");
  EXPECT_EQ(GgufText(2, 0).tensor("w", {1}, 0, 0).tensor("w", {1}, 0, 32).data(64).error(),
            "tensor 'w' occurs twice (at byte 57)");
  EXPECT_EQ(GgufText(1, 0).tensor("w", {1}, 5, 0).data(64).error(),
            "tensor 'w' has the unknown type 5 (at byte 45)");
  EXPECT_EQ(GgufText(1, 0).tensor("w", {1}, 0, 16).data(64).error(),
            "the offset 16 of tensor 'w' is not a multiple of the alignment 32 (at byte 24)");
  EXPECT_EQ(
      GgufText(1, 0).tensor("w", {17}, 0, 0).data(64).error(),
      "tensor 'w' of 68 bytes at data offset 0 reaches past the end of the file (at byte 24)");
  EXPECT_EQ(GgufText(1, 0)
                .tensor("w", {1}, 0, ~uint64_t{31})
                .data(64)
                .error()
                .find("tensor 'w' of 4 bytes at data offset 18446744073709551584 reaches past"),
            0u);
  EXPECT_EQ(GgufText(1, 0)
                .tensor("w", {uint64_t{1} << 62, 4}, 0, 0)
                .data(64)
                .error()
                .find("the size of tensor 'w' overflows"),
            0u);
  EXPECT_EQ(GgufText(1, 0)
                .tensor("w", {1, 1, 1, 1, 1}, 0, 0)
                .data(64)
                .error()
                .find("tensor 'w' has 5 dimensions; at most 4 are possible"),
            0u);
  EXPECT_EQ(GgufText(2, 0).tensor("a", {9}, 0, 0).tensor("b", {1}, 0, 32).data(64).error(),
            "tensors 'a' and 'b' overlap (at byte 57)");
  // An empty tensor takes no bytes, wherever it is said to be.
  EXPECT_EQ(GgufText(2, 0).tensor("a", {9}, 0, 0).tensor("b", {0}, 0, 32).data(64).error(),
            "no error");
}

TEST(HostileGguf, BlockFormatsAreListedByTheirOwnName) {
  const GgufText file = GgufText(1, 0).tensor("w", {64, 2}, 2, 0).data(72);
  const auto bytes = exact(file.out);
  const auto parsed = read_gguf(bytes);
  ASSERT_TRUE(parsed) << parsed.error().text();
  EXPECT_EQ(parsed->entries[0].type_name, "Q4_0");
  EXPECT_FALSE(parsed->entries[0].element);
  EXPECT_EQ(parsed->entries[0].dims, (std::vector<uint64_t>{2, 64}));
  EXPECT_EQ(parsed->entries[0].bytes.size(), 72u);
  EXPECT_EQ(
      GgufText(1, 0)
          .tensor("w", {2, 64}, 2, 0)
          .data(72)
          .error()
          .find("tensor 'w': an innermost dimension of 2 is not a whole number of Q4_0 blocks"),
      0u);
}

// --- safetensors ---------------------------------------------------------------------------------

std::string safetensors(std::string_view header, size_t data) {
  std::string out;
  append_bytes(out, static_cast<uint64_t>(header.size()));
  return out + std::string(header) + std::string(data, '\1');
}
std::string safetensors_error(std::string_view header, size_t data = 8) {
  return error_text(read_safetensors(exact(safetensors(header, data))));
}

TEST(HostileSafetensors, Accepts) {
  EXPECT_EQ(safetensors_error("{}  \n", 0), "no error");
  EXPECT_EQ(safetensors_error(R"({"__metadata__":{"format":"pt"},)"
                              R"("w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})"),
            "no error");
  EXPECT_EQ(safetensors_error(R"({"w":{"data_offsets":[0,8],"shape":[],"dtype":"C64"}})"),
            "no error");
  EXPECT_EQ(safetensors_error(R"({"w":{"dtype":"F4","shape":[16],"data_offsets":[0,8]}})"),
            "no error");
}

TEST(HostileSafetensors, Ranges) {
  EXPECT_EQ(safetensors_error(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})"),
            "tensor 'w': data_offsets [8, 0] are not a range of the 8 bytes of data");
  EXPECT_EQ(safetensors_error(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})"),
            "tensor 'w': data_offsets [0, 12] are not a range of the 8 bytes of data");
  EXPECT_EQ(safetensors_error(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}})"),
            "tensor 'w' has 8 bytes of data but its type and shape need 4");
  EXPECT_EQ(safetensors_error(
                R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}})"),
            "the size of tensor 'w' overflows");
  EXPECT_EQ(safetensors_error(R"({"w":{"dtype":"F4","shape":[1],"data_offsets":[0,8]}})"),
            "tensor 'w' is not a whole number of bytes");
}

TEST(HostileSafetensors, Coverage) {
  EXPECT_EQ(safetensors_error(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                              R"("b":{"dtype":"I8","shape":[6],"data_offsets":[2,8]}})"),
            "tensor 'b' overlaps the one before it (at byte 115)");
  EXPECT_EQ(safetensors_error(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[4,8]}})"),
            "there is a hole of 4 bytes before tensor 'a' (at byte 61)");
  EXPECT_EQ(safetensors_error(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]}})"),
            "4 bytes of data belong to no tensor (at byte 65)");
}

TEST(HostileSafetensors, Headers) {
  EXPECT_EQ(safetensors_error("[]"), "the header is an array, not an object");
  EXPECT_EQ(safetensors_error("{"), "the header is not valid JSON (at byte 9)");
  EXPECT_EQ(safetensors_error("{}{}"), "the header is not valid JSON (at byte 10)");
  EXPECT_EQ(safetensors_error(R"({"w":3})"),
            "tensor 'w': a number stands where it does not belong");
  EXPECT_EQ(safetensors_error(R"({"w":{}})"), "tensor 'w': dtype is missing");
  EXPECT_EQ(safetensors_error(R"({"w":{"dtype":"F32"}})"), "tensor 'w': shape is missing");
  EXPECT_EQ(safetensors_error(R"({"w":{"dtype":"F32","shape":[2]}})"),
            "tensor 'w': data_offsets is not a pair of numbers");
  EXPECT_EQ(safetensors_error(R"({"w":{"dtype":"Q4"}})"), "tensor 'w': unknown dtype 'Q4'");
  EXPECT_EQ(safetensors_error(R"({"w":{"shape":[-1]}})"),
            "tensor 'w': a negative number stands where it does not belong");
  EXPECT_EQ(safetensors_error(R"({"w":{"shape":[[1]]}})"),
            "tensor 'w': an array stands where it does not belong");
  EXPECT_EQ(safetensors_error(R"({"w":{"shape":[],"shape":[]}})"),
            "tensor 'w': shape occurs twice");
  EXPECT_EQ(safetensors_error(R"({"w":{"scale":1}})"), "tensor 'w': unknown key 'scale'");
  EXPECT_EQ(safetensors_error(R"({"__metadata__":{"a":1}})"),
            "a metadata value is a number, not a string");
  EXPECT_EQ(safetensors_error(R"({"__metadata__":1})"), "__metadata__ is a number, not an object");
  EXPECT_EQ(safetensors_error(R"({"w":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},"w":{}})"),
            "tensor 'w' occurs twice");
  EXPECT_EQ(safetensors_error(std::string(100'000, '[')).find("the header is an array"), 0u);
}

TEST(HostileSafetensors, HeaderLength) {
  std::string text = safetensors("{}", 0);
  text[7] = '\x7f';
  EXPECT_EQ(error_text(read_safetensors(exact(text))).find("a header of 9151314442816847874 bytes"),
            0u);
  text = safetensors("{}", 0);
  text[0] = 3;
  EXPECT_EQ(error_text(read_safetensors(exact(text))),
            "a header of 3 bytes does not fit in the file (at byte 0)");
}

// --- npy -----------------------------------------------------------------------------------------

std::string npy(std::string_view header, size_t data, char major = 1) {
  std::string out = "\x93NUMPY";
  out += major;
  out += '\0';
  if (major == 1) {
    append_bytes(out, static_cast<uint16_t>(header.size()));
  } else {
    append_bytes(out, static_cast<uint32_t>(header.size()));
  }
  return out + std::string(header) + std::string(data, '\1');
}
std::string npy_error(std::string_view header, size_t data = 8, char major = 1) {
  return error_text(read_npy(exact(npy(header, data, major))));
}

TEST(HostileNpy, Accepts) {
  for (const char major : {'\1', '\2', '\3'}) {
    EXPECT_EQ(npy_error("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 8, major),
              "no error");
  }
  EXPECT_EQ(npy_error("{\"shape\":(),\"fortran_order\":False,\"descr\":\"<i8\"}"), "no error");
  EXPECT_EQ(npy_error("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4)}"), "no error");
}

TEST(HostileNpy, Refuses) {
  const auto error = [](std::string_view descr, std::string_view order, std::string_view shape) {
    return npy_error("{'descr': " + std::string(descr) + ", 'fortran_order': " +
                     std::string(order) + ", 'shape': " + std::string(shape) + "}");
  };
  EXPECT_EQ(error("'<f4'", "True", "(2,)").find("the array is in Fortran order; write it in C"),
            0u);
  EXPECT_EQ(error("'>f4'", "False", "(2,)").find("big-endian elements '>f4' are not supported"),
            0u);
  EXPECT_EQ(error("'<c8'", "False", "(2,)").find("element type '<c8' is not supported"), 0u);
  EXPECT_EQ(error("'|f4'", "False", "(2,)").find("element type '|f4' is not supported"), 0u);
  EXPECT_EQ(error("[('a', '<f4')]", "False", "(2,)").find("arrays of records are not supported"),
            0u);
  EXPECT_EQ(error("'<f4'", "0", "(2,)").find("malformed header: fortran_order is neither"), 0u);
  EXPECT_EQ(error("'<f4'", "False", "(-2,)").find("malformed header: a dimension is missing"), 0u);
  EXPECT_EQ(error("'<f4'", "False", "(99999999999999999999,)").find("a dimension overflows"), 0u);
  EXPECT_EQ(error("'<f4'", "False", "(4294967296, 4294967296)").find("the size of the array over"),
            0u);
  EXPECT_EQ(
      error("'<f4'", "False", "(3,)").find("8 bytes of data follow the header but 3xf32 needs 12"),
      0u);
  EXPECT_EQ(
      error("'<f4'", "False", "(1,)").find("8 bytes of data follow the header but 1xf32 needs 4"),
      0u);
  EXPECT_EQ(error("'<f4'", "False, 'x': 1", "(2,)").find("unknown header key 'x'"), 0u);
  EXPECT_EQ(error("'<f4', 'descr': '<f4'", "False", "(2,)").find("header key 'descr' occurs twice"),
            0u);
  EXPECT_EQ(npy_error("{'descr': '<f4'}").find("the header lacks one of"), 0u);
  EXPECT_EQ(npy_error("{}", 8, 4), "npy version 4.0 is not supported; 1.0 to 3.0 are (at byte 6)");
}

}  // namespace
}  // namespace loom
