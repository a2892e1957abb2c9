// Cases of the check dialect: what the host does, and how tensors are seen here.
#include <algorithm>

#include "loom/dialect/hooks.h"
#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"

namespace loom::interp {

using enum OpKind;

bool Machine::in_program(const Invocation& t) const {
  return in_program_ || (host_ != nullptr && std::ranges::any_of(t.frames, [&](const Frame& frame) {
                           return module_.op(frame.symbol).kind == CommandProgramDef;
                         }));
}

// The operands as the host takes them: of a view the bytes that it reaches.
std::optional<std::vector<CaseValue>> Machine::case_values(Invocation& t, OpId op) {
  std::vector<CaseValue> values;
  values.reserve(module_.operands(op).size());
  for (const ValueId operand : module_.operands(op)) {
    const Datum& datum = get(t, operand);
    if (auto lanes = lanes_of(datum)) {
      values.emplace_back(std::move(*lanes));
    } else if (const auto* buffer = std::get_if<BufferDatum>(&datum); buffer && buffer->root) {
      values.emplace_back(buffer->root->bytes.subspan(buffer->begin, buffer->size));
    } else if (const auto* window = std::get_if<std::shared_ptr<const ViewDatum>>(&datum)) {
      const auto bytes = footprint(**window);
      const BufferDatum& root = (*window)->buffer;
      const auto begin = static_cast<uint64_t>((*window)->base);
      const uint64_t end = root.begin + root.size;
      if (!bytes || root.root == nullptr || (*window)->base < 0 || begin > end ||
          *bytes > end - begin) {
        violation(op, "the bytes that a view reaches are out of range");
        return std::nullopt;
      }
      values.emplace_back(root.root->bytes.subspan(begin, *bytes));
    } else {
      not_a_value(op, datum);
      return std::nullopt;
    }
  }
  return values;
}

Machine::Outcome Machine::tensor_view(Invocation& t, OpId op) {
  const auto from = buffer(t, op, module_.operand(op, 0));
  if (!from) return Outcome::Stop;
  const auto offset =
      static_cast<uint64_t>(module_.attr(op, attr_slot(CheckTensorView, "offset")).value());
  const auto bytes = dense_bytes(module_.types[module_.type_of(module_.result(op))]);
  if (!bytes || offset > from->size || *bytes > from->size - offset) {
    violation(op, "its bytes do not fit into those of the tensor");
    return Outcome::Stop;
  }
  set(t, module_.result(op), BufferDatum{from->root, from->begin + offset, *bytes});
  return Outcome::Next;
}

Machine::Outcome Machine::check(Invocation& t, OpId op) {
  if (module_.op(op).kind == CheckTensorView) return tensor_view(t, op);
  const auto operands = host_ != nullptr ? case_values(t, op) : std::nullopt;
  if (!operands) {
    if (host_ == nullptr) unsupported(op);
    return Outcome::Stop;
  }
  std::vector<CaseValue> results(module_.op(op).result_count);
  if (!host_->check(op, *operands, results)) return Outcome::Stop;
  for (unsigned r = 0; r < results.size(); ++r) {
    const ValueId value = module_.result(op, r);
    if (auto* lanes = std::get_if<LaneValues>(&results[r])) {
      const bool scalar = module_.types.is_scalar(module_.type_of(value));
      set(t, value, scalar ? Datum(lanes->at(0)) : lanes_datum(std::move(*lanes)));
      continue;
    }
    const auto bytes = std::get<std::span<std::byte>>(results[r]);
    const auto root = wrap_root(std::string(module_.name_of(value)), bytes);
    root->shared = true;
    set(t, value, BufferDatum{root, 0, bytes.size()});
  }
  return Outcome::Next;
}

// What a function does on the host follows every launch before it.
Machine::Outcome Machine::case_call(Invocation& t, OpId op) {
  const OpId callee = module_.symbol(callee_name(module_, op));
  if (t.launch == nullptr && t.frames.size() == 1) {
    begin_command({}, symbol_text(module_, callee), Launch{});
  }
  return call(t, op, callee);
}

std::optional<Machine::Outcome> Machine::host_launch(Invocation& t, OpId op) {
  const OpKind kind = module_.op(op).kind;
  if (host_ == nullptr || t.launch != nullptr || t.frames.size() != 1 ||
      (kind != KernelLaunch && kind != CommandProgramLaunch)) {
    return std::nullopt;
  }
  const auto operands = case_values(t, op);
  if (!operands) return Outcome::Stop;
  const auto done = host_->launch(op, *operands);
  if (!done) return std::nullopt;
  return *done ? Outcome::Next : Outcome::Stop;
}

bool Machine::check_case(OpId symbol, CaseHost& host) {
  host_ = &host;
  const ParameterBytes supply = [&](std::string_view root, std::string_view key, uint64_t bytes) {
    return host.parameter(root, key, bytes);
  };
  parameters_ = &supply;
  Invocation t;
  return start(t, symbol, module_.op_region(symbol, region_slot(CheckCase, "body")), {}, {}) &&
         run(t) && t.status == Invocation::Done;
}

}  // namespace loom::interp

namespace loom {

bool run_case(const Module& module, OpId check_case, CaseHost& host, const InterpOptions& options,
              Diagnostics& diagnostics) {
  return interp::Machine(module, options, diagnostics).check_case(check_case, host);
}

}  // namespace loom
