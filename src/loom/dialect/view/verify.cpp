// What the rows of view/ops.def cannot say.
#include <fmt/core.h>

#include "loom/dialect/hooks.h"
#include "loom/dialect/memory_rules.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {
namespace {

const Type& type_of(const VerifyContext& c, ValueId value) {
  return c.module.types[c.module.type_of(value)];
}

bool same_rank(VerifyContext& c, OpId op, const Type& from, const Type& to) {
  if (from.rank() == to.rank()) return true;
  c.error(op, Diag::ShapeMismatch,
          {{"detail", fmt::format("the view has rank {} but the result has rank {}", from.rank(),
                                  to.rank())}});
  return false;
}

// The element that a load or store moves.
void check_access(VerifyContext& c, OpId op, ValueId value, ValueId view) {
  const TypeId type = c.module.type_of(value);
  check_same_element(c, op, type_text(c.module, type), c.module.types[type].element,
                     type_of(c, view).element);
}

}  // namespace

void view_subview(VerifyContext& c, OpId op) {
  const ValueId view = c.module.operand(op, 0);
  const Type& from = type_of(c, view);
  const Type& to = type_of(c, c.module.result(op));
  check_same_element(c, op, std::string(scalar_name(to.element)), to.element, from.element);
  const bool ranks = same_rank(c, op, from, to);
  if (from.align != to.align || from.encoding != to.encoding ||
      from.encoding_value != to.encoding_value) {
    c.type_mismatch(op, "the window", c.module.type_of(c.module.result(op)), "the view",
                    c.module.type_of(view));
  }
  check_view_indices(c, op, view,
                     operand_group(c.module, op, operand_slot(OpKind::ViewSubview, "index")),
                     c.module.attr(op, attr_slot(OpKind::ViewSubview, "static_index")).ints,
                     ranks ? to.dims : std::span<const Dim>());
}

void view_refine(VerifyContext& c, OpId op) {
  const Type& from = type_of(c, c.module.operand(op, 0));
  const Type& to = type_of(c, c.module.result(op));
  check_same_element(c, op, std::string(scalar_name(to.element)), to.element, from.element);
  if (!same_rank(c, op, from, to)) return;
  for (size_t axis = 0; axis < to.rank(); ++axis) {
    const Dim a = from.dims[axis];
    const Dim b = to.dims[axis];
    if (a.is_dynamic() || b.is_dynamic() || a == b) continue;
    c.error(op, Diag::ShapeMismatch,
            {{"detail", fmt::format("axis {} has extent {} but the result states {}", axis,
                                    a.extent(), b.extent())}});
  }
}

void view_load(VerifyContext& c, OpId op) {
  const ValueId view = c.module.operand(op, operand_slot(OpKind::ViewLoad, "w"));
  check_access(c, op, c.module.result(op), view);
  check_view_indices(c, op, view,
                     operand_group(c.module, op, operand_slot(OpKind::ViewLoad, "index")),
                     c.module.attr(op, attr_slot(OpKind::ViewLoad, "static_index")).ints, {});
  check_cache(c, op);
}

void view_store(VerifyContext& c, OpId op) {
  const ValueId view = c.module.operand(op, operand_slot(OpKind::ViewStore, "w"));
  check_access(c, op, c.module.operand(op, operand_slot(OpKind::ViewStore, "x")), view);
  check_view_indices(c, op, view,
                     operand_group(c.module, op, operand_slot(OpKind::ViewStore, "index")),
                     c.module.attr(op, attr_slot(OpKind::ViewStore, "static_index")).ints, {});
  check_cache(c, op);
}

}  // namespace loom::verify
