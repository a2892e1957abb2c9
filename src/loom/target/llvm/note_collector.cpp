#include "loom/target/llvm/note_collector.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/Function.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>
#include <string_view>

namespace loom {
namespace {

constexpr std::string_view kPasses[] = {"loop-vectorize", "loop-unroll", "slp-vectorizer",
                                        "regalloc", "prologepilog"};

bool is_wanted(llvm::StringRef pass) {
  return std::ranges::find(kPasses, std::string_view(pass)) != std::end(kPasses);
}

class Collector : public llvm::DiagnosticHandler {
 public:
  Collector(std::string& error, CodegenNotes* notes) : error_(error), notes_(notes) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() == llvm::DS_Error && error_.empty()) {
      llvm::raw_string_ostream stream(error_);
      llvm::DiagnosticPrinterRawOStream printer(stream);
      info.print(printer);
    } else if (notes_ != nullptr) {
      if (const auto* const remark = llvm::dyn_cast<llvm::DiagnosticInfoOptimizationBase>(&info)) {
        add(*remark);
      }
    }
    return true;
  }
  bool isAnalysisRemarkEnabled(llvm::StringRef pass) const override { return enabled(pass); }
  bool isMissedOptRemarkEnabled(llvm::StringRef pass) const override { return enabled(pass); }
  bool isPassedOptRemarkEnabled(llvm::StringRef pass) const override { return enabled(pass); }
  bool isAnyRemarkEnabled() const override { return notes_ != nullptr; }

 private:
  bool enabled(llvm::StringRef pass) const { return notes_ != nullptr && is_wanted(pass); }

  void add(const llvm::DiagnosticInfoOptimizationBase& remark) {
    if (!is_wanted(remark.getPassName())) return;
    CodegenNotes::Remark made;
    using Kind = CodegenNotes::Remark::Kind;
    made.kind = remark.isPassed()   ? Kind::Passed
                : remark.isMissed() ? Kind::Missed
                                    : Kind::Analysis;
    made.pass = remark.getPassName().str();
    made.name = remark.getRemarkName().str();
    made.function = remark.getFunction().getName().str();
    if (remark.isLocationAvailable()) {
      made.file = remark.getLocation().getRelativePath().str();
      made.line = remark.getLocation().getLine();
      made.column = remark.getLocation().getColumn();
    }
    made.text = remark.getMsg();
    for (const auto& value : remark.getArgs()) {
      if (value.Key != "String") made.values.emplace_back(value.Key, value.Val);
    }
    notes_->remarks.push_back(std::move(made));
  }

  std::string& error_;
  CodegenNotes* notes_;
};

}  // namespace

std::unique_ptr<llvm::DiagnosticHandler> make_note_collector(std::string& error,
                                                             CodegenNotes* notes) {
  return std::make_unique<Collector>(error, notes);
}

}  // namespace loom
