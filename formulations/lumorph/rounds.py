r"""Collectives in the fewest rounds of circuits (LuMorph, Algorithm 1).

Source  LuMorph, Algorithm 1, (1)-(9)
Sets    r in 0..R-1 rounds; c chunks; s, d vertices; i in P_sd routes of a pair; w in 0..L-1 wavelengths; e arcs
Data    Pre, Post collective (:mod:`formulations.rounds.collectives`); L lasers and photodiodes of a tile;
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

Corrected against the print: (2) as printed has no Pre term (who holds a chunk at the start may send it) and sums over
Post; (3) is a statement for each chunk *and destination*, and nothing goes to who is not in Post; (4) and (5) are "at
most 1", not "= 1"; (8), (9) and the range of the objective drop their end indices, which makes a round at R_max free;
max r R_r is sum R_r once (9) holds, which is linear. (1) follows from (3). (4)-(6) carry R_r on the right, (7) row by
row: the linear relaxation then knows receptions, sends and cuts.
R_min "from a smaller interconnect" is no bound across shapes (1x12 needs 36 colours at W = 1, 4x4 only 16): R_min here
is the best of :func:`formulations.lumorph.round_bounds.round_bounds`, unless ``bounds=false``; a larger ``rmin`` limits
the program to so many rounds, and is refused where a greedy schedule takes fewer. Possession cannot express sums:
reductions are copies run backwards, and an all-reduce is a reduce-scatter and an all-gather one after the other
(:func:`formulations.rounds.collectives.phases`), each phase p in its own rounds.

An optimum of the program is one over its routes P_sd and, for an all-reduce, over such compositions; the check takes
any schedule over any routes, and two vertices that exchange whole buffers are done in one round. The analytic bounds
hold for all: ``metrics.unrestricted_proven`` says whether they prove the value for any routes and any composition,
``composition_proven`` whether each phase on its own is proven, over any routes.
WAVE: the paper gives every route one wavelength; ``wavelengths=free`` (the default) lets each transfer choose,
``fixed`` uses :meth:`~formulations.lumorph.round_program.RoundProgram.wave`.

Symmetry (``symmetry=true``) is broken twice: wavelengths are named round by round by the busiest receiver, and
    mirror[g]            round of delivery 0 <= round of its image under g, for every symmetry g of the mesh that
                         leaves arcs, collective and routes as they are (:mod:`formulations.lumorph.mesh_symmetry`).
Schedules by other methods come as the named arrays of :mod:`formulations.rounds.schedule`, over any routes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.arrays import Array
from formulations.base import Bound, CvxpyModel, Formulation, MatrixModel, Named, NotApplicable, Parameter, PyomoModel
from formulations.lumorph import PAPER
from formulations.lumorph.greedy_rounds import greedy_rounds
from formulations.lumorph.round_bounds import round_bounds
from formulations.lumorph.round_program import RoundProgram
from formulations.lumorph.round_rows import Rows, rows
from formulations.lumorph.sum_bounds import sum_bounds
from formulations.rounds.check import Limits, violations
from formulations.rounds.collectives import CollectiveSpec, Phase, collective, phases
from formulations.rounds.schedule import (
    RoundSchedule,
    chained,
    direct,
    from_values,
    opposite_arcs,
    schedule_arrays,
)
from instances import Topology
from instances.lightpath import LightpathMesh

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from numpy.typing import NDArray

    from formulations.rounds.collectives import Collective

    I64 = NDArray[np.int64]
    F64 = NDArray[np.float64]

NAME = "lumorph.rounds"
PARAMETERS = (
    Parameter("collective", CollectiveSpec, CollectiveSpec("all-gather"), "broadcast, scatter, gather, all-gather, "
              "all-to-all, reduce, reduce-scatter, all-reduce, or file:PATH"),
    Parameter("root", int, 0, "root of broadcast, scatter, gather and reduce"),
    Parameter("pieces", int, 1, "chunks a shard"),
    Parameter("paths", int, 2, "routes a pair, K"),
    Parameter("routes", str, "straight", "which: the straight ones first, or Yen's shortest", ("straight", "yen")),
    Parameter("wavelengths", str, "free", "of a route: any, or a fixed one", ("free", "fixed")),
    Parameter("lasers", int, 0, "lasers a tile; 0 for the instance's"),
    Parameter("waveguides", int, 0, "waveguides an arc; 0 for the instance's"),
    Parameter("rmin", int, 0, "rounds taken as used in any case; 0 for the best bound"),
    Parameter("rmax", int, 0, "rounds a phase may take; 0 for what a greedy schedule takes"),
    Parameter("bounds", bool, True, "whether analytic bounds are used; false leaves the proof to the program"),
    Parameter("symmetry", bool, True, "break the symmetries of wavelengths and of the mesh"),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class RoundModel:
    """Data of the model.

    ``topology`` any (a :class:`~instances.lightpath.LightpathMesh` brings its own limits); ``collective`` as asked
    for, ``phases`` what it is composed of; ``limits`` of one round; ``given`` programs instead of those made here;
    ``paths``, ``routes_kind``, ``fixed``, ``rmin``, ``rmax``, ``use_bounds``, ``symmetry`` as the parameters.
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
        """The topology on which a phase is scheduled: turned round where it runs backwards."""
        t = self.topology
        return t.with_arcs(t.head, t.tail, t.capacity) if phase.backwards else t

    def composed(self, schedules: list[RoundSchedule]) -> RoundSchedule:
        """One schedule of all phases from one of each on its :meth:`arena`, those run backwards turned round."""
        turned = []
        for phase, schedule in zip(self.phases, schedules, strict=True):
            arcs = opposite_arcs(self.topology, self.arena(phase)) if phase.backwards else None
            turned.append(schedule if arcs is None else schedule.backwards(arcs))
        return chained(turned)

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
        return tuple(self.program(phase, self.rmax or self._enough(phase)) for phase in self.phases)

    def _enough(self, phase: Phase) -> int:
        program = self.program_of_one(phase)
        # At 256 tiles the greedy itself takes a minute, and what it finds is too large to list.
        self.program(phase, max(self.least)).refuse_size()
        return greedy_rounds(program)

    def program_of_one(self, phase: Phase) -> RoundProgram:
        """The program of a phase in a single round: its moves and routes."""
        return self.program(phase, 1)

    def program(self, phase: Phase, rounds: int) -> RoundProgram:
        """The program of a phase in at most so many rounds."""
        return RoundProgram(
            self.arena(phase), phase.copying, self.limits, rounds, self.paths, self.routes_kind, self.fixed,
            self.symmetry,
        )  # fmt: skip


