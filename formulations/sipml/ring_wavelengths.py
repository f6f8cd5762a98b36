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
    walk[d,k,a]    inflow of f_dk, idle_dk and over_d at node a = their outflow
    light[d]       sum of f_d0 and idle_d0 that start at node 0 + sum_p over_dp <= W
    serve[p]       c_p - sum_dk f_dkp - sum_d over_dp <= 0
  model=arcs
    free[d,s,w]    sum_{p over s} x_pdw <= 1
    serve[p]       c_p - sum_dw x_pdw <= 0

with v_p = V_p / max V: the chords of t >= v_p / c_p. high_p is the minimum number of circuits with which p meets the
bounds ``arc-load`` and ``cut`` on T, at most 2 W. Walks and chords: :mod:`opticoll.formulations.sipml`.

T, and ``transfer_s`` of the metrics, is in seconds if ``bandwidth`` is in bytes/s, and in bytes per circuit with the
default bandwidth of 1.

Bounds. For weights w_p >= 0, sum w_p c_p is at most W times (heaviest set clockwise + anticlockwise), which a dynamic
program finds. With circuits rounded up to integers this bounds T (``least_times``). Weights: shortest distances
(``arc-load``), pairs that leave an interval of nodes (``cut``: 2 W circuits), duals of ``serve`` (``sets``).

Every pair needs a circuit at all times, so the problem may be infeasible (``refute``). An assignment may also be given
as ``circuits``, (E, 3): pair, direction, wavelength. The checker reads either and tests every segment and wavelength.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.model import (
    Bound,
    CvxpyModel,
    Formulation,
    NotApplicable,
    Parameter,
    PyomoModel,
    changed_from_defaults,
)
from opticoll.formulations.rounds.wavelengths import arcs_taken, whole_fibres
from opticoll.formulations.sipml.chords import WAYS, chord_count, chords, pair_axis, ring_links, walk_axes
from opticoll.formulations.sipml.transfers import TIME_ROUNDINGS, Transfers, derived, least_times, transfers_of
from opticoll.formulations.sipml.walks import (
    Walks,
    circuits_of_sets,
    ends_on_line,
    heaviest_set,
    last_nodes,
    strip,
    walks,
)
from opticoll.formulations.variables import Array, Axis, SolutionSize
from opticoll.instances.families.machines import servers
from opticoll.instances.photonics import WdmRing
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from fractions import Fraction

    from opticoll.formulations.variables import Links
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json, Settings

NAME = "sipml.ring-wavelengths"
MODELS = ("sets", "arcs")
_TRAFFIC = (
    Parameter("traffic", str, default="alltoall", help="on a wdm-ring: as traffic= of servers:..."),
    Parameter("seed", int, default=0, help="on a wdm-ring: seed of traffic=random"),
    Parameter("volume", float, default=1e6, help="on a wdm-ring: bytes per pair, alltoall and random"),
)
#: Limits on nodes and wavelengths.
MOST_NODES, MOST_WAVELENGTHS = 256, 100_000
#: Maximum size of a matrix that is built [nonzeros], and number of circuits that are checked or decomposed.
MOST_NONZEROS, MOST_CIRCUITS = 20_000_000, 20_000_000
#: Limits on the number of cuts whose integer circuits are counted, and on their total number of pairs.
CUTS, CUT_ENTRIES = 256, 2_000_000


