// What the rows of scf/ops.def cannot say.
#include <fmt/core.h>

#include "loom/dialect/hooks.h"
#include "loom/dialect/signature.h"

namespace loom::verify {
namespace {

// What a region's yield passes on; nothing where the yield is left out.
struct Yield {
  bool readable = true;  // false when the region ends in something else, which is reported there
  OpId place;            // where to report: the yield, or the operation around it
  std::span<const ValueId> values;
};

Yield yield_of(const VerifyContext& c, OpId op, RegionId region) {
  const OpId last = c.module.region(region).last;
  if (!last.valid()) return {!c.module.region(region).deferred, op, {}};
  const OpId terminator = c.terminator(region);
  if (!terminator.valid()) return {c.sound(last), op, {}};
  if (c.module.op(terminator).kind != OpKind::ScfYield) return {false, op, {}};
  return {true, terminator, c.module.operands(terminator)};
}

std::vector<ValueId> results_of(const Module& module, OpId op) {
  std::vector<ValueId> results(module.op(op).result_count);
  for (unsigned i = 0; i < results.size(); ++i) results[i] = module.result(op, i);
  return results;
}

void check_bounds(VerifyContext& c, OpId op) {
  static constexpr std::string_view kNames[] = {"lower bound", "upper bound", "step"};
  const TypeId type = c.module.type_of(c.module.operand(op, 0));
  for (unsigned i = 1; i < 3; ++i) {
    const TypeId other = c.module.type_of(c.module.operand(op, i));
    if (other != type) {
      c.type_mismatch(op, std::string(kNames[i]), other, std::string(kNames[0]), type);
    }
  }
  const auto step = c.constant(c.module.operand(op, operand_slot(OpKind::ScfFor, "step")));
  if (step && *step <= 0) {
    c.error(op, Diag::StructureStep, {{"step", std::to_string(*step)}});
  }
}

// Exact factors are checked here, others when they become exact.
void check_policy(VerifyContext& c, OpId op) {
  using enum OpKind;
  const auto depth = operand_group(c.module, op, operand_slot(ScfFor, "depth"));
  const auto factor = operand_group(c.module, op, operand_slot(ScfFor, "factor"));
  const bool bare = c.module.has_attr(op, attr_slot(ScfFor, "unroll"));
  if (bare && !factor.empty()) {
    c.bad_attribute(op, "unroll", "'unroll' and 'unroll(...)' exclude each other");
  }
  if (c.module.has_attr(op, attr_slot(ScfFor, "schedule")) && !bare && factor.empty()) {
    c.bad_attribute(op, "schedule", "it needs an 'unroll' clause");
  }
  if (!factor.empty()) {
    if (const auto value = c.constant(factor[0]); value && *value <= 0) {
      c.bad_attribute(op, "unroll", fmt::format("factor {} is not positive", *value));
    }
  }
  if (depth.empty()) return;
  const auto value = c.constant(depth[0]);
  if (value && (*value <= 0 || *value > 65535)) {
    c.bad_attribute(op, "pipeline", fmt::format("depth {} is not between 1 and 65535", *value));
  } else if (value && *value > 1 && c.has_ordered_effects(op)) {
    c.bad_attribute(
        op, "pipeline",
        "the body writes memory, synchronizes, does a volatile access or holds 'scf.while'");
  }
}

}  // namespace

void scf_for(VerifyContext& c, OpId op) {
  check_bounds(c, op);
  check_policy(c, op);
  const RegionId body = c.module.op_region(op, 0);
  const auto inits = operand_group(c.module, op, operand_slot(OpKind::ScfFor, "init"));
  const auto args = c.module.args(body);
  if (!c.same_count(op, "loop arguments", args.size(), "the induction value and iter_args",
                    1 + inits.size())) {
    return;
  }
  const TypeId induction = c.module.type_of(args[0]);
  const TypeId bound = c.module.type_of(c.module.operand(op, 0));
  if (induction != bound) c.type_mismatch(op, "induction value", induction, "lower bound", bound);
  const std::vector<ValueId> results = results_of(c.module, op);
  if (!c.same_count(op, "results", results.size(), "iter_args", inits.size())) return;
  const Yield yield = yield_of(c, op, body);
  const bool yields =
      yield.readable &&
      c.same_count(yield.place, "yielded values", yield.values.size(), "iter_args", inits.size());
  SignatureMatch by_init(c.module), by_result(c.module), by_yield(c.module);
  by_init.bind_args(body, inits, 1);
  by_result.bind_args(body, results, 1);
  by_yield.bind_args(body, yield.values, 1);
  for (size_t i = 0; i < inits.size(); ++i) {
    const TypeId carried = c.module.type_of(args[i + 1]);
    const std::string label = fmt::format("iter_args[{}]", i);
    if (const TypeId t = c.module.type_of(inits[i]); !by_init.same(carried, t)) {
      c.type_mismatch(op, fmt::format("initial value {}", i), t, label, carried);
    }
    if (const TypeId t = c.module.type_of(results[i]); !by_result.same(carried, t)) {
      c.type_mismatch(op, fmt::format("results[{}]", i), t, label, carried);
    }
    if (!yields) continue;
    if (const TypeId t = c.module.type_of(yield.values[i]); !by_yield.same(carried, t)) {
      c.type_mismatch(yield.place, fmt::format("yielded value {}", i), t, label, carried);
    }
  }
}

void scf_if(VerifyContext& c, OpId op) {
  const std::vector<ValueId> results = results_of(c.module, op);
  for (unsigned number = 0; number < 2; ++number) {
    const RegionId region = c.module.op_region(op, number);
    if (!c.module.region(region).has_body) {
      if (number == 1 && !results.empty()) c.error(op, Diag::StructureElseMissing, {});
      continue;
    }
    const Yield yield = yield_of(c, op, region);
    if (!yield.readable) continue;
    const std::string_view branch = number == 0 ? "then" : "else";
    if (!c.same_count(yield.place, fmt::format("yielded values of '{}'", branch),
                      yield.values.size(), "results", results.size())) {
      continue;
    }
    SignatureMatch match(c.module);
    match.bind_results(op, yield.values);
    for (size_t i = 0; i < results.size(); ++i) {
      const TypeId expected = c.module.type_of(results[i]);
      const TypeId found = c.module.type_of(yield.values[i]);
      if (match.same(expected, found)) continue;
      c.type_mismatch(yield.place, fmt::format("yielded value {} of '{}'", i, branch), found,
                      fmt::format("results[{}]", i), expected);
    }
  }
}

void scf_select(VerifyContext& c, OpId op) {
  const ValueId a = c.module.operand(op, 1);
  const ValueId b = c.module.operand(op, 2);
  if (c.module.type_of(a) != c.module.type_of(b)) {
    c.type_mismatch(op, "operand " + c.name(b), c.module.type_of(b), "operand " + c.name(a),
                    c.module.type_of(a));
  }
}

namespace {

void check_keys(VerifyContext& c, OpId op, std::span<const int64_t> keys) {
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i] > keys[i - 1]) continue;
    c.error(op, Diag::StructureKeyOrder,
            {{"op", std::string(c.op_name(op))},
             {"key", std::to_string(keys[i])},
             {"previous", std::to_string(keys[i - 1])}});
  }
}

