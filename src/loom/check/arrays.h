// Tensor types as the types of arrays in files.
#pragma once

#include "loom/ir/type.h"
#include "loom/runtime/parameters/array_type.h"

namespace loom::check {

ElementType element_type(ScalarKind kind);
// Of a scalar the array of rank 0. Extents are static.
ArrayType array_type(const Type& type);
// Whether an array of the file has the type; signs do not count, as Loom's integers have none.
bool same_elements(const ArrayType& file, const ArrayType& type);

}  // namespace loom::check
