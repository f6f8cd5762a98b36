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
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph import forwarded_solution, lumorph_sizes, rounds_solution, unphased_rounds
from opticoll.formulations.lumorph.route_sets import candidate_routes
from opticoll.formulations.model import Formulation, NotApplicable, Parameter
from opticoll.formulations.rounds.collectives import CollectiveSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.route_sets import RouteSet
    from opticoll.formulations.model import CvxpyModel, PyomoModel
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import I64, Mask

NAME = "lumorph.forwarded-rounds"
PARAMETERS = (
    Parameter(
        "collective",
        CollectiveSpec,
        CollectiveSpec("all-to-all"),
        "broadcast, scatter, gather, all-gather, all-to-all, or file:PATH without sums",
    ),
    Parameter("root", int, 0, "root of broadcast, scatter and gather", least=0),
    *unphased_rounds.PARAMETERS,
)


@dataclass(frozen=True, eq=False)
class ForwardedRounds(Formulation):
    """Data of the model; ``plain`` is the same collective without forwarding, one chunk a circuit."""

    name = NAME
    where = "section 4, appendix C"
    example = "lightpath:2x2,lasers=1,waveguides=1"
    problem = "MILP"
    meaning = "rounds of circuits"
    parameters = PARAMETERS
    variables: ClassVar = {"D": ("circuit",), "X": ("sent",), "B": ("state",), "R": ("round",)}
    constraints: ClassVar = {
        "state": ("state",),
        "finish": ("finish",),
        "hold": ("hold",),
        "connected": ("sent",),
        "laser": ("laser",),
        "photodiode": ("photodiode",),
        "waveguide": ("waveguide",),
        "order": ("order",),
    }

    topology = cached_property(unphased_rounds.topology)
    collective = cached_property(unphased_rounds.collective)
    least = cached_property(unphased_rounds.least)
    floor = cached_property(unphased_rounds.floor)
    horizon = cached_property(unphased_rounds.horizon)
    peers = cached_property(forwarded_solution.most_peers)
    known_bounds = cached_property(forwarded_solution.known_forwarded_bounds)

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
    def routes(self) -> RouteSet:
        """P_sd of all ordered pairs of vertices, ascending."""
        n = self.topology.n
        source, target = np.divmod(np.flatnonzero(~np.eye(n, dtype=bool).ravel()), n)
        return candidate_routes(self.topology, source, target, self.plain.routes_kind, self.plain.paths)

    plain: RoundModel
    rmax: int
    use_bounds: bool

    chosen = ("D", "X")
    relays = True
    unlisted = "index-algorithm"

    @cached_property
    def circuits(self) -> Index:
        """The (r, s, d, i, w) of every D, in order, with the route number ``path``."""
        routes = self.routes
        listed = Index.grid(r=self.horizon, path=routes.paths, w=self.limits.wavelengths)
        path, pair = listed["path"], routes.pair[listed["path"]]
        ends = {"s": routes.source[pair], "d": routes.target[pair], "i": path - routes.first[pair]}
        return listed.given(**ends).keyed("r s d i w")

    @cached_property
    def sends(self) -> Index:
        """The (r, q, s, d) of every X, in order."""
        (Q, n), given = self.given.shape, self.given
        X = Index.grid(r=self.horizon, q=Q, s=n, d=n)
        r, q, s, d = (X[name] for name in X.key)
        return X.where((s != d) & ~given[q, d] & ((r > 0) | given[q, s])).keyed("r q s d")

    @cached_property
    def states(self) -> Index:
        """The (r, q, v) of every B, in order."""
        B = Index.grid(r=self.horizon, q=self.given.shape[0], v=self.given.shape[1])
        return B.where(~self.given[B["q"], B["v"]]).keyed("r q v")

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        plain, rmax, use_bounds = unphased_rounds.plain_rounds(cls, instance, given)
        if plain.collective.summing:
            msg = f"{NAME}: {plain.collective.name!r} sums and does not copy; use lumorph.rounds or lumorph.sum-rounds"
            raise NotApplicable(msg)
        if not len(plain.collective.deliveries):
            msg = f"{NAME}: {plain.collective.name!r} has no deliveries; give a collective with at least one"
            raise NotApplicable(msg)
        return cls(plain, rmax, use_bounds)

    # Builds -----------------------------------------------------------------------------------------------------

    @cached_property
    def indices(self) -> dict[str, Index]:
        """Variables, arcs of circuits, and the rows of every constraint, in order."""
        D, X, B, routes, R = self.circuits, self.sends, self.states, self.routes, Index.grid(r=self.horizon)
        crossed = {**routes.crossed, "W": self.limits.room(self.topology)[routes.arcs]}
        E = D.join(Index.table("s d i e", crossed))
        return {
            "circuit": D,
            "crossing": E,
            "sent": X,
            "state": B,
            "round": R,
            "finish": Index.of_mask("q v", self.wanted),
            "hold": X.where(~self.given[X["q"], X["s"]]),
            "laser": D.by("r s w"),
            "photodiode": D.by("r d w"),
            "waveguide": E.by("r e w", "W"),
            "order": R.where(R["r"] > 0),
        }

    def sets(self) -> dict[str, Sequence[Any]]:
        """Variables, rounds, and the rows of every constraint."""
        return {**self.indices, "round": range(self.horizon)}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, T = Cvx(self), self.horizon
        Ds, E, Xs, Bs, Rs, finish, hold, laser, photodiode, waveguide, order = self.indices.values()
        D, X, B = (b.var(name, upper=1, integer=True) for name in "DXB")
        R = b.var("R", lower=Rs["r"] < self.floor, upper=1, integer=True)
        received = Bs.of(Xs, d="v")
        b.row("state", B - Bs.of(Bs, r=Bs["r"] - 1) @ B - received @ X == 0)
        b.row("finish", finish.of(Bs, r=T - 1) @ B == 1)
        b.row("hold", hold.of(Xs) @ X <= hold.of(Bs, v="s", r=hold["r"] - 1) @ B)
        b.row("connected", X - Xs.of(Ds) @ D <= 0)
        if self.limits.ports is not None:
            b.row("laser", laser.of(Ds) @ D <= laser.of(Rs) @ R)
            b.row("photodiode", photodiode.of(Ds) @ D <= photodiode.of(Rs) @ R)
        b.row("waveguide", waveguide.of(E) @ D <= cp.multiply(waveguide["W"], waveguide.of(Rs) @ R))
        b.row("order", order.of(Rs) @ R <= order.of(Rs, r=order["r"] - 1) @ R)
        return b.minimize(cp.sum(R))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo."""
        from pyomo.core import quicksum

        b, T, limits, P = Pyo(self), self.horizon, self.limits, self.routes.by_pair
        rounds, V, waves = range(T), range(self.topology.n), range(limits.wavelengths)
        W = limits.room(self.topology).tolist()
        pre = [set(np.flatnonzero(row).tolist()) for row in self.given]
        Q = range(len(pre))
        circuits = [(r, s, d, i, w) for r in rounds for s, d in P for i in range(len(P[s, d])) for w in waves]
        pairs = [(q, s, d) for q in Q for s in V for d in V if s != d and d not in pre[q]]
        sent = [(r, q, s, d) for r in rounds for q, s, d in pairs if r > 0 or s in pre[q]]
        states = [(r, q, v) for r in rounds for q in Q for v in V if v not in pre[q]]
        D, X = b.var("D", upper=1, integer=True, over=circuits), b.var("X", upper=1, integer=True, over=sent)
        B = b.var("B", upper=1, integer=True, over=states)
        R = b.var("R", lower=[float(r < self.floor) for r in rounds], upper=1, integer=True)

        between, received, laser, photodiode, waveguide = (defaultdict(list) for _ in range(5))
        for r, s, d, i, w in circuits:
            x = D[r, s, d, i, w]
            between[r, s, d].append(x)
            if limits.ports is not None:
                laser[r, s, w].append(x)
                photodiode[r, d, w].append(x)
            for e in P[s, d][i]:
                waveguide[r, e, w].append(x)
        for r, q, s, d in sent:
            received[r, q, d].append(X[r, q, s, d])

        def state(r: int, q: int, d: int) -> Any:
            before = B[r - 1, q, d] if r > 0 else 0
            return B[r, q, d] - before - quicksum(received[r, q, d]) == 0

        b.row("state", state, over=states)
        b.row("finish", lambda q, v: B[T - 1, q, v] == 1, over=map(tuple, np.argwhere(self.wanted).tolist()))
        b.row(
            "hold",
            lambda r, q, s, d: X[r, q, s, d] - B[r - 1, q, s] <= 0,
            over=[(r, q, s, d) for r, q, s, d in sent if s not in pre[q]],
        )
        b.row("connected", lambda r, q, s, d: X[r, q, s, d] - quicksum(between[r, s, d]) <= 0, over=sent)
        b.row("laser", lambda r, s, w: quicksum(laser[r, s, w]) - R[r] <= 0, over=sorted(laser))
        b.row(
            "photodiode",
            lambda r, d, w: quicksum(photodiode[r, d, w]) - R[r] <= 0,
            over=sorted(photodiode),
        )
        b.row("waveguide", lambda r, e, w: quicksum(waveguide[r, e, w]) - W[e] * R[r] <= 0, over=sorted(waveguide))
        b.row("order", lambda r: R[r] - R[r - 1] <= 0, over=rounds[1:])
        return b.minimize(quicksum(R.values()))

    of_program = forwarded_solution.schedule_of_circuits
    sufficient = forwarded_solution.doubling_rounds
    estimate = lumorph_sizes.forwarded_size
    residuals = unphased_rounds.residuals
    objective = unphased_rounds.objective
    schedule = unphased_rounds.schedule
    bounds = unphased_rounds.bounds
    refute = unphased_rounds.refute
    unfold = unphased_rounds.unfold
    rounds = unphased_rounds.rounds
    replay = unphased_rounds.replay
    links = rounds_solution.rounds_links
    metrics = unphased_rounds.metrics
    arrays = forwarded_solution.forwarded_arrays
    repair = forwarded_solution.rounded_forwarding


FORMULATION = ForwardedRounds
