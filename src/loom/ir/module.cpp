#include "loom/ir/module.h"

#include "loom/base/huge_pages.h"
#include "loom/ir/walk.h"

namespace loom {
namespace {

// Appends a span that may point into the vector itself.
template <class T>
uint32_t append_span(std::vector<T>& pool, std::span<const T> items) {
  const auto begin = static_cast<uint32_t>(pool.size());
  if (items.empty()) return begin;
  const bool inside = items.data() >= pool.data() && items.data() < pool.data() + pool.size();
  if (!inside) {
    pool.insert(pool.end(), items.begin(), items.end());
    return begin;
  }
  const auto offset = static_cast<size_t>(items.data() - pool.data());
  pool.resize(pool.size() + items.size());
  for (size_t i = 0; i < items.size(); ++i) pool[begin + i] = pool[offset + i];
  return begin;
}

}  // namespace

Module::Module(SourceFiles& files) : files_(&files) {
  regions_.push_back({});
  regions_.front().has_body = true;
}

std::span<const ValueId> Module::operands(OpId id) const {
  const Op& o = op(id);
  return {operand_pool_.data() + o.operand_begin, o.operand_count};
}

std::span<const AttrId> Module::attr_ids(OpId id) const {
  const Op& o = op(id);
  return {attr_pool_.data() + o.attr_begin, o.attr_count};
}

std::span<const ValueId> Module::args(RegionId id) const {
  const Region& r = region(id);
  return {arg_pool_.data() + r.arg_begin, r.arg_count};
}

std::span<const ValueId> Module::arg_group(RegionId id, unsigned group) const {
  const auto all = args(id);
  const uint32_t split = region(id).arg_split;
  return group == 0 ? all.first(split) : all.subspan(split);
}

std::span<const uint32_t> Module::group_sizes(OpId id) const {
  const Op& o = op(id);
  return {group_pool_.data() + o.group_begin, o.group_count};
}

std::string_view Module::name_of(ValueId id) const {
  const StringId name = value(id).name;
  return name.valid() ? strings.text(name) : std::string_view();
}

OpId Module::defining_op(ValueId id) const {
  const Value& v = value(id);
  return v.kind == ValueKind::Result ? OpId(v.owner) : OpId();
}

void Module::reserve(size_t ops) {
  reserve_on_huge_pages(ops_, ops_.size() + ops);
  reserve_on_huge_pages(locations_, locations_.size() + ops);
  reserve_on_huge_pages(values_, values_.size() + ops);
  reserve_on_huge_pages(operand_pool_, operand_pool_.size() + 2 * ops);
  reserve_on_huge_pages(attr_pool_, attr_pool_.size() + ops);
}

OpId Module::create(const NewOp& request) {
  const OpId id(ops_.size());
  Op o;
  o.kind = request.kind;
  o.result_count = static_cast<uint16_t>(request.results.size());
  o.attr_count = static_cast<uint8_t>(request.attrs.size());
  o.region_count = static_cast<uint16_t>(request.regions);
  o.operand_count = static_cast<uint32_t>(request.operands.size());
  o.operand_begin = append_span(operand_pool_, request.operands);
  o.attr_begin = append_span(attr_pool_, request.attrs);
  o.group_count = static_cast<uint8_t>(request.groups.size()) & 0x7f;
  o.group_begin = append_span(group_pool_, request.groups);
  o.result_begin = static_cast<uint32_t>(values_.size());
  for (size_t i = 0; i < request.results.size(); ++i) {
    values_.push_back(
        {request.results[i], StringId(), id.index(), static_cast<uint16_t>(i), ValueKind::Result});
  }
  o.region_begin = static_cast<uint32_t>(regions_.size());
  for (unsigned i = 0; i < request.regions; ++i) {
    regions_.push_back({});
    regions_.back().parent = id;
  }
  ops_.push_back(o);
  locations_.push_back(request.location);
  return id;
}

void Module::append(RegionId region_id, OpId id) {
  Region& r = region(region_id);
  Op& o = op(id);
  LOOM_DCHECK(!o.parent.valid(), "operation is already in a region");
  o.parent = region_id;
  o.prev = r.last;
  o.next = OpId();
  if (r.last.valid()) {
    op(r.last).next = id;
  } else {
    r.first = id;
  }
  r.last = id;
}

void Module::insert_before(OpId place, OpId id) {
  Op& at = op(place);
  Op& o = op(id);
  LOOM_DCHECK(!o.parent.valid(), "operation is already in a region");
  o.parent = at.parent;
  o.prev = at.prev;
  o.next = place;
  if (at.prev.valid()) {
    op(at.prev).next = id;
  } else {
    region(at.parent).first = id;
  }
  at.prev = id;
}

void Module::detach(OpId id) {
  Op& o = op(id);
  if (!o.parent.valid()) return;
  Region& r = region(o.parent);
  (o.prev.valid() ? op(o.prev).next : r.first) = o.next;
  (o.next.valid() ? op(o.next).prev : r.last) = o.prev;
  o.parent = RegionId();
  o.prev = o.next = OpId();
}

void Module::erase(OpId id) {
  for_each_nested(*this, id, [&](OpId nested) {
    op(nested).erased = true;
    op_trivia.erase(nested.index());
  });
  detach(id);
  op(id).erased = true;
}

void Module::set_operand(OpId id, unsigned i, ValueId value) {
  operand_pool_[op(id).operand_begin + i] = value;
}

void Module::set_operands(OpId id, std::span<const ValueId> values,
                          std::span<const uint32_t> groups) {
  const uint32_t begin = append_span(operand_pool_, values);
  op(id).operand_begin = begin;
  op(id).operand_count = static_cast<uint32_t>(values.size());
  op(id).group_count = static_cast<uint8_t>(groups.size()) & 0x7f;
  op(id).group_begin = append_span(group_pool_, groups);
}

void Module::set_attr(OpId id, unsigned slot, AttrId attr) {
  attr_pool_[op(id).attr_begin + slot] = attr;
}

RegionId Module::create_region(OpId parent) {
  regions_.push_back({});
  regions_.back().parent = parent;
  return RegionId(regions_.size() - 1);
}

void Module::set_regions(OpId id, std::span<const RegionId> regions) {
  op(id).region_begin = static_cast<uint32_t>(regions_.size());
  op(id).region_count = static_cast<uint16_t>(regions.size());
  for (const RegionId from : regions) {
    const RegionId to = create_region(id);
    region(to) = region(from);
    region(from) = {};
    for (OpId child = region(to).first; child.valid(); child = op(child).next) {
      op(child).parent = to;
    }
    for (const ValueId arg : args(to)) value(arg).owner = to.index();
    if (auto trivia = region_trivia.extract(from.index()); !trivia.empty()) {
      trivia.key() = to.index();
      region_trivia.insert(std::move(trivia));
    }
  }
}

ValueId Module::create_value(TypeId type, StringId name) {
  values_.push_back({type, name, 0, 0, ValueKind::Extent});
  return ValueId(values_.size() - 1);
}

void Module::set_args(RegionId id, std::span<const ValueId> values, uint32_t split) {
  const uint32_t begin = append_span(arg_pool_, values);
  Region& r = region(id);
  r.arg_begin = begin;
  r.arg_count = static_cast<uint32_t>(values.size());
  r.arg_split = split;
  for (uint32_t i = 0; i < r.arg_count; ++i) {
    Value& v = value(arg_pool_[begin + i]);
    v.owner = id.index();
    v.index = static_cast<uint16_t>(i);
    v.kind = ValueKind::Argument;
  }
}

ValueId Module::add_arg(RegionId id, TypeId type, StringId name) {
  std::vector<ValueId> all(args(id).begin(), args(id).end());
  all.push_back(create_value(type, name));
  set_args(id, all, static_cast<uint32_t>(all.size()));
  return all.back();
}

void Module::set_extent_owner(ValueId id, RegionId region_id) {
  value(id).owner = region_id.index();
  value(id).kind = ValueKind::Extent;
}

bool Module::define_symbol(StringId name, OpId id) {
  if (symbols_.size() <= name.index()) symbols_.resize(strings.size());
  if (symbols_[name.index()].valid()) return false;
  symbols_[name.index()] = id;
  return true;
}

OpId Module::symbol(StringId name) const {
  return name.valid() && name.index() < symbols_.size() ? symbols_[name.index()] : OpId();
}

void Module::forget_symbol(StringId name) {
  if (name.index() < symbols_.size()) symbols_[name.index()] = OpId();
}

}  // namespace loom
