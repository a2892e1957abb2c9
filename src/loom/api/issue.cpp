// Storage, invocations and completions.
#include <atomic>
#include <new>

#include "loom/api/profile_state.h"
#include "loom/api/state.h"
#include "loom/base/check.h"

namespace loom::api {

// --- storage -------------------------------------------------------------------------------------

Storage Storage::allocate(const Device& device, size_t bytes) {
  auto memory = device.state()->device->allocate(bytes);
  if (!memory) throw std::bad_alloc();
  auto state = std::make_shared<State>();
  state->device = device.state();
  state->bytes = memory->bytes();
  state->own = std::move(*memory);
  return Storage(std::move(state));
}

Storage Storage::import(const Device& device, void* pointer, size_t bytes) {
  LOOM_CHECK(pointer != nullptr || bytes == 0, "imported memory has an address");
  auto state = std::make_shared<State>();
  state->device = device.state();
  state->bytes = {static_cast<std::byte*>(pointer), bytes};
  return Storage(std::move(state));
}

std::span<std::byte> Storage::bytes() const { return state_->bytes; }

// --- completion ----------------------------------------------------------------------------------

struct Completion::State {
  std::atomic<bool> done{false};
  bool good = false;  // once done
  Diagnostics diagnostics;
};

bool Completion::done() const { return state_->done.load(std::memory_order_acquire); }

bool Completion::wait(Messages& messages) const {
  state_->done.wait(false, std::memory_order_acquire);
  for (const Diagnostic& d : state_->diagnostics.all()) {
    messages.state().diagnostics.emit_as(d.severity, d.id, d.location, d.params).notes = d.notes;
  }
  return state_->good;
}

// --- invocation ----------------------------------------------------------------------------------

struct Invocation::State {
  State(std::shared_ptr<const Program::State> of, std::unique_ptr<loom::Invocation> made)
      : program(std::move(of)), invocation(std::move(made)) {}
  std::shared_ptr<const Program::State> program;
  std::unique_ptr<loom::Invocation> invocation;
  std::atomic<bool> in_flight{false};

  loom::Invocation& at_rest() {
    LOOM_CHECK(!in_flight.load(std::memory_order_acquire),
               "no issue of the invocation is in flight");
    return *invocation;
  }
  loom::Invocation& on_device_of(const Storage& storage) {
    LOOM_CHECK(storage.state()->device == program->device, "storage is of the program's device");
    return at_rest();
  }
};

Invocation::Invocation(const Program& program)
    : state_(
          std::make_shared<State>(program.state(), program.state()->program->make_invocation())) {
  if (!state_->invocation) throw std::bad_alloc();
}
Invocation::Invocation(Invocation&&) noexcept = default;
Invocation& Invocation::operator=(Invocation&&) noexcept = default;
Invocation::~Invocation() = default;

bool Invocation::bind(uint32_t ordinal, std::span<std::byte> storage, Messages& messages) {
  return state_->at_rest().bind(ordinal, storage, messages.state().diagnostics);
}
bool Invocation::bind(std::string_view name, std::span<std::byte> storage, Messages& messages) {
  return state_->at_rest().bind(name, storage, messages.state().diagnostics);
}
bool Invocation::bind(uint32_t ordinal, const Storage& storage, Messages& messages) {
  return state_->on_device_of(storage).bind(ordinal, storage.bytes(), messages.state().diagnostics);
}
bool Invocation::bind(std::string_view name, const Storage& storage, Messages& messages) {
  return state_->on_device_of(storage).bind(name, storage.bytes(), messages.state().diagnostics);
}

bool Invocation::issue(Messages& messages) {
  return state_->at_rest().issue(messages.state().diagnostics);
}

bool Invocation::issue(Profile& profile, Messages& messages) {
  LOOM_CHECK(profile.state().program == state_->program, "the profile is of another program");
  return profile.state().issue(state_->at_rest(), messages.state().diagnostics);
}

bool Invocation::in_flight() const { return state_->in_flight.load(std::memory_order_acquire); }

Completion Invocation::start(std::function<void()> then) {
  state_->at_rest();
  auto result = std::make_shared<Completion::State>();
  state_->in_flight.store(true, std::memory_order_relaxed);
  state_->program->device->queue.run([issue = state_, result, then = std::move(then)]() mutable {
    result->good = issue->invocation->issue(result->diagnostics);
    issue->in_flight.store(false, std::memory_order_release);
    result->done.store(true, std::memory_order_release);
    result->done.notify_all();
    if (then) then();
  });
  return Completion(std::move(result));
}

}  // namespace loom::api
