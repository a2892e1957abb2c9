#include "loom/runtime/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "loom/command/schedule.h"

namespace loom {

void Trace::record(DispatchEvent event) {
  const std::thread::id self = std::this_thread::get_id();
  const std::lock_guard lock(mutex_);
  auto at = std::ranges::find(threads_, self);
  if (at == threads_.end()) at = threads_.insert(threads_.end(), self);
  event.thread = static_cast<uint32_t>(at - threads_.begin());
  events_.push_back(event);
}

std::vector<DispatchEvent> Trace::events() const {
  std::vector<DispatchEvent> sorted = events_;
  std::ranges::sort(sorted, {}, [](const DispatchEvent& event) {
    return std::tuple(event.begin, event.end, event.command, event.first_workgroup);
  });
  return sorted;
}

std::string chrome_trace(const PreparedPlan& plan, const PreparedProgram& program,
                         std::span<const DispatchEvent> events) {
  const std::vector<uint32_t> waves = wave_numbers(program);
  // Symbols are identifiers, so they need no escapes.
  std::string text = R"({"displayTimeUnit":"ns","traceEvents":[)";
  for (const DispatchEvent& event : events) {
    const uint32_t slot = program.commands[event.command].slot;
    const auto microseconds = [](uint64_t nanoseconds) {
      return static_cast<double>(nanoseconds) / 1000;
    };
    text += fmt::format(
        R"({}{{"name":"{}","cat":"dispatch","ph":"X","pid":1,"tid":{},"ts":{:.3f},"dur":{:.3f},)"
        R"("args":{{"command":{},"first_workgroup":{},"last_workgroup":{},"wave":{}}}}})",
        text.back() == '[' ? "\n" : ",\n", plan.entries[program.slots[slot]].symbol, event.thread,
        microseconds(event.begin - events.front().begin), microseconds(event.end - event.begin),
        event.command, event.first_workgroup, event.last_workgroup, waves[event.command]);
  }
  return text + "\n]}\n";
}

}  // namespace loom
