// Whatever the fact analysis says about a place is true whenever execution gets there: random
// programs with contracts, branches and loops are run on every small input.
#include <gtest/gtest.h>

#include <random>

#include "loom/dialect/eval.h"
#include "loom/pass/analysis.h"
#include "pass_harness.h"

namespace loom {
namespace {

using enum OpKind;

// Text of a function over three small arguments.
class ProgramText {
 public:
  explicit ProgramText(uint32_t seed) : random_(seed) {}

  std::string make() {
    for (const char* arg : {"a", "b", "c"}) numbers_.emplace_back(arg);
    for (int i = -1; i <= 4; ++i) {
      const std::string name = fresh();
      line(name + " = index.constant " + std::to_string(i) + " : index");
      numbers_.push_back(name.substr(1));
    }
    block(3);
    const char* contracts[] = {"", "lt(%a, %b)", "range(%c, 0, %a), mul(%a, 2)",
                               "le(%a, %b), gt(%c, %b)", "ne(%a, %b), eq(%b, %c)"};
    return "func.def @f(%a: index, %b: index, %c: index) where [range(%a, -2, 3), "
           "range(%b, -2, 3), range(%c, -2, 3)" +
           std::string(roll(2) == 0 ? "" : ", ") + "@@" + contracts[roll(5)] + "] {\n" + text_ +
           "func.return\n}\n";
  }

 private:
  uint32_t roll(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  std::string fresh() { return "%v" + std::to_string(count_++); }
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string number() { return "%" + numbers_[roll(static_cast<uint32_t>(numbers_.size()))]; }

  std::string condition(unsigned depth) {
    const std::string name = fresh();
    const char* compares[] = {"eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"};
    if (depth != 0 && roll(3) == 0) {
      const std::string a = condition(depth - 1), b = condition(depth - 1);
      const char* ops[] = {"andi", "ori", "xori"};
      line(name + " = scalar." + ops[roll(3)] + " " + a + ", " + b + " : i1");
    } else {
      line(name + " = index.cmp " + compares[roll(10)] + ", " + number() + ", " + number() +
           " : index");
    }
    return name;
  }

  void operation() {
    const std::string name = fresh();
    const char* ops[] = {"add", "sub", "mul", "min", "max", "div", "rem", "andi", "ori", "xori"};
    if (roll(12) == 0) {
      const std::string of = number();
      line(name + " = index.assume " + of + " [le(" + of + ", " + number() + ")] : index");
    } else if (roll(8) == 0) {
      line(name + " = index.madd " + number() + ", " + number() + ", " + number() + " : index");
    } else {
      line(name + " = index." + ops[roll(10)] + " " + number() + ", " + number() + " : index");
    }
    numbers_.push_back(name.substr(1));
  }

  void block(unsigned depth) {
    const size_t visible = numbers_.size();
    for (unsigned i = 0; i < 4; ++i) {
      operation();
      if (depth == 0 || roll(3) != 0) continue;
      if (roll(3) == 0) {
        line("scf.for " + loop_variable() + " = [" + number() + " to " + number() + " step %v2] {");
        numbers_.push_back("i" + std::to_string(loops_ - 1));
        block(depth - 1);
        numbers_.pop_back();
      } else {
        const std::string c = condition(2);
        line("scf.if " + c + " {");
        block(depth - 1);
        line("} else {");
        block(depth - 1);
      }
      line("}");
    }
    numbers_.resize(visible);
  }
  std::string loop_variable() { return "%i" + std::to_string(loops_++); }

  std::mt19937 random_;
  std::vector<std::string> numbers_;
  std::string text_;
  unsigned count_ = 0, loops_ = 0;
};

// Runs a program and holds every claim against it.
class Judge {
 public:
  Judge(const Module& module, OpId root, uint32_t seed)
      : module_(module), root_(root), facts_(module, root), random_(seed) {}

  void run(const int64_t (&args)[3]) {
    values_.assign(module_.value_count(), std::nullopt);
    visible_.clear();
    steps_ = 0;
    const RegionId body = module_.op_region(root_, 0);
    for (unsigned i = 0; i < 3; ++i) bind(module_.args(body)[i], args[i]);
    for (const Predicate& predicate : where_predicates(module_, root_)) {
      if (!is_true(predicate)) return;
    }
    region(body);
  }
  size_t claims() const { return claims_; }
  size_t decided() const { return decided_; }

 private:
  void bind(ValueId value, int64_t number) {
    values_[value.index()] = number;
    visible_.push_back(value);
  }
  int64_t of(ValueId value) const { return *values_[value.index()]; }
  int64_t of(const PredicateArg& arg) const { return arg.is_value() ? of(arg.value) : arg.literal; }

  bool is_true(const Predicate& predicate) const {
    IntFacts args[3];
    for (unsigned i = 0; i < predicate.arity(); ++i) {
      args[i] = IntFacts::exactly(of(predicate.args[i]));
    }
    return holds(predicate.kind, args).value();
  }

