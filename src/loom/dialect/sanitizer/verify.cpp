// What the rows of sanitizer/ops.def cannot say.
#include <fmt/core.h>

#include "loom/dialect/memory_rules.h"
#include "loom/ir/ir_text.h"

namespace loom::verify {

using enum OpKind;

void sanitizer_assert(VerifyContext& c, OpId op) { assume(c, op); }

void sanitizer_assert_access(VerifyContext& c, OpId op) {
  const ValueId view = c.module.operand(op, 0);
  const auto extents = c.module.attr(op, attr_slot(SanitizerAssertAccess, "static_extents")).ints;
  const size_t rank = c.module.types[c.module.type_of(view)].rank();
  std::vector<Dim> window;
  for (const int64_t extent : extents) {
    if (extent < 0) {
      c.bad_attribute(op, "static_extents", fmt::format("{} is negative", extent));
      return;
    }
    window.push_back(Dim::fixed(extent));
  }
  if (extents.size() != rank) {
    c.error(op, Diag::ShapeMismatch,
            {{"detail", fmt::format("the view has rank {} but 'static_extents' lists {}", rank,
                                    extents.size())}});
    window.clear();
  }
  check_view_indices(
      c, op, view, operand_group(c.module, op, operand_slot(SanitizerAssertAccess, "index")),
      c.module.attr(op, attr_slot(SanitizerAssertAccess, "static_index")).ints, window);
}

void sanitizer_assert_layout(VerifyContext& c, OpId op) {
  const TypeId stated = c.module.attr(op, attr_slot(SanitizerAssertLayout, "layout")).type();
  const Type& from = c.module.types[c.module.type_of(c.module.operand(op, 0))];
  const Type& to = c.module.types[stated];
  if (to.kind != TypeKind::View) {
    c.bad_literal(op, "layout", fmt::format("{} is not a view", type_text(c.module, stated)));
    return;
  }
  check_same_element(c, op, std::string(scalar_name(to.element)), to.element, from.element);
  if (from.rank() == to.rank()) return;
  c.error(op, Diag::ShapeMismatch,
          {{"detail", fmt::format("the view has rank {} but the layout has rank {}", from.rank(),
                                  to.rank())}});
}

}  // namespace loom::verify
