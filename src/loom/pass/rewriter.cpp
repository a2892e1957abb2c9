#include "loom/pass/rewriter.h"

#include <algorithm>

#include "loom/ir/walk.h"
#include "loom/pass/fact_flow.h"
#include "loom/pass/pass_context.h"

namespace loom {
namespace {

constexpr unsigned kIndexValue = attr_slot(OpKind::IndexConstant, "value");
constexpr unsigned kScalarValue = attr_slot(OpKind::ScalarConstant, "value");
constexpr size_t kSmallTable = 64;
// Only the innermost conditions are searched, so that deep nesting stays linear.
constexpr size_t kRelationReach = 16;
constexpr unsigned kFoldRounds = 8;

// i1 is 0 or 1 in facts.
int64_t fact_value(const ScalarValue& value) {
  return value.kind == ScalarKind::I1 ? static_cast<int64_t>(value.bits) : as_signed(value);
}

// Kinds whose attributes mention values.
bool has_value_attrs(OpKind kind) {
  return kind == OpKind::IndexAssume || kind == OpKind::ScalarAssume;
}

}  // namespace

std::optional<ScalarValue> constant_of(const Module& module, OpId op) {
  if (!op.valid()) return std::nullopt;
  const OpKind kind = module.op(op).kind;
  if (kind != OpKind::IndexConstant && kind != OpKind::ScalarConstant) return std::nullopt;
  const Attr& attr = module.attr(op, kind == OpKind::IndexConstant ? kIndexValue : kScalarValue);
  return from_literal(attr, module.types[module.type_of(module.result(op))].element);
}

Rewriter::Rewriter(PassContext& context, RegionId isolated)
    : module_(context.module()), space_(context.workspace()), region_(isolated) {
  space_.constants.clear();
  space_.constant_table.assign(kSmallTable, PassWorkspace::kFree);
  space_.facts.assign(1, IntFacts{});
}

Rewriter::~Rewriter() {
  for (uint32_t i : space_.replaced) space_.replacement[i] = Ref();
  for (uint32_t i : space_.with_facts) space_.fact_index[i] = 0;
  for (uint32_t i : space_.mentioned) space_.in_type[i] = 0;
  for (uint32_t i : space_.counted) space_.uses[i] = 0;
  for (uint32_t i : space_.with_excluded) space_.excluded[i] = 0;
  space_.with_excluded.clear();
  space_.replaced.clear();
  space_.with_facts.clear();
  space_.mentioned.clear();
  space_.counted.clear();
}

// --- replacement --------------------------------------------------------------------------------

void Rewriter::replace(ValueId from, Ref to) {
  reach(space_.replacement, from.index());
  Ref& slot = space_.replacement[from.index()];
  if (!slot.valid()) space_.replaced.push_back(from.index());
  slot = to;
}

bool Rewriter::values_replaced_in(const Type& type) const {
  for (Dim dim : type.dims) {
    if (dim.is_dynamic() && resolve(dim.value()) != Ref::value(dim.value())) return true;
  }
  return type.encoding_value.valid() &&
         resolve(type.encoding_value) != Ref::value(type.encoding_value);
}

TypeId Rewriter::resolve_type(TypeId id) {
  if (!id.valid() || module_.types.is_scalar(id)) return id;
  const Type type = module_.types[id];
  if (!type.mentions_values() || !values_replaced_in(type)) return id;
  std::vector<Dim> dims(type.dims.begin(), type.dims.end());
  for (Dim& dim : dims) {
    if (dim.is_dynamic()) dim = Dim::dynamic(materialize(resolve(dim.value())));
  }
  Type copy = type;
  copy.dims = dims;
  if (type.encoding_value.valid()) copy.encoding_value = materialize(resolve(type.encoding_value));
  return module_.types.intern(copy);
}

AttrId Rewriter::resolve_attr(AttrId id) {
  if (!id.valid() || module_.attrs[id].kind != AttrKind::Predicates) return id;
  const auto source = module_.attrs[id].predicates;
  std::vector<Predicate> predicates(source.begin(), source.end());
  for (Predicate& predicate : predicates) {
    for (unsigned i = 0; i < predicate.arity(); ++i) {
      PredicateArg& arg = predicate.args[i];
      if (!arg.is_value()) continue;
      arg.value = materialize(resolve(arg.value));
    }
  }
  return module_.attrs.intern(Attr::predicate_list(predicates));
}

bool Rewriter::remap(OpId id) {
  bool changed = false;
  const unsigned count = module_.op(id).operand_count;
  for (unsigned i = 0; i < count; ++i) {
    const ValueId old = module_.operand(id, i);
    const Ref now = resolve(old);
    if (now == Ref::value(old)) continue;
    const ValueId value = materialize(now);
    if (value == old) continue;
    module_.set_operand(id, i, value);
    changed = true;
  }
  const Op op = module_.op(id);
  for (unsigned i = 0; i < op.result_count; ++i) {
    const ValueId result = module_.result(id, i);
    const TypeId type = module_.type_of(result);
    if (module_.types.is_scalar(type)) continue;
    const TypeId now = resolve_type(type);
    if (now == type) continue;
    module_.value(result).type = now;
    changed = true;
  }
  for (unsigned i = 0; i < op.region_count; ++i) {
    for (ValueId arg : module_.args(module_.op_region(id, i))) {
      const TypeId now = resolve_type(module_.type_of(arg));
      changed |= now != module_.type_of(arg);
      module_.value(arg).type = now;
    }
  }
  if (has_value_attrs(op.kind)) {
    for (unsigned i = 0; i < op.attr_count; ++i) {
      const AttrId old = module_.attr_ids(id)[i];
      const AttrId now = resolve_attr(old);
      if (now == old) continue;
      module_.set_attr(id, i, now);
      changed = true;
    }
  }
  return changed;
}

TypeId Rewriter::type_of(Ref ref) const {
  return ref.is_constant() ? TypeStore::scalar(space_.constants[ref.constant_index()].value.kind)
                           : module_.type_of(ref.value_id());
}

// --- constants ----------------------------------------------------------------------------------

uint32_t Rewriter::intern(const ScalarValue& value) {
  auto& table = space_.constant_table;
  const size_t mask = table.size() - 1;
  size_t slot = hash_combine(static_cast<uint64_t>(value.kind), value.bits) & mask;
  for (; table[slot] != PassWorkspace::kFree; slot = (slot + 1) & mask) {
    if (space_.constants[table[slot]].value == value) return table[slot];
  }
  const auto index = static_cast<uint32_t>(space_.constants.size());
  space_.constants.push_back({value, ValueId()});
  table[slot] = index;
  if (space_.constants.size() * 2 > table.size()) grow_table();
  return index;
}

void Rewriter::grow_table() {
  auto& table = space_.constant_table;
  table.assign(table.size() * 2, PassWorkspace::kFree);
  const size_t mask = table.size() - 1;
  for (uint32_t i = 0; i < space_.constants.size(); ++i) {
    const ScalarValue& value = space_.constants[i].value;
    size_t slot = hash_combine(static_cast<uint64_t>(value.kind), value.bits) & mask;
    while (table[slot] != PassWorkspace::kFree) slot = (slot + 1) & mask;
    table[slot] = i;
  }
}

Ref Rewriter::constant(const ScalarValue& value) { return Ref::constant(intern(value)); }

void Rewriter::insert_constant(OpId op) {
  const OpId place =
      last_constant_.valid() ? module_.op(last_constant_).next : module_.region(region_).first;
  if (place.valid()) {
    module_.insert_before(place, op);
  } else {
    module_.append(region_, op);
  }
  last_constant_ = op;
}

ValueId Rewriter::materialize(Ref ref) {
  if (!ref.is_constant()) return ref.value_id();
  const uint32_t index = ref.constant_index();
  if (space_.constants[index].result.valid()) return space_.constants[index].result;
  const ScalarValue value = space_.constants[index].value;
  const TypeId type = TypeStore::scalar(value.kind);
  const AttrId literal = module_.attrs.intern(to_literal(value));
  const OpKind kind = is_address(value.kind) ? OpKind::IndexConstant : OpKind::ScalarConstant;
  const OpId op = module_.create({.kind = kind, .results = {&type, 1}, .attrs = {&literal, 1}});
  insert_constant(op);
  const ValueId result = module_.result(op);
  space_.constants[index].result = result;
  replace(result, ref);
  return result;
}

bool Rewriter::adopt_constant(OpId op) {
  const auto value = constant_of(module_, op);
  if (!value) return false;
  const uint32_t index = intern(*value);
  const ValueId result = module_.result(op);
  ValueId& pooled = space_.constants[index].result;
  if (!pooled.valid()) {
    pooled = result;
    const Op& at = module_.op(op);
    if (at.parent == region_ && at.prev == last_constant_) {
      last_constant_ = op;
    } else {
      module_.detach(op);
      insert_constant(op);
    }
  } else if (pooled != result) {
    module_.erase(op);
  }
  replace(result, Ref::constant(index));
  return true;
}

std::optional<ScalarValue> Rewriter::exact(Ref ref) const {
  if (ref.is_constant()) return space_.constants[ref.constant_index()].value;
  const uint32_t i = ref.value_id().index();
  if (i >= space_.fact_index.size() || space_.fact_index[i] == 0) return std::nullopt;
  const IntFacts& facts = space_.facts[space_.fact_index[i]];
  if (facts.lo != facts.hi) return std::nullopt;
  return from_bits(module_.types[type_of(ref)].element, static_cast<uint64_t>(facts.lo));
}

std::optional<int64_t> Rewriter::exact_int(Ref ref) const {
  const auto value = exact(ref);
  if (!value || is_float(value->kind)) return std::nullopt;
  return fact_value(*value);
}

// --- facts --------------------------------------------------------------------------------------

IntFacts Rewriter::facts(Ref ref) const {
  if (ref.is_constant()) {
    const ScalarValue& value = space_.constants[ref.constant_index()].value;
    return is_float(value.kind) ? IntFacts{} : IntFacts::exactly(fact_value(value));
  }
  const uint32_t i = ref.value_id().index();
  if (i < space_.fact_index.size() && space_.fact_index[i] != 0) {
    return space_.facts[space_.fact_index[i]];
  }
  const Type& type = module_.types[module_.type_of(ref.value_id())];
  return type.is_scalar() ? IntFacts::of(IntDomain::of(type.element)) : IntFacts{};
}

void Rewriter::set_facts(ValueId value, const IntFacts& facts) {
  if (facts.empty()) return;
  const uint32_t i = value.index();
  reach(space_.fact_index, i);
  if (space_.fact_index[i] == 0) {
    const Type& type = module_.types[module_.type_of(value)];
    if (!type.is_scalar() || is_float(type.element)) return;
    if (facts.is_trivial(IntDomain::of(type.element))) return;
    space_.with_facts.push_back(i);
  }
  undo_.push_back({i, space_.fact_index[i]});
  space_.fact_index[i] = static_cast<uint32_t>(space_.facts.size());
  space_.facts.push_back(facts);
}

void Rewriter::refine_facts(ValueId value, const IntFacts& more) {
  const IntFacts before = facts(Ref::value(value));
  const IntFacts after = meet(before, more);
  if (after != before) set_facts(value, after);
}

FloatFacts Rewriter::float_facts(Ref ref) const {
  if (ref.is_constant()) {
    const ScalarValue& value = space_.constants[ref.constant_index()].value;
    return is_float(value.kind) ? FloatFacts::exactly(to_double(value)) : FloatFacts{};
  }
  const uint32_t i = ref.value_id().index();
  FloatFacts facts = FloatFacts::of(element_of(ref));
  if (i < space_.excluded.size()) facts.possible &= static_cast<uint8_t>(~space_.excluded[i]);
  return facts;
}

void Rewriter::refine_float(ValueId value, FloatFacts more) {
  const uint32_t i = value.index();
  const FloatFacts before = float_facts(Ref::value(value)), after = meet(before, more);
  if (after == before || after.empty()) return;
  reach(space_.excluded, i);
  if (space_.excluded[i] == 0) space_.with_excluded.push_back(i);
  space_.excluded[i] |= static_cast<uint8_t>(~after.possible & FloatFacts::kAll);
}

void Rewriter::restore_facts(size_t mark) {
  while (undo_.size() > mark) {
    space_.fact_index[undo_.back().value] = undo_.back().fact;
    undo_.pop_back();
  }
}

std::vector<ValueId> Rewriter::changed_since(size_t mark) const {
  std::vector<ValueId> values;
  for (size_t i = mark; i < undo_.size(); ++i) values.emplace_back(undo_[i].value);
  return values;
}

void Rewriter::forget_lessons(size_t mark, RegionId region) {
  while (undo_.size() > mark) {
    const Undo undo = undo_.back();
    undo_.pop_back();
    const Value& value = module_.value(ValueId(undo.value));
    const bool own = value.kind == ValueKind::Result
                         ? module_.op(OpId(value.owner)).parent == region
                         : value.owner == region.index();
    if (!own) space_.fact_index[undo.value] = undo.fact;
  }
}

void Rewriter::mark_in_type(TypeId id) {
  if (module_.types.is_scalar(id)) return;
  const Type& type = module_.types[id];
  const auto mark = [&](ValueId value) {
    reach(space_.in_type, value.index());
    if (space_.in_type[value.index()] != 0) return;
    space_.in_type[value.index()] = 1;
    space_.mentioned.push_back(value.index());
  };
  for (Dim dim : type.dims) {
    if (dim.is_dynamic()) mark(dim.value());
  }
  if (type.encoding_value.valid()) mark(type.encoding_value);
}

std::optional<bool> Rewriter::related(Compare compare, Ref a, Ref b) const {
  // Contracts stand at the bottom, the conditions around the place at the top.
  Relation near[2 * kRelationReach];
  const size_t all = relations_.size();
  const size_t top = all > kRelationReach ? all - kRelationReach : 0;
  const size_t bottom = std::min(top, kRelationReach);
  std::copy_n(relations_.begin(), bottom, near);
  std::copy(relations_.begin() + static_cast<ptrdiff_t>(top), relations_.end(), near + bottom);
  const std::span<const Relation> known(near, bottom + all - top);
  const auto decided_by = [&](std::span<const Relation> relations) -> std::optional<bool> {
    for (size_t i = relations.size(); i-- > 0;) {
      Compare relation = relations[i].compare;
      if (relations[i].a == b && relations[i].b == a) {
        relation = swapped(relation);
      } else if (relations[i].a != a || relations[i].b != b) {
        continue;
      }
      // What the known relation says about each order of the two sides.
      if (const auto decided = implied(relation, compare)) return decided;
    }
    return std::nullopt;
  };
  if (const auto decided = decided_by(known)) return decided;
  for (const Ref side : {a, b}) {
    const OpId op = defining(side);
    if (!op.valid()) continue;
    std::vector<Relation> own;
    own_relations(*this, op, own);
    if (const auto decided = decided_by(own)) return decided;
  }
  return decide(*this, known, compare, a, b);
}

// --- folding ------------------------------------------------------------------------------------

OpId Rewriter::defining(Ref ref) const {
  return ref.is_constant() ? OpId() : module_.defining_op(ref.value_id());
}

void Rewriter::count_uses() {
  uses_counted_ = true;
  reach(space_.uses, module_.value_count());
  for_each_nested(module_, use_root_, [&](OpId op) {
    for (ValueId value : module_.operands(op)) {
      if (space_.uses[value.index()]++ == 0) space_.counted.push_back(value.index());
    }
  });
}

bool Rewriter::single_use(Ref ref) {
  if (!use_root_.valid() || !ref.is_value()) return false;
  if (!uses_counted_) count_uses();
  const uint32_t i = ref.value_id().index();
  return i < space_.uses.size() && space_.uses[i] == 1;
}

void Rewriter::insert(OpId op, InsertionPoint place) {
  if (place.before.valid()) {
    module_.insert_before(place.before, op);
  } else {
    module_.append(place.region, op);
  }
}

Ref Rewriter::create(OpKind kind, std::span<const Ref> operands, AttrId flags, TypeId type,
                     InsertionPoint place, Location location) {
  ValueId values[3];
  for (size_t i = 0; i < operands.size(); ++i) values[i] = materialize(operands[i]);
  const OpId op = module_.create({.kind = kind,
                                  .operands = {values, operands.size()},
                                  .results = {&type, 1},
                                  .attrs = {&flags, op_info(kind).attrs.size()},
                                  .location = location});
  insert(op, place);
  return Ref::value(module_.result(op));
}

// A rewrite ends in a form that no rule changes further, so few rounds are needed; the bound only
// guards against two rules undoing each other.
Ref Rewriter::fold_at(const FoldInput& input, InsertionPoint place, Location location,
                      unsigned round) {
  if (round == kFoldRounds) return Ref();
  const FoldResult result = fold(*this, input);
  if (result.step_count == 0) return result.ref;
  Ref last;
  for (unsigned i = 0; i < result.step_count; ++i) {
    FoldStep step = result.steps[i];
    for (unsigned k = 0; k < step.count; ++k) {
      if (!step.operands[k].valid()) step.operands[k] = last;
    }
    const std::span<const Ref> operands(step.operands, step.count);
    last = fold_at({step.kind, operands, {.flags = step.flags}, step.type}, place, location,
                   round + 1);
    if (last.valid()) continue;
    const AttrId flags = step.flags != 0 ? module_.attrs.intern(Attr::flags(step.flags)) : AttrId();
    last = create(step.kind, operands, flags, step.type, place, location);
  }
  return last;
}

}  // namespace loom
