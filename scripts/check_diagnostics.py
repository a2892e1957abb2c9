#!/usr/bin/env python3
"""Holds the diagnostic table to its use: every row is emitted by some source, and every code is
named by some test, golden case or fixture. Exemptions carry their reason."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = "src/loom/diag/diagnostics.def"
ROW = re.compile(r"^LOOM_DIAGNOSTIC\((\w+), (\w+), (\d+)", re.MULTILINE)
UNTESTED = {
    "LOWERING/002": "an internal failure of the code generator; no input is known to cause it",
}


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as source:
        return source.read()


def is_test(path):
    return path.startswith("tests/") or path.endswith("_test.cpp")


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
                            capture_output=True, text=True, check=True).stdout.split("\n")
    readable = [path for path in listed if os.path.isfile(os.path.join(ROOT, path)) and
                path.endswith((".cpp", ".h", ".golden", ".loom", ".py", ".txt", ".sh"))]
    sources = "".join(read(path) for path in readable
                      if path.startswith(("src/", "tools/")) and not is_test(path))
    tests = "".join(read(path) for path in readable if is_test(path))
    complaints = []
    rows = ROW.findall(read(TABLE))
    if not rows:
        complaints.append("the table has no rows")
    for name, domain, number in rows:
        code = f"{domain}/{int(number):03}"
        if not re.search(rf"\bDiag::{name}\b", sources):
            complaints.append(f"{name} ({code}) is never emitted; remove its row")
        if code not in tests and not re.search(rf"\bDiag::{name}\b", tests):
            if code not in UNTESTED:
                complaints.append(f"{code} ({name}) is produced by no test; add a golden case")
        elif code in UNTESTED:
            complaints.append(f"{code} is tested now; take it from the exemptions")
    for complaint in complaints:
        print(f"{TABLE}: {complaint}")
    print(f"{len(rows)} rows, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
