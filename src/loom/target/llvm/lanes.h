// Moves of lanes between LLVM vectors. All lanes are named when code is made.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace loom {

unsigned lanes_of(llvm::Value* vector);
// Lane i of the result is lane lanes[i] of `from`.
llvm::Value* pick_lanes(llvm::IRBuilderBase& builder, llvm::Value* from,
                        std::span<const uint64_t> lanes);
// Lane i of `count` is lane place(i) of `from`.
llvm::Value* pick_lanes(llvm::IRBuilderBase& builder, llvm::Value* from, unsigned count,
                        const std::function<uint64_t(unsigned)>& place);
// `count` neighbours from lane `first` on.
llvm::Value* take_lanes(llvm::IRBuilderBase& builder, llvm::Value* from, unsigned first,
                        unsigned count);
// The lanes of all parts one after another; a part that is no vector is one lane.
llvm::Value* join_lanes(llvm::IRBuilderBase& builder, std::span<llvm::Value* const> parts);

// What `emit` makes of the elements of `operands`, vectors of one lane, again as such a vector;
// null where they are scalars or have more lanes. LLVM's code generator gives up on some operations
// on a vector of one.
llvm::Value* compute_one_lane(
    llvm::IRBuilderBase& builder, std::span<llvm::Value* const> operands,
    const std::function<llvm::Value*(std::span<llvm::Value* const>)>& emit);

}  // namespace loom
