// What a frozen library universe knows.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "loom/link/link.h"

namespace loom {

struct LibraryIndex::Tables {
  struct Export {
    uint32_t library;
    OpId op;
  };
  std::vector<LinkInput> libraries;
  // By symbol name; the text lives in the libraries' own interners, which do not move it.
  std::unordered_map<std::string_view, std::vector<Export>> exports;
};

}  // namespace loom
