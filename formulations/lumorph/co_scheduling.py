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
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph.cost_formulas import LUMORPH_2, LUMORPH_4, RING, formula
from opticoll.formulations.model import Bound, CvxpyModel, Formulation, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.variables import Array, Axis
from opticoll.instances.training.training_iteration import TrainingIteration

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from opticoll.formulations.lumorph.cost_formulas import Variant
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.types import Json, Settings

NAME = "lumorph.co-scheduling"
#: Maximum number of calls: their pairs are listed.
MOST_CALLS = 2000
_ALGORITHMS = {"lumorph-4": LUMORPH_4, "lumorph-2": LUMORPH_2, "ring": RING}
#: Parameters that determine the times of calls.
COSTS = (
    Parameter(
        "algorithm",
        str,
        default="lumorph-4",
        help="algorithm that determines the times",
        choices=tuple(_ALGORITHMS),
    ),
    Parameter(
        "variant",
        str,
        default="plotted",
        help="the authors' costs as printed, plotted or coded",
        choices=("printed", "plotted", "coded"),
    ),
)


def timed_calls(instance: object, parameters: Settings, formulation: str) -> tuple[Mask, F64, I64]:
    """Calls of more than one GPU, longest first: ``member`` ``(K, n)``, ``time`` [us] and ``call``, ``(K,)`` each.

    Raises
    ------
    NotApplicable
        For anything but a training iteration, or one without calls of more than one GPU, or with too many.
    """
    if not isinstance(instance, TrainingIteration):
        msg = f"{formulation}: needs an iteration such as training:bert,gpus=256, not {type(instance).__name__}"
        raise NotApplicable(msg)
    shared = [(k, call) for k, call in enumerate(instance.calls) if len(call.ranks) > 1]
    if not 0 < len(shared) <= MOST_CALLS:
        msg = f"{formulation}: {instance.spec} has {len(shared)} calls of more than one GPU; use 1 to {MOST_CALLS}"
        raise NotApplicable(msg)
    name, variant = _ALGORITHMS[str(parameters["algorithm"])], cast("Variant", parameters["variant"])
    cost = {size: formula(name, 1 << (size - 1).bit_length(), variant) for size in {len(c.ranks) for _, c in shared}}
    times = [cost[len(call.ranks)].time(call.size) if call.time_us is None else call.time_us for _, call in shared]
    time = np.array([round(each, 3) for each in times])
    member = np.zeros((len(shared), instance.n), dtype=bool)
    for row, (_, call) in enumerate(shared):
        member[row, list(call.ranks)] = True
    order = np.argsort(-time, kind="stable")
    return member[order], time[order], np.array([k for k, _ in shared])[order]


