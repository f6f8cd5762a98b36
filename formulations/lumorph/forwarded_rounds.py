r"""Copies in the fewest rounds of circuits, forwarded and combined: what the index algorithm solves.

Source  LuMorph, section 4 and appendix C (all-to-all in log2 N rounds); Bruck et al., IEEE TPDS 8(11), 1997 (index
        algorithm, k-port lower bound)
Sets    r in 0..T-1 rounds, T = ``rmax``; q classes of chunks with the same Pre; s != d, v vertices; i in P_sd routes of
        a pair; w in 0..L-1 wavelengths; e arcs
Data    Pre, Post of a copying collective (:mod:`opticoll.formulations.rounds.collectives`), Post[q] the union over the
        chunks of q; L lasers and photodiodes of a tile, or wavelengths of a WDM fibre; W_e waveguides of an arc, or
        fibres between wafers or WDM nodes; P_sd, by default the two routes of one bend; R_min
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

Check. The schedule that D and X state is replayed (:mod:`opticoll.formulations.rounds.round_schedule`): ``causality``
stands for ``state`` and ``hold``, ``post`` for ``finish``, ``payload`` for ``connected``, ``lasers``, ``photodiodes``
and ``waveguides`` for the rows of these names. The objective counts the rounds in use, so that ``order`` holds by
itself.

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

from opticoll.errors import NotApplicable
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph import forwarded_solution, scheduled_rounds
from opticoll.formulations.lumorph.rounds import RoundModel
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel
from opticoll.formulations.parameters import Parameter
from opticoll.instances.readers.reading import FileSetting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.formulations.model import Values
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances import Topology


@dataclass(frozen=True, eq=False)
class ForwardedRounds(Formulation):
    """Data of the model.

    ``limits`` of a round, with any number of chunks on a circuit; ``plain`` is the same collective without forwarding.
    """

    name = "lumorph.forwarded-rounds"
    where = "section 4, appendix C"
    example = "lightpath:2x2,lasers=1,waveguides=1"
    problem = "MILP"
    meaning = "rounds of circuits"
    parameters = (
        Parameter(
            "collective",
            FileSetting,
            FileSetting("all-to-all"),
            "broadcast, scatter, gather, all-gather, all-to-all, or file:PATH without sums",
        ),
        Parameter("root", int, 0, "root of broadcast, scatter and gather", least=0),
        *scheduled_rounds.UNPHASED,
    )
    variables: ClassVar = {"D": ("circuit",), "X": ("sent",), "B": ("state",), "R": ("round",)}
    chosen: ClassVar = ("D", "X")
    _beside = (forwarded_solution, scheduled_rounds)

    topology: Topology
    collective: Collective
    limits: Limits
    plain: RoundModel
    rmax: int
    use_bounds: bool

    class_of = cached_property(forwarded_solution.classes)
    given = cached_property(forwarded_solution.holders)
    wanted = cached_property(forwarded_solution.receivers)
    analytic_bounds = cached_property(forwarded_solution.forwarded_bounds)
    fewest = cached_property(scheduled_rounds.best_bound)
    horizon = cached_property(scheduled_rounds.horizon)
    R_min = property(scheduled_rounds.first_rounds)
    most_rounds = property(scheduled_rounds.most_rounds)
    routes = cached_property(scheduled_rounds.all_routes)
    stated_circuits = property(scheduled_rounds.stated_circuits)

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        rmax, use_bounds = given.pop("rmax"), given.pop("bounds")
        plain = RoundModel.prepare(instance, given)
        if plain.collective.summing:
            msg = f"{cls.name}: {plain.collective.name!r} sums and does not copy; use lumorph.rounds or .sum-rounds"
            raise NotApplicable(msg)
        return cls(plain.topology, plain.collective, replace(plain.limits, load=None), plain, rmax, use_bounds)

    @cached_property
    def circuits(self) -> Index:
        """The (r, s, d, i, w) of every D, in order, with the route number ``path``."""
        listed = Index.grid(r=self.horizon).join(Index.table("s d i path", self.routes.listed))
        return listed.join(Index.grid(w=self.limits.wavelengths)).keyed("r s d i w")

    @cached_property
    def sends(self) -> Index:
        """The (r, q, s, d) of every X, in order."""
        X = Index.grid(r=self.horizon, q=len(self.given), s=self.topology.n, d=self.topology.n)
        first, holds, held = X["r"] == 0, self.given[X["q"], X["s"]], self.given[X["q"], X["d"]]
        return X.where((X["s"] != X["d"]) & ~held & (holds | ~first)).keyed("r q s d")

    @cached_property
    def states(self) -> Index:
        """The (r, q, v) of every B, in order."""
        return Index.grid(r=self.horizon).join(Index.of_mask("q v", ~self.given)).keyed("r q v")

    def sets(self) -> dict[str, Sequence[Any]]:
        """Circuits, sends, states and rounds."""
        return {"circuit": self.circuits, "sent": self.sends, "state": self.states, "round": range(self.horizon)}

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY."""
        import cvxpy as cp

        b, Ds, Xs, Bs, Rs = Cvx(self), self.circuits, self.sends, self.states, Index.grid(r=self.horizon)
        room = self.limits.room(self.topology)[self.routes.arcs]
        E = Ds.join(Index.table("s d i e", {**self.routes.crossed, "W": room}))
        finish, hold = Index.of_mask("q v", self.wanted), Xs.where(~self.given[Xs["q"], Xs["s"]])
        laser, photodiode, waveguide = Ds.by("r s w"), Ds.by("r d w"), E.by("r e w", "W")
        order = Rs.where(Rs["r"] > 0)
        D, X, B = (b.var(name, upper=1, integer=True) for name in "DXB")
        R = b.var("R", lower=Rs["r"] < self.R_min, upper=1, integer=True)
        b.row("state", B - Bs.of(Bs, r=Bs["r"] - 1) @ B - Bs.of(Xs, d="v") @ X == 0, over=Bs)
        b.row("finish", finish.of(Bs, r=self.horizon - 1) @ B == 1, over=finish)
        b.row("hold", hold.of(Xs) @ X <= hold.of(Bs, v="s", r=hold["r"] - 1) @ B, over=hold)
        b.row("connected", X - Xs.of(Ds) @ D <= 0, over=Xs)
        if self.limits.ports is not None:
            b.row("laser", laser.of(Ds) @ D <= laser.of(Rs) @ R, over=laser)
            b.row("photodiode", photodiode.of(Ds) @ D <= photodiode.of(Rs) @ R, over=photodiode)
        b.row("waveguide", waveguide.of(E) @ D <= cp.multiply(waveguide["W"], waveguide.of(Rs) @ R), over=waveguide)
        b.row("order", order.of(Rs) @ R <= order.of(Rs, r=order["r"] - 1) @ R, over=order)
        return b.minimize(cp.sum(R))

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo."""
        b, T, limits, P = Pyo(self), self.horizon, self.limits, self.routes.by_ends
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
        R = b.var("R", lower=[float(r < self.R_min) for r in rounds], upper=1, integer=True)

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
            return B[r, q, d] - before - b.sum(received[r, q, d]) == 0

        b.row("state", state, over=states)
        b.row("finish", lambda q, v: B[T - 1, q, v] == 1, over=map(tuple, np.argwhere(self.wanted).tolist()))
        b.row(
            "hold",
            lambda r, q, s, d: X[r, q, s, d] - B[r - 1, q, s] <= 0,
            over=[(r, q, s, d) for r, q, s, d in sent if s not in pre[q]],
        )
        b.row("connected", lambda r, q, s, d: X[r, q, s, d] - b.sum(between[r, s, d]) <= 0, over=sent)
        b.row("laser", lambda r, s, w: b.sum(laser[r, s, w]) - R[r] <= 0, over=sorted(laser))
        b.row(
            "photodiode",
            lambda r, d, w: b.sum(photodiode[r, d, w]) - R[r] <= 0,
            over=sorted(photodiode),
        )
        b.row("waveguide", lambda r, e, w: b.sum(waveguide[r, e, w]) - W[e] * R[r] <= 0, over=sorted(waveguide))
        b.row("order", lambda r: R[r] - R[r - 1] <= 0, over=rounds[1:])
        return b.minimize(b.sum(R.values()))

    def residuals(self, values: Values) -> dict[str, float]:
        """Violations in a replay of the schedule, by block (:func:`.scheduled_rounds.replay_residuals`)."""
        return scheduled_rounds.replay_residuals(self, values, relays=True)

    def objective(self, values: Values) -> float:
        """Rounds of the schedule, infinite if the values contain none."""
        return scheduled_rounds.used_rounds(self, values)

    sufficient = forwarded_solution.doubling_rounds
    of_program = forwarded_solution.schedule_of_circuits
    rounds = scheduled_rounds.rounds
    replay = scheduled_rounds.replay


FORMULATION = ForwardedRounds
