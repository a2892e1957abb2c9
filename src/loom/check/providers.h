// The named providers that cases refer to: what they ask for, and what the chosen device answers.
//
//   check.requires, check.skip_if   device {name}, device.memory {bytes}, target.feature {name},
//                                   sanitizer {kind}
//   check.expect                    ranking {top}, ulp {most}
//   check.expect.event              sanitizer.report {kind}, trap
//   check.oracle.call               reference.scalar, external {name}
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loom/ir/module.h"

namespace loom::check {

// What is known of the device that samples run on.
struct DeviceTraits {
  std::string name;  // as --device spells it
  uint64_t memory_bytes = 0;
  std::vector<std::string> features;
  bool compiles = false;  // kernels; else they are interpreted
  // What it reports when it happens.
  bool reports_access = false;
  bool reports_race = false;
  bool reports_traps = false;
  std::vector<std::string> oracles;  // external ones, by name
};

// Whether the provider of `check.requires` and `check.skip_if` accepts the options. The error says
// why it cannot tell: an unknown provider, or options that it does not take.
std::expected<bool, std::string> accepts(const Module& module, OpId op, const DeviceTraits& device);

// What `check.expect` compares by.
struct ComparisonRule {
  enum class Kind : uint8_t { Ranking, Ulp };
  Kind kind = Kind::Ranking;
  uint64_t number = 0;
};
std::expected<ComparisonRule, std::string> comparison_rule(const Module& module, OpId op);

enum class Event : uint8_t { Access, Race, Trap };
// The event that `check.expect.event` expects, when the device would report it.
std::expected<Event, std::string> expected_event(const Module& module, OpId op,
                                                 const DeviceTraits& device);

// The external oracle of `check.oracle.call`; empty for the interpreter.
std::expected<std::string, std::string> oracle_name(const Module& module, OpId op,
                                                    const DeviceTraits& device);

}  // namespace loom::check
