#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <vector>

#include "loom/base/hash.h"
#include "loom/command/artifact.h"
#include "loom/command/artifact_layout.h"

namespace loom {
namespace {

using namespace artifact;

class Reader {
 public:
  Reader(std::string_view bytes, Location location, Diagnostics& diagnostics)
      : bytes_(bytes), location_(location), diagnostics_(diagnostics) {}

  std::optional<PreparedPlan> run() {
    if (!read_header() || !read_table()) return std::nullopt;
    PreparedPlan plan;
    PreparedProgram& program = plan.programs.emplace_back();
    const bool ok = read_roots(program) && read_parameters(program) && read_bindings(program) &&
                    read_transients(program) && read_entries(plan, program) &&
                    read_arguments(program) && read_indirect(program) && read_commands(program) &&
                    read_schedule(program);
    return ok ? std::optional(std::move(plan)) : std::nullopt;
  }

 private:
  bool fail(std::string detail) {
    diagnostics_.emit(Diag::BinaryCorrupt, location_,
                      {{"format", ".loomcmd"}, {"detail", std::move(detail)}});
    return false;
  }

  bool read_header() {
    Header header;
    if (bytes_.size() < sizeof header || !is_artifact(bytes_)) {
      return fail("it does not start with a command artifact's header");
    }
    std::memcpy(&header, bytes_.data(), sizeof header);
    if (header.major != kCommandMajor || header.minor > kCommandMinor) {
      diagnostics_.emit(
          Diag::BinaryVersion, location_,
          {{"format", ".loomcmd"},
           {"found", fmt::format("{}.{}", header.major, header.minor)},
           {"accepted", fmt::format("{0}.0 to {0}.{1}", kCommandMajor, kCommandMinor)}});
      return false;
    }
    if (header.file_size != bytes_.size()) {
      return fail(
          fmt::format("it has {} bytes but its header says {}", bytes_.size(), header.file_size));
    }
    if (header.section_count != kSectionCount) return fail("wrong number of sections");
    if (header.hash != hash_bytes(bytes_.substr(sizeof header))) {
      return fail("its content does not match its checksum");
    }
    return true;
  }

  bool read_table() {
    uint64_t at = sizeof(Header) + kSectionCount * sizeof(SectionRow);
    if (bytes_.size() < at) return fail("the section table is cut off");
    for (uint32_t i = 0; i < kSectionCount; ++i) {
      SectionRow row;
      std::memcpy(&row, bytes_.data() + sizeof(Header) + i * sizeof row, sizeof row);
      if (row.kind != i + 1 || row.offset != at || row.size > bytes_.size() - at) {
        return fail(fmt::format("section {} lies outside the file", i + 1));
      }
      sections_[i] = bytes_.substr(row.offset, row.size);
      at = row.offset + (row.size + 7) / 8 * 8;
      if (at > bytes_.size()) return fail("the last section is cut off");
    }
    return true;
  }

  template <class Row>
  bool rows(Section section, std::vector<Row>& out) {
    const std::string_view bytes = sections_[static_cast<uint32_t>(section) - 1];
    if (bytes.size() % sizeof(Row) != 0) {
      return fail(fmt::format("section {} holds half a record", static_cast<uint32_t>(section)));
    }
    out.resize(bytes.size() / sizeof(Row));
    if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
    return true;
  }

  bool text(Text range, std::string& out) {
    const std::string_view strings = sections_[0];
    if (range.offset > strings.size() || range.length > strings.size() - range.offset) {
      return fail("a text lies outside the string section");
    }
    out = strings.substr(range.offset, range.length);
    return true;
  }

  bool read_roots(PreparedProgram& program) {
    std::vector<RootRow> list;
    if (!rows(Section::Roots, list)) return false;
    if (list.empty()) return fail("the program has no name");
    if (!text(list[0].name, program.symbol)) return false;
    program.roots.resize(list.size() - 1);
    for (size_t i = 1; i < list.size(); ++i) {
      if (!text(list[i].name, program.roots[i - 1])) return false;
    }
    return true;
  }

