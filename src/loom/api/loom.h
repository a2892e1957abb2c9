// Loom for C++ applications: from source text to running command programs.
//
//   loom::api::Context context;
//   loom::api::Messages messages(context);
//   loom::api::Modules inputs(context);
//   inputs.add_file("model.loom", messages);
//   auto linked = loom::api::link(inputs, {}, {.roots = {"two_layer"}}, messages);
//   auto plan = loom::api::prepare(std::move(*linked), {}, messages);
//   auto code = loom::api::compile(*plan, {}, messages);
//   loom::api::Parameters parameters;
//   parameters.open("weights.gguf", "", messages);
//   auto device = loom::api::Device::cpu();
//   auto program = loom::api::materialize(device, *plan, 0, *code, parameters, messages);
//   loom::api::Invocation invocation(*program);
//   invocation.bind("input", input_bytes, messages);
//   invocation.issue(messages);
//
// Failure is an empty result (or false) and at least one error in the messages; only running out of
// memory throws (std::bad_alloc). Objects are handles: moving one is cheap, and each keeps alive
// what it was made from, so they may be destroyed in any order. A moved-from object may only be
// destroyed or assigned to. Arguments that break a rule stated here (a number past a count, a plan
// with another plan's executables) end the process, as a breached invariant does.
//
// Threads: a Context with its Messages, Modules, Library and links belongs to one thread at a time.
// Plan, Executables, Program and Device are immutable and may be shared. An Invocation belongs to
// one caller at a time; each thread makes its own, with its own Messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loom::api {

// Owns the source texts that messages quote.
class Context {
 public:
  Context();
  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

struct Message {
  enum class Severity : uint8_t { Error, Warning, Remark, Note };
  Severity severity = Severity::Error;
  std::string code;  // "TYPE/003"; never given another meaning
  std::string text;
  std::string hint;  // the repair, where one is known
  std::string file;  // empty without a place
  uint32_t line = 0;
  uint32_t column = 0;  // both from 1
  uint32_t length = 0;  // bytes
  std::vector<std::pair<std::string, std::string>> parameters;
};

// Collects what calls report.
class Messages {
 public:
  explicit Messages(const Context& context);
  Messages(Messages&&) noexcept;
  Messages& operator=(Messages&&) noexcept;
  ~Messages();

  bool has_errors() const;
  std::vector<Message> all() const;
  // For people: place, source line and caret; or one JSON object a line.
  std::string text() const;
  std::string json() const;
  void clear();

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Verified modules: the inputs of a link, or what a library is made of. Text or bytecode; the
// content decides.
class Modules {
 public:
  explicit Modules(const Context& context);
  Modules(Modules&&) noexcept;
  Modules& operator=(Modules&&) noexcept;
  ~Modules();

  bool add_file(const std::string& path, Messages& messages);
  // `name` is what messages call the bytes.
  bool add(std::string bytes, const std::string& name, Messages& messages);

  struct State;
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Modules that are consulted for what inputs only declare. Indexed once, for any number of links.
class Library {
 public:
  Library();
  // NOLINTNEXTLINE(google-explicit-constructor): a library is its modules.
  Library(Modules modules);

  struct State;
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

struct LinkOptions {
  std::vector<std::string> roots;         // without '@'; none: what the inputs export
  std::vector<std::string> specialize;    // "@root:name=value"
  std::vector<std::string> config;        // "key=value"
  std::vector<std::string> config_files;  // JSON
};

// A closed module, ready to be prepared.
class LinkedModule {
 public:
  LinkedModule(LinkedModule&&) noexcept;
  LinkedModule& operator=(LinkedModule&&) noexcept;
  ~LinkedModule();

  std::string text() const;
  std::string bytecode() const;

