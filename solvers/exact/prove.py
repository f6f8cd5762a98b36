"""The exact optimum of a run: solved in rational numbers after the run, checked, and entered into its record.

Capacities, demands and other entered numbers are read as the decimals that were entered, of at most 12 significant
digits. What a model computes from them, such as a share of the total, is a fraction that the formulation states
(:attr:`opticoll.formulations.model.Formulation._derived`). A matrix with any other coefficient is refused.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np

from opticoll.errors import BadInput, NoSolution
from opticoll.formulations.model import Bound, build_model, is_own
from opticoll.formulations.registry import bounds_of
from opticoll.formulations.rounding import DIGITS, decimal, is_entered
from opticoll.formulations.standard_form import packed
from opticoll.solvers import verify
from opticoll.solvers.auto import fastest_form
from opticoll.solvers.compile.compilation import compile_built
from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm, fault
from opticoll.solvers.exact.in_worker import answer_apart
from opticoll.solvers.exact.lifted_flows import answer_of
from opticoll.solvers.process.budget import CHECK_S, LimitReached, limited
from opticoll.solvers.record import notes_on
from opticoll.solvers.relaxation import FARKAS, UNBOUNDED
from opticoll.solvers.task import Proof, Termination, joined_messages

if TYPE_CHECKING:
    import threading

    from opticoll.formulations import Formulation
    from opticoll.instances.topology import F64
    from opticoll.solvers.run import Run
    from opticoll.types import Json

#: Programs with more nonzeros are not solved exactly.
MOST_NONZEROS = 2_000_000
#: Time limit [s] of the exact step if the run has no time limit.
LIMIT_S = 300.0
#: Largest relative difference between a float and the fraction that it stands for.
NEAR = 1e-14
#: Source of a bound that the rows prove.
ROWS = "exact multipliers of the rows"
#: Description of a proof of infeasibility by a tree.
BRANCHED = "branch and bound in rational arithmetic"
TIMED_OUT = "exact: no time was left for the proof in rational arithmetic"
#: Named arrays in rational numbers: shapes, and nonzero values by flat index.
Arrays: TypeAlias = "dict[str, tuple[tuple[int, ...], dict[int, Fraction]]]"


def reader(derived: Iterable[Fraction], where: str) -> Callable[[float], Fraction]:
    """Return a function that reads a float as a derived fraction near it, or as the decimal that was entered.

    Raises
    ------
    BadInput
        When called with a float that is neither.
    """
    known = sorted({abs(value) for value in derived if value}, key=float)
    floats = [float(value) for value in known]

    def read(value: float) -> Fraction:
        size = abs(value)
        first = bisect_left(floats, size * (1 - NEAR))
        near = []
        while first < len(floats) and floats[first] <= size * (1 + NEAR):
            near.append(known[first])
            first += 1
        plain, entered = decimal(size), is_entered(size)
        if len(near) > 1 or (near and entered and plain != near[0] and plain.denominator > 1):
            msg = f"exact: {where} has fractions too near {value!r} to be distinguished; state its data in fewer digits"
            raise BadInput(msg)
        if not near and not entered:
            msg = (
                f"exact: {where} has the coefficient {value!r}, which is not a decimal of at most {DIGITS} digits; "
                "state its data in fewer digits, or in a unit in which they are decimals (1/3 and 2/3 as 1 and 2)"
            )
            raise BadInput(msg)
        result = near[0] if near else plain
        return -result if value < 0 else result

    return read


def exact_problem(formulation: Formulation, layer: str | None = None, needed: Arrays | None = None) -> ExactForm:
    """The program of a formulation on its data in rational numbers, built in ``layer`` or the fastest modelling layer.

    ``needed`` is the solution from which the data are taken, if any.

    Raises
    ------
    BadInput
        If a coefficient is neither an entered decimal nor a fraction that the formulation states.
    """
    size = formulation._estimate()
    form = layer or fastest_form(formulation, size)
    built = compile_built(formulation, build_model(formulation, form))
    if built.A.nnz > MOST_NONZEROS:
        msg = f"exact: {formulation.name} has {built.A.nnz:,} nonzeros, above {MOST_NONZEROS:,}; reduce the instance"
        raise BadInput(msg)
    derived = list(formulation._derived())
    taken = {value for _, values in (needed or {}).values() for value in values.values()}
    return ExactForm.of(built, reader([*derived, *taken], formulation.name))


def needed_arrays(run: Run) -> Arrays | None:
    """The solution that a run's data are taken from: exact for a linear program, rounded to integers otherwise.

    None if the data are not taken from a solution.

    Raises
    ------
    NoSolution
        If a linear program has no exact solution.
    """
    first = run.needed
    if first is None or first.plan is None:
        return None
    if first.exact is not None and first.exact[1].x is not None:
        form, x = first.exact[0], first.exact[1].x
        return {
            name: (tuple(block.shape), {k: x[j] for k, j in enumerate(block.index.ravel().tolist()) if j >= 0 and x[j]})
            for name, block in form.columns.items()
        }
    if not first.plan.integer:
        msg = f"exact: the data come from a solution of {first.record.formulation}, and no exact one was found"
        raise NoSolution(msg)
    result: Arrays = {}
    for name, array in (first.values or {}).items():
        whole = np.rint(array)
        if np.abs(whole - array).max(initial=0.0) <= verify.FEASIBLE:
            places = np.flatnonzero(whole)
            result[name] = (
                np.shape(array),
                dict(zip(places.tolist(), map(Fraction, whole.ravel()[places].tolist()), strict=True)),
            )
    return result


def solve_exactly(
    form: ExactForm, start: F64 | None = None, remaining: Callable[[], float | None] = lambda: None
) -> ExactAnswer:
    """The exact answer to a program, by :mod:`linear` or :mod:`integer`.

    Raises
    ------
    NoSolution
        If it is not proven.
    TimeoutError
        When no time is left.
    """
    if form.integer.any():
        from opticoll.solvers.exact.integer import solve_integer

        return solve_integer(form, start, remaining)
    from opticoll.solvers.exact.linear import solve_linear

    return solve_linear(form, remaining)


def solve_apart(
    form: ExactForm,
    left_s: float = LIMIT_S,
    start: F64 | None = None,
    memory_limit_gib: float | None = None,
    threads: int = 1,
    stop: threading.Event | None = None,
) -> ExactAnswer:
    """As :func:`solve_exactly`, in a worker process with limits of time [s] and memory.

    Raises
    ------
    NoSolution
        If it is not proven within the limits.
    """
    result: ExactAnswer = answer_apart(solve_exactly, (form, start), left_s, TIMED_OUT, memory_limit_gib, threads, stop)
    return result


def proven_exactly(run: Run, stop: threading.Event | None = None) -> Run:
    """The run with its exact optimum if that is proven; otherwise with a message that gives the reason.

    Parameters
    ----------
    run
        A finished run; its solution is the first incumbent of an integer program.
    stop
        Ends the exact step when set.

    Raises
    ------
    BadInput
        If a coefficient is neither an entered decimal nor a fraction that the formulation states.
    """
    task = run.task
    began = time.monotonic()
    used = sum(value or 0.0 for name, value in run.record.time.items() if not name.startswith("solver_"))
    limit = task.time_limit_s
    share = LIMIT_S if limit is None else max(limit - used, 0.0)
    end = began + share

    def solve(wanted: ExactForm, start: F64 | None) -> ExactAnswer:
        left = end - time.monotonic()
        if left <= 0:
            raise NoSolution(TIMED_OUT)
        return solve_apart(wanted, left, start, task.memory_limit_gib, task.threads, stop)

    form, answer, figures, message = _answered(run, solve)
    if message and limit is not None:
        message += f" (this step was given {share:.3g} of the {limit:g} seconds)"
    run = _noted(
        run,
        message,
        metrics=dict(run.record.metrics or {}) | figures,
        time=msgspec.structs.replace(run.record.time, exact_s=time.monotonic() - began),
    )
    if answer is None or form is None:
        return run
    least_s = max(CHECK_S, limit or 0.0)
    try:
        return limited(partial(_with_answer, run, form, answer), None if limit is None else end, least_s=least_s)
    except LimitReached:
        return _noted(run, f"exact: the checks of the formulation did not return within {least_s:g} s of work")


def _noted(run: Run, message: str, **fields: Any) -> Run:
    """The run with a message added to its record, and fields of the record changed."""
    joined = joined_messages(run.record.message, message)
    return replace(run, record=msgspec.structs.replace(run.record, message=joined, **fields))


def _after_failure(run: Run) -> Run:
    """The run without the words of an attempt that found no solution in floating point: they are about no answer."""
    if run.record.verified or run.plan is None:
        return run
    message = joined_messages(*notes_on(run.plan.instance))
    return replace(run, record=msgspec.structs.replace(run.record, message=message))


def _answered(
    run: Run, solve: Callable[[ExactForm, F64 | None], ExactAnswer]
) -> tuple[ExactForm | None, ExactAnswer | None, dict[str, Json], str]:
    """The program, its exact answer or a bound, figures of the solve, and the reason where no optimum is proven.

    ``solve`` takes a program and a solution to start from.
    """
    plan = run._planned
    form: ExactForm | None = None

    def started(wanted: ExactForm) -> ExactAnswer:
        start = packed(wanted.columns, len(wanted.cost), run.values or {}) if wanted is form else np.array([np.nan])
        return solve(wanted, None if np.isnan(start).all() else start)

    try:
        form = plan.stated or exact_problem(plan.problem, needed=needed_arrays(run))
        answer, figures = answer_of(plan.problem, form, started)
    except NoSolution as error:
        return form, None, {}, str(error)
    if (wrong := fault(form, answer)) is not None:
        return form, None, figures, f"exact: rejected by the check: {wrong}"
    return form, answer, figures, ""


def _best_bound(run: Run, form: ExactForm, answer: ExactAnswer) -> tuple[Fraction, str]:
    """The tightest of the bound of the rows and the analytic bounds that are fractions, and its source."""
    assert answer.bound is not None
    problem = run._planned.problem
    analytic = run.bounds
    if analytic is None:  # the usual solve needed none
        analytic = bounds_of(problem) if problem._needs is None and not is_own(problem) else []
    known = [(answer.bound, ROWS), *((one.fraction, one.name) for one in analytic if one.fraction is not None)]
    return max(known, key=lambda one: one[0]) if form.sense == "min" else min(known, key=lambda one: one[0])


def _with_bound(run: Run, bound: Fraction, value: Fraction | None, exact: tuple[ExactForm, ExactAnswer]) -> Run:
    """The run with an exactly proven bound, and a solution's value, unless its own value contradicts the bound."""
    record = run.record
    gap = verify.relative_gap(record.objective, float(bound), run._planned.problem.sense) if record.verified else None
    if gap is not None and gap < -verify.FEASIBLE:
        return _noted(run, f"exact: the bound {bound} is contradicted by {record.objective!r}", proof=Proof.NONE)
    result = "" if value is None else f" and a solution of value {value}"
    metrics = dict(record.metrics or {}) | {"bound_exact": str(bound)}
    run = _noted(run, f"exact: only the bound {bound}{result} is proven, not the optimum", metrics=metrics)
    return replace(run, exact=exact)


