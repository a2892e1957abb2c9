// Vector loads and stores, atomics, and matrix fragments in memory.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"

namespace loom::interp {

using enum OpKind;

std::span<const ValueId> Machine::group(OpId op, std::string_view name) const {
  const OpInfo& info = op_info(module_.op(op).kind);
  for (unsigned i = 0; i < info.operands.size(); ++i) {
    if (info.operands[i].name == name) return operand_group(module_, op, i);
  }
  return {};
}

AttrId Machine::attribute(OpId op, std::string_view name) const {
  const OpInfo& info = op_info(module_.op(op).kind);
  for (unsigned i = 0; i < info.attrs.size(); ++i) {
    if (info.attrs[i].name == name) return module_.attr_ids(op)[i];
  }
  return {};
}

std::optional<std::vector<int64_t>> Machine::origin(Invocation& t, OpId op) {
  const OpInfo& info = op_info(module_.op(op).kind);
  const auto found = std::ranges::find(info.attrs, "static_index", &AttrSpec::name);
  return indices(t, op, group(op, "index"), static_cast<unsigned>(found - info.attrs.begin()));
}

std::optional<std::vector<std::optional<uint64_t>>> Machine::lane_bytes(
    Invocation& t, OpId op, const ViewDatum& window, std::span<const int64_t> shape) {
  const auto begin = origin(t, op);
  if (!begin) return std::nullopt;
  std::optional<LaneValues> mask, offsets;
  if (const auto values = group(op, "m"); !values.empty()) {
    mask = lanes(t, op, values[0]);
    if (!mask) return std::nullopt;
  }
  if (const auto values = group(op, "o"); !values.empty()) {
    offsets = lanes(t, op, values[0]);
    if (!offsets) return std::nullopt;
  }
  const size_t count = lane_count(shape);
  const size_t first_axis = begin->size() - std::min(begin->size(), shape.size());
  std::vector<std::optional<uint64_t>> bytes(count);
  for (size_t lane = 0; lane < count; ++lane) {
    if (mask && (mask->lanes[lane] & 1) == 0) continue;
    std::vector<int64_t> index = *begin;
    bool representable = true;
    if (offsets) {
      representable &=
          !__builtin_add_overflow(index.back(), as_signed(offsets->at(lane)), &index.back());
    } else {
      size_t rest = lane;
      for (size_t axis = shape.size(); axis-- > 0;) {
        const auto extent = static_cast<size_t>(shape[axis]);
        representable &=
            !__builtin_add_overflow(index[first_axis + axis], static_cast<int64_t>(rest % extent),
                                    &index[first_axis + axis]);
        rest /= extent;
      }
    }
    if (!representable) {
      violation(op, fmt::format("the place of lane {} is out of range", lane));
      return std::nullopt;
    }
    // A contiguous access begins on the alignment; lanes that go their own way are each on it.
    bytes[lane] = locate(op, window, index, offsets.has_value() || lane == 0);
    if (!bytes[lane]) return std::nullopt;
  }
  return bytes;
}

Machine::Outcome Machine::vector_access(Invocation& t, OpId op) {
  const OpKind kind = module_.op(op).kind;
  const auto window = view(t, op, group(op, "w")[0]);
  if (window == nullptr) return Outcome::Stop;
  const bool atomic = kind == VectorAtomicReduce || kind == VectorAtomicReduceMask ||
                      kind == VectorAtomicRmw || kind == VectorAtomicRmwMask ||
                      kind == VectorAtomicCmpXchg;
  std::optional<LaneValues> value, passed, expected;
  std::vector<int64_t> shape;
  const auto take = [&](std::string_view name, std::optional<LaneValues>& into) {
    const auto values = group(op, name);
    if (values.empty()) return true;
    into = lanes(t, op, values[0]);
    return into.has_value();
  };
  if (!take("v", value) || !take("desired", value) || !take("p", passed) ||
      !take("expected", expected)) {
    return Outcome::Stop;
  }
  if (value) {
    shape = value->shape;
  } else {
    auto found = extents(t, op, module_.types[module_.type_of(module_.result(op))]);
    if (!found) return Outcome::Stop;
    shape = std::move(*found);
  }
  const auto bytes = lane_bytes(t, op, *window, shape);
  if (!bytes) return Outcome::Stop;
  LaneValues result{window->element, shape, std::vector<uint64_t>(bytes->size()), {}};
  if (passed) result.lanes = passed->lanes;
  std::unordered_set<uint64_t> written;
  for (size_t lane = 0; lane < bytes->size(); ++lane) {
    if (!(*bytes)[lane]) continue;
    const uint64_t byte = *(*bytes)[lane];
    if (atomic) {
      const auto old = update(t, op, *window, byte, value->lanes[lane],
                              expected ? std::optional(expected->lanes[lane]) : std::nullopt);
      if (!old) return Outcome::Stop;
      result.lanes[lane] = *old;
    } else if (value) {
      if (!written.insert(byte).second) {
        violation(op, fmt::format("lane {} writes the element of an earlier lane", lane));
        return Outcome::Stop;
      }
      if (!store(t, op, *window, byte, value->lanes[lane], {.write = true})) return Outcome::Stop;
    } else {
      const auto bits = load(t, op, *window, byte, {.read = true});
      if (!bits) return Outcome::Stop;
      result.lanes[lane] = *bits;
    }
  }
  if (module_.op(op).result_count != 0) set(t, module_.result(op), lanes_datum(std::move(result)));
  return Outcome::Next;
}

// --- atomics ------------------------------------------------------------------------------------

// What the invocation knew goes to the element, and what others left there comes back.
void Machine::synchronize(Invocation& t, OpId, const std::shared_ptr<Root>& root, uint64_t byte,
                          Ordering ordering) {
  if (ordering == Ordering::Relaxed || t.launch == nullptr || t.group == nullptr) return;
  Knowledge& published = published_[{root, byte}];
  if (ordering != Ordering::Release) {
    Knowledge known = t.known ? *t.known : Knowledge{};
    known.join(published);
    t.known = std::make_shared<const Knowledge>(std::move(known));
  }
  if (ordering == Ordering::Acquire) return;
  const Touch self = touch_of(t, OpId(), *root, true);
  if (t.known) published.join(*t.known);
  Knowledge own;
  for (int m = 0; m < 2; ++m) {
    own.groups[self.group].of[m] = t.epochs[m];
    own.subgroups[self.subgroup].of[m] = t.subgroup_epochs[m];
  }
  own.releases[self.invocation] = ++t.releases;
  published.join(own);
}

std::optional<uint64_t> Machine::update(Invocation& t, OpId op, const ViewDatum& window,
                                        uint64_t byte, uint64_t operand,
                                        std::optional<uint64_t> expected) {
  const auto old = load(t, op, window, byte, {.read = true, .write = true, .atomic = true});
  if (!old) return std::nullopt;
  const auto ordering = [&](std::string_view name) {
    return static_cast<Ordering>(module_.attrs[attribute(op, name)].value());
  };
  uint64_t next = operand;
  if (expected) {
    const bool same = *old == *expected;
    synchronize(t, op, window.buffer.root, byte,
                ordering(same ? "success_ordering" : "failure_ordering"));
    if (!same) return old;
  } else {
    synchronize(t, op, window.buffer.root, byte, ordering("ordering"));
    const auto kind = static_cast<AtomicKind>(module_.attrs[attribute(op, "kind")].value());
    if (const auto combine = combining_op(kind)) {
      const ScalarValue operands[] = {{window.element, *old}, {window.element, operand}};
      ScalarValue combined;
      if (evaluate(*combine, {}, operands, window.element, combined) != EvalStatus::Ok) {
        unsupported(op);
        return std::nullopt;
      }
      next = combined.bits;
    }
  }
  if (!store(t, op, window, byte, next, {.write = true, .atomic = true})) return std::nullopt;
  return old;
}

Machine::Outcome Machine::atomic_access(Invocation& t, OpId op) {
  const OpKind kind = module_.op(op).kind;
  const auto window = view(t, op, group(op, "w")[0]);
  if (window == nullptr) return Outcome::Stop;
  const auto index = origin(t, op);
  if (!index) return Outcome::Stop;
  const auto byte = locate(op, *window, *index, true);
  if (!byte) return Outcome::Stop;
  std::optional<uint64_t> old;
  if (kind == ViewAtomicLoad || kind == ViewAtomicStore) {
    const auto ordering = static_cast<Ordering>(module_.attrs[attribute(op, "ordering")].value());
    if (kind == ViewAtomicLoad) {
      old = load(t, op, *window, *byte, {.read = true, .atomic = true});
      if (!old) return Outcome::Stop;
      synchronize(t, op, window->buffer.root, *byte, ordering);
    } else {
      const auto value = scalar(t, op, group(op, "x")[0]);
      if (!value) return Outcome::Stop;
      synchronize(t, op, window->buffer.root, *byte, ordering);
      if (!store(t, op, *window, *byte, value->bits, {.write = true, .atomic = true})) {
        return Outcome::Stop;
      }
    }
  } else if (kind == ViewAtomicCmpxchg) {
    const auto expected = scalar(t, op, group(op, "expected")[0]);
    const auto replacement = scalar(t, op, group(op, "replacement")[0]);
    if (!expected || !replacement) return Outcome::Stop;
    old = update(t, op, *window, *byte, replacement->bits, expected->bits);
    if (!old) return Outcome::Stop;
  } else {
    const auto value = scalar(t, op, group(op, "v")[0]);
    if (!value) return Outcome::Stop;
    old = update(t, op, *window, *byte, value->bits, std::nullopt);
    if (!old) return Outcome::Stop;
  }
  if (module_.op(op).result_count != 0) set_scalar(t, op, {window->element, *old});
  return Outcome::Next;
}

// --- fragments ----------------------------------------------------------------------------------

// The matrix lies in the trailing axes of the view; blocks, where there are several, before them.
Machine::Outcome Machine::fragment_access(Invocation& t, OpId op) {
  const bool is_load = module_.op(op).kind == VectorFragmentLoad;
  const auto window = view(t, op, group(op, "w")[0]);
  if (window == nullptr) return Outcome::Stop;
  const auto begin = origin(t, op);
  const auto rows = integer(t, op, group(op, "rows")[0]);
  const auto columns = integer(t, op, group(op, "cols")[0]);
  if (!begin || !rows || !columns) return Outcome::Stop;
  FragmentShape fragment{static_cast<FragmentRole>(module_.attrs[attribute(op, "role")].value()), 1,
                         *rows, *columns};
  if (const auto blocks = group(op, "blocks"); !blocks.empty()) {
    const auto count = integer(t, op, blocks[0]);
    if (!count) return Outcome::Stop;
    fragment.blocks = *count;
  }
  if (fragment.rows < 0 || fragment.columns < 0 || fragment.blocks < 0) {
    violation(op, "an extent of the fragment is negative");
    return Outcome::Stop;
  }
  LaneValues value;
  if (is_load) {
    const Type& type = module_.types[module_.type_of(module_.result(op))];
    auto shape = extents(t, op, type);
    if (!shape) return Outcome::Stop;
    value = {type.element, *shape, std::vector<uint64_t>(lane_count(*shape)), fragment};
  } else {
    auto found = lanes(t, op, group(op, "v")[0]);
    if (!found) return Outcome::Stop;
    value = std::move(*found);
  }
  const size_t rank = begin->size();
  const size_t needed = fragment.blocks > 1 ? 3 : 2;
  const bool convertible =
      value.element == window->element || (is_float(value.element) && is_float(window->element));
  const int64_t shape[] = {fragment.blocks, fragment.rows, fragment.columns};
  if (rank < needed || !convertible || lane_count(shape) != value.lanes.size()) {
    unsupported(op);
    return Outcome::Stop;
  }
  const auto convert = [](ScalarValue from, ScalarKind to) {
    return from.kind == to ? from : from_double(to, to_double(from));
  };
  for (size_t lane = 0; lane < value.lanes.size(); ++lane) {
    std::vector<int64_t> index = *begin;
    size_t rest = lane;
    for (size_t axis = 0; axis < needed; ++axis) {
      const auto extent = static_cast<size_t>(shape[2 - axis]);
      index[rank - 1 - axis] += static_cast<int64_t>(rest % extent);
      rest /= extent;
    }
    const auto byte = locate(op, *window, index, lane == 0);
    if (!byte) return Outcome::Stop;
    if (is_load) {
      const auto bits = load(t, op, *window, *byte, {.read = true});
      if (!bits) return Outcome::Stop;
      value.lanes[lane] = convert({window->element, *bits}, value.element).bits;
    } else if (!store(t, op, *window, *byte, convert(value.at(lane), window->element).bits,
                      {.write = true})) {
      return Outcome::Stop;
    }
  }
  if (is_load) set(t, module_.result(op), lanes_datum(std::move(value)));
  return Outcome::Next;
}

}  // namespace loom::interp
