// Opens an object for what reads it with LLVM.
#pragma once

#include <llvm/Object/ObjectFile.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace loom {

// Nothing, and why in `error`.
inline std::nullopt_t failed(llvm::Error failure, std::string& error) {
  error = llvm::toString(std::move(failure));
  return std::nullopt;
}

// Of bytes that outlive it. Null, and the reason in `error`, when they are no ELF object.
inline std::unique_ptr<llvm::object::ObjectFile> open_object(std::string_view bytes,
                                                             std::string& error) {
  auto parsed = llvm::object::ObjectFile::createELFObjectFile(
      llvm::MemoryBufferRef({bytes.data(), bytes.size()}, "object"));
  if (parsed) return std::move(*parsed);
  failed(parsed.takeError(), error);
  return nullptr;
}

}  // namespace loom
