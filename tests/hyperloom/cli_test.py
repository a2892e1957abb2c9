#!/usr/bin/env python3
"""The optimizer's programs as a user runs them: command line, sessions, settings, patches.

    cli_test.py --bin=build/bin [NAME...]

Every case runs in a folder of its own with an environment of its own.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# Small enough that the interpreter checks it at once.
MODEL = """kernel.def @add(%n: index) {
  %one = index.constant 1 : index
  kernel.launch.config workgroups(%n, %one, %one) workgroup_size(%one, %one, %one) : index
} launch(%n: index, %x: buffer, %y: buffer) where [range(%n, 1, 4096)] {
  %i = kernel.workgroup.id<x> : index
  %base = index.constant 0 : offset
  %from = buffer.view %x[%base] : buffer -> view<[%n]xf32>
  %to = buffer.view %y[%base] : buffer -> view<[%n]xf32>
  %value = view.load %from[%i] : view<[%n]xf32> -> f32
  %sum = scalar.addf %value, %value : f32
  view.store %sum, %to[%i] : f32, view<[%n]xf32>
  kernel.return
}

command.program.def public @p() launch(%x: buffer, %y: buffer) {
  %n = index.constant 64 : index
  kernel.launch @add[%n](%n, %x, %y) : [index](index, buffer, buffer)
  command.return
}
"""
WORKLOAD = ["model.loom", "--root=@p", "--random=%x=64xf32", "--output=%y=64xf32"]


class Case:
    def __init__(self, bin_folder, folder):
        self.bin = bin_folder
        self.folder = folder
        self.variables = {"PATH": os.environ["PATH"], "HOME": folder,
                          "USER_DATA_PATH": os.path.join(folder, "data")}
        self.write("model.loom", MODEL)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def exists(self, name):
        return os.path.exists(os.path.join(self.folder, name))

    def run(self, *words, expect=0, program="hyperloom"):
        command = [os.path.join(self.bin, program), *words]
        if program.endswith(".sh"):
            command = ["bash", program, *words]
        done = subprocess.run(command, cwd=self.folder, env=self.variables, text=True,
                              capture_output=True, timeout=120, stdin=subprocess.DEVNULL)
        assert done.returncode == expect, (
            f"{' '.join(words)}: exit {done.returncode} instead of {expect}\n"
            f"{done.stdout}\n{done.stderr}")
        return done

    def start(self, *words):
        return subprocess.Popen([os.path.join(self.bin, "hyperloom"), *words], cwd=self.folder,
                                env=self.variables, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def mounted(self, script):
        """Runs a shell script where it may mount; None where that is not permitted."""
        may = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
        if may.returncode != 0:
            print("skipped: mounting is not permitted here")
            return None
        return subprocess.run(["unshare", "-rm", "bash", "-euc", script], cwd=self.folder,
                              env=self.variables, text=True, capture_output=True, timeout=120,
                              stdin=subprocess.DEVNULL, check=False)

    def command(self, *words):
        return shlex.join([os.path.join(self.bin, "hyperloom"), *words])

    def left_running(self):
        """Processes of this case, found by their environment."""
        mark = f"USER_DATA_PATH={self.folder}/".encode()
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    if mark in file.read() and int(pid) != os.getpid():
                        found.append(int(pid))
            except OSError:
                pass
        return found

    def optimize(self, *words, expect=0):
        return self.run("--progress=never", "optimize", *WORKLOAD, "--no-kernel", *words,
                        expect=expect)


def a_baseline_alone_is_a_whole_session(case):
    out = case.optimize("--session=one", "--report=copy.json")
    assert "No gain" in out.stdout, out.stdout
    report = json.loads(case.read("copy.json"))
    assert report["outcome"] == "no_gain"
    assert float(report["baseline_tput"]) > 0
    for name in ("manifest.json", "state.json", "storage/coordinator.db", "reports/report.md"):
        assert case.exists(f"data/sessions/one/{name}"), name
    status = json.loads(case.run("--diagnostics=json", "status").stdout)
    assert status["session_id"] == "one" and status["phase"] == "CLOSE"
    assert [row["kind"] for row in status["not_available"]] == [
        "run_collective", "run_fusion", "run_gemm_tuning"]
    assert "not available: run_fusion" in case.run("status", "one").stdout
    assert json.loads(case.run("report", "--format=json").stdout) == report
    assert case.run("report", "--format=flags").stdout == ""
    export = case.run("patch", "export")
    assert export.stdout == "" and "nothing was kept" in export.stderr, export


def a_session_id_is_taken_once(case):
    case.optimize("--session=one")
    error = case.optimize("--session=one", expect=1).stderr
    assert "error[session_exists]" in error and "resume" in error, error
    assert "error[invalid_session_id]" in case.optimize("--session=../x", expect=1).stderr


def a_dry_run_writes_nothing(case):
    out = case.run("optimize", *WORKLOAD, "--dry-run").stdout
    assert "nothing was written" in out and "KERNEL_AGENT" in out, out
    assert not case.exists("data")
    plan = json.loads(case.run("--diagnostics=json", "optimize", *WORKLOAD, "--dry-run").stdout)
    assert plan["backend"] == "geak"
    case.variables["KERNEL_OPT_BACKEND_ORDER"] = "forge"
    plan = json.loads(case.run("--diagnostics=json", "optimize", *WORKLOAD, "--dry-run").stdout)
    assert plan["backend"] == "forge"


def the_data_root_without_instruction_is_session(case):
    del case.variables["USER_DATA_PATH"]
    if os.access("/workspace/hyperloom", os.W_OK):
        return
    case.optimize("--session=one")
    assert case.exists("session/sessions/one/state.json")


def wrong_usage_and_wrong_input_are_told_apart(case):
    for words in (["--nonsense"], [], ["optimize"], ["optimize", *WORKLOAD, "--budget=soon"],
                  ["request"], ["request", "trace_analyze", "--params=[]"], ["patch"]):
        error = case.run(*words, expect=2).stderr
        assert error, words
    for words, error_class in (
            (["status"], "session_not_found"), (["report", "none"], "session_not_found"),
            (["resume"], "session_not_found"),
            (["optimize", "nowhere.json"], "unreadable_file"),
            (["optimize", "nowhere.loom", "--root=@p"], "missing_source"),
            (["optimize", "model.loom", "--root=@p", "--fill=%x"], "invalid_workload")):
        error = case.run(*words, expect=1).stderr
        assert f"error[{error_class}]" in error, (words, error)
        row = json.loads(case.run("--diagnostics=json", *words, expect=1).stderr)
        assert row["error_class"] == error_class
    assert not case.exists("data/sessions")


def the_environment_is_listed_and_checked(case):
    listed = case.run("--help-env").stdout
    for name in ("KERNEL_OPT_BACKEND_ORDER", "KERNEL_OPT_BACKEND_BUDGET_MIN",
                 "KERNEL_OPT_MAX_PARALLEL", "INFERENCE_OPTIMIZER_KERNEL_OPT_MAX_PARTIAL",
                 "TRACELENS_ROOT", "TRACELENS_INTERNAL_ROOT", "ANTHROPIC_API_KEY",
                 "ANTHROPIC_BASE_URL", "HYPERLOOM_SKIP_FUSION", "FORGE_FUSION_TIMEOUT",
                 "FORGE_FUSION_MAX_TURNS", "HYPERLOOM_SKIP_COLLECTIVE",
                 "HYPERLOOM_COLLECTIVE_ONLY", "HYPERLOOM_COLLECTIVE_KEEP_PCT",
                 "FORGE_COLLECTIVE_TIMEOUT", "FORGE_COLLECTIVE_AGENT_TIMEOUT",
                 "KERNELFORGE_PROJECT_ROOT", "HYPERLOOM_KERNEL_AGENT_ROOT", "USER_DATA_PATH"):
        assert f"\n{name} (default: " in "\n" + listed, name
    case.variables["KERNEL_OPT_MAX_PARALLEL"] = "many"
    error = case.run("status", expect=1).stderr
    assert "error[invalid_environment]" in error and "KERNEL_OPT_MAX_PARALLEL" in error, error


def a_program_that_fails_ends_with_its_reason(case):
    case.variables["HYPERLOOM_WORKER_FAULT"] = "throughput:crash"
    error = case.optimize("--session=one", expect=1).stderr
    assert "workload_crashed" in error, error
    report = json.loads(case.run("report", "one", "--format=json").stdout)
    assert report["outcome"] == "nothing_measured"
    case.variables["HYPERLOOM_WORKER_FAULT"] = "throughput:garbage"
    assert "workload_garbage" in case.optimize("--session=two", expect=1).stderr
    case.write("model.loom", MODEL.replace("scalar.addf", "scalar.sumf"))
    del case.variables["HYPERLOOM_WORKER_FAULT"]
    error = case.optimize("--session=three", expect=1).stderr
    assert "build_failed" in error and "model.loom:10:10" in error, error


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def a_program_that_hangs_ends_with_the_budget(case):
    case.variables["HYPERLOOM_WORKER_FAULT"] = "throughput:hang"
    error = case.optimize("--session=one", "--budget=2s", expect=1).stderr
    assert "workload_hung" in error, error
    assert json.loads(case.run("report", "one", "--format=json").stdout)["outcome"] == \
        "nothing_measured"
    assert case.left_running() == []


def no_failure_leaves_a_process_or_a_changed_source(case):
    for number, fault in enumerate(("load:crash", "compare:crash", "throughput:exit",
                                    "compare:garbage", "load:hang")):
        case.variables["HYPERLOOM_WORKER_FAULT"] = fault
        error = case.optimize(f"--session=s{number}", "--budget=2s", expect=1).stderr
        assert "error[nothing_measured]" in error, error
        report = json.loads(case.run("report", f"s{number}", "--format=json").stdout)
        assert "workload_" in report["stop_reason"], report
        assert case.left_running() == []
        assert case.read("model.loom") == MODEL


def two_sessions_do_not_share_a_folder(case):
    case.variables["HYPERLOOM_WORKER_FAULT"] = "throughput:hang"
    first = case.start("optimize", *WORKLOAD, "--session=one", "--no-kernel")
    try:
        wait_for(lambda: case.exists("data/sessions/one/storage/coordinator.db"))
        for words in (["resume", "one"], ["request", "trace_analyze", "--session=one"],
                      ["patch", "undo", "one"], ["optimize", *WORKLOAD, "--session=one"]):
            error = case.run(*words, expect=1).stderr
            assert "error[session_already_running]" in error, (words, error)
            assert str(first.pid) in error, error
        assert json.loads(case.run("--diagnostics=json", "status", "one").stdout)["running"]
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)
    finally:
        first.kill()
        first.wait()
    assert case.left_running() == []
    assert case.exists("data/sessions/one/reports/report.md")
    del case.variables["HYPERLOOM_WORKER_FAULT"]
    assert "No gain" in case.run("resume", "one").stdout
    assert "error[session_exists]" in case.optimize("--session=one", expect=1).stderr


def a_full_disk_is_said_and_loses_nothing(case):
    os.makedirs(os.path.join(case.folder, "data"))
    optimize = case.command("optimize", *WORKLOAD, "--no-kernel", "--session=one")
    full = 0
    for pages in (2, 8, 20, 40):
        done = case.mounted(f"""
            mount -t tmpfs -o size={pages * 4}k none data
            {optimize} >first 2>&1 && echo fits && exit
            tail -3 first
            mount -o remount,size=64m data
            if [ -e data/sessions/one/manifest.json ]; then
              {case.command("resume", "one")} >second 2>&1 || {{ cat second; exit 9; }}
            fi""")
        if done is None:
            return
        assert done.returncode == 0, (pages, done.stdout, done.stderr)
        if "fits" not in done.stdout:
            full += 1
            assert "error[" in done.stdout, done.stdout
            assert "No space left" in done.stdout or "disk is full" in done.stdout, done.stdout
        assert case.read("model.loom") == MODEL
        assert case.left_running() == []
    assert full >= 2, "every size was large enough"


def a_read_only_tree_is_measured_and_not_patched(case):
    os.makedirs(os.path.join(case.folder, "tree"))
    shutil.move(os.path.join(case.folder, "model.loom"), os.path.join(case.folder, "tree"))
    fresh = case.write("fresh.loom", MODEL.replace("addf", "mulf"))
    workload = ["tree/model.loom", *WORKLOAD[1:]]
    optimize = case.command("optimize", *workload, "--no-kernel", "--session=one")
    apply = case.command("patch", "apply", f"--patch={fresh}", "--target-file=tree/model.loom",
                         "--backup-root=backup", "--allow-unknown-target")
    done = case.mounted(f"""
        mount --bind tree tree
        mount -o remount,ro,bind tree
        {optimize} >measured
        {apply} && exit 9
        exit 0""")
    if done is None:
        return
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "No gain" in case.read("measured")
    assert "unwritable_file" in done.stdout and "Read-only file system" in done.stdout, done.stdout
    assert case.read("tree/model.loom") == MODEL


def a_missing_compiler_is_named(case):
    case.variables["HYPERLOOM_WORKER"] = "/nowhere/compiler"
    error = case.optimize("--session=one", expect=1).stderr
    assert "missing_compiler" in error and "/nowhere/compiler" in error, error
    assert json.loads(case.run("report", "one", "--format=json").stdout)["outcome"] == \
        "nothing_measured"
    del case.variables["HYPERLOOM_WORKER"]
    assert "No gain" in case.run("resume", "one").stdout


def kept_configuration_is_used_and_taken_back(case):
    case.optimize("--session=one")
    state = json.loads(case.read("data/sessions/one/state.json"))
    state["optimization_stack"] = [{"action": "integrate", "extra_envs": {"tile": "8"}}]
    state["cumulative_gain_validated_stack_len"] = 1
    state["current_best"] = {"tput": state["baseline_tput"], "extra_envs": {"tile": "8"}}
    case.write("data/sessions/one/state.json", json.dumps(state))
    case.run("resume", "one")
    assert case.run("report", "--format=flags").stdout == "--config=tile=8\n"
    case.run("report", "--format=workload", "--output=kept.json")
    assert json.loads(case.read("kept.json"))["config"] == {"tile": "8"}
    assert "Would optimize" in case.run("optimize", "kept.json", "--dry-run").stdout
    assert "--format=flags" in case.run("patch", "export").stderr
    assert json.loads(case.run("patch", "undo", "one").stdout)["status"] == "ok"
    case.run("resume", "one")
    assert case.run("report", "--format=flags").stdout == ""


def several_nodes_are_refused(case):
    case.optimize("--session=one")
    case.variables["INFERENCE_OPTIMIZER_NODES"] = "2"
    for words in (["resume", "one"], ["optimize", *WORKLOAD, "--session=two"]):
        error = case.run(*words, expect=3).stderr
        assert "error[not_available]" in error and "2 nodes" in error, error
    assert not case.exists("data/sessions/two")
    case.run("status", "one")


def a_request_passes_the_gate(case):
    case.optimize("--session=one")
    answer = json.loads(case.run("request", "run_optimization", expect=1).stdout)
    assert answer["status"] == "denied", answer
    assert answer["rule"] == "closing_phase_only_report", answer


def a_patch_is_applied_and_taken_back_byte_for_byte(case):
    target = case.write("tree/a.loom", MODEL)
    fresh = case.write("fresh.loom", MODEL.replace("addf", "mulf"))
    applied = json.loads(case.run("patch", "apply", f"--patch={fresh}", f"--target-file={target}",
                                  "--backup-root=backup", "--allow-unknown-target").stdout)
    assert applied["status"] == "ok", applied
    assert case.read("tree/a.loom") == case.read("fresh.loom")
    manifest = json.loads(case.read(applied["manifest_path"])
                          if os.path.isabs(applied["manifest_path"])
                          else case.read(applied["manifest_path"]))
    assert manifest["status"] == "applied", manifest
    case.run("patch", "revert", f"--target-file={target}", "--backup-root=backup")
    assert case.read("tree/a.loom") == MODEL
    note = case.write("notes.md", "words")
    refused = case.run("patch", "apply", f"--patch={note}", f"--target-file={target}",
                       "--backup-root=backup", "--allow-unknown-target", expect=1)
    assert "failed" in refused.stdout, refused.stdout
    assert case.read("tree/a.loom") == MODEL


def the_installer_is_idempotent_and_its_settings_survive(case):
    shutil.copytree(os.path.join(ROOT, "share", "hyperloom"),
                    os.path.join(case.folder, "share"), ignore=shutil.ignore_patterns(".env"))
    script = os.path.join(case.folder, "share", "install.sh")
    assert "wrote" in case.run(program=script).stdout
    before = {name: os.stat(os.path.join(case.folder, name)).st_mtime_ns
              for name in ("share/.env", "data/runtime/kernel-agent.env.sh")}
    assert "wrote" not in case.run(program=script).stdout
    for name, stamp in before.items():
        assert os.stat(os.path.join(case.folder, name)).st_mtime_ns == stamp, name
    line = "KERNEL_OPT_BACKEND_ORDER=${KERNEL_OPT_BACKEND_ORDER:-geak}"
    assert line in case.read("share/.env")
    assert line in case.read("data/runtime/kernel-agent.env.sh")
    assert f"# {line}" in case.read("share/.env.template")
    for value, expected in (("forge", "forge"), ("", "geak")):
        shell = (f"KERNEL_OPT_BACKEND_ORDER={value}; . data/runtime/kernel-agent.env.sh; "
                 "echo $KERNEL_OPT_BACKEND_ORDER")
        done = subprocess.run(["bash", "-c", shell], cwd=case.folder, env=case.variables,
                              text=True, capture_output=True, check=True)
        assert done.stdout.strip() == expected
    needs = case.run("--with=tracelens,geak,ray", program=script, expect=3).stderr
    assert "TRACELENS_ROOT" in needs and "GEAK_CONFIG" in needs and "ray" in needs
    assert "no optional tool" in case.run("--with=magic", program=script, expect=2).stderr
    case.variables["HYPERLOOM_KERNEL_AGENT_ROOT"] = os.path.join(case.folder, "share")
    case.write("share/.env", "KERNEL_OPT_BACKEND_ORDER=forge\n")
    plan = case.run("--diagnostics=json", "optimize", *WORKLOAD, "--dry-run").stdout
    assert json.loads(plan)["backend"] == "forge"
    case.variables["KERNEL_OPT_BACKEND_ORDER"] = "geak"
    plan = case.run("--diagnostics=json", "optimize", *WORKLOAD, "--dry-run").stdout
    assert json.loads(plan)["backend"] == "geak"
    case.variables["HYPERLOOM_KERNEL_AGENT_ROOT"] = "/nowhere"
    assert "kernel_agent_root_missing" in case.run("status", expect=3).stderr


CASES = [value for name, value in list(globals().items())
         if callable(value) and getattr(value, "__code__", None) is not None
         and value.__code__.co_varnames[:1] == ("case",)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    failed = 0
    for case in CASES:
        if arguments.names and case.__name__ not in arguments.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                case(Case(os.path.abspath(arguments.bin), os.path.realpath(folder)))
            except (AssertionError, subprocess.SubprocessError, KeyError, ValueError) as error:
                line = traceback.extract_tb(error.__traceback__)[-1].lineno
                print(f"{case.__name__}: line {line}: {error}")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
