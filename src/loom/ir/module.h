// The module: stores of operations, values and regions, named by typed 32-bit ids.
//
// An operation has operands, results, attributes and regions. A region is one list of operations
// with arguments (control flow is structured, so there are no basic blocks). What a kind of
// operation may hold is said by its row in the dialect tables, not here.
//
//   module
//     body region ── op ── op ── ...             symbol-defining operations
//                     └─ region ── op ── ...     a signature's arguments are the region's arguments
//
// A signature-only region (of a declaration, or of named function results) holds arguments and
// never operations; `Region::has_body` tells.
//
// Ids stay valid until the module dies; an erased operation's id is not reused. References returned
// by op(), value() and region() are invalidated by creating more of the same. Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "loom/base/id.h"
#include "loom/base/interner.h"
#include "loom/diag/diagnostic.h"
#include "loom/ir/attr.h"
#include "loom/ir/type.h"

namespace loom {

using OpId = Id<struct OpTag>;
using RegionId = Id<struct RegionTag>;

// Enumerators are in dialect/op_kind.h; this room only stores the number.
enum class OpKind : uint16_t;

struct Op {
  OpKind kind{};
  uint16_t result_count = 0;
  uint16_t region_count = 0;
  uint8_t attr_count = 0;
  uint8_t group_count : 7 = 0;  // groups with stored sizes; 0 where every operand is single
  bool erased : 1 = false;
  uint32_t operand_begin = 0;
  uint32_t operand_count = 0;
  uint32_t group_begin = 0;
  uint32_t result_begin = 0;  // results have consecutive value ids
  uint32_t attr_begin = 0;
  uint32_t region_begin = 0;  // regions have consecutive ids
  OpId prev;
  OpId next;
  RegionId parent;
};

enum class ValueKind : uint8_t {
  Result,    // `owner` is an OpId index, `index` the result number
  Argument,  // `owner` is a RegionId index, `index` the argument number
  Extent,    // an extent that a signature introduces by naming it; `owner` is a RegionId index
};

struct Value {
  TypeId type;
  StringId name;  // invalid for a value without a source name
  uint32_t owner = 0;
  uint16_t index = 0;
  ValueKind kind = ValueKind::Result;
};

struct Region {
  OpId parent;  // invalid for the module's body
  OpId first;
  OpId last;
  uint32_t arg_begin = 0;
  uint32_t arg_count = 0;
  // Arguments from `arg_split` on belong to the second signature group (the launch bindings of a
  // command program); equal to arg_count where there is one group.
  uint32_t arg_split = 0;
  bool has_body = false;
  // The operations are still encoded in the bytecode this module was read from (bytecode/).
  bool deferred = false;
};

// How a kernel touches the storage of one launch argument.
enum class Access : uint8_t { None, Read, Write, ReadWrite };

// Comments and intentional blank lines around one operation. In `leading` an invalid id is a blank
// line, any other the comment's text after `//`.
struct OpTrivia {
  std::vector<StringId> leading;
  StringId same_line;  // after an operation without regions, or with cases in outer braces
  bool empty() const { return leading.empty() && !same_line.valid(); }
};
struct RegionTrivia {
  StringId after_open;                 // on the line of `{`
  std::vector<StringId> before_close;  // own lines at the end of the region (or of the file)
  StringId after_close;                // on the line of `}`
};

// A region that is still encoded: its place in `Module::backing` and the symbols it mentions.
struct DeferredBody {
  size_t offset = 0;
  size_t size = 0;
  uint64_t hash = 0;  // XXH3 of the encoded bytes
  FileId file;        // the bytecode file, for diagnostics
  std::vector<StringId> references;
};

class Module {
 public:
  // `files` resolves locations; it must outlive the module and may be shared by several.
  explicit Module(SourceFiles& files);
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  StringInterner strings;
  TypeStore types;
  AttrStore attrs;
  std::unordered_map<uint32_t, OpTrivia> op_trivia;          // by OpId index
  std::unordered_map<uint32_t, RegionTrivia> region_trivia;  // by RegionId index
  // Access of each launch argument, by OpId index of the kernel; computed by the verifier or read
  // from the symbol index of bytecode.
  std::unordered_map<uint32_t, std::vector<Access>> access_facets;
  std::string backing;  // bytecode that deferred regions point into
  std::unordered_map<uint32_t, DeferredBody> deferred_bodies;  // by RegionId index

