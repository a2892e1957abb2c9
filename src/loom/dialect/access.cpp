#include "loom/dialect/access.h"

#include <algorithm>
#include "loom/dialect/hooks.h"

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

using enum OpKind;

// A value derived from another one names (part of) the same storage, so what happens to it happens
// to its base. Accesses are marked at the uses and flow from derived values to their bases; a value
// changes at most twice, so this ends in time linear in the uses.
class AccessFlow {
 public:
  explicit AccessFlow(const Module& module)
      : module_(module),
        access_(module.value_count()),
        first_edge_(module.value_count(), kNone),
        body_seen_(module.region_count()) {}

  void add_body(RegionId body) {
    if (body_seen_[body.index()]) return;
    body_seen_[body.index()] = true;
    bodies_.push_back(body);
  }
  void run() {
    for (size_t i = 0; i < bodies_.size(); ++i) {
      const OpId root = module_.region(bodies_[i]).parent;
      for (OpId op = module_.region(bodies_[i]).first; op.valid();
           op = after(op, bodies_[i], root)) {
        visit(op);
      }
    }
    while (!changed_.empty()) {
      const ValueId value = changed_.back();
      changed_.pop_back();
      for (uint32_t e = first_edge_[value.index()]; e != kNone; e = edges_[e].next) {
        mark(edges_[e].base, access_[value.index()]);
      }
    }
  }
  Access of(ValueId value) const { return static_cast<Access>(access_[value.index()]); }

 private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint8_t kRead = static_cast<uint8_t>(Access::Read);
  static constexpr uint8_t kWrite = static_cast<uint8_t>(Access::Write);
  static constexpr uint8_t kReadWrite = static_cast<uint8_t>(Access::ReadWrite);
  static_assert((kRead | kWrite) == kReadWrite);

  struct Edge {
    ValueId base;
    uint32_t next;
  };

  // The next operation in pre-order inside one region of `root`.
  OpId after(OpId op, RegionId body, OpId root) const {
    const OpId next = next_in_preorder(module_, op, root);
    const bool left = next.valid() && module_.op(next).parent != body &&
                      module_.region(module_.op(next).parent).parent == root;
    return left ? OpId() : next;
  }

  bool names_storage(ValueId value) const {
    const Type& type = module_.types[module_.type_of(value)];
    return !type.is_scalar() && type.kind != TypeKind::Vector;
  }

  void mark(ValueId value, uint8_t access) {
    uint8_t& known = access_[value.index()];
    if ((known | access) == known) return;
    known |= access;
    changed_.push_back(value);
  }
  void derive(ValueId derived, ValueId base) {
    if (!names_storage(derived) || !names_storage(base)) return;
    edges_.push_back({base, first_edge_[derived.index()]});
    first_edge_[derived.index()] = static_cast<uint32_t>(edges_.size() - 1);
  }

  void visit(OpId op);
  void visit_memory(OpId op);
  void visit_loop(OpId op);
  void visit_yield(OpId op);
  void visit_call(OpId op);

  const Module& module_;
  std::vector<uint8_t> access_;       // by value: bits of Access
  std::vector<uint32_t> first_edge_;  // by derived value
  std::vector<Edge> edges_;
  std::vector<ValueId> changed_;
  std::vector<RegionId> bodies_;
  std::vector<bool> body_seen_;  // by region
};

void AccessFlow::visit(OpId op) {
  const auto operands = module_.operands(op);
  switch (module_.op(op).kind) {
    case BufferView:
    case ViewSubview:
    case ViewRefine:
    case BufferAssumeMemorySpace:
      return derive(module_.result(op), operands[0]);
    case BufferAssumeNoalias:
    case BufferAssumeAlignment:
      for (unsigned i = 0; i < operands.size(); ++i) derive(module_.result(op, i), operands[i]);
      return;
    case ScfSelect:
      derive(module_.result(op), operands[1]);
      return derive(module_.result(op), operands[2]);
    case BufferAssumeSameRoot:
      derive(module_.result(op), operands[0]);
      return derive(module_.result(op), operands[1]);
    case ScfLookup:
      for (unsigned i = 1; i < operands.size(); ++i) {
        derive(module_.result(op, (i - 1) % module_.op(op).result_count), operands[i]);
      }
      return;
    case ScfWhile: {
      const auto args = module_.args(module_.op_region(op, 0));
      for (unsigned i = 0; i < operands.size(); ++i) derive(args[i], operands[i]);
      return;
    }
    case ScfCondition: {
      const OpId loop = module_.region(module_.op(op).parent).parent;
      const auto args = module_.args(module_.op_region(loop, 1));
      for (unsigned i = 1; i < operands.size(); ++i) {
        derive(args[i - 1], operands[i]);
        derive(module_.result(loop, i - 1), operands[i]);
      }
      return;
    }
    case BufferLength:
    case ViewPrefetch:
      return;
    case ViewAtomicLoad:
      return mark(operands[operand_slot(ViewAtomicLoad, "w")], kRead);
    case ViewAtomicStore:
      return mark(operands[operand_slot(ViewAtomicStore, "w")], kWrite);
    case ViewLoad:
      return mark(operands[operand_slot(ViewLoad, "w")], kRead);
    case ViewStore:
      return mark(operands[operand_slot(ViewStore, "w")], kWrite);
    case KernelAsyncCopy:
    case KernelAsyncCopyMask:
    case KernelAsyncGather:
    case KernelAsyncGatherMask:
      mark(operands[0], kRead);
      return mark(operands[1], kWrite);
    case KernelAsyncGroup:
    case KernelAsyncWait:
    case SanitizerAssertAccess:
    case SanitizerAssertLayout:
      return;  // no access of its own
    case ScfFor:
      return visit_loop(op);
    case ScfYield:
      return visit_yield(op);
    case FuncCall:
    case TemplateCall:
      return visit_call(op);
    case FuncReturn:
    case TemplateReturn:
      return;  // followed from the calls
    default:
      visit_memory(op);
  }
}

