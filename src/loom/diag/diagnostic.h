// Diagnostics: a stable code, typed parameters, a source range and, where known, the repair.
//
//   diagnostics.emit(Diag::TypeMismatch, location, {{"label_a", "operand 0"}, ...});
//
// Nothing here prints. A tool renders the collected list with render.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loom/base/id.h"

namespace loom {

using FileId = Id<struct FileTag>;

// A range on one line. Line and column count from 1; line 0 means "no place". `length` counts
// bytes and is at least 1 for a real place.
struct Location {
  FileId file;
  uint32_t line = 0;
  uint32_t column = 0;
  uint32_t length = 0;

  bool valid() const { return line != 0; }
  friend bool operator==(const Location&, const Location&) = default;
};

// Source files by id. Text given here is kept for carets; a file known by path and hash alone (from
// bytecode) is read when a line of it is first asked for, and shows nothing unless it still
// matches. Not thread-safe.
class SourceFiles {
 public:
  SourceFiles() = default;
  // Files on top of those of `base`, which keep their ids. `base` must outlive this and not be
  // added to while this is used; any number of threads may build on one base.
  explicit SourceFiles(const SourceFiles* base)
      : base_(base), first_(base != nullptr ? static_cast<uint32_t>(base->size()) : 0) {}
  struct File {
    std::string path;
    uint64_t hash = 0;  // XXH3 of the text
    std::string text;   // empty when only the path is known
    bool has_text = false;
  };
  FileId add_text(std::string path, std::string text);
  // Returns the existing id when path and hash are known already.
  FileId add_reference(std::string path, uint64_t hash);
  const File& file(FileId id) const {
    return id.index() < first_ ? base_->file(id) : files_[id.index() - first_];
  }
  size_t size() const { return first_ + files_.size(); }
  // The line without its line end; empty when the text is not available or no longer matches.
  std::string line_text(FileId id, uint32_t line) const;

 private:
  // Where the lines of a file begin, found when the first one is asked for; `disk_text` is the
  // content of a file known by reference, empty when it no longer matches.
  struct Lines {
    std::string disk_text;
    std::vector<size_t> begins;
  };
  const Lines& lines_of(FileId id) const;

  const SourceFiles* base_ = nullptr;
  uint32_t first_ = 0;  // files of the base
  std::vector<File> files_;
  mutable std::unordered_map<uint32_t, Lines> lines_;  // by file
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

enum class Severity : uint8_t { Error, Warning, Remark, Note };
std::string_view severity_name(Severity severity);

enum class Diag : uint16_t {
#define LOOM_DIAGNOSTIC(name, domain, number, severity, message, hint) name,
#include "loom/diag/diagnostics.def"
#undef LOOM_DIAGNOSTIC
};

struct DiagInfo {
  std::string_view name;  // the enumerator
  std::string_view domain;
  uint16_t number;
  Severity severity;
  std::string_view message;
  std::string_view hint;
};
const DiagInfo& diag_info(Diag id);
size_t diag_count();
// "TYPE/003"
std::string diag_code(Diag id);

struct DiagParam {
  std::string_view name;  // a literal; must outlive the diagnostic
  std::string value;
};

struct DiagNote {
  Location location;
  std::string text;
};

struct Diagnostic {
  Diag id;
  Severity severity;
  Location location;
  std::vector<DiagParam> params;
  std::vector<DiagNote> notes;

  std::string message() const;
  // Empty when no repair is known (also when every placeholder of the hint is empty).
  std::string hint() const;
  std::string_view param(std::string_view name) const;
};

// Collects diagnostics in emission order. After `limit` errors it adds PARSE/012 and reports
// `stopped()`; phases then give up. Not thread-safe.
class Diagnostics {
 public:
  explicit Diagnostics(size_t limit = 20) : limit_(limit) {}

  // The returned reference is valid until the next emit; add notes to it. A diagnostic that equals
  // an earlier one in code, place and parameters is dropped: expanded code repeats its source's.
  Diagnostic& emit(Diag id, Location location, std::vector<DiagParam> params = {});
  Diagnostic& emit_as(Severity severity, Diag id, Location location,
                      std::vector<DiagParam> params = {});

  bool has_errors() const { return error_count_ != 0; }
  size_t error_count() const { return error_count_; }
  bool stopped() const { return error_count_ >= limit_; }
  const std::vector<Diagnostic>& all() const { return all_; }
  void clear();

 private:
  size_t limit_;
  size_t error_count_ = 0;
  std::vector<Diagnostic> all_;
  std::unordered_set<uint64_t> seen_;  // hashes of code, place and parameters
  Diagnostic overflow_;
};

}  // namespace loom
