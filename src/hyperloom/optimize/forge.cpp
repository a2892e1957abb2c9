#include "hyperloom/optimize/search_backend.h"

namespace hyperloom::optimize {
namespace {

class Forge final : public Backend {
 public:
  std::string name() const override { return "forge"; }
  Json configuration(const task::Context&) const override {
    return {
        {"exhaustive_up_to", 96U}, {"most", 400U}, {"patience", 64U}, {"pairs", 3U}, {"seeds", 2U}};
  }
  Outcome optimize(Attempt& attempt) override { return search_attempt(attempt, search_sampled); }
};

}  // namespace

std::unique_ptr<Backend> make_forge() { return std::make_unique<Forge>(); }

}  // namespace hyperloom::optimize
