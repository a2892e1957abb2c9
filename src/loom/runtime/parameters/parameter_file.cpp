#include "loom/runtime/parameters/parameter_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "loom/runtime/parameters/gguf.h"
#include "loom/runtime/parameters/npy.h"
#include "loom/runtime/parameters/safetensors.h"

namespace loom {
namespace {

FormatResult<ParsedFile> read_npy_file(std::span<const std::byte> bytes, const std::string& path) {
  auto array = read_npy(bytes);
  if (!array) return std::unexpected(array.error());
  ParsedFile parsed{FileFormat::Npy, array->version};
  ParameterEntry& entry = parsed.entries.emplace_back();
  entry.name = parsed.names.emplace_back(std::filesystem::path(path).stem().string());
  entry.element = array->type.element;
  entry.type_name = element_name(array->type.element);
  entry.dims = std::move(array->type.dims);
  entry.bytes = array->bytes;
  entry.offset = array->offset;
  return parsed;
}

FormatResult<ParsedFile> read_any(std::span<const std::byte> bytes, const std::string& path) {
  if (is_gguf(bytes)) return read_gguf(bytes);
  if (is_npy(bytes)) return read_npy_file(bytes, path);
  if (is_safetensors(bytes)) return read_safetensors(bytes);
  // The name is the best guess at what a damaged file was meant to be.
  if (path.ends_with(".safetensors")) return read_safetensors(bytes);
  return std::unexpected(FormatError{"it is none of GGUF, safetensors and npy", {}});
}

void report(Diag id, const std::string& path, std::string detail, Diagnostics& diagnostics) {
  diagnostics.emit(id, {}, {{"file", path}, {"detail", std::move(detail)}});
}

std::optional<MappedFile> map_file(const std::string& path, Diagnostics& diagnostics) {
  auto mapped = MappedFile::open(path);
  if (mapped) return std::move(*mapped);
  diagnostics.emit(Diag::IoRead, {},
                   {{"path", mapped.error().path}, {"reason", mapped.error().reason}});
  return std::nullopt;
}

// Edits between two names, given up above `limit`.
size_t edit_distance(std::string_view a, std::string_view b, size_t limit) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > limit) return limit + 1;
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

std::optional<ParameterFile> ParameterFile::open(const std::string& path,
                                                 Diagnostics& diagnostics) {
  auto mapped = map_file(path, diagnostics);
  if (!mapped) return std::nullopt;
  auto file = from_bytes(mapped->bytes(), path, diagnostics);
  if (file) file->mapped_ = std::move(*mapped);
  return file;
}

std::optional<ParameterFile> ParameterFile::from_bytes(std::span<const std::byte> bytes,
                                                       const std::string& name,
                                                       Diagnostics& diagnostics) {
  auto parsed = read_any(bytes, name);
  if (!parsed) {
    const Diag id = is_npy(bytes) ? Diag::RunArrayFile : Diag::RunWeightsFile;
    report(id, name, parsed.error().text(), diagnostics);
    return std::nullopt;
  }
  ParameterFile file;
  file.path_ = name;
  file.size_ = bytes.size();
  file.parsed_ = std::move(*parsed);
  file.index_.reserve(file.parsed_.entries.size());
  for (uint32_t i = 0; i < file.parsed_.entries.size(); ++i) {
    file.index_.emplace(file.parsed_.entries[i].name, i);
  }
  return file;
}

const ParameterEntry* ParameterFile::find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &parsed_.entries[it->second];
}

std::optional<ArrayFile> ArrayFile::open(const std::string& path,
                                         const std::optional<ArrayType>& expected,
                                         Diagnostics& diagnostics) {
  auto mapped = map_file(path, diagnostics);
  if (!mapped) return std::nullopt;
  auto array = read_npy(mapped->bytes());
  if (!array) {
    report(Diag::RunArrayFile, path, array.error().text(), diagnostics);
    return std::nullopt;
  }
  if (expected && array->type != *expected) {
    diagnostics.emit(
        Diag::RunArrayType, {},
        {{"file", path}, {"found", to_string(array->type)}, {"expected", to_string(*expected)}});
    return std::nullopt;
  }
  return ArrayFile{std::move(*mapped), std::move(array->type), array->bytes};
}

