"""Methods: ways to solve a formulation other than one solver on its matrix.

A new method is an entry of ``METHODS`` in a module of this package, listed in ``MODULES`` of the package.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opticoll.solvers.task import Outcome, Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from opticoll.formulations.model import Formulation, Parameter
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import Run, Task


@dataclass(frozen=True)
class Reformulation:
    """Another matrix for the same problem, and the way back from an outcome on it."""

    form: StandardForm
    recover: Callable[[Outcome], Outcome]


@dataclass
class Answer:
    """The result of a procedure: named values, and duals or a bound that certify them.

    ``bound`` is only used where ``bound_source`` states how we recomputed it; an infeasibility is only proven where
    ``infeasible_by`` states how we proved it.
    """

    termination: Termination
    values: dict[str, NDArray[np.float64]] | None = None
    duals: dict[str, NDArray[np.float64]] | None = None
    bound: float | None = None
    bound_source: str | None = None
    infeasible_by: str | None = None
    solver: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    message: str = ""


@dataclass
class Context:
    """The problem of a procedure, its limits, and the runner for sub-problems.

    ``save(answer, objective)`` keeps an intermediate answer, which survives if the procedure is killed later.
    """

    task: Task
    formulation: Formulation
    data: Any
    instance: Any
    parameters: Mapping[str, Any]
    deadline: float | None
    solve: Callable[..., Run]
    save: Callable[..., None]

    def remaining(self) -> float | None:
        """Seconds left, None without a limit.

        Raises
        ------
        TimeoutError
            When none are left.
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
        Whether the method can take a formulation.
    parameters
        What ``--set`` may change; ``solver`` by convention names the adapter for sub-problems.
    construct
        ``instance -> design``: the method with default parameters, as data of a formulation (``Formulation.given_by``).
    """

    name: str
    title: str
    summary: str
    applies: Callable[[Formulation], bool]
    parameters: tuple[Parameter, ...] = ()
    reformulate: Callable[[StandardForm, Formulation], Reformulation] | None = None
    run: Callable[[Context], Answer] | None = None
    construct: Callable[[Any], Any] | None = None
