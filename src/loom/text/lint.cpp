#include "loom/text/lint.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

constexpr std::string_view kNumberWords[] = {
    "zero",     "one",      "two",     "three",     "four",     "five",     "six",
    "seven",    "eight",    "nine",    "ten",       "eleven",   "twelve",   "thirteen",
    "fourteen", "fifteen",  "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
    "thirty",   "forty",    "fifty",   "sixty",     "seventy",  "eighty",   "ninety",
    "hundred",  "thousand", "million", "minus",     "negative", "point",    "and"};

// A value given as an attribute and nothing else.
bool is_constant(const OpInfo& info) {
  return info.operands.empty() && info.results.size() == 1 && info.attrs.size() == 1 &&
         info.attrs[0].form == AttrForm::Literal;
}

// "f32", and for lanes "4xf32".
bool is_type_suffix(std::string_view word) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  for (;;) {
    const auto extent = static_cast<size_t>(std::ranges::find_if_not(word, digit) - word.begin());
    if (extent == 0 || extent == word.size() || word[extent] != 'x') break;
    word.remove_prefix(extent + 1);
  }
  return scalar_from_name(word).has_value();
}

// "sixty_four" and "two_f32", but not "two_layers".
bool spells_a_number(std::string_view name) {
  bool digits = false;
  while (!name.empty()) {
    const size_t end = std::min(name.find('_'), name.size());
    const std::string_view word = name.substr(0, end);
    const bool last = end == name.size();
    if (std::ranges::find(kNumberWords, word) != std::end(kNumberWords)) {
      digits |= word != "and" && word != "point" && word != "minus" && word != "negative";
    } else if (!(last && digits && is_type_suffix(word))) {
      return false;
    }
    name.remove_prefix(last ? end : end + 1);
  }
  return digits;
}

// "16" of "c16" and "c16_f32"; empty for any other name.
std::string_view compact_literal(std::string_view name) {
  if (!name.starts_with('c')) return {};
  const size_t end = name.find('_');
  if (end != std::string_view::npos && !is_type_suffix(name.substr(end + 1))) return {};
  const std::string_view digits = name.substr(1, end == std::string_view::npos ? end : end - 1);
  const bool number = std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  return number ? digits : std::string_view();
}

// The compact name of a constant; empty where its literal cannot stand in a name.
std::string compact_name(const Module& module, OpId op) {
  std::string literal = attr_text(module, module.attr_ids(op)[0]);
  if (literal.ends_with(".0")) literal.resize(literal.size() - 2);
  if (!std::ranges::all_of(literal, [](char c) { return c >= '0' && c <= '9'; })) return {};
  return "%c" + literal;
}

}  // namespace

size_t lint_module(const Module& module, Diagnostics& diagnostics) {
  size_t findings = 0;
  const auto report = [&](OpId op, std::string detail) {
    const std::string compact = compact_name(module, op);
    const std::string repair =
        compact.empty() ? "name its role" : "name its role, or call it " + compact;
    diagnostics.emit(Diag::FormatConstantName, module.location(op),
                     {{"name", value_name_text(module, module.result(op))},
                      {"detail", std::move(detail)},
                      {"repair", repair}});
    ++findings;
  };
  const auto check = [&](OpId op) {
    if (!is_constant(op_info(module.op(op).kind))) return;
    const std::string_view name = module.name_of(module.result(op));
    if (spells_a_number(name)) report(op, "spells a number out");
    const std::string_view literal = compact_literal(name);
    if (literal.empty()) return;
    const std::string compact = compact_name(module, op);
    if (compact.empty() || compact.substr(2) != literal) {
      report(op, fmt::format("says {}, but the value is {}", literal,
                             attr_text(module, module.attr_ids(op)[0])));
    }
  };
  for_each_op(module, module.body(), [&](OpId op) {
    check(op);
    for_each_nested(module, op, check);
  });
  return findings;
}

}  // namespace loom
