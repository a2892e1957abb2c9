#include "generator.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <string>

#include "loom/dialect/numeric.h"
#include "loom/dialect/verify.h"

namespace loom::generate {
namespace {

constexpr ScalarKind kScalars[] = {
    ScalarKind::Index, ScalarKind::Offset, ScalarKind::I1,    ScalarKind::I8,   ScalarKind::I16,
    ScalarKind::I32,   ScalarKind::I64,    ScalarKind::F16,   ScalarKind::BF16, ScalarKind::F32,
    ScalarKind::F64,   ScalarKind::F8E4M3, ScalarKind::F8E5M2};
constexpr std::string_view kPureDialects[] = {"index", "scalar", "vector"};

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::ranges::any_of(endings, [&](std::string_view e) { return name.ends_with(e); });
}

bool is_shift(std::string_view name) { return ends_with_any(name, {".shli", ".shrsi", ".shrui"}); }
bool is_division(std::string_view name) {
  return ends_with_any(name, {"divsi", "divui", "remsi", "remui", "index.div", "index.rem"});
}

}  // namespace

bool Generator::covers(OpKind kind) {
  const OpInfo& info = op_info(kind);
  if (kind == OpKind::ScfIf || kind == OpKind::ScfFor || kind == OpKind::ScfYield ||
      kind == OpKind::ScfSelect || kind == OpKind::ScfSwitch || kind == OpKind::ScfLookup ||
      kind == OpKind::ScfWhile || kind == OpKind::ScfCondition || kind == OpKind::FuncDef ||
      kind == OpKind::FuncReturn || kind == OpKind::FuncCall || kind == OpKind::BufferAlloca ||
      kind == OpKind::BufferView || kind == OpKind::ViewLoad || kind == OpKind::ViewStore) {
    return true;
  }
  // Poison has no value to return, promises need a proof, fragments and encodings need facts.
  const bool excluded = ends_with_any(info.name, {".poison", ".assume", ".decode", ".encode"}) ||
                        info.name.starts_with("vector.fragment") || info.name == "vector.mma";
  return std::ranges::find(kPureDialects, info.dialect) != std::end(kPureDialects) && !excluded &&
         info.effect == Effect::Pure && info.regions.empty() && info.tier != Tier::T3;
}

Generator::Generator(Module& module, uint64_t seed, const Options& options)
    : module_(module), random_(seed), options_(options) {
  std::vector<OpKind> all;
  std::ranges::copy_if(kAllOpKinds, std::back_inserter(all), covers);
  favourite_ = all[seed % all.size()];
  for (const ScalarKind kind : kScalars) pool_.push_back(TypeStore::scalar(kind));
  const std::vector<std::vector<Dim>> shapes = {
      {Dim::fixed(4)}, {Dim::fixed(2), Dim::fixed(3)}, {Dim::fixed(1)},
      {Dim::fixed(8)}, {Dim::fixed(3), Dim::fixed(2)}, {Dim::fixed(2)},
      {Dim::fixed(0)}};
  for (const auto& dims : shapes) {
    for (const ScalarKind kind : kScalars) {
      if (kind == ScalarKind::Offset) continue;
      Type type;
      type.kind = TypeKind::Vector;
      type.element = kind;
      type.dims = dims;
      pool_.push_back(module_.types.intern(type));
    }
  }
}

void Generator::run() {
  for (unsigned i = 0; i < options_.functions; ++i) function(i);
}

// ================================================================================ choice

TypeId Generator::random_type() {
  const uint32_t scalars = std::size(kScalars);
  return pool_[chance(2) ? roll(scalars) : roll(static_cast<uint32_t>(pool_.size()))];
}

// Mostly a few types, so that values meet.
TypeId Generator::random_argument_type() {
  constexpr ScalarKind kUsual[] = {ScalarKind::Index, ScalarKind::I32, ScalarKind::F32,
                                   ScalarKind::I1};
  return chance(2) ? TypeStore::scalar(kUsual[roll(std::size(kUsual))]) : random_type();
}

