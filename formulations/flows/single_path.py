r"""Equal split over kappa paths: every commodity on kappa different paths, the largest load as small as possible.

Sets    a in A arcs; k in K commodities; p in P_k paths of k, |P_k| >= kappa
Data    kappa >= 1 paths of a commodity; c_a > 0 capacity, (m,); D_k > 0 amount that commodity k sends, (|K|,); D_p that
        of the commodity of p; A arc-path incidence, (m, |P|); B commodity-path incidence, (|K|, |P|)
Vars    x_p in {0,1} path taken, (|P|,); Lambda in 0 .. kappa sum_k D_k / min c largest load per capacity, in parts of
        1/kappa of a commodity, integer where all capacities are 1 and all amounts integers

min Lambda / kappa  s.t.
    congestion[a]   sum_p A_ap D_p x_p - c_a Lambda <= 0
    choose[k]       (B x)_k = kappa
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, gcd, lcm
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import outward
from opticoll.formulations.arrays import Array, arc_names
from opticoll.formulations.flows.path_flow import PathFlow, arc_load, named_paths, path_arrays
from opticoll.formulations.flows.path_sets import path_violations, subset, to_arrays
from opticoll.formulations.model import Bound, CvxpyModel, Named, NotApplicable, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.flows.path_sets import PathSet


#: Capacities that are tried as the width of paths.
WIDTHS = 32


def unit_capacities(data: PathFlow) -> bool:
    """Whether Lambda is integer: all capacities are 1, all amounts integers."""
    whole = (data.topology.capacity == 1.0).all() and (data.amount == np.round(data.amount)).all()
    return bool(whole)


def quantum(amount: NDArray[np.float64]) -> Fraction:
    """The largest number of which all amounts ``(|K|,)`` are integer multiples, exactly."""
    parts = [Fraction(one) for one in np.unique(amount).tolist()]
    return Fraction(gcd(*(p.numerator for p in parts)), lcm(*(p.denominator for p in parts)))


def round_up(time: float, capacity: NDArray[np.float64], unit: Fraction = Fraction(1)) -> float:
    """The least multiple of some ``unit``/c_a that is at least ``time``, rounded down: a lower bound for single paths.

    Loads are multiples of ``unit``, see :func:`quantum`.
    """
    rooms, exact = (Fraction(c) / unit for c in np.unique(capacity).tolist()), Fraction(time)
    return outward.fraction_down(min(ceil(exact * room) / room for room in rooms))


def largest_load(data: PathFlow) -> float:
    """An upper bound on Lambda: all paths over the arc of least capacity."""
    return float(data.kappa * data.amount.sum() / data.topology.capacity.min())


def derived(data: PathFlow) -> list[Fraction]:
    """The amounts; the bound of Lambda, kappa times their sum over the least capacity; and 1/kappa."""
    total = data.kappa * sum(map(outward.decimal, data.amount.tolist()), Fraction(0))
    least = outward.entered(float(data.topology.capacity.min()))
    return [*outward.decimals(data.amount), total / least, Fraction(1, data.kappa)]


def carried(data: PathFlow, paths: PathSet, x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Load per capacity of every arc where each path with ``x`` = 1 ``(|P|,)`` carries its share, shape ``(m,)``."""
    return arc_load(paths, x * data.amount[paths.pair]) / data.topology.capacity / data.kappa


def unsplit_bounds(data: PathFlow) -> list[Bound]:
    """A share is not split further: it crosses the narrowest arc of its path. Nothing for demands of 1."""
    if data.traffic is None:
        return []
    needed = outward.down(data.share / widths(data), 2)
    k = int(np.argmax(needed))
    names = [data.topology.labels[ends[k]] for ends in data.commodities]
    value = float(outward.down(needed[k]))
    return [Bound("widest-path", value, f"a share of {names[0]} to {names[1]} over the widest path")]


def widths(data: PathFlow) -> NDArray[np.float64]:
    """An upper bound on the width of every commodity's widest path, ``(|K|,)``; exact up to WIDTHS capacities."""
    topology = data.topology
    values = np.unique(topology.capacity)
    found = np.full(data.amount.size, values[-1])
    starts, ends = np.searchsorted(topology.terminals, data.commodities[0]), data.commodities[1]
    steps = (
        np.unique(np.linspace(1, values.size - 1, min(WIDTHS, values.size - 1)).astype(int)) if values.size > 1 else ()
    )
    for i in reversed(steps):  # paths over arcs of at least values[i], the widest first
        kept = topology.capacity >= values[i]
        wide = topology.with_arcs(topology.tail[kept], topology.head[kept], topology.capacity[kept])
        found[~np.isfinite(wide.hops[starts, ends])] = values[i - 1]
    return found


def build_pyomo(data: PathFlow) -> PyomoModel:
    """The model in Pyomo: ``x[s,t,i]`` for the i-th path of (s,t), ``Lambda``, ``congestion[a]``, ``choose[s,t]``."""
    import pyomo.environ as pyo

    c = dict(zip(arc_names(data.topology), data.topology.capacity.tolist(), strict=True))
    K, of, over = named_paths(data.paths)
    P = [p for k in K for p in of[k]]
    amount = dict(zip(K, data.amount.tolist(), strict=True))
    D = {p: amount[k] for k in K for p in of[k]}
    whole = all(number.is_integer() for number in amount.values()) and all(capacity == 1 for capacity in c.values())
    most = data.kappa * sum(amount.values()) / min(c.values())
    model = pyo.ConcreteModel(name="minimum congestion")
    model.x = pyo.Var(P, domain=pyo.Binary)
    model.Lambda = pyo.Var(domain=pyo.NonNegativeIntegers if whole else pyo.NonNegativeReals, bounds=(0, most))
    model.worst = pyo.Objective(expr=model.Lambda / data.kappa, sense=pyo.minimize)
    model.congestion = pyo.Constraint(
        list(over), rule=lambda m, a: pyo.quicksum(D[p] * m.x[p] for p in over[a]) - c[a] * m.Lambda <= 0
    )
    model.choose = pyo.Constraint(K, rule=lambda m, *k: pyo.quicksum(m.x[p] for p in of[k]) == data.kappa)
    return PyomoModel(model, {"x": (P,), "Lambda": ()}, {"congestion": (list(c),), "choose": (K,)})


