// Where the elements of a view lie, as far as code can be made for it.
#pragma once

#include "loom/ir/module.h"

namespace loom {

enum class ViewLayout : uint8_t {
  Dense,    // row-major; the last axis has stride 1
  Strided,  // every axis has a stride of its own
  Other,    // records, or decided at run time
};
ViewLayout view_layout(const Module& module, const Type& type);

}  // namespace loom
