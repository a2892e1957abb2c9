// What one dialect says about its operations beyond their table rows.
//
// A hook runs for an operation whose counts, attributes and operand and result types already fit
// its row, so it may read them without looking. Any other operation it looks at (a terminator, a
// callee) needs `sound()` first. Hooks are registered in hooks.cpp.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "loom/dialect/op_info.h"

namespace loom {

// Which kind of code an operation stands in.
enum class BodyKind : uint8_t { Function, KernelConfig, Kernel, Program, Check };

class VerifyContext {
 public:
  virtual ~VerifyContext() = default;

  const Module& module;
  Diagnostics& diagnostics;
  OpId symbol;  // the module-level operation around the one that is verified, or itself
  BodyKind body = BodyKind::Function;

  // The counts and attributes of the operation fit its row.
  virtual bool sound(OpId op) const = 0;
  // Whether the tree below `op` writes memory, synchronizes, does a volatile access or loops
  // without bounds.
  virtual bool has_ordered_effects(OpId op) const = 0;

  // The reference is valid until the next error.
  Diagnostic& error(OpId op, Diag id, std::vector<DiagParam> params);
  // STRUCTURE/014
  void bad_attribute(OpId op, std::string_view attribute, std::string detail);
  // TYPE/005
  void bad_literal(OpId op, std::string_view attribute, std::string detail);
  // TYPE/004 on the first result
  void bad_result(OpId op, std::string constraint);
  // STRUCTURE/013; false when the counts differ.
  bool same_count(OpId op, std::string group_a, size_t count_a, std::string group_b,
                  size_t count_b);
  // TYPE/001
  void type_mismatch(OpId op, std::string label_a, TypeId type_a, std::string label_b,
                     TypeId type_b);

  // In a check, the storage of a tensor can be bound to a formal buffer, or to a formal dense view
  // of the same shape and element.
  bool binds_tensor(TypeId formal, TypeId found) const;

  std::string_view op_name(OpId op) const { return op_info(module.op(op).kind).name; }
  std::string type(ValueId value) const;
  std::string name(ValueId value) const;                 // "'%x'"
  std::optional<int64_t> constant(ValueId value) const;  // exact_integer
  // Whether the operation runs whenever its body does. In a nested region a constant may be what
  // specialization made of a branch that never runs, so it proves no mistake there.
  bool always_runs(OpId op) const;
  // The constant where it proves something.
  std::optional<int64_t> constant_at(OpId op, ValueId value) const;
  // The symbol that attribute `slot` names when it is one of `kinds`; otherwise SYMBOL/002 or
  // SYMBOL/003, and an invalid id. `expected` is what the diagnostic says is needed.
  OpId resolve(OpId op, unsigned slot, std::initializer_list<OpKind> kinds,
               std::string_view expected);
  // The operation that ends a region; invalid where there is none or it is not sound.
  OpId terminator(RegionId region) const;

