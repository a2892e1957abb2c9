// Command programs: launches, dispatches, parameters and the order between commands.
#include <fmt/format.h>

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"
#include "loom/ir/walk.h"

namespace loom::interp {

using enum OpKind;

namespace {

// The storage that a view reaches, as a launch passes it for a buffer.
BufferDatum buffer_of(const ViewDatum& view, uint64_t bytes) {
  const auto begin = static_cast<uint64_t>(view.base);
  const uint64_t end = view.buffer.begin + view.buffer.size;
  return {view.buffer.root, begin, std::min(bytes, end - std::min(begin, end))};
}

}  // namespace

// Ordered commands share one history; what came before a command outside of every concurrent region
// is over.
void Machine::begin_command(const Invocation& t, std::string_view symbol, const Launch& launch) {
  if (t.path.empty()) ++generation_;
  published_.clear();
  order_.add(t.path);
  commands_.push_back({std::string(symbol), launch});
}

// A formal buffer takes a view for the bytes that it reaches; a formal view, the storage of a
// tensor of its shape.
bool Machine::as_formal(Invocation& t, OpId op, const Type& formal, Datum& actual) {
  if (std::holds_alternative<Poison>(actual)) return not_a_value(op, actual);
  if (const auto* buffer = std::get_if<BufferDatum>(&actual);
      buffer != nullptr && formal.kind == TypeKind::View) {
    auto made = view_of(t, op, *buffer, 0, formal);
    if (made == nullptr) return false;
    actual = std::move(made);
    return true;
  }
  const auto* window = std::get_if<std::shared_ptr<const ViewDatum>>(&actual);
  if (window == nullptr || formal.kind != TypeKind::Buffer) return true;
  const auto bytes = footprint(**window);
  if (!bytes || (*window)->base < 0) {
    return violation(op, "the bytes that a view reaches are out of range");
  }
  actual = buffer_of(**window, *bytes);
  return true;
}

std::optional<std::vector<Datum>> Machine::arguments_of(Invocation& t, OpId op, RegionId formals,
                                                        std::span<const ValueId> actuals) {
  std::vector<Datum> found = data(t, actuals);
  const auto wanted = module_.args(formals);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!as_formal(t, op, module_.types[module_.type_of(wanted[i])], found[i])) return std::nullopt;
  }
  return found;
}

Machine::Outcome Machine::launch_kernel(Invocation& t, OpId op) {
  const std::string symbol(symbol_ref(module_, op, attr_slot(KernelLaunch, "callee")));
  const OpId kernel = module_.symbol(symbol);
  if (!kernel.valid() || module_.op(kernel).kind != KernelDef) {
    fail(op, Diag::RunEntryMissing,
         {{"symbol", symbol}, {"root", std::string(symbol_text(module_, t.frames[0].symbol))}});
    return Outcome::Stop;
  }
  const auto workload = data(t, operand_group(module_, op, operand_slot(KernelLaunch, "workload")));
  const auto arguments =
      arguments_of(t, op, module_.op_region(kernel, region_slot(KernelDef, "body")),
                   operand_group(module_, op, operand_slot(KernelLaunch, "args")));
  if (!arguments) return Outcome::Stop;
  const auto launch = configure(op, kernel, workload);
  if (!launch) return Outcome::Stop;
  begin_command(t, symbol, *launch);
  return dispatch(op, *launch, *arguments) ? Outcome::Next : Outcome::Stop;
}

