// Modules that no text can spell, as a damaged bytecode file would give them. What text can reach
// is in tests/fixtures/verify.
#include "loom/dialect/verify.h"

#include <gtest/gtest.h>

#include <set>

#include "loom/dialect/access.h"
#include "loom/dialect/op_info.h"

namespace loom {
namespace {

using enum OpKind;

// Builds functions and kernels by hand.
class Builder {
 public:
  SourceFiles files;
  Module module{files};

  TypeId index() const { return TypeStore::scalar(ScalarKind::Index); }
  TypeId f32() const { return TypeStore::scalar(ScalarKind::F32); }
  TypeId buffer() const { return module.types.opaque(TypeKind::Buffer); }
  StringId word(std::string_view text) { return module.strings.intern(text); }

  AttrId attr(const Attr& value) { return module.attrs.intern(value); }
  // One slot for each attribute of the row; the named ones are set.
  std::vector<AttrId> attrs(OpKind kind,
                            std::initializer_list<std::pair<std::string_view, Attr>> set) {
    const OpInfo& info = op_info(kind);
    std::vector<AttrId> slots(info.attrs.size());
    for (const auto& [name, value] : set) {
      for (size_t i = 0; i < slots.size(); ++i) {
        if (info.attrs[i].name == name) slots[i] = attr(value);
      }
    }
    return slots;
  }
  OpId op(RegionId region, const Module::NewOp& request) {
    const OpId id = module.create(request);
    module.append(region, id);
    return id;
  }
  // A function without parameters; returns its body, which ends without a terminator.
  RegionId function(std::string_view name) {
    const auto slots = attrs(FuncDef, {{"name", Attr::symbol(word(name))}});
    const OpId id = op(module.body(), {.kind = FuncDef, .attrs = slots, .regions = 2});
    module.define_symbol(word(name), id);
    const RegionId body = module.op_region(id, region_slot(FuncDef, "body"));
    module.region(body).has_body = true;
    return body;
  }
  ValueId constant(RegionId region, int64_t value) {
    const auto slots = attrs(IndexConstant, {{"value", Attr::integer(value)}});
    const TypeId types[] = {index()};
    return module.result(op(region, {.kind = IndexConstant, .results = types, .attrs = slots}));
  }
  void finish(RegionId region) {
    const uint32_t none[] = {0};
    op(region, {.kind = FuncReturn, .groups = none});
  }
  std::vector<std::string> errors() {
    Diagnostics diagnostics(100);
    const bool valid = verify_module(module, diagnostics);
    EXPECT_EQ(valid, !diagnostics.has_errors());
    std::vector<std::string> codes;
    for (const Diagnostic& found : diagnostics.all()) {
      codes.push_back(diag_code(found.id));
      EXPECT_EQ(found.message().find('{'), std::string::npos) << found.message();
    }
    return codes;
  }
};

using Codes = std::vector<std::string>;

TEST(Verify, AcceptsWhatTheBuilderBuilds) {
  Builder b;
  const RegionId body = b.function("f");
  const ValueId operands[] = {b.constant(body, 1), b.constant(body, 2)};
  const TypeId types[] = {b.index()};
  b.op(body, {.kind = IndexAdd, .operands = operands, .results = types});
  b.finish(body);
  EXPECT_EQ(b.errors(), Codes{});
}

TEST(Verify, UnknownOperationKind) {
  Builder b;
  const RegionId body = b.function("f");
  b.op(body, {.kind = static_cast<OpKind>(kOpKindCount)});
  b.op(b.module.body(), {.kind = static_cast<OpKind>(65535)});
  b.finish(body);
  EXPECT_EQ(b.errors(), (Codes{"STRUCTURE/009", "STRUCTURE/009"}));
}

TEST(Verify, OperandCountsAndGroups) {
  Builder b;
  const RegionId body = b.function("f");
  const ValueId one = b.constant(body, 1);
  const TypeId types[] = {b.index()};
  const ValueId single[] = {one};
  b.op(body, {.kind = IndexAdd, .operands = single, .results = types});
  const ValueId three[] = {one, one, one};
  const uint32_t short_groups[] = {1, 1, 1, 0, 0};
  const uint32_t big_optional[] = {1, 1, 1, 0, 2, 0};
  const uint32_t overflowing[] = {1, 1, 1, 0xffffffffu, 1, 0};
  const auto loop = b.attrs(ScfFor, {});
  for (const std::span<const uint32_t> groups :
       {std::span<const uint32_t>(short_groups), std::span<const uint32_t>(big_optional),
        std::span<const uint32_t>(overflowing)}) {
    b.op(body, {.kind = ScfFor, .operands = three, .groups = groups, .attrs = loop, .regions = 1});
  }
  b.finish(body);
  EXPECT_EQ(b.errors(),
            (Codes{"STRUCTURE/001", "STRUCTURE/001", "STRUCTURE/001", "STRUCTURE/001"}));
}

TEST(Verify, ResultAndRegionCounts) {
  Builder b;
  const RegionId body = b.function("f");
  const ValueId one = b.constant(body, 1);
  const ValueId operands[] = {one, one};
  const TypeId types[] = {b.index(), b.index()};
  b.op(body, {.kind = IndexAdd, .operands = operands, .results = types});
  b.op(body, {.kind = IndexAdd, .operands = operands});
  b.op(
      body,
      {.kind = IndexAdd, .operands = operands, .results = std::span(types).first(1), .regions = 1});
  b.op(b.module.body(), {.kind = FuncDef});
  b.finish(body);
  EXPECT_EQ(b.errors(),
            (Codes{"STRUCTURE/003", "STRUCTURE/002", "STRUCTURE/002", "STRUCTURE/003"}));
}

TEST(Verify, BodiesWhereTheRowHasNone) {
  Builder b;
  const auto slots = b.attrs(FuncDecl, {{"name", Attr::symbol(b.word("f"))}});
  const OpId id = b.op(b.module.body(), {.kind = FuncDecl, .attrs = slots, .regions = 2});
  b.module.region(b.module.op_region(id, 0)).has_body = true;
  const RegionId body = b.function("g");
  const ValueId condition[] = {b.constant(body, 1)};
  b.op(body, {.kind = ScfIf, .operands = condition, .regions = 2});  // without a `then` body
  b.finish(body);
  EXPECT_EQ(b.errors(), (Codes{"STRUCTURE/003", "STRUCTURE/003"}));
}

TEST(Verify, ArgumentsWhereTheRowHasNone) {
  Builder b;
  const RegionId body = b.function("f");
  const ValueId condition[] = {b.constant(body, 1)};
  const OpId branch = b.op(body, {.kind = ScfIf, .operands = condition, .regions = 2});
  b.module.region(b.module.op_region(branch, 0)).has_body = true;
  b.module.add_arg(b.module.op_region(branch, 0), b.index(), b.word("x"));
  b.finish(body);
  EXPECT_EQ(b.errors(), Codes{"STRUCTURE/013"});
}

TEST(Verify, AttributeSlotsKindsAndRanges) {
  Builder b;
  const RegionId body = b.function("f");
  const ValueId one = b.constant(body, 1);
  const ValueId operands[] = {one, one};
  const TypeId types[] = {TypeStore::scalar(ScalarKind::I1)};
  const auto compare = [&](std::span<const AttrId> slots) {
    b.op(body, {.kind = IndexCmp, .operands = operands, .results = types, .attrs = slots});
  };
  compare({});                                                    // no slot
  compare(b.attrs(IndexCmp, {}));                                 // required, absent
  compare(b.attrs(IndexCmp, {{"predicate", Attr::integer(0)}}));  // wrong kind
  compare(b.attrs(IndexCmp, {{"predicate", Attr::enumeration(10)}}));
  compare(b.attrs(IndexCmp, {{"predicate", Attr::enumeration(9)}}));
  b.finish(body);
  EXPECT_EQ(b.errors(), (Codes{"TYPE/005", "TYPE/005", "TYPE/005", "STRUCTURE/010"}));
}

TEST(Verify, FlagsBeyondTheSet) {
  Builder b;
  const RegionId body = b.function("f");
  const auto literal = b.attrs(ScalarConstant, {{"value", Attr::floating(1.0)}});
  const TypeId types[] = {b.f32()};
  const ValueId x =
      b.module.result(b.op(body, {.kind = ScalarConstant, .results = types, .attrs = literal}));
  const ValueId operands[] = {x, x};
  for (const uint64_t mask : {uint64_t{127}, uint64_t{128}}) {
    const auto slots = b.attrs(ScalarAddF, {{"flags", Attr::flags(mask)}});
    b.op(body, {.kind = ScalarAddF, .operands = operands, .results = types, .attrs = slots});
  }
  b.finish(body);
  EXPECT_EQ(b.errors(), Codes{"STRUCTURE/010"});
}

TEST(Verify, IndexListsMatchTheirOperands) {
  Builder b;
  const RegionId body = b.function("f");
  const Dim dims[] = {Dim::fixed(4)};
  const TypeId view =
      b.module.types.intern({.kind = TypeKind::View, .element = ScalarKind::F32, .dims = dims});
  const ValueId operands[] = {b.module.add_arg(body, view, b.word("v"))};
  const uint32_t groups[] = {1, 0};
  const int64_t places[] = {kDynamicIndex};
  const TypeId types[] = {b.f32()};
  const auto slots = b.attrs(ViewLoad, {{"static_index", Attr::int_list(places)}});
  b.op(
      body,
      {.kind = ViewLoad, .operands = operands, .groups = groups, .results = types, .attrs = slots});
  b.finish(body);
  EXPECT_EQ(b.errors(), Codes{"STRUCTURE/013"});
}

TEST(Verify, PredicatePayloads) {
  Builder b;
  const RegionId body = b.function("f");
  const ValueId one = b.constant(body, 1);
  const ValueId operands[] = {one};
  const uint32_t groups[] = {1};
  const TypeId types[] = {b.index()};
  const auto assume = [&](const Predicate& predicate) {
    const auto slots =
        b.attrs(IndexAssume, {{"predicates", Attr::predicate_list({&predicate, 1})}});
    b.op(body, {.kind = IndexAssume,
                .operands = operands,
                .groups = groups,
                .results = types,
                .attrs = slots});
  };
  const auto value = PredicateArg::of(one);
  assume({PredicateKind::Pow2, {value, PredicateArg::of(8), {}}});
  assume({PredicateKind::Mul, {value, PredicateArg::of(8), {}}});
  b.finish(body);
  EXPECT_EQ(b.errors(), Codes{"STRUCTURE/021"});
}

TEST(Verify, UsesThatTheirDefinitionDoesNotDominate) {
  Builder b;
  const RegionId body = b.function("f");
  const RegionId other = b.function("g");
  const ValueId foreign = b.constant(other, 1);
  const ValueId operands[] = {foreign, foreign};
  const TypeId types[] = {b.index()};
  const OpId sum = b.op(body, {.kind = IndexAdd, .operands = operands, .results = types});
  b.module.set_operand(sum, 0, b.module.result(sum));                      // itself
  b.module.set_operand(sum, 1, b.constant(body, 2));                       // later
  b.op(body, {.kind = IndexAdd, .operands = operands, .results = types});  // another function's
  b.finish(body);
  b.finish(other);
  EXPECT_EQ(b.errors(),
            (Codes{"DOMINANCE/001", "DOMINANCE/001", "DOMINANCE/001", "DOMINANCE/001"}));
}

TEST(Verify, AssumptionsNeedOperandsAndResultsAlike) {
  Builder b;
  const RegionId body = b.function("f");
  const uint32_t none[] = {0};
  const auto slots = b.attrs(IndexAssume, {{"predicates", Attr::predicate_list({})}});
  b.op(body, {.kind = IndexAssume, .groups = none, .attrs = slots});
  const ValueId operands[] = {b.constant(body, 1)};
  const uint32_t one[] = {1};
  const TypeId types[] = {b.index(), b.index()};
  b.op(
      body,
      {.kind = IndexAssume, .operands = operands, .groups = one, .results = types, .attrs = slots});
  const TypeId offset[] = {TypeStore::scalar(ScalarKind::Offset)};
  b.op(body, {.kind = IndexAssume,
              .operands = operands,
              .groups = one,
              .results = offset,
              .attrs = slots});
  b.finish(body);
  EXPECT_EQ(b.errors(), (Codes{"STRUCTURE/001", "STRUCTURE/013", "TYPE/001"}));
}

TEST(Verify, LoopsWithoutTheirArguments) {
  Builder b;
  const RegionId body = b.function("f");
  const ValueId one = b.constant(body, 1);
  const ValueId operands[] = {one, one, one};
  const uint32_t groups[] = {1, 1, 1, 0, 0, 0};
  const auto slots = b.attrs(ScfFor, {});
  const auto loop = [&] {
    const OpId id = b.op(
        body,
        {.kind = ScfFor, .operands = operands, .groups = groups, .attrs = slots, .regions = 1});
    b.module.region(b.module.op_region(id, 0)).has_body = true;
    return b.module.op_region(id, 0);
  };
  loop();
  b.module.add_arg(loop(), TypeStore::scalar(ScalarKind::Offset), b.word("i"));
  b.finish(body);
  EXPECT_EQ(b.errors(), (Codes{"STRUCTURE/013", "TYPE/001"}));
}

TEST(Verify, TwoOperationsOfOneName) {
  Builder b;
  b.finish(b.function("f"));
  b.finish(b.function("f"));
  EXPECT_EQ(b.errors(), Codes{"SYMBOL/005"});
}

TEST(Verify, DepthCostsNoStack) {
  Builder b;
  RegionId region = b.function("f");
  const RegionId body = region;
  const ValueId one = b.constant(region, 1);
  const ValueId operands[] = {one, one, one};
  const uint32_t groups[] = {1, 1, 1, 0, 0, 0};
  const auto slots = b.attrs(ScfFor, {});
  for (int depth = 0; depth < 100000; ++depth) {
    const OpId loop = b.op(
        region,
        {.kind = ScfFor, .operands = operands, .groups = groups, .attrs = slots, .regions = 1});
    region = b.module.op_region(loop, 0);
    b.module.region(region).has_body = true;
    b.module.add_arg(region, b.index(), b.word("i"));
  }
  b.finish(body);
  EXPECT_EQ(b.errors(), Codes{});
}

TEST(Verify, StopsAtTheLimitAndReportsFailure) {
  Builder b;
  const RegionId body = b.function("f");
  for (int i = 0; i < 50; ++i) b.op(body, {.kind = IndexAdd});
  Diagnostics diagnostics(20);
  EXPECT_FALSE(verify_module(b.module, diagnostics));
  EXPECT_EQ(diagnostics.error_count(), 20u);
  EXPECT_FALSE(verify_module(b.module, diagnostics));
}

}  // namespace
}  // namespace loom
