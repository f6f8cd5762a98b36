"""Solutions as documents: written for others, read from anybody, checked before they are believed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations import formulation
from formulations.base import read_parameters
from formulations.schedules.schedule_json import is_schedule
from instances import BadFile, Topology, parse, untrusted
from solvers.verify import FEASIBLE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from formulations import Formulation
    from solvers.task import Run

FORMAT = "opticoll-solution/1"
#: Largest solution file [bytes] and largest array in it [entries] that are read.
MAX_BYTES = 1 << 30
MAX_ENTRIES = 200_000_000
#: Most axes of an array.
MAX_AXES = 8


def solution_document(run: Run) -> dict[str, Any]:
    """The verified solution of a run as a JSON-able document.

    ``values`` (and ``needed``, the solution that this one took as data) hold named arrays in coordinate form:
    ``shape``, and for the non-zeros ``index`` (one list of integers an entry) and ``value``; ``duals`` are what
    proved the bound, where there are any. ``arcs`` names the arcs that flow indices count:
    ``[tail, head, capacity]`` each.

    Raises
    ------
    BadFile
        If the run has no verified solution.
    """
    if run.values is None or not run.verified or run.plan is None:
        msg = f"no solution to write: the run ended with {run.termination} and nothing verified"
        raise BadFile(msg)
    instance = run.plan.instance
    document: dict[str, Any] = {
        "format": FORMAT,
        "formulation": run.plan.formulation.name,
        "instance": instance.spec,
        "instance_hash": instance.hash,
        "settings": dict(run.plan.parameters),
        "objective": run.objective,
        "bound": run.bound,
        "proof": str(run.proof),
        "values": {name: _coordinates(array) for name, array in run.values.items()},
    }
    if run.duals is not None:
        document["duals"] = {name: _coordinates(np.asarray(array)) for name, array in run.duals.items()}
    if run.needed is not None and run.needed.values is not None:
        document["needed"] = {name: _coordinates(array) for name, array in run.needed.values.items()}
    if isinstance(instance, Topology):
        document["arcs"] = [
            [int(u), int(v), float(c)] for u, v, c in zip(instance.tail, instance.head, instance.capacity, strict=True)
        ]
    return document


def _coordinates(array: NDArray[np.float64]) -> dict[str, Any]:
    where = np.argwhere(array != 0)
    return {
        "shape": list(array.shape),
        "index": where.tolist(),
        "value": array[array != 0].tolist() if array.shape else [float(array)] * len(where),
    }


def check(formulation_name: str, instance_spec: str, path: Path) -> dict[str, Any]:
    """Verify somebody's solution of a formulation on an instance.

    Returns
    -------
    A record: formulation, instance, instance_hash, verified, violations, objective, reason (why it is refused:
    the worst block and its violation), and whether the objective that the file claims is the one it has.

    Raises
    ------
    BadFile
        If the file is no solution document, too large, for another formulation or instance, or lacks a
        variable.
    """
    model = formulation(formulation_name)
    instance = parse(instance_spec)
    if path.suffix.lower() == ".xml":
        return check_schedule(model, instance, path)
    if path.suffix.lower() == ".npz":
        return check_paths(model, instance, path)
    document = read_document(path)
    if is_schedule(document):
        return check_schedule(model, instance, path, document)
    for key, wanted in (("formulation", model.name), ("instance_hash", instance.hash)):
        if document.get(key) != wanted:
            msg = f"{path}: {key} is {document.get(key)!r}, expected {wanted!r}; name what the file is a solution of"
            raise BadFile(msg)
    settings = document.get("settings") or {}
    if not isinstance(settings, dict):
        msg = f"{path}: 'settings' must be an object"
        raise BadFile(msg)
    parameters = read_parameters(model.parameters, settings, str(path))
    violations: dict[str, float] = {}
    arguments: tuple[Any, ...] = (instance, parameters)
    if model.needs is not None:
        basis = formulation(model.needs)
        needed = named_arrays(document, "needed", path)
        data = basis.prepare(instance)
        violations |= {f"{basis.name}.{k}": v for k, v in _residuals(basis, data, needed, path).items()}
        arguments = (instance, parameters, needed)
    data = model.prepare(*arguments)
    values = named_arrays(document, "values", path)
    violations |= _residuals(model, data, values, path)
    with np.errstate(all="ignore"):
        objective = model.objective(data, values)
    claimed = None if document.get("objective") is None else _number(document["objective"])
    if claimed is None and document.get("objective") is not None:
        msg = f"{path}: 'objective' must be a finite number or null, not {str(document['objective'])[:40]!r}"
        raise BadFile(msg)
    wrong_claim = claimed is not None and not math.isclose(
        claimed, objective, rel_tol=1e-6, abs_tol=0.0 if objective else 1e-12
    )
    worst = max(violations, key=lambda k: violations[k])
    verified = violations[worst] <= FEASIBLE
    reason = "" if verified else f"{worst} is violated by {violations[worst]:.3g} (relative; {FEASIBLE:g} allowed)"
    if verified and wrong_claim:
        verified, reason = False, f"the file claims objective {claimed}, its values have {objective!r}"
    return {
        "formulation": model.name,
        "instance": instance.spec,
        "instance_hash": instance.hash,
        "verified": verified,
        "violations": violations,
        "objective": objective,
        "claimed": claimed,
        "metrics": model.metrics(data, objective if verified else None) if model.metrics else {},
        "reason": reason,
    }


def check_paths(model: Formulation, instance: Any, path: Path) -> dict[str, Any]:
    """Verify weighted paths for every commodity (:mod:`formulations.alltoall.weighted_paths`) on a topology.

    The demand that the file names is read again.

    Raises
    ------
    BadFile
        If the file is malformed, too large, or for another topology; also for another formulation than the master.
    """
    from formulations.alltoall import weighted_paths

    if model.name != "alltoall.master" or not isinstance(instance, Topology):
        msg = f"{path}: weighted paths are checked as a solution of alltoall.master on a topology, not of {model.name}"
        raise BadFile(msg)
    paths = weighted_paths.read(path, instance)
    parameters = read_parameters(model.parameters, {"demand": paths.demand}, str(path))
    violations = weighted_paths.violations(model.prepare(instance, parameters), paths)
    worst = max(violations, key=lambda k: violations[k])
    verified = violations[worst] <= FEASIBLE
    return {
        "formulation": model.name,
        "instance": instance.spec,
        "instance_hash": instance.hash,
        "verified": verified,
        "violations": violations,
        "objective": paths.F,
        "claimed": paths.F,
        "metrics": {**paths.summary, "demand": paths.demand},
        "reason": "" if verified else f"{worst} is violated by {violations[worst]:.3g} ({FEASIBLE:g} allowed)",
    }


def check_schedule(
    model: Formulation, instance: Any, path: Path, document: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Execute somebody's schedule (MSCCL XML, or the JSON ``document`` in ``path``) on an instance.

    Returns
    -------
    The record of :func:`check`; ``schedule`` in it holds the reason's key and the first violated rank, chunk and step;
    ``objective`` is the time of the schedule.

    Raises
    ------
    BadFile
        If the file is malformed, too large, or for another instance; also for a formulation that has no schedules.
    """
    from formulations.schedules import verification

    if not model.name.startswith("alltoall."):
        msg = f"{path}: a schedule is checked as one of an alltoall formulation, not as {model.name}"
        raise BadFile(msg)
    collective = "allgather" if model.name == "alltoall.all-gather" else "alltoall"
    if document is None:
        verdict = verification.verify_file(path, instance, collective)
    elif isinstance(instance, Topology):
        verdict = verification.verify_document(document, path, instance, collective)
    else:
        msg = f"{path}: schedules are checked on topologies, and {instance.spec} is none"
        raise BadFile(msg)
    return {
        "formulation": model.name,
        "instance": instance.spec,
        "instance_hash": instance.hash,
        "verified": verdict.valid,
        "violations": {} if verdict.valid else {verdict.reason: None},
        "objective": verdict.metrics.get("time", verdict.metrics.get("async_time")),
        "claimed": None,
        "metrics": verdict.metrics,
        "reason": verdict.message,
        "schedule": {
            "collective": collective, "violation": verdict.reason or None, "rank": verdict.rank,
            "chunk": verdict.chunk, "step": verdict.step,
        },
    }  # fmt: skip


