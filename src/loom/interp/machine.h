// One execution: invocations with explicit frames, and the checks around every operation.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "loom/interp/interp.h"
#include "loom/interp/value.h"

namespace loom::interp {

// The shape of one launch.
struct Launch {
  OpId kernel;
  int64_t count[3] = {1, 1, 1};
  int64_t size[3] = {1, 1, 1};
  int64_t subgroup_size = 1;

  int64_t workitems() const { return size[0] * size[1] * size[2]; }
  int64_t workgroups() const { return count[0] * count[1] * count[2]; }
  int64_t subgroups() const { return (workitems() + subgroup_size - 1) / subgroup_size; }
};

// What the invocations of one workgroup share.
struct Workgroup {
  int64_t flat = 0;
  // By operation and how often the invocation had executed it.
  std::map<std::pair<uint32_t, uint32_t>, std::shared_ptr<Root>> roots;
};

// A region in progress.
struct Activation {
  enum Kind : uint8_t {
    Function,
    Branch,
    For,
    WhileBefore,
    WhileBody,
    Serial,
    Concurrent,
    Leaving
  };
  Kind kind = Function;
  OpId owner;  // whose region it is
  OpId next;
  ScalarKind iv_kind = ScalarKind::Index;
  int64_t iv = 0, hi = 0, step = 0;
};

struct Frame {
  OpId symbol;             // the function, kernel or program
  OpId call;               // in the frame below; invalid in the first
  size_t activations = 0;  // of the invocation, below this frame's
  std::vector<Datum> values;
};

// A transfer in progress.
struct Transfer {
  std::vector<std::pair<std::shared_ptr<Root>, uint64_t>> bytes;  // where elements begin
  uint64_t element_bytes = 0;
  uint32_t invocation = 0;  // that the shadow knows it by
};

struct Invocation {
  enum Status : uint8_t { Ready, Waiting, Done, Exited };
  Status status = Ready;
  OpId waiting;  // the barrier or collective
  std::vector<Frame> frames;
  std::vector<Activation> activations;
  std::vector<Datum> results;  // of the terminator that ended it

  // In a kernel.
  const Launch* launch = nullptr;
  Workgroup* group = nullptr;
  int64_t flat = 0;             // in the workgroup
  uint32_t epochs[2] = {0, 0};  // [0] global memory, [1] workgroup memory
  uint32_t subgroup_epochs[2] = {0, 0};
  uint32_t releases = 0;
  std::shared_ptr<const Knowledge> known;
  std::unordered_map<uint32_t, uint32_t> allocations;  // executions by operation
  std::vector<Transfer> transfers;
  std::vector<std::vector<uint32_t>> async_groups;  // not waited for, oldest first

  // In a command program.
  std::vector<CommandOrder::Step> path;

  int64_t lane() const { return flat % launch->subgroup_size; }
  int64_t subgroup() const { return flat / launch->subgroup_size; }
};

// Where the values of a module's bodies are in their frames.
struct Layout {
  explicit Layout(const Module& module);

  std::vector<uint32_t> slots;                    // by value: place in its frame
  std::unordered_map<uint32_t, uint32_t> counts;  // by symbol operation, of bodies seen so far
  bool synchronizing = false;  // orderings of atomics make any two workgroups comparable
};

// Bytes from the first to behind the last element; nothing when they cannot be counted.
std::optional<uint64_t> footprint(const ViewDatum& view);

class Machine {
 public:
  Machine(const Module& module, const InterpOptions& options, Diagnostics& diagnostics);

  std::optional<std::vector<LaneValues>> function(OpId symbol,
                                                  std::span<const InterpArgument> arguments);
  bool kernel(OpId symbol, std::span<const ScalarValue> workload,
              std::span<const InterpArgument> arguments);
  bool program(OpId symbol, std::span<const ScalarValue> specializations,
               std::span<const InterpStorage> bindings, const ParameterBytes& parameters);
  bool check_case(OpId symbol, CaseHost& host);
  bool contracts(OpId at, OpId symbol, std::span<const InterpArgument> arguments);

 private:
  enum class Outcome : uint8_t { Next, Wait, Stop };
  struct Mode {
    bool read = false, write = false, atomic = false;
  };

