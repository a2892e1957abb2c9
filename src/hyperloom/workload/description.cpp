#include "hyperloom/workload/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "loom/base/file.h"

namespace hyperloom::workload {
namespace {

std::unexpected<Error> invalid(const std::string& field, const std::string& problem,
                               std::string hint = "") {
  return fail("invalid_workload", fmt::format("workload field '{}' {}", field, problem),
              std::move(hint));
}

std::string without(std::string text, char sigil) {
  if (!text.empty() && text[0] == sigil) text.erase(0, 1);
  return text;
}

// A scalar of a document as it would be written on a command line.
std::optional<std::string> word_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return std::nullopt;
}

constexpr std::array kRoles = {"input", "output", "inout", "scratch"};

class Reader {
 public:
  explicit Reader(const Json& json) : json_(json) {}
  Result<Description> run();

 private:
  Result<void> known_fields();
  Result<std::vector<fs::path>> paths(const char* field);
  Result<std::map<std::string, std::string>> words(const Json& object, const std::string& field);
  Result<std::vector<std::string>> specialize(const Json& object, const std::string& field);
  Result<BindingSpec> binding(const Json& row, const std::string& field);
  Result<void> contents(const Json& row, const std::string& field, BindingSpec& spec);
  Result<std::vector<BindingSpec>> bindings();
  Result<Shape> held_out(const Json& row, const std::string& field);
  Result<void> parameters();
  Result<void> device();
  Result<void> original();
  fs::path absolute(const std::string& path) const {
    return (description_.tree / path).lexically_normal();
  }

  const Json& json_;
  Description description_;
};

Result<void> Reader::known_fields() {
  static constexpr std::array kFields = {
      "kind",   "name",       "tree",   "files",    "libraries", "root",    "specialize",
      "config", "parameters", "inputs", "held_out", "device",    "threads", "original"};
  for (const auto& [field, value] : json_.items()) {
    if (std::ranges::find(kFields, field) == kFields.end()) {
      return invalid(field, "is not known", fmt::format("known are {}", fmt::join(kFields, ", ")));
    }
  }
  return {};
}

Result<std::vector<fs::path>> Reader::paths(const char* field) {
  std::vector<fs::path> result;
  const Json& list = value_of(json_, field);
  if (list.is_null()) return result;
  if (!list.is_array()) return invalid(field, "is not a list of paths");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", field, i);
    if (!list[i].is_string()) return invalid(place, "is not a path");
    const fs::path path = fs::path(list[i].get<std::string>()).lexically_normal();
    if (path.empty() || path.is_absolute() || *path.begin() == "..") {
      return invalid(place, fmt::format("'{}' does not lie in the tree", path.string()),
                     "state it relative to 'tree'");
    }
    if (std::ranges::find(result, path) != result.end()) {
      return invalid(place, fmt::format("'{}' is listed twice", path.string()));
    }
    result.push_back(path);
  }
  return result;
}

Result<std::map<std::string, std::string>> Reader::words(const Json& object,
                                                         const std::string& field) {
  std::map<std::string, std::string> result;
  if (object.is_null()) return result;
  if (!object.is_object()) return invalid(field, "is not an object of names and values");
  for (const auto& [name, value] : object.items()) {
    const auto word = word_of(value);
    if (!word) return invalid(field + "." + name, "is not a number, truth value or text");
    result[without(name, '@')] = *word;
  }
  return result;
}

Result<std::vector<std::string>> Reader::specialize(const Json& object, const std::string& field) {
  auto values = words(object, field);
  if (!values) return std::unexpected(values.error());
  std::vector<std::string> result;
  for (const auto& [name, value] : *values) {
    result.push_back(fmt::format("@{}:{}={}", description_.root, without(name, '%'), value));
  }
  return result;
}

Result<void> Reader::contents(const Json& row, const std::string& field, BindingSpec& spec) {
  spec.fixed = flag_of(row, "fixed");
  const Json& fill = value_of(row, "fill");
  const Json& npy = value_of(row, "npy");
  const Json& random = value_of(row, "random");
  if (!fill.is_null() + !npy.is_null() + !random.is_null() > 1) {
    return invalid(field, "has more than one of 'fill', 'npy' and 'random'");
  }
  if (!fill.is_null()) {
    const auto word = word_of(fill);
    std::vector<std::byte> element(loom::element_size(spec.type.element));
    if (!word) return invalid(field + ".fill", "is not a value");
    const auto stored = loom::fill_literal(spec.type.element, *word, element);
    if (!stored) return invalid(field + ".fill", stored.error());
    spec.fill = *word;
  }
  if (!npy.is_null()) {
    if (!npy.is_string()) return invalid(field + ".npy", "is not a path");
    spec.npy = absolute(npy.get<std::string>()).string();
  }
  if (!random.is_null()) {
    if (!random.is_array() || random.size() != 2 || !random[0].is_number() ||
        !random[1].is_number() || random[0].get<double>() > random[1].get<double>()) {
      return invalid(field + ".random", "is not [low, high]");
    }
    spec.low = random[0].get<double>();
    spec.high = random[1].get<double>();
  } else if (!loom::is_float(spec.type.element)) {
    spec.low = loom::is_unsigned(spec.type.element) ? 0 : -8;
    spec.high = spec.type.element == loom::ElementType::I1 ? 1 : 8;
  }
  const bool filled = !fill.is_null() || !npy.is_null() || !random.is_null();
  const std::string role = text_of(row, "role", filled ? "input" : "output");
  const auto* const found = std::ranges::find(kRoles, role);
  if (found == kRoles.end()) {
    return invalid(field + ".role", fmt::format("is '{}'", role),
                   fmt::format("one of {}", fmt::join(kRoles, ", ")));
  }
  spec.role = static_cast<Role>(found - kRoles.begin());
  return {};
}

