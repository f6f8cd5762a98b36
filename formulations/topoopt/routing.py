"""Routing that minimizes the maximum load over given circuits: the best that host-based forwarding could attain.

Source  TopoOpt, section 5.5 (routing strategy, figure 15); Shahrokhi & Matula, J. ACM 37(2), 1990
Sets    v in V servers; a in A circuits; s in S servers that send
Data    circuits and rings of a design, given by the method ``circuits``; D_st >= 0 demand [bytes] of ``traffic``, in
        units of Lambda_0 = the largest amount that a server sends or receives per circuit, (n, |S|)
Vars    f_as >= 0 flow of server s over circuit a [Lambda_0], (m, |S|); F >= 0 served fraction [-]

max F  s.t.
    balance[u,s]   inflow_u(f_s) - outflow_u(f_s) >= F D_su      u != s
    capacity[a]    sum_s f_as <= 1

Flows of s on circuits into s are fixed at 0. The minimum of the maximum load of the whole demand is Lambda_0 / F, so F
<= 1. Any lengths l >= 0 prove F <= sum_a l_a / sum_st D_st dist_l(s,t).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from opticoll.errors import BadInput
from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.flow_bounds import any_lengths_bound
from opticoll.formulations.flows.single_source import strip_paths, unit_flow
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.topoopt.circuit_design import (
    CircuitDesign,
    build_design,
    ports_left,
    ring_demand,
    server_pool,
)
from opticoll.formulations.topoopt.forwarding import routed_design
from opticoll.formulations.variables import Array, Axis, Links, arc_axis, incident_arcs, vertex_axis
from opticoll.instances.servers import ServerPool
from opticoll.instances.topology import Topology

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Mapping, Sequence

    from opticoll.formulations.topoopt.circuit_design import Ring
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Settings

NAME = "topoopt.routing"
#: Maximum number of servers: larger flow matrices are too large for any solver here.
MOST_SERVERS = 512
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


@dataclass(frozen=True, eq=False)
class FixedCircuits(ConcurrentFlow, Formulation):
    """Data of the model: the flow problem, the design with the given circuits, and Lambda_0 [bytes]."""

    name = NAME
    where = "section 5.5, figure 15"
    example = "servers:n=12,degree=4,traffic=dlrm"
    sense = "max"
    problem = "LP"
    parameters = (
        Parameter(
            "circuits",
            str,
            default="topology-finder",
            help="method that chooses the circuits",
            choices=("topology-finder", "ocs-reconfig"),
            constructs=True,
        ),
        Parameter(
            "traffic",
            str,
            default="all",
            help="traffic to route: all, or point-to-point only",
            choices=("all", "point-to-point"),
        ),
    )
    concurrent = "F"
    meaning = "served fraction F of the unit load; largest load of a circuit = unit load / F"
    variables: ClassVar = {"f": ("arc", "source"), "F": ()}
    constraints: ClassVar = {"balance": ("vertex", "source"), "capacity": ("arc",)}
    changeable: ClassVar = {"c": ("arc",), "D": ("vertex", "source")}

    design: CircuitDesign
    unit: float

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> FixedCircuits:
        """Prepare the data of the model; ``circuits`` is the function that makes the design with the given circuits.

        Raises
        ------
        NotApplicable
            For anything but a server pool with such traffic, of at most ``MOST_SERVERS`` servers.
        """
        pool = server_pool(instance, NAME)
        if pool.n > MOST_SERVERS:
            msg = f"{NAME}: {pool.n} servers have too many flows; use at most {MOST_SERVERS}"
            raise NotApplicable(msg)
        given = cls._completed(parameters)
        design: CircuitDesign = given["circuits"](pool)
        if given["traffic"] == "all":
            return flow_over(design)
        if not pool.point_to_point.any():
            msg = f"{NAME}: {pool.spec} has no point-to-point traffic; route all traffic with traffic=all"
            raise NotApplicable(msg)
        alone = ServerPool(pool.n, pool.degree, pool.point_to_point, spec=pool.spec)
        return flow_over(routed_design(alone, design.circuits, ()))

    def sets(self) -> dict[str, Axis]:
        """The servers that send."""
        return {"source": vertex_axis("source", self.topology, self.sources)}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY: ``M f >= F D`` without the rows of the sources, ``f 1 <= c``."""
        import cvxpy as cp

        b, M = Cvx(self), self.topology.incidence()  # (n, m): +1 where an arc enters, -1 where it leaves
        c, D = b.data("c", self.capacity), b.data("D", self.demand)
        f, F = b.var("f", upper=np.where(self.blocked, 0.0, np.inf)), b.var("F")
        b.row("balance", M @ f >= F * D, where=self.served)
        b.row("capacity", cp.sum(f, axis=1) <= c)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[a,s]``, ``F``, ``balance[u,s]``, ``capacity[a]``."""
        from pyomo.core import quicksum

        b, (into, out_of) = Pyo(self), incident_arcs(self.topology)
        (S,) = b.sets("source")
        c, D = b.data("c", self.capacity), b.data("D", self.demand)
        f, F = b.var("f", upper=np.where(self.blocked, 0.0, np.inf)), b.var("F")

        def balance(u: Hashable, s: Hashable) -> object:
            net = quicksum(f[a, s] for a in into[u]) - quicksum(f[a, s] for a in out_of[u])
            return net - D[u, s] * F >= 0

        b.row("balance", balance, where=lambda u, s: u != s)
        b.row("capacity", lambda a: quicksum(f[a, s] for s in S) <= c[a])
        return b.maximize(F)

    def derived(self) -> list[Fraction]:
        """Demands in units of Lambda_0."""
        n, demand = self.design.pool.n, self.design.demand
        whole = {value: rounding.decimal(value) for value in np.unique(demand).tolist()}
        free = (np.maximum(-ports, 1).tolist() for ports in ports_left(n, 0, self.design.circuits))
        sums = ([sum((whole[v] for v in row), Fraction(0)) for row in side.tolist()] for side in (demand, demand.T))
        unit = max(
            total / circuits
            for side, ports in zip(sums, free, strict=True)
            for total, circuits in zip(side, ports, strict=True)
        )
        return [value / unit for value in whole.values() if value]

    def bounds(self) -> list[Bound]:
        """Upper bounds on F from ports, from hops, and from lengths by multiplicative weights."""
        hops = self.length_bound(np.ones(self.topology.arcs))
        lengths = any_lengths_bound(self)
        return [
            Bound(
                "ports",
                float(rounding.up(1.0, 2 * self.topology.n + 6)),
                "some server sends or receives Lambda_0 over each of its circuits",
                "topoopt",
                fraction=Fraction(1),
            ),
            Bound("distance", hops, "every byte takes at least the minimum number of hops", "topoopt"),
            Bound(lengths.name, lengths.value, lengths.reason, "topoopt"),
        ]

    def metrics(self, value: float | None) -> dict[str, Json]:
        """Minimum of the maximum load [bytes], and the maximum load of the design's own routes."""
        least = self.unit / value if value else None
        own = self.design
        return {
            "F": value,
            "max_load": least,
            "unit_load": self.unit,
            "heuristic_load": own.max_load,
            "heuristic_over_optimum": own.max_load / least if least else None,
            "heuristic_tax": own.bandwidth_tax,
            "circuits": self.topology.arcs,
            "conditional_on": "on the given circuits",
        }

    def describe(self, values: Mapping[str, F64]) -> dict[str, Json]:
        """Loads of a verified flow for the whole demand [bytes]: quantiles 0, 5, .. 100 % over circuits; its tax."""
        load = np.asarray(values["f"], dtype=float).sum(axis=1) * self.unit / float(np.asarray(values["F"]))
        return {
            "load_quantiles": np.quantile(load, QUANTILES).tolist(),
            "heuristic_quantiles": np.quantile(self.design.loads, QUANTILES).tolist(),
            "least_over_most": float(load.min() / load.max()),
            "bandwidth_tax": float(load.sum() / (self.demand.sum() * self.unit)),
        }

    def links(self, values: Mapping[str, F64]) -> Links:
        """Bytes over every circuit if all demand is served, relative to the busiest one."""
        load = np.asarray(values["f"], dtype=float).sum(axis=1) * self.unit / float(np.asarray(values["F"]))
        return Links(self.topology, load, self.topology.capacity, float(load.max(initial=0.0)), "bytes", "circuits")

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Shapes of f, in units of Lambda_0 (``unit_load`` of the metrics), of F, and of the duals of ``capacity``."""
        arc, source = arc_axis(self.topology), vertex_axis("source", self.topology, self.sources)
        return {"f": Array((arc, source), unit="unit loads"), "F": Array(), "capacity": Array((arc,), dual=True)}


def flow_over(design: CircuitDesign) -> FixedCircuits:
    """Build the data for the demand of a design over its circuits."""
    topology, n, demand = design.topology, design.pool.n, design.demand
    out, into = (np.maximum(-free, 1) for free in ports_left(n, 0, design.circuits))
    unit = float(max((demand.sum(axis=1) / out).max(), (demand.sum(axis=0) / into).max()))
    sources = np.flatnonzero(demand.sum(axis=1) > 0)
    blocked = topology.head[:, None] == sources[None, :]
    scaled = demand[sources].T / unit
    return FixedCircuits(
        topology, sources, scaled, topology.capacity, blocked, equality=False, flow="f", design=design, unit=unit
    )


def decode(data: FixedCircuits, values: Mapping[str, F64]) -> CircuitDesign:
    """Return the design with the routes of the flow, scaled to the whole demand (``point-to-point``: without rings).

    Raises
    ------
    NotApplicable
        If the flow does not reach every server.
    """
    own = data.design
    flow = np.asarray(values["f"], dtype=float)
    result = routed_by_flow(own.pool, own.circuits, own.rings, data.sources, flow)
    if result is None:
        msg = f"{NAME}: the flow does not reach every server; give a verified one"
        raise NotApplicable(msg)
    return result


FORMULATION = FixedCircuits
