// Barriers, collectives and the queries of a launch.
#include "cases.h"

namespace loom::ops {
namespace {

constexpr LoomDispatchShape kShape = {{2, 1, 1}, {5, 2, 1}};
constexpr size_t kItems = 20;

constexpr std::string_view kIntegerKinds[] = {"addi",  "muli", "minsi", "maxsi", "minui",
                                              "maxui", "andi", "ori",   "xori"};
constexpr std::string_view kFloatKinds[] = {"addf",     "mulf",    "minimumf",
                                            "maximumf", "minnumf", "maxnumf"};

// `how` makes the vector %r of the vector %v, for every workitem.
Case of_vectors(std::string name, std::string_view element, const std::string& how) {
  const ScalarKind kind = *scalar_from_name(element);
  const std::string body = fmt::format(
      R"(  %group = kernel.workgroup.id<x> : index
  %x = kernel.workitem.id<x> : index
  %y = kernel.workitem.id<y> : index
  %five = index.constant 5 : index
  %ten = index.constant 10 : index
  %row = index.madd %y, %five, %x : index
  %at = index.madd %group, %ten, %row : index
  %w0 = buffer.view %b0[%base] : buffer -> view<20x3x{0}>
  %w1 = buffer.view %b1[%base] : buffer -> view<20x3x{0}>
  %v = vector.load %w0[%at, 0] : view<20x3x{0}> -> vector<3x{0}>
{1}  vector.store %r, %w1[%at, 0] : vector<3x{0}>, view<20x3x{0}>
)",
      element, how);
  return {std::move(name) + " of " + std::string(element),
          kernel_text(2, body, kShape),
          {is_float(kind) ? special_floats(kind, kItems * 3, 1) : noise(kind, kItems * 3, 1),
           zeros(kind, kItems * 3)},
          kShape,
          {}};
}

void add_combinations(std::vector<Case>& cases, std::string_view element, std::string_view kind) {
  const std::string vector = fmt::format("vector<3x{}>", element);
  for (const std::string_view scope : {"workgroup", "subgroup"}) {
    cases.push_back(
        of_vectors(fmt::format("{} reduce {}", scope, kind), element,
                   fmt::format("  %r = kernel.{}.reduce<{}> %v : {}\n", scope, kind, vector)));
    if (element == "i8" || element == "f16") continue;
    for (const std::string_view direction : {"forward", "reverse"}) {
      for (const std::string_view mode : {"inclusive", "exclusive"}) {
        cases.push_back(of_vectors(
            fmt::format("{} scan {} {} {}", scope, kind, direction, mode), element,
            fmt::format("  %r = kernel.{}.scan<{}> %v {{direction = {}, mode = {}}} : {}\n", scope,
                        kind, direction, mode, vector)));
      }
    }
  }
}

// What all workitems write down, by their number in the dispatch.
Case numbers(std::string name, const std::string& how, std::string_view type) {
  const std::string body = fmt::format(
      R"(  %j = kernel.workitem.dispatch.id<y> : index
  %width = index.constant 10 : index
  %at = index.madd %j, %width, %i : index
  %w0 = buffer.view %b0[%base] : buffer -> view<20xi32>
  %w1 = buffer.view %b1[%base] : buffer -> view<20x{0}>
  %v = view.load %w0[%at] : view<20xi32> -> i32
  %zero = scalar.constant 0 : i32
  %one = scalar.constant 1 : i32
  %p = scalar.cmpi slt, %v, %zero : i32
{1}  view.store %r, %w1[%at] : {0}, view<20x{0}>
)",
      type, how);
  return {std::move(name),
          kernel_text(2, body, kShape),
          {noise(ScalarKind::I32, kItems, 2), zeros(*scalar_from_name(type), kItems)},
          kShape,
          {}};
}

// The same kernel where subgroups have that many lanes.
Case widened(Case one, unsigned lanes) {
  one.name += fmt::format(", {} lanes", lanes);
  one.text = with_subgroups(std::move(one.text), lanes);
  return one;
}

