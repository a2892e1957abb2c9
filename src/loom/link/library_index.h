// What a frozen library universe knows.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "loom/dialect/op_kind.h"
#include "loom/link/link.h"

namespace loom {

inline uint64_t place_key(uint32_t module, OpId op) {
  return (uint64_t{module} << 32) | op.index();
}

struct LibraryIndex::Tables {
  struct Export {
    uint32_t library;
    OpId op;
  };
  std::vector<LinkInput> libraries;
  // By symbol name; the text lives in the libraries' own interners, which do not move it.
  std::unordered_map<std::string_view, std::vector<Export>> exports;
  // Exported template implementations by family.
  std::unordered_map<std::string_view, std::vector<Export>> implementations;
  // The position of every symbol in its library, by place_key().
  std::unordered_map<uint64_t, uint32_t> places;
};

bool is_implementation(OpKind kind);
// The family that an implementation names.
std::string_view implemented_family(const Module& module, OpId implementation);

}  // namespace loom
