"""Generated parts of the pages in docs/formulations: parameters, methods, sizes, an example and the builds."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from opticoll.analysis.describe import describe
from opticoll.formulations import formulation
from opticoll.formulations.model import forms_of
from opticoll.solvers.methods import method_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from opticoll.analysis.describe import Description, ParameterRow, Sizes

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "formulations"
FORMS = {"pyomo": "Pyomo", "cvxpy": "CVXPY", "matrix": "Sparse matrices"}
#: Functions of a build that only name indices or count.
HELPERS = {"arc_names", "named_paths", "pair_names", "vertex_names", "_refuse_large", "estimate"}
#: Sections of every page; further ones, such as "Bounds and closed forms", may follow.
SECTIONS = ("Sets and data", "Variables", "Objective", "Constraints")
#: A variable: the first cell of a row of the table below "## Variables". A constraint: the start of a paragraph.
VARIABLE = re.compile(r"^\| `(\w+)(?:\[[^]`]*\])?`")
CONSTRAINT = re.compile(r"^`(\w+)(?:\[[^]`]*\])?`")


def sections(text: str) -> dict[str, str]:
    """Text of the sections of a page by their headings."""
    return dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))


def inclusion(name: str) -> str:
    """The line of a page that includes its generated part."""
    return f"```{{include}} ../generated/formulations/{name}.inc"


def lacking(name: str, folder: Path = PAGES) -> list[str]:
    """Headings and other lines that the page of a formulation, if there is one, lacks."""
    page = folder / f"{name}.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    wanted = [f"## {title}" for title in SECTIONS if title not in sections(text)]
    return wanted if inclusion(name) in text else [*wanted, inclusion(name)]


def missing(names: Iterable[str], folder: Path = PAGES) -> list[str]:
    """A line for every page that is missing, incomplete, or of no formulation."""
    others = sorted({page.stem for page in folder.glob("*.md")} - {*names})
    lines = [f"docs/formulations/{name}.md: there is no formulation {name}" for name in others]
    for name in names:
        if wanted := lacking(name, folder):
            lines.append(f"docs/formulations/{name}.md needs {', '.join(wanted)}; optree.one-stage.md is an example")
    return lines


def stated(text: str) -> tuple[set[str], set[str]]:
    """Names of the variables and of the constraints that a page states."""
    part = sections(text)
    variables = [
        re.findall(r"`(\w+)", line.split("|")[1]) for line in part["Variables"].splitlines() if VARIABLE.match(line)
    ]
    constraints = [result[1] for line in part["Constraints"].splitlines() if (result := CONSTRAINT.match(line))]
    return {name for names in variables for name in names}, set(constraints)


def generated(name: str) -> str:
    """What follows the mathematics on the page of a formulation, as Markdown."""
    about = next(one for one in describe(name) if one.kind == "formulation")
    parts = [
        *_example(about),
        *_parameters(about.parameters),
        *_methods(about),
        *_builds(name),
        "## Reference\n",
        f"- Module: {{py:mod}}`{formulation(name).__module__}`",
        *_claims(name.split(".", 1)[0]),
        "",
    ]
    return "\n".join(parts)


def _example(about: Description) -> list[str]:
    lines = ["## Example\n", "```console", f"$ {about.example}", "```\n"]
    if about.sizes is not None:
        lines += [f"Model: {_model_line(about.sizes)}.\n"]
    if (needed := about.facts.get("needs")) is not None:
        lines += [f"A solution of [`{needed}`]({needed}.md) is part of the data; it is solved first.\n"]
    return lines


def _model_line(sizes: Sizes) -> str:
    known = {"variables": sizes.variables, "rows": sizes.constraints, "nonzeros": sizes.nonzeros}
    text = ", ".join(f"{number:,} {what}" for what, number in known.items() if number is not None)
    return f"{text}; `auto` chooses `{sizes.auto}`" if sizes.auto else text


def _parameters(rows: Sequence[ParameterRow]) -> list[str]:
    if not rows:
        return ["## Parameters\n", "None.\n"]
    lines = ["## Parameters\n", "| `--set` | Default | Meaning |", "|---|---|---|"]
    for row in rows:
        choices = f" ({', '.join(f'`{choice}`' for choice in row.choices)})" if row.choices else ""
        default = "–" if row.default in (None, "") else f"`{str(row.default).lower()}`"
        lines.append(f"| `{row.name}` | {default} | {_escaped(row.help)}{choices} |")
    return [*lines, ""]


def _methods(about: Description) -> list[str]:
    lines = ["## Methods and solvers\n"]
    if about.methods:
        lines += ["| Method | Algorithm |", "|---|---|"]
        lines += [f"| `{name}` | {_escaped(method_named(name).title)} |" for name in about.methods]
        lines.append("")
    return [*lines, f"Solvers of the stated model: {', '.join(f'`{name}`' for name in about.solvers)}.\n"]


def _builds(name: str) -> Iterator[str]:
    model = formulation(name)
    for form, title in FORMS.items():
        if form not in forms_of(model):
            continue
        yield f"## {title} build\n"
        for function in functions_of(getattr(model, form)):
            path = Path(inspect.getfile(function)).resolve().relative_to(ROOT)
            yield f"```{{literalinclude}} /../{path.as_posix()}"
            yield f":pyobject: {function.__qualname__}\n:caption: {path.as_posix()}\n```\n"


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


def _claims(paper: str) -> list[str]:
    page = ROOT / "docs" / "generated" / "claims" / f"{paper}.md"
    return [f"- [Claims of the paper](../generated/claims/{paper}.md), as measured"] if page.exists() else []


def _escaped(text: str | None) -> str:
    """Text of a table cell, in which ``|`` and ``*`` stand for themselves."""
    return re.sub(r"([|*\[\]])", r"\\\1", text or "")
