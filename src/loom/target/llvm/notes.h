// What code generation notices on its way, for compile reports.
//
// Nothing here changes the code: with and without notes the same bytes come out.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "loom/diag/diagnostic.h"

namespace loom {

struct CodegenNotes {
  // What a pass of LLVM says about a function, or a loop of it.
  struct Remark {
    enum class Kind : uint8_t { Passed, Missed, Analysis };
    Kind kind = Kind::Analysis;
    std::string pass;      // "loop-vectorize"
    std::string name;      // "Vectorized"
    std::string function;  // symbol
    std::string file;      // empty without a place
    uint32_t line = 0;
    uint32_t column = 0;
    std::string text;
    std::vector<std::pair<std::string, std::string>> values;  // by name, in the text's order
  };
  // A fact about the program that code generation was given, or missed.
  struct Fact {
    std::string function;  // symbol
    Location place;
    std::string fact;
    std::string subject;
    std::string effect;  // what a missing one costs
    friend bool operator==(const Fact&, const Fact&) = default;
  };
  // Of the code of one kernel, without functions that are called out of line.
  struct Storage {
    std::string function;          // symbol
    uint64_t private_bytes = 0;    // of a workitem
    uint64_t workgroup_bytes = 0;  // that the workitems of a workgroup share
  };
  struct Step {
    std::string name;
    double seconds = 0;
  };

  std::vector<Remark> remarks;
  std::vector<Fact> used;
  std::vector<Fact> missing;
  std::vector<Step> steps;
  std::vector<Storage> storage;
  bool counts_spills = false;  // the register allocator that ran says what it spilled
};

}  // namespace loom
