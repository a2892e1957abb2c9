"""Puts measured suites into docs/performance.md, so that its tables are never typed.

usage: bench/tables.py [SUITE.json ...]   (all of build/bench by default)

A table stands between `<!-- bench SUITE -->` and `<!-- /bench -->`.
"""

import json
import pathlib
import re
import sys

import harness

DOCUMENT = harness.ROOT / "docs" / "performance.md"
HEAD = ["case", "metric", "ours (measured)", "spread", "peer (measured)", "ratio", "target"]


def cells(row):
    def with_unit(value):
        return f"{harness.number(value)} {row['unit']}"

    peer = row["peer"]
    ratio = row["ratio"]
    met = harness.reached(row)
    target = harness.target_text(row).replace(">=", "≥").replace("<=", "≤")
    return [row["case"], row["metric"], with_unit(row["ours"]), f"{100 * row['spread']:.0f} %",
            f"{peer['name']}: {with_unit(peer['value'])}" if peer else "",
            f"{ratio:.2f}×" if ratio is not None else "",
            {"yes": f"{target}, met", "no": f"{target}, **missed**", "?": f"{target}, no peer",
             "": ""}[met]]


def table(result):
    lines = [HEAD, ["---"] * len(HEAD), *map(cells, result["rows"])]
    return (f"{result['machine']}, {result['date'][:10]}, commit {result['commit']}:\n\n"
            + "".join(f"| {' | '.join(line)} |\n" for line in lines))


def replace(text, result):
    """The text with the suite's table replaced; ValueError where it has no place for it."""
    mark = f"<!-- bench {result['suite']} -->\n"
    pattern = re.compile(re.escape(mark) + r".*?(?=<!-- /bench -->)", re.DOTALL)
    filled, count = pattern.subn(lambda _: mark + table(result), text)
    if count != 1:
        raise ValueError(f"{DOCUMENT}: needs one '{mark.strip()}' ... '<!-- /bench -->'")
    return filled


def main():
    paths = ([pathlib.Path(path) for path in sys.argv[1:]]
             or sorted((harness.ROOT / "build" / "bench").glob("*.json")))
    text = DOCUMENT.read_text()
    try:
        for path in paths:
            text = replace(text, json.loads(path.read_text()))
    except (OSError, ValueError, KeyError) as error:
        print(f"bench/tables.py: {error}", file=sys.stderr)
        return 1
    harness.write_whole(DOCUMENT, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