// An operation on the storage of its operands: vector operations say by their row how they touch
// it, anything else may do both.
void AccessFlow::visit_memory(OpId op) {
  const OpInfo& info = op_info(module_.op(op).kind);
  uint8_t access = kReadWrite;
  const bool is_atomic = std::ranges::any_of(
      info.attrs, [](const AttrSpec& spec) { return spec.enum_id == EnumId::Ordering; });
  if (info.dialect == "vector" && !is_atomic) {
    access = info.effect == Effect::Read ? kRead : info.effect == Effect::Write ? kWrite : 0;
  }
  for (const ValueId value : module_.operands(op)) {
    if (names_storage(value)) mark(value, access);
  }
}

void AccessFlow::visit_loop(OpId op) {
  const auto inits = operand_group(module_, op, operand_slot(ScfFor, "init"));
  const auto args = module_.args(module_.op_region(op, 0));
  for (unsigned i = 0; i < inits.size(); ++i) {
    derive(args[i + 1], inits[i]);
    derive(module_.result(op, i), inits[i]);
  }
}

void AccessFlow::visit_yield(OpId op) {
  const RegionId region = module_.op(op).parent;
  const OpId parent = module_.region(region).parent;
  const auto values = module_.operands(op);
  const auto args = module_.args(region);
  if (module_.op(parent).kind == ScfWhile) {
    const auto next = module_.args(module_.op_region(parent, 0));
    for (unsigned i = 0; i < values.size(); ++i) derive(next[i], values[i]);
    return;
  }
  for (unsigned i = 0; i < values.size(); ++i) {
    derive(module_.result(parent, i), values[i]);
    if (module_.op(parent).kind == ScfFor) derive(args[i + 1], values[i]);
  }
}

void AccessFlow::visit_call(OpId op) {
  const auto operands = module_.operands(op);
  static_assert(region_slot(FuncDef, "body") == region_slot(TemplateDef, "body"));
  const OpId callee = module_.symbol(callee_name(module_, op));
  const RegionId body = module_.op_region(callee, region_slot(FuncDef, "body"));
  const OpKind kind = module_.op(callee).kind;
  if ((kind != FuncDef && kind != TemplateDef) || module_.region(body).deferred) {
    for (const ValueId value : operands) {
      if (names_storage(value)) mark(value, kReadWrite);
    }
    return;
  }
  add_body(body);
  const auto formals = module_.args(body);
  for (size_t i = 0; i < operands.size(); ++i) derive(formals[i], operands[i]);
  const auto returned = module_.operands(module_.region(body).last);
  for (unsigned i = 0; i < returned.size(); ++i) derive(module_.result(op, i), returned[i]);
}

}  // namespace

void compute_access_facets(Module& module) {
  std::vector<OpId> kernels;
  AccessFlow flow(module);
  for_each_op(module, module.body(), [&](OpId op) {
    const OpKind kind = module.op(op).kind;
    if (kind != KernelDef && kind != KernelDecl && kind != KernelEntryDecl) return;
    kernels.push_back(op);
    if (kind == KernelDef) flow.add_body(module.op_region(op, region_slot(KernelDef, "body")));
  });
  flow.run();
  for (const OpId op : kernels) {
    const OpKind kind = module.op(op).kind;
    const RegionId region =
        module.op_region(op, kind == KernelEntryDecl ? region_slot(KernelEntryDecl, "body")
                                                     : region_slot(KernelDef, "body"));
    if (module.region(region).deferred && module.access_facets.contains(op.index())) continue;
    const bool has_body = kind == KernelDef && !module.region(region).deferred;
    std::vector<Access>& facets = module.access_facets[op.index()];
    facets.clear();
    for (const ValueId arg : module.args(region)) {
      const Access unknown =
          module.types.is_scalar(module.type_of(arg)) ? Access::None : Access::ReadWrite;
      facets.push_back(has_body ? flow.of(arg) : unknown);
    }
  }
}

std::string_view access_name(Access access) {
  static constexpr std::string_view kNames[] = {"none", "read", "write", "read_write"};
  return kNames[static_cast<size_t>(access)];
}

}  // namespace loom
