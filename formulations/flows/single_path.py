r"""Single-path routing: one path per commodity, with the largest load per capacity as small as possible.

Sets    a in A arcs; k in K commodities; p in P_k paths of k
Data    c_a > 0 capacity, (m,); A arc-path incidence, (m, |P|); B commodity-path incidence, (|K|, |P|)
Vars    x_p in {0,1} path taken, (|P|,); Lambda >= 0 largest load per capacity, integer where all capacities are 1

min Lambda  s.t.
    congestion[a]   (A x)_a - c_a Lambda <= 0
    choose[k]       (B x)_k = 1
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import outward
from opticoll.formulations.arrays import Array
from opticoll.formulations.flows.path_flow import PathFlow, arc_load, path_arrays
from opticoll.formulations.flows.path_sets import path_violations, subset
from opticoll.formulations.model import CvxpyModel, Named, NotApplicable, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_sets import PathSet


def unit_capacities(data: PathFlow) -> bool:
    """Whether Lambda is integer."""
    return bool((data.topology.capacity == 1.0).all())


def round_up(time: float, capacity: NDArray[np.float64]) -> float:
    """The least multiple of some 1/c_a that is at least ``time``, rounded down: a lower bound for single paths."""
    rooms, exact = (Fraction(c) for c in np.unique(capacity).tolist()), Fraction(time)
    return outward.fraction_down(min(ceil(exact * room) / room for room in rooms))


def largest_load(data: PathFlow) -> float:
    """An upper bound on Lambda: all commodities over the arc of least capacity."""
    return float(data.paths.pairs / data.topology.capacity.min())


def build_pyomo(data: PathFlow) -> PyomoModel:
    """The model in Pyomo: ``x[p]``, ``Lambda``, ``congestion[a]``, ``choose[k]``."""
    import pyomo.environ as pyo

    paths, m = data.paths, data.topology.arcs
    over = paths.over()
    model = pyo.ConcreteModel(name="minimum congestion")
    model.x = pyo.Var(range(paths.paths), domain=pyo.Binary)
    whole = unit_capacities(data)
    model.Lambda = pyo.Var(
        domain=pyo.NonNegativeIntegers if whole else pyo.NonNegativeReals, bounds=(0, largest_load(data))
    )
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
    Lambda = cp.Variable(name="Lambda", integer=whole, bounds=[0, largest_load(data)])
    used = np.unique(paths.arcs)
    congestion = paths.incidence.tocsr()[used] @ x - Lambda * data.topology.capacity[used] <= 0
    choose = paths.membership @ x == 1
    return CvxpyModel(
        cp.Problem(cp.Minimize(Lambda), [congestion, choose]),
        variables={"x": Named(x, (paths.paths,)), "Lambda": Named(Lambda, ())},
        constraints={"congestion": Named(congestion, (m,), used), "choose": Named(choose, (paths.pairs,))},
    )


def estimate(data: PathFlow) -> dict[str, int]:
    """Size of the model; lists the path set."""
    paths = data.paths
    used = int(np.unique(paths.arcs).size)
    return {
        "variables": paths.paths + 1,
        "constraints": paths.pairs + used,
        "nonzeros": paths.paths + used + int(paths.arcs.size),
        "integers": paths.paths + int(unit_capacities(data)),
    }


def arrays(data: PathFlow, names: Collection[str]) -> dict[str, Array]:
    """The choice x and Lambda, and the paths where the solution brings its own."""
    return path_arrays(data, "x", "Lambda", names)


def dual_arrays(data: PathFlow) -> dict[str, Array]:
    """The duals of ``congestion``, or those of ``capacity`` of the fluid problem."""
    return {name: Array((data.topology.arcs,), required=False) for name in ("congestion", "capacity")}


def residuals(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Worst violation of every block, computed with numpy alone.

    ``paths`` is 0 if every path is a simple path of allowed length from its source to its target, else infinite;
    ``binary`` and ``choose`` are absolute; ``congestion`` compares the recomputed load with the stated Lambda and is
    relative to Lambda.
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
    """The largest load per capacity of the paths taken, recomputed; infinite if the paths are malformed."""
    paths, x = data.paths_of(values), np.asarray(values["x"], dtype=float)
    if paths is None or x.shape != (paths.paths,):
        return np.inf
    return float((arc_load(paths, x) / data.topology.capacity).max(initial=0.0))


def repair(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]] | None:
    """Each commodity on its path with the largest x, and the resulting Lambda; None if the paths are malformed."""
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


def chosen_paths(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> PathSet:
    """The paths taken, one per commodity, as a path set.

    Raises
    ------
    NotApplicable
        If the values do not take exactly one path for every pair.
    """
    paths, x = data.paths_of(values), np.asarray(values["x"], dtype=float)
    if paths is not None and x.shape == (paths.paths,):
        routes = subset(paths, x > 0.5)
        if np.array_equal(routes.pair, np.arange(paths.pairs)):
            return routes
    msg = f"{data.name}: the values do not take exactly one path for every pair"
    raise NotApplicable(msg)
