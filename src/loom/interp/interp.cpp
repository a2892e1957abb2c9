#include "loom/interp/interp.h"

#include <fmt/format.h>

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"
#include "loom/ir/walk.h"

namespace loom {
namespace interp {

using enum OpKind;

namespace {

bool is_symbol(const Module& module, OpId op, std::initializer_list<OpKind> kinds) {
  return op.valid() && std::find(kinds.begin(), kinds.end(), module.op(op).kind) != kinds.end();
}

// One root for storage that overlaps, as the program can tell.
std::vector<BufferDatum> wrap_storage(std::span<const InterpArgument> arguments) {
  std::vector<BufferDatum> made(arguments.size());
  std::vector<std::pair<const InterpStorage*, size_t>> order;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* storage = std::get_if<InterpStorage>(&arguments[i]);
    if (storage != nullptr) order.emplace_back(storage, i);
  }
  const auto begin_of = [](const InterpStorage& s) {
    return reinterpret_cast<uintptr_t>(s.bytes.data());
  };
  std::ranges::stable_sort(order, {}, [&](const auto& one) { return begin_of(*one.first); });
  for (size_t i = 0; i < order.size();) {
    std::span<std::byte> bytes = order[i].first->bytes;
    size_t end = i + 1;
    while (end < order.size() && !order[end].first->bytes.empty() &&
           begin_of(*order[end].first) < begin_of(*order[i].first) + bytes.size()) {
      const size_t offset = begin_of(*order[end].first) - begin_of(*order[i].first);
      bytes = {bytes.data(), std::max(bytes.size(), offset + order[end].first->bytes.size())};
      ++end;
    }
    const auto root = wrap_root(order[i].first->name, bytes);
    root->shared = true;
    for (; i < end; ++i) {
      const std::span<std::byte> own = order[i].first->bytes;
      made[order[i].second] = {root, static_cast<uint64_t>(own.data() - bytes.data()), own.size()};
    }
  }
  return made;
}

}  // namespace

// Scalars first: the shapes of views may name them.
std::optional<std::vector<Datum>> Machine::arguments_from(
    OpId symbol, std::span<const ValueId> formals, std::span<const InterpArgument> arguments) {
  const auto refuse = [&](std::string detail) {
    fail(symbol, Diag::RunArguments,
         {{"symbol", std::string(symbol_text(module_, symbol))}, {"detail", std::move(detail)}});
    return std::nullopt;
  };
  if (formals.size() != arguments.size()) {
    return refuse(
        fmt::format("it takes {} arguments and not {}", formals.size(), arguments.size()));
  }
  prepare_body(symbol);
  Invocation t;
  t.frames.push_back({symbol, {}, 0, std::vector<Datum>(slot_count(symbol))});
  std::vector<Datum> made(formals.size());
  for (size_t i = 0; i < formals.size(); ++i) {
    const Type& type = module_.types[module_.type_of(formals[i])];
    const auto* lanes = std::get_if<LaneValues>(&arguments[i]);
    if (lanes == nullptr) continue;
    const bool fits = (type.is_scalar() || type.kind == TypeKind::Vector) &&
                      type.element == lanes->element && type.rank() == lanes->shape.size() &&
                      lanes->lanes.size() == lane_count(lanes->shape);
    if (!fits) return refuse(fmt::format("argument {} has another type", i));
    made[i] = type.is_scalar() ? Datum(lanes->at(0)) : lanes_datum(*lanes);
    set(t, formals[i], made[i]);
  }
  const std::vector<BufferDatum> roots = wrap_storage(arguments);
  for (size_t i = 0; i < formals.size(); ++i) {
    if (!std::holds_alternative<InterpStorage>(arguments[i])) continue;
    const Type& type = module_.types[module_.type_of(formals[i])];
    const BufferDatum& buffer = roots[i];
    if (type.kind == TypeKind::Buffer) {
      made[i] = buffer;
    } else if (type.kind == TypeKind::View) {
      for (Dim dim : type.dims) {
        if (dim.is_dynamic() && !std::holds_alternative<ScalarValue>(get(t, dim.value()))) {
          return refuse(fmt::format("the extents of argument {} are not given", i));
        }
      }
      made[i] = view_of(t, symbol, buffer, 0, type);
      if (std::get<std::shared_ptr<const ViewDatum>>(made[i]) == nullptr) return std::nullopt;
    } else {
      return refuse(fmt::format("argument {} takes no storage", i));
    }
  }
  return made;
}

std::optional<std::vector<LaneValues>> Machine::function(
    OpId symbol, std::span<const InterpArgument> arguments) {
  const RegionId body = module_.op_region(symbol, 0);
  const auto made = arguments_from(symbol, module_.args(body), arguments);
  if (!made) return std::nullopt;
  Invocation t;
  if (!start(t, symbol, body, {}, *made)) return std::nullopt;
  const RegionId named = module_.op_region(symbol, region_slot(FuncDef, "results"));
  std::vector<Predicate> contract;
  for (const Predicate& predicate : where_predicates(module_, symbol)) {
    if (!mentions(predicate, named)) contract.push_back(predicate);
  }
  if (!promised(t, symbol, contract,
                fmt::format("the contract of '@{}'", symbol_text(module_, symbol))) ||
      !run(t)) {
    return std::nullopt;
  }
  std::vector<LaneValues> results;
  for (const Datum& datum : t.results) {
    auto lanes = lanes_of(datum);
    if (!lanes) {
      const OpId end = module_.region(body).last;
      if (std::holds_alternative<Poison>(datum)) {
        violation(end, "poison reaches it");
      } else {
        fail(symbol, Diag::RunArguments,
             {{"symbol", std::string(symbol_text(module_, symbol))},
              {"detail", "a result is neither a scalar nor a vector"}});
      }
      return std::nullopt;
    }
    results.push_back(std::move(*lanes));
  }
  return results;
}

bool Machine::kernel(OpId symbol, std::span<const ScalarValue> workload,
                     std::span<const InterpArgument> arguments) {
  const RegionId body = module_.op_region(symbol, region_slot(KernelDef, "body"));
  const auto formal_workload = module_.args(module_.op_region(symbol, 0));
  std::vector<InterpArgument> host;
  for (ScalarValue value : workload) host.push_back(scalar_argument(value));
  const auto configured = arguments_from(symbol, formal_workload, host);
  const auto made = configured ? arguments_from(symbol, module_.args(body), arguments)
                               : std::optional<std::vector<Datum>>();
  if (!made) return false;
  const auto launch = configure(symbol, symbol, *configured);
  if (!launch) return false;
  begin_command({}, symbol_text(module_, symbol), *launch);
  return dispatch(symbol, *launch, *made);
}

bool Machine::program(OpId symbol, std::span<const ScalarValue> specializations,
                      std::span<const InterpStorage> bindings, const ParameterBytes& parameters) {
  in_program_ = true;
  parameters_ = &parameters;
  const RegionId body = module_.op_region(symbol, 0);
  std::vector<InterpArgument> arguments;
  for (ScalarValue value : specializations) arguments.push_back(scalar_argument(value));
  for (const InterpStorage& storage : bindings) arguments.push_back(storage);
  const auto made = arguments_from(symbol, module_.args(body), arguments);
  if (!made) return false;
  for (const Datum& datum : *made) {
    if (const auto* buffer = std::get_if<BufferDatum>(&datum)) buffer->root->is_binding = true;
  }
  Invocation t;
  return start(t, symbol, body, {}, *made) &&
         promised(t, symbol, where_predicates(module_, symbol),
                  fmt::format("the contract of '@{}'", symbol_text(module_, symbol))) &&
         run(t);
}

bool Machine::contracts(OpId at, OpId symbol, std::span<const InterpArgument> arguments) {
  contracts_only_ = true;
  in_program_ = module_.op(symbol).kind == CommandProgramDef;
  const RegionId body =
      module_.op_region(symbol, in_program_ ? region_slot(CommandProgramDef, "body")
                                            : region_slot(KernelDef, "body"));
  const auto made = arguments_from(symbol, module_.args(body), arguments);
  if (!made) return false;
  if (!in_program_) return keeps_contract(at, symbol, *made);
  Invocation t;
  return start(t, symbol, body, {}, *made) &&
         promised(t, at, where_predicates(module_, symbol),
                  fmt::format("the contract of '@{}'", symbol_text(module_, symbol))) &&
         run(t);
}

}  // namespace interp

