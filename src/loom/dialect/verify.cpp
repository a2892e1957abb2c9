#include "loom/dialect/verify.h"

#include <fmt/core.h>

#include "loom/dialect/access.h"
#include "loom/dialect/poison.h"
#include "loom/dialect/uniformity.h"
#include "loom/dialect/verify_op.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

using detail::OpChecker;
using detail::Order;

class Verifier final : public VerifyContext {
 public:
  Verifier(const Module& m, Diagnostics& d)
      : VerifyContext(m, d), order_(m), sound_(m.op_count()), checker_(*this, order_) {}

  void run();
  bool sound(OpId op) const override { return sound_[op.index()]; }
  bool has_ordered_effects(OpId op) const override;

 private:
  void check_symbol(OpId op);
  void check_name(OpId op);
  void check_nested(OpId op);
  void check_regions(OpId op);
  void check_region(OpId op, const RegionSpec& spec, RegionId region);
  void check_place(OpId op, const OpInfo& info);
  void check_effect(OpId op, const OpInfo& info);
  void check_target(OpId op, const OpInfo& info);
  void check_poison(OpId op, const OpInfo& info);
  bool allows_queries() const;

  Order order_;
  std::vector<bool> sound_;        // by operation: counts and attributes fit its row
  std::vector<OpId> nested_;       // every nested operation, symbol by symbol, in pre-order
  std::vector<uint32_t> ordered_;  // effects that must keep their order, up to a position
  std::vector<bool> poisoned_;     // by value; empty where nothing is
  OpChecker checker_;
};

BodyKind body_kind(OpKind symbol, unsigned region) {
  switch (symbol) {
    case OpKind::KernelDef:
      return region == region_slot(OpKind::KernelDef, "config") ? BodyKind::KernelConfig
                                                                : BodyKind::Kernel;
    case OpKind::CommandProgramDef:
      return BodyKind::Program;
    case OpKind::CheckCase:
      return BodyKind::Check;
    default:
      return BodyKind::Function;
  }
}

// The first operands of a structured operation, which say what of it is executed.
size_t deciding_operands(OpKind kind) {
  if (kind == OpKind::ScfFor) return 3;
  return kind == OpKind::ScfIf || kind == OpKind::ScfSwitch ? 1 : 0;
}

// --- the module ---------------------------------------------------------------------------------

void Verifier::run() {
  std::vector<std::pair<OpId, size_t>> symbols;  // with the end of their nested operations
  for_each_op(module, module.body(), [&](OpId op) {
    sound_[op.index()] = checker_.check_shape(op);
    if (sound(op) && !op_info(module.op(op).kind).has(trait::Symbol | trait::ModuleLevel)) {
      error(op, Diag::StructureNotAtModuleLevel, {{"op", std::string(op_name(op))}});
      sound_[op.index()] = false;
      return;
    }
    order_.number(op, nested_);
    symbols.emplace_back(op, nested_.size());
  });
  ordered_.assign(nested_.size() + symbols.size() + 1, 0);
  for (const OpId op : nested_) {
    sound_[op.index()] = checker_.check_shape(op);
    if (!sound(op)) continue;
    const OpKind kind = module.op(op).kind;
    const Effect effect = op_info(kind).effect;
    ordered_[order_.position(op)] = effect == Effect::Write || effect == Effect::Observable ||
                                    kind == OpKind::ScfWhile || is_volatile(module, op);
  }
  for (size_t i = 1; i < ordered_.size(); ++i) ordered_[i] += ordered_[i - 1];
  poisoned_ = detail::poisoned_values(*this, nested_);
  size_t next = 0;
  for (const auto& [op, end] : symbols) {
    symbol = op;
    body = BodyKind::Function;
    if (sound(op)) check_symbol(op);
    for (; next < end; ++next) check_nested(nested_[next]);
    if (diagnostics.stopped()) return;
  }
}

bool Verifier::has_ordered_effects(OpId op) const {
  return ordered_[order_.end(op)] != ordered_[order_.position(op)];
}

void Verifier::check_name(OpId op) {
  const StringId name = symbol_name(module, op);
  if (!name.valid()) return;
  const OpId first = module.symbol(name);
  if (!first.valid() || first == op) return;
  error(op, Diag::SymbolDuplicate, {{"symbol", std::string(module.strings.text(name))}});
}