def prepare(instance: object, parameters: dict[str, Any] | None = None) -> RoundModel:
    """The data of the model.

    Raises
    ------
    NotApplicable
        If the instance is no topology, says nothing of lasers, or leaves some receiver out of reach.
    BadInput
        For a collective that makes no sense, or parameters out of range.
    """
    from formulations.base import read_parameters

    given = read_parameters(PARAMETERS, parameters or {}, NAME)
    if not isinstance(instance, Topology):
        msg = f"{NAME}: takes a topology of tiles, such as lightpath:2x4,lasers=4, not {type(instance).__name__}"
        raise NotApplicable(msg)
    for name in ("root", "lasers", "waveguides", "rmin", "rmax"):
        if given[name] < 0:
            msg = f"{NAME}: {name}={given[name]} is negative; 0 is the default"
            raise NotApplicable(msg)
    if 0 < given["rmax"] < given["rmin"]:
        msg = f"{NAME}: rmin={given['rmin']} is above rmax={given['rmax']}; leave one of them out"
        raise NotApplicable(msg)
    if not 1 <= given["paths"] <= 64:
        msg = f"{NAME}: paths={given['paths']} is not between 1 and 64"
        raise NotApplicable(msg)
    own = (instance.lasers, instance.waveguides) if isinstance(instance, LightpathMesh) else (0, 0)
    lasers, waveguides = given["lasers"] or own[0], given["waveguides"] or own[1]
    if not lasers or not waveguides:
        msg = f"{NAME}: {instance.spec} says nothing of lasers; use lightpath:..., or --set lasers=L --set waveguides=W"
        raise NotApplicable(msg)
    wanted = collective(given["collective"], instance.n, instance.terminals, root=given["root"], pieces=given["pieces"])
    if not len(wanted.post):
        msg = f"{NAME}: collective {wanted.name!r} wants nothing of anybody; its Post is empty"
        raise NotApplicable(msg)
    _refuse_unreachable(instance, wanted)
    return RoundModel(
        instance, wanted, phases(wanted), Limits(lasers, waveguides), given["paths"], given["routes"],
        given["wavelengths"] == "fixed", given["rmin"], given["rmax"], given["bounds"], given["symmetry"],
    )  # fmt: skip


