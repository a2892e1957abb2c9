// JSON documents: sorted keys, so that equal documents are equal bytes.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "hyperloom/core/error.h"

namespace hyperloom {

using Json = nlohmann::json;

// Refuses text that nests deeper than 512 levels, which no document here does.
// Errors: "invalid_json", naming `name`, line and column.
Result<Json> parse_json(std::string_view text, const std::string& name);
// Errors: "unreadable_file", "invalid_json".
Result<Json> read_json(const std::filesystem::path& path);
// Indented, atomically replaced and synced. Errors: "unwritable_file".
Result<void> write_json(const std::filesystem::path& path, const Json& document);
// Indented, with a final line end; invalid UTF-8 is replaced.
std::string pretty(const Json& document);
// One line without spaces; invalid UTF-8 is replaced.
std::string compact(const Json& document);

// The string, number or truth value under `key`, or the fallback where it is absent or of another
// type.
std::string text_of(const Json& object, std::string_view key, std::string_view fallback = "");
double number_of(const Json& object, std::string_view key, double fallback = 0);
bool flag_of(const Json& object, std::string_view key, bool fallback = false);
// The value under `key`, or a null that lives for ever.
const Json& value_of(const Json& object, std::string_view key);

}  // namespace hyperloom