// Moves between several lanes, whose widths and distances only make sense there.
void add_wide(std::vector<Case>& cases) {
  for (const std::string_view kind : {"xor", "up", "down", "index"}) {
    for (const int distance : {0, 1, 3}) {
      for (const int width : {1, 2, 4}) {
        cases.push_back(widened(
            numbers(
                fmt::format("shuffle {} {} of {}", kind, distance, width),
                fmt::format("  %distance = scalar.constant {} : i32\n"
                            "  %among = scalar.constant {} : i32\n"
                            "  %got, %valid = kernel.subgroup.shuffle<{}> %v, %distance, %among : "
                            "i32, i32, i32\n"
                            "  %wide = scalar.extui %valid : i1 to i32\n"
                            "  %r = scalar.addi %got, %wide : i32\n",
                            distance, width, kind),
                "i32"),
            4));
      }
    }
  }
  for (const std::string_view element : {"i32", "f32"}) {
    const std::string kind = element == "i32" ? "addi" : "addf";
    for (const std::string_view cluster :
         {"cluster_size = 2", "cluster_size = 4", "cluster_size = 2, cluster_stride = 2",
          "cluster_size = 4, cluster_stride = 2"}) {
      cases.push_back(widened(
          of_vectors(fmt::format("reduce with {}", cluster), element,
                     fmt::format("  %r = kernel.subgroup.reduce<{}> %v {{{}}} : vector<3x{}>\n",
                                 kind, cluster, element)),
          8));
      cases.push_back(widened(
          of_vectors(
              fmt::format("scan with {}", cluster), element,
              fmt::format("  %r = kernel.subgroup.scan<{}> %v {{{}, direction = reverse, mode = "
                          "exclusive}} : vector<3x{}>\n",
                          kind, cluster, element)),
          8));
    }
  }
  // The same for all, so that every lane gives the value of one.
  cases.push_back(widened(
      numbers("broadcast of lane 1", R"(  %r = kernel.subgroup.broadcast %v from %one : i32, i32
)",
              "i32"),
      2));
  // Equal values here and there.
  cases.push_back(widened(numbers("matches", R"(  %three = scalar.constant 3 : i32
  %few = scalar.andi %v, %three : i32
  %some = kernel.subgroup.match.any %few : i32 -> i32
  %mask, %all = kernel.subgroup.match.all %zero : i32 -> i32, i1
  %more = scalar.shli %mask, %three : i32
  %r = scalar.xori %some, %more : i32
)",
                                  "i32"),
                          4));
  // A choice and a loop that the whole workgroup takes, and workgroup memory between subgroups.
  cases.push_back(
      widened(numbers("in uniform control", R"(  %size = kernel.workgroup.size<x> : index
  %four = index.constant 4 : index
  %large = index.cmp sgt, %size, %four : index
  %none = index.constant 0 : index
  %step = index.constant 1 : index
  %r = scf.if %large -> (i32) {
    %sum = scf.for %k = [%none to %four step %step](%acc = %v : i32) -> (i32) {
      %next = kernel.subgroup.scan<addi> %acc {direction = forward, mode = inclusive} : i32
      kernel.barrier<workgroup> scope(subgroup) ordering(acq_rel)
      scf.yield %next : i32
    }
    %total = kernel.workgroup.reduce<xori> %sum : i32
    %both = scalar.addi %sum, %total : i32
    scf.yield %both : i32
  } else {
    scf.yield %zero : i32
  }
)",
                      "i32"),
              4));
}

}  // namespace

