// Predicates: what assumptions and contracts promise and assertions check.
#include <fmt/format.h>

#include <cmath>

#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"

namespace loom::interp {

using enum OpKind;

namespace {

// All the values that an operand stands for: its lanes.
std::optional<std::vector<ScalarValue>> values_of(const Datum& datum) {
  if (const auto* one = std::get_if<ScalarValue>(&datum)) return std::vector{*one};
  const auto lanes = lanes_of(datum);
  if (!lanes) return std::nullopt;
  std::vector<ScalarValue> all;
  for (size_t i = 0; i < lanes->lanes.size(); ++i) all.push_back(lanes->at(i));
  return all;
}

int64_t number(ScalarValue value) {
  return value.kind == ScalarKind::I1 ? static_cast<int64_t>(value.bits) : as_signed(value);
}

bool holds_for(PredicateKind kind, ScalarValue value, int64_t a, int64_t b) {
  if (is_float(value.kind)) {
    const double x = to_double(value);
    switch (kind) {
      case PredicateKind::NotNan:
        return !std::isnan(x);
      case PredicateKind::NotInf:
        return !std::isinf(x);
      default:
        return std::isfinite(x);
    }
  }
  const int64_t x = number(value);
  switch (kind) {
    case PredicateKind::Eq:
      return x == a;
    case PredicateKind::Ne:
      return x != a;
    case PredicateKind::Lt:
      return x < a;
    case PredicateKind::Le:
    case PredicateKind::Max:
      return x <= a;
    case PredicateKind::Gt:
      return x > a;
    case PredicateKind::Ge:
    case PredicateKind::Min:
      return x >= a;
    case PredicateKind::Mul:
      return a == 0 ? x == 0 : a == -1 || x % a == 0;
    case PredicateKind::Range:
      return a <= x && x <= b;
    case PredicateKind::Pow2:
      return x > 0 && (x & (x - 1)) == 0;
    default:
      return true;
  }
}

std::string shown(const Datum& datum) {
  const auto values = values_of(datum);
  if (!values) return "poison";
  std::string text;
  for (const ScalarValue& value : *values) {
    text += fmt::format(
        "{}{}", text.empty() ? "" : ", ",
        is_float(value.kind) ? fmt::to_string(to_double(value)) : fmt::to_string(number(value)));
  }
  return values->size() == 1 ? text : fmt::format("[{}]", text);
}

}  // namespace

// Nothing when a value of it is poison or no number.
std::optional<bool> Machine::holds(const Invocation& t, const Predicate& predicate) const {
  int64_t bounds[2] = {0, 0};
  for (unsigned a = 1; a < predicate.arity(); ++a) {
    const PredicateArg& arg = predicate.args[a];
    bounds[a - 1] = arg.literal;
    if (!arg.is_value()) continue;
    const auto* value = std::get_if<ScalarValue>(&get(t, arg.value));
    if (value == nullptr) return std::nullopt;
    bounds[a - 1] = number(*value);
  }
  const auto values = values_of(get(t, predicate.args[0].value));
  if (!values) return std::nullopt;
  for (const ScalarValue& value : *values) {
    if (!holds_for(predicate.kind, value, bounds[0], bounds[1])) return false;
  }
  return true;
}

std::string Machine::predicate_text(const Invocation& t, const Predicate& predicate) const {
  std::string text(predicate_info(predicate.kind).text);
  std::string values;
  for (unsigned a = 0; a < predicate.arity(); ++a) {
    const PredicateArg& arg = predicate.args[a];
    text += a == 0 ? "(" : ", ";
    if (!arg.is_value()) {
      text += fmt::to_string(arg.literal);
      continue;
    }
    text += value_name(arg.value);
    values += fmt::format("{}{} = {}", values.empty() ? "" : ", ", value_name(arg.value),
                          shown(get(t, arg.value)));
  }
  return fmt::format("{}) with {}", text, values);
}

bool Machine::mentions(const Predicate& predicate, RegionId region) const {
  for (unsigned a = 0; a < predicate.arity(); ++a) {
    if (!predicate.args[a].is_value()) continue;
    const Value& value = module_.value(predicate.args[a].value);
    if (value.kind == ValueKind::Argument && RegionId(value.owner) == region) return true;
  }
  return false;
}

bool Machine::promised(Invocation& t, OpId at, std::span<const Predicate> predicates,
                       std::string_view what) {
  if (!options_.check_promises) return true;
  for (const Predicate& predicate : predicates) {
    if (holds(t, predicate).value_or(true)) continue;
    return fail(at, Diag::RunFalsePromise,
                {{"what", std::string(what)}, {"detail", predicate_text(t, predicate)}});
  }
  return true;
}

bool Machine::asserted(Invocation& t, OpId at, std::span<const Predicate> predicates) {
  for (const Predicate& predicate : predicates) {
    if (holds(t, predicate).value_or(false)) continue;
    return fail(at, Diag::RunAssertion, {{"detail", predicate_text(t, predicate)}});
  }
  return true;
}

// Assumptions and assertions over values: the results are the operands.
Machine::Outcome Machine::assume(Invocation& t, OpId op) {
  bool good = true;
  switch (module_.op(op).kind) {
    case IndexAssume:
    case ScalarAssume:
      good = promised(t, op, module_.attr(op, attr_slot(IndexAssume, "predicates")).predicates,
                      "the assumption");
      break;
    case SanitizerAssertValue:
    case SanitizerAssertOp:
      good = asserted(t, op,
                      module_.attr(op, attr_slot(SanitizerAssertValue, "predicates")).predicates);
      break;
    case SanitizerAssertAccess: {
      const auto window = view(t, op, operand_group(module_, op, 0)[0]);
      const auto origin = indices(t, op, operand_group(module_, op, 1),
                                  attr_slot(SanitizerAssertAccess, "static_index"));
      if (!window || !origin) return Outcome::Stop;
      const auto size = module_.attr(op, attr_slot(SanitizerAssertAccess, "static_extents")).ints;
      for (size_t axis = 0; axis < origin->size(); ++axis) {
        const int64_t begin = (*origin)[axis];
        const int64_t extent = axis < size.size() ? size[axis] : 1;
        if (begin >= 0 && extent <= window->extents[axis] &&
            begin <= window->extents[axis] - extent) {
          continue;
        }
        fail(op, Diag::RunAssertion,
             {{"detail", fmt::format("elements {} to {} of axis {} are outside the extent {}",
                                     begin, begin + extent - 1, axis, window->extents[axis])}});
        return Outcome::Stop;
      }
      return Outcome::Next;
    }
    case SanitizerAssertLayout: {
      const auto window = view(t, op, module_.operand(op, 0));
      if (!window) return Outcome::Stop;
      const TypeId wanted = module_.attr(op, attr_slot(SanitizerAssertLayout, "layout")).type();
      ViewDatum other;
      if (!lay_out(t, op, module_.types[wanted], other)) return Outcome::Stop;
      if (other.extents == window->extents && other.strides == window->strides &&
          other.record.bytes == window->record.bytes) {
        return Outcome::Next;
      }
      fail(op, Diag::RunAssertion,
           {{"detail",
             fmt::format("the view has the strides [{}] and not [{}]",
                         fmt::join(window->strides, ", "), fmt::join(other.strides, ", "))}});
      return Outcome::Stop;
    }
    default:
      good = unsupported(op);
      break;
  }
  if (!good) return Outcome::Stop;
  const auto operands = data(t, module_.operands(op));
  for (unsigned r = 0; r < module_.op(op).result_count; ++r) {
    set(t, module_.result(op, r), operands[r]);
  }
  return Outcome::Next;
}

namespace {

bool overlap(const BufferDatum& a, const BufferDatum& b) {
  return a.root != nullptr && a.size != 0 && b.size != 0 && a.root == b.root &&
         a.begin < b.begin + b.size && b.begin < a.begin + a.size;
}

}  // namespace

Machine::Outcome Machine::assume_storage(Invocation& t, OpId op) {
  const auto operands = module_.operands(op);
  std::vector<BufferDatum> buffers;
  for (ValueId value : operands) {
    auto found = buffer(t, op, value);
    if (!found) return Outcome::Stop;
    buffers.push_back(std::move(*found));
  }
  std::string wrong;
  switch (module_.op(op).kind) {
    case BufferAssumeNoalias:
      for (size_t i = 0; i < buffers.size(); ++i) {
        for (size_t j = i + 1; j < buffers.size(); ++j) {
          if (overlap(buffers[i], buffers[j])) {
            wrong = fmt::format("'{}' and '{}' share bytes of {}", value_name(operands[i]),
                                value_name(operands[j]), buffers[i].root->text());
          }
        }
      }
      break;
    case BufferAssumeAlignment: {
      const auto wanted = static_cast<uint64_t>(
          module_.attr(op, attr_slot(BufferAssumeAlignment, "minimum_alignment")).value());
      for (size_t i = 0; i < buffers.size(); ++i) {
        if (buffers[i].root == nullptr) continue;
        if (buffers[i].root->alignment < wanted || buffers[i].begin % wanted != 0) {
          wrong =
              fmt::format("'{}' begins at byte {} of {}, which is aligned to {} bytes and not {}",
                          value_name(operands[i]), buffers[i].begin, buffers[i].root->text(),
                          buffers[i].root->alignment, wanted);
        }
      }
      break;
    }
    case BufferAssumeMemorySpace: {
      const auto wanted = static_cast<MemorySpace>(
          module_.attr(op, attr_slot(BufferAssumeMemorySpace, "space")).value());
      const MemorySpace found = buffers[0].root ? buffers[0].root->space : wanted;
      if (wanted != found && wanted != MemorySpace::Generic) {
        const auto& cases = enum_info(EnumId::MemorySpace).cases;
        wrong = fmt::format("{} is {} memory and not {}", buffers[0].root->text(),
                            cases[static_cast<size_t>(found)], cases[static_cast<size_t>(wanted)]);
      }
      break;
    }
    case BufferAssumeSameRoot:
      if (buffers[0].root != buffers[1].root) {
        wrong = fmt::format("'{}' and '{}' are different roots", value_name(operands[0]),
                            value_name(operands[1]));
      }
      break;
    default:
      unsupported(op);
      return Outcome::Stop;
  }
  if (!wrong.empty() && options_.check_promises) {
    fail(op, Diag::RunFalsePromise, {{"what", "the assumption"}, {"detail", wrong}});
    return Outcome::Stop;
  }
  for (unsigned r = 0; r < module_.op(op).result_count; ++r) {
    set(t, module_.result(op, r), buffers[r]);
  }
  return Outcome::Next;
}

}  // namespace loom::interp