  SourceFiles& files() const { return *files_; }
  RegionId body() const { return RegionId(0u); }

  Op& op(OpId id) { return ops_[id.index()]; }
  const Op& op(OpId id) const { return ops_[id.index()]; }
  Value& value(ValueId id) { return values_[id.index()]; }
  const Value& value(ValueId id) const { return values_[id.index()]; }
  Region& region(RegionId id) { return regions_[id.index()]; }
  const Region& region(RegionId id) const { return regions_[id.index()]; }
  size_t op_count() const { return ops_.size(); }
  size_t value_count() const { return values_.size(); }
  size_t region_count() const { return regions_.size(); }

  Location location(OpId id) const { return locations_[id.index()]; }
  void set_location(OpId id, Location location) { locations_[id.index()] = location; }

  // --- reading an operation ---
  std::span<const ValueId> operands(OpId id) const;
  ValueId operand(OpId id, unsigned i) const { return operands(id)[i]; }
  ValueId result(OpId id, unsigned i = 0) const { return ValueId(op(id).result_begin + i); }
  std::span<const AttrId> attr_ids(OpId id) const;
  bool has_attr(OpId id, unsigned slot) const { return attr_ids(id)[slot].valid(); }
  const Attr& attr(OpId id, unsigned slot) const { return attrs[attr_ids(id)[slot]]; }
  RegionId op_region(OpId id, unsigned i) const { return RegionId(op(id).region_begin + i); }
  std::span<const ValueId> args(RegionId id) const;
  // The first or second signature group of a region's arguments.
  std::span<const ValueId> arg_group(RegionId id, unsigned group) const;
  // Sizes of the operand groups; empty when the row has only single operands.
  std::span<const uint32_t> group_sizes(OpId id) const;
  TypeId type_of(ValueId id) const { return value(id).type; }
  std::string_view name_of(ValueId id) const;
  // The defining operation of a result; invalid for arguments and extents.
  OpId defining_op(ValueId id) const;

  // --- building ---
  struct NewOp {
    OpKind kind{};
    std::span<const ValueId> operands;
    std::span<const uint32_t> groups;  // sizes of operand groups, or empty
    std::span<const TypeId> results;
    std::span<const AttrId> attrs;  // one per attribute slot of the row; invalid when absent
    unsigned regions = 0;
    Location location;
  };
  // Makes room for so many further operations of the usual size.
  void reserve(size_t ops);
  // Creates a detached operation; append or insert it next. Spans may point into this module.
  OpId create(const NewOp& op);
  void append(RegionId region, OpId op);
  void insert_before(OpId place, OpId op);
  // Takes the op out of its region; it can be inserted again.
  void detach(OpId op);
  // Detaches and marks erased. Nested operations are erased with it.
  void erase(OpId op);
  void set_operand(OpId id, unsigned i, ValueId value);
  // Replaces all operands and group sizes.
  void set_operands(OpId id, std::span<const ValueId> values, std::span<const uint32_t> groups);
  void set_attr(OpId id, unsigned slot, AttrId attr);
  // A region that is going to be one of the operation's; until set_regions its number is unknown.
  RegionId create_region(OpId parent);
  // Moves the contents of regions from create_region to new ones, which become the operation's.
  void set_regions(OpId id, std::span<const RegionId> regions);

  // A value that belongs to nothing yet: a signature may mention a name before it is bound.
  ValueId create_value(TypeId type, StringId name);
  // Makes `values` the arguments of the region, taking ownership of each.
  void set_args(RegionId region, std::span<const ValueId> values, uint32_t split);
  ValueId add_arg(RegionId region, TypeId type, StringId name);
  void set_extent_owner(ValueId value, RegionId region);

  // --- symbols ---
  // Registers the op under its name; false when the name is taken (the first one stays).
  bool define_symbol(StringId name, OpId op);
  OpId symbol(StringId name) const;
  OpId symbol(std::string_view name) const { return symbol(strings.find(name)); }
  void forget_symbol(StringId name);

 private:
  SourceFiles* files_;
  std::vector<Op> ops_;
  std::vector<Location> locations_;
  std::vector<Value> values_;
  std::vector<Region> regions_;
  std::vector<ValueId> operand_pool_;
  std::vector<ValueId> arg_pool_;
  std::vector<AttrId> attr_pool_;
  std::vector<uint32_t> group_pool_;
  std::vector<OpId> symbols_;  // by StringId
};

}  // namespace loom
