// What lowering notices for compile reports.
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>

#include <algorithm>

#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/target/llvm/body.h"

namespace loom {

using enum OpKind;

namespace {

// Code that is emitted twice says what it says once.
void add_once(std::vector<CodegenNotes::Fact>& facts, CodegenNotes::Fact fact) {
  if (std::ranges::find(facts, fact) == facts.end()) facts.push_back(std::move(fact));
}

}  // namespace

void BodyLowering::note_fact(OpId place, std::string_view fact, std::string subject) {
  if (aids_.notes == nullptr) return;
  add_once(aids_.notes->used, {builder_.GetInsertBlock()->getParent()->getName().str(),
                               module_.location(place), std::string(fact), std::move(subject), ""});
}

void BodyLowering::note_missing(OpId place, std::string_view fact, std::string subject,
                                std::string_view effect) {
  if (aids_.notes == nullptr) return;
  add_once(aids_.notes->missing,
           {builder_.GetInsertBlock()->getParent()->getName().str(), module_.location(place),
            std::string(fact), std::move(subject), std::string(effect)});
}

// Only what comes from a launch argument of the kernel counts; storage of its own is known to be
// apart from everything.
void BodyLowering::note_access(ValueId view, bool stores, bool scoped) {
  for (OpId op = module_.defining_op(view); op.valid(); op = module_.defining_op(view)) {
    switch (module_.op(op).kind) {
      case BufferView:
      case ViewSubview:
      case ViewRefine:
        view = module_.operand(op, 0);
        break;
      case BufferAssumeNoalias:
      case BufferAssumeAlignment:
      case BufferAssumeMemorySpace:
        view = module_.operand(op, module_.value(view).index);
        break;
      default:
        return;
    }
  }
  const Value& root = module_.value(view);
  if (!kernel_.valid() || root.kind != ValueKind::Argument ||
      module_.region(RegionId(root.owner)).parent != kernel_) {
    return;
  }
  auto use = std::ranges::find(root_uses_, view, &RootUse::root);
  if (use == root_uses_.end()) use = root_uses_.insert(use, {view});
  use->stores = use->stores || stores;
  use->unscoped = use->unscoped || !scoped;
}

// A buffer that nothing else is compared with, or buffers that are only read, need no promise.
void BodyLowering::note_roots() {
  const bool stored = std::ranges::any_of(root_uses_, &RootUse::stores);
  if (stored && root_uses_.size() > 1) {
    for (const RootUse& use : root_uses_) {
      if (!use.unscoped) continue;
      note_missing(kernel_, "noalias", value_name_text(module_, use.root),
                   "it may overlap what the kernel writes, so accesses keep their order or are "
                   "checked at run time");
    }
  }
  root_uses_.clear();
}

// Loops are overlapped by the pass `pipeline`, which drops the clause; here it is a hint.
void BodyLowering::note_pipeline(OpId loop) {
  if (aids_.notes == nullptr) return;
  if (operand_group(module_, loop, operand_slot(ScfFor, "depth")).empty()) return;
  CodegenNotes::Remark note;
  note.kind = CodegenNotes::Remark::Kind::Missed;
  note.pass = "loop-pipeline";
  note.function = builder_.GetInsertBlock()->getParent()->getName().str();
  if (const Location place = module_.location(loop); place.valid()) {
    note.file = module_.files().file(place.file).path;
    note.line = place.line;
    note.column = place.column;
  }
  note.text = "code generation for this target does not overlap iterations";
  aids_.notes->remarks.push_back(std::move(note));
}

}  // namespace loom
