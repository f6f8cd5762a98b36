"""What one run is asked to do, and what it gives back: the types between the runner and everything above it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from solvers.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from instances import ServerPool, Topology
    from solvers.outcome import Proof, Termination
    from solvers.plan import Plan


@dataclass(frozen=True)
class Task:
    """One formulation on one instance by one method, with its limits.

    Parameters
    ----------
    formulation, instance
        Names as the command line takes them; ``instance`` may also be an instance value.
    method
        A solver adapter, a method of the formulation, or ``"auto"``.
    form
        ``"pyomo"``, ``"cvxpy"`` or None for the formulation's preferred one.
    settings
        ``--set`` values: parameters of the formulation, of the method, or options of the solver.
    time_limit_s, memory_limit_gib
        Limits of the whole solve: wall clock [s] and memory of its process tree [GiB].
    tol
        Relative gap at which the value counts as proven optimal.
    seed, threads, repetition
        Recorded; ``repetition`` tells apart runs that are otherwise equal.
    """

    formulation: str
    instance: str | Topology | ServerPool
    method: str = "auto"
    form: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    time_limit_s: float | None = None
    memory_limit_gib: float | None = None
    tol: float = 1e-6
    seed: int = 0
    threads: int = 2
    repetition: int = 0

    def __post_init__(self) -> None:
        for name, value in (("time limit", self.time_limit_s), ("memory limit", self.memory_limit_gib)):
            if value is not None and not (0 < value < float("inf")):
                msg = f"{name}: must be a positive number, not {value}"
                raise BadOption(msg)
        if not 0 < self.tol < 1:
            msg = f"tol: must lie between 0 and 1, not {self.tol}"
            raise BadOption(msg)
        if self.threads < 1:
            msg = f"threads: must be at least 1, not {self.threads}"
            raise BadOption(msg)


@dataclass
class Run:
    """What a run gave: the facts of its record, and the solution itself.

    ``values`` are the named variable arrays that were verified (after repair, if one was needed); ``duals``
    the named duals that certified the bound, where there are any; ``needed`` the run whose solution was this
    one's data.
    """

    task: Task
    record: dict[str, Any]
    termination: Termination
    proof: Proof
    objective: float | None
    bound: float | None
    verified: bool
    values: dict[str, NDArray[np.float64]] | None = None
    duals: dict[str, NDArray[np.float64]] | None = None
    plan: Plan | None = None
    needed: Run | None = None

    @property
    def exit_status(self) -> int:
        """0 solved and verified, 4 solver unavailable, 3 no solution."""
        if self.verified:
            return 0
        return 4 if self.termination == "unavailable" else 3


def digest(parts: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON-able mapping, independent of key order."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