ValueId Generator::pick(const Constraint& constraint, TypeId wanted) {
  Values fit;
  for (const ValueId value : values_) {
    const TypeId type = module_.type_of(value);
    if (wanted.valid() ? type == wanted : constraint.accepts(module_.types[type])) {
      fit.push_back(value);
    }
  }
  if (fit.empty()) return {};
  // Recent values are chosen more often, which makes chains.
  const auto count = static_cast<uint32_t>(fit.size());
  return fit[chance(2) ? roll(count) : count - 1 - roll(std::min(count, 4u))];
}

ValueId Generator::pick_type(TypeId type) {
  Values fit;
  for (const ValueId value : values_) {
    if (module_.type_of(value) == type) fit.push_back(value);
  }
  return fit.empty() ? ValueId() : fit[roll(static_cast<uint32_t>(fit.size()))];
}

// ================================================================================ making

OpId Generator::append(OpKind kind, const Values& operands, const std::vector<uint32_t>& groups,
                       const std::vector<TypeId>& results, const std::vector<AttrId>& attrs,
                       unsigned regions) {
  const OpId op = module_.create({.kind = kind,
                                  .operands = operands,
                                  .groups = groups,
                                  .results = results,
                                  .attrs = attrs,
                                  .regions = regions});
  module_.append(region_, op);
  return op;
}

void Generator::add_results(OpId op) {
  used_.insert(module_.op(op).kind);
  for (unsigned i = 0; i < module_.op(op).result_count; ++i) {
    const ValueId value = module_.result(op, i);
    if (module_.types[module_.type_of(value)].kind == TypeKind::Scalar ||
        module_.types[module_.type_of(value)].kind == TypeKind::Vector) {
      values_.push_back(value);
    }
  }
}

// The verifier wants finished bodies, so it looks at a function that holds this operation alone.
bool Generator::settle(OpId op) {
  Diagnostics diagnostics;
  SourceFiles files;
  Module scratch(files);
  // Types and attributes are numbered per module: rebuild them there.
  bool known = true;
  const auto copy_type = [&](TypeId id) {
    Type type = module_.types[id];
    known &= !type.encoding.valid() && !type.mentions_values();
    return type.is_scalar()       ? id
           : is_shaped(type.kind) ? scratch.types.intern(type)
                                  : scratch.types.opaque(type.kind);
  };
  const OpId function =
      scratch.create({.kind = OpKind::FuncDef,
                      .attrs = std::vector<AttrId>(op_info(OpKind::FuncDef).attrs.size()),
                      .regions = 2});
  const StringId name = scratch.strings.intern("f");
  scratch.set_attr(function, attr_slot(OpKind::FuncDef, "name"),
                   scratch.attrs.intern(Attr::symbol(name)));
  scratch.append(scratch.body(), function);
  scratch.define_symbol(name, function);
  const RegionId body = scratch.op_region(function, 0);
  scratch.region(body).has_body = true;
  std::function<OpId(OpId, unsigned)> copy_op;
  // Rules about constant operands look at the operations that make them.
  const std::function<ValueId(ValueId, unsigned)> copy_value = [&](ValueId value, unsigned depth) {
    const OpId source = module_.defining_op(value);
    const bool pure = source.valid() && depth < 3 && module_.op(source).region_count == 0 &&
                      op_info(module_.op(source).kind).effect == Effect::Pure;
    if (!pure) return scratch.add_arg(body, copy_type(module_.type_of(value)), {});
    const OpId copied = copy_op(source, depth + 1);
    return scratch.result(copied, module_.value(value).index);
  };
  copy_op = [&](OpId from, unsigned depth) {
    Values operands;
    for (const ValueId value : module_.operands(from)) operands.push_back(copy_value(value, depth));
    std::vector<TypeId> results;
    for (unsigned i = 0; i < module_.op(from).result_count; ++i) {
      results.push_back(copy_type(module_.type_of(module_.result(from, i))));
    }
    std::vector<AttrId> attrs;
    for (const AttrId id : module_.attr_ids(from)) {
      attrs.push_back(id.valid() ? scratch.attrs.intern(module_.attrs[id]) : AttrId());
    }
    const auto groups = module_.group_sizes(from);
    const OpId copied = scratch.create({.kind = module_.op(from).kind,
                                        .operands = operands,
                                        .groups = {groups.data(), groups.size()},
                                        .results = results,
                                        .attrs = attrs});
    scratch.append(body, copied);
    return copied;
  };
  copy_op(op, 0);
  const uint32_t none = 0;
  scratch.append(body, scratch.create({.kind = OpKind::FuncReturn, .groups = {&none, 1}}));
  if (known && verify_module(scratch, diagnostics)) {
    add_results(op);
    return true;
  }
  module_.erase(op);
  return false;
}

