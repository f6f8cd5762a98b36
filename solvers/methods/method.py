"""Methods: ways to solve a formulation other than one solver on its matrix.

A method is the ``METHOD`` of a module of this package, or one of its ``METHODS``; :mod:`.index` lists them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from opticoll.errors import refuse
from opticoll.formulations.parameters import check_listed
from opticoll.solvers.task import Outcome, SolveRequest, Task, Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opticoll.formulations.model import Formulation
    from opticoll.formulations.parameters import Parameter
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.types import Json, Setting, Settings


@dataclass(frozen=True)
class Reformulation:
    """Another matrix for the same problem, and functions that convert its outcome and objective values back.

    ``begin`` converts a column vector of the problem to one of the other matrix, whose bases are then those of the
    problem; without it, a start cannot be converted.
    """

    form: StandardForm
    recover: Callable[[Outcome], Outcome]
    value: Callable[[float], float]
    begin: Callable[[F64], F64] | None = None


@dataclass
class Answer:
    """The result of a procedure: named values, and duals or a bound that certify them.

    ``bound`` is only used if ``bound_source`` states how it was recomputed; infeasibility only counts as proven if
    ``infeasible_by`` states how it was proven. Of a method from outside the package, both are shown as its claims and
    prove nothing; its duals do, by the formulation's certificate.
    """

    termination: Termination
    values: dict[str, F64] | None = None
    duals: dict[str, F64] | None = None
    bound: float | None = None
    bound_source: str | None = None
    infeasible_by: str | None = None
    solver: Mapping[str, Json] = field(default_factory=dict)
    metrics: Mapping[str, Json] = field(default_factory=dict)
    message: str = ""

    @classmethod
    def heuristic(cls, values: dict[str, F64], algorithm: str, metrics: Mapping[str, Json] | None = None) -> Answer:
        """Values of a method that proves nothing."""
        solver, message = {"algorithm": algorithm}, "a heuristic, which has no bound of its own"
        return cls(Termination.TOLERANCE, values=values, solver=solver, metrics=metrics or {}, message=message)


@dataclass
class Context:
    """The problem of a procedure, its limits, and the runner for subproblems.

    ``solve(task)`` returns the :class:`~opticoll.solvers.run.Run` of another task. ``save(answer, objective)`` keeps an
    intermediate answer, which survives if the procedure is killed later. ``start`` are the named values of a known
    solution, if any.
    """

    task: Task
    data: Any
    instance: Any
    parameters: Settings
    deadline: float | None
    solve: Callable[..., Any]
    save: Callable[..., None]
    start: Mapping[str, F64] | None = None

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

    @property
    def expired(self) -> bool:
        """Whether no time is left."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def part(self, formulation: str, most_s: float | None = None, **fields: Any) -> Task:
        """Another formulation, by default on the same instance, with this task's limits and at most ``most_s`` seconds.

        Raises
        ------
        TimeoutError
            When no time is left.
        """
        task, limits = self.task, [limit for limit in (most_s, self.remaining()) if limit is not None]
        return Task(
            formulation,
            fields.pop("instance", task.instance),
            time_limit_s=min(limits, default=None),
            memory_limit_gib=task.memory_limit_gib,
            tol=task.tol,
            seed=task.seed,
            threads=task.threads,
            **fields,
        )

    def request(self) -> SolveRequest:
        """What a solver of a part is asked: the time left, and the task's threads, tolerance and seed.

        Raises
        ------
        TimeoutError
            When no time is left.
        """
        return SolveRequest(self.remaining(), self.task.threads, self.task.tol, self.task.seed)


