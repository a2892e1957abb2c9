#include <algorithm>
#include <limits>

#include "loom/bytecode/coding.h"
#include "loom/bytecode/segment.h"
#include "loom/bytecode/segment_format.h"
#include "loom/bytecode/segment_tables.h"
#include "loom/bytecode/text_rules.h"
#include "loom/dialect/op_info.h"

namespace loom {
namespace {

// Arguments and results are indexed with 16 bits.
constexpr size_t kMaxPerOp = std::numeric_limits<uint16_t>::max();

// How the text form uses the arguments of one region; a region must hold what the printer, which
// reads the same row, will look for.
struct RegionShape {
  bool has_args = false;
  bool split = false;
  bool induction = false;
  bool key = false;
  int8_t carried = -1;  // operand group that initializes the arguments after the induction variable
};

RegionShape region_shape(const OpInfo& info, unsigned index) {
  RegionShape shape;
  for (const FormatElement& element : info.format) {
    if (element.a != static_cast<int>(index)) continue;
    switch (element.kind) {
      case FormatKind::Signature:
        shape.has_args = true;
        shape.split |= element.b == 1;
        break;
      case FormatKind::ResultSig:
        shape.has_args = true;
        break;
      case FormatKind::InductionArg:
        shape.has_args = shape.induction = true;
        break;
      case FormatKind::IterArgs:
        shape.has_args = true;
        shape.carried = element.b;
        break;
      case FormatKind::BodyArgs:
        shape.has_args = true;
        break;
      case FormatKind::KeyArg:
        shape.has_args = shape.key = true;
        break;
      default:
        break;
    }
  }
  return shape;
}

class SegmentReader {
 public:
  SegmentReader(Module& module, std::string_view bytes, std::span<const ValueId> outer,
                std::vector<OpId>* separate)
      : module_(module),
        in_(bytes),
        tables_(module, in_, outer),
        separate_(separate),
        work_(bytes.size() * 64 + 65536) {}

  const char* read(RegionId top) {
    if (tables_.read()) read_operations(top);
    if (in_.ok() && in_.remaining() != 0) in_.fail("bytes are left over");
    if (in_.ok() && next_value_ != tables_.total_values) in_.fail("a value count is wrong");
    if (!in_.ok()) {
      while (module_.region(top).first.valid()) module_.erase(module_.region(top).first);
    }
    return in_.error();
  }

 private:
  // The values that one signature defines, by number.
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  struct Frame {
    OpId owner;
    unsigned region = 0;
    unsigned region_count = 0;
    Range results;      // of the owner: usable once its regions are done
    size_t ranges = 0;  // where the owner's ranges start in ranges_
    size_t shown = 0;   // where the region's values start in shown_
  };

  void read_operations(RegionId top);
  bool enter(Frame& frame, unsigned from);
  void leave(const Frame& frame);
  OpId read_op(bool module_level, const OpInfo& info);
  void read_operands(const OpInfo& info);
  bool result_count_fits(const OpInfo& info, size_t count) const;
  void read_regions(const OpInfo& info, OpId op, std::span<const uint32_t> attr_numbers);
  Range read_signature(const OpInfo& info, OpId op, unsigned index, uint32_t own_begin);
  void check_shape(const OpInfo& info, OpId op, unsigned index);
  void set_attrs(const OpInfo& info, OpId op, std::span<const uint32_t> numbers, Range own);
  bool attr_fits(const OpInfo& info, OpId op, unsigned slot, const Attr& attr);
  bool operand_places_fit(const OpInfo& info, OpId op, unsigned slot, const Attr& attr) const;
  void add_value(TypeId type, StringId name, std::vector<ValueId>& values);
  Location read_location();
  void read_trivia(OpId op);
  void read_region_trivia(RegionId region);
  StringId read_comment();
  StringId read_value_name();
  void check_visible(const SegmentConstant& constant, Range own);
  void show(Range range) {
    for (uint32_t number = range.begin; number < range.end; ++number) {
      alive_[number] = 1;
      shown_.push_back(number);
    }
  }

