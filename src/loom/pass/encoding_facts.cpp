#include "loom/pass/encoding_facts.h"

#include <algorithm>

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/op_info.h"

namespace loom {
namespace {

using enum OpKind;

constexpr unsigned kSpec = attr_slot(EncodingIsa, "spec");
// Tests further out are not looked at, so that deep nesting stays linear.
constexpr unsigned kReach = 64;

// Whether what is known is the encoding that `spec` names; nothing where two spellings of one
// family would have to be compared.
std::optional<bool> matches(const Module& module, const StaticEncoding& known, AttrId spec) {
  const EncodingFamilyInfo* const wanted = encoding_family_of(module, spec);
  if (wanted == nullptr) return std::nullopt;
  if (known.dense) return wanted->family == EncodingFamily::Dense;
  if (known.strides) {
    if (wanted->family != EncodingFamily::Strided) return false;
    const AttrId strides = encoding_argument(module, spec, "strides");
    return strides.valid() && std::ranges::equal(module.attrs[strides].ints, *known.strides);
  }
  if (known.attr == spec) return true;
  const EncodingFamilyInfo* const found = encoding_family_of(module, known.attr);
  if (found == nullptr || found->family == wanted->family) return std::nullopt;
  return false;
}

}  // namespace

std::optional<bool> decide_isa(const Module& module, OpId isa) {
  const ValueId value = module.operand(isa, 0);
  const AttrId spec = module.attr_ids(isa)[kSpec];
  if (const auto made = static_encoding_of(module, value)) return matches(module, *made, spec);
  RegionId region = module.op(isa).parent;
  for (unsigned i = 0; i < kReach && region.valid(); ++i) {
    const OpId holder = module.region(region).parent;
    if (!holder.valid()) break;
    if (module.op(holder).kind == ScfIf) {
      const OpId test = module.defining_op(module.operand(holder, 0));
      if (test.valid() && module.op(test).kind == EncodingIsa && module.operand(test, 0) == value) {
        const bool holds = region == module.op_region(holder, region_slot(ScfIf, "then"));
        const AttrId tested = module.attr_ids(test)[kSpec];
        if (holds) {
          StaticEncoding known;
          known.attr = tested;
          if (const auto answer = matches(module, known, spec)) return answer;
        } else if (tested == spec) {
          return false;
        }
      }
    }
    region = module.op(holder).parent;
  }
  return std::nullopt;
}

}  // namespace loom
