// Functions: values, control, checks of single operations.
#include "example.h"
#include "interp_harness.h"

namespace loom {
namespace {

// Runs the calls in the comments of a module.
void run_calls(const std::string& text, const InterpOptions& options = {}) {
  test::Source source(text);
  if (!source.module) return;
  const auto calls = test::example_calls(text);
  EXPECT_FALSE(calls.empty());
  for (const std::string& call : calls) {
    EXPECT_EQ(test::check_example(*source.module, call, options), "") << call;
  }
}

TEST(Function, ScalarsFollowTheLanguage) {
  run_calls(R"(// @quotient(7, -2) = (-3, 1)
// @quotient(1, 0) fails: RUN/025
// @quotient(-2147483648, -1) fails: RUN/025
func.def @quotient(%a: i32, %b: i32) -> (i32, i32) {
  %q = scalar.divsi %a, %b : i32
  %r = scalar.remsi %a, %b : i32
  func.return %q, %r : i32, i32
}

// @promise(1, 2) = 3
// @promise(127, 1) fails: RUN/025
func.def @promise(%a: i8, %b: i8) -> (i8) {
  %s = scalar.addi<nsw> %a, %b : i8
  func.return %s : i8
}

// @shift(1, 7) = -128
// @shift(1, 8) fails: RUN/025
func.def @shift(%a: i8, %b: i8) -> (i8) {
  %s = scalar.shli %a, %b : i8
  func.return %s : i8
}

// @below(4, 4) = 0
// @below(4, 5) fails: RUN/025
func.def @below(%a: offset, %b: offset) -> (offset) {
  %d = index.sub %a, %b : offset
  func.return %d : offset
}

// @narrow(1000.0) = 448.0
// @narrow(nan) = nan
func.def @narrow(%a: f32) -> (f8E4M3) {
  %r = scalar.fptrunc %a : f32 to f8E4M3
  func.return %r : f8E4M3
}
)");
}

TEST(Function, VectorsBeyondMemoryAreRefused) {
  run_calls(R"(// @square(3, 1.0) = 1.0
// @square(9223372036854775807, 1.0) fails: RUN/013
// @square(4294967296, 1.0) fails: RUN/013
// @square(100000, 1.0) fails: RUN/013
func.def @square(%n: index, %x: f32) -> (f32) {
  %v = vector.splat %x : vector<[%n]x[%n]xf32>
  %zero = index.constant 0 : index
  %r = vector.extract %v[%zero, %zero] : vector<[%n]x[%n]xf32> -> f32
  func.return %r : f32
}

// @fixed(1.0) fails: RUN/013
func.def @fixed(%x: f32) -> (f32) {
  %v = vector.splat %x : vector<4294967296x4294967296xf32>
  %r = vector.extract %v[0, 0] : vector<4294967296x4294967296xf32> -> f32
  func.return %r : f32
}

// @none(1.0) = 0.0
func.def @none(%x: f32) -> (f32) {
  %v = vector.splat %x : vector<4294967296x4294967296x0xf32>
  %zero = scalar.constant 0.0 : f32
  %r = vector.reduce<addf> %v, %zero : vector<4294967296x4294967296x0xf32>, f32
  func.return %r : f32
}
)");
}

TEST(Function, ControlFlowRunsAsWritten) {
  run_calls(R"(// @sum(0) = 0
// @sum(5) = 10
func.def @sum(%n: index) -> (index) {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %r = scf.for %i = [%zero to %n step %one](%s = %zero : index) -> (index) {
    %next = index.add %s, %i : index
    scf.yield %next : index
  }
  func.return %r : index
}

// @fibonacci(10) = 55
func.def @fibonacci(%n: index) -> (index) {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %r, %other = scf.for %i = [%zero to %n step %one](%a = %zero : index, %b = %one : index) -> (index, index) {
    %c = index.add %a, %b : index
    scf.yield %b, %c : index, index
  }
  func.return %r : index
}

// @stuck(1, 0) fails: RUN/025
func.def @stuck(%n: index, %step: index) -> (index) {
  %zero = index.constant 0 : index
  %r = scf.for %i = [%zero to %n step %step](%s = %zero : index) -> (index) {
    scf.yield %s : index
  }
  func.return %r : index
}

// @collatz(6) = 8
func.def @collatz(%n: index) -> (index) {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %two = index.constant 2 : index
  %three = index.constant 3 : index
  %last, %steps = scf.while(%x = %n : index, %k = %zero : index) -> (index, index) {
    %more = index.cmp ne, %x, %one : index
    scf.condition %more, %x, %k : i1, index, index
  } do(%y: index, %j: index) {
    %bit = index.andi %y, %one : index
    %odd = index.cmp eq, %bit, %one : index
    %half = index.shrui %y, %one : index
    %up = index.madd %y, %three, %one : index
    %next = scf.select %odd, %up, %half : index
    %count = index.add %j, %one : index
    scf.yield %next, %count : index, index
  }
  func.return %steps : index
}

// @name(0) = 10
// @name(7) = 70
// @name(5) = 99
func.def @name(%s: index) -> (index) {
  %a = index.constant 10 : index
  %b = index.constant 70 : index
  %c = index.constant 99 : index
  %r = scf.switch %s -> (index) {
    case 0 {
      scf.yield %a : index
    }
    case 7 {
      scf.yield %b : index
    }
    default {
      scf.yield %c : index
    }
  }
  func.return %r : index
}
)");
}

TEST(Function, ContractsAndAssumptionsAreChecked) {
  run_calls(R"(// @caller(3) = 6
// @caller(9) fails: RUN/026
// @caller(-1) fails: RUN/026
func.def @caller(%n: index) -> (index) {
  %r = func.call @callee(%n) : (index) -> (index)
  func.return %r : index
}

// @callee(4) = 8
// @callee(5) fails: RUN/026
// @callee(-1) fails: RUN/026
func.def @callee(%n: index) -> (%r: index) where [range(%n, 0, 8), le(%r, 9)] {
  %two = index.constant 2 : index
  %double = index.mul %n, %two : index
  func.return %double : index
}

// @assumed(8, 9) = 8
// @assumed(6, 9) fails: RUN/026
// @assumed(8, 7) fails: RUN/026
func.def @assumed(%n: index, %m: index) -> (index) {
  %a = index.assume %n [mul(%n, 4), lt(%n, %m)] : index
  func.return %a : index
}

// @number(1.0) = 1.0
// @number(nan) fails: RUN/026
func.def @number(%x: f32) -> (f32) {
  %a = scalar.assume %x [not_nan(%x)] : f32
  func.return %a : f32
}
)");
  InterpOptions unchecked;
  unchecked.check_promises = false;
  run_calls(R"(// @assumed(6) = 6
func.def @assumed(%n: index) -> (index) {
  %a = index.assume %n [mul(%n, 4)] : index
  func.return %a : index
}
)",
            unchecked);
}

constexpr std::string_view kMemory = R"(func.def @f(%i: index, %o: offset, %wide: i1) -> (f32) {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %bytes = index.constant 16 : offset
  %b = buffer.alloca<private> align(16) %bytes : buffer
  %v = buffer.view %b[%o] : buffer -> view<4xf32>
  %x = scalar.constant 2.5 : f32
  view.store %x, %v[%zero] : f32, view<4xf32>
  view.store %x, %v[%one] : f32, view<4xf32>
  %r = view.load %v[%i] : view<4xf32> -> f32
  func.return %r : f32
}
)";

