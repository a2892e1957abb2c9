// Random kernels of meetings, choices, loops and exits compute what the interpreter says.
#include <algorithm>

#include "cases.h"

namespace loom::ops {
namespace {

// Who is sure to have one value, or to go one way.
enum Together : unsigned { kAll, kSubgroup, kNobody };

class Writer {
 public:
  Writer(uint64_t seed, unsigned lanes) : random_(seed), lanes_(lanes) {}

  std::string body() {
    values_ = {{"%v", kNobody},
               {"%zero", kAll},
               {"%one", kAll},
               {"%group_number", kAll},
               {"%subgroup_number", kSubgroup}};
    for (int i = 0; i < 7; ++i) {
      statement(2);
      if (pick(4) == 0) leave();
    }
    std::string sum = "%v";
    for (const Value& value : values_) sum = combine("xori", sum, value.name);
    line("view.store {}, %w1[%at] : i32, view<Nxi32>", sum);
    return text_;
  }

 private:
  struct Value {
    std::string name;
    Together together;
  };

  uint64_t pick(uint64_t below) { return random_() % below; }
  template <class... A>
  void line(fmt::format_string<const A&...> format, const A&... arguments) {
    text_ += std::string(2 * depth_ + 2, ' ') + fmt::format(format, arguments...) + "\n";
  }
  std::string fresh() { return fmt::format("%t{}", next_++); }
  // One of at most that kind.
  Value any(Together most = kNobody) {
    std::vector<Value> fitting;
    for (const Value& value : values_) {
      if (value.together <= most) fitting.push_back(value);
    }
    return fitting[pick(fitting.size())];
  }
  std::string combine(std::string_view op, const std::string& a, const std::string& b) {
    const std::string name = fresh();
    line("{} = scalar.{} {}, {} : i32", name, op, a, b);
    return name;
  }
  // A condition that as many know, or more.
  std::string condition(Together most, Together& is) {
    const Value a = any(most);
    const Value b = any(most);
    is = std::max(a.together, b.together);
    const std::string name = fresh();
    line("{} = scalar.cmpi {}, {}, {} : i32", name, pick(2) == 0 ? "slt" : "ne", a.name, b.name);
    return name;
  }

  void statement(int depth) {
    switch (pick(depth > 0 ? 8 : 5)) {
      case 0: {
        const Value a = any();
        const Value b = any();
        values_.push_back({combine(pick(2) == 0 ? "addi" : "muli", a.name, b.name),
                           std::max(a.together, b.together)});
        return;
      }
      case 1:
        if (way_ == kAll) return of_workgroup();
        [[fallthrough]];
      case 2:
      case 3:
        if (way_ != kNobody) return of_subgroup();
        return;
      case 4:
        if (way_ == kAll) return line("kernel.barrier<global> scope(workgroup) ordering(acq_rel)");
        if (way_ == kSubgroup) line("kernel.barrier<workgroup> scope(subgroup) ordering(acq_rel)");
        return;
      case 5:
      case 6:
        return choice(depth);
      default:
        return loop(depth);
    }
  }

  void of_workgroup() {
    const std::string name = fresh();
    const std::string from = any().name;
    if (pick(2) == 0) {
      line("{} = kernel.workgroup.reduce<addi> {} : i32", name, from);
      values_.push_back({name, kAll});
    } else {
      line("{} = kernel.workgroup.scan<xori> {} {{direction = reverse, mode = exclusive}} : i32",
           name, from);
      values_.push_back({name, kNobody});
    }
  }

  void of_subgroup() {
    const std::string name = fresh();
    const std::string from = any().name;
    switch (pick(6)) {
      case 0:
        line("{} = kernel.subgroup.reduce<{}> {} : i32", name, pick(2) == 0 ? "minsi" : "addi",
             from);
        return values_.push_back({name, kSubgroup});
      case 5:
        line("{}_is = scalar.cmpi slt, {}, %one : i32", name, from);
        line("{} = kernel.subgroup.vote.ballot {}_is : i1 -> i32", name, name);
        return values_.push_back({name, kSubgroup});
      case 1:
        line("{} = kernel.subgroup.scan<addi> {} {{direction = forward, mode = inclusive}} : i32",
             name, from);
        return values_.push_back({name, kNobody});
      case 2:
        line("{} = kernel.subgroup.broadcast.first {} : i32", name, from);
        return values_.push_back({name, kSubgroup});
      case 3:
        line("{} = kernel.subgroup.active.mask : i32", name);
        return values_.push_back({name, kSubgroup});
      default:
        line("{}, {}_is = kernel.subgroup.shuffle<up> {}, %one, {} : i32, i32, i32", name, name,
             from, lanes_ > 1 ? "%two" : "%one");
        return values_.push_back({name, kNobody});
    }
  }

