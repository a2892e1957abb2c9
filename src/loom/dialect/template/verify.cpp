// What the rows of template/ops.def cannot say.
#include <fmt/core.h>

#include <limits>

#include "loom/dialect/hooks.h"
#include "loom/dialect/signature.h"
#include "loom/dialect/target_info.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {
namespace {

using enum OpKind;

// Families and implementations keep their signatures in the same places.
constexpr unsigned kBody = region_slot(TemplateDef, "body");
constexpr unsigned kResults = region_slot(TemplateDef, "results");
static_assert(kBody == region_slot(TemplateDecl, "body"));
static_assert(kResults == region_slot(TemplateDecl, "results"));
static_assert(kBody == region_slot(TemplateUkernel, "body"));
static_assert(kResults == region_slot(TemplateUkernel, "results"));
constexpr unsigned kFamily = attr_slot(TemplateDef, "family");
static_assert(kFamily == attr_slot(TemplateUkernel, "family"));
constexpr unsigned kTarget = attr_slot(TemplateDef, "target");
static_assert(kTarget == attr_slot(TemplateUkernel, "target"));
constexpr unsigned kRequires = attr_slot(TemplateDef, "requires");
static_assert(kRequires == attr_slot(TemplateUkernel, "requires"));

std::string symbol_quote(const Module& module, OpId op) {
  return fmt::format("'@{}'", symbol_text(module, op));
}

void check_return(VerifyContext& c, OpId op) {
  const OpId last = c.terminator(c.module.op_region(op, kBody));
  if (!last.valid() || c.module.op(last).kind != TemplateReturn) return;
  const RegionId results = c.module.op_region(op, kResults);
  const auto formals = c.module.args(results);
  const auto values = c.module.operands(last);
  if (!c.same_count(last, "returned values", values.size(),
                    "the results of " + symbol_quote(c.module, op), formals.size())) {
    return;
  }
  SignatureMatch match(c.module);
  match.bind_args(results, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const TypeId formal = c.module.type_of(formals[i]);
    const TypeId found = c.module.type_of(values[i]);
    if (match.same(formal, found)) continue;
    c.type_mismatch(last, fmt::format("returned value {}", i), found,
                    fmt::format("results[{}] of {}", i, symbol_quote(c.module, op)), formal);
  }
}

// The signature of an implementation against the one of its family.
void check_contract(VerifyContext& c, OpId op, OpId family) {
  SignatureMatch match(c.module);
  for (const unsigned region : {kBody, kResults}) {
    const std::string_view what = region == kBody ? "argument" : "result";
    const RegionId contract = c.module.op_region(family, region);
    const auto formals = c.module.args(contract);
    const auto found = c.module.args(c.module.op_region(op, region));
    if (!c.same_count(op, fmt::format("implementation {}s", what), found.size(),
                      fmt::format("the {}s of {}", what, symbol_quote(c.module, family)),
                      formals.size())) {
      return;
    }
    match.bind_args(contract, found);
    for (size_t i = 0; i < found.size(); ++i) {
      const TypeId formal_type = c.module.type_of(formals[i]);
      const TypeId found_type = c.module.type_of(found[i]);
      if (match.same(formal_type, found_type)) continue;
      c.type_mismatch(op, fmt::format("implementation {} {}", what, i), found_type,
                      fmt::format("contract {} {}", what, i), formal_type);
    }
  }
  if (is_pure_function(c.module, family) && !is_pure_function(c.module, op)) {
    c.error(op, Diag::StructureImpureCallee,
            {{"function", "@" + std::string(symbol_text(c.module, op))}});
  }
}

void check_requirements(VerifyContext& c, OpId op) {
  if (!c.module.has_attr(op, kRequires)) return;
  const Attr& list = c.module.attr(op, kRequires);
  const auto reject = [&](std::string entry) {
    c.error(op, Diag::TargetRequirement, {{"entry", std::move(entry)}});
  };
  for (const int64_t item : list.ints) {
    if (list.kind == AttrKind::IntList) {
      reject(fmt::format("{}", item));
    } else {
      const StringId name(static_cast<uint32_t>(item));
      reject(fmt::format("@{}", c.module.strings.text(name)));
    }
  }
  for (const DictEntry& entry : list.entries) {
    if (!target_condition(c.module, entry.value)) reject(attr_text(c.module, entry.value));
  }
}

void check_target_record(VerifyContext& c, OpId op) {
  if (!c.module.has_attr(op, kTarget)) return;
  const OpId record = c.module.symbol(c.module.attr(op, kTarget).string());
  if (!record.valid() || !c.sound(record) || c.module.op(record).kind != TargetGeneric) return;
  const std::string_view field = restricting_override(c.module, record);
  if (field.empty()) return;
  c.error(op, Diag::TargetRestricts,
          {{"symbol", std::string(symbol_text(c.module, op))},
           {"target", std::string(symbol_text(c.module, record))},
           {"field", std::string(field)}});
}

void check_call(VerifyContext& c, OpId op, OpId callee) {
  const std::string callee_text = symbol_quote(c.module, callee);
  const bool must_be_pure = c.module.has_attr(op, attr_slot(TemplateCall, "pure")) ||
                            (c.body == BodyKind::Function && is_pure_function(c.module, c.symbol));
  if (must_be_pure && !is_pure_function(c.module, callee)) {
    c.error(op, Diag::StructureImpureCallee,
            {{"function", "@" + std::string(symbol_text(c.module, callee))}});
  }
  const RegionId parameters = c.module.op_region(callee, kBody);
  const RegionId results = c.module.op_region(callee, kResults);
  const auto actuals = c.module.operands(op);
  const auto formals = c.module.args(parameters);
  const auto formal_results = c.module.args(results);
  std::vector<ValueId> found_results(c.module.op(op).result_count);
  for (unsigned i = 0; i < found_results.size(); ++i) found_results[i] = c.module.result(op, i);
  const bool arguments_fit = c.same_count(op, "call arguments", actuals.size(),
                                          "the parameters of " + callee_text, formals.size());
  const bool results_fit = c.same_count(op, "call results", found_results.size(),
                                        "the results of " + callee_text, formal_results.size());
  SignatureMatch match(c.module);
  match.bind_args(parameters, actuals);
  match.bind_args(results, found_results);
  for (size_t i = 0; arguments_fit && i < formals.size(); ++i) {
    const TypeId formal = c.module.type_of(formals[i]);
    const TypeId found = c.module.type_of(actuals[i]);
    if (match.same(formal, found)) continue;
    c.type_mismatch(op, fmt::format("call argument {}", i), found,
                    fmt::format("parameter {} of {}", i, callee_text), formal);
  }
  for (size_t i = 0; results_fit && i < formal_results.size(); ++i) {
    const TypeId formal = c.module.type_of(formal_results[i]);
    const TypeId found = c.module.type_of(found_results[i]);
    if (match.same(formal, found)) continue;
    c.type_mismatch(op, fmt::format("call result {}", i), found,
                    fmt::format("results[{}] of {}", i, callee_text), formal);
  }
}

}  // namespace

void template_implementation(VerifyContext& c, OpId op) {
  const OpId family = c.resolve(op, kFamily, {TemplateDecl}, "template family");
  if (family.valid()) check_contract(c, op, family);
  check_requirements(c, op);
  check_target_record(c, op);
  if (c.module.op(op).kind == TemplateDef) check_return(c, op);
}

void template_apply(VerifyContext& c, OpId op) {
  const OpId family =
      c.resolve(op, attr_slot(TemplateApply, "family"), {TemplateDecl}, "template family");
  if (family.valid()) check_call(c, op, family);
}

void template_call(VerifyContext& c, OpId op) {
  const OpId callee = c.resolve(op, attr_slot(TemplateCall, "callee"),
                                {TemplateDef, TemplateUkernel}, "template implementation");
  if (callee.valid()) check_call(c, op, callee);
}

}  // namespace loom::verify
