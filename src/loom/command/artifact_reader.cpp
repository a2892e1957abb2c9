#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "loom/base/hash.h"
#include "loom/command/artifact.h"
#include "loom/command/artifact_layout.h"

namespace loom {
namespace {

using namespace artifact;

// Checks everything that a reader of the rows relies on, and copies none of them.
class Checker {
 public:
  Checker(std::string_view bytes, Location location, Diagnostics& diagnostics)
      : bytes_(bytes), location_(location), diagnostics_(diagnostics) {}

  std::optional<Rows> run() {
    const bool ok = check_header() && check_table() && find_sections() && check_roots() &&
                    check_parameters() && check_bindings() && check_transients() &&
                    check_entries() && check_arguments() && check_indirect() && check_commands() &&
                    check_schedule();
    return ok ? std::optional(rows_) : std::nullopt;
  }

 private:
  bool fail(std::string detail) {
    diagnostics_.emit(Diag::BinaryCorrupt, location_,
                      {{"format", ".loomcmd"}, {"detail", std::move(detail)}});
    return false;
  }

  bool check_header() {
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
    if (reinterpret_cast<uintptr_t>(bytes_.data()) % kSectionAlignment != 0) {
      return fail(fmt::format("its bytes do not begin at a multiple of {}", kSectionAlignment));
    }
    return true;
  }

  bool check_table() {
    uint64_t at = sizeof(Header) + kSectionCount * sizeof(SectionRow);
    if (bytes_.size() < at) return fail("the section table is cut off");
    for (uint32_t i = 0; i < kSectionCount; ++i) {
      SectionRow row;
      std::memcpy(&row, bytes_.data() + sizeof(Header) + i * sizeof row, sizeof row);
      if (row.kind != i + 1 || row.zero != 0 || row.offset != at || row.size > bytes_.size() - at) {
        return fail(fmt::format("section {} lies outside the file", i + 1));
      }
      sections_[i] = bytes_.substr(row.offset, row.size);
      at = row.offset + (row.size + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
      if (at > bytes_.size()) return fail("the last section is cut off");
    }
    return true;
  }

  template <class Row>
  bool find(Section section, std::span<const Row>& out) {
    const std::string_view bytes = sections_[static_cast<uint32_t>(section) - 1];
    if (bytes.size() % sizeof(Row) != 0) {
      return fail(fmt::format("section {} holds half a record", static_cast<uint32_t>(section)));
    }
    static_assert(alignof(Row) <= kSectionAlignment);
    out = {reinterpret_cast<const Row*>(bytes.data()), bytes.size() / sizeof(Row)};
    return true;
  }

  bool find_sections() {
    rows_.strings = sections_[0];
    return find(Section::Roots, rows_.roots) && find(Section::Parameters, rows_.parameters) &&
           find(Section::Bindings, rows_.bindings) && find(Section::Entries, rows_.entries) &&
           find(Section::Schedule, rows_.schedule) && find(Section::Commands, rows_.commands) &&
           find(Section::Arguments, rows_.arguments) &&
           find(Section::Transients, rows_.transients) &&
           find(Section::IndirectStorage, rows_.indirect_storage);
  }

  bool check_text(Text range) {
    const std::string_view strings = rows_.strings;
    if (range.offset > strings.size() || range.length > strings.size() - range.offset) {
      return fail("a text lies outside the string section");
    }
    return true;
  }

  // It may stand in any text without escapes.
  bool check_symbol(Text range) {
    if (!check_text(range)) return false;
    const std::string_view symbol = rows_.strings.substr(range.offset, range.length);
    const bool plain = std::ranges::all_of(symbol, [](char c) {
      return static_cast<unsigned char>(c) > ' ' && c != '"' && c != '\\' && c != '\x7f';
    });
    return (plain && !symbol.empty()) || fail("a symbol is none");
  }

  bool check_reserved(uint32_t word) { return word == 0 || fail("a reserved word is not zero"); }

  bool check_alignment(uint64_t alignment) {
    return std::has_single_bit(alignment) || fail("an alignment is not a power of two");
  }

  bool check_roots() {
    if (rows_.roots.empty()) return fail("the program has no name");
    for (const RootRow& row : rows_.roots) {
      if (!check_text(row.name)) return false;
    }
    return check_symbol(rows_.roots[0].name);
  }

  // The first root row is the program.
  size_t root_count() const { return rows_.roots.size() - 1; }

  bool check_parameters() {
    for (const artifact::ParameterRow& row : rows_.parameters) {
      if (!check_text(row.key) || !check_reserved(row.zero) || !check_alignment(row.alignment)) {
        return false;
      }
      if (row.binding >= root_count()) return fail("a parameter names no binding");
    }
    return true;
  }

  bool check_bindings() {
    const artifact::BindingRow* before = nullptr;
    for (const artifact::BindingRow& row : rows_.bindings) {
      if (!check_text(row.name) || !check_reserved(row.zero)) return false;
      const bool ascending = before == nullptr || row.ordinal > before->ordinal;
      if (row.ordinal >= root_count() || !ascending) return fail("bad binding ordinal");
      before = &row;
    }
    return true;
  }

  bool check_transients() {
    for (const artifact::TransientRow& row : rows_.transients) {
      if (!check_text(row.name) || !check_alignment(row.alignment)) return false;
      uint64_t end = 0;
      if (row.offset % row.alignment != 0 || __builtin_add_overflow(row.offset, row.length, &end)) {
        return fail("a transient lies at a bad place");
      }
    }
    return true;
  }

  bool check_entries() {
    for (const EntryRow& row : rows_.entries) {
      if (!check_symbol(row.symbol) || !check_text(row.export_name) || !check_text(row.contract) ||
          !check_reserved(row.zero)) {
        return false;
      }
      for (const uint32_t size : row.workgroup_size) {
        if (size == 0) return fail("a workgroup size is zero");
      }
    }
    return true;
  }

  bool check_arguments() {
    for (const Argument& argument : rows_.arguments) {
      switch (argument.kind) {
        case Argument::Kind::U32:
          if ((argument.value >> 32) != 0) return fail("a 32-bit argument does not fit");
          break;
        case Argument::Kind::U64:
          break;
        case Argument::Kind::Buffer:
          if (!check_reference(argument.buffer)) return false;
          break;
        default:
          return fail("bad argument kind");
      }
    }
    return true;
  }

  bool check_reference(const BufferRef& ref) {
    size_t count = 0;
    switch (ref.storage) {
      case StorageClass::Fixed:
        count = rows_.parameters.size();
        break;
      case StorageClass::Rebindable:
        count = rows_.bindings.size();
        break;
      case StorageClass::Transient:
        count = rows_.transients.size();
        break;
      default:
        return fail("bad storage class");
    }
    if (ref.index >= count) return fail("a buffer reference names no storage");
    const bool whole = ref.length == BufferRef::kWholeBuffer;
    uint64_t end = ref.offset;
    if (!whole && __builtin_add_overflow(ref.offset, ref.length, &end)) {
      return fail("a buffer range overflows");
    }
    if (ref.storage == StorageClass::Rebindable) return true;
    const uint64_t size = ref.storage == StorageClass::Fixed ? rows_.parameters[ref.index].length
                                                             : rows_.transients[ref.index].length;
    return (end <= size && !whole) || fail("a buffer range exceeds its storage");
  }

  bool check_indirect() {
    for (const BufferRef& ref : rows_.indirect_storage) {
      if (!check_reference(ref)) return false;
      if (ref.length != kCountBytes) return fail("counts have another size than three words");
      if (ref.offset % kCountAlignment != 0) return fail("a count is misaligned");
    }
    return true;
  }

  bool check_commands() {
    for (const DispatchCommand& command : rows_.commands) {
      if (command.slot >= rows_.entries.size()) return fail("a command names no entry slot");
      if (command.argument_begin > rows_.arguments.size() ||
          command.argument_count > rows_.arguments.size() - command.argument_begin) {
        return fail("a command's arguments lie outside the argument section");
      }
      if (command.indirect != DispatchCommand::kDirect &&
          command.indirect >= rows_.indirect_storage.size()) {
        return fail("a command's counts lie in no storage");
      }
    }
    return true;
  }

  // The tree is well formed when nodes nest, and each command is the leaf of its own number.
  bool check_schedule() {
    const std::span<const ScheduleNode> nodes = rows_.schedule;
    if (nodes.empty() || nodes[0].end != nodes.size() ||
        nodes[0].kind != ScheduleNode::Kind::Serial) {
      return fail("the schedule has no root");
    }
    std::vector<uint32_t> ends;  // of the nodes that are open
    uint32_t commands = 0;
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      const ScheduleNode& node = nodes[i];
      while (!ends.empty() && ends.back() == i) ends.pop_back();
      if (node.kind > ScheduleNode::Kind::Command) return fail("bad schedule node");
      const bool leaf = node.kind == ScheduleNode::Kind::Command;
      if (node.end <= i || (!ends.empty() && node.end > ends.back()) ||
          (leaf && node.end != i + 1)) {
        return fail("schedule nodes do not nest");
      }
      if (node.command != (leaf ? commands : 0)) return fail("schedule leaves are out of order");
      if (leaf) {
        ++commands;
      } else {
        ends.push_back(node.end);
      }
    }
    return commands == rows_.commands.size() || fail("a command is not in the schedule");
  }