  struct State;
  explicit LinkedModule(std::unique_ptr<State> state);
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

std::optional<LinkedModule> link(const Modules& inputs, const Library& library,
                                 const LinkOptions& options, Messages& messages);

// What one executable entry is compiled from, by this library or any other way. The views live as
// long as the plan.
struct KernelRequest {
  uint32_t ordinal = 0;
  std::string_view symbol;
  std::string_view export_name;
  std::string_view bytecode;  // a module that stands alone; equal requests are equal bytes
};

// Closed command programs and the kernel requests they need.
class Plan {
 public:
  size_t program_count() const;
  const std::string& symbol(size_t program) const;  // without '@'
  std::string schedule_text(size_t program) const;
  std::string schedule_dot(size_t program) const;
  // The bytes of a `.loomcmd` file.
  std::string artifact(size_t program) const;
  std::span<const KernelRequest> requests() const;

  struct State;
  explicit Plan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// Prepares the programs `roots` (without '@'; none: the public ones) and uses the module up.
std::optional<Plan> prepare(LinkedModule module, const std::vector<std::string>& roots,
                            Messages& messages);

// Serves an entry of a plan in place of its request, or where it has none.
struct ExternalEntry {
  std::string symbol;        // of the entry, without '@'
  void* function = nullptr;  // a LoomKernelEntry (loom/target/x86/kernel_abi.h); or else:
  std::string file;          // ELF relocatable or shared object, which is trusted
  std::string name;          // in the file; empty: the entry's artifact name
};

struct CompileOptions {
  bool fast = false;             // the least compile time instead of the fastest code
  bool flush_denormals = false;  // permit it
  unsigned threads = 0;          // that compile; 0 takes all
  // Folder that keeps code between runs, for any number of processes at once; empty for none. One
  // that cannot be used is a warning. 0 is 1 GiB.
  std::string cache_folder;
  uint64_t cache_bytes = 0;
  std::vector<ExternalEntry> externals;
};

// The code of a plan's entries, in this process.
class Executables {
 public:
  struct State;
  explicit Executables(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// Compiles every request of the plan for this machine's CPU.
std::optional<Executables> compile(const Plan& plan, const CompileOptions& options,
                                   Messages& messages);

// Files that supply parameters by name: GGUF, safetensors, npy. They are mapped, so they must not
// be written in place while programs use them.
class Parameters {
 public:
  Parameters();
  // `root` is the launch binding that the file serves, without '%'; empty serves every one. All
  // files are opened before the first materialization.
  bool open(const std::string& path, const std::string& root, Messages& messages);

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

class Device {
 public:
  // `threads` that one issue may use, the calling one included; 0 takes all.
  static Device cpu(unsigned threads = 0);
  std::string_view name() const;

  struct State;
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// A launch binding that takes storage at issue.
struct Binding {
  uint32_t ordinal = 0;    // among the program's launch bindings, as in the source
  std::string name;        // without '%'
  uint64_t bytes = 0;      // the least storage it takes, as far as that is exact
  uint64_t alignment = 1;  // of its first byte
};

// A program with parameters and code in place.
class Program {
 public:
  std::vector<Binding> bindings() const;

  struct State;
  explicit Program(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// Aligned parameters are used where they are mapped; others are copied, which a remark tells.
// `executables` were compiled from this plan.
std::optional<Program> materialize(const Device& device, const Plan& plan, size_t program,
                                   const Executables& executables, const Parameters& parameters,
                                   Messages& messages);

class Invocation {
 public:
  explicit Invocation(const Program& program);
  Invocation(Invocation&&) noexcept;
  Invocation& operator=(Invocation&&) noexcept;
  ~Invocation();

  // The storage is the caller's and stays valid while issues use it. On failure the binding keeps
  // what it had. Allocates nothing unless it reports.
  bool bind(uint32_t ordinal, std::span<std::byte> storage, Messages& messages);
  bool bind(std::string_view name, std::span<std::byte> storage, Messages& messages);
  // Runs the program once with the storage bound now; all its work is done when it returns.
  // Allocates nothing after the first issue.
  bool issue(Messages& messages);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace loom::api
