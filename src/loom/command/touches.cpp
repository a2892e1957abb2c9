#include "loom/command/touches.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/pass/analysis.h"
#include "loom/pass/constants.h"

namespace loom {
namespace {

using enum OpKind;

constexpr uint64_t kEnd = std::numeric_limits<uint64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
// Terms of one number; a longer sum is left to its facts.
constexpr size_t kTerms = 16;

__extension__ using Wide = __int128;

int64_t clamp(Wide value) { return static_cast<int64_t>(std::clamp<Wide>(value, kLeast, kMost)); }

// Follows the views of a kernel's launch arguments through its body, in one walk: values come
// before their uses, and whatever is done to a view in a way that is not known here counts as
// everything that its argument allows.
class TouchWalk {
 public:
  TouchWalk(const Module& module, OpId kernel, std::span<const Access> access,
            KernelTouches& touches)
      : module_(module),
        kernel_(kernel),
        body_(module.op_region(kernel, region_slot(KernelDef, "body"))),
        access_(access),
        touches_(touches),
        facts_(module, kernel),
        values_(module, body_, touches.values) {}

  void run() {
    const auto args = module_.args(body_);
    touches_.rest.assign(args.size(), Access::None);
    const OpId first = module_.region(body_).first;
    for (uint32_t i = 0; i < args.size(); ++i) {
      const TypeKind kind = module_.types[module_.type_of(args[i])].kind;
      if (kind == TypeKind::View) {
        open_view(first, args[i], i, LaunchRange());
      } else if (kind == TypeKind::Buffer) {
        origin_[args[i].index()] = {i, kWhole, {}};
      }
    }
    for_each_nested(module_, kernel_, [&](OpId op) { visit(op); });
  }

 private:
  static constexpr uint32_t kWhole = std::numeric_limits<uint32_t>::max();
  struct Origin {
    uint32_t argument;
    uint32_t view;                   // of `touches_.views`; kWhole is the argument itself
    std::vector<LaunchRange> first;  // of a subview in it, by axis
  };

  Access allowed(uint32_t argument) const {
    return argument < access_.size() ? access_[argument] : Access::ReadWrite;
  }

  void visit(OpId op) {
    const auto operands = module_.operands(op);
    for (uint32_t i = 0; i < operands.size(); ++i) {
      const auto found = origin_.find(operands[i].index());
      if (found != origin_.end()) follow(op, i, Origin(found->second));
    }
  }

  void follow(OpId op, uint32_t operand, const Origin& origin) {
    switch (module_.op(op).kind) {
      case BufferAssumeNoalias:
      case BufferAssumeAlignment:
        origin_[module_.result(op, operand).index()] = origin;
        return;
      case BufferAssumeMemorySpace:
      case ViewRefine:
        origin_[module_.result(op).index()] = origin;
        return;
      case BufferView:
        return open_view(op, module_.result(op), origin.argument,
                         range(op, module_.operand(op, 1)));
      case ViewSubview:
        return open_window(op, origin);
      case ViewPrefetch:
        return;
      case ViewLoad:
      case VectorLoad:
      case VectorLoadMask:
        return mark(op, operand, origin, Access::Read, module_.type_of(module_.result(op)));
      case ViewStore:
      case VectorStore:
      case VectorStoreMask:
        return mark(op, operand, origin, Access::Write, module_.type_of(module_.operand(op, 0)));
      case ViewAtomicReduce:
      case ViewAtomicStore:
        return mark(op, operand, origin, Access::ReadWrite,
                    module_.type_of(module_.operand(op, 0)));
      case ViewAtomicRmw:
      case ViewAtomicCmpxchg:
      case ViewAtomicLoad:
        return mark(op, operand, origin, Access::ReadWrite, module_.type_of(module_.result(op)));
      default:
        mark_all(origin, Access::ReadWrite);
    }
  }

  void open_view(OpId op, ValueId result, uint32_t argument, LaunchRange offset) {
    const Type& type = module_.types[module_.type_of(result)];
    Origin origin{argument, kWhole, {}};
    if (!type.encoding.valid() && !type.encoding_value.valid()) {
      TouchedView view{argument, std::move(offset), {}, scalar_bytes(type.element)};
      for (const Dim dim : type.dims) {
        view.extents.push_back(dim.is_dynamic() ? range(op, dim.value()) : exactly(dim.extent()));
      }
      origin.view = static_cast<uint32_t>(touches_.views.size());
      origin.first.resize(type.dims.size());
      touches_.views.push_back(std::move(view));
    }
    origin_[result.index()] = std::move(origin);
  }

  void open_window(OpId op, Origin origin) {
    if (origin.view != kWhole) {
      origin.first = moved(origin.first, op, 0, attr_slot(ViewSubview, "static_index"));
    }
    origin_[module_.result(op).index()] = std::move(origin);
  }