void Verifier::check_symbol(OpId op) {
  check_name(op);
  const OpInfo& info = op_info(module.op(op).kind);
  check_target(op, info);
  const bool fits = checker_.check_op(op);
  check_regions(op);
  if (!fits) return;
  if (const VerifyHook hook = verify_hook(info.kind)) hook(*this, op);
}

void Verifier::check_nested(OpId op) {
  if (const OpId parent = parent_op(module, op); parent == symbol) {
    body = body_kind(module.op(symbol).kind,
                     module.op(op).parent.index() - module.op(symbol).region_begin);
  }
  if (!sound(op) || !sound(symbol)) return;
  const OpInfo& info = op_info(module.op(op).kind);
  if (info.has(trait::Symbol | trait::ModuleLevel)) {
    error(op, Diag::StructureNestedModuleOp, {{"op", std::string(info.name)}});
    return;
  }
  check_place(op, info);
  const bool fits = checker_.check_op(op);
  check_regions(op);
  if (!fits) return;
  check_poison(op, info);
  if (const VerifyHook hook = verify_hook(info.kind)) hook(*this, op);
}

// Poison may flow through pure operations and structured regions, never to where it is observed.
void Verifier::check_poison(OpId op, const OpInfo& info) {
  if (poisoned_.empty()) return;
  const bool structured = info.dialect == "scf" || info.effect == Effect::Nested;
  const bool returns = info.has(trait::Terminator) && !structured;
  if (info.effect == Effect::Pure && !returns) return;
  // What decides over effects is observed by them.
  if (structured && !has_ordered_effects(op)) return;
  const size_t count = structured ? deciding_operands(info.kind) : module.op(op).operand_count;
  for (unsigned i = 0; i < count; ++i) {
    const ValueId value = module.operand(op, i);
    if (!poisoned_[value.index()]) continue;
    error(op, Diag::TypePoison,
          {{"operand", value_name_text(module, value)}, {"op", std::string(info.name)}});
  }
}

void Verifier::check_target(OpId op, const OpInfo& info) {
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (info.attrs[slot].name != "target" || !module.has_attr(op, slot)) continue;
    resolve(op, slot, {OpKind::TargetGeneric, OpKind::TargetDecl}, "target");
  }
}

// --- regions and their terminators --------------------------------------------------------------

void Verifier::check_regions(OpId op) {
  const OpInfo& info = op_info(module.op(op).kind);
  const unsigned count = module.op(op).region_count;
  for (unsigned i = 0; i < count; ++i) {
    check_region(op, info.region(i, count), module.op_region(op, i));
  }
}

void Verifier::check_region(OpId parent, const RegionSpec& spec, RegionId region) {
  const Region& r = module.region(region);
  if (!r.has_body || r.deferred || !spec.terminator) return;
  bool ended = false;
  bool reported = false;
  for (OpId op = r.first; op.valid(); op = module.op(op).next) {
    if (ended && !reported) {
      error(
          op, Diag::StructureAfterTerminator,
          {{"op", static_cast<size_t>(module.op(op).kind) < kOpKindCount ? std::string(op_name(op))
                                                                         : "unknown operation"}});
      reported = true;
    }
    if (static_cast<size_t>(module.op(op).kind) >= kOpKindCount) continue;
    if (!op_info(module.op(op).kind).has(trait::Terminator)) continue;
    ended = true;
    if (module.op(op).kind == *spec.terminator) continue;
    // Its own rule says where it may stand.
    const bool in_loop = module.op(parent).kind == OpKind::ScfWhile;
    if (module.op(op).kind == OpKind::ScfCondition && !in_loop) continue;
    error(op, Diag::StructureWrongTerminator,
          {{"op", std::string(op_name(op))}, {"parent", std::string(op_name(parent))}});
  }
  if (ended || spec.implicit) return;
  error(parent, Diag::StructureMissingTerminator,
        {{"op", std::string(op_name(parent))},
         {"terminator", std::string(op_info(*spec.terminator).name)}});
}

// --- placement and effects ----------------------------------------------------------------------