ValueId Generator::address(OpKind kind, ScalarKind type, int64_t value) {
  const OpId op =
      append(kind, {}, {}, {TypeStore::scalar(type)}, {module_.attrs.intern(Attr::integer(value))});
  used_.insert(kind);
  return module_.result(op);
}

bool Generator::constant() {
  const ScalarKind kind = kScalars[roll(std::size(kScalars))];
  const int64_t integers[] = {
      0, 1, -1, 2, 3, 7, 8, -8, 64, 127, -128, 100, std::numeric_limits<int64_t>::max()};
  const double reals[] = {0.0, -0.0, 1.0, -1.0, 0.5, 3.25, -2.0, 448.0, 1e-3};
  ScalarValue value = from_bits(kind, static_cast<uint64_t>(integers[roll(std::size(integers))]));
  if (kind == ScalarKind::Offset) value.bits >>= 1;
  if (is_float(kind)) value = from_double(kind, reals[roll(std::size(reals))]);
  const OpId op = append(is_address(kind) ? OpKind::IndexConstant : OpKind::ScalarConstant, {}, {},
                         {TypeStore::scalar(kind)}, {module_.attrs.intern(to_literal(value))});
  add_results(op);
  return true;
}

AttrId Generator::attribute(const OpInfo& info, const AttrSpec& spec, TypeId result) {
  if (spec.optional && spec.form != AttrForm::Flags && chance(2)) return {};
  switch (spec.form) {
    case AttrForm::Enum:
      return module_.attrs.intern(
          Attr::enumeration(roll(static_cast<uint32_t>(enum_info(spec.enum_id).cases.size()))));
    case AttrForm::Flags:
      // Fast-math flags would allow other results.
      if (spec.flags != FlagSetId::Overflow || !chance(4)) return {};
      return module_.attrs.intern(Attr::flags(1 + roll(3)));
    case AttrForm::Integer:
      return module_.attrs.intern(
          Attr::integer(roll(info.name.find("bit") != info.name.npos ? 9 : 3)));
    case AttrForm::Float:
      return module_.attrs.intern(Attr::floating(1.702));
    case AttrForm::Literal: {
      const ScalarKind kind = module_.types[result].element;
      ScalarValue value = from_bits(kind, roll(100));
      if (is_float(kind)) value = from_double(kind, 0.25 * roll(40));
      return module_.attrs.intern(to_literal(value));
    }
    case AttrForm::IntList:
    case AttrForm::IndexList: {
      std::vector<int64_t> list(1 + roll(3));
      for (int64_t& entry : list) entry = roll(4);
      if (chance(2)) {
        for (size_t i = 0; i < list.size(); ++i) list[i] = static_cast<int64_t>(i);
        if (chance(2)) std::ranges::reverse(list);
      }
      return module_.attrs.intern(Attr::int_list(list));
    }
    default:
      return {};
  }
}

bool Generator::result_types(const OpInfo& info, const Values& operands,
                             std::vector<TypeId>& types) {
  for (const ResultSpec& spec : info.results) {
    if (spec.same_as >= 0 && spec.arity == Arity::Single) {
      const auto group = static_cast<size_t>(spec.same_as);
      if (group >= operands.size()) return false;
      types.push_back(module_.type_of(operands[group]));
    } else if (const auto only = spec.constraint->only_type(module_.types)) {
      types.push_back(*only);
    } else if (!types.empty() && !chance(4)) {
      types.push_back(types.back());
    } else if (!operands.empty() && chance(4) &&
               module_.types[module_.type_of(operands[0])].kind == TypeKind::Vector) {
      // One axis halved or doubled.
      Type type = module_.types[module_.type_of(operands[0])];
      std::vector<Dim> dims(type.dims.begin(), type.dims.end());
      Dim& dim = dims[roll(static_cast<uint32_t>(dims.size()))];
      dim = Dim::fixed(chance(2) ? dim.extent() / 2 : dim.extent() * 2);
      type.dims = dims;
      types.push_back(module_.types.intern(type));
    } else if (!operands.empty() && !chance(3)) {
      // Of the shape of an operand, or its element.
      Type type =
          module_.types[module_.type_of(operands[roll(static_cast<uint32_t>(operands.size()))])];
      if (chance(3) || (type.is_scalar() && chance(2)))
        type.element = kScalars[roll(std::size(kScalars))];
      if (!is_shaped(type.kind) || chance(6)) {
        types.push_back(TypeStore::scalar(type.element));
      } else {
        types.push_back(module_.types.intern(type));
      }
    } else {
      types.push_back(random_type());
    }
  }
  return true;
}

