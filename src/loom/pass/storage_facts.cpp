#include "loom/pass/storage_facts.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <vector>

#include "loom/pass/kind_tables.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kReach = 48;
const IntDomain kBytes = IntDomain::of(ScalarKind::Offset);

bool is_dense(const Type& type) { return !type.encoding.valid() && !type.encoding_value.valid(); }

uint64_t power_in(const IntFacts& facts) {
  return facts.divisor == 0 ? uint64_t{1} << 62 : facts.divisor & (~facts.divisor + 1);
}

IntFacts whole_elements(const Type& type) {
  IntFacts facts = IntFacts::of(kBytes);
  facts.divisor = scalar_bytes(type.element);
  return facts.normalized();
}

IntFacts footprint(const Rewriter& rewriter, TypeId id) {
  const Type& type = rewriter.module().types[id];
  if (!is_dense(type)) return IntFacts::of(kBytes);
  IntFacts bytes = IntFacts::exactly(scalar_bytes(type.element));
  for (unsigned i = 0; i < type.rank(); ++i) {
    bytes = facts::mul(bytes, extent_facts(rewriter, id, i), kBytes);
  }
  return bytes;
}

// The byte offset of a subview's first element in its source.
IntFacts subview_offset(const Rewriter& rewriter, OpId op, bool compact) {
  const Module& module = rewriter.module();
  const TypeId id = module.type_of(module.operand(op, 0));
  const Type& type = module.types[id];
  if (!is_dense(type)) return IntFacts::of(kBytes);
  if (!compact) return whole_elements(type);
  const auto places = module.attr(op, attr_slot(ViewSubview, "static_index")).ints;
  IntFacts offset = IntFacts::exactly(0);
  IntFacts stride = IntFacts::exactly(scalar_bytes(type.element));
  unsigned operand = module.op(op).operand_count;
  for (size_t i = places.size(); i-- > 0;) {
    const bool dynamic = places[i] == kDynamicIndex;
    if (dynamic) --operand;
    const IntFacts index =
        dynamic ? rewriter.facts(rewriter.operand(op, operand)) : IntFacts::exactly(places[i]);
    // A negative coordinate would leave the view.
    const IntFacts inside = meet(index, IntFacts::range(0, kBytes.hi));
    if (inside.empty()) return IntFacts::of(kBytes);
    offset = facts::add(offset, facts::mul(inside, stride, kBytes), kBytes);
    stride = facts::mul(stride, extent_facts(rewriter, id, static_cast<unsigned>(i)), kBytes);
  }
  return offset;
}

// What the contract of a kernel says of the storage of a launch argument.
void learn_contract(const Module& module, OpId kernel, ValueId argument, StorageFacts& facts) {
  const Value& v = module.value(argument);
  if (module.op(kernel).kind != KernelDef ||
      v.owner != module.op_region(kernel, region_slot(KernelDef, "body")).index()) {
    return;
  }
  const auto list = [&](unsigned slot) {
    return module.has_attr(kernel, slot) ? module.attr(kernel, slot).ints
                                         : std::span<const int64_t>();
  };
  facts.readonly = std::ranges::binary_search(list(attr_slot(KernelDef, "readonly")), v.index);
  if (const auto lengths = list(attr_slot(KernelDef, "lengths"));
      v.index < lengths.size() && lengths[v.index] > 0) {
    facts.root_bytes = IntFacts::exactly(lengths[v.index]);
  }
  if (const auto alignments = list(attr_slot(KernelDef, "alignments"));
      v.index < alignments.size()) {
    facts.alignment = static_cast<uint64_t>(alignments[v.index]);
  }
}

StorageFacts origin(const Rewriter& rewriter, ValueId value, bool in_kernel) {
  const Module& module = rewriter.module();
  StorageFacts facts;
  const OpId op = module.defining_op(value);
  if (!op.valid()) {
    // Only the arguments of the body are roots; a carried value may be any.
    const OpId holder = module.region(RegionId(module.value(value).owner)).parent;
    if (!kind_has(module.op(holder).kind, trait::Symbol)) return facts;
    facts.root = value;
    if (in_kernel) facts.space = MemorySpace::Global;
    learn_contract(module, holder, value, facts);
    return facts;
  }
  if (module.op(op).kind != BufferAlloca) return facts;
  facts.root = value;
  facts.fresh = true;
  facts.nullable = false;
  facts.space = static_cast<MemorySpace>(module.attr(op, attr_slot(BufferAlloca, "space")).bits);
  facts.root_bytes = rewriter.facts(rewriter.operand(op, 0));
  facts.alignment = module.attr(op, attr_slot(BufferAlloca, "align")).bits;
  return facts;
}

uint64_t at_least_one(uint64_t alignment) { return std::max<uint64_t>(alignment, 1); }

