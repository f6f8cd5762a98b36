"""Bounds on the served fraction over fixed circuits."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput, NotApplicable, refuse
from opticoll.formulations import rounding
from opticoll.formulations.flows.flow_bounds import any_lengths_bound
from opticoll.formulations.flows.single_source import strip_paths, unit_flow
from opticoll.formulations.model import Bound
from opticoll.formulations.topoopt.circuit_design import build_design, ports_left, ring_demand
from opticoll.formulations.variables import Links
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.formulations.topoopt.circuit_design import CircuitDesign, Ring
    from opticoll.formulations.topoopt.routing import FixedCircuits
    from opticoll.instances.servers import ServerPool
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


#: Quantiles of the circuits' loads that are recorded.
QUANTILES = np.linspace(0.0, 1.0, 21)


def routed_by_flow(
    pool: ServerPool, circuits: I64, rings: Sequence[Ring], sources: I64, flow: F64
) -> CircuitDesign | None:
    """Build the design that routes its demand exactly in the proportions of a flow.

    Parameters
    ----------
    pool, circuits, rings
        As for :func:`opticoll.formulations.topoopt.circuit_design.build_design`.
    sources
        Servers that send, ``(K,)``.
    flow
        Flow of each source over every circuit, in any unit, ``(m, K)``; it need not be exact.

    Returns
    -------
    The design; None if the flow does not reach every server.
    """
    topology = Topology(pool.n, circuits[:, 0], circuits[:, 1])
    demand = ring_demand(pool, rings)
    unit = float(demand.max(initial=0.0)) or 1.0
    wanted = np.ascontiguousarray(demand[sources].T) / unit
    exact = unit_flow(topology, sources, wanted, flow)
    if exact is None or not np.isfinite(exact).all():
        return None
    routes: list[tuple[list[int], float]] = []
    for k, source in enumerate(sources.tolist()):
        targets = np.flatnonzero(wanted[:, k] > 0)
        try:
            result = strip_paths(topology, source, exact[:, k], targets, wanted[targets, k])
        except BadInput:
            return None
        routes += [(path.arcs, path.amount * unit) for paths in result for path in paths]
    return build_design(pool, circuits, rings, routes)


def derived(data: FixedCircuits) -> list[Fraction]:
    """Demands in units of Lambda_0."""
    n, demand = data.design.pool.n, data.design.demand
    whole = {value: rounding.decimal(value) for value in np.unique(demand).tolist()}
    free = (np.maximum(-ports, 1).tolist() for ports in ports_left(n, 0, data.design.circuits))
    sums = ([sum((whole[v] for v in row), Fraction(0)) for row in side.tolist()] for side in (demand, demand.T))
    unit = max(
        total / circuits
        for side, ports in zip(sums, free, strict=True)
        for total, circuits in zip(side, ports, strict=True)
    )
    return [value / unit for value in whole.values() if value]


def bounds(data: FixedCircuits) -> list[Bound]:
    """Upper bounds on F from ports, from hops, and from lengths by multiplicative weights."""
    hops = data.flow.length_bound(np.ones(data.topology.arcs))
    lengths = any_lengths_bound(data.flow)
    return [
        Bound(
            "ports",
            float(rounding.up(1.0, 2 * data.topology.n + 6)),
            "some server sends or receives Lambda_0 over each of its circuits",
            "topoopt",
            fraction=Fraction(1),
        ),
        Bound("distance", hops, "every byte takes at least the minimum number of hops", "topoopt"),
        Bound(lengths.name, lengths.value, lengths.reason, "topoopt"),
    ]


def metrics(data: FixedCircuits, value: float | None) -> dict[str, Json]:
    """Minimum of the maximum load [bytes], and the maximum load of the design's own routes."""
    least = data.unit / value if value else None
    own = data.design
    return {
        "F": value,
        "max_load": least,
        "unit_load": data.unit,
        "heuristic_load": own.max_load,
        "heuristic_over_optimum": own.max_load / least if least else None,
        "conditional_on": "on the given circuits",
    }


def describe(data: FixedCircuits, values: Mapping[str, F64]) -> dict[str, Json]:
    """Loads of a verified flow for the whole demand [bytes]: quantiles 0, 5, .. 100 % over circuits; its tax."""
    load = np.asarray(values["f"], dtype=float).sum(axis=1) * data.unit / float(np.asarray(values["F"]))
    return {
        "load_quantiles": np.quantile(load, QUANTILES).tolist(),
        "heuristic_quantiles": np.quantile(data.design.loads, QUANTILES).tolist(),
        "bandwidth_tax": float(load.sum() / (data.flow.demand.sum() * data.unit)),
    }


def links(data: FixedCircuits, values: Mapping[str, F64]) -> Links:
    """Bytes over every circuit if all demand is served, relative to the busiest one."""
    load = np.asarray(values["f"], dtype=float).sum(axis=1) * data.unit / float(np.asarray(values["F"]))
    return Links(data.topology, load, data.topology.capacity, float(load.max(initial=0.0)), "bytes", "circuits")


def decode(data: FixedCircuits, values: Mapping[str, F64]) -> CircuitDesign:
    """Return the design with the routes of the flow, scaled to the whole demand (``point-to-point``: without rings).

    Raises
    ------
    NotApplicable
        If the flow does not reach every server.
    """
    own = data.design
    flow = np.asarray(values["f"], dtype=float)
    result = routed_by_flow(own.pool, own.circuits, own.rings, data.flow.sources, flow)
    if result is None:
        refuse(data.name, "the flow does not reach every server; give a verified one", NotApplicable)
    return result
