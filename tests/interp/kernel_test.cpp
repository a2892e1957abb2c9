// Kernels: every workgroup and workitem, meeting at barriers and collectives.
#include <algorithm>

#include "interp_harness.h"

namespace loom {
namespace {

using test::run_k;
using test::storage;

// A kernel of %n workgroups of %s workitems over two buffers of i32.
std::string kernel(std::string_view body) {
  return fmt::format(R"(kernel.def @k(%n: index, %s: index) {{
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%s, %one, %one) : index
}} launch(%a: buffer, %b: buffer) {{
  %base = index.constant 0 : offset
  %zero = index.constant 0 : index
  %one = index.constant 1 : index
  %one32 = scalar.constant 1 : i32
  %i = kernel.workitem.dispatch.id<x> : index
  %local = kernel.workitem.id<x> : index
  %av = buffer.view %a[%base] : buffer -> view<64xi32>
  %bv = buffer.view %b[%base] : buffer -> view<64xi32>
  %x = view.load %av[%i] : view<64xi32> -> i32
{}  kernel.return
}}
)",
                     body);
}

struct Launched {
  std::vector<int32_t> a = std::vector<int32_t>(64), b = std::vector<int32_t>(64);
  std::string report;
};
Launched run(std::string_view body, int64_t groups, int64_t size,
             const InterpOptions& options = {}) {
  Launched made;
  for (int32_t i = 0; i < 64; ++i) made.a[static_cast<size_t>(i)] = i * i % 23 - 5;
  made.report =
      run_k(kernel(body), {groups, size}, {storage("a", made.a), storage("b", made.b)}, options);
  return made;
}

TEST(Kernel, EveryWorkitemRuns) {
  const Launched made = run("  view.store %x, %bv[%i] : i32, view<64xi32>\n", 4, 16);
  EXPECT_EQ(made.report, "");
  EXPECT_EQ(made.a, made.b);
}

TEST(Kernel, IndicesPastAViewAreNamed) {
  const Launched made = run("", 5, 16);
  EXPECT_EQ(made.report,
            "RUN/019 line 13: index 64 of axis 0 is outside the extent 64 of the view\n");
}

// Each workitem writes its own element of workgroup memory and reads its neighbour's.
std::string exchange(std::string_view between) {
  return fmt::format(R"(  %bytes = index.constant 256 : offset
  %size = kernel.workgroup.size<x> : index
  %w = buffer.alloca<workgroup> align(16) %bytes : buffer
  %wv = buffer.view %w[%base] : buffer -> view<64xi32>
  view.store %x, %wv[%local] : i32, view<64xi32>
{}  %next = index.add %local, %one : index
  %from = index.rem %next, %size : index
  %y = view.load %wv[%from] : view<64xi32> -> i32
  view.store %y, %bv[%i] : i32, view<64xi32>
)",
                     between);
}

TEST(Kernel, ABarrierOrdersItsMemoryAndItsScope) {
  constexpr std::string_view kBarrier =
      "  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)\n";
  for (uint32_t width : {1u, 4u, 32u, 64u}) {
    InterpOptions options;
    options.subgroup_size = width;
    const Launched made = run(exchange(kBarrier), 4, 16, options);
    EXPECT_EQ(made.report, "");
    for (size_t i = 0; i < 64; ++i) EXPECT_EQ(made.b[i], made.a[i / 16 * 16 + (i + 1) % 16]);
  }
  // Without one, the neighbour has not written yet, or may not have.
  InterpOptions options;
  options.check_uninitialized = false;
  EXPECT_EQ(
      run(exchange(""), 1, 2, options).report,
      "RUN/023 line 18: a write of byte 4 of '%w' by workitem 1 of workgroup 0 is not ordered "
      "after the read by workitem 0 of workgroup 0\n  note line 21: the read is here\n");
  EXPECT_EQ(run(exchange(""), 1, 2).report,
            "RUN/021 line 21: byte 4 of '%w' is read but nothing was written there\n");
  // A barrier over other memory orders nothing here.
  EXPECT_TRUE(run(exchange("  kernel.barrier<global> scope(workgroup) ordering(acq_rel)\n"), 1, 4)
                  .report.starts_with("RUN/023"));
  // Subgroups that are not the workgroup.
  constexpr std::string_view kNarrow =
      "  kernel.barrier<workgroup> scope(subgroup) ordering(acq_rel)\n";
  options = {};
  options.subgroup_size = 4;
  EXPECT_EQ(run(exchange(kNarrow), 1, 4, options).report, "");
  options.check_uninitialized = false;
  EXPECT_TRUE(run(exchange(kNarrow), 1, 8, options).report.starts_with("RUN/023"));
}