TEST(Function, MemoryIsBoundedInitializedAndAligned) {
  run_calls(
      "// @f(1, 0, false) = 2.5\n// @f(1, 8, false) = 2.5\n"
      "// @f(4, 0, false) fails: RUN/019\n// @f(-1, 0, false) fails: RUN/019\n"
      "// @f(1, 12, false) fails: RUN/020\n// @f(2, 0, false) fails: RUN/021\n"
      "// @f(1, 2, false) fails: RUN/022\n" +
      std::string(kMemory));
  InterpOptions options;
  options.check_uninitialized = false;
  options.check_alignment = false;
  run_calls("// @f(2, 0, false) = 0.0\n// @f(1, 2, false) = 2.5\n" + std::string(kMemory), options);
}

TEST(Function, VectorsReachMemoryLaneByLane) {
  run_calls(R"(// @rows(0) = [1, 2, 3, 4]
// @rows(1) = [3, 4, 5, 6]
// @rows(2) fails: RUN/019
func.def @rows(%r: index) -> (vector<2x2xi32>) {
  %zero = index.constant 0 : index
  %bytes = index.constant 24 : offset
  %base = index.constant 0 : offset
  %b = buffer.alloca<private> align(16) %bytes : buffer
  %v = buffer.view %b[%base] : buffer -> view<3x2xi32>
  %one = scalar.constant 1 : i32
  %all = vector.iota %one step %one : vector<3x2xi32>
  vector.store %all, %v[0, 0] : vector<3x2xi32>, view<3x2xi32>
  %x = vector.load %v[%r, 0] : view<3x2xi32> -> vector<2x2xi32>
  func.return %x : vector<2x2xi32>
}

// @masked([true, false, true, false]) = [7, 9, 7, 9]
func.def @masked(%m: vector<4xi1>) -> (vector<4xi32>) {
  %bytes = index.constant 16 : offset
  %base = index.constant 0 : offset
  %b = buffer.alloca<private> align(16) %bytes : buffer
  %v = buffer.view %b[%base] : buffer -> view<4xi32>
  %seven = vector.constant 7 : vector<4xi32>
  %nine = vector.constant 9 : vector<4xi32>
  vector.store.mask %seven, %v[0], %m : vector<4xi32>, view<4xi32>, vector<4xi1>
  %x = vector.load.mask %v[0], %m, %nine : view<4xi32>, vector<4xi1>, vector<4xi32>
  func.return %x : vector<4xi32>
}

// @scattered([3, 0], 1) = [6, 0, 0, 5]
// @scattered([1, 1], 1) fails: RUN/025
// @scattered([4, 0], 1) fails: RUN/019
func.def @scattered(%o: vector<2xi32>, %x: i32) -> (vector<4xi32>) {
  %bytes = index.constant 16 : offset
  %base = index.constant 0 : offset
  %b = buffer.alloca<private> align(16) %bytes : buffer
  %v = buffer.view %b[%base] : buffer -> view<4xi32>
  %zero = vector.constant 0 : vector<4xi32>
  vector.store %zero, %v[0] : vector<4xi32>, view<4xi32>
  %five = scalar.constant 5 : i32
  %both = vector.iota %five step %x : vector<2xi32>
  vector.scatter %both, %v[0][%o] : vector<2xi32>, view<4xi32>, vector<2xi32>
  %r = vector.load %v[0] : view<4xi32> -> vector<4xi32>
  func.return %r : vector<4xi32>
}
)");
}

