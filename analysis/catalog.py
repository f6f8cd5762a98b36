"""What there is: instance families, formulations, methods, solvers, studies and claims, as plain rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from opticoll.formulations.model import Parameter
    from opticoll.solvers.adapters import Adapter

Row = dict[str, Any]


def instances() -> list[Row]:
    """Instance families, then modifiers."""
    from opticoll.instances.spec import FAMILIES, MODIFIERS, load_families

    load_families()
    rows: list[Row] = [
        {"kind": "family", "name": f.name, "example": f.example, "summary": f.summary, "source": f.source}
        for f in FAMILIES.values()
    ]
    rows += [
        {"kind": "modifier", "name": m.name, "example": m.example, "summary": m.summary, "source": None}
        for m in MODIFIERS.values()
    ]
    return sorted(rows, key=lambda row: (row["kind"], row["name"]))


def formulations() -> list[Row]:
    """Formulations with what solves them and what ``--set`` takes."""
    from opticoll.formulations import formulations as registry
    from opticoll.solvers.methods import methods_for

    return [
        {
            "name": model.name,
            "paper": model.paper,
            "where": model.where,
            "title": model.title,
            "class": model.problem,
            "sense": model.sense,
            "forms": list(model.forms),
            "methods": sorted(methods_for(model)),
            "parameters": _parameters(model.parameters),
        }
        for _, model in sorted(registry().items())
    ]


def methods() -> list[Row]:
    """Methods that are more than one solver on the matrix."""
    from opticoll.formulations import formulations as registry
    from opticoll.solvers.methods import methods as known

    return [
        {
            "name": method.name,
            "title": method.title,
            "summary": method.summary,
            "formulations": [name for name, model in sorted(registry().items()) if method.applies(model)],
            "parameters": _parameters(method.parameters),
        }
        for _, method in sorted(known().items())
    ]


def solvers() -> list[Row]:
    """Solver adapters with the licence state that a probe finds, all probed at once."""
    from opticoll.solvers.adapters import adapters

    found = list(adapters().values())
    with ThreadPoolExecutor(max_workers=max(len(found), 1)) as pool:
        states = list(pool.map(_licence, found))
    return [
        {
            "name": adapter.name,
            "title": adapter.title,
            "algorithm": adapter.algorithm,
            "installed": adapter.installed(),
            "version": adapter.version(),
            **state,
            "capabilities": asdict(adapter.capabilities),
            "install": adapter.install or f"pip install {adapter.distribution}",
        }
        for adapter, state in zip(found, states, strict=True)
    ]


def _licence(adapter: Adapter) -> Row:
    from opticoll.solvers.isolation import probe

    if not adapter.installed():
        return {"usable": False, "licence": "not installed", "remedy": adapter.install}
    state = probe(adapter.name)
    return {"usable": state.usable, "licence": state.state, "remedy": state.remedy or None}


def studies() -> list[Row]:
    """Studies that come with opticoll."""
    from opticoll.analysis.study.study_file import header
    from opticoll.analysis.study.study_file import studies as known

    return [{"name": name, "title": header(path)[1], "file": str(path)} for name, path in known().items()]


def claims() -> list[Row]:
    """Claims in the ledger, without measuring anything."""
    from opticoll.analysis.ledger import claims as known

    return [
        {"name": one.id, "id": one.id, "paper": one.paper, "where": one.where, "claim": one.claim}
        for one in known().values()
    ]


KINDS: dict[str, Callable[[], list[Row]]] = {
    "instances": instances,
    "formulations": formulations,
    "methods": methods,
    "solvers": solvers,
    "studies": studies,
    "claims": claims,
}


def names() -> list[Row]:
    """Every kind and name with one line about it; solvers are not probed."""
    from opticoll.solvers.adapters import adapters

    rows: list[Row] = []
    for kind, rows_of in KINDS.items():
        if kind == "solvers":
            rows += [{"kind": kind, "name": a.name, "summary": a.title} for a in adapters().values()]
        else:
            rows += [{"kind": kind, "name": row["name"], "summary": _about(row)} for row in rows_of()]
    return rows


def _about(row: Row) -> str:
    return str(row.get("summary") or row.get("title") or "")


def _parameters(parameters: Iterable[Parameter]) -> list[Row]:
    return [
        {
            "name": p.name,
            "type": "str" if issubclass(p.kind, str) else p.kind.__name__,
            "default": p.default,
            "choices": list(p.choices) or None,
            "help": p.help,
        }
        for p in parameters
    ]
