#include "loom/api/loom_c.h"

#include "loom/api/loom_c_state.h"

using namespace loom::c;

namespace {

// A text that lives as long as the plan.
template <class F>
loom_status plan_text(loom_plan* plan, size_t program, loom_bytes* out, F&& make) {
  if (missing(out)) return LOOM_MISUSE;
  *out = {nullptr, 0};
  return guarded([&] {
    if (missing(plan) || program >= plan->value.program_count()) return LOOM_MISUSE;
    std::string text = make(plan->value);
    const std::lock_guard lock(plan->mutex);
    plan->texts.push_back(std::move(text));
    *out = bytes(plan->texts.back());
    return LOOM_OK;
  });
}

}  // namespace

uint32_t loom_abi_version(void) { return LOOM_ABI_VERSION; }
loom_status loom_abi_check(uint32_t compiled_against) {
  return compiled_against != 0 && compiled_against <= LOOM_ABI_VERSION ? LOOM_OK : LOOM_MISUSE;
}

loom_context* loom_context_create(void) {
  return created<loom_context>([] { return new loom_context; });
}
void loom_context_destroy(loom_context* context) { delete context; }

loom_messages* loom_messages_create(const loom_context* context) {
  if (missing(context)) return nullptr;
  return created<loom_messages>(
      [&] { return new loom_messages{api::Messages(context->value), {}}; });
}
void loom_messages_destroy(loom_messages* messages) { delete messages; }
int loom_messages_has_errors(const loom_messages* messages) {
  return !missing(messages) && messages->value.has_errors() ? 1 : 0;
}
void loom_messages_clear(loom_messages* messages) {
  if (!missing(messages)) messages->value.clear();
}
const char* loom_messages_text(loom_messages* messages) {
  if (missing(messages)) return "";
  return guarded([&] {
           messages->rendered = messages->value.text();
           return LOOM_OK;
         }) == LOOM_OK
             ? messages->rendered.c_str()
             : "";
}
const char* loom_messages_json(loom_messages* messages) {
  if (missing(messages)) return "";
  return guarded([&] {
           messages->rendered = messages->value.json();
           return LOOM_OK;
         }) == LOOM_OK
             ? messages->rendered.c_str()
             : "";
}

loom_modules* loom_modules_create(const loom_context* context) {
  if (missing(context)) return nullptr;
  return created<loom_modules>(
      [&] { return new loom_modules{context->value, api::Modules(context->value)}; });
}
void loom_modules_destroy(loom_modules* modules) { delete modules; }
loom_status loom_modules_add_file(loom_modules* modules, const char* path,
                                  loom_messages* messages) {
  if (missing(modules, path, messages) || closed(modules->context, messages)) return LOOM_MISUSE;
  return guarded([&] { return status(modules->value.add_file(path, messages->value)); });
}
loom_status loom_modules_add_bytes(loom_modules* modules, const void* data, size_t size,
                                   const char* name, loom_messages* messages) {
  if (missing(modules, name, messages) || missing_bytes(data, size) ||
      closed(modules->context, messages)) {
    return LOOM_MISUSE;
  }
  return guarded(
      [&] { return status(modules->value.add(copied(data, size), name, messages->value)); });
}

loom_library* loom_library_create(loom_modules* modules) {
  if (missing(modules)) return nullptr;
  return created<loom_library>([&] {
    api::Modules empty(modules->context);
    std::swap(modules->value, empty);
    return new loom_library{api::Library(std::move(empty))};
  });
}
void loom_library_destroy(loom_library* library) { delete library; }

namespace {

bool may_link(const loom_modules& inputs, const loom_library* library,
              const loom_link_options* options) {
  if (options != nullptr) {
    if (sizeless(options)) return false;
    const loom_link_options known = known_part(options);
    if (missing_strings(known.roots) || missing_strings(known.specialize) ||
        missing_strings(known.config) || missing_strings(known.config_files)) {
      return false;
    }
  }
  if (library == nullptr) return true;
  const auto& from = library->value.state().context;
  const auto& own = inputs.context.state();
  return from == nullptr || from == own || from == own->base;
}

}  // namespace

loom_status loom_link(const loom_modules* inputs, const loom_library* library,
                      const loom_link_options* options, loom_messages* messages,
                      loom_linked** linked) {
  if (missing(linked)) return LOOM_MISUSE;
  *linked = nullptr;
  if (missing(inputs, messages) || !may_link(*inputs, library, options) ||
      foreign(messages, *inputs->context.state())) {
    return LOOM_MISUSE;
  }
  return guarded([&] {
    const loom_link_options known = known_part(options);
    auto made = api::link(inputs->value, library != nullptr ? library->value : api::Library(),
                          {strings(known.roots), strings(known.specialize), strings(known.config),
                           strings(known.config_files)},
                          messages->value);
    if (made) *linked = new loom_linked{std::move(made), {}};
    return status(*linked != nullptr);
  });
}
void loom_linked_destroy(loom_linked* linked) { delete linked; }

