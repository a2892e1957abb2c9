// Random verified modules, made from the operation tables: every pure operation, structured
// control, calls and private memory. The same seed gives the same module.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "loom/dialect/op_info.h"
#include "loom/ir/module.h"

namespace loom::generate {

struct Options {
  unsigned functions = 3;
  unsigned operations = 30;  // at the top of each function; regions have a few each
  unsigned depth = 3;        // of nested regions
  // Leaves out operations whose results depend on how an elementary function is computed, and lets
  // none see which NaN another gave.
  bool exact_only = false;
};

class Generator {
 public:
  // The module must be empty. Both must outlive the generator.
  Generator(Module& module, uint64_t seed, const Options& options);

  // Fills the module with functions @f0, @f1, ...; later ones call earlier ones. Each returns the
  // scalars and vectors that its body's top computed, so that no pass may drop one.
  void run();

  // Kinds of operations in the module.
  const std::set<OpKind>& used() const { return used_; }

  // Whether random programs can hold the operation: those that generic operand and attribute
  // choice or a recipe here can make.
  static bool covers(OpKind kind);

 private:
  using Values = std::vector<ValueId>;

  // --- choice ---
  uint32_t roll(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  bool chance(uint32_t of) { return roll(of) == 0; }
  TypeId random_type();
  TypeId random_argument_type();
  ValueId pick(const Constraint& constraint, TypeId wanted);
  ValueId pick_type(TypeId type);

  // --- making ---
  void function(unsigned number);
  void fill(RegionId region, unsigned operations, unsigned depth);
  void statement(unsigned depth);
  bool generic();
  ValueId literal(const Constraint& constraint, const Values& operands);
  bool guarded(OpKind kind, Values& operands);
  void without_nan(OpKind kind, Values& operands);
  AttrId attribute(const OpInfo& info, const AttrSpec& spec, TypeId result);
  bool result_types(const OpInfo& info, const Values& operands, std::vector<TypeId>& types);
  bool constant();
  bool from_elements();
  bool branch(unsigned depth);
  bool loop(unsigned depth);
  bool switch_over(unsigned depth);
  bool while_loop(unsigned depth);
  bool lookup();
  void bodies(OpId op, unsigned count, const std::vector<TypeId>& types, unsigned depth);
  bool memory();
  void loads_ahead(ValueId view);
  bool call();
  Values region_results(const std::vector<TypeId>& types);

  OpId append(OpKind kind, const Values& operands, const std::vector<uint32_t>& groups,
              const std::vector<TypeId>& results, const std::vector<AttrId>& attrs,
              unsigned regions = 0);
  void yield(const Values& values);
  ValueId address(OpKind kind, ScalarKind type, int64_t value);
  // Keeps the operation when the module still verifies, and erases it otherwise.
  bool settle(OpId op);
  void add_results(OpId op);

  Module& module_;
  std::mt19937_64 random_;
  Options options_;
  OpKind favourite_{};  // tried often, so that every operation occurs in some program
  RegionId region_;
  Values values_;  // visible here
  std::vector<OpId> functions_;
  std::set<OpKind> used_;
  std::vector<TypeId> pool_;  // types that values have
};

}  // namespace loom::generate
