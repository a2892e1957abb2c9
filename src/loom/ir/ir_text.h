// The spelling of types, attributes, predicates, numbers and value names: what the printer writes
// and what diagnostics quote.
//
// The `append_` forms write to the end of a string; the `_text` forms return one. Nesting of
// attributes is bounded where they are read, so writing them may recurse.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "loom/ir/module.h"

namespace loom {

// How values are told apart when they are written: a number by ValueId index, or kNoNumber. A value
// without a source name is called by its number; one with a name gets "_" and the number behind it.
// Where the span does not reach, named values are called by their name, others by their id.
using ValueNumbers = std::span<const uint32_t>;
inline constexpr uint32_t kNoNumber = ValueId::kNone;

// "%name", "%name_2" or "%7".
void append_value_name(std::string& out, const Module& module, ValueId value,
                       ValueNumbers numbers = {});
// "view<4x[%m]xf32, #dense, align(16)>"
void append_type(std::string& out, const Module& module, TypeId type, ValueNumbers numbers = {});
// Enum and flags attributes, whose words only the dialect tables know, are written as numbers.
void append_attr(std::string& out, const Module& module, AttrId attr, ValueNumbers numbers = {});
// "range(%n, 0, 127)"
void append_predicate(std::string& out, const Module& module, const Predicate& predicate,
                      ValueNumbers numbers = {});
// "[range(%n, 0, 127), pow2(%n)]"
void append_predicates(std::string& out, const Module& module, std::span<const Predicate> list,
                       ValueNumbers numbers = {});
void append_integer(std::string& out, int64_t value);
// The shortest digits that read back as the same double, with at least one digit after the point:
// "2.0", "0.1", "1.0e-5", "1.0e16", "-inf", "nan".
void append_float(std::string& out, double value);
// In double quotes, with JSON escapes.
void append_quoted(std::string& out, std::string_view text);

std::string value_name_text(const Module& module, ValueId value);
std::string type_text(const Module& module, TypeId type);
std::string attr_text(const Module& module, AttrId attr);
std::string predicate_text(const Module& module, const Predicate& predicate);
std::string float_text(double value);

}  // namespace loom
