r"""Sums in the fewest rounds of circuits: partial sums are combined, forwarded and copied in any order.

Source  LuMorph, Algorithm 1 and section 3.2 (all-reduce); possession of chunks cannot express sums, so the program is
        ours
Sets    r in 0..T-1 rounds, T = ``rmax``; c chunks; V_c = Pre[c] or Post[c]; s != d in V_c; u in Pre[c] contributions;
        i in P_sd routes of a pair; w in 0..L-1 wavelengths; e arcs
Data    Pre, Post of a summing collective (:mod:`opticoll.formulations.rounds`); L lasers and photodiodes of
        a tile; W_e waveguides of an arc, or fibres between wafers; P_sd, by default the two routes of one bend; R_min
Vars    C[r,s,d,c,i,w] in {0,1} s sends its partial sum of c to d on route i and wavelength w in round r;
        F[r,d,c] in {0,1} d replaces its partial sum in round r by the received one, instead of adding to it;
        R[r] in {0,1} round r is used; B[r,c,v,u] in {0,1} the partial sum of c at v has contribution u before round r,
        r in 0..T; X[r,s,d,c,u], Y[r,d,c,u], G[r,d,c,u] in {0,1} u is sent from s to d, is dropped by d, is new to d.
        In files, all are flat lists in index order; B, X, Y, G and R follow from C and F

min sum_r R[r]  s.t.
    start[c,v,u]         B[0,c,v,u] = [u = v]
    finish[c,v,u]        B[T,c,v,u] = 1                                              for v in Post[c]
    state[r,c,d,u]       B[r+1,c,d,u] - B[r,c,d,u] + Y[r,d,c,u] - sum_s X[r,s,d,c,u] = 0
    unique[r,s,d,c]      sum_iw C[r,s,d,c,i,w] <= 1
    sent[r,s,d,c,u]      X[r,s,d,c,u] - sum_iw C[r,s,d,c,i,w] <= 0
    held[r,s,d,c,u]      X[r,s,d,c,u] - B[r,c,s,u] <= 0
    carried[r,s,d,c,u]   sum_iw C[r,s,d,c,i,w] + B[r,c,s,u] - X[r,s,d,c,u] <= 1
    dropped[r,d,c,u]     Y[r,d,c,u] - F[r,d,c] <= 0
    owned[r,d,c,u]       Y[r,d,c,u] - B[r,c,d,u] <= 0
    lost[r,d,c,u]        F[r,d,c] + B[r,c,d,u] - Y[r,d,c,u] <= 1
    new[r,d,c,u]         G[r,d,c,u] + B[r,c,d,u] <= 1
    gained[r,d,c,u]      G[r,d,c,u] - B[r+1,c,d,u] <= 0
    gain[r,d,c]          F[r,d,c] - sum_u G[r,d,c,u] <= 0
    some[r,s,d,c]        sum_iw C[r,s,d,c,i,w] - sum_u B[r,c,s,u] <= 0               for s not in Pre[c]
    transfers[c]         sum_rsdiw C[r,s,d,c,i,w] >= |Pre[c]| - 1 + |Post[c]| - 1    for Post[c] not empty, |V_c| > 1
    laser[r,s,w]         sum_dci C[r,s,d,c,i,w] - R[r] <= 0                                                      (4, 7)
    photodiode[r,d,w]    sum_sci C[r,s,d,c,i,w] - R[r] <= 0                                                      (5, 7)
    waveguide[r,e,w]     sum over routes i through e of C[r,s,d,c,i,w] - W_e R[r] <= 0                           (6, 7)
    order[r]             R[r] - R[r-1] <= 0                                                                      (9)
    R[r] = 1 for r < R_min                                                                                       (8)

Rows of ``waveguide`` with at most W_e terms cannot bind and are omitted. ``state`` with binary B counts every
contribution once. X, Y are products of binaries. ``transfers`` tightens the relaxation: before the first
vertex of Post[c] has the sum, all others of Pre[c] have sent towards it, and all others of Post[c] still have to
receive. A vertex has one partial sum per chunk, which it sends as it was before the round; ``gain`` requires that the
new sum adds a contribution to the one it replaces.

R_min is the best of :func:`opticoll.formulations.lumorph.collective_bounds.sum_bounds`, unless ``bounds=false``. By
default T = R_1 + R_2 of a reduce-scatter and an all-gather
(:func:`~opticoll.formulations.lumorph.transfer_sets.sufficient_rounds` of each phase), which is a solution on the
candidate routes. The bounds hold for any routes and any composition; the program's optimum is over its routes. The
check accepts any schedule over any routes, unless these are stated (``paths``, ``routes``): then they are part of the
problem, and methods that choose their own are refused. ``composition_bound`` in the metrics bounds only compositions of
a reduce-scatter and an all-gather, so the optimum may be less.

Divide and conquer (section 3.2) takes the optimum on a 2x2 square from Algorithm 1 and exchanges whole reduced buffers
between squares; the method ``squares`` solves this program on the square.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph import lumorph_sizes, rounds_solution, sum_solution, unphased_rounds
from opticoll.formulations.lumorph.transfer_sets import RoundProgram, sufficient_rounds
from opticoll.formulations.model import Formulation, NotApplicable, Parameter
from opticoll.formulations.rounds.collectives import CollectiveSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.route_sets import RouteSet
    from opticoll.formulations.model import CvxpyModel, PyomoModel
    from opticoll.instances.topology import I64, Mask

NAME = "lumorph.sum-rounds"
PARAMETERS = (
    Parameter(
        "collective",
        CollectiveSpec,
        CollectiveSpec("all-reduce"),
        "reduce, reduce-scatter, all-reduce, or file:PATH with sums",
    ),
    Parameter("root", int, 0, "root of reduce", least=0),
    *unphased_rounds.PARAMETERS,
)


@dataclass(frozen=True, eq=False)
class SumModel(Formulation):
    """Data of the model; ``plain`` is the same collective in phases."""

    name = NAME
    where = "Algorithm 1, section 3.2"
    example = "lightpath:2x2,lasers=2,waveguides=1"
    problem = "MILP"
    meaning = "rounds of circuits"
    parameters = PARAMETERS
    variables: ClassVar = {
        "C": ("transfer",),
        "F": ("replacement",),
        "B": ("contribution",),
        "X": ("sent",),
        "Y": ("given up",),
        "G": ("given up",),
        "R": ("round",),
    }
    constraints: ClassVar = {
        "start": ("start",),
        "finish": ("finish",),
        "state": ("state",),
        "unique": ("unique",),
        "sent": ("sent",),
        "held": ("sent",),
        "carried": ("sent",),
        "dropped": ("given up",),
        "owned": ("given up",),
        "lost": ("given up",),
        "new": ("given up",),
        "gained": ("given up",),
        "gain": ("replacement",),
        "some": ("some",),
        "transfers": ("transfers",),
        "laser": ("laser",),
        "photodiode": ("photodiode",),
        "waveguide": ("waveguide",),
        "order": ("order",),
    }

    plain: RoundModel
    rmax: int
    use_bounds: bool

    chosen = ("C", "F")
    relays = False
    unlisted = "squares"

    topology = cached_property(unphased_rounds.topology)
    collective = cached_property(unphased_rounds.collective)
    limits = cached_property(unphased_rounds.limits)
    least = cached_property(unphased_rounds.least)
    floor = cached_property(unphased_rounds.floor)
    horizon = cached_property(unphased_rounds.horizon)
    known_bounds = cached_property(sum_solution.known_sum_bounds)

    def sufficient(self) -> int:
        """Rounds of both phases one after the other."""
        return sum(sufficient_rounds(self.plain.program_of_one(phase)) for phase in self.plain.phases)

    @cached_property
    def member(self) -> Mask:
        """Whether v is in V_c, ``(chunks, n)``."""
        result = np.zeros((self.collective.chunks, self.collective.n), dtype=bool)
        for pairs in (self.collective.pre, self.collective.post):
            result[pairs[:, 0], pairs[:, 1]] = True
        return result

    @cached_property
    def given(self) -> Mask:
        """Whether v is in Pre[c], ``(chunks, n)``."""
        result = np.zeros_like(self.member)
        result[self.collective.pre[:, 0], self.collective.pre[:, 1]] = True
        return result

    @cached_property
    def program(self) -> RoundProgram:
        """Program with the routes and the transfers between all vertices."""
        return RoundProgram(
            self.topology,
            self.collective,
            self.limits,
            self.horizon,
            self.plain.paths,
            self.plain.routes_kind,
            fixed=False,
            symmetry=False,
            version="printed",
        )

    @property
    def routes(self) -> RouteSet:
        """P_sd of all ordered pairs of vertices."""
        return self.program.routes

    @cached_property
    def transfers(self) -> Index:
        """The (r, s, d, c, i, w) of every C, in order, with the route number ``path``."""
        listed = self.program.columns
        members = self.member[listed["c"], listed["s"]] & self.member[listed["c"], listed["d"]]
        return listed.where(members).keyed("r s d c i w")

    @cached_property
    def replacements(self) -> Index:
        """The (r, d, c) of every F, in order."""
        return Index.grid(r=self.horizon).join(Index.of_mask("d c", self.member.T)).keyed("r d c")

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        plain, rmax, use_bounds = unphased_rounds.plain_rounds(cls, instance, given)
        if not plain.collective.summing:
            msg = f"{NAME}: {plain.collective.name!r} copies and does not sum; use lumorph.rounds"
            raise NotApplicable(msg)
        if plain.limits.ports is None:
            msg = f"{NAME}: {plain.topology.spec} has no tiles with lasers; use lumorph.rounds on WDM fibres"
            raise NotApplicable(msg)
        return cls(plain, rmax, use_bounds)

    # Builds -----------------------------------------------------------------------------------------------------

    @cached_property
    def indices(self) -> dict[str, Index]:
        """Variables, arcs of transfers, and the rows of every constraint, in order."""
        T, collective, room = self.horizon, self.collective, self.limits.room(self.topology)
        transfer, replacement, routes = self.transfers, self.replacements, self.routes
        wanted = np.bincount(collective.post[:, 0], minlength=collective.chunks)
        pre = Index.of_mask("c u", self.given)
        round_, moves = Index.grid(r=T), transfer.by("r s d c")
        crossing = transfer.join(Index.table("s d i e", {**routes.crossed, "W": room[routes.arcs]}))
        start = Index.of_mask("c v u", self.member[:, :, None] & self.given[:, None, :])
        contribution = Index.grid(r=T + 1).join(start).keyed("r c v u")
        crossed = crossing.by("r e w", "W")
        chunks = Index.grid(c=collective.chunks).given(least=self.given.sum(axis=1) + wanted - 2)
        return {
            "transfer": transfer,
            "crossing": crossing,
            "round": round_,
            "replacement": replacement,
            "contribution": contribution,
            "sent": moves.join(pre).keyed("r s d c u"),
            "given up": replacement.join(pre).keyed("r d c u"),
            "start": start,
            "finish": start.where(np.isin(start["c"] * collective.n + start["v"], collective.key(collective.post))),
            "state": round_.join(start.given(d=start["v"])).keyed("r c d u"),
            "unique": moves,
            "some": moves.where(~self.given[moves["c"], moves["s"]]),
            "transfers": chunks.where((wanted > 0) & (self.member.sum(axis=1) > 1)),
            "laser": transfer.by("r s w"),
            "photodiode": transfer.by("r d w"),
            "waveguide": crossed.where(crossed["count"] > crossed["W"]),
            "order": round_.where(round_["r"] > 0),
        }

    def sets(self) -> dict[str, Sequence[Any]]:
        """Variables, rounds, and the rows of every constraint."""
        return {**self.indices, "round": range(self.horizon)}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, T = Cvx(self), self.horizon
        Cs, E, Rs, Fs, Bs, Xs, Ys, *rows = self.indices.values()
        start, finish, state, unique, some, transfers, laser, photodiode, waveguide, order = rows
        C, F, B, X, Y, G = (b.var(name, upper=1, integer=True) for name in "CFBXYG")
        R = b.var("R", lower=Rs["r"] < self.floor, upper=1, integer=True)
        sends, source_has, target_has = Xs.of(Cs) @ C, Xs.of(Bs, v="s") @ B, Ys.of(Bs, v="d") @ B
        b.row("start", start.of(Bs, r=0) @ B == (start["u"] == start["v"]))
        b.row("finish", finish.of(Bs, r=T) @ B == 1)
        b.row(
            "state",
            (state.of(Bs, v="d", r=state["r"] + 1) - state.of(Bs, v="d")) @ B + state.of(Ys) @ Y - state.of(Xs) @ X
            == 0,
        )
        b.row("unique", unique.of(Cs) @ C <= 1)
        b.row("sent", X - sends <= 0)
        b.row("held", X - source_has <= 0)
        b.row("carried", sends + source_has - X <= 1)
        b.row("dropped", Y - Ys.of(Fs) @ F <= 0)
        b.row("owned", Y - target_has <= 0)
        b.row("lost", Ys.of(Fs) @ F + target_has - Y <= 1)
        b.row("new", G + target_has <= 1)
        b.row("gained", G - Ys.of(Bs, v="d", r=Ys["r"] + 1) @ B <= 0)
        b.row("gain", F - Fs.of(Ys) @ G <= 0)
        b.row("some", some.of(Cs) @ C <= some.of(Bs, v="s") @ B)
        b.row("transfers", transfers.of(Cs) @ C >= transfers["least"])
        b.row("laser", laser.of(Cs) @ C <= laser.of(Rs) @ R)
        b.row("photodiode", photodiode.of(Cs) @ C <= photodiode.of(Rs) @ R)
        b.row("waveguide", waveguide.of(E) @ C <= cp.multiply(waveguide["W"], waveguide.of(Rs) @ R))
        b.row("order", order.of(Rs) @ R <= order.of(Rs, r=order["r"] - 1) @ R)
        return b.minimize(cp.sum(R))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo."""
        from pyomo.core import quicksum

        b, T, rounds = Pyo(self), self.horizon, range(self.horizon)
        W, P, waves = (
            self.limits.room(self.topology).tolist(),
            self.routes.by_pair,
            range(self.limits.wavelengths),
        )
        pre, post = _by_chunk(self.collective.pre), _by_chunk(self.collective.post)
        V = {c: sorted({*pre[c], *post.get(c, [])}) for c in pre}
        moves = sorted((r, s, d, c) for r in rounds for c in V for s in V[c] for d in V[c] if s != d)
        drops = sorted((r, d, c) for r in rounds for c in V for d in V[c])
        sums = [(c, v, u) for c in V for v in V[c] for u in pre[c]]
        transfers = [(r, s, d, c, i, w) for r, s, d, c in moves for i in range(len(P[s, d])) for w in waves]
        sent = [(r, s, d, c, u) for r, s, d, c in moves for u in pre[c]]
        given_up = [(r, d, c, u) for r, d, c in drops for u in pre[c]]
        states = [(r, *j) for r in range(T + 1) for j in sums]
        C, F = b.var("C", upper=1, integer=True, over=transfers), b.var("F", upper=1, integer=True, over=drops)
        B, X = b.var("B", upper=1, integer=True, over=states), b.var("X", upper=1, integer=True, over=sent)
        Y, G = (b.var(name, upper=1, integer=True, over=given_up) for name in "YG")
        R = b.var("R", lower=[float(r < self.floor) for r in rounds], upper=1, integer=True)

        every, laser, photodiode, waveguide, of_chunk = (defaultdict(list) for _ in range(5))
        for r, s, d, c, i, w in transfers:
            x = C[r, s, d, c, i, w]
            every[r, s, d, c].append(x)
            of_chunk[c].append(x)
            laser[r, s, w].append(x)
            photodiode[r, d, w].append(x)
            for e in P[s, d][i]:
                waveguide[r, e, w].append(x)
        scarce = [(r, e, w) for (r, e, w), terms in waveguide.items() if len(terms) > W[e]]

        def sends(r: int, s: int, d: int, c: int) -> Any:
            return quicksum(every[r, s, d, c])

        def state(r: int, c: int, d: int, u: int) -> Any:
            received = quicksum(X[r, s, d, c, u] for s in V[c] if s != d)
            return B[r + 1, c, d, u] - B[r, c, d, u] + Y[r, d, c, u] - received == 0

        b.row("start", lambda c, v, u: B[0, c, v, u] == float(u == v), over=sums)
        b.row("finish", lambda c, v, u: B[T, c, v, u] == 1, over=[j for j in sums if j[1] in post.get(j[0], [])])
        b.row("state", state, over=[(r, *j) for r in rounds for j in sums])
        b.row("unique", lambda r, s, d, c: sends(r, s, d, c) <= 1, over=moves)
        b.row("sent", lambda r, s, d, c, u: X[r, s, d, c, u] - sends(r, s, d, c) <= 0, over=sent)
        b.row("held", lambda r, s, d, c, u: X[r, s, d, c, u] - B[r, c, s, u] <= 0, over=sent)
        b.row("carried", lambda r, s, d, c, u: sends(r, s, d, c) + B[r, c, s, u] - X[r, s, d, c, u] <= 1, over=sent)
        b.row("dropped", lambda r, d, c, u: Y[r, d, c, u] - F[r, d, c] <= 0, over=given_up)
        b.row("owned", lambda r, d, c, u: Y[r, d, c, u] - B[r, c, d, u] <= 0, over=given_up)
        b.row("lost", lambda r, d, c, u: F[r, d, c] + B[r, c, d, u] - Y[r, d, c, u] <= 1, over=given_up)
        b.row("new", lambda r, d, c, u: G[r, d, c, u] + B[r, c, d, u] <= 1, over=given_up)
        b.row("gained", lambda r, d, c, u: G[r, d, c, u] - B[r + 1, c, d, u] <= 0, over=given_up)
        b.row("gain", lambda r, d, c: F[r, d, c] - quicksum(G[r, d, c, u] for u in pre[c]) <= 0, over=drops)
        b.row(
            "some",
            lambda r, s, d, c: sends(r, s, d, c) - quicksum(B[r, c, s, u] for u in pre[c]) <= 0,
            over=[(r, s, d, c) for r, s, d, c in moves if s not in pre[c]],
        )
        b.row(
            "transfers",
            lambda c: quicksum(of_chunk[c]) >= len(pre[c]) - 1 + len(post[c]) - 1,
            over=[c for c in sorted(post) if c in of_chunk],
        )
        b.row("laser", lambda r, s, w: quicksum(laser[r, s, w]) - R[r] <= 0, over=sorted(laser))
        b.row("photodiode", lambda r, d, w: quicksum(photodiode[r, d, w]) - R[r] <= 0, over=sorted(photodiode))
        b.row("waveguide", lambda r, e, w: quicksum(waveguide[r, e, w]) - W[e] * R[r] <= 0, over=sorted(scarce))
        b.row("order", lambda r: R[r] - R[r - 1] <= 0, over=rounds[1:])
        return b.minimize(quicksum(R.values()))

    of_program = sum_solution.schedule_of_sums
    repair = sum_solution.completed_sums
    arrays = sum_solution.sum_arrays
    metrics = sum_solution.sum_metrics
    residuals = unphased_rounds.residuals
    objective = unphased_rounds.objective
    schedule = unphased_rounds.schedule
    bounds = unphased_rounds.bounds
    refute = unphased_rounds.refute
    unfold = unphased_rounds.unfold
    rounds = unphased_rounds.rounds
    replay = unphased_rounds.replay
    links = rounds_solution.rounds_links
    estimate = lumorph_sizes.sums_size


def _by_chunk(pairs: I64) -> dict[int, list[int]]:
    """The vertices of (chunk, vertex) pairs by chunk, in order."""
    result: dict[int, list[int]] = {}
    for c, v in pairs.tolist():
        result.setdefault(c, []).append(v)
    return result


FORMULATION = SumModel