// Most shifts get counts below the width and most divisions a divisor that is not zero.
bool Generator::guarded(OpKind kind, Values& operands) {
  const std::string_view name = op_info(kind).name;
  if (operands.size() != 2 || (!is_shift(name) && !is_division(name)) || chance(8)) return true;
  const TypeId type = module_.type_of(operands[1]);
  if (!module_.types.is_scalar(type)) return true;
  const ScalarKind element = module_.types[type].element;
  const bool index = is_address(element);
  if (element == ScalarKind::Offset || element == ScalarKind::I1) return true;
  const int64_t mask = is_shift(name) ? static_cast<int64_t>(scalar_bits(element)) - 1 : 1;
  const ValueId literal =
      address(index ? OpKind::IndexConstant : OpKind::ScalarConstant, element, mask);
  const OpKind with = is_shift(name) ? (index ? OpKind::IndexAnd : OpKind::ScalarAndI)
                                     : (index ? OpKind::IndexOr : OpKind::ScalarOrI);
  const OpId guard = append(with, {operands[1], literal}, {}, {type}, {});
  operands[1] = module_.result(guard);
  return true;
}

// Which NaN arithmetic gives is open, so no operation may tell them apart: these get a number.
void Generator::without_nan(OpKind kind, Values& operands) {
  const bool copies_sign = kind == OpKind::ScalarCopysignF || kind == OpKind::VectorCopySignF;
  if (!copies_sign && kind != OpKind::ScalarBitcast && kind != OpKind::VectorBitcast) return;
  ValueId& seen = operands[copies_sign ? 1 : 0];
  const TypeId type = module_.type_of(seen);
  const ScalarKind element = module_.types[type].element;
  if (!is_float(element)) return;
  const bool scalar = module_.types.is_scalar(type);
  const OpId one = append(scalar ? OpKind::ScalarConstant : OpKind::VectorConstant, {}, {}, {type},
                          {module_.attrs.intern(to_literal(from_double(element, 1)))});
  const OpKind least = scalar ? OpKind::ScalarMinNumF : OpKind::VectorMinNumF;
  const std::vector<AttrId> attrs(op_info(least).attrs.size());
  seen = module_.result(append(least, {seen, module_.result(one)}, {}, {type}, attrs));
}

// A constant that the constraint takes, of the shape of the operand before it.
ValueId Generator::literal(const Constraint& constraint, const Values& operands) {
  std::vector<TypeId> fit;
  for (const TypeId id : pool_) {
    const Type& type = module_.types[id];
    if (!constraint.accepts(type)) continue;
    if (!operands.empty() && !type.is_scalar()) {
      const Type& before = module_.types[module_.type_of(operands.back())];
      if (!before.is_scalar() && !std::ranges::equal(before.dims, type.dims)) continue;
    }
    fit.push_back(id);
  }
  if (fit.empty()) return {};
  const TypeId type = fit[roll(static_cast<uint32_t>(fit.size()))];
  const ScalarKind kind = module_.types[type].element;
  const ScalarValue value =
      is_float(kind) ? from_double(kind, 0.5 * roll(8)) : from_bits(kind, roll(2));
  const OpKind with = !module_.types.is_scalar(type) ? OpKind::VectorConstant
                      : is_address(kind)             ? OpKind::IndexConstant
                                                     : OpKind::ScalarConstant;
  const OpId op = append(with, {}, {}, {type}, {module_.attrs.intern(to_literal(value))});
  add_results(op);
  return module_.result(op);
}

