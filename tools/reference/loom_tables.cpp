// Prints the language's tables as JSON, for the scripts that make the reference pages and the
// editor grammars and hold the tests to the tables.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "loom/diag/diagnostic.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/attr.h"
#include "loom/pass/runner.h"
#include "loom/report/report.h"

namespace loom {
namespace {

using nlohmann::ordered_json;

std::string_view arity_text(Arity arity) {
  return arity == Arity::Single ? "one" : arity == Arity::Optional ? "optional" : "many";
}

std::string_view effect_text(Effect effect) {
  switch (effect) {
    case Effect::Pure:
      return "pure";
    case Effect::Hint:
      return "hint";
    case Effect::Alloc:
      return "allocates";
    case Effect::Read:
      return "reads memory";
    case Effect::Write:
      return "writes memory";
    case Effect::Call:
      return "as its callee";
    case Effect::Command:
      return "command";
    case Effect::Observable:
      return "observable";
    case Effect::Nested:
      return "as its regions";
    case Effect::Structure:
      return "defines a symbol";
  }
  return "";
}

ordered_json attributes_json(const OpInfo& info) {
  ordered_json attrs = ordered_json::array();
  const std::string_view words = detail::kRowTexts[static_cast<size_t>(info.kind)].attrs;
  size_t begin = 0;
  for (const AttrSpec& spec : info.attrs) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    const std::string_view word = words.substr(begin, end - begin);
    begin = end + 1;
    attrs.push_back({{"name", spec.name},
                     {"form", word.substr(word.find(':') + 1)},
                     {"optional", spec.optional},
                     {"in_dict", spec.in_dict}});
  }
  return attrs;
}

ordered_json op_json(const OpInfo& info) {
  ordered_json op;
  op["name"] = info.name;
  op["dialect"] = info.dialect;
  op["tier"] = info.tier == Tier::T1 ? "T1" : info.tier == Tier::T2 ? "T2" : "T3";
  op["effect"] = effect_text(info.effect);
  op["format"] = info.format_text;
  op["doc"] = info.doc;
  op["convergent"] = info.has(trait::Convergent);
  op["terminator"] = info.has(trait::Terminator);
  op["symbol"] = info.has(trait::Symbol);
  op["same_type"] = info.has(trait::SameType);
  ordered_json operands = ordered_json::array();
  for (const OperandSpec& spec : info.operands) {
    operands.push_back(
        {{"name", spec.name}, {"type", spec.constraint->text}, {"arity", arity_text(spec.arity)}});
  }
  ordered_json results = ordered_json::array();
  for (const ResultSpec& spec : info.results) {
    results.push_back(
        {{"name", spec.name}, {"type", spec.constraint->text}, {"arity", arity_text(spec.arity)}});
  }
  ordered_json regions = ordered_json::array();
  for (const RegionSpec& spec : info.regions) {
    ordered_json region = {{"name", spec.name}, {"signature", spec.signature}};
    if (spec.terminator) region["terminator"] = op_info(*spec.terminator).name;
    region["optional"] = spec.optional;
    regions.push_back(std::move(region));
  }
  op["operands"] = std::move(operands);
  op["results"] = std::move(results);
  op["attributes"] = attributes_json(info);
  op["regions"] = std::move(regions);
  return op;
}

ordered_json report_json() {
  ordered_json fields = ordered_json::array();
  for (const FieldInfo& field : all_report_fields()) {
    ordered_json columns = ordered_json::array();
    for (const ColumnInfo& column : field.columns) {
      columns.push_back({{"name", column.name},
                         {"form", field_form_name(column.form)},
                         {"unit", column.unit},
                         {"doc", column.doc}});
    }
    fields.push_back({{"name", field.name},
                      {"kind", field_kind_name(field.kind)},
                      {"form", field_form_name(field.form)},
                      {"unit", field.unit},
                      {"level", report_level_name(field.level)},
                      {"doc", field.doc},
                      {"columns", std::move(columns)}});
  }
  return {{"schema", kReportSchema}, {"fields", std::move(fields)}};
}

ordered_json tables() {
  ordered_json out;
  out["report"] = report_json();
  for (const OpKind kind : kAllOpKinds) out["ops"].push_back(op_json(op_info(kind)));
  const auto add_enum = [&](std::string_view name, EnumId id) {
    out["enums"].push_back(
        {{"name", name}, {"text", enum_info(id).text}, {"cases", enum_info(id).cases}});
  };
#define LOOM_ENUM(name, text, cases) add_enum(#name, EnumId::name);
#include "loom/dialect/enums.def"
  const auto add_flags = [&](std::string_view name, FlagSetId id) {
    const FlagSetInfo& info = flag_set_info(id);
    out["flags"].push_back({{"name", name}, {"flags", info.flags}, {"all", info.all}});
  };
#define LOOM_FLAGS(name, flags, all) add_flags(#name, FlagSetId::name);
#include "loom/dialect/flags.def"
#define LOOM_PREDICATE(name, text, arguments, domain) \
  out["predicates"].push_back({{"name", text}, {"arguments", arguments}, {"domain", #domain}});
#include "loom/ir/predicates.def"
#define LOOM_SCALAR(name, text, bits, family) out["scalar_types"].push_back(text);
#define LOOM_OPAQUE(name, text) out["opaque_types"].push_back(text);
#define LOOM_SHAPED(name, text, encoding, align) out["shaped_types"].push_back(text);
#include "loom/ir/types.def"
#define LOOM_DIAGNOSTIC(name, domain, number, severity, message, hint) \
  out["diagnostics"].push_back({{"name", #name},                       \
                                {"domain", #domain},                   \
                                {"number", number},                    \
                                {"severity", #severity},               \
                                {"message", message},                  \
                                {"hint", hint}});
#include "loom/diag/diagnostics.def"
  for (const PassInfo& pass : all_passes()) {
    out["passes"].push_back({{"name", pass.name}, {"doc", pass.doc}});
  }
  return out;
}

}  // namespace
}  // namespace loom

int main() {
  std::puts(loom::tables().dump(1).c_str());
  return 0;
}
