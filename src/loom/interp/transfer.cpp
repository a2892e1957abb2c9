// Asynchronous transfers: they may happen at any time between their start and the wait for them.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "loom/dialect/op_info.h"
#include "loom/interp/machine.h"

namespace loom::interp {

using enum OpKind;

// The bytes are moved at the start; until the wait, whoever else touches them races with the
// transfer, so nobody can tell.
bool Machine::transfer(Invocation& t, OpId op, const ViewDatum& source, const ViewDatum& target,
                       uint32_t& number) {
  const size_t count = lane_count(source.extents);
  if (lane_count(target.extents) < count || source.element != target.element) {
    return violation(op, fmt::format("the target has {} elements and the source {}",
                                     lane_count(target.extents), count));
  }
  const auto place = [](size_t flat, std::span<const int64_t> extents) {
    std::vector<int64_t> index(extents.size());
    for (size_t axis = extents.size(); axis-- > 0;) {
      index[axis] = static_cast<int64_t>(flat % static_cast<size_t>(extents[axis]));
      flat /= static_cast<size_t>(extents[axis]);
    }
    return index;
  };
  Transfer made;
  made.invocation = next_transfer_--;
  for (size_t flat = 0; flat < count; ++flat) {
    const auto from = locate(op, source, place(flat, source.extents), flat == 0);
    const auto to = locate(op, target, place(flat, target.extents), flat == 0);
    if (!from || !to) return false;
    const auto bits = load(t, op, source, *from, {.read = true});
    if (!bits || !store(t, op, target, *to, *bits, {.write = true})) return false;
    made.bytes.push_back({source.buffer.root, *from});
    made.bytes.push_back({target.buffer.root, *to});
  }
  made.element_bytes = scalar_bytes(source.element);
  rename(t, op, made, true);
  number = static_cast<uint32_t>(t.transfers.size());
  t.transfers.push_back(std::move(made));
  return true;
}

// Hands the touched bytes from the invocation to the transfer, or back.
void Machine::rename(Invocation& t, OpId op, const Transfer& transfer, bool to_transfer) {
  for (const auto& [root, byte] : transfer.bytes) {
    if (!root->shared || root->shadow.generation != generation_) continue;
    Touch touch = touch_of(t, op, *root, false);
    uint32_t from = touch.invocation;
    if (to_transfer) {
      touch.invocation = transfer.invocation;
      touch.epoch = Touch::kInFlight;
      touch.subgroup_epoch = Touch::kInFlight;
    } else {
      from = transfer.invocation;
    }
    for (uint64_t i = 0; i < transfer.element_bytes; ++i)
      root->shadow.rename(byte + i, from, touch);
  }
}

Machine::Outcome Machine::async(Invocation& t, OpId op) {
  const OpKind kind = module_.op(op).kind;
  switch (kind) {
    case KernelAsyncCopy:
    case KernelAsyncCopyMask:
    case KernelAsyncGather:
    case KernelAsyncGatherMask: {
      const auto source = view(t, op, module_.operand(op, 0));
      auto target = view(t, op, module_.operand(op, 1));
      if (source == nullptr || target == nullptr) return Outcome::Stop;
      TokenDatum token;
      bool active = true;
      if (kind == KernelAsyncCopyMask || kind == KernelAsyncGatherMask) {
        const auto mask = integer(t, op, module_.operand(op, 2));
        if (!mask) return Outcome::Stop;
        active = *mask != 0;
      }
      if (kind == KernelAsyncGather || kind == KernelAsyncGatherMask) {
        // The slot of this lane, behind the leading axis.
        if (target->extents.empty() || target->strides.empty()) {
          unsupported(op);
          return Outcome::Stop;
        }
        if (active && t.lane() >= target->extents[0]) {
          fail(op, Diag::RunViewBounds,
               {{"index", std::to_string(t.lane())},
                {"axis", "0"},
                {"extent", std::to_string(target->extents[0])}});
          return Outcome::Stop;
        }
        auto own = std::make_shared<ViewDatum>(*target);
        own->base += t.lane() * own->strides[0] * scalar_bytes(own->element);
        own->extents.erase(own->extents.begin());
        own->strides.erase(own->strides.begin());
        target = std::move(own);
      }
      if (active) {
        uint32_t number = 0;
        if (!transfer(t, op, *source, *target, number)) return Outcome::Stop;
        token.transfers.push_back(number);
      }
      set(t, module_.result(op), std::move(token));
      return Outcome::Next;
    }
    case KernelAsyncGroup: {
      TokenDatum group;
      for (ValueId value : module_.operands(op)) {
        const auto* token = std::get_if<TokenDatum>(&get(t, value));
        if (token == nullptr) {
          not_a_value(op, get(t, value));
          return Outcome::Stop;
        }
        group.transfers.insert(group.transfers.end(), token->transfers.begin(),
                               token->transfers.end());
      }
      group.group = static_cast<uint32_t>(t.async_groups.size());
      t.async_groups.push_back(group.transfers);
      set(t, module_.result(op), std::move(group));
      return Outcome::Next;
    }
    case KernelAsyncWait: {
      // Everything is awaited but the youngest groups that may stay outstanding; what the group
      // itself holds is awaited unless it is among those.
      const auto newer =
          static_cast<size_t>(module_.attr(op, attr_slot(KernelAsyncWait, "newer_groups")).value());
      const size_t keep = std::min(newer, t.async_groups.size());
      for (size_t i = 0; i + keep < t.async_groups.size(); ++i) {
        for (uint32_t number : t.async_groups[i]) rename(t, op, t.transfers[number], false);
        t.async_groups[i].clear();
      }
      return Outcome::Next;
    }
    default:
      unsupported(op);
      return Outcome::Stop;
  }
}

}  // namespace loom::interp
