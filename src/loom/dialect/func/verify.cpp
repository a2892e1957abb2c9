// What the rows of func/ops.def cannot say.
#include <fmt/core.h>

#include "loom/dialect/hooks.h"
#include "loom/dialect/kernel/async.h"
#include "loom/dialect/signature.h"

namespace loom::verify {
namespace {

constexpr unsigned kBody = region_slot(OpKind::FuncDef, "body");
constexpr unsigned kResults = region_slot(OpKind::FuncDef, "results");
static_assert(kBody == region_slot(OpKind::FuncDecl, "body"));
static_assert(kResults == region_slot(OpKind::FuncDecl, "results"));

std::string function_text(const Module& module, OpId op) {
  return fmt::format("'@{}'", symbol_text(module, op));
}

void check_return(VerifyContext& c, OpId op) {
  const OpId last = c.terminator(c.module.op_region(op, kBody));
  if (!last.valid() || c.module.op(last).kind != OpKind::FuncReturn) return;
  const RegionId results = c.module.op_region(op, kResults);
  const auto formals = c.module.args(results);
  const auto values = c.module.operands(last);
  if (!c.same_count(last, "returned values", values.size(),
                    "the results of " + function_text(c.module, op), formals.size())) {
    return;
  }
  SignatureMatch match(c.module);
  match.bind_args(results, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const TypeId formal = c.module.type_of(formals[i]);
    const TypeId found = c.module.type_of(values[i]);
    if (match.same(formal, found)) continue;
    c.type_mismatch(last, fmt::format("returned value {}", i), found,
                    fmt::format("results[{}] of {}", i, function_text(c.module, op)), formal);
  }
}

}  // namespace

void func_def(VerifyContext& c, OpId op) {
  using enum OpKind;
  if (c.module.has_attr(op, attr_slot(FuncDef, "export_metadata")) &&
      !c.module.has_attr(op, attr_slot(FuncDef, "public")) &&
      !c.module.has_attr(op, attr_slot(FuncDef, "export"))) {
    c.bad_attribute(op, "export_metadata", "only a public or exported function takes it");
  }
  check_return(c, op);
  if (c.module.has_attr(op, attr_slot(FuncDef, "inlining"))) check_async_uses(c, op);
}

void func_call(VerifyContext& c, OpId op) {
  using enum OpKind;
  const OpId callee = c.resolve(op, attr_slot(FuncCall, "callee"), {FuncDef, FuncDecl}, "function");
  if (!callee.valid()) return;
  const std::string callee_text = function_text(c.module, callee);
  const bool must_be_pure = c.module.has_attr(op, attr_slot(FuncCall, "pure")) ||
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
    if (match.same(formal, found) || c.binds_tensor(formal, found)) continue;
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

}  // namespace loom::verify
