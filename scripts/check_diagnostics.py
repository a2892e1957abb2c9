#!/usr/bin/env python3
"""Holds the diagnostic table to its use: every row is emitted by some source, every code is named by
some test, and by a golden case that shows what a person sees. Exemptions carry their reason."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = "src/loom/diag/diagnostics.def"
ROW = re.compile(r"^LOOM_DIAGNOSTIC\((\w+), (\w+), (\d+)", re.MULTILINE)
UNTESTED = {}
BINARY = "only a module that no writer makes holds it; verify_test.cpp builds one"
NOT_GOLDEN = {
    "CHECK/006": "depends on what else the machine does; unit tests state the times",
    "DOMINANCE/001": BINARY,
    "LOWERING/002": "an internal failure of the code generator; no input is known to cause it",
    "RUN/010": "the tools align what they bind; the API test binds other storage",
    "RUN/012": "needs counts that no storage here can hold; a unit test writes them",
    "RUN/028": "the verifier refuses what it can see; unit tests diverge at run time",
    "RUN/030": "preparation selects implementations before a tool interprets",
    "RUN/031": "arguments of another type come only through the API",
    "STRUCTURE/003": BINARY,
    "STRUCTURE/009": BINARY,
    "STRUCTURE/010": BINARY,
    "STRUCTURE/021": BINARY,
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
    golden = "".join(read(path) for path in readable if path.endswith(".golden"))
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
    for code in sorted({f"{domain}/{int(number):03}" for _, domain, number in rows}):
        if (code in golden) == (code in NOT_GOLDEN):
            complaints.append(f"{code} has no golden case" if code not in golden else
                              f"{code} has a golden case now; take it from the exemptions")
    for complaint in complaints:
        print(f"{TABLE}: {complaint}")
    print(f"{len(rows)} rows, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
