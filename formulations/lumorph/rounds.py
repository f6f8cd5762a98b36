r"""Collectives in the fewest rounds of circuits (LuMorph, Algorithm 1).

Source  LuMorph, Algorithm 1, (1)-(9)
Sets    r in 0..R_max-1 rounds; c chunks; s, d vertices; i in P_sd routes of a pair; w in 0..L-1 wavelengths; e arcs;
        p consecutive phases; g images (c, d) of the first delivery under the symmetries of the mesh
Data    Pre, Post collective (:mod:`opticoll.formulations.rounds.collectives`); L lasers and photodiodes of a tile, or
        wavelengths of a WDM fibre; W_e waveguides of an arc, or fibres between wafers or WDM nodes; P_sd, by
        default the two routes of one bend; R_min, R_max
Vars    C[r,s,d,c,i,w] in {0,1} chunk c goes from s to d on route i and wavelength w in round r, for d in Post[c]
        without Pre[c] and s in Pre[c] or Post[c], in the first round s in Pre[c]; R[r] in {0,1} round r is used;
        H[c,d,r] in {0,1} c is delivered to d by round r, r not the last of its phase; only in phases where
        chunks are forwarded. In files, C and H are flat lists in index order (H by phase first).
        As printed and as coded: C, R, and z for the last round

min sum_r R[r]  s.t.
    deliver[p,c,d]       sum_rsiw C[r,s,d,c,i,w] = 1      over the rounds of p                                   (3)
    received[c,d,r]      H[c,d,r] - H[c,d,r-1] - sum_siw C[r,s,d,c,i,w] = 0
    hold[r,s,d,c]        sum_iw C[r,s,d,c,i,w] - H[c,s,r-1] <= 0      for s not in Pre[c]                        (2)
    laser[r,s,w]         sum_dci C[r,s,d,c,i,w] - R[r] <= 0                                                      (4, 7)
    photodiode[r,d,w]    sum_sci C[r,s,d,c,i,w] - R[r] <= 0                                                      (5, 7)
    waveguide[r,e,w]     sum over routes i through e of C[r,s,d,c,i,w] - W_e R[r] <= 0                           (6, 7)
    order[r]             R[r] - R[r-1] <= 0               within a phase                                         (9)
    R[r] = 1 for the first R_min rounds of a phase                                                               (8)

Rows of ``waveguide`` with at most W_e terms cannot bind and are omitted. On ``wdm-ring`` and ``wdm-line`` a node has a
transmitter and a receiver for every wavelength of each of its fibres (OpTree, section III-A), so ``laser`` and
``photodiode`` are absent, and ``waveguide`` has all rows, because it alone opens rounds. Rounds are numbered through
all phases.

Corrections: (2) as printed has no Pre term (a vertex may send a chunk that it holds at the start) and sums over Post;
(3) is one constraint per chunk *and destination*, and only vertices of Post receive a chunk; (4) and (5) are "at most
1", not "= 1"; (8), (9) and the range of the objective drop their end indices, so a round at R_max is free;
max r R_r equals sum R_r once (9) holds, and is linear. (1) follows from (3). (4)-(6) carry R_r on the right-hand side,
(7) row by row, so the linear relaxation respects the limits on receptions, sends and cuts.

Check. The schedule that C states is replayed (:mod:`opticoll.formulations.rounds.round_schedule`): ``post`` and
``redundant`` stand for ``deliver``, ``causality`` for ``received`` and ``hold``, ``lasers``, ``photodiodes`` and
``waveguides`` for the rows of these names. The objective counts the rounds in use, so that ``order`` holds by itself;
``mirror`` only removes equal solutions.

``program=printed`` is Algorithm 1 as printed, ``program=coded`` the program in the authors' code; both are given
below (:mod:`opticoll.formulations.lumorph.published_programs`). Everything else refers to ``program=corrected``, the
default.

P_sd with ``routes=algorithm-2`` is one optimum of Algorithm 2, with all pairs of the moves as circuits, as in the
authors' code (with (16) as in the text, 1; as printed, 0, it bars every route from its destination).

R_min "from a smaller interconnect" is not a bound across shapes (1x12 needs 36 colours at W = 1, 4x4 only 16). R_min
here is the best of :func:`opticoll.formulations.lumorph.collective_bounds.round_bounds`, unless ``bounds=false``; an
``rmin`` above that is refused, since it is not proven. R_max is ``rmax``, or by default the minimum of the closed forms
of :mod:`opticoll.formulations.lumorph.sufficient_rounds`, which suffice on every instance. Possession of chunks cannot
express sums: reductions are copies run backwards, and an all-reduce is a reduce-scatter followed by an all-gather
(:func:`opticoll.formulations.rounds.collectives.phases`), each phase p in its own rounds.

Composition. An all-reduce must be a valid reduce-scatter, every chunk c at the (c mod k)-th of its k targets (of those
that contribute, if some do), in the rounds up to the last that adds, and a valid all-gather from there in the others.
The check requires it, the bounds add up those of the phases, and methods whose sums take another course are refused:
sums in any order are :mod:`opticoll.formulations.lumorph.sum_rounds`. Collectives without sums, and sums for one target
per chunk, have one phase, and are the same problem in both.

Routes. The program's optimum is over its routes P_sd. By default the check accepts any routes, and the analytic bounds
hold for all of them: ``metrics.unrestricted_proven`` is whether they prove the value for any routes. Routes that are
stated (``paths``, ``routes``) are part of the problem: the check requires them, and methods that choose their own
routes are refused.

WAVE: the paper gives every route one wavelength; ``wavelengths=free`` (the default) lets each transfer choose,
``fixed`` uses :meth:`~opticoll.formulations.lumorph.transfer_sets.RoundProgram.wave`.

Symmetry (``symmetry=true``) is broken twice. With ``wavelengths=free`` and one port, wavelengths are numbered by the
busiest receiver v (the lowest of several): C[r,s,v,c,i,w] exists for w <= q only, where c is the q-th chunk, from 0,
that v must receive. And

    mirror[g]            sum r C over the first delivery - sum r C over its image g <= 0,

for the symmetries of the mesh that preserve arcs, collective and routes.

Schedules by other methods are given as the named arrays of :mod:`opticoll.formulations.rounds.round_schedule`, over any
routes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, ClassVar, Self

from opticoll.errors import NotApplicable
from opticoll.formulations.builders import Cvx, Pyo
from opticoll.formulations.index import Index
from opticoll.formulations.lumorph import (
    published_programs,
    rounds_bounds,
    rounds_data,
    rounds_solution,
    scheduled_rounds,
)
from opticoll.formulations.lumorph.sufficient_rounds import sufficient_rounds
from opticoll.formulations.lumorph.transfer_sets import RoundProgram
from opticoll.formulations.model import CvxpyModel, Formulation, PyomoModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.transfer_sets import Version
    from opticoll.formulations.rounds.collectives import Collective, Phase
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances import Topology

__doc__ = f"{__doc__}\n{published_programs.__doc__}"


@dataclass(frozen=True, eq=False)
class RoundModel(Formulation):
    """Data of the model.

    ``collective`` is composed of ``phases``; ``limits`` hold per round; ``version`` is the parameter ``program``;
    ``paths``, ``routes_kind``, ``fixed``, ``rmin``, ``rmax``, ``use_bounds``, ``symmetry`` are the other
    parameters. ``routes_stated`` is whether the candidate routes are part of the problem.
    """

    name = "lumorph.rounds"
    where = "Algorithm 1, (1)-(9)"
    example = "lightpath:2x2,lasers=2,waveguides=1"
    problem = "MILP"
    meaning = "rounds of circuits"
    parameters = rounds_data.PARAMETERS
    variables: ClassVar = {"C": ("transfer",), "H": ("received",), "R": ("round",), "z": ()}
    chosen: ClassVar = ("C",)
    _beside = (rounds_data, rounds_bounds, rounds_solution, scheduled_rounds)

    topology: Topology
    collective: Collective
    phases: tuple[Phase, ...]
    limits: Limits
    paths: int
    routes_kind: str
    fixed: bool
    rmin: int
    rmax: int
    use_bounds: bool
    symmetry: bool
    version: Version
    routes_stated: bool

    phase_bounds = cached_property(rounds_bounds.bounds_of_phases)
    analytic_bounds = cached_property(rounds_bounds.bounds_for_any_routes)
    least = cached_property(rounds_bounds.least_rounds_of_phases)
    fewest = cached_property(scheduled_rounds.best_bound)
    R_min = cached_property(rounds_bounds.first_rounds)
    stated_circuits = property(rounds_solution.stated_circuits)

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The data of the model."""
        return rounds_data.read(cls, instance, given)

    @property
    def phased(self) -> bool:
        """Whether the collective has several phases."""
        return len(self.phases) > 1

    @property
    def plain(self) -> RoundModel:
        """The problem itself."""
        return self

    @property
    def most_rounds(self) -> int:
        """R_max of all phases together, 0 for any."""
        return self.rmax * len(self.phases)

    def arena(self, phase: Phase) -> Topology:
        """Topology on which a phase is scheduled: reversed if the phase runs backwards."""
        t = self.topology
        return t.with_arcs(t.head, t.tail, t.capacity) if phase.backwards else t

    def program(self, phase: Phase, rounds: int) -> RoundProgram:
        """Program of a phase with R_max = ``rounds``."""
        return RoundProgram(
            self.arena(phase),
            phase.copying,
            self.limits,
            rounds,
            self.paths,
            self.routes_kind,
            self.fixed,
            self.symmetry,
            version=self.version,
        )

    @cached_property
    def programs(self) -> tuple[RoundProgram, ...]:
        """Integer program of every phase.

        Raises
        ------
        NotApplicable
            If ``rmin`` is above the default R_max.
        """
        one = [replace(self.program(phase, 1), version="corrected") for phase in self.phases]
        most = [self.rmax or sufficient_rounds(program) for program in one]
        result = tuple(map(self.program, self.phases, most))
        if self.version != "corrected" and self.rmin > result[0].rounds:
            msg = f"{self.name}: rmin={self.rmin} is above the default rmax={result[0].rounds}; set rmax too"
            raise NotApplicable(msg)
        return result

    @cached_property
    def tables(self) -> dict[str, Index]:
        """Transfers, arcs of routes, rounds, deliveries, H, and images g, all phases one after the other."""
        start = accumulate((program.rounds for program in self.programs), initial=0)
        phases = [
            program.tables(p, first, least)
            for p, (first, least, program) in enumerate(zip(start, self.R_min, self.programs, strict=False))
        ]
        keys = {
            "transfer": "r s d c i w",
            "route": "p s d i e",
            "round": "r",
            "deliver": "p c d",
            "received": "c d r",
            "mirror": "p c d",
        }
        return {name: Index.table(key, *(phase[name] for phase in phases)) for name, key in keys.items()}

    def sets(self) -> dict[str, Sequence[Any]]:
        """Transfers, rounds, and deliveries by round."""
        if self.version != "corrected":
            return published_programs.sets(self.programs[0])
        return {**self.tables, "round": range(len(self.tables["round"]))}

    def pyomo(self) -> PyomoModel:
        """The model in Pyomo; as printed and coded, that of :mod:`opticoll.formulations.lumorph.published_programs`."""
        if self.version != "corrected":
            return published_programs.pyomo_build(Pyo(self), self.programs[0], self.rmin)
        b, programs = Pyo(self), self.programs
        start = list(accumulate((program.rounds for program in programs), initial=0))
        phase = [p for p, program in enumerate(programs) for _ in range(program.rounds)]
        pre = [set(map(tuple, program.collective.pre.tolist())) for program in programs]
        wanted = [sorted(map(tuple, program.collective.deliveries.tolist())) for program in programs]
        W = [program.limits.room(program.topology).tolist() for program in programs]
        P, tiles = [program.routes.by_ends for program in programs], self.limits.ports is not None
        T = [j for first, program in zip(start, programs, strict=False) for j in _transfers(program, first)]
        onward = {phase[r] for r, s, _, c, _, _ in T if (c, s) not in pre[phase[r]]}
        made = [(p, c, d) for p in range(len(programs)) for c, d in wanted[p]]
        held = [(c, d, r) for p, c, d in made if p in onward for r in range(start[p], start[p + 1] - 1)]
        C, H = b.var("C", upper=1, integer=True, over=T), b.var("H", upper=1, integer=True, over=held)
        floor = [float(r - start[p] < self.R_min[p]) for r, p in enumerate(phase)]
        R = b.var("R", lower=floor, upper=1, integer=True)

        deliver, received, hold, laser, photodiode, waveguide, late = (defaultdict(list) for _ in range(7))
        for r, s, d, c, i, w in T:
            p, x = phase[r], C[r, s, d, c, i, w]
            deliver[p, c, d].append(x)
            received[c, d, r].append(x)
            if (c, s) not in pre[p]:
                hold[r, s, d, c].append(x)
            if tiles:
                laser[r, s, w].append(x)
                photodiode[r, d, w].append(x)
            for e in P[p][s, d][i]:
                waveguide[r, e, w].append(x)
            if r > 0:
                late[p, c, d].append(r * x)
        scarce = [(r, e, w) for (r, e, w), over in waveguide.items() if len(over) > W[phase[r]][e] or not tiles]
        images = [(p, c, d) for p, program in enumerate(programs) for c, d in program.mirrors]

        b.row("deliver", lambda p, c, d: b.sum(deliver[p, c, d]) == 1, over=made)
        b.row(
            "received",
            lambda c, d, r: H[c, d, r] - (0 if r in start else H[c, d, r - 1]) - b.sum(received[c, d, r]) == 0,
            over=held,
        )
        b.row("hold", lambda r, s, d, c: b.sum(hold[r, s, d, c]) - H[c, s, r - 1] <= 0, over=sorted(hold))
        b.row("laser", lambda r, s, w: b.sum(laser[r, s, w]) - R[r] <= 0, over=sorted(laser))
        b.row("photodiode", lambda r, d, w: b.sum(photodiode[r, d, w]) - R[r] <= 0, over=sorted(photodiode))
        b.row("waveguide", lambda r, e, w: b.sum(waveguide[r, e, w]) - W[phase[r]][e] * R[r] <= 0, over=sorted(scarce))
        b.row("mirror", lambda p, c, d: b.sum(late[p, *wanted[p][0]]) - b.sum(late[p, c, d]) <= 0, over=images)
        b.row("order", lambda r: R[r] - R[r - 1] <= 0, over=[r for r in range(len(phase)) if r not in start])
        return b.minimize(b.sum(R.values()))

    def cvxpy(self) -> CvxpyModel:
        """The model in CVXPY; as printed and coded, that of :mod:`opticoll.formulations.lumorph.published_programs`."""
        if self.version != "corrected":
            return published_programs.cvxpy_build(Cvx(self), self.programs[0], self.rmin)
        import cvxpy as cp

        b, tiles = Cvx(self), self.limits.ports is not None
        T, routes, rounds, deliver, held, mirror = self.tables.values()
        E = T.join(routes)
        hold, laser, photodiode = T.where(T["pre"] == 0).by("r s d c"), T.by("r s w"), T.by("r d w")
        waveguide, order = E.by("r e w", "W"), rounds.where(rounds["first"] == 0)
        scarce = waveguide.where((waveguide["count"] > waveguide["W"]) | (not tiles))
        C, H = b.var("C", upper=1, integer=True), b.var("H", upper=1, integer=True)
        R = b.var("R", lower=rounds["least"], upper=1, integer=True)
        rC = cp.multiply(T["r"], C)
        b.row("deliver", deliver.of(T) @ C == 1, over=deliver)
        b.row("received", H - held.of(held, r=held["r"] - 1) @ H - held.of(T) @ C == 0, over=held)
        b.row("hold", hold.of(T) @ C <= hold.of(held, d="s", r=hold["r"] - 1) @ H, over=hold)
        if tiles:
            b.row("laser", laser.of(T) @ C <= laser.of(rounds) @ R, over=laser)
            b.row("photodiode", photodiode.of(T) @ C <= photodiode.of(rounds) @ R, over=photodiode)
        b.row("waveguide", scarce.of(E) @ C <= cp.multiply(scarce["W"], scarce.of(rounds) @ R), over=scarce)
        b.row("mirror", mirror.of(T, c="first_c", d="first_d") @ rC <= mirror.of(T) @ rC, over=mirror)
        b.row("order", order.of(rounds) @ R <= order.of(rounds, r=order["r"] - 1) @ R, over=order)
        return b.minimize(cp.sum(R))

    def residuals(self, values: Mapping[str, NDArray[Any]]) -> dict[str, float]:
        """Violations in a replay of the schedule, by block (:func:`.scheduled_rounds.replay_residuals`).

        ``wave`` counts circuits that are not on their fixed wavelength, ``phases`` violations of a reduce-scatter and
        an all-gather. As printed and coded, the blocks are those of
        :mod:`opticoll.formulations.lumorph.published_programs`; ``replay`` is the worst violation of the schedule as
        coded.
        """
        if self.version != "corrected":
            return published_programs.residuals(self, values)
        result = scheduled_rounds.replay_residuals(self, values)
        schedule = scheduled_rounds.schedule_in(self, values)
        if self.phased:
            result["phases"] = float("inf") if schedule is None else rounds_solution.phase_violations(self, schedule)
        if self.fixed:
            allowed = rounds_solution.candidate_circuits(self)
            result["wave"] = (
                float("inf") if schedule is None else scheduled_rounds.circuits_off(allowed, schedule, fixed=True)
            )
        return result

    def objective(self, values: Mapping[str, NDArray[Any]]) -> float:
        """Rounds of the schedule, infinite if the values contain none; as printed and coded, max r R[r]."""
        if self.version != "corrected":
            return published_programs.objective(self.programs[0], self.rmin, values["R"])
        return scheduled_rounds.used_rounds(self, values)

    composed = rounds_solution.composed
    of_program = rounds_solution.schedule_of_transfers
    rounds = scheduled_rounds.rounds
    replay = rounds_solution.replayed


