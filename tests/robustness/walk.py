#!/usr/bin/env python3
"""Takes every round-trip fixture and every example of the reference through every tool.

Nothing is expected of the result but that there is one: a tool ends with status 0 and no error, or
with status 1 or 2 and a report. A signal, a timeout, a silent failure, an error beside status 0 and
an unsupported operation that is reported without its name or its place are failures.

    walk.py --bin=build/bin [NAME...]
"""

import argparse
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
import reference_source  # noqa: E402

TIMEOUT_S = 120
PASSES = ("canonicalize", "cse", "dce", "inline", "contracts", "licm", "unroll", "pipeline",
          "select-templates", "select-templates-early")
LINK = ["loom-link", "--allow-unresolved", "--to=bc", "--output=linked.loombc"]
MODULE = ["loom-compile", "--product=module", "--verify-each"]
KERNEL = ["loom-compile", "--target=x86_64", "--output=kernels.o"]
LIBRARY = ["loom-compile", "--target=x86_64", "--format=shared-object", "--levels=x86-64-v2",
           "--output=libkernels.so", "--emit-header=kernels.h"]
PREPARE = ["loom-compile", "--format=loom-command", "--output=commands.json",
           "--emit-command-artifacts=commands", "--emit-kernel-requests=requests"]
RUN = ["loom-run"]
# Every other form of the tools, for the fixtures, which hold every operation.
FORMS = [
    ["loom-format", "--lint"],
    ["loom-format", "--to=bc", "--output=m.loombc"],
    ["loom-link", "--mode=merge"],
    ["loom-link", "--allow-unresolved"],
    ["loom-test", "--timeout=20"],
    ["loom-test", "--device=interp", "--timeout=20"],
    ["loom-bench", "--warm-up=0", "--repetitions=1", "--batch-size=1", "--input-ring-count=1"],
    *[["loom-compile", "--product=module", f"--pipeline={name}", "--verify-each"]
      for name in PASSES],
]
DEFINITION = re.compile(r"^(func|kernel|command\.program)\.def\b[^@(]*"
                        r"(?:\(@?[^)]*\)[^@(]*)*@([\w.]+)\(", re.MULTILINE)
KERNEL_DEFINITION = re.compile(r"^kernel\.def[^\n]*?@([\w.]+)\(([^\n]*)\) \{\n(?:.*\n)*?"
                               r"\} launch\((.*?)\)(?: where .*)? \{$", re.MULTILINE)
CONSTANTS = {"index": "index.constant 64 : index", "offset": "index.constant 64 : offset",
             "i1": "scalar.constant true : i1", "i32": "scalar.constant 3 : i32",
             "f32": "scalar.constant 1.5 : f32"}


def arguments(text):
    return re.findall(r"%\w+: ((?:[^,<]|<[^>]*>)+)", text)


def launches(text):
    """(program, bindings) of a program for each kernel that can be launched with constants."""
    for number, match in enumerate(KERNEL_DEFINITION.finditer(text)):
        name, workload, formals = match[1], arguments(match[2]), arguments(match[3])
        lines, values, types, bindings = [], [], [], []
        for i, kind in enumerate(workload + formals):
            value, actual = f"%a{i}", kind
            if kind in CONSTANTS:
                lines.append(f"  {value} = {CONSTANTS[kind]}")
            elif kind == "buffer" or kind.startswith("view<") and "[" not in kind:
                bindings.append(f"%b{i}")
                lines.append(f"  {value}_at = index.constant 0 : offset")
                actual = "view<1024xi32>" if kind == "buffer" else kind
                lines.append(f"  {value} = buffer.view %b{i}[{value}_at] : buffer -> {actual}")
            else:
                break
            values.append(value)
            types.append(actual)
        else:
            n = len(workload)
            clause = f"[{', '.join(values[:n])}]" if n else ""
            kinds = f"[{', '.join(types[:n])}]" if n else ""
            lines.append(f"  kernel.launch @{name}{clause}({', '.join(values[n:])}) : "
                         f"{kinds}({', '.join(types[n:])})")
            formals = ", ".join(f"{binding}: buffer" for binding in bindings)
            yield (f"command.program.def public @walk{number}() launch({formals}) {{\n"
                   + "\n".join(lines) + "\n  command.return\n}\n", bindings, number)


def commands(name, text):
    """What a module meets on its way to results: each definition by itself, each kernel launched.
    Returns the text with the launches and the commands."""
    chosen = []
    for kind, symbol in DEFINITION.findall(text):
        root = f"--root=@{symbol}"
        chosen += [[*LINK, root], [*MODULE, root]]
        if kind == "kernel":
            chosen += [[*KERNEL, root], [*LIBRARY, root]]
        if kind == "command.program":
            chosen += [[*PREPARE, root], [*RUN, root]]
    programs = list(launches(text))
    for program, bindings, number in programs:
        text += "\n" + program
        root = f"--root=@walk{number}"
        fills = [f"--fill={binding}=1024xi32:1" for binding in bindings]
        chosen += [[*PREPARE, root], [*RUN, root, *fills], [*RUN, "--device=interp", root, *fills]]
    return text, chosen + (FORMS if name.startswith("fixtures") else [])
ERROR = re.compile(r"^(.*?)error\[([A-Z]+/\d{3})\]: (.*)$", re.MULTILINE)


def modules():
    """(name, text) of every module."""
    folder = os.path.join(ROOT, "tests/fixtures/text")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".loom"):
            with open(os.path.join(folder, name), encoding="utf-8") as source:
                yield f"fixtures/text/{name}", source.read()
    for dialect, (_, sections) in reference_source.read_all(ROOT).items():
        for section in sections:
            for number, text in enumerate((section.example or "").split("\n// ----\n")):
                if text:
                    yield f"reference/{dialect}/{section.names[0]}/{number}", text + "\n"


def problem(command, folder, binaries):
    """What is wrong with one run; empty when nothing is."""
    words = [os.path.join(binaries, command[0]), "m.loom", *command[1:]]
    try:
        done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return "does not end"
    report = done.stderr.decode(errors="replace")
    errors = ERROR.findall(report)
    if done.returncode not in (0, 1, 2):
        return f"ends with {done.returncode}\n{report[-2000:]}"
    if done.returncode == 0 and errors:
        return f"succeeds with an error\n{report[-2000:]}"
    if done.returncode != 0 and "[" not in report:
        return f"fails in silence\n{report[-2000:]}"
    for place, code, text in errors:
        if code == "LOWERING/001" and not (place and re.search(r"'[a-z]+(\.\w+)+'", text)):
            return f"names no operation or place: {place}{text}"
        if code.startswith("INTERNAL") or code == "LOWERING/002":
            return f"reports an internal error: {text}"
    return ""


def walk(name, text, binaries):
    problems = []
    text, chosen = commands(name, text)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "m.loom"), "w", encoding="utf-8") as out:
            out.write(text)
        for command in chosen:
            if found := problem(command, folder, binaries):
                problems.append(f"{name}: {' '.join(command)} {found}")
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", required=True, help="folder of the programs")
    parser.add_argument("name", nargs="*", help="only modules whose name has one of these")
    options = parser.parse_args()
    chosen = [(name, text) for name, text in modules()
              if not options.name or any(part in name for part in options.name)]
    if not chosen:
        print("there is no such module")
        return 1
    binaries = os.path.abspath(options.bin)
    problems = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(lambda module: walk(*module, binaries), chosen):
            for line in found:
                print(line, flush=True)
            problems += len(found)
    print(f"{len(chosen)} modules, {problems} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
