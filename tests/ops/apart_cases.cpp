// Early exits in kernels whose workitems meet, and subgroups that go different ways.
#include "cases.h"

namespace loom::ops {
namespace {

constexpr LoomDispatchShape kShape = {{2, 1, 1}, {5, 2, 1}};
constexpr size_t kItems = 20;

// `how` makes the i32 %r of %v, a number of the workitem %flat of the workgroup %group, and writes
// it to %w1[%at] by itself or leaves that to this.
Case apart(std::string name, unsigned lanes, const std::string& how) {
  const std::string body = R"(  %group = kernel.workgroup.id<x> : index
  %x = kernel.workitem.id<x> : index
  %y = kernel.workitem.id<y> : index
  %id = kernel.subgroup.id : index
  %lane = kernel.subgroup.lane.id : index
  %n0 = index.constant 0 : index
  %n1 = index.constant 1 : index
  %n3 = index.constant 3 : index
  %n5 = index.constant 5 : index
  %n10 = index.constant 10 : index
  %flat = index.madd %y, %n5, %x : index
  %at = index.madd %group, %n10, %flat : index
  %w0 = buffer.view %b0[%base] : buffer -> view<20xi32>
  %w1 = buffer.view %b1[%base] : buffer -> view<20xi32>
  %v = view.load %w0[%at] : view<20xi32> -> i32
  %zero = scalar.constant 0 : i32
  %one = scalar.constant 1 : i32
  %two = scalar.constant 2 : i32
)" + how + "  view.store %r, %w1[%at] : i32, view<20xi32>\n";
  std::string text = kernel_text(2, body, kShape);
  if (lanes > 1) text = with_subgroups(std::move(text), lanes);
  return {fmt::format("{}, {} lanes", name, lanes),
          std::move(text),
          {noise(ScalarKind::I32, kItems, 3), zeros(ScalarKind::I32, kItems)},
          kShape,
          {}};
}

// Some leave; what the others say to one another behind it.
constexpr std::string_view kLeave = R"(  %odd = scalar.andi %v, %one : i32
  %leaves = scalar.cmpi eq, %odd, %zero : i32
  kernel.exit %leaves : i1 {
    view.store %two, %w1[%at] : i32, view<20xi32>
  }
)";

void add_exits(std::vector<Case>& cases, unsigned lanes) {
  const auto add = [&](std::string name, const std::string& how) {
    cases.push_back(apart(std::move(name), lanes, how));
  };
  add("all of a workgroup leave in front of a barrier",
      R"(  %last = index.cmp eq, %group, %n1 : index
  kernel.exit %last : i1 {
    view.store %two, %w1[%at] : i32, view<20xi32>
  }
  %r = kernel.workgroup.reduce<addi> %v : i32
)");
  add("what decides is found together", R"(  %sum = kernel.workgroup.reduce<xori> %v : i32
  %half = scalar.andi %sum, %one : i32
  %leave = scalar.cmpi eq, %half, %one : i32
  kernel.exit %leave : i1 {
    kernel.barrier<global> scope(workgroup) ordering(acq_rel)
    %all = kernel.workgroup.reduce<minsi> %v : i32
    view.store %all, %w1[%at] : i32, view<20xi32>
  }
  %big = kernel.workgroup.scan<maxsi> %v {direction = forward, mode = inclusive} : i32
  %r = scalar.addi %big, %sum : i32
)");
  add("some leave behind the last barrier", R"(  %sum = kernel.workgroup.reduce<addi> %v : i32
)" + std::string(kLeave) + R"(  %quotient = scalar.divsi %sum, %odd : i32
  %past = index.cmp sgt, %flat, %n5 : index
  kernel.exit %past : i1
  %r = scalar.addi %quotient, %v : i32
)");
}