Result<BindingSpec> Reader::binding(const Json& row, const std::string& field) {
  if (!row.is_object()) return invalid(field, "is not an object");
  BindingSpec spec;
  spec.name = without(text_of(row, "name"), '%');
  if (spec.name.empty()) return invalid(field + ".name", "is missing");
  auto type = loom::parse_array_type(text_of(row, "type"));
  if (!type) return invalid(field + ".type", type.error(), "write it as 4x8xf32");
  spec.type = std::move(*type);
  if (auto read = contents(row, field, spec); !read) return std::unexpected(read.error());
  return spec;
}

Result<std::vector<BindingSpec>> Reader::bindings() {
  std::vector<BindingSpec> result;
  const Json& list = value_of(json_, "inputs");
  if (list.is_null()) return result;
  if (!list.is_array()) return invalid("inputs", "is not a list");
  for (size_t i = 0; i < list.size(); ++i) {
    auto spec = binding(list[i], fmt::format("inputs[{}]", i));
    if (!spec) return std::unexpected(spec.error());
    if (std::ranges::find(result, spec->name, &BindingSpec::name) != result.end()) {
      return invalid(fmt::format("inputs[{}].name", i),
                     fmt::format("'%{}' is listed twice", spec->name));
    }
    result.push_back(std::move(*spec));
  }
  return result;
}

Result<Shape> Reader::held_out(const Json& row, const std::string& field) {
  if (!row.is_object()) return invalid(field, "is not an object");
  Shape shape = description_.shape;
  auto values = specialize(value_of(row, "specialize"), field + ".specialize");
  if (!values) return std::unexpected(values.error());
  if (!values->empty()) shape.specialize = std::move(*values);
  const Json& inputs = value_of(row, "inputs");
  if (!inputs.is_null() && !inputs.is_array()) return invalid(field + ".inputs", "is not a list");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string place = fmt::format("{}.inputs[{}]", field, i);
    const std::string name = without(text_of(inputs[i], "name"), '%');
    const auto found = std::ranges::find(shape.bindings, name, &BindingSpec::name);
    if (found == shape.bindings.end())
      return invalid(place + ".name", "is no input of the workload");
    auto type = loom::parse_array_type(text_of(inputs[i], "type"));
    if (!type) return invalid(place + ".type", type.error());
    found->type = std::move(*type);
    // A file has one shape only.
    if (!found->npy.empty()) found->npy.clear();
  }
  return shape;
}

Result<void> Reader::parameters() {
  const Json& list = value_of(json_, "parameters");
  if (list.is_null()) return {};
  if (!list.is_array()) return invalid("parameters", "is not a list");
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = fmt::format("parameters[{}]", i);
    const std::string file =
        list[i].is_string() ? list[i].get<std::string>() : text_of(list[i], "file");
    if (file.empty()) return invalid(place, "names no file");
    description_.parameters.push_back({absolute(file), without(text_of(list[i], "root"), '%')});
    if (!fs::exists(description_.parameters.back().file)) {
      return fail("missing_source", fmt::format("{}: no file '{}'", place,
                                                description_.parameters.back().file.string()));
    }
  }
  return {};
}

Result<void> Reader::device() {
  const std::string device = text_of(json_, "device", "cpu");
  if (device != "cpu" && device != "cpu:0") {
    return invalid("device", fmt::format("is '{}'", device), "the one device is 'cpu'");
  }
  const double threads = number_of(json_, "threads");
  if (threads < 0 || threads > 4096 || threads != std::floor(threads)) {
    return invalid("threads", "is not a number of threads");
  }
  description_.threads = static_cast<unsigned>(threads);
  return {};
}

