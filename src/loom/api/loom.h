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
// with another plan's executables) end the process, as a breached invariant does; loom_c.h has the
// same functions with a status instead.
//
// Messages are of the context of what they are about, or of one over it, so that they can quote
// source. Those of plans, code, programs and issues quote none and may be of any context; only
// compile(Plan) gives places where they can be quoted.
//
// Threads: a Context with its Messages, Modules, Module and links belongs to one thread at a time,
// and so does a Workspace. Library, Plan, Code, Executables, Program, Device and Storage are
// immutable and may be shared. An Invocation belongs to one caller at a time; each thread makes its
// own, with its own Messages. There is no state besides these handles: threads that share none need
// not know of each other.
//
// A pool of workers: one thread makes a Context and the Library; each worker has a Workspace, makes
// a Context::over() that one for each job, links and prepares there, and drops it with the job, so
// that nothing grows.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace loom::api {

// Owns the source texts that messages quote, which grow with every module that is added. Everything
// made in it keeps it alive.
class Context {
 public:
  Context();
  // One whose modules may be linked against a library of `base`, which it keeps alive. Nothing may
  // be added to `base` any more; any number of threads may have contexts over it.
  static Context over(const Context& base);
  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  explicit Context(std::shared_ptr<State> state);
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

// Collects what calls report, in their order; what is returned is a copy. Each thread has its own.
class Messages {
 public:
  explicit Messages(const Context& context);
  Messages(Messages&&) noexcept;
  Messages& operator=(Messages&&) noexcept;
  ~Messages();

  bool has_errors() const;
  std::vector<Message> all() const;
  // For people: place, source line and caret; or one JSON object a line. Sources that are known by
  // their path alone are read for that.
  std::string text() const;
  std::string json() const;
  void clear();

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// What a symbol of a module says about itself.
struct Symbol {
  std::string name;  // without '@'
  std::string kind;  // "kernel", "function", "command program", ...
  bool declaration = false;
  bool exported = false;
  bool retained = false;
  // The arguments of each region that has some, under the region's name, and the preconditions:
  // "config(%n: index) body(%from: buffer, %to: buffer) where [mul(%n, 4)]".
  std::string contract;
  std::vector<std::string> references;  // symbols that it mentions, in first-use order
};

// One verified module, to be read and rewritten, on the thread of its context. Each function that
// changes it leaves a verified module; when it fails the module is what it was. What is returned is
// a copy.
class Module {
 public:
  // Text or bytecode; the content decides. `name` is what messages call the bytes, which the
  // context keeps. Nothing when they do not parse or verify.
  static std::optional<Module> read(const Context& context, std::string bytes,
                                    const std::string& name, Messages& messages);
  Module(Module&&) noexcept;
  Module& operator=(Module&&) noexcept;
  ~Module();

  // In module order.
  std::vector<Symbol> symbols() const;
  // Puts the kernel `replacement` of `from` in the place of the kernel `name`, whose name, linkage,
  // export name, target and retention it takes over. What it reaches comes along, under new names
  // where the old ones mean something else here. Fails where the replacement has another signature
  // or requires what the contract of `name` does not imply. `from`, which is only read, is of the
  // same context.
  bool replace_kernel(const std::string& name, const Module& from, const std::string& replacement,
                      Messages& messages);
  // Fixes the configuration key to a value, written as in `config.def`. Fails where the module has
  // no such key and where the value breaks what the key requires.
  bool bind_config(const std::string& key, const std::string& value, Messages& messages);
  std::string text() const;
  std::string bytecode() const;

  struct State;
  explicit Module(std::unique_ptr<State> state);
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Verified modules: the inputs of a link, or what a library is made of. Text or bytecode; the
// content decides. On the thread of its context. What cannot be read, parsed or verified is not
// added; the modules before it stay.
class Modules {
 public:
  explicit Modules(const Context& context);
  Modules(Modules&&) noexcept;
  Modules& operator=(Modules&&) noexcept;
  ~Modules();

  bool add_file(const std::string& path, Messages& messages);
  // `name` is what messages call the bytes, which the context keeps.
  bool add(std::string bytes, const std::string& name, Messages& messages);
  // Uses the module up, which is of the same context.
  void add(Module module, const std::string& name);

