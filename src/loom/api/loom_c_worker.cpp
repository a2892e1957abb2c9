// The C functions for workers, rewriting, storage and completions.
#include "loom/api/loom_c_state.h"

using namespace loom::c;

loom_context* loom_context_create_over(const loom_context* base) {
  if (missing(base)) return nullptr;
  return created<loom_context>([&] { return new loom_context{api::Context::over(base->value)}; });
}

// --- modules -------------------------------------------------------------------------------------

namespace {

template <class T>
bool used_up(const T* handle) {
  return missing(handle) || !handle->value;
}

}  // namespace

loom_status loom_module_read(const loom_context* context, const void* data, size_t size,
                             const char* name, loom_messages* messages, loom_module** module) {
  if (missing(module)) return LOOM_MISUSE;
  *module = nullptr;
  if (missing(context, name, messages) || missing_bytes(data, size) ||
      closed(context->value, messages)) {
    return LOOM_MISUSE;
  }
  return guarded([&] {
    auto made = api::Module::read(context->value, copied(data, size), name, messages->value);
    if (made) *module = new loom_module{std::move(made), {}, {}, {}};
    return status(*module != nullptr);
  });
}
void loom_module_destroy(loom_module* module) { delete module; }

size_t loom_module_symbol_count(loom_module* module) {
  size_t count = 0;
  guarded([&] {
    if (used_up(module)) return LOOM_MISUSE;
    module->symbols = module->value->symbols();
    count = module->symbols->size();
    return LOOM_OK;
  });
  return count;
}
loom_status loom_module_symbol(loom_module* module, size_t index, loom_symbol* symbol) {
  return guarded([&] {
    if (used_up(module) || sizeless(symbol)) return LOOM_MISUSE;
    if (!module->symbols) module->symbols = module->value->symbols();
    if (index >= module->symbols->size()) return LOOM_MISUSE;
    const api::Symbol& from = (*module->symbols)[index];
    module->references.clear();
    for (const std::string& name : from.references) module->references.push_back(name.c_str());
    give({0, from.name.c_str(), from.kind.c_str(), from.contract.c_str(), from.declaration ? 1 : 0,
          from.exported ? 1 : 0, from.retained ? 1 : 0, module->references.data(),
          module->references.size()},
         symbol);
    return LOOM_OK;
  });
}

loom_status loom_module_replace_kernel(loom_module* module, const char* name,
                                       const loom_module* from, const char* replacement,
                                       loom_messages* messages) {
  return guarded([&] {
    if (used_up(module) || used_up(from) || missing(name, replacement, messages)) {
      return LOOM_MISUSE;
    }
    const auto& context = module->value->state().context;
    if (from->value->state().context != context || foreign(messages, *context)) return LOOM_MISUSE;
    module->symbols.reset();
    return status(module->value->replace_kernel(name, *from->value, replacement, messages->value));
  });
}
loom_status loom_module_bind_config(loom_module* module, const char* key, const char* value,
                                    loom_messages* messages) {
  return guarded([&] {
    if (used_up(module) || missing(key, value, messages) ||
        foreign(messages, *module->value->state().context)) {
      return LOOM_MISUSE;
    }
    module->symbols.reset();
    return status(module->value->bind_config(key, value, messages->value));
  });
}
loom_status loom_module_text(loom_module* module, loom_bytes* out) {
  if (missing(out)) return LOOM_MISUSE;
  *out = {nullptr, 0};
  return guarded([&] {
    if (used_up(module)) return LOOM_MISUSE;
    module->written = module->value->text();
    *out = bytes(module->written);
    return LOOM_OK;
  });
}
loom_status loom_module_bytecode(loom_module* module, loom_bytes* out) {
  if (missing(out)) return LOOM_MISUSE;
  *out = {nullptr, 0};
  return guarded([&] {
    if (used_up(module)) return LOOM_MISUSE;
    module->written = module->value->bytecode();
    *out = bytes(module->written);
    return LOOM_OK;
  });
}
loom_status loom_modules_add_module(loom_modules* modules, loom_module* module, const char* name) {
  return guarded([&] {
    if (used_up(module) || missing(modules, name) ||
        module->value->state().context != modules->context.state()) {
      return LOOM_MISUSE;
    }
    modules->value.add(std::move(*module->value), name);
    module->value.reset();
    module->symbols.reset();
    return LOOM_OK;
  });
}

