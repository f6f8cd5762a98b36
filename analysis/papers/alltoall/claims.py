"""Claims of the all-to-all paper about its linear programs: equivalence, time steps, and running times.

Times T are in shards over link bandwidth, T = 1 / F. Optima of small graphs are certified in this process
(:func:`~opticoll.analysis.ledger.comparisons.certified_flow`); those of larger graphs come from stored runs, proven
to the stated tolerance.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.analysis.ledger.claim import Measurement, Measures
from opticoll.analysis.ledger.comparisons import (
    certified_flow,
    certified_optimum,
    linear_optimum,
    scipy_program,
    seconds_of,
)
from opticoll.analysis.ledger.readings import Readings, Sweep
from opticoll.analysis.ledger.tolerances import ABOUT, SAME
from opticoll.formulations.alltoall import link_mcf, path_mcf
from opticoll.formulations.alltoall.master import Master
from opticoll.formulations.flows import flow_bounds as bounds
from opticoll.formulations.flows import path_bounds
from opticoll.formulations.model import build_model
from opticoll.instances import parse

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.analysis.ledger.claim import Laboratory
    from opticoll.instances import Topology
    from opticoll.solvers.task import Record
    from opticoll.types import Json


MASTER, LINK, STEPPED = "alltoall.master", "alltoall.link-mcf", "alltoall.timestep-mcf"
#: Gap to which optima on more than 200 vertices are proven, and the method for samples of random graphs.
LARGE, FIRST_ORDER = 1e-4, "certified-pdhg"
#: The reading of (4) under which flow may circle through the sink.
SINK_INFLOW = "flow into the sink (the sink-inflow reading)"
MEASURES = Measures("alltoall")


def optimum(laboratory: Laboratory, spec: str, method: str = "auto") -> Record:
    """A proof of the optimal all-to-all, to a gap of :data:`LARGE` above 200 vertices and by first-order methods."""
    tol = LARGE if parse(spec).n > 200 or method != "auto" else 1e-6
    return laboratory.proven(MASTER, spec, method=method, tol=tol, time_limit_s=600.0)


def optimal_time(laboratory: Laboratory, spec: str, method: str = "auto") -> float:
    """T of :func:`optimum`."""
    return 1 / float(optimum(laboratory, spec, method)["objective"])


def corollary_3(n: int, degree: int) -> float:
    """Corollary 3: T >= sum_k k n_k / d."""
    return bounds.moore_depths(n - 1, degree).sum() / degree


def rounded(values: dict[str, float]) -> dict[str, float]:
    """Values rounded to three decimals."""
    return {name: round(value, 3) for name, value in values.items()}


def inequality_flow(topology: Topology, *, net: bool) -> float:
    """F of (1)-(5): flow conservation as an inequality between source and sink, and a demand at the sink.

    With ``net``, the flow out of the sink is subtracted from the flow into it.
    """
    from opticoll.solvers.compile.compilation import compile_model

    form = compile_model(link_mcf.LinkFlow.prepare(topology, {"printed": not net}).cvxpy())
    if net:  # the matrix form with inequalities, and no flow fixed at 0
        lower = form.row_lower.copy()
        lower[form.rows["balance"].index] = -np.inf  # the rows are F D - M f = 0
        form = replace(form, row_lower=lower, col_upper=np.full_like(form.col_upper, np.inf))
    return linear_optimum(form)[0]


@MEASURES.of("link-mcf-printed")
def _sufficient(laboratory: Laboratory) -> Measurement:
    specs = laboratory.scope["networks"]
    sweeps = {SINK_INFLOW: Sweep(), "flow into the sink less flow out of it": Sweep()}
    for spec in specs:
        topology = parse(spec)
        true = 1 / certified_flow(topology)
        for (name, sweep), net in zip(sweeps.items(), (False, True), strict=True):
            stated = 1 / inequality_flow(topology, net=net)
            sweep.add(
                stated / true,
                holds=stated >= true * (1 - SAME),
                size=topology.n,
                case=f"{spec}: T = {stated:.6g} by (1)-(5) with the {name}, {true:.6g} by (25)-(28)",
            )
    choices = Readings("what (4) counts")
    for name, sweep in sweeps.items():
        choices.add(
            name,
            not sweep.wrong,
            f"{len(specs) - len(sweep.wrong)} of {len(specs)} networks have the optimum of the matrix form",
        )
    inflow = sweeps[SINK_INFLOW]
    return choices.measurement(tuple(specs), **inflow.row)


def _link_optimum(topology: Topology) -> float:
    """F of (25)-(28); the solver's dual arc lengths prove its optimality."""
    from opticoll.solvers.compile.compilation import compile_model

    data = link_mcf.LinkFlow.prepare(topology, {"printed": False})
    form = compile_model(data.cvxpy())
    return certified_optimum(form, f"link MCF on {topology.spec}", data.flow.length_bound)


