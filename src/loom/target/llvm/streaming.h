// Stores and loads around the caches.
//
// Lowering puts accesses that ask for it into one access group, which survives the vectorizer. When
// all vectors are made, streaming takes the group's vectors of aligned memory; stores whose
// alignment is not known are checked where they run, as an unaligned one cannot be streamed.
// Scalars stay in the caches.
#pragma once

namespace llvm {
class MDNode;
class Module;
}  // namespace llvm

namespace loom {

// The module's group; made when there is none.
llvm::MDNode* streaming_group(llvm::Module& module);

// `widest`: bytes of the target's vector registers, a power of two. True when there are streamed
// stores, which a target may not order with the stores behind them.
bool stream_accesses(llvm::Module& module, unsigned widest);

}  // namespace loom
