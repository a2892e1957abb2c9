#include "loom/runtime/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "loom/runtime/parameters/npy.h"

namespace loom {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDumpSchema = "loom.dump.v0";

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

StorageDump::StorageDump(const ProgramView& program, std::string folder,
                         std::vector<Binding> bindings)
    : program_(program), folder_(std::move(folder)), bindings_(std::move(bindings)) {}

FileResult<void> StorageDump::begin() {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (!error) return {};
  failed_ = FileError{folder_, error.message()};
  return std::unexpected(*failed_);
}

void StorageDump::write(File file, std::span<const std::byte> bytes,
                        const std::optional<ArrayType>& type, std::vector<File>& files) {
  if (failed_) return;
  std::string array;
  if (type && *type->byte_size() <= bytes.size()) {
    // Some elements have no name in a .npy file.
    if (auto made = write_npy(*type, bytes.first(*type->byte_size()))) {
      array = std::move(*made);
      file.type = to_string(*type);
      bytes = bytes.first(*type->byte_size());
    }
  }
  file.bytes = bytes.size();
  file.file += array.empty() ? ".bin" : ".npy";
  const auto written = write_file((std::filesystem::path(folder_) / file.file).string(),
                                  array.empty() ? text_of(bytes) : std::string_view(array));
  if (!written) {
    failed_ = written.error();
    return;
  }
  files.push_back(std::move(file));
}

void StorageDump::after(uint32_t command, std::span<const std::byte> slab) {
  Dispatch made{command, {}};
  std::set<std::pair<StorageClass, uint32_t>> seen;
  for (const Argument& argument : program_.arguments_of(program_.commands()[command])) {
    const BufferRef& ref = argument.buffer;
    if (argument.kind != Argument::Kind::Buffer || ref.storage == StorageClass::Fixed ||
        !seen.emplace(ref.storage, ref.index).second) {
      continue;
    }
    if (ref.storage == StorageClass::Transient) {
      const ProgramView::Transient row = program_.transient(ref.index);
      const std::string name(row.name);
      write({name, "transient", fmt::format("{:04}-{}", command, name), 0, ""},
            slab.subspan(row.offset, row.length), std::nullopt, made.files);
      continue;
    }
    const std::string_view name = program_.binding(ref.index).name;
    const auto binding = std::ranges::find(bindings_, name, &Binding::name);
    if (binding == bindings_.end()) continue;
    write({binding->name, "binding", fmt::format("{:04}-{}", command, name), 0, ""}, binding->bytes,
          binding->type, made.files);
  }
  dispatches_.push_back(std::move(made));
}

FileResult<void> StorageDump::finish(bool complete) {
  if (failed_) return std::unexpected(*failed_);
  Json document;
  document["schema"] = kDumpSchema;
  document["program"] = program_.symbol();
  document["complete"] = complete;
  Json& dispatches = document["dispatches"] = Json::array();
  for (const Dispatch& dispatch : dispatches_) {
    const DispatchCommand& command = program_.commands()[dispatch.command];
    Json row = {{"command", dispatch.command}, {"kernel", program_.entry(command.slot).symbol}};
    if (command.indirect == DispatchCommand::kDirect) row["workgroups"] = command.count;
    Json& storage = row["storage"] = Json::array();
    for (const File& file : dispatch.files) {
      Json one = {
          {"name", file.name}, {"kind", file.kind}, {"file", file.file}, {"bytes", file.bytes}};
      if (!file.type.empty()) one["type"] = file.type;
      storage.push_back(std::move(one));
    }
    dispatches.push_back(std::move(row));
  }
  return write_file((std::filesystem::path(folder_) / "index.json").string(),
                    document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace loom
