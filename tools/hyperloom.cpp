// The optimizer's command line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "common/cli.h"
#include "hyperloom/app/commands.h"
#include "hyperloom/app/opened.h"
#include "hyperloom/app/workload_flags.h"
#include "hyperloom/workload/worker.h"

namespace {

using namespace hyperloom;

constexpr const char* kSummary =
    "Finds out which kernels of a program cost the time, looks for better ones, and keeps only "
    "what\n"
    "is measured to be really better.";
constexpr const char* kFooter =
    "Examples:\n"
    "  hyperloom optimize workload.json --budget=2m\n"
    "  hyperloom optimize model.loom --root=@p --random=%x=1024xf32 --output=%y=1024xf32\n"
    "  hyperloom status\n"
    "  hyperloom report --format=json\n"
    "  hyperloom patch export --output=kept.patch\n"
    "Sessions lie below USER_DATA_PATH; --help-env lists what else is read from the environment.";

struct Flags {
  app::Voice voice;
  std::string diagnostics = "text";
  std::string progress = "auto";
  std::string session;
  std::string report;
  std::string format = "markdown";
  std::string output = "-";
  std::string kind;
  std::string params = "{}";
  std::string budget = "2h";
  bool no_kernel = false;
  bool no_auto = false;
  app::WorkloadFlags workload;
  app::OptimizeRequest optimize;
  // patch apply and revert
  std::string patch_path, target_file, snapshot_dir, repo, backup_root, manifest_path, rebuild;
  bool allow_unknown_target = false;
};

using Action = std::function<int(const Environment&)>;

void add_session(CLI::App& app, Flags& flags) {
  app.add_option("SESSION", flags.session, "session id; the newest one when left out");
}

int usage(const std::string& message) {
  fmt::print(stderr, "hyperloom: usage error: {}; see hyperloom --help\n", message);
  return 2;
}

void declare_optimize(CLI::App& root, Flags& flags, Action& action) {
  CLI::App* app = root.add_subcommand("optimize", "optimize a workload in a new session");
  flags.workload.declare(*app);
  app->add_option("--session", flags.optimize.session_id, "id of the new session");
  app->add_option("--budget", flags.budget, "wall-clock time: seconds, or 90s, 15m, 2h")
      ->capture_default_str();
  app->add_option("--kernel", flags.optimize.options.kernel, "optimize this kernel alone: @k");
  app->add_option("--seed", flags.optimize.options.seed, "of every random choice")
      ->capture_default_str();
  app->add_flag("--no-kernel", flags.no_kernel, "measure the baseline and change nothing");
  app->add_flag("--no-auto-kernel-opt", flags.no_auto,
                "with forge: start no batch of kernels by itself; requests still run");
  app->add_flag("--allow-empty-kernel-shape", flags.optimize.options.allow_empty_kernel_shape,
                "optimize kernels whose shapes were not seen, too");
  app->add_flag("--dry-run", flags.optimize.dry_run, "say what would be done, write nothing");
  app->add_option("--report", flags.optimize.report, "copy of the report: FILE.md or FILE.json");
  app->add_option("--orchestrator", flags.optimize.options.transcript,
                  "replay this transcript, one envelope a line, in place of the scripted policy");
  app->add_option("--record", flags.optimize.options.record, "record measurements in this file");
  app->add_option("--replay", flags.optimize.options.replay,
                  "answer measurements from this file where it has them");
  app->callback([&] {
    action = [&](const Environment& environment) {
      const auto seconds = coordinator::parse_duration(flags.budget);
      if (!seconds) return usage("--budget: " + seconds.error().message);
      flags.optimize.options.budget_seconds = *seconds;
      flags.optimize.options.kernel_enabled = !flags.no_kernel;
      flags.optimize.options.auto_kernel_opt = !flags.no_auto;
      std::string& kernel = flags.optimize.options.kernel;
      if (kernel.starts_with('@')) kernel.erase(0, 1);
      auto description = flags.workload.description();
      if (!description) return app::report_error(description.error(), flags.voice);
      flags.optimize.workload = std::move(*description);
      return app::optimize(environment, flags.optimize, flags.voice);
    };
  });
}

void declare_looks(CLI::App& root, Flags& flags, Action& action) {
  CLI::App* resume =
      root.add_subcommand("resume", "go on with a session that was stopped or killed");
  add_session(*resume, flags);
  resume->add_option("--report", flags.report, "copy of the report: FILE.md or FILE.json");
  resume->callback([&] {
    action = [&](const Environment& environment) {
      return app::resume(environment, flags.session, flags.report, flags.voice);
    };
  });
  CLI::App* status =
      root.add_subcommand("status", "how far a session is, and what is not available");
  add_session(*status, flags);
  status->callback([&] {
    action = [&](const Environment& environment) {
      return app::status(environment, flags.session, flags.voice);
    };
  });
  CLI::App* report = root.add_subcommand("report", "the report of a session");
  add_session(*report, flags);
  report
      ->add_option(
          "--format", flags.format,
          "markdown, json, flags: the kept configuration as flags of loom-run, or workload: a "
          "workload file that binds it")
      ->check(CLI::IsMember({"markdown", "json", "flags", "workload"}))
      ->capture_default_str();
  report->add_option("--output", flags.output, "file to write; - is standard output")
      ->capture_default_str();
  report->callback([&] {
    action = [&](const Environment& environment) {
      return app::show_report(environment, flags.session, flags.format, flags.output, flags.voice);
    };
  });
}

void declare_request(CLI::App& root, Flags& flags, Action& action) {
  CLI::App* app = root.add_subcommand("request", "send one kernel request to a session");
  app->add_option("KIND", flags.kind,
                  "trace_analyze, run_optimization, integrate, apply_patch, run_gemm_tuning, ...")
      ->required();
  app->add_option("--session", flags.session, "session id; the newest one when left out");
  app->add_option("--params", flags.params, "the request's parameters, as a JSON object")
      ->capture_default_str();
  app->callback([&] {
    action = [&](const Environment& environment) {
      const auto params = parse_json(flags.params, "--params");
      if (!params) return usage(params.error().message);
      if (!params->is_object()) return usage("--params is no JSON object");
      return app::request(environment, flags.session, flags.kind, *params, flags.voice);
    };
  });
}

Json patch_options(const Flags& flags) {
  Json options = Json::object();
  const auto set = [&](const char* name, const std::string& value) {
    if (!value.empty()) options[name] = value;
  };
  set("patch_path", flags.patch_path);
  set("target_file", flags.target_file);
  set("snapshot_dir", flags.snapshot_dir);
  set("kernel_repo", flags.repo);
  set("backup_root", flags.backup_root);
  set("manifest_path", flags.manifest_path);
  set("rebuild_command", flags.rebuild);
  if (flags.allow_unknown_target) options["allow_unknown_target"] = true;
  return options;
}

void declare_patch(CLI::App& root, Flags& flags, Action& action) {
  CLI::App* patch = root.add_subcommand("patch", "the changes that were kept, and single patches");
  patch->require_subcommand(1);
  CLI::App* exported = patch->add_subcommand("export", "what a session kept, as one unified diff");
  add_session(*exported, flags);
  exported->add_option("--output", flags.output, "file to write; - is standard output")
      ->capture_default_str();
  exported->callback([&] {
    action = [&](const Environment& environment) {
      return app::patch_export(environment, flags.session, flags.output, flags.voice);
    };
  });
  CLI::App* undo = patch->add_subcommand("undo", "take back everything that a session kept");
  add_session(*undo, flags);
  undo->callback([&] {
    action = [&](const Environment& environment) {
      return app::patch_undo(environment, flags.session, flags.voice);
    };
  });
  CLI::App* apply =
      patch->add_subcommand("apply", "put one patch into a source tree, with a journal");
  apply->add_option("--patch", flags.patch_path, "the new content of the file, or a unified diff")
      ->required();
  apply->add_option("--target-file", flags.target_file, "the file that is replaced");
  apply->add_option("--snapshot-dir", flags.snapshot_dir, "contents of the files of a diff");
  apply->add_option("--repo", flags.repo, "root of the tree that a diff is of");
  apply->add_option("--backup-root", flags.backup_root, "folder for backups and manifest")
      ->required();
  apply->add_option("--rebuild", flags.rebuild, "command that rebuilds the tree");
  apply->add_flag("--allow-unknown-target", flags.allow_unknown_target,
                  "permit a target outside the known roots");
  apply->callback([&] {
    action = [&](const Environment&) {
      return app::patch_apply(patch_options(flags), flags.voice);
    };
  });
  CLI::App* revert = patch->add_subcommand("revert", "take one patch back, byte for byte");
  revert->add_option("--manifest", flags.manifest_path, "manifest of the patch");
  revert->add_option("--target-file", flags.target_file, "a file that it changed");
  revert->add_option("--backup-root", flags.backup_root, "where its manifest is looked for");
  revert->callback([&] {
    action = [&](const Environment&) {
      return app::patch_revert(patch_options(flags), flags.voice);
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") {
    return workload::run_worker(argc, argv);
  }
  Flags flags;
  Action action;
  CLI::App root(kSummary, "hyperloom");
  root.footer(kFooter);
  root.set_version_flag("--version", std::string("hyperloom ") + std::string(loom::tool_version()));
  bool help_env = false;
  root.add_flag("--help-env", help_env, "list the environment variables and their defaults");
  root.add_option("--diagnostics", flags.diagnostics, "text, or json: one object a line")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  root.add_option("--progress", flags.progress, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}))
      ->capture_default_str();
  root.fallthrough();
  declare_optimize(root, flags, action);
  declare_looks(root, flags, action);
  declare_request(root, flags, action);
  declare_patch(root, flags, action);
  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& success) {
    return root.exit(success);
  } catch (const CLI::ParseError& error) {
    root.exit(error);
    return 2;
  }
  if (help_env) {
    fmt::print("{}", environment_help());
    return 0;
  }
  if (!action) return usage("name a subcommand");
  flags.voice.json = flags.diagnostics == "json";
  flags.voice.progress = flags.progress != "never";
  const auto environment = app::load_environment();
  if (!environment) return app::report_error(environment.error(), flags.voice);
  return action(*environment);
}
