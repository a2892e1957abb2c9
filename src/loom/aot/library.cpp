#include "loom/aot/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "loom/aot/c_header.h"
#include "loom/aot/geometry.h"
#include "loom/base/file.h"
#include "loom/target/lld/link.h"
#include "loom/target/x86/codegen.h"
#include "loom/target/x86/symbols.h"
#include "loom/target/x86/variants.h"

namespace loom {
namespace {

// What a function uses below its frame.
constexpr uint64_t kRedZone = 128;

void report_link(const FileError& error, Diagnostics& diagnostics) {
  if (error.path.empty()) {
    diagnostics.emit(Diag::LoweringInternal, {}, {{"detail", error.reason}});
  } else {
    diagnostics.emit(Diag::IoWrite, {}, {{"path", error.path}, {"reason", error.reason}});
  }
}

// A library of which only the name and the symbols count.
std::optional<std::string> stub_library(X86Codegen& codegen, const std::string& soname,
                                        const std::vector<std::string>& functions,
                                        Diagnostics& diagnostics) {
  std::string text;
  for (const std::string& function : functions) {
    text += fmt::format("define void @\"{}\"() {{ ret void }}\n", function);
  }
  auto object = codegen.assemble(text, diagnostics);
  if (!object) return std::nullopt;
  auto linked = link_shared_object({{std::move(*object)}, {}, soname});
  if (linked) return std::move(*linked);
  report_link(linked.error(), diagnostics);
  return std::nullopt;
}

class LibraryBuilder {
 public:
  LibraryBuilder(Module& module, std::span<const OpId> kernels, const LibraryOptions& options,
                 Diagnostics& diagnostics)
      : module_(module), kernels_(kernels), options_(options), diagnostics_(diagnostics) {}

  std::optional<std::string> build(std::span<CKernel> described, const std::string& prefix) {
    // Whatever may run anywhere is generic code.
    codegen_ = X86Codegen::create({.opt_level = 2, .passes = "default<O2>"}, diagnostics_);
    if (codegen_ == nullptr || !add_choice(described, prefix) || !add_geometry(described) ||
        !add_variants() || !add_needed()) {
      return std::nullopt;
    }
    auto linked = link_shared_object(parts_);
    if (!linked) {
      report_link(linked.error(), diagnostics_);
      return std::nullopt;
    }
    if (!measure(*linked, described)) return std::nullopt;
    return std::move(*linked);
  }

 private:
  bool add(std::optional<std::string> object) {
    if (object) parts_.objects.push_back(std::move(*object));
    return object.has_value();
  }

  bool add_choice(std::span<const CKernel> described, const std::string& prefix) {
    std::vector<std::string> names;
    for (const CKernel& kernel : described) names.push_back(kernel.name);
    const std::string contracts = kernel_contracts(module_, kernels_, names);
    parts_.soname = options_.file_name;
    return add(codegen_->assemble(
        variant_choice_text({prefix, options_.file_name, names, options_.levels, contracts}),
        diagnostics_));
  }

  bool add_geometry(std::span<const CKernel> described) {
    return add(compile_geometry(module_, described, {}, diagnostics_));
  }

  bool add_variants() {
    return std::ranges::all_of(options_.levels, [&](const CpuLevel* level) {
      const X86Options target{.cpu = std::string(level->cpu),
                              .features = std::string(level->features),
                              .denormals = options_.denormals,
                              .variant = variant_ending(*level)};
      return add(options_.compile
                     ? options_.compile(module_, kernels_, target, diagnostics_)
                     : compile_x86(module_, kernels_, OutputForm::Object, target, diagnostics_));
    });
  }

  // The frames of the variants that were linked.
  bool measure(std::string_view linked, std::span<CKernel> described) {
    std::string error;
    const auto frames = frame_sizes(linked, error);
    if (!frames) {
      diagnostics_.emit(Diag::LoweringInternal, {}, {{"detail", error}});
      return false;
    }
    for (CKernel& kernel : described) {
      for (const CpuLevel* const level : options_.levels) {
        const auto found = frames->find(kernel.name + variant_ending(*level));
        if (found == frames->end()) continue;
        kernel.frame_bytes = std::max(kernel.frame_bytes, found->second + kRedZone);
      }
    }
    return true;
  }

  // The libraries that the objects call, as far as no object defines what they call.
  bool add_needed() {
    std::array<std::vector<std::string>, 2> functions;  // of libm, of libc
    for (const std::string& object : parts_.objects) {
      std::string error;
      const auto names = undefined_symbols(object, error);
      if (!names) {
        diagnostics_.emit(Diag::LoweringInternal, {}, {{"detail", error}});
        return false;
      }
      for (const std::string& name : *names) {
        // The linker refuses what is of neither and in no other object.
        if (!is_memory_function(name) && !is_math_function(name)) continue;
        auto& into = functions[is_memory_function(name) ? 1 : 0];
        if (std::ranges::find(into, name) == into.end()) into.push_back(name);
      }
    }
    for (const auto& [place, soname] : {std::pair(0, "libm.so.6"), std::pair(1, "libc.so.6")}) {
      if (functions[place].empty()) continue;
      auto stub = stub_library(*codegen_, soname, functions[place], diagnostics_);
      if (!stub) return false;
      parts_.libraries.push_back(std::move(*stub));
    }
    return true;
  }

  Module& module_;
  std::span<const OpId> kernels_;
  const LibraryOptions& options_;
  Diagnostics& diagnostics_;
  std::unique_ptr<X86Codegen> codegen_;
  SharedObjectParts parts_;
};

}  // namespace

std::vector<const CpuLevel*> default_levels() {
  return {find_cpu_level("x86-64-v2"), find_cpu_level("x86-64-v3"), find_cpu_level("x86-64-v4")};
}

std::optional<KernelLibrary> compile_library(Module& module, std::span<const OpId> kernels,
                                             const LibraryOptions& options,
                                             Diagnostics& diagnostics) {
  const std::string prefix = library_prefix(options.file_name);
  auto described = describe_kernels(module, kernels, prefix, diagnostics);
  if (!described) return std::nullopt;
  auto object = LibraryBuilder(module, kernels, options, diagnostics).build(*described, prefix);
  if (!object) return std::nullopt;
  std::vector<std::string> levels;
  levels.reserve(options.levels.size());
  for (const CpuLevel* const level : options.levels) levels.emplace_back(level->name);
  return KernelLibrary{std::move(*object),
                       c_header({options.file_name, prefix, levels, *described})};
}

}  // namespace loom
