#!/usr/bin/env python3
"""Runs golden cases: commands in a folder of their own, with the output they must print.

A case (`*.golden`) is prose, then commands with their expected output, then files:

    A child program without a definition is named with the declaration.

    $ loom-compile model.loom --root=@two_layer
    model.loom:3:1: error[SYMBOL/002]: ...
    exit 1
    -- model.loom --
    ...

Each command runs in bash with the programs on PATH and the files in the current folder; standard
output and standard error are compared as one stream, and `exit N` must stand where the status is
not zero. A case whose prose has a line `needs: shared` reads $SHARED and is skipped without it, one
with `needs: gdb` is skipped where there is no such program, one with `needs: perf record` where that
may not record; $SOURCE is this checkout.

    run.py [--update] --bin=build/bin CASE...
"""

import argparse
import difflib
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
FILE_MARK = "-- "
NEEDS_MARK = "needs: "
TIMEOUT_S = 240
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def parse(path):
    """Splits a case into prose, [(command, expected lines)] and [(name, content)]."""
    prose, commands, files = [], [], []
    with open(path, encoding="utf-8", newline="") as source:
        lines = source.read().split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    for line in lines:
        if line.startswith(FILE_MARK) and line.endswith(" --"):
            files.append((line[3:-3], []))
        elif files:
            files[-1][1].append(line)
        elif line.startswith("$ "):
            commands.append((line[2:], []))
        elif commands:
            commands[-1][1].append(line)
        else:
            prose.append(line)
    return prose, commands, files


def run_command(command, folder, environment):
    result = subprocess.run(["bash", "-c", command], cwd=folder, env=environment,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=TIMEOUT_S, check=False)
    lines = result.stdout.decode("utf-8", "replace").replace(folder, "$PWD").split("\n")
    if lines[-1] == "":
        lines.pop()
    if result.returncode != 0:
        lines.append(f"exit {result.returncode}")
    return lines


def is_there(need, shared):
    if need == "shared":
        return os.path.isdir(shared)
    if need == "perf record":
        probe = ["perf", "record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "true"]
        return shutil.which("perf") and subprocess.run(probe, capture_output=True,
                                                       check=False).returncode == 0
    return shutil.which(need)


def run_case(path, options):
    prose, commands, files = parse(path)
    if not commands:
        print(f"{path}: the case has no command line (one that starts with '$ ')")
        return 1
    shared = os.path.abspath(options.shared)
    for need in [line[len(NEEDS_MARK):] for line in prose if line.startswith(NEEDS_MARK)]:
        if not is_there(need, shared):
            print(f"{path}: skipped, {options.shared if need == 'shared' else need} is not there")
            return SKIPPED
    environment = dict(os.environ, PATH=os.path.abspath(options.bin) + ":" + os.environ["PATH"],
                       SHARED=shared, SOURCE=SOURCE, LOOM_BIN=os.path.abspath(options.bin),
                       LC_ALL="C.UTF-8")
    actual = []
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        for name, lines in files:
            place = os.path.join(folder, name)
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "w", encoding="utf-8", newline="") as target:
                target.write("".join(line + "\n" for line in lines))
        for command, _ in commands:
            actual.append((command, [line.replace(shared, "$SHARED")
                                     for line in run_command(command, folder, environment)]))
    if actual == commands:
        return 0
    if options.update:
        return update(path, prose, actual, files)
    show = lambda pairs: [line for command, lines in pairs for line in ["$ " + command, *lines]]
    print("\n".join(difflib.unified_diff(show(commands), show(actual), f"{path} (expected)",
                                         "actual", lineterm="")))
    return 1


def update(path, prose, commands, files):
    with open(path, encoding="utf-8", newline="") as source:
        before = source.read()
    write(path, prose, commands, files)
    if parse(path) == (prose, commands, files):
        print(f"{path}: updated")
        return 0
    with open(path, "w", encoding="utf-8", newline="") as target:
        target.write(before)
    print(f"{path}: not updated, as output lines look like commands ('$ ...') or files ('-- ... --')")
    return 1


def write(path, prose, commands, files):
    lines = list(prose)
    for command, output in commands:
        lines += ["$ " + command, *output]
    for name, content in files:
        lines += [f"-- {name} --", *content]
    with open(path, "w", encoding="utf-8", newline="") as target:
        target.write("".join(line + "\n" for line in lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("--shared", default="", help="folder of the shared cases")
    parser.add_argument("--update", action="store_true", help="write what was printed")
    parser.add_argument("cases", nargs="+")
    options = parser.parse_args()
    results = [run_case(case, options) for case in options.cases]
    if any(result == 1 for result in results):
        return 1
    return SKIPPED if results and all(result == SKIPPED for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
