// Tells perf of the code that JITLink loads.
#pragma once

#include <memory>
#include <string>

namespace llvm::orc {
class ObjectLinkingLayer;
}  // namespace llvm::orc

namespace loom {

class PerfDump;

// Every function that the linker loads from then on is added to `dump`, under the name of its dylib
// up to kDylibNumber, with its lines where the object has a line table.
void tell_perf(llvm::orc::ObjectLinkingLayer& linker, std::shared_ptr<PerfDump> dump);

// What separates the name of a kernel from the number that makes its dylib's name unique.
inline constexpr char kDylibNumber = '#';

}  // namespace loom
