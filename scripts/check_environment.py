#!/usr/bin/env python3
"""Holds the table of environment variables to its use: a variable that says nothing of being "not
built" is read by some source and named by some test of its effect; one that says so is read by none."""

import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = "src/hyperloom/core/environment.def"
# Names them all to show that they are listed, which is no effect.
LISTS = {"src/hyperloom/core/environment_test.cpp"}
ROW = re.compile(r'^HL_ENV\("(\w+)", \w+, "[^"]*", "([^"]*)"\)$', re.MULTILINE)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as source:
        return source.read()


def is_test(path):
    return path.startswith("tests/") or path.endswith(("_test.cpp", "testing.h"))


def main():
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard"],
                            capture_output=True, text=True, check=True).stdout.split("\n")
    paths = [path for path in listed if os.path.isfile(os.path.join(ROOT, path)) and
             path.startswith(("src/hyperloom/", "tools/hyperloom", "tests/hyperloom/", "share/")) and
             path.endswith((".cpp", ".h", ".py", ".sh")) and path not in LISTS]
    sources = "".join(read(path) for path in paths if not is_test(path))
    tests = "".join(read(path) for path in paths if is_test(path))
    rows = ROW.findall(read(TABLE))
    complaints = [] if rows else ["the table has no rows"]
    for name, meaning in rows:
        quoted = f'"{name}"'
        if "not built" in meaning:
            if quoted in sources and "are not built" not in meaning:
                complaints.append(f"{name} is read, though its row says 'not built'")
        elif quoted not in sources:
            complaints.append(f"{name} is read by nothing; say 'not built' in its row")
        elif not re.search(rf"\b{name}\b", tests):
            complaints.append(f"{name} has no test of its effect")
    for complaint in complaints:
        print(f"{TABLE}: error: {complaint}", file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
