#include "generator.h"

namespace loom::generate {

void Generator::yield(const Values& values) {
  append(OpKind::ScfYield, values, {static_cast<uint32_t>(values.size())}, {}, {});
  used_.insert(OpKind::ScfYield);
}

// A visible value of each type; every type is one that a visible value has.
Generator::Values Generator::region_results(const std::vector<TypeId>& types) {
  Values out;
  for (const TypeId type : types) out.push_back(pick_type(type));
  return out;
}

bool Generator::branch(unsigned depth) {
  const ValueId condition = pick_type(TypeStore::scalar(ScalarKind::I1));
  if (!condition.valid() || values_.empty()) return false;
  std::vector<TypeId> types;
  for (unsigned i = roll(3); i > 0; --i) {
    types.push_back(module_.type_of(values_[roll(static_cast<uint32_t>(values_.size()))]));
  }
  const OpId op = append(OpKind::ScfIf, {condition}, {}, types, {}, 2);
  bodies(op, types.empty() && chance(2) ? 1 : 2, types, depth);
  add_results(op);
  return true;
}

// Fills the first regions of an operation; each yields a value of each type.
void Generator::bodies(OpId op, unsigned count, const std::vector<TypeId>& types, unsigned depth) {
  const RegionId outer = region_;
  const size_t visible = values_.size();
  for (unsigned i = 0; i < count; ++i) {
    region_ = module_.op_region(op, i);
    module_.region(region_).has_body = true;
    fill(region_, 1 + roll(5), depth + 1);
    yield(region_results(types));
    values_.resize(visible);
  }
  region_ = outer;
}

bool Generator::loop(unsigned depth) {
  if (values_.empty()) return false;
  const TypeId index = TypeStore::scalar(ScalarKind::Index);
  const int64_t first = roll(3);
  const ValueId lo = address(OpKind::IndexConstant, ScalarKind::Index, first);
  const ValueId hi = address(OpKind::IndexConstant, ScalarKind::Index, first + roll(5));
  const ValueId step = address(OpKind::IndexConstant, ScalarKind::Index, 1 + roll(2));
  Values operands = {lo, hi, step};
  std::vector<TypeId> types;
  for (unsigned i = roll(3); i > 0; --i) {
    operands.push_back(values_[roll(static_cast<uint32_t>(values_.size()))]);
    types.push_back(module_.type_of(operands.back()));
  }
  const OpInfo& info = op_info(OpKind::ScfFor);
  std::vector<uint32_t> groups = {1, 1, 1, static_cast<uint32_t>(types.size())};
  groups.resize(info.operands.size());
  std::vector<AttrId> attrs(info.attrs.size());
  if (chance(3)) {
    attrs[attr_slot(OpKind::ScfFor, "unroll")] = module_.attrs.intern(Attr::unit());
  } else if (chance(2)) {
    operands.push_back(address(OpKind::IndexConstant, ScalarKind::Index, 1 + roll(4)));
    groups[operand_slot(OpKind::ScfFor, "factor")] = 1;
  }
  const OpId op = append(OpKind::ScfFor, operands, groups, types, attrs, 1);
  const RegionId outer = region_;
  const size_t visible = values_.size();
  region_ = module_.op_region(op, 0);
  module_.region(region_).has_body = true;
  values_.push_back(module_.add_arg(region_, index, {}));
  for (const TypeId type : types) values_.push_back(module_.add_arg(region_, type, {}));
  module_.region(region_).arg_split = module_.region(region_).arg_count;
  fill(region_, 1 + roll(5), depth + 1);
  yield(region_results(types));
  values_.resize(visible);
  region_ = outer;
  add_results(op);
  return true;
}

// Case regions first, then the default.
bool Generator::switch_over(unsigned depth) {
  const ValueId selector = pick_type(TypeStore::scalar(ScalarKind::Index));
  if (!selector.valid()) return false;
  std::vector<TypeId> types;
  for (unsigned i = roll(3); i > 0; --i) {
    types.push_back(module_.type_of(values_[roll(static_cast<uint32_t>(values_.size()))]));
  }
  std::vector<int64_t> keys;
  for (unsigned i = roll(3); i > 0; --i)
    keys.push_back((keys.empty() ? -1 : keys.back()) + 1 + roll(3));
  std::vector<AttrId> attrs(op_info(OpKind::ScfSwitch).attrs.size());
  attrs[attr_slot(OpKind::ScfSwitch, "keys")] = module_.attrs.intern(Attr::int_list(keys));
  const auto regions = static_cast<unsigned>(keys.size()) + 1;
  const OpId op = append(OpKind::ScfSwitch, {selector}, {}, types, attrs, regions);
  bodies(op, regions, types, depth);
  add_results(op);
  return true;
}

bool Generator::lookup() {
  const ValueId selector = pick_type(TypeStore::scalar(ScalarKind::Index));
  if (!selector.valid()) return false;
  std::vector<TypeId> types;
  for (unsigned i = 1 + roll(2); i > 0; --i) {
    types.push_back(module_.type_of(values_[roll(static_cast<uint32_t>(values_.size()))]));
  }
  std::vector<int64_t> keys;
  for (unsigned i = 1 + roll(3); i > 0; --i)
    keys.push_back((keys.empty() ? -2 : keys.back()) + 1 + roll(3));
  Values operands = {selector};
  for (size_t row = 0; row <= keys.size(); ++row) {
    for (const ValueId value : region_results(types)) operands.push_back(value);
  }
  const auto width = static_cast<uint32_t>(types.size());
  std::vector<AttrId> attrs(op_info(OpKind::ScfLookup).attrs.size());
  attrs[attr_slot(OpKind::ScfLookup, "keys")] = module_.attrs.intern(Attr::int_list(keys));
  add_results(append(OpKind::ScfLookup, operands,
                     {1, width * static_cast<uint32_t>(keys.size()), width}, types, attrs));
  return true;
}

// Counts down from a small number, so that it ends.
bool Generator::while_loop(unsigned depth) {
  const TypeId index = TypeStore::scalar(ScalarKind::Index);
  const ValueId start = address(OpKind::IndexConstant, ScalarKind::Index, roll(5));
  Values operands = {start};
  std::vector<TypeId> types = {index};
  for (unsigned i = roll(3); i > 0; --i) {
    operands.push_back(values_[roll(static_cast<uint32_t>(values_.size()))]);
    types.push_back(module_.type_of(operands.back()));
  }
  const OpId op =
      append(OpKind::ScfWhile, operands, {static_cast<uint32_t>(operands.size())}, types, {}, 2);
  const RegionId outer = region_;
  const size_t visible = values_.size();
  for (unsigned i = 0; i < 2; ++i) {
    region_ = module_.op_region(op, i);
    module_.region(region_).has_body = true;
    for (const TypeId type : types) values_.push_back(module_.add_arg(region_, type, {}));
    module_.region(region_).arg_split = module_.region(region_).arg_count;
    const ValueId counter = values_[visible];
    fill(region_, 1 + roll(3), depth + 1);
    const ValueId literal = address(OpKind::IndexConstant, ScalarKind::Index, i);
    const AttrId above = module_.attrs.intern(Attr::enumeration(4));  // sgt
    const OpId step = i == 0 ? append(OpKind::IndexCmp, {counter, literal}, {},
                                      {TypeStore::scalar(ScalarKind::I1)}, {above})
                             : append(OpKind::IndexSub, {counter, literal}, {}, {index}, {});
    Values out = region_results(types);
    out[0] = i == 0 ? counter : module_.result(step);
    if (i == 1) {
      yield(out);
    } else {
      out.insert(out.begin(), module_.result(step));
      append(OpKind::ScfCondition, out, {1, static_cast<uint32_t>(types.size())}, {}, {});
      used_.insert(OpKind::ScfCondition);
    }
    values_.resize(visible);
  }
  region_ = outer;
  add_results(op);
  return true;
}

}  // namespace loom::generate
