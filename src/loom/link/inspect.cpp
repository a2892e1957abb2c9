#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "loom/bytecode/symbol_index.h"
#include "loom/dialect/access.h"
#include "loom/dialect/op_info.h"
#include "loom/ir/ir_text.h"
#include "loom/ir/walk.h"
#include "loom/link/library_index.h"
#include "loom/link/link.h"

namespace loom {
namespace {

// Left-aligned columns with two spaces between them.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string place_text(const Module& module, OpId op) {
  const Location at = module.location(op);
  if (!at.valid()) return "-";
  return module.files().file(at.file).path + ":" + std::to_string(at.line) + ":" +
         std::to_string(at.column);
}

std::string visibility(const Module& module, OpId op) {
  std::string text = op_info(module.op(op).kind).dialect == "config" ? "global"
                     : is_exported(module, op)                       ? "exported"
                                                                     : "private";
  return is_retained(module, op) ? text + " retain" : text;
}

std::string access_text(const Module& module, OpId op) {
  const auto found = module.access_facets.find(op.index());
  if (found == module.access_facets.end()) return "-";
  std::string text = "(";
  for (Access access : found->second) {
    if (text.size() > 1) text += ", ";
    text += access_name(access);
  }
  return text + ")";
}

std::string references_text(const Module& module, OpId op) {
  std::string text;
  for (StringId name : symbol_references(module, op)) {
    text += (text.empty() ? "@" : ", @") + std::string(module.strings.text(name));
  }
  return text.empty() ? "-" : text;
}

struct Key {
  std::string type;
  std::vector<std::string> predicates;
  std::string place;
  bool defined = false;
  std::string value;
};

void collect_keys(const LinkInput& input, std::map<std::string, Key>& keys) {
  const Module& module = input.module;
  for_each_op(module, module.body(), [&](OpId op) {
    const OpKind kind = module.op(op).kind;
    if (kind != OpKind::ConfigDecl && kind != OpKind::ConfigDef) return;
    Key& key = keys[std::string(symbol_text(module, op))];
    if (kind == OpKind::ConfigDef) {
      key.defined = true;
      key.value = attr_text(module, module.attr_ids(op)[attr_slot(OpKind::ConfigDef, "value")]);
      if (key.type.empty()) {
        key.type = type_text(module, module.attr(op, attr_slot(OpKind::ConfigDef, "type")).type());
      }
    } else {
      const auto args = module.args(module.op_region(op, region_slot(OpKind::ConfigDecl, "value")));
      if (!args.empty()) key.type = type_text(module, module.type_of(args[0]));
      for (const Predicate& predicate : where_predicates(module, op)) {
        std::string text = predicate_text(module, predicate);
        if (std::ranges::find(key.predicates, text) == key.predicates.end()) {
          key.predicates.push_back(std::move(text));
        }
      }
    }
    if (key.place.empty()) key.place = place_text(module, op);
  });
}

}  // namespace

std::string list_symbols(const LinkInput& input) {
  const Module& module = input.module;
  std::vector<std::vector<std::string>> rows{
      {"symbol", "kind", "", "visibility", "place", "access", "references"}};
  for_each_op(module, module.body(), [&](OpId op) {
    if (!symbol_name(module, op).valid()) return;
    const OpKind kind = module.op(op).kind;
    rows.push_back({"@" + std::string(symbol_text(module, op)), std::string(symbol_kind_text(kind)),
                    is_declaration(kind) ? "declaration" : "definition", visibility(module, op),
                    place_text(module, op), access_text(module, op), references_text(module, op)});
  });
  return table(rows);
}

std::string plan_text(const Module& linked, std::span<const LinkedSymbol> plan) {
  std::vector<std::vector<std::string>> rows{{"symbol", "kind", "", "place", "from", "because"}};
  for (const LinkedSymbol& symbol : plan) {
    const OpKind kind = linked.op(symbol.op).kind;
    std::string from = (symbol.from_library ? "library " : "input ") + symbol.path;
    if (symbol.name != symbol.source_name) from += " (there @" + symbol.source_name + ")";
    rows.push_back({"@" + symbol.name, std::string(symbol_kind_text(kind)),
                    is_declaration(kind) ? "declaration" : "definition",
                    place_text(linked, symbol.op), std::move(from), symbol.reason});
  }
  return table(rows);
}

std::string config_schema(std::span<const LinkInput> inputs, const LibraryIndex& libraries,
                          const LinkOptions& options) {
  std::map<std::string, Key> keys;
  for (const LinkInput& input : inputs) collect_keys(input, keys);
  for (const LinkInput& library : libraries.libraries()) collect_keys(library, keys);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& [name, key] : keys) {
    nlohmann::ordered_json row;
    row["key"] = name;
    row["type"] = key.type;
    row["predicates"] = key.predicates;
    row["declared"] = key.place;
    if (const auto* binding = options.config.find(name); binding != nullptr) {
      row["value"] = binding->value;
      row["origin"] = binding->origin;
    } else if (key.defined) {
      row["value"] = key.value;
      row["origin"] = "config.def";
    } else {
      row["value"] = nullptr;
    }
    rows.push_back(std::move(row));
  }
  nlohmann::ordered_json document;
  document["keys"] = std::move(rows);
  return document.dump(2) + "\n";
}

}  // namespace loom