@dataclass(frozen=True, eq=False)
class RingTraffic(Formulation):
    """Data of the model."""

    name = NAME
    where = "section 3.3 (A.1)"
    example = "wdm-ring:n=8,wavelengths=32"
    sense = "min"
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
        ),
        *_TRAFFIC,
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

    n: int
    wavelengths: int
    transfers: Transfers
    model: str

    @cached_property
    def hops(self) -> I64:
        """Number of segments of every pair clockwise and anticlockwise, ``(|P|, 2)``."""
        onward = (self.transfers.target - self.transfers.source) % self.n
        return np.stack([onward, self.n - onward], axis=1)

    @cached_property
    def distance_bound(self) -> float:
        """Bound on T [s] from all 2 n W segments: every circuit takes at least its shortest distance."""
        weight = self.hops.min(axis=1).astype(float)
        return self.weighted_time(weight, 2.0 * self.n * self.wavelengths)

    def weighted_time(self, weight: F64, capacity: float) -> float:
        """Smallest T [s] at which the needs, weighted by ``(|P|,)``, fit a capacity."""
        used = np.flatnonzero(weight > 0)
        if used.size == 0:
            return 0.0
        group = np.zeros(used.size, dtype=np.int64)
        return float(least_times(self.transfers, group, used, weight[used], np.array([capacity]))[0])

    def priced_time(self, weight: F64) -> float:
        """Bound on T [s] from weights >= 0, ``(|P|,)``."""
        moves = self.transfers
        sets = sum(heaviest_set(self.n, moves.source, moves.target, weight, way) for way in (0, 1))
        capacity = float(rounding.up(self.wavelengths * sets, self.n + 3))
        return float(rounding.down(self.weighted_time(weight, capacity), TIME_ROUNDINGS))

    @cached_property
    def cut_bound(self) -> tuple[float, int, int]:
        """Bound on T [s] from the worst cut, the first node of its interval, and the number of nodes in it.

        Cuts are ranked by volume and by pairs; integer circuits are counted for the first ``CUTS`` of each ranking
        (fewer if there are many pairs).
        """
        n, moves, capacity = self.n, self.transfers, 2.0 * self.wavelengths
        first, size = (part.ravel() for part in np.mgrid[0:n, 1:n])
        ranks, most = [], min(CUTS, max(8, CUT_ENTRIES // moves.pairs))
        for weight in (moves.volume, np.ones(moves.pairs)):
            dense = np.zeros((2 * n, 2 * n))
            for a in (0, n):
                for b in (0, n):
                    dense[moves.source + a, moves.target + b] = weight
            total = np.zeros((2 * n + 1, 2 * n + 1))
            total[1:, 1:] = dense.cumsum(axis=0).cumsum(axis=1)
            last = first + size
            out = total[last, first + n] - total[first, first + n] - total[last, last] + total[first, last]
            ranks.append(np.argsort(-out, kind="stable")[:most])
        chosen = np.unique(np.concatenate(ranks))
        members = (moves.source[None, :] - first[chosen, None]) % n < size[chosen, None]
        members &= (moves.target[None, :] - first[chosen, None]) % n >= size[chosen, None]
        group, pair = np.nonzero(members)
        times = least_times(moves, group, pair, np.ones(pair.size), np.full(chosen.size, capacity))
        times = np.where(members.any(axis=1), times, 0.0)
        worst = int(times.argmax())
        return float(times[worst]), int(first[chosen[worst]]), int(size[chosen[worst]])

    @cached_property
    def least(self) -> float:
        """Best analytic bound on T [s], infinite if the problem is infeasible."""
        return max(self.distance_bound, self.cut_bound[0])

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

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            For anything but an intact optical ring or a pool of at least 3 servers; for more than ``MOST_NODES``
            nodes or ``MOST_WAVELENGTHS`` wavelengths.
        BadInput
            For unknown or empty traffic, or a bandwidth that is not positive.
        """
        given = cls._completed(parameters)
        count = given["wavelengths"]
        if count < 0:
            msg = f"{NAME}: wavelengths={count}; give a number of wavelengths, or 0 for the instance's own"
            raise NotApplicable(msg)
        if isinstance(instance, ServerPool):
            if instance.n < 3:
                msg = f"{NAME}: a ring needs at least 3 servers, but {instance.spec} has {instance.n}"
                raise NotApplicable(msg)
            for name in changed_from_defaults(_TRAFFIC, given):
                msg = f"{NAME}: {name}={given[name]} has no effect on {instance.spec}, which has its own traffic"
                raise NotApplicable(msg)
            n, pool, count = instance.n, instance, count or instance.degree
            _refuse_size(n, count)
        elif isinstance(instance, WdmRing):
            traffic, seed = given["traffic"], given["seed"]
            if seed and traffic != "random":
                msg = f"{NAME}: seed={seed} has no effect with traffic={traffic}; only traffic=random is random"
                raise NotApplicable(msg)
            ring = whole_fibres(instance, NAME)
            n, count = ring.n, count or ring.channels
            _refuse_size(n, count)
            pool = servers(n, 1, traffic, seed=seed, volume=given["volume"])
        else:
            spec = getattr(instance, "spec", type(instance).__name__)
            msg = f"{NAME}: needs wdm-ring:n=...,wavelengths=... or servers:n=...,degree=...,traffic=..., not {spec}"
            raise NotApplicable(msg)
        where = f"{NAME}: {getattr(instance, 'spec', '')}"
        transfers = transfers_of(pool.traffic, given["bandwidth"], where)
        return cls(n, count, transfers, given["model"])

    def refute(self) -> Bound | None:
        """Bound that proves infeasibility if one circuit per pair exceeds the capacity of all segments or of a cut."""
        if np.isfinite(self.least):
            return None
        if np.isinf(self.distance_bound):
            segments = int(self.hops.min(axis=1).sum())
            reason = f"one circuit per pair takes {segments} segments, more than {2 * self.n * self.wavelengths}"
            return Bound("arc-load", np.inf, reason, "sipml")
        _, first, size = self.cut_bound
        reason = f"one circuit per pair is more than {2 * self.wavelengths} out of the {size} nodes from {first} on"
        return Bound("cut", np.inf, reason, "sipml")

    def sets(self) -> dict[str, Sequence[Any]]:
        """Pairs (i,j), numbers of circuits, directions, segments, wavelengths, and the walks."""
        moves, walk, n = self.transfers, self.walks, self.n
        P = list(zip(moves.source.tolist(), moves.target.tolist(), strict=True))
        whole = {"pair": P, "count": range(1, int(self.high.max()) + 1), "way": range(2), "segment": range(n)}
        if self.model == "arcs":
            return {**whole, "wavelength": range(self.wavelengths)}
        return {
            **whole,
            "circuit": [(d, v, *P[p]) for d, v, p in walk.circuits],
            "idle": walk.idle.labels,
            "crossing": [(d, *P[p]) for d, p in walk.crossings],
            "walk": walk.nodes.labels,
        }

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        _refuse_large(self)
        b, moves, W, walk = Cvx(self), self.transfers, self.wavelengths, self.walks
        pairs, ways = Index.grid(pair=moves.pairs), Index.grid(way=2)
        rows = chords(moves.shares, np.ones(moves.pairs, dtype=np.int64), self.high, NAME)
        c, t = b.var("c", lower=1, upper=self.high, integer=True), b.var("t", upper=1)
        at = Index.table("pair count", {"pair": rows.pair, "count": rows.j - 1})
        b.row("chord", t + at.of(pairs).multiply(rows.slope[:, None]) @ c >= rows.level, over=at)
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
            place, owner = _arc_uses(self)
            uses = Index.table("pair way segment", {"pair": owner // 2, "way": owner % 2, "segment": place % self.n})
            at = uses.by("way segment").join(Index.grid(wavelength=W)).keyed("way segment wavelength")
            b.row("free", at.of(circuits.join(uses)) @ x <= 1, over=at)
            b.row("serve", c <= pairs.of(circuits) @ x)
        return b.minimize(moves.unit_time * t)

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo: ``c[i,j]``, ``t``; ``f[d,v,i,j]``, ``idle[d,v,a]``, ``over[d,i,j]`` or ``x[i,j,d,w]``."""
        from pyomo.core import quicksum

        _refuse_large(self)
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
                lambda d, s, w: quicksum(x[i, j, d, w] for i, j in passing[d, s]) <= 1,
                where=lambda d, s, w: (d, s) in passing,
            )
            b.row("serve", lambda i, j: c[i, j] <= quicksum(x[i, j, d, w] for d in (0, 1) for w in range(W)))
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
        b.row("walk", lambda *at: quicksum(into[at]) == quicksum(out[at]), over=rows)
        b.row("light", lambda d: quicksum(out[d, 0, 0]) + quicksum(over[key] for key in X if key[0] == d) <= W)
        b.row("serve", lambda i, j: c[i, j] <= quicksum(carried[i, j]))
        return b.minimize(moves.unit_time * t)

    def estimate(self) -> dict[str, int]:
        """Size of the model."""
        pairs, n, W = self.transfers.pairs, self.n, self.wavelengths
        rows = chord_count(np.ones(pairs, dtype=np.int64), self.high)
        if self.model == "arcs":
            uses = pairs * n
            used = np.unique(_arc_uses(self)[0]).size
            x = 2 * pairs * W
            return {
                "variables": pairs + 1 + x,
                "constraints": rows + used * W + pairs,
                "nonzeros": 2 * rows + uses * W + pairs + x,
                "integers": pairs + x,
            }
        walk = self.walks
        whole = walk.flow_way.size + walk.over_way.size
        ends = (
            (walk.flow_way, walk.flow_start, walk.flow_tail, walk.flow_head),
            (walk.idle_way, walk.idle_start, walk.idle_tail, walk.idle_tail + 1),
            (walk.over_way, walk.over_head, walk.over_tail, walk.over_head),
        )
        entries = sum(int((walk.row_of(way, v, a) >= 0).sum()) for way, v, *both in ends for a in both)
        entries += int(((walk.flow_start == 0) & (walk.flow_tail == 0)).sum() + 2 * walk.over_way.size)
        entries += int(((walk.idle_start == 0) & (walk.idle_tail == 0)).sum() + walk.flow_way.size)
        return {
            "variables": int(pairs + 1 + whole + walk.idle_way.size),
            "constraints": rows + walk.rows + 2 + pairs,
            "nonzeros": int(2 * rows + pairs + entries),
            "integers": int(pairs + whole),
        }

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Shapes of ``circuits``, x, or the walks; with c and t if given, and of the duals of ``serve``."""
        pair, direction = pair_axis(self.transfers), Axis("direction", 2, WAYS)
        result = {
            "c": Array((pair,), required=False),
            "t": Array(required=False),
            "serve": Array((pair,), dual=True),
        }
        alone = {"circuits", "x"}.isdisjoint(names)
        if "circuits" in names:
            fields = pair, direction, Axis("wavelength", MOST_WAVELENGTHS + 1)
            axes = Axis("circuit", SolutionSize("circuits", most=MOST_CIRCUITS)), Axis("field", 3)
            columns = (self.transfers.pairs, 2, MOST_WAVELENGTHS + 1)
            result["circuits"] = Array(axes, low=0, high=columns, entries=fields)
        if "x" in names:
            result["x"] = Array((pair, direction, Axis("wavelength", self.wavelengths)))
        if alone or not {"f", "idle", "over"}.isdisjoint(names):
            circuit, idle, crossing = walk_axes(self.transfers, self.walks)
            result["f"] = Array((circuit,), required=alone)
            result["idle"] = Array((idle,), required=False)
            result["over"] = Array((crossing,), required=False)
        return result

    def residuals(self, values: Mapping[str, F64]) -> dict[str, float]:
        """Worst violation of every block, from numpy alone.

        ``whole`` is the distance from integers, ``wavelengths`` the number beyond W, ``free`` the excess circuits on a
        segment of a wavelength, ``served`` the pairs without a circuit, ``count`` the circuits that c claims but the
        assignment lacks, ``time`` the relative amount by which t understates T (c, t: if given).
        """
        blocks = ("whole", "wavelengths", "free", "served", "count", "time")
        read = circuits_of(self, values)
        if read is None:
            return dict.fromkeys(blocks, np.inf)
        circuits, fraction = read
        moves, n = self.transfers, self.n
        pair, way, wavelength = circuits.T
        worst = dict.fromkeys(blocks, 0.0)
        worst["whole"] = fraction
        worst["wavelengths"] = float(max(0, wavelength.max(initial=-1) + 1 - self.wavelengths))
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
            if c.shape != there.shape or not np.isfinite(c).all():
                return dict.fromkeys(blocks, np.inf)
            worst["count"] = float(np.maximum(c - there, 0.0).max())
        if "t" in values:
            stated, true = float(np.asarray(values["t"])), moves.slowest(np.maximum(c, there)) / moves.unit_time
            worst["time"] = max(0.0, true - stated) / true if np.isfinite([stated, true]).all() else np.inf
        return worst

    def objective(self, values: Mapping[str, F64]) -> float:
        """T [s] recomputed from the circuits; infinite if a pair has no circuit."""
        read = circuits_of(self, values)
        if read is None:
            return np.inf
        return self.transfers.slowest(np.bincount(read[0][:, 0], minlength=self.transfers.pairs))

    def repair(self, values: Mapping[str, F64]) -> dict[str, F64] | None:
        """Round to integer flows (or x) and recompute c and t; None if they are malformed."""
        read = circuits_of(self, values)
        if read is None:
            return None
        there = np.bincount(read[0][:, 0], minlength=self.transfers.pairs)
        if (there < 1).any():
            return None
        whole = {name: np.rint(values[name]) for name in ("circuits", "x", "f", "idle", "over") if name in values}
        c = np.minimum(there, self.high).astype(float)
        return {**whole, "c": c, "t": np.asarray(self.transfers.slowest(c) / self.transfers.unit_time)}

    def bounds(self) -> list[Bound]:
        """Bounds from the total of segments, and from the worst cut."""
        time, first, size = self.cut_bound
        arcs, time = (
            float(t) if np.isinf(t) else max(float(rounding.down(t, TIME_ROUNDINGS)), 0.0)
            for t in (self.distance_bound, time)
        )
        reason = f"at most {2 * self.wavelengths} circuits leave the {size} nodes from {first} on"
        return [
            Bound("arc-load", arcs, "in less time the circuits take more segments than exist", "sipml"),
            Bound("cut", time, reason, "sipml"),
        ]

    def certify(self, duals: Mapping[str, F64]) -> Bound | None:
        """Bound proven by any prices of pairs; the heaviest sets are recomputed."""
        if "serve" not in duals:
            return None
        weight = np.abs(np.asarray(duals["serve"], dtype=float))
        weight = np.where(np.isfinite(weight), weight, 0.0)
        if weight.shape != (self.transfers.pairs,) or not weight.max(initial=0.0) > 0:
            return None
        value = self.priced_time(weight / weight.max())
        if not np.isfinite(value):
            return None
        return Bound("sets", value, "prices of pairs; no wavelength carries more than the heaviest set", "sipml")

    def metrics(self, value: float | None) -> dict[str, Json]:
        """The slowest transfer and the size of the problem."""
        moves = self.transfers
        return {
            "transfer_s": value,
            "max_load": None if value is None else value * moves.bandwidth,
            "wavelengths_available": self.wavelengths,
            "pairs": moves.pairs,
            "nodes": self.n,
        }

    def describe(self, values: Mapping[str, F64]) -> dict[str, Json]:
        """Circuits, wavelengths in use, fraction of (segment, wavelength) in use, and circuits on the longer side."""
        read = circuits_of(self, values)
        if read is None:
            return {}
        pair, way, wavelength = read[0].T
        hops = self.hops[pair, way]
        return {
            "circuits": int(pair.size),
            "wavelengths": int(wavelength.max(initial=-1) + 1),
            "use": float(hops.sum() / (2 * self.n * self.wavelengths)),
            "detours": int((hops > self.hops[pair].min(axis=1)).sum()),
        }

    def derived(self) -> Iterable[Fraction]:
        """Numbers of the matrix that are computed from the data."""
        return derived(self.transfers, self.high)

    def links(self, values: Mapping[str, F64]) -> Links:
        """Load of every link."""
        return ring_links(self.n, decode(self, values), self.wavelengths)


def _refuse_size(n: int, wavelengths: int) -> None:
    if n > MOST_NODES or wavelengths > MOST_WAVELENGTHS:
        msg = f"{NAME}: {n} nodes with {wavelengths} wavelengths; use at most {MOST_NODES} and {MOST_WAVELENGTHS}"
        raise NotApplicable(msg)


def _arc_uses(data: RingTraffic) -> tuple[I64, I64]:
    """For ``model=arcs``: (direction, segment) as d n + s, and (pair, direction) as 2 p + d, of every use."""
    moves = data.transfers
    source, target = np.repeat(moves.source, 2), np.repeat(moves.target, 2)
    onward = np.tile([True, False], moves.pairs)
    span, _, owner = arcs_taken(data.n, source, target, onward)
    return np.where(onward[owner], span, data.n + span), owner


def _refuse_large(data: RingTraffic) -> None:
    nonzeros = data.estimate()["nonzeros"]
    if nonzeros > MOST_NONZEROS:
        msg = f"{NAME}: the model would have {nonzeros:,} non-zeros; model=sets or --method ring-first-fit needs less"
        raise NotApplicable(msg)


def circuits_of(data: RingTraffic, values: Mapping[str, F64]) -> tuple[I64, float] | None:
    """Circuits (pair, direction, wavelength), ``(E, 3)``, and their distance from integers; None if malformed."""
    if "circuits" in values:
        given = np.asarray(values["circuits"], dtype=float)
        if given.ndim != 2 or given.shape[1] != 3 or given.shape[0] > MOST_CIRCUITS or not np.isfinite(given).all():
            return None
        whole = np.rint(given)
        top = np.array([data.transfers.pairs, 2, 2**52])
        if (whole < 0).any() or (whole >= top).any():
            return None
        return whole.astype(np.int64), float(np.abs(given - whole).max(initial=0.0))
    if "x" in values:
        x = np.asarray(values["x"], dtype=float)
        if x.shape != (data.transfers.pairs, 2, data.wavelengths) or not np.isfinite(x).all():
            return None
        return np.argwhere(x > 0.5), float(np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0))
    walk = data.walks
    flows, fraction = [], 0.0
    for name, size in (("f", walk.flow_way.size), ("idle", walk.idle_way.size), ("over", walk.over_way.size)):
        given = np.asarray(values.get(name, np.zeros(0)), dtype=float)
        valid = given.shape == (size,) and np.isfinite(given).all() and not (given < -0.5).any()
        if not valid or given.sum() > MOST_CIRCUITS:
            return None
        flows.append(np.rint(given).astype(np.int64))
        fraction = max(fraction, float(np.abs(given - np.rint(given)).max(initial=0.0)))
    sets = strip(walk, *flows)
    if sets is None:
        return None
    return circuits_of_sets(sets), fraction


def decode(data: RingTraffic, values: Mapping[str, F64]) -> list[tuple[int, int, bool, int]]:
    """Circuits as (source, target, clockwise, wavelength).

    Raises
    ------
    NotApplicable
        If the values are not a valid assignment.
    """
    read = circuits_of(data, values)
    if read is None or max(data.residuals(values).values()) > 1e-6:
        msg = f"{NAME}: the values are not a valid assignment of wavelengths"
        raise NotApplicable(msg)
    pair, way, wavelength = read[0].T
    ends = (data.transfers.source[pair], data.transfers.target[pair], way == 0, wavelength)
    return list(zip(*(part.tolist() for part in ends), strict=True))


FORMULATION = RingTraffic
