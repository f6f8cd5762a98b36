r"""A training iteration on circuits: all-reduces in batches at the boundaries of layers, beside computing.

Source  LuMorph, appendix C (priority, batches at the boundaries of layers with transfers, overlap with computing, one
        queue)
Sets    b in 0..S-1 stages in the order of time: computing, then transfers between layers (the last may have none); k, j
        in 0..K-1 calls of more than one GPU, longest first; g GPUs
Data    c_b computing [us]; l_b transfers between layers [us]: those of the instance, or else by the authors' code
        (:func:`opticoll.formulations.lumorph.cost_formulas.layer_time`); p(b) the last stage before b that has some;
        rho_k stage at whose end call k is ready; G_k and t_k GPUs and time [us] of call k, as in
        ``lumorph.co-scheduling``; times to 0.001 us
Vars    x[b,j,k] in {0,1} call k runs after stage b, in the batch whose first (longest) call is j; for b at least rho_j
        and rho_k, and j = k, or j < k where G_j and G_k are disjoint; s[b] >= 0 when the circuits turn to the transfers
        of stage b [us]; z >= 0 the end of the iteration [us]. In files, x is a flat list ordered by b, k, then j

min z  s.t.
    once[k]       sum_bj x[b,j,k] = 1
    apart[b,g,j]  sum_{k > j: g in G_k} x[b,j,k] - x[b,j,j] <= 0     for g not in G_j that some such k uses
    computed[b]   s[b] - s[p(b)] >= l_{p(b)} + sum_{p(b)<i<=b} c_i   without p(b): s[b] >= sum_{i<=b} c_i
    free[b]       s[b] - s[b-1] - sum_j t_j x[b-1,j,j] >= l_{b-1}    for b > 0
    end           z - s[S-1] - sum_j t_j x[S-1,j,j] >= l_{S-1}

The circuits of all GPUs are one device, which sets the circuits of one round after the other: at a boundary the
transfers first, since the next stage computes on what they bring, then the batches, while that stage computes. A batch
is not interrupted. So transfers wait for the batches of the boundary before, if these outlast computing. A batch of
calls that share no GPU takes as long as its longest call.

Stages of the instance without transfers are one stage with the next that has some, as the paper batches calls "at the
boundaries of layers which have LAYERTOLAYER transfers"; their calls are ready at its end. With ``boundaries=stages``
they remain, and batches may start at the end of any stage, as in the one queue with which the paper simulates.
Computing waits for transfers alone, so p(b) is not always b - 1 then.

``synchronise`` is the time in which the GPUs agree with the controller of their rack before each round that changes
circuits (appendix C); it is added to every such round of calls and transfers whose times are not known from elsewhere.

``first=calls`` sends the batches of a boundary before its transfers: the left side of ``computed`` then has
- sum_j t_j x[p(b),j,j] too. With boundaries at transfers alone, nothing overlaps then, and z is sum_b (c_b + l_b) and
the optimum of ``lumorph.co-scheduling``. ``overlap=false`` leaves all calls to the end of the iteration, and
``batches=false`` has one call a batch; with both, this is what the paper calls the naive approach.

Bounds. *device*: the calls that are ready at b or later start after sum_{i<=b} c_i + sum_{i<b} l_i; those of one GPU
take turns, with l_b, ..., l_{S-1}. *computing*: sum_b c_b + l_b.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph import iteration_solution
from opticoll.formulations.lumorph.timed_calls import COSTS, timed_calls, timed_stages
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.topology import F64, I64, Mask


@dataclass(frozen=True, eq=False)
class StagedCalls(Formulation):
    """Data of the model: stages in the order of time, and calls, longest first.

    ``computing``, ``transfers`` [us], ``(S,)``; ``member[k, g]`` is whether GPU g takes part in call k, ``(K, n)``;
    ``time`` [us], ``ready`` and ``call``, the number in the instance, ``(K,)`` each; ``overlap``, ``batches`` and
    ``first`` are the parameters; ``boundaries`` has decided which stages there are.
    """

    name = "lumorph.iteration"
    where = "appendix C"
    example = "training:random,gpus=8,calls=6,seed=3,stages=3"
    problem = "MILP"
    parameters = (
        *COSTS,
        Parameter("overlap", bool, default=True, help="all-reduces beside computing; false: all at the end"),
        Parameter("batches", bool, default=True, help="calls that share no GPU at the same time; false: one at a time"),
        Parameter(
            "first",
            str,
            default="transfers",
            help="what is sent first at a boundary: transfers between layers, or all-reduces",
            choices=("transfers", "calls"),
            only_with={"overlap": (True,)},
        ),
        Parameter(
            "boundaries",
            str,
            default="transfers",
            help="where batches may start: at the ends of stages with transfers, or of all stages",
            choices=("transfers", "stages"),
        ),
    )
    meaning = "time of the iteration [us]"
    variables: ClassVar = {"x": ("choice",), "s": ("stage",), "z": ()}
    constraints: ClassVar = {
        "once": ("call",),
        "apart": ("stage", "gpu", "call"),
        "computed": ("stage",),
        "free": ("stage",),
        "end": (),
    }
    _beside = (iteration_solution,)

    computing: F64
    transfers: F64
    member: Mask
    time: F64
    ready: I64
    call: I64
    overlap: bool
    batches: bool
    first: str

    @property
    def stages(self) -> int:
        """S."""
        return int(self.computing.size)

    @cached_property
    def before(self) -> I64:
        """p(b), the last stage before b with transfers; -1 without one, ``(S,)``."""
        sends = np.where(self.transfers > 0, np.arange(self.stages), -1)
        return np.concatenate([[-1], np.maximum.accumulate(sends)[:-1]]).astype(np.int64)

    @cached_property
    def gap(self) -> F64:
        """The least time between s[p(b)], or the start, and s[b], without calls [us], ``(S,)``."""
        sent = np.where(self.before >= 0, self.transfers[self.before], 0.0)
        done = np.concatenate([[0.0], np.cumsum(self.computing)])
        return np.round(sent + done[1:] - done[self.before + 1], 3)

    @cached_property
    def choices(self) -> tuple[I64, I64, I64]:
        """b, j and k of every x, in order."""
        shared = self.member.astype(np.float32)
        free = np.triu(shared @ shared.T == 0, 1) & self.batches
        k, j = np.nonzero((free | np.eye(self.time.size, dtype=bool)).T)
        first = np.maximum(self.ready[j], self.ready[k]) if self.overlap else np.full(j.size, self.stages - 1)
        b, pair = np.nonzero(np.arange(self.stages)[:, None] >= first)
        return b.astype(np.int64), j[pair].astype(np.int64), k[pair].astype(np.int64)

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        member, time, call = timed_calls(instance, given, cls.name)
        computing, transfers, ready = timed_stages(instance, given, cls.name)
        switches = (given["overlap"], given["batches"], given["first"])
        return cls(computing, transfers, member, time, ready[call], call, *switches)

    def sets(self) -> dict[str, Sequence[Any]]:
        """Stages, GPUs, calls, and the choices (b,j,k)."""
        (count, gpus), (b, j, k) = self.member.shape, self.choices
        choices = Index.table("b j k", {"b": b, "j": j, "k": k})
        return {"stage": range(self.stages), "gpu": range(gpus), "call": range(count), "choice": choices}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, S, (stage, j, k), t = Cvx(self), self.stages, self.choices, self.time
        X = Index.table("choice", {"choice": np.arange(j.size), "stage": stage, "j": j, "k": k})
        calls, stages = Index.grid(call=t.size), Index.grid(stage=S)
        x, s, z = b.var("x", upper=1, integer=True), b.var("s"), b.var("z")
        own, later = X.where(j == k), X.where(j != k)
        b.row("once", calls.of(X, k="call") @ x == 1)
        on_gpu = Index.table("k gpu", dict(zip(("k", "gpu"), np.nonzero(self.member), strict=True)))
        users = later.join(on_gpu)
        at = users.given(call=users["j"]).by("stage gpu call")
        b.row("apart", (at.of(users, j="call") - at.of(own, j="call")) @ x <= 0, over=at)
        busy = stages.of(own) @ cp.multiply(t[j], x)  # by all batches of a stage
        p = stages.of(stages, stage=self.before)
        waiting = p @ busy if self.first == "calls" else 0
        b.row("computed", s - p @ s - waiting >= self.gap)
        if S > 1:
            b.row("free", s[1:] - s[:-1] - busy[:-1] >= self.transfers[:-1], over=stages.where(stages["stage"] > 0))
        b.row("end", z - s[S - 1] - busy[S - 1] >= self.transfers[S - 1])
        return b.minimize(z)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, constraint by constraint as in the module docstring."""
        b, S, K, t = Pyo(self), range(self.stages), range(self.time.size), self.time.tolist()
        gap, sent, ready = self.gap.tolist(), self.transfers.tolist(), self.ready.tolist()
        previous, last = self.before.tolist(), self.stages - 1
        groups = [frozenset(np.flatnonzero(row).tolist()) for row in self.member]
        together = [(k, k) for k in K]
        if self.batches:
            together += [(j, k) for j, k in combinations(K, 2) if groups[j].isdisjoint(groups[k])]
        first = {(j, k): max(ready[j], ready[k]) if self.overlap else last for j, k in together}
        X = [(i, j, k) for (j, k), earliest in first.items() for i in S[earliest:]]
        runs: dict[int, list[tuple[int, int, int]]] = {}
        users: dict[tuple[int, int, int], list[tuple[int, int, int]]] = {}
        heads = {i: [j for stage, j, k in X if stage == i and j == k] for i in S}
        for i, j, k in X:
            runs.setdefault(k, []).append((i, j, k))
            for g in groups[k] if j < k else ():
                users.setdefault((i, g, j), []).append((i, j, k))
        x, s, z = b.var("x", upper=1, integer=True, over=X), b.var("s"), b.var("z")

        def batches(i: int) -> Any:
            return b.sum(t[j] * x[i, j, j] for j in heads[i])

        def computed(i: int) -> Any:
            p = previous[i]
            if p < 0:
                return s[i] >= gap[i]
            return s[i] - s[p] - (batches(p) if self.first == "calls" else 0) >= gap[i]

        b.row("once", lambda k: b.sum(x[key] for key in runs[k]) == 1)
        b.row("apart", lambda i, g, j: b.sum(x[key] for key in users[i, g, j]) <= x[i, j, j], over=users)
        b.row("computed", computed)
        b.row("free", lambda i: s[i] - s[i - 1] - batches(i - 1) >= sent[i - 1], where=lambda i: i > 0)
        b.row("end", lambda: z - s[last] - batches(last) >= sent[last])
        return b.minimize(z)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone; of times relative to the best bound on z."""
        (b, j, k), x = self.choices, np.asarray(values["x"], dtype=float)
        s, z = np.asarray(values["s"], dtype=float), float(np.asarray(values["z"]))
        count, unit = self.time.size, max(bound.value for bound in self.bounds())
        use, later = np.zeros((self.stages, count, self.member.shape[1])), j != k
        np.add.at(use, (b[later], j[later]), x[later, None] * self.member[k[later]])
        taken, busy = np.zeros((self.stages, count)), np.zeros(self.stages)
        taken[b[~later], j[~later]] = x[~later]
        np.add.at(busy, b[~later], self.time[j[~later]] * x[~later])
        computed, device, at = -np.inf, -np.inf, 0.0
        for stage in range(self.stages):
            start, previous = float(s[stage]), int(self.before[stage])
            begin = 0.0
            if previous >= 0:
                begin = float(s[previous] + self.transfers[previous])
                begin += float(busy[previous]) if self.first == "calls" else 0.0
            work = float(self.computing[previous + 1 : stage + 1].sum())
            computed = max(computed, begin + work - start)
            device = max(device, at + (float(busy[stage - 1]) if stage else 0.0) - start)
            at = start + float(self.transfers[stage])
        late = float(s.min())
        return {
            "binary": float(np.minimum(np.abs(x), np.abs(x - 1.0)).max()),
            "once": float(np.abs(np.bincount(k, x, count) - 1.0).max()),
            "apart": float(np.maximum(use - taken[:, :, None], 0.0).max()),
            "computed": max(computed, -late, 0.0) / unit,
            "free": max(device, 0.0) / unit,
            "end": max(at + busy[-1] - z, 0.0) / unit,
        }

    def objective(self, values: Mapping[str, F64]) -> float:
        """The given z; :meth:`residuals` checks that the iteration ends by then."""
        return float(np.asarray(values["z"]))


FORMULATION = StagedCalls
