// What the functions of an object are made of, read off its machine code.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace loom {

// Counts of instructions as they stand in the code, not as they run.
struct MachineFunction {
  std::string name;  // symbol
  uint64_t bytes = 0;
  uint64_t instructions = 0;             // without padding
  std::map<std::string, uint64_t> mix;   // by what they do; they add up to `instructions`
  std::map<uint32_t, uint64_t> vectors;  // that compute on vectors, by bits of the widest register
  std::map<uint32_t, uint64_t> loads;    // by bytes of one access
  std::map<uint32_t, uint64_t> stores;
};

// The functions of an x86-64 ELF object, in the order of their addresses. Nothing, and why, when it
// is no such object or holds bytes that are no instructions.
std::optional<std::vector<MachineFunction>> read_machine_code(std::string_view object,
                                                              std::string& error);

}  // namespace loom