def _transfers(program: RoundProgram, start: int) -> list[tuple[int, ...]]:
    """The (r, s, d, c, i, w) of one phase, its rounds from ``start`` on, in order."""
    L, P = program.limits.wavelengths, program.routes.by_ends
    pre, wanted = (set(map(tuple, x.tolist())) for x in (program.collective.pre, program.collective.deliveries))
    due = Counter(d for _, d in wanted)
    ordered = program.symmetry and not program.fixed and program.limits.ports == 1
    busiest = min(due, key=lambda d: (-due[d], d)) if ordered else None
    turn = {c: q for q, (c, _) in enumerate(sorted(one for one in wanted if one[1] == busiest))}
    V, holders = range(program.topology.n), pre | wanted
    moves = sorted((s, d, c) for c, d in wanted for s in V if s != d and (c, s) in holders)

    def waves(s: int, d: int, c: int, i: int) -> Sequence[int]:
        if program.fixed:
            return [(d - s + i) % L]
        return range(min(L, turn[c] + 1) if d == busiest else L)

    return [
        (start + r, s, d, c, i, w)
        for r in range(program.rounds)
        for s, d, c in moves
        if r > 0 or (c, s) in pre
        for i in range(len(P[s, d]))
        for w in waves(s, d, c, i)
    ]


FORMULATION = RoundModel
