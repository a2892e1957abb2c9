#include "loom/target/llvm/debug_lines.h"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/Module.h>

namespace loom {
namespace {

// Older debuggers read it, and it needs fewer sections than its successor.
constexpr uint32_t kDwarfVersion = 4;

// The first symbol with a place names the unit.
Location first_place(const Module& module) {
  for (OpId id = module.region(module.body()).first; id.valid(); id = module.op(id).next) {
    if (module.location(id).valid()) return module.location(id);
  }
  return {};
}

}  // namespace

DebugLines::DebugLines(const Module& module, llvm::Module& target)
    : module_(module), target_(target) {
  const Location first = first_place(module);
  if (!first.valid()) return;
  builder_ = std::make_unique<llvm::DIBuilder>(target, /*AllowUnresolved=*/false);
  builder_->createCompileUnit(llvm::dwarf::DW_LANG_C, file_of(first.file), "loom",
                              /*isOptimized=*/true, "", 0, "", llvm::DICompileUnit::LineTablesOnly);
  target.addModuleFlag(llvm::Module::Warning, "Dwarf Version", kDwarfVersion);
  target.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
}

DebugLines::~DebugLines() = default;

llvm::DIFile* DebugLines::file_of(FileId id) {
  llvm::DIFile*& file = files_[id.index()];
  if (file == nullptr) file = builder_->createFile(module_.files().file(id).path, ".");
  return file;
}

llvm::DISubprogram* DebugLines::subprogram(OpId op, std::string_view name) {
  const Location place = module_.location(op);
  llvm::DIFile* const file = file_of(place.file);
  return builder_->createFunction(
      file, {name.data(), name.size()}, "", file, place.line,
      builder_->createSubroutineType(builder_->getOrCreateTypeArray({})), place.line,
      llvm::DINode::FlagZero,
      llvm::DISubprogram::SPFlagDefinition | llvm::DISubprogram::SPFlagOptimized);
}

void DebugLines::begin(llvm::Function& function, std::string_view name, OpId op) {
  scopes_.clear();
  const Location place = module_.location(op);
  if (builder_ == nullptr || !place.valid()) return;
  llvm::DISubprogram* const made = subprogram(op, name);
  function.setSubprogram(made);
  scopes_.push_back({made, place.file, nullptr});
}

void DebugLines::enter_call(OpId call, OpId callee, std::string_view name) {
  if (scopes_.empty()) return;
  Scope scope = scopes_.back();
  const Location place = module_.location(callee);
  if (place.valid()) {
    llvm::DISubprogram*& made = inlined_[callee.index()];
    if (made == nullptr) made = subprogram(callee, name);
    // Distinct calls at one place must not be taken for one.
    const llvm::DebugLoc here = at(call);
    scope = {made, place.file,
             llvm::DILocation::getDistinct(target_.getContext(), here.getLine(), here.getCol(),
                                           here.getScope(), here.getInlinedAt())};
  }
  scopes_.push_back(scope);
}

void DebugLines::leave_call() {
  if (!scopes_.empty()) scopes_.pop_back();
}

llvm::DIScope* DebugLines::scope_in(FileId file) {
  const Scope& scope = scopes_.back();
  if (file == scope.file) return scope.subprogram;
  // Such scopes are made once for each pair.
  return builder_->createLexicalBlockFile(scope.subprogram, file_of(file));
}

llvm::DebugLoc DebugLines::at(OpId op) {
  if (scopes_.empty()) return {};
  const Scope& scope = scopes_.back();
  const Location place = module_.location(op);
  llvm::LLVMContext& context = target_.getContext();
  if (!place.valid()) {
    return llvm::DILocation::get(context, 0, 0, scope.subprogram, scope.called_at);
  }
  return llvm::DILocation::get(context, place.line, place.column, scope_in(place.file),
                               scope.called_at);
}

void DebugLines::finish() {
  if (builder_ != nullptr) builder_->finalize();
}

}  // namespace loom
