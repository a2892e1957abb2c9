#include "loom/runtime/parameters/listing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

namespace loom {
namespace {

constexpr uint64_t kMostAlignment = 4096;

uint64_t alignment_of(uint64_t offset) {
  return offset == 0 ? kMostAlignment : std::min(offset & (0 - offset), kMostAlignment);
}

std::string format_and_version(const ParameterFile& file) {
  std::string text(format_name(file.format()));
  if (file.version() != 0) text += fmt::format(" version {}", file.version());
  return text;
}

std::string shape_text(const std::vector<uint64_t>& dims) {
  return dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x"));
}

// Control characters in a name must not reach a terminal.
std::string printable(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

using Row = std::array<std::string, 6>;

void append_table(std::string& out, const std::vector<Row>& rows) {
  std::array<size_t, 6> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], count_characters(row[i]));
    }
  }
  for (const Row& row : rows) {
    out += "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string fill(widths[i] - count_characters(row[i]), ' ');
      // Words to the left, numbers to the right.
      const bool is_word = i < 3;
      out += is_word ? row[i] + fill : fill + row[i];
      out += i + 1 == row.size() ? "\n" : "  ";
    }
  }
}

}  // namespace

std::string list_as_text(std::span<const ParameterFile> files) {
  std::string out;
  for (const ParameterFile& file : files) {
    const size_t count = file.entries().size();
    out += fmt::format("{}: {}, {} parameter{}, {} bytes\n", file.path(), format_and_version(file),
                       count, count == 1 ? "" : "s", file.size());
    std::vector<Row> rows;
    if (count != 0) rows.push_back({"NAME", "TYPE", "SHAPE", "BYTES", "OFFSET", "ALIGN"});
    for (const ParameterEntry& entry : file.entries()) {
      rows.push_back({printable(entry.name), std::string(entry.type_name), shape_text(entry.dims),
                      std::to_string(entry.bytes.size()), std::to_string(entry.offset),
                      std::to_string(alignment_of(entry.offset))});
    }
    append_table(out, rows);
  }
  return out;
}

std::string list_as_json(std::span<const ParameterFile> files) {
  auto list = nlohmann::ordered_json::array();
  for (const ParameterFile& file : files) {
    auto parameters = nlohmann::ordered_json::array();
    for (const ParameterEntry& entry : file.entries()) {
      nlohmann::ordered_json row;
      row["name"] = entry.name;
      row["type"] = entry.type_name;
      row["shape"] = entry.dims;
      row["bytes"] = entry.bytes.size();
      row["offset"] = entry.offset;
      row["alignment"] = alignment_of(entry.offset);
      parameters.push_back(std::move(row));
    }
    nlohmann::ordered_json object;
    object["file"] = file.path();
    object["format"] = format_name(file.format());
    object["version"] = file.version();
    object["bytes"] = file.size();
    object["parameters"] = std::move(parameters);
    list.push_back(std::move(object));
  }
  // A path need not be UTF-8.
  return list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace loom
