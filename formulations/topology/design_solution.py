"""Solutions of ``topology.design``: the topology, and flows over its links."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.variables import BANDWIDTHS, Links
from opticoll.instances.families.regular_graphs import digraph_spec
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.topology.design import Design
    from opticoll.instances.topology import F64
    from opticoll.types import Json


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


def metrics(data: Design, value: float | None) -> Mapping[str, Json]:
    """Figures at a value."""
    return {} if not value else {"F": value, "T": 1.0 / value}
