// Command programs: launches, dispatches, parameters, and the order between commands.
#include "interp_harness.h"

namespace loom {
namespace {

using test::storage;

constexpr std::string_view kKernels = R"(kernel.def @copy(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%from: buffer, %to: buffer) {
  %base = index.constant 0 : offset
  %i = kernel.workgroup.id<x> : index
  %f = buffer.view %from[%base] : buffer -> view<4xi32>
  %t = buffer.view %to[%base] : buffer -> view<4xi32>
  %x = view.load %f[%i] : view<4xi32> -> i32
  view.store %x, %t[%i] : i32, view<4xi32>
  kernel.return
}

kernel.def @counts() {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%one, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%to: buffer) {
  %base = index.constant 0 : offset
  %t = buffer.view %to[%base] : buffer -> view<3xi32>
  %x = scalar.constant 2 : i32
  %y = scalar.constant 1 : i32
  view.store %x, %t[0] : i32, view<3xi32>
  view.store %y, %t[1] : i32, view<3xi32>
  view.store %y, %t[2] : i32, view<3xi32>
  kernel.return
}

)";

struct Ran {
  std::vector<int32_t> a = {1, 2, 3, 4}, b = std::vector<int32_t>(4), c = std::vector<int32_t>(4);
  std::string report;
};

Ran run(std::string_view body, std::vector<int64_t> specializations = {},
        std::string_view signature = "") {
  Ran made;
  test::Source source(
      std::string(kKernels) +
      fmt::format("command.program.def public @p({}) launch(%a: buffer, %b: buffer, "
                  "%c: buffer) {{\n  %four = index.constant 4 : index\n{}  "
                  "command.return\n}}\n",
                  signature, body));
  if (!source.module) return made;
  std::vector<ScalarValue> values;
  for (int64_t value : specializations) values.push_back(test::index_value(value));
  const InterpStorage bindings[] = {storage("a", made.a), storage("b", made.b),
                                    storage("c", made.c)};
  static const int32_t kWeights[] = {10, 20, 30, 40};
  Diagnostics diagnostics;
  run_program(
      *source.module, "p", values, bindings,
      [&](std::string_view root, std::string_view key,
          uint64_t bytes) -> std::optional<std::span<const std::byte>> {
        if (root == "c" && key == "w.1" && bytes == 16) return std::as_bytes(std::span(kWeights));
        diagnostics.emit(Diag::RunParameterMissing, {},
                         {{"key", std::string(key)}, {"root", std::string(root)}, {"repair", ""}});
        return std::nullopt;
      },
      {}, diagnostics);
  made.report = test::Source::report(diagnostics);
  return made;
}

TEST(Program, LaunchesRunInOrder) {
  const Ran made = run(R"(  kernel.launch @copy[%four](%a, %b) : [index](buffer, buffer)
  kernel.launch @copy[%four](%b, %c) : [index](buffer, buffer)
)");
  EXPECT_EQ(made.report, "");
  EXPECT_EQ(made.c, made.a);
}

TEST(Program, ConcurrentCommandsMustNotTouchWhatTheOtherWrites) {
  EXPECT_EQ(run(R"(  command.concurrent {
    kernel.launch @copy[%four](%a, %b) : [index](buffer, buffer)
    kernel.launch @copy[%four](%b, %c) : [index](buffer, buffer)
  }
)")
                .report,
            "RUN/024 line 9: a read of byte 0 of '%b' by '@copy' is not ordered after the write by "
            "'@copy'\n  note line 10: the write is here\n");
  const Ran apart = run(R"(  command.concurrent {
    kernel.launch @copy[%four](%a, %b) : [index](buffer, buffer)
    kernel.launch @copy[%four](%a, %c) : [index](buffer, buffer)
  }
)");
  EXPECT_EQ(apart.report, "");
  const Ran serial = run(R"(  command.concurrent {
    command.serial {
      kernel.launch @copy[%four](%a, %b) : [index](buffer, buffer)
      kernel.launch @copy[%four](%b, %c) : [index](buffer, buffer)
    }
  }
)");
  EXPECT_EQ(serial.report, "");
  EXPECT_EQ(serial.c, serial.a);
}

TEST(Program, TransientsHoldNothingAtFirst) {
  constexpr std::string_view kBody = R"(  %bytes = index.constant 16 : offset
  %t = buffer.alloca<global> align(16) %bytes : buffer
)";
  EXPECT_EQ(
      run(std::string(kBody) + "  kernel.launch @copy[%four](%a, %t) : [index](buffer, buffer)\n"
                               "  kernel.launch @copy[%four](%t, %b) : [index](buffer, buffer)\n")
          .b[3],
      4);
  EXPECT_EQ(
      run(std::string(kBody) + "  kernel.launch @copy[%four](%t, %b) : [index](buffer, buffer)\n")
          .report,
      "RUN/021 line 9: byte 0 of '%t' is read but nothing was written there\n");
}

TEST(Program, SmallStorageIsRefused) {
  EXPECT_EQ(run(R"(  %bytes = index.constant 12 : offset
  %t = buffer.alloca<global> align(16) %bytes : buffer
  kernel.launch @copy[%four](%a, %t) : [index](buffer, buffer)
)")
                .report,
            "RUN/017 line 8: transient 't' has 12 bytes but a view of it in a kernel needs 16\n");
}

TEST(Program, CountsComeFromStorage) {
  const Ran made = run(R"(  %bytes = index.constant 12 : offset
  %base = index.constant 0 : offset
  %t = buffer.alloca<global> align(16) %bytes : buffer
  kernel.launch @counts(%t) : (buffer)
  %v = buffer.view %t[%base] : buffer -> view<3xi32>
  kernel.dispatch @copy[%v](%a, %b) : [view<3xi32>](buffer, buffer)
)");
  EXPECT_EQ(made.report, "");
  EXPECT_EQ(made.b, (std::vector<int32_t>{1, 2, 0, 0}));
}

TEST(Program, ParametersAreNamedByNumbers) {
  constexpr std::string_view kBody = R"(  %w = command.parameter %c, "w.{}"[%layer] : view<4xi32>
  kernel.launch @copy[%four](%w, %b) : [index](view<4xi32>, buffer)
)";
  const Ran made = run(kBody, {1}, "%layer: index");
  EXPECT_EQ(made.report, "");
  EXPECT_EQ(made.b, (std::vector<int32_t>{10, 20, 30, 40}));
  EXPECT_EQ(run(kBody, {2}, "%layer: index").report,
            "RUN/004 line 0: parameter \"w.2\" of root 'c' is in none of the parameter files\n");
}

TEST(Program, EntriesWithoutABodyAreNamed) {
  test::Source source(R"(kernel.entry.decl @outside(%a: buffer)

command.program.def public @p() launch(%a: buffer) {
  %one = index.constant 1 : index
  kernel.dispatch @outside[%one](%a) workgroup_size(%one, %one, %one) : [index](buffer)
  command.return
}
)");
  ASSERT_TRUE(source.module.has_value());
  std::vector<int32_t> a(4);
  const InterpStorage bindings[] = {storage("a", a)};
  Diagnostics diagnostics;
  EXPECT_FALSE(run_program(*source.module, "p", {}, bindings, {}, {}, diagnostics));
  EXPECT_EQ(test::Source::report(diagnostics),
            "RUN/009 line 5: entry '@outside' of '@p' has no executable\n");
}

}  // namespace
}  // namespace loom
