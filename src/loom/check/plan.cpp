#include "loom/check/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

#include "loom/dialect/hooks.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"

namespace loom::check {
namespace {

using enum OpKind;

constexpr uint64_t kMany = std::numeric_limits<uint64_t>::max();

uint64_t distance(int64_t lower, int64_t upper) {
  return static_cast<uint64_t>(upper) - static_cast<uint64_t>(lower);
}

std::string_view parameter_name(const Module& module, OpId op, unsigned slot) {
  if (module.has_attr(op, slot)) return module.strings.text(module.attr(op, slot).string());
  return module.name_of(module.result(op));
}

Parameter range_parameter(const Module& module, OpId op) {
  Parameter made{.op = op, .name = parameter_name(module, op, attr_slot(CheckParamRange, "name"))};
  made.first = module.attr(op, attr_slot(CheckParamRange, "lower")).value();
  const int64_t upper = module.attr(op, attr_slot(CheckParamRange, "upper")).value();
  const auto kind =
      static_cast<ParamRange>(module.attr(op, attr_slot(CheckParamRange, "kind")).bits);
  if (kind == ParamRange::Po2) {
    made.form = Parameter::Form::Doubling;
    made.count = 1;
    for (auto at = static_cast<uint64_t>(made.first); at < static_cast<uint64_t>(upper); at *= 2) {
      ++made.count;
    }
    return made;
  }
  constexpr unsigned kStep = attr_slot(CheckParamRange, "step");
  if (module.has_attr(op, kStep)) made.step = static_cast<uint64_t>(module.attr(op, kStep).value());
  made.count = distance(made.first, upper) / made.step + 1;
  return made;
}

std::optional<Parameter> parameter(const Module& module, OpId op) {
  switch (module.op(op).kind) {
    case CheckParamRange:
      return range_parameter(module, op);
    case CheckParamChoice: {
      const auto values = module.attr(op, attr_slot(CheckParamChoice, "values")).ints;
      return Parameter{.op = op,
                       .name = parameter_name(module, op, attr_slot(CheckParamChoice, "name")),
                       .form = Parameter::Form::Choice,
                       .values = values,
                       .count = values.size()};
    }
    case CheckParamSeed:
      return Parameter{.op = op,
                       .name = parameter_name(module, op, attr_slot(CheckParamSeed, "name")),
                       .is_seed = true,
                       .first = module.attr(op, attr_slot(CheckParamSeed, "base")).value(),
                       .count = static_cast<uint64_t>(
                           module.attr(op, attr_slot(CheckParamSeed, "count")).value())};
    default:
      return std::nullopt;
  }
}

// Plans one case after the other.
class Planner {
 public:
  Planner(const Module& module, const DeviceTraits& device) : module_(module), device_(device) {
    for_each_op(module, module.body(),
                [&](OpId op) { has_open_keys_ |= module.op(op).kind == ConfigDecl; });
  }

  Case plan(OpId op) {
    Case made{.op = op, .name = symbol_text(module_, op)};
    is_misasked_ = false;
    for_each_nested(module_, op, [&](OpId nested) { look(made, nested); });
    if (has_open_keys_) look_for_open_keys(made);
    // What else the device lacks does not matter to a case that it does not run.
    if (!made.skipped.empty() && !is_misasked_) made.issues.clear();
    for (const Parameter& parameter : made.parameters) {
      if (parameter.count == 0 ||
          __builtin_mul_overflow(made.samples, parameter.count, &made.samples)) {
        made.samples = kMany;
        break;
      }
    }
    return made;
  }

  void issue(Case& of, OpId at, std::string detail, std::string repair = {}) {
    of.issues.push_back({Diag::CheckUnplannable,
                         Severity::Error,
                         module_.location(at),
                         {{"case", std::string(of.name)},
                          {"detail", std::move(detail)},
                          {"repair", std::move(repair)}},
                         {}});
  }

 private:
  template <class T>
  bool require(Case& of, OpId at, const std::expected<T, std::string>& answer) {
    if (!answer) issue(of, at, answer.error());
    return answer.has_value();
  }

