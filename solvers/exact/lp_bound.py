r"""The optimum of a linear relaxation in rational arithmetic, where floating-point duals prove no bound on it.

Duals in floating point prove a bound only if nothing unbounded has a reduced cost
(:class:`opticoll.solvers.verify.WeakDuality`), which they miss on free columns by a rounding error. The exact
multipliers of an optimal basis do not. They also prove an optimum of 0, to which no error is small, and that a program
has no solution or no finite optimum.

Every float is read as the number that it is. This may contradict what was meant: 0.1 + 0.2 is not 0.3, so equations
that follow from each other may have no solution, and a free column whose cost is paid by its rows may be a ray. A
program without an optimum is therefore read again with every float as the shortest decimal that rounds to it; it only
counts as infeasible or unbounded if it is so in both readings.

The cost is bounded: programs of more than :data:`MOST_NONZEROS` nonzeros are left alone, and others get at most
:data:`LIMIT_S` seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import ModelError, NoSolution, refuse
from opticoll.formulations.model import Bound
from opticoll.formulations.rounding import fraction_down, fraction_up
from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm, fault
from opticoll.solvers.exact.in_worker import answer_apart

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64

#: Largest program whose relaxation is solved exactly, and the time limit [s] of that.
MOST_NONZEROS, LIMIT_S = 200_000, 30.0
#: Name of the bound.
NAME = "exact-dual"


@dataclass(frozen=True, eq=False)
class ExactRelaxation:
    """The exact answer to a linear relaxation, checked.

    ``decimals`` states that its floats were read as decimals.
    """

    form: ExactForm
    answer: ExactAnswer
    decimals: bool

    @property
    def bound(self) -> Bound | None:
        """The optimum as a bound, rounded outward; None if there is none."""
        proven = self.answer.objective
        if proven is None:
            return None
        value = fraction_up(proven) if self.form.sense == "max" else fraction_down(proven)
        reading = ", of the decimals that its floats stand for" if self.decimals else ""
        reason = f"weak duality from multipliers of the rows in rational arithmetic{reading}"
        return Bound(NAME, value + 0.0, reason)

    @property
    def x(self) -> F64 | None:
        """The optimal solution, rounded, by column; None if there is none."""
        x = self.answer.x if self.answer.status == "optimal" else None
        return None if x is None else np.array([float(value) for value in x])


def exact_relaxation(
    form: StandardForm,
    left_s: float | None,
    threads: int = 1,
    memory_limit_gib: float | None = None,
    stop: threading.Event | None = None,
) -> ExactRelaxation:
    """Solve the linear relaxation of a program exactly, in a worker process.

    Parameters
    ----------
    left_s
        Seconds left, None without a limit; at most :data:`LIMIT_S` are used.

    Raises
    ------
    NoSolution
        If the program is too large, or nothing is proven within the limits.
    """
    if form.A.nnz > MOST_NONZEROS:
        raise _too_large(form)
    limit = LIMIT_S if left_s is None else min(left_s, LIMIT_S)
    timed_out = f"nothing is proven within {limit:.3g} s"
    result: ExactRelaxation = answer_apart(
        exact_relaxation_here, (_relaxed(form),), limit, timed_out, memory_limit_gib, threads, stop
    )
    return result


def exact_relaxation_here(form: StandardForm, remaining: Callable[[], float | None]) -> ExactRelaxation:
    """As :func:`exact_relaxation`, in this process; ``remaining`` as in :func:`linear.solve_linear`."""
    from opticoll.solvers.exact.linear import solve_linear

    if form.A.nnz > MOST_NONZEROS:
        raise _too_large(form)
    readings = _readings(_relaxed(form))
    results, reason = [], None
    for k, exact in enumerate(readings):
        try:
            answer = _checked(exact, solve_linear(exact, remaining))
        except NoSolution as error:
            reason = error
            continue
        results.append(ExactRelaxation(exact, answer, k > 0))
        if answer.status == "optimal":
            return results[-1]
    kinds = {result.answer.status for result in results}
    if len(results) < len(readings) or len(kinds) > 1:
        what = " and ".join(sorted(kinds))
        raise reason or NoSolution(f"its floats and the decimals that they stand for state a program that is {what}")
    return results[0]


def _relaxed(form: StandardForm) -> StandardForm:
    return replace(form, integer=np.zeros(form.cost.size, dtype=bool), columns={}, rows={})


def _too_large(form: StandardForm) -> NoSolution:
    return NoSolution(
        f"the program has {form.A.nnz:,} nonzeros; its relaxation is solved exactly up to {MOST_NONZEROS:,}"
    )


def _readings(form: StandardForm) -> list[ExactForm]:
    """The program in rational numbers: every float as itself, and as the shortest decimal if one of them differs."""
    try:
        plain, decimals = ExactForm.of(form, Fraction), ExactForm.of(form)
    except ModelError as error:
        raise NoSolution(str(error)) from error
    fields = ("values", "row_lower", "row_upper", "col_lower", "col_upper", "cost", "offset")
    same = all(getattr(plain, name) == getattr(decimals, name) for name in fields)
    return [plain] if same else [plain, decimals]


def _checked(form: ExactForm, answer: ExactAnswer) -> ExactAnswer:
    if (wrong := fault(form, answer)) is not None:
        refuse("exact", f"rejected by the check: {wrong}", NoSolution)
    return answer