  struct State;
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Modules that are consulted for what inputs only declare. Indexed once, for any number of links,
// in any number of threads whose inputs are of contexts over the one of these modules.
class Library {
 public:
  Library();  // of no modules
  // NOLINTNEXTLINE(google-explicit-constructor): a library is its modules.
  Library(Modules modules);

  struct State;
  const State& state() const { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

// Members of option structs have initializers, so that naming some of them warns of none.
struct LinkOptions {
  std::vector<std::string> roots = {};         // without '@'; none: what the inputs export
  std::vector<std::string> specialize = {};    // "@root:name=value"
  std::vector<std::string> config = {};        // "key=value"
  std::vector<std::string> config_files = {};  // JSON
};

// A closed module, ready to be prepared. On the thread of its context; what is returned is a copy.
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

// The roots and what they reach, out of the inputs, which are only read, and the library. Nothing
// when a symbol is missing or defined twice, a contract does not fit, or an option cannot be used.
// On the thread of the inputs' context.
std::optional<LinkedModule> link(const Modules& inputs, const Library& library,
                                 const LinkOptions& options, Messages& messages);

// What one worker keeps between calls, so that they take no memory anew: the tables of passes and
// the code generator. Lend it to prepare() and compile(); it holds nothing of what it was lent to,
// and code may outlive it.
class Workspace {
 public:
  Workspace();
  Workspace(Workspace&&) noexcept;
  Workspace& operator=(Workspace&&) noexcept;
  ~Workspace();

  struct State;
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// What one executable entry is compiled from, by this library or any other way. The views live as
// long as the plan.
struct KernelRequest {
  uint32_t ordinal = 0;  // of the plan; equal requests of other plans may have other ones
  std::string_view symbol;
  std::string_view export_name;
  std::string_view bytecode;  // a module that stands alone; equal requests are equal bytes
};

// Closed command programs and the kernel requests they need. Immutable: any thread. Texts and bytes
// are made anew by each call; views and the span live as long as the plan.
class Plan {
 public:
  size_t program_count() const;
  std::string_view symbol(size_t program) const;  // without '@'
  std::string schedule_text(size_t program) const;
  std::string schedule_dot(size_t program) const;
  // The bytes of a `.loomcmd` file.
  std::string artifact(size_t program) const;
  std::span<const KernelRequest> requests() const;

  // The one program of a `.loomcmd` file, which is mapped, checked once and then used where it
  // lies: the plan and every program that is materialized from it read the file's own bytes, which
  // nobody may change meanwhile (a file that is replaced by another of its name is not changed). It
  // has no requests, and its entries are numbered by slot. Nothing when the file cannot be read, is
  // of another version or damaged.
  static std::optional<Plan> open(const Context& context, const std::string& path,
                                  Messages& messages);

  struct State;
  explicit Plan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// A request that belongs to whoever has it, on any thread. Its view lives as long as it stays where
// it is.
struct OwnedRequest {
  uint32_t ordinal = 0;
  std::string symbol;
  std::string export_name;
  std::string bytecode;
  KernelRequest view() const { return {ordinal, symbol, export_name, bytecode}; }
};

// Receives requests while a plan is prepared, on the preparing thread. They are provisional until
// prepare() has called commit() or cancel(), which it does once before it returns.
class RequestRecipient {
 public:
  virtual ~RequestRecipient() = default;
  // In ascending ordinals. False refuses it, which makes the preparation fail without a message of
  // its own. Must not throw.
  virtual bool take(OwnedRequest&& request) = 0;
  // The plan needs all requests that were taken.
  virtual void commit() {}
  // There is no plan; nothing needs them.
  virtual void cancel() {}
};

struct PrepareOptions {
  std::vector<std::string> roots = {};  // without '@'; none: the public programs
  uint32_t max_request_classes = 0;     // of one kernel at one workgroup size; 0 for no limit
  bool check_hazards = false;           // errors for concurrent commands that touch the same bytes
  // Makes no requests and opens no kernel body.
  bool plan_only = false;
  // Takes the requests, one at a time, in place of the plan, which then has none.
  RequestRecipient* recipient = nullptr;
  Workspace* workspace = nullptr;
};

// Workgroup counts and sizes of one launch.
struct Geometry {
  std::array<uint32_t, 3> count = {1, 1, 1};
  std::array<uint32_t, 3> size = {1, 1, 1};
};

// What turns workloads into geometries, apart from the kernels it is of: a `.loomlaunch` file,
// which needs no source. Immutable; any number of threads may evaluate it.
class LaunchConfig {
 public:
  // What write_launch_config() or `loom-compile --emit-launch-config` made; other bytes are
  // refused.
  static std::optional<LaunchConfig> read(const Context& context, std::string bytes,
                                          const std::string& name, Messages& messages);
  // Symbols of the kernels, without '@'.
  std::vector<std::string> kernels() const;
  // Types of the kernel's workload arguments, as they are written: "index", "i1", "f32"; nothing
  // where there is no such kernel.
  std::optional<std::vector<std::string>> workload(const std::string& kernel) const;
  // A workload argument is its bits: integers, `index` and floats as they lie in memory, extended
  // by zeros. Fails where there is no such kernel, where the number of arguments is another one,
  // and where a count or size is not what a launch may have.
  std::optional<Geometry> evaluate(const std::string& kernel, std::span<const uint64_t> workload,
                                   Messages& messages) const;

  struct State;
  explicit LaunchConfig(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// The companion of the kernels `symbols` of the module, without '@'; none: all that it defines.
// Uses the module up, whether it succeeds or not. Nothing where it defines no such kernel or a
// configuration asks for what is not known of the target. On the thread of the module's context.
std::optional<std::string> write_launch_config(LinkedModule module,
                                               const std::vector<std::string>& symbols,
                                               Messages& messages);

// Prepares the programs `roots` (without '@'; none: the public ones) and uses the module up,
// whether it succeeds or not. Nothing when a program cannot be closed (a count, a key or a
// specialization that is not known), when hazards that were asked for are found, or when the
// recipient refuses a request. On the thread of the module's context; the plan may then go to any.
std::optional<Plan> prepare(LinkedModule module, const PrepareOptions& options, Messages& messages);

// Serves an entry of a plan in place of its request, or where it has none.
struct ExternalEntry {
  std::string symbol = {};   // of the entry, without '@'
  void* function = nullptr;  // a LoomKernelEntry (loom/target/x86/kernel_abi.h); or else:
  std::string file = {};     // ELF relocatable or shared object, which is trusted
  std::string name = {};     // in the file; empty: the entry's artifact name
};

enum class Tier : uint8_t {
  Optimized,  // the fastest code
  Fast,       // the least compile time
  // Of a plan: the latter at once, and the former in its place as soon as it is there, while
  // programs run. It takes a thread until then. Of one request it is Fast.
  FastFirst,
};

struct CompileOptions {
  Tier tier = Tier::Optimized;
  bool flush_denormals = false;  // permit it
  unsigned threads = 0;          // that compile; 0 takes all
  // Folder that keeps code between runs, for any number of processes at once; empty for none. One
  // that cannot be used is a warning. 0 is 1 GiB.
  std::string cache_folder = {};
  uint64_t cache_bytes = 0;
  std::vector<ExternalEntry> externals = {};
  Workspace* workspace = nullptr;
};

// The code of one request, in this process. An empty one stands for a request without code.
class Code {
 public:
  struct State;
  Code() = default;
  explicit Code(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// The code of a plan's entries, in this process.
class Executables {
 public:
  struct State;
  explicit Executables(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  // With Tier::FastFirst: waits until no more code will be replaced; and how many kernels were so
  // far.
  void settle() const;
  size_t replaced() const;
  const std::shared_ptr<const State>& state() const { return state_; }

 private:
  std::shared_ptr<const State> state_;
};

// Compiles every request of the plan for this machine's CPU, on several threads, and keeps the plan
// alive. Nothing when one of them cannot be compiled or an external entry cannot be used; all that
// is wrong is told. Any thread, but plans are compiled one call at a time.
std::optional<Executables> compile(const Plan& plan, const CompileOptions& options,
                                   Messages& messages);
// Compiles one request on the calling thread; its externals and threads are not looked at. Messages
// say no places: a request has none. The code keeps nothing of the request alive. Nothing when the
// bytes are no module that defines the kernel, which is checked as for any input, or when it cannot
// be compiled. Any number of threads, each with its own workspace, if any.
std::optional<Code> compile(const KernelRequest& request, const CompileOptions& options,
                            Messages& messages);
// Gives the plan the code `codes[i]` for its request number i, wherever that was compiled; a plan
// that was opened from a file has entry slots in their place. Only the externals of the options are
// looked at, and the workspace. Entries that are left without code fail to materialize. The result
// keeps plan and codes alive. Nothing when an external entry cannot be used. Any thread.
std::optional<Executables> assemble(const Plan& plan, std::span<const Code> codes,
                                    const CompileOptions& options, Messages& messages);

// Files that supply parameters by name: GGUF, safetensors, npy. They are mapped, so they must not
// be written in place while programs use them, and stay mapped as long as a program does. Files are
// opened by one thread; after that any number may materialize with them.
class Parameters {
 public:
  Parameters();
  // `root` is the launch binding that the file serves, without '%'; empty serves every one. All
  // files are opened before the first materialization. False, and nothing is added, when the file
  // cannot be read or is damaged.
  bool open(const std::string& path, const std::string& root, Messages& messages);

  struct State;
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

// Where programs run. Immutable: any thread. It lives as long as a program or storage of it.
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

// Memory that programs of a device reach.
class Storage {
 public:
  // Zeroed memory, which lives as long as a handle to it. Throws std::bad_alloc when there is not
  // enough.
  static Storage allocate(const Device& device, size_t bytes);
  // Memory that is there already, at an address as the device sees it: on the CPU device any memory
  // of the process. It is not copied, stays the caller's and must outlive every use.
  static Storage import(const Device& device, void* pointer, size_t bytes);
  // As the device sees them.
  std::span<std::byte> bytes() const;

  struct State;
  explicit Storage(std::shared_ptr<const State> state) : state_(std::move(state)) {}
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

// A program with parameters and code in place. Immutable: any thread. It keeps device, code and
// parameters alive.
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
// `executables` were compiled from this plan. Nothing when a parameter is missing or has another
// size, an entry has no code, or storage inside of the program does not suffice. Any thread.
std::optional<Program> materialize(const Device& device, const Plan& plan, size_t program,
                                   const Executables& executables, const Parameters& parameters,
                                   Messages& messages);

// One issue that was started. Copies are of the same issue; any thread may ask one. Dropping it
// changes nothing.
class Completion {
 public:
  // Whether all work is done. Never waits.
  bool done() const;
  // Waits for that. Says why when the issue failed; each call says it again.
  bool wait(Messages& messages) const;

  struct State;
  Completion() = default;  // of nothing: it may only be assigned to
  explicit Completion(std::shared_ptr<State> state) : state_(std::move(state)) {}

 private:
  std::shared_ptr<State> state_;
};

class Profile;

class Invocation {
 public:
  // Nothing is bound yet. Throws std::bad_alloc when there is no memory for the program's
  // transients.
  explicit Invocation(const Program& program);
  Invocation(Invocation&&) noexcept;
  Invocation& operator=(Invocation&&) noexcept;
  // An issue that was started goes on; its storage must stay until it is done.
  ~Invocation();

  // The storage is the caller's and stays valid while issues use it. False, and the binding keeps
  // what it had, where there is no such binding, the storage is too small or does not begin at a
  // multiple of the alignment. Allocates nothing unless it reports.
  bool bind(uint32_t ordinal, std::span<std::byte> storage, Messages& messages);
  bool bind(std::string_view name, std::span<std::byte> storage, Messages& messages);
  // The same with memory of the program's device, which must stay while issues use it.
  bool bind(uint32_t ordinal, const Storage& storage, Messages& messages);
  bool bind(std::string_view name, const Storage& storage, Messages& messages);
  // Runs the program once with the storage bound now; all its work is done when it returns. False
  // where a binding has no storage, and then nothing ran, or where a dispatch had more workgroups
  // than can be numbered, and then the others ran. Allocates nothing after the first issue.
  bool issue(Messages& messages);
  // The same, and records each dispatch in `profile` (profile.h), which is of the same program, in
  // place of what it held. Slower: each dispatch takes two looks at the clock and a lock.
  bool issue(Profile& profile, Messages& messages);
  // Whether an issue that was started is not done. Any thread.
  bool in_flight() const;
  // Begins the same and returns. It runs on a thread of the device, of which there are as many as
  // issues are in flight at once, up to the machine's threads; further ones wait their turn. Until
  // it is done nothing may be bound or issued here. `then` is called on that thread once done() is
  // true, and may start this invocation again; it must not throw, and what it holds is released
  // before the next issue of that thread begins.
  Completion start(std::function<void()> then = {});

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace loom::api
