// Early exits, calls, promises and configuration.
#include "cases.h"

namespace loom::ops {
namespace {

constexpr LoomDispatchShape kShape = {{2, 1, 1}, {4, 1, 1}};

Case control(std::string name, const std::string& body, const std::string& before = "") {
  return {std::move(name),
          kernel_text(2, R"(  %w0 = buffer.view %b0[%base] : buffer -> view<8xi32>
  %w1 = buffer.view %b1[%base] : buffer -> view<8xi32>
  %v = view.load %w0[%i] : view<8xi32> -> i32
)" + body,
                      kShape, before),
          {noise(ScalarKind::I32, 8, 1), zeros(ScalarKind::I32, 8)},
          kShape,
          {}};
}

}  // namespace

std::vector<Case> control_cases() {
  return {
      control("exit", R"(  %three = index.constant 3 : index
  %late = index.cmp sgt, %i, %three : index
  kernel.exit %late : i1 {
    %minus = scalar.constant -1 : i32
    view.store %minus, %w1[%i] : i32, view<8xi32>
  }
  view.store %v, %w1[%i] : i32, view<8xi32>
)"),
      control("promises", R"(  %same = scalar.assume %v [range(%v, -2147483648, 2147483647)] : i32
  %at = index.assume %i [range(%i, 0, 7)] : index
  view.store %same, %w1[%at] : i32, view<8xi32>
)"),
      control("calls and configuration", R"(  %k = config.get @limit : i32
  %twice = func.call @twice(%v) : (i32) -> (i32)
  %once = func.call inline @twice(%k) : (i32) -> (i32)
  %sum = scalar.addi %twice, %once : i32
  view.store %sum, %w1[%i] : i32, view<8xi32>
)",
              R"(config.def @limit = 21 : i32
func.def @twice(%x: i32) -> (i32) {
  %r = scalar.addi %x, %x : i32
  func.return %r : i32
}
)"),
      control("poison that nothing uses", R"(  %p = scalar.poison : i32
  %q = vector.poison : vector<4xi32>
  view.store %v, %w1[%i] : i32, view<8xi32>
)"),
  };
}

}  // namespace loom::ops
