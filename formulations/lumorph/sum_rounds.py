r"""Sums in the fewest rounds of circuits: partial sums are combined, forwarded and copied in any order.

Source  LuMorph, Algorithm 1 and section 3.2 (all-reduce); possession of chunks cannot express sums, so the program is
        ours
Sets    r in 0..T-1 rounds, T = ``rmax``; c chunks; V_c = Pre[c] or Post[c]; s != d in V_c; u in Pre[c] contributions;
        i in P_sd routes of a pair; w in 0..L-1 wavelengths; e arcs
Data    Pre, Post of a summing collective (:mod:`opticoll.formulations.rounds.collectives`); L lasers and photodiodes of
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

Check. The schedule that C and F state is replayed (:mod:`opticoll.formulations.rounds.round_schedule`) with the number
of every contribution in every partial sum. ``post`` stands for ``finish``, ``causality`` for ``some``, ``redundant``
for ``gain``, ``unique`` and contributions that count twice, ``lasers``, ``photodiodes`` and ``waveguides`` for the rows
of these names; the others from ``start`` to ``gained`` only define variables. The objective counts the rounds in use;
``transfers`` holds for every solution.

R_min is the best of :func:`opticoll.formulations.lumorph.collective_bounds.sum_bounds`, unless ``bounds=false``. By
default T = R_1 + R_2 of a reduce-scatter and an all-gather
(:func:`~opticoll.formulations.lumorph.sufficient_rounds.sufficient_rounds` of each phase), which is a solution on the
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

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph import scheduled_rounds, sum_solution
from opticoll.formulations.lumorph.rounds import RoundModel
from opticoll.formulations.lumorph.sufficient_rounds import sufficient_rounds
from opticoll.formulations.lumorph.transfer_sets import RoundProgram
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter
from opticoll.instances.readers.reading import FileSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.formulations.model import Values
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import I64, Topology


@dataclass(frozen=True, eq=False)
class SumModel(Formulation):
    """Data of the model; ``plain`` is the same collective in phases."""

    name = "lumorph.sum-rounds"
    where = "Algorithm 1, section 3.2"
    example = "lightpath:2x2,lasers=2,waveguides=1"
    problem = "MILP"
    meaning = "rounds of circuits"
    parameters = (
        Parameter(
            "collective",
            FileSetting,
            FileSetting("all-reduce"),
            "reduce, reduce-scatter, all-reduce, or file:PATH with sums",
        ),
        Parameter("root", int, 0, "root of reduce", least=0),
        *scheduled_rounds.UNPHASED,
    )
    variables: ClassVar = {
        "C": ("transfer",),
        "F": ("replacement",),
        "B": ("contribution",),
        "X": ("sent",),
        "Y": ("given up",),
        "G": ("given up",),
        "R": ("round",),
    }
    chosen: ClassVar = ("C", "F")
    _beside = (sum_solution, scheduled_rounds)

    topology: Topology
    collective: Collective
    limits: Limits
    plain: RoundModel
    rmax: int
    use_bounds: bool

    given = cached_property(sum_solution.contributors)
    member = cached_property(sum_solution.members)
    analytic_bounds = cached_property(sum_solution.bounds_for_any_composition)
    fewest = cached_property(scheduled_rounds.best_bound)
    horizon = cached_property(scheduled_rounds.horizon)
    R_min = property(scheduled_rounds.first_rounds)
    most_rounds = property(scheduled_rounds.most_rounds)
    stated_circuits = property(scheduled_rounds.stated_circuits)

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        rmax, use_bounds = given.pop("rmax"), given.pop("bounds")
        plain = RoundModel.prepare(instance, given)
        if not plain.collective.summing:
            refuse(cls.name, f"{plain.collective.name!r} copies and does not sum; use lumorph.rounds", NotApplicable)
        if plain.limits.ports is None:
            msg = f"{cls.name}: {plain.topology.spec} has no tiles with lasers; use lumorph.rounds on WDM fibres"
            raise NotApplicable(msg)
        return cls(plain.topology, plain.collective, plain.limits, plain, rmax, use_bounds)

    def sufficient(self) -> int:
        """Rounds of both phases one after the other."""
        return sum(sufficient_rounds(self.plain.program(phase, 1)) for phase in self.plain.phases)

    @cached_property
    def program(self) -> RoundProgram:
        """Program with the routes and the transfers between all vertices."""
        paths, kind = self.plain.paths, self.plain.routes_kind
        given = (self.topology, self.collective, self.limits, self.horizon, paths, kind)
        return RoundProgram(*given, fixed=False, symmetry=False, version="printed")

    @property
    def routes(self) -> PathSet:
        """P_sd of all ordered pairs of vertices, as the program has listed them."""
        return self.program.routes

    @cached_property
    def index_sets(self) -> dict[str, Index]:
        """The indices of C, F, B, X and Y, in order; those of C with the route number ``path``."""
        T, listed = self.horizon, self.program.columns
        members = self.member[listed["c"], listed["s"]] & self.member[listed["c"], listed["d"]]
        transfer, pre = listed.where(members).keyed("r s d c i w"), Index.of_mask("c u", self.given)
        replacement = Index.grid(r=T).join(Index.of_mask("d c", self.member.T)).keyed("r d c")
        sums = Index.of_mask("c v", self.member).join(pre)
        return {
            "transfer": transfer,
            "replacement": replacement,
            "contribution": Index.grid(r=T + 1).join(sums).keyed("r c v u"),
            "sent": transfer.by("r s d c").join(pre).keyed("r s d c u"),
            "given up": replacement.join(pre).keyed("r d c u"),
        }

    def sets(self) -> dict[str, Sequence[Any]]:
        """The indices of variables, and rounds."""
        return {**self.index_sets, "round": range(self.horizon)}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, T, collective, room = Cvx(self), self.horizon, self.collective, self.limits.room(self.topology)
        Cs, Fs, Bs, Xs, Ys = self.index_sets.values()
        Rs, moves = Index.grid(r=T), Cs.by("r s d c")
        E = Cs.join(Index.table("s d i e", {**self.routes.crossed, "W": room[self.routes.arcs]}))
        start = Bs.by("c v u")
        finish = start.where(np.isin(start["c"] * collective.n + start["v"], collective.key(collective.post)))
        state = Bs.where(Bs["r"] < T).given(d=Bs["v"][Bs["r"] < T]).keyed("r c d u")
        some = moves.where(~self.given[moves["c"], moves["s"]])
        wanted = np.bincount(collective.post[:, 0], minlength=collective.chunks)
        chunks = Index.grid(c=collective.chunks).given(least=self.given.sum(axis=1) + wanted - 2)
        transfers = chunks.where((wanted > 0) & (self.member.sum(axis=1) > 1))
        laser, photodiode, crossed = Cs.by("r s w"), Cs.by("r d w"), E.by("r e w", "W")
        waveguide, order = crossed.where(crossed["count"] > crossed["W"]), Rs.where(Rs["r"] > 0)
        C, F, B, X, Y, G = (b.var(name, upper=1, integer=True) for name in "CFBXYG")
        R = b.var("R", lower=Rs["r"] < self.R_min, upper=1, integer=True)
        sends, source_has, target_has = Xs.of(Cs) @ C, Xs.of(Bs, v="s") @ B, Ys.of(Bs, v="d") @ B
        replaced = Ys.of(Fs) @ F
        grown = (state.of(Bs, v="d", r=state["r"] + 1) - state.of(Bs, v="d")) @ B
        b.row("start", start.of(Bs, r=0) @ B == (start["u"] == start["v"]), over=start)
        b.row("finish", finish.of(Bs, r=T) @ B == 1, over=finish)
        b.row("state", grown + state.of(Ys) @ Y - state.of(Xs) @ X == 0, over=state)
        b.row("unique", moves.of(Cs) @ C <= 1, over=moves)
        b.row("sent", X - sends <= 0, over=Xs)
        b.row("held", X - source_has <= 0, over=Xs)
        b.row("carried", sends + source_has - X <= 1, over=Xs)
        b.row("dropped", Y - replaced <= 0, over=Ys)
        b.row("owned", Y - target_has <= 0, over=Ys)
        b.row("lost", replaced + target_has - Y <= 1, over=Ys)
        b.row("new", G + target_has <= 1, over=Ys)
        b.row("gained", G - Ys.of(Bs, v="d", r=Ys["r"] + 1) @ B <= 0, over=Ys)
        b.row("gain", F - Fs.of(Ys) @ G <= 0, over=Fs)
        b.row("some", some.of(Cs) @ C <= some.of(Bs, v="s") @ B, over=some)
        b.row("transfers", transfers.of(Cs) @ C >= transfers["least"], over=transfers)
        b.row("laser", laser.of(Cs) @ C <= laser.of(Rs) @ R, over=laser)
        b.row("photodiode", photodiode.of(Cs) @ C <= photodiode.of(Rs) @ R, over=photodiode)
        b.row("waveguide", waveguide.of(E) @ C <= cp.multiply(waveguide["W"], waveguide.of(Rs) @ R), over=waveguide)
        b.row("order", order.of(Rs) @ R <= order.of(Rs, r=order["r"] - 1) @ R, over=order)
        return b.minimize(cp.sum(R))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo."""
        b, T, rounds = Pyo(self), self.horizon, range(self.horizon)
        W, P, waves = (
            self.limits.room(self.topology).tolist(),
            self.routes.by_ends,
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
        R = b.var("R", lower=[float(r < self.R_min) for r in rounds], upper=1, integer=True)

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
            return b.sum(every[r, s, d, c])

        def state(r: int, c: int, d: int, u: int) -> Any:
            received = b.sum(X[r, s, d, c, u] for s in V[c] if s != d)
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
        b.row("gain", lambda r, d, c: F[r, d, c] - b.sum(G[r, d, c, u] for u in pre[c]) <= 0, over=drops)
        b.row(
            "some",
            lambda r, s, d, c: sends(r, s, d, c) - b.sum(B[r, c, s, u] for u in pre[c]) <= 0,
            over=[(r, s, d, c) for r, s, d, c in moves if s not in pre[c]],
        )
        b.row(
            "transfers",
            lambda c: b.sum(of_chunk[c]) >= len(pre[c]) - 1 + len(post[c]) - 1,
            over=[c for c in sorted(post) if c in of_chunk],
        )
        b.row("laser", lambda r, s, w: b.sum(laser[r, s, w]) - R[r] <= 0, over=sorted(laser))
        b.row("photodiode", lambda r, d, w: b.sum(photodiode[r, d, w]) - R[r] <= 0, over=sorted(photodiode))
        b.row("waveguide", lambda r, e, w: b.sum(waveguide[r, e, w]) - W[e] * R[r] <= 0, over=sorted(scarce))
        b.row("order", lambda r: R[r] - R[r - 1] <= 0, over=rounds[1:])
        return b.minimize(b.sum(R.values()))

    def residuals(self, values: Values) -> dict[str, float]:
        """Violations in a replay of the schedule, by block (:func:`.scheduled_rounds.replay_residuals`)."""
        return scheduled_rounds.replay_residuals(self, values)

    def objective(self, values: Values) -> float:
        """Rounds of the schedule, infinite if the values contain none."""
        return scheduled_rounds.used_rounds(self, values)

    of_program = sum_solution.schedule_of_sums
    rounds = scheduled_rounds.rounds
    replay = scheduled_rounds.replay


def _by_chunk(pairs: I64) -> dict[int, list[int]]:
    """The vertices of (chunk, vertex) pairs by chunk, in order."""
    result: dict[int, list[int]] = {}
    for c, v in pairs.tolist():
        result.setdefault(c, []).append(v)
    return result


FORMULATION = SumModel
