// A variant that is built and loaded, for the worker process.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "hyperloom/workload/description.h"
#include "hyperloom/workload/values.h"
#include "loom/api/loom.h"
#include "loom/api/profile.h"

namespace hyperloom::workload {

// The storage of one shape's bindings, shared by all variants so that they run on the same pages.
// Behind each binding lies a guard that no program may write.
class Storages {
 public:
  // Errors: "build_failed" when an npy file cannot be used or has another type.
  static Result<Storages> make(const loom::api::Context& context, const loom::api::Device& device,
                               const Shape& shape);

  // Fills what is read, and poisons what is written.
  void fill(const Draw& draw, std::byte poison);
  std::span<std::byte> bytes(size_t binding);
  // Copies of the compared bindings.
  std::vector<std::vector<std::byte>> results();
  // The first binding whose guard was written; empty when all are whole.
  std::string broken_guard();
  const std::vector<BindingSpec>& specs() const { return specs_; }

 private:
  std::vector<BindingSpec> specs_;
  std::vector<std::vector<std::byte>> files_;  // contents of npy files; empty without one
  std::vector<loom::api::Storage> storage_;
};

// One program, ready to be issued on storages. Not thread-safe.
class Built {
 public:
  // Links, prepares, compiles and materializes. `sources` and `libraries` are (name, text).
  using Sources = std::vector<std::pair<std::string, std::string>>;
  // Errors: "build_failed", "missing_compiler".
  static Result<std::unique_ptr<Built>> make(const Description& description, const Shape& shape,
                                             const Sources& sources, const Sources& libraries,
                                             const Json& envs, const loom::api::Device& device);

  // Errors of both: "build_failed" where storage does not fit, "workload_failed" where the runtime
  // refuses the issue.
  Result<void> bind(Storages& storages);
  Result<void> issue();
  Result<const loom::api::Profile*> issue_profiled();
  // Runs the program on the reference interpreter; false where that takes too long or the program
  // breaks a rule of the language.
  bool interpret(Storages& storages, uint64_t step_limit);

  const std::string& content_hash() const { return content_hash_; }
  std::vector<std::string> kernels() const;
  double build_seconds() const { return build_seconds_; }
  struct Place {
    std::string file;  // as named in the sources
    uint32_t line = 0;
  };
  struct Work {
    uint64_t operations = 0;  // of one workgroup
    std::string type;
  };
  // The arithmetic that a kernel surely does; none where that is not known.
  Work work_of(const std::string& kernel) const;
  // Where a kernel is defined; an empty file where that is not known.
  Place place_of(const std::string& kernel) const;

 private:
  Built() : messages_(context_) {}
  Result<void> link(const Description& description, const Shape& shape, const Sources& sources,
                    const Sources& libraries, const Json& envs);
  Result<void> compile(const Description& description, const loom::api::Device& device);
  std::unexpected<Error> refused(const char* error_class);

  loom::api::Context context_;
  loom::api::Messages messages_;
  std::string root_;
  std::string linked_text_;  // for the interpreter
  std::optional<loom::api::LinkedModule> linked_;
  loom::api::Parameters parameters_;
  std::optional<loom::api::Program> program_;
  std::optional<loom::api::Invocation> invocation_;
  std::optional<loom::api::Profile> profile_;
  std::map<std::string, Place> places_;
  std::map<std::string, Work> work_;
  std::string content_hash_;
  double build_seconds_ = 0;
};

}  // namespace hyperloom::workload
