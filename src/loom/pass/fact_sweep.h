// A forward sweep that learns and changes nothing.
#pragma once

#include <vector>

#include "loom/pass/fact_flow.h"

namespace loom {

// Learns what holds in one isolated region. Afterwards enter() moves to the inside of any of its
// nested regions; asking place after place in walking order costs time linear in the walk.
class FactSweep {
 public:
  // Opens a rewriter on the context for its own lifetime. `context` may belong to a module that
  // nobody may change: no operation, value, type or attribute is created.
  FactSweep(PassContext& context, const KernelTopology& topology, OpId root, RegionId region);

  // Facts and relations become those that hold in the region, which lies inside the swept one.
  void enter(RegionId region);
  Rewriter& state() { return rewriter_; }

 private:
  struct Lesson {
    ValueId value;
    IntFacts facts;
  };
  // What entering a region teaches.
  struct Inside {
    RegionId region;
    uint32_t first_lesson, lessons;
    uint32_t first_relation, relations;
  };
  struct Open {
    RegionId region;
    size_t facts, relations;
  };

  void sweep();
  void visit(OpId op);
  void open(OpId op, unsigned region);
  void close();
  void reopen(RegionId region);

  Module& module_;
  const KernelTopology& topology_;
  Rewriter rewriter_;
  const RegionId region_;
  std::vector<Open> open_;  // from the outermost nested region inwards
  std::vector<Lesson> lessons_;
  std::vector<Relation> relations_;
  std::vector<Inside> inside_;     // ascending by region
  std::vector<uint32_t> open_at_;  // by region: 1 + its position in `open_`, 0 when not open
  std::vector<RegionId> path_;
};

}  // namespace loom
