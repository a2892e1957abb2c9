// The elements of an operation's format, in the order of its table row.
#include <algorithm>

#include "loom/text/printer_impl.h"

namespace loom::detail {

void Printer::literal(std::string_view text) {
  if (text == "," || text == "]" || text == ")") {
    out_ += text;
    space_ = true;
    return;
  }
  gap();
  out_ += text;
  space_ = text != "[" && text != "(";
}

void Printer::element(OpId op, const FormatElement& element) {
  switch (element.kind) {
    case FormatKind::Literal:
      return literal(element.text);
    case FormatKind::Glue:
      space_ = false;
      return;
    case FormatKind::Operand:
      return names(group(op, element.a));
    case FormatKind::Types:
      return types(group(op, element.a));
    case FormatKind::ResultTypes:
      return result_types(op, element);
    case FormatKind::Attr:
      if (!has_attr(op, element.a)) return;
      gap();
      return attr(op, element.a, false);
    case FormatKind::Flags:
      if (!has_attr(op, element.a) || get(op, element.a).bits == 0) return;
      out_ += '<';
      flags(spec(op, element.a).flags, get(op, element.a).bits);
      out_ += '>';
      return glue();
    case FormatKind::Parameter:
      return parameter(op, element);
    case FormatKind::Clause:
      return clause(op, element);
    case FormatKind::RangeClause:
      return range_clause(op, element);
    case FormatKind::OperandClause:
      return operand_clause(op, element);
    case FormatKind::Word:
      return word(op, element);
    case FormatKind::Dict:
      return dict(op);
    case FormatKind::IndexList:
      return index_list(op, element);
    case FormatKind::OperandDict:
      return operand_dict(op, element);
    case FormatKind::Signature:
      signature(module_.arg_group(region(op, element.a), static_cast<unsigned>(element.b)), false);
      return glue();
    case FormatKind::ResultSig:
      if (module_.args(region(op, element.a)).empty()) return;
      out_ += " -> ";
      signature(module_.args(region(op, element.a)), true);
      return glue();
    case FormatKind::ResultArrow:
      return result_arrow(op);
    case FormatKind::InductionArg:
      gap();
      return name(module_.args(region(op, element.a)).front());
    case FormatKind::IterArgs:
      return iter_args(op, element);
    case FormatKind::KeyArg:
      return key_arg(module_.args(region(op, element.a)).front());
    case FormatKind::BodyArgs:
      if (module_.args(region(op, element.a)).empty()) return;
      signature(module_.args(region(op, element.a)), false);
      return glue();
    case FormatKind::LookupRows:
      return lookup_rows(op, element);
    case FormatKind::PackList:
      return pack_list(op, element);
    case FormatKind::Region:
    case FormatKind::Cases:
    case FormatKind::OptionalBegin:
    case FormatKind::OptionalEnd:
      return;
  }
}

void Printer::lookup_rows(OpId op, const FormatElement& element) {
  const auto values = group(op, element.a);
  const auto keys = get(op, element.b).ints;
  const size_t width = keys.empty() ? 0 : values.size() / keys.size();
  gap();
  out_ += "{\n";
  ++tables_;
  for (size_t row = 0; row < keys.size(); ++row) {
    indent();
    append_integer(out_, keys[row]);
    out_ += " = (";
    space_ = false;
    names(values.subspan(row * width, width));
    out_ += row + 1 == keys.size() ? ")\n" : "),\n";
  }
  --tables_;
  indent();
  out_ += '}';
  space_ = true;
}

void Printer::pack_list(OpId op, const FormatElement& element) {
  const auto sizes = group(op, element.a);
  gap();
  out_ += '[';
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i != 0) out_ += ", ";
    out_ += "align(";
    append_integer(out_, get(op, element.b).ints[i]);
    out_ += ") ";
    name(sizes[i]);
  }
  out_ += ']';
  space_ = true;
}

void Printer::range_clause(OpId op, const FormatElement& element) {
  gap();
  out_ += element.text;
  out_ += '(';
  attr(op, element.a, true);
  out_ += " to ";
  attr(op, element.b, true);
  out_ += ')';
}

void Printer::operand_clause(OpId op, const FormatElement& element) {
  if (group(op, element.a).empty()) return;
  gap();
  out_ += element.text;
  out_ += '(';
  space_ = false;
  names(group(op, element.a));
  out_ += ')';
}

void Printer::word(OpId op, const FormatElement& element) {
  if (!has_attr(op, element.a)) return;
  gap();
  if (spec(op, element.a).form == AttrForm::Unit) {
    out_ += element.text;
  } else {
    attr(op, element.a, false);
  }
}

void Printer::key_arg(ValueId value) {
  gap();
  if (module_.value(value).name.valid()) {
    name(value);
    out_ += ": ";
  }
  type(module_.type_of(value));
}

void Printer::names(std::span<const ValueId> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out_ += ',';
    gap();
    name(values[i]);
  }
}

void Printer::types(std::span<const ValueId> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out_ += ',';
    gap();
    type(module_.type_of(values[i]));
  }
}

