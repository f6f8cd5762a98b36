"""The pages of the formulations, made from the docstrings of their modules, and the builds.

A page is the docstring, typeset; then the functions that state the model in each modelling layer, an example,
parameters and methods. ``docs/formulations/ROOM.NAME.md``, if there is one, adds prose to it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from functools import cache
from html import escape
from pathlib import Path
from textwrap import dedent
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from blocks import table as table_of

from opticoll.analysis.describe import describe
from opticoll.formulations import formulation
from opticoll.formulations.model import forms_of
from opticoll.solvers.methods import method_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from opticoll.analysis.describe import Description, ParameterRow
    from opticoll.analysis.problem.model_sizes import Sizes

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "formulations"
FORMS = {"pyomo": "Pyomo", "cvxpy": "CVXPY", "matrix": "Sparse matrices"}
#: Functions of a build that only name indices or count.
HELPERS = {"arc_names", "named_paths", "pair_names", "vertex_names", "_refuse_large", "estimate"}

# The parts of a docstring: headline, definitions, then paragraphs, of which indented ones are rows or formulas.
DEFINITION = re.compile(r"^(Source|Sets|Data|Vars) +(.*(?:\n .*)*)", re.MULTILINE)
TITLES = {"Sets": "Sets", "Data": "Data", "Vars": "Variables"}
#: A constraint: its name, with indices or two spaces after it, then columns that two spaces separate.
ROW = re.compile(r"([a-z]\w*(?:\[[^\]]*\]|(?=  ))) +(.*)")
EQUATION = re.compile(r"\(\d+[),].*")
#: A symbol with its range, where words follow; else the text of an entry stays whole.
NAMED = r"(?:[A-Za-z]+_\w+|[A-Z][a-z]+|[A-Za-z]|delay|startup|kappa)\b(?:\[[\w,]+\])?"
RANGE = r" (?:in|<=|>=|>) (?:\{0,1\}|\[0, [\w-]+\]|[\w-]+ ?\.\. ?[\w-]+|[\w-]+)"
PAIR = rf"{NAMED} = (?:\([\w,]+\)(?: in \w+)?|\w+ ?\.\. ?[\w-]+)"
WIDE = rf"(?:\w+ <= )?{NAMED} (?:in|<=|>=) (?:\{{[\w. -]+\}}|[\w()|/ .+-]+?)"
SYMBOL = re.compile(
    rf"(?P<ranged>(?:\w+ <= )?(?:{NAMED}, )*{NAMED}{RANGE}),? +(?=[a-z])(?!sum)"
    rf"|(?P<pair>{PAIR}),? +(?=[a-z]{{3}})"
    rf"|(?P<wide>{WIDE}),? +(?!kappa)(?=[a-z]{{4,}}\b(?![(_^])|GPUs)"
    rf"|(?P<bare>(?:{NAMED}, )*{NAMED}),? +(?=[a-z]{{3}}(?<!and)|GPUs)"
)
UNIT = re.compile(r" \[([^\]=,]*[a-z][^\]=,]*|[A-Z-])\]")
SHAPE = re.compile(r", (\([^()]*,[^()]*\))(?=$|[:,])")

# Typesetting of plain-text mathematics: what is not recognised stays as it is written.
GREEK = {"alpha": "\u03b1", "beta": "\u03b2", "delta": "\u03b4", "theta": "\u03b8", "kappa": "\u03ba", "rho": "\u03c1"}
GREEK |= {"tau": "\u03c4", "Delta": "\u0394", "Lambda": "\u039b"}
SIGNS = {"<=": "\u2264", ">=": "\u2265", "!=": "\u2260", "not in": "\u2209", "in": "\u2208", "sum": "\u2211"}
INDEX = r"-?\w+(?:[+-]1)?"
SUBSCRIPT = re.compile(
    r"\b([A-Za-z](?:\^\d)?|[A-Za-z]+(?=_[{(]|_\w{1,3}\b)|sum|union)_"
    rf"(?:\{{([^{{}}]*)\}}|\(([^()]*)\)|(max|min)\b|({INDEX}(?:,{INDEX})*))"
)
MARKUP = re.compile(r"``.+?``|:\w+:`[^`]+`|\*\w[^*]*\w\*")


def typeset(text: str, *, prose: bool = False) -> str:
    """Plain-text mathematics as HTML with subscripts and signs; in prose, "in" is a word."""

    def subscript(found: re.Match[str]) -> str:
        base, index = found[1], next(part for part in found.groups()[1:] if part is not None)
        return f"{base}\x01{SUBSCRIPT.sub(subscript, index)}\x02"

    text = re.sub(r"\^(-?[A-Za-z0-9]+)", "\x03\\1\x04", SUBSCRIPT.sub(subscript, text))
    words = {sign: made for sign, made in SIGNS.items() if not (prose and sign.endswith("in"))} | GREEK
    pattern = "|".join(
        rf"(?<![A-Za-z]){word}(?![A-Za-z])" + r"(?=\x01)" * (word == "sum") if word[0].isalpha() else re.escape(word)
        for word in words
    )
    text = re.sub(pattern, lambda found: words[found[0]], text)
    text = re.sub(r"[*_`$|\[\]{}\\#~^]", lambda found: f"&#{ord(found[0])};", escape(text, quote=False))
    for mark, tag in zip("\x01\x02\x03\x04", ("<sub>", "</sub>", "<sup>", "</sup>"), strict=True):
        text = text.replace(mark, tag)
    return text


def formula(text: str, *, words: bool = False) -> str:
    """A formula within a line or a cell, perhaps with words."""
    return f'<span class="formula">{typeset(text, prose=words)}</span>' if text else ""


def _table(heads: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """A table without the columns that are empty."""
    used = [number for number in range(len(heads)) if any(row[number] for row in cells)]
    return [*table_of((heads[k] for k in used), ([row[k] for k in used] for row in cells)), ""]


def prose(text: str) -> str:
    """A text of a docstring as Markdown: its markup, and the mathematics between."""
    pieces, end = [], 0
    for found in MARKUP.finditer(text):
        pieces.append(typeset(text[end : found.start()], prose=True))
        mark, end = found[0], found.end()
        if mark.startswith("``"):
            mark = mark[1:-1]
        elif mark.startswith(":"):
            _, role, target = mark.split(":", 2)
            mark = f"{{py:{role}}}{target}"
        pieces.append(mark.replace("|", "\\|") if mark.startswith("`") else mark)
    return "".join([*pieces, typeset(text[end:], prose=True)])


def definitions(text: str) -> dict[str, str]:
    """Source, Sets, Data and Vars of a docstring, each as one line."""
    head = text[: text.find("s.t.")]
    return {found[1]: " ".join(found[2].split()) for found in DEFINITION.finditer(head)}


def entries(text: str) -> list[tuple[str, str, str, str]]:
    """Symbol, meaning, unit and shape of each entry of a definition; semicolons separate entries."""
    rows: list[tuple[str, str, str, str]] = []
    for entry in re.split(r"; (?![^(\[]*[)\]])", text):
        condition = re.match(r"(?:also )?((?:with )?``[^`]+``(?: > 0)?): ", entry)
        rest = entry[condition.end() :] if condition else entry
        found = SYMBOL.match(rest)
        symbol, meaning = (found[found.lastgroup or 0], rest[found.end() :]) if found else ("", rest)
        if unit := UNIT.search(meaning):
            meaning = meaning[: unit.start()] + meaning[unit.end() :]
        if shape := SHAPE.search(meaning):
            meaning = meaning[: shape.start()] + meaning[shape.end() :]
        meaning = meaning.strip(" ,:") + (f" ({condition[1]})" if condition else "")
        if rows and not symbol and re.match(r"[a-z]{2,} (?![=><]|in )", meaning):  # a sentence on the entry before
            rows[-1] = (rows[-1][0], f"{rows[-1][1]}; {meaning}", *rows[-1][2:])
            continue
        rows.append((symbol, meaning, unit[1] if unit else "", shape[1] if shape else ""))
    return rows


def blocks(text: str) -> list[str]:
    """What follows the definitions: paragraphs and indented blocks, the objective first."""
    head = list(DEFINITION.finditer(text[: text.find("s.t.")]))
    rest = re.sub(r"(s\.t\.)\n(?=  )", r"\1\n\n", text[head[-1].end() :])
    return [block for block in re.split(r"\n\s*\n", rest) if block.strip()]


def rows(block: str) -> list[tuple[str, str, str, str]]:
    """Name, statement, condition and equation of the lines of a block; none for other formulas.

    A line without a name continues the constraint before it, or heads those of a variant.
    """
    found = []
    for line in block.splitlines():
        match = ROW.fullmatch(line.strip()) if len(line) - len(line.lstrip()) <= 4 else None
        name, rest = (match[1], match[2]) if match else ("", line.strip())
        statement, *others = re.split(r" {2,}", rest)
        equation = others.pop() if others and EQUATION.match(others[-1]) else ""
        found.append((name, statement, "; ".join(others), equation))
    return found if any("[" in name for name, *_ in found) else []


def mathematics(name: str) -> list[str]:
    """The docstring of a formulation as Markdown, its constraints with the lines of the builds that state them."""
    text = inspect.cleandoc(sys.modules[formulation(name).__module__].__doc__ or "")
    known = definitions(text)
    parts = [prose(text.split("\n\n", 1)[0].replace("\n", " ")) + "\n", f"Source: {prose(known['Source'])}.\n"]
    for key, title in TITLES.items():
        cells = [
            (formula(symbol), prose(meaning), prose(unit), formula(shape))
            for symbol, meaning, unit, shape in entries(known[key])
        ]
        parts += [f"## {title}\n", *_table(("Symbol", "Meaning", "Unit", "Shape"), cells)]
    parts.append("## Model\n")
    stated = {form: lines_of(name, form) for form in ("pyomo", "cvxpy")}
    for block in blocks(text):
        table = rows(block) if block.startswith("  ") else []
        if table:
            parts += _constraints(table, stated)
        elif block.startswith("  "):
            parts += ["```text", dedent(block), "```\n"]
        elif "s.t." in block:
            objective = [re.sub(r" {2,}", "   ", line).strip() for line in block.split("s.t.")[0].strip().splitlines()]
            parts += ["<br>\n".join(_objective(line) for line in objective) + ", subject to\n"]
        else:
            parts += [prose(block) + "\n"]
    return parts


def _objective(line: str) -> str:
    return "".join(
        piece.replace("``", "`") if piece.startswith("``") else formula(piece, words=True)
        for piece in re.split(r"(``[^`]+``)", line)
    )


def _constraints(table: Sequence[tuple[str, str, str, str]], stated: dict[str, dict[str, str]]) -> list[str]:
    cells = []
    for name, statement, condition, equation in table:
        links = [lines.get(name.split("[")[0], "") for lines in stated.values()]
        where = prose(condition) if "``" in condition else formula(condition)
        cells.append([f"`{name}`" if name else "", formula(statement), where, equation, *links])
    return _table(["Constraint", "Statement", "For", "Equation", *(FORMS[form] for form in stated)], cells)


def lines_of(name: str, form: str) -> dict[str, str]:
    """Links to the lines of a build that name a constraint or variable, by what they name."""
    links: dict[str, str] = {}
    for function in functions_of(getattr(formulation(name), form)):
        source, first = inspect.getsourcelines(function)
        tree = ast.parse(dedent("".join(source)))
        for node in ast.walk(tree):
            names = [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
            names += [node.attr] if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) else []
            for one in names:
                if one.isidentifier():
                    links.setdefault(one, f"[line&nbsp;{first + node.lineno - 1}](#{anchor(name, form, function)})")
    return links


def anchor(name: str, form: str, function: FunctionType) -> str:
    """Label of the listing of a function on the page of a formulation."""
    text = f"{name} {form} {function.__module__.partition('.')[2]} {function.__qualname__}"
    return "-".join(re.findall(r"[a-z0-9]+", text.lower()))


@cache
def page(name: str) -> str:
    """All of a page but its prose, as Markdown."""
    about = next(one for one in describe(name) if one.kind == "formulation")
    parts = [
        f"Module {{py:mod}}`{formulation(name).__module__}`{_claims(name.split('.', 1)[0])}\n",
        *mathematics(name),
        *_builds(name),
        *_example(about),
        *_parameters(about.parameters),
        *_methods(about),
    ]
    return "\n".join(parts)


def heading(name: str) -> str:
    """The first line of a page, and the line by which one with prose includes the rest."""
    return f"# `{name}`\n\n```{{include}} ../generated/formulations/{name}.inc\n```\n"


def _example(about: Description) -> list[str]:
    lines = ["## Example\n", "```console", f"$ {about.example}", "```\n"]
    if about.sizes is not None:
        lines += [f"Model: {_model_line(about.sizes)}.\n"]
    if (needed := about.facts.get("needs")) is not None:
        lines += [f"A solution of `{needed}` is part of the data; it is solved first.\n"]
    return lines


def _model_line(sizes: Sizes) -> str:
    known = {"variables": sizes.variables, "rows": sizes.constraints, "nonzeros": sizes.nonzeros}
    text = ", ".join(f"{number:,} {what}" for what, number in known.items() if number is not None)
    return f"{text}; `auto` chooses `{sizes.auto}`" if sizes.auto else text


def _parameters(rows: Sequence[ParameterRow]) -> list[str]:
    if not rows:
        return ["## Parameters\n", "None.\n"]
    cells = []
    for row in rows:
        choices = f" ({', '.join(f'`{choice}`' for choice in row.choices)})" if row.choices else ""
        default = "–" if row.default in (None, "") else f"`{str(row.default).lower()}`"
        cells.append((f"`{row.name}`", default, _escaped(row.help) + choices))
    return ["## Parameters\n", *table_of(("`--set`", "Default", "Meaning"), cells), ""]


def _methods(about: Description) -> list[str]:
    lines = ["## Methods and solvers\n"]
    if about.methods:
        rows = ((f"`{name}`", _escaped(method_named(name).title)) for name in about.methods)
        lines += [*table_of(("Method", "Algorithm"), rows), ""]
    return [*lines, f"Solvers of the stated model: {', '.join(f'`{name}`' for name in about.solvers)}.\n"]


def _builds(name: str) -> Iterator[str]:
    model = formulation(name)
    for form, title in FORMS.items():
        if form not in forms_of(model):
            continue
        yield f"## {title} build\n"
        for function in functions_of(getattr(model, form)):
            path = Path(inspect.getfile(function)).resolve().relative_to(ROOT)
            yield f"({anchor(name, form, function)})=\n```{{literalinclude}} /../{path.as_posix()}"
            yield f":pyobject: {function.__qualname__}\n:lineno-match:\n:caption: {path.as_posix()}\n```\n"


def functions_of(build: Any) -> list[FunctionType]:
    """A build and the functions of :mod:`opticoll.formulations` that it calls, in the order of the calls."""
    functions: list[FunctionType] = []
    left = [build]
    while left:
        function = left.pop(0)
        if function in functions:
            continue
        functions.append(function)
        names = list(_names(function.__code__))
        known = [function.__globals__.get(name) for name in names]
        modules = [one for one in known if isinstance(one, ModuleType)]
        known += [vars(module).get(name) for module in modules for name in names]
        for target in known:
            own = isinstance(target, FunctionType) and target.__module__.startswith("opticoll.formulations.")
            if own and target.__name__ not in HELPERS:
                left.append(target)
    return functions


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _claims(paper: str) -> str:
    file = ROOT / "docs" / "generated" / "claims" / f"{paper}.md"
    return f"; [claims of the paper](/generated/claims/{paper}.md), as measured." if file.exists() else "."


def _escaped(text: str | None) -> str:
    """Text of a table cell, in which ``|`` and ``*`` stand for themselves."""
    return re.sub(r"([|*\[\]])", r"\\\1", text or "")
