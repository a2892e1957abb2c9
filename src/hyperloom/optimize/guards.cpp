#include "hyperloom/optimize/guards.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hyperloom/core/resources.h"
#include "hyperloom/optimize/task_key.h"

namespace hyperloom::optimize {
namespace {

namespace fs = std::filesystem;

struct Facts {
  const Json& row;
  const GuardOptions& options;
  const Environment& environment;
};

bool is_below(const fs::path& path, const fs::path& root) {
  const fs::path inside = path.lexically_relative(root);
  return !inside.empty() && *inside.begin() != "..";
}

fs::path resolved(const fs::path& path) {
  std::error_code error;
  const fs::path result = fs::weakly_canonical(path, error);
  return error ? path.lexically_normal() : result;
}

// A relative source is one of the first root's.
fs::path source_path(const Facts& facts) {
  const fs::path source = source_of(facts.row);
  if (source.is_absolute() || facts.options.trusted_roots.empty()) return source;
  return facts.options.trusted_roots.front() / source;
}

bool is_trusted(const Facts& facts) {
  const fs::path source = resolved(source_path(facts));
  return std::ranges::any_of(facts.options.trusted_roots, [&](const fs::path& root) {
    return is_below(source, resolved(root));
  });
}

bool has_shapes(const Json& row) {
  const Json& shapes = value_of(row, "shapes");
  const Json& input = value_of(row, "input_shapes");
  return (shapes.is_array() && !shapes.empty()) || (input.is_array() && !input.empty());
}

bool trusts_shapes(const Json& row) {
  static constexpr std::array kTrusted = {"", "torch_trace", "capture_backfill", "tuning_csv",
                                          "native_trace"};
  return std::ranges::find(kTrusted, text_of(row, "shape_provenance")) != kTrusted.end();
}

struct Guard {
  const char* error_class;
  const char* message;
  bool skipped_in_dry_run;
  bool (*fails)(const Facts&);
};

constexpr Guard kGuards[] = {
    {"missing_kernel_id", "the candidate has no kernel id", false,
     [](const Facts& f) { return text_of(f.row, "kernel_id").empty(); }},
    {"non_reusable_kernel", "no backend can change this kernel", false,
     [](const Facts& f) { return !flag_of(f.row, "reusable_native_kernel"); }},
    {"missing_native_source", "its source is not known", false,
     [](const Facts& f) { return source_of(f.row).empty(); }},
    {"runtime_generated_kernel", "its source is made anew by every run", false,
     [](const Facts& f) { return flag_of(f.row, "runtime_generated_kernel"); }},
    {"unstable_source_path", "its source is not below a trusted root", false,
     [](const Facts& f) { return !is_trusted(f); }},
    {"empty_kernel_shape", "its shapes are not known", true,
     [](const Facts& f) { return !f.options.allow_empty_kernel_shape && !has_shapes(f.row); }},
    {"untrusted_shape_provenance", "its shapes are derived, not seen", true,
     [](const Facts& f) { return !trusts_shapes(f.row); }},
    {"missing_source_path", "its source file does not exist", true,
     [](const Facts& f) {
       std::error_code error;
       return !fs::is_regular_file(source_path(f), error);
     }},
    {"missing_workspace_path", "the workspace folder does not exist", true,
     [](const Facts& f) {
       std::error_code error;
       return !fs::is_directory(f.options.workspace, error);
     }},
    {"kernel_agent_root_missing", "the kernel tools' folder does not exist", true,
     [](const Facts& f) { return !kernel_agent_root(f.environment); }},
};

// "k" or "kn" and a number without leading zeros; "" for other ids.
std::string number_of_id(const std::string& id) {
  size_t at = 0;
  if (id.starts_with("kn")) {
    at = 2;
  } else if (id.starts_with("k")) {
    at = 1;
  } else {
    return "";
  }
  const bool digits = at < id.size() && std::all_of(
                                            id.begin() + static_cast<ptrdiff_t>(at), id.end(),
                                            [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) return "";
  const size_t first = id.find_first_not_of('0', at);
  return first == std::string::npos ? "0" : id.substr(first);
}

const Json& rows_of(const Json& candidates) {
  const Json& hot = value_of(candidates, "hot_kernels");
  return hot.is_array() ? hot : value_of(candidates, "hot_kernels_top15");
}

}  // namespace

std::optional<Error> check_candidate(const Json& row, const GuardOptions& options,
                                     const Environment& environment) {
  const Facts facts{row, options, environment};
  for (const Guard& guard : kGuards) {
    if (options.dry_run && guard.skipped_in_dry_run) continue;
    if (!guard.fails(facts)) continue;
    const std::string kernel = text_of(row, "kernel_id");
    return Error{guard.error_class, (kernel.empty() ? "" : kernel + ": ") + guard.message, ""};
  }
  return std::nullopt;
}

int64_t devices_of(const Json& row, const Environment& environment) {
  const int64_t asked = environment.integer("KERNEL_AGENT_NUM_GPUS");
  if (asked > 0) return asked;
  const Json& recommended = value_of(row, "num_gpus_recommended");
  return recommended.is_number_integer() ? std::max<int64_t>(1, recommended.get<int64_t>()) : 1;
}

Result<void> check_devices(const Json& row, const Environment& environment) {
  const int64_t devices = devices_of(row, environment);
  if (devices == 1) return {};
  return fail("not_available",
              fmt::format("{} devices are asked for, an attempt runs on one", devices),
              "unset KERNEL_AGENT_NUM_GPUS");
}

const Json* resolve_kernel(const Json& candidates, const std::string& requested) {
  const Json& rows = rows_of(candidates);
  if (!rows.is_array()) return nullptr;
  const auto only = [&](const auto& matches) -> const Json* {
    const Json* found = nullptr;
    for (const Json& row : rows) {
      if (!matches(row)) continue;
      if (found != nullptr) return nullptr;
      found = &row;
    }
    return found;
  };
  if (const Json* row = only([&](const Json& r) { return text_of(r, "kernel_id") == requested; })) {
    return row;
  }
  if (const Json* row = only([&](const Json& r) { return text_of(r, "name") == requested; })) {
    return row;
  }
  const std::string number = number_of_id(requested);
  if (number.empty()) return nullptr;
  return only([&](const Json& r) { return number_of_id(text_of(r, "kernel_id")) == number; });
}

std::optional<Json> early_exit(const Json& candidates, const std::string& kernel_id) {
  const Json* row = resolve_kernel(candidates, kernel_id);
  if (row == nullptr) {
    Json known = Json::array();
    if (const Json& rows = rows_of(candidates); rows.is_array()) {
      for (const Json& item : rows) known.push_back(text_of(item, "kernel_id"));
    }
    return Json{{"status", "skipped"},
                {"reason", "kernel_id_not_in_candidates"},
                {"error_class", "invalid_kernel_id"},
                {"kernel_id", kernel_id},
                {"message", "no candidate is called '" + kernel_id + "'"},
                {"known_kernel_ids", known}};
  }
  if (flag_of(*row, "reusable_native_kernel") && !source_of(*row).empty()) return std::nullopt;
  return Json{{"status", "skipped"},
              {"reason", "non_routable_candidate"},
              {"error_class", "non_routable_candidate"},
              {"kernel_id", text_of(*row, "kernel_id")},
              {"source_file", source_of(*row)},
              {"message", text_of(*row, "kernel_id") + " has no source that a backend can change"},
              {"proposal", {{"decision", "REVERT"}, {"reasons", {"non_routable_candidate"}}}}};
}

}  // namespace hyperloom::optimize