def _same_optimum(other: Callable[[Topology], float]) -> Callable[[Laboratory], Measurement]:
    """Compare the optimum of another program with that of the master LP."""

    def measure(laboratory: Laboratory) -> Measurement:
        specs = laboratory.scope["networks"]
        sweep = Sweep()
        for spec in specs:
            topology = parse(spec)
            true, stated = certified_flow(topology), other(topology)
            sweep.add(
                stated / true, holds=abs(stated / true - 1) <= SAME, size=topology.n, case=f"{spec}: {stated} != {true}"
            )
        return sweep.measurement(
            f"{sweep.met} of {len(specs)} equal",
            tuple(specs),
            "Ratio of the two optima; each is certified by arc lengths or equals a certified one.",
        )

    return measure


MEASURES.of("matrix-form")(_same_optimum(_link_optimum))


def path_optimum(topology: Topology, **rule: Any) -> float:
    """F over a path set, solved with SciPy and certified by the dual arc lengths."""
    from opticoll.solvers.compile.compilation import compile_model

    data = path_mcf.PathConcurrentFlow.prepare(topology, rule)
    form = compile_model(build_model(data, "matrix"))
    what = f"path MCF on {topology.spec}"
    return certified_optimum(form, what, partial(path_bounds.length_bound, data.routing), data.residuals)


MEASURES.of("all-paths")(_same_optimum(partial(path_optimum, paths="all")))


@MEASURES.of("children")
def _children(laboratory: Laboratory) -> Measurement:
    specs = laboratory.scope["networks"]
    sweep = Sweep()
    for spec in specs:
        topology = parse(spec)
        ratio = laboratory.proven(LINK, spec, method="master-child")["objective"] / certified_flow(topology)
        sweep.add(ratio, holds=abs(ratio - 1) <= SAME, size=topology.n, case=f"{spec}: F / optimum = {ratio:.8g}")
    return sweep.measurement(f"{sweep.met} of {len(specs)} equal", tuple(specs))


# time steps ---------------------------------------------------------------------------------------------------------


@MEASURES.of("steps-optimal")
def _steps(laboratory: Laboratory) -> Measurement:
    specs, most = laboratory.scope["networks"], int(laboratory.scope["steps beyond the diameter"])
    measured: dict[str, Json] = {}
    sweep, longer = Sweep(), []
    for spec in specs:
        topology = parse(spec)
        fluid, diameter = 1 / certified_flow(topology), int(topology.diameter)
        for steps in range(diameter, diameter + most + 1):
            stepped = laboratory.proven(STEPPED, spec, steps=steps, aggregate="source")["objective"]
            if stepped <= fluid * (1 + SAME):
                break
        if steps > diameter:
            longer.append(spec)
        measured[spec] = {"T": round(fluid, 4), "sum U_t": round(stepped, 4), "steps": steps, "diameter": diameter}
        sweep.add(
            stepped / fluid,
            holds=stepped <= fluid * (1 + SAME),
            size=topology.n,
            case=f"{spec}: {stepped:.6g} in {steps} steps, T = {fluid:.6g}",
        )
    wrong = {case.partition(":")[0] for _, case in sweep.wrong}
    choices = Readings("number of steps L")
    choices.add(
        "free",
        not sweep.wrong,
        f"{sweep.met} of {len(specs)} networks reach T with up to {most} more steps than the diameter",
    )
    choices.add(
        "the diameter", not longer and not wrong, f"{len(specs) - len(longer)} of {len(specs)} networks reach T"
    )
    return choices.measurement(
        tuple(specs),
        "The paper does not fix the number of steps. On its testbed's networks, as many as the diameter suffice; "
        f"more are needed on {', '.join(longer) or 'no other network'}. Ratio: sum U_t over T.",
        measured,
        **sweep.row,
    )


@MEASURES.of("steps-by-source")
def _steps_by_source(laboratory: Laboratory) -> Measurement:
    specs, more = laboratory.scope["networks"], int(laboratory.scope["steps beyond the diameter"])
    sweep = Sweep()
    for spec in specs:
        topology = parse(spec)
        steps = int(topology.diameter) + more
        pair, source = (
            laboratory.proven(STEPPED, spec, steps=steps, aggregate=groups)["objective"]
            for groups in ("commodity", "source")
        )
        sweep.add(
            source / pair,
            holds=abs(source / pair - 1) <= SAME,
            size=topology.n,
            case=f"{spec}: {source:.6g} by source, {pair:.6g} by pair",
        )
    return sweep.measurement(f"{sweep.met} of {len(specs)} equal", tuple(specs))


