#include <bit>
#include <cstring>
#include <map>
#include <vector>

#include "loom/base/hash.h"
#include "loom/command/artifact.h"
#include "loom/command/artifact_layout.h"

static_assert(std::endian::native == std::endian::little, "records are written as they lie");

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

template <class Row>
std::string as_bytes(const std::vector<Row>& rows) {
  std::string bytes(rows.size() * sizeof(Row), '\0');
  if (!rows.empty()) std::memcpy(bytes.data(), rows.data(), bytes.size());
  return bytes;
}

std::string argument_bytes(const PreparedProgram& program) {
  std::vector<ArgumentRow> rows;
  rows.reserve(program.arguments.size());
  for (const Argument& argument : program.arguments) {
    ArgumentRow row{.kind = static_cast<uint32_t>(argument.kind)};
    if (argument.kind == Argument::Kind::Buffer) {
      row.storage = static_cast<uint32_t>(argument.buffer.storage);
      row.index = argument.buffer.index;
      row.value = argument.buffer.offset;
      row.length = argument.buffer.length;
    } else {
      row.value = argument.value;
    }
    rows.push_back(row);
  }
  return as_bytes(rows);
}

std::string command_bytes(const PreparedProgram& program) {
  std::vector<CommandRow> rows;
  rows.reserve(program.commands.size());
  for (const DispatchCommand& c : program.commands) {
    rows.push_back({c.slot,
                    c.argument_begin,
                    c.argument_count,
                    {c.count[0], c.count[1], c.count[2]},
                    c.indirect,
                    0});
  }
  return as_bytes(rows);
}

std::string schedule_bytes(const PreparedProgram& program) {
  std::vector<NodeRow> rows;
  rows.reserve(program.schedule.size());
  for (const ScheduleNode& node : program.schedule) {
    rows.push_back({static_cast<uint32_t>(node.kind), node.command, node.end, 0});
  }
  return as_bytes(rows);
}

std::string entry_bytes(const PreparedPlan& plan, const PreparedProgram& program,
                        Strings& strings) {
  std::vector<EntryRow> rows;
  for (uint32_t slot : program.slots) {
    const EntryRequirement& e = plan.entries[slot];
    rows.push_back({strings.add(e.symbol),
                    strings.add(e.export_name),
                    strings.add(e.contract),
                    {e.workgroup_size[0], e.workgroup_size[1], e.workgroup_size[2]},
                    0});
  }
  return as_bytes(rows);
}

std::string assemble(const std::vector<std::string>& sections) {
  std::string body;
  std::vector<SectionRow> table;
  const uint64_t first = sizeof(Header) + kSectionCount * sizeof(SectionRow);
  for (uint32_t i = 0; i < sections.size(); ++i) {
    table.push_back({i + 1, 0, first + body.size(), sections[i].size()});
    body += sections[i];
    body.resize((body.size() + 7) / 8 * 8);
  }
  const std::string rest = as_bytes(table) + body;
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

std::string write_artifact(const PreparedPlan& plan, const PreparedProgram& program) {
  Strings strings;
  std::vector<RootRow> roots{{strings.add(program.symbol)}};
  for (const std::string& root : program.roots) roots.push_back({strings.add(root)});
  std::vector<artifact::ParameterRow> parameters;
  for (const auto& p : program.parameters) {
    parameters.push_back({p.binding, 0, strings.add(p.key), p.length, p.alignment});
  }
  std::vector<artifact::BindingRow> bindings;
  for (const auto& b : program.bindings) bindings.push_back({b.ordinal, 0, strings.add(b.name)});
  std::vector<artifact::TransientRow> transients;
  for (const auto& t : program.transients) {
    transients.push_back({strings.add(t.name), t.offset, t.length, t.alignment});
  }
  std::vector<IndirectRow> indirect;
  for (const BufferRef& ref : program.indirect_storage) {
    indirect.push_back({static_cast<uint32_t>(ref.storage), ref.index, ref.offset});
  }
  const std::string entries = entry_bytes(plan, program, strings);
  return assemble({strings.bytes(), as_bytes(roots), as_bytes(parameters), as_bytes(bindings),
                   entries, schedule_bytes(program), command_bytes(program),
                   argument_bytes(program), as_bytes(transients), as_bytes(indirect)});
}

bool is_artifact(std::string_view bytes) { return bytes.starts_with(kMagic); }

}  // namespace loom
