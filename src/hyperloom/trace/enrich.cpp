#include "hyperloom/trace/enrich.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace hyperloom::trace {
namespace {

constexpr std::array<std::string_view, 10> kNames = {"CONC",
                                                     "ISL",
                                                     "OSL",
                                                     "TP",
                                                     "NUM_PROMPTS",
                                                     "NUM_WARMUPS",
                                                     "MAX_MODEL_LEN",
                                                     "RANDOM_RANGE_RATIO",
                                                     "ROCR_VISIBLE_DEVICES",
                                                     "CUDA_VISIBLE_DEVICES"};
constexpr std::array<std::string_view, 7> kPrefixes = {
    "SGLANG_", "VLLM_", "AITER_", "TRITON_", "FLYDSL_", "HIPBLASLT_", "PYTORCH_TUNABLEOP_"};
constexpr std::array<std::string_view, 5> kSecrets = {"KEY", "TOKEN", "SECRET", "PASSWORD",
                                                      "CREDENTIAL"};

bool is_told(const std::string& name) {
  std::string upper = name;
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto holds = [&](std::string_view word) { return upper.find(word) != upper.npos; };
  if (std::ranges::any_of(kSecrets, holds)) return false;
  return std::ranges::find(kNames, std::string_view(name)) != kNames.end() ||
         std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

}  // namespace

Json variables_of_kernels(const Environment& environment) {
  Json told = Json::object();
  for (const auto& [name, value] : environment.all()) {
    if (is_told(name)) told[name] = value;
  }
  return told;
}

void enrich(Json& rows, const Json& best, const Environment& environment,
            const std::filesystem::path& report) {
  Json variables = variables_of_kernels(environment);
  for (const auto& [name, value] : value_of(best, "extra_envs").items()) {
    if (is_told(name)) variables[name] = value;
  }
  const std::string arguments = text_of(best, "extra_server_args");
  for (Json& row : rows) {
    row["env_vars"] = variables;
    if (!arguments.empty()) row["runtime_args"] = arguments;
    row["trace_report_path"] = report.string();
  }
}

}  // namespace hyperloom::trace
