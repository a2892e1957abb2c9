#include <fmt/format.h>

#include <map>

#include "hyperloom/agent/orchestrator.h"
#include "loom/base/file.h"

namespace hyperloom::agent {
namespace {

class Replayed : public Orchestrator {
 public:
  Replayed(std::string role, std::vector<Json> envelopes)
      : role_(std::move(role)), envelopes_(std::move(envelopes)) {}
  std::string_view role() const override { return role_; }

  Result<Json> turn(const Turn& turn) override {
    if (turn.number < envelopes_.size()) return envelopes_[turn.number];
    return Json{{"intents", Json::array()}};
  }

 private:
  std::string role_;
  std::vector<Json> envelopes_;
};

}  // namespace

Result<std::vector<std::unique_ptr<Orchestrator>>> replayed(const std::filesystem::path& file) {
  const auto text = loom::read_file(file.string());
  if (!text) {
    return fail("unreadable_file", fmt::format("{}: {}", file.string(), text.error().reason));
  }
  std::map<std::string, std::vector<Json>> turns;
  turns["orchestration"];
  size_t number = 0;
  for (size_t begin = 0; begin < text->size();) {
    const size_t end = std::min(text->find('\n', begin), text->size());
    const std::string_view line = std::string_view(*text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto row = parse_json(line, fmt::format("{}:{}", file.string(), number));
    if (!row) {
      return fail("invalid_transcript",
                  fmt::format("{}:{}: the line is not one JSON value", file.string(), number),
                  "write one envelope a line");
    }
    const bool wrapped = row->is_object() && row->contains("envelope");
    const std::string role = wrapped ? text_of(*row, "role", "orchestration") : "orchestration";
    turns[role].push_back(wrapped ? row->at("envelope") : std::move(*row));
  }
  std::vector<std::unique_ptr<Orchestrator>> roles;
  for (auto& [role, envelopes] : turns) {
    roles.push_back(std::make_unique<Replayed>(role, std::move(envelopes)));
  }
  return roles;
}

}  // namespace hyperloom::agent
