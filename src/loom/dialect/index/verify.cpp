// What the rows of index/ops.def cannot say.
#include "loom/dialect/hooks.h"
#include "loom/dialect/numeric.h"

namespace loom::verify {

void index_constant(VerifyContext& c, OpId op) {
  const Attr& literal = c.module.attr(op, attr_slot(OpKind::IndexConstant, "value"));
  if (literal.kind != AttrKind::Integer) {
    c.bad_literal(op, "value", c.type(c.module.result(op)) + " takes an integer literal");
    return;
  }
  if (c.module.types.is(c.module.type_of(c.module.result(op)), ScalarKind::Offset) &&
      literal.value() < 0) {
    c.bad_attribute(op, "value", "an offset cannot be negative");
  }
}

void index_cast(VerifyContext& c, OpId op) {
  const TypeId from = c.module.type_of(c.module.operand(op, 0));
  const TypeId to = c.module.type_of(c.module.result(op));
  const ScalarKind source = c.module.types[from].element;
  if (is_integer(source) && is_integer(c.module.types[to].element)) {
    c.bad_result(op, "index or offset where the operand is " + c.type(c.module.operand(op, 0)));
  } else if (from == to) {
    c.bad_result(op, source == ScalarKind::Index ? "offset or an integer" : "index or an integer");
  }
}

void assume(VerifyContext& c, OpId op) {
  if (!c.module.operands(op).empty()) return;
  c.error(op, Diag::StructureOperandCount,
          {{"op", std::string(c.op_name(op))}, {"expected", "one or more"}, {"found", "0"}});
}

}  // namespace loom::verify
