#include "loom/command/launch_config.h"

#include <algorithm>
#include <vector>

#include "loom/bytecode/bytecode.h"
#include "loom/command/project.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/clone.h"
#include "loom/ir/walk.h"
#include "loom/pass/canonicalize.h"
#include "loom/pass/dce.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/inline.h"

namespace loom {
namespace {

constexpr unsigned kName = attr_slot(OpKind::FuncDef, "name");
constexpr unsigned kPublic = attr_slot(OpKind::FuncDef, "public");
constexpr unsigned kPure = attr_slot(OpKind::FuncDef, "pure");
constexpr unsigned kCallee = attr_slot(OpKind::FuncCall, "callee");

// Puts functions of a module into a companion.
class Companion {
 public:
  explicit Companion(const Module& from) : from_(from), to_(from.files()), cloner_(from, to_) {}

  void add(OpId function, StringId symbol, bool is_public) {
    const OpId copy = cloner_.clone(function);
    const StringId name = cloner_.map(symbol);
    to_.set_attr(copy, kName, to_.attrs.intern(Attr::symbol(name)));
    to_.set_attr(copy, kPublic, is_public ? to_.attrs.intern(Attr::unit()) : AttrId());
    to_.append(to_.body(), copy);
    to_.define_symbol(name, copy);
    for_each_nested(from_, function, [&](OpId op) {
      if (from_.op(op).kind == OpKind::FuncCall)
        called_.push_back(from_.attr(op, kCallee).string());
    });
  }
  // The functions that are called from those, in the order of their first calls.
  bool add_called(PassContext& context, const TargetFacts& target) {
    for (size_t i = 0; i < called_.size(); ++i) {
      const StringId symbol = called_[i];
      if (to_.symbol(cloner_.map(symbol)).valid()) continue;
      const OpId function = from_.symbol(symbol);
      const SelectOptions select{.final = true, .target = target, .format = {}};
      if (!expand_templates(context, function, select) ||
          has_open_fact(context.diagnostics(), function)) {
        return false;
      }
      add(function, symbol, false);
    }
    return true;
  }
  std::string bytes() const { return write_bytecode(to_, {.strip = true}); }

 private:
  bool has_open_fact(Diagnostics& diagnostics, OpId function) const {
    OpId open;
    for_each_nested(from_, function, [&](OpId op) {
      if (!open.valid() && from_.op(op).kind == OpKind::TargetSubgroupSize) open = op;
    });
    if (!open.valid()) return false;
    diagnostics.emit(
        Diag::CommandTargetFact, from_.location(open),
        {{"kernel", std::string(symbol_text(from_, function))}, {"fact", "subgroup size"}});
    return true;
  }

  const Module& from_;
  Module to_;
  Cloner cloner_;
  std::vector<StringId> called_;
};

// Null where the operation is what a companion may hold.
const char* problem_of(const Module& module, OpId op) {
  if (module.op(op).kind != OpKind::FuncDef) return "it holds more than functions";
  if (!module.has_attr(op, kPure)) return "a function is not pure";
  if (!module.has_attr(op, kPublic)) return nullptr;
  for (const ValueId arg : module.args(module.op_region(op, 0))) {
    if (!module.types.is_scalar(module.type_of(arg))) return "a workload argument is no scalar";
  }
  const auto results = module.args(module.op_region(op, 1));
  const TypeId index = TypeStore::scalar(ScalarKind::Index);
  const bool six = results.size() == 6 && std::ranges::all_of(results, [&](ValueId result) {
                     return module.type_of(result) == index;
                   });
  return six ? nullptr : "a function does not return three counts and three sizes";
}

}  // namespace

const char* launch_config_problem(const Module& module) {
  const char* problem = nullptr;
  for_each_op(module, module.body(), [&](OpId op) {
    if (problem == nullptr) problem = problem_of(module, op);
  });
  return problem;
}

std::optional<std::string> write_launch_config(Module& module, std::span<const OpId> kernels,
                                               const TargetFacts& target,
                                               Diagnostics& diagnostics) {
  PassContext context(module, diagnostics);
  Companion companion(module);
  for (const OpId kernel : kernels) {
    const OpId config = project_config(context, kernel, target);
    if (!config.valid() || !inline_calls(context, config, {.pure_calls = true}) ||
        !canonicalize(context, config) || !dce(context, config)) {
      return std::nullopt;
    }
    companion.add(config, symbol_name(module, kernel), true);
  }
  if (!companion.add_called(context, target)) return std::nullopt;
  return companion.bytes();
}

}  // namespace loom
