#include "loom/target/x86/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "loom/base/check.h"
#include "loom/dialect/export_name.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/target/llvm/loop_notes.h"
#include "loom/target/x86/codegen.h"
#include "loom/target/x86/machine_code.h"

namespace loom {
namespace {

using enum OpKind;

// Of the functions that lowering makes of func.def.
constexpr std::string_view kFunctionPrefix = "loom.";

void set_target(const X86Options& options, OutputForm form, Report& report) {
  X86Cpu cpu = x86_cpu(options.cpu);
  report.identity.set(FieldId::Target, "x86_64");
  report.identity.set(FieldId::Cpu, std::move(cpu.name));
  if (!cpu.features.empty()) report.identity.set(FieldId::CpuFeatures, std::move(cpu.features));
  report.identity.set(FieldId::CodeGenerator, code_generator_name());
  report.identity.set(
      FieldId::Flags,
      std::vector<std::string>{
          fmt::format("format={}", output_form_name(form)),
          fmt::format("denormals={}", options.denormals == DenormalMode::Keep ? "keep" : "flush"),
          fmt::format("opt_level={}", std::clamp(options.opt_level, 0, 3))});
}

template <class Key>
ReportCounts counts_of(const std::map<Key, uint64_t>& from) {
  ReportCounts counts;
  for (const auto& [key, count] : from) counts.emplace_back(fmt::format("{}", key), count);
  return counts;
}

void add_machine_code(const MachineFunction& code, ReportFields& fields) {
  fields.set(FieldId::CodeBytes, code.bytes);
  fields.set(FieldId::Instructions, code.instructions);
  fields.set(FieldId::InstructionMix, counts_of(code.mix));
  fields.set(FieldId::VectorInstructions, counts_of(code.vectors));
  fields.set(FieldId::Loads, counts_of(code.loads));
  fields.set(FieldId::Stores, counts_of(code.stores));
}

std::optional<uint64_t> number_of(const CodegenNotes::Remark& remark, std::string_view name) {
  for (const auto& [key, text] : remark.values) {
    if (key != name) continue;
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc()) return value;
  }
  return std::nullopt;
}

// What register allocation and frame layout say; they are silent about functions without spills.
void add_frame(const CodegenNotes& notes, std::string_view function, ReportFields& fields) {
  uint64_t spills = 0;
  uint64_t reloads = 0;
  for (const CodegenNotes::Remark& remark : notes.remarks) {
    if (remark.function != function) continue;
    if (remark.pass == "prologepilog") {
      if (const auto bytes = number_of(remark, "NumStackBytes")) {
        fields.set(FieldId::StackBytes, *bytes);
      }
    } else if (remark.pass == "regalloc" && remark.name == "SpillReloadCopies") {
      spills += number_of(remark, "NumSpills").value_or(0) +
                number_of(remark, "NumFoldedSpills").value_or(0);
      reloads += number_of(remark, "NumReloads").value_or(0) +
                 number_of(remark, "NumFoldedReloads").value_or(0);
    }
  }
  if (!notes.counts_spills) return;
  fields.set(FieldId::Spills, spills);
  fields.set(FieldId::Reloads, reloads);
}

void add_loops(const CodegenNotes& notes, std::string_view function, ReportFields& fields) {
  fields.set(FieldId::LoopOutcomes, ReportCounts());
  fields.set(FieldId::Loops, std::vector<ReportRow>());
  for (const LoopDecision& loop : loop_decisions(notes, function)) {
    const std::string outcome = loop.done ? "done" : "missed";
    fields.count(FieldId::LoopOutcomes, fmt::format("{} {}", loop.transform, outcome));
    fields.add_texts(FieldId::Loops, {loop.place, loop.transform, outcome, loop.detail});
  }
}

std::string place_of(const Module& module, Location place) {
  if (!place.valid()) return "";
  return place_text(module.files().file(place.file).path, place.line, place.column);
}

void add_facts(const Module& module, const CodegenNotes& notes, std::string_view function,
               ReportFields& fields) {
  fields.set(FieldId::FactsUsed, std::vector<ReportRow>());
  fields.set(FieldId::FactsMissing, std::vector<ReportRow>());
  for (const CodegenNotes::Fact& fact : notes.used) {
    if (fact.function != function) continue;
    fields.add_texts(FieldId::FactsUsed, {place_of(module, fact.place), fact.fact, fact.subject});
  }
  for (const CodegenNotes::Fact& fact : notes.missing) {
    if (fact.function != function) continue;
    fields.add_texts(FieldId::FactsMissing,
                     {place_of(module, fact.place), fact.fact, fact.subject, fact.effect});
  }
}

}  // namespace

