#include "loom/dialect/memory_rules.h"

#include <fmt/core.h>

#include "loom/ir/ir_text.h"

namespace loom::verify {
namespace {

// The attribute slot of that name, or -1.
int find_slot(const OpInfo& info, std::string_view name) {
  for (size_t i = 0; i < info.attrs.size(); ++i) {
    if (info.attrs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// The case of an enum attribute that is present.
template <class Enum>
std::optional<Enum> case_of(const VerifyContext& c, OpId op, std::string_view name) {
  const int slot = find_slot(op_info(c.module.op(op).kind), name);
  if (slot < 0 || !c.module.has_attr(op, static_cast<unsigned>(slot))) return std::nullopt;
  return static_cast<Enum>(c.module.attr(op, static_cast<unsigned>(slot)).bits);
}

bool is_atomic(const OpInfo& info) {
  return find_slot(info, "ordering") >= 0 || find_slot(info, "success_ordering") >= 0;
}

std::string_view word_of(Ordering ordering) {
  return enum_info(EnumId::Ordering).cases[static_cast<size_t>(ordering)];
}

// A failed exchange only reads, and promises no more than a successful one.
void check_failure_ordering(VerifyContext& c, OpId op, Ordering failure, Ordering success) {
  using enum Ordering;
  const bool reads = failure == Relaxed || failure == Acquire || failure == SeqCst;
  const bool acquires = success == Acquire || success == AcqRel || success == SeqCst;
  if (!reads) {
    c.bad_attribute(
        op, "failure_ordering",
        fmt::format("it must be relaxed, acquire or seq_cst, not {}", word_of(failure)));
  } else if ((failure == Acquire && !acquires) || (failure == SeqCst && success != SeqCst)) {
    c.bad_attribute(op, "failure_ordering",
                    fmt::format("{} is stronger than the success ordering {}", word_of(failure),
                                word_of(success)));
  }
}

bool is_float_atomic(AtomicKind kind) {
  using enum AtomicKind;
  return kind == XchgF || kind == AddF || kind >= MinimumF;
}

}  // namespace

void check_view_indices(VerifyContext& c, OpId op, ValueId view, std::span<const ValueId> operands,
                        std::span<const int64_t> places, std::span<const Dim> window, bool masked) {
  const Type& type = c.module.types[c.module.type_of(view)];
  if (places.size() != type.rank()) {
    c.error(op, Diag::SubrangeCount,
            {{"rank", std::to_string(type.rank())}, {"count", std::to_string(places.size())}});
    return;
  }
  if (masked) return;
  size_t next_operand = 0;
  for (size_t axis = 0; axis < places.size(); ++axis) {
    std::optional<int64_t> index = places[axis];
    if (places[axis] == kDynamicIndex) index = c.constant_at(op, operands[next_operand++]);
    const Dim extent = type.dims[axis];
    const bool known = !extent.is_dynamic();
    // One element needs an exact index to be outside; a window needs room wherever it begins.
    if (!index && window.empty()) continue;
    const int64_t at = index.value_or(0);
    bool outside = at < 0;
    std::string shown = std::to_string(at);
    if (known && !outside) {
      outside = window.empty() ? at >= extent.extent() : at > extent.extent();
      const bool sized = !window.empty() && !window[axis].is_dynamic();
      if (!outside && sized && window[axis].extent() > extent.extent() - at) {
        outside = true;
        shown = fmt::format("{} + {}", at, window[axis].extent());
      }
    }
    if (!outside) continue;
    const std::string of =
        known ? std::to_string(extent.extent()) : value_name_text(c.module, extent.value());
    c.error(op, Diag::SubrangeBounds,
            {{"index", shown}, {"extent", of}, {"axis", std::to_string(axis)}});
  }
}

bool check_same_element(VerifyContext& c, OpId op, std::string a, ScalarKind of_a,
                        ScalarKind of_b) {
  if (of_a == of_b) return true;
  c.error(op, Diag::TypeElementMismatch,
          {{"type_a", std::move(a)}, {"type_b", std::string(scalar_name(of_b))}});
  return false;
}

void check_cache(VerifyContext& c, OpId op) {
  using enum CacheTemporal;
  const OpInfo& info = op_info(c.module.op(op).kind);
  const auto scope = case_of<CacheScope>(c, op, "cache_scope");
  const auto temporal = case_of<CacheTemporal>(c, op, "cache_temporal");
  if (!scope && !temporal) return;
  if (!scope || !temporal) {
    const auto [present, missing] = scope ? std::pair{"cache_scope", "cache_temporal"}
                                          : std::pair{"cache_temporal", "cache_scope"};
    return c.bad_attribute(op, present, fmt::format("it needs '{}' beside it", missing));
  }
  const std::string_view word =
      enum_info(EnumId::CacheTemporal).cases[static_cast<size_t>(*temporal)];
  if (is_atomic(info)) {
    if (*temporal == Regular || *temporal == NonTemporal) return;
    return c.bad_attribute(
        op, "cache_temporal",
        fmt::format("an atomic access takes regular or non_temporal, not {}", word));
  }
  const bool loads = info.effect == Effect::Read;
  if (*temporal == LastUse && !loads) {
    c.bad_attribute(op, "cache_temporal", "only a load takes last_use");
  } else if ((*temporal == Writeback || *temporal == NonTemporalWriteback) && loads) {
    c.bad_attribute(op, "cache_temporal", fmt::format("only a store takes {}", word));
  } else if (*temporal == Bypass && *scope != CacheScope::System) {
    c.bad_attribute(op, "cache_temporal", "bypass needs the cache scope system");
  }
}

void check_atomic(VerifyContext& c, OpId op, ValueId value) {
  const OpInfo& info = op_info(c.module.op(op).kind);
  const auto failure = case_of<Ordering>(c, op, "failure_ordering");
  const auto success = case_of<Ordering>(c, op, "success_ordering");
  if (failure && success) check_failure_ordering(c, op, *failure, *success);
  if (find_slot(info, "kind") < 0) return;
  const auto kind = case_of<AtomicKind>(c, op, "kind");
  if (!kind) return;
  const std::string_view word = enum_info(EnumId::AtomicKind).cases[static_cast<size_t>(*kind)];
  if (info.results.empty() && *kind <= AtomicKind::XchgF) {
    c.bad_attribute(op, "kind",
                    fmt::format("{} returns the old value, which has no use here", word));
  }
  const int flags = find_slot(info, "flags");
  if (flags >= 0 && (flags_of(c.module, op, static_cast<unsigned>(flags)) & kNoFtz) != 0 &&
      *kind != AtomicKind::AddF) {
    c.bad_attribute(op, "flags", fmt::format("noftz belongs to addf, not to {}", word));
  }
  const ScalarKind element = c.module.types[c.module.type_of(value)].element;
  if (is_float(element) == is_float_atomic(*kind)) return;
  c.error(op, Diag::TypeOperandConstraint,
          {{"op", std::string(info.name)},
           {"operand", value_name_text(c.module, value)},
           {"type", c.type(value)},
           {"constraint", fmt::format("made of {} to combine by {}",
                                      is_float_atomic(*kind) ? "floats" : "integers", word)}});
}

}  // namespace loom::verify
