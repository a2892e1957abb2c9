// Parses, verifies and runs passes over test modules.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "loom/diag/render.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/verify.h"
#include "loom/pass/pass_context.h"
#include "loom/pass/runner.h"
#include "loom/text/parser.h"
#include "loom/text/printer.h"

namespace loom {

// A parsed and verified module, and what was reported about it.
struct TestModule {
  SourceFiles files;
  Diagnostics diagnostics;
  std::optional<Module> module;

  explicit TestModule(std::string text) {
    const FileId file = files.add_text("case.loom", std::move(text));
    module = parse_text(files, file, diagnostics);
    if (module && !verify_module(*module, diagnostics)) module.reset();
  }

  std::string report() const {
    std::string text;
    for (const Diagnostic& d : diagnostics.all()) {
      text += diag_code(d.id) + " " + std::to_string(d.location.line) + ": " + d.message() + "\n";
    }
    return text;
  }

  // Symbols with a body.
  std::vector<OpId> roots() const {
    std::vector<OpId> all;
    for (OpId id = module->region(module->body()).first; id.valid(); id = module->op(id).next) {
      const OpKind kind = module->op(id).kind;
      if (kind == OpKind::CommandProgramDef || kind == OpKind::FuncDef ||
          kind == OpKind::KernelDef) {
        all.push_back(id);
      }
    }
    return all;
  }
};

}  // namespace loom
