#include "loom/command/manifest.h"

#include <array>
#include <nlohmann/json.hpp>

namespace loom {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "loom.command_set.v1";

// The storage of a transient is the slab.
Json indirect_json(const ProgramView& program, const BufferRef& ref) {
  std::string root;
  uint64_t offset = ref.offset;
  const char* kind = "rebindable";
  if (ref.storage == StorageClass::Fixed) {
    const auto row = program.parameter(ref.index);
    root = std::string(program.root(row.binding)) + ":" + std::string(row.key);
    kind = "fixed";
  } else if (ref.storage == StorageClass::Rebindable) {
    root = program.binding(ref.index).name;
  } else {
    offset += program.transient(ref.index).offset;
    kind = "transient";
  }
  return {{"root", root}, {"offset", offset}, {"kind", kind}};
}

Json program_json(const ProgramView& program, const ManifestFiles::File* artifact) {
  Json root;
  root["symbol"] = program.symbol();
  if (artifact != nullptr) {
    root["artifact"] = artifact->name;
    root["sha256"] = artifact->sha256;
  }
  Json& parameters = root["parameters"] = Json::array();
  for (size_t i = 0; i < program.parameter_count(); ++i) {
    const auto row = program.parameter(i);
    parameters.push_back({{"root", program.root(row.binding)},
                          {"key", row.key},
                          {"length", row.length},
                          {"alignment", row.alignment}});
  }
  Json& bindings = root["bindings"] = Json::array();
  for (size_t i = 0; i < program.binding_count(); ++i) {
    const auto row = program.binding(i);
    bindings.push_back({{"ordinal", row.ordinal}, {"name", row.name}});
  }
  const StorageNeed slab = program.slab();
  root["transient"] = {{"length", slab.bytes}, {"alignment", slab.alignment}};
  std::array<size_t, 3> counts{};
  for (const DispatchCommand& command : program.commands()) {
    ++counts[static_cast<size_t>(program.count_form(command))];
  }
  root["counts"] = {
      {"direct", counts[0]}, {"static_indirect", counts[1]}, {"dynamic_indirect", counts[2]}};
  Json& indirect = root["indirect_storage"] = Json::array();
  for (const BufferRef& ref : program.indirect_storage()) {
    indirect.push_back(indirect_json(program, ref));
  }
  return root;
}

Json entry_json(size_t ordinal, const ProgramView::Entry& entry) {
  return {{"ordinal", ordinal},
          {"symbol", entry.symbol},
          {"export", entry.export_name},
          {"contract", entry.contract}};
}

// Text from outside need not be UTF-8.
std::string dump(const Json& manifest) {
  return manifest.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string manifest_json(const PreparedPlan& plan, const ManifestFiles& files) {
  Json manifest;
  manifest["schema"] = kSchema;
  Json& roots = manifest["roots"] = Json::array();
  for (size_t i = 0; i < plan.programs.size(); ++i) {
    roots.push_back(
        program_json(plan.programs[i], i < files.artifacts.size() ? &files.artifacts[i] : nullptr));
  }
  Json& entries = manifest["entries"] = Json::array();
  for (size_t i = 0; i < plan.entries.size(); ++i) {
    const EntryRequirement& row = plan.entries[i];
    Json entry = entry_json(i, {row.symbol, row.export_name, row.contract, row.workgroup_size});
    if (row.request >= 0 && static_cast<size_t>(row.request) < files.requests.size()) {
      const ManifestFiles::File& request = files.requests[static_cast<size_t>(row.request)];
      entry["source_request"] = request.name;
      entry["sha256"] = request.sha256;
    }
    entries.push_back(std::move(entry));
  }
  return dump(manifest);
}

std::string manifest_json(const ProgramView& program) {
  Json manifest;
  manifest["schema"] = kSchema;
  manifest["roots"] = Json::array({program_json(program, nullptr)});
  Json& entries = manifest["entries"] = Json::array();
  for (size_t slot = 0; slot < program.slot_count(); ++slot) {
    entries.push_back(entry_json(slot, program.entry(slot)));
  }
  return dump(manifest);
}

}  // namespace loom
