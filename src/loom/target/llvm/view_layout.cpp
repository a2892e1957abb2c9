#include "loom/target/llvm/view_layout.h"

#include "loom/dialect/encoding_info.h"
#include "loom/dialect/op_kind.h"

namespace loom {

ViewLayout view_layout(const Module& module, const Type& type) {
  if (type.encoding_value.valid()) {
    const OpId op = module.defining_op(type.encoding_value);
    if (op.valid() && module.op(op).kind == OpKind::EncodingLayoutStrided) {
      return ViewLayout::Strided;
    }
  }
  switch (element_layout(module, type).kind) {
    case ElementLayout::Dense:
      return ViewLayout::Dense;
    case ElementLayout::Strided:
      return ViewLayout::Strided;
    default:
      return ViewLayout::Other;
  }
}

}  // namespace loom
