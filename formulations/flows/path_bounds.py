"""Bounds of models over path sets: arc lengths over the paths of a set, and whole paths with equal shares."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations import rounding
from opticoll.formulations.flows.flow_bounds import work_by_hops
from opticoll.formulations.flows.path_flow import (
    PathFlow,
    PathProblem,
    bounded_distances,
    quantum,
    round_up,
    unsplit_bounds,
    whole_paths,
)
from opticoll.formulations.flows.path_sets import PathRule
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.instances.topology import F64


def shortest_lengths(data: PathFlow, lengths: F64) -> F64:
    """Length of every commodity's shortest allowed path under positive arc ``lengths`` ``(m,)``, shape ``(|K|,)``.

    If a commodity is split equally over ``data.kappa`` listed paths, the mean over its ``kappa`` shortest paths.
    """
    if data.rule.kind != "all":
        return data.paths.shortest(lengths, data.kappa)
    sources = data.topology.terminals
    if data.rule.lmax is None:
        reach, sources = data.flow.distances(lengths).T, data.flow.sources
    else:
        reach = bounded_distances(data.topology, lengths, data.rule.lmax)[-1]
    starts, ends = data.commodities
    return reach[np.searchsorted(sources, starts), ends]


def with_enough_paths(data: PathFlow) -> PathFlow:
    """The data, if every commodity has kappa different paths.

    Raises
    ------
    NotApplicable
        With a commodity that has fewer.
    """
    if data.kappa == 1:
        return data
    few = fewest_arcs(data) if data.rule.kind == "all" else data
    count = np.diff(few.paths.first)
    k = int(np.argmin(count))
    if count[k] < data.kappa:
        s, t = (data.topology.labels[ends[k]] for ends in data.commodities)
        msg = (
            f"{data.name}: {s} to {t} has {count[k]} of the kappa={data.kappa} different paths ({data.rule}); give a "
            "smaller kappa or more paths"
        )
        raise NotApplicable(msg)
    return data


def length_bound(data: PathFlow, lengths: F64) -> float:
    """``sum c l / sum_k D_k min_{p in P_k} l(p)``, rounded up: a bound on F over the path set.

    Any lengths ``(m,)`` prove a bound. They are read as by
    :func:`opticoll.formulations.flows.concurrent_flow.ConcurrentFlow.length_bound`.
    """
    lengths = rounding.usable_lengths(data.topology.capacity, lengths)
    if not lengths.size:
        return np.inf
    # A path has at most n arcs: so many additions, plus those of the sum and of the mean.
    roundings = data.topology.n + 1 + data.kappa
    cost = float(rounding.down(rounding.dot_down(data.amount, shortest_lengths(data, lengths)), roundings))
    return rounding.weighted_capacity(data.topology.capacity, lengths, cost)


def length_certificate(problem: PathProblem, duals: Mapping[str, F64]) -> Bound | None:
    """Bound for this path set proven by the duals of ``capacity``, read as arc lengths."""
    if "capacity" not in duals:
        return None
    value = length_bound(problem.routing, duals["capacity"])
    if not np.isfinite(value):
        return None
    return Bound("any-lengths", value, f"arc lengths from the duals, shortest of {problem.routing.rule} recomputed")


def set_bounds(problem: PathProblem) -> list[Bound]:
    """Bounds on the flow over all paths, and the bound from the hop lengths of the set's own paths."""
    data = problem.routing
    if data.rule.unrestricted:
        return list(data.unrestricted_bounds)
    ones = np.ones(data.topology.arcs)
    value, reason = length_bound(data, ones), f"Theorem 1 with the shortest of {data.rule}"
    hops = np.rint(shortest_lengths(data, ones) * data.kappa)  # a mean of kappa paths
    work = work_by_hops(data.amount, hops)
    needed = None if work is None else work / data.kappa
    fraction = rounding.quotient(rounding.exact_sum(data.topology.capacity), needed)
    result = [replace(bound, exact=False) for bound in data.unrestricted_bounds]
    return [*result, Bound("path-lengths", value, reason, "alltoall", fraction=fraction)]


# Whole paths with equal shares ----------------------------------------------------------------------------------------


def fewest_arcs(data: PathFlow) -> PathFlow:
    """Return the same problem over the kappa simple paths of every pair with the fewest arcs."""
    return replace(data, rule=PathRule("k", data.kappa, data.rule.lmax))


def rounded(data: PathFlow, bound: Bound) -> Bound:
    """Bound on Lambda / kappa that follows from a bound on the fluid flow F."""
    fluid = max(rounding.quotient_down(1.0, bound.value), 0.0) if np.isfinite(bound.value) else 0.0
    unit = quantum(data.amount) / data.kappa
    value = round_up(fluid, data.topology.capacity, unit)
    reason = f"T >= {fluid:.8g}, rounded up to whole paths; {bound.reason}"
    exact = rounding.quotient(Fraction(1), bound.fraction)
    if exact is not None:
        exact = whole_paths(exact, map(rounding.decimal, np.unique(data.topology.capacity).tolist()), unit)
    return Bound(bound.name, value, reason, bound.paper, fraction=exact)


def share_bounds(problem: PathProblem) -> list[Bound]:
    """Fluid bounds of the path set, rounded up to whole paths; for kappa > 1 also that from different paths."""
    data = problem.routing
    result = [rounded(data, bound) for bound in set_bounds(problem)] + unsplit_bounds(data)
    if data.kappa > 1 and data.rule.kind == "all":
        value = length_bound(fewest_arcs(data), np.ones(data.topology.arcs))
        reason = f"arcs of the {data.kappa} shortest simple paths"
        result.append(rounded(data, Bound("different-paths", value, reason)))
    return result


def share_certificate(problem: PathProblem, duals: Mapping[str, F64]) -> Bound | None:
    """Bound proven by arc lengths for this path set: the fluid bound, rounded up to whole paths."""
    name = "congestion" if "congestion" in duals else "capacity"
    if name not in duals:
        return None
    fluid = length_certificate(problem, {"capacity": np.abs(np.asarray(duals[name], dtype=float))})
    return None if fluid is None else rounded(problem.routing, fluid)


def share_bound_over_all(data: PathFlow) -> float:
    """The best bound that holds for every path set."""
    fluid = (rounded(data, one) for one in data.unrestricted_bounds)
    return max(bound.value for bound in [*fluid, *unsplit_bounds(data)])
