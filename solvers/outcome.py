"""What one solve ended with: every fact in a field of its own, None where it is not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
