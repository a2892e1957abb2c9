#!/usr/bin/env python3
"""Checks what no compiler checks: who includes whom, room READMEs, sizes and forbidden marks.

Usage: lint_structure.py [--root=FOLDER]

The rooms and the arrows between them are the `loom_room(...)` and `hyperloom_room(...)` calls of the
top CMakeLists.txt; this script keeps no second table. Exit status: 0 clean, 1 complaints (on standard error). Sizes are
reported and never fail.
"""

import os
import re
import sys

# Rooms that code outside src/loom may include besides its own folder; None allows every room.
OUTSIDE = {
    # A tool is a pipeline over the stages; facts are reached through them.
    "tools": {"aot", "api", "base", "bytecode", "cache", "check", "command", "diag", "dialect", "ir", "link",
              "pass", "report", "runtime", "runtime/cpu", "runtime/host", "runtime/parameters",
              "target/llvm", "target/x86", "text", "hyperloom/app", "hyperloom/workload"},
    "tests": None,  # End-to-end suites look into any room.
    "bench": None,  # Benchmarks time single rooms.
}
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80
SOURCE_ENDINGS = (".h", ".cpp", ".def")
TEXT_ENDINGS = SOURCE_ENDINGS + (
    ".md", ".sh", ".py", ".txt", ".cmake", ".json", ".loom", ".yml", ".mlir")

# A room of src/loom is called by its path there, one of src/hyperloom by its path in src.
HALVES = ("loom", "hyperloom")
ROOM_CALL = re.compile(r"^\s*(loom|hyperloom)_room\(([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
MARK = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# Spelled apart, so that this file does not complain about itself.
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:" + "work" + r"|home/\w+)/")
FUNCTION_START = re.compile(r"^(  )?[\w:~\[<][^;#]*$")
NOT_A_FUNCTION = re.compile(r"^\s*(namespace|struct|class|enum|union|extern|using|public|private)\b")