  void look(Case& of, OpId op) {
    switch (module_.op(op).kind) {
      case CheckParamRange:
      case CheckParamChoice:
      case CheckParamSeed:
        of.parameters.push_back(*parameter(module_, op));
        return;
      case CheckRequires:
      case CheckSkipIf:
        return look_at_requirement(of, op);
      case CheckExpect:
        require(of, op, comparison_rule(module_, op));
        return;
      case CheckExpectEvent:
        require(of, op, expected_event(module_, op, device_));
        return;
      case CheckOracleCall:
        return look_at_oracle(of, op);
      case CheckGenerateRandomUniform:
        return look_at_random(of, op);
      case KernelLaunch:
        return look_at_launch(of, op, attr_slot(KernelLaunch, "callee"), KernelDef);
      case CommandProgramLaunch:
        return look_at_launch(of, op, attr_slot(CommandProgramLaunch, "callee"), CommandProgramDef);
      case FuncCall:
        require_definition(of, op, callee_name(module_, op), "function");
        return;
      default:
        break;
    }
    if (op_info(module_.op(op).kind).effect == Effect::Command && device_.compiles) {
      issue(of, op,
            fmt::format("'{}' cannot be launched from a case on device {}",
                        op_info(module_.op(op).kind).name, device_.name));
    }
  }

  void look_at_requirement(Case& of, OpId op) {
    const bool requires_it = module_.op(op).kind == CheckRequires;
    const auto accepted = accepts(module_, op, device_);
    is_misasked_ |= !require(of, op, accepted);
    if (!accepted || *accepted == requires_it || !of.skipped.empty()) return;
    constexpr unsigned kReason = attr_slot(CheckSkipIf, "reason");
    if (!requires_it && module_.has_attr(op, kReason)) {
      of.skipped = module_.strings.text(module_.attr(op, kReason).string());
      return;
    }
    const std::string_view provider =
        module_.strings.text(module_.attr(op, attr_slot(CheckRequires, "provider")).string());
    const AttrId options = module_.attr_ids(op)[attr_slot(CheckRequires, "options")];
    of.skipped = fmt::format("{} {} {}", provider, attr_text(module_, options),
                             requires_it ? "is not accepted" : "is accepted");
  }

  void look_at_random(Case& of, OpId op) {
    for (const unsigned slot : {attr_slot(CheckGenerateRandomUniform, "lower"),
                                attr_slot(CheckGenerateRandomUniform, "upper")}) {
      const Attr& bound = module_.attr(op, slot);
      if (bound.kind != AttrKind::Float || std::isfinite(bound.number())) continue;
      issue(of, op, "a bound of the random values is not finite");
    }
  }

  void look_at_oracle(Case& of, OpId op) {
    const auto name = oracle_name(module_, op, device_);
    if (!require(of, op, name) || !name->empty()) return;
    require_definition(of, op, module_.attr(op, attr_slot(CheckOracleCall, "callee")).string(),
                       "function");
  }

  // Configuration without a value in anything that the case mentions, directly or not.
  void look_for_open_keys(Case& of) {
    std::vector<OpId> found = {of.op};
    std::unordered_set<uint32_t> seen = {of.op.index()};
    for (size_t next = 0; next < found.size(); ++next) {
      const OpId symbol = found[next];
      if (module_.op(symbol).kind == ConfigDecl) {
        const std::string_view key = symbol_text(module_, symbol);
        issue(of, symbol, fmt::format("the configuration key '@{}' has no value", key),
              fmt::format("give it one with --config={}=VALUE", key));
        continue;
      }
      for_each_nested(module_, symbol, [&](OpId nested) {
        for (const AttrId id : module_.attr_ids(nested)) {
          if (!id.valid() || module_.attrs[id].kind != AttrKind::Symbol) continue;
          const OpId named = module_.symbol(module_.attrs[id].string());
          if (named.valid() && seen.insert(named.index()).second) found.push_back(named);
        }
      });
    }
  }

  OpId require_definition(Case& of, OpId op, StringId name, std::string_view what) {
    const OpId symbol = module_.symbol(name);
    if (symbol.valid() && !is_declaration(module_.op(symbol).kind)) return symbol;
    issue(of, op,
          fmt::format("{} '@{}' is declared and defined nowhere", what, module_.strings.text(name)),
          "add the module that defines it as an input or with --library=FILE");
    return {};
  }

