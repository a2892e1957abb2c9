#include "loom/dialect/op_info.h"
#include "loom/ir/walk.h"
#include "loom/link/library_index.h"
#include "loom/link/linker.h"

namespace loom {

// Benchmarks of the inputs, which may have no names, stay with the cases that they time. Returns
// the number of nodes before them.
uint32_t Linker::add_benchmarks() {
  const auto first = static_cast<uint32_t>(nodes_.size());
  if (options_.strip_check) return first;
  for (uint32_t m = 0; m < inputs_.size(); ++m) {
    const Module& module = inputs_[m].module;
    for_each_op(module, module.body(), [&](OpId op) {
      if (module.op(op).kind != OpKind::CheckBenchmark) return;
      const StringId name = module.attr(op, attr_slot(OpKind::CheckBenchmark, "case")).string();
      if (!node_of_.contains(place_key(m, module.symbol(name)))) return;
      reach({m, op}, "benchmark of a kept case");
    });
  }
  return first;
}

}  // namespace loom