void report_templates(const Module& module, std::span<const TemplateChoice> choices,
                      Report& report) {
  for (const TemplateChoice& choice : choices) {
    ReportEntry* owner = report.entries.empty() ? nullptr : &report.entries[0];
    for (ReportEntry& entry : report.entries) {
      if (entry.kind != "module" && entry.name == choice.root) owner = &entry;
    }
    if (owner == nullptr) return;
    const std::string outcome(outcome_name(choice.outcome));
    owner->fields.count(FieldId::TemplateOutcomes, outcome);
    owner->fields.add_texts(FieldId::Templates,
                            {place_of(module, choice.place), choice.family, choice.candidate,
                             fmt::format("{}", choice.priority), outcome, choice.reason});
  }
}

std::string_view output_form_name(OutputForm form) {
  constexpr std::array<std::string_view, 4> kNames = {"object", "llvm-ir", "llvm-bitcode", "asm"};
  return kNames[static_cast<size_t>(form)];
}

std::optional<std::string> compile_x86_reported(const Module& module, std::span<const OpId> kernels,
                                                OutputForm form, const X86Options& options,
                                                Report& report, Diagnostics& diagnostics) {
  CodegenNotes notes;
  auto output = compile_x86(module, kernels, form, options, diagnostics, &notes);
  if (!output) return std::nullopt;
  const std::vector<CodegenNotes::Step> steps = notes.steps;
  // Only objects know the places of loops, and assembly holds what the object does.
  std::optional<std::string> object = output;
  if (form != OutputForm::Object) {
    notes = {};
    object = compile_x86(module, kernels, OutputForm::Object, options, diagnostics, &notes);
    if (!object) return std::nullopt;
  }
  set_target(options, form, report);
  ReportFields& whole = report.add("module", std::string(output_form_name(form))).fields;
  whole.set(FieldId::Form, std::string(output_form_name(form)));
  whole.set(FieldId::OutputBytes, uint64_t{output->size()});
  for (const CodegenNotes::Step& step : steps) {
    whole.add_row(FieldId::Passes, ReportRow{step.name, step.seconds, uint64_t{1}});
  }

  std::vector<MachineFunction> code;
  if (form == OutputForm::Object || form == OutputForm::Assembly) {
    std::string error;
    auto read = read_machine_code(*object, error);
    LOOM_CHECK(read.has_value(), error.c_str());
    code = std::move(*read);
  }
  const auto add = [&](const char* kind, std::string name, std::string_view symbol) {
    ReportFields& fields = report.add(kind, std::move(name)).fields;
    const auto found = std::ranges::find(code, symbol, &MachineFunction::name);
    if (found != code.end()) {
      add_machine_code(*found, fields);
      add_frame(notes, symbol, fields);
    }
    if (options.opt_level > 0) add_loops(notes, symbol, fields);
    add_facts(module, notes, symbol, fields);
    return &fields;
  };
  for (const auto& [symbol, private_bytes, workgroup_bytes] : notes.storage) {
    std::string name = symbol;
    for_each_op(module, module.body(), [&](OpId op) {
      if (module.op(op).kind == KernelDef && export_name(module, op) == symbol) {
        name = symbol_text(module, op);
      }
    });
    ReportFields& fields = *add("kernel", std::move(name), symbol);
    fields.set(FieldId::PrivateStorage, private_bytes);
    fields.set(FieldId::WorkgroupStorage, workgroup_bytes);
  }
  for (const MachineFunction& function : code) {
    if (!function.name.starts_with(kFunctionPrefix)) continue;
    add("function", function.name.substr(kFunctionPrefix.size()), function.name);
  }
  return output;
}

}  // namespace loom
