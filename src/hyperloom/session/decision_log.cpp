#include "hyperloom/session/decision_log.h"

#include <fmt/format.h>

#include "hyperloom/core/durable.h"
#include "hyperloom/core/fault.h"
#include "loom/base/file.h"

namespace hyperloom::session {

namespace fs = std::filesystem;

Result<DecisionLog> DecisionLog::open(fs::path path) {
  DecisionLog log(std::move(path));
  std::error_code error;
  if (!fs::exists(fs::symlink_status(log.path_, error))) return log;
  const std::string name = log.path_.string();
  auto text = loom::read_file(name);
  if (!text) return fail("unreadable_file", fmt::format("{}: {}", name, text.error().reason));
  size_t begin = 0;
  for (size_t line = 1; begin < text->size(); ++line) {
    const size_t end = text->find('\n', begin);
    if (end == std::string::npos) {
      if (auto cut = write_durable(log.path_, std::string_view(*text).substr(0, begin)); !cut) {
        return std::unexpected(cut.error());
      }
      break;
    }
    const std::string place = fmt::format("{} line {}", name, line);
    auto row = parse_json(std::string_view(*text).substr(begin, end - begin), place);
    if (!row) return std::unexpected(row.error());
    if (!value_of(*row, "seq").is_number_unsigned() || !value_of(*row, "key").is_string()) {
      return fail("invalid_json", place + ": has no 'seq' and 'key'");
    }
    log.last_seq_ = row->at("seq").get<uint64_t>();
    log.keys_.insert(text_of(*row, "key"));
    begin = end + 1;
  }
  return log;
}

Result<void> DecisionLog::append(const std::string& key, Json row) {
  if (keys_.contains(key)) return {};
  row["key"] = key;
  row["seq"] = last_seq_ + 1;
  fault_point("decision.log");
  if (auto written = append_line(path_, compact(row)); !written) return written;
  keys_.insert(key);
  ++last_seq_;
  return {};
}

}  // namespace hyperloom::session
