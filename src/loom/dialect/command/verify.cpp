// What the rows of command/ops.def cannot say.
#include <fmt/core.h>

#include "loom/dialect/hooks.h"
#include "loom/dialect/signature.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {
namespace {

// The number of `{}` in a parameter pattern, or a complaint.
struct Placeholders {
  size_t count = 0;
  std::string_view problem;
};

Placeholders count_placeholders(std::string_view pattern) {
  if (pattern.empty()) return {0, "a parameter pattern cannot be empty"};
  Placeholders result;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{' && i + 1 < pattern.size() && pattern[i + 1] == '}') {
      ++result.count;
      ++i;
    } else if (pattern[i] == '{' || pattern[i] == '}') {
      result.problem = "a brace may only stand in a complete '{}'";
    }
  }
  return result;
}

}  // namespace

void command_program(VerifyContext& c, OpId op) {
  const RegionId region = c.module.op_region(op, region_slot(OpKind::CommandProgramDef, "body"));
  const auto bindings = c.module.arg_group(region, 1);
  for (size_t i = 0; i < bindings.size(); ++i) {
    const TypeId type = c.module.type_of(bindings[i]);
    if (c.module.types[type].kind == TypeKind::Buffer) continue;
    c.error(op, Diag::TypeLaunchBinding,
            {{"index", std::to_string(i)},
             {"name", value_name_text(c.module, bindings[i])},
             {"type", type_text(c.module, type)}});
  }
}

void command_program_launch(VerifyContext& c, OpId op) {
  using enum OpKind;
  const OpId callee = c.resolve(op, attr_slot(CommandProgramLaunch, "callee"),
                                {CommandProgramDef, CommandProgramDecl}, "command program");
  if (!callee.valid()) return;
  const std::string callee_text = fmt::format("'@{}'", symbol_text(c.module, callee));
  const RegionId region = c.module.op_region(callee, region_slot(CommandProgramDef, "body"));
  struct Group {
    std::string_view label, plural;
    unsigned slot;
  };
  const Group groups[] = {
      {"specialization", "specializations", operand_slot(CommandProgramLaunch, "specialization")},
      {"launch binding", "launch bindings", operand_slot(CommandProgramLaunch, "args")}};
  SignatureMatch match(c.module);
  match.bind_args(region, c.module.operands(op));
  for (unsigned g = 0; g < 2; ++g) {
    const auto actuals = operand_group(c.module, op, groups[g].slot);
    const auto formals = c.module.arg_group(region, g);
    if (!c.same_count(op, std::string(groups[g].plural), actuals.size(),
                      fmt::format("the {} of {}", groups[g].plural, callee_text), formals.size())) {
      continue;
    }
    for (size_t i = 0; i < formals.size(); ++i) {
      const TypeId formal = c.module.type_of(formals[i]);
      const TypeId found = c.module.type_of(actuals[i]);
      if (match.same(formal, found) || c.binds_tensor(formal, found)) continue;
      c.type_mismatch(op, fmt::format("{} {}", groups[g].label, i), found,
                      fmt::format("{} {} of {}", groups[g].label, i, callee_text), formal);
    }
  }
}

void command_parameter(VerifyContext& c, OpId op) {
  using enum OpKind;
  const std::string_view pattern =
      c.module.strings.text(c.module.attr(op, attr_slot(CommandParameter, "pattern")).string());
  const auto complain = [&](std::string detail) {
    c.error(op, Diag::StructureString,
            {{"text", std::string(pattern)}, {"detail", std::move(detail)}});
  };
  const Placeholders placeholders = count_placeholders(pattern);
  if (!placeholders.problem.empty()) {
    complain(std::string(placeholders.problem));
    return;
  }
  constexpr unsigned kKeySlot = attr_slot(CommandParameter, "static_key");
  const size_t substitutions =
      c.module.has_attr(op, kKeySlot) ? c.module.attr(op, kKeySlot).ints.size() : 0;
  if (placeholders.count != substitutions) {
    complain(fmt::format("it has {} '{{}}' but {} substitutions follow", placeholders.count,
                         substitutions));
  }
}

}  // namespace loom::verify
