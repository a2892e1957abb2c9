// Loads and stores of elements: bounds, alignment, initialization, races.
#include <fmt/format.h>

#include <cstring>

#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"

namespace loom::interp {

using enum OpKind;

namespace {

uint64_t read_bits(std::span<const std::byte> bytes) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data(), bytes.size());
  return bits;
}

}  // namespace

// The byte of an element, inside its view, its buffer and on its alignment.
std::optional<uint64_t> Machine::locate(OpId op, const ViewDatum& view,
                                        std::span<const int64_t> index, bool aligned) {
  if (view.record.bytes != 0) {
    unsupported(op);
    return std::nullopt;
  }
  int64_t position = 0;
  bool representable = true;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    if (index[axis] < 0 || index[axis] >= view.extents[axis]) {
      fail(op, Diag::RunViewBounds,
           {{"index", std::to_string(index[axis])},
            {"axis", std::to_string(axis)},
            {"extent", std::to_string(view.extents[axis])}});
      return std::nullopt;
    }
    int64_t term = 0;
    representable &= !__builtin_mul_overflow(index[axis], view.strides[axis], &term) &&
                     !__builtin_add_overflow(position, term, &position);
  }
  const int64_t bytes = scalar_bytes(view.element);
  int64_t byte = 0;
  representable &= !__builtin_mul_overflow(position, bytes, &byte) &&
                   !__builtin_add_overflow(byte, view.base, &byte);
  if (!representable) {
    violation(op, "the place of the element is out of range");
    return std::nullopt;
  }
  const BufferDatum& buffer = view.buffer;
  const auto begin = static_cast<int64_t>(buffer.begin);
  const auto end = static_cast<int64_t>(buffer.begin + buffer.size);
  if (buffer.root == nullptr || byte < begin || byte > end - bytes) {
    fail(op, Diag::RunBufferBounds,
         {{"begin", std::to_string(byte - begin)},
          {"end", std::to_string(byte - begin + bytes - 1)},
          {"size", std::to_string(buffer.size)},
          {"root", buffer.root ? buffer.root->text() : "a null buffer"}});
    return std::nullopt;
  }
  if (aligned && options_.check_alignment &&
      (buffer.root->alignment % view.align != 0 || byte % view.align != 0)) {
    fail(op, Diag::RunMisaligned,
         {{"byte", std::to_string(byte)},
          {"root", buffer.root->text()},
          {"alignment", std::to_string(view.align)}});
    return std::nullopt;
  }
  return static_cast<uint64_t>(byte);
}

// --- races --------------------------------------------------------------------------------------

Touch Machine::touch_of(const Invocation& t, OpId op, const Root& root, bool atomic) const {
  Touch touch{.op = op, .atomic = atomic};
  touch.command = commands_.empty() ? 0 : static_cast<uint32_t>(commands_.size() - 1);
  if (t.launch == nullptr || t.group == nullptr) return touch;
  const int memory = root.is_workgroup() ? 1 : 0;
  touch.invocation = static_cast<uint32_t>(t.group->flat * t.launch->workitems() + t.flat);
  touch.group = static_cast<uint32_t>(t.group->flat);
  touch.subgroup = static_cast<uint32_t>(t.group->flat * t.launch->subgroups() + t.subgroup());
  touch.epoch = t.epochs[memory];
  touch.subgroup_epoch = t.subgroup_epochs[memory];
  touch.releases = t.releases;
  return touch;
}

TouchOrder Machine::order_of(const Invocation& t, const Root& root) const {
  return {&order_, t.known.get(), root.is_workgroup(), layout_.synchronizing};
}

std::string Machine::who(const Touch& touch) const {
  const Launch& launch = commands_[touch.command].launch;
  if (touch.in_flight()) return "a transfer that nothing waited for";
  if (launch.workitems() == 0) return "the dispatch";
  return fmt::format("workitem {} of workgroup {}", touch.invocation % launch.workitems(),
                     touch.group);
}

bool Machine::conflict(Invocation& t, OpId op, const Root& root, uint64_t byte, Mode mode,
                       const Shadow::Conflict& found) {
  const Touch now = touch_of(t, op, root, mode.atomic);
  const std::string access = mode.atomic ? "an atomic access" : mode.write ? "a write" : "a read";
  const std::string earlier = found.earlier.atomic  ? "atomic access"
                              : found.earlier_wrote ? "write"
                                                    : "read";
  const bool same_command = found.earlier.command == now.command;
  Diagnostic& error = same_command
                          ? diagnostics_.emit(Diag::RunRace, module_.location(op),
                                              {{"access", access},
                                               {"byte", std::to_string(byte)},
                                               {"root", root.text()},
                                               {"who", who(now)},
                                               {"earlier", earlier},
                                               {"other", who(found.earlier)}})
                          : diagnostics_.emit(Diag::RunHazard, module_.location(op),
                                              {{"access", access},
                                               {"byte", std::to_string(byte)},
                                               {"root", root.text()},
                                               {"command", commands_[now.command].symbol},
                                               {"earlier", earlier},
                                               {"other", commands_[found.earlier.command].symbol}});
  error.notes.push_back({module_.location(found.earlier.op), "the " + earlier + " is here"});
  return false;
}

