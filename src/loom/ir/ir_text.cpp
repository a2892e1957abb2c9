#include "loom/ir/ir_text.h"

#include <charconv>
#include <cmath>

namespace loom {
namespace {

void append_entries(std::string& out, const Module& module, std::span<const DictEntry> entries,
                    std::string_view equal, ValueNumbers numbers) {
  std::string_view separator;
  for (const DictEntry& entry : entries) {
    out += separator;
    separator = ", ";
    if (entry.key.valid() && !module.strings.text(entry.key).empty()) {
      out += module.strings.text(entry.key);
      out += equal;
    }
    append_attr(out, module, entry.value, numbers);
  }
}

void append_ints(std::string& out, std::span<const int64_t> ints) {
  out += '[';
  std::string_view separator;
  for (int64_t value : ints) {
    out += separator;
    separator = ", ";
    if (value == kDynamicIndex) {
      out += '%';
    } else {
      append_integer(out, value);
    }
  }
  out += ']';
}

void append_shaped(std::string& out, const Module& module, const Type& type, ValueNumbers numbers) {
  out += type_kind_name(type.kind);
  out += '<';
  for (Dim dim : type.dims) {
    if (dim.is_dynamic()) {
      out += '[';
      append_value_name(out, module, dim.value(), numbers);
      out += ']';
    } else {
      append_integer(out, dim.extent());
    }
    out += 'x';
  }
  out += scalar_name(type.element);
  if (type.encoding.valid()) {
    out += ", ";
    append_attr(out, module, type.encoding, numbers);
  }
  if (type.encoding_value.valid()) {
    out += ", ";
    append_value_name(out, module, type.encoding_value, numbers);
  }
  if (type.align != 0) {
    out += ", align(";
    append_integer(out, type.align);
    out += ')';
  }
  out += '>';
}

}  // namespace

void append_integer(std::string& out, int64_t value) {
  char buffer[24];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, end);
}

void append_float(std::string& out, double value) {
  if (!std::isfinite(value)) {
    if (std::signbit(value)) out += '-';
    out += std::isnan(value) ? "nan" : "inf";
    return;
  }
  const double magnitude = std::fabs(value);
  const bool plain = magnitude == 0 || (magnitude >= 1e-4 && magnitude < 1e16);
  char buffer[40];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value,
                    plain ? std::chars_format::fixed : std::chars_format::scientific);
  const std::string_view text(buffer, end);
  const size_t exponent = text.find('e');
  const std::string_view digits = text.substr(0, exponent);
  out += digits;
  if (digits.find('.') == std::string_view::npos) out += ".0";
  if (exponent == std::string_view::npos) return;
  // "e+16" and "e-05" become "e16" and "e-5".
  std::string_view power = text.substr(exponent + 1);
  out += 'e';
  if (power.front() == '-') out += '-';
  power.remove_prefix(1);
  while (power.size() > 1 && power.front() == '0') power.remove_prefix(1);
  out += power;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          constexpr std::string_view kHex = "0123456789abcdef";
          out += "\\u00";
          out += kHex[static_cast<unsigned char>(c) >> 4];
          out += kHex[static_cast<unsigned char>(c) & 15];
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append_value_name(std::string& out, const Module& module, ValueId value,
                       ValueNumbers numbers) {
  const uint32_t number = value.index() < numbers.size() ? numbers[value.index()] : kNoNumber;
  out += '%';
  if (const StringId name = module.value(value).name; name.valid()) {
    out += module.strings.text(name);
    if (number == kNoNumber) return;
    out += '_';
  }
  append_integer(out, number == kNoNumber ? value.index() : number);
}

void append_type(std::string& out, const Module& module, TypeId id, ValueNumbers numbers) {
  const Type& type = module.types[id];
  if (type.is_scalar()) {
    out += scalar_name(type.element);
  } else if (is_shaped(type.kind)) {
    append_shaped(out, module, type, numbers);
  } else {
    out += type_kind_name(type.kind);
  }
}

void append_attr(std::string& out, const Module& module, AttrId id, ValueNumbers numbers) {
  const Attr& attr = module.attrs[id];
  switch (attr.kind) {
    case AttrKind::Unit:
      out += "unit";
      break;
    case AttrKind::Bool:
      out += attr.value() != 0 ? "true" : "false";
      break;
    case AttrKind::Integer:
    case AttrKind::Enum:
    case AttrKind::Flags:
      append_integer(out, attr.value());
      break;
    case AttrKind::Float:
      append_float(out, attr.number());
      break;
    case AttrKind::String:
      append_quoted(out, module.strings.text(attr.string()));
      break;
    case AttrKind::Symbol:
      out += '@';
      out += module.strings.text(attr.string());
      break;
    case AttrKind::Word:
      out += module.strings.text(attr.string());
      break;
    case AttrKind::IntList:
      append_ints(out, attr.ints);
      break;
    case AttrKind::SymbolList: {
      out += '[';
      std::string_view separator;
      for (int64_t name : attr.ints) {
        out += separator;
        separator = ", ";
        out += '@';
        out += module.strings.text(StringId(static_cast<uint32_t>(name)));
      }
      out += ']';
      break;
    }
    case AttrKind::List:
      out += '[';
      append_entries(out, module, attr.entries, {}, numbers);
      out += ']';
      break;
    case AttrKind::Type:
      append_type(out, module, attr.type(), numbers);
      break;
    case AttrKind::Dict:
      out += '{';
      append_entries(out, module, attr.entries, " = ", numbers);
      out += '}';
      break;
    case AttrKind::Encoding:
      out += '#';
      out += module.strings.text(attr.string());
      if (attr.entries.empty()) break;
      out += '<';
      append_entries(out, module, attr.entries, "=", numbers);
      out += '>';
      break;
    case AttrKind::Bytes:
      out += "bytes(\"";
      out += module.strings.text(attr.string());
      out += "\")";
      break;
    case AttrKind::Predicates:
      append_predicates(out, module, attr.predicates, numbers);
      break;
  }
}

void append_predicate(std::string& out, const Module& module, const Predicate& predicate,
                      ValueNumbers numbers) {
  out += predicate_info(predicate.kind).text;
  out += '(';
  for (unsigned i = 0; i < predicate.arity(); ++i) {
    if (i != 0) out += ", ";
    if (predicate.args[i].is_value()) {
      append_value_name(out, module, predicate.args[i].value, numbers);
    } else {
      append_integer(out, predicate.args[i].literal);
    }
  }
  out += ')';
}

void append_predicates(std::string& out, const Module& module, std::span<const Predicate> list,
                       ValueNumbers numbers) {
  out += '[';
  std::string_view separator;
  for (const Predicate& predicate : list) {
    out += separator;
    separator = ", ";
    append_predicate(out, module, predicate, numbers);
  }
  out += ']';
}

std::string value_name_text(const Module& module, ValueId value) {
  std::string out;
  append_value_name(out, module, value);
  return out;
}

std::string type_text(const Module& module, TypeId type) {
  std::string out;
  append_type(out, module, type);
  return out;
}

std::string attr_text(const Module& module, AttrId attr) {
  std::string out;
  append_attr(out, module, attr);
  return out;
}

std::string predicate_text(const Module& module, const Predicate& predicate) {
  std::string out;
  append_predicate(out, module, predicate);
  return out;
}

std::string float_text(double value) {
  std::string out;
  append_float(out, value);
  return out;
}

}  // namespace loom
