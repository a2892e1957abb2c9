#include "loom/check/cpu_launcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "loom/command/launch_config.h"
#include "loom/command/prepare.h"
#include "loom/dialect/op_info.h"
#include "loom/dialect/target_info.h"
#include "loom/ir/ir_text.h"
#include "loom/link/load.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/pass_context.h"
#include "loom/runtime/cpu/cpu_device.h"
#include "loom/target/x86/compile.h"

namespace loom::check {
namespace {

using enum OpKind;

const std::span<std::byte>* storage_of(const CaseValue& value) {
  return std::get_if<std::span<std::byte>>(&value);
}

// As the interpreter reports it.
LaunchOutcome refuse(const Module& module, OpId op, std::string_view symbol, std::string detail,
                     Diagnostics& diagnostics) {
  diagnostics.emit(Diag::RunArguments, module.location(op),
                   {{"symbol", std::string(symbol)}, {"detail", std::move(detail)}});
  return LaunchOutcome::Failed;
}

std::string literal_text(ScalarValue value) {
  if (value.kind == ScalarKind::I1) return value.bits != 0 ? "true" : "false";
  return is_float(value.kind) ? float_text(to_double(value)) : std::to_string(as_signed(value));
}

std::string program_key(const std::string& name, const std::vector<std::string>& values) {
  return fmt::format("{}|{}", name, fmt::join(values, "|"));
}

// Of what the host evaluates for launches.
InterpOptions host_options(const InterpTables& tables) {
  InterpOptions options;
  options.target = x86_selection().target;
  options.subgroup_size = options.target.subgroup_size.value_or(1);
  options.tables = &tables;
  return options;
}

}  // namespace

std::unique_ptr<CpuLauncher> CpuLauncher::create(const LinkInput& program,
                                                 const CpuLauncherOptions& options,
                                                 Diagnostics& diagnostics) {
  std::shared_ptr<JitEngine> engine =
      JitEngine::create(diagnostics, {.perf_folder = options.perf_folder});
  if (!engine) return nullptr;
  return std::unique_ptr<CpuLauncher>(new CpuLauncher(program, options, std::move(engine)));
}

// What the roots reach, as a module of its own that passes may rewrite.
std::optional<Module> CpuLauncher::close(const LinkOptions& options,
                                         Diagnostics& diagnostics) const {
  return link({&program_, 1}, no_libraries_, options, diagnostics);
}

bool CpuLauncher::prepare(std::string_view name, Diagnostics& diagnostics) {
  Kernel& kernel = kernels_[std::string(name)];
  if (kernel.code) return true;
  LinkOptions options;
  options.roots = {std::string(name)};
  options.strip_check = true;
  auto module = close(options, diagnostics);
  if (!module) return false;
  const OpId op = module->symbol(name);
  // The configuration is taken while it still stands as it was written.
  auto companion = write_launch_config(*module, {&op, 1}, x86_selection().target, diagnostics);
  if (!companion) return false;
  kernel.configuration = load_module(program_.module.files(), std::move(*companion),
                                     fmt::format("{}.loomlaunch", name), diagnostics);
  if (!kernel.configuration) return false;
  kernel.tables.emplace(*kernel.configuration);
  PassContext context(*module, diagnostics);
  if (!expand_kernels(context, {&op, 1}, x86_selection())) return false;
  kernel.needs = kernel_needs(*module, op);
  kernel.code = engine_->add(*module, op, options_.jit, diagnostics);
  return kernel.code.has_value();
}

// Compiled code relies on contracts, so a false one is told before anything runs.
bool CpuLauncher::keeps_contracts(OpId op, std::string_view name, unsigned first,
                                  std::span<const CaseValue> operands, Diagnostics& diagnostics) {
  const Module& module = program_.module;
  std::vector<InterpArgument> arguments;
  for (size_t i = first; i < operands.size(); ++i) {
    if (const auto* storage = storage_of(operands[i])) {
      const ValueId value = module.operands(op)[i];
      arguments.emplace_back(InterpStorage{std::string(module.name_of(value)), *storage});
    } else {
      arguments.emplace_back(std::get<LaneValues>(operands[i]));
    }
  }
  return check_contracts(module, op, name, arguments, host_options(tables_), diagnostics);
}

// Workgroup counts and sizes for a workload.
bool CpuLauncher::configure(std::string_view name, Kernel& kernel,
                            std::span<const CaseValue> workload, OpId op,
                            Diagnostics& diagnostics) {
  std::vector<uint64_t> bits;
  for (const CaseValue& value : workload) bits.push_back(std::get<LaneValues>(value).lanes[0]);
  if (kernel.shape && bits == kernel.workload) return true;
  kernel.shape.reset();
  std::vector<InterpArgument> arguments;
  for (const CaseValue& value : workload) arguments.emplace_back(std::get<LaneValues>(value));
  const auto results = run_function(*kernel.configuration, name, arguments,
                                    host_options(*kernel.tables), diagnostics);
  if (!results) return false;
  LoomDispatchShape shape{};
  for (size_t i = 0; i < 6; ++i) {
    const uint64_t number = (*results)[i].at(0).bits;
    const bool is_size = i >= 3;
    if (number > std::numeric_limits<uint32_t>::max() || (is_size && number == 0)) {
      refuse(program_.module, op, name,
             fmt::format("the workgroup {} {} of axis {} is out of range",
                         is_size ? "size" : "count", static_cast<int64_t>(number), i % 3),
             diagnostics);
      return false;
    }
    (is_size ? shape.size : shape.count)[i % 3] = static_cast<uint32_t>(number);
  }
  kernel.workload = std::move(bits);
  kernel.shape = shape;
  return true;
}

// Storage that a view inside of the kernel exceeds is refused before the kernel reaches beyond it.
bool CpuLauncher::fits(OpId op, unsigned first, const Kernel& kernel, const Resolved& launch,
                       Diagnostics& diagnostics) const {
  const Module& module = program_.module;
  const std::vector<StorageNeed> needs = launch_needs(kernel.needs, launch.arguments);
  for (size_t i = 0; i < launch.arguments.size() && i < needs.size(); ++i) {
    if (launch.arguments[i].kind != Argument::Kind::Buffer) continue;
    const std::span<std::byte> storage = launch.storage[launch.arguments[i].buffer.index];
    const std::string name = value_name_text(module, module.operands(op)[first + i]);
    if (needs[i].bytes > storage.size()) {
      diagnostics.emit(Diag::RunBindingSize, module.location(op),
                       {{"name", name},
                        {"size", std::to_string(storage.size())},
                        {"needed", std::to_string(needs[i].bytes)}});
      return false;
    }
    if (reinterpret_cast<uintptr_t>(storage.data()) % needs[i].alignment != 0) {
      diagnostics.emit(Diag::RunBindingAlignment, module.location(op),
                       {{"name", name}, {"alignment", std::to_string(needs[i].alignment)}});
      return false;
    }
  }
  return true;
}

std::expected<CpuLauncher::Resolved, LaunchOutcome> CpuLauncher::resolve_kernel(
    OpId op, std::span<const CaseValue> operands, Diagnostics& diagnostics) {
  const Module& module = program_.module;
  const std::string_view name = symbol_ref(module, op, attr_slot(KernelLaunch, "callee"));
  if (!prepare(name, diagnostics)) return std::unexpected(LaunchOutcome::Unplannable);
  Kernel& kernel = kernels_.find(name)->second;
  const size_t workload = operand_group(module, op, operand_slot(KernelLaunch, "workload")).size();
  if (!where_predicates(module, module.symbol(name)).empty() &&
      !keeps_contracts(op, name, static_cast<unsigned>(workload), operands, diagnostics)) {
    return std::unexpected(LaunchOutcome::Failed);
  }
  if (!configure(name, kernel, operands.first(workload), op, diagnostics)) {
    return std::unexpected(LaunchOutcome::Failed);
  }
  Resolved launch{.code = &*kernel.code, .shape = *kernel.shape};
  const auto total =
      workgroup_total({launch.shape.count[0], launch.shape.count[1], launch.shape.count[2]});
  if (!total) {
    return std::unexpected(
        refuse(module, op, name, "its workgroups cannot be numbered", diagnostics));
  }
  launch.workgroups = *total;
  for (const CaseValue& value : operands.subspan(workload)) {
    if (const auto* storage = storage_of(value)) {
      const auto number = static_cast<uint32_t>(launch.storage.size());
      launch.storage.push_back(*storage);
      launch.arguments.push_back(
          {Argument::Kind::Buffer, 0, {StorageClass::Rebindable, number, 0}});
    } else {
      launch.arguments.push_back({Argument::Kind::U64, std::get<LaneValues>(value).lanes[0], {}});
    }
  }
  if (*total != 0 && !fits(op, static_cast<unsigned>(workload), kernel, launch, diagnostics)) {
    return std::unexpected(LaunchOutcome::Failed);
  }
  return launch;
}

Device& CpuLauncher::device() {
  if (!device_) device_ = make_cpu_device({.threads = options_.threads});
  return *device_;
}

CpuLauncher::Prepared* CpuLauncher::specialized(const std::string& name,
                                                const std::vector<std::string>& values,
                                                Diagnostics& diagnostics) {
  auto& found = programs_[program_key(name, values)];
  if (found) return found.get();
  LinkOptions options;
  options.roots = {name};
  options.specialize = values;
  options.strip_check = true;
  options.keep_kernel_declarations = true;
  auto module = close(options, diagnostics);
  if (!module) return nullptr;
  auto made = std::make_unique<Prepared>(Prepared{.module = std::move(*module)});
  std::vector<KernelRequest> requests;
  auto plan = loom::prepare(
      made->module,
      {.roots = {name},
       .target = x86_selection().target,
       .locate_requests = !options_.perf_folder.empty()},
      [&](KernelRequest&& request) {
        requests.push_back(std::move(request));
        return true;
      },
      diagnostics);
  if (!plan) return nullptr;
  made->plan = std::move(*plan);
  made->code =
      HostCode::compile(made->plan, requests, &made->module,
                        {.jit = options_.jit, .engine = engine_, .threads = 1}, diagnostics);
  if (!made->code) return nullptr;
  const HostCode::Attachment attached = made->code->attach(made->plan.programs[0]);
  made->program = device().materialize({{made->plan, made->plan.programs[0]},
                                        options_.parameters,
                                        attached.entries,
                                        attached.needs.bindings,
                                        attached.needs.parameter_bytes,
                                        attached.needs.transients},
                                       diagnostics);
  if (!made->program) return nullptr;
  const ProgramView view(made->plan, made->plan.programs[0]);
  for (const DispatchCommand& command : view.commands()) {
    made->kernels.emplace_back(view.entry(command.slot).symbol);
  }
  made->invocation = made->program->make_invocation();
  if (!made->invocation) {
    diagnostics.emit(
        Diag::RunOutOfMemory, {},
        {{"bytes", std::to_string(made->program->slab().bytes)}, {"what", "transient storage"}});
    return nullptr;
  }
  found = std::move(made);
  return found.get();
}

std::expected<CpuLauncher::Resolved, LaunchOutcome> CpuLauncher::resolve_program(
    OpId op, std::span<const CaseValue> operands, Diagnostics& diagnostics) {
  const Module& module = program_.module;
  const std::string name(symbol_ref(module, op, attr_slot(CommandProgramLaunch, "callee")));
  const size_t count =
      operand_group(module, op, operand_slot(CommandProgramLaunch, "specialization")).size();
  const auto formals = module.arg_group(module.op_region(module.symbol(name), 0), 0);
  std::vector<std::string> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    values.push_back(fmt::format("@{}:{}={}", name, module.name_of(formals[i]),
                                 literal_text(std::get<LaneValues>(operands[i]).at(0))));
  }
  // The specializations decide on everything that is promised, so once is enough.
  if (!programs_.contains(program_key(name, values)) &&
      !keeps_contracts(op, name, 0, operands, diagnostics)) {
    return std::unexpected(LaunchOutcome::Failed);
  }
  Prepared* prepared = specialized(name, values, diagnostics);
  if (prepared == nullptr) return std::unexpected(LaunchOutcome::Unplannable);
  Resolved launch{.program = prepared->program.get(),
                  .invocation = prepared->invocation.get(),
                  .kernels = prepared->kernels};
  for (const CaseValue& value : operands.subspan(count))
    launch.storage.push_back(*storage_of(value));
  // Here, so that storage that is too small is refused in the same place as a kernel's.
  for (const Program::Binding& binding : prepared->program->bindings()) {
    if (!prepared->invocation->bind(binding.ordinal, launch.storage[binding.ordinal],
                                    diagnostics)) {
      return std::unexpected(LaunchOutcome::Failed);
    }
  }
  return launch;
}

std::expected<CpuLauncher::Resolved, LaunchOutcome> CpuLauncher::resolve(
    OpId op, std::span<const CaseValue> operands, Diagnostics& diagnostics) {
  return program_.module.op(op).kind == KernelLaunch ? resolve_kernel(op, operands, diagnostics)
                                                     : resolve_program(op, operands, diagnostics);
}

LaunchOutcome CpuLauncher::launch(OpId op, std::span<const CaseValue> operands,
                                  Diagnostics& diagnostics) {
  const auto resolved = resolve(op, operands, diagnostics);
  if (!resolved) return resolved.error();
  if (resolved->invocation != nullptr) {
    return resolved->invocation->issue(diagnostics) ? LaunchOutcome::Done : LaunchOutcome::Failed;
  }
  std::vector<uint64_t> slots;
  for (const Argument& argument : resolved->arguments) {
    slots.push_back(
        argument.kind == Argument::Kind::Buffer
            ? reinterpret_cast<uint64_t>(resolved->storage[argument.buffer.index].data())
            : argument.value);
  }
  if (resolved->workgroups != 0) {
    resolved->code->entry()(slots.data(), &resolved->shape, 0, resolved->workgroups);
  }
  return LaunchOutcome::Done;
}

}  // namespace loom::check
