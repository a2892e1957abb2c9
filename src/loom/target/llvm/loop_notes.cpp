#include "loom/target/llvm/loop_notes.h"

#include <fmt/format.h>

#include <algorithm>

namespace loom {
namespace {

using Remark = CodegenNotes::Remark;

std::string_view value_of(const Remark& remark, std::string_view name) {
  const auto found =
      std::ranges::find(remark.values, name, &decltype(remark.values)::value_type::first);
  return found == remark.values.end() ? std::string_view() : std::string_view(found->second);
}

std::string vectorize_detail(const Remark& remark) {
  if (remark.kind == Remark::Kind::Passed) {
    const std::string_view width = value_of(remark, "VectorizationFactor");
    const std::string_view copies = value_of(remark, "InterleaveCount");
    if (width.empty()) return fmt::format("interleaved {} times", copies);
    return fmt::format("{} lanes, interleaved {} times", width, copies);
  }
  // "loop not vectorized: why"; the remark that ends the attempt gives no reason.
  const size_t colon = remark.text.find(": ");
  return colon == std::string::npos ? std::string() : remark.text.substr(colon + 2);
}

}  // namespace

std::string place_text(std::string_view file, uint32_t line, uint32_t column) {
  return line == 0 ? std::string() : fmt::format("{}:{}:{}", file, line, column);
}

std::vector<LoopDecision> loop_decisions(const CodegenNotes& notes, std::string_view function) {
  std::vector<LoopDecision> decisions;
  for (const Remark& remark : notes.remarks) {
    if (remark.function != function) continue;
    if (!remark.pass.starts_with("loop-")) continue;
    const bool vectorize = remark.pass == "loop-vectorize";
    const bool done = remark.kind == Remark::Kind::Passed;
    LoopDecision made{place_text(remark.file, remark.line, remark.column),
                      remark.pass.substr(sizeof "loop-" - 1), done,
                      vectorize ? vectorize_detail(remark) : remark.text};
    const auto earlier = std::ranges::find_if(decisions, [&](const LoopDecision& decision) {
      return decision.place == made.place && decision.transform == made.transform;
    });
    // Loops without a source cannot be told apart; what was done to each of them is kept.
    if (earlier == decisions.end() || (made.place.empty() && (done || earlier->done))) {
      decisions.push_back(std::move(made));
    } else if (done || (!earlier->done && earlier->detail.empty())) {
      *earlier = std::move(made);
    }
  }
  return decisions;
}

}  // namespace loom
