#!/usr/bin/env python3
"""Proves that lint_structure.py sees what it is there to see.

Each case plants one violation in a small clean tree and expects the lint to fail and to name the
place. Others do the same to a copy of this repository, with its real table of rooms, and to
check_c_api.py.
"""

import os
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(SCRIPTS)

CLEAN = {
    "CMakeLists.txt": "loom_room(base LIBS fmt::fmt)\n"
                      "loom_room(ir DEPS base)\n"
                      "loom_room(facts DEPS base)\n"
                      "loom_room(pass\n          DEPS base ir)\n"
                      "loom_room(target/x86 DEPS base pass)  # DEPS ir stays out\n"
                      "loom_room(api DEPS pass)\n",
    "src/loom/base/README.md": "# base\n",
    "src/loom/base/id.h": "#pragma once\n#include <fmt/format.h>\n",
    "src/loom/ir/README.md": "# ir\n",
    "src/loom/facts/README.md": "# facts\n",
    "src/loom/facts/range.h": "#pragma once\n",
    "src/loom/ir/module.h": '#pragma once\n#include "loom/base/id.h"\n',
    "src/loom/pass/README.md": "# pass\n",
    "src/loom/pass/cse.cpp": '#include "loom/pass/cse.h"\n#include "loom/ir/module.h"\n',
    "src/loom/pass/cse.h": "#pragma once\n",
    "src/loom/target/x86/README.md": "# x86\n",
    "src/loom/target/x86/emit.h": '#include "loom/pass/cse.h"\n',
    "src/loom/api/README.md": "# api\n",
    "src/loom/api/loom.h": '#include "loom/pass/cse.h"\n',
    "tools/loom-format.cpp": '#include "common/frame.h"\n#include "loom/api/loom.h"\n',
}

# (name, path, its whole content or None to remove it, what the complaint must hold)
CASES = [
    ("upward include", "src/loom/base/id.h", '#pragma once\n#include "loom/ir/module.h"\n',
     "src/loom/base/id.h:2: error: room 'base' may not include 'ir'"),
    ("include of a room two arrows away", "src/loom/target/x86/emit.h",
     '#include "loom/ir/module.h"\n',
     "src/loom/target/x86/emit.h:1: error: room 'target/x86' may not include 'ir'"),
    ("test file is held to the arrows too", "src/loom/ir/module_test.cpp",
     '#  include <loom/pass/cse.h>\n', "src/loom/ir/module_test.cpp:1: error:"),
    ("relative include", "src/loom/pass/cse.h", '#pragma once\n#include "../ir/module.h"\n',
     "src/loom/pass/cse.h:2: error:"),
    ("tool reaches past the api", "tools/loom-format.cpp", '#include "loom/facts/range.h"\n',
     "tools/loom-format.cpp:1: error: tools/ may not include 'facts'"),
    ("file in no room", "src/loom/extra/x.cpp", "", "src/loom/extra/x.cpp: error: lies in no room"),
    ("arrow to a room declared later", "CMakeLists.txt",
     CLEAN["CMakeLists.txt"].replace("base LIBS", "base DEPS ir LIBS"), "CMakeLists.txt:1: error:"),
    ("room without README", "src/loom/ir/README.md", None, "src/loom/ir: error: has no README.md"),
    ("unfinished work", "src/loom/ir/module.h", "#pragma once\n// TO" + "DO: more\n",
     "src/loom/ir/module.h:2: error:"),
    ("machine path", "docs/guide.md", "run /home/" + "someone/build/bin/loom-run\n",
     "docs/guide.md:1: error: names the machine path"),
]


def lint(root):
    done = subprocess.run([sys.executable, os.path.join(SCRIPTS, "lint_structure.py"),
                           f"--root={root}"], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def write(root, path, content):
    place = os.path.join(root, path)
    if content is None:
        os.remove(place)
        return
    os.makedirs(os.path.dirname(place), exist_ok=True)
    with open(place, "w", encoding="utf-8") as file:
        file.write(content)


def expect(name, result, wanted):
    status, errors = result
    good = status == 1 and wanted in errors if wanted else status == 0 and not errors
    if not good:
        print(f"FAILED: {name}: status {status}, wanted {wanted!r} in:\n{errors}")
    return good


def synthetic_cases():
    for case in [("clean tree", "docs/ok.md", "nothing\n", ""), *CASES]:
        name, path, content, wanted = case
        with tempfile.TemporaryDirectory() as root:
            for clean_path, clean_content in CLEAN.items():
                write(root, clean_path, clean_content)
            write(root, path, content)
            yield expect(name, lint(root), wanted)


def long_function_case():
    body = "  step();\n" * 90
    with tempfile.TemporaryDirectory() as root:
        for path, content in CLEAN.items():
            write(root, path, content)
        write(root, "src/loom/ir/long.cpp", "void f(int a,\n       int b) {\n" + body + "}\n")
        status, errors = lint(root)
        good = status == 0 and "src/loom/ir/long.cpp:1: function of 93 lines" in errors
        if not good:
            print(f"FAILED: long function: status {status}:\n{errors}")
        return good


def repository_case():
    with tempfile.TemporaryDirectory() as scratch:
        root = os.path.join(scratch, "copy")
        shutil.copytree(os.path.join(REPOSITORY, "src"), os.path.join(root, "src"))
        shutil.copy(os.path.join(REPOSITORY, "CMakeLists.txt"), root)
        write(root, "src/loom/base/planted.h", '#pragma once\n#include "loom/diag/render.h"\n')
        write(root, "src/hyperloom/core/planted.h", '#pragma once\n#include "loom/link/plan.h"\n')
        result = lint(root)
        return (expect("planted in this repository", result,
                       "src/loom/base/planted.h:2: error: room 'base' may not include 'diag'") and
                expect("planted in the optimizer", result, "src/hyperloom/core/planted.h:2: error: "
                       "room 'hyperloom/core' may not include 'link'"))


def c_api_cases():
    """A function without a test, and one that is never misused."""
    script = os.path.join(SCRIPTS, "check_c_api.py")
    header = "loom_status loom_read(const char* path);\nsize_t loom_count(const loom_x* x);\n"
    for test, wanted in [
            ("MISUSE(loom_read(0));\nloom_count(NULL);\n", ""),
            ("OK(loom_read(x));\nloom_count(NULL);\n", "loom_read is never called with a bad"),
            ("MISUSE(loom_read(0));\n", "loom_count is called by no test")]:
        with tempfile.TemporaryDirectory() as root:
            write(root, "src/loom/api/loom_c.h", header)
            write(root, "tests/run/c_api/x.c", test)
            done = subprocess.run([sys.executable, script, f"--root={root}"], capture_output=True,
                                  text=True, check=False)
            yield expect("check_c_api", (done.returncode, done.stderr), wanted)


def main():
    results = [*synthetic_cases(), long_function_case(), repository_case(), *c_api_cases()]
    print(f"{sum(results)} of {len(results)} cases passed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