bool Verifier::allows_queries() const {
  if (body == BodyKind::Kernel) return true;
  if (module.op(symbol).kind == OpKind::TemplateDef) return true;  // inlined where it is chosen
  if (module.op(symbol).kind != OpKind::FuncDef) return false;
  constexpr unsigned kInlining = attr_slot(OpKind::FuncDef, "inlining");
  return module.has_attr(symbol, kInlining) &&
         module.attr(symbol, kInlining).bits == static_cast<uint64_t>(Inlining::Inline);
}

void Verifier::check_place(OpId op, const OpInfo& info) {
  const auto needs = [&](std::string_view ancestor) {
    error(op, Diag::StructureAncestor,
          {{"op", std::string(info.name)}, {"ancestor", std::string(ancestor)}});
  };
  // Elsewhere what a collective does is reported as an effect.
  const bool device =
      info.has(trait::KernelQuery) || (info.has(trait::DeviceOnly) && body == BodyKind::Function);
  if (device && !allows_queries()) {
    needs("a kernel's device body or an inline function");
  }
  if (info.has(trait::CheckOnly) && body != BodyKind::Check) {
    needs("a check case");
    return;
  }
  const bool command_only = info.has(trait::CommandRegion) || info.kind == OpKind::CommandParameter;
  if (command_only && body != BodyKind::Program) needs("a command program");
  if (info.effect == Effect::Command && body == BodyKind::Kernel) {
    error(op, Diag::StructureLaunchInKernel, {{"op", std::string(info.name)}});
    return;
  }
  check_effect(op, info);
}

namespace {

std::string_view program_repair(Effect effect) {
  switch (effect) {
    case Effect::Call:
      return "declare the function pure and call it with 'func.call pure', or launch a kernel";
    case Effect::Read:
    case Effect::Write:
      return "move the access into a kernel and launch it";
    default:
      return "move it into a kernel and launch that";
  }
}

}  // namespace

void Verifier::check_effect(OpId op, const OpInfo& info) {
  switch (info.effect) {
    case Effect::Pure:
    case Effect::Nested:
    case Effect::Structure:
      return;
    case Effect::Hint:
      if (body != BodyKind::Program) return;
      break;
    case Effect::Call: {
      // Its hook reports a call that does not keep the promise 'pure', here or in the function
      // around it; an unknown callee is reported there as well.
      if (body == BodyKind::Function || !module.symbol(callee_name(module, op)).valid() ||
          is_pure_call(module, op)) {
        return;
      }
      // A family may consist of commands; preparation looks at what was chosen.
      if (body == BodyKind::Program && info.kind != OpKind::FuncCall) return;
      break;
    }
    default:
      break;
  }
  const std::string name(info.name);
  switch (body) {
    case BodyKind::Function:
      if (is_pure_function(module, symbol)) {
        error(op, Diag::StructureEffectInPure,
              {{"op", name}, {"function", "@" + std::string(symbol_text(module, symbol))}});
      }
      return;
    case BodyKind::KernelConfig:
      error(op, Diag::StructureEffectInConfig, {{"op", name}});
      return;
    case BodyKind::Program:
      if (info.effect == Effect::Command || info.effect == Effect::Alloc) return;
      error(op, Diag::StructureEffectInProgram,
            {{"op", name}, {"repair", std::string(program_repair(info.effect))}});
      return;
    case BodyKind::Check:
      if (info.has(trait::CheckOnly) || info.effect == Effect::Call ||
          info.kind == OpKind::KernelLaunch || info.kind == OpKind::CommandProgramLaunch) {
        return;
      }
      error(op, Diag::StructureNotInCheck,
            {{"op", name}, {"repair", std::string(program_repair(info.effect))}});
      return;
    case BodyKind::Kernel:
      return;
  }
}

}  // namespace

bool verify_module(Module& module, Diagnostics& diagnostics) {
  if (diagnostics.stopped()) return false;
  const size_t before = diagnostics.error_count();
  Verifier(module, diagnostics).run();
  if (diagnostics.error_count() == before) check_uniform_control(module, diagnostics);
  if (diagnostics.error_count() != before) return false;
  compute_access_facets(module);
  return true;
}

}  // namespace loom