bool ParameterSet::add(ParameterFile file, const std::string& root, Diagnostics& diagnostics) {
  bool distinct = true;
  for (const Attached& other : files_) {
    if (other.root != root) continue;
    for (const ParameterEntry& entry : file.entries()) {
      if (other.file->find(entry.name) == nullptr) continue;
      report(Diag::RunWeightsFile, file.path(),
             fmt::format("parameter \"{}\" is also in '{}'", entry.name, other.file->path()),
             diagnostics);
      distinct = false;
      if (diagnostics.stopped()) return false;
    }
  }
  if (!distinct) return false;
  Attached& attached = files_.emplace_back();
  attached.file = std::make_unique<ParameterFile>(std::move(file));
  attached.root = root;
  return true;
}

bool ParameterSet::open(const std::string& path, const std::string& root,
                        Diagnostics& diagnostics) {
  auto file = ParameterFile::open(path, diagnostics);
  return file && add(std::move(*file), root, diagnostics);
}

ParameterSet::Found ParameterSet::find(std::string_view root, std::string_view key) const {
  Found general;
  for (const Attached& attached : files_) {
    if (!attached.root.empty() && attached.root != root) continue;
    const ParameterEntry* entry = attached.file->find(key);
    if (entry == nullptr) continue;
    if (!attached.root.empty()) return {attached.file.get(), entry};
    if (!general) general = {attached.file.get(), entry};
  }
  return general;
}

std::string ParameterSet::closest(std::string_view root, std::string_view key) const {
  size_t best = std::max<size_t>(2, key.size() / 4) + 1;
  std::string name;
  for (const Attached& attached : files_) {
    if (!attached.root.empty() && attached.root != root) continue;
    for (const ParameterEntry& entry : attached.file->entries()) {
      const size_t distance = edit_distance(key, entry.name, best - 1);
      if (distance >= best) continue;
      best = distance;
      name = entry.name;
      if (best == 0) return name;
    }
  }
  return name;
}

void ParameterSet::report_missing(std::string_view root, std::string_view key,
                                  Diagnostics& diagnostics) const {
  std::string repair;
  if (files_.empty()) {
    repair = fmt::format("pass a .gguf or .safetensors file with --parameters=%{}=FILE", root);
  } else if (const std::string near = closest(root, key); !near.empty()) {
    repair = fmt::format("did you mean \"{}\"?", near);
  }
  diagnostics.emit(
      Diag::RunParameterMissing, {},
      {{"key", std::string(key)}, {"root", std::string(root)}, {"repair", std::move(repair)}});
}

std::optional<std::span<const std::byte>> ParameterSet::bytes_of(std::string_view root,
                                                                 std::string_view key,
                                                                 uint64_t bytes,
                                                                 Diagnostics& diagnostics) const {
  const Found found = find(root, key);
  if (!found) {
    report_missing(root, key, diagnostics);
    return std::nullopt;
  }
  if (found.entry->bytes.size() != bytes) {
    diagnostics.emit(Diag::RunParameterSize, {},
                     {{"key", std::string(key)},
                      {"found", std::to_string(found.entry->bytes.size())},
                      {"file", found.file->path()},
                      {"needed", std::to_string(bytes)}});
    return std::nullopt;
  }
  return found.entry->bytes;
}

std::optional<std::string> build_parameter_file(FileFormat format, const std::string& path,
                                                std::span<const ParameterSource> arrays,
                                                Diagnostics& diagnostics) {
  FormatResult<std::string> built;
  if (format == FileFormat::Gguf) {
    built = write_gguf(arrays);
  } else if (format == FileFormat::Safetensors) {
    built = write_safetensors(arrays);
  } else if (arrays.size() == 1) {
    built = write_npy(arrays[0].type, arrays[0].bytes);
  } else {
    built = std::unexpected(
        FormatError{fmt::format("an npy file holds one array, not {}", arrays.size()), {}});
  }
  if (built) return std::move(*built);
  report(Diag::RunBuildFile, path, built.error().text(), diagnostics);
  return std::nullopt;
}

std::optional<FileFormat> format_from_path(std::string_view path) {
  if (path.ends_with(".gguf")) return FileFormat::Gguf;
  if (path.ends_with(".safetensors")) return FileFormat::Safetensors;
  if (path.ends_with(".npy")) return FileFormat::Npy;
  return std::nullopt;
}

}  // namespace loom
