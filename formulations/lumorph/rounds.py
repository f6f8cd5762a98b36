r"""Collectives in the fewest rounds of circuits (LuMorph, Algorithm 1).

Source  LuMorph, Algorithm 1, (1)-(9)
Sets    r in 0..R-1 rounds; c chunks; s, d vertices; i in P_sd routes of a pair; w in 0..L-1 wavelengths; e arcs
Data    Pre, Post collective (:mod:`opticoll.formulations.rounds.collectives`); L lasers and photodiodes of a tile;
        W waveguides of an arc; P_sd, by default the two routes of one bend; R_min, R_max
Vars    C[r,s,d,c,i,w] in {0,1} chunk c goes from s to d on route i and wavelength w in round r, listed flat (N,);
        R[p,r] in {0,1} round r of phase p is used;
        H[k,r] in [0,1] delivery k = (c, d) is made in round r or before, listed flat; only where chunks are forwarded

min sum_pr R[p,r]  s.t.
    deliver[k]           sum of C over delivery k = (c, d)  = 1                 (3)
    received[k,r]        H[k,r] - H[k,r-1] - sum of C[r] over delivery k = 0
    hold[r,s,d,c]        sum_iw C[r,s,d,c,i,w] - H[(c,s),r-1] <= 0   for s not in Pre[c]                     (2)
    laser[r,s,w]         sum_dci C - R[p,r] <= 0                                (4), (7)
    photodiode[r,d,w]    sum_sci C - R[p,r] <= 0                                (5), (7)
    waveguide[r,e,w]     sum over routes through e of C - W R[p,r] <= 0         (6), (7)
    order[r]             R[p,r] - R[p,r-1] <= 0                                 (9)
    R[p,r] = 1 for r < R_min                                                    (8)

Corrections: (2) as printed has no Pre term (a vertex may send a chunk that it holds at the start) and sums over Post;
(3) is one constraint per chunk *and destination*, and only vertices of Post receive a chunk; (4) and (5) are "at most
1", not "= 1"; (8), (9) and the range of the objective drop their end indices, so that a round at R_max is free;
max r R_r equals sum R_r once (9) holds, and is linear. (1) follows from (3). (4)-(6) carry R_r on the right-hand side,
(7) row by row, so that the linear relaxation respects the limits on receptions, sends and cuts.

R_min "from a smaller interconnect" is not a bound across shapes (1x12 needs 36 colours at W = 1, 4x4 only 16). R_min
here is the best of :func:`opticoll.formulations.lumorph.round_bounds.round_bounds`, unless ``bounds=false``. A larger
``rmin`` forces that many rounds, and is refused if a shorter schedule is known. R_max is ``rmax``, or by default the
upper bound of :func:`opticoll.formulations.lumorph.round_rows.sufficient_rounds`. Possession of chunks cannot
express sums: reductions are copies run backwards, and an all-reduce is a reduce-scatter followed by an all-gather
(:func:`opticoll.formulations.rounds.collectives.phases`), each phase p in its own rounds.

The program's optimum is over its routes P_sd and, for an all-reduce, over such compositions. The check accepts any
schedule over any routes, where two vertices may exchange whole buffers in one round. The analytic bounds hold for all:
``metrics.unrestricted_proven`` says whether they prove the value for any routes and any composition,
``composition_proven`` whether each phase on its own is proven, over any routes.

WAVE: the paper gives every route one wavelength; ``wavelengths=free`` (the default) lets each transfer choose,
``fixed`` uses :meth:`~opticoll.formulations.lumorph.round_rows.RoundProgram.wave`.

Symmetry (``symmetry=true``) is broken twice: wavelengths are numbered round by round by the busiest receiver, and
    mirror[g]            round of delivery 0 <= round of its image under g, for every symmetry g of the mesh that
                         preserves arcs, collective and routes (:mod:`opticoll.formulations.lumorph.round_rows`).

Schedules by other methods are given as the named arrays of :mod:`opticoll.formulations.rounds.round_schedule`, over any
routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.arrays import Array
from opticoll.formulations.lumorph import PAPER
from opticoll.formulations.lumorph.round_bounds import round_bounds, sum_bounds
from opticoll.formulations.lumorph.round_rows import RoundProgram, Rows, rows, sufficient_rounds
from opticoll.formulations.model import (
    Bound,
    CvxpyModel,
    Formulation,
    MatrixModel,
    Named,
    NotApplicable,
    Parameter,
    PyomoModel,
)
from opticoll.formulations.rounds import select
from opticoll.formulations.rounds.collectives import CollectiveSpec, Phase, collective, phases
from opticoll.formulations.rounds.round_schedule import (
    Limits,
    RoundSchedule,
    chained,
    direct,
    from_values,
    opposite_arcs,
    schedule_arrays,
    violations,
)
from opticoll.instances import Topology
from opticoll.instances.photonic import LightpathMesh

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.rounds.collectives import Collective

    I64 = NDArray[np.int64]
    F64 = NDArray[np.float64]

NAME = "lumorph.rounds"
PARAMETERS = (
    Parameter("collective", CollectiveSpec, CollectiveSpec("all-gather"), "broadcast, scatter, gather, all-gather, "
              "all-to-all, reduce, reduce-scatter, all-reduce, or file:PATH"),
    Parameter("root", int, 0, "root of broadcast, scatter, gather and reduce"),
    Parameter("pieces", int, 1, "chunks per shard"),
    Parameter("paths", int, 2, "routes per pair, K"),
    Parameter("routes", str, "straight", "route set: straight routes first, or Yen's shortest", ("straight", "yen")),
    Parameter("wavelengths", str, "free", "wavelength of a route: any, or a fixed one", ("free", "fixed")),
    Parameter("lasers", int, 0, "lasers per tile; 0 for the instance's"),
    Parameter("waveguides", int, 0, "waveguides per arc; 0 for the instance's"),
    Parameter("rmin", int, 0, "number of rounds that are always used; 0 for the best bound"),
    Parameter("rmax", int, 0, "most rounds of a phase; 0 for a sufficient number"),
    Parameter("bounds", bool, True, "use analytic bounds; false leaves the proof to the program"),
    Parameter("symmetry", bool, True, "break the symmetries of wavelengths and of the mesh"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RoundModel:
    """Data of the model.

    ``collective`` is composed of ``phases``; ``limits`` are those of one round; ``given`` programs replace the default
    ones; ``paths``, ``routes_kind``, ``fixed``, ``rmin``, ``rmax``, ``use_bounds``, ``symmetry`` are the parameters.
    """

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
    given: tuple[RoundProgram, ...] | None = None

    def arena(self, phase: Phase) -> Topology:
        """The topology on which a phase is scheduled: reversed if the phase runs backwards."""
        t = self.topology
        return t.with_arcs(t.head, t.tail, t.capacity) if phase.backwards else t

    def composed(self, schedules: list[RoundSchedule]) -> RoundSchedule:
        """Chain the schedules of all phases, each on its :meth:`arena`, and reverse those that run backwards."""
        forward = []
        for phase, schedule in zip(self.phases, schedules, strict=True):
            arcs = opposite_arcs(self.topology, self.arena(phase)) if phase.backwards else None
            forward.append(schedule if arcs is None else schedule.backwards(arcs))
        return chained(forward)

    @cached_property
    def phase_bounds(self) -> list[list[Bound]]:
        """The analytic bounds of every phase."""
        return [round_bounds(self.arena(phase), phase.copying, self.limits) for phase in self.phases]

    @cached_property
    def any_bounds(self) -> list[Bound]:
        """The analytic bounds on the rounds, for any routes and composition."""
        if len(self.phases) == 1:
            return self.phase_bounds[0]
        return sum_bounds(self.topology, self.collective, self.limits)

    @cached_property
    def least(self) -> list[int]:
        """The best analytic bound of every phase [rounds]."""
        return [max((int(bound.value) for bound in found), default=0) for found in self.phase_bounds]

    @cached_property
    def programs(self) -> tuple[RoundProgram, ...]:
        """The integer program of every phase.

        Raises
        ------
        NotApplicable
            If it is too large to list.
        """
        if self.given is not None:
            return self.given
        return tuple(self.program(phase, self.rmax or self._default_rounds(phase)) for phase in self.phases)

    def _default_rounds(self, phase: Phase) -> int:
        # Check the size first: at 256 tiles the upper bound takes a minute, and the program is too large anyway.
        self.program(phase, max(self.least)).refuse_size()
        return sufficient_rounds(self.program_of_one(phase))

    def program_of_one(self, phase: Phase) -> RoundProgram:
        """The program of a phase in a single round: its moves and routes."""
        return self.program(phase, 1)

    def program(self, phase: Phase, rounds: int) -> RoundProgram:
        """The program of a phase with R_max = ``rounds``."""
        return RoundProgram(
            self.arena(phase), phase.copying, self.limits, rounds, self.paths, self.routes_kind, self.fixed,
            self.symmetry,
        )  # fmt: skip


def prepare(instance: object, parameters: dict[str, Any] | None = None) -> RoundModel:
    """The data of the model.

    Raises
    ------
    NotApplicable
        If the instance is not a topology, has no lasers, or has an unreachable receiver.
    BadInput
        For an invalid collective, or parameters out of range.
    """
    from opticoll.formulations.model import read_parameters

    given = read_parameters(PARAMETERS, parameters or {}, NAME)
    if not isinstance(instance, Topology):
        msg = f"{NAME}: needs a topology of tiles, such as lightpath:2x4,lasers=4, not {type(instance).__name__}"
        raise NotApplicable(msg)
    for name in ("root", "lasers", "waveguides", "rmin", "rmax"):
        if given[name] < 0:
            msg = f"{NAME}: {name}={given[name]} is negative; use 0 for the default"
            raise NotApplicable(msg)
    if 0 < given["rmax"] < given["rmin"]:
        msg = f"{NAME}: rmin={given['rmin']} is above rmax={given['rmax']}; remove one of them"
        raise NotApplicable(msg)
    if not 1 <= given["paths"] <= 64:
        msg = f"{NAME}: paths={given['paths']} is not between 1 and 64"
        raise NotApplicable(msg)
    own = (instance.lasers, instance.waveguides) if isinstance(instance, LightpathMesh) else (0, 0)
    lasers, waveguides = given["lasers"] or own[0], given["waveguides"] or own[1]
    if not lasers or not waveguides:
        msg = f"{NAME}: {instance.spec} has no lasers; use lightpath:..., or --set lasers=L --set waveguides=W"
        raise NotApplicable(msg)
    wanted = collective(given["collective"], instance.n, instance.terminals, root=given["root"], pieces=given["pieces"])
    if not len(wanted.post):
        msg = f"{NAME}: collective {wanted.name!r} has an empty Post; give at least one destination"
        raise NotApplicable(msg)
    _refuse_unreachable(instance, wanted)
    return RoundModel(
        instance, wanted, phases(wanted), Limits(lasers, waveguides), given["paths"], given["routes"],
        given["wavelengths"] == "fixed", given["rmin"], given["rmax"], given["bounds"], given["symmetry"],
    )  # fmt: skip


def _refuse_unreachable(topology: Topology, wanted: Collective) -> None:
    """Refuse a receiver that no holder can reach; for sums, a contributor that cannot reach the target."""
    hops = topology.hops
    for phase in phases(wanted):
        reach = np.isfinite(hops.T if phase.backwards else hops)
        chunk, vertex = phase.copying.pre.T
        reachable = np.zeros((phase.copying.chunks, topology.n), dtype=bool)
        np.logical_or.at(reachable, chunk, reach[vertex])
        lost = ~reachable[phase.copying.deliveries[:, 0], phase.copying.deliveries[:, 1]]
        if lost.any():
            c, v = phase.copying.deliveries[lost][0].tolist()
            msg = (
                f"{NAME}: {topology.spec} has no path from a holder of chunk {c} to vertex {v}; use fewer failed links"
            )
            raise NotApplicable(msg)


# Builds ---------------------------------------------------------------------------------------------------------


def _fixed_rounds(data: RoundModel) -> F64:
    """Lower bounds of R[p, r], ``(phases, T)`` flat: 1 for r < R_min (8).

    Raises
    ------
    NotApplicable
        For an ``rmin`` above the length of a known schedule.
    """
    blocks = []
    for number, program in enumerate(data.programs):
        if data.rmin > data.least[number]:
            known = sufficient_rounds(program) if data.rmax else program.rounds
            if known < data.rmin:
                msg = f"{NAME}: rmin={data.rmin} is not a lower bound: a schedule of {known} rounds is known; remove it"
                raise NotApplicable(msg)
        least = max(data.rmin, data.least[number] if data.use_bounds else 0)
        blocks.append((np.arange(program.rounds) < least).astype(float))
    return np.concatenate(blocks)


def build_pyomo(data: RoundModel) -> PyomoModel:
    """The model in Pyomo: ``C[j]``, ``H[k]``, ``R[t]``, and the constraints of the docstring by name."""
    import pyomo.environ as pyo

    blocks = rows(data.programs)
    N, K, T = (blocks[0].parts[name].shape[1] for name in ("C", "H", "R"))
    floor = _fixed_rounds(data)
    model = pyo.ConcreteModel(name="rounds")
    model.C = pyo.Var(range(N), domain=pyo.Binary)
    model.H = pyo.Var(range(K), bounds=(0.0, 1.0))
    model.R = pyo.Var(range(T), domain=pyo.Binary, bounds=lambda _, t: (floor[t], 1.0))
    model.rounds = pyo.Objective(expr=pyo.quicksum(model.R.values()), sense=pyo.minimize)
    variables = {"C": list(model.C.values()), "H": list(model.H.values()), "R": list(model.R.values())}
    for block in blocks:
        sums = _linear_rows(block, variables)
        if block.lower == block.upper:
            rule = {k: (expression == block.upper) for k, expression in enumerate(sums)}
        else:
            rule = {k: (expression <= block.upper) for k, expression in enumerate(sums)}
        model.add_component(block.name, pyo.Constraint(range(len(rule)), rule=lambda _, k, rule=rule: rule[k]))
    return PyomoModel(
        model,
        variables={"C": (N,), "H": (K,), "R": (T,)},
        constraints={block.name: (block.count,) for block in blocks},
    )


def _linear_rows(block: Rows, variables: Mapping[str, list[Any]]) -> Iterator[Any]:
    """The left-hand sides of a block as Pyomo expressions."""
    from pyomo.core.expr.numeric_expr import LinearExpression

    for k in range(block.count):
        coefficients: list[float] = []
        taken: list[Any] = []
        for name, matrix in block.parts.items():
            here = slice(matrix.indptr[k], matrix.indptr[k + 1])
            coefficients += matrix.data[here].tolist()
            taken += [variables[name][j] for j in matrix.indices[here]]
        yield LinearExpression(constant=0.0, linear_coefs=coefficients, linear_vars=taken)


def build_cvxpy(data: RoundModel) -> CvxpyModel:
    """The model in CVXPY."""
    import cvxpy as cp

    blocks = rows(data.programs)
    N, K, T = (blocks[0].parts[name].shape[1] for name in ("C", "H", "R"))
    variables = {
        "C": cp.Variable(N, name="C", boolean=True),
        "H": cp.Variable(K, name="H", bounds=[0.0, 1.0]),
        "R": cp.Variable(T, name="R", integer=True, bounds=[_fixed_rounds(data), np.ones(T)]),
    }
    constraints = {}
    # With a single round "order" has no rows.
    blocks = [block for block in blocks if any(matrix.nnz for matrix in block.parts.values())]
    for block in blocks:
        terms = [matrix @ variables[name] for name, matrix in block.parts.items() if matrix.nnz]
        left = sum(terms[1:], terms[0])
        constraints[block.name] = left == block.upper if block.lower == block.upper else left <= block.upper
    return CvxpyModel(
        cp.Problem(cp.Minimize(cp.sum(variables["R"])), list(constraints.values())),
        variables={name: Named(item, item.shape) for name, item in variables.items() if item.size},
        constraints={block.name: Named(constraints[block.name], (block.count,)) for block in blocks},
    )


def build_matrix(data: RoundModel) -> MatrixModel:
    """The model as sparse matrices."""
    import scipy.sparse as sp

    blocks = rows(data.programs)
    N, K, T = (blocks[0].parts[name].shape[1] for name in ("C", "H", "R"))
    A = sp.csc_array(sp.vstack([sp.hstack(list(block.parts.values())) for block in blocks]))
    count = [block.count for block in blocks]
    first = np.cumsum([0, *count])
    return MatrixModel(
        A,
        np.repeat([block.lower for block in blocks], count),
        np.repeat([block.upper for block in blocks], count),
        np.concatenate([np.zeros(N + K), _fixed_rounds(data)]),
        np.ones(N + K + T),
        np.concatenate([np.zeros(N + K), np.ones(T)]),
        "min",
        variables={"C": ((N,), np.arange(N)), "H": ((K,), N + np.arange(K)), "R": ((T,), N + K + np.arange(T))},
        constraints={
            block.name: ((c,), first[k] + np.arange(c)) for k, (block, c) in enumerate(zip(blocks, count, strict=True))
        },
        integer=np.concatenate([np.ones(N, dtype=bool), np.zeros(K, dtype=bool), np.ones(T, dtype=bool)]),
    )


# Solutions --------------------------------------------------------------------------------------------------------


def schedule_of(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> RoundSchedule | None:
    """The schedule in the values: its named arrays, or else C of the program; None if neither is valid."""
    if "transfer_round" in values or "C" not in values:
        return from_values(values)
    return _of_columns(data, np.asarray(values["C"], dtype=float))


def _of_columns(data: RoundModel, C: F64) -> RoundSchedule | None:
    sizes = [program.columns["round"].size for program in data.programs]
    if C.shape != (sum(sizes),) or not np.isfinite(C).all():
        return None
    parts = np.split(C > 0.5, np.cumsum(sizes)[:-1])
    return data.composed([_taken(program, part) for program, part in zip(data.programs, parts, strict=True)])


def unfold(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float64]]:
    """Add the schedule's named arrays to C, H and R if C is valid."""
    schedule = _of_columns(data, np.asarray(values["C"], dtype=float))
    return {**values, **({} if schedule is None else schedule.values())}