def _without_optimum(run: Run, form: ExactForm, answer: ExactAnswer) -> Run:
    """The run of a program that has no solution or no finite optimum."""
    infeasible, added = answer.status == "infeasible", UNBOUNDED
    if infeasible:
        inexact = "exact: no solution satisfies the rows exactly; the verified one does within a tolerance"
        added = inexact if run.record.verified else ""
    run = _noted(
        _after_failure(run),
        added,
        termination=Termination.INFEASIBLE if infeasible else Termination.UNBOUNDED,
        proof=Proof.NONE,
        objective=None,
        bound=None,
        bound_source=None,
        gap=None,
        verified=False,
        violations=None,
        infeasible_by=None if not infeasible else FARKAS if len(answer.nodes) == 1 else BRANCHED,
    )
    return replace(run, values=None, exact=(form, answer))


def _with_answer(run: Run, form: ExactForm, answer: ExactAnswer) -> Run:
    """The run with the exact answer in place of its own value, bound and proof."""
    source = ROWS
    if answer.status == "bounded":
        bound, source = _best_bound(run, form, answer)
        if bound != answer.objective:
            return _with_bound(run, bound, answer.objective, (form, answer))
    if answer.objective is None or answer.x is None or answer.status == "unbounded":
        return _without_optimum(run, form, answer)
    vector = np.array([float(value) for value in answer.x])
    values = run._planned.problem._unfold({name: block.gather(vector) for name, block in form.columns.items()})
    return _optimal(run, answer.objective, values, source, (form, answer))


