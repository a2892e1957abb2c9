#include "loom/api/loom.h"

#include <algorithm>
#include <new>

#include "loom/api/state.h"
#include "loom/base/check.h"
#include "loom/base/file.h"
#include "loom/bytecode/bytecode.h"
#include "loom/command/artifact.h"
#include "loom/command/prepare.h"
#include "loom/command/schedule.h"
#include "loom/diag/render.h"
#include "loom/runtime/cpu/cpu_device.h"
#include "loom/target/x86/compile.h"
#include "loom/text/printer.h"

namespace loom::api {

// --- messages ------------------------------------------------------------------------------------

Context::Context() : state_(std::make_shared<State>(nullptr)) {}
Context::Context(std::shared_ptr<State> state) : state_(std::move(state)) {}

Context Context::over(const Context& base) {
  base.state_->frozen = true;
  return Context(std::make_shared<State>(base.state_));
}

SourceFiles& Context::State::open_files() {
  LOOM_CHECK(!frozen, "nothing is added to a context that others lie over");
  return files;
}

Diagnostics& Messages::State::of(const Context::State& source) {
  LOOM_CHECK(quotes(source), "messages are of the context of what they are about, or over it");
  return diagnostics;
}

Messages::Messages(const Context& context) : state_(std::make_unique<State>(context.state())) {}
Messages::Messages(Messages&&) noexcept = default;
Messages& Messages::operator=(Messages&&) noexcept = default;
Messages::~Messages() = default;

bool Messages::has_errors() const { return state_->diagnostics.has_errors(); }
void Messages::clear() { state_->diagnostics.clear(); }

std::vector<Message> Messages::all() const {
  std::vector<Message> messages;
  for (const Diagnostic& d : state_->diagnostics.all()) {
    Message message;
    message.severity = static_cast<Message::Severity>(d.severity);
    message.code = diag_code(d.id);
    message.text = d.message();
    message.hint = d.hint();
    if (d.location.valid()) {
      message.file = state_->context->files.file(d.location.file).path;
      message.line = d.location.line;
      message.column = d.location.column;
      message.length = d.location.length;
    }
    for (const DiagParam& param : d.params)
      message.parameters.emplace_back(param.name, param.value);
    messages.push_back(std::move(message));
  }
  return messages;
}

std::string Messages::text() const {
  std::string text;
  for (const Diagnostic& d : state_->diagnostics.all()) {
    text += render_text(d, state_->context->files);
  }
  return text;
}

std::string Messages::json() const {
  std::string text;
  for (const Diagnostic& d : state_->diagnostics.all()) {
    text += render_json(d, state_->context->files);
  }
  return text;
}

// --- modules -------------------------------------------------------------------------------------

namespace {

std::optional<std::string> read_input(const std::string& path, Diagnostics& diagnostics) {
  auto bytes = read_file(path);
  if (bytes) return std::move(*bytes);
  diagnostics.emit(Diag::IoRead, {},
                   {{"path", bytes.error().path}, {"reason", bytes.error().reason}});
  return std::nullopt;
}

}  // namespace

Modules::Modules(const Context& context)
    : state_(std::make_unique<State>(State{context.state(), {}})) {}
Modules::Modules(Modules&&) noexcept = default;
Modules& Modules::operator=(Modules&&) noexcept = default;
Modules::~Modules() = default;

bool Modules::add_file(const std::string& path, Messages& messages) {
  auto bytes = read_input(path, messages.state().diagnostics);
  return bytes && add(std::move(*bytes), path, messages);
}

bool Modules::add(std::string bytes, const std::string& name, Messages& messages) {
  auto module = load_module(state_->context->open_files(), std::move(bytes), name,
                            messages.state().of(*state_->context));
  if (!module) return false;
  state_->inputs.push_back({std::move(*module), name});
  return true;
}

Library::Library() : state_(std::make_shared<State>()) {}
Library::Library(Modules modules)
    : state_(std::make_shared<State>(
          State{modules.state().context, LibraryIndex(std::move(modules.state().inputs))})) {}

// --- link and prepare ----------------------------------------------------------------------------

LinkedModule::LinkedModule(std::unique_ptr<State> state) : state_(std::move(state)) {}
LinkedModule::LinkedModule(LinkedModule&&) noexcept = default;
LinkedModule& LinkedModule::operator=(LinkedModule&&) noexcept = default;
LinkedModule::~LinkedModule() = default;

std::string LinkedModule::text() const { return print_text(state_->module); }
std::string LinkedModule::bytecode() const { return write_bytecode(state_->module); }

std::optional<LinkedModule> link(const Modules& inputs, const Library& library,
                                 const LinkOptions& options, Messages& messages) {
  Diagnostics& diagnostics = messages.state().of(*inputs.state().context);
  loom::LinkOptions link_options;
  link_options.roots = options.roots;
  link_options.specialize = options.specialize;
  link_options.keep_kernel_declarations = true;
  link_options.target = target_identity("x86_64");
  bool good = true;
  for (const std::string& path : options.config_files) {
    const auto content = read_input(path, diagnostics);
    good &= content && link_options.config.add_file(path, *content, diagnostics);
  }
  for (const std::string& flag : options.config) {
    good &= link_options.config.add_flag(flag, diagnostics);
  }
  if (!good) return std::nullopt;
  const Library::State& from = library.state();
  LOOM_CHECK(from.context == nullptr || from.context == inputs.state().context ||
                 from.context == inputs.state().context->base || inputs.state().inputs.empty(),
             "inputs and library are of one context, or the library is of the one below");
  auto module = loom::link(inputs.state().inputs, library.state().index, link_options, diagnostics);
  if (!module) return std::nullopt;
  return LinkedModule(std::make_unique<LinkedModule::State>(
      LinkedModule::State{inputs.state().context, std::move(*module)}));
}

namespace {

std::vector<std::pair<FileId, std::string>> paths_of_commands(const PreparedPlan& plan,
                                                              const SourceFiles& files) {
  std::vector<std::pair<FileId, std::string>> paths;
  for (const PreparedProgram& program : plan.programs) {
    for (const Location& location : program.locations) {
      if (!location.valid() || (!paths.empty() && paths.back().first == location.file)) continue;
      if (std::ranges::find(paths, location.file, &std::pair<FileId, std::string>::first) ==
          paths.end()) {
        paths.emplace_back(location.file, files.file(location.file).path);
      }
    }
  }
  return paths;
}

}  // namespace

std::optional<Plan> prepare(LinkedModule module, const PrepareOptions& options,
                            Messages& messages) {
  auto state = std::make_shared<Plan::State>();
  loom::PrepareOptions wanted;
  wanted.target = x86_selection().target;
  wanted.roots =
      options.roots.empty() ? default_command_roots(module.state().module) : options.roots;
  wanted.max_request_classes = options.max_request_classes;
  wanted.check_hazards = options.check_hazards;
  if (options.workspace != nullptr) wanted.tables = &options.workspace->state().tables;
  loom::RequestRecipient recipient;
  if (options.recipient != nullptr) {
    recipient = [&](loom::KernelRequest&& request) {
      return options.recipient->take({request.ordinal, std::move(request.symbol),
                                      std::move(request.export_name), std::move(request.bytecode)});
    };
  } else if (!options.plan_only) {
    recipient = [&](loom::KernelRequest&& request) {
      state->requests.push_back(std::move(request));
      return true;
    };
  }
  auto plan = loom::prepare(module.state().module, wanted, recipient,
                            messages.state().of(*module.state().context));
  if (options.recipient != nullptr) {
    if (plan) {
      options.recipient->commit();
    } else {
      options.recipient->cancel();
    }
  }
  if (!plan) return std::nullopt;
  state->plan = std::move(*plan);
  state->paths = paths_of_commands(state->plan, module.state().context->files);
  for (const loom::KernelRequest& request : state->requests) {
    state->views.push_back(
        {request.ordinal, request.symbol, request.export_name, request.bytecode});
  }
  state->source = std::make_unique<LinkedModule::State>(std::move(module.state()));
  return Plan(std::move(state));
}

ProgramView Plan::State::program(size_t index) const {
  LOOM_CHECK(index < program_count(), "the plan has no such program");
  return artifact ? artifact->program() : ProgramView(plan, plan.programs[index]);
}

std::optional<Plan> Plan::open(const Context& context, const std::string& path,
                               Messages& messages) {
  auto artifact = CommandArtifact::open(context.state()->open_files(), path,
                                        messages.state().of(*context.state()));
  if (!artifact) return std::nullopt;
  auto state = std::make_shared<State>();
  const ProgramView& program = artifact->program();
  for (size_t slot = 0; slot < program.slot_count(); ++slot) {
    const ProgramView::Entry entry = program.entry(slot);
    state->plan.entries.push_back({std::string(entry.symbol), std::string(entry.export_name),
                                   std::string(entry.contract), entry.workgroup_size,
                                   static_cast<int32_t>(slot)});
  }
  state->artifact = std::move(*artifact);
  return Plan(std::move(state));
}

size_t Plan::program_count() const { return state_->program_count(); }
std::string_view Plan::symbol(size_t program) const { return state_->program(program).symbol(); }
std::string Plan::schedule_text(size_t program) const {
  return loom::schedule_text(state_->program(program));
}
std::string Plan::schedule_dot(size_t program) const {
  return loom::schedule_dot(state_->program(program));
}
std::string Plan::artifact(size_t program) const {
  return write_artifact(state_->program(program));
}
std::span<const KernelRequest> Plan::requests() const { return state_->views; }

// --- compile and materialize ---------------------------------------------------------------------

Workspace::Workspace() : state_(std::make_unique<State>()) {}
Workspace::Workspace(Workspace&&) noexcept = default;
Workspace& Workspace::operator=(Workspace&&) noexcept = default;
Workspace::~Workspace() = default;

namespace {

// What the options say.
struct HostSettings {
  HostSettings(const CompileOptions& options, Messages& messages) {
    host.jit.tier = options.tier == Tier::Optimized ? JitTier::Optimized : JitTier::Fast;
    host.jit.denormals = options.flush_denormals ? DenormalMode::Flush : DenormalMode::Keep;
    host.threads = options.threads;
    host.fast_first = options.tier == Tier::FastFirst;
    if (options.workspace != nullptr) {
      host.tables = &options.workspace->state().tables;
      host.engine = options.workspace->state().engine;
    }
    for (const ExternalEntry& entry : options.externals) {
      host.externals.push_back({entry.symbol, reinterpret_cast<LoomKernelEntry>(entry.function),
                                entry.file, entry.name});
    }
    if (options.cache_folder.empty()) return;
    CacheOptions wanted{.folder = options.cache_folder};
    if (options.cache_bytes != 0) wanted.max_bytes = options.cache_bytes;
    auto opened = Cache::open(std::move(wanted));
    if (opened) {
      host.later_cache = std::move(*opened);
      host.cache = host.later_cache.get();
    } else {
      messages.state().diagnostics.emit(
          Diag::RunCache, {}, {{"path", options.cache_folder}, {"reason", opened.error().reason}});
    }
  }
  // False when no code can be generated on this machine.
  bool start_engine(const CompileOptions& options, Messages& messages) {
    if (!host.engine) host.engine = JitEngine::create(messages.state().diagnostics);
    if (host.engine && options.workspace != nullptr) {
      options.workspace->state().engine = host.engine;
    }
    return host.engine != nullptr;
  }