def _taken(program: RoundProgram, taken: NDArray[np.bool_]) -> RoundSchedule:
    here = np.flatnonzero(taken)
    columns, ends = program.columns, program.ends
    start, arcs = select(program.routes.start, program.routes.arcs, columns["path"][here])
    return direct(
        columns["round"][here], ends["source"][here], ends["target"][here], ends["chunk"][here],
        columns["wavelength"][here], start, arcs,
    )  # fmt: skip


def arrays(data: RoundModel, names: Collection[str]) -> dict[str, Array]:
    """Arrays of a schedule, of the program, or of both."""
    found: dict[str, Array] = {}
    if "transfer_round" in names or "C" not in names:
        found |= schedule_arrays(data.topology.n, data.topology.arcs, data.collective.chunks)
    if not {"C", "H", "R"}.isdisjoint(names):
        programs = data.programs
        later = sum(len(one.collective.deliveries) * (one.rounds - 1) for one in programs if one.steps)
        found["C"] = Array((sum(one.columns["round"].size for one in programs),))
        found["H"] = Array((later,), required=False)
        found["R"] = Array((sum(one.rounds for one in programs),), required=False)
    return found


def residuals(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Violations in a replay of the schedule, by block (:mod:`opticoll.formulations.rounds.round_schedule`).

    ``wave`` counts circuits that are not on their fixed wavelength, ``rmax`` rounds beyond R_max of all phases.
    If C is given, ``binary`` is its distance from 0 and 1, and ``columns`` is 0 if it encodes the same schedule.
    """
    schedule = schedule_of(data, values)
    found = violations(data.topology, data.collective, data.limits, schedule)
    if data.rmax:
        found["rmax"] = np.inf if schedule is None else float(max(schedule.rounds - data.rmax * len(data.phases), 0))
    if data.fixed:
        found["wave"] = np.inf if schedule is None else _off_wave(data, schedule)
    if "C" in values and schedule is not None:
        C = np.asarray(values["C"], dtype=float)
        encoded = _of_columns(data, C)
        same = encoded is not None and all(
            np.array_equal(array, np.asarray(values.get(name, array))) for name, array in encoded.values().items()
        )
        found["columns"] = 0.0 if same else np.inf
        found["binary"] = float(np.minimum(np.abs(C), np.abs(C - 1.0)).max(initial=0.0)) if same else np.inf
    return found


def _off_wave(data: RoundModel, schedule: RoundSchedule) -> float:
    """Number of circuits whose route is not a candidate or whose wavelength is not that of the candidate."""
    allowed: set[tuple[int, int, int, tuple[int, ...]]] = set()
    for phase in data.phases:
        program = data.program_of_one(phase)
        routes = program.routes
        index = np.arange(routes.paths) - routes.first[routes.pair]
        source, target = routes.source[routes.pair], routes.target[routes.pair]
        wave = program.wave(source, target, index)
        reverse = opposite_arcs(data.topology, data.arena(phase)) if phase.backwards else None
        for p, (s, d, w) in enumerate(zip(source.tolist(), target.tolist(), wave.tolist(), strict=True)):
            path = tuple(routes.path(p))
            if reverse is not None:
                s, d, path = d, s, tuple(reverse[list(path[::-1])].tolist())
            allowed.add((s, d, w, path))
    ends = zip(
        schedule.circuit_source.tolist(), schedule.circuit_target.tolist(), schedule.circuit_wavelength.tolist(),
        strict=True,
    )  # fmt: skip
    return float(sum((s, d, w, tuple(schedule.path(k))) not in allowed for k, (s, d, w) in enumerate(ends)))


def objective(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> float:
    """Rounds of the schedule; infinite if the values hold none."""
    schedule = schedule_of(data, values)
    return np.inf if schedule is None else float(schedule.rounds)


def repair(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float64]] | None:
    """Round C and R, recompute H, and add the schedule; None if C is missing or invalid."""
    if "C" not in values or "R" not in values or not np.isfinite(values["C"]).all():
        return None
    C = np.rint(np.asarray(values["C"], dtype=float))
    if C.shape != (sum(program.columns["round"].size for program in data.programs),):
        return None
    return unfold(data, {"C": C, "H": made_by(data, C), "R": np.rint(np.asarray(values["R"], dtype=float))})


def made_by(data: RoundModel, C: F64) -> F64:
    """H of a given C: whether every delivery is made by each round."""
    parts, first = [], 0
    for program in data.programs:
        columns, T = program.columns, program.rounds
        own = C[first : first + columns["round"].size]
        first += own.size
        if program.steps:
            made = np.zeros((len(program.collective.deliveries), T))
            np.add.at(made, (program.ends["delivery"], columns["round"]), own)
            parts.append(np.cumsum(made, axis=1)[:, :-1].ravel())
    return np.concatenate(parts) if parts else np.zeros(0)


def bounds(data: RoundModel) -> list[Bound]:
    """The analytic bounds for any routes and composition; none with ``bounds=false``."""
    return data.any_bounds if data.use_bounds else []


def refute(data: RoundModel) -> Bound | None:
    """A bound that excludes every schedule within ``rmax`` rounds per phase, if there is one."""
    for phase_bounds in data.phase_bounds if data.rmax else []:
        best = max(phase_bounds, key=lambda bound: bound.value)
        if best.value > data.rmax:
            reason = f"rmax={data.rmax}, but {best.name} needs {best.value:g} rounds: {best.reason}"
            return Bound(best.name, best.value, reason, best.paper)
    return None


def metrics(data: RoundModel, value: float | None) -> dict[str, Any]:
    """Rounds, size of the collective, limits, and the scope of the proof (see the module)."""
    composed = sum(data.least)
    return {
        "rounds": None if value is None or not np.isfinite(value) else int(value),
        "collective": data.collective.name,
        "chunks": data.collective.chunks,
        "deliveries": sum(len(phase.copying.deliveries) for phase in data.phases),
        "phases": len(data.phases),
        "lasers": data.limits.wavelengths,
        "waveguides": data.limits.waveguides,
        "composition_bound": composed,
        "composition_proven": None if value is None else bool(value <= composed),
        "unrestricted_proven": None if value is None else bool(value <= max(b.value for b in data.any_bounds)),
    }


def decode(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> RoundSchedule:
    """The schedule.

    Raises
    ------
    NotApplicable
        If the values hold none.
    """
    schedule = schedule_of(data, values)
    if schedule is None:
        msg = f"{NAME}: the values hold no schedule"
        raise NotApplicable(msg)
    return schedule


def estimate(data: RoundModel) -> dict[str, int]:
    """Size with ``rmax`` rounds, or with as few as the bounds allow, counted without listing columns."""
    variables = constraints = nonzeros = integers = 0
    hops = data.topology.hops
    far = float(hops[np.isfinite(hops)].max(initial=1.0))
    for number, phase in enumerate(data.phases):
        T = data.rmax or max(data.least[number], 1)
        columns = data.program(phase, T).size
        spread = phase.copying.spread
        deliveries, forwarded = len(phase.copying.deliveries), int((spread * (spread - 1)).sum())
        made = deliveries * (T - 1) if forwarded else 0
        variables += columns + made + T
        constraints += deliveries + made + forwarded * (T - 1)
        constraints += T * data.limits.wavelengths * (2 * data.topology.n + data.topology.arcs)
        nonzeros += int(columns * (4 + far))
        integers += columns + T
    return {"variables": variables, "constraints": constraints, "nonzeros": nonzeros, "integers": integers}


FORMULATION = Formulation(
    name=NAME,
    paper=PAPER,
    where="Algorithm 1, (1)-(9)",
    title="Collectives in the fewest rounds of circuits",
    sense="min",
    problem="MILP",
    parameters=PARAMETERS,
    prepare=prepare,
    build={"pyomo": build_pyomo, "cvxpy": build_cvxpy, "matrix": build_matrix},
    residuals=residuals,
    objective=objective,
    bounds=bounds,
    arrays=arrays,
    repair=repair,
    unfold=unfold,
    metrics=metrics,
    estimate=estimate,
    refute=refute,
    size="R |moves| K L variables",
)
