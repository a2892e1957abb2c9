#include "loom/check/arrays.h"

#include "loom/base/check.h"

namespace loom::check {
namespace {

ElementType without_sign(ElementType element) {
  switch (element) {
    case ElementType::U8:
      return ElementType::I8;
    case ElementType::U16:
      return ElementType::I16;
    case ElementType::U32:
      return ElementType::I32;
    case ElementType::U64:
      return ElementType::I64;
    default:
      return element;
  }
}

}  // namespace

ElementType element_type(ScalarKind kind) {
  // Addresses take 64 bits in storage.
  if (is_address(kind)) return ElementType::I64;
  const auto element = element_from_name(scalar_name(kind));
  LOOM_CHECK(element.has_value(), "every scalar that is stored has a name in files");
  return *element;
}

ArrayType array_type(const Type& type) {
  ArrayType made{element_type(type.element), {}};
  for (const Dim dim : type.dims) made.dims.push_back(static_cast<uint64_t>(dim.extent()));
  return made;
}

bool same_elements(const ArrayType& file, const ArrayType& type) {
  return file.dims == type.dims && without_sign(file.element) == type.element;
}

}  // namespace loom::check
