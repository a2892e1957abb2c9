// The head of a segment: strings, files, operation kinds, value numbering, types and attributes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "loom/bytecode/coding.h"
#include "loom/ir/module.h"

namespace loom {

// A type or an attribute. The numbers of the values it mentions are mentions[begin, end).
struct SegmentConstant {
  bool is_type = false;
  uint8_t depth = 0;  // of nested attributes
  uint32_t mention_begin = 0;
  uint32_t mention_end = 0;
  TypeId type;
  AttrId attr;
};

// Reads the head. Values are numbered outer ones first, then in the order in which the operations
// create them, so that a type can name a value before it exists. Everything interned here is valid
// once the operations have created exactly `total_values - outer.size()` values.
class SegmentTables {
 public:
  SegmentTables(Module& target, ByteReader& reader, std::span<const ValueId> outer_values)
      : module(target), in(reader), outer(outer_values) {}

  bool read();

  ValueId value(uint32_t number) const {
    return number < outer.size() ? outer[number] : ValueId(first_value + number - outer.size());
  }
  std::span<const uint32_t> mentioned(const SegmentConstant& constant) const {
    return {mentions.data() + constant.mention_begin,
            constant.mention_end - constant.mention_begin};
  }
  StringId read_string();
  // Zero stands for none.
  StringId read_optional_string();
  const SegmentConstant& read_type_ref();

  Module& module;
  ByteReader& in;
  const std::span<const ValueId> outer;
  std::vector<StringId> strings;
  std::vector<FileId> files;
  std::vector<OpKind> kinds;
  std::vector<SegmentConstant> constants;
  std::vector<uint32_t> mentions;
  uint32_t total_values = 0;
  size_t first_value = 0;

 private:
  void read_strings();
  void read_files();
  void read_kinds();
  void read_constants();
  void read_scalar(SegmentConstant& out);
  void read_opaque(SegmentConstant& out);
  void read_shaped(SegmentConstant& out);
  void read_attr(AttrKind kind, SegmentConstant& out);
  void read_entries(AttrKind kind, SegmentConstant& out, std::vector<DictEntry>& entries);
  void read_predicates(std::vector<Predicate>& list);
  ValueId mention(uint64_t number);
  const SegmentConstant* earlier(bool is_type);
};

}  // namespace loom
