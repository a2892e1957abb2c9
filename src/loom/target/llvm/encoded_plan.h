// What vector.decode and vector.encode need from code generation: the cases that the language
// settles (dialect/eval_vector_code.cpp computes them), and how their payloads lie.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "loom/dialect/schema.h"

namespace loom {

struct CodePlan {
  std::string_view family;    // of complete records; empty for a payload with auxiliaries
  OperandSchema schema;       // of the latter
  bool one_per_lane = false;  // each lane of the payload holds one code
};
// Nothing where the language leaves the numbers open or the schema is no constant.
std::optional<CodePlan> plan_code(const Module& module, OpId op);

// The auxiliary of that name; invalid when there is none.
ValueId auxiliary_of(const Module& module, OpId op, std::string_view name);
// The second auxiliary of an affine kind; empty when it has none.
std::string_view second_auxiliary(std::string_view affine);

// A run of bytes of a record that are used together.
struct RecordField {
  uint32_t offset;
  uint32_t bytes;
};
// All fields of a record family, in their order and without gaps.
std::span<const RecordField> record_fields(std::string_view family);

}  // namespace loom
