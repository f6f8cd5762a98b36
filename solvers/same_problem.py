"""Refuse files for another problem: compare the formulation, instance and settings that a file states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.errors import BadFile
from opticoll.formulations.parameters import read_parameters
from opticoll.instances import Topology
from opticoll.instances.demands import DemandSpec, same_demand
from opticoll.instances.readers.reading import refuse, same_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from opticoll.formulations import Formulation
    from opticoll.instances import Instance
    from opticoll.solvers.solution_document import SolutionDocument
    from opticoll.types import Setting, Settings


def refuse_other_problem(model: type[Formulation], instance: Instance, stated: SolutionDocument, path: Path) -> None:
    """Refuse a solution of another formulation or instance.

    Raises
    ------
    BadFile
        The message states both names.
    """
    if stated.formulation != model.name:
        theirs = stated.formulation[:80]
        refuse(path, f"is a solution of {theirs}, not of {model.name}; name the formulation that the file solves")
    if stated.instance_hash == instance.hash:
        return
    spec, ours = stated.instance[:80], instance.spec[:80]
    if stated.instance == instance.spec:
        refuse(path, f"is a solution for different data of the same name, {ours}; solve the instance again")
    refuse(path, f"is a solution for {spec}, not for {ours}; name the instance that the file is a solution for")


def refuse_other_settings(
    model: type[Formulation], parameters: Settings, stated: Mapping[str, object], path: Path, instance: Instance
) -> None:
    """Refuse a file for other parameters; parameters that the file does not state are not compared.

    Raises
    ------
    BadFile
        The message states both values of each, and what to write on the command line.
    """
    theirs = stated_parameters(model, stated, path)
    other = [name for name in stated if not _same(theirs[name], parameters[name], instance, model.name)]
    if other:
        contained, requested = (
            ", ".join(f"{name}={_written(values[name])}" for name in other) for values in (theirs, parameters)
        )
        msg = f"{path}: is a solution for {contained}, but {requested} was requested; to check it, use"
        if str(theirs.get("demand", "")).startswith("matrix:"):  # data in memory, which the setting only names
            msg += " the same demand, as data or as a file"
            raise BadFile(msg)
        raise BadFile(msg, remedy={name: _written(theirs[name]) for name in other})


def stated_parameters(model: type[Formulation], stated: Mapping[str, object], path: Path) -> dict[str, Setting]:
    """The value of every parameter, as a file states it or its default.

    Raises
    ------
    BadFile
        For a parameter that the formulation does not have, as one of an earlier version.
    BadInput
        For a bad value.
    """
    if unknown := stated.keys() - {one.name for one in model.parameters}:
        name = min(unknown)
        reason = f"states {name}={stated[name]}, but {model.name} has no such parameter"
        refuse(path, f"{reason}; if an earlier version had it, remove it from 'settings' in the file")
    return read_parameters(model.parameters, stated, str(path))


def _same(theirs: Any, ours: Any, instance: Any, where: str) -> bool:
    if isinstance(ours, DemandSpec) and isinstance(instance, Topology) and theirs.startswith("matrix:"):
        return same_demand(str(theirs), ours, instance, where)
    return same_text(_written(theirs), _written(ours))


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
