r"""Single-path routing of least congestion: every pair on exactly one path, the worst arc as light as possible.

Source  all-to-all paper, Appendix D, (29)-(33)
Sets    a in A arcs; k = (s,t) in K ordered pairs of distinct ranks; p in P_k paths of k
Data    c_a > 0 capacity [link bandwidths], (m,); A arc-path incidence, (m, |P|); B commodity-path incidence,
        (|K|, |P|)
Vars    x_p in {0,1} path taken, (|P|,); Lambda >= 0 worst load per capacity, integer where all capacities are 1

min Lambda  s.t.
    congestion[a]   (A x)_a - c_a Lambda <= 0       (30)
    choose[k]       (B x)_k = 1                     (31)

Lambda is the time of an all-to-all whose shards are not split. With T the optimum of the fluid problem over the same
paths, Lambda >= T, and Lambda is a multiple of some 1/c_a: Lambda >= min_a ceil(T c_a)/c_a, ceil(T) on unit links.

An optimum is one *of its path set* (``paths``, ``k``, ``lmax``; the paper samples arc-disjoint sets). It is an optimum
over all paths if it equals the bound from the fluid optimum over all paths: ``metrics.unrestricted_proven``.

Routes over sets too large to list (methods over ``paths=all``) bring their own paths, as in
:mod:`opticoll.formulations.alltoall.path_mcf`.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations import outward
from opticoll.formulations.alltoall import PAPER, path_mcf
from opticoll.formulations.alltoall.path_mcf import PathFlow, arc_load
from opticoll.formulations.arrays import Array
from opticoll.formulations.flows.path_sets import path_violations, rule_parameters
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, Named, NotApplicable, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_sets import PathSet

NAME = "alltoall.min-congestion"


def prepare(instance: object, parameters: dict[str, Any] | None = None) -> PathFlow:
    """The data of the model.

    Raises
    ------
    NotApplicable
        If the instance is no connected topology of at least two ranks, or the rule leaves some pair without a path.
    """
    return path_mcf.prepare_paths(instance, parameters or {}, NAME)


def unit_capacities(data: PathFlow) -> bool:
    """Whether Lambda is integer."""
    return bool((data.topology.capacity == 1.0).all())


def round_up(time: float, capacity: NDArray[np.float64]) -> float:
    """The least multiple of some 1/c_a that is not below ``time``, rounded down: what whole paths attain at best."""
    rooms, exact = (Fraction(c) for c in np.unique(capacity).tolist()), Fraction(time)
    return outward.fraction_down(min(ceil(exact * room) / room for room in rooms))


def most(data: PathFlow) -> float:
    """No load per capacity is above this: every commodity over the smallest arc (a bound that solvers can use)."""
    return float(data.paths.pairs / data.topology.capacity.min())


def build_pyomo(data: PathFlow) -> PyomoModel:
    """The model in Pyomo: ``x[p]``, ``Lambda``, ``congestion[a]``, ``choose[k]``."""
    import pyomo.environ as pyo

    paths, m = data.paths, data.topology.arcs
    over = paths.over()
    model = pyo.ConcreteModel(name="minimum congestion")
    model.x = pyo.Var(range(paths.paths), domain=pyo.Binary)
    whole = unit_capacities(data)
    model.Lambda = pyo.Var(domain=pyo.NonNegativeIntegers if whole else pyo.NonNegativeReals, bounds=(0, most(data)))
    model.worst = pyo.Objective(expr=model.Lambda, sense=pyo.minimize)
    model.congestion = pyo.Constraint(
        [a for a in range(m) if over[a]],
        rule=lambda model, a: (
            pyo.quicksum(model.x[p] for p in over[a]) - float(data.topology.capacity[a]) * model.Lambda <= 0
        ),
    )
    model.choose = pyo.Constraint(
        range(paths.pairs),
        rule=lambda model, k: pyo.quicksum(model.x[p] for p in paths.of_pair(k)) == 1,
    )
    return PyomoModel(
        model,
        variables={"x": (paths.paths,), "Lambda": ()},
        constraints={"congestion": (m,), "choose": (paths.pairs,)},
    )


def build_cvxpy(data: PathFlow) -> CvxpyModel:
    """The model in matrix form: ``A x <= Lambda c``, ``B x = 1`` (arcs that no path uses have no row)."""
    import cvxpy as cp

    paths, m = data.paths, data.topology.arcs
    x = cp.Variable(paths.paths, name="x", boolean=True)
    whole = unit_capacities(data)
    Lambda = cp.Variable(name="Lambda", integer=whole, bounds=[0, most(data)])
    used = np.unique(paths.arcs)
    congestion = paths.incidence.tocsr()[used] @ x - Lambda * data.topology.capacity[used] <= 0
    choose = paths.membership @ x == 1
    return CvxpyModel(
        cp.Problem(cp.Minimize(Lambda), [congestion, choose]),
        variables={"x": Named(x, (paths.paths,)), "Lambda": Named(Lambda, ())},
        constraints={"congestion": Named(congestion, (m,), used), "choose": Named(choose, (paths.pairs,))},
    )


def estimate(data: PathFlow) -> dict[str, int]:
    """Size of the model: its path set is listed for that, as the model needs it anyway."""
    paths = data.paths
    used = int(np.unique(paths.arcs).size)
    return {
        "variables": paths.paths + 1,
        "constraints": paths.pairs + used,
        "nonzeros": paths.paths + used + int(paths.arcs.size),
        "integers": paths.paths + int(unit_capacities(data)),
    }


def arrays(data: PathFlow, names: Collection[str]) -> dict[str, Array]:
    """X and Lambda, and the paths where the solution brings its own."""
    return path_mcf.on_paths(data, "x", "Lambda", names)


def dual_arrays(data: PathFlow) -> dict[str, Array]:
    """The duals of ``congestion``, or those of ``capacity`` of the fluid problem."""
    return {name: Array((data.topology.arcs,), required=False) for name in ("congestion", "capacity")}


def residuals(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Worst violation of every block, from numpy alone.

    ``paths`` is 0 if every path is a simple chain from its source to its target of allowed length, else infinite;
    ``binary`` and ``choose`` are absolute, ``congestion`` (recomputed, against the stated Lambda) relative
    to Lambda.
    """
    x, stated = np.asarray(values["x"], dtype=float), float(np.asarray(values["Lambda"]))
    paths = data.paths_of(values)
    blocks = ("paths", "binary", "choose", "congestion")
    if paths is None or x.shape != (paths.paths,) or not np.isfinite(x).all() or not np.isfinite(stated):
        return dict.fromkeys(blocks, np.inf)
    if path_violations(paths, data.rule) > 0:
        return dict.fromkeys(blocks, np.inf)
    taken = np.bincount(paths.pair, x, paths.pairs)
    worst = float((arc_load(paths, x) / data.topology.capacity).max(initial=0.0))
    whole = abs(stated - round(stated)) if unit_capacities(data) else 0.0
    return {
        "paths": 0.0,
        "binary": float(max(np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0), whole)),
        "choose": float(np.abs(taken - 1.0).max(initial=0.0)),
        "congestion": max(0.0, worst - stated) / max(abs(stated), 1e-12),
    }


