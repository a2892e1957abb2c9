// Arrays described in one word each, as `loom-weights make` takes them:
//
//   NAME=TYPE:SPEC    or NAME=@FILE.npy, which takes the type from the file
//
//   1.5                  every element is this value
//   iota:START:STEP      element i is START + i * STEP
//   random:SEED:LO:HI    element i is drawn from LO to HI by counter, see below
//   @FILE.npy            the elements of a file of exactly this type
//
// NAME may hold ranges: `blk.{0..127}.weight` stands for 128 arrays, several ranges for every
// combination, the last one fastest. The arrays of one word share one counter i: it runs through
// the first array, goes on in the second, and so on.
//
// random mixes x = SEED + (i + 1) * 0x9e3779b97f4a7c15 (modulo 2^64) with the finalizer of
// SplitMix64: x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9; x = (x ^ x >> 27) * 0x94d049bb133111eb;
// x = x ^ x >> 31. A float is LO + (HI - LO) * (x >> 11) / 2^53 in double arithmetic, rounded once
// to the element type; an integer is LO + x mod (HI - LO + 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/diag/diagnostic.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace loom {

// The part of `random` that does not depend on the element type.
uint64_t random_word(uint64_t seed, uint64_t counter);

struct ArrayRecipe {
  enum class Kind : uint8_t { Value, Iota, Random, File };
  std::string pattern;            // of the name; empty when none was given
  std::optional<ArrayType> type;  // nothing: the file decides
  Kind kind = Kind::Value;
  std::string literal;  // Value: the value; File: the path
  uint64_t seed = 0;    // Random
  std::string first;    // Iota: START; Random: LO
  std::string second;   // Iota: STEP; Random: HI
};

// The error says what is wrong with the word, in a form fit for a usage message.
std::expected<ArrayRecipe, std::string> parse_recipe(std::string_view word);

// All names that a pattern stands for: itself when it holds no range.
std::expected<std::vector<std::string>, std::string> expand_pattern(std::string_view pattern);

// Arrays made from recipes, ready to be written. Owns their bytes.
class GeneratedArrays {
 public:
  // The error is one of the word's; what is wrong with a file is reported and leaves arrays out.
  std::expected<void, std::string> add(const ArrayRecipe& recipe, Diagnostics& diagnostics);
  std::span<const ParameterSource> sources() const { return sources_; }

 private:
  std::vector<ParameterSource> sources_;
  std::deque<std::vector<std::byte>> storage_;
  std::deque<ArrayFile> files_;
  uint64_t total_ = 0;
};

}  // namespace loom
