"""Write the schedule or the weighted paths of a solved run to a file, read it back and check it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.solvers.task import Run, Task


def refuse_paths_early(path: Path, formulation: str) -> None:
    """Refuse before the solve what no paths can be written of.

    Raises
    ------
    BadInput
        For another ending than ``.npz``, or a formulation that is not the master LP.
    """
    from opticoll.errors import BadInput

    if path.suffix != ".npz":
        msg = f"--paths {path}: weighted paths are written as .npz"
        raise BadInput(msg)
    if formulation != "alltoall.master":
        msg = f"--paths splits the flows of alltoall.master, and not of {formulation}; solve that one"
        raise BadInput(msg)


def write_paths(path: Path, run: Run) -> dict[str, Any]:
    """Split the flow of a verified run, write the paths, read them back and check them.

    Returns
    -------
    ``file``, the numbers of paths, ``F``, and the worst violation of what the file holds.

    Raises
    ------
    BadInput
        If the file cannot be written, or its paths do not hold.
    """
    from opticoll.errors import BadInput
    from opticoll.formulations.flows import weighted_paths
    from opticoll.instances import Topology

    assert run.plan is not None
    assert run.values is not None
    assert isinstance(run.plan.instance, Topology)
    topology, data = run.plan.instance, run.plan.data
    paths = weighted_paths.from_flow(data, run.values["g"], str(run.plan.parameters["demand"]))
    try:
        weighted_paths.write(path, topology, paths)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise BadInput(msg) from error
    found = weighted_paths.violations(data, weighted_paths.read(path, data))
    worst = max(found, key=lambda name: found[name])
    if found[worst] > weighted_paths.EXACT:
        msg = f"{path}: the paths violate {worst} by {found[worst]:.3g}; solve to a smaller --tol"
        raise BadInput(msg)
    return {"file": str(path), **paths.summary, "F": paths.F, "violation": found[worst]}


def refuse_schedule_early(path: Path, task: Task) -> None:
    """Refuse before the solve what no schedule can be written of.

    Raises
    ------
    BadInput
        For a wrong ending, a formulation without routes, vertices that run no program, or a demand that is not uniform.
    """
    from opticoll.errors import BadInput
    from opticoll.formulations.schedules import lowering as build
    from opticoll.instances import parse
    from opticoll.instances.demands import UNIFORM

    topology = parse(task.instance) if isinstance(task.instance, str) else task.instance
    build.refuse_early(path, task.formulation, topology)
    if str(task.settings.get("demand", UNIFORM)).strip() != UNIFORM:
        msg = f"{path}: a schedule is of equal shards between all ranks; solve with demand=uniform, or write --paths"
        raise BadInput(msg)


def write_schedule(path: Path, run: Run, chunks: int | None = None) -> dict[str, Any]:
    """Write the schedule of a verified run and execute the file.

    Returns
    -------
    ``file``, ``chunks``, ``steps``, ``fluid_time``, ``time``, ``loss``, and ``delivers``: whether the simulator found
    every shard in its place.

    Raises
    ------
    BadInput
        If the file cannot be written.
    """
    from opticoll.errors import BadInput
    from opticoll.formulations.schedules import lowering as build
    from opticoll.formulations.schedules.verification import verify_file
    from opticoll.instances import Topology

    assert run.plan is not None
    assert run.values is not None
    assert isinstance(run.plan.instance, Topology)
    plan, topology = run.plan, run.plan.instance
    alpha, beta = float(plan.parameters.get("alpha", 0.0)), float(plan.parameters.get("beta", 1.0))
    text, facts = build.schedule_text(
        path, plan.formulation.name, plan.data, topology, run.values,
        most=chunks or build.MOST_CHUNKS, alpha=alpha, beta=beta,
    )  # fmt: skip
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise BadInput(msg) from error
    verdict = verify_file(path, topology, alpha=alpha, beta=beta)
    found = {"simulated_time": verdict.metrics.get("time", verdict.metrics.get("async_time"))}
    return {"file": str(path), **facts, **found, "delivers": verdict.valid, "violation": verdict.message or None}
