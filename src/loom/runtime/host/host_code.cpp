#include "loom/runtime/host/host_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "loom/base/check.h"
#include "loom/base/hash.h"
#include "loom/cache/build_id.h"
#include "loom/dialect/op_info.h"
#include "loom/link/load.h"
#include "loom/pass/expand_templates.h"
#include "loom/pass/pass_context.h"
#include "loom/target/x86/compile.h"

namespace loom {
namespace {

// What was said of a request, whose places mean nothing outside of it.
void copy_without_places(const Diagnostics& from, Diagnostics& to) {
  for (const Diagnostic& d : from.all()) {
    std::vector<DiagNote> notes;
    notes.reserve(d.notes.size());
    for (const DiagNote& note : d.notes) notes.push_back({{}, note.text});
    to.emit_as(d.severity, d.id, {}, d.params).notes = std::move(notes);
  }
}

// A request stands on its own, so its sources and diagnostics do, too, and threads share nothing
// but the engine.
struct Compiled {
  std::shared_ptr<const HostKernel> kernel;
  Diagnostics diagnostics;
};

// What is compiled: with places where they are known, since the code then has line tables.
std::string_view bytes_of(const KernelRequest& request) {
  return request.located.empty() ? request.bytecode : request.located;
}

std::string key_of(const KernelRequest& request, const JitOptions& options) {
  const std::string identity = jit_identity(options);
  const std::string_view parts[] = {build_id(), identity, request.symbol, bytes_of(request)};
  return cache_key(parts);
}

// An entry that does not load is dropped.
std::optional<JitKernel> stored_code(const KernelRequest& request, JitEngine& engine,
                                     const JitOptions& jit, Cache* cache) {
  if (cache == nullptr || build_id().empty()) return std::nullopt;
  const std::string key = key_of(request, jit);
  const auto object = cache->get(key);
  if (!object) return std::nullopt;
  Diagnostics unusable;
  auto code = engine.add_object(*object, kJitEntryName, unusable, request.symbol);
  if (!code) cache->drop(key);
  return code;
}

// Code from the cache, or made and stored there.
std::optional<JitKernel> code_for(const KernelRequest& request, const Module& module, OpId kernel,
                                  JitEngine& engine, const HostCodeOptions& options,
                                  Diagnostics& diagnostics) {
  if (auto code = stored_code(request, engine, options.jit, options.cache)) return code;
  const auto object = engine.compile(module, kernel, options.jit, diagnostics);
  if (!object) return std::nullopt;
  // What the compiler had to say would be missing the next time. A cache that is full or gone is no
  // reason to fail.
  if (options.cache != nullptr && !build_id().empty() && diagnostics.all().empty()) {
    (void)options.cache->put(key_of(request, options.jit), *object);
  }
  return engine.add_object(*object, kJitEntryName, diagnostics, request.symbol);
}

// The same failure as seen in the source, which has places; false when the source compiles.
bool report_in_source(const std::string& symbol, const Module& source, JitEngine& engine,
                      const JitOptions& options, Diagnostics& diagnostics) {
  const OpId kernel = source.symbol(symbol);
  if (!kernel.valid() || source.op(kernel).kind != OpKind::KernelDef) return false;
  const RegionId body = source.op_region(kernel, region_slot(OpKind::KernelDef, "body"));
  if (source.region(body).deferred) return false;
  return !engine.add(source, kernel, options, diagnostics);
}

bool elsewhere(const KernelRequest& request, const HostCodeOptions& options) {
  return std::ranges::any_of(options.externals, [&](const ExternalEntry& external) {
    return external.symbol == request.symbol;
  });
}

JitOptions best_of(JitOptions options) {
  options.tier = JitTier::Optimized;
  options.replaceable = false;
  return options;
}

std::shared_ptr<const HostKernel> compile_alone(const KernelRequest& request,
                                                const HostCodeOptions& options,
                                                Diagnostics& diagnostics) {
  SourceFiles files;
  const std::string name = fmt::format("kernel-{}.loombc", request.ordinal);
  auto module = load_module(files, std::string(bytes_of(request)), name, diagnostics);
  if (!module) return nullptr;
  const OpId kernel = module->symbol(request.symbol);
  if (!kernel.valid() || module->op(kernel).kind != OpKind::KernelDef) {
    diagnostics.emit(
        Diag::SymbolUnresolved, {},
        {{"symbol", request.symbol}, {"repair", "name the kernel that the request defines"}});
    return nullptr;
  }
  PassContext context(*module, diagnostics, options.tables);
  if (!expand_kernels(context, {&kernel, 1}, x86_selection())) return nullptr;
  KernelNeeds needs = kernel_needs(*module, kernel);
  std::optional<JitKernel> code;
  if (options.jit.replaceable) {
    code = stored_code(request, *options.engine, best_of(options.jit), options.cache);
  }
  if (!code) code = code_for(request, *module, kernel, *options.engine, options, diagnostics);
  if (!code) return nullptr;
  return std::make_shared<HostKernel>(HostKernel{std::move(*code), std::move(needs)});
}

}  // namespace

std::shared_ptr<const HostKernel> compile_request(const KernelRequest& request,
                                                  const HostCodeOptions& options,
                                                  Diagnostics& diagnostics) {
  Diagnostics own;
  auto kernel = compile_alone(request, options, own);
  copy_without_places(own, diagnostics);
  return kernel;
}

// One thread that makes better code. Its own part of the engine and of the cache may be used by any
// number of threads.
struct HostCode::Later {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;                                      // guarded by mutex
  std::vector<std::shared_ptr<const HostKernel>> better;  // guarded by mutex
  std::jthread thread;
};

bool HostCode::start(const PreparedPlan& plan, bool compiles, const HostCodeOptions& options,
                     Diagnostics& diagnostics) {
  engine_ = options.engine;
  // Code that is there needs none unless objects are loaded besides.
  if (!engine_ && (compiles || !options.externals.empty())) {
    engine_ = JitEngine::create(diagnostics);
    if (!engine_) return false;
  }
  return load_externals(plan, options.externals, diagnostics);
}

bool HostCode::load_externals(const PreparedPlan& plan, std::span<const ExternalEntry> externals,
                              Diagnostics& diagnostics) {
  external_of_.assign(plan.entries.size(), nullptr);
  const size_t errors = diagnostics.error_count();
  for (const ExternalEntry& external : externals) {
    const auto row = std::ranges::find(plan.entries, external.symbol, &EntryRequirement::symbol);
    if (row == plan.entries.end()) {
      std::string known;
      for (size_t i = 0; i < plan.entries.size(); ++i) {
        const std::string& name = plan.entries[i].symbol;
        const auto first = std::ranges::find(plan.entries, name, &EntryRequirement::symbol);
        if (first - plan.entries.begin() != static_cast<ptrdiff_t>(i)) continue;
        known += (known.empty() ? "'@" : ", '@") + name + "'";
      }
      const std::string root = plan.programs.empty() ? "" : plan.programs[0].symbol;
      diagnostics.emit(
          Diag::RunExecutableUnknown, {},
          {{"root", root}, {"symbol", external.symbol}, {"known", known.empty() ? "none" : known}});
      continue;
    }
    auto code = ExternalCode::load(external, *row, *engine_, diagnostics);
    if (!code) continue;
    for (size_t i = 0; i < plan.entries.size(); ++i) {
      if (plan.entries[i].symbol == external.symbol) external_of_[i] = code->entry();
    }
    externals_.push_back(std::move(*code));
  }
  return diagnostics.error_count() == errors;
}

std::unique_ptr<HostCode> HostCode::compile(const PreparedPlan& plan,
                                            std::span<const KernelRequest> requests,
                                            const Module* source, const HostCodeOptions& options,
                                            Diagnostics& diagnostics) {
  std::unique_ptr<HostCode> code(new HostCode);
  if (!code->start(plan, true, options, diagnostics)) return nullptr;

  std::vector<Compiled> results(requests.size());
  std::atomic<size_t> next{0};
  const auto work = [&](PassWorkspace* tables) {
    HostCodeOptions own = options;
    own.engine = code->engine_;
    own.tables = tables;
    if (own.fast_first) {
      own.jit.tier = JitTier::Fast;
      own.jit.replaceable = true;
    }
    for (size_t i = next++; i < requests.size(); i = next++) {
      if (!elsewhere(requests[i], options)) {
        results[i].kernel = compile_request(requests[i], own, results[i].diagnostics);
      }
      if (options.compiled) options.compiled();
    }
  };
  {
    const size_t threads =
        options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> helpers;
    // Where the system gives no more threads, those that there are do the work.
    for (size_t i = 1; i < std::min(threads, requests.size()); ++i) {
      try {
        helpers.emplace_back(work, nullptr);
      } catch (const std::system_error&) {
        break;
      }
    }
    work(options.tables);
  }
  // Every request was tried; failures are reported in request order, whoever met them.
  const size_t errors = diagnostics.error_count();
  for (size_t i = 0; i < requests.size(); ++i) {
    if (results[i].kernel || elsewhere(requests[i], options)) continue;
    if (source == nullptr ||
        !report_in_source(requests[i].symbol, *source, *code->engine_, options.jit, diagnostics)) {
      copy_without_places(results[i].diagnostics, diagnostics);
    }
  }
  if (diagnostics.error_count() != errors) return nullptr;

  std::unordered_map<int32_t, size_t> row_of_request;
  for (size_t i = 0; i < requests.size(); ++i) {
    row_of_request[static_cast<int32_t>(requests[i].ordinal)] = i;
  }
  for (const EntryRequirement& entry : plan.entries) {
    const auto served = row_of_request.find(entry.request);
    code->kernel_of_.push_back(served == row_of_request.end() ? nullptr
                                                              : results[served->second].kernel);
  }
  if (options.fast_first) {
    std::vector<std::shared_ptr<const HostKernel>> kernels;
    kernels.reserve(results.size());
    for (Compiled& result : results) kernels.push_back(std::move(result.kernel));
    code->improve({requests.begin(), requests.end()}, options, std::move(kernels));
  }
  return code;
}

HostCode::~HostCode() = default;

void HostCode::improve(std::vector<KernelRequest> requests, const HostCodeOptions& options,
                       std::vector<std::shared_ptr<const HostKernel>> kernels) {
  HostCodeOptions own;
  own.jit = best_of(options.jit);
  own.engine = engine_;
  auto work = [this, own, cache = options.later_cache, requests = std::move(requests),
               kernels = std::move(kernels)](const std::stop_token& stop) mutable {
    own.cache = cache.get();
    for (size_t i = 0; i < requests.size() && !stop.stop_requested(); ++i) {
      if (kernels[i] == nullptr || !kernels[i]->code.is_replaceable()) continue;
      Diagnostics ignored;  // the same request compiled before
      auto better = compile_request(requests[i], own, ignored);
      if (better == nullptr) continue;
      const std::lock_guard lock(later_->mutex);
      kernels[i]->code.replace(better->code.entry());
      later_->better.push_back(std::move(better));
    }
    const std::lock_guard lock(later_->mutex);
    later_->done = true;
    later_->changed.notify_all();
  };
  later_ = std::make_unique<Later>();
  try {
    later_->thread = std::jthread(std::move(work));
  } catch (const std::system_error&) {
    later_->done = true;  // no thread is to be had: the code stays as it is
  }
}

void HostCode::settle() const {
  if (later_ == nullptr) return;
  std::unique_lock lock(later_->mutex);
  later_->changed.wait(lock, [&] { return later_->done; });
}

size_t HostCode::replaced() const {
  if (later_ == nullptr) return 0;
  const std::lock_guard lock(later_->mutex);
  return later_->better.size();
}

std::unique_ptr<HostCode> HostCode::assemble(const PreparedPlan& plan,
                                             std::vector<std::shared_ptr<const HostKernel>> kernels,
                                             const HostCodeOptions& options,
                                             Diagnostics& diagnostics) {
  std::unique_ptr<HostCode> code(new HostCode);
  if (!code->start(plan, false, options, diagnostics)) return nullptr;
  for (const EntryRequirement& entry : plan.entries) {
    const auto request = static_cast<size_t>(entry.request);
    code->kernel_of_.push_back(entry.request >= 0 && request < kernels.size() ? kernels[request]
                                                                              : nullptr);
  }
  return code;
}

std::string HostCode::content_hash() const {
  std::string hashes;
  for (size_t i = 0; i < kernel_of_.size(); ++i) {
    const bool elsewhere = external_of_[i] != nullptr;
    hashes += elsewhere ? "external" : kernel_of_[i] ? kernel_of_[i]->code.object_hash() : "none";
    hashes += '\n';
  }
  return sha256_hex(hashes);
}

HostCode::Attachment HostCode::attach(const ProgramView& program) const {
  Attachment made;
  std::vector<const KernelNeeds*> needs;
  for (size_t slot = 0; slot < program.slot_count(); ++slot) {
    const uint32_t entry = program.entry_row(slot);
    const HostKernel* const kernel = kernel_of_[entry].get();
    LoomKernelEntry address = external_of_[entry];
    needs.push_back(address == nullptr && kernel != nullptr ? &kernel->needs : nullptr);
    if (address == nullptr && kernel != nullptr) address = kernel->code.entry();
    made.entries.push_back(reinterpret_cast<EntryAddress>(address));
  }
  made.needs = program_needs(program, needs);
  return made;
}

}  // namespace loom
