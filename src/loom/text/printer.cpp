#include "loom/text/printer.h"

#include <algorithm>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"
#include "loom/text/value_names.h"

namespace loom {
namespace {

constexpr size_t kDeepestIndent = 100;

class Printer {
 public:
  explicit Printer(const Module& module)
      : module_(module), namer_(module), has_trivia_(module.op_count()) {
    for (const auto& [op, trivia] : module.op_trivia) has_trivia_[op] = true;
  }

  void name_values_of(OpId root) { namer_.add(root); }
  void print_module();
  void print_tree(OpId root, size_t skip_lines);
  std::string take() { return std::move(out_); }

 private:
  struct Frame {
    OpId op;
    size_t pc = 0;
    RegionId region;
    unsigned next_case = 0;
  };

  // --- layout ---
  bool spans_lines(OpId op) const;
  bool is_implied(OpId op) const;
  void indent();
  void comment_line(StringId text);
  void comment_behind(StringId text);
  void lines(std::span<const StringId> items);
  void begin_op(OpId op, size_t skip_lines);
  void end_op(OpId op);
  void open_region(const Frame& frame);
  void close_region(const Frame& frame);
  void implied_lines(OpId op);

  // --- elements ---
  bool walk(Frame& frame);
  bool has_content(OpId op, size_t pc) const;
  void element(OpId op, const FormatElement& element);
  void literal(std::string_view text);
  void gap() {
    if (space_) out_ += ' ';
    space_ = true;
  }
  void glue() { space_ = true; }
  void name(ValueId value) { append_value_name(out_, module_, value, namer_.numbers()); }
  void type(TypeId id) { append_type(out_, module_, id, namer_.numbers()); }
  void range_clause(OpId op, const FormatElement& element);
  void operand_clause(OpId op, const FormatElement& element);
  void word(OpId op, const FormatElement& element);
  void key_arg(ValueId value);
  void names(std::span<const ValueId> values);
  void types(std::span<const ValueId> values);
  void attr(OpId op, int slot, bool in_clause);
  void flags(FlagSetId set, uint64_t mask);
  void parameter(OpId op, const FormatElement& element);
  void clause(OpId op, const FormatElement& element);
  void dict(OpId op);
  void index_list(OpId op, const FormatElement& element);
  void operand_dict(OpId op, const FormatElement& element);
  void signature(std::span<const ValueId> args, bool name_optional);
  void result_types(OpId op, const FormatElement& element);
  void result_arrow(OpId op);
  void iter_args(OpId op, const FormatElement& element);
  bool next_case(Frame& frame, const FormatElement& element);
  void lookup_rows(OpId op, const FormatElement& element);
  void pack_list(OpId op, const FormatElement& element);

  const OpTrivia* trivia_of(OpId op) const {
    return has_trivia_[op.index()] ? &module_.op_trivia.find(op.index())->second : nullptr;
  }
  const AttrSpec& spec(OpId op, int slot) const {
    return op_info(module_.op(op).kind).attrs[static_cast<size_t>(slot)];
  }
  bool has_attr(OpId op, int slot) const {
    return slot >= 0 && module_.has_attr(op, static_cast<unsigned>(slot));
  }
  const Attr& get(OpId op, int slot) const { return module_.attr(op, static_cast<unsigned>(slot)); }
  std::span<const ValueId> group(OpId op, int index) const {
    return operand_group(module_, op, static_cast<unsigned>(index));
  }
  RegionId region(OpId op, int index) const {
    return module_.op_region(op, static_cast<unsigned>(index));
  }

