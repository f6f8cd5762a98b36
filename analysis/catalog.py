"""Catalog of instance families, formulations, methods, solvers, studies, and of what extensions list, as plain rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Literal, TypedDict

from opticoll.errors import refuse
from opticoll.extensions import extensions, part
from opticoll.plugin_faults import called, place_of
from opticoll.solvers.task import Fields, plain
from opticoll.types import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    import pandas as pd

    from opticoll.formulations.parameters import Parameter


class NameRow(TypedDict):
    """A name of any kind: a row of ``opticoll list --json``."""

    kind: str
    name: str
    summary: str


class InstanceRow(TypedDict):
    """A family, population or modifier, with an example of a spec and its source."""

    kind: str
    name: str
    example: str
    summary: str
    source: str | None


class NamedRow(TypedDict):
    """The field that the rows of every list share: the name."""

    name: str


class ParameterRow(Fields, frozen=True, kw_only=True):
    """A parameter: of ``--set`` for formulations and methods, of the spec for families."""

    name: str
    type: str
    default: Json = None
    required: bool = False
    choices: list[str] | None = None
    help: str = ""


FormulationRow = TypedDict(
    "FormulationRow",
    {
        "name": str,
        "paper": str,
        "where": str,
        "title": str,
        "class": Literal["LP", "MILP"],
        "sense": Literal["min", "max"],
        "forms": list[str],
        "methods": list[str],
        "parameters": list[ParameterRow],
    },
)
FormulationRow.__doc__ = "A formulation: its class and sense, the forms and methods that solve it, and its parameters."


class MethodRow(TypedDict):
    """A method, the formulations that it takes, and its parameters."""

    name: str
    title: str
    summary: str
    formulations: list[str]
    parameters: list[ParameterRow]


class SolverRow(TypedDict):
    """A solver adapter, what it can do, and whether it can be used: licence, and a remedy if not."""

    name: str
    title: str
    algorithm: str
    installed: bool
    version: str | None
    usable: bool
    licence: str
    remedy: str | None
    capabilities: dict[str, bool]
    install: str


class StudyRow(TypedDict):
    """A study that comes with opticoll."""

    name: str
    title: str
    file: str


def instances() -> list[InstanceRow]:
    """Instance families, modifiers, and populations."""
    from opticoll.instances.spec import PARTS, load_families
    from opticoll.plugins import load_installed, load_known

    load_families()
    load_installed()
    load_known()
    return [
        {"kind": kind, "name": name, "example": one.example, "summary": one.summary, "source": one.source or None}
        for kind, known in PARTS.items()
        for name, one in sorted(known.items())
    ]


def formulations() -> list[FormulationRow]:
    """Formulations, the forms and methods that solve them, and their parameters."""
    from opticoll.formulations import formulations as registry
    from opticoll.formulations.model import forms_of, title_of
    from opticoll.formulations.registry import paper_of
    from opticoll.plugins import load_installed
    from opticoll.solvers.methods import methods_for

    load_installed()
    return [
        {
            "name": model.name,
            "paper": paper_of(model),
            "where": model.where,
            "title": title_of(model),
            "class": model.problem,
            "sense": model.sense,
            "forms": list(forms_of(model)),
            "methods": sorted(methods_for(model)),
            "parameters": parameter_rows(model.parameters),
        }
        for _, model in sorted(registry().items())
    ]


def methods() -> list[MethodRow]:
    """Methods that do more than run one solver on the matrix."""
    from opticoll.formulations import formulations as registry
    from opticoll.plugins import load_installed
    from opticoll.solvers.methods import methods as known

    load_installed()
    return [
        {
            "name": method.name,
            "title": method.title,
            "summary": method.summary,
            "formulations": [name for name, model in sorted(registry().items()) if method.applies(model)],
            "parameters": parameter_rows(method.parameters),
        }
        for _, method in sorted(known().items())
    ]


def solver_table() -> pd.DataFrame:
    """The solvers by name, as ``opticoll list solvers`` prints them: algorithm, version, licence and capabilities."""
    import pandas as pd

    return pd.DataFrame(solvers()).set_index("name")


def solvers() -> list[SolverRow]:
    """Solver adapters with the licence state that a probe finds, those of every package in a worker of its own."""
    from opticoll.plugins import load_installed
    from opticoll.solvers.adapters import adapters
    from opticoll.solvers.process.isolation import probe_all

    load_installed()
    results = list(adapters().values())
    states = probe_all(results)
    return [
        {
            "name": adapter.name,
            "title": adapter.title,
            "algorithm": adapter.algorithm,
            "installed": adapter.installed(),
            "version": adapter.version(),
            "usable": states[adapter.name].usable,
            "licence": states[adapter.name].state,
            "remedy": states[adapter.name].remedy or None,
            "capabilities": asdict(adapter.capabilities),
            "install": adapter.install or f"pip install {adapter.distribution}",
        }
        for adapter in results
    ]


def studies() -> list[StudyRow]:
    """Studies that come with opticoll."""
    from opticoll.analysis.study.study_file import header
    from opticoll.analysis.study.study_file import studies as known

    return [{"name": name, "title": header(path)[1], "file": str(path)} for name, path in known().items()]


KINDS: dict[str, Callable[[], Sequence[NamedRow]]] = {
    "instances": instances,
    "formulations": formulations,
    "methods": methods,
    "solvers": solvers,
    "studies": studies,
}


def kinds() -> dict[str, Callable[[], Sequence[NamedRow]]]:
    """The functions that list the names of a kind, with those of extensions."""
    return KINDS | {kind: partial(_rows, part(target)) for one in extensions() for kind, target in one.named("lists")}


def _rows(function: Callable[[], object]) -> Sequence[NamedRow]:
    """The rows of a list of an extension."""
    rows: Sequence[NamedRow] = called(function, (list, tuple), "a list of rows")
    if not all(isinstance(row, Mapping) and "name" in row for row in rows):
        refuse(f"{place_of(function)}{function.__name__}", "every row must be a dictionary that has a 'name'")
    return rows


def names(wanted: Collection[str] = ()) -> list[NameRow]:
    """Every name of these kinds, or of all, with a one-line description; solvers are not probed."""
    from opticoll.solvers.adapters import adapters

    rows: list[NameRow] = []
    for kind, rows_of in kinds().items():
        if wanted and kind not in wanted:
            continue
        if kind == "solvers":
            rows += [{"kind": kind, "name": a.name, "summary": a.title} for a in adapters().values()]
        else:
            rows += [{"kind": kind, "name": row["name"], "summary": _about(row)} for row in rows_of()]
    return rows


def _about(row: Mapping[str, object]) -> str:
    return str(row.get("summary") or row.get("title") or "")


def parameter_rows(parameters: Iterable[Parameter]) -> list[ParameterRow]:
    """One row per parameter that ``--set`` takes."""
    return [
        ParameterRow(
            name=p.name,
            type="str" if issubclass(p.kind, str) else p.kind.__name__,
            default=plain(p.default),
            choices=list(p.choices) or None,
            help=p.help,
        )
        for p in parameters
    ]
