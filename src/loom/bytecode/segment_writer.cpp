#include <filesystem>
#include <unordered_set>
#include <utility>

#include "loom/base/check.h"
#include "loom/bytecode/coding.h"
#include "loom/bytecode/segment.h"
#include "loom/bytecode/segment_format.h"
#include "loom/dialect/op_info.h"

namespace loom {
namespace {

// Numbers by id, filled in as ids are met. Clearing costs what was used.
class LocalTable {
 public:
  static constexpr uint32_t kNone = 0xffffffffu;

  bool has(uint32_t id) const { return find(id) != kNone; }
  uint32_t find(uint32_t id) const { return id < local_.size() ? local_[id] : kNone; }
  void set(uint32_t id, uint32_t number) {
    if (id >= local_.size()) local_.resize(id + size_t{1} + id / 2, kNone);
    local_[id] = number;
    used_.push_back(id);
  }
  // The next number for a new id, the known one for another.
  uint32_t add(uint32_t id) {
    if (const uint32_t known = find(id); known != kNone) return known;
    set(id, static_cast<uint32_t>(used_.size()));
    return static_cast<uint32_t>(used_.size() - 1);
  }
  // Ids in the order in which they were added.
  const std::vector<uint32_t>& used() const { return used_; }
  void clear() {
    for (uint32_t id : used_) local_[id] = kNone;
    used_.clear();
  }

 private:
  std::vector<uint32_t> local_;
  std::vector<uint32_t> used_;
};

bool is_inline(const Module& module, OpId op, unsigned index) {
  return module.region(module.op_region(op, index)).has_body &&
         separate_region(module.op(op).kind) != static_cast<int>(index);
}

}  // namespace

struct SegmentWriter::State {
  State(const Module& source, bool strip_names, bool keep_check_places)
      : module(source), strip(strip_names), check_places(keep_check_places) {}

  uint32_t string(StringId id) { return strings.add(id.index()); }
  uint64_t optional_string(StringId id) { return id.valid() ? string(id) + uint64_t{1} : 0; }
  uint64_t name(StringId id) { return strip ? 0 : optional_string(id); }
  uint32_t value(ValueId id) const {
    const uint32_t number = values.find(id.index());
    LOOM_CHECK(number != LocalTable::kNone, "a segment uses a value that it does not hold");
    return number;
  }
  uint32_t type(TypeId id);
  uint32_t attr(AttrId id);
  void attr_payload(const Attr& attr, ByteWriter& out);
  void predicates(std::span<const Predicate> list, ByteWriter& out);

  void op(OpId id);
  void operands(OpId id, uint32_t next_value);
  void region_head(OpId id, unsigned index);
  void location(Location at);
  void lines(const std::vector<StringId>& lines);
  void region_trivia(RegionId region);
  void body(RegionId region);
  std::string finish(size_t outer) const;
  void clear();

