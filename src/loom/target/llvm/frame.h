// The open construct around the place of lowering; only body.cpp and calls.cpp use it.
#pragma once

#include "loom/target/llvm/body.h"

namespace loom {

struct BodyLowering::Frame {
  enum class Kind : uint8_t { Body, For, If, Call };

  Kind kind = Kind::Body;
  OpId op;    // the construct; invalid for a function's or kernel's own body
  OpId next;  // to lower next in the region
  llvm::BasicBlock* before = nullptr;  // For: the block of the guard; If: end of the first region
  llvm::BasicBlock* other = nullptr;   // If: the block of the second region
  llvm::BasicBlock* exit = nullptr;
  llvm::BasicBlock* body = nullptr;  // For
  llvm::PHINode* induction = nullptr;
  std::vector<llvm::PHINode*> carried;
  Components initial;  // For: of the carried values; If: of the first region's yield
  bool in_else = false;
};

}  // namespace loom
