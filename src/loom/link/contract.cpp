#include "loom/link/contract.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/facts/int_facts.h"
#include "loom/ir/ir_text.h"

namespace loom {
namespace {

// The values of two signatures that stand for each other.
class Renaming {
 public:
  Renaming(const Module& a, const Module& b) : a_(a), b_(b) {}

  // Pairs the values; false when one of them is paired with another already.
  bool pair(ValueId a, ValueId b) {
    const auto forward = to_b_.emplace(a.index(), b).first->second;
    const auto backward = to_a_.emplace(b.index(), a).first->second;
    return forward == b && backward == a;
  }
  ValueId to_a(ValueId b) const {
    const auto found = to_a_.find(b.index());
    return found == to_a_.end() ? ValueId() : found->second;
  }
  bool same_type(TypeId a_id, TypeId b_id) {
    const Type& a = a_.types[a_id];
    const Type& b = b_.types[b_id];
    if (a.kind != b.kind || a.element != b.element || a.align != b.align ||
        a.dims.size() != b.dims.size() || a.encoding.valid() != b.encoding.valid() ||
        a.encoding_value.valid() != b.encoding_value.valid()) {
      return false;
    }
    if (a.encoding.valid() && attr_text(a_, a.encoding) != attr_text(b_, b.encoding)) return false;
    if (a.encoding_value.valid() && !pair(a.encoding_value, b.encoding_value)) return false;
    for (size_t i = 0; i < a.dims.size(); ++i) {
      if (a.dims[i].is_dynamic() != b.dims[i].is_dynamic()) return false;
      if (a.dims[i].is_dynamic() ? !pair(a.dims[i].value(), b.dims[i].value())
                                 : a.dims[i].extent() != b.dims[i].extent()) {
        return false;
      }
    }
    return true;
  }

