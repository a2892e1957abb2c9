// What the rows of view/ops.def cannot say.
#include <fmt/core.h>

#include "loom/dialect/hooks.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {
namespace {

const Type& type_of(const VerifyContext& c, ValueId value) {
  return c.module.types[c.module.type_of(value)];
}

// One index per axis, and no exact index outside [0, extent - width]: `window` gives the widths, or
// null for single elements.
void check_indices(VerifyContext& c, OpId op, ValueId view, std::span<const ValueId> operands,
                   std::span<const int64_t> places, const Type* window) {
  const Type& type = type_of(c, view);
  if (places.size() != type.rank()) {
    c.error(op, Diag::SubrangeCount,
            {{"rank", std::to_string(type.rank())}, {"count", std::to_string(places.size())}});
    return;
  }
  size_t next_operand = 0;
  for (size_t axis = 0; axis < places.size(); ++axis) {
    std::optional<int64_t> index = places[axis];
    if (places[axis] == kDynamicIndex) index = c.constant(operands[next_operand++]);
    const Dim extent = type.dims[axis];
    if (!index) continue;
    bool outside = *index < 0;
    std::string shown = std::to_string(*index);
    if (!extent.is_dynamic() && !outside) {
      outside = window == nullptr ? *index >= extent.extent() : *index > extent.extent();
      if (window != nullptr && !outside && !window->dims[axis].is_dynamic()) {
        const int64_t width = window->dims[axis].extent();
        outside = width > extent.extent() - *index;
        if (outside) shown = fmt::format("{} + {}", *index, width);
      }
    }
    if (!outside) continue;
    const std::string of = extent.is_dynamic() ? value_name_text(c.module, extent.value())
                                               : std::to_string(extent.extent());
    c.error(op, Diag::SubrangeBounds,
            {{"index", shown}, {"extent", of}, {"axis", std::to_string(axis)}});
  }
}

bool same_element(VerifyContext& c, OpId op, std::string a, ScalarKind of_a, ScalarKind of_b) {
  if (of_a == of_b) return true;
  c.error(op, Diag::TypeElementMismatch,
          {{"type_a", std::move(a)}, {"type_b", std::string(scalar_name(of_b))}});
  return false;
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
  same_element(c, op, type_text(c.module, type), c.module.types[type].element,
               type_of(c, view).element);
}

}  // namespace

void view_subview(VerifyContext& c, OpId op) {
  const ValueId view = c.module.operand(op, 0);
  const Type& from = type_of(c, view);
  const Type& to = type_of(c, c.module.result(op));
  same_element(c, op, std::string(scalar_name(to.element)), to.element, from.element);
  const bool ranks = same_rank(c, op, from, to);
  if (from.align != to.align || from.encoding != to.encoding ||
      from.encoding_value != to.encoding_value) {
    c.type_mismatch(op, "the window", c.module.type_of(c.module.result(op)), "the view",
                    c.module.type_of(view));
  }
  check_indices(c, op, view,
                operand_group(c.module, op, operand_slot(OpKind::ViewSubview, "index")),
                c.module.attr(op, attr_slot(OpKind::ViewSubview, "static_index")).ints,
                ranks ? &to : nullptr);
}

void view_refine(VerifyContext& c, OpId op) {
  const Type& from = type_of(c, c.module.operand(op, 0));
  const Type& to = type_of(c, c.module.result(op));
  same_element(c, op, std::string(scalar_name(to.element)), to.element, from.element);
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
  check_indices(c, op, view, operand_group(c.module, op, operand_slot(OpKind::ViewLoad, "index")),
                c.module.attr(op, attr_slot(OpKind::ViewLoad, "static_index")).ints, nullptr);
}

void view_store(VerifyContext& c, OpId op) {
  const ValueId view = c.module.operand(op, operand_slot(OpKind::ViewStore, "w"));
  check_access(c, op, c.module.operand(op, operand_slot(OpKind::ViewStore, "x")), view);
  check_indices(c, op, view, operand_group(c.module, op, operand_slot(OpKind::ViewStore, "index")),
                c.module.attr(op, attr_slot(OpKind::ViewStore, "static_index")).ints, nullptr);
}

}  // namespace loom::verify
