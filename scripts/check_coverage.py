#!/usr/bin/env python3
"""Holds the tests and the reference to the operation tables.

Every T1 and T2 operation has a round-trip line in tests/fixtures/text, a section of its dialect's
reference.md, an example there that uses it, and for each rule listed there a rejecting case:
an annotated line of tests/fixtures/verify or a golden case that names the operation and the code.

    check_coverage.py --tables=build/tests/loom_tables
"""

import argparse
import json
import os
import re
import subprocess
import sys

import reference_source

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Never printed, so no canonical text has it; tests/golden/format covers that it is read.
NOT_PRINTED = {"command.yield"}
ANNOTATION = re.compile(r"// ERROR@\+(\d+): ([A-Z]+/\d{3})")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as source:
        return source.read()


def files(folder, ending):
    for base, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in sorted(names):
            if name.endswith(ending):
                yield os.path.join(base, name)


def uses(text):
    """Every word with a dot, which is how operations are named."""
    return set(re.findall(r"(?<![%@#.\w])[a-z]\w*(?:\.\w+)+", text))


def rejected():
    """{code: names of operations that stand in a line or case refused with it}"""
    found = {}
    for path in files("tests/fixtures/verify", ".loom"):
        lines = read(path).split("\n")
        for number, line in enumerate(lines):
            if match := ANNOTATION.search(line):
                target = lines[min(number + int(match[1]), len(lines) - 1)]
                found.setdefault(match[2], set()).update(uses(target) | uses(line))
    for path in files("tests/golden", ".golden"):
        lines = read(path).split("\n")
        for number, line in enumerate(lines):
            for code in re.findall(r"\[([A-Z]+/\d{3})\]", line):  # then the quoted source line
                found.setdefault(code, set()).update(uses(" ".join(lines[number:number + 2])))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tables", required=True, help="the program that prints the tables")
    options = parser.parse_args()
    tables = json.loads(subprocess.run([options.tables], capture_output=True, text=True,
                                       check=True).stdout)
    round_trips = set()
    for path in files("tests/fixtures/text", ".loom"):
        round_trips |= uses(read(path))
    sections = {}
    complaints = []
    known = {op["name"] for op in tables["ops"]}
    for dialect, (_, written) in reference_source.read_all(ROOT).items():
        for section in written:
            for name in section.names:
                if name not in known:
                    complaints.append(f"{dialect}/reference.md:{section.line}: no operation '{name}'")
                sections[name] = section
    refusals = rejected()
    for op in tables["ops"]:
        name = op["name"]
        if op["tier"] == "T3":
            continue
        if name not in round_trips | NOT_PRINTED:
            complaints.append(f"{name}: no line in tests/fixtures/text")
        section = sections.get(name)
        if section is None:
            complaints.append(f"{name}: no section in src/loom/dialect/{op['dialect']}/reference.md")
            continue
        if section.example is None or not uses(section.example) & set(section.names) and name not in NOT_PRINTED:
            complaints.append(f"{name}: its section has no example that uses it")
        if name == section.names[0]:
            for code, text in section.rules:
                if not refusals.get(code, set()) & set(section.names):
                    complaints.append(f"{name}: no rejecting case for {code} ({text})")
    for complaint in complaints:
        print(complaint)
    print(f"{len(tables['ops'])} operations, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