def build_cvxpy(data: PathFlow) -> CvxpyModel:
    """The model in matrix form: ``A diag(D) x <= Lambda c``, ``B x = kappa`` (arcs that no path uses have no row)."""
    import cvxpy as cp
    import scipy.sparse as sp

    paths, m = data.paths, data.topology.arcs
    x = cp.Variable(paths.paths, name="x", boolean=True)
    whole = unit_capacities(data)
    Lambda = cp.Variable(name="Lambda", integer=whole, bounds=[0, largest_load(data)])
    used = np.unique(paths.arcs)
    amount = sp.diags_array(data.amount[paths.pair])
    congestion = (paths.incidence.tocsr()[used] @ amount) @ x - Lambda * data.topology.capacity[used] <= 0
    choose = paths.membership @ x == data.kappa
    return CvxpyModel(
        cp.Problem(cp.Minimize(Lambda / data.kappa), [congestion, choose]),
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
    unit = data.load_unit if data.kappa == 1 else f"{data.load_unit} / {data.kappa}"
    return path_arrays(data, "x", "Lambda", names, ("", unit))


def dual_arrays(data: PathFlow) -> dict[str, Array]:
    """The duals of ``congestion``, or those of ``capacity`` of the fluid problem."""
    return {name: Array((data.topology.arcs,), required=False) for name in ("congestion", "capacity")}


def residuals(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> dict[str, float]:
    """Worst violation of every block, computed with numpy alone.

    ``paths`` is 0 if every path is a simple path of allowed length from its source to its target, and no path occurs
    twice where kappa > 1, else infinite; ``binary`` and ``choose`` are absolute; ``congestion`` compares the recomputed
    load with the stated Lambda and is relative to Lambda.
    """
    x, stated = np.asarray(values["x"], dtype=float), float(np.asarray(values["Lambda"]))
    paths = data.paths_of(values)
    blocks = ("paths", "binary", "choose", "congestion")
    if paths is None or x.shape != (paths.paths,) or not np.isfinite(x).all() or not np.isfinite(stated):
        return dict.fromkeys(blocks, np.inf)
    if path_violations(paths, data.rule) > 0 or (data.kappa > 1 and repeats(paths)):
        return dict.fromkeys(blocks, np.inf)
    taken = np.bincount(paths.pair, x, paths.pairs)
    worst = float(carried(data, paths, x).max(initial=0.0)) * data.kappa
    whole = abs(stated - round(stated)) if unit_capacities(data) else 0.0
    return {
        "paths": 0.0,
        "binary": float(max(np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0), whole)),
        "choose": float(np.abs(taken - data.kappa).max(initial=0.0)),
        "congestion": max(0.0, worst - stated) / max(abs(stated), 1e-12),
    }


def repeats(paths: PathSet) -> bool:
    """Whether some commodity has a path twice."""
    table = to_arrays(paths)["path_arcs"]
    return bool(np.unique(np.column_stack([paths.pair, table]), axis=0).shape[0] < paths.paths)


def objective(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> float:
    """The largest load per capacity of the paths taken, recomputed; infinite if the paths are malformed."""
    paths, x = data.paths_of(values), np.asarray(values["x"], dtype=float)
    if paths is None or x.shape != (paths.paths,):
        return np.inf
    return float(carried(data, paths, x).max(initial=0.0))


def repair(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> dict[str, NDArray[np.float64]] | None:
    """Each commodity on its kappa paths of largest x, and the resulting Lambda; None if the paths are malformed."""
    x, paths = np.asarray(values["x"], dtype=float), data.paths_of(values)
    if paths is None or x.shape != (paths.paths,) or not np.isfinite(x).all():
        return None
    if path_violations(paths, data.rule) > 0 or (np.diff(paths.first) < data.kappa).any():
        return None
    routed = np.zeros(paths.paths)
    routed[largest(paths, x, data.kappa)] = 1.0
    worst = float(carried(data, paths, routed).max()) * data.kappa
    kept = {name: values[name] for name in ("path_arcs", "path_pair") if name in values}
    return {"x": routed, "Lambda": np.asarray(worst), **kept}


def largest(paths: PathSet, weight: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The ``count`` paths of largest ``weight`` ``(|P|,)`` of every commodity, by commodity, ``(count |K|,)``."""
    order = np.lexsort((-weight, paths.pair))
    return order[(paths.first[:-1, None] + np.arange(count)).ravel()]


def chosen_paths(data: PathFlow, values: Mapping[str, NDArray[np.float64]]) -> PathSet:
    """The paths taken, kappa per commodity, as a path set.

    Raises
    ------
    NotApplicable
        If the values do not take exactly kappa paths for every pair.
    """
    paths, x = data.paths_of(values), np.asarray(values["x"], dtype=float)
    if paths is not None and x.shape == (paths.paths,):
        routes = subset(paths, x > 0.5)
        if np.array_equal(routes.pair, np.repeat(np.arange(paths.pairs), data.kappa)):
            return routes
    many = "one path" if data.kappa == 1 else f"{data.kappa} paths"
    msg = f"{data.name}: the values do not take exactly {many} for every pair"
    raise NotApplicable(msg)