class Lint:
    def __init__(self, root):
        self.root = root
        self.complaints = 0
        self.reports = []
        self.rooms = {}  # room -> set of rooms it may include

    def complain(self, path, line, problem, repair):
        place = f"{path}:{line}" if line else path
        print(f"{place}: error: {problem}; {repair}", file=sys.stderr)
        self.complaints += 1

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
            return file.read()

    def files(self, top, endings):
        for folder, folders, names in os.walk(os.path.join(self.root, top)):
            folders[:] = sorted(
                f for f in folders if not f.startswith((".", "build")) and f != "__pycache__")
            for name in sorted(names):
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(folder, name), self.root)

    def read_rooms(self):
        text = re.sub(r"#.*", "", self.read("CMakeLists.txt"))
        for call in ROOM_CALL.finditer(text):
            half, words = call.group(1), call.group(2).split()
            own = "" if half == "loom" else half + "/"
            room, deps, inside = own + words[0], set(), None
            for word in words[1:]:
                if word in ("DEPS", "LIBS"):
                    inside = word
                elif inside == "DEPS":
                    deps.add(word[len("loom/"):] if word.startswith("loom/") else own + word)
            line = text.count("\n", 0, call.start()) + 1
            for dep in sorted(deps - self.rooms.keys()):
                self.complain("CMakeLists.txt", line, f"room '{room}' depends on '{dep}', which is "
                              "not declared above it", "list rooms from the ground up")
            self.rooms[room] = deps
        if not self.rooms:
            self.complain("CMakeLists.txt", 0, "no loom_room(...) call found", "declare the rooms")

    def room_of(self, path):
        """The innermost room that holds `path`, which is relative to src."""
        folder = os.path.dirname(path.removeprefix("loom/"))
        while folder and folder not in self.rooms:
            folder = os.path.dirname(folder)
        return folder or None

    def check_includes(self, path, own_room, allowed, owner):
        for number, line in enumerate(self.read(path).splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            quote, target = match.groups()
            if not target.startswith(tuple(half + "/" for half in HALVES)):
                known = quote == "<" or own_room is None
                if not known:
                    self.complain(path, number, f'"{target}" is not a path from src/',
                                  'write "loom/<room>/<file>.h", or <...> for a library')
                continue
            room = self.room_of(target)
            if room is None:
                self.complain(path, number, f'"{target}" lies in no room',
                              "declare its room with loom_room in CMakeLists.txt")
            elif room != own_room and allowed is not None and room not in allowed:
                listed = ", ".join(sorted(allowed)) or "none"
                self.complain(
                    path, number, f"{owner} may not include '{room}' (it may include: {listed})",
                    "move the code to the room that owns it, or add the arrow "
                    + ("to DEPS in CMakeLists.txt" if own_room else "in scripts/lint_structure.py"))

    def check_arrows(self):
        for path in (p for half in HALVES for p in self.files("src/" + half, SOURCE_ENDINGS)):
            room = self.room_of(os.path.relpath(path, "src"))
            if room is None:
                self.complain(path, 0, "lies in no room",
                              "move it, or declare its room with loom_room in CMakeLists.txt")
                continue
            self.check_includes(path, room, self.rooms[room], f"room '{room}'")
        for top, allowed in OUTSIDE.items():
            for path in self.files(top, SOURCE_ENDINGS):
                self.check_includes(path, None, allowed, f"{top}/")

    def check_readmes(self):
        for room in self.rooms:
            path = f"src/{room}" if room.startswith("hyperloom/") else f"src/loom/{room}"
            if not any(True for _ in self.files(path, SOURCE_ENDINGS)):
                self.complain(path, 0, f"room '{room}' is declared but empty",
                              "remove its loom_room call or add its sources")
            elif not os.path.exists(os.path.join(self.root, path, "README.md")):
                self.complain(path, 0, "has no README.md",
                              "write one screen: what comes in, what goes out, what it may use, "
                              "how to add one more")

    def check_marks(self):
        for top in ("src", "tools", "tests", "bench"):
            for path in self.files(top, TEXT_ENDINGS):
                for number, line in enumerate(self.read(path).splitlines(), 1):
                    if match := MARK.search(line):
                        self.complain(path, number, f"{match.group()} in the source",
                                      "finish it, or file an issue and remove the mark")
        for path in self.files(".", TEXT_ENDINGS + ("dev", "run")):
            for number, line in enumerate(self.read(path).splitlines(), 1):
                if match := MACHINE_PATH.search(line):
                    self.complain(path, number, f"names the machine path {match.group()}",
                                  "use a path from the repository root or a temporary folder")

    def check_sizes(self):
        for top in ("src", *OUTSIDE):
            for path in self.files(top, (".h", ".cpp")):
                lines = self.read(path).splitlines()
                if len(lines) > MAX_FILE_LINES:
                    self.reports.append(f"{path}: {len(lines)} lines; split it by idea "
                                        f"(limit {MAX_FILE_LINES})")
                for start, length in long_functions(lines):
                    self.reports.append(f"{path}:{start}: function of {length} lines; take a step "
                                        f"out (limit {MAX_FUNCTION_LINES})")

    def run(self):
        self.read_rooms()
        self.check_arrows()
        self.check_readmes()
        self.check_marks()
        self.check_sizes()
        for report in self.reports:
            print(f"{report} [report only]", file=sys.stderr)
        return 1 if self.complaints else 0


def long_functions(lines):
    """Yields (line, length) of function definitions over the limit.

    Reads the layout that the formatter guarantees: a definition starts at the margin (or two
    columns in, inside a class) and ends at the first line that holds `}` at the same column.
    """
    index = 0
    while index < len(lines):
        match = FUNCTION_START.match(lines[index])
        if not match or NOT_A_FUNCTION.match(lines[index]):
            index += 1
            continue
        indent = match.group(1) or ""
        opening = index
        # A signature may take several lines before its opening brace.
        while opening < len(lines) and opening - index < 12 and not lines[opening].endswith("{"):
            if lines[opening].endswith((";", "}", ",")) and opening == index and "(" not in lines[opening]:
                break
            if lines[opening].endswith((";", "}")):
                break
            opening += 1
        if opening >= len(lines) or not lines[opening].endswith("{") \
                or "(" not in "".join(lines[index:opening + 1]):
            index += 1
            continue
        end = opening + 1
        while end < len(lines) and not lines[end].startswith(indent + "}"):
            end += 1
        if end - index + 1 > MAX_FUNCTION_LINES:
            yield index + 1, end - index + 1
        index = end + 1


def main(arguments):
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for argument in arguments:
        if not argument.startswith("--root="):
            print(__doc__, file=sys.stderr)
            return 2
        root = argument[len("--root="):]
    return Lint(root).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