# running times ------------------------------------------------------------------------------------------------------


def _linear_programs(spec: str) -> dict[str, Any]:
    """The link MCF and the master LP of a network in standard form."""
    from opticoll.solvers.compile.compilation import compile_model

    topology = parse(spec)
    return {
        "link": compile_model(link_mcf.LinkFlow.prepare(topology, {"printed": False}).cvxpy()),
        "master": compile_model(Master.prepare(topology).matrix()),
    }


def _solve_seconds(form: Any, method: str) -> float:
    """Processor time of solving a linear program with SciPy in this process [s]."""
    from scipy.optimize import linprog

    start = process_time()
    result = linprog(**scipy_program(form)[0], method=method)
    seconds = process_time() - start
    if result.status != 0:
        msg = f"{method}: {result.message}"
        raise ArithmeticError(msg)
    return seconds


@MEASURES.of("decomposition-speed")
def _decomposition(laboratory: Laboratory) -> Measurement:
    number, sizes = laboratory.number("100"), laboratory.scope["N"]
    specs = [laboratory.scope["networks"].format(n=n) for n in sizes]
    ratios: dict[tuple[str, int], float] = {}
    for spec, n in zip(specs, sizes, strict=True):
        forms = _linear_programs(spec)
        for name, method in (("simplex", "highs-ds"), ("interior point", "highs-ipm")):
            link, master = (_solve_seconds(forms[part], method) for part in ("link", "master"))
            ratios[name, n] = float(f"{link / master:.2g}")
    choices = Readings("algorithm; size")
    for (name, n), ratio in ratios.items():
        choices.add(f"{name}; N={n}", number.holds(ratio), ratio)
    for name in ("simplex", "interior point"):
        last = ratios[name, sizes[-1]]
        choices.add(name, number.holds(last), last, name="algorithm, ratio at the largest size")
    return choices.measurement(tuple(specs), measured={f"{name}, N={n}": ratio for (name, n), ratio in ratios.items()})


@MEASURES.of("forty-minutes")
def _schedule_times(laboratory: Laboratory) -> Measurement:
    hundreds, thousand = laboratory.scope.values("hundreds of nodes", "a thousand nodes")
    seconds = {spec: seconds_of(optimum(laboratory, spec)) for spec in (*hundreds, thousand)}
    return Measurement(
        {f"master, {spec} [s]": float(f"{value:.2g}") for spec, value in seconds.items()},
        instances=(*hundreds, thousand),
        reason=f"Here the master LP of {parse(thousand).n} nodes takes {seconds[thousand]:.0f} s, that of "
        f"{parse(hundreds[-1]).n} nodes {seconds[hundreds[-1]]:.0f} s. Every optimum is proven to {LARGE:g}, by other "
        "algorithms and on another machine; the paper's own times need its machine and MOSEK.",
    )


@MEASURES.of("fptas")
def _against_approximation(laboratory: Laboratory) -> Measurement:
    spec, tried = laboratory.scope.values("network", "epsilon")
    from opticoll.analysis.papers.alltoall.approximation import approximation  # compiles, or loads compiled code

    topology = parse(spec)
    certified_flow(topology)
    approximation(topology, 0.5)  # so that neither time includes loading code
    start = process_time()
    best = certified_flow(topology)
    exact = process_time() - start
    measured: dict[str, Json] = {"master LP [s]": float(f"{exact:.2g}")}
    choices, longest = Readings("epsilon"), 0.0
    for epsilon in sorted(tried, reverse=True):
        start = process_time()
        value, steps = approximation(topology, epsilon)
        seconds = process_time() - start
        if not (1 - epsilon) ** 3 <= value / best <= 1 + SAME:
            msg = f"the approximation of {spec} is {value / best:.4f} of the optimum, with epsilon {epsilon}"
            raise ArithmeticError(msg)
        figures = {
            "time over that of the LP": float(f"{seconds / exact:.2g}"),
            "trees": steps,
            "of the optimum": round(value / best, 4),
        }
        measured[f"epsilon = {epsilon}"] = dict(figures)
        choices.add(epsilon, exact <= (1 + ABOUT) * seconds, dict(figures), name="epsilon tried")
        longest = seconds
    choices.add("the smallest", exact <= (1 + ABOUT) * longest, float(f"{longest / exact:.2g}"))
    return choices.measurement((spec,), measured=measured)