  // An access at an origin in the view: one element, or those that the axes of a vector cover.
  void mark(OpId op, uint32_t operand, const Origin& origin, Access access, TypeId value) {
    if (origin.view == kWhole) return mark_all(origin, access);
    access = allow(access, origin.argument);
    const auto& attrs = op_info(module_.op(op).kind).attrs;
    const auto slot = std::ranges::find(attrs, "static_index", &AttrSpec::name) - attrs.begin();
    TouchedWindow window{origin.view, moved(origin.first, op, operand, static_cast<unsigned>(slot)),
                         std::vector<int64_t>(origin.first.size(), 1), access};
    const Type& type = module_.types[value];
    for (size_t i = 0; i < type.dims.size() && i < window.lengths.size(); ++i) {
      const Dim lanes = type.dims[type.dims.size() - 1 - i];
      window.lengths[window.lengths.size() - 1 - i] = lanes.is_dynamic() ? kMost : lanes.extent();
    }
    touches_.windows.push_back(std::move(window));
  }

  void mark_all(const Origin& origin, Access access) {
    access = allow(access, origin.argument);
    if (origin.view == kWhole) {
      touches_.rest[origin.argument] = both(touches_.rest[origin.argument], access);
    } else {
      touches_.windows.push_back({origin.view, {}, {}, access});
    }
  }

  static Access both(Access a, Access b) {
    return static_cast<Access>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
  }
  Access allow(Access access, uint32_t argument) const {
    return static_cast<Access>(static_cast<uint8_t>(access) &
                               static_cast<uint8_t>(allowed(argument)));
  }

  // `first` and the coordinates of `op`, whose operands begin behind the view `operand`.
  std::vector<LaunchRange> moved(std::vector<LaunchRange> first, OpId op, uint32_t operand,
                                 unsigned slot) {
    const auto places = module_.attr(op, slot).ints;
    for (size_t axis = 0; axis < places.size() && axis < first.size(); ++axis) {
      const LaunchRange by = places[axis] == kDynamicIndex
                                 ? range(op, module_.operand(op, ++operand))
                                 : exactly(places[axis]);
      first[axis] = sum(std::move(first[axis]), by);
    }
    return first;
  }

  static LaunchRange exactly(int64_t value) { return {{}, value, value, value, value}; }

  static LaunchRange sum(LaunchRange a, const LaunchRange& b) {
    a.terms.insert(a.terms.end(), b.terms.begin(), b.terms.end());
    const bool only = a.lo == 0 && a.hi == 0 && a.terms.size() == b.terms.size();
    a.lo = clamp(Wide{a.lo} + b.lo);
    a.hi = clamp(Wide{a.hi} + b.hi);
    a.least = only ? b.least : kLeast;
    a.most = only ? b.most : kMost;
    return a;
  }

  // Takes sums and products with constants apart, so that what a launch decides and what it does
  // not are both counted.
  LaunchRange range(OpId place, ValueId value) {
    LaunchRange found;
    const IntFacts whole = facts_.at(place, value);
    found.least = whole.lo;
    found.most = whole.hi;
    std::vector<std::pair<ValueId, int64_t>> open = {{value, 1}};
    while (!open.empty()) {
      const auto [part, scale] = open.back();
      open.pop_back();
      if (const auto exact = exact_int(module_, part)) {
        add(found, *exact, *exact, scale);
      } else if (const auto number = values_.number(part)) {
        found.terms.push_back({false, *number, scale});
      } else if (!split(part, scale, found, open)) {
        const IntFacts facts = facts_.at(place, part);
        add(found, facts.lo, facts.hi, scale);
      }
      if (found.terms.size() + open.size() > kTerms) {
        return {{}, whole.lo, whole.hi, whole.lo, whole.hi};
      }
    }
    return found;
  }

  static void add(LaunchRange& to, int64_t lo, int64_t hi, int64_t scale) {
    to.lo = clamp(to.lo + Wide{lo} * scale);
    to.hi = clamp(to.hi + Wide{hi} * scale);
  }

  bool split(ValueId part, int64_t scale, LaunchRange& found,
             std::vector<std::pair<ValueId, int64_t>>& open) const {
    const OpId op = module_.defining_op(part);
    if (!op.valid()) return false;
    const OpKind kind = module_.op(op).kind;
    if (kind == KernelWorkgroupId) {
      const auto axis = module_.attr(op, attr_slot(KernelWorkgroupId, "axis")).bits;
      found.terms.push_back({true, static_cast<uint32_t>(axis), scale});
      return true;
    }
    if (kind == IndexAdd) {
      open.push_back({module_.operand(op, 0), scale});
      open.push_back({module_.operand(op, 1), scale});
      return true;
    }
    if (kind == IndexCast) {
      const ValueId source = module_.operand(op, 0);
      const ScalarKind element = module_.types[module_.type_of(source)].element;
      if (element != ScalarKind::Index && element != ScalarKind::Offset) return false;
      open.push_back({source, scale});
      return true;
    }
    if (kind != IndexMul && kind != IndexMadd) return false;
    const auto left = exact_int(module_, module_.operand(op, 0));
    const auto factor = left ? left : exact_int(module_, module_.operand(op, 1));
    int64_t product = 0;
    if (!factor || *factor < 0 || __builtin_mul_overflow(*factor, scale, &product)) return false;
    open.push_back({module_.operand(op, left ? 1 : 0), product});
    if (kind == IndexMadd) open.push_back({module_.operand(op, 2), scale});
    return true;
  }

