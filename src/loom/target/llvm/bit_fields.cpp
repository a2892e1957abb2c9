#include "loom/target/llvm/bit_fields.h"

#include <llvm/IR/IRBuilder.h>

#include <algorithm>
#include <vector>

#include "loom/target/llvm/lanes.h"

namespace loom {
namespace {

// LLVM takes vectors of odd integers apart, so fields below a byte go by shifts of whole bytes.
bool divides_byte(unsigned width) { return width == 2 || width == 4; }

unsigned bits_of(llvm::Type* type) {
  return static_cast<unsigned>(type->getPrimitiveSizeInBits().getFixedValue());
}

// The lanes as numbers of `width` bits at the bottom of i8 or i16 lanes.
llvm::Value* extend(llvm::IRBuilderBase& b, llvm::Value* fields, unsigned width, bool is_signed,
                    llvm::Type* element) {
  auto* const from = llvm::cast<llvm::FixedVectorType>(fields->getType());
  if (is_signed) {
    const unsigned unused = from->getScalarSizeInBits() - width;
    if (from->getScalarSizeInBits() == 8) {  // bytes have no shifts of their own
      const uint64_t sign = uint64_t{1} << (width - 1);
      fields = b.CreateSub(b.CreateXor(fields, sign), llvm::ConstantInt::get(from, sign));
    } else if (unused != 0) {
      fields = b.CreateAShr(b.CreateShl(fields, unused), unused);
    }
  }
  llvm::Type* const to = llvm::FixedVectorType::get(element, from->getNumElements());
  if (element->getScalarSizeInBits() < from->getScalarSizeInBits()) {
    return b.CreateTrunc(fields, to);
  }
  return is_signed ? b.CreateSExt(fields, to) : b.CreateZExt(fields, to);
}

}  // namespace

llvm::Value* unpack_fields(llvm::IRBuilderBase& builder, llvm::Value* from, unsigned width,
                           unsigned count, bool is_signed, llvm::Type* element) {
  auto& b = builder;
  llvm::Type* const wide = llvm::FixedVectorType::get(element, count);
  const unsigned bits = bits_of(from->getType());
  if (width == 1 || width >= 8 || bits % 8 != 0) {
    llvm::Value* const fields =
        b.CreateBitCast(from, llvm::FixedVectorType::get(b.getIntNTy(width), count));
    return is_signed ? b.CreateSExtOrTrunc(fields, wide) : b.CreateZExtOrTrunc(fields, wide);
  }
  llvm::Value* const bytes =
      b.CreateBitCast(from, llvm::FixedVectorType::get(b.getInt8Ty(), bits / 8));
  if (divides_byte(width)) {
    const unsigned in_byte = 8 / width;
    std::vector<llvm::Value*> parts;
    for (unsigned k = 0; k < in_byte; ++k) {
      llvm::Value* const shifted = k == 0 ? bytes : b.CreateLShr(bytes, uint64_t{k} * width);
      parts.push_back(k + 1 == in_byte ? shifted : b.CreateAnd(shifted, (1u << width) - 1));
    }
    llvm::Value* const fields = pick_lanes(b, join_lanes(b, parts), count, [&](unsigned i) {
      return uint64_t{i % in_byte} * (bits / 8) + i / in_byte;
    });
    return extend(b, fields, width, is_signed, element);
  }
  // Each field lies in two neighbouring bytes.
  llvm::Value* const pairs = pick_lanes(b, bytes, 2 * count, [&](unsigned i) {
    return std::min(uint64_t{i / 2} * width / 8 + i % 2, uint64_t{bits} / 8 - 1);
  });
  std::vector<llvm::Constant*> shifts;
  shifts.reserve(count);
  for (unsigned i = 0; i < count; ++i) shifts.push_back(b.getInt16((i * width % 8) & 0xff));
  llvm::Value* const fields =
      b.CreateLShr(b.CreateBitCast(pairs, llvm::FixedVectorType::get(b.getInt16Ty(), count)),
                   llvm::ConstantVector::get(shifts));
  return extend(b, b.CreateAnd(fields, (1u << width) - 1), width, is_signed, element);
}

llvm::Value* pack_fields(llvm::IRBuilderBase& builder, llvm::Value* from, unsigned width,
                         llvm::Type* to) {
  auto& b = builder;
  const unsigned count = lanes_of(from);
  if (!divides_byte(width) || bits_of(to) % 8 != 0) {
    llvm::Type* const narrow = llvm::FixedVectorType::get(b.getIntNTy(width), count);
    return b.CreateBitCast(b.CreateZExtOrTrunc(from, narrow), to);
  }
  const unsigned in_byte = 8 / width;
  llvm::Type* const bytes_type = llvm::FixedVectorType::get(b.getInt8Ty(), count);
  llvm::Value* const fields = b.CreateAnd(b.CreateZExtOrTrunc(from, bytes_type), (1u << width) - 1);
  llvm::Value* bytes = nullptr;
  for (unsigned k = 0; k < in_byte; ++k) {
    llvm::Value* const part = pick_lanes(b, fields, count / in_byte,
                                         [&](unsigned i) { return uint64_t{i} * in_byte + k; });
    bytes = bytes == nullptr ? part : b.CreateOr(bytes, b.CreateShl(part, uint64_t{k} * width));
  }
  return b.CreateBitCast(bytes, to);
}

}  // namespace loom
