r"""Copies in the fewest rounds of circuits, forwarded and combined: what the index algorithm solves.

Source  LuMorph, section 4 and appendix C (all-to-all in log2 N rounds); Bruck et al., IEEE TPDS 8(11), 1997 (index
        algorithm, k-port lower bound)
Sets    r in 0..T-1 rounds, T = ``rmax``; q classes of chunks with the same Pre; s != d, v vertices; i in P_sd routes of
        a pair; w in 0..L-1 wavelengths; e arcs
Data    Pre, Post of a copying collective (:mod:`opticoll.formulations.rounds`), Post[q] the union over the chunks of q;
        L lasers and photodiodes of a tile, or wavelengths of a WDM fibre; W_e waveguides of an arc, or fibres between
        wafers or WDM nodes; P_sd, by default the two routes of one bend; R_min
Vars    D[r,s,d,i,w] in {0,1} a circuit connects s to d on route i and wavelength w in round r; X[r,q,s,d] in {0,1} s
        sends the chunks of q to d in round r, for d not in Pre[q], in the first round s in Pre[q]; B[r,q,v] in {0,1} v
        has the chunks of q after round r, for v not in Pre[q]; R[r] in {0,1} round r is used. In files, all are flat
        lists in index order

min sum_r R[r]  s.t.
    state[r,q,d]        B[r,q,d] - B[r-1,q,d] - sum_s X[r,q,s,d] = 0
    finish[q,v]         B[T-1,q,v] = 1                                       for v in Post[q]
    hold[r,q,s,d]       X[r,q,s,d] - B[r-1,q,s] <= 0                         for s not in Pre[q]
    connected[r,q,s,d]  X[r,q,s,d] - sum_iw D[r,s,d,i,w] <= 0
    laser[r,s,w]        sum_di D[r,s,d,i,w] - R[r] <= 0
    photodiode[r,d,w]   sum_si D[r,s,d,i,w] - R[r] <= 0
    waveguide[r,e,w]    sum over routes i through e of D[r,s,d,i,w] - W_e R[r] <= 0
    order[r]            R[r] - R[r-1] <= 0
    R[r] = 1 for r < R_min

This is :mod:`opticoll.formulations.lumorph.rounds` without its (3), which lets only GPUs of Post receive a chunk, and
with any number of chunks on a circuit in a round, as in the cost model, where a round lasts longer if it carries more.
Section 4 and appendix C of the paper take log2 N rounds for an all-to-all; that needs both. Chunks of one class cost
nothing together, so that an all-to-all takes as many rounds as an all-gather; a schedule sends only the chunks that
somebody further on requires. On WDM fibres ``laser`` and ``photodiode`` are absent, as in ``lumorph.rounds``.

Bounds, for any routes. A vertex sends and receives at most k circuits in a round, k the most lasers or, if fewer,
wavelengths of its arcs. *spread*: after R rounds at most (k+1)^R |Pre[q]| vertices have the chunks of q.
*gather*: what v has after R rounds began at no more than (k+1)^R vertices. So an all-to-all on N GPUs needs
ceil(log_{k+1} N) rounds, which the index algorithm of radix k + 1 takes where waveguides suffice.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from opticoll.formulations.lumorph import unphased_rounds
from opticoll.formulations.lumorph.round_bounds import PAPER
from opticoll.formulations.lumorph.round_builds import add_constraints, incidence, numbered
from opticoll.formulations.lumorph.rounds import Circuit
from opticoll.formulations.lumorph.route_sets import candidate_routes
from opticoll.formulations.model import Bound, CvxpyModel, Named, NotApplicable, Parameter, PyomoModel
from opticoll.formulations.rounds.collectives import CollectiveSpec
from opticoll.formulations.rounds.round_schedule import (
    RoundSchedule,
    schedule_arrays,
)
from opticoll.formulations.rounds.segments import select
from opticoll.formulations.variables import Array, Axis

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.route_sets import RouteSet
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.instances.types import Settings

NAME = "lumorph.forwarded-rounds"
PARAMETERS = (
    Parameter(
        "collective",
        CollectiveSpec,
        CollectiveSpec("all-to-all"),
        "broadcast, scatter, gather, all-gather, all-to-all, or file:PATH without sums",
    ),
    Parameter("root", int, 0, "root of broadcast, scatter and gather"),
    *unphased_rounds.PARAMETERS,
)


@dataclass(frozen=True, eq=False)
class ForwardedRounds(unphased_rounds.UnphasedRounds):
    """Data of the model; ``plain`` is the same collective without forwarding, one chunk a circuit."""

    name = NAME
    where = "section 4, appendix C"
    example = "lightpath:2x2,lasers=1,waveguides=1"
    parameters = PARAMETERS

    @cached_property
    def limits(self) -> Limits:
        """Limits of a round, with any number of chunks on a circuit."""
        return replace(self.plain.limits, load=None)

    @cached_property
    def class_of(self) -> I64:
        """Q of every chunk, ``(chunks,)``; chunks with the same Pre have the same, in the order of first chunks."""
        held = np.zeros((self.collective.chunks, self.collective.n), dtype=bool)
        held[tuple(self.collective.pre.T)] = True
        packed = np.packbits(held, axis=1)  # as one word a row they are sorted much faster than as columns
        rows = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
        _, first, which = np.unique(rows, return_index=True, return_inverse=True)
        place = np.empty(first.size, dtype=np.int64)
        place[np.argsort(first)] = np.arange(first.size)
        return place[which]

    @cached_property
    def given(self) -> Mask:
        """Whether v is in Pre[q], ``(|Q|, n)``."""
        result = np.zeros((int(self.class_of.max()) + 1, self.collective.n), dtype=bool)
        result[self.class_of[self.collective.pre[:, 0]], self.collective.pre[:, 1]] = True
        return result

    @cached_property
    def wanted(self) -> Mask:
        """Whether v is in Post[q] and not in Pre[q], ``(|Q|, n)``."""
        result = np.zeros_like(self.given)
        chunk, vertex = self.collective.deliveries.T
        result[self.class_of[chunk], vertex] = True
        return result

    @cached_property
    def peers(self) -> int:
        """k: the most circuits that a vertex sends, or receives, in a round."""
        limits, topology = self.limits, self.topology
        room = limits.room(topology).astype(float)
        on_arcs = int(max(topology.outflow(room).max(), topology.inflow(room).max()))
        each = on_arcs if limits.ports is None else min(on_arcs, limits.ports)
        return each * limits.wavelengths

    @cached_property
    def known_bounds(self) -> list[Bound]:
        """Analytic bounds on the number of rounds, for any routes."""
        k, bounds = self.peers, []
        spread = [(int(h.sum()), int((h | w).sum())) for h, w in zip(self.given, self.wanted, strict=True)]
        holders, reached = max(spread, key=lambda pair: _rounds(k, *pair))
        reason = f"chunks of {holders} vertices reach {reached}; with {k} peers a round their number grows {k + 1}-fold"
        bounds.append(Bound("spread", float(_rounds(k, holders, reached)), reason, PAPER))
        alone = self.given.sum(axis=1) == 1  # classes with the same single holder are one class
        heard = (self.wanted & alone[:, None]).sum(axis=0) + 1
        v = int(heard.argmax())
        reason = f"vertex {v} hears from {int(heard[v]) - 1} others; with {k} peers a round, {k + 1} times as many"
        bounds.append(Bound("gather", float(_rounds(k, 1, int(heard[v]))), reason, PAPER))
        return bounds

    @cached_property
    def routes(self) -> RouteSet:
        """P_sd of all ordered pairs of vertices, ascending."""
        n = self.topology.n
        source, target = np.divmod(np.flatnonzero(~np.eye(n, dtype=bool).ravel()), n)
        return candidate_routes(self.topology, source, target, self.plain.routes_kind, self.plain.paths)

    chosen = ("D", "X")
    relays = True
    unlisted = "index-algorithm"

    def sufficient(self) -> int:
        """Rounds of doubling steps, whose circuits are packed into rounds first fit: always enough."""
        members = np.flatnonzero((self.given | self.wanted).any(axis=0))
        routes, n, p = self.routes, self.topology.n, members.size
        room = self.limits.room(self.topology).tolist()
        total, stride = 0, 1
        while stride < p:
            used: defaultdict[tuple[int, str, int, int], int] = defaultdict(int)
            last = 0
            for position, s in enumerate(members.tolist()):
                d = int(members[(position + stride) % p])
                pair = s * (n - 1) + d - (d > s)
                needs = [("arc", arc, room[arc]) for arc in routes.path(int(routes.first[pair]))]
                if self.limits.ports is not None:
                    needs += [("laser", s, self.limits.ports), ("photodiode", d, self.limits.ports)]
                slot = 0
                while any(used[slot, kind, item, 0] >= most for kind, item, most in needs):
                    slot += 1
                for kind, item, _ in needs:
                    used[slot, kind, item, 0] += 1
                last = max(last, slot)
            total += last // self.limits.wavelengths + 1
            stride *= 2
        return total

    @cached_property
    def columns(self) -> dict[str, I64]:
        """``r``, ``s``, ``d``, route number ``path`` and ``w`` of every D, in order."""
        routes, L = self.routes, self.limits.wavelengths
        r, path, w = (a.ravel() for a in np.indices((self.horizon, routes.paths, L)))
        return {
            "r": r,
            "s": routes.source[routes.pair][path],
            "d": routes.target[routes.pair][path],
            "path": path,
            "w": w,
        }

    @cached_property
    def sends(self) -> tuple[I64, I64, I64, I64]:
        """r, q, s, d of every X, in order."""
        Q, n = self.given.shape
        r, q, s, d = (a.ravel() for a in np.indices((self.horizon, Q, n, n)))
        kept = (s != d) & ~self.given[q, d] & ((r > 0) | self.given[q, s])
        return r[kept], q[kept], s[kept], d[kept]

    @cached_property
    def states(self) -> tuple[I64, I64, I64]:
        """r, q, v of every B, in order."""
        r, q, v = (a.ravel() for a in np.indices((self.horizon, *self.given.shape)))
        kept = ~self.given[q, v]
        return r[kept], q[kept], v[kept]

    @classmethod
    def prepare(cls, instance: object, parameters: Settings | None = None) -> Self:
        """The data of the model.

        Raises
        ------
        NotApplicable
            As for :func:`opticoll.formulations.lumorph.rounds.prepare`, and for collectives that sum.
        """
        plain, rmax, use_bounds = cls.read(instance, parameters)
        if plain.collective.summing:
            msg = f"{NAME}: {plain.collective.name!r} sums and does not copy; use lumorph.rounds or lumorph.sum-rounds"
            raise NotApplicable(msg)
        if not len(plain.collective.deliveries):
            msg = f"{NAME}: {plain.collective.name!r} has no deliveries; give a collective with at least one"
            raise NotApplicable(msg)
        return cls(plain, rmax, use_bounds)

    # Builds -----------------------------------------------------------------------------------------------------

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY, as products of incidence matrices of rows and columns."""
        import cvxpy as cp

        T, n, Q = self.horizon, self.topology.n, len(self.given)
        col, (xr, xq, xs, xd), (br, bq, bv) = self.columns, self.sends, self.states
        N, M, K = col["r"].size, xr.size, br.size
        D, X, B = (cp.Variable(size, name=name, boolean=True) for name, size in (("D", N), ("X", M), ("B", K)))
        R = cp.Variable(T, name="R", integer=True, bounds=[(np.arange(T) < self.floor).astype(float), np.ones(T)])
        at = np.full(T * Q * n, -1)
        at[(br * Q + bq) * n + bv] = np.arange(K)

        received = incidence(at[(xr * Q + xq) * n + xd], np.arange(M), (K, M))
        later = np.flatnonzero(br > 0)
        before = incidence(later, at[((br[later] - 1) * Q + bq[later]) * n + bv[later]], (K, K))
        last = np.flatnonzero((br == T - 1) & self.wanted[bq, bv])
        forwarded = np.flatnonzero(~self.given[xq, xs])
        held = at[((xr[forwarded] - 1) * Q + xq[forwarded]) * n + xs[forwarded]]
        pair, (when, *_) = numbered(col["r"], col["s"], col["d"])
        circuits = incidence(pair, np.arange(N), (when.size, N))
        of_x = np.searchsorted(
            np.unique((col["r"] * n + col["s"]) * n + col["d"]), (xr * n + xs) * n + xd
        )  # the row of every X among the pairs of the rounds
        result: dict[str, Any] = {
            "state": B - before @ B - received @ X == 0,
            "finish": B[last] == 1,
            "connected": X - circuits[of_x] @ D <= 0,
        }
        if forwarded.size:
            result["hold"] = X[forwarded] - B[held] <= 0
        if self.limits.ports is not None:
            for name, end in (("laser", "s"), ("photodiode", "d")):
                row, (when, *_) = numbered(col["r"], col[end], col["w"])
                result[name] = incidence(row, np.arange(N), (when.size, N)) @ D - self.limits.ports * R[when] <= 0
        start, arcs = select(self.routes.start, self.routes.arcs, col["path"])
        owner = np.repeat(np.arange(N), np.diff(start))
        row, (when, on, _) = numbered(col["r"][owner], arcs, col["w"][owner])
        through = incidence(row, owner, (when.size, N))
        room = self.limits.room(self.topology)[on].astype(float)
        result["waveguide"] = through @ D - cp.multiply(room, R[when]) <= 0
        if T > 1:
            result["order"] = R[1:] - R[:-1] <= 0
        return CvxpyModel(
            cp.Problem(cp.Minimize(cp.sum(R)), list(result.values())),
            variables={x.name(): Named(x, x.shape) for x in (D, X, B, R)},
            constraints={name: Named(item, item.shape) for name, item in result.items()},
        )

    def _circuits(self) -> dict[tuple[int, int, int, int, int], list[int]]:
        """The arcs of every circuit (r,s,d,i,w): the i-th route from s to d, on wavelength w in round r."""
        routes, waves = self.routes, range(self.limits.wavelengths)
        pairs = list(zip(routes.source.tolist(), routes.target.tolist(), strict=True))
        ways = [
            (*pairs[k], i, routes.path(p))
            for k in range(len(pairs))
            for i, p in enumerate(range(*routes.first[k : k + 2]))
        ]
        return {(r, s, d, i, w): arcs for r in range(self.horizon) for s, d, i, arcs in ways for w in waves}

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo, constraint by constraint as in the module docstring."""
        import pyomo.core as pyo

        T, n, limits = self.horizon, self.topology.n, self.limits
        room = limits.room(self.topology).tolist()
        rounds, V = range(T), range(n)
        pre = [set(np.flatnonzero(row).tolist()) for row in self.given]
        Q = range(len(pre))
        circuits = self._circuits()
        between: dict[Any, list[Any]] = {}
        through: dict[Any, list[Any]] = {}
        out: dict[Any, list[Any]] = {}
        into: dict[Any, list[Any]] = {}
        for key, arcs in circuits.items():
            r, s, d, _, w = key
            between.setdefault((r, s, d), []).append(key)
            out.setdefault((r, s, w), []).append(key)
            into.setdefault((r, d, w), []).append(key)
            for e in arcs:
                through.setdefault((r, e, w), []).append(key)
        X = [(0, q, s, d) for q in Q for s, d in product(V, V) if s in pre[q] and d not in pre[q]]
        X += [(r, q, s, d) for r, q, s, d in product(rounds[1:], Q, V, V) if s != d and d not in pre[q]]
        B = [(r, q, v) for r, q, v in product(rounds, Q, V) if v not in pre[q]]

        model = pyo.ConcreteModel(name="forwarded rounds")
        model.D, model.X, model.B = (pyo.Var(index, domain=pyo.Binary) for index in (list(circuits), X, B))
        model.R = pyo.Var(rounds, domain=pyo.Binary, bounds=lambda _, r: (float(r < self.floor), 1.0))
        model.rounds = pyo.Objective(expr=pyo.quicksum(model.R[r] for r in rounds), sense=pyo.minimize)

        def state(m: Any, r: int, q: int, d: int) -> Any:
            senders = [s for s in (V if r > 0 else sorted(pre[q])) if s != d]
            before = m.B[r - 1, q, d] if r > 0 else 0
            return m.B[r, q, d] - before - pyo.quicksum(m.X[r, q, s, d] for s in senders) == 0

        def connected(m: Any, r: int, q: int, s: int, d: int) -> Any:
            return m.X[r, q, s, d] - pyo.quicksum(m.D[key] for key in between[r, s, d]) <= 0

        def limited(used: Mapping[tuple[int, int, int], list[tuple[int, ...]]], most: list[int]) -> Any:
            return lambda m, r, x, w: pyo.quicksum(m.D[key] for key in used[r, x, w]) - most[x] * m.R[r] <= 0

        rules: dict[str, tuple[Sequence[Any], Any]] = {
            "state": (B, state),
            "finish": (
                [tuple(due) for due in np.argwhere(self.wanted).tolist()],
                lambda m, q, v: m.B[T - 1, q, v] == 1,
            ),
            "hold": (
                [(r, q, s, d) for r, q, s, d in X if s not in pre[q]],
                lambda m, r, q, s, d: m.X[r, q, s, d] - m.B[r - 1, q, s] <= 0,
            ),
            "connected": (X, connected),
            "waveguide": (sorted(through), limited(through, room)),
            "order": (list(rounds)[1:], lambda m, r: m.R[r] - m.R[r - 1] <= 0),
        }
        if limits.ports is not None:
            rules["laser"] = (sorted(out), limited(out, [limits.ports] * n))
            rules["photodiode"] = (sorted(into), limited(into, [limits.ports] * n))
        axes = add_constraints(model, rules)
        return PyomoModel(model, {"D": (list(circuits),), "X": (X,), "B": (B,), "R": (list(rounds),)}, axes)

    def estimate(self) -> dict[str, int]:
        """Size with ``rmax`` rounds, or as few as the bounds allow, without listing columns."""
        n, T = self.topology.n, self.rmax or max(self.least, 1)
        waves = self.limits.wavelengths
        D, B = T * n * (n - 1) * self.plain.paths * waves, T * int((~self.given).sum())
        X = B * (n - 1)
        hops = self.topology.hops
        far = float(hops[np.isfinite(hops)].max(initial=1.0))
        ends = 0 if self.limits.ports is None else 2 * n
        return {
            "variables": D + X + B + T,
            "constraints": B + int(self.wanted.sum()) + 2 * X + T * waves * (ends + self.topology.arcs) + T,
            "nonzeros": int(D * (2 + far)) + 2 * B + X * (4 + self.plain.paths * waves),
            "integers": D + X + B + T,
        }

    # Solutions ----------------------------------------------------------------------------------------------------

    def arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Arrays of a schedule, of the program, or of both."""
        result: dict[str, Array] = {}
        if "transfer_round" in names or "D" not in names:
            result |= schedule_arrays(self.topology, self.collective.chunks)
        if {"D", "X"} & set(names):
            sizes = {"D": self.columns["r"].size, "X": self.sends[0].size, "B": self.states[0].size, "R": self.horizon}
            axes = {"D": "circuit", "X": "sent", "B": "state", "R": "round"}
            result |= {name: Array((Axis(axes[name], size),), required=name in "DX") for name, size in sizes.items()}
        return result

    def of_program(self, values: Mapping[str, NDArray[Any]]) -> RoundSchedule | None:
        """The schedule that D and X encode."""
        return _of_program(self, values)

    def candidates(self) -> set[Circuit]:
        """Source, target, any wavelength (-1) and arcs of every candidate route."""
        routes = self.routes
        ends = zip(routes.source[routes.pair].tolist(), routes.target[routes.pair].tolist(), strict=True)
        return {(s, d, -1, tuple(routes.path(p))) for p, (s, d) in enumerate(ends)}

    def repair(self, values: Mapping[str, NDArray[Any]]) -> dict[str, F64] | None:
        """Round D and X and add the schedule; None if D or X is missing or invalid."""
        if any(name not in values or not np.isfinite(values[name]).all() for name in ("D", "X")):
            return None
        D, X = (np.rint(np.asarray(values[name], dtype=float)) for name in ("D", "X"))
        if D.shape != self.columns["r"].shape or X.shape != self.sends[0].shape:
            return None
        return self.unfold({"D": D, "X": X})


