// What a program promises about numbers and addresses, for LLVM: as assumptions.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <bit>

#include "loom/ir/ir_text.h"
#include "loom/target/llvm/body.h"

namespace loom {
namespace {

using enum PredicateKind;

std::optional<llvm::CmpInst::Predicate> comparison(PredicateKind kind) {
  switch (kind) {
    case Eq:
      return llvm::CmpInst::ICMP_EQ;
    case Ne:
      return llvm::CmpInst::ICMP_NE;
    case Lt:
      return llvm::CmpInst::ICMP_SLT;
    case Le:
      return llvm::CmpInst::ICMP_SLE;
    case Gt:
      return llvm::CmpInst::ICMP_SGT;
    case Ge:
      return llvm::CmpInst::ICMP_SGE;
    default:
      return std::nullopt;
  }
}

}  // namespace

// Null for what LLVM has no use for.
llvm::Value* BodyLowering::condition_of(const Predicate& predicate) {
  auto& b = builder_;
  // An extent that no argument brings has no value of its own.
  llvm::Value* const subject = values_[predicate.args[0].value.index()];
  if (subject == nullptr) return nullptr;
  llvm::Type* const type = subject->getType();
  if (!type->isIntegerTy() || type->isIntegerTy(1)) return nullptr;
  const auto argument = [&](unsigned i) -> llvm::Value* {
    const PredicateArg& arg = predicate.args[i];
    if (!arg.is_value()) return llvm::ConstantInt::getSigned(type, arg.literal);
    llvm::Value* const other = values_[arg.value.index()];
    return other != nullptr && other->getType() == type ? other : nullptr;
  };
  if (const auto compare = comparison(predicate.kind)) {
    llvm::Value* const other = argument(1);
    return other == nullptr ? nullptr : b.CreateICmp(*compare, subject, other);
  }
  if (predicate.kind == Range) {
    llvm::Value* const low = argument(1);
    llvm::Value* const high = argument(2);
    if (low == nullptr || high == nullptr) return nullptr;
    return b.CreateAnd(b.CreateICmpSGE(subject, low), b.CreateICmpSLE(subject, high));
  }
  if (predicate.kind == Mul && !predicate.args[1].is_value() && predicate.args[1].literal > 0) {
    // Bits are what LLVM keeps track of.
    const auto factor = static_cast<uint64_t>(predicate.args[1].literal);
    const unsigned zeros = static_cast<unsigned>(std::countr_zero(factor));
    if (zeros == 0 || zeros >= type->getIntegerBitWidth()) return nullptr;
    return b.CreateIsNull(b.CreateAnd(subject, (uint64_t{1} << zeros) - 1));
  }
  return nullptr;
}

void BodyLowering::assume(OpId place, std::span<const Predicate> predicates) {
  for (const Predicate& predicate : predicates) {
    llvm::Value* const condition = aids_.assumes ? condition_of(predicate) : nullptr;
    if (condition == nullptr) continue;
    builder_.CreateAssumption(condition);
    note_fact(place, predicate_info(predicate.kind).text,
              value_name_text(module_, predicate.args[0].value));
  }
}

void BodyLowering::assume_alignment(OpId place, ValueId storage, int64_t alignment) {
  if (alignment <= 1) return;
  const auto power = uint64_t{1} << std::countr_zero(static_cast<uint64_t>(alignment));
  if (power == 1) return;
  note_fact(place, "alignment", value_name_text(module_, storage) + " = " + std::to_string(power));
  if (!aids_.assumes) return;
  builder_.CreateAlignmentAssumption(target_.getDataLayout(), value(storage),
                                     static_cast<unsigned>(power));
}

}  // namespace loom