void apply(const Rewriter& rewriter, OpId op, ValueId result, StorageFacts& facts) {
  const Module& module = rewriter.module();
  const auto advance = [&](const IntFacts& by) {
    facts.offset = facts::add(facts.offset, by, kBytes);
    facts.alignment = std::min(facts.alignment, power_in(by));
  };
  switch (module.op(op).kind) {
    case BufferAssumeNoalias:
      facts.scope = result;
      return;
    case BufferAssumeAlignment: {
      const unsigned slot = attr_slot(BufferAssumeAlignment, "minimum_alignment");
      facts.alignment = std::max(facts.alignment, at_least_one(module.attr(op, slot).bits));
      return;
    }
    case BufferAssumeMemorySpace:
      facts.space = static_cast<MemorySpace>(
          module.attr(op, attr_slot(BufferAssumeMemorySpace, "space")).bits);
      return;
    case BufferView:
      advance(rewriter.facts(rewriter.operand(op, 1)));
      break;
    case ViewSubview: {
      advance(subview_offset(rewriter, op, facts.compact));
      // The rows of a window lie as far apart as those of the whole.
      if (module.types[module.type_of(result)].rank() > 1) {
        facts.compact = false;
        facts.bytes.lo = 0;
        facts.bytes = facts.bytes.normalized();
        return;
      }
      break;
    }
    default:
      break;
  }
  const TypeId type = module.type_of(result);
  if (!is_shaped(module.types[type].kind)) return;
  facts.alignment = std::max<uint64_t>(facts.alignment, module.types[type].align);
  if (facts.compact) facts.bytes = footprint(rewriter, type);
}

bool passes_on(OpKind kind) {
  switch (kind) {
    case BufferAssumeNoalias:
    case BufferAssumeAlignment:
    case BufferAssumeMemorySpace:
    case BufferView:
    case ViewSubview:
    case ViewRefine:
      return true;
    default:
      return false;
  }
}

// Memory that no pointer into the other space reaches.
bool is_apart(MemorySpace a, MemorySpace b) {
  const auto precise = [](MemorySpace space) {
    return space == MemorySpace::Global || space == MemorySpace::Workgroup ||
           space == MemorySpace::Private;
  };
  return a != b && precise(a) && precise(b);
}

}  // namespace

IntFacts extent_facts(const Rewriter& rewriter, TypeId shaped, unsigned axis) {
  const Dim dim = rewriter.module().types[shaped].dims[axis];
  if (!dim.is_dynamic()) return IntFacts::exactly(dim.extent());
  const IntFacts known = meet(rewriter.facts(rewriter.resolve(dim.value())),
                              IntFacts::range(0, std::numeric_limits<int64_t>::max()));
  return known.empty() ? IntFacts::of(kBytes) : known;
}

StorageFacts storage_facts(const Rewriter& rewriter, ValueId value, bool in_kernel) {
  const Module& module = rewriter.module();
  struct Step {
    OpId op;
    ValueId result;
  };
  Step steps[kReach];
  unsigned count = 0;
  ValueId at = value;
  while (true) {
    const Ref now = rewriter.resolve(at);
    if (now.is_constant()) return {};
    at = now.value_id();
    const OpId op = module.defining_op(at);
    if (!op.valid() || !passes_on(module.op(op).kind)) break;
    if (count == kReach) return {};
    steps[count++] = {op, at};
    const bool grouped =
        module.op(op).kind == BufferAssumeNoalias || module.op(op).kind == BufferAssumeAlignment;
    at = module.operand(op, grouped ? module.value(at).index : 0);
  }
  StorageFacts facts = origin(rewriter, at, in_kernel);
  const TypeId type = module.type_of(at);
  if (is_shaped(module.types[type].kind)) {
    facts.bytes = footprint(rewriter, type);
    facts.alignment = std::max<uint64_t>(facts.alignment, module.types[type].align);
  }
  while (count-- > 0) apply(rewriter, steps[count].op, steps[count].result, facts);
  return facts;
}

bool may_overlap(const StorageFacts& a, const StorageFacts& b) {
  // One of the two is written.
  if (a.readonly || b.readonly) return false;
  if (is_apart(a.space, b.space)) return false;
  const bool one_root = a.root.valid() && a.root == b.root;
  if (!one_root) {
    // An allocation is nobody else's; a promised root is disjoint from every other one.
    const bool known = a.root.valid() && b.root.valid();
    if (known && (a.fresh || b.fresh || a.scope.valid() || b.scope.valid())) return false;
    return true;
  }
  if (a.scope.valid() && b.scope.valid() && a.scope != b.scope) return false;
  const auto ends_before = [](const StorageFacts& x, const StorageFacts& y) {
    const IntFacts end = facts::add(x.offset, x.bytes, kBytes);
    return end.hi != kBytes.hi && end.hi <= y.offset.lo;
  };
  return !ends_before(a, b) && !ends_before(b, a);
}

}  // namespace loom
