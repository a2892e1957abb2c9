// What the parser reports, and where.
#include "loom/text/parser.h"

#include <gtest/gtest.h>

#include "loom/ir/walk.h"
#include "loom/text/text_test_util.h"

namespace loom {
namespace {

struct Case {
  std::string_view code;
  uint32_t line, column;
  std::string text;
};

std::string in_function(std::string_view body) {
  return "func.def @f(%a: f32, %i: index, %b: buffer, %c: i1) {\n" + std::string(body) +
         "\nfunc.return\n}\n";
}

std::string nested(size_t depth) {
  std::string text = "func.def export_metadata(";
  for (size_t i = 0; i < depth; ++i) text += "{a = ";
  text += "1";
  for (size_t i = 0; i < depth; ++i) text += "}";
  return text + ") @f() {\nfunc.return\n}\n";
}

std::vector<Case> cases() {
  return {
      {"PARSE/001", 2, 22, in_function("%x = scalar.addf %a, %nope : f32")},
      {"PARSE/001", 2, 31, in_function("%x = scalar.negf %a : view<4x[%q]xf32>")},
      {"PARSE/002", 3, 1, in_function("%x = scalar.negf %a : f32\n%x = scalar.negf %a : f32")},
      {"PARSE/002", 1, 23, "func.decl @f(%a: f32, %a: f32)"},
      {"PARSE/003", 2, 25, in_function("%x = scalar.addf %a, %a f32")},
      {"PARSE/003", 1, 1, "launch"},
      {"PARSE/003", 2, 1, "func.def @f() {\n"},
      {"PARSE/003", 1, 1, "}"},
      {"PARSE/004", 1, 23, "func.decl @f(%v: view<-4xf32>)"},
      {"PARSE/004", 1, 18, "func.decl @f(%v: view)"},
      {"PARSE/004", 1, 26, "func.decl @f(%v: vector<4, align(4)>)"},
      {"PARSE/004", 1, 36, "func.decl @f(%v: view<4xf32, align(0)>)"},
      {"PARSE/005", 1, 17, "func.def export(\"abc) @f()"},
      {"PARSE/006", 2, 6, in_function("%x = scalar.frob %a : f32")},
      {"PARSE/006", 2, 6, in_function("%x = cfg.addf %a : f32")},
      {"PARSE/006", 2, 6, in_function("%x = scalar.sinhf %a : f32")},
      {"PARSE/007", 1, 18, "func.decl @f(%v: i4)"},
      {"PARSE/007", 1, 25, "func.decl @f(%v: view<4xu8>)"},
      {"PARSE/008", 1, 30, "func.decl @f(%v: view<4xf32, #frob>)"},
      {"PARSE/009", 2, 1, in_function("scalar.negf %a : f32")},
      {"PARSE/009", 2, 1, in_function("%x, %y = scalar.negf %a : f32")},
      {"PARSE/010", 2, 21, in_function("%x = scalar.addf %a : f32")},
      {"PARSE/010", 2, 24, in_function("%x = scalar.addf %a, %a, %a : f32")},
      {"PARSE/010", 2, 25, in_function("func.call @f(%a, %a) : (f32)")},
      {"PARSE/011", 2, 27, in_function("%x = scalar.negf %a : f32 loc(%a)")},
      {"PARSE/013", 1, 32, "func.decl @f(%n: index) where [not(%n)]"},
      {"PARSE/014", 1, 1, "#alias : #dense"},
      {"PARSE/014", 1, 1, "#dense = #dense"},
      {"PARSE/015", 1, 17, "config.def @a = 12ab : index"},
      {"PARSE/015", 1, 17, "config.def @a = 9223372036854775808 : index"},
      {"PARSE/016", 1, 17, "config.def @a = 1.0e999 : f32"},
      {"PARSE/016", 1, 17, "config.def @a = 1. : f32"},
      {"PARSE/017", 2, 16, in_function("%x = index.cmp lesser, %i, %i : index")},
      {"PARSE/018", 2, 18, in_function("%x = scalar.addf<quick> %a, %a : f32")},
      {"PARSE/018", 1, 10, "func.def quick @f() {\n}"},
      {"PARSE/018", 2, 33, in_function("scf.for %k = [%i to %i step %i] enroll {\n}")},
      {"PARSE/019", 2, 4, "// a\n// \xff\n"},
      {"PARSE/020", 1, 34, "func.def export_metadata({a = 1, a = 2}) @f() {\n}"},
      {"PARSE/020", 2, 57,
       in_function("%r = buffer.assume.alignment %b {minimum_alignment = 4, minimum_alignment = 8} "
                   ": buffer")},
      {"PARSE/021", 1, 346, nested(65)},
      {"PARSE/022", 1, 44, "kernel.decl @k(%n: index) launch(%v: view<[%n]xf32>)"},
      {"PARSE/023", 1, 19, R"(func.def export("a\q") @f() {)"},
      {"PARSE/024", 2, 18, in_function("%x = scalar.negf % a : f32")},
      {"PARSE/024", 1, 30, "func.decl @f(%v: view<4xf32, #1>)"},
      {"PARSE/025", 2, 18, in_function("%x = scalar.negf ? : f32")},
      {"PARSE/026", 2, 17, in_function("%x = scalar.addf<fast %a, %a : f32")},
      {"PARSE/026", 1, 18, "func.decl @f(%v: view<4xf32)"},
      {"PARSE/028", 1, 66,
       "func.decl @f(%s: index, %v: view<4xf32, #encoding.storage<layout=%s>>)"},
      {"PARSE/029", 1, 53, "func.decl @f(%v: view<4xf32, #encoding.operand<a=1, a=2>>)"},
      {"PARSE/031", 1, 32, "func.decl @f(%n: index) where [eq(%n)]"},
      {"TYPE/001", 2, 27, in_function("%x = scalar.addf %a, %a : f16")},
      {"TYPE/005", 2, 34, in_function("%r = buffer.assume.alignment %b {alignment = 4} : buffer")},
      {"SYMBOL/005", 2, 11, "func.decl @f()\nfunc.decl @f()"},
  };
}

TEST(Parser, ReportsEachProblemAtItsPlace) {
  for (const Case& expected : cases()) {
    const Parsed parsed(expected.text);
    EXPECT_FALSE(parsed.module) << expected.text;
    ASSERT_EQ(parsed.diagnostics.all().size(), 1u) << expected.text << parsed.errors();
    const Diagnostic& found = parsed.diagnostics.all().front();
    EXPECT_EQ(diag_code(found.id), expected.code) << expected.text;
    EXPECT_EQ(found.location.line, expected.line) << parsed.errors();
    EXPECT_EQ(found.location.column, expected.column) << parsed.errors();
  }
}

// "PARSE/001@2 PARSE/003@5": codes with their lines.
std::string summary(const Parsed& parsed) {
  std::string out;
  for (const Diagnostic& diagnostic : parsed.diagnostics.all()) {
    if (!out.empty()) out += ' ';
    out += diag_code(diagnostic.id) + '@' + std::to_string(diagnostic.location.line);
  }
  return out;
}

TEST(Parser, RecoversAtTheNextOperation) {
  const Parsed parsed(R"(func.def @f(%a: f32, %c: i1) {
  %x = scalar.addf %a, %nope : f32
  %follows = scalar.negf %x : f32
  scf.if %c {
    %y = scalar.addf %a %a : f32
    %z = scalar.frob %a : f32
  } else {
    %w = scalar.addf %a, : f32
  }
  %v = scalar.negf %a :
  func.return
}
func.def quick @g(%a: f32) {
  scf.if %c {
  }
  func.return
}
func.decl @h(%t: i5)
)");
  EXPECT_EQ(summary(parsed),
            "PARSE/001@2 PARSE/003@5 PARSE/006@6 PARSE/003@8 PARSE/007@11 PARSE/018@13 "
            "PARSE/007@18");
}

TEST(Parser, CountsThatDoNotFitAreReported) {
  std::string names, types, args;
  for (int i = 0; i < 70000; ++i) {
    names += (i == 0 ? "%" : ", %") + std::to_string(i);
    types += i == 0 ? "f32" : ", f32";
    args += (i == 0 ? "%" : ", %") + std::to_string(i) + ": f32";
  }
  EXPECT_EQ(summary(Parsed(in_function(names + " = func.call @f() : () -> (" + types + ")"))),
            "PARSE/010@2");
  EXPECT_EQ(summary(Parsed("func.decl @f(" + args + ")")), "PARSE/010@1");
}

TEST(Parser, StopsAfterTwentyErrors) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += "scalar.frob\n";
  const Parsed parsed(text);
  ASSERT_EQ(parsed.diagnostics.all().size(), 21u);
  EXPECT_EQ(diag_code(parsed.diagnostics.all().back().id), "PARSE/012");
}