def objective(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> float:
    """The worst load per capacity of the paths taken, recomputed; infinite where there are none to read."""
    paths, x = data.paths_of(values), np.asarray(values["x"], dtype=float)
    if paths is None or x.shape != (paths.paths,):
        return np.inf
    return float((arc_load(paths, x) / data.topology.capacity).max(initial=0.0))


def repair(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]] | None:
    """Every commodity on the path with the largest x, Lambda the load of that; None where no routes can be read."""
    x, paths = np.asarray(values["x"], dtype=float), data.paths_of(values)
    if paths is None or x.shape != (paths.paths,) or not np.isfinite(x).all():
        return None
    if path_violations(paths, data.rule) > 0 or (np.bincount(paths.pair, minlength=paths.pairs) == 0).any():
        return None
    order = np.lexsort((-x, paths.pair))
    chosen = order[paths.first[:-1]]
    routed = np.zeros(paths.paths)
    routed[chosen] = 1.0
    worst = float((arc_load(paths, routed) / data.topology.capacity).max())
    kept = {name: values[name] for name in ("path_arcs", "path_pair") if name in values}
    return {"x": routed, "Lambda": np.asarray(worst), **kept}


def rounded(data: PathFlow, bound: Bound) -> Bound:
    """What a bound on the fluid flow F says of whole paths."""
    fluid = max(outward.quotient_down(1.0, bound.value), 0.0) if np.isfinite(bound.value) else 0.0
    value = round_up(fluid, data.topology.capacity)
    return Bound(bound.name, value, f"T >= {fluid:.8g}, rounded up to whole paths; {bound.reason}", bound.paper)


