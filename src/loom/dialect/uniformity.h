// Whether barriers and collectives are reached by all the invocations they synchronize.
#pragma once

#include <memory>

#include "loom/diag/diagnostic.h"
#include "loom/ir/module.h"

namespace loom {

// The widest set of invocations that surely see one value; later enumerators are weaker.
enum class Distribution : uint8_t {
  Cluster,    // all workgroups of a cluster, and of the dispatch: arguments, sizes, counts
  Workgroup,  // the invocations of a workgroup
  Subgroup,   // the lanes of a subgroup
  Lane,       // may differ between lanes
};

// The distribution of every value of one root of a verified module; the barrier rule below asks the
// same object. Linear in the size of the root and of the functions of the module. The module must
// outlive it and stay unchanged.
class Uniformity {
 public:
  Uniformity(const Module& module, OpId root);
  ~Uniformity();
  Uniformity(Uniformity&&) noexcept;
  Distribution of(ValueId value) const;

 private:
  friend class UniformityChecker;
  Uniformity(const Module& module, const std::vector<OpId>& roots);
  std::unique_ptr<class VarianceFlow> flow_;
};

// Reports STRUCTURE/038 for every convergent operation of a verified module that stands inside an
// scf.if whose condition varies, or an scf.for whose bounds vary, between the invocations of its
// scope. Ids of workitems and lanes vary within a subgroup, the subgroup's id between subgroups;
// what is computed from varying values varies, and so does the content of private storage. Linear
// in the size of the bodies that hold convergent operations; no recursion.
void check_uniform_control(const Module& module, Diagnostics& diagnostics);

}  // namespace loom