TEST(Kernel, RacesBetweenWorkgroupsNeedAtomics) {
  EXPECT_EQ(run("  view.store %x, %bv[%local] : i32, view<64xi32>\n", 2, 4).report,
            "RUN/023 line 14: a write of byte 0 of '%b' by workitem 0 of workgroup 1 is not "
            "ordered after the write by workitem 0 of workgroup 0\n  note line 14: the write is "
            "here\n");
  const Launched made = run(
      "  view.atomic.reduce<addi> %one32, %bv[%zero] {ordering = relaxed, scope = device} : i32, "
      "view<64xi32>\n",
      4, 16);
  EXPECT_EQ(made.report, "");
  EXPECT_EQ(made.b[0], 64);
  InterpOptions options;
  options.check_races = false;
  EXPECT_EQ(run("  view.store %x, %bv[%local] : i32, view<64xi32>\n", 2, 4, options).report, "");
}

// The last workgroup that arrives reads what the others wrote.
TEST(Kernel, AtomicsThatAcquireAndReleaseOrder) {
  const auto body = [](std::string_view ordering) {
    return fmt::format(R"(  view.store %x, %bv[%i] : i32, view<64xi32>
  %last = scalar.constant 3 : i32
  %slot = index.constant 32 : index
  %old = view.atomic.rmw<addi> %one32, %bv[%slot] {{ordering = {}, scope = device}} : i32, view<64xi32> -> i32
  %is_last = scalar.cmpi eq, %old, %last : i32
  scf.if %is_last {{
    %y = view.load %bv[%zero] : view<64xi32> -> i32
    %place = index.constant 40 : index
    view.store %y, %bv[%place] : i32, view<64xi32>
  }}
)",
                       ordering);
  };
  const Launched made = run(body("acq_rel"), 4, 1);
  EXPECT_EQ(made.report, "");
  EXPECT_EQ(made.b[40], made.a[0]);
  EXPECT_TRUE(run(body("relaxed"), 4, 1).report.starts_with("RUN/023 line 20"));
  EXPECT_TRUE(run(body("release"), 4, 1).report.starts_with("RUN/023 line 20"));
}

TEST(Kernel, CollectivesCombineInTheirScope) {
  for (uint32_t width : {1u, 4u, 32u, 64u}) {
    InterpOptions options;
    options.subgroup_size = width;
    const Launched sums =
        run("  %r = kernel.subgroup.reduce<addi> %x : i32\n"
            "  view.store %r, %bv[%i] : i32, view<64xi32>\n",
            1, 64, options);
    const Launched scans =
        run("  %r = kernel.subgroup.scan<addi> %x {direction = reverse, mode = exclusive} : i32\n"
            "  view.store %r, %bv[%i] : i32, view<64xi32>\n",
            1, 64, options);
    const Launched all =
        run("  %r = kernel.workgroup.reduce<maxsi> %x : i32\n"
            "  view.store %r, %bv[%i] : i32, view<64xi32>\n",
            1, 64, options);
    EXPECT_EQ(sums.report + scans.report + all.report, "");
    for (size_t i = 0; i < 64; ++i) {
      int32_t sum = 0, after = 0;
      for (size_t j = i / width * width; j < i / width * width + width; ++j) {
        sum += sums.a[j];
        if (j > i) after += sums.a[j];
      }
      EXPECT_EQ(sums.b[i], sum) << width << " " << i;
      EXPECT_EQ(scans.b[i], after) << width << " " << i;
      EXPECT_EQ(all.b[i], *std::ranges::max_element(all.a));
    }
  }
}