std::vector<Case> collective_cases() {
  std::vector<Case> cases;
  for (const std::string_view kind : kIntegerKinds) {
    for (const std::string_view element : {"i32", "i8"}) add_combinations(cases, element, kind);
  }
  for (const std::string_view kind : kFloatKinds) {
    for (const std::string_view element : {"f32", "f16"}) add_combinations(cases, element, kind);
  }
  for (const std::string_view vote :
       {"workgroup.vote.any", "workgroup.vote.all", "subgroup.vote.any", "subgroup.vote.all"}) {
    cases.push_back(
        numbers(std::string(vote), fmt::format("  %r = kernel.{} %p : i1\n", vote), "i1"));
  }
  for (const std::string_view type : {"i32", "i64"}) {
    for (const std::string_view vote : {"workgroup.vote.count", "subgroup.vote.ballot"}) {
      cases.push_back(numbers(std::string(vote),
                              fmt::format("  %r = kernel.{} %p : i1 -> {}\n", vote, type), type));
    }
    cases.push_back(numbers("active mask",
                            fmt::format("  %r = kernel.subgroup.active.mask : {}\n", type), type));
    cases.push_back(numbers(
        "match any", fmt::format("  %r = kernel.subgroup.match.any %v : i32 -> {}\n", type), type));
    cases.push_back(numbers(
        "match all",
        fmt::format("  %mask, %r = kernel.subgroup.match.all %v : i32 -> {}, i1\n", type), "i1"));
  }
  for (const std::string_view kind : {"xor", "up", "down", "index"}) {
    for (const std::string_view distance : {"%zero", "%one"}) {
      cases.push_back(numbers(
          fmt::format("shuffle {}", kind),
          fmt::format("  %got, %valid = kernel.subgroup.shuffle<{}> %v, {}, %one : i32, i32, i32\n"
                      "  %wide = scalar.extui %valid : i1 to i32\n"
                      "  %r = scalar.addi %got, %wide : i32\n",
                      kind, distance),
          "i32"));
    }
  }
  cases.push_back(
      numbers("broadcast", "  %r = kernel.subgroup.broadcast %v from %zero : i32, i32\n", "i32"));
  cases.push_back(
      numbers("broadcast first", "  %r = kernel.subgroup.broadcast.first %v : i32\n", "i32"));
  for (const std::string_view query :
       {"workitem.id<x>", "workitem.id<y>", "workitem.id<z>", "workgroup.id<x>", "workgroup.id<y>",
        "workgroup.size<x>", "workgroup.size<y>", "workgroup.size<z>", "workgroup.count<x>",
        "workgroup.count<z>", "workitem.dispatch.id<x>", "workitem.dispatch.id<y>",
        "workitem.dispatch.id<z>", "subgroup.id", "subgroup.count", "subgroup.size",
        "subgroup.lane.id"}) {
    cases.push_back(
        numbers(std::string(query), fmt::format("  %r = kernel.{} : index\n", query), "index"));
  }
  cases.push_back(
      numbers("target subgroup size", "  %r = target.subgroup.size : index\n", "index"));
  // All of these once more, where subgroups have several lanes and the last one is not full.
  const std::vector<Case> narrow = cases;
  size_t number = 0;
  for (const Case& one : narrow) {
    constexpr unsigned kLanes[] = {2, 3, 4, 8, 16};
    const bool of_subgroups = one.text.find("kernel.subgroup.") != std::string::npos ||
                              one.text.find("target.subgroup.") != std::string::npos;
    if (of_subgroups) cases.push_back(widened(one, kLanes[number++ % std::size(kLanes)]));
  }
  add_wide(cases);
  // Each workitem reads what its neighbour wrote before the barrier.
  cases.push_back(numbers("barriers", R"(  %bytes = index.constant 40 : offset
  %shared = buffer.alloca<workgroup> align(4) %bytes : buffer
  %ws = buffer.view %shared[%base] : buffer -> view<10xi32>
  %x = kernel.workitem.id<x> : index
  %y = kernel.workitem.id<y> : index
  %five = index.constant 5 : index
  %nine = index.constant 9 : index
  %flat = index.madd %y, %five, %x : index
  %back = index.sub %nine, %flat : index
  view.store %v, %ws[%flat] : i32, view<10xi32>
  kernel.barrier<workgroup> scope(workgroup) ordering(acq_rel)
  %r = view.load %ws[%back] : view<10xi32> -> i32
  kernel.barrier<global> scope(workgroup) ordering(acq_rel)
  kernel.barrier<workgroup> scope(subgroup) ordering(acq_rel)
)",
                          "i32"));
  return cases;
}

}  // namespace loom::ops
