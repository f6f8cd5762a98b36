"""The small problems of every formulation, from its module in ``tests/problems``, and what is missing there."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from problems import Problems, Settings

import opticoll as oc
from opticoll.formulations import Formulation, formulations

HOME = Path(__file__).resolve().parent / "problems"
#: Its models are those of files: it has no method and no random instances of its own.
FROM_FILES = "matrix.program"


def _read(path: Path) -> Problems:
    module = importlib.import_module(f"problems.{path.parent.name}.{path.stem}")
    return getattr(module, "PROBLEMS", Problems())


#: What the modules state, by formulation.
STATED = {f"{path.parent.name}.{path.stem}".replace("_", "-"): _read(path) for path in sorted(HOME.glob("*/*.py"))}


def lacking(model: type[Formulation], problems: Problems) -> Iterator[str]:
    """The parts that problems of a formulation lack."""
    if not problems.cases:
        yield "cases (instances with settings that reach every line of its builds)"
    if model._needs is not None and problems.needed is None:
        yield f"needed (a function that makes a solution of {model._needs.formulation})"
    if model.name != FROM_FILES and problems.optimum is None:
        yield "optimum (an instance, and how its optimum is known without the stated model)"
    if model.name != FROM_FILES and model.problem == "MILP" and problems.draws is None:
        yield "draws (random instances)"


def missing(models: Mapping[str, type[Formulation]], stated: Mapping[str, Problems]) -> list[str]:
    """A line for every module that is missing, incomplete, or of no formulation."""
    places = {name: f"tests/problems/{name.replace('.', '/').replace('-', '_')}.py" for name in {*models, *stated}}
    lines = [f"{places[name]}: there is no formulation {name}" for name in sorted(stated.keys() - models)]
    for name, model in models.items():
        if parts := ", ".join(lacking(model, stated.get(name, Problems()))):
            lines.append(f"{places[name]}: PROBLEMS = Problems(...) needs {parts}; see tests/problems/__init__.py")
    return lines


#: Problems of the formulations that lack nothing; the tests of all formulations leave out the others, except for one.
PROBLEMS = {
    name: one for name, one in STATED.items() if name in formulations() and not [*lacking(formulations()[name], one)]
}
#: Cases (instance, settings) of formulations with models of their own.
CASES = {name: one.cases for name, one in PROBLEMS.items() if name != FROM_FILES}


def first_case(name: str) -> tuple[str, Settings]:
    """The first case of a formulation."""
    return PROBLEMS[name].cases[0]


@cache
def first_result(name: str) -> oc.Result:
    """Its default solve, for tests that only read it."""
    spec, settings = first_case(name)
    return oc.solve(oc.Task(name, spec, settings=settings))
