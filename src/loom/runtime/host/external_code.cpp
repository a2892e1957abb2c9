#include "loom/runtime/host/external_code.h"

#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>

#include "loom/base/file.h"

namespace loom {
namespace {

constexpr std::string_view kContracts = ".loom.kernels";
constexpr uint16_t kAmdGpu = 224;
constexpr uint16_t kCuda = 190;

// What an ELF file says of itself. Every range is checked before it is read.
struct ElfContent {
  uint16_t type = 0;
  std::vector<std::string> functions;  // defined and global
  std::string contracts;               // of the kernels that this compiler made
};

class ElfReader {
 public:
  explicit ElfReader(std::string_view bytes) : bytes_(bytes) {}

  std::optional<ElfContent> read() {
    if (!take(header_, 0) || header_.e_shentsize != sizeof(Elf64_Shdr)) return std::nullopt;
    ElfContent content;
    content.type = header_.e_type;
    Elf64_Shdr names;
    if (!section(header_.e_shstrndx, names)) return std::nullopt;
    for (uint16_t i = 0; i < header_.e_shnum; ++i) {
      Elf64_Shdr row;
      if (!section(i, row)) return std::nullopt;
      if (row.sh_type == SHT_SYMTAB || row.sh_type == SHT_DYNSYM) add_functions(row, content);
      if (text(names, row.sh_name) == kContracts && row.sh_type != SHT_NOBITS) {
        content.contracts += range(row.sh_offset, row.sh_size);
      }
    }
    std::ranges::sort(content.functions);
    const auto again = std::ranges::unique(content.functions);
    content.functions.erase(again.begin(), again.end());
    return content;
  }

 private:
  std::string_view range(uint64_t offset, uint64_t size) const {
    if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
    return bytes_.substr(offset, size);
  }
  template <class T>
  bool take(T& into, uint64_t offset) const {
    const std::string_view from = range(offset, sizeof(T));
    if (from.empty()) return false;
    from.copy(reinterpret_cast<char*>(&into), sizeof(T));
    return true;
  }
  bool section(uint32_t number, Elf64_Shdr& row) const {
    return number < header_.e_shnum && header_.e_shoff <= bytes_.size() &&
           take(row, header_.e_shoff + uint64_t{number} * sizeof(Elf64_Shdr));
  }
  std::string_view text(const Elf64_Shdr& strings, uint32_t offset) const {
    const std::string_view all = range(strings.sh_offset, strings.sh_size);
    if (offset >= all.size()) return {};
    const std::string_view rest = all.substr(offset);
    return rest.substr(0, std::min(rest.find('\0'), rest.size()));
  }
  void add_functions(const Elf64_Shdr& table, ElfContent& content) const {
    Elf64_Shdr strings;
    if (!section(table.sh_link, strings)) return;
    const std::string_view rows = range(table.sh_offset, table.sh_size);
    for (size_t at = 0; at + sizeof(Elf64_Sym) <= rows.size(); at += sizeof(Elf64_Sym)) {
      Elf64_Sym row;
      std::memcpy(&row, rows.data() + at, sizeof row);
      if (row.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(row.st_info) != STT_FUNC) continue;
      if (ELF64_ST_BIND(row.st_info) == STB_LOCAL) continue;
      content.functions.emplace_back(text(strings, row.st_name));
    }
  }

  std::string_view bytes_;
  Elf64_Ehdr header_{};
};

struct Foreign {
  std::string kind;
  std::string device;
};

// What is an executable, but not for this processor.
std::optional<Foreign> foreign(std::string_view bytes) {
  if (bytes.starts_with(std::string_view("\x03\x02\x23\x07", 4))) {
    return Foreign{"a SPIR-V module", "vulkan"};
  }
  if (bytes.starts_with(ELFMAG) && bytes.size() >= sizeof(Elf64_Ehdr)) {
    Elf64_Ehdr header;
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.e_machine == kAmdGpu) return Foreign{"an AMDGPU code object", "amdgpu"};
    if (header.e_machine == kCuda) return Foreign{"a CUDA binary", "cuda"};
    return std::nullopt;
  }
  const std::string_view head = bytes.substr(0, 4096);
  if (head.find(".version") != head.npos && head.find(".target sm_") != head.npos) {
    return Foreign{"PTX", "cuda"};
  }
  return std::nullopt;
}

// "launch(%a: view<8xf32>, %n: index) where ..." to "view<8xf32>, index".
std::string argument_types(std::string_view contract) {
  std::string types;
  int depth = 0;
  bool name = false;
  for (const char c : contract.substr(std::min(contract.find('('), contract.size() - 1) + 1)) {
    if (c == ')' && depth == 0) break;
    if (c == '(' || c == '<' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == '>' || c == ']' || c == '}') --depth;
    if (c == '%' && depth == 0) name = true;
    if (!name) types += c;
    if (name && c == ':') name = false;
  }
  std::string plain;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == ' ' && (plain.empty() || plain.back() == ' ')) continue;
    plain += types[i];
    if (types[i] != '%') continue;
    while (i + 1 < types.size() &&
           (std::isalnum(static_cast<unsigned char>(types[i + 1])) != 0 || types[i + 1] == '_')) {
      ++i;
    }
  }
  return plain;
}

