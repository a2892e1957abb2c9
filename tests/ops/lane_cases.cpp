// Vectors of one lane, which LLVM takes apart in ways of its own.
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

}  // namespace

std::vector<Case> lane_cases() {
  std::vector<Case> cases;
  for (const std::string_view format : {"f8E4M3", "f8E5M2", "f16", "bf16", "f32", "f64"}) {
    cases.push_back(converted(format));
  }
  return cases;
}

}  // namespace loom::ops