loom_status loom_prepare(loom_linked* linked, const loom_strings* roots, loom_messages* messages,
                         loom_plan** plan) {
  loom_prepare_options options{};
  options.struct_size = sizeof options;
  if (roots != nullptr) options.roots = *roots;
  return loom_prepare_with(linked, &options, messages, plan);
}
void loom_plan_destroy(loom_plan* plan) { delete plan; }
size_t loom_plan_program_count(const loom_plan* plan) {
  return missing(plan) ? 0 : plan->value.program_count();
}
loom_status loom_plan_schedule_text(loom_plan* plan, size_t program, loom_bytes* text) {
  return plan_text(plan, program, text,
                   [&](const api::Plan& p) { return p.schedule_text(program); });
}
loom_status loom_plan_schedule_dot(loom_plan* plan, size_t program, loom_bytes* text) {
  return plan_text(plan, program, text,
                   [&](const api::Plan& p) { return p.schedule_dot(program); });
}
loom_status loom_plan_artifact(loom_plan* plan, size_t program, loom_bytes* out) {
  return plan_text(plan, program, out, [&](const api::Plan& p) { return p.artifact(program); });
}
loom_status loom_plan_open(const loom_context* context, const char* path, loom_messages* messages,
                           loom_plan** plan) {
  if (missing(plan)) return LOOM_MISUSE;
  *plan = nullptr;
  if (missing(context, path, messages) || closed(context->value, messages)) return LOOM_MISUSE;
  return guarded([&] {
    auto made = api::Plan::open(context->value, path, messages->value);
    if (made) *plan = new loom_plan{std::move(*made), {}, {}};
    return status(*plan != nullptr);
  });
}
size_t loom_plan_request_count(const loom_plan* plan) {
  return missing(plan) ? 0 : plan->value.requests().size();
}
loom_status loom_plan_request(const loom_plan* plan, size_t index, loom_kernel_request* request) {
  if (missing(plan) || sizeless(request) || index >= plan->value.requests().size()) {
    return LOOM_MISUSE;
  }
  const api::KernelRequest& from = plan->value.requests()[index];
  give_request(from, request);
  return LOOM_OK;
}

loom_status loom_compile(const loom_plan* plan, const loom_compile_options* options,
                         loom_messages* messages, loom_executables** executables) {
  if (missing(executables)) return LOOM_MISUSE;
  *executables = nullptr;
  if (missing(plan, messages) || !may_compile(options)) return LOOM_MISUSE;
  return guarded([&] {
    auto made = api::compile(plan->value, compile_options(options), messages->value);
    if (made) *executables = new loom_executables{std::move(*made)};
    return status(*executables != nullptr);
  });
}
void loom_executables_destroy(loom_executables* executables) { delete executables; }

loom_parameters* loom_parameters_create(void) {
  return created<loom_parameters>([] { return new loom_parameters; });
}
void loom_parameters_destroy(loom_parameters* parameters) { delete parameters; }
loom_status loom_parameters_open(loom_parameters* parameters, const char* path, const char* root,
                                 loom_messages* messages) {
  if (missing(parameters, path, messages)) return LOOM_MISUSE;
  return guarded([&] { return status(parameters->value.open(path, text(root), messages->value)); });
}

loom_device* loom_device_create_cpu(unsigned thread_count) {
  return created<loom_device>([&] { return new loom_device{api::Device::cpu(thread_count)}; });
}
void loom_device_destroy(loom_device* device) { delete device; }

loom_status loom_materialize(const loom_device* device, const loom_plan* plan, size_t program,
                             const loom_executables* executables, const loom_parameters* parameters,
                             loom_messages* messages, loom_program** out) {
  if (missing(out)) return LOOM_MISUSE;
  *out = nullptr;
  if (missing(device, plan, executables, messages) || program >= plan->value.program_count() ||
      executables->value.state()->plan != plan->value.state()) {
    return LOOM_MISUSE;
  }
  return guarded([&] {
    auto made = api::materialize(device->value, plan->value, program, executables->value,
                                 parameters != nullptr ? parameters->value : api::Parameters(),
                                 messages->value);
    if (!made) return LOOM_FAILED;
    std::vector<api::Binding> bindings = made->bindings();
    *out = new loom_program{std::move(*made), std::move(bindings)};
    return LOOM_OK;
  });
}
void loom_program_destroy(loom_program* program) { delete program; }
size_t loom_program_binding_count(const loom_program* program) {
  return missing(program) ? 0 : program->bindings.size();
}
loom_status loom_program_binding(const loom_program* program, size_t index, loom_binding* binding) {
  if (missing(program) || sizeless(binding) || index >= program->bindings.size()) {
    return LOOM_MISUSE;
  }
  const api::Binding& from = program->bindings[index];
  give({0, from.ordinal, bytes(from.name), from.bytes, from.alignment}, binding);
  return LOOM_OK;
}

loom_invocation* loom_invocation_create(const loom_program* program) {
  if (missing(program)) return nullptr;
  return created<loom_invocation>(
      [&] { return new loom_invocation{api::Invocation(program->value), program->value}; });
}
void loom_invocation_destroy(loom_invocation* invocation) { delete invocation; }
loom_status loom_bind(loom_invocation* invocation, uint32_t ordinal, void* storage, size_t size,
                      loom_messages* messages) {
  if (missing(invocation, messages) || missing_bytes(storage, size) ||
      invocation->value.in_flight()) {
    return LOOM_MISUSE;
  }
  return guarded([&] {
    return status(
        invocation->value.bind(ordinal, {static_cast<std::byte*>(storage), size}, messages->value));
  });
}
loom_status loom_bind_name(loom_invocation* invocation, const char* name, void* storage,
                           size_t size, loom_messages* messages) {
  if (missing(invocation, name, messages) || missing_bytes(storage, size) ||
      invocation->value.in_flight()) {
    return LOOM_MISUSE;
  }
  return guarded([&] {
    return status(
        invocation->value.bind(name, {static_cast<std::byte*>(storage), size}, messages->value));
  });
}
loom_status loom_issue(loom_invocation* invocation, loom_messages* messages) {
  if (missing(invocation, messages) || invocation->value.in_flight()) return LOOM_MISUSE;
  return guarded([&] { return status(invocation->value.issue(messages->value)); });
}