  const Module& module;
  const bool strip;
  const bool check_places;
  LocalTable strings, values, kinds, files;
  LocalTable types, attrs;  // to constant numbers
  ByteWriter constants;
  uint32_t constant_count = 0;
  ByteWriter tree;
  uint32_t last_line = 0;
  std::vector<OpId> separate;
};

uint32_t SegmentWriter::State::type(TypeId id) {
  if (const uint32_t known = types.find(id.index()); known != LocalTable::kNone) return known;
  const Type& type = module.types[id];
  const uint64_t encoding = type.encoding.valid() ? attr(type.encoding) + uint64_t{1} : 0;
  if (type.is_scalar()) {
    constants.varint(kScalarConstant);
    constants.text(scalar_name(type.element));
  } else if (!is_shaped(type.kind)) {
    constants.varint(kOpaqueConstant);
    constants.text(type_kind_name(type.kind));
  } else {
    constants.varint(kShapedConstant);
    constants.text(type_kind_name(type.kind));
    constants.text(scalar_name(type.element));
    constants.varint(type.dims.size());
    for (Dim dim : type.dims) {
      if (dim.is_dynamic()) {
        constants.varint(value(dim.value()) * uint64_t{2} + 1);
      } else {
        constants.varint(static_cast<uint64_t>(dim.extent()) * 2);
      }
    }
    constants.varint(encoding);
    constants.varint(type.encoding_value.valid() ? value(type.encoding_value) + uint64_t{1} : 0);
    constants.varint(type.align);
  }
  types.set(id.index(), constant_count);
  return constant_count++;
}

void SegmentWriter::State::predicates(std::span<const Predicate> list, ByteWriter& out) {
  out.varint(list.size());
  for (const Predicate& predicate : list) {
    out.text(predicate_info(predicate.kind).text);
    for (unsigned i = 0; i < predicate.arity(); ++i) {
      const PredicateArg& arg = predicate.args[i];
      if (arg.is_value()) {
        out.varint(value(arg.value) + uint64_t{1});
      } else {
        out.varint(0);
        out.signed_varint(arg.literal);
      }
    }
  }
}

void SegmentWriter::State::attr_payload(const Attr& a, ByteWriter& out) {
  switch (a.kind) {
    case AttrKind::Unit:
      break;
    case AttrKind::Bool:
    case AttrKind::Integer:
    case AttrKind::Enum:
    case AttrKind::Flags:
      out.signed_varint(a.value());
      break;
    case AttrKind::Float:
      out.word64(a.bits);
      break;
    case AttrKind::String:
    case AttrKind::Symbol:
    case AttrKind::Word:
    case AttrKind::Bytes:
      out.varint(string(a.string()));
      break;
    case AttrKind::IntList:
      out.varint(a.ints.size());
      for (int64_t item : a.ints) out.signed_varint(item);
      break;
    case AttrKind::SymbolList:
      out.varint(a.ints.size());
      for (int64_t item : a.ints) out.varint(string(StringId(static_cast<uint32_t>(item))));
      break;
    case AttrKind::Type:
      out.varint(type(a.type()));
      break;
    case AttrKind::List:
    case AttrKind::Dict:
    case AttrKind::Encoding:
      if (a.kind == AttrKind::Encoding) out.varint(string(a.string()));
      out.varint(a.entries.size());
      for (const DictEntry& entry : a.entries) {
        if (a.kind != AttrKind::List) out.varint(string(entry.key));
        out.varint(attr(entry.value));
      }
      break;
    case AttrKind::Predicates:
      predicates(a.predicates, out);
      break;
  }
}

// A constant follows those it refers to. The nesting of attributes is bounded by their readers.
uint32_t SegmentWriter::State::attr(AttrId id) {
  if (const uint32_t known = attrs.find(id.index()); known != LocalTable::kNone) return known;
  const Attr& a = module.attrs[id];
  ByteWriter payload;
  attr_payload(a, payload);
  constants.varint(kAttrConstant + static_cast<uint64_t>(a.kind));
  constants.raw(payload.bytes());
  attrs.set(id.index(), constant_count);
  return constant_count++;
}

void SegmentWriter::State::location(Location at) {
  tree.varint(files.add(at.file.index()));
  tree.signed_varint(static_cast<int64_t>(at.line) - last_line);
  tree.varint(at.column);
  tree.varint(at.length);
  last_line = at.line;
}

void SegmentWriter::State::lines(const std::vector<StringId>& list) {
  tree.varint(list.size());
  for (StringId line : list) tree.varint(optional_string(line));
}

void SegmentWriter::State::region_trivia(RegionId region) {
  const RegionTrivia& trivia = module.region_trivia.at(region.index());
  tree.varint(optional_string(trivia.after_open));
  lines(trivia.before_close);
  tree.varint(optional_string(trivia.after_close));
}

void SegmentWriter::State::operands(OpId id, uint32_t next_value) {
  const OpInfo& info = op_info(module.op(id).kind);
  if (info.has_groups) {
    for (uint32_t size : module.group_sizes(id)) tree.varint(size);
  }
  for (ValueId operand : module.operands(id)) tree.varint(next_value - value(operand));
}

void SegmentWriter::State::region_head(OpId id, unsigned index) {
  const RegionId region_id = module.op_region(id, index);
  const Region& region = module.region(region_id);
  const bool trivia = !strip && module.region_trivia.contains(region_id.index());
  tree.varint((region.has_body ? kRegionHasBody : 0) | (trivia ? kRegionHasTrivia : 0));
  tree.varint(region.arg_count);
  tree.varint(region.arg_split);
  const std::vector<ValueId> defined = signature_values(module, region_id);
  tree.varint(defined.size() - region.arg_count);
  for (ValueId id_of : defined) {
    tree.varint(type(module.type_of(id_of)));
    tree.varint(name(module.value(id_of).name));
  }
  if (trivia) region_trivia(region_id);
}

void SegmentWriter::State::op(OpId id) {
  const Op& o = module.op(id);
  const OpInfo& info = op_info(o.kind);
  const Location at = module.location(id);
  const bool checks = o.kind == OpKind::KernelAssert || info.dialect == "sanitizer";
  const bool located = (!strip || (check_places && checks)) && at.valid();
  const auto trivia = module.op_trivia.find(id.index());
  const bool commented = !strip && trivia != module.op_trivia.end();
  const auto first_value = static_cast<uint32_t>(values.used().size());
  // Everything the record defines is numbered before its types and attributes mention it.
  for (unsigned i = 0; i < o.result_count; ++i) values.add(module.result(id, i).index());
  for (unsigned i = 0; i < o.region_count; ++i) {
    for (ValueId v : signature_values(module, module.op_region(id, i))) values.add(v.index());
  }
  tree.varint(kinds.add(static_cast<uint32_t>(o.kind)) + uint64_t{1});
  tree.varint((located ? kOpHasLocation : 0) | (commented ? kOpHasTrivia : 0));
  if (located) location(at);
  operands(id, first_value);
  tree.varint(o.result_count);
  for (unsigned i = 0; i < o.result_count; ++i) {
    const Value& result = module.value(module.result(id, i));
    tree.varint(type(result.type));
    tree.varint(name(result.name));
  }
  for (AttrId a : module.attr_ids(id)) tree.varint(a.valid() ? attr(a) + uint64_t{1} : 0);
  if (!info.regions.empty()) tree.varint(o.region_count);
  for (unsigned i = 0; i < o.region_count; ++i) region_head(id, i);
  if (commented) {
    lines(trivia->second.leading);
    tree.varint(optional_string(trivia->second.same_line));
  }
  const int apart = separate_region(o.kind);
  if (apart >= 0 && module.region(module.op_region(id, static_cast<unsigned>(apart))).has_body) {
    separate.push_back(id);
  }
}

void SegmentWriter::State::body(RegionId top) {
  struct Frame {
    OpId owner;
    unsigned region;
    OpId next;
  };
  std::vector<Frame> stack{{OpId(), 0, module.region(top).first}};
  // Moves to the next region of the frame's owner that is written inline, from `from` on.
  const auto enter = [&](Frame& frame, unsigned from) {
    const unsigned count = frame.owner.valid() ? module.op(frame.owner).region_count : 0;
    for (frame.region = from; frame.region < count; ++frame.region) {
      if (!is_inline(module, frame.owner, frame.region)) continue;
      frame.next = module.region(module.op_region(frame.owner, frame.region)).first;
      return true;
    }
    return false;
  };
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (!frame.next.valid()) {
      tree.varint(0);
      if (!enter(frame, frame.region + 1)) stack.pop_back();
      continue;
    }
    const OpId id = frame.next;
    frame.next = module.op(id).next;
    op(id);
    Frame inner{id, 0, OpId()};
    if (enter(inner, 0)) stack.push_back(inner);
  }
}

