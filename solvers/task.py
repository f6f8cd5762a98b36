"""What one solve ended with: every fact in a field of its own, None where it is not known.

What one run is asked to do, and what it gives back: the types between the runner and everything above it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadOption

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from opticoll.instances import ServerPool, Topology
    from opticoll.solvers.plan import Plan


class Termination(StrEnum):
    """Why a solve stopped. Says nothing about whether there is a solution."""

    OPTIMAL = "optimal"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded"
    INFEASIBLE_OR_UNBOUNDED = "infeasible-or-unbounded"
    TIME_LIMIT = "time-limit"
    MEMORY_LIMIT = "memory-limit"
    REFUSED = "refused"
    ITERATION_LIMIT = "iteration-limit"
    TOLERANCE = "tolerance-not-reached"
    INTERRUPTED = "interrupted"
    UNAVAILABLE = "unavailable"
    CRASHED = "crashed"
    ERROR = "error"


class Proof(StrEnum):
    """What has been proven about the value, by our own check and bound, never a solver's word: strongest first."""

    OPTIMAL = "optimal"
    CERTIFIED_GAP = "certified-gap"
    FEASIBLE = "feasible"
    BOUND_ONLY = "bound-only"
    NONE = "none"


class PrimalStatus(StrEnum):
    """What the solver says of the vector it returned."""

    FEASIBLE = "feasible"
    INFEASIBLE = "infeasible"
    APPROXIMATE = "approximate"
    NONE = "none"


@dataclass(frozen=True)
class SolveRequest:
    """What is asked of an adapter.

    Parameters
    ----------
    time_limit_s
        Wall-clock limit [s] for the solver itself, or None.
    threads
        Threads the solver may use.
    rel_tol
        Relative optimality (LP) or gap (MIP) aimed at; adapters translate it to their own tolerances, which
        they set at least one digit tighter where the solver allows it.
    seed
        Random seed, recorded.
    options
        Solver options by the solver's own names, values as text or numbers; unknown names are refused.
    warm_start
        A column vector to start from, or None.
    """

    time_limit_s: float | None = None
    threads: int = 2
    rel_tol: float = 1e-6
    seed: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    warm_start: NDArray[np.float64] | None = None


@dataclass
class Outcome:
    """What an adapter returns.

    ``objective`` and ``bound`` are the solver's own claims in the sense of the StandardForm (a max problem has
    bound >= objective). ``row_duals`` are shadow prices d(objective)/d(rhs) in the sense of the problem as
    stated: for a max problem the dual of a binding ``<=`` row is >= 0, for a min problem it is <= 0.
    ``algorithm`` is what really ran, ``options`` what was really in force (beyond the solver's defaults).
    """

    termination: Termination
    primal: PrimalStatus = PrimalStatus.NONE
    objective: float | None = None
    bound: float | None = None
    x: NDArray[np.float64] | None = None
    row_duals: NDArray[np.float64] | None = None
    raw: str = ""
    algorithm: str | None = None
    version: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    iterations: int | None = None
    nodes: int | None = None
    solve_s: float | None = None
    peak_memory_mb: float | None = None
    message: str = ""
    incumbents: list[tuple[float, float]] = field(default_factory=list)


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