InterpTables::InterpTables(const Module& module)
    : layout_(std::make_unique<interp::Layout>(module)) {}
InterpTables::InterpTables(InterpTables&&) noexcept = default;
InterpTables& InterpTables::operator=(InterpTables&&) noexcept = default;
InterpTables::~InterpTables() = default;

LaneValues scalar_argument(ScalarValue value) { return {value.kind, {}, {value.bits}, {}}; }

namespace {

OpId find(const Module& module, std::string_view symbol, std::initializer_list<OpKind> kinds,
          const InterpOptions& options, std::string_view expected, Diagnostics& diagnostics) {
  const OpId op = module.symbol(symbol);
  std::string detail;
  if (!op.valid()) {
    detail = "there is no such symbol";
  } else if (!interp::is_symbol(module, op, kinds)) {
    detail = fmt::format("it is a {} and not a {}", symbol_kind_text(module.op(op).kind), expected);
  } else if (options.subgroup_size == 0) {
    detail = "a subgroup has at least one lane";
  } else {
    for (unsigned i = 0; i < module.op(op).region_count; ++i) {
      if (module.region(module.op_region(op, i)).deferred) detail = "its body is not loaded";
    }
  }
  if (detail.empty()) return op;
  diagnostics.emit(Diag::RunArguments, op.valid() ? module.location(op) : Location{},
                   {{"symbol", std::string(symbol)}, {"detail", detail}});
  return {};
}

}  // namespace

