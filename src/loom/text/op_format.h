// The format column of each operation, prepared for the parser.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/text/lexer.h"

namespace loom {

struct FormatStep {
  FormatKind kind;
  TokenKind token = TokenKind::Error;  // of a Literal
  int8_t a = -1;
  int8_t b = -1;
  uint16_t end = 0;
  std::string_view text;
};

struct OpFormat {
  const OpInfo* info = nullptr;
  std::vector<FormatStep> steps;
  // Modifier words and clauses, in order, separated by spaces.
  std::string modifiers;
  // Named results stand beside the arguments: unbound extents of the signature are symbolic.
  bool function_like = false;
  // Always has a region with braces.
  bool definition = false;
  int fixed_operands = 0;  // operands of the groups that are not lists
};

const OpFormat& op_format(OpKind kind);
// Null when no operation has the name.
const OpFormat* find_op_format(std::string_view name);
// The format of an operation that once had the name; null when none had.
const OpFormat* find_older_op_format(std::string_view name);

// An encoding family of the language, under its current name; empty when unknown.
std::string_view encoding_family(std::string_view name);

}  // namespace loom