void Printer::flags(FlagSetId set, uint64_t mask) {
  const FlagSetInfo& info = flag_set_info(set);
  if (!info.all.empty() && mask == (uint64_t{1} << info.flags.size()) - 1) {
    out_ += info.all;
    return;
  }
  std::string_view separator;
  for (size_t i = 0; i < info.flags.size(); ++i) {
    if ((mask >> i & 1) == 0) continue;
    out_ += separator;
    separator = "|";
    out_ += info.flags[i];
  }
}

// The value of an attribute in its form. An integer list inside a clause has no brackets.
void Printer::attr(OpId op, int slot, bool in_clause) {
  const AttrSpec& form = spec(op, slot);
  const Attr& value = get(op, slot);
  if (form.form == AttrForm::Enum) {
    out_ += enum_info(form.enum_id).cases[value.bits];
  } else if (form.form == AttrForm::Flags) {
    flags(form.flags, value.bits);
  } else if (form.form == AttrForm::IntList && in_clause) {
    for (size_t i = 0; i < value.ints.size(); ++i) {
      if (i != 0) out_ += ", ";
      append_integer(out_, value.ints[i]);
    }
  } else {
    append_attr(out_, module_, module_.attr_ids(op)[static_cast<size_t>(slot)], namer_.numbers());
  }
}

void Printer::parameter(OpId op, const FormatElement& element) {
  out_ += '<';
  attr(op, element.a, false);
  if (has_attr(op, element.b) && get(op, element.b).bits != 0) {
    out_ += ", ";
    attr(op, element.b, false);
  }
  out_ += '>';
  glue();
}

void Printer::clause(OpId op, const FormatElement& element) {
  if (!has_attr(op, element.a)) return;
  gap();
  out_ += element.text;
  out_ += '(';
  attr(op, element.a, true);
  if (has_attr(op, element.b)) {
    out_ += ", ";
    attr(op, element.b, true);
  }
  out_ += ')';
}

void Printer::dict(OpId op) {
  const auto& specs = op_info(module_.op(op).kind).attrs;
  std::vector<size_t> present;
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].in_dict && module_.has_attr(op, static_cast<unsigned>(i))) present.push_back(i);
  }
  if (present.empty()) return;
  std::ranges::sort(present, {}, [&](size_t i) { return specs[i].name; });
  gap();
  std::string_view separator = "{";
  for (size_t slot : present) {
    out_ += separator;
    separator = ", ";
    out_ += specs[slot].name;
    out_ += " = ";
    attr(op, static_cast<int>(slot), false);
  }
  out_ += '}';
}

void Printer::operand_dict(OpId op, const FormatElement& element) {
  const auto values = group(op, element.a);
  if (values.empty()) return;
  const auto keys = get(op, element.b).entries;
  gap();
  for (size_t i = 0; i < values.size(); ++i) {
    out_ += i == 0 ? "{" : ", ";
    out_ += module_.strings.text(keys[i].key);
    out_ += " = ";
    name(values[i]);
    out_ += " : ";
    type(module_.type_of(values[i]));
  }
  out_ += '}';
}

void Printer::index_list(OpId op, const FormatElement& element) {
  if (!has_attr(op, element.b)) return;
  // Glued to the operand before it, but not to the name of the operation.
  if (&op_info(module_.op(op).kind).format.front() == &element) gap();
  auto values = group(op, element.a);
  out_ += '[';
  std::string_view separator;
  for (int64_t number : get(op, element.b).ints) {
    out_ += separator;
    separator = ", ";
    if (number == kDynamicIndex) {
      name(values.front());
      values = values.subspan(1);
    } else {
      append_integer(out_, number);
    }
  }
  out_ += ']';
  glue();
}

void Printer::signature(std::span<const ValueId> args, bool name_optional) {
  out_ += '(';
  std::string_view separator;
  for (ValueId arg : args) {
    out_ += separator;
    separator = ", ";
    if (!name_optional || module_.value(arg).name.valid()) {
      name(arg);
      out_ += ": ";
    }
    type(module_.type_of(arg));
  }
  out_ += ')';
}

// One result, or the list that a variadic group ends with.
void Printer::result_types(OpId op, const FormatElement& element) {
  const auto first = static_cast<unsigned>(element.a);
  const bool list = op_info(module_.op(op).kind).results[first].arity == Arity::Variadic;
  const unsigned end = list ? module_.op(op).result_count : first + 1;
  for (unsigned i = first; i < end; ++i) {
    if (i != first) out_ += ',';
    gap();
    type(module_.type_of(module_.result(op, i)));
  }
}

void Printer::result_arrow(OpId op) {
  const unsigned count = module_.op(op).result_count;
  if (count == 0) return;
  out_ += " -> (";
  for (unsigned i = 0; i < count; ++i) {
    if (i != 0) out_ += ", ";
    type(module_.type_of(module_.result(op, i)));
  }
  out_ += ')';
  glue();
}

void Printer::iter_args(OpId op, const FormatElement& element) {
  const auto inits = group(op, element.b);
  if (inits.empty()) return;
  const auto args = module_.args(region(op, element.a));
  out_ += '(';
  for (size_t i = 0; i < inits.size(); ++i) {
    if (i != 0) out_ += ", ";
    name(args[args.size() - inits.size() + i]);  // behind an induction value
    out_ += " = ";
    name(inits[i]);
    out_ += " : ";
    type(module_.type_of(inits[i]));
  }
  out_ += ')';
  glue();
}

}  // namespace loom::detail
