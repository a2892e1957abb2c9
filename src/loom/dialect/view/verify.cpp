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

namespace {

std::span<const int64_t> places_of(const VerifyContext& c, OpId op) {
  const OpInfo& info = op_info(c.module.op(op).kind);
  for (unsigned slot = 0; slot < info.attrs.size(); ++slot) {
    if (info.attrs[slot].form == AttrForm::IndexList) return c.module.attr(op, slot).ints;
  }
  return {};
}

// One element that operand `view` and the group behind it name.
void check_place(VerifyContext& c, OpId op, unsigned view) {
  check_view_indices(c, op, c.module.operand(op, view), operand_group(c.module, op, view + 1),
                     places_of(c, op), {});
}

Ordering ordering_of(const VerifyContext& c, OpId op, unsigned slot) {
  return static_cast<Ordering>(c.module.attr(op, slot).bits);
}

bool is_float_kind(AtomicKind kind) {
  using enum AtomicKind;
  return kind == XchgF || kind == AddF || kind >= MinimumF;
}

void check_atomic_kind(VerifyContext& c, OpId op) {
  using enum OpKind;
  constexpr unsigned kKind = attr_slot(ViewAtomicRmw, "kind");
  static_assert(attr_slot(ViewAtomicReduce, "kind") == kKind);
  const auto kind = static_cast<AtomicKind>(c.module.attr(op, kKind).bits);
  const ValueId value = c.module.operand(op, 0);
  if (is_float(type_of(c, value).element) != is_float_kind(kind)) {
    c.error(op, Diag::TypeOperandConstraint,
            {{"op", std::string(c.op_name(op))},
             {"operand", "v"},
             {"type", c.type(value)},
             {"constraint", is_float_kind(kind) ? "a float" : "a fixed-width integer"},
             {"repair", ""}});
  }
  const bool exchanges = kind == AtomicKind::XchgI || kind == AtomicKind::XchgF;
  if (c.module.op(op).kind == ViewAtomicReduce && exchanges) {
    c.bad_attribute(op, "kind", "an exchange without its previous value is a view.atomic.store");
  }
  if (flags_of(c.module, op, attr_slot(ViewAtomicRmw, "flags")) != 0 && kind != AtomicKind::AddF) {
    c.bad_attribute(op, "flags", "only addf takes 'noftz'");
  }
}

}  // namespace

void view_atomic_combine(VerifyContext& c, OpId op) {
  const unsigned view = operand_slot(OpKind::ViewAtomicRmw, "w");
  check_atomic_kind(c, op);
  check_access(c, op, c.module.operand(op, 0), c.module.operand(op, view));
  if (c.module.op(op).result_count == 1) {
    check_access(c, op, c.module.result(op), c.module.operand(op, view));
  }
  check_place(c, op, view);
}

void view_atomic_cmpxchg(VerifyContext& c, OpId op) {
  using enum OpKind;
  const unsigned view = operand_slot(ViewAtomicCmpxchg, "w");
  const ValueId expected = c.module.operand(op, 0), replacement = c.module.operand(op, 1);
  if (c.module.type_of(expected) != c.module.type_of(replacement)) {
    c.type_mismatch(op, "operand " + c.name(replacement), c.module.type_of(replacement),
                    "operand " + c.name(expected), c.module.type_of(expected));
  }
  check_access(c, op, expected, c.module.operand(op, view));
  check_access(c, op, c.module.result(op), c.module.operand(op, view));
  check_place(c, op, view);
  const Ordering failure = ordering_of(c, op, attr_slot(ViewAtomicCmpxchg, "failure_ordering"));
  const Ordering success = ordering_of(c, op, attr_slot(ViewAtomicCmpxchg, "success_ordering"));
  if (failure == Ordering::Release || failure == Ordering::AcqRel) {
    c.bad_attribute(op, "failure_ordering", "it must be relaxed, acquire or seq_cst");
    return;
  }
  const bool acquires = success == Ordering::Acquire || success >= Ordering::AcqRel;
  const bool weaker = failure == Ordering::Relaxed || success == Ordering::SeqCst ||
                      (failure == Ordering::Acquire && acquires);
  if (!weaker) c.bad_attribute(op, "failure_ordering", "it is stronger than the success ordering");
}

void view_atomic_load(VerifyContext& c, OpId op) {
  using enum OpKind;
  check_access(c, op, c.module.result(op), c.module.operand(op, 0));
  check_place(c, op, operand_slot(ViewAtomicLoad, "w"));
  const Ordering ordering = ordering_of(c, op, attr_slot(ViewAtomicLoad, "ordering"));
  if (ordering == Ordering::Release || ordering == Ordering::AcqRel) {
    c.bad_attribute(op, "ordering", "a load is relaxed, acquire or seq_cst");
  }
}

void view_atomic_store(VerifyContext& c, OpId op) {
  using enum OpKind;
  const unsigned view = operand_slot(ViewAtomicStore, "w");
  check_access(c, op, c.module.operand(op, 0), c.module.operand(op, view));
  check_place(c, op, view);
  const Ordering ordering = ordering_of(c, op, attr_slot(ViewAtomicStore, "ordering"));
  if (ordering == Ordering::Acquire || ordering == Ordering::AcqRel) {
    c.bad_attribute(op, "ordering", "a store is relaxed, release or seq_cst");
  }
}

void view_prefetch(VerifyContext& c, OpId op) {
  check_place(c, op, operand_slot(OpKind::ViewPrefetch, "w"));
}

}  // namespace loom::verify
