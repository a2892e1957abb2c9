// Loops with a policy that random bodies rarely allow.
#include "generator.h"

namespace loom::generate {

// A loop over a view of four elements, or fewer, whose loads may run ahead: it carries the last two
// elements and the last index.
void Generator::loads_ahead(ValueId view) {
  const TypeId index = TypeStore::scalar(ScalarKind::Index);
  const TypeId element = TypeStore::scalar(module_.types[module_.type_of(view)].element);
  const ValueId lo = address(OpKind::IndexConstant, ScalarKind::Index, 0);
  const ValueId most = address(OpKind::IndexConstant, ScalarKind::Index, roll(5));
  ValueId hi = most;
  if (const ValueId some = pick_type(index); some.valid() && chance(2)) {
    hi = module_.result(append(OpKind::IndexMin, {some, most}, {}, {index}, {}));
  }
  const ValueId step = address(OpKind::IndexConstant, ScalarKind::Index, 1 + roll(2));
  const ValueId first = pick_type(element), second = pick_type(element);
  const ValueId depth = address(OpKind::IndexConstant, ScalarKind::Index, 1 + roll(5));
  std::vector<uint32_t> groups(op_info(OpKind::ScfFor).operands.size());
  for (unsigned i = 0; i < 3; ++i) groups[i] = 1;
  groups[operand_slot(OpKind::ScfFor, "init")] = 3;
  groups[operand_slot(OpKind::ScfFor, "depth")] = 1;
  const OpId op = append(OpKind::ScfFor, {lo, hi, step, first, second, lo, depth}, groups,
                         {element, element, index},
                         std::vector<AttrId>(op_info(OpKind::ScfFor).attrs.size()), 1);
  const RegionId outer = region_;
  region_ = module_.op_region(op, 0);
  module_.region(region_).has_body = true;
  const ValueId at = module_.add_arg(region_, index, {});
  const ValueId last = module_.add_arg(region_, element, {});
  module_.add_arg(region_, element, {});
  module_.add_arg(region_, index, {});
  module_.region(region_).arg_split = module_.region(region_).arg_count;
  std::vector<AttrId> attrs(op_info(OpKind::ViewLoad).attrs.size());
  const int64_t dynamic = kDynamicIndex;
  attrs[attr_slot(OpKind::ViewLoad, "static_index")] =
      module_.attrs.intern(Attr::int_list({&dynamic, 1}));
  const OpId load = append(OpKind::ViewLoad, {view, at}, {1, 1}, {element}, attrs);
  yield({module_.result(load), last, at});
  region_ = outer;
  add_results(op);
}

}  // namespace loom::generate