@dataclass(frozen=True, eq=False)
class CallBatches(Formulation):
    """Data of the model: GPUs and times of the calls, longest first.

    ``member[k, g]`` is whether GPU g takes part in call k, ``(K, n)``; ``time`` [us], ``(K,)``; ``call[k]`` is the
    number of the call in the instance.
    """

    name = NAME
    where = "appendix C"
    example = "training:random,gpus=8,calls=6,seed=3"
    sense = "min"
    problem = "MILP"
    parameters = COSTS
    meaning = "time of all batches [us]"
    variables: ClassVar = {"x": ("pair",)}
    constraints: ClassVar = {"once": ("call",), "apart": ("gpu", "call")}

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

    @property
    def sequential(self) -> float:
        """Time of all calls run sequentially [us]."""
        return float(self.time.sum())

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            For anything but a training iteration, or one without calls of more than one GPU, or with too many.
        """
        return cls(*timed_calls(instance, cls._completed(parameters), NAME))

    def sets(self) -> dict[str, Sequence[Any]]:
        """Calls, GPUs, and the pairs (j,k) that may share a batch."""
        count, gpus = self.member.shape
        pairs = list(zip(*(one.tolist() for one in self.pairs), strict=True))
        return {"call": range(count), "gpu": range(gpus), "pair": pairs}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        b, (j, k) = Cvx(self), self.pairs
        pairs = Index.table("pair", {"pair": np.arange(j.size), "j": j, "k": k})
        calls, own = Index.grid(call=self.time.size), pairs.where(j == k)
        k_on_gpu = Index.table("k gpu", dict(zip(("k", "gpu"), np.nonzero(self.member), strict=True)))
        x = b.var("x", upper=1, integer=True)
        b.row("once", calls.of(pairs, k="call") @ x == 1)
        later = pairs.where(j != k).join(k_on_gpu)
        at = later.given(call=later["j"]).by("gpu call")
        b.row("apart", at.of(later, j="call") @ x <= at.of(own, j="call") @ x, over=at)
        return b.minimize((self.time @ calls.of(own, j="call")) @ x)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``x[j,k]``, ``once[k]``, ``apart[g,j]``."""
        from pyomo.core import quicksum

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
        b.row("once", lambda k: quicksum(x[j, k] for j in firsts[k]) == 1)
        b.row("apart", lambda g, j: quicksum(x[j, k] for k in users[g, j]) <= x[j, j], over=users)
        return b.minimize(quicksum(t[j] * x[j, j] for j in K))

    def estimate(self) -> dict[str, int]:
        """Size of the model."""
        j, k = self.pairs
        later = j != k
        crossed = self.member[k[later]]
        which, gpu = np.nonzero(crossed)
        rows = np.unique(gpu * self.time.size + j[later][which]).size
        return {
            "variables": j.size,
            "constraints": self.time.size + rows,
            "nonzeros": j.size + which.size + rows,
            "integers": j.size,
        }

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """The choice x, of the first call of the batch and the call, by their numbers in the instance."""
        first, call = (self.call[one].tolist() for one in self.pairs)
        return {"x": Array((Axis("pair", len(call), {"first": first, "call": call}),))}

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, absolute, from numpy alone."""
        (j, k), x = self.pairs, np.asarray(values["x"], dtype=float)
        if x.shape != j.shape or not np.isfinite(x).all():
            return dict.fromkeys(("binary", "once", "apart"), np.inf)
        count = self.time.size
        use, later = np.zeros((count, self.member.shape[1])), j != k
        np.add.at(use, j[later], x[later, None] * self.member[k[later]])
        return {
            "binary": float(np.minimum(np.abs(x), np.abs(x - 1.0)).max()),
            "once": float(np.abs(np.bincount(k, x, count) - 1.0).max()),
            "apart": float(np.maximum(use - x[j == k][:, None], 0.0).max()),
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """Total time of the batches [us]; infinite for values of the wrong shape."""
        (j, k), x = self.pairs, np.asarray(values["x"], dtype=float)
        return float(self.time @ x[j == k]) if x.shape == j.shape else np.inf

    def bounds(self) -> list[Bound]:
        """Bound from the calls of the busiest GPU, which run sequentially."""
        busy = self.time @ self.member
        worst = int(busy.argmax())
        value = float(rounding.down(busy[worst], self.time.size + 1))
        reason = f"the {int(self.member[:, worst].sum())} calls of GPU {worst} take turns"
        return [Bound("busiest-gpu", value, reason, "lumorph")]

    def metrics(self, value: float | None) -> dict[str, Json]:
        """Sequential time, the share of it that is saved, and whether all calls conflict."""
        whole = self.sequential
        return {
            "sequential_us": whole,
            "saved": None if value is None else round(max(0.0, 1.0 - value / whole), 9),
            "calls": int(self.time.size),
            "conflicts": int(np.triu(self.conflicts, 1).sum()),
            "all_conflict": bool(self.conflicts.all()),
        }


def values_of(data: CallBatches, batches: list[list[int]]) -> dict[str, F64]:
    """The values x of batches, given as lists of calls by their numbers in the model."""
    j, k = data.pairs
    first = np.full(data.time.size, -1)
    for batch in batches:
        first[batch] = min(batch)
    return {"x": (first[k] == j).astype(float)}


def decode(data: CallBatches, values: Mapping[str, F64]) -> list[list[int]]:
    """Return the batches, each a list of call numbers in the instance, in the order of their first calls."""
    (j, k), x = data.pairs, np.asarray(values["x"], dtype=float)
    taken = x > 0.5
    return [data.call[k[taken & (j == first)]].tolist() for first in np.unique(j[taken]).tolist()]


FORMULATION = CallBatches
