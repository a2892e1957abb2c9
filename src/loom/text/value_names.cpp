#include "loom/text/value_names.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "loom/dialect/op_info.h"

namespace loom {
namespace {

// The number that a name spells, as append_integer would; kNoNumber for any other name.
uint32_t number_of(std::string_view name) {
  if (name.front() < '0' || name.front() > '9') return kNoNumber;
  if (name.size() > 1 && name.front() == '0') return kNoNumber;
  uint32_t number = 0;
  const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), number);
  return bad == std::errc() && end == name.data() + name.size() ? number : kNoNumber;
}

}  // namespace

ValueNamer::ValueNamer(const Module& module)
    : module_(module), numbers_(module.value_count(), kNoNumber), unnamed_(1) {}

void ValueNamer::add(OpId root) {
  std::vector<Frame> stack{{.op = root, .next_region = 0, .scope = {}, .isolated = false}};
  while (!stack.empty()) {
    Frame& frame = stack.back();
    const Op& op = module_.op(frame.op);
    if (frame.next_region != 0) close_region(frame);
    if (frame.next_region < op.region_count) {
      open_region(frame);
      const OpId first = module_.region(module_.op_region(frame.op, frame.next_region++)).first;
      if (first.valid()) stack.push_back({.op = first, .next_region = 0, .scope = {}});
      continue;
    }
    for (unsigned i = 0; i < op.result_count; ++i) define(module_.result(frame.op, i));
    stack.pop_back();
    if (!stack.empty() && op.next.valid()) {
      stack.push_back({.op = op.next, .next_region = 0, .scope = {}});
    }
  }
}

void ValueNamer::open_region(Frame& frame) {
  const Op& holder = module_.op(frame.op);
  const RegionSpec& spec = op_info(holder.kind).region(frame.next_region, holder.region_count);
  const RegionId region = module_.op_region(frame.op, frame.next_region);
  frame.isolated = spec.isolated || spec.signature;
  frame.scope = scopes_.open(frame.isolated);
  if (frame.isolated) unnamed_.emplace_back();
  for (ValueId arg : module_.args(region)) {
    define_extents(module_.type_of(arg), region);
    define(arg);
  }
}

void ValueNamer::close_region(const Frame& frame) {
  scopes_.close(frame.scope);
  if (!frame.isolated) return;
  Unnamed& unnamed = unnamed_.back();
  std::ranges::sort(unnamed.used);
  uint32_t next = 0;
  auto used = unnamed.used.begin();
  for (ValueId value : unnamed.values) {
    for (; used != unnamed.used.end() && *used <= next; ++used) {
      if (*used == next) ++next;
    }
    numbers_[value.index()] = next++;
  }
  unnamed_.pop_back();
}

void ValueNamer::define(ValueId value) {
  const StringId name = module_.value(value).name;
  if (!name.valid()) {
    unnamed_.back().values.push_back(value);
    return;
  }
  if (scopes_.find(name).valid()) {
    numbers_[value.index()] = free_suffix(name);
    return;
  }
  scopes_.bind(name, value);
  const uint32_t number = number_of(module_.strings.text(name));
  if (number != kNoNumber) unnamed_.back().used.push_back(number);
}

// Extents that a signature introduces are in no argument list.
void ValueNamer::define_extents(TypeId type, RegionId region) {
  for (Dim dim : module_.types[type].dims) {
    if (!dim.is_dynamic()) continue;
    const Value& value = module_.value(dim.value());
    if (value.kind != ValueKind::Extent || value.owner != region.index()) continue;
    if (value.name.valid() && scopes_.find(value.name) == dim.value()) continue;
    define(dim.value());
  }
}

uint32_t ValueNamer::free_suffix(StringId name) {
  if (next_suffix_.size() <= name.index()) next_suffix_.resize(module_.strings.size(), 1);
  std::string candidate;
  for (;;) {
    const uint32_t suffix = next_suffix_[name.index()]++;
    candidate = module_.strings.text(name);
    candidate += '_';
    append_integer(candidate, suffix);
    if (!module_.strings.find(candidate).valid()) return suffix;
  }
}

}  // namespace loom
