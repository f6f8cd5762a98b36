"""Schedules of solved runs as files: written, read back, executed, and only then called schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from solvers.task import Run, Task


def refuse_early(path: Path, task: Task) -> None:
    """Refuse before the solve what no schedule can be written of.

    Raises
    ------
    BadInput
        For a wrong ending, a formulation without routes, vertices that run no program, or a demand that is not uniform.
    """
    from formulations.schedules import build
    from instances import parse
    from instances.demands import UNIFORM
    from instances.errors import BadInput

    topology = parse(task.instance) if isinstance(task.instance, str) else task.instance
    build.refuse_early(path, task.formulation, topology)
    if str(task.settings.get("demand", UNIFORM)).strip() != UNIFORM:
        msg = f"{path}: a schedule is of equal shards between all ranks; solve with demand=uniform, or write --paths"
        raise BadInput(msg)


def write(path: Path, run: Run, chunks: int | None = None) -> dict[str, Any]:
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
    from formulations.schedules import build
    from formulations.schedules.verification import verify_file
    from instances.errors import BadInput

    assert run.plan is not None
    assert run.values is not None
    plan = run.plan
    alpha, beta = float(plan.parameters.get("alpha", 0.0)), float(plan.parameters.get("beta", 1.0))
    text, facts = build.schedule_text(
        path, plan.formulation.name, plan.data, plan.instance, run.values,
        most=chunks or build.MOST_CHUNKS, alpha=alpha, beta=beta,
    )  # fmt: skip
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise BadInput(msg) from error
    verdict = verify_file(path, plan.instance, alpha=alpha, beta=beta)
    found = {"simulated_time": verdict.metrics.get("time", verdict.metrics.get("async_time"))}
    return {"file": str(path), **facts, **found, "delivers": verdict.valid, "violation": verdict.message or None}
