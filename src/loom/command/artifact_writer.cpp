#include <cstring>
#include <map>
#include <vector>

#include "loom/base/hash.h"
#include "loom/command/artifact.h"
#include "loom/command/artifact_layout.h"

namespace loom {
namespace {

using namespace artifact;

class Strings {
 public:
  Text add(std::string_view text) {
    const auto [found, fresh] =
        known_.try_emplace(std::string(text), static_cast<uint32_t>(bytes_.size()));
    if (fresh) bytes_ += text;
    return {found->second, static_cast<uint32_t>(text.size())};
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::map<std::string, uint32_t> known_;
  std::string bytes_;
};

template <class List>
std::string row_bytes(const List& rows) {
  const auto bytes = std::as_bytes(std::span(rows));
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string assemble(const std::vector<std::string>& sections) {
  std::string body;
  std::vector<SectionRow> table;
  const uint64_t first = sizeof(Header) + kSectionCount * sizeof(SectionRow);
  for (uint32_t i = 0; i < sections.size(); ++i) {
    table.push_back({i + 1, 0, first + body.size(), sections[i].size()});
    body += sections[i];
    body.resize((body.size() + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment);
  }
  const std::string rest = row_bytes(table) + body;
  Header header{};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  header.major = kCommandMajor;
  header.minor = kCommandMinor;
  header.section_count = kSectionCount;
  header.file_size = sizeof(Header) + rest.size();
  header.hash = hash_bytes(rest);
  std::string bytes(sizeof(Header), '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes + rest;
}

}  // namespace

std::string artifact_file_name(std::string_view symbol) {
  std::string name;
  for (char c : symbol) {
    const bool portable = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '$' || c == '-';
    name.push_back(portable ? c : '_');
  }
  return name + ".loomcmd";
}

std::string write_artifact(const ProgramView& program) {
  Strings strings;
  std::vector<RootRow> roots{{strings.add(program.symbol())}};
  for (size_t i = 0; i < program.root_count(); ++i) roots.push_back({strings.add(program.root(i))});
  std::vector<artifact::ParameterRow> parameters;
  for (size_t i = 0; i < program.parameter_count(); ++i) {
    const auto row = program.parameter(i);
    parameters.push_back({row.binding, 0, strings.add(row.key), row.length, row.alignment});
  }
  std::vector<artifact::BindingRow> bindings;
  for (size_t i = 0; i < program.binding_count(); ++i) {
    const auto row = program.binding(i);
    bindings.push_back({row.ordinal, 0, strings.add(row.name)});
  }
  std::vector<artifact::TransientRow> transients;
  for (size_t i = 0; i < program.transient_count(); ++i) {
    const auto row = program.transient(i);
    transients.push_back({strings.add(row.name), row.offset, row.length, row.alignment});
  }
  std::vector<EntryRow> entries;
  for (size_t slot = 0; slot < program.slot_count(); ++slot) {
    const auto row = program.entry(slot);
    entries.push_back({strings.add(row.symbol), strings.add(row.export_name),
                       strings.add(row.contract), row.workgroup_size, 0});
  }
  return assemble({strings.bytes(), row_bytes(roots), row_bytes(parameters), row_bytes(bindings),
                   row_bytes(entries), row_bytes(program.schedule()), row_bytes(program.commands()),
                   row_bytes(program.arguments()), row_bytes(transients),
                   row_bytes(program.indirect_storage())});
}

}  // namespace loom
