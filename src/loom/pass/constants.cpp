#include "loom/pass/constants.h"

#include "loom/pass/rewriter.h"

namespace loom {

std::optional<ScalarValue> exact_value(const Module& module, ValueId value) {
  return constant_of(module, module.defining_op(value));
}

std::optional<int64_t> exact_int(const Module& module, ValueId value) {
  const auto constant = exact_value(module, value);
  if (!constant || is_float(constant->kind)) return std::nullopt;
  return constant->kind == ScalarKind::I1 ? static_cast<int64_t>(constant->bits)
                                          : as_signed(*constant);
}

}  // namespace loom