def _refuse_unreachable(topology: Topology, wanted: Collective) -> None:
    """A receiver must be reachable from some holder (backwards for sums: from every contributor)."""
    hops = topology.hops
    for phase in phases(wanted):
        reach = np.isfinite(hops.T if phase.backwards else hops)
        chunk, vertex = phase.copying.pre.T
        sees = np.zeros((phase.copying.chunks, topology.n), dtype=bool)
        np.logical_or.at(sees, chunk, reach[vertex])
        lost = ~sees[phase.copying.deliveries[:, 0], phase.copying.deliveries[:, 1]]
        if lost.any():
            c, v = phase.copying.deliveries[lost][0].tolist()
            msg = f"{NAME}: {topology.spec} has no way from a holder of chunk {c} to vertex {v}; fewer links may fail"
            raise NotApplicable(msg)


# builds ---------------------------------------------------------------------------------------------------------


def _fixed_rounds(data: RoundModel) -> F64:
    """Lower bounds of R[p, r], ``(phases, T)`` flat: the rounds that are used in any case (8).

    Raises
    ------
    NotApplicable
        For an ``rmin`` that a schedule undercuts.
    """
    found = []
    for number, program in enumerate(data.programs):
        if data.rmin > data.least[number]:
            known = greedy_rounds(program) if data.rmax else program.rounds
            if known < data.rmin:
                msg = f"{NAME}: rmin={data.rmin} is no bound, a schedule of {known} rounds is known; leave it out"
                raise NotApplicable(msg)
        least = max(data.rmin, data.least[number] if data.use_bounds else 0)
        found.append((np.arange(program.rounds) < least).astype(float))
    return np.concatenate(found)


def build_pyomo(data: RoundModel) -> PyomoModel:
    """The model in Pyomo: ``C[j]``, ``H[k]``, ``R[t]``, and the rows of the docstring by name."""
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
    """The left sides of a block as Pyomo expressions."""
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
    """The model in matrix form."""
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
    """The rows and columns themselves."""
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


# reading back -----------------------------------------------------------------------------------------------------


