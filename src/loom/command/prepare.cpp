#include "loom/command/prepare.h"

#include <array>
#include <chrono>

#include "loom/command/flatten.h"
#include "loom/command/hazards.h"
#include "loom/command/project.h"
#include "loom/command/request.h"
#include "loom/command/resolve.h"
#include "loom/dialect/hooks.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/pass/canonicalize.h"
#include "loom/pass/cse.h"
#include "loom/pass/dce.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/inline.h"
#include "loom/pass/unroll.h"

namespace loom {
namespace {

constexpr std::array<std::string_view, 9> kPassNames = {
    "flatten", "expand", "project", "cse", "inline", "canonicalize", "unroll", "dce", "resolve"};

// Runs one named step over every root and tells the hooks about it.
class Steps {
 public:
  Steps(PassContext& context, std::span<const OpId> roots, const PrepareHooks& hooks)
      : context_(context), roots_(roots), hooks_(hooks) {}

  template <class F>
  bool whole(std::string_view name, F&& body) {
    const auto begin = std::chrono::steady_clock::now();
    const bool ok = body();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (hooks_.timing) hooks_.timing(name, spent.count());
    if (ok && hooks_.after_pass) hooks_.after_pass(name, context_.module());
    return ok;
  }

  template <class F>
  bool each(std::string_view name, F&& body) {
    return whole(name, [&] {
      for (OpId root : roots_) {
        if (!body(root)) return false;
      }
      return true;
    });
  }

