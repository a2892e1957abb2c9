#include "loom/target/llvm/dots.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <array>
#include <utility>
#include <vector>

#include "loom/target/llvm/lanes.h"

namespace loom {
namespace {

// An instruction for 4, 8 and 16 sums.
using Widths = std::array<llvm::Intrinsic::ID, 3>;
constexpr Widths kPairs = {llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128,
                           llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256,
                           llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512};
constexpr Widths kQuads = {llvm::Intrinsic::x86_avx512_vpdpbusd_128,
                           llvm::Intrinsic::x86_avx512_vpdpbusd_256,
                           llvm::Intrinsic::x86_avx512_vpdpbusd_512};

// The instruction on as many lanes at a time as it takes. Its factors have lanes of `element`, as
// many as four bytes hold for each sum.
llvm::Value* in_parts(llvm::IRBuilderBase& builder, const Widths& instruction, bool wide,
                      llvm::Type* element, llvm::Value* a, llvm::Value* b, llvm::Value* sums) {
  const unsigned lanes = lanes_of(sums);
  const unsigned group = lanes_of(a) / lanes;
  const unsigned factors = 32 / element->getScalarSizeInBits();
  std::vector<llvm::Value*> parts;
  for (unsigned first = 0; first < lanes;) {
    unsigned size = 0;
    while (size < (wide ? 2u : 1u) && (8u << size) <= lanes - first) ++size;
    const unsigned taken = 4u << size;
    llvm::Type* const type = llvm::FixedVectorType::get(element, taken * factors);
    const auto part = [&](llvm::Value* from) {
      return builder.CreateBitCast(take_lanes(builder, from, first * group, taken * group), type);
    };
    llvm::Value* const terms[] = {take_lanes(builder, sums, first, taken), part(a), part(b)};
    parts.push_back(builder.CreateIntrinsic(instruction[size], {}, terms));
    first += taken;
  }
  return join_lanes(builder, parts);
}

}  // namespace

llvm::Value* dot_pairs_bf16(llvm::IRBuilderBase& builder, const DotTarget& target, llvm::Value* a,
                            llvm::Value* b, llvm::Value* sums) {
  return in_parts(builder, kPairs, target.wide, builder.getBFloatTy(), a, b, sums);
}

llvm::Value* dot_quads(llvm::IRBuilderBase& builder, const DotTarget& target, bool a_signed,
                       bool b_signed, llvm::Value* a, llvm::Value* b, llvm::Value* sums) {
  if (a_signed && !b_signed) {
    std::swap(a, b);
    std::swap(a_signed, b_signed);
  }
  const auto multiply = [&](llvm::Value* bytes, llvm::Value* numbers, llvm::Value* to) {
    return in_parts(builder, kQuads, target.wide, builder.getInt32Ty(), bytes, numbers, to);
  };
  // The instruction takes unsigned times signed bytes; the other bytes are 128 away from that.
  const auto bytes = [&](uint64_t value) { return llvm::ConstantInt::get(a->getType(), value); };
  if (a_signed) {
    llvm::Value* const none = llvm::Constant::getNullValue(sums->getType());
    llvm::Value* const surplus = multiply(bytes(128), b, none);
    return multiply(builder.CreateXor(a, bytes(128)), b, builder.CreateSub(sums, surplus));
  }
  if (!b_signed) {
    llvm::Value* const half = multiply(a, bytes(64), sums);
    return multiply(a, builder.CreateXor(b, bytes(128)), multiply(a, bytes(64), half));
  }
  return multiply(a, b, sums);
}

}  // namespace loom
