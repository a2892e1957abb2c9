#!/usr/bin/env python3
"""Checks that the tests of the C API call every function of loom_c.h, and that each says something.

Usage: check_c_api.py [--root=FOLDER]

A function is a declaration of the header. Called means called in tests/run/c_api/*.c; misused means
called there inside of MISUSE(...), or with NULL where it returns no status. Exit status: 0 complete,
1 functions are missing (on standard error).
"""

import glob
import os
import re
import sys

HEADER = "src/loom/api/loom_c.h"
TESTS = "tests/run/c_api/*.c"
DECLARATION = re.compile(r"^(?:const )?\w+\*? (loom_\w+)\(", re.MULTILINE)
# They take no argument that could be wrong.
WITHOUT_ARGUMENTS = {"loom_abi_version", "loom_context_create", "loom_parameters_create",
                     "loom_workspace_create", "loom_device_create_cpu"}


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for argument in sys.argv[1:]:
        if not argument.startswith("--root="):
            sys.exit(__doc__)
        root = argument.removeprefix("--root=")
    with open(os.path.join(root, HEADER), encoding="utf-8") as file:
        functions = DECLARATION.findall(file.read())
    tests = ""
    for path in sorted(glob.glob(os.path.join(root, TESTS))):
        with open(path, encoding="utf-8") as file:
            tests += file.read()
    complaints = 0
    for name in functions:
        problem = None
        if not re.search(rf"\b{name}\(", tests):
            problem = "is called by no test"
        elif name not in WITHOUT_ARGUMENTS and not re.search(
                rf"MISUSE\({name}\(|\b{name}\((\w+, )*NULL\b", tests):
            problem = "is never called with a bad argument by a test"
        if problem:
            print(f"{HEADER}: error: {name} {problem}; add it to {TESTS}", file=sys.stderr)
            complaints += 1
    if not functions:
        print(f"{HEADER}: error: no declaration was found; repair DECLARATION", file=sys.stderr)
        complaints += 1
    print(f"check_c_api: {len(functions)} functions, {complaints} missing")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