  // False when the program violated a contract: nothing after it means anything.
  bool region(RegionId id) {
    const size_t visible = visible_.size();
    bool ok = true;
    for (OpId op = module_.region(id).first; op.valid() && ok; op = module_.op(op).next) {
      if (++steps_ > 3000) return false;
      judge(op);
      ok = execute(op) && !testing::Test::HasFatalFailure();
    }
    visible_.resize(visible);
    return ok;
  }

  bool execute(OpId op) {
    switch (module_.op(op).kind) {
      case FuncReturn:
      case ScfYield:
        return true;
      case ScfIf: {
        const bool yes = of(module_.operand(op, 0)) != 0;
        return region(module_.op_region(op, yes ? 0 : 1));
      }
      case ScfFor: {
        const RegionId body = module_.op_region(op, 0);
        const int64_t end = of(module_.operand(op, 1)), step = of(module_.operand(op, 2));
        for (int64_t i = of(module_.operand(op, 0)); i < end; i += step) {
          bind(module_.args(body)[0], i);
          const bool ok = region(body);
          visible_.pop_back();
          if (!ok) return false;
        }
        return true;
      }
      case IndexAssume:
        bind(module_.result(op), of(module_.operand(op, 0)));
        return is_true(module_.attr(op, 0).predicates[0]);
      default:
        break;
    }
    const ValueId result = module_.result(op);
    const ScalarKind kind = module_.types[module_.type_of(result)].element;
    if (const auto literal = module_.op(op).kind == IndexConstant
                                 ? from_literal(module_.attr(op, 0), kind)
                                 : std::nullopt) {
      bind(result, as_signed(*literal));
      return true;
    }
    std::vector<ScalarValue> operands;
    for (ValueId value : module_.operands(op)) {
      operands.push_back(from_bits(module_.types[module_.type_of(value)].element,
                                   static_cast<uint64_t>(of(value))));
    }
    ScalarValue value;
    const EvalAttrs attrs = module_.op(op).attr_count != 0 ? eval_attrs(module_, op) : EvalAttrs{};
    if (evaluate(module_.op(op).kind, attrs, operands, kind, value) != EvalStatus::Ok) return false;
    bind(result, kind == ScalarKind::I1 ? static_cast<int64_t>(value.bits) : as_signed(value));
    return true;
  }

  void judge(OpId op) {
    for (int i = 0; i < 4; ++i) {
      const ValueId a = visible_[random_() % visible_.size()];
      const ValueId b = visible_[random_() % visible_.size()];
      const IntFacts known = facts_.at(op, a);
      ASSERT_TRUE(known.contains(of(a)))
          << module_.name_of(a) << " = " << of(a) << " is not in " << to_text(known);
      if (module_.type_of(a) != module_.type_of(b)) continue;
      const auto compare = static_cast<Compare>(random_() % 10);
      const auto claim = facts_.compare(compare, a, b, op);
      ++claims_;
      if (!claim) continue;
      ++decided_;
      const auto truth = loom::compare(compare, IntFacts::exactly(of(a)), IntFacts::exactly(of(b)));
      ASSERT_EQ(claim, truth) << module_.name_of(a) << " = " << of(a) << ", " << module_.name_of(b)
                              << " = " << of(b) << " by relation " << static_cast<int>(compare)
                              << " on line " << module_.location(op).line;
    }
  }

  const Module& module_;
  const OpId root_;
  FactAnalysis facts_;
  std::mt19937 random_;
  std::vector<std::optional<int64_t>> values_;
  std::vector<ValueId> visible_;
  unsigned steps_ = 0;
  size_t claims_ = 0, decided_ = 0;
};

TEST(FactsDifferential, EveryClaimHoldsInEveryExecution) {
  size_t claims = 0, decided = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::string text = ProgramText(seed).make();
    // The contract list joins with or without a further part.
    const size_t mark = text.find("@@");
    const bool joined = text.substr(mark - 2, 2) == ", ";
    const bool empty = text[mark + 2] == ']';
    if (joined && empty) text.erase(mark - 2, 2);
    if (!joined && !empty) text.insert(mark, ", ");
    text.erase(text.find("@@"), 2);
    TestModule test(text);
    ASSERT_TRUE(test.module) << text << test.report();
    SCOPED_TRACE(text);
    Judge judge(*test.module, test.roots()[0], seed);
    for (int64_t a = -2; a <= 3; ++a) {
      for (int64_t b = -2; b <= 3; ++b) {
        for (int64_t c = -2; c <= 3; ++c) {
          judge.run({a, b, c});
          if (HasFatalFailure()) return;
        }
      }
    }
    claims += judge.claims();
    decided += judge.decided();
  }
  // The analysis does decide things.
  EXPECT_GT(decided * 3, claims);
}

}  // namespace
}  // namespace loom
