#include "loom/api/interpret.h"

#include <algorithm>

#include "loom/dialect/op_info.h"

namespace loom {
namespace {

// The value that `eq`, or a range of one, gives the argument; zero where nothing asks for one.
ScalarValue fixed_value(const Module& module, OpId program, ValueId argument) {
  const ScalarKind kind = module.types[module.type_of(argument)].element;
  for (const Predicate& predicate : where_predicates(module, program)) {
    if (!predicate.args[0].is_value() || predicate.args[0].value != argument) continue;
    const bool fixed = predicate.kind == PredicateKind::Eq ||
                       (predicate.kind == PredicateKind::Range && !predicate.args[2].is_value() &&
                        predicate.args[1] == predicate.args[2]);
    if (fixed && !predicate.args[1].is_value()) {
      return from_bits(kind, static_cast<uint64_t>(predicate.args[1].literal));
    }
  }
  return from_bits(kind, 0);
}

}  // namespace

bool interpret_program(const Module& linked, std::string_view root,
                       std::span<const InterpStorage> storage, const ParameterSet& parameters,
                       const InterpOptions& options, Diagnostics& diagnostics) {
  const OpId program = linked.symbol(root);
  std::vector<ScalarValue> specializations;
  std::vector<InterpStorage> bindings;
  if (program.valid() && linked.op(program).kind == OpKind::CommandProgramDef) {
    const RegionId body = linked.op_region(program, 0);
    for (ValueId argument : linked.arg_group(body, 0)) {
      specializations.push_back(fixed_value(linked, program, argument));
    }
    for (ValueId argument : linked.arg_group(body, 1)) {
      const std::string name(linked.name_of(argument));
      const auto found = std::ranges::find(storage, name, &InterpStorage::name);
      bindings.push_back(found != storage.end() ? *found : InterpStorage{name, {}});
    }
  }
  const auto supply = [&](std::string_view of, std::string_view key, uint64_t bytes) {
    return parameters.bytes_of(of, key, bytes, diagnostics);
  };
  return run_program(linked, root, specializations, bindings, supply, options, diagnostics);
}

}  // namespace loom
