// Structured control, calls, templates and configuration.
#include <fmt/format.h>

#include "loom/base/check.h"
#include "loom/dialect/hooks.h"
#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"
#include "loom/ir/walk.h"

namespace loom::interp {

using enum OpKind;

std::vector<Datum> Machine::data(const Invocation& t, std::span<const ValueId> values) const {
  std::vector<Datum> found;
  for (ValueId value : values) found.push_back(get(t, value));
  return found;
}

void Machine::enter(Invocation& t, Activation::Kind kind, OpId owner, RegionId region) {
  t.activations.push_back({.kind = kind, .owner = owner, .next = module_.region(region).first});
}

Machine::Outcome Machine::enter_for(Invocation& t, OpId op) {
  const auto one = [&](unsigned group) { return operand_group(module_, op, group)[0]; };
  const auto lo = integer(t, op, one(operand_slot(ScfFor, "lo")));
  const auto hi = integer(t, op, one(operand_slot(ScfFor, "hi")));
  const auto step = integer(t, op, one(operand_slot(ScfFor, "step")));
  if (!lo || !hi || !step) return Outcome::Stop;
  if (*step <= 0) {
    violation(op, fmt::format("the step {} is not positive", *step));
    return Outcome::Stop;
  }
  const auto init = data(t, operand_group(module_, op, operand_slot(ScfFor, "init")));
  if (*lo >= *hi) {
    for (unsigned r = 0; r < init.size(); ++r) set(t, module_.result(op, r), init[r]);
    return Outcome::Next;
  }
  const RegionId body = module_.op_region(op, 0);
  const auto args = module_.args(body);
  const ScalarKind kind = module_.types[module_.type_of(args[0])].element;
  set(t, args[0], from_bits(kind, static_cast<uint64_t>(*lo)));
  for (size_t i = 0; i < init.size(); ++i) set(t, args[i + 1], init[i]);
  enter(t, Activation::For, op, body);
  Activation& loop = t.activations.back();
  loop.iv_kind = kind;
  loop.iv = *lo;
  loop.hi = *hi;
  loop.step = *step;
  return Outcome::Next;
}

Machine::Outcome Machine::enter_if(Invocation& t, OpId op) {
  const auto chosen = integer(t, op, module_.operand(op, 0));
  if (!chosen) return Outcome::Stop;
  const RegionId region = module_.op_region(op, *chosen != 0 ? 0 : 1);
  if (module_.region(region).has_body) enter(t, Activation::Branch, op, region);
  return Outcome::Next;
}

Machine::Outcome Machine::select(Invocation& t, OpId op) {
  const OpKind kind = module_.op(op).kind;
  if (kind == ScfSelect) {
    const Datum& cond = get(t, module_.operand(op, 0));
    if (std::holds_alternative<Poison>(cond)) {
      set(t, module_.result(op), Poison{});
      return Outcome::Next;
    }
    const auto chosen = integer(t, op, module_.operand(op, 0));
    if (!chosen) return Outcome::Stop;
    set(t, module_.result(op), get(t, module_.operand(op, *chosen != 0 ? 1 : 2)));
    return Outcome::Next;
  }
  // scf.switch and scf.lookup name their rows by ascending keys.
  const auto selector = integer(t, op, module_.operand(op, 0));
  if (!selector) return Outcome::Stop;
  const bool is_switch = kind == ScfSwitch;
  const auto keys =
      module_.attr(op, is_switch ? attr_slot(ScfSwitch, "keys") : attr_slot(ScfLookup, "keys"))
          .ints;
  size_t row = 0;
  while (row < keys.size() && keys[row] != *selector) ++row;
  if (is_switch) {
    enter(t, Activation::Branch, op, module_.op_region(op, static_cast<unsigned>(row)));
    return Outcome::Next;
  }
  const unsigned width = module_.op(op).result_count;
  const auto rows = operand_group(module_, op, operand_slot(ScfLookup, "row"));
  const auto fallback = operand_group(module_, op, operand_slot(ScfLookup, "default"));
  for (unsigned r = 0; r < width; ++r) {
    set(t, module_.result(op, r), get(t, row < keys.size() ? rows[row * width + r] : fallback[r]));
  }
  return Outcome::Next;
}

// The end of the region on top: of a loop's body the next round, of a branch its results.
Machine::Outcome Machine::finish_region(Invocation& t, OpId terminator) {
  Activation& top = t.activations.back();
  const OpId owner = top.owner;
  const auto operands =
      terminator.valid() ? module_.operands(terminator) : std::span<const ValueId>{};
  switch (top.kind) {
    case Activation::Function:
      return finish_function(t, data(t, operands));
    case Activation::Leaving:
      t.status = Invocation::Exited;
      return Outcome::Stop;
    case Activation::Concurrent:
      t.path.pop_back();
      break;
    case Activation::For: {
      const auto carried = data(t, operands);
      const RegionId body = module_.op_region(owner, 0);
      const auto args = module_.args(body);
      int64_t next = 0;
      if (!__builtin_add_overflow(top.iv, top.step, &next) && next < top.hi) {
        top.iv = next;
        top.next = module_.region(body).first;
        set(t, args[0], from_bits(top.iv_kind, static_cast<uint64_t>(next)));
        for (size_t i = 0; i < carried.size(); ++i) set(t, args[i + 1], carried[i]);
        return Outcome::Next;
      }
      break;
    }
    case Activation::WhileBefore: {
      const auto go_on = integer(t, terminator, operands[0]);
      if (!go_on) return Outcome::Stop;
      const auto forwarded = data(t, operands.subspan(1));
      if (*go_on != 0) {
        const RegionId body = module_.op_region(owner, region_slot(ScfWhile, "body"));
        const auto args = module_.args(body);
        for (size_t i = 0; i < forwarded.size(); ++i) set(t, args[i], forwarded[i]);
        top.kind = Activation::WhileBody;
        top.next = module_.region(body).first;
        return Outcome::Next;
      }
      for (unsigned r = 0; r < forwarded.size(); ++r) {
        set(t, module_.result(owner, r), forwarded[r]);
      }
      t.activations.pop_back();
      return Outcome::Next;
    }
    case Activation::WhileBody: {
      const auto carried = data(t, operands);
      const RegionId before = module_.op_region(owner, region_slot(ScfWhile, "before"));
      const auto args = module_.args(before);
      for (size_t i = 0; i < carried.size(); ++i) set(t, args[i], carried[i]);
      top.kind = Activation::WhileBefore;
      top.next = module_.region(before).first;
      return Outcome::Next;
    }
    case Activation::Branch:
    case Activation::Serial:
      break;
  }
  const auto results = data(t, operands);
  for (unsigned r = 0; r < results.size(); ++r) set(t, module_.result(owner, r), results[r]);
  t.activations.pop_back();
  return Outcome::Next;
}

// Returns to the caller, after the promises that named results carry.
Machine::Outcome Machine::finish_function(Invocation& t, std::vector<Datum> results) {
  const Frame& frame = t.frames.back();
  const OpId symbol = frame.symbol;
  const OpId call_op = frame.call;
  const OpKind kind = module_.op(symbol).kind;
  if (kind == FuncDef || kind == TemplateDef) {
    const RegionId named = module_.op_region(symbol, region_slot(FuncDef, "results"));
    const auto formals = module_.args(named);
    for (size_t i = 0; i < formals.size() && i < results.size(); ++i) {
      set(t, formals[i], results[i]);
    }
    std::vector<Predicate> about_results;
    for (const Predicate& predicate : where_predicates(module_, symbol)) {
      if (mentions(predicate, named)) about_results.push_back(predicate);
    }
    const std::string what =
        fmt::format("the contract of the results of '@{}'", symbol_text(module_, symbol));
    if (!promised(t, call_op.valid() ? call_op : symbol, about_results, what)) {
      return Outcome::Stop;
    }
  }
  t.activations.resize(frame.activations);
  t.frames.pop_back();
  if (t.frames.empty()) {
    t.results = std::move(results);
    t.status = Invocation::Done;
    return Outcome::Stop;
  }
  for (unsigned r = 0; r < results.size() && r < module_.op(call_op).result_count; ++r) {
    set(t, module_.result(call_op, r), std::move(results[r]));
  }
  return Outcome::Next;
}

Machine::Outcome Machine::call(Invocation& t, OpId op, OpId callee) {
  const OpKind kind = module_.op(callee).kind;
  if (kind != FuncDef && kind != TemplateDef) {
    fail(op, Diag::RunArguments,
         {{"symbol", std::string(symbol_text(module_, callee))}, {"detail", "it has no body"}});
    return Outcome::Stop;
  }
  const RegionId body = module_.op_region(callee, 0);
  if (module_.region(body).deferred) {
    fail(op, Diag::RunArguments,
         {{"symbol", std::string(symbol_text(module_, callee))},
          {"detail", "its body is not loaded"}});
    return Outcome::Stop;
  }
  std::vector<Datum> arguments = data(t, module_.operands(op));
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Type& formal = module_.types[module_.type_of(module_.args(body)[i])];
    const bool storage = std::holds_alternative<BufferDatum>(arguments[i]);
    if (storage && !as_formal(t, op, formal, arguments[i])) return Outcome::Stop;
  }
  if (!start(t, callee, body, op, arguments)) return Outcome::Stop;
  const RegionId named = module_.op_region(callee, region_slot(FuncDef, "results"));
  std::vector<Predicate> about_arguments;
  for (const Predicate& predicate : where_predicates(module_, callee)) {
    if (!mentions(predicate, named)) about_arguments.push_back(predicate);
  }
  const std::string what = fmt::format("the contract of '@{}'", symbol_text(module_, callee));
  return promised(t, op, about_arguments, what) ? Outcome::Next : Outcome::Stop;
}

