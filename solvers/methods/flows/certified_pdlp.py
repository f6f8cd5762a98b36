"""Methods ``time-form``: minimise the time T = 1/F (Charnes-Cooper); and ``certified-pdlp``: PDLP on it, certified."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import MethodMismatch
from opticoll.formulations.model import Parameter
from opticoll.solvers import verify
from opticoll.solvers.methods.method import Answer, Method, Reformulation
from opticoll.solvers.standard_form import StandardForm
from opticoll.solvers.task import SolveRequest, Termination

if TYPE_CHECKING:
    import scipy.sparse as sp

    from opticoll.formulations.model import Formulation
    from opticoll.instances.digraph import F64
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Outcome


def reformulate(form: StandardForm, formulation: Formulation) -> Reformulation:
    """Time form: minimise T = 1/F instead of maximising F, so no column is dense.

    A concurrent flow LP is homogeneous in (flow, F) but for its capacities. Divide by F (Charnes & Cooper, Naval
    Research Logistics 9, 1962): with y = x/F and T = 1/F,

        max F, l <= A x + a F <= u      becomes      min T, l T <= A y + a <= u T.

    The column of F, dense because it is in every demand row, becomes right-hand sides, and T appears only in rows with
    finite nonzero bounds (the capacities): interior point works on a much sparser normal matrix. Measured on
    GK(200,4), 2 cores, HiGHS IPX without crossover: 26 s and a certified gap of 1e-6 as stated, 12 s and 6e-9 in time
    form.

    Raises
    ------
    MethodMismatch
        If the objective is not the formulation's concurrent variable alone, or a column has bounds that
        do not scale (anything but 0 and infinity).
    """
    import scipy.sparse as sp

    name = formulation.concurrent or ""
    block = form.columns.get(name)
    if block is None or block.index.size != 1 or form.sense != "max" or form.is_mip or form.offset:
        msg = f"time-form: {formulation.name} does not maximise a concurrent-flow variable alone; use a solver instead"
        raise MethodMismatch(msg)
    at = int(block.index[0])
    only = np.zeros(form.cost.size)
    only[at] = 1.0
    scalable = [np.isin(bounds, (0.0, np.inf, -np.inf)).all() for bounds in (form.col_lower, form.col_upper)]
    if not np.array_equal(form.cost, only) or not all(scalable):
        msg = f"time-form: {formulation.name} has column bounds or costs that do not scale with F; use a solver instead"
        raise MethodMismatch(msg)

    column = form.A[:, [at]].toarray().ravel()
    # A finite nonzero bound moves to T's column; a row with two of them (a range) becomes two rows.
    lower, upper = form.row_lower, form.row_upper
    rest = sp.csr_array(form.A)
    has_low, has_high = np.isfinite(lower), np.isfinite(upper)
    equality = has_low & has_high & (lower == upper)
    low_only, high_only = has_low & ~equality, has_high & ~equality
    parts, time, low, high, origin = [], [], [], [], []
    for rows, right, is_low, is_high in (
        (np.flatnonzero(equality), lower, True, True),
        (np.flatnonzero(low_only), lower, True, False),
        (np.flatnonzero(high_only), upper, False, True),
    ):
        parts.append(rest[rows])
        time.append(-right[rows])
        low.append(-column[rows] if is_low else np.full(rows.size, -np.inf))
        high.append(-column[rows] if is_high else np.full(rows.size, np.inf))
        origin.append(rows)
    source = np.concatenate(origin)
    matrix = _with_column(sp.csc_array(sp.vstack(parts)), at, np.concatenate(time))
    cost = np.zeros(form.cost.size)
    cost[at] = 1.0
    low_columns, high_columns = form.col_lower.copy(), form.col_upper.copy()
    low_columns[at], high_columns[at] = 0.0, np.inf
    timed = StandardForm(
        matrix, np.concatenate(low), np.concatenate(high), low_columns, high_columns, cost, "min",
        columns=form.columns, rows={},
    )  # fmt: skip

    def recover(outcome: Outcome) -> Outcome:
        x = outcome.x
        duals = None
        if outcome.row_duals is not None:
            # A unit of rhs in time form is F units in the stated form, and dF = -F^2 dT: dF/d(rhs) = -F dT/d(rhs).
            duals = np.zeros(form.row_lower.size)
            np.add.at(duals, source, -np.asarray(outcome.row_duals))
        if x is None or not x[at] > 0:
            return replace(outcome, x=None, row_duals=duals, objective=None, bound=None)
        F = 1.0 / float(x[at])
        back = np.asarray(x, dtype=float) * F
        back[at] = F
        if duals is not None:
            duals *= F
        inverse = [None if v is None or not v > 0 else value(v) for v in (outcome.objective, outcome.bound)]
        incumbents = [(seconds, value(v)) for seconds, v in outcome.incumbents]
        return replace(outcome, x=back, row_duals=duals, objective=inverse[0], bound=inverse[1], incumbents=incumbents)

    return Reformulation(timed, recover, value)


def value(time: float) -> float:
    """Convert T to F; infinite if T is not positive."""
    return 1.0 / time if time > 0 else np.inf


def _with_column(csc: sp.csc_array, at: int, entries: F64) -> sp.csc_array:
    """Return the matrix ``csc`` with column ``at`` replaced by dense ``entries``."""
    import scipy.sparse as sp

    left, right = csc[:, :at], csc[:, at + 1 :]
    middle = sp.csc_array(entries.reshape(-1, 1))
    joined = sp.csc_array(sp.hstack([left, middle, right], format="csc"))
    joined.eliminate_zeros()
    joined.sort_indices()
    return joined


SOLVERS = ("highs-pdlp", "pdlp", "cupdlpx")
#: PDLP does not reach smaller tolerances in double precision.
SMALLEST = 1e-9
STEP = 0.1
#: Time [s], and share of the remaining time, that a round reserves for starting a process, repair and certificate.
RESERVE_S, RESERVE = 1.0, 0.15


def takes(formulation: Formulation) -> bool:
    """Whether a formulation is a concurrent-flow LP that repairs flows and turns duals into bounds."""
    certified = formulation.certify is not None and formulation.repair is not None
    return formulation.concurrent is not None and formulation.problem == "LP" and certified


def run(context: Context) -> Answer:
    """Off-the-shelf PDLP with the repair and certificate of certified-pdhg, as a baseline for comparison.

    Source  Applegate et al., Practical large-scale linear programming using primal-dual hybrid gradient, NeurIPS 2021

    The concurrent flow's matrix in its time form (method ``time-form``) is passed to a PDLP code unchanged. PDLP stops
    at a tolerance on its residuals, which does not bound the gap: the flow is slightly infeasible and the duals prove
    less. Each round's flow is therefore repaired exactly and its duals are turned into a bound. While the gap exceeds
    ``tol``, the next round starts again with a tolerance ten times smaller. The best flow and duals of all rounds are
    kept; the last round dominates the time.
    """
    from opticoll.solvers.standard_form import compile_model, import_layer

    pass
    from opticoll.solvers.relaxation import scaling_steps, solve_scaled

    model, task = context.formulation, context.task
    layer = task.form or ("matrix" if "matrix" in model.build else model.forms[0])
    begun = time.monotonic()
    import_layer(layer)
    form = compile_model(model.build[layer](context.data))  # type: ignore[index]
    steps = scaling_steps(form)
    steps.append(reformulate(steps[-1].form if steps else form, model))
    best = Best(context, form, build_s=time.monotonic() - begun)
    name = str(context.parameters["solver"])
    tolerance = max(task.tol, SMALLEST)
    while True:
        try:
            left = context.remaining()
        except TimeoutError:
            return best.answer(Termination.TIME_LIMIT, "the time limit ended the rounds")
        if left is not None:
            left -= min(RESERVE_S + RESERVE * left + best.close_s, left / 2)
        request = SolveRequest(left, task.threads, tolerance, task.seed)
        outcome = solve_scaled(form, name, request, steps=steps)
        best.take(outcome, tolerance)
        if best.gap is not None and best.gap <= task.tol:
            return best.answer(Termination.OPTIMAL)
        if outcome.termination not in (Termination.OPTIMAL, Termination.TOLERANCE):
            return best.answer(outcome.termination, outcome.message)
        if tolerance <= SMALLEST or outcome.termination is Termination.TOLERANCE:
            gap = "unknown" if best.gap is None else f"{best.gap:.1e}"
            return best.answer(Termination.TOLERANCE, f"the gap stays at {gap}, the limit of {name}")
        tolerance = max(tolerance * STEP, SMALLEST)


class Best:
    """The best flow and the best duals so far, each evaluated by the formulation."""

    def __init__(self, context: Context, form: StandardForm, build_s: float) -> None:
        self.context, self.form, self.build_s = context, form, build_s
        self.values: dict[str, Any] | None = None
        self.duals: dict[str, Any] | None = None
        self.objective: float | None = None
        self.bound: float | None = None
        self.solver: dict[str, Any] = {}
        self.rounds = self.iterations = 0
        self.solve_s = self.close_s = 0.0
        self.tolerance: float | None = None

    @property
    def gap(self) -> float | None:
        """Relative gap between the two."""
        return verify.relative_gap(self.objective, self.bound, self.context.formulation.sense)

    def take(self, outcome: Outcome, tolerance: float) -> None:
        """Repair and certify the result of a round, keep what is better, and save it in case the process is killed."""
        start = time.monotonic()
        model, data = self.context.formulation, self.context.data
        assert model.repair is not None
        assert model.certify is not None
        self.rounds, self.tolerance = self.rounds + 1, tolerance
        self.solve_s += outcome.solve_s or 0.0
        self.iterations += outcome.iterations or 0
        self.solver = {
            "name": str(self.context.parameters["solver"]), "version": outcome.version,
            "algorithm": outcome.algorithm, "options": outcome.options,
        }  # fmt: skip
        sign = 1.0 if model.sense == "max" else -1.0
        if outcome.row_duals is not None:
            duals = self.form.duals(outcome.row_duals)
            bound = model.certify(data, duals)
            if bound is not None and (self.bound is None or sign * bound.value < sign * self.bound):
                self.bound, self.duals = bound.value, duals
        if outcome.x is not None:
            values = model.repair(data, self.form.values(outcome.x))
            objective = -sign * np.inf if values is None else model.objective(data, values)
            if np.isfinite(objective) and (self.objective is None or sign * objective > sign * self.objective):
                self.objective, self.values = objective, values
        self.close_s += time.monotonic() - start
        self.context.save(self.answer(Termination.INTERRUPTED), self.objective)

    def answer(self, termination: Termination, message: str = "") -> Answer:
        """The answer with the best flow and duals."""
        return Answer(
            termination, values=self.values, duals=self.duals, bound=self.bound, solver=self.solver, message=message,
            metrics={
                "rounds_of_pdlp": self.rounds, "iterations": self.iterations, "tolerance": self.tolerance,
                "build_s": self.build_s, "pdlp_s": self.solve_s, "close_s": self.close_s,
            },
        )  # fmt: skip


METHODS = (
    Method(
        name="time-form",
        title="Minimise the time T = 1/F (Charnes-Cooper)",
        summary="the concurrent-flow LP divided by F: no dense column, so interior point is faster and more accurate",
        applies=lambda formulation: formulation.concurrent is not None and formulation.problem == "LP",
        parameters=(Parameter("solver", str, default="highs-ipx", help="LP solver for the reformulated matrix"),),
        reformulate=reformulate,
    ),
    Method(
        name="certified-pdlp",
        title="Off-the-shelf PDLP on the time form, repaired and certified",
        summary="baseline for certified-pdhg: a general first-order LP code, tightened until the gap is closed",
        applies=takes,
        parameters=(Parameter("solver", str, default="highs-pdlp", help="PDLP code", choices=SOLVERS),),
        run=run,
    ),
)
