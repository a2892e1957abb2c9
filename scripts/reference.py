#!/usr/bin/env python3
"""Makes docs/reference/ and the editor grammars from the tables and the dialects' reference.md.

    reference.py --tables=build/tests/loom_tables [--check]

`--check` writes nothing and fails when a file differs from what would be written.
"""

import argparse
import json
import os
import subprocess
import sys

import reference_grammar
import reference_pages
import reference_source

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def outputs(tables):
    written = reference_source.read_all(ROOT)
    files = {f"docs/reference/{name}": text
             for name, text in reference_pages.pages(tables, written).items()}
    files.update(reference_grammar.files(tables))
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tables", required=True, help="the program that prints the tables")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    tables = json.loads(subprocess.run([options.tables], capture_output=True, text=True,
                                       check=True).stdout)
    stale = 0
    for path, text in outputs(tables).items():
        full = os.path.join(ROOT, path)
        old = None
        if os.path.exists(full):
            with open(full, encoding="utf-8") as source:
                old = source.read()
        if old == text:
            continue
        stale += 1
        if options.check:
            print(f"{path}: differs from the tables; run ./dev docs")
            continue
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as target:
            target.write(text)
        print(f"wrote {path}")
    print(f"{stale} files {'are stale' if options.check else 'changed'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