TEST(Function, AtomicsReturnWhatWasThere) {
  run_calls(R"(// @f(5) = (10, 15, 15, 1)
func.def @f(%x: i32) -> (i32, i32, i32, i32) {
  %bytes = index.constant 4 : offset
  %base = index.constant 0 : offset
  %b = buffer.alloca<private> align(4) %bytes : buffer
  %v = buffer.view %b[%base] : buffer -> view<1xi32>
  %ten = scalar.constant 10 : i32
  %one = scalar.constant 1 : i32
  view.atomic.store %ten, %v[0] {ordering = relaxed, scope = device} : i32, view<1xi32>
  %a = view.atomic.rmw<addi> %x, %v[0] {ordering = relaxed, scope = device} : i32, view<1xi32> -> i32
  %c = view.atomic.cmpxchg %ten, %one, %v[0] {failure_ordering = relaxed, scope = device, success_ordering = relaxed} : i32, view<1xi32> -> i32
  %d = view.atomic.cmpxchg %c, %one, %v[0] {failure_ordering = relaxed, scope = device, success_ordering = relaxed} : i32, view<1xi32> -> i32
  %e = view.atomic.load %v[0] {ordering = relaxed, scope = device} : view<1xi32> -> i32
  func.return %a, %c, %d, %e : i32, i32, i32, i32
}
)");
}