  bool read_parameters(PreparedProgram& program) {
    std::vector<artifact::ParameterRow> list;
    if (!rows(Section::Parameters, list)) return false;
    for (const auto& row : list) {
      loom::ParameterRow parameter{row.binding, {}, row.length, row.alignment};
      if (!text(row.key, parameter.key)) return false;
      if (row.binding >= program.roots.size()) return fail("a parameter names no binding");
      if (!std::has_single_bit(row.alignment)) return fail("an alignment is not a power of two");
      program.parameters.push_back(std::move(parameter));
    }
    return true;
  }

  bool read_bindings(PreparedProgram& program) {
    std::vector<artifact::BindingRow> list;
    if (!rows(Section::Bindings, list)) return false;
    for (const auto& row : list) {
      loom::BindingRow binding{row.ordinal, {}};
      if (!text(row.name, binding.name)) return false;
      const bool ascending =
          program.bindings.empty() || row.ordinal > program.bindings.back().ordinal;
      if (row.ordinal >= program.roots.size() || !ascending) return fail("bad binding ordinal");
      program.bindings.push_back(std::move(binding));
    }
    return true;
  }

  bool read_transients(PreparedProgram& program) {
    std::vector<artifact::TransientRow> list;
    if (!rows(Section::Transients, list)) return false;
    for (const auto& row : list) {
      loom::TransientRow transient{{}, row.offset, row.length, row.alignment};
      if (!text(row.name, transient.name)) return false;
      if (!std::has_single_bit(row.alignment)) return fail("an alignment is not a power of two");
      uint64_t end = 0;
      if (row.offset % row.alignment != 0 || __builtin_add_overflow(row.offset, row.length, &end)) {
        return fail("a transient lies at a bad place");
      }
      program.transients.push_back(std::move(transient));
    }
    return true;
  }

  bool read_entries(PreparedPlan& plan, PreparedProgram& program) {
    std::vector<EntryRow> list;
    if (!rows(Section::Entries, list)) return false;
    for (const EntryRow& row : list) {
      EntryRequirement entry;
      if (!text(row.symbol, entry.symbol) || !text(row.export_name, entry.export_name) ||
          !text(row.contract, entry.contract)) {
        return false;
      }
      for (size_t i = 0; i < 3; ++i) {
        if (row.size[i] == 0) return fail("a workgroup size is zero");
        entry.workgroup_size[i] = row.size[i];
      }
      program.slots.push_back(static_cast<uint32_t>(plan.entries.size()));
      plan.entries.push_back(std::move(entry));
    }
    return true;
  }

  bool read_arguments(PreparedProgram& program) {
    std::vector<ArgumentRow> list;
    if (!rows(Section::Arguments, list)) return false;
    program.arguments.reserve(list.size());
    for (const ArgumentRow& row : list) {
      if (row.kind > static_cast<uint32_t>(Argument::Kind::Buffer))
        return fail("bad argument kind");
      Argument argument{static_cast<Argument::Kind>(row.kind), row.value, {}};
      if (argument.kind == Argument::Kind::U32 && (row.value >> 32) != 0) {
        return fail("a 32-bit argument does not fit");
      }
      if (argument.kind == Argument::Kind::Buffer && !read_buffer(program, row, argument)) {
        return false;
      }
      program.arguments.push_back(argument);
    }
    return true;
  }

  bool read_buffer(const PreparedProgram& program, const ArgumentRow& row, Argument& argument) {
    argument.value = 0;
    return reference(program, row.storage, row.index, row.value, row.length, argument.buffer);
  }

