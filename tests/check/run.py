#!/usr/bin/env python3
"""Runs the check cases of one module on a device, as a user does.

    run.py --bin=build/bin --device=cpu MODULE [--library=FILE ...]

On the interpreter every case must pass. On other devices a case may be skipped, or have no code yet
(LOWERING/001); whatever runs must pass. Exit status 77: nothing could be run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77


def run(options):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        command = [os.path.join(options.bin, "loom-test"), options.module,
                   f"--device={options.device}", f"--output={report}"]
        command += [f"--library={path}" for path in options.library]
        result = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        if not os.path.exists(report):
            return result, None
        with open(report, encoding="utf-8") as text:
            return result, json.load(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--device", default="interp")
    parser.add_argument("--library", action="append", default=[])
    parser.add_argument("module")
    options = parser.parse_args()
    result, report = run(options)
    if report is None:
        print(result.stdout + result.stderr)
        return 1
    others = [issue for issue in report["planning_issues"]
              if options.device == "interp" or "LOWERING/001" not in issue["issue"]["message"]]
    others += [sample for sample in report["samples"] if not sample["passed"]]
    ran = any(sample["passed"] for sample in report["samples"])
    if others or (options.device == "interp" and result.returncode != 0):
        print(result.stdout + result.stderr)
        return 1
    print(result.stdout)
    return 0 if ran else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
