// What a writer writes, the reader gives back: every format, every element type, random shapes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "loom/runtime/parameters/parameter_file.h"

namespace loom {
namespace {

constexpr FileFormat kFormats[] = {FileFormat::Gguf, FileFormat::Safetensors, FileFormat::Npy};

std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

bool has_type(FileFormat format, ElementType element) {
  const bool is_f8 = element == ElementType::F8E4M3 || element == ElementType::F8E5M2;
  if (format == FileFormat::Safetensors) return true;
  if (format == FileFormat::Npy) return !is_f8 && element != ElementType::BF16;
  return !is_f8 && !is_unsigned(element);
}

struct Arrays {
  std::deque<std::vector<std::byte>> storage;
  std::vector<ParameterSource> sources;

  void add(std::string name, ArrayType type, std::mt19937_64& random) {
    auto& bytes = storage.emplace_back(*type.byte_size());
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    sources.push_back({std::move(name), std::move(type), bytes});
  }
};

void expect_round_trip(FileFormat format, const Arrays& arrays) {
  Diagnostics diagnostics;
  const auto built = build_parameter_file(format, "x.any", arrays.sources, diagnostics);
  ASSERT_TRUE(built) << diagnostics.all()[0].message();
  const auto file = ParameterFile::from_bytes(bytes_of(*built), "dir/x.any", diagnostics);
  ASSERT_TRUE(file) << diagnostics.all()[0].message();
  EXPECT_EQ(file->format(), format);
  ASSERT_EQ(file->entries().size(), arrays.sources.size());
  for (const ParameterSource& source : arrays.sources) {
    const ParameterEntry* entry = file->find(format == FileFormat::Npy ? "x" : source.name);
    ASSERT_NE(entry, nullptr) << source.name;
    EXPECT_EQ(entry->type(), source.type);
    EXPECT_EQ(entry->type_name, element_name(source.type.element));
    ASSERT_EQ(entry->bytes.size(), source.bytes.size());
    EXPECT_TRUE(std::ranges::equal(entry->bytes, source.bytes)) << source.name;
    if (!entry->bytes.empty()) {
      EXPECT_EQ(entry->offset,
                static_cast<uint64_t>(entry->bytes.data() - bytes_of(*built).data()));
    }
    // Relative to the file, which a mapping places at a page.
    EXPECT_EQ(entry->offset % element_size(source.type.element), 0u) << source.name;
  }
  Diagnostics again;
  EXPECT_EQ(build_parameter_file(format, "x.any", arrays.sources, again), built);
}

TEST(RoundTrip, EveryElementType) {
  std::mt19937_64 random(1);
  for (const FileFormat format : kFormats) {
    for (size_t i = 0; i < kElementTypeCount; ++i) {
      const auto element = static_cast<ElementType>(i);
      Arrays arrays;
      arrays.add("weight", {element, {3, 5}}, random);
      if (has_type(format, element)) {
        expect_round_trip(format, arrays);
        continue;
      }
      Diagnostics diagnostics;
      EXPECT_FALSE(build_parameter_file(format, "x.any", arrays.sources, diagnostics));
      ASSERT_EQ(diagnostics.all().size(), 1u);
      EXPECT_EQ(diag_code(diagnostics.all()[0].id), "RUN/008");
      EXPECT_NE(diagnostics.all()[0].message().find(element_name(element)), std::string::npos);
    }
  }
}

TEST(RoundTrip, RandomFiles) {
  std::mt19937_64 random(2);
  for (int round = 0; round < 200; ++round) {
    const FileFormat format = kFormats[round % 3];
    Arrays arrays;
    const size_t count = format == FileFormat::Npy ? 1 : random() % 8;
    while (arrays.sources.size() < count) {
      const auto element = static_cast<ElementType>(random() % kElementTypeCount);
      if (!has_type(format, element)) continue;
      ArrayType type{element, {}};
      for (size_t rank = random() % 5; rank > 0; --rank) type.dims.push_back(random() % 7);
      arrays.add(std::to_string(arrays.sources.size()) + std::string(random() % 90, 'n'), type,
                 random);
    }
    expect_round_trip(format, arrays);
  }
}

TEST(RoundTrip, NamesAreAnyUtf8) {
  std::mt19937_64 random(3);
  for (const FileFormat format : {FileFormat::Gguf, FileFormat::Safetensors}) {
    Arrays arrays;
    for (const char* name : {"", "a\"b\\c", "gewebe.\xc3\xa4.\xf0\x9f\xa7\xb5", "line\nend"}) {
      arrays.add(name, {ElementType::F32, {2}}, random);
    }
    expect_round_trip(format, arrays);
    arrays.add("broken \xff", {ElementType::F32, {2}}, random);
    Diagnostics diagnostics;
    EXPECT_FALSE(build_parameter_file(format, "x.any", arrays.sources, diagnostics));
  }
}

TEST(RoundTrip, EqualNamesAreRefused) {
  std::mt19937_64 random(4);
  for (const FileFormat format : {FileFormat::Gguf, FileFormat::Safetensors}) {
    Arrays arrays;
    arrays.add("w", {ElementType::F32, {2}}, random);
    arrays.add("w", {ElementType::F16, {2}}, random);
    Diagnostics diagnostics;
    EXPECT_FALSE(build_parameter_file(format, "x.any", arrays.sources, diagnostics));
    EXPECT_EQ(diagnostics.all()[0].message(), "cannot build 'x.any': two arrays are named 'w'");
  }
}

TEST(RoundTrip, FormatLimitsAreNamed) {
  std::mt19937_64 random(5);
  Arrays arrays;
  arrays.add("deep", {ElementType::F32, {1, 1, 1, 1, 1}}, random);
  Diagnostics diagnostics;
  EXPECT_FALSE(build_parameter_file(FileFormat::Gguf, "x.gguf", arrays.sources, diagnostics));
  EXPECT_EQ(diagnostics.all()[0].message(),
            "cannot build 'x.gguf': GGUF holds at most 4 dimensions, but 'deep' has 5");
  arrays.add("other", {ElementType::F32, {1}}, random);
  EXPECT_FALSE(build_parameter_file(FileFormat::Npy, "x.npy", arrays.sources, diagnostics));
  EXPECT_EQ(diagnostics.all()[1].message(),
            "cannot build 'x.npy': an npy file holds one array, not 2");
}

}  // namespace
}  // namespace loom