 private:
  const Module& a_;
  const Module& b_;
  std::unordered_map<uint32_t, ValueId> to_b_;
  std::unordered_map<uint32_t, ValueId> to_a_;
};

// "the declaration has 1 argument but the definition has 2"; `what` is a plural.
std::string counts(size_t declared, size_t defined, std::string_view what) {
  if (declared == 1) what.remove_suffix(1);
  return "the declaration has " + std::to_string(declared) + " " + std::string(what) +
         " but the definition has " + std::to_string(defined);
}

// What the arguments of a region are in the symbol's contract.
std::string_view group_name(OpKind kind, std::string_view region, bool second_group) {
  if (region == "results") return "results";
  if (second_group) return "launch bindings";
  const std::string_view dialect = op_info(kind).dialect;
  if (dialect == "command") return "specializations";
  if (region == "config") return "workload arguments";
  return dialect == "kernel" ? "launch arguments" : "arguments";
}

int region_named(OpKind kind, std::string_view name) {
  const auto& regions = op_info(kind).regions;
  for (size_t i = 0; i < regions.size(); ++i) {
    if (regions[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

bool is_pure(const Module& module, OpId op) {
  const auto& attrs = op_info(module.op(op).kind).attrs;
  for (unsigned slot = 0; slot < attrs.size(); ++slot) {
    if (attrs[slot].name == "pure") return module.has_attr(op, slot);
  }
  return false;
}

class Matcher {
 public:
  Matcher(const Module& declaring, OpId declaration, const Module& defining, OpId definition)
      : a_(declaring), b_(defining), decl_(declaration), def_(definition), names_(a_, b_) {}

  ContractMatch match() {
    ContractMatch result;
    result.mismatch = signatures();
    if (result.mismatch.empty() && is_pure(a_, decl_) && !is_pure(b_, def_)) {
      result.mismatch = "the declaration is pure but the definition is not";
    }
    if (result.mismatch.empty()) {
      learn();
      result.undeclared = undeclared();
    }
    return result;
  }

 private:
  std::string signatures() {
    const OpKind kind = a_.op(decl_).kind;
    for (const RegionSpec& spec : op_info(kind).regions) {
      const int mine = region_named(kind, spec.name);
      const int other = region_named(b_.op(def_).kind, spec.name);
      if (other < 0) return config_type();
      const RegionId a = a_.op_region(decl_, static_cast<unsigned>(mine));
      const RegionId b = b_.op_region(def_, static_cast<unsigned>(other));
      for (unsigned group = 0; group < 2; ++group) {
        const auto left = a_.arg_group(a, group);
        const auto right = b_.arg_group(b, group);
        if (left.size() != right.size()) {
          return counts(left.size(), right.size(), group_name(kind, spec.name, group == 1));
        }
        for (size_t i = 0; i < left.size(); ++i) names_.pair(left[i], right[i]);
      }
      for (size_t i = 0; i < a_.args(a).size(); ++i) {
        if (std::string text = argument(kind, spec.name, a, b, i); !text.empty()) return text;
      }
    }
    return {};
  }

  std::string argument(OpKind kind, std::string_view region, RegionId a, RegionId b, size_t i) {
    const TypeId left = a_.type_of(a_.args(a)[i]);
    const TypeId right = b_.type_of(b_.args(b)[i]);
    if (names_.same_type(left, right)) return {};
    const size_t split = a_.region(a).arg_split;
    std::string group(group_name(kind, region, i >= split));
    group.pop_back();
    return group + " " + std::to_string(i >= split ? i - split : i) + " has type " +
           type_text(a_, left) + " in the declaration but " + type_text(b_, right) +
           " in the definition";
  }

  // A definition of a configuration key states its type instead of a signature.
  std::string config_type() {
    const auto args = a_.args(a_.op_region(decl_, 0));
    const TypeId right = b_.attr(def_, attr_slot(OpKind::ConfigDef, "type")).type();
    if (args.empty() || names_.same_type(a_.type_of(args[0]), right)) return {};
    return "the declaration has type " + type_text(a_, a_.type_of(args[0])) +
           " but the definition " + type_text(b_, right);
  }

  // What the declaration's predicates with literal bounds say about its own values.
  void learn() {
    for (const Predicate& known : where_predicates(a_, decl_)) {
      const ValueId value = known.args[0].value;
      IntFacts args[3] = {facts_of(value), {}, {}};
      bool literal = value.valid();
      for (unsigned i = 1; i < known.arity(); ++i) {
        literal &= !known.args[i].is_value();
        args[i] = IntFacts::exactly(known.args[i].literal);
      }
      if (!literal) continue;
      refine(known.kind, args);
      facts_[value.index()] = args[0];
    }
  }
  IntFacts facts_of(ValueId value) const {
    if (!value.valid()) return {};
    if (const auto found = facts_.find(value.index()); found != facts_.end()) return found->second;
    return IntFacts::of(IntDomain::of(a_.types[a_.type_of(value)].element));
  }

  bool implied(const Predicate& wanted) const {
    const auto known = where_predicates(a_, decl_);
    if (std::ranges::find(known, wanted) != known.end()) return true;
    IntFacts args[3];
    for (unsigned i = 0; i < wanted.arity(); ++i) {
      args[i] = wanted.args[i].is_value() ? facts_of(wanted.args[i].value)
                                          : IntFacts::exactly(wanted.args[i].literal);
    }
    return holds(wanted.kind, args) == true;
  }

  // Whether the predicate speaks about the arguments only. One about a result is a promise of the
  // definition, not a demand.
  bool is_precondition(const Predicate& predicate) const {
    const int results = region_named(b_.op(def_).kind, "results");
    if (results < 0) return true;
    const auto args = b_.args(b_.op_region(def_, static_cast<unsigned>(results)));
    return std::ranges::none_of(std::span(predicate.args, predicate.arity()), [&](auto& arg) {
      return arg.is_value() && std::ranges::find(args, arg.value) != args.end();
    });
  }

  std::string undeclared() const {
    std::string list;
    for (const Predicate& demand : where_predicates(b_, def_)) {
      if (!is_precondition(demand)) continue;
      Predicate wanted = demand;
      bool named = true;
      for (unsigned i = 0; i < wanted.arity(); ++i) {
        if (!wanted.args[i].is_value()) continue;
        wanted.args[i].value = names_.to_a(demand.args[i].value);
        named &= wanted.args[i].value.valid();
      }
      if (named && implied(wanted)) continue;
      if (!list.empty()) list += ", ";
      list += predicate_text(b_, demand);
    }
    return list;
  }

  const Module& a_;
  const Module& b_;
  OpId decl_;
  OpId def_;
  Renaming names_;
  std::unordered_map<uint32_t, IntFacts> facts_;  // by value of the declaration
};

}  // namespace

ContractMatch match_contract(const Module& declaring, OpId declaration, const Module& defining,
                             OpId definition) {
  return Matcher(declaring, declaration, defining, definition).match();
}

}  // namespace loom