TEST(Parser, DialectsOfTheLanguageAreNotUnknownOperations) {
  const Parsed parsed("%x = cfg.addf %a : f32\nnonsense.op\nscf.schedule.fence\n");
  ASSERT_EQ(parsed.diagnostics.all().size(), 3u);
  EXPECT_EQ(parsed.diagnostics.all()[0].id, Diag::ParseUnsupportedDialect);
  EXPECT_EQ(parsed.diagnostics.all()[0].param("dialect"), "cfg");
  EXPECT_EQ(parsed.diagnostics.all()[1].id, Diag::ParseUnknownOp);
  EXPECT_EQ(parsed.diagnostics.all()[2].id, Diag::ParseLaterOp);
}

// Every operation that the reference lists for a later tier is read or refused for what it is.
TEST(Parser, OperationsOfLaterTiersAreRecognizedByName) {
  constexpr std::string_view kNames[] = {"scalar.sinhf",
                                         "scalar.coshf",
                                         "scalar.asinhf",
                                         "scalar.acoshf",
                                         "scalar.atanhf",
                                         "vector.table.quantize",
                                         "vector.transform",
                                         "vector.load.expand",
                                         "vector.store.compress",
                                         "vector.sinhf",
                                         "vector.coshf",
                                         "vector.asinhf",
                                         "vector.acoshf",
                                         "vector.atanhf",
                                         "buffer.fence",
                                         "buffer.fill",
                                         "buffer.copy",
                                         "buffer.load.i8.u",
                                         "buffer.store.i8",
                                         "scf.schedule.fence",
                                         "func.null",
                                         "func.compare.null",
                                         "func.address",
                                         "func.call.indirect",
                                         "func.ref.cast",
                                         "func.template",
                                         "func.ukernel",
                                         "func.apply",
                                         "func.provider.decl",
                                         "kernel.cluster.id",
                                         "kernel.cluster.workgroup.id",
                                         "kernel.cluster.workgroup.flat_id",
                                         "kernel.cluster.size",
                                         "kernel.cluster.count",
                                         "kernel.async.cluster.gather",
                                         "kernel.async.cluster.gather.mask",
                                         "kernel.tensor.lds.descriptor",
                                         "kernel.async.tensor.load.to.lds",
                                         "kernel.async.tensor.store.from.lds",
                                         "kernel.launch.serial",
                                         "kernel.launch.concurrent",
                                         "kernel.launch.yield",
                                         "amdgpu.target",
                                         "global.constant",
                                         "global.variable",
                                         "global.rodata.def",
                                         "global.rodata.decl",
                                         "global.load",
                                         "global.store",
                                         "encoding.assume.spec",
                                         "encoding.assume.match",
                                         "encoding.matches",
                                         "encoding.layout.assume.dense",
                                         "encoding.layout.assume.strided",
                                         "sanitizer.assert.accesses",
                                         "sanitizer.race.access",
                                         "sanitizer.race.sync"};
  size_t refused = 0;
  for (const std::string_view name : kNames) {
    const Parsed parsed(std::string(name) + "\n");
    for (const Diagnostic& diagnostic : parsed.diagnostics.all()) {
      EXPECT_NE(diagnostic.id, Diag::ParseUnknownOp) << name;
      EXPECT_NE(diagnostic.id, Diag::ParseUnsupportedDialect) << name;
      refused += diagnostic.id == Diag::ParseLaterOp && diagnostic.param("name") == name;
    }
  }
  // The others are read: schedule regions of older programs, implementations with string keys.
  EXPECT_EQ(refused, 50u);
  constexpr std::string_view kDialects[] = {
      "cfg",      "low",  "llvmir",   "cmd",  "hal",    "vm",    "group", "tile",
      "pipeline", "pass", "metadata", "test", "amdgpu", "spirv", "wasm",  "xdna"};
  for (const std::string_view dialect : kDialects) {
    const Parsed parsed(std::string(dialect) + ".operation\n");
    ASSERT_EQ(parsed.diagnostics.all().size(), 1u) << dialect;
    EXPECT_EQ(parsed.diagnostics.all()[0].id, Diag::ParseUnsupportedDialect) << dialect;
    EXPECT_EQ(parsed.diagnostics.all()[0].param("dialect"), dialect);
  }
}

