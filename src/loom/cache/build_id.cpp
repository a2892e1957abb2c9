#include "loom/cache/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "loom/base/file.h"
#include "loom/base/hash.h"

namespace loom {
namespace {

struct Search {
  uintptr_t address;  // of code in the object that is looked for
  std::string id;
  std::string path;
};

bool holds(const dl_phdr_info& object, uintptr_t address) {
  for (ElfW(Half) i = 0; i < object.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = object.dlpi_phdr[i];
    const uintptr_t begin = object.dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_LOAD && address >= begin && address - begin < header.p_memsz) {
      return true;
    }
  }
  return false;
}

std::string note_in(const dl_phdr_info& object, const ElfW(Phdr) & header) {
  const auto* at = reinterpret_cast<const unsigned char*>(object.dlpi_addr + header.p_vaddr);
  size_t left = header.p_memsz;
  const auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (left >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const size_t size = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
    if (size > left) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(at + sizeof note, "GNU", 4) == 0) {
      const auto* bytes = reinterpret_cast<const char*>(at + sizeof note + 4);
      return sha256_hex(std::string_view(bytes, note.n_descsz));
    }
    at += size;
    left -= size;
  }
  return {};
}

int visit(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (!holds(*object, search.address)) return 0;
  search.path = object->dlpi_name == nullptr || *object->dlpi_name == '\0' ? "/proc/self/exe"
                                                                           : object->dlpi_name;
  for (ElfW(Half) i = 0; i < object->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& header = object->dlpi_phdr[i];
    if (header.p_type == PT_NOTE) search.id = note_in(*object, header);
  }
  return 1;
}

std::string find_id() {
  Search search{reinterpret_cast<uintptr_t>(&build_id), {}, {}};
  dl_iterate_phdr(visit, &search);
  if (!search.id.empty()) return search.id;
  const auto bytes = search.path.empty() ? std::unexpected(FileError{}) : read_file(search.path);
  return bytes ? sha256_hex(*bytes) : std::string();
}

}  // namespace

const std::string& build_id() {
  static const std::string id = find_id();
  return id;
}

}  // namespace loom