Result<void> Reader::original() {
  const Json& given = value_of(json_, "original");
  if (!given.is_null() && !given.is_object()) return invalid("original", "is not an object");
  for (const auto* list : {&description_.files, &description_.libraries}) {
    for (const fs::path& file : *list) {
      const std::string name = file.generic_string();
      if (given.is_object() && given.contains(name)) {
        if (!given[name].is_string()) return invalid("original." + name, "is not text");
        description_.original[name] = given[name].get<std::string>();
        continue;
      }
      auto text = loom::read_file((description_.tree / file).string());
      if (!text) {
        return fail("missing_source",
                    fmt::format("cannot read '{}': {}", text.error().path, text.error().reason));
      }
      if (text->find('\0') != std::string::npos) {
        return invalid("files", fmt::format("'{}' is not text", name),
                       "convert bytecode with loom-format --to=text");
      }
      description_.original[name] = std::move(*text);
    }
  }
  return {};
}

Result<Description> Reader::run() {
  if (!json_.is_object()) return fail("invalid_workload", "the workload is not an object");
  if (auto done = known_fields(); !done) return std::unexpected(done.error());
  const std::string tree = text_of(json_, "tree");
  if (tree.empty()) return invalid("tree", "is missing", "name the folder of the sources");
  std::error_code error;
  description_.tree = fs::weakly_canonical(tree, error);
  if (error || !fs::is_directory(description_.tree, error)) {
    return fail("missing_source", fmt::format("'{}' is not a folder", tree));
  }
  auto files = paths("files");
  if (!files) return std::unexpected(files.error());
  if (files->empty()) return invalid("files", "is empty");
  auto libraries = paths("libraries");
  if (!libraries) return std::unexpected(libraries.error());
  description_.files = std::move(*files);
  description_.libraries = std::move(*libraries);
  description_.root = without(text_of(json_, "root"), '@');
  if (description_.root.empty()) return invalid("root", "is missing");
  description_.name = text_of(json_, "name", description_.root);
  auto config = words(value_of(json_, "config"), "config");
  if (!config) return std::unexpected(config.error());
  description_.config = std::move(*config);
  auto values = specialize(value_of(json_, "specialize"), "specialize");
  if (!values) return std::unexpected(values.error());
  description_.shape.specialize = std::move(*values);
  auto rows = bindings();
  if (!rows) return std::unexpected(rows.error());
  description_.shape.bindings = std::move(*rows);
  const Json& held = value_of(json_, "held_out");
  if (!held.is_null() && !held.is_array()) return invalid("held_out", "is not a list");
  for (size_t i = 0; i < held.size(); ++i) {
    auto shape = held_out(held[i], fmt::format("held_out[{}]", i));
    if (!shape) return std::unexpected(shape.error());
    description_.held_out.push_back(std::move(*shape));
  }
  if (auto done = parameters(); !done) return std::unexpected(done.error());
  if (auto done = device(); !done) return std::unexpected(done.error());
  if (auto done = original(); !done) return std::unexpected(done.error());
  return std::move(description_);
}

Json specializations_json(const std::vector<std::string>& values) {
  Json object = Json::object();
  for (const std::string& value : values) {
    const size_t colon = value.find(':');
    const size_t equals = value.find('=', colon);
    object[value.substr(colon + 1, equals - colon - 1)] = value.substr(equals + 1);
  }
  return object;
}

Json path_list(const std::vector<fs::path>& paths) {
  Json list = Json::array();
  for (const fs::path& path : paths) list.push_back(path.generic_string());
  return list;
}

}  // namespace

Json Description::json() const {
  Json inputs = Json::array();
  for (const BindingSpec& spec : shape.bindings) {
    Json row = {{"name", spec.name},
                {"type", loom::to_string(spec.type)},
                {"role", kRoles[static_cast<size_t>(spec.role)]},
                {"fixed", spec.fixed}};
    if (!spec.fill.empty()) {
      row["fill"] = spec.fill;
    } else if (!spec.npy.empty()) {
      row["npy"] = spec.npy;
    } else {
      row["random"] = {spec.low, spec.high};
    }
    inputs.push_back(std::move(row));
  }
  Json held = Json::array();
  for (const Shape& other : held_out) {
    Json rows = Json::array();
    for (const BindingSpec& spec : other.bindings) {
      rows.push_back({{"name", spec.name}, {"type", loom::to_string(spec.type)}});
    }
    held.push_back({{"specialize", specializations_json(other.specialize)}, {"inputs", rows}});
  }
  Json sources = Json::array();
  for (const ParameterSource& source : parameters) {
    sources.push_back({{"file", source.file.string()}, {"root", source.root}});
  }
  return {{"kind", "loom"},
          {"name", name},
          {"tree", tree.string()},
          {"files", path_list(files)},
          {"libraries", path_list(libraries)},
          {"root", root},
          {"specialize", specializations_json(shape.specialize)},
          {"config", config},
          {"parameters", std::move(sources)},
          {"inputs", std::move(inputs)},
          {"held_out", std::move(held)},
          {"device", "cpu"},
          {"threads", threads},
          {"original", original}};
}

Result<Description> read_description(const Json& json) { return Reader(json).run(); }

}  // namespace hyperloom::workload
