// Storage that passes share between runs, so that a pass allocates nothing per operation.
#pragma once

#include <cstdint>
#include <vector>

#include "loom/dialect/numeric.h"
#include "loom/facts/int_facts.h"
#include "loom/ir/module.h"

namespace loom {

// A value, or a constant that may have no operation yet.
class Ref {
 public:
  constexpr Ref() = default;
  static Ref value(ValueId id) { return Ref(id.index()); }
  static constexpr Ref constant(uint32_t pool_index) { return Ref(pool_index | kConstantBit); }

  constexpr bool valid() const { return raw_ != kNone; }
  constexpr bool is_constant() const { return raw_ != kNone && (raw_ & kConstantBit) != 0; }
  bool is_value() const { return (raw_ & kConstantBit) == 0; }
  ValueId value_id() const { return ValueId(raw_); }
  uint32_t constant_index() const { return raw_ & ~kConstantBit; }
  friend constexpr bool operator==(Ref, Ref) = default;

 private:
  static constexpr uint32_t kConstantBit = 0x80000000u;
  static constexpr uint32_t kNone = 0xffffffffu;
  constexpr explicit Ref(uint32_t raw) : raw_(raw) {}
  uint32_t raw_ = kNone;
};

// Dense tables by ValueId or OpId index. Whoever fills an entry logs it, and the end of a pass
// resets what was logged, so that a pass over one root costs nothing for the rest of the module.
class PassWorkspace {
 public:
  struct Constant {
    ScalarValue value;
    ValueId result;  // of its operation; invalid until one is needed
  };

  std::vector<Ref> replacement;  // by value
  std::vector<uint32_t> replaced;
  std::vector<uint32_t> fact_index;  // by value: position in `facts`, 0 when nothing is known
  std::vector<uint32_t> with_facts;
  std::vector<IntFacts> facts;
  std::vector<uint8_t> excluded;  // by value: what a float cannot be (FloatFacts bits)
  std::vector<uint32_t> with_excluded;
  std::vector<uint8_t> in_type;  // by value: some type mentions it
  std::vector<uint32_t> mentioned;

  std::vector<Constant> constants;
  std::vector<uint32_t>
      constant_table;  // open addressing over `constants`; kFree marks a free slot
  static constexpr uint32_t kFree = 0xffffffffu;

  std::vector<uint32_t> uses;  // by value: see Rewriter::single_use
  std::vector<uint32_t> counted;
  std::vector<uint32_t> live;      // by value: epoch in which it was marked
  std::vector<uint8_t> op_effect;  // by op: holds something with an effect
  uint32_t epoch = 0;

  // An operation that later equal ones are replaced by.
  struct Available {
    OpId op;
    uint32_t hash = 0;
  };
  std::vector<Available> cse_table;
  std::vector<Available> cse_log;

  // Scratch lists.
  std::vector<Ref> refs;
  std::vector<ValueId> values;
  std::vector<TypeId> types;
  std::vector<AttrId> attrs;
};

// Grows a dense table to hold `index`.
template <class T>
void reach(std::vector<T>& table, size_t index) {
  if (table.size() <= index) table.resize(index + 1 + index / 2);
}

}  // namespace loom
