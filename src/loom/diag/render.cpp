#include "loom/diag/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace loom {
namespace {

std::string place_text(const Location& location, const SourceFiles& files) {
  if (!location.file.valid()) return {};
  const std::string& path = files.file(location.file).path;
  if (!location.valid()) return path + ": ";
  return fmt::format("{}:{}:{}: ", path == "-" ? "<stdin>" : path, location.line, location.column);
}

// The bytes after the first of a UTF-8 character; they take no column of their own.
bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Text from a file cannot steer the terminal; each control character still takes one column.
std::string printable(std::string text) {
  for (char& byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    if ((code < 0x20 && byte != '\t' && byte != '\n') || code == 0x7f) byte = '?';
  }
  return text;
}

// Long lines are cut to a window around the caret, so that one huge line cannot flood a terminal.
void append_excerpt(std::string& out, const Location& location, const SourceFiles& files) {
  constexpr size_t kWindow = 160;
  std::string line = files.line_text(location.file, location.line);
  if (line.empty() || location.column == 0 || location.column > line.size() + 1) return;
  size_t caret = location.column - 1;
  size_t begin = 0;
  if (line.size() > kWindow) {
    begin = caret > kWindow / 2 ? caret - kWindow / 2 : 0;
    while (begin > 0 && is_continuation(line[begin])) --begin;
    size_t end = std::min(begin + kWindow, line.size());
    while (end < line.size() && is_continuation(line[end])) ++end;
    line = line.substr(begin, end - begin);
    caret -= begin;
  }
  std::string marks;
  for (size_t i = 0; i < caret; ++i) {
    if (!is_continuation(line[i]))
      marks.push_back(line[i] == '\t' ? '\t' : ' ');  // a tab keeps its width
  }
  marks.push_back('^');
  const size_t last = std::min<size_t>(line.size(), caret + std::max(1u, location.length));
  for (size_t i = caret + 1; i < last; ++i) {
    if (!is_continuation(line[i])) marks.push_back('~');
  }
  out += fmt::format("  {}\n  {}\n", printable(std::move(line)), marks);
}

nlohmann::ordered_json place_json(const Location& location, const SourceFiles& files) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  if (location.file.valid()) object["file"] = files.file(location.file).path;
  if (location.valid()) {
    object["line"] = location.line;
    object["column"] = location.column;
    object["length"] = location.length;
  }
  return object;
}

}  // namespace

std::string render_text(const Diagnostic& diagnostic, const SourceFiles& files) {
  std::string out = fmt::format("{}{}[{}]: {}\n", place_text(diagnostic.location, files),
                                severity_name(diagnostic.severity), diag_code(diagnostic.id),
                                printable(diagnostic.message()));
  append_excerpt(out, diagnostic.location, files);
  if (const std::string hint = diagnostic.hint(); !hint.empty()) {
    out += fmt::format("  hint: {}\n", hint);
  }
  for (const DiagNote& note : diagnostic.notes) {
    out += fmt::format("{}note: {}\n", place_text(note.location, files), note.text);
    append_excerpt(out, note.location, files);
  }
  return out;
}

std::string render_json(const Diagnostic& diagnostic, const SourceFiles& files) {
  nlohmann::ordered_json object;
  object["severity"] = severity_name(diagnostic.severity);
  object["code"] = diag_code(diagnostic.id);
  object["message"] = diagnostic.message();
  object.update(place_json(diagnostic.location, files));
  auto& params = object["params"] = nlohmann::ordered_json::object();
  for (const DiagParam& param : diagnostic.params) params[std::string(param.name)] = param.value;
  if (const std::string hint = diagnostic.hint(); !hint.empty()) object["hint"] = hint;
  if (!diagnostic.notes.empty()) {
    auto& notes = object["notes"] = nlohmann::ordered_json::array();
    for (const DiagNote& note : diagnostic.notes) {
      auto entry = place_json(note.location, files);
      entry["text"] = note.text;
      notes.push_back(std::move(entry));
    }
  }
  // Invalid UTF-8 in user text is replaced, so that the line is always valid JSON.
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace loom
