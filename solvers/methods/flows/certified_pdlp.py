"""Method ``certified-pdlp``: PDLP on the time form, repaired and certified."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.model import build_model, forms_of
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers import verify
from opticoll.solvers.methods.flows.time_form import reformulate, takes
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import SolveRequest, Termination

if TYPE_CHECKING:
    from opticoll.solvers.methods.method import Context
    from opticoll.solvers.task import Outcome


SOLVERS = ("highs-pdlp", "pdlp", "cupdlpx")
#: PDLP does not reach smaller tolerances in double precision.
SMALLEST = 1e-9
STEP = 0.1
#: Time [s], and share of the remaining time, that a round reserves for starting a process, repair and certificate.
RESERVE_S, RESERVE = 1.0, 0.15


def run(context: Context) -> Answer:
    """Off-the-shelf PDLP with the repair and certificate of certified-pdhg, as a baseline for comparison.

    Source  Applegate et al., Practical large-scale linear programming using primal-dual hybrid gradient, NeurIPS 2021

    The concurrent flow's matrix in its time form (method ``time-form``) is passed to a PDLP code unchanged. PDLP stops
    at a tolerance on its residuals, which does not bound the gap: the flow is slightly infeasible and the duals prove
    less. Each round's flow is therefore repaired exactly and its duals are turned into a bound. While the gap exceeds
    ``tol``, the next round starts again with a tolerance ten times smaller. The best flow and duals of all rounds are
    kept; the last round dominates the time.
    """
    from opticoll.solvers.compile.compilation import compile_model
    from opticoll.solvers.compile.scaling import scaling_steps, solve_scaled

    model, task = context.formulation, context.task
    layer = task.form or ("matrix" if "matrix" in forms_of(model) else forms_of(model)[0])
    begun = time.monotonic()
    form = compile_model(build_model(model, layer))
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
        model = self.context.formulation
        self.rounds, self.tolerance = self.rounds + 1, tolerance
        self.solve_s += outcome.solve_s or 0.0
        self.iterations += outcome.iterations or 0
        self.solver = {
            "name": str(self.context.parameters["solver"]),
            "version": outcome.version,
            "algorithm": outcome.algorithm,
            "options": outcome.options,
        }
        sign = 1.0 if model.sense == "max" else -1.0
        if outcome.row_duals is not None:
            duals = self.form.duals(outcome.row_duals)
            bound = model.certify(duals)
            if bound is not None and (self.bound is None or sign * bound.value < sign * self.bound):
                self.bound, self.duals = bound.value, duals
        if outcome.x is not None:
            raw = self.form.values(outcome.x)
            # An inherited repair does not know the rows that a derived class adds; the raw values may satisfy them.
            tried = (one for one in (model.repair(raw), raw) if one is not None)
            values = next((one for one in tried if verify.violated(verify.residuals(model, one)) is None), None)
            objective = -sign * np.inf if values is None else model.objective(values)
            if np.isfinite(objective) and (self.objective is None or sign * objective > sign * self.objective):
                self.objective, self.values = objective, values
        self.close_s += time.monotonic() - start
        self.context.save(self.answer(Termination.INTERRUPTED), self.objective)

    def answer(self, termination: Termination, message: str = "") -> Answer:
        """The answer with the best flow and duals."""
        return Answer(
            termination,
            values=self.values,
            duals=self.duals,
            bound=self.bound,
            solver=self.solver,
            message=message,
            metrics={
                "rounds_of_pdlp": self.rounds,
                "iterations": self.iterations,
                "tolerance": self.tolerance,
                "build_s": self.build_s,
                "pdlp_s": self.solve_s,
                "close_s": self.close_s,
            },
        )


METHOD = Method(
    name="certified-pdlp",
    title="Off-the-shelf PDLP on the time form, repaired and certified",
    summary="baseline for certified-pdhg: a general first-order LP code, tightened until the gap is closed",
    serves=takes,
    parameters=(Parameter("solver", str, default="highs-pdlp", help="PDLP code", choices=SOLVERS),),
    run=run,
)
