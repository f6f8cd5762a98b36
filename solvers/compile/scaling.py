r"""Scaling of programs, so that results do not depend on the units in which they are stated.

Tolerances of solvers are absolute. Capacities of 1e-7 are lost in a feasibility tolerance of 1e-9 (measured: a
certified gap of 5e-3 on GK(27,4)), and so are durations of 1e-8 s. If capacities are coefficients (load <= c T),
solvers drop entries of 1e-9 and declare the remaining problem infeasible. With demands of D bytes, F has the
coefficient D and the duals have the size 1 / D, which a dual tolerance of 1e-7 does not distinguish from 0, so F = 0
passes for optimal.

Row i is multiplied by :math:`r_i`, a continuous column measured in units of :math:`k_j`, the objective in units of u,
all of them powers of 2, and integer columns are left in their units:

.. math:: A' = \operatorname{diag}(r) A \operatorname{diag}(k), \quad x = k x', \quad c' = k c / u, \quad y = u r y'.

So nothing is rounded, and what is proven of one program holds for the other.

Every adapter gets the scaled matrix; x, duals, objective and bound are returned in the units of the stated problem.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.standard_form import Columns
from opticoll.solvers.adapters.registry import adapter
from opticoll.solvers.methods.method import Reformulation
from opticoll.solvers.process.isolation import solve_here, solve_isolated

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, Mask
    from opticoll.solvers.task import Outcome, SolveRequest


#: Rows, columns and costs are rescaled if they are smaller than NEAR or larger than LARGE, rows also if that multiplies
#: them by more than MIXED.
NEAR, LARGE, MIXED = 0.125, 1e3, 128.0
#: Rescaling leaves no larger coefficient of a continuous column: solvers refuse those of 1e15.
LARGEST = 2.0**40
#: Largest value of a rescaled column, by estimate.
SPREAD = 1e6


def scaling_steps(form: StandardForm, *, integer_data: bool = False) -> list[Reformulation]:
    """The reformulation that scales a problem, in a list; none if it is well scaled.

    None either for a solver of ``integer_data``, which makes integers of the coefficients as they are stated.
    """
    step = None if integer_data else in_units(form)
    return [] if step is None else [step]


def solve_scaled(
    form: StandardForm,
    solver: str,
    request: SolveRequest,
    *,
    steps: Sequence[Reformulation] | None = None,
    memory_limit_gib: float | None = None,
    on_progress: Callable[[float | None, float | None], None] | None = None,
    stop: threading.Event | None = None,
    in_process: bool = False,
) -> Outcome:
    """Solve a problem through its reformulations; outcome and progress are of ``form`` itself.

    ``steps`` are by default :func:`scaling_steps`. ``in_process`` solves in this process, without limit on memory. The
    other parameters and the errors are those of :func:`opticoll.solvers.process.isolation.solve_isolated`. A start
    that a reformulation cannot convert is omitted.
    """
    chain = steps
    if chain is None:
        chain = scaling_steps(form, integer_data=adapter(solver).capabilities.integer_data_only)
    if any(step.begin is None for step in chain):
        request = replace(request, warm_start=None, basis=None, want_basis=False)
    for step in chain:
        if request.warm_start is not None and step.begin is not None:
            request = replace(request, warm_start=step.begin(request.warm_start))

    def relay(objective: float | None, bound: float | None, x: F64 | None = None) -> None:
        del x  # of the scaled problem
        for step in reversed(chain):
            objective, bound = (None if v is None else step.value(v) for v in (objective, bound))
        if on_progress is not None:
            on_progress(objective, bound)

    target, report = chain[-1].form if chain else form, None if on_progress is None else relay
    if in_process:
        outcome = solve_here(target, solver, request, report)
    else:
        outcome = solve_isolated(
            target, solver, request, memory_limit_gib=memory_limit_gib, on_progress=report, stop=stop
        )
    for step in reversed(chain):
        outcome = step.recover(outcome)
    return outcome


def in_units(form: StandardForm) -> Reformulation | None:
    """The program with rows, continuous columns and costs of about 1 in size; None if it needs no scaling.

    Sizes are estimated (:class:`opticoll.formulations.term_sizes.TermSizes`). A column is measured by its smallest
    estimate, unless its largest is more than :data:`SPREAD` times that. The smallest term of a row is brought to 1, but
    its largest not above :data:`LARGE`; and no row is divided so far that its continuous columns or its right-hand
    side are lost: a large coefficient may only switch it off.
    """
    sizes, A = form.sizes, form.stored
    whole = np.asarray(form.integer, dtype=bool)
    size = np.where(whole, 1.0, np.maximum(sizes.least, sizes.most / SPREAD))
    k = _powers(size, ~whole & ((size < NEAR) | (size > LARGE)))
    row, value, many = A.indices, np.abs(A.data), np.diff(A.indptr)
    term, kept = value * np.repeat(sizes.least, many), ~np.repeat(whole, many)
    continuous = np.where(sizes.side > 0, sizes.side, np.inf)
    smallest = continuous.copy()
    np.minimum.at(continuous, row[kept], term[kept])
    np.minimum.at(smallest, row, term)
    with np.errstate(divide="ignore", over="ignore"):
        most = np.maximum(LARGE / sizes.row, np.minimum(1.0, 1.0 / continuous))
        factor = np.minimum(1.0 / smallest, most)
    off = (sizes.row < NEAR) | (sizes.row > LARGE) | (factor > MIXED)
    r = _powers(factor, off & (factor > 0) & ((factor < NEAR) | (factor > 1 / NEAR)))
    data = A.data * r[row]
    largest = np.zeros(k.size)
    np.maximum.at(largest, np.repeat(np.arange(k.size), many), np.abs(data) * np.repeat(k, many))
    k /= _powers(largest / LARGEST, (largest > LARGEST) & ~whole)
    priced = float(np.abs(form.cost * size).max(initial=0.0))
    unit = float(_powers(np.array([priced]), np.array([priced > 0 and not NEAR <= priced <= LARGE]))[0])
    if unit == 1.0 and (k == 1.0).all() and (r == 1.0).all():
        return None
    scaled = replace(
        form,
        A=Columns(data * np.repeat(k, many), row, A.indptr, A.shape),
        row_lower=form.row_lower * r,
        row_upper=form.row_upper * r,
        col_lower=form.col_lower / k,
        col_upper=form.col_upper / k,
        cost=form.cost * k / unit,
        offset=form.offset / unit,
    )

    def stated(scaled_value: float) -> float:
        return scaled_value * unit

    def recover(outcome: Outcome) -> Outcome:
        x = None if outcome.x is None else np.asarray(outcome.x) * k
        duals = None if outcome.row_duals is None else np.asarray(outcome.row_duals) * r * unit
        objective, bound = (None if v is None else stated(v) for v in (outcome.objective, outcome.bound))
        incumbents = [(seconds, stated(v)) for seconds, v in outcome.incumbents]
        return replace(outcome, x=x, row_duals=duals, objective=objective, bound=bound, incumbents=incumbents)

    return Reformulation(scaled, recover, stated, begin=lambda x: x / k)


def _powers(sizes: F64, off: Mask) -> F64:
    """The nearest powers of 2 where ``off``, 1 elsewhere."""
    return np.exp2(np.where(off, np.round(np.log2(np.where(off, sizes, 1.0))), 0.0))
