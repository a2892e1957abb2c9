#include "loom/bytecode/segment_tables.h"

#include <array>
#include <bit>
#include <limits>
#include <optional>

#include "loom/bytecode/segment_format.h"
#include "loom/bytecode/text_rules.h"
#include "loom/dialect/op_info.h"

namespace loom {
namespace {

constexpr uint8_t kMaxAttrDepth = 64;
constexpr auto kLastAttrKind = static_cast<uint64_t>(AttrKind::Bytes);

constexpr std::array kTypeKinds = {
#define LOOM_SCALAR(name, text, bits, family)
#define LOOM_OPAQUE(name, text) TypeKind::name,
#define LOOM_SHAPED(name, text, encoding, align) TypeKind::name,
#include "loom/ir/types.def"
};

std::optional<TypeKind> type_kind_from_name(std::string_view name) {
  for (TypeKind kind : kTypeKinds) {
    if (type_kind_name(kind) == name) return kind;
  }
  return std::nullopt;
}

}  // namespace

bool SegmentTables::read() {
  read_strings();
  read_files();
  read_kinds();
  if (in.varint() != outer.size()) return in.fail("the body belongs to another signature");
  const uint64_t own = in.count(2);
  first_value = module.value_count();
  if (first_value + own + outer.size() >= std::numeric_limits<uint32_t>::max()) {
    return in.fail("there are too many values");
  }
  total_values = static_cast<uint32_t>(outer.size() + own);
  read_constants();
  return in.ok();
}

void SegmentTables::read_strings() {
  const size_t count = in.count(1);
  strings.reserve(count);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const std::string_view text = in.text();
    if (!is_utf8(text)) in.fail("a text is not valid UTF-8");
    if (in.ok()) strings.push_back(module.strings.intern(text));
  }
}

void SegmentTables::read_files() {
  const size_t count = in.count(9);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const std::string_view path = in.text();
    const uint64_t hash = in.word64();
    if (!is_utf8(path)) in.fail("a path is not valid UTF-8");
    if (in.ok()) files.push_back(module.files().add_reference(std::string(path), hash));
  }
}

void SegmentTables::read_kinds() {
  const size_t count = in.count(1);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const auto kind = op_from_name(in.text());
    if (!kind) {
      in.fail("it holds an operation that this program does not know");
      return;
    }
    kinds.push_back(*kind);
  }
}

void SegmentTables::read_constants() {
  const size_t count = in.count(1);
  constants.reserve(count);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    SegmentConstant constant;
    const size_t mentioned_before = mentions.size();
    constant.mention_begin = constant.mention_end = static_cast<uint32_t>(mentioned_before);
    const uint64_t tag = in.varint();
    if (tag == kScalarConstant) {
      read_scalar(constant);
    } else if (tag == kOpaqueConstant) {
      read_opaque(constant);
    } else if (tag == kShapedConstant) {
      read_shaped(constant);
    } else if (tag >= kAttrConstant && tag - kAttrConstant <= kLastAttrKind) {
      read_attr(static_cast<AttrKind>(tag - kAttrConstant), constant);
    } else {
      in.fail("a constant is of an unknown kind");
    }
    if (mentions.size() != mentioned_before) {
      constant.mention_end = static_cast<uint32_t>(mentions.size());
    }
    constants.push_back(constant);
  }
}

void SegmentTables::read_scalar(SegmentConstant& out) {
  out.is_type = true;
  const auto kind = scalar_from_name(in.text());
  if (!kind) {
    in.fail("a scalar type is unknown");
    return;
  }
  out.type = TypeStore::scalar(*kind);
}

void SegmentTables::read_opaque(SegmentConstant& out) {
  out.is_type = true;
  const auto kind = type_kind_from_name(in.text());
  if (!kind || is_shaped(*kind)) {
    in.fail("a type is unknown");
    return;
  }
  out.type = module.types.opaque(*kind);
}

ValueId SegmentTables::mention(uint64_t number) {
  if (number >= total_values) {
    in.fail("a type names a value that is out of range");
    return ValueId();
  }
  mentions.push_back(static_cast<uint32_t>(number));
  return value(static_cast<uint32_t>(number));
}

void SegmentTables::read_shaped(SegmentConstant& out) {
  out.is_type = true;
  const auto kind = type_kind_from_name(in.text());
  const auto element = scalar_from_name(in.text());
  if (!kind || !is_shaped(*kind) || !element) {
    in.fail("a shaped type is unknown");
    return;
  }
  Type type{.kind = *kind, .element = *element};
  std::vector<Dim> dims;
  const size_t rank = in.count(1);
  for (size_t i = 0; i < rank && in.ok(); ++i) {
    const uint64_t dim = in.varint();
    dims.push_back((dim & 1) != 0 ? Dim::dynamic(mention(dim >> 1))
                                  : Dim::fixed(static_cast<int64_t>(dim >> 1)));
  }
  if (const uint64_t encoding = in.varint(); encoding != 0) {
    if (encoding > constants.size() || constants[encoding - 1].is_type ||
        module.attrs[constants[encoding - 1].attr].kind != AttrKind::Encoding) {
      in.fail("the encoding of a type is out of range");
      return;
    }
    type.encoding = constants[encoding - 1].attr;
  }
  if (const uint64_t number = in.varint(); number != 0) type.encoding_value = mention(number - 1);
  const uint64_t align = in.varint();
  if ((type.encoding.valid() || type.encoding_value.valid()) && !allows_encoding(*kind)) {
    in.fail("a type cannot carry an encoding");
  }
  if (align != 0 && (!allows_align(*kind) || !std::has_single_bit(align) || align > (1u << 31))) {
    in.fail("a type has a malformed alignment");
  }
  type.align = static_cast<uint32_t>(align);
  type.dims = dims;
  if (in.ok()) out.type = module.types.intern(type);
}

