// Launches: configuration, workgroups, and the queries of a device body.
#include <fmt/format.h>

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/dialect/target_info.h"
#include "loom/interp/machine.h"

namespace loom::interp {

using enum OpKind;

Machine::Outcome Machine::query(Invocation& t, OpId op) {
  const OpKind kind = module_.op(op).kind;
  if (kind == KernelAssert) {
    const auto good = integer(t, op, module_.operand(op, 0));
    if (!good) return Outcome::Stop;
    if (*good != 0) return Outcome::Next;
    const AttrId message = module_.attr_ids(op)[attr_slot(KernelAssert, "message")];
    fail(op, Diag::RunAssertion,
         {{"detail", message.valid()
                         ? std::string(module_.strings.text(module_.attrs[message].string()))
                         : value_name(module_.operand(op, 0)) + " is false"}});
    return Outcome::Stop;
  }
  if (t.launch == nullptr) {
    unsupported(op);
    return Outcome::Stop;
  }
  const Launch& launch = *t.launch;
  const auto axis = [&] {
    return static_cast<size_t>(module_.attr(op, attr_slot(KernelWorkitemId, "axis")).value());
  };
  const auto along = [](int64_t flat, const int64_t(&sizes)[3], size_t which) {
    for (size_t i = 0; i < which; ++i) flat /= sizes[i];
    return flat % sizes[which];
  };
  int64_t value = 0;
  switch (kind) {
    case KernelWorkitemId:
      value = along(t.flat, launch.size, axis());
      break;
    case KernelWorkgroupId:
      value = along(t.group->flat, launch.count, axis());
      break;
    case KernelWorkgroupSize:
      value = launch.size[axis()];
      break;
    case KernelWorkgroupCount:
      value = launch.count[axis()];
      break;
    case KernelWorkitemDispatchId:
      value = along(t.group->flat, launch.count, axis()) * launch.size[axis()] +
              along(t.flat, launch.size, axis());
      break;
    case KernelSubgroupId:
      value = t.subgroup();
      break;
    case KernelSubgroupCount:
      value = launch.subgroups();
      break;
    case KernelSubgroupSize:
      value = launch.subgroup_size;
      break;
    case KernelSubgroupLaneId:
      value = t.lane();
      break;
    case KernelExit: {
      const auto leave = integer(t, op, module_.operand(op, 0));
      if (!leave) return Outcome::Stop;
      if (*leave == 0) return Outcome::Next;
      const RegionId body = module_.op_region(op, 0);
      if (!module_.region(body).has_body) {
        t.status = Invocation::Exited;
        return Outcome::Stop;
      }
      enter(t, Activation::Leaving, op, body);
      return Outcome::Next;
    }
    default:
      if (op_info(kind).has(trait::Convergent)) return Outcome::Wait;
      return async(t, op);
  }
  set_scalar(t, op, from_bits(ScalarKind::Index, static_cast<uint64_t>(value)));
  return Outcome::Next;
}

int64_t Machine::subgroup_size(OpId kernel) const {
  return stated_subgroup_size(module_, kernel).value_or(options_.subgroup_size);
}

// Evaluates the configuration region. A workload of poison asks for what does not depend on it.
std::optional<Launch> Machine::configure(OpId at, OpId kernel, std::span<const Datum> workload) {
  const auto refuse = [&](std::string detail) {
    fail(at, Diag::RunArguments,
         {{"symbol", std::string(symbol_text(module_, kernel))}, {"detail", std::move(detail)}});
    return std::nullopt;
  };
  const RegionId body = module_.op_region(kernel, region_slot(KernelDef, "body"));
  if (module_.region(body).deferred) return refuse("its body is not loaded");
  Invocation t;
  if (!start(t, kernel, module_.op_region(kernel, region_slot(KernelDef, "config")), {},
             workload) ||
      !run(t)) {
    return std::nullopt;
  }
  Launch launch{.kernel = kernel, .subgroup_size = subgroup_size(kernel)};
  OpId end = module_.region(module_.op_region(kernel, 0)).last;
  const size_t counts = operand_group(module_, end, 0).size();
  const size_t sizes = operand_group(module_, end, 1).size();
  for (size_t i = 0; i < counts + sizes; ++i) {
    const bool is_count = i < counts;
    const size_t axis = is_count ? i : i - counts;
    const auto* value = std::get_if<ScalarValue>(&t.results[i]);
    if (value == nullptr) {
      if (is_count) continue;
      return refuse("its workgroup size depends on the workload that a dispatch does not pass");
    }
    const int64_t number = as_signed(*value);
    if (number < (is_count ? 0 : 1) || number > int64_t{0xFFFFFFFF}) {
      violation(end, fmt::format("the {} {} of axis {} is out of range",
                                 is_count ? "workgroup count" : "workgroup size", number, axis));
      return std::nullopt;
    }
    (is_count ? launch.count : launch.size)[axis] = number;
  }
  return launch;
}

// The contract, over the arguments alone.
bool Machine::keeps_contract(OpId at, OpId kernel, std::span<const Datum> arguments) {
  const RegionId body = module_.op_region(kernel, region_slot(KernelDef, "body"));
  Invocation probe;
  return start(probe, kernel, body, {}, arguments) &&
         promised(probe, at, where_predicates(module_, kernel),
                  fmt::format("the contract of '@{}'", symbol_text(module_, kernel)));
}

bool Machine::dispatch(OpId at, const Launch& launch, std::span<const Datum> arguments) {
  if (contracts_only_) return keeps_contract(at, launch.kernel, arguments);
  constexpr int64_t kMostWorkitems = 1 << 16;
  int64_t groups = 1;
  int64_t items = 1;
  bool good = true;
  for (int axis = 0; axis < 3; ++axis) {
    good &= !__builtin_mul_overflow(groups, launch.count[axis], &groups);
    good &= !__builtin_mul_overflow(items, launch.size[axis], &items);
  }
  const std::string symbol(symbol_text(module_, launch.kernel));
  if (!good || items > kMostWorkitems) {
    return fail(at, Diag::RunDispatchSize,
                {{"symbol", symbol},
                 {"count", good ? fmt::format("{} workitems in each of {}", items, groups)
                                : fmt::format("{} x {} x {}", launch.count[0], launch.count[1],
                                              launch.count[2])}});
  }
  if (!keeps_contract(at, launch.kernel, arguments)) return false;
  for (int64_t flat = 0; flat < groups; ++flat) {
    Workgroup group{.flat = flat};
    if (!run_group(launch, group, arguments)) return false;
  }
  return true;
}

bool Machine::run_group(const Launch& launch, Workgroup& group, std::span<const Datum> arguments) {
  const RegionId body = module_.op_region(launch.kernel, region_slot(KernelDef, "body"));
  std::vector<Invocation> items(static_cast<size_t>(launch.workitems()));
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].launch = &launch;
    items[i].group = &group;
    items[i].flat = static_cast<int64_t>(i);
    if (!start(items[i], launch.kernel, body, {}, arguments)) return false;
  }
  for (;;) {
    bool waiting = false;
    for (Invocation& item : items) {
      if (item.status == Invocation::Ready && !run(item)) return false;
      waiting |= item.status == Invocation::Waiting;
      if (item.status == Invocation::Done && !item.async_groups.empty()) item.async_groups.clear();
    }
    if (!waiting) return true;
    if (!resolve(items, launch)) return false;
  }
}

}  // namespace loom::interp