void add_lanes_left(std::vector<Case>& cases, unsigned lanes) {
  const auto add = [&](std::string name, const std::string& how) {
    cases.push_back(apart(std::move(name), lanes, std::string(kLeave) + how));
  };
  for (const std::string_view kind : {"subgroup.reduce<addi>", "subgroup.reduce<minsi>"}) {
    add(fmt::format("{} of those left", kind), fmt::format("  %r = kernel.{} %v : i32\n", kind));
  }
  for (const std::string_view how :
       {"direction = forward, mode = inclusive", "direction = reverse, mode = exclusive"}) {
    add(fmt::format("scan of those left {}", how),
        fmt::format("  %r = kernel.subgroup.scan<addi> %v {{{}}} : i32\n", how));
  }
  for (const std::string_view kind : {"xor", "up", "down", "index"}) {
    if (lanes == 1) break;  // pairs of lanes
    add(fmt::format("shuffle {} among those left", kind),
        fmt::format("  %got, %valid = kernel.subgroup.shuffle<{}> %v, %one, %two : i32, i32, i32\n"
                    "  %wide = scalar.extui %valid : i1 to i32\n"
                    "  %r = scalar.addi %got, %wide : i32\n",
                    kind));
  }
  add("the first one left", "  %r = kernel.subgroup.broadcast.first %v : i32\n");
  add("lanes left", "  %r = kernel.subgroup.active.mask : i32\n");
  add("votes of those left", R"(  %negative = scalar.cmpi slt, %v, %zero : i32
  %any = kernel.subgroup.vote.any %negative : i1
  %all = kernel.subgroup.vote.all %negative : i1
  %ballot = kernel.subgroup.vote.ballot %negative : i1 -> i32
  %few = scalar.andi %v, %two : i32
  %some = kernel.subgroup.match.any %few : i32 -> i32
  %mask, %same = kernel.subgroup.match.all %odd : i32 -> i32, i1
  %a = scalar.extui %any : i1 to i32
  %b = scalar.extui %all : i1 to i32
  %c = scalar.extui %same : i1 to i32
  %two_b = scalar.muli %b, %two : i32
  %ab = scalar.addi %a, %two_b : i32
  %two_ab = scalar.muli %ab, %two : i32
  %abc = scalar.addi %two_ab, %c : i32
  %m = scalar.xori %ballot, %some : i32
  %two_m = scalar.muli %m, %two : i32
  %n = scalar.addi %two_m, %mask : i32
  %r = scalar.xori %abc, %n : i32
)");
  add("more leave, and then whole subgroups", R"(  %s = kernel.subgroup.reduce<addi> %v : i32
  %third = index.cmp eq, %lane, %n3 : index
  kernel.exit %third : i1 {
    view.store %s, %w1[%at] : i32, view<20xi32>
  }
  %t = kernel.subgroup.reduce<addi> %v : i32
  %count = kernel.subgroup.active.mask : i32
  %sign = scalar.cmpi slt, %t, %zero : i32
  kernel.exit %sign : i1 {
    %u = kernel.subgroup.reduce<maxsi> %v : i32
    view.store %u, %w1[%at] : i32, view<20xi32>
  }
  %r = kernel.subgroup.scan<addi> %count {direction = forward, mode = inclusive} : i32
)");
  add("loops of those left",
      R"(  %r = scf.for %k = [%n0 to %n3 step %n1](%acc = %v : i32) -> (i32) {
    %next = kernel.subgroup.scan<addi> %acc {direction = forward, mode = inclusive} : i32
    kernel.barrier<workgroup> scope(subgroup) ordering(acq_rel)
    scf.yield %next : i32
  }
)");
}