  std::string_view bytes_;
  Location location_;
  Diagnostics& diagnostics_;
  std::string_view sections_[kSectionCount];
  Rows rows_;
};

}  // namespace

bool is_artifact(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::optional<CommandArtifact> CommandArtifact::over(SourceFiles& files,
                                                     std::span<const std::byte> bytes,
                                                     std::string_view name,
                                                     Diagnostics& diagnostics) {
  const Location location{files.add_reference(std::string(name), 0), 0, 0, 0};
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto rows = Checker(text, location, diagnostics).run();
  if (!rows) return std::nullopt;
  CommandArtifact made;
  made.bytes_ = bytes;
  made.program_ = ProgramView(*rows);
  return made;
}

std::optional<CommandArtifact> CommandArtifact::open(SourceFiles& files, const std::string& path,
                                                     Diagnostics& diagnostics) {
  auto file = MappedFile::open(path);
  if (!file) {
    diagnostics.emit(Diag::IoRead, {},
                     {{"path", file.error().path}, {"reason", file.error().reason}});
    return std::nullopt;
  }
  auto made = over(files, file->bytes(), path, diagnostics);
  if (made) made->file_ = std::move(*file);
  return made;
}

std::optional<CommandArtifact> CommandArtifact::copy(SourceFiles& files, std::string_view bytes,
                                                     std::string_view name,
                                                     Diagnostics& diagnostics) {
  auto owned = std::make_unique<uint64_t[]>(bytes.size() / sizeof(uint64_t) + 1);
  if (!bytes.empty()) std::memcpy(owned.get(), bytes.data(), bytes.size());
  auto made =
      over(files, std::as_bytes(std::span(owned.get(), bytes.size() / 8 + 1)).first(bytes.size()),
           name, diagnostics);
  if (made) made->owned_ = std::move(owned);
  return made;
}

}  // namespace loom
