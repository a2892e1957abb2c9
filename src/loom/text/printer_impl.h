// The printer's state: layout of operations and regions in printer.cpp, the elements of a format in
// print_elements.cpp.
#pragma once

#include <string>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/text/value_names.h"

namespace loom::detail {

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

}  // namespace loom::detail
