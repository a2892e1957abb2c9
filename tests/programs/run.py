#!/usr/bin/env python3
"""Runs command programs whose file names state the rule they prove, on each device that is named.

A program begins with lines

    // flags: --fill=%in=4xi32:1 --print=%out=4xi32     of loom-run
    // link: --specialize=@p:n=2 --config=k=3           of loom-run and loom-compile (optional)
    // make: w.gguf w=4xi32:iota:1:1                    a file for it, with loom-weights (optional)
    // prints: %out : 4xi32                             what it prints, a line each, in order
    // plan: slab length(32)                            found in the plan (optional)
    // lacks: cmd.core.transient                        not found in the plan (optional)
    // tree: serial                                     the printed schedule, line by line (optional)

It may use the kernels of kernels.loom. It must compile with --check-hazards, and print the same on
every device.

    run.py --bin=build/bin [--devices=cpu,interp] PROGRAM...
"""

import argparse
import os
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def notes(path):
    """The lines `// word: text` at the top of a program, by word."""
    found = {"flags": [], "link": [], "make": [], "prints": [], "plan": [], "lacks": [],
             "tree": []}
    with open(path, encoding="utf-8") as source:
        for line in source:
            if not line.startswith("// "):
                break
            word, colon, text = line[3:].partition(": ")
            if colon and word in found:
                found[word].append(text.rstrip("\n"))
    return found


def run(binaries, arguments, folder):
    result = subprocess.run([os.path.join(binaries, arguments[0]), *arguments[1:]], cwd=folder,
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
                            check=False)
    if result.returncode != 0:
        raise AssertionError(f"{' '.join(arguments)}\nexit {result.returncode}\n{result.stderr}")
    return result.stdout, result.stderr


def prove(path, binaries, devices):
    expected = notes(path)
    if not expected["prints"]:
        raise AssertionError("it says nothing that is printed")
    inputs = [path, f"--library={os.path.join(HERE, 'kernels.loom')}"]
    inputs += [flag for line in expected["link"] for flag in shlex.split(line)]
    flags = [flag for line in expected["flags"] for flag in shlex.split(line)]
    with tempfile.TemporaryDirectory() as folder:
        tree, plan = run(binaries, ["loom-compile", *inputs, "--check-hazards",
                                    "--print-after=resolve", "--print-schedule=text",
                                    "--output=commands.json"], folder)
        for text in expected["plan"]:
            if text not in plan:
                raise AssertionError(f"the plan lacks '{text}':\n{plan}")
        for text in expected["lacks"]:
            if text in plan:
                raise AssertionError(f"the plan has '{text}':\n{plan}")
        printed = [line[2:] for line in tree.splitlines()[1:]]
        if expected["tree"] and printed != expected["tree"]:
            raise AssertionError(f"the schedule is\n{tree}")
        for line in expected["make"]:
            name, *arrays = shlex.split(line)
            run(binaries, ["loom-weights", "make", f"--output={name}", *arrays], folder)
        for device in devices:
            printed, _ = run(binaries, ["loom-run", *inputs, f"--device={device}", *flags], folder)
            if printed.splitlines() != expected["prints"]:
                raise AssertionError(f"on {device} it prints\n{printed}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--devices", default="cpu")
    parser.add_argument("programs", nargs="+")
    options = parser.parse_args()
    failures = 0
    for path in options.programs:
        try:
            prove(os.path.abspath(path), os.path.abspath(options.bin), options.devices.split(","))
        except AssertionError as failure:
            failures += 1
            print(f"{path}: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
