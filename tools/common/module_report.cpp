#include "common/module_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "loom/dialect/op_info.h"

namespace loom {

void report_module(const Module& module, std::string_view text, std::span<const PassTiming> passes,
                   std::span<const LoopNote> loops, Report& report) {
  ReportFields& whole = report.add("module", "loom").fields;
  whole.set(FieldId::Form, std::string("loom"));
  whole.set(FieldId::OutputBytes, uint64_t{text.size()});
  for (const PassTiming& pass : passes) {
    const double seconds = std::chrono::duration<double>(pass.time).count();
    whole.add_row(FieldId::Passes, ReportRow{pass.name, seconds, pass.runs});
  }
  for (const LoopNote& loop : loops) {
    const bool kernel = module.op(loop.root).kind == OpKind::KernelDef;
    const std::string kind = kernel ? "kernel" : "function";
    const std::string name(symbol_text(module, loop.root));
    if (report.find(kind, name) == nullptr) report.add(kind, name);
    const auto entry = std::ranges::find_if(report.entries, [&](const ReportEntry& one) {
      return one.kind == kind && one.name == name;
    });
    const std::string outcome = loop.done ? "done" : "missed";
    std::string place;
    if (loop.place.valid()) {
      place = fmt::format("{}:{}:{}", module.files().file(loop.place.file).path, loop.place.line,
                          loop.place.column);
    }
    entry->fields.count(FieldId::LoopOutcomes, fmt::format("{} {}", loop.transform, outcome));
    entry->fields.add_texts(FieldId::Loops,
                            {place, std::string(loop.transform), outcome, loop.detail});
  }
}

}  // namespace loom
