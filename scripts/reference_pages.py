"""The reference pages: one a dialect, one anchor an operation, and the list of diagnostics."""

from reference_form import Form

GENERATED = "<!-- Made by `./dev docs` from the tables and the dialects' reference.md; edit those. -->\n"
CODE_WORDS = {"Error": "error", "Warning": "warning", "Note": "note", "Remark": "remark"}


def cell(text):
    return text.replace("|", "\\|")


def group_rows(op):
    rows = []
    for kind in ("operands", "results"):
        for group in op[kind]:
            many = {"many": ", any number", "optional": ", optional", "one": ""}[group["arity"]]
            rows.append((f"`%{group['name']}`", kind[:-1], group["type"] + many))
    return rows


def attribute_rows(op, enums):
    cases = {e["name"]: e["cases"] for e in enums}
    rows = []
    for attr in op["attributes"]:
        form = attr["form"].rstrip("?").rstrip("@")
        what = form
        if form.startswith("enum."):
            what = "one of " + " ".join(f"`{case}`" for case in cases[form[5:]])
        elif form.startswith("flags."):
            what = "flags"
        rows.append((f"`{attr['name']}`", "attribute", what + (", optional" if attr["optional"] else "")))
    return rows


def op_section(op, section, tables):
    lines = [f'<a id="{op["name"]}"></a>', f"## `{op['name']}`", "", f"{op['doc'][:1].upper()}{op['doc'][1:]}. "
             f"*{op['tier']}, {op['effect']}{', convergent' if op['convergent'] else ''}"
             f"{', ends a region' if op['terminator'] else ''}*", "", "```text",
             Form(op, tables["enums"], tables["flags"]).text(), "```", ""]
    rows = group_rows(op) + attribute_rows(op, tables["enums"])
    if rows:
        lines += ["| name | is | holds |", "|---|---|---|"]
        lines += [f"| {cell(a)} | {b} | {cell(c)} |" for a, b, c in rows]
        lines.append("")
    if section is None:
        return lines
    prose = "\n".join(section.prose).strip()
    if prose:
        lines += [prose, ""]
    if section.rules:
        lines += ["Refused with", ""]
        lines += [f"- [`{code}`](diagnostics.md#{code}): {text}" for code, text in section.rules]
        lines.append("")
    return lines


def dialect_page(name, ops, written, tables):
    introduction, sections = written
    by_name = {op_name: section for section in sections for op_name in section.names}
    lines = [GENERATED, f"# `{name}`", "", introduction, "", "| operation | tier | what it is |", "|---|---|---|"]
    lines += [f"| [`{op['name']}`](#{op['name']}) | {op['tier']} | {cell(op['doc'])} |" for op in ops]
    lines.append("")
    shown = set()
    for op in ops:
        section = by_name.get(op["name"])
        lines += op_section(op, section, tables)
        if section is not None and section.example is not None:
            if id(section) in shown:
                first = section.names[0]
                lines += [f"The example is the one of [`{first}`](#{first}).", ""]
            else:
                for example in section.example.split("\n// ----\n"):
                    lines += ["```loom", example, "```", ""]
                shown.add(id(section))
    return "\n".join(lines).rstrip("\n") + "\n"


def diagnostics_page(tables):
    lines = [GENERATED, "# Diagnostics", "",
             "Every code that a tool prints: `file:line:column: error[DOMAIN/NNN]: message`. A word in braces is",
             "filled in for the place. Codes are never reused.", ""]
    by_domain = {}
    for row in tables["diagnostics"]:
        by_domain.setdefault(row["domain"], {}).setdefault(row["number"], []).append(row)
    for domain, numbers in by_domain.items():
        lines += [f"## {domain}", ""]
        for number in sorted(numbers):
            code = f"{domain}/{number:03}"
            lines += [f'<a id="{code}"></a>', f"### `{code}`", ""]
            for row in numbers[number]:
                lines.append(f"- {CODE_WORDS.get(row['severity'], row['severity'])}: `{row['message']}`")
                if row["hint"] and row["hint"] != "{repair}":
                    lines.append(f"  Repair: {row['hint']}.")
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


REPORT_FORMS = {"count": "a number", "seconds": "a number of seconds", "text": "a text", "list": "a list of texts",
                "counts": "an object of numbers", "rows": "a list of objects"}