// Values that arrive at other values, pair by pair.
void check_arrival(VerifyContext& c, OpId op, std::span<const ValueId> from, std::string_view what,
                   std::span<const ValueId> to, std::string_view where) {
  if (!c.same_count(op, fmt::format("{}s", what), from.size(), std::string(where), to.size())) {
    return;
  }
  for (size_t i = 0; i < from.size(); ++i) {
    const TypeId found = c.module.type_of(from[i]);
    const TypeId expected = c.module.type_of(to[i]);
    if (found == expected) continue;
    c.type_mismatch(op, fmt::format("{} {}", what, i), found, fmt::format("{}[{}]", where, i),
                    expected);
  }
}

}  // namespace

void scf_switch(VerifyContext& c, OpId op) {
  const auto keys = c.module.attr(op, attr_slot(OpKind::ScfSwitch, "keys")).ints;
  check_keys(c, op, keys);
  const std::vector<ValueId> results = results_of(c.module, op);
  for (unsigned number = 0; number < c.module.op(op).region_count; ++number) {
    const Yield yield = yield_of(c, op, c.module.op_region(op, number));
    if (!yield.readable) continue;
    const std::string branch =
        number < keys.size() ? fmt::format("case {}", keys[number]) : "default";
    if (!c.same_count(yield.place, fmt::format("yielded values of '{}'", branch),
                      yield.values.size(), "results", results.size())) {
      continue;
    }
    SignatureMatch match(c.module);
    match.bind_results(op, yield.values);
    for (size_t i = 0; i < results.size(); ++i) {
      const TypeId expected = c.module.type_of(results[i]);
      const TypeId found = c.module.type_of(yield.values[i]);
      if (match.same(expected, found)) continue;
      c.type_mismatch(yield.place, fmt::format("yielded value {} of '{}'", i, branch), found,
                      fmt::format("results[{}]", i), expected);
    }
  }
}

void scf_lookup(VerifyContext& c, OpId op) {
  using enum OpKind;
  check_keys(c, op, c.module.attr(op, attr_slot(ScfLookup, "keys")).ints);
  const std::vector<ValueId> results = results_of(c.module, op);
  const auto rows = operand_group(c.module, op, operand_slot(ScfLookup, "row"));
  for (size_t i = 0; i < rows.size(); i += results.size()) {
    check_arrival(c, op, rows.subspan(i, results.size()), "row value", results, "results");
  }
  check_arrival(c, op, operand_group(c.module, op, operand_slot(ScfLookup, "default")),
                "default value", results, "results");
}

void scf_while(VerifyContext& c, OpId op) {
  const RegionId before = c.module.op_region(op, 0);
  const RegionId body = c.module.op_region(op, 1);
  const auto carried = c.module.args(before);
  check_arrival(c, op, c.module.operands(op), "initial value", carried, "iter_args");
  const OpId condition = c.terminator(before);
  const std::vector<ValueId> results = results_of(c.module, op);
  if (condition.valid() && c.module.op(condition).kind == OpKind::ScfCondition) {
    const auto forwarded = c.module.operands(condition).subspan(1);
    check_arrival(c, condition, forwarded, "forwarded value", c.module.args(body),
                  "body arguments");
    check_arrival(c, condition, forwarded, "forwarded value", results, "results");
  }
  const Yield yield = yield_of(c, op, body);
  if (!yield.readable) return;
  check_arrival(c, yield.place, yield.values, "yielded value", carried, "iter_args");
}

void scf_condition(VerifyContext& c, OpId op) {
  const OpId parent = c.module.region(c.module.op(op).parent).parent;
  if (parent.valid() && c.module.op(parent).kind == OpKind::ScfWhile) return;
  c.error(op, Diag::StructureAncestor,
          {{"op", std::string(c.op_name(op))}, {"ancestor", "the first region of scf.while"}});
}

}  // namespace loom::verify
