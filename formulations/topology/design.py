r"""Topology of given degree with minimum all-to-all time.

Source  ours; the flow part is (6)-(9) of the all-to-all paper. Bounds: Cerf, Cowan, Mullin & Stanton, Networks 4, 1974
        (distances); Hoffman & Singleton, IBM J. 4, 1960, Damerell, Math. Proc. Camb. Phil. Soc. 74, 1973, and Bannai &
        Ito, J. Fac. Sci. Univ. Tokyo 20, 1973 (Moore graphs); Bridges & Toueg, J. Comb. Theory B 29, 1980 (digraphs)
Sets    u, i, j, s in V nodes (n); (i,j), i != j, ordered pairs; s as the source of a flow; p, q racks
Data    d ports: links out of and into a node, each of capacity 1. Every node sends one shard to every other.
        Optional: racks R_p of r nodes each (r p .. r p + r - 1, the last may have fewer), at most c cables from one
        rack to another, at most U uplinks of a rack (a two-way link is one cable)
Vars    x_ij in {0,1} link from i to j, (n,n); g_sij >= 0 flow from source s, none into s [link bandwidths],
        (n,n,n); F >= 0 concurrent flow [link bandwidths / shard]

max F  s.t.
    ports_out[i]     sum_j x_ij <= d
    ports_in[j]      sum_i x_ij <= d
    both_ways[i,j]   x_ij = x_ji                                           i < j       (unless ``directed``)
    cables[p,q]      sum_(i in R_p, j in R_q) x_ij <= c                    p != q      (if ``cables`` > 0)
    uplinks_out[p]   sum_(i in R_p, j not in R_p) x_ij <= U                            (if ``uplinks`` > 0)
    uplinks_in[p]    sum_(i not in R_p, j in R_p) x_ij <= U                            (if ``uplinks`` > 0)
    balance[u,s]     inflow_u(g_s) - outflow_u(g_s) >= F                   u != s
    capacity[i,j]    sum_s g_sij <= x_ij

T = 1/F is the time of an all-to-all [shards / link bandwidth]. Two nodes have at most one link each way.

Bound  A node has at most d nodes at distance 1, and a node at distance k has at most d links on (``directed``), or d-1
(two-way), to nodes at distance k+1. Let S be the minimum sum of distances from a node. The flow of every source fills
at least S links, so F <= C / (n S + e), with C <= n d links, and e = 0 but in the two cases below. If n d is odd and
links are two-way, one node has d-1 links: its sum is the minimum for d-1 links at the root, and C <= n d - 1. If n is
1 + d + ... + d^k with d, k >= 2, no digraph attains S at all nodes (Bridges & Toueg): e = 1. If n is 1 + d + ... + d
(d-1)^(k-1) with d >= 3, k >= 2, two-way graphs attain it only for k = 2 and d = 3, 7, and possibly 57 (Hoffman &
Singleton; Damerell; Bannai & Ito): otherwise some pair is farther apart, counted from both ends: e = 2.
With racks, C is at most the sum over racks of min(r d, r (r-1) + U'), where U' <= min(U, c times the other racks) links
leave a rack. And any k of K racks with w nodes in all send w (n-w) shards over at most min(k U', (K-k) U', c k (K-k))
links, so the quotient is a lower bound on T.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.declared_axes import all_arrays, metrics
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.topology import design_bounds, design_solution

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True)
class Design(Formulation):
    """The problem for n nodes with ``degree`` links each, which may be one-way (``directed``).

    ``rack`` is the number of consecutive nodes of a rack; ``cables`` and ``uplinks`` are the maximum number of cables
    from one rack to another, and from a rack to all others; 0 for no racks, or no limit.
    """

    name = "topology.design"
    where = "ours"
    example = "servers:n=6,degree=2,traffic=alltoall"
    sense = "max"
    problem = "MILP"
    parameters = design_solution.PARAMETERS
    meaning = "concurrent flow F [link bandwidths / shard]; T = 1/F"
    variables: ClassVar = {"x": ("src", "dst"), "g": ("source", "src", "dst"), "F": ()}
    constraints: ClassVar = {
        "ports_out": ("node",),
        "ports_in": ("node",),
        "both_ways": ("src", "dst"),
        "cables": ("leaves", "enters"),
        "uplinks_out": ("rack",),
        "uplinks_in": ("rack",),
        "balance": ("node", "source"),
        "capacity": ("src", "dst"),
    }
    _beside = (design_bounds, design_solution)

    n: int
    degree: int
    directed: bool
    rack: int = 0
    cables: int = 0
    uplinks: int = 0
    of_nodes = classmethod(design_solution.of_nodes)

    @property
    def racks(self) -> int:
        """Number of racks; 1 without racks."""
        return -(-self.n // self.rack) if self.rack else 1

    @property
    def rack_of(self) -> I64:
        """The rack of every node, ``(n,)``; all 0 without racks."""
        return np.arange(self.n) // (self.rack or self.n)

    def sets(self) -> dict[str, range]:
        """Nodes, as ends of links, as sources and by themselves, and racks."""
        V, P = range(self.n), range(self.racks)
        return {"node": V, "source": V, "src": V, "dst": V, "rack": P, "leaves": P, "enters": P}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the possible links and flows."""
        b, nodes, d = Cvx(self), np.arange(self.n), self.degree
        apart = nodes[:, None] != nodes
        links = Index.of_mask("src dst", apart)
        flows = Index.of_mask("source src dst", apart & (nodes[:, None, None] != nodes))  # none into its source
        x, g, F = b.var("x", upper=1, integer=True, over=links), b.var("g", over=flows), b.var("F")
        ends, rows = Index.grid(node=self.n), Index.of_mask("node source", apart)
        b.row("ports_out", ends.of(links, src="node") @ x <= d)
        b.row("ports_in", ends.of(links, dst="node") @ x <= d)
        if not self.directed:
            onward = links.where(links["src"] < links["dst"])
            back = onward.of(links, src="dst", dst="src")
            b.row("both_ways", onward.of(links) @ x == back @ x, over=onward)
        wires = links.given(leaves=self.rack_of[links["src"]], enters=self.rack_of[links["dst"]])
        wires = wires.where(wires["leaves"] != wires["enters"])  # between racks
        pairs, racks = Index.of_mask("leaves enters", ~np.eye(self.racks, dtype=bool)), Index.grid(rack=self.racks)
        if self.cables:
            b.row("cables", pairs.of(wires) @ x <= self.cables, over=pairs)
        if self.uplinks:
            b.row("uplinks_out", racks.of(wires, leaves="rack") @ x <= self.uplinks)
            b.row("uplinks_in", racks.of(wires, enters="rack") @ x <= self.uplinks)
        b.row("balance", (rows.of(flows, dst="node") - rows.of(flows, src="node")) @ g >= F, over=rows)
        b.row("capacity", links.of(flows) @ g <= x, over=links)
        return b.maximize(F)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, by nodes and racks."""
        b, d, V, P = Pyo(self), self.degree, range(self.n), range(self.racks)
        R = [[i for i in V if i // (self.rack or self.n) == p] for p in P]
        rest = [[j for j in V if j not in R[p]] for p in P]
        x = b.var("x", upper=1, integer=True, where=lambda i, j: i != j)
        g, F = b.var("g", where=lambda s, i, j: i != j and j != s), b.var("F")

        def wires(tails: Iterable[int], heads: Iterable[int]) -> Any:
            return b.sum(x[i, j] for i in tails for j in heads)

        b.row("ports_out", lambda i: wires([i], V) <= d)
        b.row("ports_in", lambda j: wires(V, [j]) <= d)
        if not self.directed:
            b.row("both_ways", lambda i, j: x[i, j] == x[j, i], where=lambda i, j: i < j)
        if self.cables:
            b.row("cables", lambda p, q: wires(R[p], R[q]) <= self.cables, where=lambda p, q: p != q)
        if self.uplinks:
            b.row("uplinks_out", lambda p: wires(R[p], rest[p]) <= self.uplinks)
            b.row("uplinks_in", lambda p: wires(rest[p], R[p]) <= self.uplinks)
        # Absent entries, as g[s,u,u] and g[s,u,s], read as 0.
        b.row("balance", lambda u, s: b.sum(g[s, v, u] - g[s, u, v] for v in V) >= F, where=lambda u, s: u != s)
        b.row("capacity", lambda i, j: b.sum(g[s, i, j] for s in V) <= x[i, j], where=lambda i, j: i != j)
        return b.maximize(F)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block; flows relative to F."""
        n, d = self.n, self.degree
        x, g, F = (np.asarray(values[name], dtype=float) for name in ("x", "g", "F"))
        loops = np.eye(n, dtype=bool)
        x, g = np.where(loops, 0.0, x), np.where(loops, 0.0, g)
        g = np.where(np.arange(n)[:, None, None] == np.arange(n)[None, None, :], 0.0, g)  # none into its source
        arriving = (g.sum(axis=1) - g.sum(axis=2)).T  # (u, s)
        short, links = np.where(loops, 0.0, F - arriving), np.rint(np.clip(x, 0.0, 1.0))
        return {
            "integrality": float(np.abs(x - links).max()),
            "ports_out": float(max((links.sum(axis=1) - d).max(), 0.0)),
            "ports_in": float(max((links.sum(axis=0) - d).max(), 0.0)),
            "both_ways": 0.0 if self.directed else float(np.abs(links - links.T).max()),
            **design_solution.rack_excess(self, links),
            "balance": float(max(short.max(), 0.0)) / max(abs(float(F)), 1e-300),
            "capacity": float(max((g.sum(axis=0) - links).max(), 0.0)),
            "sign": float(max(-g.min(), -float(F), 0.0)),
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """F."""
        return float(values["F"])

    _arrays = all_arrays
    metrics = metrics
    most_links = property(design_bounds.most_links)
    leaving = design_bounds.leaving


FORMULATION = Design
