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
        for every strategy; alpha_c
Vars    x_kc in 0 .. m_k parts of kind k placed as c, integer, (K,C), where k can be placed as c

min C + sum_kc (t_kc + (R_kc + alpha_c A_kc) / (n d b)) x_kc  s.t.
    parts[k]   sum_c x_kc = m_k
    memory     sum_kc W_kc x_kc <= M                                                  (memory > 0)

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

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.topoopt.circuit_design import server_pool
from opticoll.formulations.topoopt.forwarding import travelled
from opticoll.formulations.variables import Array, Axis, entries
from opticoll.instances.servers import AllReduceGroup, ServerPool
from opticoll.instances.training.training_jobs import JOBS, TrainingJob, measured_kinds, traffic_of, training_job

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.instances.training.training_jobs import Traffic
    from opticoll.types import Json, Settings

NAME = "topoopt.strategy"
#: Bandwidth of an interface [bytes/s]: 100 Gb/s.
BANDWIDTH = 12.5e9
#: Maximum number of servers, which limits the size of the traffic matrices of all ways.
MOST_SERVERS = 512


@dataclass(frozen=True, eq=False)
class Plane(Formulation):
    """Data of the model.

    ``kinds`` are jobs of one part; ``ways`` are names, ``shards`` the number of shards of each (0: none); ``measured``
    has the computing time [s] of a part by shards for every kind, and is empty if computing takes no time.
    """

    name = NAME
    where = "sections 4.1, 5.4, Eq. (1)"
    example = "servers:n=12,degree=4,traffic=dlrm"
    sense = "min"
    problem = "MILP"
    parameters = (
        Parameter("bandwidth", float, default=BANDWIDTH, help="bandwidth of an interface [bytes/s]"),
        Parameter("memory", float, default=0.0, help="memory of a server for weights [GiB]; 0: no limit"),
        Parameter("weight_bytes", float, default=8.0, help="bytes per weight, including its gradient"),
        Parameter("computing", float, default=0.0, help="C of Eq. (1) [s], in addition to the operators"),
        Parameter("alpha", float, default=0.0, help="slow-down by forwarding; 0: the minimum over all topologies"),
        Parameter(
            "operators",
            str,
            default="list-1",
            help="layers of List 1, or operators with the authors' times",
            choices=("list-1", "measured"),
        ),
    )
    meaning = "iteration time by Eq. (1) [s]"
    variables: ClassVar = {"x": ("kind", "way")}
    constraints: ClassVar = {"parts": ("kind",), "memory": ()}

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

    @cached_property
    def allowed(self) -> Mask:
        """Whether a kind can be placed in a way, ``(K, C)``."""
        rows = []
        for kind in self.kinds:
            split = bool(kind.layers) and kind.layers[0].split
            rows.append(
                [
                    way == "replicated" or (way == "placed" and bool(kind.tables)) or (s > 0 and split)
                    for way, s in zip(self.ways, self.sharding, strict=True)
                ]
            )
        possible = np.array(rows, dtype=bool)
        for k, times in enumerate(self.measured):
            possible[k] &= [s in times for s in self.sharding]
            possible[k, 0] &= not self.kinds[k].tables
        return possible

    @cached_property
    def work(self) -> F64:
        """t_kc [s]; 0 if not allowed."""
        values = np.zeros(self.allowed.shape)
        for k, times in enumerate(self.measured):
            values[k] = [times.get(s, 0.0) for s in self.sharding]
        return np.where(self.allowed, values, 0.0)

    def traffic(self, kind: int, way: int) -> Traffic:
        """Point-to-point bytes, ``(n, n)``, and groups of one part."""
        job = self.kinds[kind]
        if self.ways[way] == "replicated":
            return traffic_of(job, self.pool.n, "data")
        return traffic_of(job, self.pool.n, "hybrid", self.sharding[way] or 2)

    @cached_property
    def patterns(self) -> dict[tuple[int, int], Traffic]:
        """Traffic of every allowed kind and way."""
        return {(k, c): self.traffic(k, c) for k, c in np.argwhere(self.allowed).tolist()}

    @cached_property
    def reduced(self) -> F64:
        """R_kc [bytes]: k servers that sum w numbers of 4 bytes send 8 (k - 1) w, a whole number."""
        values = np.zeros(self.allowed.shape)
        for (k, c), (_, groups) in self.patterns.items():
            values[k, c] = round(sum(group.total for group in groups))
        return values

    @cached_property
    def direct(self) -> F64:
        """A_kc [bytes]."""
        values = np.zeros(self.allowed.shape)
        for (k, c), (matrix, _) in self.patterns.items():
            values[k, c] = matrix.sum()
        return values

    @cached_property
    def hops(self) -> F64:
        """alpha_c A_kc [bytes]: point-to-point byte-hops."""
        if self.alpha > 0:
            return self.alpha * self.direct
        values = np.zeros(self.allowed.shape)
        for (k, c), (matrix, _) in self.patterns.items():
            values[k, c] = travelled(matrix, self.pool.degree)
        return values

    @cached_property
    def cost(self) -> F64:
        """Time of one part [s], ``(K, C)``; 0 if not allowed."""
        return np.asarray(self.work + (self.reduced + self.hops) / (self.pool.n * self.pool.degree * self.bandwidth))

    @cached_property
    def held(self) -> F64:
        """W_kc [bytes]."""
        values = np.zeros(self.allowed.shape)
        for k, c in self.patterns:
            values[k, c] = float(self.weights(k, c)) * self.weight_bytes
        return values

    def weights(self, k: int, c: int) -> Fraction:
        """Weights of one part on the fullest server."""
        kind = self.kinds[k]
        if self.ways[c] == "placed":
            return Fraction(max(-(-t.count // self.pool.n) * t.rows * t.columns for t in kind.tables))
        return Fraction(kind.dense_weights + kind.table_weights) / (self.sharding[c] or 1)

    def job_pool(self, x: I64) -> ServerPool:
        """Build the pool with the traffic of a strategy, ``(K, C)``; groups with the same members are merged."""
        matrix = np.zeros((self.pool.n, self.pool.n))
        together: dict[tuple[int, ...], float] = {}
        for (k, c), (part, groups) in self.patterns.items():
            if x[k, c]:
                matrix += x[k, c] * part
                for group in groups:
                    together[group.members] = together.get(group.members, 0.0) + float(x[k, c]) * group.transfer
        return ServerPool(
            self.pool.n, self.pool.degree, matrix, groups=[AllReduceGroup(m, size) for m, size in together.items()]
        )

    def time(self, x: F64) -> float:
        """Time by Eq. (1) with the alphas of the data [s]."""
        return self.computing + float((self.cost * x).sum())

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            For anything but a pool whose traffic is a training job, parameters out of range, or too little memory.
        BadInput
            If there are no measurements for ``operators=measured``.
        """
        pool = server_pool(instance, NAME)
        numbers, family = cls._completed(parameters), dict(pool.parameters)
        measured = numbers.pop("operators") == "measured"
        name = str(family.get("traffic", ""))
        if name not in JOBS:
            msg = f"{NAME}: the traffic of {pool.spec} is not a training job; use traffic= one of {', '.join(JOBS)}"
            raise NotApplicable(msg)
        if pool.n > MOST_SERVERS:
            msg = f"{NAME}: the traffic of {pool.n} servers is too large to list; use at most {MOST_SERVERS}"
            raise NotApplicable(msg)
        _refuse_numbers(numbers)
        given_job = name, str(family.get("section") or "5.3"), int(family.get("batch") or 0)
        times: tuple[dict[int, float], ...] = ()
        if measured:
            result, rest = measured_kinds(*given_job, pool.n)
            kinds, count = tuple(kind.job for kind in result), [kind.count for kind in result]
            times = tuple(kind.seconds for kind in result)
            numbers["computing"] += rest
        else:
            kinds, count = _parts(training_job(*given_job))
        divisors = [s for s in range(2, pool.n + 1) if pool.n % s == 0]
        ways = ("replicated", "placed", *(f"shards={s}" for s in divisors))
        data = cls(
            pool,
            kinds,
            np.array(count, dtype=np.int64),
            ways,
            (0, 0, *divisors),
            numbers["bandwidth"],
            numbers["memory"] * 2**30,
            numbers["weight_bytes"],
            numbers["computing"],
            numbers["alpha"],
            times,
        )
        least = float(data.count @ np.where(data.allowed, data.held, np.inf).min(axis=1))
        if 0 < data.memory < least:
            msg = (
                f"{NAME}: {name} needs at least {least / 2**30:.4g} GiB per server; raise memory, or set 0 for no limit"
            )
            raise NotApplicable(msg)
        return data

    def derived(self) -> list[Fraction]:
        """Time of one part in every way, and its share of the memory."""
        rate = self.pool.n * self.pool.degree * rounding.entered(self.bandwidth)
        slow = rounding.entered(self.alpha) if self.alpha > 0 else Fraction(1)
        moved = self.direct if self.alpha > 0 else self.hops
        parts = (array[self.allowed].tolist() for array in (self.work, self.reduced, moved))
        results = [
            rounding.measured(t) + (rounding.entered(r) + slow * rounding.entered(a)) / rate
            for t, r, a in zip(*parts, strict=True)
        ]
        if self.memory:
            each = rounding.entered(self.weight_bytes) / rounding.entered(self.memory / 2**30) / 2**30
            results += [each * self.weights(k, c) for k, c in np.argwhere(self.allowed).tolist()]
        return results

    def sets(self) -> dict[str, Sequence[Any]]:
        """Kinds of parts, and ways to place one."""
        return {"kind": range(len(self.kinds)), "way": self.ways}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, over the ways that a kind can be placed in."""
        b, places = Cvx(self), Index.of_mask("kind way", self.allowed)
        kinds, at = Index.grid(kind=len(self.kinds)), (places["kind"], places["way"])
        x = b.var("x", upper=np.broadcast_to(self.count[:, None], self.allowed.shape), integer=True, over=places)
        b.row("parts", kinds.of(places) @ x == self.count)
        if self.memory:
            b.row("memory", self.held[at] / self.memory @ x <= 1)
        return b.minimize(self.cost[at] @ x + self.computing)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``x[k,c]`` with c the name of a way, ``parts[k]``, ``memory``."""
        from pyomo.core import quicksum

        b, n, M = Pyo(self), self.pool.n, self.memory
        K, C = b.sets("kind", "way")
        allowed, t, R, A, W = (
            entries(array, K, C) for array in (self.allowed, self.work, self.reduced, self.hops, self.held)
        )
        m, rate = self.count.tolist(), n * self.pool.degree * self.bandwidth
        most = np.broadcast_to(self.count[:, None], self.allowed.shape)
        x = b.var("x", upper=most, integer=True, where=lambda *kc: allowed[kc])
        b.row("parts", lambda k: quicksum(x[k, c] for c in C) == m[k])
        if M:
            b.row("memory", lambda: quicksum(W[kc] / M * x[kc] for kc in x) <= 1)
        return b.minimize(self.computing + quicksum((t[kc] + (R[kc] + A[kc]) / rate) * x[kc] for kc in x))

    def arrays(self, _names: Collection[str]) -> dict[str, Array]:
        """Shape of x, by kinds of parts and ways to place one."""
        parts = [
            *(f"layer of {one.weights} weights" for kind in self.kinds for one in kind.layers),
            *(f"{one.count} tables of {one.rows} x {one.columns}" for kind in self.kinds for one in kind.tables),
        ]
        axes = Axis("part", self.allowed.shape[0], parts), Axis("placement", self.allowed.shape[1], self.ways)
        return {"x": Array(axes, unit="parts")}

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone; memory relative to the limit."""
        x = np.asarray(values.get("x", ()), dtype=float)
        blocks = ("parts", "integer", "nonnegative", "allowed", "memory")
        if x.shape != self.allowed.shape:
            return dict.fromkeys(blocks, np.inf)
        if not np.isfinite(x[self.allowed]).all():
            return dict.fromkeys(blocks, np.inf)
        inside = np.where(self.allowed, x, 0.0)
        outside = np.nan_to_num(np.where(self.allowed, 0.0, x))
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

    def bounds(self) -> list[Bound]:
        """Bound of every kind in its cheapest way, and a Lagrangian bound with the best memory price of all ratios."""
        cost, held = (np.where(self.allowed, array, np.inf) for array in (self.cost, self.held))
        cheapest = rounding.sum_down([self.computing, rounding.dot_down(self.count, cost.min(axis=1))])
        pick = np.argmin(cost, axis=1)
        fits = self.memory <= 0 or float(self.count @ held[np.arange(len(pick)), pick]) <= self.memory
        result = [Bound("separable", cheapest, "every kind is placed in its cheapest way", "topoopt", exact=fits)]
        if not fits:

            def priced(price: float) -> F64:
                return np.where(self.allowed, rounding.down(self.cost + price * self.held, 2), np.inf)

            prices = [0.0]
            for k in range(len(self.kinds)):
                c, h = self.cost[k, self.allowed[k]], self.held[k, self.allowed[k]]
                rise, fall = c[:, None] - c[None, :], h[None, :] - h[:, None]
                prices += (rise[fall > 0] / fall[fall > 0]).tolist()
            best = max(
                rounding.sum_down(
                    [
                        self.computing,
                        rounding.dot_down(self.count, priced(price).min(axis=1)),
                        -float(rounding.up(price * self.memory)),
                    ]
                )
                for price in prices
                if price >= 0
            )
            result.append(Bound("lagrangian", best, "Lagrangian relaxation of the memory limit", "topoopt"))
        return result

    def describe(self, values: Mapping[str, F64]) -> dict[str, Json]:
        """Summary of a verified strategy: bytes, memory, and parts by way."""
        x = np.where(self.allowed, np.rint(np.nan_to_num(np.asarray(values["x"], dtype=float))), 0.0)
        return {
            "all_reduce_bytes": float((self.reduced * x).sum()),
            "direct_bytes": float((self.direct * x).sum()),
            "memory_gib": float((self.held * x).sum()) / 2**30,
            "computing_time": self.computing + float((self.work * x).sum()),
            **{f"parts {way}": int(total) for way, total in zip(self.ways, x.sum(axis=0), strict=True) if total},
        }

    def estimate(self) -> dict[str, int]:
        """Size of the model."""
        cells, limit = int(self.allowed.sum()), int(self.memory > 0)
        held = int((self.held[self.allowed] != 0).sum()) * limit
        return {
            "variables": cells,
            "constraints": len(self.kinds) + limit,
            "nonzeros": cells + held,
            "integers": cells,
        }

    def closed_forms(self) -> list[Bound]:
        """The exact ones among the bounds."""
        return self.bounds()


def _refuse_numbers(numbers: Mapping[str, float]) -> None:
    """Refuse numbers among the parameters that are out of range.

    Raises
    ------
    NotApplicable
        If one is.
    """
    for key, value in numbers.items():
        positive = key in {"bandwidth", "weight_bytes"}
        if not 0 <= value < np.inf or (positive and value == 0):
            msg = f"{NAME}: {key}={value}; use a finite number {'above 0' if positive else 'of at least 0'}"
            raise NotApplicable(msg)
    if numbers["memory"] == 0 and numbers["weight_bytes"] != 8.0:
        msg = f"{NAME}: weight_bytes={numbers['weight_bytes']:g} has no effect without a limit on memory; set memory"
        raise NotApplicable(msg)


def _parts(job: TrainingJob) -> tuple[tuple[TrainingJob, ...], list[int]]:
    """The different layers of a job and its tables, each as a job of its own, and how often the job has them."""
    bare = replace(job, layers=(), tables=())
    layers = list(dict.fromkeys(job.layers))
    kinds = [replace(bare, layers=(one,)) for one in layers] + [replace(bare, tables=(one,)) for one in job.tables]
    return tuple(kinds), [job.layers.count(one) for one in layers] + [1] * len(job.tables)


FORMULATION = Plane
