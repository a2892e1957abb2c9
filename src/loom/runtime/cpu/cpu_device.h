// The CPU as a device: programs run on the calling thread and on oneTBB's workers.
#pragma once

#include <memory>

#include "loom/runtime/device.h"

namespace loom {

struct CpuOptions {
  // Threads that one issue may use, the calling one included, as far as the process has them; 0
  // takes all.
  unsigned threads = 0;
};

// An issue returns when all its work is done. Entries are addresses of LoomKernelEntry functions.
//
// Siblings of a concurrent node are handed to other threads unless their work is too little to pay
// for that, which earlier issues of the same invocation have measured; the same goes for the
// workgroups of a wide dispatch. Kernels must therefore never wait for one another.
std::unique_ptr<Device> make_cpu_device(const CpuOptions& options = {});

}  // namespace loom