  // --- machine.cpp: values, frames, the loop ---
  bool fail(OpId op, Diag id, std::vector<DiagParam> params);
  bool unsupported(OpId op);
  bool violation(OpId op, std::string detail);
  std::string op_name(OpId op) const;
  std::string value_name(ValueId value) const;
  uint32_t slot(ValueId value) const { return layout_.slots[value.index()]; }
  uint32_t slot_count(OpId symbol) const { return layout_.counts.at(symbol.index()); }
  void prepare_body(OpId symbol);
  const Datum& get(const Invocation& t, ValueId value) const;
  void set(Invocation& t, ValueId value, Datum datum);
  void set_scalar(Invocation& t, OpId op, ScalarValue value) { set(t, module_.result(op), value); }
  // Operands of effectful operations: poison and absent values are reported.
  std::optional<ScalarValue> scalar(Invocation& t, OpId op, ValueId value);
  std::optional<int64_t> integer(Invocation& t, OpId op, ValueId value);
  std::optional<LaneValues> lanes(Invocation& t, OpId op, ValueId value);
  std::optional<BufferDatum> buffer(Invocation& t, OpId op, ValueId value);
  std::shared_ptr<const ViewDatum> view(Invocation& t, OpId op, ValueId value);
  bool not_a_value(OpId op, const Datum& datum);
  std::optional<std::vector<int64_t>> indices(Invocation& t, OpId op,
                                              std::span<const ValueId> values, unsigned slot);
  std::optional<std::vector<int64_t>> extents(Invocation& t, OpId op, const Type& type);
  bool start(Invocation& t, OpId symbol, RegionId body, OpId call,
             std::span<const Datum> arguments);
  bool bind(Invocation& t, OpId at, RegionId region, std::span<const Datum> arguments);
  bool run(Invocation& t);  // false when it failed; otherwise see status
  Outcome execute(Invocation& t, OpId op);
  Outcome pure(Invocation& t, OpId op);
  bool constant(Invocation& t, OpId op, const Attr& literal, TypeId type);
  std::string violation_text(OpId op, std::span<const ScalarValue> operands) const;

  // --- control.cpp ---
  Outcome control(Invocation& t, OpId op);
  Outcome enter_for(Invocation& t, OpId op);
  Outcome enter_if(Invocation& t, OpId op);
  void enter(Invocation& t, Activation::Kind kind, OpId owner, RegionId region);
  Outcome finish_region(Invocation& t, OpId terminator);
  Outcome finish_function(Invocation& t, std::vector<Datum> results);
  Outcome call(Invocation& t, OpId op, OpId callee);
  Outcome apply(Invocation& t, OpId op);
  Outcome select(Invocation& t, OpId op);
  Outcome config_get(Invocation& t, OpId op);
  std::vector<Datum> data(const Invocation& t, std::span<const ValueId> values) const;

  // --- promise.cpp ---
  std::optional<bool> holds(const Invocation& t, const Predicate& predicate) const;
  std::string predicate_text(const Invocation& t, const Predicate& predicate) const;
  bool promised(Invocation& t, OpId at, std::span<const Predicate> predicates,
                std::string_view what);
  // Whether it says something about an argument of that region (the named results of a function).
  bool mentions(const Predicate& predicate, RegionId region) const;
  bool asserted(Invocation& t, OpId at, std::span<const Predicate> predicates);
  Outcome assume(Invocation& t, OpId op);
  Outcome assume_storage(Invocation& t, OpId op);

  // --- storage.cpp: buffers, views, encodings ---
  Outcome storage(Invocation& t, OpId op);
  Outcome allocate(Invocation& t, OpId op);
  Outcome make_view(Invocation& t, OpId op);
  Outcome subview(Invocation& t, OpId op);
  Outcome refine(Invocation& t, OpId op);
  Outcome encoding(Invocation& t, OpId op);
  bool lay_out(Invocation& t, OpId op, const Type& type, ViewDatum& view);
  bool check_binding_size(OpId op, const ViewDatum& view);
  std::shared_ptr<const ViewDatum> view_of(Invocation& t, OpId op, const BufferDatum& buffer,
                                           int64_t offset, const Type& type);

  // --- access.cpp: loads, stores, atomics ---
  Outcome access(Invocation& t, OpId op);
  std::optional<uint64_t> locate(OpId op, const ViewDatum& view, std::span<const int64_t> index,
                                 bool aligned);
  bool touch(Invocation& t, OpId op, const BufferDatum& buffer, uint64_t byte, uint64_t size,
             Mode mode);
  bool conflict(Invocation& t, OpId op, const Root& root, uint64_t byte, Mode mode,
                const Shadow::Conflict& conflict);
  Touch touch_of(const Invocation& t, OpId op, const Root& root, bool atomic) const;
  TouchOrder order_of(const Invocation& t, const Root& root) const;
  std::string who(const Touch& touch) const;
  std::optional<uint64_t> load(Invocation& t, OpId op, const ViewDatum& view, uint64_t byte,
                               Mode mode);
  bool store(Invocation& t, OpId op, const ViewDatum& view, uint64_t byte, uint64_t bits,
             Mode mode);
  // The operand group and the attribute of that name; absent ones are empty and invalid.
  std::span<const ValueId> group(OpId op, std::string_view name) const;
  AttrId attribute(OpId op, std::string_view name) const;
  // The elements that the lanes of a vector operation reach; nothing for lanes that are off.
  std::optional<std::vector<std::optional<uint64_t>>> lane_bytes(Invocation& t, OpId op,
                                                                 const ViewDatum& window,
                                                                 std::span<const int64_t> shape);
  std::optional<std::vector<int64_t>> origin(Invocation& t, OpId op);
  Outcome vector_access(Invocation& t, OpId op);
  Outcome atomic_access(Invocation& t, OpId op);
  // Combines or exchanges one element; the bits it had.
  std::optional<uint64_t> update(Invocation& t, OpId op, const ViewDatum& view, uint64_t byte,
                                 uint64_t operand, std::optional<uint64_t> expected);
  void synchronize(Invocation& t, OpId op, const std::shared_ptr<Root>& root, uint64_t byte,
                   Ordering ordering);
  Outcome fragment_access(Invocation& t, OpId op);