TEST(Function, TemplatesAreChosenByTheValues) {
  run_calls(R"(template.decl pure @scale(%n: index) -> (index)

template.def<@scale> pure @plain(%n: index) -> (index) {
  template.return %n : index
}

template.def<@scale> pure priority(2) @eights(%n: index) -> (index) where [mul(%n, 8)] {
  %two = index.constant 2 : index
  %r = index.mul %n, %two : index
  template.return %r : index
}

template.def<@scale> pure priority(2) @large(%n: index) -> (index) where [ge(%n, 100)] {
  %three = index.constant 3 : index
  %r = index.mul %n, %three : index
  template.return %r : index
}

// @f(3) = 3
// @f(16) = 32
// @f(101) = 303
// @f(104) fails: RUN/030
func.def @f(%n: index) -> (index) {
  %r = template.apply<@scale>(%n) pure : (index) -> (index)
  func.return %r : index
}

// @exact(16) = 32
// @exact(3) fails: RUN/026
func.def @exact(%n: index) -> (index) {
  %r = template.call pure @eights(%n) : (index) -> (index)
  func.return %r : index
}
)");
}

TEST(Function, WhatCannotBeRunSaysSo) {
  test::Source source(R"(func.decl @outside(%n: index) -> (index)

func.def @f(%n: index) -> (index) {
  %r = func.call @outside(%n) : (index) -> (index)
  func.return %r : index
}
)");
  EXPECT_EQ(test::check_example(*source.module, "@f(1) fails: RUN/031"), "");
  Diagnostics diagnostics;
  EXPECT_FALSE(run_function(*source.module, "g", {}, {}, diagnostics).has_value());
  EXPECT_FALSE(run_function(*source.module, "f", {}, {}, diagnostics).has_value());
  EXPECT_EQ(test::Source::report(diagnostics),
            "RUN/031 line 0: '@g' cannot be run: there is no such symbol\n"
            "RUN/031 line 3: '@f' cannot be run: it takes 1 arguments and not 0\n");
}

TEST(Function, NothingRunsForever) {
  test::Source source(R"(func.def @spin(%n: index) -> (index) {
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %r = scf.for %i = [%zero to %n step %one](%s = %zero : index) -> (index) {
    scf.yield %i : index
  }
  func.return %r : index
}

func.def @again(%n: index) -> (index) {
  %r = func.call @again(%n) : (index) -> (index)
  func.return %r : index
}
)");
  InterpOptions options;
  options.step_limit = 1000;
  EXPECT_EQ(test::check_example(*source.module, "@spin(400) = 399", options), "");
  EXPECT_EQ(test::check_example(*source.module, "@spin(4000) fails: RUN/029", options), "");
  options = {};
  options.call_limit = 5000;
  EXPECT_EQ(test::check_example(*source.module, "@again(1) fails: RUN/029", options), "");
}

TEST(Function, DeepNestingTakesNoStack) {
  constexpr int kDepth = 100000;
  std::string text =
      "func.def @f(%c: i1, %n: index) -> (index) {\n  %a0 = scf.if %c -> (index) {\n";
  for (int i = 1; i < kDepth; ++i) text += fmt::format("%a{} = scf.if %c -> (index) {{\n", i);
  text += "scf.yield %n : index\n";
  for (int i = kDepth; i-- > 0;) {
    text += fmt::format("}} else {{\nscf.yield %n : index\n}}\n");
    if (i != 0) text += fmt::format("scf.yield %a{} : index\n", i);
  }
  text += "func.return %a0 : index\n}\n";
  test::Source source(text);
  ASSERT_TRUE(source.module.has_value());
  EXPECT_EQ(test::check_example(*source.module, "@f(true, 7) = 7"), "");
  EXPECT_EQ(test::check_example(*source.module, "@f(false, 7) = 7"), "");
}

}  // namespace
}  // namespace loom
