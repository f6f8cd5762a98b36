"""All-to-all of whole chunks in steps of whole rounds: the problem that SCCL gives to an SMT solver.

Source  Cai et al., Synthesizing optimal collective algorithms (SCCL), PPoPP 2021, section 3 (k-synchronous algorithms,
        constraints C1-C6); the all-to-all paper compares itself with it in sections 2.3 and 6.3
Sets    u in V vertices (n), all of them ranks; a in A arcs (m); t = 1..S steps; k in K chunks, ``chunks`` for every
        ordered pair (s_k, t_k), or with ``model=sources`` the N sources
Data    c_a > 0 capacity [chunks per round], (m,); C = ``chunks`` per shard; S = ``steps``
Vars    f_akt in {0,1} chunk k crosses arc a in step t, (m, |K|, S): SCCL's snd(n,c,n') with time(c,n') = t;
        U_t in 0 .. ceil(|K| / min_a c_a) rounds of step t, integer, (S,)

min sum_t U_t  s.t.
    capacity[a,t]   sum_k f_akt <= c_a U_t                                                (C5)
    once[u,k]       sum_t inflow_u(f_kt) <= 1            u not in {s_k, t_k}              (C3)
    before[a,k,t]   f_akt <= sum_{tau<t} inflow_{tail a}(f_k,tau)       tail a != s_k     (C4)
    balance[u,k]    sum_t inflow_u(f_kt) = 1             u = t_k                          (C1, C2)

A round is the time of one chunk over a link of capacity 1; R = sum_t U_t rounds move C chunks of every pair, so an
all-to-all takes T = R / C [shards / link bandwidth] and costs S alpha + T beta. SCCL fixes C, S and R and asks whether
a solution exists (R = sum r_s is its C6); here R is minimized, and steps may have no round, so S is an upper limit.
A chunk has one destination, so arcs into its source and out of its destination, and sends that are too early or too
late (as in :mod:`opticoll.formulations.alltoall.timestep_mcf`), are fixed at 0: some solution with minimum R needs none
of them.

``model=sources`` is ours, with the same optimum. Since no chunk is needed twice, copies do not help: chunks are an
integer flow in the graph unrolled over time, and those of one source are one flow that splits into whole numbers. So
f_akt is the number of chunks of source k, an integer up to C (N-1), and *once*, *before* and *balance* become

    causality[u,k,t]  sum_{tau<=t} inflow_u(f_k,tau) >= sum_{tau<=t+1} outflow_u(f_k,tau)      u != s_k, t < S
    balance[u,k]      sum_t inflow_u(f_kt) - outflow_u(f_kt) = C                               u != s_k

which is the time-stepped MCF by source with integers: C (N-1) times fewer variables, and the bound of that LP.

Bounds. R >= ceil(C T) for every bound T on the fluid time, and R >= the diameter, since each of that many steps has a
round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.alltoall import sccl_bounds
from opticoll.formulations.alltoall.time_expansion import enough_steps
from opticoll.formulations.alltoall.timestep_mcf import StepFlow
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.declared_axes import all_arrays
from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow, all_to_all_topology, pairs_of
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.variables import Axis, pair_labels, vertex_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.model import Values
    from opticoll.instances.topology import F64, Topology

#: Maximum number of chunks per shard.
MOST_CHUNKS = 64


@dataclass(frozen=True, eq=False)
class ChunkSteps(Formulation):
    """Data of the model: a flow in steps, with a group for every chunk or for every source."""

    name = "alltoall.sccl"
    where = "sections 2.3, 6.3; SCCL, section 3"
    problem = "MILP"
    parameters = (
        Parameter("chunks", int, default=1, help="number of equal chunks C per shard", least=1),
        Parameter("steps", int, default=0, help="number of steps S, at least (0: equal to) the diameter"),
        Parameter(
            "model",
            str,
            default="chunks",
            choices=("chunks", "sources"),
            help="a 0/1 variable per chunk (SCCL's), or an integer variable per source (same optimum)",
        ),
    )
    meaning = "rounds in all steps; R / C is the time [shards / link bandwidth]"
    variables: ClassVar = {"f": ("arc", "chunk", "step"), "U": ("step",)}
    constraints: ClassVar = {
        "capacity": ("arc", "step"),
        "once": ("vertex", "chunk"),
        "before": ("arc", "chunk", "step"),
        "balance": ("vertex", "chunk"),
    }
    units: ClassVar = {"f": "chunks", "U": "rounds"}
    _beside = (sccl_bounds,)
    _label_invariant = staticmethod(lambda parameters: True)

    _arrays = all_arrays

    flow: StepFlow
    chunks: int
    model: str

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        topology = all_to_all_topology(instance, cls.name)
        if topology.num_ranks < topology.n:
            msg = f"{cls.name}: {topology.spec} has vertices that are not ranks; use alltoall.timestep-mcf for them"
            raise NotApplicable(msg)
        chunks, model = given["chunks"], given["model"]
        if chunks > MOST_CHUNKS:
            refuse(cls.name, f"chunks={chunks} per shard; use at most {MOST_CHUNKS}", NotApplicable)
        steps = enough_steps(cls.name, given["steps"], topology)
        if model == "sources":
            groups = ConcurrentFlow.by_source(topology)
            groups = replace(groups, amounts=groups.demand * chunks)
        else:
            groups = ConcurrentFlow.by_commodity(topology, *pairs_of(topology, None))
            groups = replace(
                groups,
                sources=np.repeat(groups.sources, chunks),
                amounts=np.ones(groups.groups * chunks),
                targets=np.repeat(groups.commodities[0], chunks),
            )
        return cls(StepFlow(groups, steps, "source" if model == "sources" else "commodity"), chunks, model)

    @property
    def topology(self) -> Topology:
        """The network."""
        return self.flow.topology

    def sets(self) -> dict[str, Axis | range]:
        """Chunks (s,d,i): the i-th of the pair (s,d), or sources; and steps."""
        flow, group = self.flow, self.flow.sets()
        V = vertex_names(self.topology)
        K = [(s, d, i) for s in V for d in V if s != d for i in range(self.chunks)]

        def names(_values: object) -> list[str]:
            pairs = pair_labels(flow.topology, flow.groups.sources, np.argmax(flow.groups.demand, axis=0))
            return [f"{pair} #{k % self.chunks + 1}" for k, pair in enumerate(pairs)]

        chunk = group["group"] if self.model == "sources" else Axis("chunk", len(K), names, K)
        return {"chunk": chunk, "step": group["step"]}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the sends that are not fixed at 0."""
        if self.model == "sources":
            return self.flow.cvxpy(whole=True)
        import cvxpy as cp

        b, flow, topology, c = Cvx(self), self.flow, self.topology, self.topology.capacity
        m, _, S = flow.shape
        moves = Index.of_mask("arc chunk step", flow.upper > 0)
        moves = moves.given(tail=topology.tail[moves["arc"]], head=topology.head[moves["arc"]])
        f = b.var("f", upper=1, integer=True, over=moves)
        U = b.var("U", upper=np.ceil(flow.longest), integer=True)
        source, wanted = flow.groups.sources, flow.groups.demand > 0
        used = Index.grid(arc=m, step=S)
        b.row("capacity", used.of(moves) @ f <= cp.multiply(c[used["arc"]], U[used["step"]]), over=used)
        at = moves.given(vertex=moves["head"]).by("vertex chunk")
        at = at.where((at["vertex"] != source[at["chunk"]]) & ~wanted[at["vertex"], at["chunk"]])
        b.row("once", at.of(moves, head="vertex") @ f <= 1, over=at)
        at, arrivals = moves.where(moves["tail"] != source[moves["chunk"]]), moves.given(when=moves["step"])
        earlier = at.of(arrivals.known_by("chunk head when"), head="tail", where=lambda row, f: f["when"] < row["step"])
        b.row("before", at.of(moves) @ f <= earlier @ f, over=at)
        at = Index.of_mask("vertex chunk", wanted)
        b.row("balance", at.of(moves, head="vertex") @ f == 1, over=at)
        return b.minimize(cp.sum(U))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``f[a,s,d,i,t]`` for chunk i of the pair (s,d), or ``f[a,s,t]`` by source; ``U[t]``."""
        if self.model == "sources":
            return self.flow.pyomo(whole=True)
        b = Pyo(self)
        into, out_of = b.incident()
        V, K, T = b.sets("vertex", "chunk", "step")
        tail, head = ({a: u for u in V for a in ends[u]} for ends in (out_of, into))
        c = b.by_label(self.topology.capacity, "arc")
        f = b.var("f", upper=1, integer=True, over=Index.of_mask("arc chunk step", self.flow.upper > 0))
        U = b.var("U", upper=math.ceil(len(K) / min(c.values())), integer=True)

        def arrived(u: Any, k: Sequence[Any], steps: Sequence[int]) -> Any:
            return b.sum(f[(a, *k, t)] for a in into[u] for t in steps)

        b.row("capacity", lambda a, t: b.sum(f[(a, *k, t)] for k in K) <= c[a] * U[t])
        b.row(
            "once",
            lambda u, *k: arrived(u, k, T) <= 1,
            over={(head[a], *k) for a, *k, _ in f if head[a] not in k[:2]},
        )
        b.row(
            "before",
            lambda a, *kt: f[(a, *kt)] <= arrived(tail[a], kt[:-1], T[: kt[-1] - 1]),
            over=[(a, *kt) for a, *kt in f if tail[a] != kt[0]],
        )
        b.row("balance", lambda u, *k: arrived(u, k, T) == 1, over=[(k[1], *k) for k in K])
        return b.minimize(b.sum(U[t] for t in T))

    def objective(self, values: Values) -> float:
        """Rounds of all steps, as given by U."""
        return self.flow.objective(values)

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violation of every block, from numpy alone, step by step, in chunks."""
        flow, (_, groups, steps) = self.flow, self.flow.shape
        f, U = np.asarray(values["f"], dtype=float), np.asarray(values["U"], dtype=float)
        if self.model == "sources":
            return flow.residuals(values) | {"whole": _fraction(f, U)}
        topology, sources, chunk = flow.topology, flow.groups.sources, np.arange(groups)
        held = np.zeros((topology.n, groups))
        held[sources, chunk] = 1.0
        early = 0.0
        for t in range(steps):  # a held chunk may be sent as a copy
            early = max(early, float((f[:, :, t] - held[topology.tail]).max(initial=0.0)))
            np.add.at(held, topology.head, f[:, :, t])
        held[sources, chunk] -= 1.0
        targets = np.argmax(flow.groups.demand, axis=0)
        load = f.sum(axis=1)
        return {
            "whole": max(
                _fraction(f, U), float(max(-f.min(initial=0.0), f.max(initial=0.0) - 1.0, -U.min(initial=0.0)))
            ),
            "blocked": float(np.where(flow.upper == 0, np.abs(f), 0.0).max(initial=0.0)),
            "capacity": float((load / topology.capacity[:, None] - U).max(initial=0.0)),
            "once": float((held - 1.0).max(initial=0.0)),
            "before": early,
            "balance": float(np.abs(held[targets, chunk] - 1.0).max(initial=0.0)),
        }


def _fraction(*arrays: F64) -> float:
    """Largest distance to a whole number."""
    return max(float(np.abs(array - np.rint(array)).max(initial=0.0)) for array in arrays)


FORMULATION = ChunkSteps