// Any pure operation of the tables, with operands and attributes that may fit.
namespace {

// Of the scalar and vector dialects alike.
bool is_elementary(OpKind kind) {
  constexpr std::string_view kWords[] = {
      "expf",   "exp2f",     "logf",      "log2f",     "rsqrtf", "sinf", "cosf",
      "tanhf",  "erff",      "logisticf", "siluf",     "geluf",  "powf", "expm1f",
      "log10f", "log1pf",    "cbrtf",     "softplusf", "erfcf",  "tanf", "sinturnsf",
      "asinf",  "costurnsf", "acosf",     "atanf",     "atan2f"};
  const std::string_view name = op_info(kind).name;
  return std::ranges::find(kWords, name.substr(name.find('.') + 1)) != std::end(kWords);
}

}  // namespace

bool Generator::generic() {
  const OpKind kind = chance(4) ? favourite_ : kAllOpKinds[roll(kOpKindCount)];
  if (!covers(kind) || (options_.exact_only && is_elementary(kind))) return false;
  const OpInfo& info = op_info(kind);
  if (std::ranges::find(kPureDialects, info.dialect) == std::end(kPureDialects) &&
      kind != OpKind::ScfSelect) {
    return false;
  }
  Values operands;
  std::vector<uint32_t> groups;
  const bool one_type = info.has(trait::SameType | trait::OperandsSameType);
  for (const OperandSpec& spec : info.operands) {
    unsigned count = spec.arity == Arity::Single     ? 1
                     : spec.arity == Arity::Optional ? roll(2)
                                                     : roll(4);
    if (spec.name == "index") count = 0;  // static places only
    for (unsigned i = 0; i < count; ++i) {
      const bool tied =
          !operands.empty() && (one_type || (kind == OpKind::ScfSelect && operands.size() == 2) ||
                                (i > 0 && !chance(4)) || chance(3));
      ValueId value = pick(*spec.constraint, tied ? module_.type_of(operands.back()) : TypeId());
      if (!value.valid()) value = literal(*spec.constraint, operands);
      if (!value.valid()) return false;
      operands.push_back(value);
    }
    groups.push_back(count);
  }
  if (!info.has_groups) groups.clear();
  guarded(kind, operands);
  if (options_.exact_only) without_nan(kind, operands);
  std::vector<TypeId> results;
  if (!result_types(info, operands, results)) return false;
  std::vector<AttrId> attrs;
  for (const AttrSpec& spec : info.attrs) {
    attrs.push_back(attribute(info, spec, results.empty() ? TypeId() : results.front()));
    if (!attrs.back().valid() && !spec.optional) return false;
  }
  return settle(append(kind, operands, groups, results, attrs));
}

// A private array that is written whole, then read at indices in range.
bool Generator::memory() {
  constexpr int64_t kElements = 4;
  const ValueId stored =
      values_.empty() ? ValueId() : values_[roll(static_cast<uint32_t>(values_.size()))];
  if (!stored.valid() || !module_.types.is_scalar(module_.type_of(stored))) return false;
  const ScalarKind element = module_.types[module_.type_of(stored)].element;
  const OpInfo& alloca_info = op_info(OpKind::BufferAlloca);
  std::vector<AttrId> attrs(alloca_info.attrs.size());
  attrs[attr_slot(OpKind::BufferAlloca, "space")] =
      module_.attrs.intern(Attr::enumeration(static_cast<uint64_t>(MemorySpace::Private)));
  attrs[attr_slot(OpKind::BufferAlloca, "align")] = module_.attrs.intern(Attr::integer(64));
  const ValueId bytes =
      address(OpKind::IndexConstant, ScalarKind::Offset, kElements * scalar_bytes(element));
  const OpId buffer =
      append(OpKind::BufferAlloca, {bytes}, {}, {module_.types.opaque(TypeKind::Buffer)}, attrs);
  const ValueId base = address(OpKind::IndexConstant, ScalarKind::Offset, 0);
  const std::vector<Dim> dims = {Dim::fixed(kElements)};
  Type view_type;
  view_type.kind = TypeKind::View;
  view_type.element = element;
  view_type.dims = dims;
  const OpId view = append(OpKind::BufferView, {module_.result(buffer), base}, {},
                           {module_.types.intern(view_type)}, {});
  const OpInfo& store_info = op_info(OpKind::ViewStore);
  for (int64_t i = 0; i < kElements; ++i) {
    std::vector<AttrId> store_attrs(store_info.attrs.size());
    store_attrs[attr_slot(OpKind::ViewStore, "static_index")] =
        module_.attrs.intern(Attr::int_list({&i, 1}));
    append(OpKind::ViewStore, {pick_type(module_.type_of(stored)), module_.result(view)}, {1, 1, 0},
           {}, store_attrs);
  }
  std::vector<AttrId> load_attrs(op_info(OpKind::ViewLoad).attrs.size());
  const int64_t place = roll(kElements);
  load_attrs[attr_slot(OpKind::ViewLoad, "static_index")] =
      module_.attrs.intern(Attr::int_list({&place, 1}));
  const OpId load = append(OpKind::ViewLoad, {module_.result(view)}, {1, 0},
                           {module_.type_of(stored)}, load_attrs);
  used_.insert({OpKind::BufferAlloca, OpKind::BufferView, OpKind::ViewStore});
  add_results(load);
  if (chance(2)) loads_ahead(module_.result(view));
  return true;
}

