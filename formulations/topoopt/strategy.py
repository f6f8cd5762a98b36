r"""Parallelization strategies: data or model parallelism for every layer, with Eq. (1) as the cost.

Source  TopoOpt, sections 4.1 (search in the Comp. x Comm. plane) and 5.4, Eq. (1)
Sets    k in K kinds of equal parts of a model (layers of one size, or a set of embedding tables); c in C ways to
        place a part: ``replicated`` on all servers; ``placed`` (tables: each on one server); ``shards=s`` (divisible
        layers: in s equal parts on blocks of s servers, s a divisor of n)
Data    m_k parts of kind k, (K,); R_kc, A_kc all-reduce and point-to-point bytes of all servers for one part; W_kc
        weights on the fullest server [bytes], (K,C) each (traffic as in
        :mod:`opticoll.instances.training.training_jobs`);
        t_kc computing time of one part on a server [s], (K,C); n servers with d interfaces of b = ``bandwidth``
        [bytes/s]; M = ``memory`` of a server [bytes], with ``weight_bytes`` per weight; C = ``computing`` [s], the same
        for every strategy; alpha_c >= 0 slow-down by forwarding of what is sent point to point [-], see below
Vars    x_kc in 0 .. m_k parts of kind k placed as c, integer, (K,C), where k can be placed as c

min C + sum_kc (t_kc + (R_kc + alpha_c A_kc) / (n d b)) x_kc  s.t.
    parts[k]   sum_c x_kc = m_k
    memory     sum_kc W_kc x_kc <= M                                                  (memory > 0)

``memory`` is stated divided by M, so that its coefficients are shares of the memory whatever its size. The data of both
builds hold alpha_c A_kc as one number, the byte-hops of a part.

``operators=list-1`` takes the layers of List 1, with t = 0. ``operators=measured`` uses the operators that the authors
measured on this number of servers (16 or 128), with their times: parts run sequentially, so t adds up to Eq. (1)'s
computing time, and it depends on the strategy (:func:`~opticoll.instances.training.training_jobs.measured_kinds`,
which defines the time of a shard). Ways that were not measured are not allowed; operators without weights add to C.

``alpha`` > 0 is Eq. (1)'s slow-down by forwarding in some topology. With ``alpha=0`` every way has the smallest
slow-down that any topology of degree d allows: the mean depth of its targets, of which at most d^h are h hops away.
Byte-hops of a sum of traffic are at least the sum of their bounds, so the optimum then bounds the iteration time of
every strategy *and* topology by Eq. (1).

Closed form: without a memory limit every kind takes its cheapest way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.topoopt import strategy_solution, strategy_traffic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.servers import ServerPool
    from opticoll.instances.topology import F64, I64
    from opticoll.instances.training.training_jobs import TrainingJob


@dataclass(frozen=True, eq=False)
class Plane(Formulation):
    """Data of the model.

    ``kinds`` are jobs of one part; ``ways`` are names, ``shards`` the number of shards of each (0: none); ``measured``
    has the computing time [s] of a part by shards for every kind, and is empty if computing takes no time.
    """

    name = "topoopt.strategy"
    where = "sections 4.1, 5.4, Eq. (1)"
    example = "servers:n=12,degree=4,traffic=dlrm"
    problem = "MILP"
    parameters = strategy_traffic.PARAMETERS
    meaning = "iteration time by Eq. (1) [s]"
    variables: ClassVar = {"x": ("kind", "way")}
    constraints: ClassVar = {"parts": ("kind",), "memory": ()}
    _beside = (strategy_traffic, strategy_solution)

    pool: ServerPool
    kinds: tuple[TrainingJob, ...]
    count: I64
    ways: tuple[str, ...]
    sharding: tuple[int, ...]
    bandwidth: float
    memory: float
    weight_bytes: float
    computing: float
    alpha: float
    measured: tuple[dict[int, float], ...] = ()

    allowed = cached_property(strategy_traffic.allowed_ways)
    work = cached_property(strategy_traffic.computing_times)
    patterns = cached_property(strategy_traffic.traffic_patterns)
    reduced = cached_property(strategy_traffic.reduced_bytes)
    direct = cached_property(strategy_traffic.direct_bytes)
    hops = cached_property(strategy_traffic.byte_hops)
    cost = cached_property(strategy_traffic.time_of_part)
    held = cached_property(strategy_traffic.held_bytes)

    def time(self, x: F64) -> float:
        """Time by Eq. (1) with the alphas of the data [s]."""
        return self.computing + float((self.cost * x).sum())

    def sets(self) -> dict[str, Sequence[Any]]:
        """Kinds of parts, and ways to place one."""
        return {"kind": range(len(self.kinds)), "way": self.ways}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the ways that a kind can be placed in."""
        b, m, W, M = Cvx(self), self.count, self.held, self.memory
        places = Index.of_mask("kind way", self.allowed)
        kinds, at = Index.grid(kind=len(self.kinds)), (places["kind"], places["way"])
        x = b.var("x", upper=np.broadcast_to(m[:, None], self.allowed.shape), integer=True, over=places)
        b.row("parts", kinds.of(places) @ x == m)
        if M:
            b.row("memory", W[at] / M @ x <= 1)
        return b.minimize(self.cost[at] @ x + self.computing)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``x[k,c]`` with c the name of a way, ``parts[k]``, ``memory``."""
        b, n, M = Pyo(self), self.pool.n, self.memory
        (C,) = b.sets("way")
        allowed, t, R, A, W = (
            b.by_label(array, "kind", "way") for array in (self.allowed, self.work, self.reduced, self.hops, self.held)
        )
        m, rate = self.count.tolist(), n * self.pool.degree * self.bandwidth
        most = np.broadcast_to(self.count[:, None], self.allowed.shape)
        x = b.var("x", upper=most, integer=True, where=lambda *kc: allowed[kc])
        b.row("parts", lambda k: b.sum(x[k, c] for c in C) == m[k])
        if M:
            b.row("memory", lambda: b.sum(W[kc] / M * x[kc] for kc in x) <= 1)
        return b.minimize(self.computing + b.sum((t[kc] + (R[kc] + A[kc]) / rate) * x[kc] for kc in x))

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone; memory relative to the limit."""
        x = np.asarray(values["x"], dtype=float)
        inside, outside = np.where(self.allowed, x, 0.0), np.where(self.allowed, 0.0, x)
        over = float((self.held * inside).sum()) / self.memory - 1.0 if self.memory > 0 else 0.0
        return {
            "parts": float(np.abs(inside.sum(axis=1) - self.count).max()),
            "integer": float(np.abs(inside - np.rint(inside)).max()),
            "nonnegative": max(-float(inside.min()), 0.0),
            "allowed": float(np.abs(outside).max()),
            "memory": max(over, 0.0),
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Eq. (1) [s]."""
        return self.time(np.where(self.allowed, np.asarray(values["x"], dtype=float), 0.0))

    traffic = strategy_traffic.traffic_of_part
    weights = strategy_traffic.weights_of_part
    job_pool = strategy_traffic.job_pool


FORMULATION = Plane
