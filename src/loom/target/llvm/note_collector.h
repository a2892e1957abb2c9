// Takes what LLVM has to say into notes.
#pragma once

#include <llvm/IR/DiagnosticHandler.h>

#include <memory>
#include <string>

#include "loom/target/llvm/notes.h"

namespace loom {

// A handler for an LLVM context that both arguments must outlive. The first error goes
// to `error` (LLVM reports some failures nowhere else), remarks about loops, registers and frames
// to `notes` where it is not null; without it LLVM does not make them.
std::unique_ptr<llvm::DiagnosticHandler> make_note_collector(std::string& error,
                                                             CodegenNotes* notes);

}  // namespace loom
