"""Methods: ways to solve a formulation other than one solver on its matrix.

A method is the ``METHOD`` of the file of this package that is named after it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadInput
from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from opticoll.formulations.model import Formulation, Parameter
    from opticoll.instances.types import Json, Settings
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import Run, Task


@cache
def _files() -> dict[str, Path]:
    """The files of this package by the name that a method in them would have."""
    return {path.stem.replace("_", "-"): path for path in Path(__file__).parent.rglob("*.py")}


def _states_a_method(path: Path) -> bool:
    return "\nMETHOD = " in path.read_text(encoding="utf-8")


def module_of(name: str) -> str | None:
    """The module of the package's method called ``name``; None if there is none. Nothing is imported."""
    path = _files().get(name)
    if path is None or not _states_a_method(path):
        return None
    inside = path.relative_to(Path(__file__).parent).with_suffix("").parts
    return ".".join((__package__ or "", *inside))


@cache
def names() -> tuple[str, ...]:
    """Names of the package's methods, sorted. Nothing is imported."""
    return tuple(sorted(name for name, path in _files().items() if _states_a_method(path)))


@dataclass(frozen=True)
class Reformulation:
    """Another matrix for the same problem, and functions that convert its outcome and objective values back."""

    form: StandardForm
    recover: Callable[[Outcome], Outcome]
    value: Callable[[float], float]


@dataclass
class Answer:
    """The result of a procedure: named values, and duals or a bound that certify them.

    ``bound`` is only used if ``bound_source`` states how it was recomputed; infeasibility only counts as proven if
    ``infeasible_by`` states how it was proven.
    """

    termination: Termination
    values: dict[str, NDArray[np.float64]] | None = None
    duals: dict[str, NDArray[np.float64]] | None = None
    bound: float | None = None
    bound_source: str | None = None
    infeasible_by: str | None = None
    solver: Mapping[str, Json] = field(default_factory=dict)
    metrics: Mapping[str, Json] = field(default_factory=dict)
    message: str = ""


@dataclass
class Context:
    """The problem of a procedure, its limits, and the runner for subproblems.

    ``save(answer, objective)`` keeps an intermediate answer, which survives if the procedure is killed later. ``start``
    are the named values of a known solution, if any.
    """

    task: Task
    data: Any
    instance: Any
    parameters: Settings
    deadline: float | None
    solve: Callable[..., Run]
    save: Callable[..., None]
    start: Mapping[str, NDArray[np.float64]] | None = None

    @property
    def formulation(self) -> Formulation:
        """The problem, which is its own data."""
        problem: Formulation = self.data
        return problem

    def remaining(self) -> float | None:
        """Seconds left, None without a limit.

        Raises
        ------
        TimeoutError
            When no time is left.
        """
        if self.deadline is None:
            return None
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@dataclass(frozen=True)
class Method:
    """A named way to solve some formulations.

    Exactly one of ``reformulate`` (another matrix, then any adapter of the right class) and ``run`` (a
    procedure, executed in a worker of its own) is given.

    Parameters
    ----------
    applies
        Whether the method applies to a formulation.
    refuse
        ``data -> reason``: why the method does not support these data of a formulation to which it applies, else None.
    parameters
        Parameters for ``--set``; ``solver`` by convention names the adapter for subproblems.
    builds
        Whether the procedure builds the stated model, in the task's form or the formulation's first one.
    construct
        ``instance -> design``: the method with default parameters, as data of a formulation (``Formulation.given_by``).
    bytes_per_variable
        Of a procedure that builds no matrix, its lowest measured peak [bytes per variable of the formulation].
    """

    name: str
    title: str
    summary: str
    applies: Callable[[Formulation | type[Formulation]], bool]
    parameters: tuple[Parameter, ...] = ()
    reformulate: Callable[[StandardForm, Formulation], Reformulation] | None = None
    run: Callable[[Context], Answer] | None = None
    builds: bool = False
    construct: Callable[[Any], Any] | None = None
    bytes_per_variable: float | None = None
    refuse: Callable[[Any], str | None] | None = None

    def __post_init__(self) -> None:
        if not callable(self.applies) or callable(self.run) + callable(self.reformulate) != 1:
            msg = f"method {self.name!r}: applies, and one of run and reformulate, must be functions"
            raise BadInput(msg)

    def refusal(self, data: Any) -> str | None:
        """Reason why the method does not support the data; None if it does."""
        return None if self.refuse is None else self.refuse(data)
