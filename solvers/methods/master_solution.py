"""The first step of every decomposition of the link MCF: its master LP, solved and proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solvers.methods.base import Answer
from solvers.outcome import Termination
from solvers.task import Task

if TYPE_CHECKING:
    from solvers.methods.base import Context
    from solvers.task import Run

#: Per-commodity flows are dense arrays of at most this many entries (8 bytes each).
MOST_ENTRIES = 200_000_000


def solve_master(context: Context) -> Run:
    """Solve ``alltoall.master`` on the context's instance with its parameter ``master``."""
    task = context.task
    return context.solve(
        Task(
            "alltoall.master", task.instance, method=context.parameters["master"], form=task.form or "matrix",
            time_limit_s=context.remaining(), memory_limit_gib=task.memory_limit_gib, tol=task.tol,
            seed=task.seed, threads=task.threads,
        )
    )  # fmt: skip


def unsolved(master: Run) -> Answer | None:
    """The answer when the master gave no verified flow, None if it did."""
    if master.verified and master.values is not None:
        return None
    termination = master.termination
    if termination is Termination.OPTIMAL:
        termination = Termination.TOLERANCE
    return Answer(
        termination, bound=master.bound, bound_source=master.record["bound_source"],
        message=f"the master LP ended with {master.termination}: {master.record['message']}",
    )  # fmt: skip
