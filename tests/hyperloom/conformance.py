#!/usr/bin/env python3
"""Holds conformance.tsv to the tests: every rule names tests that exist or says why it has none, and
every test that is named after a rule stands beside that rule."""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TABLE = "tests/hyperloom/conformance.tsv"
RULE = re.compile(r"\d+(\.\d+)?")
TEST = re.compile(r"^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)", re.MULTILINE)
NAMED = re.compile(r"(?:^|\.)(?:Spec_(\d+)|IR_?\d)")
# What a rule without a test is about.
OUTSIDE = ("lane", "cluster", "external", "server", "model", "elsewhere")


def tests_of_tree():
    found = set()
    for folder, _, files in os.walk(os.path.join(ROOT, "src", "hyperloom")):
        for name in files:
            if name.endswith("_test.cpp"):
                with open(os.path.join(folder, name), encoding="utf-8") as source:
                    found.update(".".join(pair) for pair in TEST.findall(source.read()))
    with open(os.path.join(HERE, "cli_test.py"), encoding="utf-8") as source:
        found.update("cli." + name for name in
                     re.findall(r"^def (\w+)\(case\):", source.read(), re.MULTILINE))
    return found


def check_row(fields, tests):
    """What is wrong with a row, and the tests that it names."""
    if len(fields) != 3 or not all(field.strip() for field in fields):
        return ["wants three columns: rule, what holds, proof"], []
    rule, _, proof = fields
    wrong = [] if RULE.fullmatch(rule) else [f"'{rule}' is no number of a rule"]
    if proof.startswith("-"):
        kind, _, why = proof[1:].strip().partition(": ")
        if kind not in OUTSIDE or not why:
            wrong.append(f"wants '- KIND: why', KIND one of {', '.join(OUTSIDE)}")
        return wrong, []
    named = proof.split(" ")
    wrong += [f"there is no test {name}" for name in named if name not in tests]
    return wrong, named


def main():
    tests = tests_of_tree()
    complaints, proven, sections, rules, without = [], set(), set(), set(), 0
    with open(os.path.join(ROOT, TABLE), encoding="utf-8") as table:
        for number, line in enumerate(table, 1):
            if line.startswith("#") or not line.strip():
                continue
            fields = line.rstrip("\n").split("\t")
            wrong, named = check_row(fields, tests)
            if not wrong and (fields[0], fields[1]) in rules:
                wrong.append("stands in the table twice")
            complaints += [f"{TABLE}:{number}: {text}" for text in wrong]
            rules.add((fields[0], fields[1] if len(fields) > 1 else ""))
            sections.add(fields[0].split(".")[0])
            proven.update(named)
            without += not named
    for name in sorted(tests - proven):
        found = NAMED.search(name)
        if found and (found.group(1) is None or found.group(1) in sections):
            complaints.append(f"{TABLE}: {name} stands beside no rule")
    for complaint in complaints:
        print(complaint)
    print(f"{len(rules)} rules, {without} of them not of what is built here, "
          f"{len(complaints)} complaints")
    return 1 if complaints or not rules else 0


if __name__ == "__main__":
    sys.exit(main())