// --- launch configurations -----------------------------------------------------------------------

loom_status loom_launch_config_write(loom_linked* linked, const loom_strings* symbols,
                                     loom_messages* messages, loom_bytes* out) {
  if (missing(out)) return LOOM_MISUSE;
  *out = {nullptr, 0};
  return guarded([&] {
    if (used_up(linked) || missing(messages) ||
        foreign(messages, *linked->value->state().context) ||
        (symbols != nullptr && missing_strings(*symbols))) {
      return LOOM_MISUSE;
    }
    api::LinkedModule module = std::move(*linked->value);
    linked->value.reset();
    auto made = api::write_launch_config(
        std::move(module), symbols != nullptr ? strings(*symbols) : std::vector<std::string>(),
        messages->value);
    if (!made) return LOOM_FAILED;
    linked->written = std::move(*made);
    *out = bytes(linked->written);
    return LOOM_OK;
  });
}
loom_status loom_launch_config_read(const loom_context* context, const void* data, size_t size,
                                    const char* name, loom_messages* messages,
                                    loom_launch_config** config) {
  if (missing(config)) return LOOM_MISUSE;
  *config = nullptr;
  if (missing(context, name, messages) || missing_bytes(data, size) ||
      closed(context->value, messages)) {
    return LOOM_MISUSE;
  }
  return guarded([&] {
    auto made = api::LaunchConfig::read(context->value, copied(data, size), name, messages->value);
    if (!made) return LOOM_FAILED;
    auto handle = std::make_unique<loom_launch_config>(std::move(*made));
    for (std::string& symbol : handle->value.kernels()) {
      auto types = *handle->value.workload(symbol);
      handle->kernels.push_back({std::move(symbol), std::move(types), {}});
    }
    for (loom_launch_config::Kernel& kernel : handle->kernels) {
      for (const std::string& type : kernel.types) kernel.workload.push_back(type.c_str());
    }
    *config = handle.release();
    return LOOM_OK;
  });
}
size_t loom_launch_config_kernel_count(const loom_launch_config* config) {
  return missing(config) ? 0 : config->kernels.size();
}
loom_status loom_launch_config_kernel(const loom_launch_config* config, size_t index,
                                      loom_launch_kernel* kernel) {
  if (missing(config) || sizeless(kernel) || index >= config->kernels.size()) return LOOM_MISUSE;
  const loom_launch_config::Kernel& from = config->kernels[index];
  give({0, from.name.c_str(), from.workload.data(), from.workload.size()}, kernel);
  return LOOM_OK;
}
void loom_launch_config_destroy(loom_launch_config* config) { delete config; }
loom_status loom_launch_config_evaluate(const loom_launch_config* config, const char* kernel,
                                        const uint64_t* workload, size_t count,
                                        loom_messages* messages, loom_geometry* geometry) {
  if (missing(config, kernel, messages, geometry) || (workload == nullptr && count != 0) ||
      foreign(messages, *config->value.state()->context)) {
    return LOOM_MISUSE;
  }
  return guarded([&] {
    const auto made = config->value.evaluate(kernel, {workload, count}, messages->value);
    if (!made) return LOOM_FAILED;
    std::ranges::copy(made->count, geometry->count);
    std::ranges::copy(made->size, geometry->size);
    return LOOM_OK;
  });
}

// --- plans and code ------------------------------------------------------------------------------

