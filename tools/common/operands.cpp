#include "common/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "loom/base/check.h"
#include "loom/runtime/parameters/array_text.h"
#include "loom/runtime/parameters/npy.h"

namespace loom {
namespace {

struct Parts {
  std::string name;
  std::string_view rest;
};

std::expected<Parts, std::string> split_name(std::string_view flag, std::string_view text,
                                             std::string_view form) {
  const size_t equals = text.find('=');
  const size_t start = text.starts_with('%') ? 1 : 0;
  if (equals == std::string_view::npos || equals <= start || equals + 1 == text.size()) {
    return std::unexpected(fmt::format("--{}='{}': expected %name={}", flag, text, form));
  }
  return Parts{std::string(text.substr(start, equals - start)), text.substr(equals + 1)};
}

void include_size(uint64_t& size, const ArrayType& type) {
  size = std::max(size, *type.byte_size());
}

}  // namespace

void OperandFlags::declare(CLI::App& app) {
  const auto add = [&app](const char* name, std::vector<std::string>& values, const char* help) {
    app.add_option(name, values, help)->expected(1)->take_all();
  };
  add("--input", inputs, "fill a binding from a file: %name=[4x8xf32:]x.npy");
  add("--fill", fills, "fill a binding with one value: %name=4x8xf32:1.5");
  add("--output", outputs, "write a binding afterwards: %name=4x8xf32:y.npy");
  add("--print", prints, "print a binding afterwards: %name=4x8xf32");
}

std::expected<Operands, std::string> Operands::parse(const OperandFlags& flags) {
  Operands made;
  for (const std::string& text : flags.inputs) {
    const auto parts = split_name("input", text, "[TYPE:]FILE");
    if (!parts) return std::unexpected(parts.error());
    // What stands before a colon is a type if it reads as one, and part of the file's name if not.
    const size_t colon = parts->rest.find(':');
    Operand operand{parts->name, {}, std::string(parts->rest)};
    if (colon != std::string_view::npos) {
      if (auto type = parse_array_type(parts->rest.substr(0, colon))) {
        operand.type = std::move(*type);
        operand.value = parts->rest.substr(colon + 1);
      }
    }
    made.inputs_.push_back({std::move(operand), {}, {}});
  }
  const auto typed = [](std::string_view flag, std::string_view text, std::string_view form,
                        std::vector<Operand>& out) -> std::expected<void, std::string> {
    const auto parts = split_name(flag, text, form);
    if (!parts) return std::unexpected(parts.error());
    const size_t colon =
        form.find(':') == std::string_view::npos ? parts->rest.size() : parts->rest.find(':');
    if (colon == std::string_view::npos) {
      return std::unexpected(fmt::format("--{}='{}': expected %name={}", flag, text, form));
    }
    auto type = parse_array_type(parts->rest.substr(0, colon));
    if (!type) return std::unexpected(fmt::format("--{}='{}': {}", flag, text, type.error()));
    const size_t value = std::min(colon + 1, parts->rest.size());
    out.push_back({parts->name, std::move(*type), std::string(parts->rest.substr(value))});
    return {};
  };
  const auto all = [&](std::string_view flag, const std::vector<std::string>& texts,
                       std::string_view form,
                       std::vector<Operand>& out) -> std::expected<void, std::string> {
    for (const std::string& text : texts) {
      if (auto added = typed(flag, text, form, out); !added) return added;
    }
    return {};
  };
  auto good = all("fill", flags.fills, "TYPE:VALUE", made.fills_);
  if (good) good = all("output", flags.outputs, "TYPE:FILE", made.outputs_);
  if (good) good = all("print", flags.prints, "TYPE", made.prints_);
  if (!good) return std::unexpected(good.error());
  for (const Operand& fill : made.fills_) {
    std::vector<std::byte> element(element_size(fill.type->element));
    if (auto stored = store_literal(fill.type->element, fill.value, element.data()); !stored) {
      return std::unexpected(fmt::format("--fill=%{}={}:{}: {}", fill.name, to_string(*fill.type),
                                         fill.value, stored.error()));
    }
  }
  for (const Input& input : made.inputs_) made.storage(input.operand.name);
  for (const auto* list : {&made.fills_, &made.outputs_, &made.prints_}) {
    for (const Operand& operand : *list) {
      include_size(made.storage(operand.name).size, *operand.type);
    }
  }
  return made;
}

Operands::Storage& Operands::storage(const std::string& name) {
  const auto found = std::ranges::find(storages_, name, &Storage::name);
  if (found != storages_.end()) return *found;
  storages_.push_back({name, 0, {}});
  return storages_.back();
}

std::span<std::byte> Operands::bytes_of(const Operand& operand) const {
  const auto found = std::ranges::find(storages_, operand.name, &Storage::name);
  LOOM_CHECK(found != storages_.end(), "every operand has storage");
  return found->buffer.bytes().first(static_cast<size_t>(*operand.type->byte_size()));
}

void Operands::check(const ProgramView& program, Diagnostics& diagnostics) const {
  std::string known;
  std::set<std::string_view> names;
  for (size_t i = 0; i < program.binding_count(); ++i) {
    const ProgramView::Binding binding = program.binding(i);
    names.insert(binding.name);
    known += fmt::format("{}%{}", known.empty() ? "" : ", ", binding.name);
  }
  for (const Storage& storage : storages_) {
    if (names.contains(storage.name)) continue;
    diagnostics.emit(Diag::RunBindingUnknown, {},
                     {{"binding", "%" + storage.name},
                      {"root", std::string(program.symbol())},
                      {"known", known.empty() ? "none" : known}});
  }
  for (size_t i = 0; i < program.binding_count(); ++i) {
    const ProgramView::Binding binding = program.binding(i);
    if (std::ranges::find(storages_, binding.name, &Storage::name) != storages_.end()) continue;
    diagnostics.emit(
        Diag::RunBindingMissing, {},
        {{"name", std::string(binding.name)}, {"root", std::string(program.symbol())}});
  }
}

void Operands::load(Tool& tool) {
  for (Input& input : inputs_) load(input, tool);
}

void Operands::load(Input& input, Tool& tool) {
  Operand& operand = input.operand;
  tool.note_input(operand.value);
  auto mapped = MappedFile::open(operand.value);
  if (!mapped) {
    tool.report_read(mapped.error());
    return;
  }
  input.mapped = std::move(*mapped);
  input.bytes = input.mapped.bytes();
  std::string found = fmt::format("{} bytes", input.bytes.size());
  if (is_npy(input.bytes) || !operand.type) {
    auto array = read_npy(input.bytes);
    if (!array) {
      tool.diagnostics().emit(Diag::RunArrayFile, {},
                              {{"file", operand.value}, {"detail", array.error().text()}});
      return;
    }
    found = to_string(array->type);
    input.bytes = array->bytes;
    if (!operand.type) operand.type = array->type;
    if (*operand.type == array->type) found.clear();
  } else if (input.bytes.size() == *operand.type->byte_size()) {
    found.clear();
  }
  if (!found.empty()) {
    tool.diagnostics().emit(
        Diag::RunArrayType, {},
        {{"file", operand.value}, {"found", found}, {"expected", to_string(*operand.type)}});
    return;
  }
  include_size(storage(operand.name).size, *operand.type);
}

void Operands::allocate(Device& device, Diagnostics& diagnostics) {
  for (Storage& storage : storages_) {
    auto buffer = device.allocate(storage.size);
    if (!buffer) {
      diagnostics.emit(
          Diag::RunOutOfMemory, {},
          {{"bytes", std::to_string(storage.size)}, {"what", "binding '" + storage.name + "'"}});
      return;
    }
    storage.buffer = std::move(*buffer);
  }
  for (const Operand& fill : fills_) {
    const auto filled = fill_literal(fill.type->element, fill.value, bytes_of(fill));
    LOOM_CHECK(filled.has_value(), "the literal was tried before");
  }
  for (const Input& input : inputs_) {
    if (input.bytes.empty()) continue;
    std::memcpy(bytes_of(input.operand).data(), input.bytes.data(), input.bytes.size());
  }
}

void Operands::bind(Invocation& invocation, Diagnostics& diagnostics) const {
  for (const Storage& storage : storages_) {
    invocation.bind(storage.name, storage.buffer.bytes(), diagnostics);
  }
}

std::vector<InterpStorage> Operands::named_storage() const {
  std::vector<InterpStorage> all;
  for (const Storage& storage : storages_) all.push_back({storage.name, storage.buffer.bytes()});
  return all;
}

std::optional<ArrayType> Operands::type_of(const std::string& name) const {
  std::vector<const Operand*> all;
  for (const Input& input : inputs_) all.push_back(&input.operand);
  for (const auto* const list : {&fills_, &outputs_, &prints_}) {
    for (const Operand& operand : *list) all.push_back(&operand);
  }
  for (const Operand* const operand : all) {
    if (operand->name == name && operand->type) return operand->type;
  }
  return std::nullopt;
}

std::string Operands::print() const {
  std::string text;
  for (const Operand& shown : prints_) {
    text += fmt::format("%{} : {}\n{}\n", shown.name, to_string(*shown.type),
                        format_array(*shown.type, bytes_of(shown)));
  }
  return text;
}

void Operands::write(Tool& tool) const {
  OutputSet files;
  for (const Operand& output : outputs_) {
    const std::span<const std::byte> bytes = bytes_of(output);
    FileResult<void> added;
    if (output.value.ends_with(".npy")) {
      const ParameterSource array{"", *output.type, bytes};
      const auto file = build_parameter_file(FileFormat::Npy, output.value, std::span(&array, 1),
                                             tool.diagnostics());
      if (!file) return;
      added = files.add(output.value, *file);
    } else {
      added = files.add(output.value, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    if (!added) return tool.report_write(added.error());
  }
  if (const auto committed = files.commit(); !committed) tool.report_write(committed.error());
}

}  // namespace loom
