// Which value a name means at a place of the text.
#pragma once

#include <cstdint>
#include <vector>

#include "loom/ir/module.h"

namespace loom {

// A flat array by name, with a log of what to restore when a scope ends. An isolated scope hides
// every name that was bound outside of it. Not thread-safe.
class NameScopes {
 public:
  struct Scope {
    uint32_t mark = 0;
    uint32_t isolation = 0;
  };

  Scope open(bool isolated) {
    const Scope scope{static_cast<uint32_t>(log_.size()), isolation_};
    if (isolated) isolation_ = ++last_isolation_;
    return scope;
  }
  void close(const Scope& scope) {
    while (log_.size() > scope.mark) {
      bindings_[log_.back().name] = log_.back().old;
      log_.pop_back();
    }
    isolation_ = scope.isolation;
  }

  // The value of a name that is visible; invalid otherwise.
  ValueId find(StringId name) const {
    if (name.index() >= bindings_.size()) return {};
    const Binding& binding = bindings_[name.index()];
    return binding.isolation == isolation_ ? binding.value : ValueId();
  }
  void bind(StringId name, ValueId value) {
    if (name.index() >= bindings_.size()) {
      bindings_.resize((static_cast<size_t>(name.index()) + 1) * 2);
    }
    Binding& binding = bindings_[name.index()];
    log_.push_back({binding, name.index()});
    binding = {value, isolation_};
  }

 private:
  struct Binding {
    ValueId value;
    uint32_t isolation = 0;
  };
  struct Undo {
    Binding old;
    uint32_t name;
  };
  std::vector<Binding> bindings_;
  std::vector<Undo> log_;
  uint32_t isolation_ = 0;
  uint32_t last_isolation_ = 0;
};

}  // namespace loom