std::string SegmentWriter::State::finish(size_t outer) const {
  ByteWriter out;
  out.varint(strings.used().size());
  for (uint32_t id : strings.used()) out.text(module.strings.text(StringId(id)));
  out.varint(files.used().size());
  for (uint32_t id : files.used()) {
    const SourceFiles::File& file = module.files().file(FileId(id));
    // Stripped bytes are the same wherever the source lies and whatever else stands in it.
    out.text(strip ? std::filesystem::path(file.path).filename().string() : file.path);
    out.word64(strip ? 0 : file.hash);
  }
  out.varint(kinds.used().size());
  for (uint32_t kind : kinds.used()) out.text(op_info(static_cast<OpKind>(kind)).name);
  out.varint(outer);
  out.varint(values.used().size() - outer);
  out.varint(constant_count);
  out.raw(constants.bytes());
  out.raw(tree.bytes());
  return out.take();
}

void SegmentWriter::State::clear() {
  for (LocalTable* table : {&strings, &values, &kinds, &files, &types, &attrs}) table->clear();
  constants = ByteWriter();
  tree = ByteWriter();
  constant_count = 0;
  last_line = 0;
}

SegmentWriter::SegmentWriter(const Module& module, bool strip, bool keep_check_places)
    : state_(std::make_unique<State>(module, strip, keep_check_places)) {}
SegmentWriter::~SegmentWriter() = default;

std::string SegmentWriter::encode(RegionId region, std::span<const ValueId> outer) {
  State& state = *state_;
  for (ValueId value : outer) state.values.add(value.index());
  const bool trivia = region == state.module.body() && !state.strip &&
                      state.module.region_trivia.contains(region.index());
  state.tree.varint(trivia ? kRegionHasTrivia : 0);
  if (trivia) state.region_trivia(region);
  state.body(region);
  std::string bytes = state.finish(outer.size());
  state.clear();
  return bytes;
}

std::vector<OpId> SegmentWriter::take_separate() { return std::exchange(state_->separate, {}); }

int separate_region(OpKind kind) {
  return kind == OpKind::KernelDef ? static_cast<int>(region_slot(OpKind::KernelDef, "body")) : -1;
}

std::vector<ValueId> signature_values(const Module& module, RegionId region) {
  const auto args = module.args(region);
  std::vector<ValueId> values(args.begin(), args.end());
  std::unordered_set<uint32_t> seen;
  for (ValueId arg : args) {
    if (module.types.is_scalar(module.type_of(arg))) continue;
    for (Dim dim : module.types[module.type_of(arg)].dims) {
      if (!dim.is_dynamic()) continue;
      const Value& extent = module.value(dim.value());
      if (extent.kind != ValueKind::Extent || extent.owner != region.index()) continue;
      if (seen.insert(dim.value().index()).second) values.push_back(dim.value());
    }
  }
  return values;
}

}  // namespace loom
