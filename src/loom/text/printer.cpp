#include "loom/text/printer.h"

#include <algorithm>

#include "loom/ir/walk.h"
#include "loom/text/printer_impl.h"

namespace loom {
namespace detail {
namespace {

constexpr size_t kDeepestIndent = 100;

}  // namespace

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

}  // namespace detail

std::string print_text(const Module& module) {
  detail::Printer printer(module);
  printer.print_module();
  return printer.take();
}

std::string print_op(const Module& module, OpId op) {
  OpId outermost = op;
  while (parent_op(module, outermost).valid()) outermost = parent_op(module, outermost);
  detail::Printer printer(module);
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
