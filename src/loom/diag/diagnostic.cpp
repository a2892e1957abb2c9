#include "loom/diag/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace loom {
namespace {

constexpr std::array kTable = {
#define LOOM_DIAGNOSTIC(name, domain, number, severity, message, hint) \
  DiagInfo{#name, #domain, number, Severity::severity, message, hint},
#include "loom/diag/diagnostics.def"
#undef LOOM_DIAGNOSTIC
};

std::string_view find_param(const std::vector<DiagParam>& params, std::string_view name) {
  for (const DiagParam& param : params) {
    if (param.name == name) return param.value;
  }
  return {};
}

struct Substituted {
  std::string text;
  bool has_placeholder = false;
  bool has_value = false;  // some placeholder was replaced by text
};

// Replaces each `{name}`; a name without a parameter becomes empty text.
Substituted substitute(std::string_view pattern, const std::vector<DiagParam>& params) {
  Substituted result;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const size_t close = pattern[i] == '{' ? pattern.find('}', i) : std::string_view::npos;
    if (close == std::string_view::npos) {
      result.text.push_back(pattern[i]);
      continue;
    }
    const std::string_view value = find_param(params, pattern.substr(i + 1, close - i - 1));
    result.has_placeholder = true;
    result.has_value |= !value.empty();
    result.text.append(value);
    i = close;
  }
  return result;
}

std::vector<size_t> line_begins(std::string_view text) {
  std::vector<size_t> begins{0};
  for (size_t end = text.find('\n'); end != std::string_view::npos;
       end = text.find('\n', end + 1)) {
    begins.push_back(end + 1);
  }
  return begins;
}

// Equal for diagnostics of equal code, place and parameters.
uint64_t identity(Diag id, const Location& location, const std::vector<DiagParam>& params) {
  uint64_t hash = hash_combine(static_cast<uint64_t>(id), location.file.index());
  hash = hash_combine(hash, (static_cast<uint64_t>(location.line) << 32) | location.column);
  for (const DiagParam& param : params) hash = hash_combine(hash, hash_bytes(param.value));
  return hash;
}

}  // namespace

FileId SourceFiles::add_text(std::string path, std::string text) {
  File file{std::move(path), hash_bytes(text), std::move(text), true};
  by_hash_.emplace(file.hash, static_cast<uint32_t>(size()));
  files_.push_back(std::move(file));
  return FileId(size() - 1);
}

FileId SourceFiles::add_reference(std::string path, uint64_t hash) {
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (file(FileId(it->second)).path == path) return FileId(it->second);
  }
  by_hash_.emplace(hash, static_cast<uint32_t>(size()));
  files_.push_back({std::move(path), hash, {}, false});
  return FileId(size() - 1);
}

const SourceFiles::Lines& SourceFiles::lines_of(FileId id) const {
  const auto [found, fresh] = lines_.try_emplace(id.index());
  Lines& lines = found->second;
  if (!fresh) return lines;
  const File& file = this->file(id);
  if (!file.has_text && file.path != "-") {
    auto text = read_file(file.path);
    if (text && hash_bytes(*text) == file.hash) lines.disk_text = std::move(*text);
  }
  lines.begins = line_begins(file.has_text ? file.text : lines.disk_text);
  return lines;
}

std::string SourceFiles::line_text(FileId id, uint32_t line) const {
  if (!id.valid() || id.index() >= size() || line == 0) return {};
  const File& file = this->file(id);
  const Lines& lines = lines_of(id);
  if (line > lines.begins.size()) return {};
  const std::string_view text = file.has_text ? file.text : lines.disk_text;
  const size_t begin = lines.begins[line - 1];
  std::string_view result = text.substr(begin, text.find('\n', begin) - begin);
  if (result.ends_with('\r')) result.remove_suffix(1);
  return std::string(result);
}

std::string_view severity_name(Severity severity) {
  static constexpr std::array<std::string_view, 4> kNames = {"error", "warning", "remark", "note"};
  return kNames[static_cast<size_t>(severity)];
}

const DiagInfo& diag_info(Diag id) { return kTable[static_cast<size_t>(id)]; }
size_t diag_count() { return kTable.size(); }

std::string diag_code(Diag id) {
  const DiagInfo& info = diag_info(id);
  return fmt::format("{}/{:03}", info.domain, info.number);
}

std::string Diagnostic::message() const { return substitute(diag_info(id).message, params).text; }

std::string Diagnostic::hint() const {
  Substituted hint = substitute(diag_info(id).hint, params);
  return hint.has_placeholder && !hint.has_value ? std::string() : std::move(hint.text);
}

std::string_view Diagnostic::param(std::string_view name) const { return find_param(params, name); }

Diagnostic& Diagnostics::emit(Diag id, Location location, std::vector<DiagParam> params) {
  return emit_as(diag_info(id).severity, id, location, std::move(params));
}

Diagnostic& Diagnostics::emit_as(Severity severity, Diag id, Location location,
                                 std::vector<DiagParam> params) {
  const bool repeated = location.valid() && !seen_.insert(identity(id, location, params)).second;
  if (stopped() || repeated) {
    overflow_ = {id, severity, location, std::move(params), {}};
    return overflow_;
  }
  all_.push_back({id, severity, location, std::move(params), {}});
  if (severity == Severity::Error && ++error_count_ == limit_ && limit_ > 1) {
    all_.push_back({Diag::ParseTooManyErrors,
                    Severity::Error,
                    location,
                    {{"count", fmt::format("{}", limit_)}},
                    {}});
    return all_[all_.size() - 2];
  }
  return all_.back();
}

void Diagnostics::clear() {
  all_.clear();
  seen_.clear();
  error_count_ = 0;
}

}  // namespace loom