  void look_at_launch(Case& of, OpId op, unsigned callee, OpKind defined) {
    const bool kernel = defined == KernelDef;
    const OpId symbol = require_definition(of, op, module_.attr(op, callee).string(),
                                           kernel ? "kernel" : "command program");
    if (!symbol.valid()) return;
    if (module_.op(symbol).kind != defined) {
      issue(of, op, fmt::format("'@{}' has no body to launch", symbol_text(module_, symbol)));
    } else if (kernel && std::ranges::find(of.kernels, symbol) == of.kernels.end()) {
      of.kernels.push_back(symbol);
    }
  }

  const Module& module_;
  const DeviceTraits& device_;
  bool has_open_keys_ = false;
  bool is_misasked_ = false;  // a requirement of the case cannot be answered
};

void add_samples(Plan& plan, Planner& planner, const PlanOptions& options, uint32_t place) {
  Case& of = plan.cases[place];
  if (options.sample) {
    if (*options.sample >= of.samples) {
      planner.issue(
          of, of.op,
          fmt::format("it has no sample {}; it has {}", *options.sample,
                      of.samples == kMany ? "too many to count" : fmt::to_string(of.samples)));
    } else if (of.issues.empty() && of.skipped.empty()) {
      plan.samples.push_back({place, *options.sample});
    }
    return;
  }
  const uint64_t count = std::min(of.samples, options.most.value_or(of.samples));
  if (count > kMostSamples) {
    planner.issue(of, of.op,
                  of.samples == kMany
                      ? std::string("it has more samples than can be numbered")
                      : fmt::format("it has {} samples, more than {}", of.samples, kMostSamples),
                  "choose with --sample=N or --max-samples-per-case=N");
  }
  if (!of.issues.empty() || !of.skipped.empty()) return;
  for (uint64_t ordinal = 0; ordinal < count; ++ordinal) plan.samples.push_back({place, ordinal});
}

}  // namespace

int64_t Parameter::value(uint64_t place) const {
  switch (form) {
    case Form::Choice:
      return values[place];
    case Form::Doubling:
      return static_cast<int64_t>(static_cast<uint64_t>(first) << place);
    case Form::Linear:
      break;
  }
  return static_cast<int64_t>(static_cast<uint64_t>(first) + step * place);
}

void Case::decode(uint64_t ordinal, std::vector<uint64_t>& places) const {
  places.assign(parameters.size(), 0);
  for (size_t i = parameters.size(); i-- > 0;) {
    const uint64_t count = parameters[i].count;  // 0 stands for 2^64
    places[i] = count == 0 ? ordinal : ordinal % count;
    ordinal = count == 0 ? 0 : ordinal / count;
  }
}

std::string Case::parameters_text(uint64_t ordinal) const {
  std::vector<uint64_t> places;
  decode(ordinal, places);
  std::string text;
  for (size_t i = 0; i < parameters.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? "" : ", ",
                        parameters[i].name.empty() ? fmt::format("#{}", i) : parameters[i].name,
                        parameters[i].value(places[i]));
  }
  return text;
}

Plan make_plan(const Module& module, const PlanOptions& options, const DeviceTraits& device) {
  Plan plan;
  Planner planner(module, device);
  for_each_op(module, module.body(), [&](OpId op) {
    if (module.op(op).kind != CheckCase) return;
    const std::string_view name = symbol_text(module, op);
    if (!options.cases.empty() && std::ranges::find(options.cases, name) == options.cases.end()) {
      return;
    }
    plan.cases.push_back(planner.plan(op));
    add_samples(plan, planner, options, static_cast<uint32_t>(plan.cases.size() - 1));
  });
  return plan;
}

std::vector<std::string_view> case_names(const Module& module) {
  std::vector<std::string_view> names;
  for_each_op(module, module.body(), [&](OpId op) {
    if (module.op(op).kind == CheckCase) names.push_back(symbol_text(module, op));
  });
  return names;
}

}  // namespace loom::check
