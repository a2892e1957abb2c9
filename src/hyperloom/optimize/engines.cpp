#include "hyperloom/optimize/kernel_run.h"
#include "hyperloom/optimize/loom_space.h"

namespace hyperloom::optimize {

const Engines& installed_engines() {
  static const Engines engines{installed_backends(), open_loom_space};
  return engines;
}

}  // namespace hyperloom::optimize
