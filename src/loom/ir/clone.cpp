#include "loom/ir/clone.h"

#include "loom/ir/walk.h"

namespace loom {

Cloner::Cloner(const Module& source, Module& target)
    : source_(source), target_(target), same_(&source == &target) {}

void Cloner::map(ValueId from, ValueId to) { values_.set(from, to); }

bool Cloner::is_mapped(ValueId from) const { return values_.get(from).valid(); }

ValueId Cloner::map(ValueId from) const {
  if (!from.valid()) return from;
  if (const ValueId to = values_.get(from); to.valid()) return to;
  LOOM_CHECK(same_, "cloned code uses a value that was not mapped to the target module");
  return from;
}

StringId Cloner::map(StringId from) {
  if (same_ || !from.valid()) return from;
  if (const StringId known = strings_.get(from); known.valid()) return known;
  const StringId to = target_.strings.intern(source_.strings.text(from));
  strings_.set(from, to);
  return to;
}

TypeId Cloner::map(TypeId from) {
  if (!from.valid() || source_.types.is_scalar(from)) return from;
  const Type& type = source_.types[from];
  const bool movable = !type.mentions_values();
  if (movable) {
    if (same_) return from;
    if (const auto found = types_.find(from.index()); found != types_.end()) return found->second;
  }
  std::vector<Dim> dims(type.dims.begin(), type.dims.end());
  for (Dim& dim : dims) {
    if (dim.is_dynamic()) dim = Dim::dynamic(map(dim.value()));
  }
  Type copy = type;
  copy.dims = dims;
  copy.encoding = map(type.encoding);
  copy.encoding_value = map(type.encoding_value);
  const TypeId to = target_.types.intern(copy);
  if (movable) types_.emplace(from.index(), to);
  return to;
}

AttrId Cloner::map(AttrId from) {
  if (!from.valid()) return from;
  const Attr attr = source_.attrs[from];
  Attr copy = attr;
  // Predicates and types may mention values, so they are mapped anew each time.
  if (attr.kind == AttrKind::Predicates) {
    std::vector<Predicate> predicates(attr.predicates.begin(), attr.predicates.end());
    for (Predicate& predicate : predicates) {
      for (unsigned i = 0; i < predicate.arity(); ++i) {
        predicate.args[i].value = map(predicate.args[i].value);
      }
    }
    copy.predicates = predicates;
    return target_.attrs.intern(copy);
  }
  if (attr.kind == AttrKind::Type) return target_.attrs.intern(Attr::type(map(attr.type())));
  if (same_) return from;
  if (const auto found = attrs_.find(from.index()); found != attrs_.end()) return found->second;
  std::vector<int64_t> ints(attr.ints.begin(), attr.ints.end());
  std::vector<DictEntry> entries(attr.entries.begin(), attr.entries.end());
  switch (attr.kind) {
    case AttrKind::String:
    case AttrKind::Symbol:
    case AttrKind::Word:
    case AttrKind::Encoding:
      copy.bits = map(attr.string()).index();
      break;
    case AttrKind::SymbolList:
      for (int64_t& name : ints) name = map(StringId(static_cast<uint32_t>(name))).index();
      break;
    default:
      break;
  }
  // Dictionary nesting is bounded by the language, so this recursion is too.
  for (DictEntry& entry : entries) entry = {map(entry.key), map(entry.value)};
  copy.ints = ints;
  copy.entries = entries;
  const AttrId to = target_.attrs.intern(copy);
  attrs_.emplace(from.index(), to);
  return to;
}

OpId Cloner::clone_shallow(OpId id) {
  const Op op = source_.op(id);
  std::vector<ValueId> operands(source_.operands(id).begin(), source_.operands(id).end());
  for (ValueId& value : operands) value = map(value);
  std::vector<AttrId> attrs(source_.attr_ids(id).begin(), source_.attr_ids(id).end());
  // Region arguments come first: an attribute or result type may mention them.
  std::vector<TypeId> results(op.result_count);
  for (unsigned i = 0; i < op.result_count; ++i) {
    const TypeId type = source_.type_of(source_.result(id, i));
    results[i] = map(type);
  }
  const auto groups_span = source_.group_sizes(id);
  const std::vector<uint32_t> groups(groups_span.begin(), groups_span.end());
  const OpId copy = target_.create({.kind = op.kind,
                                    .operands = operands,
                                    .groups = groups,
                                    .results = results,
                                    .attrs = attrs,
                                    .regions = op.region_count,
                                    .location = source_.location(id)});
  for (unsigned i = 0; i < op.result_count; ++i) {
    const ValueId from = source_.result(id, i);
    const ValueId to = target_.result(copy, i);
    target_.value(to).name = map(source_.value(from).name);
    map(from, to);
  }
  for (unsigned i = 0; i < op.region_count; ++i) {
    clone_args(source_.op_region(id, i), target_.op_region(copy, i));
  }
  for (unsigned i = 0; i < attrs.size(); ++i) target_.set_attr(copy, i, map(attrs[i]));
  clone_trivia(id, copy);
  if (const auto found = source_.access_facets.find(id.index());
      found != source_.access_facets.end()) {
    const std::vector<Access> access = found->second;
    target_.access_facets[copy.index()] = access;
  }
  return copy;
}

void Cloner::clone_trivia(OpId from, OpId to) {
  if (const auto found = source_.op_trivia.find(from.index()); found != source_.op_trivia.end()) {
    OpTrivia copy = found->second;
    for (StringId& line : copy.leading) line = map(line);
    copy.same_line = map(copy.same_line);
    target_.op_trivia[to.index()] = std::move(copy);
  }
  for (unsigned i = 0; i < source_.op(from).region_count; ++i) {
    const auto found = source_.region_trivia.find(source_.op_region(from, i).index());
    if (found == source_.region_trivia.end()) continue;
    RegionTrivia copy = found->second;
    copy.after_open = map(copy.after_open);
    copy.after_close = map(copy.after_close);
    for (StringId& line : copy.before_close) line = map(line);
    target_.region_trivia[target_.op_region(to, i).index()] = std::move(copy);
  }
}

void Cloner::clone_args(RegionId from, RegionId to) {
  const Region region = source_.region(from);
  const std::vector<ValueId> args(source_.args(from).begin(), source_.args(from).end());
  std::vector<ValueId> copies;
  copies.reserve(args.size());
  // All arguments are mapped before any type is, since a signature may mention later ones.
  for (ValueId arg : args) {
    copies.push_back(target_.create_value(TypeId(), map(source_.value(arg).name)));
    map(arg, copies.back());
  }
  for (size_t i = 0; i < args.size(); ++i) {
    clone_extents(source_.type_of(args[i]), from, to);
    const TypeId type = map(source_.type_of(args[i]));
    target_.value(copies[i]).type = type;
  }
  target_.set_args(to, copies, region.arg_split);
  target_.region(to).has_body = region.has_body;
}

// Extents that a signature introduces by naming them belong to the region but are not arguments.
void Cloner::clone_extents(TypeId type_id, RegionId from, RegionId to) {
  if (source_.types.is_scalar(type_id)) return;
  const std::vector<Dim> dims(source_.types[type_id].dims.begin(),
                              source_.types[type_id].dims.end());
  for (Dim dim : dims) {
    if (!dim.is_dynamic() || is_mapped(dim.value())) continue;
    const Value extent = source_.value(dim.value());
    if (extent.kind != ValueKind::Extent || extent.owner != from.index()) continue;
    const ValueId copy = target_.create_value(extent.type, map(extent.name));
    target_.set_extent_owner(copy, to);
    map(dim.value(), copy);
  }
}

OpId Cloner::clone(OpId root) {
  const OpId copy = clone_shallow(root);
  struct Frame {
    RegionId to;
    OpId next;  // next source operation to clone into `to`
    OpId owner;
    OpId owner_copy;
    unsigned region;
  };
  std::vector<Frame> stack;
  const auto enter = [&](OpId from, OpId to) {
    if (source_.op(from).region_count != 0) {
      stack.push_back({target_.op_region(to, 0), source_.region(source_.op_region(from, 0)).first,
                       from, to, 0});
    }
  };
  enter(root, copy);
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next.valid()) {
      const OpId from = frame.next;
      frame.next = source_.op(from).next;
      const OpId to = clone_shallow(from);
      target_.append(frame.to, to);
      enter(from, to);
      continue;
    }
    if (++frame.region == source_.op(frame.owner).region_count) {
      stack.pop_back();
      continue;
    }
    frame.to = target_.op_region(frame.owner_copy, frame.region);
    frame.next = source_.region(source_.op_region(frame.owner, frame.region)).first;
  }
  return copy;
}

void Cloner::clone_body(RegionId from, RegionId to) {
  for (OpId id = source_.region(from).first; id.valid(); id = source_.op(id).next) {
    const OpId copy = clone(id);
    target_.append(to, copy);
  }
}

}  // namespace loom