  HostCodeOptions host;
};

}  // namespace

std::optional<Executables> compile(const Plan& plan, const CompileOptions& options,
                                   Messages& messages) {
  HostSettings settings(options, messages);
  if (!settings.start_engine(options, messages)) return std::nullopt;
  const Plan::State& from = *plan.state();
  const std::lock_guard lock(from.compiling);
  const bool quotes = from.source != nullptr && messages.state().quotes(*from.source->context);
  auto code = HostCode::compile(from.plan, from.requests, quotes ? &from.source->module : nullptr,
                                settings.host, messages.state().diagnostics);
  if (!code) return std::nullopt;
  return Executables(
      std::make_shared<Executables::State>(Executables::State{plan.state(), std::move(code)}));
}

void Executables::settle() const { state_->code->settle(); }
size_t Executables::replaced() const { return state_->code->replaced(); }

std::optional<Code> compile(const KernelRequest& request, const CompileOptions& options,
                            Messages& messages) {
  HostSettings settings(options, messages);
  if (!settings.start_engine(options, messages)) return std::nullopt;
  auto kernel = compile_request({request.ordinal, std::string(request.symbol),
                                 std::string(request.export_name), std::string(request.bytecode)},
                                settings.host, messages.state().diagnostics);
  if (!kernel) return std::nullopt;
  return Code(std::make_shared<Code::State>(Code::State{std::move(kernel)}));
}

std::optional<Executables> assemble(const Plan& plan, std::span<const Code> codes,
                                    const CompileOptions& options, Messages& messages) {
  HostSettings settings(options, messages);
  std::vector<std::shared_ptr<const HostKernel>> kernels;
  for (const Code& code : codes) {
    kernels.push_back(code.state() != nullptr ? code.state()->kernel : nullptr);
  }
  auto code = HostCode::assemble(plan.state()->plan, std::move(kernels), settings.host,
                                 messages.state().diagnostics);
  if (!code) return std::nullopt;
  return Executables(
      std::make_shared<Executables::State>(Executables::State{plan.state(), std::move(code)}));
}

Parameters::Parameters() : state_(std::make_shared<State>()) {}
bool Parameters::open(const std::string& path, const std::string& root, Messages& messages) {
  return state_->set.open(path, root, messages.state().diagnostics);
}

Device Device::cpu(unsigned threads) {
  Device made;
  made.state_ = std::make_shared<State>(make_cpu_device({threads}));
  return made;
}
std::string_view Device::name() const { return state_->device->name(); }

std::optional<Program> materialize(const Device& device, const Plan& plan, size_t program,
                                   const Executables& executables, const Parameters& parameters,
                                   Messages& messages) {
  LOOM_CHECK(executables.state()->plan == plan.state(), "executables are of another plan");
  const ProgramView prepared = plan.state()->program(program);
  const HostCode::Attachment attached = executables.state()->code->attach(prepared);
  auto made = device.state()->device->materialize(
      {prepared, &parameters.state()->set, attached.entries, attached.needs.bindings,
       attached.needs.parameter_bytes, attached.needs.transients},
      messages.state().diagnostics);
  if (!made) return std::nullopt;
  return Program(std::make_shared<Program::State>(
      Program::State{device.state(), executables.state(), parameters.state(),
                     static_cast<uint32_t>(program), std::move(made)}));
}

std::vector<Binding> Program::bindings() const {
  std::vector<Binding> bindings;
  for (const loom::Program::Binding& b : state_->program->bindings()) {
    bindings.push_back({b.ordinal, b.name, b.need.bytes, b.need.alignment});
  }
  return bindings;
}

}  // namespace loom::api
