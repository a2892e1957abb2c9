// Lowers the bodies of kernels and functions to LLVM IR.
//
// A value becomes its components: a scalar one value, a buffer the address of its first byte, a
// view of rank r that address and the r-1 element strides of its outer axes (the last axis of a
// dense view has stride 1, and so have its subviews; a strided one has all r), a vector one LLVM
// vector of its lanes. A function takes the components of its arguments, then the extents that only
// its view types name, as i64. Nesting depth costs no stack.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "loom/target/llvm/debug_lines.h"
#include "loom/target/llvm/dots.h"
#include "loom/target/llvm/float_ops.h"
#include "loom/target/llvm/notes.h"
#include "loom/target/llvm/plan.h"

namespace llvm {
class BasicBlock;
class Function;
class FunctionType;
class Instruction;
class MDNode;
class Module;
class PHINode;
enum class AtomicOrdering : unsigned;
}  // namespace llvm

namespace loom {

// What a kernel query gives at the place where its body is emitted, as i64.
class KernelQueries {
 public:
  virtual ~KernelQueries() = default;
  virtual llvm::Value* query(OpKind op, Axis axis) = 0;
  // Where a workitem goes that leaves its kernel early.
  virtual llvm::BasicBlock* exit_block() = 0;
  // How many workitems have private storage at once; 1 where they run one after the other.
  virtual uint64_t private_copies() const = 0;
  // The number of the current workitem among those.
  virtual llvm::Value* private_copy() = 0;
  // Of a check that fails: the address of the kernel's arguments, and where all workitems end.
  virtual llvm::Value* arguments() = 0;
  virtual llvm::BasicBlock* end_block() = 0;
};

// Who watches the lowering, where there is someone, and what comes after it.
struct LoweringAids {
  DebugLines* lines = nullptr;
  CodegenNotes* notes = nullptr;
  bool assumes = false;  // passes follow that draw conclusions from promises
  DotTarget dots;
};

struct CodePlan;

class BodyLowering {
 public:
  // All four must outlive the lowering; `builder` is moved from function to function.
  BodyLowering(const Module& module, const LoweringPlan& plan, llvm::Module& target,
               llvm::IRBuilderBase& builder, const FloatTarget& floats,
               const LoweringAids& aids = {});
  ~BodyLowering();

  // Declares and defines the plan's out-of-line functions as internal ones.
  void lower_functions();
  // What follows, until the next call, is the function that `op` defines.
  void begin_function(llvm::Function& function, std::string_view name, OpId op);
  // For the notes, if there are any: a fact that the code of the current function is made from, and
  // one that it would be better with.
  void note_fact(OpId place, std::string_view fact, std::string subject);
  void note_missing(OpId place, std::string_view fact, std::string subject,
                    std::string_view effect);
  // Gives a kernel argument its value: a scalar of llvm_type, or an address.
  void bind_argument(ValueId arg, llvm::Value* value);
  // Nothing writes the storage of the argument while the kernel may run.
  void promise_readonly(ValueId arg);
  // What holds from here on; the notes name `place` for it.
  void assume(OpId place, std::span<const Predicate> predicates);
  void assume_alignment(OpId place, ValueId storage, int64_t alignment);
  // Emits the kernel's body at the builder's insertion point, in a function whose allocas go to
  // the start of `entry`, and leaves the builder behind it. May be called once per kernel.
  void lower_kernel_body(OpId kernel, llvm::BasicBlock* entry, KernelQueries& queries);

  // The same where the choice of `condition`, one of the body's operations, is known to be true.
  void lower_decided_body(OpId kernel, OpId condition, llvm::BasicBlock* entry,
                          KernelQueries& queries);

  // The same part by part: what is between these two calls is of that kernel.
  void begin_kernel(OpId kernel, llvm::BasicBlock* entry, KernelQueries& queries);
  void end_kernel();
  // Emits one operation with all that is nested in it.
  void lower_whole(OpId op);
  // A value as its components, and a value that is made elsewhere.
  std::vector<llvm::Value*> components(ValueId id) const;
  void set_components(ValueId id, std::span<llvm::Value* const> values);
  std::vector<llvm::Type*> component_types(TypeId type) const;
  // The value of that type that changes nothing when combined.
  llvm::Value* neutral_value(CombiningKind kind, TypeId type);
  // Combines two values of a type, scalars or vectors.
  llvm::Value* combine(CombiningKind kind, uint64_t flags, ScalarKind element, llvm::Value* a,
                       llvm::Value* b);

 private:
  using Components = std::vector<llvm::Value*>;
  struct Frame;

