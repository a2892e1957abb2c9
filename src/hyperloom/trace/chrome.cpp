#include "hyperloom/trace/chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "loom/base/file.h"

namespace hyperloom::trace {
namespace {

constexpr const char* kProducer = "hyperloom";
constexpr double kLongestNs = 9e15;  // what a double counts exactly; a hundred days

// A time of an event in nanoseconds, or nothing where it is none.
bool nanoseconds(const Json& event, const char* field, uint64_t& into) {
  const double value = number_of(event, field, -1) * 1000;
  if (!(value >= 0) || value > kLongestNs) return false;
  into = static_cast<uint64_t>(std::llround(value));
  return true;
}

bool count(const Json& args, const char* field, uint64_t& into) {
  const Json& value = value_of(args, field);
  if (value.is_null()) return true;
  if (!value.is_number_unsigned()) return false;
  into = value.get<uint64_t>();
  return true;
}

Result<workload::Dispatch> read_event(const Json& event, size_t number, const std::string& name) {
  const auto bad = [&](const char* field) {
    return fail("invalid_trace",
                fmt::format("{}: event {} has no usable '{}'", name, number, field));
  };
  workload::Dispatch dispatch;
  dispatch.kernel = text_of(event, "name");
  if (dispatch.kernel.empty()) return bad("name");
  uint64_t length = 0;
  if (!nanoseconds(event, "ts", dispatch.begin_ns)) return bad("ts");
  if (!nanoseconds(event, "dur", length)) return bad("dur");
  dispatch.end_ns = dispatch.begin_ns + length;
  const Json& args = value_of(event, "args");
  uint64_t thread = 0;
  uint64_t line = 0;
  if (!count(event, "tid", thread) || thread > UINT32_MAX) return bad("tid");
  if (!count(args, "workgroups", dispatch.workgroups)) return bad("args.workgroups");
  if (!count(args, "bytes", dispatch.bytes)) return bad("args.bytes");
  if (!count(args, "operations", dispatch.operations)) return bad("args.operations");
  dispatch.operation_type = text_of(args, "operation_type");
  if (!count(args, "source_line", line) || line > UINT32_MAX) return bad("args.source_line");
  dispatch.thread = static_cast<uint32_t>(thread);
  dispatch.source_line = static_cast<uint32_t>(line);
  dispatch.source_file = text_of(args, "source_file");
  return dispatch;
}

}  // namespace

Json chrome_trace(const std::string& program, const std::vector<workload::Dispatch>& dispatches) {
  uint64_t end = 0;
  Json events = Json::array();
  for (const workload::Dispatch& one : dispatches) {
    end = std::max(end, one.end_ns);
    Json args = {{"workgroups", one.workgroups}};
    if (one.bytes != 0) args["bytes"] = one.bytes;
    if (one.operations != 0) {
      args["operations"] = one.operations;
      args["operation_type"] = one.operation_type;
    }
    if (!one.source_file.empty()) {
      args["source_file"] = one.source_file;
      args["source_line"] = one.source_line;
    }
    events.push_back({{"name", one.kernel},
                      {"cat", "kernel"},
                      {"ph", "X"},
                      {"ts", static_cast<double>(one.begin_ns) / 1000},
                      {"dur", static_cast<double>(one.end_ns - one.begin_ns) / 1000},
                      {"pid", 1},
                      {"tid", one.thread},
                      {"args", std::move(args)}});
  }
  events.push_back({{"name", "iteration 1"},
                    {"cat", "gpu_user_annotation"},
                    {"ph", "X"},
                    {"ts", 0.0},
                    {"dur", static_cast<double>(end) / 1000},
                    {"pid", 1},
                    {"tid", 0},
                    {"args", Json::object()}});
  return {{"traceEvents", std::move(events)},
          {"displayTimeUnit", "ns"},
          {"otherData", {{"producer", kProducer}, {"program", program}}}};
}

Result<std::vector<workload::Dispatch>> parse_trace(std::string_view text,
                                                    const std::string& name) {
  const auto document = parse_json(text, name);
  if (!document) return fail("invalid_trace", document.error().message);
  const Json& events = value_of(*document, "traceEvents");
  if (!events.is_array()) {
    return fail("invalid_trace", fmt::format("{}: there is no array 'traceEvents'", name));
  }
  if (text_of(value_of(*document, "otherData"), "producer") != kProducer) {
    return fail(
        "not_available",
        fmt::format("{}: the trace is of another producer, for which there is no reader", name),
        "analyze a profile of a native workload");
  }
  std::vector<workload::Dispatch> dispatches;
  for (size_t i = 0; i < events.size(); ++i) {
    if (text_of(events[i], "cat") != "kernel" || text_of(events[i], "ph") != "X") continue;
    auto dispatch = read_event(events[i], i, name);
    if (!dispatch) return std::unexpected(dispatch.error());
    dispatches.push_back(std::move(*dispatch));
  }
  return dispatches;
}

Result<std::vector<workload::Dispatch>> read_trace(const std::filesystem::path& path) {
  const auto text = loom::read_file(path.string());
  if (!text)
    return fail("unreadable_file", fmt::format("{}: {}", path.string(), text.error().reason));
  return parse_trace(*text, path.string());
}

}  // namespace hyperloom::trace