// A constant before this one, of the wanted sort; null after a failure.
const SegmentConstant* SegmentTables::earlier(bool is_type) {
  const uint64_t number = in.varint();
  if (number >= constants.size() || constants[number].is_type != is_type) {
    in.fail("a constant refers to one that is out of range");
    return nullptr;
  }
  return &constants[number];
}

void SegmentTables::read_entries(AttrKind kind, SegmentConstant& out,
                                 std::vector<DictEntry>& entries) {
  const size_t count = in.count(1);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const StringId key = kind == AttrKind::List ? StringId() : read_string();
    const SegmentConstant* value = earlier(false);
    if (value == nullptr || !in.ok()) return;
    // Clones share nested attributes, so none of them may depend on a value.
    if (value->mention_begin != value->mention_end) in.fail("a nested attribute names a value");
    if (value->depth >= kMaxAttrDepth) in.fail("attributes are nested too deeply");
    out.depth = std::max<uint8_t>(out.depth, value->depth + 1);
    if (kind == AttrKind::Dict && !entries.empty() &&
        module.strings.text(entries.back().key) >= module.strings.text(key)) {
      in.fail("the keys of a dictionary are not in order");
    }
    entries.push_back({key, value->attr});
  }
}

void SegmentTables::read_predicates(std::vector<Predicate>& list) {
  const size_t count = in.count(2);
  for (size_t i = 0; i < count && in.ok(); ++i) {
    const auto kind = predicate_from_name(in.text());
    if (!kind) {
      in.fail("a predicate is unknown");
      return;
    }
    Predicate predicate{.kind = *kind, .args = {}};
    for (unsigned k = 0; k < predicate.arity(); ++k) {
      const uint64_t number = in.varint();
      predicate.args[k] = number != 0 ? PredicateArg::of(mention(number - 1))
                                      : PredicateArg::of(in.signed_varint());
    }
    list.push_back(predicate);
  }
}

void SegmentTables::read_attr(AttrKind kind, SegmentConstant& out) {
  Attr attr{.kind = kind};
  std::vector<int64_t> ints;
  std::vector<DictEntry> entries;
  std::vector<Predicate> predicates;
  switch (kind) {
    case AttrKind::Unit:
      break;
    case AttrKind::Bool:
      attr.bits = in.below(4, "a boolean is out of range") / 2;  // zigzag of 0 or 1
      break;
    case AttrKind::Integer:
    case AttrKind::Enum:
    case AttrKind::Flags:
      attr.bits = static_cast<uint64_t>(in.signed_varint());
      break;
    case AttrKind::Float:
      attr.bits = in.word64();
      break;
    case AttrKind::String:
    case AttrKind::Symbol:
    case AttrKind::Word:
      attr.bits = read_string().index();
      break;
    case AttrKind::Bytes: {
      const StringId text = read_string();
      if (in.ok() && !is_hex(module.strings.text(text))) in.fail("bytes are no hexadecimal digits");
      attr.bits = text.index();
      break;
    }
    case AttrKind::IntList:
    case AttrKind::SymbolList:
      ints.resize(in.count(1));
      for (int64_t& item : ints) {
        item = kind == AttrKind::IntList ? in.signed_varint() : int64_t{read_string().index()};
      }
      break;
    case AttrKind::Type:
      if (const SegmentConstant* type = earlier(true); type != nullptr) {
        attr.bits = type->type.index();
        out.mention_begin = type->mention_begin;
        out.mention_end = type->mention_end;
      }
      break;
    case AttrKind::Encoding:
      attr.bits = read_string().index();
      read_entries(kind, out, entries);
      break;
    case AttrKind::List:
    case AttrKind::Dict:
      read_entries(kind, out, entries);
      break;
    case AttrKind::Predicates:
      read_predicates(predicates);
      break;
  }
  if (!in.ok()) return;
  attr.ints = ints;
  attr.entries = entries;
  attr.predicates = predicates;
  out.attr = module.attrs.intern(attr);
}

StringId SegmentTables::read_string() {
  const uint32_t number = in.below(strings.size(), "a text number is out of range");
  return in.ok() ? strings[number] : StringId();
}

StringId SegmentTables::read_optional_string() {
  const uint32_t number = in.below(strings.size() + 1, "a text number is out of range");
  return in.ok() && number != 0 ? strings[number - 1] : StringId();
}

const SegmentConstant& SegmentTables::read_type_ref() {
  static const SegmentConstant kNone{.is_type = true, .type = TypeStore::scalar(ScalarKind::Index)};
  const uint32_t number = in.below(constants.size(), "a type number is out of range");
  if (in.ok() && !constants[number].is_type) in.fail("an attribute stands where a type is needed");
  return in.ok() ? constants[number] : kNone;
}

}  // namespace loom