def _rounds(k: int, held: int, reached: int) -> int:
    """Least R with held (k+1)^R >= reached, in integers."""
    rounds = 0
    while held < reached:
        held, rounds = held * (k + 1), rounds + 1
    return rounds


def _of_program(data: ForwardedRounds, values: Mapping[str, NDArray[Any]]) -> RoundSchedule | None:
    """The circuits that carry something, and the transfers of the chunks that somebody further on requires."""
    D, X = (np.asarray(values[name], dtype=float) for name in ("D", "X"))
    if (
        D.shape != data.columns["r"].shape
        or X.shape != data.sends[0].shape
        or not np.isfinite([D.sum(), X.sum()]).all()
    ):
        return None
    n, members = data.topology.n, [np.flatnonzero(data.class_of == q) for q in range(len(data.given))]
    needed = np.zeros((data.collective.chunks, n), dtype=bool)
    needed[tuple(data.collective.deliveries.T)] = True
    xr, xq, xs, xd = (key[X > 0.5] for key in data.sends)
    parts = []
    for k in range(xr.size - 1, -1, -1):  # backwards in time: X is in the order of rounds
        q, sender, receiver = int(xq[k]), int(xs[k]), int(xd[k])
        chunks = members[q][needed[members[q], receiver]]
        if not data.given[q, sender]:
            needed[chunks, sender] = True
        parts.append(np.column_stack([np.broadcast_to([xr[k], sender, receiver], (chunks.size, 3)), chunks]))
    moved = np.concatenate(parts[::-1]) if parts else np.zeros((0, 4), dtype=np.int64)
    when, source, target, chunk = moved.T
    taken = np.flatnonzero(D > 0.5)
    key = (data.columns["r"][taken] * n + data.columns["s"][taken]) * n + data.columns["d"][taken]
    taken = taken[np.isin(key, (when * n + source) * n + target)]
    start, arcs = select(data.routes.start, data.routes.arcs, data.columns["path"][taken])
    r, s, d, w = (data.columns[name][taken] for name in ("r", "s", "d", "w"))
    adds = np.zeros(when.size, dtype=bool)
    return RoundSchedule(r, s, d, w, start, arcs, when, source, target, chunk, adds)


FORMULATION = ForwardedRounds
