// The kinds of operations: one enumerator per row of the dialect tables.
#pragma once

#include <cstdint>
#include <iterator>

#include "loom/ir/module.h"

namespace loom {

enum class OpKind : uint16_t {
#define LOOM_OP(name, ...) name,
#include "loom/dialect/ops.def"
};

inline constexpr OpKind kAllOpKinds[] = {
#define LOOM_OP(name, ...) OpKind::name,
#include "loom/dialect/ops.def"
};
inline constexpr size_t kOpKindCount = std::size(kAllOpKinds);

// Enums and flag sets that attributes name.
enum class EnumId : uint8_t {
#define LOOM_ENUM(name, text, cases) name,
#include "loom/dialect/enums.def"
  None = 255,
};
enum class FlagSetId : uint8_t {
#define LOOM_FLAGS(name, flags, all) name,
#include "loom/dialect/flags.def"
  None = 255,
};

// Case numbers of the enums that code switches on; a test holds them to enums.def.
enum class CmpIPredicate : uint8_t { Eq, Ne, Slt, Sle, Sgt, Sge, Ult, Ule, Ugt, Uge };
enum class CmpFPredicate : uint8_t {
  Oeq,
  Ogt,
  Oge,
  Olt,
  Ole,
  One,
  Ord,
  Ueq,
  Ugt,
  Uge,
  Ult,
  Ule,
  Une,
  Uno,
};
enum class GeluForm : uint8_t { Erf, Tanh, Logistic };
enum class MemorySpace : uint8_t {
  Unknown,
  Global,
  Workgroup,
  Private,
  Constant,
  Host,
  Descriptor,
  Generic,
};
enum class Axis : uint8_t { X, Y, Z };
enum class Inlining : uint8_t { Inline, NoInline };

// Bits of FastMath and Overflow flags, in the order of flags.def.
inline constexpr uint64_t kReassoc = 1, kNnan = 2, kNinf = 4, kNsz = 8, kArcp = 16, kContract = 32,
                          kAfn = 64;
inline constexpr uint64_t kNsw = 1, kNuw = 2;
inline constexpr uint64_t kVolatile = 1;

}  // namespace loom
