// What the handles of loom_c.h hold. For the sources of this room.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <mutex>
#include <new>
#include <string>

#include "loom/api/loom.h"
#include "loom/api/loom_c.h"
#include "loom/api/profile.h"
#include "loom/api/state.h"

namespace api = loom::api;

struct loom_context {
  api::Context value;
};
struct loom_messages {
  api::Messages value;
  std::string rendered;
};
struct loom_modules {
  api::Context context;
  api::Modules value;
};
struct loom_library {
  api::Library value;
};
struct loom_linked {
  std::optional<api::LinkedModule> value;  // empty once it is used up
  std::string written;
};
struct loom_launch_config {
  struct Kernel {
    std::string name;
    std::vector<std::string> types;
    std::vector<const char*> workload;  // those
  };
  api::LaunchConfig value;
  std::vector<Kernel> kernels;
};
struct loom_plan {
  api::Plan value;
  std::mutex mutex;               // a plan may be shared
  std::deque<std::string> texts;  // handed out as views
};
struct loom_executables {
  api::Executables value;
};
struct loom_parameters {
  api::Parameters value;
};
struct loom_device {
  api::Device value;
};
struct loom_program {
  api::Program value;
  std::vector<api::Binding> bindings;
};
struct loom_workspace {
  api::Workspace value;
};
struct loom_module {
  std::optional<api::Module> value;
  std::optional<std::vector<api::Symbol>> symbols;
  std::vector<const char*> references;  // of the symbol that was asked for last
  std::string written;
};
struct loom_request {
  api::OwnedRequest value;
};
struct loom_code {
  api::Code value;
};
struct loom_storage {
  api::Storage value;
};
struct loom_completion {
  api::Completion value;
};
struct loom_invocation {
  api::Invocation value;
  api::Program program;
};
struct loom_profile {
  api::Profile value;
  api::Program program;
  std::string written;
};

namespace loom::c {

// No exception leaves the library: for want of memory there is a status, and any other is a bug.
template <class F>
loom_status guarded(F&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return LOOM_OUT_OF_MEMORY;
  }
}
template <class T, class F>
T* created(F&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

inline loom_status status(bool good) { return good ? LOOM_OK : LOOM_FAILED; }

// Whether something that a function needs is not there, which is misuse.
template <class... T>
bool missing(const T*... pointers) {
  return ((pointers == nullptr) || ...);
}
inline bool missing_bytes(const void* data, size_t size) { return data == nullptr && size != 0; }
inline bool missing_strings(const loom_strings& list) {
  if (list.count == 0) return false;
  return list.items == nullptr ||
         std::find(list.items, list.items + list.count, nullptr) != list.items + list.count;
}
// Whether a struct of the caller does not even say how large it is.
template <class T>
bool sizeless(const T* given) {
  return given == nullptr || given->struct_size < sizeof(size_t);
}
// Whether the messages cannot quote what is of that context.
inline bool foreign(loom_messages* messages, const api::Context::State& context) {
  return !messages->value.state().quotes(context);
}
// Whether nothing may be read into the context, or the messages are not its.
inline bool closed(const api::Context& context, loom_messages* messages) {
  return context.state()->frozen || foreign(messages, *context.state());
}

inline loom_bytes bytes(std::string_view view) { return {view.data(), view.size()}; }

inline std::vector<std::string> strings(const loom_strings& from) {
  return {from.items, from.items + from.count};
}

// What the caller's version of a struct holds; what it does not know yet is left at zero.
template <class T>
T known_part(const T* from) {
  T known{};
  if (from == nullptr) return known;
  std::memcpy(static_cast<void*>(&known), from, std::min(from->struct_size, sizeof(T)));
  return known;
}
template <class T>
void give(T value, T* to) {
  value.struct_size = to->struct_size;
  std::memcpy(static_cast<void*>(to), &value, std::min(to->struct_size, sizeof(T)));
}

inline std::string copied(const void* data, size_t size) {
  return size == 0 ? std::string() : std::string(static_cast<const char*>(data), size);
}
inline std::string text(const char* given) { return given != nullptr ? given : ""; }

// Whether they say all that they must; null ones do.
bool may_compile(const loom_compile_options* options);
api::CompileOptions compile_options(const loom_compile_options* options);
inline void give_request(const api::KernelRequest& from, loom_kernel_request* to) {
  give({0, from.ordinal, bytes(from.symbol), bytes(from.export_name), bytes(from.bytecode)}, to);
}

}  // namespace loom::c