Machine::Outcome Machine::dispatch_kernel(Invocation& t, OpId op) {
  const std::string symbol(symbol_ref(module_, op, attr_slot(KernelDispatch, "callee")));
  const OpId kernel = module_.symbol(symbol);
  if (!kernel.valid() || module_.op(kernel).kind != KernelDef) {
    fail(op, Diag::RunEntryMissing,
         {{"symbol", symbol}, {"root", std::string(symbol_text(module_, t.frames[0].symbol))}});
    return Outcome::Stop;
  }
  const auto arguments =
      arguments_of(t, op, module_.op_region(kernel, region_slot(KernelDef, "body")),
                   operand_group(module_, op, operand_slot(KernelDispatch, "args")));
  if (!arguments) return Outcome::Stop;
  Launch launch{.kernel = kernel, .subgroup_size = subgroup_size(kernel)};
  const auto sizes = operand_group(module_, op, operand_slot(KernelDispatch, "size"));
  if (sizes.empty()) {
    const auto workload = module_.args(module_.op_region(kernel, region_slot(KernelDef, "config")));
    const auto configured =
        configure(op, kernel, std::vector<Datum>(workload.size(), Datum(Poison{})));
    if (!configured) return Outcome::Stop;
    launch = *configured;
    std::ranges::fill(launch.count, 1);
  }
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const auto size = integer(t, op, sizes[axis]);
    if (!size) return Outcome::Stop;
    if (*size <= 0) {
      violation(op, fmt::format("the workgroup size {} is not positive", *size));
      return Outcome::Stop;
    }
    launch.size[axis] = *size;
  }
  begin_command(t, symbol, launch);
  if (contracts_only_) return dispatch(op, launch, *arguments) ? Outcome::Next : Outcome::Stop;
  const auto counts = operand_group(module_, op, operand_slot(KernelDispatch, "count"));
  const auto* stored = std::get_if<std::shared_ptr<const ViewDatum>>(&get(t, counts[0]));
  for (size_t axis = 0; axis < (stored ? 3 : counts.size()); ++axis) {
    int64_t count = 0;
    if (stored != nullptr) {
      const int64_t index[] = {static_cast<int64_t>(axis)};
      const auto byte = locate(op, **stored, index, true);
      if (!byte) return Outcome::Stop;
      const auto bits = load(t, op, **stored, *byte, {.read = true});
      if (!bits) return Outcome::Stop;
      count = static_cast<int64_t>(*bits);
    } else {
      const auto value = integer(t, op, counts[axis]);
      if (!value) return Outcome::Stop;
      count = *value;
    }
    if (count < 0 || count > int64_t{0xFFFFFFFF}) {
      violation(op, fmt::format("the workgroup count {} of axis {} is out of range", count, axis));
      return Outcome::Stop;
    }
    launch.count[axis] = count;
  }
  commands_.back().launch = launch;
  return dispatch(op, launch, *arguments) ? Outcome::Next : Outcome::Stop;
}

Machine::Outcome Machine::launch_program(Invocation& t, OpId op) {
  const std::string symbol(symbol_ref(module_, op, attr_slot(CommandProgramLaunch, "callee")));
  const OpId program = module_.symbol(symbol);
  if (!program.valid() || module_.op(program).kind != CommandProgramDef) {
    fail(op, Diag::RunArguments, {{"symbol", symbol}, {"detail", "it has no body"}});
    return Outcome::Stop;
  }
  const auto arguments = data(t, module_.operands(op));
  const RegionId body = module_.op_region(program, region_slot(CommandProgramDef, "body"));
  if (host_ != nullptr && t.frames.size() == 1) {
    formal_names_.clear();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto* storage = std::get_if<BufferDatum>(&arguments[i]);
      if (storage == nullptr) continue;
      formal_names_.try_emplace(storage->root.get(), module_.name_of(module_.args(body)[i]));
    }
  }
  if (!start(t, program, body, op, arguments)) return Outcome::Stop;
  return promised(t, op, where_predicates(module_, program),
                  fmt::format("the contract of '@{}'", symbol))
             ? Outcome::Next
             : Outcome::Stop;
}

bool Machine::reaches_a_command(ValueId value) {
  if (!reaching_) {
    reaching_.emplace();
    for_each_op(module_, module_.body(), [&](OpId program) {
      if (module_.op(program).kind != CommandProgramDef) return;
      std::vector<OpId> ops;
      for_each_nested(module_, program, [&](OpId op) { ops.push_back(op); });
      // Users stand behind what they use.
      for (size_t i = ops.size(); i-- > 0;) {
        const OpInfo& info = op_info(module_.op(ops[i]).kind);
        bool used = info.effect != Effect::Pure || info.has(trait::Terminator) ||
                    module_.op(ops[i]).region_count != 0;
        for (unsigned r = 0; r < module_.op(ops[i]).result_count; ++r) {
          used = used || reaching_->contains(module_.result(ops[i], r).index());
        }
        if (!used) continue;
        for (const ValueId operand : module_.operands(ops[i])) reaching_->insert(operand.index());
      }
    });
  }
  return reaching_->contains(value.index());
}

