"""How the time of time-stepped schedules falls to the fluid optimum as they get more steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def curve(spec: str, steps: Iterable[int], *, alpha: float = 0.0, beta: float = 1.0) -> list[dict[str, Any]]:
    """Solve ``alltoall.timestep-mcf`` (by source) on ``spec`` for every number of steps.

    Returns
    -------
    A row each: ``steps``, ``T_steps`` (sum U_t), ``bound``, ``proof``, ``alpha_beta_time``, and ``over_fluid``, T_steps
    over the optimum T of ``alltoall.master``.
    """
    from solvers.runner import solve
    from solvers.task import Task

    fluid = solve(Task("alltoall.master", spec)).record["metrics"]["T"]
    rows = []
    for L in steps:
        settings = {"steps": L, "aggregate": "source", "alpha": alpha, "beta": beta}
        run = solve(Task("alltoall.timestep-mcf", spec, settings=settings))
        rows.append(
            {
                "steps": L,
                "T_steps": run.objective,
                "bound": run.bound,
                "proof": str(run.proof),
                "alpha_beta_time": run.record["metrics"]["alpha_beta_time"],
                "over_fluid": None if run.objective is None or not fluid else run.objective / fluid,
            }
        )
    return rows
