#!/usr/bin/env python3
"""Runs the check cases or the benchmarks of one module of lib/ or examples/, as a user does.

    run.py --bin=build/bin --device=cpu MODULE
    run.py --bin=build/bin --device=cpu --benchmarks MODULE
    run.py --every

Flags, libraries beside the module and weights that it needs stand in needs.json, under its name or
under that of its folder.

On the interpreter every case must pass. On other devices a case may be skipped, or have no code yet
(LOWERING/001); whatever runs must pass. Every benchmark whose case can run has a number; how large
it is, is no test. Exit status 77: nothing could be run. With --every: each module of lib/ and
examples/ that has kernels or programs has cases and benchmarks, and needs.json names nothing else.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
CASES, BENCHMARKS = "check.case", "check.benchmark"
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
QUICK = ["--warm-up=0", "--repetitions=2", "--batch-size=1", "--input-ring-count=1"]


def needs():
    with open(os.path.join(HERE, "needs.json"), encoding="utf-8") as text:
        return json.load(text)


def modules():
    for top in ["lib", "examples"]:
        for folder, _, names in os.walk(os.path.join(SOURCE, top)):
            for name in sorted(names):
                if name.endswith(".loom"):
                    yield os.path.relpath(os.path.join(folder, name), SOURCE)


def holds(name, kind):
    """Whether a line of the module begins with that operation."""
    with open(os.path.join(SOURCE, name), encoding="utf-8") as source:
        return re.search(rf"^{kind}\b", source.read(), re.MULTILINE) is not None


def check_every():
    known = list(modules())
    folders = {os.path.dirname(name) for name in known}
    wrong = [f"needs.json: there is no '{name}'" for name in needs()
             if name not in known and name not in folders]
    for name in known:
        if not holds(name, r"(kernel|command\.program)\.def"):
            continue
        for kind in CASES, BENCHMARKS:
            if not holds(name, kind):
                wrong.append(f"{name}: it has no {kind}; lib/ and examples/ prove and measure what "
                             "they hold")
    print("\n".join(wrong) if wrong else f"{len(known)} modules")
    return 1 if wrong or not known else 0


def flags_for(options, folder):
    """What the module needs besides itself, as flags; writes its weights into the folder."""
    module = os.path.abspath(options.module)
    name = os.path.relpath(module, SOURCE)
    need = needs().get(name) or needs().get(os.path.dirname(name), {})
    flags = list(need.get("flags", []))
    flags += [f"--library={os.path.join(os.path.dirname(module), name)}"
              for name in need.get("libraries", [])]
    if "weights" in need:
        path = os.path.join(folder, "weights.safetensors")
        subprocess.run([os.path.join(options.bin, "loom-weights"), "make", f"--output={path}",
                        *need["weights"]], check=True, stdout=subprocess.DEVNULL)
        flags.append(f"--parameters={path}")
    return flags


def run(options):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        program = "loom-bench" if options.benchmarks else "loom-test"
        command = [os.path.join(options.bin, program), options.module,
                   f"--device={options.device}", f"--output={report}",
                   *(QUICK if options.benchmarks else []), *flags_for(options, folder)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        if not os.path.exists(report):
            return result, None
        with open(report, encoding="utf-8") as text:
            return result, json.load(text)


def is_lacking(options, messages):
    """Whether all of that is said of code that the device has not got yet."""
    return options.device != "interp" and all("LOWERING/001" in text for text in messages)


def judge_cases(options, result, report):
    issues = [issue["issue"]["message"] for issue in report["planning_issues"]]
    bad = [sample for sample in report["samples"] if not sample["passed"]]
    good = not bad and (not issues or is_lacking(options, issues))
    if options.device == "interp":
        good = good and result.returncode == 0
    return good, any(sample["passed"] for sample in report["samples"])


def judge_benchmarks(options, report):
    states = [item["state"] for item in report["work_items"]]
    lost = [item for item in report["work_items"] if item["state"] != "measured"]
    messages = [issue["message"] for item in lost for issue in item.get("issues", [])]
    return not lost or (bool(messages) and is_lacking(options, messages)), "measured" in states


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin")
    parser.add_argument("--device", default="interp")
    parser.add_argument("--benchmarks", action="store_true")
    parser.add_argument("--every", action="store_true")
    parser.add_argument("module", nargs="?")
    options = parser.parse_args()
    if options.every:
        return check_every()
    if not options.bin or not options.module:
        parser.error("--bin and a module are needed")
    if not holds(os.path.abspath(options.module), BENCHMARKS if options.benchmarks else CASES):
        print(f"{options.module} has none")
        return SKIPPED
    result, report = run(options)
    if report is None:
        print(result.stdout + result.stderr)
        return 1
    good, ran = (judge_benchmarks(options, report) if options.benchmarks
                 else judge_cases(options, result, report))
    print(result.stdout if good else result.stdout + result.stderr)
    return (0 if ran else SKIPPED) if good else 1


if __name__ == "__main__":
    sys.exit(main())