TEST(Kernel, ClustersAreStridedParts) {
  const Launched made =
      run("  %r = kernel.subgroup.reduce<addi> %x {cluster_size = 4, cluster_stride = 2} : i32\n"
          "  view.store %r, %bv[%i] : i32, view<64xi32>\n",
          1, 32);
  EXPECT_EQ(made.report, "");
  for (size_t i = 0; i < 32; ++i) {
    const size_t first = i / 8 * 8 + i % 2;
    EXPECT_EQ(made.b[i], made.a[first] + made.a[first + 2] + made.a[first + 4] + made.a[first + 6]);
  }
}

TEST(Kernel, ShufflesTellWhichLanesExist) {
  const Launched made = run(R"(  %off = scalar.constant 3 : i32
  %width = scalar.constant 8 : i32
  %r, %ok = kernel.subgroup.shuffle<down> %x, %off, %width : i32, i32, i32
  %none = scalar.constant -100 : i32
  %y = scf.select %ok, %r, %none : i32
  view.store %y, %bv[%i] : i32, view<64xi32>
)",
                            1, 32);
  EXPECT_EQ(made.report, "");
  for (size_t i = 0; i < 32; ++i) EXPECT_EQ(made.b[i], i % 8 < 5 ? made.a[i + 3] : -100);
}

TEST(Kernel, VotesAndMasksSeeActiveLanes) {
  const Launched made = run(R"(  %four = index.constant 4 : index
  %out = index.cmp sge, %local, %four : index
  kernel.exit %out : i1
  %mask = kernel.subgroup.active.mask : i32
  view.store %mask, %bv[%i] : i32, view<64xi32>
  %minus = scalar.constant -4 : i32
  %hit = scalar.cmpi eq, %x, %minus : i32
  %ballot = kernel.subgroup.vote.ballot %hit : i1 -> i32
  %place = index.add %i, %four : index
  view.store %ballot, %bv[%place] : i32, view<64xi32>
)",
                            1, 32);
  EXPECT_EQ(made.report, "");
  EXPECT_EQ(made.b[0], 15);
  EXPECT_EQ(made.b[4], 2);  // a[1] = 1 - 5
}

// The verifier refuses what it can see; the interpreter sees the rest.
TEST(Kernel, DivergenceIsNamed) {
  const auto report = [](std::string_view body) {
    SourceFiles files;
    Diagnostics diagnostics;
    const auto module = parse_text(files, files.add_text("test.loom", kernel(body)), diagnostics);
    std::vector<int32_t> a(64), b(64);
    a[1] = 1;
    const ScalarValue workload[] = {test::index_value(1), test::index_value(4)};
    const InterpArgument arguments[] = {storage("a", a), storage("b", b)};
    if (module) run_kernel(*module, "k", workload, arguments, {}, diagnostics);
    return test::Source::report(diagnostics);
  };
  EXPECT_EQ(report(R"(  %hit = scalar.cmpi eq, %x, %one32 : i32
  scf.if %hit {
    kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  }
)"),
            "RUN/028 line 16: 'kernel.barrier' is reached by 1 of the 4 invocations of a "
            "workgroup\n");
  EXPECT_EQ(report(R"(  %hit = scalar.cmpi eq, %x, %one32 : i32
  scf.if %hit {
    %r = kernel.subgroup.reduce<addi> %x : i32
  } else {
    %r = kernel.subgroup.reduce<addi> %x : i32
  }
)"),
            "RUN/028 line 18: 'kernel.subgroup.reduce' is reached by 3 of the 4 invocations of a "
            "subgroup\n  note line 16: others wait here\n");
  EXPECT_EQ(report("  %r = kernel.subgroup.reduce<addi> %x : i32\n"), "");
}

