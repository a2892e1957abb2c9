#include "hyperloom/workload/built.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "loom/api/inspect.h"
#include "loom/api/reference_run.h"
#include "loom/base/hash.h"

namespace hyperloom::workload {
namespace {

constexpr size_t kGuardBytes = 64;
constexpr std::byte kGuard{0xE7};
constexpr size_t kMostMessage = 4000;

std::string shortened(std::string text) {
  if (text.size() > kMostMessage) text = text.substr(0, kMostMessage) + "...";
  return text;
}

}  // namespace

// --- storage
// ---------------------------------------------------------------------------------------

Result<Storages> Storages::make(const loom::api::Context& context, const loom::api::Device& device,
                                const Shape& shape) {
  Storages made;
  made.specs_ = shape.bindings;
  for (const BindingSpec& spec : made.specs_) {
    std::vector<std::byte> file;
    if (!spec.npy.empty()) {
      loom::api::Messages messages(context);
      auto array = loom::api::read_array(spec.npy, spec.type, messages);
      if (!array) return fail("build_failed", shortened(messages.text()));
      file = std::move(array->bytes);
    }
    made.files_.push_back(std::move(file));
    const size_t size = *spec.type.byte_size();
    made.storage_.push_back(loom::api::Storage::allocate(device, size + kGuardBytes));
    std::memset(made.storage_.back().bytes().data() + size, static_cast<int>(kGuard), kGuardBytes);
  }
  return made;
}

std::span<std::byte> Storages::bytes(size_t binding) {
  const std::span<std::byte> all = storage_[binding].bytes();
  return all.first(all.size() - kGuardBytes);
}

void Storages::fill(const Draw& draw, std::byte poison) {
  for (size_t i = 0; i < specs_.size(); ++i) {
    const bool is_read = specs_[i].role == Role::Input || specs_[i].role == Role::InOut;
    if (is_read) {
      fill_values(specs_[i], i, draw, files_[i], bytes(i));
    } else {
      std::ranges::fill(bytes(i), poison);
    }
  }
}

std::vector<std::vector<std::byte>> Storages::results() {
  std::vector<std::vector<std::byte>> copies(specs_.size());
  for (size_t i = 0; i < specs_.size(); ++i) {
    if (specs_[i].role != Role::Output && specs_[i].role != Role::InOut) continue;
    const auto from = bytes(i);
    copies[i].assign(from.begin(), from.end());
  }
  return copies;
}

std::string Storages::broken_guard() {
  for (size_t i = 0; i < specs_.size(); ++i) {
    const auto guard = storage_[i].bytes().last(kGuardBytes);
    const bool whole = std::ranges::all_of(guard, [](std::byte b) { return b == kGuard; });
    if (!whole) return specs_[i].name;
  }
  return "";
}

// --- building
// --------------------------------------------------------------------------------------

std::unexpected<Error> Built::refused(const char* error_class) {
  std::string text = shortened(messages_.text());
  messages_.clear();
  return fail(error_class, std::move(text));
}

Result<void> Built::link(const Description& description, const Shape& shape, const Sources& sources,
                         const Sources& libraries, const Json& envs) {
  loom::api::Modules inputs(context_);
  loom::api::Modules library(context_);
  const auto add = [&](const Sources& from, loom::api::Modules& to) {
    for (const auto& [name, text] : from) {
      auto module = loom::api::Module::read(context_, text, name, messages_);
      if (!module) return false;
      for (const loom::api::SourcePlace& place : loom::api::source_places(*module)) {
        if (place.kind == "kernel") places_[place.symbol] = {name, place.line};
      }
      to.add(std::move(*module), name);
    }
    return true;
  };
  if (!add(sources, inputs) || !add(libraries, library)) return refused("build_failed");
  std::map<std::string, std::string> config = description.config;
  for (const auto& [key, value] : envs.items()) {
    config[key] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  loom::api::LinkOptions options;
  options.roots = {description.root};
  options.specialize = shape.specialize;
  for (const auto& [key, value] : config) options.config.push_back(key + "=" + value);
  linked_ = loom::api::link(inputs, loom::api::Library(std::move(library)), options, messages_);
  if (!linked_) return refused("build_failed");
  linked_text_ = linked_->text();
  for (const loom::api::KernelWork& row : loom::api::kernel_work(*linked_)) {
    Work& most = work_[row.kernel];
    const auto consider = [&](uint64_t operations, const char* type) {
      if (operations > most.operations) most = {operations, type};
    };
    consider(row.f32, "f32");
    consider(row.f64, "f64");
    consider(row.i32, "i32");
    consider(row.i64, "i64");
  }
  return {};
}

Result<void> Built::compile(const Description& description, const loom::api::Device& device) {
  loom::api::PrepareOptions options;
  options.roots = {description.root};
  auto plan = loom::api::prepare(std::move(*linked_), options, messages_);
  linked_.reset();
  if (!plan) return refused("build_failed");
  loom::api::CompileOptions compile_options;
  compile_options.threads = description.threads;
  auto code = loom::api::compile(*plan, compile_options, messages_);
  if (!code) return refused("build_failed");
  for (const ParameterSource& source : description.parameters) {
    if (!parameters_.open(source.file.string(), source.root, messages_)) {
      return refused("build_failed");
    }
  }
  program_ = loom::api::materialize(device, *plan, 0, *code, parameters_, messages_);
  if (!program_) return refused("build_failed");
  invocation_.emplace(*program_);
  profile_.emplace(*program_);
  content_hash_ =
      loom::sha256_hex(loom::api::code_hash(*code) + loom::sha256_hex(plan->artifact(0)));
  return {};
}

Result<std::unique_ptr<Built>> Built::make(const Description& description, const Shape& shape,
                                           const Sources& sources, const Sources& libraries,
                                           const Json& envs, const loom::api::Device& device) {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_ptr<Built> built(new Built);
  built->root_ = description.root;
  if (auto done = built->link(description, shape, sources, libraries, envs); !done) {
    return std::unexpected(done.error());
  }
  if (auto done = built->compile(description, device); !done) return std::unexpected(done.error());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  built->build_seconds_ = took.count();
  return built;
}

std::vector<std::string> Built::kernels() const {
  std::vector<std::string> names;
  for (const loom::api::ProfiledCommand& command : profile_->commands()) {
    if (std::ranges::find(names, command.kernel) == names.end()) names.push_back(command.kernel);
  }
  return names;
}

Built::Work Built::work_of(const std::string& kernel) const {
  const auto found = work_.find(kernel);
  return found == work_.end() ? Work{} : found->second;
}

Built::Place Built::place_of(const std::string& kernel) const {
  const auto found = places_.find(kernel);
  return found == places_.end() ? Place{} : found->second;
}

// --- running
// ---------------------------------------------------------------------------------------

Result<void> Built::bind(Storages& storages) {
  for (const loom::api::Binding& binding : program_->bindings()) {
    const auto& specs = storages.specs();
    const auto found = std::ranges::find(specs, binding.name, &BindingSpec::name);
    if (found == specs.end()) {
      return fail(
          "build_failed",
          fmt::format("the program takes %{}, which the workload does not describe", binding.name),
          "add it to 'inputs' with its type");
    }
    const auto row = static_cast<size_t>(found - specs.begin());
    if (!invocation_->bind(binding.name, storages.bytes(row), messages_)) {
      return refused("build_failed");
    }
  }
  return {};
}

Result<void> Built::issue() {
  if (!invocation_->issue(messages_)) return refused("workload_failed");
  return {};
}

Result<const loom::api::Profile*> Built::issue_profiled() {
  if (!invocation_->issue(*profile_, messages_)) return refused("workload_failed");
  return &*profile_;
}

bool Built::interpret(Storages& storages, uint64_t step_limit) {
  loom::api::Context context;
  loom::api::Messages messages(context);
  loom::api::Modules inputs(context);
  if (!inputs.add(linked_text_, "linked", messages)) return false;
  loom::api::LinkOptions options;
  options.roots = {root_};
  const auto module = loom::api::link(inputs, {}, options, messages);
  if (!module) return false;
  std::vector<loom::api::NamedStorage> storage;
  for (size_t i = 0; i < storages.specs().size(); ++i) {
    storage.push_back({storages.specs()[i].name, storages.bytes(i)});
  }
  return loom::api::run_reference(*module, root_, storage, parameters_, step_limit, messages) ==
         loom::api::ReferenceOutcome::Done;
}

}  // namespace hyperloom::workload