 protected:
  VerifyContext(const Module& m, Diagnostics& d) : module(m), diagnostics(d) {}
};

// The value of an integer or boolean constant operation; safe on operations that do not fit their
// row.
std::optional<int64_t> exact_integer(const Module& module, ValueId value);

using VerifyHook = void (*)(VerifyContext&, OpId);
// Null where the row says everything.
VerifyHook verify_hook(OpKind kind);
// The function, implementation or family that an operation with the effect `Call` names.
StringId callee_name(const Module& module, OpId call);
// A call that has no effect: it is written pure, or its callee is.
bool is_pure_call(const Module& module, OpId op);
// Whether a function, family or implementation is written pure.
bool is_pure_function(const Module& module, OpId op);

// --- the hooks, by dialect ----------------------------------------------------------------------
namespace verify {
void index_constant(VerifyContext& c, OpId op);
void index_cast(VerifyContext& c, OpId op);
void assume(VerifyContext& c, OpId op);  // every *.assume with a list of operands

// Whether a literal is of the kind and in the range of a scalar type: TYPE/005.
void check_literal(VerifyContext& c, OpId op, const Attr& literal, ScalarKind kind);
void scalar_constant(VerifyContext& c, OpId op);
void scalar_cast(VerifyContext& c, OpId op);
void scalar_gelu(VerifyContext& c, OpId op);
void scalar_bitfield(VerifyContext& c, OpId op);

void buffer_alloca(VerifyContext& c, OpId op);
void buffer_pack(VerifyContext& c, OpId op);
void buffer_assume_alignment(VerifyContext& c, OpId op);
void buffer_assume_memory_space(VerifyContext& c, OpId op);

void view_subview(VerifyContext& c, OpId op);
void view_refine(VerifyContext& c, OpId op);
void view_load(VerifyContext& c, OpId op);
void view_store(VerifyContext& c, OpId op);
void view_atomic_combine(VerifyContext& c, OpId op);
void view_atomic_cmpxchg(VerifyContext& c, OpId op);
void view_atomic_load(VerifyContext& c, OpId op);
void view_atomic_store(VerifyContext& c, OpId op);
void view_prefetch(VerifyContext& c, OpId op);

// The hook of a vector operation, or null.
VerifyHook vector_hook(OpKind kind);

void scf_for(VerifyContext& c, OpId op);
void scf_if(VerifyContext& c, OpId op);
void scf_select(VerifyContext& c, OpId op);
void scf_switch(VerifyContext& c, OpId op);
void scf_lookup(VerifyContext& c, OpId op);
void scf_while(VerifyContext& c, OpId op);
void scf_condition(VerifyContext& c, OpId op);

void func_def(VerifyContext& c, OpId op);
void func_call(VerifyContext& c, OpId op);

void template_implementation(VerifyContext& c, OpId op);  // template.def and template.ukernel
void template_apply(VerifyContext& c, OpId op);
void template_call(VerifyContext& c, OpId op);

void target_generic(VerifyContext& c, OpId op);
void module_import(VerifyContext& c, OpId op);

// What is wrong with a static encoding (PARSE/008, ENCODING/007 to 010). Parameters in `dynamic`
// are given by values.
void static_encoding(VerifyContext& c, OpId op, AttrId encoding,
                     std::span<const std::string_view> dynamic);
void encoding_layout_strided(VerifyContext& c, OpId op);
void encoding_define(VerifyContext& c, OpId op);
void encoding_isa(VerifyContext& c, OpId op);

void config_decl(VerifyContext& c, OpId op);
void config_def(VerifyContext& c, OpId op);
void config_get(VerifyContext& c, OpId op);

void kernel_contract(VerifyContext& c, OpId op);  // kernel.def and kernel.decl
void kernel_entry_decl(VerifyContext& c, OpId op);
void kernel_launch_config(VerifyContext& c, OpId op);
void kernel_launch(VerifyContext& c, OpId op);
void kernel_dispatch(VerifyContext& c, OpId op);
void kernel_barrier(VerifyContext& c, OpId op);
void kernel_collective(VerifyContext& c, OpId op);  // reductions and scans
void kernel_lanes(VerifyContext& c, OpId op);       // shuffles, broadcasts and matches
void kernel_exit(VerifyContext& c, OpId op);
void kernel_async_transfer(VerifyContext& c, OpId op);
void kernel_async_wait(VerifyContext& c, OpId op);

void sanitizer_assert_access(VerifyContext& c, OpId op);
void sanitizer_assert_layout(VerifyContext& c, OpId op);

void check_case(VerifyContext& c, OpId op);
void check_benchmark(VerifyContext& c, OpId op);
void check_param(VerifyContext& c, OpId op);  // ranges, choices and seeds
void check_literal(VerifyContext& c, OpId op);
void check_generate(VerifyContext& c, OpId op);
void check_file(VerifyContext& c, OpId op);
void check_tensor_view(VerifyContext& c, OpId op);
void check_oracle_call(VerifyContext& c, OpId op);
void check_expect_close(VerifyContext& c, OpId op);
void check_expect_shape(VerifyContext& c, OpId op);

void command_program(VerifyContext& c, OpId op);
void command_program_launch(VerifyContext& c, OpId op);
void command_parameter(VerifyContext& c, OpId op);
}  // namespace verify

}  // namespace loom
