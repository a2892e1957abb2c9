#include "loom/pass/specialize.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/facts/int_facts.h"
#include "loom/ir/ir_text.h"

namespace loom {
namespace {

class Binder {
 public:
  Binder(PassContext& context, OpId root, ValueId arg, int64_t value)
      : module_(context.module()),
        diagnostics_(context.diagnostics()),
        root_(root),
        arg_(arg),
        value_(value) {}

  bool run() {
    const TypeId type = module_.type_of(arg_);
    const IntDomain domain = IntDomain::of(module_.types[type].element);
    if (value_ < domain.lo || value_ > domain.hi) return contradicts(type_text(module_, type));
    const auto predicates = where_predicates(module_, root_);
    for (const Predicate& predicate : predicates) {
      if (violated(predicate)) return contradicts(predicate_text(module_, predicate));
    }
    const Predicate fixed = {PredicateKind::Eq, {PredicateArg::of(arg_), PredicateArg::of(value_)}};
    std::vector<Predicate> all(predicates.begin(), predicates.end());
    if (std::ranges::find(all, fixed) != all.end()) return true;
    all.push_back(fixed);
    const int slot = op_info(module_.op(root_).kind).where_slot;
    module_.set_attr(root_, static_cast<unsigned>(slot),
                     module_.attrs.intern(Attr::predicate_list(all)));
    return true;
  }

 private:
  // The new value, a value that another `eq` fixes, or what the type says.
  IntFacts facts_of(const PredicateArg& arg) const {
    if (!arg.is_value()) return IntFacts::exactly(arg.literal);
    if (arg.value == arg_) return IntFacts::exactly(value_);
    for (const Predicate& predicate : where_predicates(module_, root_)) {
      const bool fixes = predicate.kind == PredicateKind::Eq &&
                         predicate.args[0].value == arg.value && !predicate.args[1].is_value();
      if (fixes) return IntFacts::exactly(predicate.args[1].literal);
    }
    const Type& type = module_.types[module_.type_of(arg.value)];
    return IntFacts::of(IntDomain::of(type.element));
  }

  bool violated(const Predicate& predicate) const {
    if (predicate_info(predicate.kind).on_float) return false;
    IntFacts args[3];
    for (unsigned i = 0; i < predicate.arity(); ++i) args[i] = facts_of(predicate.args[i]);
    return holds(predicate.kind, args) == false;
  }

  bool contradicts(std::string contract) {
    diagnostics_.emit(
        Diag::TypeContract, module_.location(root_),
        {{"subject", fmt::format("value {} of {} of '@{}'", value_, value_name_text(module_, arg_),
                                 symbol_text(module_, root_))},
         {"contract", std::move(contract)},
         {"repair", "choose a value that satisfies it"}});
    return false;
  }

  Module& module_;
  Diagnostics& diagnostics_;
  const OpId root_;
  const ValueId arg_;
  const int64_t value_;
};

}  // namespace

bool bind_value(PassContext& context, OpId root, ValueId arg, int64_t value) {
  return Binder(context, root, arg, value).run();
}

}  // namespace loom