// Subgroups choose apart, and turn loops apart.
void add_ways(std::vector<Case>& cases, unsigned lanes) {
  const auto add = [&](std::string name, const std::string& how) {
    cases.push_back(apart(std::move(name), lanes, how));
  };
  add("a choice of each subgroup", R"(  %first = index.cmp eq, %id, %n0 : index
  %r = scf.if %first -> (i32) {
    %sum = kernel.subgroup.reduce<addi> %v : i32
    scf.yield %sum : i32
  } else {
    %twice = scalar.addi %v, %v : i32
    %most = kernel.subgroup.scan<maxsi> %twice {direction = reverse, mode = inclusive} : i32
    scf.yield %most : i32
  }
)");
  add("a loop as long as each subgroup's number",
      R"(  %s = scf.for %k = [%n0 to %id step %n1](%acc = %v : i32) -> (i32) {
    %next = kernel.subgroup.scan<addi> %acc {direction = forward, mode = inclusive} : i32
    scf.yield %next : i32
  }
  %t = kernel.workgroup.reduce<addi> %s : i32
  %r = scalar.xori %s, %t : i32
)");
  add("a loop until the subgroup agrees", R"(  %seven = scalar.constant 7 : i32
  %some = scalar.andi %v, %seven : i32
  %rounds, %q = scf.while(%n = %zero : i32, %left = %some : i32) -> (i32, i32) {
    %open = scalar.cmpi sgt, %left, %zero : i32
    %more = kernel.subgroup.vote.any %open : i1
    scf.condition %more, %n, %left : i1, i32, i32
  } do(%m: i32, %w: i32) {
    %next = scalar.addi %m, %one : i32
    %less = scalar.subi %w, %one : i32
    scf.yield %next, %less : i32, i32
  }
  %r = scalar.xori %rounds, %q : i32
)");
  add("ways by the subgroup's number", R"(  %r = scf.switch %id -> (i32) {
    case 0 {
      %a = kernel.subgroup.broadcast.first %v : i32
      scf.yield %a : i32
    }
    case 2 {
      scf.yield %v : i32
    }
    default {
      %b = kernel.subgroup.reduce<xori> %v : i32
      scf.yield %b : i32
    }
  }
)");
  add("a whole subgroup leaves", R"(  %gone = index.cmp eq, %id, %n1 : index
  kernel.exit %gone : i1 {
    view.store %one, %w1[%at] : i32, view<20xi32>
  }
  %r = kernel.subgroup.reduce<addi> %v : i32
)");
  add("choices within choices", R"(  %first = index.cmp sge, %id, %n1 : index
  %r = scf.if %first -> (i32) {
    %sum = kernel.subgroup.reduce<addi> %v : i32
    %negative = scalar.cmpi slt, %sum, %zero : i32
    %got = scf.if %negative -> (i32) {
      kernel.barrier<workgroup> scope(subgroup) ordering(acq_rel)
      scf.yield %v : i32
    } else {
      %any = kernel.subgroup.broadcast.first %sum : i32
      scf.yield %any : i32
    }
    scf.yield %got : i32
  } else {
    scf.yield %zero : i32
  }
)");
}

// The same control around what the whole workgroup does.
void add_whole_ways(std::vector<Case>& cases) {
  cases.push_back(
      apart("rounds until the workgroup agrees", 1, R"(  %seven = scalar.constant 7 : i32
  %some = scalar.andi %v, %seven : i32
  %rounds, %q = scf.while(%n = %zero : i32, %left = %some : i32) -> (i32, i32) {
    %open = scalar.cmpi sgt, %left, %zero : i32
    %more = kernel.workgroup.vote.any %open : i1
    scf.condition %more, %n, %left : i1, i32, i32
  } do(%m: i32, %w: i32) {
    %least = kernel.workgroup.reduce<minsi> %w : i32
    %next = scalar.addi %m, %least : i32
    %less = scalar.subi %w, %one : i32
    scf.yield %next, %less : i32, i32
  }
  %r = scalar.xori %rounds, %q : i32
)"));
  cases.push_back(apart("ways by the workgroup's number", 1, R"(  %s = scf.switch %group -> (i32) {
    case 0 {
      %a = kernel.workgroup.reduce<addi> %v : i32
      scf.yield %a : i32
    }
    default {
      %b = kernel.workgroup.scan<xori> %v {direction = forward, mode = inclusive} : i32
      scf.yield %b : i32
    }
  }
  scf.switch %group {
    case 1 {
      kernel.barrier<global> scope(workgroup) ordering(acq_rel)
    }
    default {
    }
  }
  %r = scalar.addi %s, %one : i32
)"));
}

}  // namespace

std::vector<Case> apart_cases() {
  std::vector<Case> cases;
  add_whole_ways(cases);
  for (const unsigned lanes : {1, 2, 3, 4, 8, 16}) {
    add_exits(cases, lanes);
    add_lanes_left(cases, lanes);
    add_ways(cases, lanes);
  }
  return cases;
}

}  // namespace loom::ops
