"""Grammar files for editors: TextMate (VS Code) and tree-sitter, from the same tables."""

import json
import re

OP_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)+"
NOTE = "Made by ./dev docs from the tables of the language."


def words_of(tables):
    """Every bare word that a format, enum, flag set or modifier spells."""
    words = {"true", "false", "where"}
    for op in tables["ops"]:
        for word in op["format"].split(" "):
            if re.fullmatch(r"[a-z_]+", word):
                words.add(word)
            clause = re.fullmatch(r"[A-Z]+\((\w+).*\)", word)
            if clause and word.split("(")[0] in ("C", "CO", "W", "CL"):
                words.add(clause[1])
    for enum in tables["enums"]:
        words.update(enum["cases"])
    for flags in tables["flags"]:
        words.update(flags["flags"])
        if flags["all"]:
            words.add(flags["all"])
    return sorted(word for word in words if re.fullmatch(r"[A-Za-z_]\w*", word))


def alternatives(names):
    return "|".join(re.escape(name) for name in sorted(names, key=lambda n: (-len(n), n)))


def textmate(tables):
    ops = [op["name"] for op in tables["ops"]]
    symbols = [op["name"] for op in tables["ops"] if op["symbol"]]
    scalars = tables["scalar_types"]
    shaped = tables["shaped_types"]
    opaque = [name for name in tables["opaque_types"] if "<" not in name]
    predicates = [p["name"] for p in tables["predicates"]]
    bounds = r"(?<![\w.%@#$-])", r"(?![\w.])"

    def rule(scope, pattern):
        return {"name": f"{scope}.loom", "match": pattern}

    patterns = [
        rule("comment.line.double-slash", r"//.*$"),
        {"name": "string.quoted.double.loom", "begin": '"', "end": '"',
         "patterns": [rule("constant.character.escape", r'\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})')]},
        rule("keyword.declaration", f"{bounds[0]}(?:{alternatives(symbols)}){bounds[1]}"),
        rule("keyword.operator.word", f"{bounds[0]}(?:{alternatives(set(ops) - set(symbols))}){bounds[1]}"),
        rule("invalid.illegal.unknown-operation",
             r"(?:(?<==\s)|^\s*)(?:" + alternatives({op["dialect"] for op in tables["ops"]}) + r")\.[\w.]+"),
        rule("variable.other", r"%[A-Za-z0-9_$.-]+"),
        rule("entity.name.function", r"@[A-Za-z0-9_$.-]+"),
        rule("entity.other.attribute-name", r"#[A-Za-z_][\w.]*"),
        rule("storage.type", f"{bounds[0]}(?:{alternatives(shaped + opaque)})(?![\\w])"),
        rule("storage.type.scalar", r"(?<![A-Za-z_.%@#$-])(?:" + alternatives(scalars) + r")(?![\w.])"),
        rule("support.function.predicate", f"{bounds[0]}(?:{alternatives(predicates)})(?=\\()"),
        rule("constant.language", f"{bounds[0]}(?:true|false|inf|nan){bounds[1]}"),
        rule("keyword.other", f"{bounds[0]}(?:{alternatives(words_of(tables))}){bounds[1]}"),
        rule("constant.numeric", r"(?<![\w%@#$.])-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|inf\b|nan\b)"),
        rule("punctuation.separator.arrow", r"->"),
    ]
    return {"$comment": NOTE, "name": "Loom", "scopeName": "source.loom", "fileTypes": ["loom"],
            "patterns": patterns}


def vscode_package():
    return {
        "name": "loom-language", "displayName": "Loom", "publisher": "hyperloom", "version": "0.1.0",
        "description": "Syntax of the Loom kernel language", "license": "Apache-2.0",
        "engines": {"vscode": "^1.60.0"}, "categories": ["Programming Languages"],
        "contributes": {
            "languages": [{"id": "loom", "aliases": ["Loom"], "extensions": [".loom"],
                           "configuration": "./language-configuration.json"}],
            "grammars": [{"language": "loom", "scopeName": "source.loom",
                          "path": "./syntaxes/loom.tmLanguage.json"}],
        },
    }


LANGUAGE_CONFIGURATION = {
    "comments": {"lineComment": "//"},
    "brackets": [["{", "}"], ["[", "]"], ["(", ")"]],
    "autoClosingPairs": [["{", "}"], ["[", "]"], ["(", ")"], ["<", ">"], ['"', '"']],
    "indentationRules": {"increaseIndentPattern": "\\{\\s*(//.*)?$", "decreaseIndentPattern": "^\\s*\\}"},
}