  // Writes what a region yields, and forgets what is only known in it.
  Together region(int depth, const std::string& carried) {
    const auto around = values_.size();
    if (!carried.empty()) values_.push_back({carried, kNobody});
    ++depth_;
    for (uint64_t i = pick(3) + 1; i > 0; --i) statement(depth - 1);
    const Value yielded = any();
    line("scf.yield {} : i32", yielded.name);
    --depth_;
    values_.resize(around);
    return yielded.together;
  }
  // Control that as many go through together as the way so far and what decides allow.
  template <class F>
  void within(Together together, F&& f) {
    const Together around = way_;
    way_ = std::max(way_, together);
    f();
    way_ = around;
  }

  void choice(int depth) {
    Together decided = kAll;
    const std::string chosen = condition(static_cast<Together>(pick(3)), decided);
    const std::string name = fresh();
    Together together = decided;
    within(decided, [&] {
      line("{} = scf.if {} -> (i32) {{", name, chosen);
      together = std::max(together, region(depth, ""));
      line("}} else {{");
      together = std::max(together, region(depth, ""));
      line("}}");
    });
    values_.push_back({name, together});
  }

  void loop(int depth) {
    constexpr std::string_view kEnds[] = {"%n3", "%id", "%lane"};
    const auto decided = static_cast<Together>(pick(3));
    const std::string name = fresh();
    const std::string carried = fresh();
    line("{} = scf.for {}_k = [%n0 to {} step %n1]({} = {} : i32) -> (i32) {{", name, name,
         kEnds[decided], carried, any().name);
    within(decided, [&] { region(depth, carried); });
    line("}}");
    values_.push_back({name, kNobody});
  }

  // The workgroup no longer meets where not all of it is sure to be left, subgroups still do.
  void leave() {
    Together decided = kAll;
    const std::string leaves = condition(static_cast<Together>(pick(3)), decided);
    if (decided == kAll && pick(3) != 0) return;
    line("kernel.exit {} : i1 {{", leaves);
    ++depth_;
    line("view.store {}, %w1[%at] : i32, view<Nxi32>", any().name);
    --depth_;
    line("}}");
    way_ = std::max(way_, std::min(decided, kSubgroup));
  }

  std::mt19937_64 random_;
  const unsigned lanes_;
  std::string text_;
  std::vector<Value> values_;
  Together way_ = kAll;
  unsigned depth_ = 0;
  unsigned next_ = 0;
};

Case random_case(uint64_t seed) {
  constexpr unsigned kLanes[] = {1, 2, 3, 4, 8, 16};
  constexpr unsigned kSizes[][2] = {{1, 1}, {7, 1}, {5, 2}, {8, 1}, {16, 1}, {3, 3}, {1, 6}};
  const unsigned lanes = kLanes[seed % std::size(kLanes)];
  const auto& size = kSizes[seed / std::size(kLanes) % std::size(kSizes)];
  const LoomDispatchShape shape{{2, 1, 1}, {size[0], size[1], 1}};
  const unsigned items = size[0] * size[1];
  std::string body = fmt::format(R"(  %group = kernel.workgroup.id<x> : index
  %x = kernel.workitem.id<x> : index
  %y = kernel.workitem.id<y> : index
  %id = kernel.subgroup.id : index
  %lane = kernel.subgroup.lane.id : index
  %n0 = index.constant 0 : index
  %n1 = index.constant 1 : index
  %n3 = index.constant 3 : index
  %width = index.constant {} : index
  %items = index.constant {} : index
  %flat = index.madd %y, %width, %x : index
  %at = index.madd %group, %items, %flat : index
  %w0 = buffer.view %b0[%base] : buffer -> view<Nxi32>
  %w1 = buffer.view %b1[%base] : buffer -> view<Nxi32>
  %v = view.load %w0[%at] : view<Nxi32> -> i32
  %zero = scalar.constant 0 : i32
  %one = scalar.constant 1 : i32
  %two = scalar.constant 2 : i32
  %group_number = index.cast %group : index to i32
  %subgroup_number = index.cast %id : index to i32
)",
                                 size[0], items) +
                     Writer(seed, lanes).body();
  for (size_t at = 0; (at = body.find("<Nx", at)) != std::string::npos;) {
    body.replace(at + 1, 1, std::to_string(2 * items));
  }
  const size_t values = size_t{2} * items;
  return {fmt::format("seed {}, {} lanes", seed, lanes),
          with_subgroups(kernel_text(2, body, shape), lanes),
          {noise(ScalarKind::I32, values, seed), zeros(ScalarKind::I32, values)},
          shape,
          {}};
}

TEST(Meetings, OfRandomKernelsAgreeWithTheInterpreter) {
  const char* const asked = std::getenv("LOOM_GENERATE_PROGRAMS");
  const uint64_t count = asked == nullptr ? 100 : std::strtoull(asked, nullptr, 10);
  for (uint64_t seed = 0; seed < count && !::testing::Test::HasFailure(); ++seed) {
    expect_all_same({random_case(seed)});
  }
}

}  // namespace
}  // namespace loom::ops
