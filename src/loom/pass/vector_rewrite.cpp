#include "loom/pass/vector_rewrite.h"

#include "loom/pass/fold_util.h"

namespace loom {
namespace {

using enum OpKind;

// Inserts that one extract looks through.
constexpr unsigned kMaxInserts = 64;

bool rewrite_transpose(Rewriter& rewriter, OpId op) {
  const Module& module = rewriter.module();
  const auto axes = module.attr(op, attr_slot(VectorTranspose, "permutation")).ints;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<int64_t>(i)) return false;
  }
  note_fold<"vector.transpose of nothing">();
  rewriter.replace(module.result(op), rewriter.operand(op, 0));
  return true;
}

// The number of the lane that an index list names, when it is exact and names one.
std::optional<uint64_t> lane_of(const Rewriter& rewriter, OpId op, unsigned index_group,
                                unsigned slot, TypeId vector) {
  const Module& module = rewriter.module();
  const Type& type = module.types[vector];
  const auto places = module.attr(op, slot).ints;
  const auto operands = operand_group(module, op, index_group);
  if (places.size() != type.dims.size()) return std::nullopt;
  uint64_t lane = 0;
  size_t next = 0;
  for (size_t axis = 0; axis < places.size(); ++axis) {
    const Dim dim = type.dims[axis];
    std::optional<int64_t> at = places[axis];
    if (at == kDynamicIndex) at = rewriter.exact_int(rewriter.resolve(operands[next++]));
    if (!at || dim.is_dynamic() || *at < 0 || *at >= dim.extent()) return std::nullopt;
    lane = lane * static_cast<uint64_t>(dim.extent()) + static_cast<uint64_t>(*at);
  }
  return lane;
}

void learn_coordinate(Rewriter& rewriter, OpId extract, OpId iota, std::optional<uint64_t> lane) {
  const Module& module = rewriter.module();
  const ValueId result = module.result(extract);
  const Type& type = module.types[module.type_of(module.result(iota))];
  if (type.dims.size() != 1 || type.dims[0].is_dynamic() || type.dims[0].extent() == 0) return;
  const IntDomain domain = IntDomain::of(rewriter.element_of(Ref::value(result)));
  const IntFacts at = lane ? IntFacts::exactly(static_cast<int64_t>(*lane))
                           : IntFacts::range(0, type.dims[0].extent() - 1);
  const IntFacts way = facts::mul(at, rewriter.facts(rewriter.operand(iota, 1)), domain);
  rewriter.refine_facts(result, facts::add(rewriter.facts(rewriter.operand(iota, 0)), way, domain));
}

bool rewrite_extract(Rewriter& rewriter, OpId op) {
  const Module& module = rewriter.module();
  const ValueId result = module.result(op);
  if (!module.types.is_scalar(module.type_of(result))) return false;
  Ref vector = rewriter.operand(op, 0);
  if (vector.is_constant()) return false;
  const TypeId type = rewriter.type_of(vector);
  const auto lane = lane_of(rewriter, op, operand_slot(VectorExtract, "index"),
                            attr_slot(VectorExtract, "static_index"), type);
  for (unsigned steps = 0; steps < kMaxInserts; ++steps) {
    const OpId from = rewriter.defining(vector);
    if (!from.valid()) return false;
    const OpKind kind = rewriter.kind_of(from);
    if (kind == VectorIota) {
      learn_coordinate(rewriter, op, from, lane);
      return false;
    }
    if (!lane) return false;
    if (kind == VectorFromElements) {
      note_fold<"vector.extract of an element">();
      rewriter.replace(result, rewriter.operand(from, static_cast<unsigned>(*lane)));
      return true;
    }
    if (kind != VectorInsert) return false;
    const auto put = lane_of(rewriter, from, operand_slot(VectorInsert, "index"),
                             attr_slot(VectorInsert, "static_index"), type);
    if (!put) return false;
    if (*put == *lane) {
      note_fold<"vector.extract of what was inserted">();
      rewriter.replace(result, rewriter.operand(from, 0));
      return true;
    }
    vector = rewriter.operand(from, 1);
  }
  return false;
}

