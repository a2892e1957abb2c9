// What the tests of the C++ API share.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "loom/api/loom.h"

namespace loom {

inline const std::string kFixtures = LOOM_RUN_FIXTURES;

template <class T>
std::span<std::byte> storage(T& values) {
  return std::as_writable_bytes(std::span(values));
}

// @run adds one twice, by a kernel that only a library defines.
inline const std::string kAddLibrary = R"(kernel.def export("add") @add(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%from: buffer, %to: buffer) {
  %i = kernel.workgroup.id<x> : index
  %base = index.constant 0 : offset
  %in = buffer.view %from[%base] : buffer -> view<4xf32>
  %out = buffer.view %to[%base] : buffer -> view<4xf32>
  %a = view.load %in[%i] : view<4xf32> -> f32
  %b = scalar.constant 1.0 : f32
  %c = scalar.addf %a, %b : f32
  view.store %c, %out[%i] : f32, view<4xf32>
  kernel.return
}
)";
inline const std::string kAddProgram =
    R"(kernel.decl @add(%n: index) launch(%from: buffer, %to: buffer)

command.program.def public @run() launch(%input: buffer, %output: buffer) {
  %four = index.constant 4 : index
  kernel.launch @add[%four](%input, %output) : [index](buffer, buffer)
  kernel.launch @add[%four](%output, %output) : [index](buffer, buffer)
  command.return
}
)";

}  // namespace loom
