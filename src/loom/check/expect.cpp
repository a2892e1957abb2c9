// Expectations: what holds, and what is said where it does not.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "loom/check/arrays.h"
#include "loom/check/case_host.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/runtime/parameters/npy.h"

namespace loom::check {

using enum OpKind;

namespace {

Tolerance close_tolerance(const Module& module, OpId op) {
  return {.rule = Tolerance::Rule::Close,
          .absolute = module.attr(op, attr_slot(CheckExpectClose, "atol")).number(),
          .relative = module.attr(op, attr_slot(CheckExpectClose, "rtol")).number(),
          .same_nan = module.attr(op, attr_slot(CheckExpectClose, "nan")).value() ==
                      static_cast<int64_t>(NanPolicy::Same)};
}

void add_params(std::vector<DiagParam>& params, bool first, const Elements& of,
                const Mismatch& mismatch) {
  const auto add = [&](std::string_view name_first, std::string_view name_worst,
                       std::string value) {
    params.push_back({first ? name_first : name_worst, std::move(value)});
  };
  add("first_index", "worst_index", of.place(mismatch.index));
  add("first_actual", "worst_actual", value_text(mismatch.actual));
  add("first_expected", "worst_expected", value_text(mismatch.expected));
  if (mismatch.ulps) add("first_ulp", "worst_ulp", std::to_string(*mismatch.ulps));
  if (mismatch.relative) {
    add("first_relative", "worst_relative", fmt::format("{:.17g}", *mismatch.relative));
  }
}

std::string at_place(const Elements& of, const Mismatch& mismatch) {
  return of.shape().empty() ? "" : " at " + of.place(mismatch.index);
}

// The kind of event that ended an execution; nothing for any other error.
std::optional<Event> event_of(Diag id) {
  switch (id) {
    case Diag::RunViewBounds:
    case Diag::RunBufferBounds:
    case Diag::RunUninitialized:
    case Diag::RunMisaligned:
      return Event::Access;
    case Diag::RunRace:
    case Diag::RunHazard:
      return Event::Race;
    case Diag::RunContract:
    case Diag::RunFalsePromise:
    case Diag::RunAssertion:
    case Diag::RunDivergence:
      return Event::Trap;
    default:
      return std::nullopt;
  }
}

std::string_view event_text(Event event) {
  switch (event) {
    case Event::Access:
      return "report of a bad access";
    case Event::Race:
      return "report of a race";
    case Event::Trap:
      return "trap";
  }
  return "";
}

}  // namespace

bool SampleHost::expect(OpId op, std::span<const CaseValue> operands) {
  if (module_.op(op).kind == CheckExpectShape) {
    expect_shape(op, operands);
    return true;
  }
  const ValueId value = module_.operand(op, 0);
  const ScalarKind kind = type_of(value).element;
  const Elements actual(operands[0], kind, shape_of(value));
  const Elements expected(operands[1], kind, shape_of(value));
  Tolerance tolerance;
  switch (module_.op(op).kind) {
    case CheckExpectEqual:
      break;
    case CheckExpectBitwise:
      tolerance.rule = Tolerance::Rule::Bitwise;
      break;
    case CheckExpectClose:
      tolerance = close_tolerance(module_, op);
      break;
    case CheckExpect: {
      const auto rule = comparison_rule(module_, op);
      if (!rule) return unplannable(op, rule.error());
      if (rule->kind == ComparisonRule::Kind::Ranking) {
        expect_ranking(op, rule->number, actual, expected);
        return true;
      }
      tolerance = {.rule = Tolerance::Rule::Ulp, .ulps = rule->number};
      break;
    }
    default:
      return unplannable(
          op, fmt::format("'{}' cannot be executed in a case", op_info(module_.op(op).kind).name));
  }
  const Comparison comparison = compare(actual, expected, tolerance);
  if (comparison.mismatches != 0) report(op, actual, expected, comparison);
  return true;
}

void SampleHost::report(OpId op, const Elements& actual, const Elements& expected,
                        const Comparison& comparison) {
  const std::string name = name_of(module_.operand(op, 0));
  std::string detail;
  if (actual.shape().empty()) {
    detail = fmt::format("'{}' is not as expected: {}", name, mismatch_text(comparison.first));
  } else {
    detail = fmt::format("{} of {} elements of '{}' are not as expected; the first{}: {}",
                         comparison.mismatches, comparison.elements, name,
                         at_place(actual, comparison.first), mismatch_text(comparison.first));
  }
  std::vector<DiagParam> params = {{"detail", detail},
                                   {"expectation", std::string(op_info(module_.op(op).kind).name)},
                                   {"actual", name},
                                   {"expected", name_of(module_.operand(op, 1))},
                                   {"mismatches", std::to_string(comparison.mismatches)},
                                   {"elements", std::to_string(comparison.elements)}};
  add_params(params, true, actual, comparison.first);
  add_params(params, false, actual, comparison.worst);
  Diagnostic& error =
      result_.diagnostics.emit(Diag::CheckExpectation, module_.location(op), std::move(params));
  if (comparison.worst.index != comparison.first.index) {
    error.notes.push_back({{},
                           fmt::format("the worst{}: {}", at_place(actual, comparison.worst),
                                       mismatch_text(comparison.worst))});
  }
  for (const Seed& seed : seeds_) {
    error.notes.push_back({{}, fmt::format("'{}' is random from seed {}", seed.tensor, seed.seed)});
  }
  keep(op, actual, expected);
}

void SampleHost::expect_shape(OpId op, std::span<const CaseValue> operands) {
  const std::vector<int64_t> found = shape_of(module_.operand(op, 0));
  std::vector<int64_t> wanted;
  size_t next = 1;
  for (const int64_t extent : module_.attr(op, attr_slot(CheckExpectShape, "shape")).ints) {
    wanted.push_back(
        extent != kDynamicIndex ? extent : as_signed(std::get<LaneValues>(operands[next++]).at(0)));
  }
  if (found == wanted) return;
  result_.diagnostics.emit(
      Diag::CheckExpectation, module_.location(op),
      {{"detail",
        fmt::format("'{}' has the shape [{}] but [{}] is expected", name_of(module_.operand(op, 0)),
                    fmt::join(found, ", "), fmt::join(wanted, ", "))}});
}

void SampleHost::expect_ranking(OpId op, uint64_t top, const Elements& actual,
                                const Elements& expected) {
  const std::vector<uint64_t> found = ranking(actual, top);
  const std::vector<uint64_t> wanted = ranking(expected, top);
  const auto [a, b] = std::ranges::mismatch(found, wanted);
  if (a == found.end()) return;
  Diagnostic& error = result_.diagnostics.emit(
      Diag::CheckExpectation, module_.location(op),
      {{"detail",
        fmt::format("rank {} of '{}' is {} with {}, but {} with {} is expected", a - found.begin(),
                    name_of(module_.operand(op, 0)), actual.place(*a), value_text(actual.at(*a)),
                    expected.place(*b), value_text(expected.at(*b)))}});
  for (const Seed& seed : seeds_) {
    error.notes.push_back({{}, fmt::format("'{}' is random from seed {}", seed.tensor, seed.seed)});
  }
  keep(op, actual, expected);
}

// Both sides of a failed comparison, beside each other.
void SampleHost::keep(OpId op, const Elements& actual, const Elements& expected) {
  if (!context_.keep_failures || actual.shape().empty()) return;
  const Location location = module_.location(op);
  const ArrayType type = array_type(type_of(module_.operand(op, 0)));
  for (const auto& [what, elements] : {std::pair{"actual", &actual}, {"expected", &expected}}) {
    const auto array = write_npy(type, elements->bytes());
    const std::string content =
        array ? *array
              : std::string(reinterpret_cast<const char*>(elements->bytes().data()),
                            elements->bytes().size());
    const std::string file = fmt::format("{}.{}/line{}.{}.{}", case_.name, ordinal_, location.line,
                                         what, array ? "npy" : to_string(type) + ".bin");
    on_failure_.push_back(
        {(std::filesystem::path(context_.output_folder) / file).string(), content});
  }
}

// An execution that ended by an event is what `check.expect.event` waits for.
void SampleHost::finish_events(bool ended) {
  std::vector<OpId> waiting;
  for_each_nested(module_, case_.op, [&](OpId op) {
    if (module_.op(op).kind == CheckExpectEvent) waiting.push_back(op);
  });
  if (waiting.empty() || unplannable_) return;
  std::optional<Event> happened;
  if (!ended && !result_.diagnostics.all().empty()) {
    happened = event_of(result_.diagnostics.all().back().id);
  }
  bool expected = happened.has_value();
  for (const OpId op : waiting) {
    const auto event = expected_event(module_, op, context_.device);
    expected = expected && event && *event == *happened;
  }
  if (expected) {
    result_.diagnostics.clear();
    return;
  }
  for (const OpId op : waiting) {
    const auto event = expected_event(module_, op, context_.device);
    if (!event || (happened && *event == *happened)) continue;
    result_.diagnostics.emit(
        Diag::CheckExpectation, module_.location(op),
        {{"detail", fmt::format("a {} is expected, but there was none", event_text(*event))}});
  }
}

}  // namespace loom::check