  const Module& module_;
  ValueNamer namer_;
  std::string out_;
  std::vector<Frame> stack_;
  size_t tables_ = 0;             // open braces around cases or rows
  std::vector<bool> has_trivia_;  // by OpId index
  bool space_ = true;             // a space goes before the next element
};

// ================================================================================ layout

bool Printer::spans_lines(OpId op) const {
  for (unsigned i = 0; i < module_.op(op).region_count; ++i) {
    if (module_.region(module_.op_region(op, i)).has_body) return true;
  }
  return false;
}

void Printer::print_module() {
  OpId previous;
  for_each_op(module_, module_.body(), [&](OpId op) {
    namer_.add(op);
    const OpTrivia* trivia = trivia_of(op);
    const bool blank =
        trivia != nullptr && !trivia->leading.empty() && !trivia->leading.front().valid();
    // Exactly one blank line around a definition; the author decides between one-line records.
    if (previous.valid() && (blank || spans_lines(previous) || spans_lines(op))) out_ += '\n';
    print_tree(op, blank ? 1 : 0);
    previous = op;
  });
  const auto rest = module_.region_trivia.find(module_.body().index());
  if (rest != module_.region_trivia.end()) lines(rest->second.before_close);
}

void Printer::indent() { out_.append(2 * std::min(stack_.size() + tables_, kDeepestIndent), ' '); }

void Printer::comment_line(StringId text) {
  if (text.valid()) {
    indent();
    out_ += "//";
    out_ += module_.strings.text(text);
  }
  out_ += '\n';
}

void Printer::comment_behind(StringId text) {
  if (!text.valid()) return;
  out_ += " //";
  out_ += module_.strings.text(text);
}

// Own lines at the end of a region, without blank ones at the very end.
void Printer::lines(std::span<const StringId> items) {
  while (!items.empty() && !items.back().valid()) items = items.first(items.size() - 1);
  for (StringId item : items) comment_line(item);
}

// A terminator without values that its region implies, at the region's end.
bool Printer::is_implied(OpId id) const {
  const Op& op = module_.op(id);
  if (op.operand_count != 0 || op.next.valid() || !op_info(op.kind).has(trait::Terminator)) {
    return false;
  }
  const OpId parent = parent_op(module_, id);
  if (!parent.valid()) return false;
  const Op& holder = module_.op(parent);
  const RegionSpec& spec =
      op_info(holder.kind).region(op.parent.index() - holder.region_begin, holder.region_count);
  return spec.implicit && spec.terminator == op.kind;
}

void Printer::implied_lines(OpId op) {
  const OpTrivia* trivia = trivia_of(op);
  if (trivia == nullptr) return;
  for (StringId item : trivia->leading) {
    if (item.valid()) comment_line(item);
  }
  if (trivia->same_line.valid()) comment_line(trivia->same_line);
}

void Printer::begin_op(OpId id, size_t skip_lines) {
  if (const OpTrivia* trivia = trivia_of(id)) {
    for (size_t i = skip_lines; i < trivia->leading.size(); ++i) comment_line(trivia->leading[i]);
  }
  indent();
  const Op& op = module_.op(id);
  for (unsigned i = 0; i < op.result_count; ++i) {
    name(module_.result(id, i));
    out_ += i + 1u == op.result_count ? " = " : ", ";
  }
  out_ += op_info(op.kind).name;
  space_ = true;
}

void Printer::end_op(OpId id) {
  if (const OpTrivia* trivia = trivia_of(id)) comment_behind(trivia->same_line);
  // What stands behind the brace of a case is printed there.
  const bool cases = op_info(module_.op(id).kind).repeats_regions();
  for (unsigned i = cases ? 0 : module_.op(id).region_count; i-- > 0;) {
    const RegionId last = module_.op_region(id, i);
    if (!module_.region(last).has_body) continue;
    const auto trivia = module_.region_trivia.find(last.index());
    if (trivia != module_.region_trivia.end()) comment_behind(trivia->second.after_close);
    break;
  }
  out_ += '\n';
}

void Printer::open_region(const Frame& frame) {
  out_ += " {";
  const auto trivia = module_.region_trivia.find(frame.region.index());
  if (trivia != module_.region_trivia.end()) comment_behind(trivia->second.after_open);
  out_ += '\n';
}

void Printer::close_region(const Frame& frame) {
  const auto trivia = module_.region_trivia.find(frame.region.index());
  if (trivia != module_.region_trivia.end()) lines(trivia->second.before_close);
  stack_.pop_back();
  indent();
  out_ += '}';
  space_ = true;
}

// Prints an operation and everything in it. `skip_lines` of its leading lines are left out.
void Printer::print_tree(OpId root, size_t skip_lines) {
  stack_.clear();
  begin_op(root, skip_lines);
  Frame frame{.op = root, .pc = 0, .region = {}};
  for (;;) {
    OpId next;
    const bool entered = walk(frame);
    if (entered) {
      open_region(frame);
      stack_.push_back(frame);
      next = module_.region(frame.region).first;
    } else {
      end_op(frame.op);
      if (stack_.empty()) return;
      next = module_.op(frame.op).next;
    }
    if (next.valid() && is_implied(next)) {
      implied_lines(next);
      next = {};
    }
    if (next.valid()) {
      size_t skipped = 0;
      if (entered) {  // no blank line directly after `{`
        const OpTrivia* trivia = trivia_of(next);
        while (trivia != nullptr && skipped < trivia->leading.size() &&
               !trivia->leading[skipped].valid()) {
          ++skipped;
        }
      }
      begin_op(next, skipped);
      frame = {.op = next, .pc = 0, .region = {}};
    } else {
      frame = stack_.back();
      close_region(frame);
    }
  }
}

// ================================================================================ elements

// Writes elements from frame.pc on; true when it stops behind a region, which is then frame.region.
bool Printer::walk(Frame& frame) {
  const auto& format = op_info(module_.op(frame.op).kind).format;
  while (frame.pc < format.size()) {
    const FormatElement& now = format[frame.pc];
    if (now.kind == FormatKind::OptionalBegin && !has_content(frame.op, frame.pc + 1)) {
      frame.pc = now.end;
      continue;
    }
    if (now.kind == FormatKind::Cases && next_case(frame, now)) return true;
    ++frame.pc;
    if (now.kind == FormatKind::Region) {
      frame.region = region(frame.op, now.a);
      if (module_.region(frame.region).has_body) return true;
      continue;
    }
    element(frame.op, now);
  }
  return false;
}

// Whether the first element from `pc` on that is neither literal nor glue has something to write.
bool Printer::has_content(OpId op, size_t pc) const {
  const auto& format = op_info(module_.op(op).kind).format;
  while (format[pc].kind == FormatKind::Literal || format[pc].kind == FormatKind::Glue) ++pc;
  const FormatElement& first = format[pc];
  switch (first.kind) {
    case FormatKind::Operand:
    case FormatKind::Types:
    case FormatKind::OperandClause:
    case FormatKind::OperandDict:
      return !group(op, first.a).empty();
    case FormatKind::Region:
      return module_.region(region(op, first.a)).has_body;
    default:
      break;
  }
  if (!has_attr(op, first.a)) return false;
  // An empty contract says nothing, so it vanishes like any empty group.
  const Attr& attr = module_.attr(op, static_cast<unsigned>(first.a));
  return attr.kind != AttrKind::Predicates || !attr.predicates.empty();
}

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

// The line before the next case; false behind the last one, whose brace is then closed.
bool Printer::next_case(Frame& frame, const FormatElement& element) {
  if (frame.next_case == 0) {
    out_ += " {";
    ++tables_;
  } else {
    const auto trivia = module_.region_trivia.find(frame.region.index());
    if (trivia != module_.region_trivia.end()) comment_behind(trivia->second.after_close);
  }
  out_ += '\n';
  const unsigned count = module_.op(frame.op).region_count;
  if (frame.next_case == count) {
    --tables_;
    indent();
    out_ += '}';
    space_ = true;
    return false;
  }
  indent();
  if (frame.next_case + 1 < count) {
    out_ += "case ";
    append_integer(out_, get(frame.op, element.b).ints[frame.next_case]);
  } else {
    out_ += "default";
  }
  frame.region = module_.op_region(frame.op, frame.next_case++);
  return true;
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

}  // namespace

std::string print_text(const Module& module) {
  Printer printer(module);
  printer.print_module();
  return printer.take();
}

std::string print_op(const Module& module, OpId op) {
  OpId outermost = op;
  while (parent_op(module, outermost).valid()) outermost = parent_op(module, outermost);
  Printer printer(module);
  printer.name_values_of(outermost);
  size_t skipped = 0;
  if (const auto trivia = module.op_trivia.find(op.index()); trivia != module.op_trivia.end()) {
    const auto& leading = trivia->second.leading;
    while (skipped < leading.size() && !leading[skipped].valid()) ++skipped;
  }
  printer.print_tree(op, skipped);
  return printer.take();
}

}  // namespace loom
