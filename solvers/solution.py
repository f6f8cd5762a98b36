"""Write, read and check solution files."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import formulation
from opticoll.formulations.arrays import check_arrays, check_shapes
from opticoll.formulations.model import read_parameters
from opticoll.formulations.schedules.schedule_json import is_schedule
from opticoll.instances import BadFile, Topology, parse
from opticoll.instances.readers import untrusted
from opticoll.instances.readers.untrusted import same_text
from opticoll.solvers.methods import prepared
from opticoll.solvers.verify import FEASIBLE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from opticoll.formulations import Formulation
    from opticoll.formulations.arrays import Array
    from opticoll.formulations.model import Bound
    from opticoll.solvers.task import Run

FORMAT = "opticoll-solution/1"
#: Largest solution file [bytes] and largest array in it [entries] that are read.
MAX_BYTES = 1 << 30
MAX_ENTRIES = 200_000_000
#: Most axes of an array.
MAX_AXES = 8
#: Parameters of formulations that a schedule is timed with.
SCHEDULE_SETTINGS = ("alpha", "beta")


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


def check(
    formulation_name: str, instance_spec: str, path: Path, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Verify an external solution of a formulation on an instance.

    The problem is the one of the instance and ``settings``, parameters of the formulation by name. A file that says
    another is refused. From the file come the values, and duals, whose bound is recomputed.

    Returns
    -------
    A record: formulation, instance, instance_hash, settings, verified, violations, objective, reason (why it is
    refused: the worst block and its violation), claimed (the objective that the file states), bound and bound_source
    (recomputed from the file's duals, else None), and notes, a list of sentences on what was left unused.

    Raises
    ------
    BadFile
        If the file is no solution document, too large, for another formulation, instance or settings, or its arrays
        are not those of the formulation (:mod:`opticoll.formulations.arrays`).
    BadInput
        For settings that the formulation does not have.
    """
    model = formulation(formulation_name)
    instance = parse(instance_spec)
    given = settings or {}
    parameters = read_parameters(model.parameters, given, model.name)
    if path.suffix.lower() == ".xml":
        return check_schedule(model, instance, path, given)
    if path.suffix.lower() == ".npz":
        return check_paths(model, instance, path, parameters)
    document = read_document(path)
    if is_schedule(document):
        return check_schedule(model, instance, path, given, document)
    for key, wanted in (("formulation", model.name), ("instance_hash", instance.hash)):
        if document.get(key) != wanted:
            msg = f"{path}: {key} is {document.get(key)!r}, expected {wanted!r}; name what the file is a solution of"
            raise BadFile(msg)
    _refuse_other_settings(model, parameters, document.get("settings"), path)
    notes: list[str] = []
    violations: dict[str, float] = {}
    needed = None
    if model.needs is not None:
        basis = formulation(model.needs)
        data = basis.prepare(instance)
        needed = named_arrays(document, "needed", path, partial(basis.arrays, data))
        violations |= {f"{basis.name}.{k}": v for k, v in _residuals(basis, data, needed).items()}
        notes.append(f"the data are the file's own solution of {basis.name}, which was checked as well")
    data = prepared(model, instance, parameters, needed)
    values = named_arrays(document, "values", path, partial(model.arrays, data))
    violations |= _residuals(model, data, values)
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
    bound = _recomputed_bound(model, data, document, path)
    if bound is not None:
        notes.append(f"the bound was recomputed from the file's duals ({bound.reason})")
    elif document.get("bound") is not None:
        notes.append("the file's bound was ignored: it has no duals from which this formulation's can be recomputed")
    if document.get("proof") is not None:
        notes.append("the file's proof was ignored")
    return {
        "formulation": model.name,
        "instance": instance.spec,
        "instance_hash": instance.hash,
        "settings": {name: str(value) for name, value in parameters.items()},
        "verified": verified,
        "violations": violations,
        "objective": objective,
        "claimed": claimed,
        "bound": None if bound is None else bound.value,
        "bound_source": None if bound is None else bound.name,
        "metrics": model.metrics(data, objective if verified else None) if model.metrics else {},
        "reason": reason,
        "notes": notes,
    }