bool Generator::call() {
  if (functions_.empty()) return false;
  const OpId callee = functions_[roll(static_cast<uint32_t>(functions_.size()))];
  Values operands;
  for (const ValueId arg : module_.args(module_.op_region(callee, 0))) {
    operands.push_back(pick_type(module_.type_of(arg)));
    if (!operands.back().valid()) return false;
  }
  std::vector<TypeId> results;
  for (const ValueId result : module_.args(module_.op_region(callee, 1))) {
    results.push_back(module_.type_of(result));
  }
  std::vector<AttrId> attrs(op_info(OpKind::FuncCall).attrs.size());
  attrs[attr_slot(OpKind::FuncCall, "callee")] =
      module_.attrs.intern(Attr::symbol(symbol_name(module_, callee)));
  const OpId op =
      append(OpKind::FuncCall, operands, {static_cast<uint32_t>(operands.size())}, results, attrs);
  add_results(op);
  return true;
}

void Generator::statement(unsigned depth) {
  for (;;) {
    const uint32_t kind = roll(24);
    if (kind == 0 && depth < options_.depth && branch(depth)) return;
    if (kind == 1 && depth < options_.depth && loop(depth)) return;
    if (kind == 2 && memory()) return;
    if (kind == 3 && call()) return;
    if (kind == 6 && depth < options_.depth && switch_over(depth)) return;
    if (kind == 7 && depth < options_.depth && while_loop(depth)) return;
    if (kind == 8 && lookup()) return;
    if ((kind == 4 || kind == 5) && constant()) return;
    if (kind > 8 && generic()) return;
  }
}

void Generator::fill(RegionId region, unsigned operations, unsigned depth) {
  region_ = region;
  for (; operations > 0; --operations) {
    statement(depth);
    region_ = region;
  }
}

void Generator::function(unsigned number) {
  const OpInfo& info = op_info(OpKind::FuncDef);
  const OpId op = module_.create(
      {.kind = OpKind::FuncDef, .attrs = std::vector<AttrId>(info.attrs.size()), .regions = 2});
  const StringId name = module_.strings.intern("f" + std::to_string(number));
  module_.set_attr(op, attr_slot(OpKind::FuncDef, "name"),
                   module_.attrs.intern(Attr::symbol(name)));
  module_.set_attr(op, attr_slot(OpKind::FuncDef, "public"), module_.attrs.intern(Attr::unit()));
  module_.append(module_.body(), op);
  module_.define_symbol(name, op);
  const RegionId body = module_.op_region(op, 0);
  module_.region(body).has_body = true;
  values_.clear();
  for (unsigned i = 3 + roll(5); i > 0; --i) {
    values_.push_back(module_.add_arg(body, random_argument_type(), {}));
  }
  const auto arguments = static_cast<ptrdiff_t>(values_.size());
  module_.region(body).arg_split = module_.region(body).arg_count;
  fill(body, options_.operations, 0);
  const Values results(values_.begin() + arguments, values_.end());
  append(OpKind::FuncReturn, results, {static_cast<uint32_t>(results.size())}, {}, {});
  for (const ValueId value : results) {
    module_.add_arg(module_.op_region(op, 1), module_.type_of(value), {});
  }
  used_.insert({OpKind::FuncDef, OpKind::FuncReturn});
  functions_.push_back(op);
}

}  // namespace loom::generate