 private:
  PassContext& context_;
  std::span<const OpId> roots_;
  const PrepareHooks& hooks_;
};

std::optional<std::vector<OpId>> find_roots(const Module& module,
                                            std::span<const std::string> names,
                                            Diagnostics& diagnostics) {
  std::vector<OpId> roots;
  for (const std::string& name : names) {
    const OpId op = module.symbol(name);
    if (!op.valid()) {
      diagnostics.emit(Diag::SymbolUnresolved, {},
                       {{"symbol", name}, {"repair", "name a command program of the inputs"}});
      return std::nullopt;
    }
    const OpKind kind = module.op(op).kind;
    if (kind == OpKind::CommandProgramDecl) {
      diagnostics.emit(Diag::SymbolUnresolvedProgram, module.location(op), {{"symbol", name}});
      return std::nullopt;
    }
    if (kind != OpKind::CommandProgramDef) {
      diagnostics.emit(Diag::SymbolWrongKind, module.location(op),
                       {{"symbol", name},
                        {"kind", std::string(symbol_kind_text(kind))},
                        {"expected", "command program"}});
      return std::nullopt;
    }
    roots.push_back(op);
  }
  return roots;
}

// An implementation may do what no program executes; only its place shows that.
bool check_program_effects(const Module& module, OpId root, Diagnostics& diagnostics) {
  const size_t errors = diagnostics.error_count();
  for_each_nested(module, root, [&](OpId op) {
    const OpInfo& info = op_info(module.op(op).kind);
    const bool fits = info.effect != Effect::Read && info.effect != Effect::Write &&
                      info.effect != Effect::Observable &&
                      (info.effect != Effect::Call || is_pure_call(module, op));
    if (fits) return;
    diagnostics.emit(Diag::StructureEffectInProgram, module.location(op),
                     {{"op", std::string(info.name)},
                      {"repair", "apply the family inside a kernel and launch that"}});
  });
  return diagnostics.error_count() == errors;
}

// Makes, hands over and forgets one request after the other.
bool publish(PassContext& context, const Projection& projection, const EntryTable& entries,
             const PrepareOptions& options, PreparedPlan& plan, const RequestRecipient& recipient) {
  const Module& module = context.module();
  const auto classified = classify(context, entries, options.max_request_classes, plan);
  if (!classified) return false;
  const Classification& found = *classified;
  uint32_t ordinal = 0;
  for (uint32_t i = 0; i < plan.entries.size(); ++i) {
    const RequestClass& of = found.classes[i];
    // Somebody else has the code of an external entry.
    if (module.op(of.kernel).kind != OpKind::KernelDef) continue;
    const ProjectedKernel& projected = projection.at(symbol_name(module, of.kernel));
    // A dispatch may state a size of its own.
    const bool fixed = projected.fixed_size == of.size && !projected.uses_target;
    auto request = make_request(context, of, found.decisions[found.decisions_of[i]], fixed,
                                options.locate_requests);
    if (!request) return false;
    request->ordinal = ordinal;
    plan.entries[i].request = static_cast<int32_t>(ordinal++);
    if (!recipient(std::move(*request))) return false;
  }
  return true;
}

}  // namespace

std::span<const std::string_view> prepare_pass_names() { return kPassNames; }

std::vector<std::string> default_command_roots(const Module& module) {
  constexpr unsigned kPublic = attr_slot(OpKind::CommandProgramDef, "public");
  constexpr unsigned kRetain = attr_slot(OpKind::CommandProgramDef, "retain");
  std::vector<std::string> roots;
  for (OpId id = module.region(module.body()).first; id.valid(); id = module.op(id).next) {
    if (module.op(id).kind == OpKind::CommandProgramDef &&
        (module.has_attr(id, kPublic) || module.has_attr(id, kRetain))) {
      roots.emplace_back(symbol_text(module, id));
    }
  }
  return roots;
}

std::optional<PreparedPlan> prepare(Module& module, const PrepareOptions& options,
                                    const RequestRecipient& recipient, Diagnostics& diagnostics) {
  const auto roots = find_roots(module, options.roots, diagnostics);
  if (!roots) return std::nullopt;
  PassContext context(module, diagnostics, options.tables);
  Steps steps(context, *roots, options.hooks);

  // No program launch is left below a root; composition is finite.
  if (!steps.whole("flatten", [&] { return flatten_programs(module, *roots, diagnostics); })) {
    return std::nullopt;
  }
  // Families with command effects are expanded: what a program executes is written in it.
  const SelectOptions select{.final = true, .target = options.target, .format = {}};
  if (!steps.each("expand", [&](OpId root) {
        const bool templates = uses_templates(module, root);
        return expand_templates(context, root, select) &&
               (!templates || check_program_effects(module, root, diagnostics));
      })) {
    return std::nullopt;
  }
  // Every launch is a configuration call and a dispatch at the launch's place.
  std::optional<Projection> projection;
  if (!steps.whole("project", [&] {
        projection = project_launches(context, *roots, options.target);
        return projection.has_value();
      })) {
    return std::nullopt;
  }
  // Equal configuration calls under one control-flow scope are one call.
  const bool simplified =
      steps.each("cse", [&](OpId root) { return cse(context, root); }) &&
      // No pure call to a known function is left.
      steps.each("inline", [&](OpId root) { return inline_calls(context, root); }) &&
      // Branches and trip counts that facts decide are decided.
      steps.each("canonicalize", [&](OpId root) { return canonicalize(context, root); }) &&
      // Loops with exact bounds are gone; what they held is folded.
      steps.each("unroll", [&](OpId root) { return unroll(context, root); }) &&
      steps.each("canonicalize", [&](OpId root) { return canonicalize(context, root); }) &&
      steps.each("cse", [&](OpId root) { return cse(context, root); }) &&
      // Unused parameters leave no requirement.
      steps.each("dce", [&](OpId root) { return dce(context, root); });
  if (!simplified) return std::nullopt;

  // Counts, keys, arguments and topology are exact; entries have dense slots.
  PreparedPlan plan;
  EntryTable entries(plan.entries);
  if (!steps.whole("resolve", [&] {
        bool ok = true;
        for (OpId root : *roots) {
          plan.programs.emplace_back();
          ok &= resolve_program(module, root, *projection, entries, plan.programs.back(),
                                diagnostics);
        }
        return ok;
      })) {
    return std::nullopt;
  }
  if (options.check_hazards) {
    for (const PreparedProgram& program : plan.programs) {
      check_hazards(module, entries, program, diagnostics);
    }
    if (diagnostics.has_errors()) return std::nullopt;
  }
  if (recipient && !publish(context, *projection, entries, options, plan, recipient)) {
    return std::nullopt;
  }
  return plan;
}

}  // namespace loom
