#!/usr/bin/env python3
"""Holds the editor grammars to the programs of this repository.

    run.py --tables=build/tests/loom_tables

The TextMate grammar must give every operation of the corpus its scope and mark none as unknown.
Where `tree-sitter` is installed, its grammar must parse the corpus without an error node.
"""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def corpus():
    patterns = ("examples/**/*.loom", "lib/**/*.loom", "tests/fixtures/text/*.loom")
    return sorted(path for pattern in patterns
                  for path in glob.glob(os.path.join(ROOT, pattern), recursive=True))


def check_textmate(tables):
    path = os.path.join(ROOT, "editors/vscode/syntaxes/loom.tmLanguage.json")
    with open(path, encoding="utf-8") as source:
        grammar = json.load(source)
    rules = [(rule["name"], re.compile(rule.get("match", rule.get("begin")))) for rule in grammar["patterns"]]
    unknown = next(pattern for name, pattern in rules if "illegal" in name)
    names = {op["name"] for op in tables["ops"]}
    complaints = []
    seen = 0
    for path in corpus():
        with open(path, encoding="utf-8") as source:
            for number, line in enumerate(source, 1):
                match = re.match(r"\s*(?:%[\w$.-]+(?:, %[\w$.-]+)* = )?([a-z]\w*(?:\.\w+)+)", line)
                if not match or match[1] not in names:
                    continue
                seen += 1
                at = match.start(1)
                scopes = [name for name, rule in rules if (hit := rule.match(line, at)) and hit.end() == match.end(1)]
                if not scopes or not scopes[0].startswith("keyword"):
                    complaints.append(f"{path}:{number}: '{match[1]}' has the scopes {scopes}")
    if not unknown.match("index.addition"):
        complaints.append("a misspelt operation is not marked")
    print(f"TextMate: {seen} operations")
    return complaints if seen else ["the corpus is empty"]


def check_tree_sitter():
    program = shutil.which("tree-sitter")
    if program is None:
        print("tree-sitter: skipped, it is not installed")
        return []
    environment = dict(os.environ, RUST_BACKTRACE="0")
    with tempfile.TemporaryDirectory() as folder:
        environment["HOME"] = folder  # its configuration and compiled parsers
        shutil.copytree(os.path.join(ROOT, "editors/tree-sitter-loom"), folder, dirs_exist_ok=True)
        subprocess.run([program, "generate"], cwd=folder, env=environment, check=True,
                       capture_output=True)
        result = subprocess.run([program, "parse", "-q", *corpus()], cwd=folder, env=environment,
                                capture_output=True, text=True, check=False)
    print(f"tree-sitter: {len(corpus())} files")
    return [line for line in result.stdout.split("\n") if "ERROR" in line or "MISSING" in line]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tables", required=True)
    options = parser.parse_args()
    tables = json.loads(subprocess.run([options.tables], capture_output=True, text=True,
                                       check=True).stdout)
    complaints = check_textmate(tables) + check_tree_sitter()
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
