#include "hyperloom/optimize/search_backend.h"

namespace hyperloom::optimize {
namespace {

class Geak final : public Backend {
 public:
  std::string name() const override { return "geak"; }
  Json configuration(const task::Context&) const override {
    return {{"restarts", 2U}, {"most", 400U}, {"patience", 64U}, {"pairs", 3U}, {"seeds", 2U}};
  }
  Outcome optimize(Attempt& attempt) override { return search_attempt(attempt, search_descent); }
};

}  // namespace

std::unique_ptr<Backend> make_geak() { return std::make_unique<Geak>(); }

}  // namespace hyperloom::optimize
