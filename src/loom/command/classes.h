// Request classes: which launch sites are served by the same generated kernel.
//
// A kernel's decisions are what launches can settle in it and in the functions that it calls:
// conditions of branches, selectors of switches, bounds of loops that must be unrolled, and the
// conditions of template implementations, as far as they follow from scalar launch arguments and
// from the lengths of buffers. Sites of one entry whose decisions come out alike form a class,
// whatever the arguments are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "loom/command/launch_values.h"
#include "loom/command/plan.h"
#include "loom/command/resolve.h"
#include "loom/facts/float_facts.h"
#include "loom/facts/int_facts.h"
#include "loom/ir/module.h"
#include "loom/pass/pass_context.h"

namespace loom {

// What the launches of a kernel decide in its body.
struct KernelDecisions {
  // An operand of an operation that a class replaces by what it is there. `op` counts the
  // operations below the kernel in the order of for_each_nested().
  struct Use {
    uint32_t op = 0;
    uint32_t operand = 0;
    uint32_t value = 0;
    // Of a switch: its cases, ascending; other values come out alike.
    std::vector<int64_t> keys;
  };
  // A condition of a template implementation. `arguments` are values, or literals.
  struct Condition {
    struct Term {
      bool is_value = false;
      uint32_t value = 0;
      int64_t literal = 0;
    };
    PredicateKind kind = PredicateKind::Eq;
    Term terms[3];
  };
  // The kernel is meant after enter_functions(), where some of the decisions are.
  bool entered = false;
  std::vector<LaunchValue> values;
  std::vector<Use> uses;
  std::vector<Condition> conditions;

  bool empty() const { return uses.empty() && conditions.empty(); }
};
// Nothing when an error was reported.
std::optional<KernelDecisions> kernel_decisions(PassContext& context, OpId kernel);

// What the sites of a class have in common, by launch argument.
struct SharedArgument {
  // Of a scalar: its bits (Argument::value) where all sites agree, and what is true of all.
  std::optional<uint64_t> bits;
  IntFacts facts;
  FloatFacts floats{0};
  // Of a buffer or view: the alignment in bytes that each site's first byte has, the bytes where
  // all sites pass as many, and whether nothing writes them while a program runs.
  uint64_t alignment = 1;
  std::optional<uint64_t> length;
  bool fixed = false;
};

// One class: an entry of the plan.
struct RequestClass {
  OpId kernel;
  std::array<uint32_t, 3> size = {1, 1, 1};
  std::vector<SharedArgument> arguments;
  // What each use of the decisions is here; empty in a class that serves what is left over.
  std::vector<ScalarValue> folded;
};

struct Classification {
  std::vector<RequestClass> classes;       // by entry of the plan
  std::vector<KernelDecisions> decisions;  // of distinct kernels
  std::vector<uint32_t> decisions_of;      // by entry
};

// Splits the entries of a resolved plan into classes and numbers them by first use; slots, commands
// and entries of the plan are rewritten. The bodies of the kernels must be open. With `limit` above
// 0 each entry gets at most so many classes: those with the most sites, and one for the rest. A
// site costs one word of memory and no allocation. Nothing when an error was reported.
std::optional<Classification> classify(PassContext& context, const EntryTable& entries,
                                       uint32_t limit, PreparedPlan& plan);

}  // namespace loom
