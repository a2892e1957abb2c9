#include "loom/command/manifest.h"

#include <array>
#include <nlohmann/json.hpp>

namespace loom {
namespace {

using Json = nlohmann::ordered_json;

// The storage of a transient is the slab.
Json indirect_json(const PreparedProgram& program, const BufferRef& ref) {
  std::string root;
  uint64_t offset = ref.offset;
  const char* kind = "rebindable";
  if (ref.storage == StorageClass::Fixed) {
    const ParameterRow& row = program.parameters[ref.index];
    root = program.roots[row.binding] + ":" + row.key;
    kind = "fixed";
  } else if (ref.storage == StorageClass::Rebindable) {
    root = program.bindings[ref.index].name;
  } else {
    offset += program.transients[ref.index].offset;
    kind = "transient";
  }
  return {{"root", root}, {"offset", offset}, {"kind", kind}};
}

Json program_json(const PreparedProgram& program, const ManifestFiles::File* artifact) {
  Json root;
  root["symbol"] = program.symbol;
  if (artifact != nullptr) {
    root["artifact"] = artifact->name;
    root["sha256"] = artifact->sha256;
  }
  Json& parameters = root["parameters"] = Json::array();
  for (const ParameterRow& row : program.parameters) {
    parameters.push_back({{"root", program.roots[row.binding]},
                          {"key", row.key},
                          {"length", row.length},
                          {"alignment", row.alignment}});
  }
  Json& bindings = root["bindings"] = Json::array();
  for (const BindingRow& row : program.bindings) {
    bindings.push_back({{"ordinal", row.ordinal}, {"name", row.name}});
  }
  const StorageNeed slab = slab_need(program);
  root["transient"] = {{"length", slab.bytes}, {"alignment", slab.alignment}};
  std::array<size_t, 3> counts{};
  for (const DispatchCommand& command : program.commands) {
    ++counts[static_cast<size_t>(count_form(program, command))];
  }
  root["counts"] = {
      {"direct", counts[0]}, {"static_indirect", counts[1]}, {"dynamic_indirect", counts[2]}};
  Json& indirect = root["indirect_storage"] = Json::array();
  for (const BufferRef& ref : program.indirect_storage) {
    indirect.push_back(indirect_json(program, ref));
  }
  return root;
}

}  // namespace

std::string manifest_json(const PreparedPlan& plan, const ManifestFiles& files) {
  Json manifest;
  manifest["schema"] = "loom.command_set.v1";
  Json& roots = manifest["roots"] = Json::array();
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    roots.push_back(
        program_json(plan.programs[i], i < files.artifacts.size() ? &files.artifacts[i] : nullptr));
  }
  Json& entries = manifest["entries"] = Json::array();
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const EntryRequirement& row = plan.entries[i];
    Json entry = {{"ordinal", i},
                  {"symbol", row.symbol},
                  {"export", row.export_name},
                  {"contract", row.contract}};
    if (row.request >= 0 && static_cast<size_t>(row.request) < files.requests.size()) {
      const ManifestFiles::File& request = files.requests[static_cast<size_t>(row.request)];
      entry["source_request"] = request.name;
      entry["sha256"] = request.sha256;
    }
    entries.push_back(std::move(entry));
  }
  return manifest.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace loom