@dataclass(frozen=True)
class Beyond:
    """The size of a formulation's stated model beyond which ``auto`` takes the method that states it instead.

    Our sizes were measured with HiGHS 1.15 on 2 cores. Beside each stand the largest models that took at most about ten
    CPU seconds, and the smallest ones beyond, of the whole run in a warm process; "not solved" is after 25 s.

    Parameters
    ----------
    formulation
        Name of the formulation, among those that the method serves.
    variables, nonzeros
        Size of the largest stated model that ``auto`` still solves; without ``nonzeros`` they do not matter.
    where
        Values of the formulation's parameters to which the size is restricted: those that make the model harder or
        easier than with others.
    proves
        Whether the method also continues a run whose optimum our bounds do not prove when HiGHS ends; otherwise
        ``certified-branching`` does.
    most
        Variables of the largest model whose data the method can hold in memory; None if the data are small.
    suits
        ``(problem, task, size) -> whether`` the method suits the problem; by default it always does. Of several methods
        that suit, the one with the smallest size is taken.
    first
        Whether ``auto`` begins with the method on smaller models too: it proves their optima in less time than it takes
        to build and solve them.
    """

    formulation: str
    variables: int
    nonzeros: int | None = None
    where: Mapping[str, Setting] = field(default_factory=dict)
    proves: bool = True
    most: int | None = None
    suits: Callable[[Formulation, Task, Mapping[str, int]], bool] | None = None
    first: bool = False

    def covers(self, size: Mapping[str, int] | None) -> bool:
        """Whether the stated model is small enough to be solved; not if its size is unknown."""
        if size is None or size["variables"] > self.variables:
            return False
        return self.nonzeros is None or size["nonzeros"] <= self.nonzeros

    def holds(self, parameters: Settings) -> bool:
        """Whether the statement is about the formulation with these parameters."""
        return all(parameters.get(name) == value for name, value in self.where.items())


@dataclass(frozen=True)
class Method:
    """A named way to solve some formulations.

    Exactly one of ``reformulate`` (another matrix, then any adapter of the right class) and ``run`` (a
    procedure, executed in a worker of its own) is given.

    Parameters
    ----------
    serves
        Names of the formulations to which the method applies, or a function ``formulation -> whether`` it does.
    takes_over
        Sizes beyond which ``auto`` takes the method instead of the stated model.
    same_as
        Formulation with the same optimum and a smaller matrix, from whose solution the method makes its own.
    refuse
        ``data -> reason``: why the method does not support these data of a formulation to which it applies, else None.
    parameters
        Parameters for ``--set``; ``solver`` by convention names the adapter for subproblems.
    starts
        Whether the procedure begins with a known solution (``Context.start``).
    builds
        Whether the procedure builds the stated model, in the task's form or the formulation's first one.
    construct
        ``instance -> design``: the method with default parameters, as data of a formulation (``Parameter.constructs``).
    """

    name: str
    title: str
    summary: str
    serves: tuple[str, ...] | Callable[[Formulation | type[Formulation]], bool]
    takes_over: tuple[Beyond, ...] = ()
    same_as: str | None = None
    parameters: tuple[Parameter, ...] = ()
    reformulate: Callable[[StandardForm, Formulation], Reformulation] | None = None
    run: Callable[[Context], Answer] | None = None
    starts: bool = False
    builds: bool = False
    construct: Callable[[Any], Any] | None = None
    refuse: Callable[[Any], str | None] | None = None

    def __post_init__(self) -> None:
        if callable(self.run) + callable(self.reformulate) != 1:
            refuse(f"method {self.name!r}", "one of run and reformulate must be a function")
        if not callable(self.serves) and not isinstance(self.serves, tuple):
            refuse(f"method {self.name!r}", "serves must be a tuple of names of formulations, or a function of one")
        if not isinstance(self.takes_over, tuple) or not all(isinstance(one, Beyond) for one in self.takes_over):
            refuse(f"method {self.name!r}", "takes_over must be a tuple of Beyond objects")
        check_listed(self.parameters, f"method {self.name!r}")

    def applies(self, formulation: Formulation | type[Formulation]) -> bool:
        """Whether the method applies to a formulation."""
        return self.serves(formulation) if callable(self.serves) else formulation.name in self.serves

    def refusal(self, data: Any) -> str | None:
        """Reason why the method does not support the data; None if it does."""
        return None if self.refuse is None else self.refuse(data)
