// Opens an object for what reads it with LLVM.
#pragma once

#include <llvm/Object/ObjectFile.h>

#include <memory>
#include <string>
#include <string_view>

namespace loom {

// Of bytes that outlive it. Null, and the reason in `error`, when they are no ELF object.
inline std::unique_ptr<llvm::object::ObjectFile> open_object(std::string_view bytes,
                                                             std::string& error) {
  auto parsed = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef({bytes.data(), bytes.size()}, "object"));
  if (parsed) return std::move(*parsed);
  error = llvm::toString(parsed.takeError());
  return nullptr;
}

}  // namespace loom