  // --- dispatch.cpp, collective.cpp ---
  Outcome query(Invocation& t, OpId op);
  int64_t subgroup_size(OpId kernel) const;
  std::optional<Launch> configure(OpId at, OpId kernel, std::span<const Datum> workload);
  bool dispatch(OpId at, const Launch& launch, std::span<const Datum> arguments);
  bool keeps_contract(OpId at, OpId kernel, std::span<const Datum> arguments);
  bool run_group(const Launch& launch, Workgroup& group, std::span<const Datum> arguments);
  bool resolve(std::span<Invocation> group, const Launch& launch);
  bool diverged(std::span<Invocation> group, const Launch& launch);
  bool collective(OpId op, std::span<Invocation*> members, const Launch& launch);
  bool combine(OpId op, std::span<Invocation*> members, std::span<const LaneValues> values);
  bool exchange(OpId op, std::span<Invocation*> members, const Launch& launch,
                std::span<const LaneValues> values);
  bool vote(OpId op, std::span<Invocation*> members, const Launch& launch,
            std::span<const LaneValues> values);
  void set_lanes(Invocation& t, ValueId result, const LaneValues& value);

  // --- transfer.cpp ---
  Outcome async(Invocation& t, OpId op);
  bool transfer(Invocation& t, OpId op, const ViewDatum& source, const ViewDatum& target,
                uint32_t& number);
  void rename(Invocation& t, OpId op, const Transfer& transfer, bool to_transfer);

  // --- program.cpp ---
  Outcome command(Invocation& t, OpId op);
  Outcome launch_kernel(Invocation& t, OpId op);
  Outcome dispatch_kernel(Invocation& t, OpId op);
  Outcome launch_program(Invocation& t, OpId op);
  Outcome parameter(Invocation& t, OpId op);
  bool reaches_a_command(ValueId value);
  void begin_command(const Invocation& t, std::string_view symbol, const Launch& launch);
  std::optional<std::vector<Datum>> arguments_of(Invocation& t, OpId op, RegionId formals,
                                                 std::span<const ValueId> actuals);
  bool as_formal(Invocation& t, OpId op, const Type& formal, Datum& actual);
  std::optional<std::vector<Datum>> arguments_from(OpId symbol, std::span<const ValueId> formals,
                                                   std::span<const InterpArgument> arguments);

  // --- case.cpp ---
  Outcome check(Invocation& t, OpId op);
  Outcome case_call(Invocation& t, OpId op);
  Outcome tensor_view(Invocation& t, OpId op);
  // Launches through the host; nothing where the interpreter is to do it.
  std::optional<Outcome> host_launch(Invocation& t, OpId op);
  std::optional<std::vector<CaseValue>> case_values(Invocation& t, OpId op);
  bool in_program(const Invocation& t) const;

  struct Command {
    std::string symbol;
    Launch launch;
  };

  const Module& module_;
  const InterpOptions& options_;
  Diagnostics& diagnostics_;
  const ParameterBytes* parameters_ = nullptr;
  std::unique_ptr<Layout> own_layout_;  // null where one was lent
  Layout& layout_;
  CaseHost* host_ = nullptr;  // of a case
  uint64_t steps_ = 0;
  uint64_t nested_calls_ = 0;
  bool in_program_ = false;
  bool contracts_only_ = false;  // launches check what they promise and run nothing
  uint64_t generation_ = 0;
  uint32_t next_region_ = 0;
  CommandOrder order_;
  std::vector<Command> commands_;
  std::map<std::pair<std::shared_ptr<Root>, uint64_t>, Knowledge> published_;
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Root>> parameter_roots_;
  // What a program that a case launches calls its storage, where that has another name.
  std::map<const Root*, std::string> formal_names_;
  // Values of programs that a command gets, or what is made from them; found when first asked for.
  std::optional<std::unordered_set<uint32_t>> reaching_;
  uint32_t next_transfer_ = ~uint32_t{0};
};

}  // namespace loom::interp