// Chooses as selection would with every fact known: what applies, then the greatest priority.
Machine::Outcome Machine::apply(Invocation& t, OpId op) {
  const StringId family = module_.attr(op, attr_slot(TemplateApply, "family")).string();
  const auto refuse = [&](std::string detail) {
    fail(op, Diag::RunTemplate,
         {{"family", std::string(module_.strings.text(family))}, {"detail", std::move(detail)}});
    return Outcome::Stop;
  };
  TargetFacts target = options_.target;
  if (!target.subgroup_size) target.subgroup_size = options_.subgroup_size;
  OpId best;
  OpId rival;
  int64_t best_priority = 0;
  const auto arguments = data(t, module_.operands(op));
  for (OpId one = module_.region(module_.body()).first; one.valid(); one = module_.op(one).next) {
    if (module_.op(one).kind != TemplateDef ||
        module_.attr(one, attr_slot(TemplateDef, "family")).string() != family) {
      continue;
    }
    bool fits = true;
    if (module_.has_attr(one, attr_slot(TemplateDef, "requires"))) {
      for (const DictEntry& entry : module_.attr(one, attr_slot(TemplateDef, "requires")).entries) {
        const auto condition = target_condition(module_, entry.value);
        fits &= condition && condition->holds(target) == std::optional(true);
      }
    }
    prepare_body(one);
    Invocation probe;
    probe.frames.push_back({one, {}, 0, std::vector<Datum>(slot_count(one))});
    const auto formals = module_.args(module_.op_region(one, 0));
    for (size_t i = 0; i < formals.size(); ++i) set(probe, formals[i], arguments[i]);
    for (const Predicate& predicate : where_predicates(module_, one)) {
      fits &= holds(probe, predicate).value_or(true);
    }
    if (!fits) continue;
    const unsigned slot_number = attr_slot(TemplateDef, "priority");
    const int64_t priority =
        module_.has_attr(one, slot_number) ? module_.attr(one, slot_number).value() : 0;
    if (!best.valid() || priority > best_priority) {
      best = one;
      best_priority = priority;
      rival = OpId();
    } else if (priority == best_priority) {
      rival = one;
    }
  }
  if (!best.valid()) return refuse("no implementation with a body holds for these values");
  if (rival.valid()) {
    return refuse(fmt::format("'@{}' and '@{}' have the same priority {}",
                              symbol_text(module_, best), symbol_text(module_, rival),
                              best_priority));
  }
  return call(t, op, best);
}