def _residuals(model: Any, data: Any, values: Mapping[str, NDArray[np.float64]], path: Path) -> dict[str, float]:
    try:
        with np.errstate(all="ignore"):  # what overflows is a violation, and no news
            found = dict(model.residuals(data, values))
        return {block: np.inf if np.isnan(worst) else worst + 0.0 for block, worst in found.items()}
    except KeyError as missing:
        msg = f"{path}: variable {missing} of {model.name} is missing; a solution gives every variable"
        raise BadFile(msg) from None
    except (TypeError, ValueError, IndexError):
        msg = f"{path}: the variables have other shapes than {model.name} has on this instance"
        raise BadFile(msg) from None


def read_document(path: Path) -> dict[str, Any]:
    """A solution document or a schedule, as JSON gives it.

    Raises
    ------
    BadFile
        If it cannot be read, is too large, or is neither.
    """
    document = untrusted.read_json(path, MAX_BYTES, "name a solution file, as solve --solution writes it")
    if not isinstance(document, dict) or (document.get("format") != FORMAT and not is_schedule(document)):
        msg = f"{path}: is no solution document (format {FORMAT!r}); write it with solve --solution"
        raise BadFile(msg)
    return document


def named_arrays(document: Mapping[str, Any], key: str, path: Path) -> dict[str, NDArray[np.float64]]:
    """Named arrays out of their coordinate form, every size checked before anything is allocated.

    Raises
    ------
    BadFile
        For anything else than numbers at distinct places of a shape.
    """
    named = document.get(key)
    if not isinstance(named, dict) or not named:
        msg = f"{path}: {key!r} must be an object of named arrays"
        raise BadFile(msg)
    arrays = {}
    for name, entry in named.items():
        where = f"{path}: {key}.{name}"
        if not isinstance(entry, dict) or not {"shape", "index", "value"} <= entry.keys():
            msg = f"{where} needs 'shape', 'index' and 'value'"
            raise BadFile(msg)
        shape, index, value = entry["shape"], entry["index"], entry["value"]
        sizes = [_whole(s) for s in shape] if isinstance(shape, list) and len(shape) <= MAX_AXES else [None]
        if not all(s is not None and 0 <= s <= MAX_ENTRIES for s in sizes):
            msg = f"{where}: 'shape' must be a list of at most {MAX_AXES} sizes"
            raise BadFile(msg)
        shape, total = [s for s in sizes if s is not None], 1
        for s in shape:
            total *= s
        if total > MAX_ENTRIES:
            msg = f"{where}: {total} entries are more than the {MAX_ENTRIES} that are read"
            raise BadFile(msg)
        if not isinstance(index, list) or not isinstance(value, list) or len(index) != len(value):
            msg = f"{where}: 'index' and 'value' must be lists of one length"
            raise BadFile(msg)
        array = np.zeros(shape)
        seen: set[tuple[int | None, ...]] = set()
        for at, v in zip(index, value, strict=True):
            place = tuple(_whole(i) for i in at) if isinstance(at, list) else ()
            inside = len(place) == len(shape) and isinstance(at, list)
            if not inside or not all(i is not None and 0 <= i < s for i, s in zip(place, shape, strict=True)):
                msg = f"{where}: entry {str(at)[:60]} is outside the shape {shape}"
                raise BadFile(msg)
            if place in seen:
                msg = f"{where}: entry {at!r} is given twice"
                raise BadFile(msg)
            number = _number(v)
            if number is None:
                msg = f"{where}: value {str(v)[:60]!r} at {at!r} is no finite number"
                raise BadFile(msg)
            seen.add(place)
            array[place] = number
        arrays[name] = array
    return arrays


def _whole(value: Any) -> int | None:
    """A whole number, as ``3`` or, as some tools write it, ``3.0``; None for anything else."""
    if type(value) is int:
        return value
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _number(value: Any) -> float | None:
    """A finite number, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None
