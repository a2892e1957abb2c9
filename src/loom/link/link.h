// Links modules: primary inputs in one namespace, libraries consulted for what they lack.
//
//   LibraryIndex libraries(std::move(library_modules));     // frozen; may serve many links
//   std::optional<Module> linked = link(inputs, libraries, options, diagnostics);
//
// A kernel body that is still encoded in its module stays encoded in the result (open it with
// load_kernel_bodies(), then verify), unless a value or a new name must be written into it.
//
// The result holds the live symbols only: primary inputs in their order, then library symbols by
// library and by place in it. All modules must share one SourceFiles. Inputs and
// libraries are read, never changed; links over one LibraryIndex may run in several threads as long
// as each has its own result and SourceFiles is not added to.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/diag/diagnostic.h"
#include "loom/dialect/target_info.h"
#include "loom/ir/module.h"
#include "loom/link/config.h"
#include "loom/link/load.h"

namespace loom {

// A verified module and what diagnostics call it.
struct LinkInput {
  Module module;
  std::string path;
};

// The library universe, indexed by exported name once. Linking against it costs time proportional
// to what is reached, not to what it holds.
class LibraryIndex {
 public:
  LibraryIndex();
  explicit LibraryIndex(std::vector<LinkInput> libraries);
  LibraryIndex(LibraryIndex&&) noexcept;
  LibraryIndex& operator=(LibraryIndex&&) noexcept;
  ~LibraryIndex();

  std::span<const LinkInput> libraries() const;

  struct Tables;
  const Tables& tables() const { return *tables_; }

 private:
  std::unique_ptr<Tables> tables_;
};

struct LinkOptions {
  // Symbols to keep, without '@'. Without any, the public, exported and retained symbols of the
  // primary inputs are the roots. Retained symbols of primary inputs are always kept.
  std::vector<std::string> roots;
  bool include_input_exports = false;  // exports of primary inputs are roots besides `roots`
  // Keeps declarations without a definition, so that the result can be linked again.
  bool allow_unresolved = false;
  // Keeps kernel declarations without a definition even in a strict link: command preparation
  // reports them itself (LOWERING/050).
  bool keep_kernel_declarations = false;
  bool require_resolved_config = false;
  bool strip_check = false;  // symbols of the check dialect are left out
  // Plain merge of the primary inputs: every symbol is kept, nothing is looked up or bound.
  bool merge = false;
  // What the target identities (target.decl) that nothing supplies are bound to.
  std::optional<TargetIdentity> target;
  ConfigBindings config;
  // "@root:name=value" each: fixes one specialization of a root.
  std::vector<std::string> specialize;
};

// Why a symbol is in the result.
struct LinkedSymbol {
  std::string name;         // in the result
  std::string source_name;  // in its module
  std::string path;         // of its module
  bool from_library = false;
  OpId op;             // in the result
  std::string reason;  // "root", "export of an input", "retained", "referenced by @x"
};

// Links. Nothing when an error was reported: SYMBOL/002 unresolved, SYMBOL/003 another kind than
// declared, SYMBOL/005 two definitions in the inputs, LINK/001 specialization, LINK/002 contract,
// LINK/003 two exporting libraries, CONFIG/001 and /002, TYPE/015 contract of a specialized root.
// `plan` receives one row a symbol of the result, in its order.
std::optional<Module> link(std::span<const LinkInput> inputs, const LibraryIndex& libraries,
                           const LinkOptions& options, Diagnostics& diagnostics,
                           std::vector<LinkedSymbol>* plan = nullptr);

// --- inspection, as text that ends with a newline ------------------------------------------------

// One line a symbol of a module: name, kind, visibility, place, access, references.
std::string list_symbols(const LinkInput& input);
// One line a symbol of a link result: name, kind, where it comes from, why it is live.
std::string plan_text(const Module& linked, std::span<const LinkedSymbol> plan);
// JSON: the configuration keys that the inputs declare, with type, predicates and bound value.
std::string config_schema(std::span<const LinkInput> inputs, const LibraryIndex& libraries,
                          const LinkOptions& options);

}  // namespace loom
