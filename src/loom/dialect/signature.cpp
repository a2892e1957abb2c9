#include "loom/dialect/signature.h"

#include "loom/dialect/hooks.h"

namespace loom {
namespace {

// The number that a dimension certainly has, or -1.
int64_t exact_extent(const Module& module, Dim dim) {
  if (!dim.is_dynamic()) return dim.extent();
  return exact_integer(module, dim.value()).value_or(-1);
}

}  // namespace

void SignatureMatch::bind_args(RegionId region, std::span<const ValueId> actuals, unsigned first) {
  bindings_.push_back({ValueKind::Argument, region.index(), first, actuals});
}

void SignatureMatch::bind_results(OpId op, std::span<const ValueId> actuals) {
  bindings_.push_back({ValueKind::Result, op.index(), 0, actuals});
}

ValueId SignatureMatch::actual_of(ValueId formal) const {
  const Value& value = module_.value(formal);
  for (const Binding& binding : bindings_) {
    if (binding.kind != value.kind || binding.owner != value.owner) continue;
    if (value.index < binding.first || value.index - binding.first >= binding.actuals.size()) {
      continue;
    }
    return binding.actuals[value.index - binding.first];
  }
  return formal;
}

bool SignatureMatch::same_dim(Dim formal, Dim actual) {
  if (formal.is_dynamic()) {
    const ValueId value = formal.value();
    if (module_.value(value).kind == ValueKind::Extent) {
      for (const auto& [extent, bound] : extents_) {
        if (extent == value) return bound == actual;
      }
      extents_.emplace_back(value, actual);
      return true;
    }
    formal = Dim::dynamic(actual_of(value));
  }
  if (formal == actual) return true;
  if (formal.is_dynamic() == actual.is_dynamic()) return false;
  const int64_t extent = exact_extent(module_, formal);
  return extent >= 0 && extent == exact_extent(module_, actual);
}

bool SignatureMatch::same(TypeId formal, TypeId actual) {
  const Type& f = module_.types[formal];
  if (formal == actual && !f.mentions_values()) return true;
  const Type& a = module_.types[actual];
  if (f.kind != a.kind || f.element != a.element || f.rank() != a.rank() || f.align != a.align ||
      f.encoding != a.encoding) {
    return false;
  }
  if (f.encoding_value.valid() != a.encoding_value.valid()) return false;
  if (f.encoding_value.valid() && actual_of(f.encoding_value) != a.encoding_value) return false;
  for (size_t i = 0; i < f.rank(); ++i) {
    if (!same_dim(f.dims[i], a.dims[i])) return false;
  }
  return true;
}

}  // namespace loom