REPORT_KINDS = {
    "identity": "What was compiled, for what and by what; in the report's `identity`.",
    "artifact": "Read off the output; in the `artifact` of an entry.",
    "analysis": "What the compiler found out and decided; in the `analysis` of an entry.",
}


def report_page(report):
    lines = [GENERATED, "# Compile reports", "",
             f"What `loom-compile --compile-report` writes and `loom-report` reads: one JSON object of the schema "
             f"`{report['schema']}`.", "", "| member | holds |", "|---|---|", "| `schema` | the name above |",
             "| `level` | `summary` or `details` |", "| `identity` | the facts of the compilation, see below |",
             "| `entries` | one object each for the whole output (`module`), each `kernel`, each `function` that is "
             "called out of line, and each command `program` |", "",
             "An entry has its `kind`, its `name`, its `artifact` and its `analysis`. What is not known is absent; a "
             "zero is a fact. A `summary` has the facts that are marked so, `details` has all. Equal compilations "
             "give equal reports but for the times of `passes`.", ""]
    for kind, what in REPORT_KINDS.items():
        lines += [f"## {kind}", "", what, "", "| name | holds | unit | in a summary | what it is |", "|---|---|---|---|---|"]
        fields = [field for field in report["fields"] if field["kind"] == kind]
        lines += [f"| `{f['name']}` | {REPORT_FORMS[f['form']]} | {f['unit']} | "
                  f"{'yes' if f['level'] == 'summary' else ''} | {cell(f['doc'])} |" for f in fields]
        lines.append("")
        for field in fields:
            if field["columns"]:
                lines += [f"Each object of `{field['name']}`:", "", "| name | holds | what it is |", "|---|---|---|"]
                lines += [f"| `{c['name']}` | {REPORT_FORMS[c['form']]} | {cell(c['doc'])} |" for c in field["columns"]]
                lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def index_page(dialects, written, tables):
    lines = [GENERATED, "# Reference", "",
             "One page for each dialect; every operation has its form, what it holds, what it computes, what it is",
             "refused for, and an example that the tests run. `⟦x⟧` is optional, `x, …` a list with commas.", "",
             "| dialect | operations | what it is for |", "|---|---|---|"]
    for name, ops in dialects.items():
        first = written.get(name, ("", []))[0].split("\n\n")[0].replace("\n", " ")
        lines.append(f"| [`{name}`]({name}.md) | {len(ops)} | {cell(first)} |")
    lines += ["", "[Diagnostics](diagnostics.md) lists every code, [Compile reports](report.md) every fact of a report.", "", "## Types", "",
              "Scalars: " + " ".join(f"`{t}`" for t in tables["scalar_types"]) + ".", "",
              "Shaped: " + " ".join(f"`{t}<4x[%n]xf32>`" for t in tables["shaped_types"]) + ".", "",
              "Others: " + " ".join(f"`{t}`" for t in tables["opaque_types"]) + ".", "", "## Predicates", "",
              "| predicate | arguments | on |", "|---|---|---|"]
    lines += [f"| `{p['name']}` | {p['arguments']} | {p['domain'].lower()} values |" for p in tables["predicates"]]
    lines += ["", "## Flags", ""]
    lines += [f"- {f['name']}: " + " ".join(f"`{x}`" for x in f["flags"]) +
              (f"; all of them: `{f['all']}`" if f["all"] else "") for f in tables["flags"]]
    lines += ["", "## Words", "", "| what | cases |", "|---|---|"]
    lines += [f"| {e['text']} | {' '.join(f'`{c}`' for c in e['cases'])} |" for e in tables["enums"]]
    return "\n".join(lines) + "\n"


def pages(tables, written):
    """{path under docs/reference: text}"""
    dialects = {}
    for op in tables["ops"]:
        if op["tier"] != "T3":
            dialects.setdefault(op["dialect"], []).append(op)
    out = {"README.md": index_page(dialects, written, tables), "diagnostics.md": diagnostics_page(tables),
           "report.md": report_page(tables["report"])}
    for name, ops in dialects.items():
        out[f"{name}.md"] = dialect_page(name, ops, written.get(name, ("", [])), tables)
    return out
