#include "hyperloom/core/json.h"

#include <fmt/format.h>

#include <algorithm>

#include "hyperloom/core/durable.h"
#include "loom/base/file.h"

namespace hyperloom {
namespace {

constexpr int kMaxDepth = 512;

struct Place {
  size_t line = 1;
  size_t column = 1;
};

Place place_of(std::string_view text, size_t offset) {
  Place place;
  for (size_t i = 0; i < std::min(offset, text.size()); ++i) {
    if (text[i] == '\n') {
      ++place.line;
      place.column = 1;
    } else {
      ++place.column;
    }
  }
  return place;
}

// The offset at which brackets nest too deep, or npos. Strings are skipped.
size_t too_deep(std::string_view text) {
  int depth = 0;
  bool inside_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        inside_string = false;
      }
    } else if (c == '"') {
      inside_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kMaxDepth) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& name) {
  const size_t deep = too_deep(text);
  if (deep != std::string_view::npos) {
    const Place place = place_of(text, deep);
    return fail("invalid_json", fmt::format("{}:{}:{}: nests deeper than {} levels", name,
                                            place.line, place.column, kMaxDepth));
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    const Place place = place_of(text, error.byte > 0 ? error.byte - 1 : 0);
    return fail("invalid_json", fmt::format("{}:{}:{}: not JSON", name, place.line, place.column));
  } catch (const Json::out_of_range&) {
    return fail("invalid_json", fmt::format("{}: holds a number that no double can hold", name));
  }
}

Result<Json> read_json(const std::filesystem::path& path) {
  auto text = loom::read_file(path.string());
  if (!text)
    return fail("unreadable_file", fmt::format("{}: {}", path.string(), text.error().reason));
  return parse_json(*text, path.string());
}

Result<void> write_json(const std::filesystem::path& path, const Json& document) {
  return write_durable(path, pretty(document));
}

std::string pretty(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string compact(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const Json& value_of(const Json& object, std::string_view key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

std::string text_of(const Json& object, std::string_view key, std::string_view fallback) {
  const Json& value = value_of(object, key);
  return value.is_string() ? value.get<std::string>() : std::string(fallback);
}

double number_of(const Json& object, std::string_view key, double fallback) {
  const Json& value = value_of(object, key);
  return value.is_number() ? value.get<double>() : fallback;
}

bool flag_of(const Json& object, std::string_view key, bool fallback) {
  const Json& value = value_of(object, key);
  return value.is_boolean() ? value.get<bool>() : fallback;
}

}  // namespace hyperloom