bool Machine::touch(Invocation& t, OpId op, const BufferDatum& buffer, uint64_t byte, uint64_t size,
                    Mode mode) {
  Root& root = *buffer.root;
  if (mode.write && root.read_only) return violation(op, "it writes a parameter");
  if (mode.read && options_.check_uninitialized && !root.initialized.empty()) {
    for (uint64_t i = byte; i < byte + size; ++i) {
      if (root.initialized[i] != 0) continue;
      return fail(op, Diag::RunUninitialized, {{"byte", std::to_string(i)}, {"root", root.text()}});
    }
  }
  if (mode.write && !root.initialized.empty()) {
    std::memset(root.initialized.data() + byte, 1, size);
  }
  if (!options_.check_races || !root.shared || commands_.empty()) return true;
  if (root.shadow.generation != generation_) {
    root.shadow.clear();
    root.shadow.generation = generation_;
  }
  const Touch now = touch_of(t, op, root, mode.atomic);
  const TouchOrder order = order_of(t, root);
  for (uint64_t i = byte; i < byte + size; ++i) {
    const auto found =
        mode.write ? root.shadow.write(i, now, order) : root.shadow.read(i, now, order);
    if (found) return conflict(t, op, root, i, mode, *found);
  }
  return true;
}

// --- single elements ----------------------------------------------------------------------------

std::optional<uint64_t> Machine::load(Invocation& t, OpId op, const ViewDatum& view, uint64_t byte,
                                      Mode mode) {
  const uint64_t size = scalar_bytes(view.element);
  if (!touch(t, op, view.buffer, byte, size, mode)) return std::nullopt;
  return from_bits(view.element, read_bits(view.buffer.root->bytes.subspan(byte, size))).bits;
}

bool Machine::store(Invocation& t, OpId op, const ViewDatum& view, uint64_t byte, uint64_t bits,
                    Mode mode) {
  const uint64_t size = scalar_bytes(view.element);
  if (!touch(t, op, view.buffer, byte, size, mode)) return false;
  std::memcpy(view.buffer.root->bytes.data() + byte, &bits, size);
  return true;
}

Machine::Outcome Machine::access(Invocation& t, OpId op) {
  const OpKind kind = module_.op(op).kind;
  switch (kind) {
    case ViewLoad: {
      const auto window = view(t, op, operand_group(module_, op, operand_slot(ViewLoad, "w"))[0]);
      if (window == nullptr) return Outcome::Stop;
      const auto index = indices(t, op, operand_group(module_, op, operand_slot(ViewLoad, "index")),
                                 attr_slot(ViewLoad, "static_index"));
      if (!index) return Outcome::Stop;
      const auto byte = locate(op, *window, *index, true);
      if (!byte) return Outcome::Stop;
      const auto bits = load(t, op, *window, *byte, {.read = true});
      if (!bits) return Outcome::Stop;
      set_scalar(t, op, {window->element, *bits});
      return Outcome::Next;
    }
    case ViewStore: {
      const auto value = scalar(t, op, operand_group(module_, op, operand_slot(ViewStore, "x"))[0]);
      const auto window = view(t, op, operand_group(module_, op, operand_slot(ViewStore, "w"))[0]);
      if (!value || window == nullptr) return Outcome::Stop;
      const auto index =
          indices(t, op, operand_group(module_, op, operand_slot(ViewStore, "index")),
                  attr_slot(ViewStore, "static_index"));
      if (!index) return Outcome::Stop;
      const auto byte = locate(op, *window, *index, true);
      if (!byte || !store(t, op, *window, *byte, value->bits, {.write = true})) {
        return Outcome::Stop;
      }
      return Outcome::Next;
    }
    case ViewPrefetch:
      return Outcome::Next;
    case ViewAtomicReduce:
    case ViewAtomicRmw:
    case ViewAtomicCmpxchg:
    case ViewAtomicLoad:
    case ViewAtomicStore:
      return atomic_access(t, op);
    case VectorFragmentLoad:
    case VectorFragmentStore:
      return fragment_access(t, op);
    default:
      return vector_access(t, op);
  }
}

}  // namespace loom::interp