def _optimal(
    run: Run,
    optimum: Fraction,
    values: Mapping[str, Any],
    source: str,
    exact: tuple[ExactForm, ExactAnswer],
) -> Run:
    """The run with an exact optimum and its solution in floating point, unless the formulation contradicts it.

    ``source`` names what proves the optimum.
    """
    model, before, objective = run._planned.problem, run.record.objective, float(optimum)
    violations, stated = verify.residuals(model, values), verify.objective(model, values)
    bounds = [Bound(source, objective, "", exact=True), *model._closed_forms(), *(run.bounds or ())]
    wrong = verify.violated(violations) or verify.contradiction(bounds, objective, model.sense)
    if wrong is None and abs(stated - objective) > verify.PAST * max(abs(stated), abs(objective)):
        wrong = f"the formulation evaluates the solution to {stated!r}"
    if wrong is not None:
        told = f"exact: the optimum {optimum} is contradicted: {wrong}; nothing is proven exactly"
        return _noted(run, told, proof=Proof.NONE)
    differs = before is not None and abs(before - objective) > verify.PAST * abs(objective)
    metrics = dict(run.record.metrics or {})
    metrics |= model.metrics(objective)
    metrics |= model.describe(values)
    if optimum and {"F", "T"} <= metrics.keys():
        flow = optimum if metrics["F"] == objective else 1 / optimum
        metrics |= {"F_exact": str(flow), "T_exact": str(1 / flow)}
    run = _noted(
        _after_failure(run),
        f"in floating point the value was {before!r}" if differs else "",
        termination=Termination.OPTIMAL,
        proof=Proof.EXACT,
        objective=objective,
        bound=objective,
        objective_exact=str(optimum),
        bound_source=source,
        gap=0.0,
        verified=True,
        violations=violations,
        metrics=metrics,
    )
    return replace(run, values=values, exact=exact)