def _refuse_other_settings(model: Formulation, parameters: Mapping[str, Any], stated: Any, path: Path) -> None:
    """Refuse a file that says that it is for other parameters; those that it does not mention are not compared.

    Raises
    ------
    BadFile
        With both values of each, and what to write on the command line.
    """
    if stated is None:
        return
    if not isinstance(stated, dict):
        msg = f"{path}: 'settings' must be an object"
        raise BadFile(msg)
    theirs = read_parameters(model.parameters, stated, str(path))
    other = [name for name in stated if not same_text(_written(theirs[name]), _written(parameters[name]))]
    if other:
        there, here, remedy = (
            separator.join(f"{prefix}{name}={_written(values[name])}" for name in other)
            for separator, prefix, values in ((", ", "", theirs), (", ", "", parameters), (" ", "--set ", theirs))
        )
        msg = f"{path}: is a solution for {there}, and {here} is asked for; to check it as that, give {remedy}"
        raise BadFile(msg)


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _recomputed_bound(model: Formulation, data: Any, document: Mapping[str, Any], path: Path) -> Bound | None:
    """The bound that the duals in a document prove, None where there are none or they prove nothing."""
    duals = document.get("duals")
    if duals is None or model.certify is None or model.dual_arrays is None:
        return None
    if not isinstance(duals, dict):
        msg = f"{path}: 'duals' must be an object of named arrays"
        raise BadFile(msg)
    declared = model.dual_arrays(data)
    read = {name: duals[name] for name in declared if name in duals}
    if not read:
        return None
    arrays = named_arrays({"duals": read}, "duals", path, lambda _: declared)
    with np.errstate(all="ignore"):
        found = model.certify(data, arrays)
    return found if found is not None and math.isfinite(found.value) else None


def check_paths(model: Formulation, instance: Any, path: Path, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Verify weighted paths for every commodity (:mod:`opticoll.formulations.flows.weighted_paths`) on a topology.

    Raises
    ------
    BadFile
        If the file is malformed, too large, or for another topology or demand than that of ``parameters``; also for
        another formulation than the master.
    """
    from opticoll.formulations.flows import weighted_paths

    if model.name != "alltoall.master" or not isinstance(instance, Topology):
        msg = f"{path}: weighted paths are checked as a solution of alltoall.master on a topology, not of {model.name}"
        raise BadFile(msg)
    stated = weighted_paths.read_demand_of(path)
    _refuse_other_settings(model, parameters, {"demand": stated}, path)
    data = model.prepare(instance, parameters)
    paths = weighted_paths.read(path, data)
    violations = weighted_paths.violations(data, paths)
    worst = max(violations, key=lambda k: violations[k])
    verified = violations[worst] <= FEASIBLE
    return {
        "formulation": model.name,
        "instance": instance.spec,
        "instance_hash": instance.hash,
        "settings": {name: str(value) for name, value in parameters.items()},
        "verified": verified,
        "violations": violations,
        "objective": paths.F,
        "claimed": paths.F,
        "bound": None,
        "bound_source": None,
        "metrics": {**paths.summary, "demand": paths.demand},
        "reason": "" if verified else f"{worst} is violated by {violations[worst]:.3g} ({FEASIBLE:g} allowed)",
        "notes": [],
    }


def check_schedule(
    model: Formulation,
    instance: Any,
    path: Path,
    settings: Mapping[str, Any] | None = None,
    document: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Execute somebody's schedule (MSCCL XML, or the JSON ``document`` in ``path``) on an instance.

    Of the formulation's parameters a schedule only takes ``alpha`` and ``beta``, what a step and a shard cost.

    Returns
    -------
    The record of :func:`check`; ``schedule`` in it holds the reason's key and the first violated rank, chunk and step;
    ``objective`` is the time of the schedule.

    Raises
    ------
    BadFile
        If the file is malformed, too large, or for another instance; also for a formulation that has no schedules.
    BadInput
        For other settings than those.
    """
    from opticoll.formulations.schedules import verification

    if not model.name.startswith("alltoall."):
        msg = f"{path}: a schedule is checked as one of an alltoall formulation, not as {model.name}"
        raise BadFile(msg)
    for name in settings or {}:
        if name not in SCHEDULE_SETTINGS:
            msg = f"{path}: is a schedule, which is executed as it is: --set {name}=... has no meaning; leave it out"
            raise BadInput(msg)
    parameters = read_parameters(model.parameters, settings or {}, model.name)
    cost = {name: float(parameters[name]) for name in SCHEDULE_SETTINGS if name in parameters}
    collective = "allgather" if model.name == "alltoall.all-gather" else "alltoall"
    if document is None:
        verdict = verification.verify_file(path, instance, collective, **cost)
    elif isinstance(instance, Topology):
        verdict = verification.verify_document(document, path, instance, collective, **cost)
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
        "bound": None,
        "bound_source": None,
        "metrics": verdict.metrics,
        "reason": verdict.message,
        "notes": [],
        "schedule": {
            "collective": collective, "violation": verdict.reason or None, "rank": verdict.rank,
            "chunk": verdict.chunk, "step": verdict.step,
        },
    }  # fmt: skip


