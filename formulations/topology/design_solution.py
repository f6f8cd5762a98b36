"""Solutions of ``topology.design``: the topology, and flows over its links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.topology.node_demand import pool_of_nodes, refuse_racks
from opticoll.formulations.variables import BANDWIDTHS, Links
from opticoll.instances.families.regular_graphs import digraph_spec
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.topology.design import Design
    from opticoll.instances.topology import F64
    from opticoll.types import Json


PARAMETERS = (
    Parameter("directed", bool, default=False, help="allow one-way links"),
    Parameter("rack", int, default=0, help="nodes per rack; 0 for no racks"),
    Parameter("cables", int, default=0, help="maximum number of cables from one rack to another; 0 for no limit"),
    Parameter("uplinks", int, default=0, help="maximum number of cables from a rack to all others; 0 for no limit"),
)


def prepared(cls: type[Design], instance: object, **stated: Any) -> Design:
    """The problem of a pool of nodes."""
    pool = pool_of_nodes(instance, cls.name, "needs the uniform all-to-all, topoopt.topology takes other traffic")
    return of_nodes(cls, pool.n, pool.degree, **stated)


def of_nodes(
    cls: type[Design], n: int, degree: int, directed: bool, *, rack: int = 0, cables: int = 0, uplinks: int = 0
) -> Design:
    """The problem, if there is such a topology.

    Raises
    ------
    NotApplicable
        If n is less than 2, the degree does not lie in 1..n-1, one link per node cannot connect the nodes, or the racks
        are inconsistent.
    """
    if n < 2:
        refuse(cls.name, f"a topology needs at least 2 nodes, not {n}", NotApplicable)
    if not 1 <= degree <= n - 1:
        refuse(cls.name, f"{n} nodes without parallel links have degrees 1 to {n - 1}, not {degree}", NotApplicable)
    if degree == 1 and n > 2 and not directed:
        msg = f"{cls.name}: one two-way link per node cannot connect {n} nodes; use degree=2 or directed=true"
        raise NotApplicable(msg)
    refuse_racks(cls.name, n, rack, cables, uplinks)
    return cls(n, degree, directed, rack, cables, uplinks)


def rack_excess(data: Design, links: F64) -> dict[str, float]:
    """Links in excess of the rack limits, for a matrix of links ``(n, n)``; empty without racks."""
    if not data.rack:
        return {}
    member = np.eye(data.racks)[data.rack_of]
    between = member.T @ links @ member
    np.fill_diagonal(between, 0.0)
    result = {}
    if data.cables:
        result["cables"] = float(max((between - data.cables).max(), 0.0))
    if data.uplinks:
        result["uplinks_out"] = float(max((between.sum(axis=1) - data.uplinks).max(), 0.0))
        result["uplinks_in"] = float(max((between.sum(axis=0) - data.uplinks).max(), 0.0))
    return result


def describe(data: Design, values: Mapping[str, F64]) -> dict[str, Json]:
    """Properties of a verified solution: its links, and the topology as a spec."""
    topology = topology_of(data, values)
    spec = digraph_spec(topology)
    return {"links": topology.arcs} | ({} if spec is None else {"topology": spec})


def links(data: Design, values: Mapping[str, F64]) -> Links:
    """Flow over every link, all sources together."""
    topology = topology_of(data, values)
    total = np.asarray(values["g"], dtype=float).sum(axis=0)[topology.tail, topology.head]
    return Links(topology, total, topology.capacity, 1.0, BANDWIDTHS, BANDWIDTHS)


def topology_of(data: Design, values: Mapping[str, F64]) -> Topology:
    """Build the topology of the chosen links."""
    tail, head = np.nonzero(np.rint(np.nan_to_num(np.asarray(values["x"], dtype=float))) == 1)
    return Topology(data.n, tail, head)


def values_on(topology: Topology, flow: F64, throughput: float) -> dict[str, F64]:
    """The solution with the links of a topology: flows by source over its arcs, ``(m, n)``, and F."""
    n = topology.n
    x, g = np.zeros((n, n)), np.zeros((n, n, n))
    x[topology.tail, topology.head] = 1.0
    g[:, topology.tail, topology.head] = flow.T
    return {"x": x, "g": g, "F": np.asarray(throughput)}
