// What is known about storage: which root a buffer or view lies in, where, and how aligned.
#pragma once

#include <optional>

#include "loom/pass/rewriter.h"

namespace loom {

struct StorageFacts {
  // The argument or allocation that the storage belongs to; invalid when it is not one value.
  ValueId root;
  // The result of `buffer.assume.noalias` that the storage was reached through; invalid when none.
  ValueId scope;
  bool fresh = false;     // the root is an allocation of this body
  bool nullable = true;   // the root may be null
  bool readonly = false;  // nothing writes the root while the kernel runs
  MemorySpace space = MemorySpace::Unknown;
  IntFacts root_bytes = IntFacts::range(0, std::numeric_limits<int64_t>::max());
  IntFacts offset = IntFacts::exactly(0);  // of the first byte, from the start of the root
  // Of a view: the bytes from its first to behind its last element.
  IntFacts bytes = IntFacts::range(0, std::numeric_limits<int64_t>::max());
  // Of a view: its rows follow one another without gaps.
  bool compact = true;
  uint64_t alignment = 1;  // of the first byte's address; a power of two
};

// Of a buffer or view, from what the rewriter knows where it stands now. Follows at most a few
// dozen operations; what lies behind them is unknown.
StorageFacts storage_facts(const Rewriter& rewriter, ValueId value, bool in_kernel);

// Whether an access inside `a` can touch a byte that one inside `b` touches, when one of them
// writes. False is a proof, from roots, promises, memory spaces and byte ranges.
bool may_overlap(const StorageFacts& a, const StorageFacts& b);

// The extent of one axis.
IntFacts extent_facts(const Rewriter& rewriter, TypeId shaped, unsigned axis);

}  // namespace loom