Machine::Outcome Machine::config_get(Invocation& t, OpId op) {
  const std::string_view key = symbol_ref(module_, op, attr_slot(ConfigGet, "key"));
  const OpId symbol = module_.symbol(key);
  if (!symbol.valid() || module_.op(symbol).kind != ConfigDef) {
    fail(op, Diag::RunArguments,
         {{"symbol", std::string(key)}, {"detail", "the configuration key has no value"}});
    return Outcome::Stop;
  }
  const Attr& literal = module_.attr(symbol, attr_slot(ConfigDef, "value"));
  if (literal.kind == AttrKind::Encoding) {
    set(t, module_.result(op),
        std::make_shared<const EncodingDatum>(
            EncodingDatum{module_.attr_ids(symbol)[attr_slot(ConfigDef, "value")], false, {}}));
    return Outcome::Next;
  }
  return constant(t, op, literal, module_.type_of(module_.result(op))) ? Outcome::Next
                                                                       : Outcome::Stop;
}

Machine::Outcome Machine::control(Invocation& t, OpId op) {
  switch (module_.op(op).kind) {
    case ScfFor:
      return enter_for(t, op);
    case ScfIf:
      return enter_if(t, op);
    case ScfSelect:
    case ScfSwitch:
    case ScfLookup:
      return select(t, op);
    case ScfWhile: {
      const RegionId before = module_.op_region(op, region_slot(ScfWhile, "before"));
      const auto args = module_.args(before);
      const auto init = data(t, module_.operands(op));
      for (size_t i = 0; i < init.size(); ++i) set(t, args[i], init[i]);
      enter(t, Activation::WhileBefore, op, before);
      return Outcome::Next;
    }
    case ConfigGet:
      return config_get(t, op);
    case FuncCall:
    case TemplateCall: {
      const OpId callee = module_.symbol(callee_name(module_, op));
      if (callee.valid()) return host_ != nullptr ? case_call(t, op) : call(t, op, callee);
      unsupported(op);
      return Outcome::Stop;
    }
    case TemplateApply:
      return apply(t, op);
    default:
      break;
  }
  if (op_info(module_.op(op).kind).has(trait::Terminator)) return finish_region(t, op);
  unsupported(op);
  return Outcome::Stop;
}

}  // namespace loom::interp
