// The open construct around the place of lowering; only the files of its members use it.
#pragma once

#include <utility>

#include "loom/target/llvm/body.h"

namespace loom {

struct BodyLowering::Frame {
  enum class Kind : uint8_t { Body, For, If, Switch, While, Exit, Call };

  Kind kind = Kind::Body;
  OpId op;              // the construct; invalid for a function's or kernel's own body
  OpId next;            // to lower next in the region
  bool single = false;  // Body: ends after one operation
  llvm::BasicBlock* before = nullptr;  // For: the block of the guard; If: end of the first region
  llvm::BasicBlock* other = nullptr;   // If: the block of the second region
  llvm::BasicBlock* exit = nullptr;
  llvm::BasicBlock* body = nullptr;  // For; While: the block of the first region
  llvm::PHINode* induction = nullptr;
  std::vector<llvm::PHINode*> carried;  // For; While: the arguments of the first region
  // Switch: the regions' blocks, the one that is lowered, and what the finished ones yielded where.
  std::vector<llvm::BasicBlock*> blocks;
  unsigned region = 0;
  std::vector<std::pair<Components, llvm::BasicBlock*>> yields;
  Components initial;  // For: of the carried values; If: of the first region's yield
  bool in_else = false;
};

}  // namespace loom