// Content that a file supplies for the pattern with its numbers filled in.
Machine::Outcome Machine::parameter(Invocation& t, OpId op) {
  const auto root = buffer(t, op, operand_group(module_, op, 0)[0]);
  if (!root || root->root == nullptr) return Outcome::Stop;
  std::vector<int64_t> numbers;
  if (module_.has_attr(op, attr_slot(CommandParameter, "static_key"))) {
    auto found = indices(t, op, operand_group(module_, op, operand_slot(CommandParameter, "key")),
                         attr_slot(CommandParameter, "static_key"));
    if (!found) return Outcome::Stop;
    numbers = std::move(*found);
  }
  std::string key(
      module_.strings.text(module_.attr(op, attr_slot(CommandParameter, "pattern")).string()));
  size_t from = 0;
  for (int64_t number : numbers) {
    if (number < 0) {
      violation(op, fmt::format("the number {} is negative", number));
      return Outcome::Stop;
    }
    const size_t place = key.find("{}", from);
    if (place == std::string::npos) break;
    const std::string digits = std::to_string(number);
    key.replace(place, 2, digits);
    from = place + digits.size();
  }
  const Type& type = module_.types[module_.type_of(module_.result(op))];
  ViewDatum shape;
  if (!lay_out(t, op, type, shape)) return Outcome::Stop;
  const auto bytes = footprint(shape);
  if (!bytes) {
    violation(op, "the bytes of the parameter are out of range");
    return Outcome::Stop;
  }
  // What no command gets leaves no requirement.
  if (contracts_only_ || !reaches_a_command(module_.result(op))) {
    const auto nothing = allocate_root(key, MemorySpace::Constant, 4096, *bytes);
    auto made = nothing != nullptr ? view_of(t, op, {nothing, 0, *bytes}, 0, type) : nullptr;
    if (made == nullptr) return Outcome::Stop;
    set(t, module_.result(op), std::move(made));
    return Outcome::Next;
  }
  const auto formal = formal_names_.find(root->root.get());
  const std::string& name = formal != formal_names_.end() ? formal->second : root->root->name;
  std::shared_ptr<Root>& content = parameter_roots_[{name, key}];
  if (content == nullptr) {
    if (parameters_ == nullptr || !*parameters_) {
      fail(op, Diag::RunParameterMissing, {{"key", key}, {"root", name}, {"repair", ""}});
      return Outcome::Stop;
    }
    const auto found = (*parameters_)(name, key, *bytes);
    if (!found) return Outcome::Stop;
    content = allocate_root(name + ":" + key, MemorySpace::Constant, 4096, found->size());
    if (content == nullptr) {
      fail(op, Diag::RunOutOfMemory,
           {{"bytes", std::to_string(found->size())}, {"what", "parameter \"" + key + "\""}});
      return Outcome::Stop;
    }
    std::ranges::copy(*found, content->owned.begin());
    content->initialized.clear();
    content->space = MemorySpace::Global;
    content->read_only = true;
    content->shared = true;
  }
  auto made = view_of(t, op, {content, 0, content->bytes.size()}, 0, type);
  if (made == nullptr) return Outcome::Stop;
  set(t, module_.result(op), std::move(made));
  return Outcome::Next;
}

Machine::Outcome Machine::command(Invocation& t, OpId op) {
  if (const auto done = host_launch(t, op)) return *done;
  switch (module_.op(op).kind) {
    case KernelLaunch:
      return launch_kernel(t, op);
    case KernelDispatch:
      return dispatch_kernel(t, op);
    case CommandProgramLaunch:
      return launch_program(t, op);
    case CommandParameter:
      return parameter(t, op);
    case CommandSerial:
      enter(t, Activation::Serial, op, module_.op_region(op, 0));
      return Outcome::Next;
    case CommandConcurrent:
      t.path.push_back({next_region_++, 0});
      enter(t, Activation::Concurrent, op, module_.op_region(op, 0));
      return Outcome::Next;
    default:
      unsupported(op);
      return Outcome::Stop;
  }
}

}  // namespace loom::interp