TEST(Kernel, AssertionsStopTheRun) {
  EXPECT_EQ(run("  %good = scalar.cmpi slt, %x, %one32 : i32\n  kernel.assert %good \"too large\" "
                ": i1\n",
                1, 4)
                .report,
            "RUN/027 line 15: assertion failed: too large\n");
  EXPECT_EQ(run("  %y = sanitizer.assert.value %x [lt(%x, 1)] : i32\n", 1, 4).report,
            "RUN/027 line 14: assertion failed: lt(%x, 1) with %x = 4\n");
  EXPECT_EQ(run("  %y = sanitizer.assert.value %x [lt(%x, 5)] : i32\n", 1, 4).report, "");
  EXPECT_EQ(
      run("  sanitizer.assert.access<read> %av[%i] {static_extents = [4]} : view<64xi32>\n", 4, 16)
          .report,
      "RUN/027 line 14: assertion failed: elements 61 to 64 of axis 0 are outside the extent "
      "64\n");
}

TEST(Kernel, PromisesAboutStorageAreChecked) {
  std::vector<int32_t> one(64), other(64);
  const auto text = kernel("  %c, %d = buffer.assume.noalias %a, %b : buffer, buffer\n");
  EXPECT_EQ(run_k(text, {1, 1}, {storage("a", one), storage("b", other)}), "");
  EXPECT_EQ(run_k(text, {1, 1}, {storage("a", one), storage("b", one)}),
            "RUN/026 line 14: the assumption is false here: '%a' and '%b' share bytes of '%a'\n");
  const InterpStorage whole = storage("a", one);
  const InterpStorage tail{"b", whole.bytes.subspan(252)};
  EXPECT_NE(run_k(text, {1, 1}, {whole, tail}), "");

  const auto callee = [&](std::string_view op) {
    return run_k(
        kernel("  %bytes = index.constant 64 : offset\n"
               "  %p = buffer.alloca<private> align(16) %bytes : buffer\n"
               "  func.call @promise(%p) : (buffer)\n") +
            fmt::format("\nfunc.def @promise(%b: buffer) {{\n  {}\n  func.return\n}}\n", op),
        {1, 1}, {storage("a", one), storage("b", other)});
  };
  EXPECT_EQ(callee("%r = buffer.assume.memory_space<private> %b : buffer"), "");
  EXPECT_EQ(callee("%r = buffer.assume.memory_space<workgroup> %b : buffer"),
            "RUN/026 line 21: the assumption is false here: '%p' is private memory and not "
            "workgroup\n");
  EXPECT_EQ(callee("%r = buffer.assume.alignment %b {minimum_alignment = 16} : buffer"), "");
  EXPECT_EQ(
      callee("%r = buffer.assume.alignment %b {minimum_alignment = 32} : buffer"),
      "RUN/026 line 21: the assumption is false here: '%b' begins at byte 0 of '%p', which is "
      "aligned to 16 bytes and not 32\n");
}

// A transfer is done when it was waited for, and not before.
TEST(Kernel, TransfersAreOverAfterTheWait) {
  const auto body = [](std::string_view early) {
    return fmt::format(R"(  %bytes = index.constant 256 : offset
  %w = buffer.alloca<workgroup> align(16) %bytes : buffer
  %wv = buffer.view %w[%base] : buffer -> view<64xi32>
  %t = kernel.async.copy %av to %wv {{cache_scope = cu, cache_temporal = regular, direction = global_to_workgroup}} : view<64xi32> to view<64xi32> -> kernel.async.token
  %g = kernel.async.group %t : kernel.async.token -> kernel.async.group
{}  kernel.async.wait %g {{newer_groups = 0}} : kernel.async.group
  %y = view.load %wv[%i] : view<64xi32> -> i32
  view.store %y, %bv[%i] : i32, view<64xi32>
)",
                       early);
  };
  const Launched made = run(body(""), 1, 1);
  EXPECT_EQ(made.report, "");
  EXPECT_EQ(made.b[0], made.a[0]);
  EXPECT_EQ(run(body("  %e = view.load %wv[%i] : view<64xi32> -> i32\n"), 1, 1).report,
            "RUN/023 line 19: a read of byte 0 of '%w' by workitem 0 of workgroup 0 is not ordered "
            "after the write by a transfer that nothing waited for\n  note line 17: the write is "
            "here\n");
}

}  // namespace
}  // namespace loom