TEST(Parser, NamesAreVisibleWhereTheyAreDefined) {
  EXPECT_EQ(summary(Parsed(in_function(R"(scf.if %c {
  %x = scalar.negf %a : f32
} else {
  %x = scalar.negf %a : f32
}
%x = scalar.negf %a : f32)"))),
            "");
  EXPECT_EQ(summary(Parsed(in_function("scf.if %c {\n%a = index.add %i, %i : index\n}"))),
            "PARSE/002@3");
  EXPECT_EQ(summary(Parsed(in_function(R"(scf.if %c {
  %x = scalar.negf %a : f32
}
%y = scalar.negf %x : f32)"))),
            "PARSE/001@5");
  EXPECT_EQ(summary(Parsed(in_function("%x = scf.if %c -> (f32) {\nscf.yield %x : f32\n}"))),
            "PARSE/001@3");
}

TEST(Parser, RegionsOfAKernelAreTwoScopes) {
  const Parsed parsed(R"(kernel.def @k(%n: index, %m: index) {
  kernel.launch.config workgroups(%n, %n, %n) workgroup_size(%n, %n, %n) : index
} launch(%n: index, %x: view<[%n]xf32>) where [lt(%n, 8)] {
  %y = index.add %n, %m : index
  kernel.return
}
)");
  EXPECT_EQ(summary(parsed), "PARSE/001@4");
}

TEST(Parser, NamesOfResultsAreVisibleInTheContractOnly) {
  EXPECT_EQ(summary(Parsed(R"(func.def @f(%x: index) -> (%r: index) where [eq(%r, %x)] {
  %r = index.add %x, %x : index
  func.return %r : index
}
)")),
            "");
  EXPECT_EQ(summary(Parsed(R"(func.def @f(%x: index) -> (%r: index) {
  func.return %r : index
}
)")),
            "PARSE/001@2");
}

TEST(Parser, SignaturesBindExtentsInAnyOrder) {
  const Parsed parsed("func.decl @f(%v: view<[%n]x[%m]xf32>, %n: index)\n");
  ASSERT_TRUE(parsed.module) << parsed.errors();
  const Module& module = *parsed.module;
  const RegionId signature = module.op_region(module.region(module.body()).first, 0);
  const auto args = module.args(signature);
  const Type& view = module.types[module.type_of(args[0])];
  EXPECT_EQ(view.dims[0].value(), args[1]);
  const Value& extent = module.value(view.dims[1].value());
  EXPECT_EQ(extent.kind, ValueKind::Extent);
  EXPECT_EQ(extent.owner, signature.index());
}

TEST(Parser, OperationsCarryThePlaceOfTheirName) {
  const Parsed parsed(in_function("  %x = scalar.negf %a : f32"));
  const Module& module = *parsed.module;
  const OpId function = module.region(module.body()).first;
  const OpId negf = module.region(module.op_region(function, 0)).first;
  const Location place = module.location(negf);
  EXPECT_EQ(place.line, 2u);
  EXPECT_EQ(place.column, 8u);
  EXPECT_EQ(place.length, 11u);
}

TEST(Parser, LoopsTakeTypesOfTheirArguments) {
  const Parsed parsed(
      in_function("%r = scf.for %k = [%i to %i step %i](%s = %a : f32) {\nscf.yield %s : f32\n}"));
  ASSERT_TRUE(parsed.module) << parsed.errors();
  const Module& module = *parsed.module;
  const OpId loop = module.region(module.op_region(module.region(module.body()).first, 0)).first;
  const auto args = module.args(module.op_region(loop, 0));
  ASSERT_EQ(args.size(), 2u);
  EXPECT_EQ(module.type_of(args[0]), TypeStore::scalar(ScalarKind::Index));
  EXPECT_EQ(module.type_of(args[1]), TypeStore::scalar(ScalarKind::F32));
  EXPECT_EQ(module.type_of(module.result(loop)), TypeStore::scalar(ScalarKind::F32));
}

}  // namespace
}  // namespace loom
