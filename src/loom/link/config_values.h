// Binds configuration keys inside one symbol.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "loom/diag/diagnostic.h"
#include "loom/link/config.h"
#include "loom/link/link.h"

namespace loom {

// Values of configuration keys: from the command line, from files, from `config.def` in the inputs,
// then from the symbol's own module.
class ConfigValues {
 public:
  ConfigValues(std::span<const LinkInput> inputs, const ConfigBindings& bindings,
               Diagnostics& diagnostics);

  // Whether the key that `declaration` (a config symbol of `module`) names has a value.
  bool is_bound(const Module& module, OpId declaration) const;

  // Checks a `config.def` against the predicates of a declaration of the same key; CONFIG/001 and
  // false when it breaks one.
  bool check_definition(const Module& declaring, OpId declaration, const Module& defining,
                        OpId definition);

  // Checks the value that a flag or file binds each key of the module to, whether or not anything
  // reads the key: CONFIG/001 for one that does not fit its type or breaks its predicates, once a
  // key.
  void check_bound(const Module& module);

  // Turns every `config.get` in `copy` whose key is bound into a constant, or into an
  // `encoding.define` when the key is an encoding. `copy` is a clone, in
  // `result`, of a symbol of `source`. A value that does not fit its type or breaks the predicates
  // of a declaration is CONFIG/001, once a key. Returns whether anything was bound.
  bool bind(const Module& source, Module& result, OpId copy);

 private:
  struct Value {
    std::string text;
    std::string origin;
    std::string type;               // that a definition states
    const Module* owner = nullptr;  // of the static encoding of a definition
    AttrId encoding;
  };
  static Value defined(const Module& module, OpId definition);
  std::optional<Value> find(const Module& module, OpId declaration) const;
  std::optional<Attr> literal(const Module& module, OpId declaration, TypeId type,
                              const Module& typed);
  AttrId encoding(const Module& source, OpId declaration, TypeId type, Module& result);
  bool check(const Module& module, OpId declaration, const Attr& literal,
             const std::string& origin);
  void reject(std::string_view key, std::string detail, Location at);

  const ConfigBindings& bindings_;
  Diagnostics& diagnostics_;
  struct Definition {
    const Module* module;
    OpId op;
  };
  std::unordered_map<std::string_view, Definition> definitions_;   // of the inputs
  std::unordered_map<std::string_view, Definition> declarations_;  // the first of the inputs
  std::unordered_set<std::string> rejected_;
};

}  // namespace loom
