"""Method ``round-program``: the program of Algorithm 1 by a solver, from a constructed start."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph import rounds, rounds_solution
from opticoll.formulations.lumorph.route_sets import RouteSet
from opticoll.formulations.model import NotApplicable, Parameter, build_model
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.methods.lumorph.certified_rounds import tied_routes
from opticoll.solvers.methods.lumorph.overlap_search import min_overlap_routes
from opticoll.solvers.methods.lumorph.round_search import PhaseSearch
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.process.isolation import solve_isolated
from opticoll.solvers.relaxation import relaxation_bound
from opticoll.solvers.task import SolveRequest, Termination
from opticoll.solvers.verify import pack

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.round_sets import RoundProgram
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import F64
    from opticoll.solvers.methods.method import Context


def run_round_program(context: Context) -> Answer:
    """Proven numbers of rounds by Algorithm 1's program.

    The program is that of :mod:`opticoll.formulations.lumorph.rounds` with R_min from the bounds and a warm start:

    1. Every phase is scheduled by construction and a short search; R_max is the number of rounds of that schedule.
    2. The routes are the candidates (or, LuMorph section 3.1, those of minimum overlap:
       :mod:`opticoll.solvers.methods.lumorph.overlap_search`) and those of the schedule, which is the warm start. The
       symmetries of wavelengths and mesh are not broken, so the start is feasible.
    3. Where analytic bounds leave a gap or are switched off, a bound is recomputed from the duals of the relaxation.
    """
    data: RoundModel = context.data
    starts = _constructed(context)
    programs = tuple(_program(context, k, schedule) for k, schedule in enumerate(starts))
    model = replace(data, symmetry=False, given=programs)
    form = compile_model(build_model(model, "cvxpy"))
    C = np.concatenate(
        [column_vector(program, constructed) for program, constructed in zip(programs, starts, strict=True)]
    )
    used = np.ones(sum(constructed.rounds for constructed in starts))
    start = pack(form, {"C": C, "H": rounds_solution.made_by(model, C), "R": used})
    first = model.composed(starts).values()
    context.save(Answer(Termination.TOLERANCE, values=first), float(sum(constructed.rounds for constructed in starts)))
    solver = str(context.parameters["solver"])
    request = SolveRequest(
        context.remaining(),
        context.task.threads,
        context.task.tol,
        context.task.seed,
        warm_start=start,
    )
    outcome = solve_isolated(form, solver, request, memory_limit_gib=context.task.memory_limit_gib)
    values = first
    if outcome.x is not None:
        schedule = rounds_solution.schedule_of(model, form.values(outcome.x))
        if schedule is not None and schedule.rounds <= sum(constructed.rounds for constructed in starts):
            values = schedule.values()
    bound = None
    if not data.use_bounds or sum(data.least) < data.objective(values):
        request = replace(request, time_limit_s=context.remaining(), warm_start=None)
        bound = relaxation_bound(form, request, context.task.memory_limit_gib)
    return Answer(
        outcome.termination,
        values=values,
        bound=None if bound is None else bound.value,
        bound_source=None if bound is None else bound.name,
        solver={"name": solver, "version": outcome.version, "algorithm": outcome.algorithm, "options": outcome.options},
        metrics={
            "start_rounds": [constructed.rounds for constructed in starts],
            "program_variables": form.size["variables"],
            "program_constraints": form.size["constraints"],
            "nodes": outcome.nodes,
        },
        message=outcome.message,
    )


def _constructed(context: Context) -> list[RoundSchedule]:
    """A schedule of every phase, on its own arena."""
    data: RoundModel = context.data
    schedules = []
    for k, phase in enumerate(data.phases):
        tied = tied_routes(data, k)
        search = PhaseSearch(data.arena(phase), phase.copying, data.limits, data.least[k], tied, context.task.seed)
        search.construct()
        if not search.done:
            end = time.monotonic() + float(context.parameters["search_s"])
            search.search(lambda end=end: end - time.monotonic(), lambda: None)  # type: ignore[misc]
        assert search.best is not None
        schedules.append(search.best)
    return schedules


def _program(context: Context, k: int, schedule: RoundSchedule) -> RoundProgram:
    """The program of a phase over its candidate routes (or those of minimum overlap) and those of the schedule."""
    data: RoundModel = context.data
    program = replace(data.program(data.phases[k], schedule.rounds), symmetry=False)
    least_overlap = context.parameters["candidates"] == "min-overlap"
    if data.fixed:
        if least_overlap:
            msg = "round-program: wavelengths=fixed requires the straight or shortest routes; use candidates=routes"
            raise NotApplicable(msg)
        return program
    source, target = np.divmod(program.pairs, data.topology.n)
    if least_overlap:
        low_overlap = min_overlap_routes(program.topology, source, target, seed=context.task.seed).routes
        known = [[low_overlap.path(p)] for p in range(source.size)]
    else:
        routes = program.routes
        known = [[routes.path(p) for p in range(*ends)] for ends in pairwise(routes.first.tolist())]
    at = np.searchsorted(program.pairs, schedule.circuit_source * data.topology.n + schedule.circuit_target)
    for circuit, pair in enumerate(at.tolist()):
        path = schedule.path(circuit)
        if path not in known[pair]:
            known[pair].append(path)
    return replace(program, given=RouteSet.of_paths(source, target, known))


def column_vector(program: RoundProgram, schedule: RoundSchedule) -> F64:
    """Values of the program's columns C for a schedule in which every circuit carries one chunk.

    Raises
    ------
    KeyError
        If a transfer of the schedule is not a column.
    """
    routes, columns = program.routes, program.columns
    n = program.topology.n
    of_path = {tuple(routes.path(p)): p for p in range(routes.paths)}
    of_move = {key: m for m, key in enumerate(zip(*(of.tolist() for of in program.moves), strict=True))}
    keys = zip(*(columns[name].tolist() for name in ("r", "move", "path", "w")), strict=True)
    of_column = {key: j for j, key in enumerate(keys)}
    circuits: dict[tuple[int, int, int], list[int]] = {}
    ends = (schedule.circuit_round * n + schedule.circuit_source) * n + schedule.circuit_target
    for circuit, key in enumerate(ends.tolist()):
        circuits.setdefault(key, []).append(circuit)
    vector = np.zeros(len(columns))
    sent = zip(
        schedule.transfer_round.tolist(),
        schedule.transfer_source.tolist(),
        schedule.transfer_target.tolist(),
        schedule.transfer_chunk.tolist(),
        strict=True,
    )
    for r, s, d, c in sent:
        circuit = circuits[(r * n + s) * n + d].pop()
        path = of_path[tuple(schedule.path(circuit))]
        vector[of_column[r, of_move[c, s, d], path, int(schedule.circuit_wavelength[circuit])]] = 1.0
    return vector


METHOD = Method(
    name="round-program",
    title="Algorithm 1's program with bounds and a constructed start",
    summary="the round ILP over candidate and constructed routes, started from a constructed schedule",
    serves=(rounds.NAME,),
    refuse=rounds.program_only,
    parameters=(
        Parameter("solver", str, default="highs", help="MIP solver of the program"),
        Parameter(
            "candidates",
            str,
            default="routes",
            help="routes of a pair: the two straight ones, or the one of minimum overlap among all pairs",
            choices=("routes", "min-overlap"),
        ),
        Parameter(
            "search_s", float, default=5.0, help="seconds of search for the start if no construction meets the bound"
        ),
    ),
    run=run_round_program,
)
