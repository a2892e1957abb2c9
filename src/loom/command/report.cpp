#include "loom/command/report.h"

#include <algorithm>
#include <array>

#include "loom/command/program_view.h"
#include "loom/command/schedule.h"

namespace loom {
namespace {

constexpr std::array<const char*, 3> kCountForms = {"direct", "static_indirect",
                                                    "dynamic_indirect"};
constexpr std::array<const char*, 3> kNodeKinds = {"serial", "concurrent", "command"};

void report_program(const ProgramView& program, ReportFields& fields) {
  fields.set(FieldId::Dispatches, ReportCounts());
  for (const DispatchCommand& command : program.commands()) {
    fields.count(FieldId::Dispatches,
                 kCountForms[static_cast<size_t>(program.count_form(command))]);
  }
  for (const ScheduleNode& node : program.schedule()) {
    fields.count(FieldId::ScheduleNodes, kNodeKinds[static_cast<size_t>(node.kind)]);
  }
  const std::vector<uint32_t> waves = wave_numbers(program);
  fields.set(FieldId::Waves,
             waves.empty() ? uint64_t{0} : uint64_t{*std::ranges::max_element(waves)} + 1);
  fields.set(FieldId::Entries, uint64_t{program.slot_count()});
  uint64_t bytes = 0;
  for (size_t row = 0; row < program.parameter_count(); ++row)
    bytes += program.parameter(row).length;
  fields.set(FieldId::Parameters, uint64_t{program.parameter_count()});
  fields.set(FieldId::ParameterBytes, bytes);
  fields.set(FieldId::Transients, uint64_t{program.transient_count()});
  fields.set(FieldId::TransientBytes, program.slab().bytes);
}

}  // namespace

void report_plan(const PreparedPlan& plan, Report& report) {
  ReportFields& whole = report.add("module", "loom-command").fields;
  whole.set(FieldId::Form, "loom-command");
  whole.set(FieldId::Entries, uint64_t{plan.entries.size()});
  for (const PreparedProgram& program : plan.programs) {
    report_program(program, report.add("program", program.symbol).fields);
  }
}

}  // namespace loom