def schedule_of(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> RoundSchedule | None:
    """The schedule that values hold: its own arrays, or else C of the program; None if neither can be read."""
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
    """The schedule's arrays beside C and R, where C can be read."""
    schedule = _of_columns(data, np.asarray(values["C"], dtype=float))
    return {**values, **({} if schedule is None else schedule.values())}


def _taken(program: RoundProgram, taken: NDArray[np.bool_]) -> RoundSchedule:
    from formulations.rounds.schedule import taken_paths

    here = np.flatnonzero(taken)
    columns, ends = program.columns, program.ends
    start, arcs = taken_paths(program.routes.start, program.routes.arcs, columns["path"][here])
    return direct(
        columns["round"][here], ends["source"][here], ends["target"][here], ends["chunk"][here],
        columns["wavelength"][here], start, arcs,
    )  # fmt: skip


def arrays(data: RoundModel, names: Collection[str]) -> dict[str, Array]:
    """A schedule of rounds, or the columns of the program, or both."""
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
    """The schedule replayed, see :mod:`formulations.rounds.check`; each block counts its violations.

    ``wave`` counts circuits off their fixed wavelength, ``rmax`` rounds beyond those that the phases may take together.
    Where C is given, ``binary`` is how far it is from whole numbers, and ``columns`` whether it says the same schedule.
    """
    schedule = schedule_of(data, values)
    found = violations(data.topology, data.collective, data.limits, schedule)
    if data.rmax:
        found["rmax"] = np.inf if schedule is None else float(max(schedule.rounds - data.rmax * len(data.phases), 0))
    if data.fixed:
        found["wave"] = np.inf if schedule is None else _off_wave(data, schedule)
    if "C" in values and schedule is not None:
        C = np.asarray(values["C"], dtype=float)
        told = _of_columns(data, C)
        same = told is not None and all(
            np.array_equal(array, np.asarray(values.get(name, array))) for name, array in told.values().items()
        )
        found["columns"] = 0.0 if same else np.inf
        found["binary"] = float(np.minimum(np.abs(C), np.abs(C - 1.0)).max(initial=0.0)) if same else np.inf
    return found


def _off_wave(data: RoundModel, schedule: RoundSchedule) -> float:
    """Circuits whose route is no candidate, or has another wavelength (WAVE belongs to the candidate routes)."""
    allowed: set[tuple[int, int, int, tuple[int, ...]]] = set()
    for phase in data.phases:
        program = data.program_of_one(phase)
        routes = program.routes
        index = np.arange(routes.paths) - routes.first[routes.pair]
        source, target = routes.source[routes.pair], routes.target[routes.pair]
        wave = program.wave(source, target, index)
        turn = opposite_arcs(data.topology, data.arena(phase)) if phase.backwards else None
        for p, (s, d, w) in enumerate(zip(source.tolist(), target.tolist(), wave.tolist(), strict=True)):
            path = tuple(routes.path(p))
            if turn is not None:
                s, d, path = d, s, tuple(turn[list(path[::-1])].tolist())
            allowed.add((s, d, w, path))
    ends = zip(
        schedule.circuit_source.tolist(), schedule.circuit_target.tolist(), schedule.circuit_wavelength.tolist(),
        strict=True,
    )  # fmt: skip
    return float(sum((s, d, w, tuple(schedule.path(k))) not in allowed for k, (s, d, w) in enumerate(ends)))


def objective(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> float:
    """Rounds of the schedule; infinite where there is none to read."""
    schedule = schedule_of(data, values)
    return np.inf if schedule is None else float(schedule.rounds)


def repair(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[np.float64]] | None:
    """C and R rounded, H recomputed, and the schedule of that; None where C cannot be read."""
    if "C" not in values or "R" not in values or not np.isfinite(values["C"]).all():
        return None
    C = np.rint(np.asarray(values["C"], dtype=float))
    if C.shape != (sum(program.columns["round"].size for program in data.programs),):
        return None
    return unfold(data, {"C": C, "H": made_by(data, C), "R": np.rint(np.asarray(values["R"], dtype=float))})


def made_by(data: RoundModel, C: F64) -> F64:
    """H of a given C: how far every delivery is made by each round."""
    found, first = [], 0
    for program in data.programs:
        columns, T = program.columns, program.rounds
        own = C[first : first + columns["round"].size]
        first += own.size
        if program.steps:
            made = np.zeros((len(program.collective.deliveries), T))
            np.add.at(made, (program.ends["delivery"], columns["round"]), own)
            found.append(np.cumsum(made, axis=1)[:, :-1].ravel())
    return np.concatenate(found) if found else np.zeros(0)


def bounds(data: RoundModel) -> list[Bound]:
    """The analytic bounds, for any routes and composition; none with ``bounds=false``."""
    return data.any_bounds if data.use_bounds else []


def refute(data: RoundModel) -> Bound | None:
    """The bound that leaves no schedule within ``rmax`` rounds a phase, if one does."""
    for found in data.phase_bounds if data.rmax else []:
        best = max(found, key=lambda bound: bound.value)
        if best.value > data.rmax:
            reason = f"rmax={data.rmax}, but {best.name} needs {best.value:g} rounds: {best.reason}"
            return Bound(best.name, best.value, reason, best.paper)
    return None


def metrics(data: RoundModel, value: float | None) -> dict[str, Any]:
    """Rounds, what the collective asks for, and over what the value is proven: see the module."""
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
    """The size for ``rmax`` rounds, or for as few as the bounds allow; counted, nothing is listed."""
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
    decode=decode,
    estimate=estimate,
    refute=refute,
    prefers="certified-rounds",
    size="R |moves| K L variables",
)
