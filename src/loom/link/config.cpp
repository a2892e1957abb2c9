#include "loom/link/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace loom {
namespace {

using nlohmann::json;

bool file_error(Diagnostics& diagnostics, std::string_view path, std::string detail) {
  diagnostics.emit(Diag::ConfigFile, Location(),
                   {{"file", std::string(path)}, {"detail", std::move(detail)}});
  return false;
}

// "line 3, column 7" of the byte that a parser stopped at; `byte` counts from 1.
std::string place_of(std::string_view content, size_t byte) {
  const std::string_view before = content.substr(0, std::min(content.size(), byte - (byte != 0)));
  const auto line = 1 + std::ranges::count(before, '\n');
  const size_t start = before.rfind('\n');
  const size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

}  // namespace

void ConfigBindings::bind(Binding binding, bool from_flag) {
  const auto place = std::ranges::lower_bound(
      bindings_, binding.key, {},
      [](const Entry& entry) -> const std::string& { return entry.binding.key; });
  if (place == bindings_.end() || place->binding.key != binding.key) {
    bindings_.insert(place, {std::move(binding), from_flag});
  } else if (from_flag || !place->from_flag) {
    *place = {std::move(binding), from_flag};
  }
}

const ConfigBindings::Binding* ConfigBindings::find(std::string_view key) const {
  const auto place = std::ranges::lower_bound(
      bindings_, key, {}, [](const Entry& entry) -> std::string_view { return entry.binding.key; });
  return place != bindings_.end() && place->binding.key == key ? &place->binding : nullptr;
}

bool ConfigBindings::add_flag(std::string_view text, Diagnostics& diagnostics) {
  const size_t equals = text.find('=');
  std::string_view key = text.substr(0, equals);
  if (key.starts_with('@')) key.remove_prefix(1);
  if (equals == std::string_view::npos || key.empty() || equals + 1 == text.size()) {
    diagnostics.emit(Diag::ConfigValue, Location(),
                     {{"key", std::string(text)}, {"detail", "expected key=value"}});
    return false;
  }
  bind({std::string(key), std::string(text.substr(equals + 1)), "--config"}, true);
  return true;
}

bool ConfigBindings::add_file(std::string_view path, std::string_view content,
                              Diagnostics& diagnostics) {
  json root;
  try {
    root = json::parse(content, nullptr, true, true);
  } catch (const json::parse_error& error) {
    return file_error(diagnostics, path, "it is not JSON at " + place_of(content, error.byte));
  } catch (const json::exception&) {
    return file_error(diagnostics, path, "a number is out of range");
  }
  if (!root.is_object()) return file_error(diagnostics, path, "it is not a JSON object");
  std::vector<std::pair<std::string, const json*>> pending{{"", &root}};
  while (!pending.empty()) {
    const auto [key, value] = std::move(pending.back());
    pending.pop_back();
    if (value->is_object()) {
      for (const auto& [name, inner] : value->items()) {
        std::string dotted = key;
        if (!dotted.empty()) dotted += '.';
        dotted += name;
        pending.emplace_back(std::move(dotted), &inner);
      }
    } else if (value->is_string()) {
      bind({key, value->get<std::string>(), std::string(path)}, false);
    } else if (value->is_number() || value->is_boolean()) {
      bind({key, value->dump(), std::string(path)}, false);
    } else {
      return file_error(diagnostics, path,
                        "the value of '" + key + "' is neither a number, a boolean nor a string");
    }
  }
  return true;
}

}  // namespace loom