  bool reference(const PreparedProgram& program, uint32_t storage, uint32_t index, uint64_t offset,
                 uint64_t length, BufferRef& ref) {
    if (storage > static_cast<uint32_t>(StorageClass::Transient)) return fail("bad storage class");
    ref = {static_cast<StorageClass>(storage), index, offset, length};
    const bool rebindable = ref.storage == StorageClass::Rebindable;
    const bool fixed = ref.storage == StorageClass::Fixed;
    const size_t count = rebindable ? program.bindings.size()
                         : fixed    ? program.parameters.size()
                                    : program.transients.size();
    if (index >= count) return fail("a buffer reference names no storage");
    const bool whole = length == BufferRef::kWholeBuffer;
    uint64_t end = offset;
    if (!whole && __builtin_add_overflow(offset, length, &end)) {
      return fail("a buffer range overflows");
    }
    if (rebindable) return true;
    const uint64_t size =
        fixed ? program.parameters[index].length : program.transients[index].length;
    if (end > size || whole) return fail("a buffer range exceeds its storage");
    return true;
  }

  bool read_indirect(PreparedProgram& program) {
    std::vector<IndirectRow> list;
    if (!rows(Section::IndirectStorage, list)) return false;
    for (const IndirectRow& row : list) {
      BufferRef ref;
      if (!reference(program, row.storage, row.index, row.offset, kCountBytes, ref)) return false;
      if (row.offset % kCountAlignment != 0) return fail("a count is misaligned");
      program.indirect_storage.push_back(ref);
    }
    return true;
  }

  bool read_commands(PreparedProgram& program) {
    std::vector<CommandRow> list;
    if (!rows(Section::Commands, list)) return false;
    program.commands.reserve(list.size());
    for (const CommandRow& row : list) {
      if (row.slot >= program.slots.size()) return fail("a command names no entry slot");
      if (row.argument_begin > program.arguments.size() ||
          row.argument_count > program.arguments.size() - row.argument_begin) {
        return fail("a command's arguments lie outside the argument section");
      }
      if (row.indirect != DispatchCommand::kDirect &&
          row.indirect >= program.indirect_storage.size()) {
        return fail("a command's counts lie in no storage");
      }
      program.commands.push_back({row.slot,
                                  row.argument_begin,
                                  row.argument_count,
                                  {row.count[0], row.count[1], row.count[2]},
                                  row.indirect});
    }
    return true;
  }

  // The tree is well formed when nodes nest, and each command is the leaf of its own number.
  bool read_schedule(PreparedProgram& program) {
    std::vector<NodeRow> list;
    if (!rows(Section::Schedule, list)) return false;
    const auto size = static_cast<uint32_t>(list.size());
    if (list.empty() || list[0].end != size) return fail("the schedule has no root");
    std::vector<uint32_t> ends;
    uint32_t commands = 0;
    for (uint32_t i = 0; i < size; ++i) {
      const NodeRow& row = list[i];
      while (!ends.empty() && ends.back() == i) ends.pop_back();
      const bool leaf = row.kind == static_cast<uint32_t>(ScheduleNode::Kind::Command);
      if (row.kind > static_cast<uint32_t>(ScheduleNode::Kind::Command) ||
          (i == 0 && row.kind != 0)) {
        return fail("bad schedule node");
      }
      if (row.end <= i || (!ends.empty() && row.end > ends.back()) || (leaf && row.end != i + 1)) {
        return fail("schedule nodes do not nest");
      }
      if (leaf && row.command != commands++) return fail("schedule leaves are out of order");
      if (!leaf) ends.push_back(row.end);
      program.schedule.push_back(
          {static_cast<ScheduleNode::Kind>(row.kind), leaf ? row.command : 0, row.end});
    }
    if (commands != program.commands.size()) return fail("a command is not in the schedule");
    return true;
  }

  std::string_view bytes_;
  Location location_;
  Diagnostics& diagnostics_;
  std::string_view sections_[kSectionCount];
};

}  // namespace

std::optional<PreparedPlan> read_artifact(SourceFiles& files, std::string_view bytes,
                                          std::string_view path, Diagnostics& diagnostics) {
  const Location location{files.add_reference(std::string(path), 0), 0, 0, 0};
  return Reader(bytes, location, diagnostics).run();
}

}  // namespace loom