// Lines "name<TAB>contract".
std::optional<std::string> stated_types(std::string_view contracts, std::string_view name) {
  while (!contracts.empty()) {
    const std::string_view line = contracts.substr(0, contracts.find('\n'));
    const size_t tab = line.find('\t');
    if (tab != line.npos && line.substr(0, tab) == name) return argument_types(line.substr(tab));
    contracts.remove_prefix(std::min(line.size() + 1, contracts.size()));
  }
  return std::nullopt;
}

bool fail(Diagnostics& diagnostics, const std::string& file, std::string detail) {
  diagnostics.emit(Diag::RunExecutableFile, {}, {{"file", file}, {"detail", std::move(detail)}});
  return false;
}

// Everything about the file that can be told without loading it.
bool fits(const ExternalEntry& entry, const std::string& name, const EntryRequirement& row,
          std::string_view bytes, uint16_t& type, Diagnostics& diagnostics) {
  if (const auto other = foreign(bytes)) {
    diagnostics.emit(Diag::RunExecutableDevice, {},
                     {{"file", entry.file}, {"kind", other->kind}, {"device", other->device}});
    return false;
  }
  if (!bytes.starts_with(ELFMAG) || bytes.size() < sizeof(Elf64_Ehdr) ||
      bytes[EI_CLASS] != ELFCLASS64 || bytes[EI_DATA] != ELFDATA2LSB) {
    return fail(diagnostics, entry.file, "it is no 64-bit ELF file");
  }
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.e_machine != EM_X86_64) return fail(diagnostics, entry.file, "it is not for x86-64");
  if (header.e_type != ET_REL && header.e_type != ET_DYN) {
    return fail(diagnostics, entry.file, "it is neither a relocatable nor a shared object");
  }
  const auto content = ElfReader(bytes).read();
  if (!content) return fail(diagnostics, entry.file, "its section table is damaged");
  type = content->type;
  if (!std::ranges::binary_search(content->functions, name)) {
    std::string known;
    for (const std::string& function : content->functions) {
      known += (known.empty() ? "'" : ", '") + function + "'";
    }
    diagnostics.emit(
        Diag::RunExecutableEntry, {},
        {{"file", entry.file}, {"entry", name}, {"known", known.empty() ? "none" : known}});
    return false;
  }
  const auto found = stated_types(content->contracts, name);
  const std::string expected = argument_types(row.contract);
  if (!found || *found == expected) return true;
  diagnostics.emit(Diag::RunExecutableContract, {},
                   {{"entry", name},
                    {"file", entry.file},
                    {"found", "(" + *found + ")"},
                    {"symbol", row.symbol},
                    {"expected", "(" + expected + ")"}});
  return false;
}

}  // namespace

void ExternalCode::Unload::operator()(void* handle) const { ::dlclose(handle); }

std::optional<ExternalCode> ExternalCode::load(const ExternalEntry& entry,
                                               const EntryRequirement& row, JitEngine& engine,
                                               Diagnostics& diagnostics) {
  ExternalCode made;
  if (entry.function != nullptr) {
    made.entry_ = entry.function;
    return made;
  }
  const auto bytes = read_file(entry.file);
  if (!bytes) {
    diagnostics.emit(Diag::IoRead, {}, {{"path", entry.file}, {"reason", bytes.error().reason}});
    return std::nullopt;
  }
  const std::string& name = entry.name.empty() ? row.export_name : entry.name;
  uint16_t type = ET_NONE;
  if (!fits(entry, name, row, *bytes, type, diagnostics)) return std::nullopt;
  if (type == ET_REL) {
    auto code = engine.add_object(*bytes, name, diagnostics);
    if (!code) return std::nullopt;
    made.entry_ = code->entry();
    made.code_ = std::move(*code);
    return made;
  }
  // A name without a slash would be looked for in the system's folders.
  const std::string path = std::filesystem::absolute(entry.file).string();
  made.library_.reset(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  void* const found = made.library_ ? ::dlsym(made.library_.get(), name.c_str()) : nullptr;
  if (found == nullptr) {
    const char* const reason = ::dlerror();
    fail(diagnostics, entry.file, reason == nullptr ? "it cannot be loaded" : reason);
    return std::nullopt;
  }
  made.entry_ = reinterpret_cast<LoomKernelEntry>(found);
  return made;
}

}  // namespace loom