loom_workspace* loom_workspace_create(void) {
  return created<loom_workspace>([] { return new loom_workspace; });
}
void loom_workspace_destroy(loom_workspace* workspace) { delete workspace; }

namespace {

class Recipient final : public api::RequestRecipient {
 public:
  explicit Recipient(const loom_recipient& of) : of_(of) {}
  bool take(api::OwnedRequest&& request) override {
    return of_.take(of_.user, new loom_request{std::move(request)}) != 0;
  }
  void commit() override {
    if (of_.commit != nullptr) of_.commit(of_.user);
  }
  void cancel() override {
    if (of_.cancel != nullptr) of_.cancel(of_.user);
  }

 private:
  const loom_recipient of_;
};

}  // namespace

loom_status loom_prepare_with(loom_linked* linked, const loom_prepare_options* options,
                              loom_messages* messages, loom_plan** plan) {
  if (missing(plan)) return LOOM_MISUSE;
  *plan = nullptr;
  return guarded([&] {
    const loom_prepare_options known = known_part(options);
    if (used_up(linked) || missing(messages) || (options != nullptr && sizeless(options)) ||
        missing_strings(known.roots) || foreign(messages, *linked->value->state().context) ||
        (known.recipient != nullptr && known.recipient->take == nullptr)) {
      return LOOM_MISUSE;
    }
    std::optional<Recipient> recipient;
    if (known.recipient != nullptr) recipient.emplace(*known.recipient);
    const api::PrepareOptions wanted{
        .roots = strings(known.roots),
        .max_request_classes = known.max_request_classes,
        .check_hazards = known.check_hazards != 0,
        .plan_only = known.plan_only != 0,
        .recipient = recipient ? &*recipient : nullptr,
        .workspace = known.workspace != nullptr ? &known.workspace->value : nullptr};
    api::LinkedModule module = std::move(*linked->value);
    linked->value.reset();
    auto made = api::prepare(std::move(module), wanted, messages->value);
    if (made) *plan = new loom_plan{std::move(*made), {}, {}};
    return status(*plan != nullptr);
  });
}

void loom_request_destroy(loom_request* request) { delete request; }
loom_status loom_request_view(const loom_request* request, loom_kernel_request* view) {
  if (missing(request) || sizeless(view)) return LOOM_MISUSE;
  give_request(request->value.view(), view);
  return LOOM_OK;
}

loom_status loom_compile_request(const loom_kernel_request* request,
                                 const loom_compile_options* options, loom_messages* messages,
                                 loom_code** code) {
  if (missing(code)) return LOOM_MISUSE;
  *code = nullptr;
  if (sizeless(request) || missing(messages) || !may_compile(options)) return LOOM_MISUSE;
  const loom_kernel_request known = known_part(request);
  for (const loom_bytes& part : {known.symbol, known.export_name, known.bytecode}) {
    if (missing_bytes(part.data, part.size)) return LOOM_MISUSE;
  }
  return guarded([&] {
    const auto view = [](loom_bytes from) {
      return std::string_view(static_cast<const char*>(from.data), from.size);
    };
    auto made = api::compile(
        {known.ordinal, view(known.symbol), view(known.export_name), view(known.bytecode)},
        compile_options(options), messages->value);
    if (made) *code = new loom_code{std::move(*made)};
    return status(*code != nullptr);
  });
}
void loom_code_destroy(loom_code* code) { delete code; }

loom_status loom_assemble(const loom_plan* plan, const loom_code* const* codes, size_t count,
                          const loom_compile_options* options, loom_messages* messages,
                          loom_executables** executables) {
  if (missing(executables)) return LOOM_MISUSE;
  *executables = nullptr;
  if (missing(plan, messages) || (codes == nullptr && count != 0) || !may_compile(options)) {
    return LOOM_MISUSE;
  }
  return guarded([&] {
    std::vector<api::Code> given;
    given.reserve(count);
    for (size_t i = 0; i < count; ++i) {
      given.push_back(codes[i] != nullptr ? codes[i]->value : api::Code());
    }
    auto made = api::assemble(plan->value, given, compile_options(options), messages->value);
    if (made) *executables = new loom_executables{std::move(*made)};
    return status(*executables != nullptr);
  });
}