// The plain access that does the same where every lane is enabled.
OpId plain_access(Rewriter& rewriter, OpId op, OpKind kind) {
  Module& module = rewriter.module();
  const OpKind masked = rewriter.kind_of(op);
  const bool load = masked == VectorLoadMask;
  std::vector<ValueId> operands;
  std::vector<uint32_t> groups;
  const unsigned count = load ? 2 : 3;  // the view and the index, behind the stored value
  for (unsigned group = 0; group < count; ++group) {
    const auto values = operand_group(module, op, group);
    operands.insert(operands.end(), values.begin(), values.end());
    groups.push_back(static_cast<uint32_t>(values.size()));
  }
  std::vector<AttrId> attrs(op_info(kind).attrs.size());
  for (unsigned slot = 0; slot < op_info(masked).attrs.size(); ++slot) {
    // The plain forms have their flags first.
    attrs[slot + 1] = module.attr_ids(op)[slot];
  }
  std::vector<TypeId> types;
  if (load) types.push_back(module.type_of(module.result(op)));
  const OpId made = module.create({.kind = kind,
                                   .operands = operands,
                                   .groups = groups,
                                   .results = types,
                                   .attrs = attrs,
                                   .location = module.location(op)});
  module.insert_before(op, made);
  return made;
}
static_assert(attr_slot(VectorLoad, "flags") == 0 && attr_slot(VectorStore, "flags") == 0);
static_assert(attr_slot(VectorLoad, "static_index") ==
              attr_slot(VectorLoadMask, "static_index") + 1);
static_assert(attr_slot(VectorStore, "cache_temporal") ==
              attr_slot(VectorStoreMask, "cache_temporal") + 1);

std::optional<bool> uniform_mask(Rewriter& rewriter, Ref mask) {
  const Ref lane = detail::uniform_lane(rewriter, mask);
  if (!lane.valid()) return std::nullopt;
  const auto value = rewriter.exact(lane);
  return value ? std::optional(value->bits != 0) : std::nullopt;
}

Ref only_operand(const Rewriter& rewriter, OpId op, unsigned group) {
  return rewriter.resolve(operand_group(rewriter.module(), op, group)[0]);
}

bool rewrite_load(Rewriter& rewriter, OpId op) {
  Module& module = rewriter.module();
  const auto mask =
      uniform_mask(rewriter, only_operand(rewriter, op, operand_slot(VectorLoadMask, "m")));
  if (!mask) return false;
  const ValueId result = module.result(op);
  if (!*mask) {
    note_fold<"vector.load.mask of no lane">();
    rewriter.replace(result, only_operand(rewriter, op, operand_slot(VectorLoadMask, "p")));
    return true;
  }
  note_fold<"vector.load.mask of every lane">();
  const ValueId made = module.result(plain_access(rewriter, op, VectorLoad));
  module.value(made).name = module.value(result).name;
  rewriter.replace(result, Ref::value(made));
  return true;
}

bool rewrite_store(Rewriter& rewriter, OpId op) {
  const auto mask =
      uniform_mask(rewriter, only_operand(rewriter, op, operand_slot(VectorStoreMask, "m")));
  if (!mask) return false;
  if (*mask) {
    note_fold<"vector.store.mask of every lane">();
    plain_access(rewriter, op, VectorStore);
  } else {
    note_fold<"vector.store.mask of no lane">();
  }
  return true;
}

}  // namespace

bool rewrite_vector(Rewriter& rewriter, OpId op) {
  switch (rewriter.kind_of(op)) {
    case VectorTranspose:
      return rewrite_transpose(rewriter, op);
    case VectorExtract:
      return rewrite_extract(rewriter, op);
    case VectorLoadMask:
      return rewrite_load(rewriter, op);
    case VectorStoreMask:
      return rewrite_store(rewriter, op);
    default:
      return false;
  }
}

}  // namespace loom
