// The flags of every program that compiles kernels: where their code is kept between runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/cli.h"
#include "loom/cache/cache.h"

namespace loom {

struct CacheFlags {
  std::string folder;      // --cache, or else $LOOM_CACHE; empty for none
  uint64_t megabytes = 0;  // --cache-size, or else $LOOM_CACHE_SIZE; 0 for the default

  void declare(CLI::App& app);
  // Null when none is wanted, or when it cannot be used, which is a warning.
  std::unique_ptr<Cache> open(Tool& tool) const;
};

}  // namespace loom