TREE_SITTER = r"""// __NOTE__
//
// An operation is its results, its name from the tables, and parts: values, types, words and
// bracketed lists. Which parts an operation takes is the compiler's to check.
const OPERATIONS = __OPERATIONS__;
const SCALARS = __SCALARS__;
const SHAPED = __SHAPED__;
const OPAQUE = __OPAQUE__;

module.exports = grammar({
  name: 'loom',
  extras: ($) => [/\s/, $.comment],
  word: ($) => $.word,
  conflicts: ($) => [[$.operation, $._part]],
  rules: {
    source_file: ($) => repeat(choice($.operation, $.alias)),
    comment: () => token(seq('//', /[^\n]*/)),
    alias: ($) => seq($.attribute, '=', $.attribute),
    operation: ($) =>
      prec.right(
        seq(
          optional(seq(field('result', $.value), repeat(seq(',', field('result', $.value))), '=')),
          field('name', $.operation_name),
          repeat($._part),
        ),
      ),
    operation_name: () => token(prec(2, choice(...OPERATIONS))),
    _part: ($) =>
      choice(
        $.value, $.symbol, $.attribute, $.type, $.number, $.string, $.word, $.qualified_word,
        $.parameters, $.list, $.arguments, $.region, ',', ':', '->', '=', '|',
      ),
    parameters: ($) => seq('<', repeat($._part), '>'),
    list: ($) => seq('[', repeat($._part), ']'),
    arguments: ($) => seq('(', repeat($._part), ')'),
    region: ($) => seq('{', repeat(choice($.operation, $._entry)), '}'),
    // Entries of dictionaries and of tables share the braces with regions.
    _entry: ($) => $._part,
    type: ($) => choice($.scalar_type, $.shaped_type, $.opaque_type),
    scalar_type: () => token(prec(1, choice(...SCALARS))),
    shaped_type: ($) =>
      seq(token(prec(1, choice(...SHAPED.map((kind) => kind + '<')))), repeat($._dimension),
          $.scalar_type, repeat(seq(',', choice($.value, $.attribute, seq('align', '(', $.number, ')')))), '>'),
    _dimension: () => token(prec(3, /(\d+|\[%[A-Za-z0-9_$.-]+\])x/)),
    opaque_type: () => token(prec(1, choice(...OPAQUE))),
    value: () => /%[A-Za-z0-9_$.-]+/,
    symbol: () => /@[A-Za-z0-9_$.-]+/,
    attribute: ($) => prec.right(seq(/#[A-Za-z_][\w.]*/, optional($.parameters))),
    number: () => token(/-?(0x[0-9A-Fa-f]+|\d+(\.\d+)?([eE][+-]?\d+)?|inf|nan)/),
    string: () => /"([^"\\\n]|\\.)*"/,
    word: () => /[A-Za-z_]\w*/,
    qualified_word: () => /[A-Za-z_]\w*(\.\w+)+/,
  },
});
"""

HIGHLIGHTS = """; __NOTE__
(comment) @comment
(operation_name) @keyword
(value) @variable
(symbol) @function
(attribute) @attribute
(scalar_type) @type.builtin
(shaped_type) @type
(opaque_type) @type
(number) @number
(string) @string
(word) @property
"""


def javascript_list(names):
    return "[\n" + "".join(f"  '{name}',\n" for name in names) + "]"


def tree_sitter(tables):
    replacements = {
        "__NOTE__": NOTE,
        "__OPERATIONS__": javascript_list(op["name"] for op in tables["ops"]),
        "__SCALARS__": javascript_list(tables["scalar_types"]),
        "__SHAPED__": javascript_list(tables["shaped_types"]),
        "__OPAQUE__": javascript_list(tables["opaque_types"]),
    }
    text = TREE_SITTER
    for mark, value in replacements.items():
        text = text.replace(mark, value)
    return text


def to_json(value):
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def files(tables):
    """{path: text} of everything under editors/ that the tables decide."""
    return {
        "editors/vscode/package.json": to_json(vscode_package()),
        "editors/vscode/language-configuration.json": to_json(LANGUAGE_CONFIGURATION),
        "editors/vscode/syntaxes/loom.tmLanguage.json": to_json(textmate(tables)),
        "editors/tree-sitter-loom/grammar.js": tree_sitter(tables),
        "editors/tree-sitter-loom/queries/highlights.scm": HIGHLIGHTS.replace("__NOTE__", NOTE),
        "editors/tree-sitter-loom/package.json": to_json({
            "name": "tree-sitter-loom", "version": "0.1.0", "description": "Loom grammar for tree-sitter",
            "license": "Apache-2.0",
            "tree-sitter": [{"scope": "source.loom", "file-types": ["loom"],
                             "highlights": "queries/highlights.scm"}],
        }),
    }