  // --- values (body.cpp) ---
  llvm::Value* value(ValueId id) const;
  llvm::Value* index_constant(int64_t value) const;
  llvm::Value* extent(Dim dim);
  llvm::Value* place(std::span<const ValueId> operands, std::span<const int64_t> fixed,
                     unsigned axis, unsigned& next_operand);
  size_t component_count(TypeId type) const;
  void append_types(TypeId type, std::vector<llvm::Type*>& types) const;
  void append_components(ValueId id, Components& to) const;
  Components components_of(std::span<const ValueId> ids) const;
  void bind(ValueId id, llvm::Value* value);
  // Takes the components of `id` from the front of `from`.
  void bind_components(ValueId id, std::span<llvm::Value* const>& from);
  void bind_all(std::span<const ValueId> ids, std::span<llvm::Value* const> from);
  std::vector<ValueId> results_of(OpId op) const;

  // --- control (body.cpp, control.cpp, calls.cpp) ---
  void run(RegionId region);
  void run_frames(size_t until);
  void lower_op(OpId op);
  void end_region(OpId terminator);
  void open_for(OpId op);
  void close_for(const Components& yielded);
  void open_if(OpId op);
  void close_if(const Components& yielded);
  void open_switch(OpId op);
  void close_switch(const Components& yielded);
  void open_while(OpId op);
  void end_condition(OpId terminator);
  void close_while(const Components& yielded);
  void emit_lookup(OpId op);
  void open_exit(OpId op);
  void close_exit();
  void emit_select(OpId op);
  llvm::BasicBlock* new_block();

  // --- unrolling (unrolling.cpp) ---
  void hint_unrolling(const Frame& loop, llvm::Instruction* branch);
  std::optional<uint64_t> stream_factor(const Frame& loop) const;

  // --- functions (calls.cpp) ---
  llvm::Function* declare(OpId function);
  void define(OpId function);
  void open_call(OpId op);
  void emit_call(OpId op);
  void emit_return(Components values);
  Components extents_for(OpId call, OpId callee);

  // --- memory (memory.cpp) ---
  void emit_memory_op(OpId op);
  void emit_alloca(OpId op);
  void emit_buffer_view(OpId op);
  void emit_subview(OpId op);
  void emit_load(OpId op);
  void emit_store(OpId op);
  void emit_prefetch(OpId op);
  void emit_noalias(OpId op);
  llvm::Value* linear_index(ValueId view, std::span<const ValueId> operands,
                            std::span<const int64_t> fixed);
  llvm::Value* access_address(ValueId view, std::span<const ValueId> operands,
                              std::span<const int64_t> fixed);
  void view_strides(const Type& type, Components& to);
  bool has_stride(ValueId view) const;
  llvm::Value* stride(ValueId view, size_t axis);
  void emit_pack(OpId op);
  void emit_length(OpId op);
  void copy_value(ValueId from, ValueId to);
  void inherit_scope(ValueId from, ValueId to);
  void describe_access(llvm::Value* access, ValueId view);
  // For accesses that ask to go around the caches.
  void stream(llvm::Value* access, OpId op);
  bool is_kernel_root(ValueId buffer) const;
  void note_access(ValueId view, bool stores, bool scoped);
  void note_roots();
  void note_pipeline(OpId loop);

  llvm::Value* condition_of(const Predicate& predicate);

  void emit_scalar_op(OpId op);
  void emit_lone_collective(OpId op);
  void emit_computation(OpId op, OpKind scalar_kind);

  // --- vectors (vector_ops.cpp, vector_lanes.cpp, vector_memory.cpp) ---
  bool is_empty_vector(ValueId id) const;
  bool has_no_lanes(OpId op) const;
  void emit_vector_op(OpId op);
  llvm::Value* splat(llvm::Value* scalar, unsigned lanes);
  llvm::Value* count_up(llvm::Value* base, llvm::Value* step, unsigned lanes);
  llvm::Value* emit_mask_range(llvm::Value* lo, llvm::Value* hi, llvm::Value* step, unsigned lanes);
  llvm::Value* fold_lanes(CombiningKind kind, uint64_t flags, ScalarKind element,
                          llvm::Value* vector, llvm::Value* initial);
  llvm::Value* emit_reduce(OpId op);
  llvm::Value* emit_reduce_axes(OpId op);
  llvm::Value* emit_dot(OpId op);
  llvm::Value* emit_native_dot(OpId op);
  llvm::Value* emit_group_dot(OpId op);
  llvm::Value* emit_bits(OpId op);
  llvm::Value* join(std::span<llvm::Value* const> parts);
  llvm::Value* pick_lanes(llvm::Value* from, std::span<const uint64_t> lanes);
  bool moves_lanes(OpId op) const;
  void emit_lane_moves(OpId op);
  llvm::Value* dynamic_lane(OpId op, unsigned vector_operand, std::span<const int64_t> fixed);
  llvm::Value* emit_dynamic_extract(OpId op);
  llvm::Value* emit_dynamic_insert(OpId op);
  llvm::Value* emit_dynamic_slice(OpId op);
  llvm::Value* emit_table_lookup(OpId op);
  std::vector<llvm::Value*> row_addresses(llvm::Value* first, ValueId view, const Type& vector);
  void emit_vector_memory_op(OpId op);

