#include "hyperloom/optimize/space.h"

namespace hyperloom::optimize {

std::vector<unsigned> Space::sizes() const {
  std::vector<unsigned> result;
  for (const Axis& axis : axes()) result.push_back(static_cast<unsigned>(axis.options.size()));
  return result;
}

std::string Space::words(const Point& point) const {
  std::string result;
  for (size_t i = 0; i < point.size(); ++i) {
    if (point[i] == 0) continue;
    if (!result.empty()) result += ", ";
    result += axes()[i].name + " = " + axes()[i].options[point[i]];
  }
  return result.empty() ? "as it is" : result;
}

}  // namespace hyperloom::optimize
