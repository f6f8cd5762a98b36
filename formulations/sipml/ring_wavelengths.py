r"""Wavelength assignment on an optical ring that minimizes the slowest transfer.

Source  SiP-ML, sections 3.1 and 3.3 (SiP-Ring; appendix A, with the paper's own program, is not available). Sets:
        Yetginer, Liu & Rouskas, J. Opt. Commun. Netw. 3(7), 2011
Sets    p = (i,j) in P pairs with traffic; d in {0 clockwise, 1 anticlockwise}; s segments of the ring, n per direction;
        w in 0 .. W-1 wavelengths
Data    V_p > 0 bytes, (|P|,); B = ``bandwidth`` of a circuit [bytes/s]; W wavelengths of every direction, on
        all its fibres
Vars    c_p in 1 .. high_p circuits of the pair, integer, (|P|,); t in 0 .. 1 the time T in units of max V / B;
        with ``model=sets``, whose size does not depend on W: walks k over circuits f_dkp >= 0, integer, idle segments
        idle_dka >= 0 and crossing circuits over_dp >= 0, integer;
        with ``model=arcs``: x_pdw in {0,1} circuit of p on wavelength w of direction d, (|P|, 2, W)

min (max V / B) t  s.t.
    chord[p,h]     t + v_p / (h (h+1)) c_p >= v_p (2h+1) / (h (h+1))    1 <= h < max(high_p, 2)
  model=sets
    walk[d,k,a]    inflow of f_dk, idle_dk and over_d at node a = their outflow    k <= a <= e_k; 0 < a < n for k = 0
    light[d]       sum of f_d0 and idle_d0 that start at node 0 + sum_p over_dp <= W
    serve[p]       c_p - sum_dk f_dkp - sum_d over_dp <= 0
  model=arcs
    free[d,s,w]    sum_{p over s} x_pdw <= 1
    serve[p]       c_p - sum_dw x_pdw <= 0

with v_p = V_p / max V: the chords of t >= v_p / c_p. high_p is the minimum number of circuits with which p meets the
bounds ``arc-load`` and ``cut`` on T, at most 2 W. A walk begins at node k, 0 or the head of a crossing circuit, and
ends at node e_k; walks and chords are defined in :mod:`opticoll.formulations.sipml`.

T, and ``transfer_s`` of the metrics, is in seconds if ``bandwidth`` is in bytes/s, and in bytes per circuit with the
default bandwidth of 1.

Bounds. For weights w_p >= 0, sum w_p c_p is at most W times (heaviest set clockwise + anticlockwise), which a dynamic
program finds. With circuits rounded up to integers this bounds T (``least_times``). Weights: shortest distances
(``arc-load``), pairs that leave an interval of nodes (``cut``: 2 W circuits), duals of ``serve`` (``sets``).

Every pair needs a circuit at all times, so the problem may be infeasible (``refute``). An assignment may also be given
as ``circuits``, (E, 3): pair, direction, wavelength. The checker reads either and tests every segment and wavelength
(``free``); walks are split into circuits first, which fails unless ``walk`` holds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.wavelengths import arcs_taken
from opticoll.formulations.sipml import ring_bounds, ring_solution, ring_traffic
from opticoll.formulations.sipml.chords import chord_index
from opticoll.formulations.sipml.transfers import Transfers, exact_chord_numbers
from opticoll.formulations.sipml.walks import Walks, ends_on_line, last_nodes, walks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opticoll.instances.topology import F64, I64

MODELS = ("sets", "arcs")


@dataclass(frozen=True, eq=False)
class RingTraffic(Formulation):
    """Data of the model."""

    name = "sipml.ring-wavelengths"
    where = "section 3.3 (A.1)"
    example = "wdm-ring:n=8,wavelengths=32"
    problem = "MILP"
    parameters = (
        Parameter(
            "model",
            str,
            default="sets",
            help="sets of disjoint arcs as walks, or wavelength by wavelength",
            choices=MODELS,
        ),
        Parameter(
            "wavelengths",
            int,
            default=0,
            help="wavelengths each way, on all fibres; 0: the ring's own, or a server's ports",
            least=0,
        ),
        *ring_traffic.PARAMETERS,
        Parameter("bandwidth", float, default=1.0, help="bytes/s of a circuit; 1: times in bytes per circuit"),
    )
    meaning = "time of the slowest transfer [bytes / circuit bandwidth]"
    variables: ClassVar = {
        "c": ("pair",),
        "t": (),
        "f": ("circuit",),
        "idle": ("idle",),
        "over": ("crossing",),
        "x": ("pair", "way", "wavelength"),
    }
    constraints: ClassVar = {
        "chord": ("pair", "count"),
        "walk": ("walk",),
        "light": ("way",),
        "free": ("way", "segment", "wavelength"),
        "serve": ("pair",),
    }
    _beside = (ring_traffic, ring_bounds, ring_solution)

    n: int
    wavelengths: int
    transfers: Transfers
    model: str

    distance_bound = cached_property(ring_bounds.distance_time)
    cut_bound = cached_property(ring_bounds.cut_time)
    least = cached_property(ring_bounds.least_ring_time)

    @cached_property
    def hops(self) -> I64:
        """Number of segments of every pair clockwise and anticlockwise, ``(|P|, 2)``."""
        onward = (self.transfers.target - self.transfers.source) % self.n
        return np.stack([onward, self.n - onward], axis=1)

    @cached_property
    def high(self) -> I64:
        """Maximum useful circuits of every pair: the needs at the analytic bound, ``(|P|,)``."""
        if not np.isfinite(self.least):
            return np.ones(self.transfers.pairs, dtype=np.int64)
        return np.minimum(self.transfers.needs(self.least), 2 * self.wavelengths)

    @cached_property
    def walks(self) -> Walks:
        """Index sets of ``model=sets``."""
        return walks(self.n, self.transfers.source, self.transfers.target)

    def sets(self) -> dict[str, Sequence[Any]]:
        """Pairs (i,j), numbers of circuits, directions, segments, wavelengths, and the walks."""
        moves, walk, most = self.transfers, self.walks, int(self.high.max())
        P = Index.table("i j", {"i": moves.source, "j": moves.target})
        whole = {"pair": P, "count": range(1, most + 1), "way": range(2), "segment": range(self.n)}
        if self.model == "arcs":
            return {**whole, "wavelength": range(self.wavelengths)}
        F, X = (
            one.given(i=moves.source[one["pair"]], j=moves.target[one["pair"]])
            for one in (walk.circuits, walk.crossings)
        )
        return {
            **whole,
            "circuit": F.keyed("way start i j"),
            "idle": walk.idle,
            "crossing": X.keyed("way i j"),
            "walk": walk.nodes,
        }

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        b, moves, W, walk = Cvx(self), self.transfers, self.wavelengths, self.walks
        pairs, ways = Index.grid(pair=moves.pairs), Index.grid(way=2)
        c, t = b.var("c", lower=1, upper=self.high, integer=True), b.var("t", upper=1)
        at = chord_index(self.high, self.name)
        v, h = moves.shares[at["pair"]], at["count"] + 1.0
        slope = v / (h * (h + 1))
        b.row("chord", t + at.of(pairs).multiply(slope[:, None]) @ c >= slope * (2 * h + 1), over=at)
        if self.model == "sets":
            F, H, X, N = walk.circuits, walk.idle, walk.crossings, walk.nodes
            f, over = b.var("f", integer=True), b.var("over", integer=True)
            idle = b.var("idle")
            arriving = N.of(F, head="node") @ f + N.of(H, head="node") @ idle + N.of(X, head="node") @ over
            leaving = N.of(F, tail="node") @ f + N.of(H, tail="node") @ idle + N.of(X, tail="node") @ over
            b.row("walk", arriving == leaving)
            first_f, first_idle = (one.where((one["start"] == 0) & (one["tail"] == 0)) for one in (F, H))
            b.row("light", ways.of(first_f) @ f + ways.of(first_idle) @ idle + ways.of(X) @ over <= W)
            b.row("serve", c <= pairs.of(F) @ f + pairs.of(X) @ over)
        else:
            circuits = Index.grid(pair=moves.pairs, way=2, wavelength=W)
            x = b.var("x", upper=1, integer=True, over=circuits)
            source, target = np.repeat(moves.source, 2), np.repeat(moves.target, 2)
            segment, _, owner = arcs_taken(self.n, source, target, np.tile([True, False], moves.pairs))
            uses = Index.table("pair way segment", {"pair": owner // 2, "way": owner % 2, "segment": segment})
            at = uses.by("way segment").join(Index.grid(wavelength=W)).keyed("way segment wavelength")
            b.row("free", at.of(circuits.join(uses)) @ x <= 1, over=at)
            b.row("serve", c <= pairs.of(circuits) @ x)
        return b.minimize(moves.unit_time * t)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``c[i,j]``, ``t``; ``f[d,k,i,j]``, ``idle[d,k,a]``, ``over[d,i,j]`` or ``x[i,j,d,w]``."""
        b, moves, n, W = Pyo(self), self.transfers, self.n, self.wavelengths
        P = list(zip(moves.source.tolist(), moves.target.tolist(), strict=True))
        v, high = (dict(zip(P, one.tolist(), strict=True)) for one in (moves.shares, self.high))
        c, t = b.var("c", lower=1, upper=self.high, integer=True), b.var("t", upper=1)
        b.row(
            "chord",
            lambda i, j, h: t + v[i, j] / (h * (h + 1)) * c[i, j] >= v[i, j] * (2 * h + 1) / (h * (h + 1)),
            where=lambda i, j, h: h < max(high[i, j], 2),
        )
        if self.model == "arcs":
            passing: dict[tuple[int, int], list[tuple[int, int]]] = {}  # segment s lies between nodes s and s + 1
            for i, j in P:
                for d, start, end in ((0, i, j), (1, j, i)):
                    for step in range((end - start) % n):
                        passing.setdefault((d, (start + step) % n), []).append((i, j))
            x = b.var("x", upper=1, integer=True)
            b.row(
                "free",
                lambda d, s, w: b.sum(x[i, j, d, w] for i, j in passing[d, s]) <= 1,
                where=lambda d, s, w: (d, s) in passing,
            )
            b.row("serve", lambda i, j: c[i, j] <= b.sum(x[i, j, d, w] for d in (0, 1) for w in range(W)))
            return b.minimize(moves.unit_time * t)

        tail, head = ends_on_line(P, n)
        last = last_nodes(n, tail, head)
        F = [(d, k, i, j) for (d, k), end in last.items() for i, j in P if k <= tail[d, i, j] < head[d, i, j] <= end]
        H = [(d, k, a) for (d, k), end in last.items() for a in range(k, end)]
        X = [chord for chord in tail if head[chord] < tail[chord]]
        f, idle, over = b.var("f", integer=True, over=F), b.var("idle", over=H), b.var("over", integer=True, over=X)
        into: defaultdict[Any, list[Any]] = defaultdict(list)
        out: defaultdict[Any, list[Any]] = defaultdict(list)
        # A crossing circuit closes the walk that starts at its head and ends at its tail.
        legs = [(f[d, k, i, j], d, k, tail[d, i, j], head[d, i, j]) for d, k, i, j in F]
        legs += [(idle[d, k, a], d, k, a, a + 1) for d, k, a in H]
        legs += [(over[chord], chord[0], head[chord], tail[chord], head[chord]) for chord in X]
        for variable, d, k, a, e in legs:
            out[d, k, a].append(variable)
            into[d, k, e].append(variable)
        carried: defaultdict[Any, list[Any]] = defaultdict(list)
        for d, k, i, j in F:
            carried[i, j].append(f[d, k, i, j])
        for d, i, j in X:
            carried[i, j].append(over[d, i, j])
        rows = [(d, k, a) for (d, k), end in last.items() for a in (range(k, end + 1) if k else range(1, n))]
        b.row("walk", lambda *at: b.sum(into[at]) == b.sum(out[at]), over=rows)
        b.row("light", lambda d: b.sum(out[d, 0, 0]) + b.sum(over[key] for key in X if key[0] == d) <= W)
        b.row("serve", lambda i, j: c[i, j] <= b.sum(carried[i, j]))
        return b.minimize(moves.unit_time * t)

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone.

        ``whole`` is the distance from integers, ``light`` the number of wavelengths beyond W, ``free`` the excess
        circuits on a segment of a wavelength, ``served`` the pairs without a circuit, ``serve`` the circuits that c
        claims but the assignment lacks, ``chord`` the relative amount by which t understates T (c, t: if given).
        """
        blocks = ("whole", "light", "free", "served", "serve", "chord")
        read = ring_solution.circuits_of(self, values)
        if read is None:
            return dict.fromkeys(blocks, np.inf)
        circuits, fraction = read
        moves, n = self.transfers, self.n
        pair, way, wavelength = circuits.T
        worst = dict.fromkeys(blocks, 0.0)
        worst["whole"] = fraction
        worst["light"] = float(max(0, wavelength.max(initial=-1) + 1 - self.wavelengths))
        hops = int(self.hops[pair, way].sum())
        room = 2 * n * int(wavelength.max(initial=-1) + 1)
        if hops > room:  # more segments than all wavelengths have: the list could be huge
            worst["free"] = float(-(-hops // max(room, 1)) - 1)
        else:
            span, _, owner = arcs_taken(n, moves.source[pair], moves.target[pair], way == 0)
            _, count = np.unique((wavelength[owner] * 2 + way[owner]) * n + span, return_counts=True)
            worst["free"] = float(count.max(initial=1) - 1)
        there = np.bincount(pair, minlength=moves.pairs)
        worst["served"] = float((there < 1).sum())
        c = there.astype(float)
        if "c" in values:
            c = np.asarray(values["c"], dtype=float)
            worst["serve"] = float(np.maximum(c - there, 0.0).max())
        if "t" in values:
            stated, true = float(np.asarray(values["t"])), moves.slowest(np.maximum(c, there)) / moves.unit_time
            worst["chord"] = max(0.0, true - stated) / true if np.isfinite(true) else np.inf
        return worst

    def objective(self, values: Mapping[str, F64]) -> float:
        """T [s] recomputed from the circuits; infinite if a pair has no circuit."""
        read = ring_solution.circuits_of(self, values)
        if read is None:
            return np.inf
        return self.transfers.slowest(np.bincount(read[0][:, 0], minlength=self.transfers.pairs))

    priced_time = ring_bounds.priced_time
    _derived = exact_chord_numbers


FORMULATION = RingTraffic
