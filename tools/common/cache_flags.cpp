#include "common/cache_flags.h"

namespace loom {

void CacheFlags::declare(CLI::App& app) {
  app.add_option("--cache", folder,
                 "folder that keeps compiled kernels between runs; none if not stated")
      ->envname("LOOM_CACHE");
  app.add_option("--cache-size", megabytes, "most MiB that the folder holds; 1024 if not stated")
      ->envname("LOOM_CACHE_SIZE")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 40));
}

std::unique_ptr<Cache> CacheFlags::open(Tool& tool) const {
  if (folder.empty()) return nullptr;
  CacheOptions options{.folder = folder};
  if (megabytes != 0) options.max_bytes = megabytes << 20;
  auto cache = Cache::open(std::move(options));
  if (cache) return std::move(*cache);
  tool.diagnostics().emit(Diag::RunCache, {}, {{"path", folder}, {"reason", cache.error().reason}});
  return nullptr;
}

}  // namespace loom
