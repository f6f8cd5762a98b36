r"""Batches of all-reduces that run at the same time because they share no GPU.

Source  LuMorph, appendix C (conflict graph, independent sets); Guan & Zhu 1997 (max-coloring)
Sets    k, j in 0..K-1 calls of more than one GPU, longest first; g GPUs
Data    G_k the GPUs of call k; t_k its time [us], to 0.001 us: that of the instance, or else from the authors' costs
        with ``algorithm`` and ``variant`` (:mod:`opticoll.formulations.lumorph.cost_formulas`; a group takes the time
        of the next power of two)
Vars    x[j,k] in {0,1} call k runs in the batch whose first (longest) call is j; for j = k, and for j < k where G_j and
        G_k are disjoint. In files, x is a flat list ordered by k, then j

min sum_j t_j x[j,j]  s.t.
    once[k]      sum_j x[j,k] = 1
    apart[g,j]   sum_{k > j: g in G_k} x[j,k] - x[j,j] <= 0      for g not in G_j that some such k uses

A batch is an independent set of the conflict graph, whose edges are the pairs of calls with a common GPU, and takes as
long as its longest call. Calls of one GPU send nothing and are omitted; all are ready at the same time, as at the
end of an iteration.

Bound: the calls of one GPU take turns, sum_{k: g in G_k} t_k for every g. Where all calls use all GPUs, as in the
authors' logs, it equals the sequential time, sum_k t_k: co-scheduling gains nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph import co_scheduling_solution
from opticoll.formulations.lumorph.timed_calls import COSTS, timed_calls
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.topology import F64, I64, Mask


@dataclass(frozen=True, eq=False)
class CallBatches(Formulation):
    """Data of the model: GPUs and times of the calls, longest first.

    ``member[k, g]`` is whether GPU g takes part in call k, ``(K, n)``; ``time`` [us], ``(K,)``; ``call[k]`` is the
    number of the call in the instance.
    """

    name = "lumorph.co-scheduling"
    where = "appendix C"
    example = "training:random,gpus=8,calls=6,seed=3"
    problem = "MILP"
    parameters = COSTS
    meaning = "time of all batches [us]"
    variables: ClassVar = {"x": ("pair",)}
    constraints: ClassVar = {"once": ("call",), "apart": ("gpu", "call")}
    _beside = (co_scheduling_solution,)

    member: Mask
    time: F64
    call: I64

    @cached_property
    def conflicts(self) -> Mask:
        """Whether two calls share a GPU, ``(K, K)``."""
        shared = self.member.astype(np.float32)
        return shared @ shared.T > 0

    @cached_property
    def pairs(self) -> tuple[I64, I64]:
        """The first call j and the call k of every variable x[j,k], ``(P,)`` each, by k, then j."""
        free = np.triu(~self.conflicts, 1) | np.eye(self.time.size, dtype=bool)
        k, j = np.nonzero(free.T)
        return j.astype(np.int64), k.astype(np.int64)

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        return cls(*timed_calls(instance, given, cls.name))

    def sets(self) -> dict[str, Sequence[Any]]:
        """Calls, GPUs, and the pairs (j,k) that may share a batch."""
        (count, gpus), (j, k) = self.member.shape, self.pairs
        return {"call": range(count), "gpu": range(gpus), "pair": Index.table("j k", {"j": j, "k": k})}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        b, (j, k), t = Cvx(self), self.pairs, self.time
        pairs = Index.table("pair", {"pair": np.arange(j.size), "j": j, "k": k})
        calls, own = Index.grid(call=t.size), pairs.where(j == k)
        k_on_gpu = Index.table("k gpu", dict(zip(("k", "gpu"), np.nonzero(self.member), strict=True)))
        x = b.var("x", upper=1, integer=True)
        b.row("once", calls.of(pairs, k="call") @ x == 1)
        later = pairs.where(j != k).join(k_on_gpu)
        at = later.given(call=later["j"]).by("gpu call")
        b.row("apart", (at.of(later, j="call") - at.of(own, j="call")) @ x <= 0, over=at)
        return b.minimize((t @ calls.of(own, j="call")) @ x)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``x[j,k]``, ``once[k]``, ``apart[g,j]``."""
        b, t = Pyo(self), self.time.tolist()
        groups = [frozenset(np.flatnonzero(row).tolist()) for row in self.member]
        K = range(len(groups))
        P = [(j, k) for k in K for j in range(k + 1) if j == k or not groups[j] & groups[k]]
        firsts: dict[int, list[int]] = {k: [] for k in K}
        users: dict[tuple[int, int], list[int]] = {}
        for j, k in P:
            firsts[k].append(j)
            for g in groups[k] if j < k else ():
                users.setdefault((g, j), []).append(k)
        x = b.var("x", upper=1, integer=True, over=P)
        b.row("once", lambda k: b.sum(x[j, k] for j in firsts[k]) == 1)
        b.row("apart", lambda g, j: b.sum(x[j, k] for k in users[g, j]) <= x[j, j], over=users)
        return b.minimize(b.sum(t[j] * x[j, j] for j in K))

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, absolute, from numpy alone."""
        (j, k), x = self.pairs, np.asarray(values["x"], dtype=float)
        count = self.time.size
        use, later = np.zeros((count, self.member.shape[1])), j != k
        np.add.at(use, j[later], x[later, None] * self.member[k[later]])
        return {
            "binary": float(np.minimum(np.abs(x), np.abs(x - 1.0)).max()),
            "once": float(np.abs(np.bincount(k, x, count) - 1.0).max()),
            "apart": float(np.maximum(use - x[j == k][:, None], 0.0).max()),
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Total time of the batches [us]."""
        (j, k), x = self.pairs, np.asarray(values["x"], dtype=float)
        return float(self.time @ x[j == k])


FORMULATION = CallBatches
