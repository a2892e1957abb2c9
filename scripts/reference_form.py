"""Renders an operation's row of the tables as the form that its author writes."""

# What stands for an attribute's value, by the form in its row.
PLACEHOLDERS = {
    "int": "N", "float": "F", "literal": "V", "string": '"text"', "symbol": "@{name}",
    "symdef": "@{name}", "predicates": "[predicate, …]", "type": "type", "dict": "{{key = value, …}}",
    "intlist": "[N, …]", "indexlist": "index, …", "unit": "{name}", "encoding": "#family<…>",
    "encodinglist": "#condition, …", "symbollist": "@{name}, …", "bytes": 'bytes("hex")',
    "literallist": "V, …", "word": "{name}",
    "keys": "", "name": "{name}", "list": "[#{name}, …]", "symbols": "[@name, …]",
}


class Form:
    """The form of one operation: `Form(op, enums, flags).text()`."""

    def __init__(self, op, enums, flags):
        self.op = op
        self.enums = {e["name"]: e["cases"] for e in enums}
        self.flags = {f["name"]: f["flags"] for f in flags}
        self.attrs = {a["name"]: a for a in op["attributes"]}
        self.inside = False  # an optional group
        self.arity = {o["name"]: o["arity"] for o in op["operands"]}

    # --- pieces ---
    def value(self, name):
        """The placeholder of attribute `name`."""
        form = self.attrs[name]["form"].rstrip("?").rstrip("@")
        if form.startswith("enum."):
            cases = self.enums[form[5:]]
            return "|".join(cases) if len(cases) <= 4 else name
        if form.startswith("flags."):
            flags = self.flags[form[6:]]
            return "|".join(flags) if len(flags) <= 2 else name
        return PLACEHOLDERS.get(form, name).format(name=name)

    def optional(self, name, text):
        """Marks what an optional attribute writes; a group that is marked as a whole marks no part."""
        attr = self.attrs.get(name)
        return f"⟦{text}⟧" if not self.inside and attr is not None and attr["optional"] else text

    def operand(self, name):
        arity = self.arity.get(name, "one")
        return f"%{name}, …" if arity == "many" else f"⟦%{name}⟧" if arity == "optional" else f"%{name}"

    def entry(self, name):
        """`key = value` of an attribute in the dictionary."""
        return self.optional(name, f"{name} = {self.value(name)}")

    def word(self, text):
        """One word of the format as (text, glued to what stands before)."""
        if text == "~":
            return None
        head, _, rest = text.partition("(")
        args = rest.rstrip(")").split(",") if rest else []
        if text.startswith("%"):
            return self.operand(text[1:])
        if text.startswith("$"):
            return self.optional(text[1:], self.value(text[1:]))
        if text.startswith("&"):
            region = next(r for r in self.op["regions"] if r["name"] == text[1:])
            return "⟦{ … }⟧" if region["optional"] and not self.inside else "{ … }"
        render = RENDER.get(head) if rest else (RENDER.get(text) if text.isupper() else None)
        return render(self, args) if render else text

    def text(self):
        """The whole form on one line."""
        out = self.results() + self.op["name"]
        words = [w for w in self.op["format"].split(" ") if w]
        glue_next = False
        closing = (",", "]", ")", ">")
        for word in words:
            if word == "~":
                glue_next = True
                continue
            if word == "(?":
                out += ("" if glue_next else " ") + "⟦"
                glue_next = self.inside = True
                continue
            if word == "?)":
                self.inside = False
                out += "⟧"
                glue_next = False
                continue
            head = word.partition("(")[0]
            piece = self.word(word)
            if not piece:
                continue
            glued = glue_next or word in closing or head in GLUED and "(" in word
            out += piece if glued else " " + piece
            glue_next = word in ("[", "(", "<")
        return out.replace("⟦ ", " ⟦").replace("  ", " ").strip()

    def results(self):
        results = self.op["results"]
        if not results:
            return ""
        names = [f"%{r['name']}" + (", …" if r["arity"] == "many" else "") for r in results]
        text = ", ".join(names) + " = "
        return f"⟦{text}⟧" if all(r["arity"] == "many" for r in results) and any(
            o["arity"] == "many" for o in self.op["operands"]) is False else text


def _flags(form, args):
    return f"⟦<{form.value(args[0])}>⟧"


def _parameter(form, args):
    inner = form.value(args[0])
    if len(args) > 1:
        inner += form.optional(args[1], ", " + form.value(args[1]))
    return f"<{inner}>"


def _clause(form, args):
    inner = form.value(args[0]).strip("[]") if "list" in form.attrs[args[0]]["form"] else form.value(args[0])
    if len(args) > 1:
        inner += form.optional(args[1], ", " + form.value(args[1]))
    return form.optional(args[0], f"{args[0]}({inner})")


def _operand_clause(form, args):
    inner = form.operand(args[1]).strip("⟦⟧")
    text = f"{args[0]}({inner})"
    return text if form.arity.get(args[1]) == "one" or form.inside else f"⟦{text}⟧"


def _word(form, args):
    attr = form.attrs[args[0]]
    return form.optional(args[0], args[0] if attr["form"].startswith("unit") else form.value(args[0]))


def _dict(form, _args):
    attrs = [a for a in form.op["attributes"] if a["in_dict"]]
    if not attrs:
        return ""
    if all(a["optional"] for a in attrs):
        return "⟦{" + ", ".join(f"{a['name']} = {form.value(a['name'])}" for a in attrs) + "}⟧"
    return "{" + ", ".join(form.entry(a["name"]) for a in attrs) + "}"


# Format words with arguments; the list is the one of FormatKind in op_info.h.
RENDER = {
    "T": lambda form, args: f"type({args[0]})",
    "F": _flags,
    "P": _parameter,
    "C": _clause,
    "CO": _operand_clause,
    "W": _word,
    "D": _dict,
    "X": lambda form, args: form.optional(args[1], "[index, …]"),
    "S": lambda form, args: "(%arg: type, …)",
    "R": lambda form, args: "⟦ -> (type, …)⟧",
    "RT": lambda form, args: "⟦ -> (type, …)⟧",
    "A": lambda form, args: "%iv",
    "I": lambda form, args: "⟦(%carried = %init : type, …)⟧",
    "BA": lambda form, args: "⟦(%arg: type, …)⟧",
    "CS": lambda form, args: "{ case KEY { … } … default { … } }",
    "LR": lambda form, args: "{ KEY = (%row, …), … }",
    "PK": lambda form, args: "[align(N) %size, …]",
    "TO": lambda form, args: f"{args[0]}(V to V)",
    "OD": lambda form, args: "{key = %value : type, …}" if form.inside else "⟦{key = %value : type, …}⟧",
    "K": lambda form, args: "⟦%value: ⟧type",
}
GLUED = {"F", "P", "X", "S", "R", "RT", "I", "BA"}
