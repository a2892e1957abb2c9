#include "hyperloom/coordinator/options.h"

#include <gtest/gtest.h>

namespace hyperloom::coordinator {
namespace {

TEST(Options, SurviveTheManifest) {
  Options options;
  options.budget_seconds = 90;
  options.kernel = "dense";
  options.auto_kernel_opt = false;
  options.allow_empty_kernel_shape = true;
  options.seed = 17;
  const Options back = options_from(to_json(options)).value();
  EXPECT_EQ(to_json(back), to_json(options));
  EXPECT_EQ(to_json(options_from(Json::object()).value()), to_json(Options()));
}

TEST(Options, AFieldOfAnotherTypeIsNamed) {
  for (const Json& bad : {Json{{"seed", -1}}, Json{{"kernel", 3}}, Json{{"auto_kernel_opt", "no"}},
                          Json{{"budget_seconds", "2h"}}, Json{{"kernel_cap_seconds", -1}}}) {
    const auto options = options_from(bad);
    ASSERT_FALSE(options.has_value()) << bad;
    EXPECT_EQ(options.error().error_class, "invalid_options");
    EXPECT_NE(options.error().message.find(bad.begin().key()), std::string::npos);
  }
}

TEST(Options, DurationsHaveUnits) {
  EXPECT_EQ(parse_duration("90").value(), 90);
  EXPECT_EQ(parse_duration("1.5m").value(), 90);
  EXPECT_EQ(parse_duration("2h").value(), 7200);
  for (const char* bad : {"", "x", "5 m", "5d", "-1s", "0", "nan", "inf", "1e999"}) {
    EXPECT_FALSE(parse_duration(bad).has_value()) << bad;
  }
}

}  // namespace
}  // namespace hyperloom::coordinator
