"""Reads src/loom/dialect/<dialect>/reference.md, the hand-written half of the reference."""

import os
import re

RULE = re.compile(r"^- ([A-Z]+/\d{3})(?::| —|,| ) ?(.*)$")


class Section:
    """What is written about one or several operations."""

    def __init__(self, names, line):
        self.names, self.line = names, line
        self.prose, self.rules, self.example = [], [], None


def read_dialect(path):
    """(introduction, sections) of one file; raises ValueError with the line on a malformed one."""
    introduction, sections, fence, code = [], [], None, []
    with open(path, encoding="utf-8") as source:
        for number, line in enumerate(source.read().split("\n"), 1):
            if fence is not None:
                if line.startswith("```"):
                    target = sections[-1] if sections else None
                    if fence == "loom" and target is not None:
                        if target.example is not None:
                            target.example += "\n// ----\n" + "\n".join(code)
                        else:
                            target.example = "\n".join(code)
                    else:
                        (target.prose if target else introduction).append(
                            f"```{fence}\n" + "\n".join(code) + "\n```")
                    fence, code = None, []
                else:
                    code.append(line)
                continue
            if line.startswith("```"):
                fence = line[3:].strip()
            elif line.startswith("## "):
                names = [name.strip("` ") for name in line[3:].split(",")]
                sections.append(Section(names, number))
            elif line.startswith("# "):
                continue
            elif sections and (match := RULE.match(line)):
                sections[-1].rules.append([match[1], match[2]])
            elif sections and sections[-1].rules and line.startswith("  ") and line.strip():
                sections[-1].rules[-1][1] += " " + line.strip()
            else:
                (sections[-1].prose if sections else introduction).append(line)
    if fence is not None:
        raise ValueError(f"{path}: the last code block is not closed")
    return "\n".join(introduction).strip(), sections


def read_all(root):
    """{dialect: (introduction, sections)} of every dialect that has a file."""
    base = os.path.join(root, "src/loom/dialect")
    found = {}
    for name in sorted(os.listdir(base)):
        path = os.path.join(base, name, "reference.md")
        if os.path.isfile(path):
            found[name] = read_dialect(path)
    return found
