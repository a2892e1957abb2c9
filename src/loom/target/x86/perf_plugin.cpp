#include "loom/target/x86/perf_plugin.h"

#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/ExecutionEngine/Orc/Debugging/DebugInfoSupport.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <utility>
#include <vector>

#include "loom/target/x86/perf_dump.h"

namespace loom {
namespace {

std::vector<CodeLine> lines_of(llvm::DWARFContext& debug, uint64_t address, uint64_t size) {
  std::vector<CodeLine> lines;
  using Specifier = llvm::DILineInfoSpecifier;
  const auto table = debug.getLineInfoForAddressRange(
      {address, llvm::object::SectionedAddress::UndefSection}, size,
      Specifier(Specifier::FileLineInfoKind::RawValue, Specifier::FunctionNameKind::None));
  for (const auto& [at, place] : table) {
    if (place.Line != 0) lines.push_back({at, place.Line, place.FileName});
  }
  return lines;
}

class PerfPlugin final : public llvm::orc::ObjectLinkingLayer::Plugin {
 public:
  explicit PerfPlugin(std::shared_ptr<PerfDump> dump) : dump_(std::move(dump)) {}

  void modifyPassConfig(llvm::orc::MaterializationResponsibility& made, llvm::jitlink::LinkGraph&,
                        llvm::jitlink::PassConfiguration& passes) override {
    std::string name = made.getTargetJITDylib().getName();
    name.resize(std::min(name.size(), name.find(kDylibNumber)));
    passes.PrePrunePasses.emplace_back(llvm::orc::preserveDebugSections);
    passes.PostFixupPasses.emplace_back([this, name](llvm::jitlink::LinkGraph& graph) {
      add(graph, name);
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(llvm::orc::MaterializationResponsibility&) override {
    return llvm::Error::success();
  }
  llvm::Error notifyRemovingResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(llvm::orc::JITDylib&, llvm::orc::ResourceKey,
                                   llvm::orc::ResourceKey) override {}

 private:
  void add(llvm::jitlink::LinkGraph& graph, const std::string& name) {
    auto debug = llvm::orc::createDWARFContext(graph);
    if (!debug) llvm::consumeError(debug.takeError());
    for (const llvm::jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->isCallable() || !symbol->hasName() || symbol->getSize() == 0) continue;
      const uint64_t address = symbol->getAddress().getValue();
      const auto content = symbol->getSymbolContent();
      dump_->add(
          name, address, std::as_bytes(std::span(content.data(), content.size())),
          debug ? lines_of(*debug->first, address, symbol->getSize()) : std::vector<CodeLine>());
    }
  }

  std::shared_ptr<PerfDump> dump_;
};

}  // namespace

void tell_perf(llvm::orc::ObjectLinkingLayer& linker, std::shared_ptr<PerfDump> dump) {
  linker.addPlugin(std::make_shared<PerfPlugin>(std::move(dump)));
}

}  // namespace loom