  Module& module_;
  ByteReader in_;
  SegmentTables tables_;
  std::vector<OpId>* separate_;
  uint64_t work_;  // what visibility checks may still cost, so that sharing cannot multiply it
  std::vector<uint8_t> alive_;   // by value number: may be used here
  std::vector<uint32_t> shown_;  // those numbers, innermost region last
  std::vector<Range> ranges_;
  uint32_t next_value_ = 0;
  uint32_t results_begin_ = 0;  // of the operation read last
  uint32_t last_line_ = 0;
  std::vector<ValueId> operands_;
  std::vector<uint32_t> groups_;
};

void SegmentReader::read_operations(RegionId top) {
  const bool module_level = top == module_.body();
  alive_.assign(tables_.total_values, 0);
  next_value_ = static_cast<uint32_t>(tables_.outer.size());
  show({0, next_value_});
  const uint64_t flags = in_.varint();
  if (flags != 0 && (flags != kRegionHasTrivia || !module_level)) in_.fail("malformed flags");
  if (flags != 0) read_region_trivia(top);
  std::vector<Frame> stack{{OpId(), 0, 0, {}, 0, 0}};
  while (!stack.empty() && in_.ok()) {
    Frame& frame = stack.back();
    const uint32_t kind = in_.below(tables_.kinds.size() + 1, "an operation kind is out of range");
    if (!in_.ok()) return;
    if (kind == 0) {
      leave(frame);
      if (!enter(frame, frame.region + 1)) {
        ranges_.resize(frame.ranges);
        show(frame.results);
        stack.pop_back();
      }
      continue;
    }
    const RegionId parent =
        frame.owner.valid() ? module_.op_region(frame.owner, frame.region) : top;
    Frame inner{OpId(), 0, 0, {}, ranges_.size(), 0};
    inner.owner = read_op(module_level && !frame.owner.valid(), op_info(tables_.kinds[kind - 1]));
    if (!in_.ok()) return;
    module_.append(parent, inner.owner);
    const Op& op = module_.op(inner.owner);
    inner.region_count = op.region_count;
    inner.results = {results_begin_, results_begin_ + op.result_count};
    if (enter(inner, 0)) {
      stack.push_back(inner);
    } else {
      ranges_.resize(inner.ranges);
      show(inner.results);
    }
  }
}

// Goes to the next region of the frame's owner whose operations follow in this segment.
bool SegmentReader::enter(Frame& frame, unsigned from) {
  for (frame.region = from; frame.region < frame.region_count; ++frame.region) {
    const Region& region = module_.region(module_.op_region(frame.owner, frame.region));
    const int apart = separate_region(module_.op(frame.owner).kind);
    if (!region.has_body || apart == static_cast<int>(frame.region)) continue;
    frame.shown = shown_.size();
    show(ranges_[frame.ranges + frame.region]);
    return true;
  }
  return false;
}

void SegmentReader::leave(const Frame& frame) {
  for (; shown_.size() > frame.shown; shown_.pop_back()) alive_[shown_.back()] = 0;
}

OpId SegmentReader::read_op(bool module_level, const OpInfo& info) {
  if (info.has(trait::Symbol | trait::ModuleLevel) != module_level) {
    in_.fail("an operation stands where it cannot");
    return OpId();
  }
  const uint64_t flags = in_.varint();
  if (flags > (kOpHasLocation | kOpHasTrivia)) in_.fail("malformed flags");
  const Location location = (flags & kOpHasLocation) != 0 ? read_location() : Location();
  read_operands(info);
  const size_t result_count = in_.count(2);
  if (!result_count_fits(info, result_count)) in_.fail("a result count is wrong");
  if (!in_.ok()) return OpId();
  const Range results{next_value_, static_cast<uint32_t>(next_value_ + result_count)};
  if (results.end > tables_.total_values) in_.fail("a value count is wrong");
  std::vector<TypeId> types;
  std::vector<StringId> names;
  for (size_t i = 0; i < result_count && in_.ok(); ++i) {
    const SegmentConstant& type = tables_.read_type_ref();
    check_visible(type, results);
    types.push_back(type.type);
    names.push_back(read_value_name());
  }
  std::vector<uint32_t> attr_numbers(info.attrs.size());
  for (uint32_t& number : attr_numbers) {
    number = in_.below(tables_.constants.size() + 1, "an attribute number is out of range");
  }
  const size_t region_count = info.regions.empty() ? 0
                              : info.repeats_regions()
                                  ? in_.count(1)
                                  : in_.below(info.regions.size() + 1, "a region count is wrong");
  if (region_count > kMaxPerOp) in_.fail("a region count is wrong");
  if (!in_.ok()) return OpId();
  const std::vector<AttrId> attrs(info.attrs.size());
  const OpId op = module_.create({.kind = info.kind,
                                  .operands = operands_,
                                  .groups = groups_,
                                  .results = types,
                                  .attrs = attrs,
                                  .regions = static_cast<unsigned>(region_count),
                                  .location = location});
  for (unsigned i = 0; i < result_count; ++i) {
    module_.value(module_.result(op, i)).name = names[i];
  }
  results_begin_ = results.begin;
  next_value_ = results.end;
  read_regions(info, op, attr_numbers);
  if (in_.ok() && (flags & kOpHasTrivia) != 0) read_trivia(op);
  return op;
}

void SegmentReader::read_operands(const OpInfo& info) {
  operands_.clear();
  groups_.clear();
  uint64_t count = info.operands.size();
  if (info.has_groups) {
    count = 0;
    for (const OperandSpec& spec : info.operands) {
      const size_t size = in_.count(1);
      if ((spec.arity == Arity::Single && size != 1) ||
          (spec.arity == Arity::Optional && size > 1)) {
        in_.fail("an operand count is wrong");
      }
      groups_.push_back(static_cast<uint32_t>(size));
      count += size;
    }
  }
  if (count > in_.remaining()) in_.fail("a count is larger than the file");
  for (uint64_t i = 0; i < count && in_.ok(); ++i) {
    const uint64_t distance = in_.varint();
    if (distance == 0 || distance > next_value_ || alive_[next_value_ - distance] == 0) {
      in_.fail("an operand is not visible where it is used");
      return;
    }
    operands_.push_back(tables_.value(next_value_ - static_cast<uint32_t>(distance)));
  }
}

bool SegmentReader::result_count_fits(const OpInfo& info, size_t count) const {
  size_t least = 0;
  size_t most = 0;
  for (const ResultSpec& spec : info.results) {
    least += spec.arity == Arity::Single ? 1 : 0;
    most += spec.arity == Arity::Variadic ? kMaxPerOp : 1;
  }
  return count >= least && count <= std::min(most, kMaxPerOp);
}

void SegmentReader::read_regions(const OpInfo& info, OpId op,
                                 std::span<const uint32_t> attr_numbers) {
  const uint32_t own_begin = next_value_;
  for (unsigned i = 0; i < module_.op(op).region_count && in_.ok(); ++i) {
    ranges_.push_back(read_signature(info, op, i, own_begin));
  }
  const size_t fixed = info.regions.size() - (info.repeats_regions() ? 1 : 0);
  if (info.repeats_regions() && module_.op(op).region_count < fixed) {
    in_.fail("a region count is wrong");
  }
  for (size_t i = module_.op(op).region_count; i < fixed; ++i) {
    if (!info.regions[i].optional) in_.fail("a region count is wrong");
  }
  if (in_.ok()) set_attrs(info, op, attr_numbers, {own_begin, next_value_});
  const int apart = separate_region(info.kind);
  if (!in_.ok() || apart < 0) return;
  if (separate_ == nullptr) {
    in_.fail("an operation stands where it cannot");
    return;
  }
  if (module_.region(module_.op_region(op, static_cast<unsigned>(apart))).has_body) {
    separate_->push_back(op);
  }
}

void SegmentReader::add_value(TypeId type, StringId name, std::vector<ValueId>& values) {
  values.push_back(module_.create_value(type, name));
  ++next_value_;
}

SegmentReader::Range SegmentReader::read_signature(const OpInfo& info, OpId op, unsigned index,
                                                   uint32_t own_begin) {
  const RegionSpec& spec = info.region(index, module_.op(op).region_count);
  const RegionId region = module_.op_region(op, index);
  const uint64_t flags = in_.varint();
  if (flags > (kRegionHasBody | kRegionHasTrivia)) in_.fail("malformed flags");
  const bool has_body = (flags & kRegionHasBody) != 0;
  if (spec.signature ? has_body : !has_body && !spec.optional) in_.fail("a body is missing");
  const size_t args = in_.count(2);
  const uint32_t split = in_.below(args + 1, "an argument split is out of range");
  const size_t extents = in_.count(2);
  Range range{next_value_, 0};
  if (args > kMaxPerOp || range.begin + args + extents > tables_.total_values) {
    in_.fail("an argument count is wrong");
  }
  if (!in_.ok()) return range;
  range.end = static_cast<uint32_t>(range.begin + args + extents);
  std::vector<ValueId> values;
  for (size_t i = 0; i < args + extents && in_.ok(); ++i) {
    const SegmentConstant& type = tables_.read_type_ref();
    check_visible(type, {own_begin, range.end});
    if (i >= args && type.type != TypeStore::scalar(ScalarKind::Index)) {
      in_.fail("an extent is not an index");
    }
    add_value(type.type, read_value_name(), values);
  }
  if (!in_.ok()) return range;
  for (size_t i = args; i < values.size(); ++i) module_.set_extent_owner(values[i], region);
  module_.set_args(region, std::span(values).first(args), split);
  module_.region(region).has_body = has_body;
  if (signature_values(module_, region) != values)
    in_.fail("an extent is not part of its signature");
  check_shape(info, op, index);
  if ((flags & kRegionHasTrivia) != 0) read_region_trivia(region);
  return range;
}

void SegmentReader::check_shape(const OpInfo& info, OpId op, unsigned index) {
  const Region& region = module_.region(module_.op_region(op, index));
  const RegionShape shape = region_shape(info, index);
  bool fits = shape.has_args || region.arg_count == 0;
  fits &= shape.split || region.arg_split == region.arg_count;
  if (shape.key) fits &= region.arg_count == 1;
  if (shape.induction || shape.carried >= 0) {
    const size_t carried =
        shape.carried < 0 ? 0
                          : operand_group(module_, op, static_cast<unsigned>(shape.carried)).size();
    fits &= region.arg_count == carried + (shape.induction ? 1 : 0);
  }
  if (!fits) in_.fail("a signature does not fit its operation");
}

bool SegmentReader::operand_places_fit(const OpInfo& info, OpId op, unsigned slot,
                                       const Attr& attr) const {
  for (const FormatElement& element : info.format) {
    if (element.b != static_cast<int>(slot)) continue;
    size_t places = 0;
    if (element.kind == FormatKind::IndexList) {
      places = static_cast<size_t>(std::ranges::count(attr.ints, kDynamicIndex));
    } else if (element.kind == FormatKind::OperandDict) {
      places = attr.entries.size();
    } else if (element.kind == FormatKind::PackList) {
      places = attr.ints.size();
    } else if (element.kind == FormatKind::LookupRows) {
      places = attr.ints.size() * module_.op(op).result_count;
    } else if (element.kind == FormatKind::Cases) {
      if (attr.ints.size() + 1 != module_.op(op).region_count) return false;
      continue;
    } else {
      continue;
    }
    return places == operand_group(module_, op, static_cast<unsigned>(element.a)).size();
  }
  return true;
}

bool SegmentReader::attr_fits(const OpInfo& info, OpId op, unsigned slot, const Attr& attr) {
  const AttrSpec& spec = info.attrs[slot];
  switch (spec.form) {
    case AttrForm::Unit:
      return attr.kind == AttrKind::Unit;
    case AttrForm::Integer:
      return attr.kind == AttrKind::Integer;
    case AttrForm::Float:
      return attr.kind == AttrKind::Float || attr.kind == AttrKind::Integer;
    case AttrForm::Literal:
      return attr.kind == AttrKind::Integer || attr.kind == AttrKind::Float ||
             attr.kind == AttrKind::Bool || attr.kind == AttrKind::Encoding;
    case AttrForm::String:
      return attr.kind == AttrKind::String;
    case AttrForm::Symbol:
    case AttrForm::SymbolDef:
      return attr.kind == AttrKind::Symbol && is_symbol_name(module_.strings.text(attr.string()));
    case AttrForm::Enum:
      return attr.kind == AttrKind::Enum && attr.bits < enum_info(spec.enum_id).cases.size();
    case AttrForm::Flags:
      return attr.kind == AttrKind::Flags &&
             attr.bits >> flag_set_info(spec.flags).flags.size() == 0;
    case AttrForm::IndexList:
      return attr.kind == AttrKind::IntList && operand_places_fit(info, op, slot, attr);
    case AttrForm::IntList:
      return attr.kind == AttrKind::IntList && operand_places_fit(info, op, slot, attr);
    case AttrForm::Predicates:
      return attr.kind == AttrKind::Predicates;
    case AttrForm::Type:
      return attr.kind == AttrKind::Type;
    case AttrForm::Dict:
      return attr.kind == AttrKind::Dict;
    case AttrForm::Keys:
      return attr.kind == AttrKind::Dict && operand_places_fit(info, op, slot, attr);
    case AttrForm::Encoding:
      return attr.kind == AttrKind::Encoding;
    case AttrForm::List:
      return attr.kind == AttrKind::List || attr.kind == AttrKind::IntList ||
             attr.kind == AttrKind::SymbolList;
    case AttrForm::Symbols:
      return attr.kind == AttrKind::SymbolList && std::ranges::all_of(attr.ints, [&](int64_t name) {
               return is_symbol_name(module_.strings.text(StringId(static_cast<uint32_t>(name))));
             });
    case AttrForm::Name: {
      const std::string_view text =
          attr.kind == AttrKind::Word ? module_.strings.text(attr.string()) : std::string_view();
      return is_symbol_name(text) && (text[0] < '0' || text[0] > '9');
    }
  }
  return false;
}

void SegmentReader::set_attrs(const OpInfo& info, OpId op, std::span<const uint32_t> numbers,
                              Range own) {
  for (unsigned slot = 0; slot < numbers.size() && in_.ok(); ++slot) {
    if (numbers[slot] == 0) {
      if (!info.attrs[slot].optional) in_.fail("an attribute is missing");
      continue;
    }
    const SegmentConstant& constant = tables_.constants[numbers[slot] - 1];
    if (constant.is_type || !attr_fits(info, op, slot, module_.attrs[constant.attr])) {
      in_.fail("an attribute does not fit its operation");
      return;
    }
    check_visible(constant, own);
    module_.set_attr(op, slot, constant.attr);
  }
  if (!in_.ok()) return;
  if (const StringId name = symbol_name(module_, op); name.valid()) {
    module_.define_symbol(name, op);
  }
}

void SegmentReader::check_visible(const SegmentConstant& constant, Range own) {
  const auto mentioned = tables_.mentioned(constant);
  if (mentioned.size() > work_) {
    in_.fail("types and predicates mention too many values");
    return;
  }
  work_ -= mentioned.size();
  for (uint32_t number : mentioned) {
    if (alive_[number] == 0 && (number < own.begin || number >= own.end)) {
      in_.fail("a type or predicate names a value that is not visible");
      return;
    }
  }
}

Location SegmentReader::read_location() {
  Location at;
  const uint32_t file = in_.below(tables_.files.size(), "a file number is out of range");
  const int64_t line = in_.signed_varint();
  constexpr size_t kLimit = std::numeric_limits<uint32_t>::max();
  if (line < -int64_t{last_line_} || line > int64_t{kLimit} - last_line_ ||
      line == -int64_t{last_line_}) {
    in_.fail("a line number is out of range");
  }
  at.column = in_.below(kLimit, "a column is out of range");
  at.length = in_.below(kLimit, "a length is out of range");
  if (!in_.ok()) return Location();
  at.file = tables_.files[file];
  at.line = static_cast<uint32_t>(last_line_ + line);
  last_line_ = at.line;
  return at;
}

StringId SegmentReader::read_value_name() {
  const StringId name = tables_.read_optional_string();
  if (name.valid() && !is_value_name(module_.strings.text(name)))
    in_.fail("a value name is malformed");
  return name;
}

StringId SegmentReader::read_comment() {
  const StringId text = tables_.read_optional_string();
  if (text.valid() && !is_comment(module_.strings.text(text))) in_.fail("a comment is malformed");
  return text;
}

void SegmentReader::read_trivia(OpId op) {
  OpTrivia trivia;
  trivia.leading.resize(in_.count(1));
  for (StringId& line : trivia.leading) line = read_comment();
  trivia.same_line = read_comment();
  if (in_.ok()) module_.op_trivia[op.index()] = std::move(trivia);
}

void SegmentReader::read_region_trivia(RegionId region) {
  RegionTrivia trivia;
  trivia.after_open = read_comment();
  trivia.before_close.resize(in_.count(1));
  for (StringId& line : trivia.before_close) line = read_comment();
  trivia.after_close = read_comment();
  if (in_.ok()) module_.region_trivia[region.index()] = std::move(trivia);
}

}  // namespace

const char* decode_segment(Module& module, RegionId region, std::span<const ValueId> outer,
                           std::string_view bytes, std::vector<OpId>* separate) {
  return SegmentReader(module, bytes, outer, separate).read(region);
}

}  // namespace loom
