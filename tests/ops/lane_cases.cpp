// Vectors of one lane, which LLVM takes apart in ways of its own, and masks of ranges.
#include "cases.h"

namespace loom::ops {
namespace {

constexpr std::string_view kIntegers[] = {"i1", "i8", "i16", "i32", "i64"};

// One number of a float format to every width of integer and back.
Case converted(std::string_view format) {
  const ScalarKind kind = *scalar_from_name(format);
  constexpr LoomDispatchShape kEight = {{1, 1, 1}, {8, 1, 1}};
  std::string body = fmt::format(
      "  %w = buffer.view %b0[%base] : buffer -> view<8x{0}>\n"
      "  %x = vector.load %w[%i] : view<8x{0}> -> vector<1x{0}>\n",
      format);
  std::vector<Buffer> buffers = {special_floats(kind, 8, 1)};
  for (const std::string_view integer : kIntegers) {
    for (const std::string_view sign : {"s", "u"}) {
      const auto at = static_cast<unsigned>(buffers.size());
      body += fmt::format(
          "  %v{0} = buffer.view %b{0}[%base] : buffer -> view<8x{2}>\n"
          "  %w{0} = buffer.view %b{1}[%base] : buffer -> view<8x{3}>\n"
          "  %n{0} = vector.fpto{4}i %x : vector<1x{3}> to vector<1x{2}>\n"
          "  %f{0} = vector.{4}itofp %n{0} : vector<1x{2}> to vector<1x{3}>\n"
          "  vector.store %n{0}, %v{0}[%i] : vector<1x{2}>, view<8x{2}>\n"
          "  vector.store %f{0}, %w{0}[%i] : vector<1x{3}>, view<8x{3}>\n",
          at, at + 1, integer, format, sign);
      buffers.push_back(zeros(*scalar_from_name(integer), 8));
      buffers.push_back(zeros(kind, 8));
    }
  }
  const auto count = static_cast<unsigned>(buffers.size());
  return {fmt::format("one lane of {} and integers", format),
          kernel_text(count, body, kEight),
          std::move(buffers),
          kEight,
          {}};
}

// Masks of ranges whose lanes would wrap, by a step that is known and by one that is not.
Case ranges(std::string_view type) {
  const ScalarKind kind = *scalar_from_name(type);
  const std::string constant = is_address(kind) ? "index.constant" : "scalar.constant";
  std::string body = fmt::format(
      "  %v = buffer.view %b0[%base] : buffer -> view<5x3x{0}>\n"
      "  %w = buffer.view %b1[%base] : buffer -> view<5x40xi1>\n"
      "  %one = {1} 1 : {0}\n"
      "  %lo = view.load %v[%i, 0] : view<5x3x{0}> -> {0}\n"
      "  %hi = view.load %v[%i, 1] : view<5x3x{0}> -> {0}\n"
      "  %step = view.load %v[%i, 2] : view<5x3x{0}> -> {0}\n"
      "  %near = vector.mask.range [%lo to %hi step %one] : {0} -> vector<20xi1>\n"
      "  %far = vector.mask.range [%lo to %hi step %step] : {0} -> vector<20xi1>\n"
      "  vector.store %near, %w[%i, 0] : vector<20xi1>, view<5x40xi1>\n"
      "  vector.store %far, %w[%i, 20] : vector<20xi1>, view<5x40xi1>\n",
      type, constant);
  const auto most = static_cast<int64_t>((uint64_t{1} << (scalar_bits(kind) - 1)) - 1);
  const int64_t bounds[] = {most - 6, most,     3, -most - 1, most, most / 3, -most, 5,
                            -1,       most - 1, 0, most,      2,    9,        -2};
  Buffer numbers = zeros(kind, std::size(bounds));
  const size_t width = scalar_bytes(kind);
  for (size_t i = 0; i < std::size(bounds); ++i) {
    std::memcpy(numbers.bytes.data() + i * width, &bounds[i], width);
  }
  constexpr LoomDispatchShape kFive = {{1, 1, 1}, {5, 1, 1}};
  return {fmt::format("masks of ranges of {}", type),
          kernel_text(2, body, kFive),
          {std::move(numbers), zeros(ScalarKind::I1, 5 * 40)},
          kFive,
          {}};
}

}  // namespace

std::vector<Case> lane_cases() {
  std::vector<Case> cases;
  for (const std::string_view format : {"f8E4M3", "f8E5M2", "f16", "bf16", "f32", "f64"}) {
    cases.push_back(converted(format));
  }
  for (const std::string_view type : {"i8", "i16", "i32", "i64", "index"}) {
    cases.push_back(ranges(type));
  }
  return cases;
}

}  // namespace loom::ops
