#include "hyperloom/app/workload_flags.h"

#include <fmt/format.h>

#include <filesystem>

namespace hyperloom::app {
namespace {

namespace fs = std::filesystem;

// "%name=rest" or "name=rest".
Result<std::pair<std::string, std::string>> split(const std::string& flag,
                                                  const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return fail("invalid_workload", fmt::format("{} is '{}'", flag, text),
                "write it as name=value");
  }
  return std::pair{text.substr(0, equals), text.substr(equals + 1)};
}

std::string head(const std::string& text) { return text.substr(0, text.find(':')); }
std::string tail(const std::string& text) {
  const size_t colon = text.find(':');
  return colon == std::string::npos ? "" : text.substr(colon + 1);
}

// The deepest folder that holds all of them.
fs::path common_folder(const std::vector<fs::path>& files) {
  fs::path common = files.front().parent_path();
  for (const fs::path& file : files) {
    while (!common.empty() && file.lexically_relative(common).begin()->string() == "..") {
      common = common.parent_path();
    }
  }
  return common;
}

class Builder {
 public:
  explicit Builder(const WorkloadFlags& flags) : flags_(flags) {}

  Result<Json> build() {
    sources();
    pairs("specialize", "--specialize", flags_.specialize);
    pairs("config", "--config", flags_.config);
    parameters();
    bindings();
    if (problem_) return std::unexpected(*problem_);
    if (!flags_.root.empty()) json_["root"] = flags_.root;
    json_["device"] = flags_.device;
    if (flags_.threads != 0) json_["threads"] = flags_.threads;
    return json_;
  }

 private:
  void sources() {
    std::vector<fs::path> all;
    for (const auto& list : {flags_.files, flags_.libraries}) {
      for (const std::string& file : list) {
        all.push_back(fs::absolute(file).lexically_normal());
      }
    }
    const fs::path tree = common_folder(all);
    json_["tree"] = tree.string();
    json_["files"] = Json::array();
    json_["libraries"] = Json::array();
    for (size_t i = 0; i < all.size(); ++i) {
      json_[i < flags_.files.size() ? "files" : "libraries"].push_back(
          all[i].lexically_relative(tree).string());
    }
  }

  void pairs(const char* field, const char* flag, const std::vector<std::string>& list) {
    Json& object = json_[field] = Json::object();
    for (const std::string& text : list) {
      if (auto both = take(flag, text)) object[both->first] = both->second;
    }
  }
  void parameters() {
    Json& list = json_["parameters"] = Json::array();
    for (const std::string& text : flags_.parameters) {
      if (!text.starts_with('%')) {
        list.push_back(fs::absolute(text).string());
      } else if (auto both = take("--parameters", text)) {
        list.push_back({{"root", both->first}, {"file", fs::absolute(both->second).string()}});
      }
    }
  }
  void bindings() {
    json_["inputs"] = Json::array();
    each("--input", flags_.inputs, [](Json& row, const std::string& rest) {
      row["npy"] = fs::absolute(rest).string();
      return !rest.empty();
    });
    each("--fill", flags_.fills, [](Json& row, const std::string& rest) {
      row["fill"] = rest;
      return !rest.empty();
    });
    each("--random", flags_.randoms, [](Json& row, const std::string& rest) {
      double low = -1;
      double high = 1;
      if (!rest.empty()) {
        char end = 0;
        if (std::sscanf(rest.c_str(), "%lf:%lf%c", &low, &high, &end) != 2) return false;
      }
      row["random"] = {low, high};
      return true;
    });
    each("--output", flags_.outputs, [](Json& row, const std::string& rest) {
      row["role"] = "output";
      return rest.empty();
    });
    each("--scratch", flags_.scratches, [](Json& row, const std::string& rest) {
      row["role"] = "scratch";
      return rest.empty();
    });
  }

  template <class Fill>
  void each(const char* flag, const std::vector<std::string>& list, Fill&& fill) {
    for (const std::string& text : list) {
      auto both = take(flag, text);
      if (!both) continue;
      Json row = {{"name", both->first}, {"type", head(both->second)}};
      if (!fill(row, tail(both->second)) && !problem_) {
        problem_ = Error{"invalid_workload", fmt::format("{} is '{}'", flag, text),
                         "see hyperloom optimize --help"};
      }
      json_["inputs"].push_back(std::move(row));
    }
  }

  std::optional<std::pair<std::string, std::string>> take(const char* flag,
                                                          const std::string& text) {
    auto both = split(flag, text);
    if (both) return *both;
    if (!problem_) problem_ = both.error();
    return std::nullopt;
  }

  const WorkloadFlags& flags_;
  Json json_ = Json::object();
  std::optional<Error> problem_;
};

// Relative paths of a description are relative to its file.
void anchor(Json& description, const fs::path& folder) {
  const auto anchored = [&](Json& path) {
    if (path.is_string()) path = (folder / path.get<std::string>()).lexically_normal().string();
  };
  if (!description.contains("tree")) description["tree"] = ".";
  anchored(description["tree"]);
  if (description.contains("parameters") && description["parameters"].is_array()) {
    for (Json& row : description["parameters"]) anchored(row.is_object() ? row["file"] : row);
  }
  if (description.contains("inputs") && description["inputs"].is_array()) {
    for (Json& row : description["inputs"]) {
      if (row.is_object() && row.contains("npy")) anchored(row["npy"]);
    }
  }
}

}  // namespace

void WorkloadFlags::declare(CLI::App& app) {
  const auto list = [&](const char* name, std::vector<std::string>& into, const char* help) {
    app.add_option(name, into, help)->expected(1)->take_all();
  };
  app.add_option("FILE", files, "a workload description (.json), or Loom sources")->required();
  list("--library", libraries, "module that is consulted for what the sources only declare");
  app.add_option("--root", root, "the command program: @p");
  list("--specialize", specialize, "fix a specialization argument: name=value");
  list("--config", config, "bind a configuration key: key=value");
  list("--parameters", parameters, ".gguf or .safetensors file: [%root=]FILE");
  list("--input", inputs, "storage filled from a file: %x=4x8xf32:x.npy");
  list("--fill", fills, "storage filled with one value: %x=4x8xf32:1.5");
  list("--random", randoms, "storage with fresh random values: %x=4x8xf32[:low:high]");
  list("--output", outputs, "storage that the program writes: %y=8xf32");
  list("--scratch", scratches, "storage that nobody looks at: %h=8xf32");
  app.add_option("--device", device, "where the program runs")
      ->check(CLI::IsMember({"cpu"}))
      ->capture_default_str();
  app.add_option("--threads", threads, "threads of one issue; 0: all")->capture_default_str();
}

Result<Json> WorkloadFlags::description() const {
  if (files.size() == 1 && files[0].ends_with(".json")) {
    auto read = read_json(files[0]);
    if (!read) return read;
    if (!read->is_object()) {
      return fail("invalid_workload", fmt::format("{}: the description is no object", files[0]));
    }
    anchor(*read, fs::absolute(files[0]).parent_path());
    return read;
  }
  return Builder(*this).build();
}

}  // namespace hyperloom::app
