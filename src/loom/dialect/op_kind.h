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
enum class CombiningKind : uint8_t {
  AddI,
  AddF,
  MulI,
  MulF,
  MinSI,
  MaxSI,
  MinUI,
  MaxUI,
  AndI,
  OrI,
  XorI,
  MinimumF,
  MaximumF,
  MinNumF,
  MaxNumF,
};
enum class AtomicKind : uint8_t {
  XchgI,
  XchgF,
  AddI,
  AddF,
  SubI,
  AndI,
  OrI,
  XorI,
  MinSI,
  MaxSI,
  MinUI,
  MaxUI,
  MinimumF,
  MaximumF,
  MinNumF,
  MaxNumF,
};
enum class Ordering : uint8_t { Relaxed, Acquire, Release, AcqRel, SeqCst };
enum class ClampMode : uint8_t { Ordered, Number, Ieee };
enum class FactorSigns : uint8_t { SS, US, SU, UU };  // Dot4Kind and Dot8Kind
enum class DotF8Kind : uint8_t { Fp8Bf8, Bf8Fp8, Fp8Fp8, Bf8Bf8 };
enum class FragmentRole : uint8_t { Lhs, Rhs, Init, Result };
enum class CacheScope : uint8_t { Cu, Se, Device, System };
enum class CacheTemporal : uint8_t {
  Regular,
  NonTemporal,
  HighTemporal,
  LastUse,
  Writeback,
  NonTemporalRegular,
  RegularNonTemporal,
  NonTemporalHighTemporal,
  NonTemporalWriteback,
  Bypass,
};
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
enum class ShuffleKind : uint8_t { Xor, Up, Down, Index };
enum class ScanDirection : uint8_t { Forward, Reverse };
enum class ScanMode : uint8_t { Inclusive, Exclusive };
enum class AsyncDirection : uint8_t { GlobalToWorkgroup, WorkgroupToGlobal };
enum class SanitizerAccess : uint8_t { Read, Write, ReadWrite };
enum class ParamRange : uint8_t { Linear, Po2 };
enum class NanPolicy : uint8_t { Same, Different };
enum class WriteMode : uint8_t { Always, OnFailure };
enum class WorkUnit : uint8_t { Bytes, Flops };
enum class Axis : uint8_t { X, Y, Z };
enum class Inlining : uint8_t { Inline, NoInline };

// Bits of FastMath and Overflow flags, in the order of flags.def.
inline constexpr uint64_t kReassoc = 1, kNnan = 2, kNinf = 4, kNsz = 8, kArcp = 16, kContract = 32,
                          kAfn = 64;
inline constexpr uint64_t kNsw = 1, kNuw = 2;
inline constexpr uint64_t kVolatile = 1;
inline constexpr uint64_t kNoFtz = 1;
inline constexpr uint64_t kSaturate = 1, kMmaReassoc = 2, kMmaAfn = 4;

}  // namespace loom