def bounds(data: PathFlow) -> list[Bound]:
    """The fluid bounds of the path set, rounded up to whole paths."""
    return [rounded(data, bound) for bound in path_mcf.bounds(data)]


def certify(data: PathFlow, duals: Mapping[str, NDArray[np.float64]]) -> Bound | None:
    """The bound that arc lengths prove for this path set: the fluid one, rounded up to whole paths."""
    name = "congestion" if "congestion" in duals else "capacity"
    if name not in duals:
        return None
    found = path_mcf.certify(data, {"capacity": np.abs(np.asarray(duals[name], dtype=float))})
    return None if found is None else rounded(data, found)


def metrics(data: PathFlow, value: float | None) -> dict[str, float | int | str | bool | None]:
    """The load, the path set, and whether the load meets an analytic bound that holds for every path set."""
    over_all = max(rounded(data, bound).value for bound in data.unrestricted_bounds)
    proven = None if value is None else bool(value <= over_all * (1 + 1e-9))
    return {
        "max_load": value,
        "T": value,
        "ranks": data.topology.ranks,
        "path_set": str(data.rule),
        "paths": None if data.rule.kind == "all" and "paths" not in vars(data) else data.paths.paths,
        "unrestricted_bound": over_all,
        "unrestricted_proven": proven,
    }


def decode(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> dict[tuple[int, int], list[int]]:
    """The route of every pair of ranks (s, t), as arc numbers.

    Raises
    ------
    NotApplicable
        If the values do not take exactly one path for every pair.
    """
    routes = chosen_paths(data, values)
    ends = zip(routes.sources[routes.pair].tolist(), routes.targets[routes.pair].tolist(), strict=True)
    return {pair: routes.path(p) for p, pair in enumerate(ends)}


def chosen_paths(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> PathSet:
    """The paths taken, one a commodity, as a set.

    Raises
    ------
    NotApplicable
        If the values do not take exactly one path for every pair.
    """
    from opticoll.formulations.flows.path_sets import subset

    paths, x = data.paths_of(values), np.asarray(values["x"], dtype=float)
    if paths is not None and x.shape == (paths.paths,):
        routes = subset(paths, x > 0.5)
        if np.array_equal(routes.pair, np.arange(paths.pairs)):
            return routes
    msg = f"{data.name}: the values do not take exactly one path for every pair"
    raise NotApplicable(msg)


FORMULATION = Formulation(
    name=NAME,
    paper=PAPER,
    where="(29)-(33)",
    title="All-to-all on one path a pair: minimum congestion",
    sense="min",
    problem="MILP",
    parameters=rule_parameters("disjoint"),
    prepare=prepare,
    build={"cvxpy": build_cvxpy, "pyomo": build_pyomo},
    residuals=residuals,
    objective=objective,
    bounds=bounds,
    arrays=arrays,
    certify=certify,
    dual_arrays=dual_arrays,
    repair=repair,
    metrics=metrics,
    estimate=estimate,
    size="|P| + 1 variables",
)
