"""A run: the plan for a task, what a solver or a method returned, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from opticoll.formulations.model import Bound, Formulation
from opticoll.solvers.task import Outcome, Proof, Record, SimplexBasis, SolverInfo, Task, Termination

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances import Instance
    from opticoll.instances.topology import F64
    from opticoll.solvers.adapters.interface import Adapter
    from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm
    from opticoll.solvers.methods.method import Answer, Context, Method
    from opticoll.types import Json, Settings

    Arrays = Mapping[str, F64]


@dataclass(frozen=True)
class MethodChoice:
    """A method and the form of the stated model that it receives, or the reason why no model is built.

    ``beyond`` is the method that continues if HiGHS does not solve the model, ``proof`` the one that does if the
    optimum is not proven; ``variables`` and ``nonzeros`` the size of the stated model, None where it is unknown;
    ``reason`` why the model is not built, None where it is.
    """

    method: str
    form: str
    beyond: str | None = None
    proof: str | None = None
    variables: int | None = None
    nonzeros: int | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Continuation:
    """A method that continues a run, and its own time limit [s]; None if it has all the time.

    With a limit of its own it has at most a share of the time that is left, with an infinite one just that.
    """

    method: str
    limit_s: float | None = None


@dataclass(frozen=True)
class Plan:
    """A task with every choice made.

    ``problem`` is the formulation on the instance, ``form`` the layer in which its model is built.
    ``method`` is None where a solver gets the stated model as it is; ``adapter`` is the solver that gets a matrix, None
    for procedures that name their own solvers. A solution that is read from a file has neither. ``choice`` is what
    ``auto`` chose, None for a method that the task names. ``stated`` is the program in rational numbers for an exact
    task, None where its data are another run's solution.
    """

    problem: Formulation
    instance: Instance
    form: str
    method: Method | None
    adapter: Adapter | None
    parameters: Settings
    method_parameters: Settings
    options: Mapping[str, object]
    needed: Mapping[str, F64] = field(default_factory=dict)
    choice: MethodChoice | None = None
    stated: ExactForm | None = None

    @property
    def builds(self) -> bool:
        """Whether the stated model is built in ``form``: by the runner, or by the method's procedure."""
        return self.procedure is None or (self.method is not None and self.method.builds)

    @property
    def integer(self) -> bool:
        """Whether the stated model has integer variables."""
        return self.problem.problem == "MILP"

    @property
    def procedure(self) -> Callable[[Context], Answer] | None:
        """What is run in place of a solver on the stated model, or on another matrix."""
        return None if self.method is None else self.method.run

    @property
    def method_name(self) -> str:
        """The name under which the run is recorded: that of the method, or of the solver."""
        solves = self.method or self.adapter
        assert solves is not None
        return solves.name

    @property
    def settings(self) -> dict[str, object]:
        """All effective settings, as they enter the resume key."""
        return {**self.parameters, **self.method_parameters, **self.options}


@dataclass(frozen=True)
class Solved:
    """What a solver or a method returned, in the names of the formulation; its values are not verified yet.

    ``bounds`` are those that are proven already, ``infeasible_by`` the proof that there is no solution; ``refuted`` if
    that is a bound, and nothing was built.
    """

    outcome: Outcome
    solver: SolverInfo = field(default_factory=SolverInfo)
    form: StandardForm | None = None
    values: Arrays | None = None
    duals: Arrays | None = None
    bounds: tuple[Bound, ...] = ()
    metrics: Mapping[str, Json] = field(default_factory=dict)
    infeasible_by: str | None = None
    refuted: bool = False


@dataclass(frozen=True, eq=False)
class Run:
    """The record of a run, and its solution.

    ``values`` are the named variable arrays that were verified (after repair, if one was needed); ``duals``
    the named duals that certified the bound, if any; ``bounds`` the formulation's analytic bounds, if the run computed
    them; ``needed`` the run whose solution was the data of this one. ``exact`` is the problem in rational numbers with
    its proven answer, if the task requested it and it was found. ``basis`` is that of the stated model, if wanted.
    """

    task: Task
    record: Record
    values: Mapping[str, F64] | None = None
    duals: dict[str, F64] | None = None
    plan: Plan | None = None
    bounds: list[Bound] | None = None
    needed: Run | None = None
    exact: tuple[ExactForm, ExactAnswer] | None = None
    basis: SimplexBasis | None = None

    @property
    def _planned(self) -> Plan:
        """The plan of a run that got as far as that, as every one with a solution or a proof did."""
        assert self.plan is not None
        return self.plan

    @property
    def termination(self) -> Termination:
        """The reason why the run stopped."""
        return self.record.termination or Termination.ERROR

    @property
    def proof(self) -> Proof:
        """What is proven about the value."""
        return self.record.proof or Proof.NONE

    @property
    def objective(self) -> float | None:
        """The value of the solution; None if there is none."""
        return self.record.objective

    @property
    def objective_exact(self) -> Fraction | None:
        """The optimum as a fraction, if it is proven in rational arithmetic."""
        return None if self.record.objective_exact is None else Fraction(self.record.objective_exact)

    @property
    def bound(self) -> float | None:
        """The tightest bound on the optimum; None if there is none."""
        return self.record.bound

    @property
    def verified(self) -> bool:
        """Whether the solution passed the formulation's checker."""
        return self.record.verified is True

    @property
    def exit_status(self) -> int:
        """0 solved and verified, 4 solver unavailable, 3 no solution."""
        if self.verified:
            return 0
        return 4 if self.termination is Termination.UNAVAILABLE else 3