  llvm::Instruction* load_row(llvm::Value* address, llvm::Type* row_type, ValueId view,
                              bool is_volatile);
  llvm::Instruction* store_row(llvm::Value* row, llvm::Value* address, ValueId view,
                               bool is_volatile);
  llvm::Value* lane_addresses(llvm::Value* address, ValueId view, unsigned lanes);

  // --- atomics (atomics.cpp) ---
  llvm::Value* stack_room(llvm::Type* type);
  llvm::Value* keep_denormals();
  void each_round(uint64_t count, const std::function<void(llvm::Value* number)>& body);
  llvm::Value* replace_atomically(llvm::Value* address, ScalarKind element,
                                  llvm::AtomicOrdering ordering,
                                  const std::function<llvm::Value*(llvm::Value* old)>& next);
  llvm::Value* emit_atomic_update(OpId op, llvm::Value* address, ScalarKind element,
                                  llvm::Value* operand, llvm::Value* expected);
  void emit_view_atomic(OpId op);
  void emit_vector_atomic(OpId op);

  // --- checks at run time (checks.cpp) ---
  void check(OpId op, llvm::Value* holds, const std::string& detail);
  llvm::Value* holds(const Predicate& predicate);
  void emit_access_check(OpId op);
  void emit_layout_check(OpId op);
  void emit_check(OpId op);

  // --- asynchronous copies (transfers.cpp) ---
  llvm::Value* flat_address(ValueId view, llvm::Value* base, unsigned skipped, llvm::Value* flat);
  void emit_transfer(OpId op);
  void emit_async(OpId op);

  // --- fragments (fragments.cpp) ---
  std::vector<llvm::Value*> fragment_rows(OpId op, ValueId view, llvm::Value* origin);
  void emit_fragment_access(OpId op);
  llvm::Value* emit_product(OpId op);

  // --- encoded payloads (encoded.cpp) ---
  llvm::Value* emit_code(OpId op);
  llvm::Value* emit_isa(OpId op);
  llvm::Value* decode_records(OpId op, std::string_view family);
  llvm::Value* decode_operand(OpId op, const CodePlan& plan);
  llvm::Value* encode_operand(OpId op, const CodePlan& plan);
  llvm::Value* auxiliary(OpId op, std::string_view name, size_t group, ScalarKind to,
                         unsigned count);
  llvm::Value* payload_bytes(ValueId payload, unsigned first, unsigned count);
  void load_records(OpId load, std::span<llvm::Value* const> rows, ValueId view);

  // Code that is emitted from here on belongs to the operation's place.
  void locate(OpId op);

  const Module& module_;
  const LoweringPlan& plan_;
  LoweringAids aids_;
  llvm::Module& target_;
  llvm::IRBuilderBase& builder_;
  FloatOps floats_;

  std::vector<llvm::Value*> values_;                         // by ValueId: the first component
  std::unordered_map<uint32_t, Components> strides_;         // of views of rank 2 and more
  std::unordered_map<uint32_t, llvm::Function*> functions_;  // by OpId of the func.def

  // Of loaded payloads whose records are taken apart: their fields, by ValueId and first byte.
  std::unordered_map<uint32_t, std::unordered_map<unsigned, llvm::Value*>> record_pieces_;

  // Of a root that buffer.assume.noalias made: its scope, and those of the others.
  struct AliasScope {
    llvm::MDNode* own;
    llvm::MDNode* others;
  };
  std::vector<AliasScope> scopes_;
  std::unordered_map<uint32_t, uint32_t> scope_of_;  // by ValueId
  llvm::MDNode* scope_domain_ = nullptr;
  std::unordered_set<uint32_t> readonly_;   // by ValueId: storage that nothing writes
  llvm::MDNode* readonly_scope_ = nullptr;  // that it lies in; null where there is none

  // Launch arguments that the current kernel's body accesses, for the notes.
  struct RootUse {
    ValueId root;
    bool stores = false;
    bool unscoped = false;  // some access is not known to be apart from other buffers
  };
  std::vector<RootUse> root_uses_;

  std::vector<Frame> frames_;
  llvm::BasicBlock* entry_ = nullptr;  // of the current function
  KernelQueries* queries_ = nullptr;
  OpId decided_;  // is true
  OpId kernel_;
};

}  // namespace loom
