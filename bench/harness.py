"""Runs one suite: every side in turns, then the table and build/bench/SUITE.json."""

import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import suites
from sides import BenchError, Context, Unavailable

ROOT = pathlib.Path(__file__).resolve().parent.parent


def machine():
    model = "unknown CPU"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def commit():
    shown = subprocess.run(["git", "describe", "--always", "--dirty", "--abbrev=12"], cwd=ROOT,
                           capture_output=True, text=True)
    return shown.stdout.strip() or "unknown"


def progress(text):
    print(text, file=sys.stderr, flush=True)


def filtered(suite, text):
    """The suite with only the rows that have the text, and the sides that these need."""
    text = text.lower()
    rows = [row for row in suite.rows
            if text in f"{row.case} {row.metric} {row.peer_name}".lower()]
    keys = {}
    for row in rows:
        for name, key in filter(None, (row.ours, row.peer)):
            keys.setdefault(name, set()).add(key)
    kept = [side for side in suite.sides if side.name in keys]
    for side in kept:
        if hasattr(side, "select"):  # it measures cases apart
            side.select(keys[side.name])
    return suites.Suite(suite.name, kept, rows)


def measure(suite, context):
    """Rounds over the sides, in turns, so that a slow minute of the machine meets all of them."""
    ready, skipped = [], {}
    for side in suite.sides:
        try:
            progress(f"[{suite.name}] prepare {side.name}")
            side.prepare(context)
            ready.append(side)
        except Unavailable as reason:
            skipped[side.name] = str(reason)
            progress(f"[{suite.name}] skip {side.name}: {reason}")
    samples = {side.name: {} for side in ready}
    rounds = 3 if context.quick else 7
    for number in range(rounds):
        # Each round starts with another side, so that none always follows the same neighbour.
        shift = number % len(ready)
        for side in ready[shift:] + ready[:shift]:
            begin = time.monotonic()
            for key, value in side.measure(context).items():
                samples[side.name].setdefault(key, []).append(value)
            progress(f"[{suite.name}] round {number + 1}/{rounds} {side.name} "
                     f"{time.monotonic() - begin:.1f} s")
    return samples, skipped


def build_row(row, samples):
    own = samples[row.ours[0]][row.ours[1]]
    ours = statistics.median(own)
    peer, ratio = None, None
    if row.peer and row.peer[0] in samples:
        value = statistics.median(samples[row.peer[0]][row.peer[1]])
        peer = {"name": row.peer_name, "value": value}
        ratio = value / ours if row.better == "lower" else ours / value
    return {"case": row.case, "metric": row.metric, "unit": row.unit, "better": row.better,
            "ours": ours, "peer": peer, "ratio": ratio,
            "spread": (max(own) - min(own)) / ours, "target": row.target,
            "target_kind": row.target_kind}


def number(value):
    if value is None:
        return "-"
    if value >= 10000:
        return f"{value:,.0f}"
    return f"{value:.4g}"


def reached(row):
    if row["target"] is None:
        return ""
    value = row["ratio"] if row["target_kind"] == "ratio" else row["ours"]
    if value is None:
        return "?"
    higher = row["target_kind"] == "ratio" or row["better"] == "higher"
    return "yes" if (value >= row["target"] if higher else value <= row["target"]) else "no"


def target_text(row):
    if row["target"] is None:
        return "-"
    if row["target_kind"] == "ratio":
        return f">= {row['target']:g}x"
    sign = ">=" if row["better"] == "higher" else "<="
    return f"{sign} {row['target']:g} {row['unit']}"


def print_table(result, skipped):
    print(f"suite {result['suite']} on {result['machine']}, commit {result['commit']}, "
          f"{result['date']}")
    head = ["case", "metric", "unit", "ours", "spread", "peer", "value", "ratio", "target", "met"]
    body = [[row["case"], row["metric"], row["unit"], number(row["ours"]),
             f"{100 * row['spread']:.0f}%", row["peer"]["name"] if row["peer"] else "-",
             number(row["peer"]["value"]) if row["peer"] else "-",
             f"{row['ratio']:.2f}x" if row["ratio"] is not None else "-", target_text(row),
             reached(row)] for row in result["rows"]]
    widths = [max(len(line[i]) for line in [head] + body) for i in range(len(head))]
    for line in [head] + body:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
    for name, reason in skipped.items():
        print(f"skipped peer {name}: {reason}")


def write_whole(path, text):
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def arguments(words):
    parser = argparse.ArgumentParser(prog="bench/run")
    parser.add_argument("suite", choices=suites.SUITES)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--filter", metavar="TEXT", default="",
                        help="only rows with TEXT in case or peer; nothing is written")
    return parser.parse_args(words)


def main():
    options = arguments(sys.argv[1:])
    suite = suites.SUITES[options.suite]
    if options.filter:
        suite = filtered(suite, options.filter)
        if not suite.rows:
            print(f"bench: no row has '{options.filter}'", file=sys.stderr)
            return 2
    work = ROOT / "build" / "bench"
    context = Context(bin=pathlib.Path(os.environ["LOOM_BIN"]), work=work, quick=options.quick)
    (work / "inputs").mkdir(parents=True, exist_ok=True)
    try:
        samples, skipped = measure(suite, context)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    result = {"suite": suite.name, "machine": machine(), "commit": commit(),
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
              "rows": [build_row(row, samples) for row in suite.rows]}
    if not options.filter:
        write_whole(work / f"{suite.name}.json", json.dumps(result, indent=1) + "\n")
    print_table(result, skipped)
    return 0


if __name__ == "__main__":
    sys.exit(main())
