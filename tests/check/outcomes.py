#!/usr/bin/env python3
"""Holds every operation of the check dialect to golden cases of its four outcomes.

    outcomes.py --tables=build/tests/loom_tables

For each operation one golden case of loom-test (loom-bench for check.benchmark) has check cases
called @passes, @fails, @is_skipped and @does_not_plan that use it, and prints what its name says of
each: the golden run proves that the programs print it.
"""

import argparse
import json
import os
import re
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GOLDEN = os.path.join(SOURCE, "tests", "golden")
BENCHMARK = "check.benchmark"
OUTCOMES = ["passes", "fails", "is_skipped", "does_not_plan"]
PASSED = {"test": r"\b[1-9]\d* passed", "bench": r"^@\w+ +@passes sample \d+.*: \d"}


def parse(text):
    """The commands that run all of case.loom, each with its output, and {case: its body}."""
    authored, _, module = text.partition("-- case.loom --\n")
    outputs = [part.partition("\n") for part in re.split(r"^\$ ", authored, flags=re.MULTILINE)[1:]]
    whole = [output for command, _, output in outputs
             if "case.loom" in command and "--case" not in command and "--list" not in command]
    cases = {found[1]: found[0] for found in
             re.finditer(r"^check\.case(?: public)? @(\w+) \{.*?^\}", module,
                         re.MULTILINE | re.DOTALL)}
    for case, record in re.findall(r"^(check\.benchmark<@(\w+)>.*)$", module, re.MULTILINE):
        cases[record] = cases.get(record, "") + case
    return whole, cases


def said_of(output, case):
    """The outcomes other than passing that the output names the case with."""
    found = set()
    for block in re.split(r"^(?=\S.*error\[|skipped )", output, flags=re.MULTILINE):
        code = re.match(r".*?error\[([A-Z]+/\d+)\]", block)
        if re.match(rf"skipped @{case}\w*:", block):
            found.add("is_skipped")
        elif code and code[1] == "CHECK/002" and f"'@{case}' cannot be run" in block:
            found.add("does_not_plan")
        elif code and re.search(rf"^note: in sample \d+ of '@{case}'", block, re.MULTILINE):
            found.add("fails")
    return found


def ends(program, output, case):
    """Whether the output says that the case ended as it is called."""
    said = said_of(output, case)
    if case == "passes":
        return not said and re.search(PASSED[program], output, re.MULTILINE) is not None
    return said == {case}


def uses(body, op):
    return re.search(rf"(?<![\w.]){re.escape(op)}(?![\w.])", body) is not None


def shown(op, program, texts):
    """The outcomes that the best case shows of the operation."""
    best = set()
    for text in texts:
        whole, cases = parse(text)
        for output in whole:
            found = {case for case in OUTCOMES
                     if uses(cases.get(case, ""), op) and ends(program, output, case)}
            best = max(best, found, key=len)
    return best


def complaints(ops, goldens):
    found = []
    for op in ops:
        program = "bench" if op == BENCHMARK else "test"
        best = shown(op, program, goldens[program])
        found += [f"{op}: no golden case of loom-{program} has a case @{case} that uses it and ends so"
                  for case in OUTCOMES if case not in best]
    return found


def read_goldens():
    found = {}
    for program in ["test", "bench"]:
        folder = os.path.join(GOLDEN, program)
        found[program] = []
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8") as text:
                found[program].append(text.read())
    return found


def selftest(ops):
    """Every use that is taken away must be missed."""
    goldens = read_goldens()
    unseen = [f"{op}: that its case {case} is gone is not noticed" for op in ops for case in OUTCOMES
              if not complaints([op], {program: [text.replace(f"@{case} ", f"@{case}_not ")
                                                 .replace(f"@{case}>", f"@{case}_not>")
                                                 for text in texts]
                                       for program, texts in goldens.items()})]
    return unseen


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", required=True, help="the program that prints the tables")
    options = parser.parse_args()
    tables = json.loads(subprocess.run([options.tables], capture_output=True, text=True,
                                       check=True).stdout)
    ops = [op["name"] for op in tables["ops"] if op["dialect"] == "check"]
    found = complaints(ops, read_goldens()) or selftest(ops)
    print("\n".join(found) if found else f"{len(ops)} operations, {len(OUTCOMES)} outcomes each")
    return 1 if found or not ops else 0


if __name__ == "__main__":
    sys.exit(main())
