// The link itself; link() in link.h is its entry.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "loom/ir/clone.h"
#include "loom/link/config_values.h"
#include "loom/link/link.h"

namespace loom {

// Reaches symbols breadth first from the roots. A symbol is cloned when it is reached, its
// configuration is bound in the clone, and what the clone then mentions is reached next. At the end
// the clones get their names and their places in the result.
class Linker {
 public:
  Linker(std::span<const LinkInput> inputs, const LibraryIndex& libraries,
         const LinkOptions& options, Diagnostics& diagnostics);

  std::optional<Module> run(std::vector<LinkedSymbol>* plan);

 private:
  // A symbol of one of the modules; inputs are numbered before libraries.
  struct Place {
    uint32_t module = 0;
    OpId op;
    bool valid() const { return op.valid(); }
  };
  struct Reference {
    StringId name;      // in the result
    uint32_t node = 0;  // what it resolved to
  };
  struct Node {
    Place place;
    OpId copy;
    StringId name;  // in the result
    std::string reason;
    std::vector<Reference> references;
  };
  // A declaration in libraries that nothing resolves.
  struct Open {
    Place reached;   // first
    Place earliest;  // in the order of the result
  };
  struct DirectSymbol {
    Place definition;
    Place declaration;
  };

  const LinkInput& input_of(uint32_t module) const;
  const Module& module_of(uint32_t module) const { return input_of(module).module; }
  bool is_library(uint32_t module) const { return module >= inputs_.size(); }
  OpKind kind_of(Place place) const { return module_of(place.module).op(place.op).kind; }
  Location location_of(Place place) const;
  std::string name_of(Place place) const;

  bool collect_direct_symbols();
  void add_roots();
  void add_explicit_root(const std::string& name);
  void add_root(Place place, std::string reason);
  uint32_t add_benchmarks();
  bool is_root_by_default(const Module& module, OpId op, std::string& reason) const;

  // What the symbol that `module` calls by that name is, once declarations are looked through.
  Place resolve(uint32_t module, std::string_view name, Location use);
  Place resolve_definition(Place local);
  Place resolve_declaration(Place local);
  Place library_export(std::string_view name, Location use);
  bool check_pair(Place declaration, Place definition);

  uint32_t reach(Place place, std::string reason);
  void expand(uint32_t node);
  OpId bound_target(Place declaration);
  std::vector<StringId> applied_families(OpId copy) const;
  void reach_implementations(Place family, Place user);
  void add_import_records();
  void bind_configuration(Node& node);
  void check_configuration();
  Cloner& cloner(uint32_t module);

  void report_unresolved();
  void report_unresolved(Place declaration);
  std::pair<uint32_t, uint32_t> output_place(Place place) const;
  void settle_declarations();
  std::vector<uint32_t> output_order() const;
  bool assign_names(std::span<const uint32_t> order);
  void claim_name(uint32_t node, bool may_rename);
  bool apply_renames();
  AttrId renamed(AttrId id, const std::map<StringId, StringId>& names);
  bool specialize();
  bool specialize_one(std::string_view request);

  std::span<const LinkInput> inputs_;
  const LibraryIndex& libraries_;
  const LinkOptions& options_;
  Diagnostics& diagnostics_;
  ConfigValues config_;
  Module result_;
  std::unordered_map<std::string_view, DirectSymbol> direct_;
  std::unordered_map<std::string_view, Open> open_;
  std::unordered_map<uint64_t, uint32_t> node_of_;  // by module and operation
  std::vector<Node> nodes_;                         // in first-reach order
  std::unordered_map<uint32_t, std::unique_ptr<Cloner>> cloners_;
  std::unordered_set<uint64_t> checked_;          // declarations whose contract was compared
  std::unordered_map<StringId, uint32_t> taken_;  // names of the result
  std::unordered_map<std::string_view, std::vector<Place>> implementations_;  // inputs', by family
  std::unordered_set<std::string> applied_;  // families whose implementations were reached
  std::vector<std::string> root_names_;
};

}  // namespace loom
