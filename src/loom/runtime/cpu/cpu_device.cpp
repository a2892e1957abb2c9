#include "loom/runtime/cpu/cpu_device.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <system_error>

#include "loom/runtime/cpu/issue.h"

namespace loom {
namespace {

// oneTBB prints a warning when it is asked for more than it may use.
unsigned usable_threads(unsigned wanted) {
  const auto most = static_cast<unsigned>(
      tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  return wanted == 0 ? most : std::min(wanted, most);
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(unsigned threads)
      : threads_(threads), arena_(static_cast<int>(threads), /*reserved_for_masters=*/1) {}

  std::string_view name() const override { return "cpu"; }
  std::optional<Buffer> allocate(uint64_t bytes) override { return Buffer::allocate(bytes); }
  std::unique_ptr<Program> materialize(const ProgramSource& source,
                                       Diagnostics& diagnostics) override {
    return CpuProgram::materialize(source, arena_, threads_, partner(), diagnostics);
  }

 private:
  // Null where one thread is all that an issue may use, or the system gives no more.
  Partner* partner() {
    if (threads_ == 1) return nullptr;
    std::call_once(partner_once_, [&] {
      try {
        partner_ = std::make_unique<Partner>();
      } catch (const std::system_error&) {
        partner_ = nullptr;
      }
    });
    return partner_.get();
  }

  unsigned threads_;
  tbb::task_arena arena_;
  std::once_flag partner_once_;
  std::unique_ptr<Partner> partner_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuOptions& options) {
  return std::make_unique<CpuDevice>(usable_threads(options.threads));
}

}  // namespace loom