def _residuals(model: Formulation, data: Any, values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    with np.errstate(all="ignore"):  # what overflows is a violation
        found = dict(model.residuals(data, values))
    return {block: np.inf if np.isnan(worst) else worst + 0.0 for block, worst in found.items()}


def read_document(path: Path) -> dict[str, Any]:
    """A solution document or a schedule, as JSON gives it.

    Raises
    ------
    BadFile
        If it cannot be read, is too large, or is neither.
    """
    document = untrusted.read_json(path, MAX_BYTES, "name a solution file, as solve --solution writes it")
    if not isinstance(document, dict) or (document.get("format") != FORMAT and not is_schedule(document)):
        msg = f"{path}: is not a solution document (format {FORMAT!r}); write it with solve --solution"
        raise BadFile(msg)
    return document


def named_arrays(
    document: Mapping[str, Any],
    key: str,
    path: Path,
    declare: Callable[[Collection[str]], Mapping[str, Array]],
) -> dict[str, NDArray[np.float64]]:
    """Named arrays out of their coordinate form, as declared (:mod:`opticoll.formulations.arrays`).

    Shapes are compared before anything is allocated; sizes that the solution chooses are at most one more than the
    entries that the document lists.

    Parameters
    ----------
    document, key, path
        The document, under which key the arrays are, and its file.
    declare
        The arrays that there may be, for the names that there are.

    Raises
    ------
    BadFile
        For anything else than numbers at distinct places of the shapes declared.
    """
    named = document.get(key)
    if not isinstance(named, dict) or not named:
        msg = f"{path}: {key!r} must be an object of named arrays"
        raise BadFile(msg)
    shapes = {name: _stated_shape(entry, f"{path}: {key}.{name[:60]}") for name, entry in named.items()}
    declared = declare(named.keys())
    listed = sum(len(entry["index"]) for entry in named.values())
    check_shapes(declared, shapes, f"{path}: {key}", most=listed + 1)
    arrays = {name: _filled(shapes[name], entry, f"{path}: {key}.{name}") for name, entry in named.items()}
    check_arrays(declared, arrays, f"{path}: {key}")
    return arrays


def _stated_shape(entry: Any, where: str) -> tuple[int, ...]:
    """The shape of an array in coordinate form; refuses what has none, or more entries than are read."""
    if not isinstance(entry, dict) or not {"shape", "index", "value"} <= entry.keys():
        msg = f"{where} needs 'shape', 'index' and 'value'"
        raise BadFile(msg)
    shape, index, value = entry["shape"], entry["index"], entry["value"]
    sizes = [_whole(s) for s in shape] if isinstance(shape, list) and len(shape) <= MAX_AXES else [None]
    if not all(s is not None and 0 <= s <= MAX_ENTRIES for s in sizes):
        msg = f"{where}: 'shape' must be a list of at most {MAX_AXES} sizes"
        raise BadFile(msg)
    found = tuple(s for s in sizes if s is not None)
    if math.prod(found) > MAX_ENTRIES:
        msg = f"{where}: {math.prod(found)} entries are more than the {MAX_ENTRIES} that are read"
        raise BadFile(msg)
    if not isinstance(index, list) or not isinstance(value, list) or len(index) != len(value):
        msg = f"{where}: 'index' and 'value' must be lists of one length"
        raise BadFile(msg)
    return found


def _filled(shape: tuple[int, ...], entry: Mapping[str, Any], where: str) -> NDArray[np.float64]:
    array = np.zeros(shape)
    seen: set[tuple[int | None, ...]] = set()
    for at, v in zip(entry["index"], entry["value"], strict=True):
        place = tuple(_whole(i) for i in at) if isinstance(at, list) else ()
        inside = len(place) == len(shape) and isinstance(at, list)
        if not inside or not all(i is not None and 0 <= i < s for i, s in zip(place, shape, strict=True)):
            msg = f"{where}: entry {str(at)[:60]} is outside the shape {list(shape)}"
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
    return array


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
