// The flags that give a program's bindings storage, and read it afterwards:
//
//   --input=%name=[TYPE:]FILE   --fill=%name=TYPE:VALUE
//   --output=%name=TYPE:FILE    --print=%name=TYPE
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "common/cli.h"
#include "loom/api/interpret.h"
#include "loom/command/program_view.h"
#include "loom/runtime/device.h"
#include "loom/runtime/parameters/array_type.h"
#include "loom/runtime/parameters/parameter_file.h"

namespace loom {

struct OperandFlags {
  std::vector<std::string> inputs;
  std::vector<std::string> fills;
  std::vector<std::string> outputs;
  std::vector<std::string> prints;

  void declare(CLI::App& app);
};

// The storage of one run. A binding is as large as the largest type that a flag states for it, and
// zero where nothing fills it; fills come before inputs, so an input may cover a part of a fill.
class Operands {
 public:
  // The error is wrong usage.
  static std::expected<Operands, std::string> parse(const OperandFlags& flags);

  // Reports RUN/011 for a flag that names none of the program's bindings, and RUN/003 for a binding
  // that no flag names.
  void check(const ProgramView& program, Diagnostics& diagnostics) const;
  // Maps the input files. Reports IO/001, RUN/001 and RUN/007.
  void load(Tool& tool);
  // Reports RUN/013 when there is not enough memory.
  void allocate(Device& device, Diagnostics& diagnostics);
  void bind(Invocation& invocation, Diagnostics& diagnostics) const;
  // The bindings by name, once allocated.
  std::vector<InterpStorage> named_storage() const;
  // The first type that a flag states for the binding.
  std::optional<ArrayType> type_of(const std::string& name) const;

  // What --print shows, in its order.
  std::string print() const;
  // Writes all outputs or none: npy arrays, or bare bytes where the file is not called .npy.
  // Reports RUN/008 and IO/002.
  void write(Tool& tool) const;

 private:
  struct Operand {
    std::string name;               // of the binding
    std::optional<ArrayType> type;  // always there but for an input
    std::string value;              // file, or the literal of a fill
  };
  struct Input {
    Operand operand;
    MappedFile mapped;
    std::span<const std::byte> bytes;
  };
  struct Storage {
    std::string name;
    uint64_t size = 0;
    Buffer buffer;
  };

  Storage& storage(const std::string& name);
  std::span<std::byte> bytes_of(const Operand& operand) const;
  void load(Input& input, Tool& tool);

  std::vector<Input> inputs_;
  std::vector<Operand> fills_;
  std::vector<Operand> outputs_;
  std::vector<Operand> prints_;
  std::vector<Storage> storages_;  // in the order in which flags first name them
};

}  // namespace loom
