// A segment: one list of operations with the strings, types and attributes it needs.
//
// A file has one segment for the module and one for each device body; the layout is in README.md.
// A segment stands alone except for the values of the signature around it, so a body can be copied
// between files without being opened.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/ir/module.h"

namespace loom {

// The region of an operation that is encoded in a segment of its own; -1 when there is none.
int separate_region(OpKind kind);

// What a signature region defines: its arguments, then the extents that their types name, in order
// of first mention. These are the values that a separate body starts with.
std::vector<ValueId> signature_values(const Module& module, RegionId region);

// Encodes segments of one module; tables are reused between them.
class SegmentWriter {
 public:
  // As WriteOptions say.
  SegmentWriter(const Module& module, bool strip, bool keep_check_places);
  ~SegmentWriter();
  // `outer` are the values that the operations may use besides their own.
  std::string encode(RegionId region, std::span<const ValueId> outer);
  // The operations whose separate region was left out, in order, since the last call.
  std::vector<OpId> take_separate();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Appends the operations of a segment to `region`. On failure returns the reason (a literal) and
// leaves the region empty; null on success. `separate` receives operations whose separate region is
// still to be read, in order; null where none may occur.
const char* decode_segment(Module& module, RegionId region, std::span<const ValueId> outer,
                           std::string_view bytes, std::vector<OpId>* separate);

}  // namespace loom
