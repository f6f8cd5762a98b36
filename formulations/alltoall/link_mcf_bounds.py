"""Bounds of :mod:`opticoll.formulations.alltoall.link_mcf`, which ``problem`` is, also of its sink-inflow reading."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import size
from opticoll.formulations.flows import flow_checks as checks
from opticoll.formulations.model import Bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.alltoall.link_mcf import LinkFlow
    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64
    from opticoll.types import Json


def estimate(problem: LinkFlow) -> dict[str, int] | None:
    """About the size of the model in one of its two readings."""
    return size(problem, without=("balance",) if problem.printed else ("conservation", "delivery"))


def certify(problem: LinkFlow, duals: Values) -> Bound | None:
    """A rigorous bound from any duals of ``capacity``; the sink-inflow reading may also use cycles through t."""
    if not problem.printed:
        return checks.certify(problem, duals)
    value = printed_length_bound(problem, np.asarray(duals.get("capacity", np.zeros(0)), dtype=float))
    if not np.isfinite(value):
        return None
    return Bound("any-lengths", value, "arc lengths from the duals, paths from s and cycles through t recomputed")


def bound_parts(problem: LinkFlow) -> dict[str, Callable[[], Bound | None]]:
    """Analytic bounds of the exact model, or the one that also holds for the sink-inflow reading."""
    return {"distance": partial(printed_hop_bound, problem)} if problem.printed else checks.analytic_bounds(problem)


def printed_hop_bound(problem: LinkFlow) -> Bound:
    """Bound of the sink-inflow reading from hops."""
    value = printed_length_bound(problem, np.ones(problem.topology.arcs))
    return Bound("distance", value, "paths from s or cycles through t, in hops", "alltoall")


def closed_forms(problem: LinkFlow) -> list[Bound]:
    """Optimum if the family declares one; empty for the sink-inflow reading, for which it does not hold."""
    return [] if problem.printed else checks.declared_optimum(problem)


def metrics(problem: LinkFlow, value: float | None) -> dict[str, Json]:
    """F, ranks, diameter and totals of a demand; T = 1/F, except for the sink-inflow reading."""
    known = checks.metrics(problem, value)
    return {name: known[name] for name in known if not (problem.printed and name == "T")}


def repair(problem: LinkFlow, values: Values) -> dict[str, F64] | None:
    """An exactly feasible flow in the same proportions; values of the sink-inflow reading are not changed."""
    return None if problem.printed else checks.repair(problem, values)


def printed_length_bound(data: LinkFlow, lengths: F64) -> float:
    """``sum c l / sum_k D_k min(dist_l(s_k,t_k), girth_l(t_k))``, rounded up: the bound of the sink-inflow reading.

    Lengths are read as by :func:`opticoll.formulations.flows.concurrent_flow.ConcurrentFlow.length_bound`.
    """
    lengths = rounding.usable_lengths(data.flow.capacity, lengths)
    if not lengths.size:
        return np.inf
    topology = data.flow.topology
    reach = topology.distances(lengths)
    cycle = np.full(topology.n, np.inf)
    np.minimum.at(cycle, topology.tail, lengths + reach[topology.head, topology.tail])
    targets, amounts = data.flow.commodities
    least = np.minimum(reach[data.flow.sources, targets], cycle[targets])
    cost = float(rounding.down(rounding.dot_down(amounts, least), topology.n + 1))
    return rounding.weighted_capacity(data.flow.capacity, lengths, cost)