bool loom::c::may_compile(const loom_compile_options* options) {
  if (options == nullptr) return true;
  if (sizeless(options)) return false;
  const loom_compile_options known = known_part(options);
  if (known.externals == nullptr) return known.external_count == 0;
  return std::all_of(known.externals, known.externals + known.external_count,
                     [](const loom_external_entry& entry) {
                       return entry.symbol != nullptr &&
                              (entry.function != nullptr || entry.file != nullptr);
                     });
}

api::CompileOptions loom::c::compile_options(const loom_compile_options* options) {
  const loom_compile_options known = known_part(options);
  api::CompileOptions wanted{
      .tier = known.fast == 0   ? api::Tier::Optimized
              : known.fast == 2 ? api::Tier::FastFirst
                                : api::Tier::Fast,
      .flush_denormals = known.flush_denormals != 0,
      .threads = known.thread_count,
      .cache_folder = text(known.cache_folder),
      .cache_bytes = known.cache_bytes,
      .externals = {},
      .workspace = known.workspace != nullptr ? &known.workspace->value : nullptr};
  for (size_t i = 0; i < known.external_count; ++i) {
    const loom_external_entry& entry = known.externals[i];
    wanted.externals.push_back(
        {text(entry.symbol), entry.function, text(entry.file), text(entry.name)});
  }
  return wanted;
}

// --- storage and completion ----------------------------------------------------------------------

loom_storage* loom_storage_allocate(const loom_device* device, size_t size) {
  if (missing(device)) return nullptr;
  return created<loom_storage>(
      [&] { return new loom_storage{api::Storage::allocate(device->value, size)}; });
}
loom_storage* loom_storage_import(const loom_device* device, void* pointer, size_t size) {
  if (missing(device) || missing_bytes(pointer, size)) return nullptr;
  return created<loom_storage>(
      [&] { return new loom_storage{api::Storage::import(device->value, pointer, size)}; });
}
void loom_storage_destroy(loom_storage* storage) { delete storage; }
void* loom_storage_pointer(const loom_storage* storage) {
  return missing(storage) ? nullptr : storage->value.bytes().data();
}
size_t loom_storage_size(const loom_storage* storage) {
  return missing(storage) ? 0 : storage->value.bytes().size();
}

loom_status loom_bind_storage(loom_invocation* invocation, uint32_t ordinal,
                              const loom_storage* storage, loom_messages* messages) {
  if (missing(invocation, storage, messages) || invocation->value.in_flight() ||
      storage->value.state()->device != invocation->program.state()->device) {
    return LOOM_MISUSE;
  }
  return guarded(
      [&] { return status(invocation->value.bind(ordinal, storage->value, messages->value)); });
}

loom_status loom_issue_start(loom_invocation* invocation, void (*then)(void* user), void* user,
                             loom_completion** completion) {
  if (missing(completion)) return LOOM_MISUSE;
  *completion = nullptr;
  if (missing(invocation) || invocation->value.in_flight()) return LOOM_MISUSE;
  return guarded([&] {
    std::function<void()> call;
    if (then != nullptr) call = [then, user] { then(user); };
    auto made = std::make_unique<loom_completion>();
    made->value = invocation->value.start(std::move(call));
    *completion = made.release();
    return LOOM_OK;
  });
}
int loom_completion_done(const loom_completion* completion) {
  return !missing(completion) && completion->value.done() ? 1 : 0;
}
loom_status loom_completion_wait(const loom_completion* completion, loom_messages* messages) {
  if (missing(completion, messages)) return LOOM_MISUSE;
  return guarded([&] { return status(completion->value.wait(messages->value)); });
}
void loom_completion_destroy(loom_completion* completion) { delete completion; }
