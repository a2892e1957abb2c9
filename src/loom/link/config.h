// Configuration: values for `config` keys from the command line and from files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/diag/diagnostic.h"

namespace loom {

// Values by key, still as text: the type is only known once the key's declaration is. A key that is
// bound again takes the later value. Keys that no module asks for do no harm.
class ConfigBindings {
 public:
  struct Binding {
    std::string key;     // without '@'
    std::string value;   // as it would stand in `config.def`
    std::string origin;  // "--config" or the file: named by diagnostics
  };

  // `text` is the `key=value` of one --config flag. CONFIG/001 when it is not of that form.
  bool add_flag(std::string_view text, Diagnostics& diagnostics);
  // JSON, comments allowed; nested objects flatten to dotted keys. Values are numbers, booleans and
  // strings (a string is read like a --config value). A file never replaces what a flag bound.
  // CONFIG/003 when the content cannot be used.
  bool add_file(std::string_view path, std::string_view content, Diagnostics& diagnostics);

  const Binding* find(std::string_view key) const;
  bool empty() const { return bindings_.empty(); }

 private:
  struct Entry {
    Binding binding;
    bool from_flag;
  };
  void bind(Binding binding, bool from_flag);
  std::vector<Entry> bindings_;  // in ascending key order
};

}  // namespace loom