  const Module& module_;
  const OpId kernel_;
  const RegionId body_;
  std::span<const Access> access_;
  KernelTouches& touches_;
  FactAnalysis facts_;
  LaunchNumbers values_;
  std::unordered_map<uint32_t, Origin> origin_;  // by value
};

// The bytes of windows at one launch.
class LaunchTouches {
 public:
  LaunchTouches(const KernelTouches& kernel, std::span<const Argument> arguments,
                std::span<const uint32_t> counts)
      : kernel_(kernel), counts_(counts) {
    evaluate_launch(kernel.values, arguments, results_);
  }

  // Nothing when no element can be touched.
  std::optional<TouchedRange> of(const TouchedWindow& window) const {
    const TouchedView& view = kernel_.views[window.view];
    auto [begin, last] = at(view.offset);
    begin = std::max<Wide>(begin, 0);
    bool bounded = last < kMost;
    Wide stride = view.element_bytes;
    for (size_t axis = view.extents.size(); axis-- > 0;) {
      const auto [fewest, most] = at(view.extents[axis]);
      if (most <= 0) return std::nullopt;
      Wide lo = 0;
      Wide hi = most - 1;
      if (!window.first.empty()) {
        const auto [low, high] = at(window.first[axis]);
        lo = std::max<Wide>(low, 0);
        hi = std::min<Wide>(hi, high + window.lengths[axis] - 1);
        if (lo > hi) return std::nullopt;
      }
      // Outside of an axis whose extent is not exact, rows begin anywhere behind here.
      bounded = bounded && (stride >= 0 || hi == 0);
      const Wide step = stride < 0 ? 0 : stride;
      begin = std::min<Wide>(begin + lo * step, kMost);
      last = std::min<Wide>(last + hi * step, kMost);
      stride = fewest == most && stride >= 0 ? std::min<Wide>(stride * most, kMost) : Wide{-1};
    }
    const Wide end = last + view.element_bytes;
    if (bounded && end <= begin) return std::nullopt;
    return TouchedRange{view.argument, static_cast<uint64_t>(begin),
                        bounded && end < kMost ? static_cast<uint64_t>(end) : kEnd, window.access};
  }

 private:
  // Both ends included; they saturate.
  std::pair<Wide, Wide> at(const LaunchRange& range) const {
    Wide lo = range.lo;
    Wide hi = range.hi;
    bool known = true;
    for (const LaunchRange::Term& term : range.terms) {
      if (term.workgroup) {
        if (counts_.empty()) {
          known = false;
        } else {
          hi += clamp((Wide{counts_[term.number]} - 1) * term.scale);
        }
      } else if (const auto& value = results_[term.number]) {
        lo += clamp(Wide{as_signed(*value)} * term.scale);
        hi += clamp(Wide{as_signed(*value)} * term.scale);
      } else {
        return {range.least, range.most};
      }
    }
    if (range.lo == kLeast) lo = kLeast;
    if (range.hi == kMost || !known) hi = kMost;
    return {std::max<Wide>(lo, range.least), std::min<Wide>(hi, range.most)};
  }

  const KernelTouches& kernel_;
  std::span<const uint32_t> counts_;
  LaunchResults results_;
};

}  // namespace

KernelTouches kernel_touches(const Module& module, OpId kernel, std::span<const Access> access) {
  KernelTouches touches;
  TouchWalk(module, kernel, access, touches).run();
  return touches;
}

std::vector<TouchedRange> touched_ranges(const KernelTouches& kernel,
                                         std::span<const Argument> arguments,
                                         std::span<const uint32_t> counts) {
  const LaunchTouches launch(kernel, arguments, counts);
  std::vector<TouchedRange> ranges;
  for (uint32_t i = 0; i < kernel.rest.size(); ++i) {
    if (kernel.rest[i] != Access::None) ranges.push_back({i, 0, kEnd, kernel.rest[i]});
  }
  for (const TouchedWindow& window : kernel.windows) {
    if (window.access == Access::None) continue;
    if (const auto range = launch.of(window)) ranges.push_back(*range);
  }
  // Ranges that meet become one: many accesses of a kernel are at the same place or side by side.
  std::ranges::sort(ranges, {}, [](const TouchedRange& r) {
    return std::tuple(r.argument, r.access, r.begin, r.end);
  });
  size_t kept = 0;
  for (size_t i = 1; i < ranges.size(); ++i) {
    TouchedRange& last = ranges[kept];
    const TouchedRange& next = ranges[i];
    if (next.argument == last.argument && next.access == last.access && next.begin <= last.end) {
      last.end = std::max(last.end, next.end);
    } else {
      ranges[++kept] = next;
    }
  }
  if (!ranges.empty()) ranges.resize(kept + 1);
  return ranges;
}

}  // namespace loom