std::optional<std::vector<LaneValues>> run_function(const Module& module, std::string_view symbol,
                                                    std::span<const InterpArgument> arguments,
                                                    const InterpOptions& options,
                                                    Diagnostics& diagnostics) {
  const OpId op = find(module, symbol, {OpKind::FuncDef, OpKind::TemplateDef}, options, "function",
                       diagnostics);
  if (!op.valid()) return std::nullopt;
  return interp::Machine(module, options, diagnostics).function(op, arguments);
}

bool run_kernel(const Module& module, std::string_view symbol,
                std::span<const ScalarValue> workload, std::span<const InterpArgument> arguments,
                const InterpOptions& options, Diagnostics& diagnostics) {
  const OpId op = find(module, symbol, {OpKind::KernelDef}, options, "kernel", diagnostics);
  return op.valid() &&
         interp::Machine(module, options, diagnostics).kernel(op, workload, arguments);
}

bool check_contracts(const Module& module, OpId at, std::string_view symbol,
                     std::span<const InterpArgument> arguments, const InterpOptions& options,
                     Diagnostics& diagnostics) {
  const OpId op = find(module, symbol, {OpKind::KernelDef, OpKind::CommandProgramDef}, options,
                       "kernel or command program", diagnostics);
  return op.valid() && interp::Machine(module, options, diagnostics).contracts(at, op, arguments);
}

bool run_program(const Module& module, std::string_view symbol,
                 std::span<const ScalarValue> specializations,
                 std::span<const InterpStorage> bindings, const ParameterBytes& parameters,
                 const InterpOptions& options, Diagnostics& diagnostics) {
  const OpId op =
      find(module, symbol, {OpKind::CommandProgramDef}, options, "command program", diagnostics);
  return op.valid() && interp::Machine(module, options, diagnostics)
                           .program(op, specializations, bindings, parameters);
}

}  // namespace loom
