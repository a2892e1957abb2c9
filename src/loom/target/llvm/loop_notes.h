// What became of the loops of a function.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loom/target/llvm/notes.h"

namespace loom {

struct LoopDecision {
  std::string place;      // file:line:column; empty where the loop has no source
  std::string transform;  // "vectorize", "unroll" or "pipeline"
  bool done = false;
  std::string detail;  // how, or why not
};

// "file:line:column", or "" without a line.
std::string place_text(std::string_view file, uint32_t line, uint32_t column);

// One decision for each loop and transform, in the order in which they were taken; of several
// about the same loop (its remainder is tried again) the one that succeeded counts.
std::vector<LoopDecision> loop_decisions(const CodegenNotes& notes, std::string_view function);

}  // namespace loom
