r"""Algorithm 1's program itself, with everything that helps it: bounds as R_min, a constructed schedule as start.

1. A schedule of every phase by construction and a short search (:mod:`solvers.rounds.search`): R_max is its rounds.
2. The program of :mod:`formulations.lumorph.rounds` over the candidate routes (or, LuMorph section 3.1, those of least
   overlap: :mod:`solvers.routing.min_overlap`) and those of that schedule, which is
   handed to the solver as a start (wavelengths and mesh keep their symmetries, so that it is feasible as it is).
3. Where analytic bounds leave a gap, or are switched off, the relaxation's duals are recomputed to a bound.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from formulations.base import NotApplicable, Parameter
from formulations.lumorph import rounds
from formulations.lumorph.route_sets import RouteSet
from solvers.compile import compile_model
from solvers.isolation import solve_isolated
from solvers.methods.base import Answer, Method
from solvers.methods.certified_rounds import tied_routes
from solvers.outcome import SolveRequest, Termination
from solvers.relaxation import relaxation_bound
from solvers.rounds.search import PhaseSearch
from solvers.routing.min_overlap import min_overlap_routes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.lumorph.round_program import RoundProgram
    from formulations.lumorph.rounds import RoundModel
    from formulations.rounds.schedule import RoundSchedule
    from solvers.methods.base import Context

    I64 = NDArray[np.int64]


def run(context: Context) -> Answer:
    """Construct, state the program, solve it from there."""
    data: RoundModel = context.data
    starts = _constructed(context)
    programs = tuple(_program(context, k, schedule) for k, schedule in enumerate(starts))
    stated = replace(data, symmetry=False, given=programs)
    form = compile_model(rounds.build_matrix(stated))
    C = np.concatenate([column_vector(program, each) for program, each in zip(programs, starts, strict=True)])
    start = np.concatenate([C, rounds.made_by(stated, C), np.ones(sum(each.rounds for each in starts))])
    first = stated.composed(starts).values()
    context.save(Answer(Termination.TOLERANCE, values=first), float(sum(each.rounds for each in starts)))
    solver = str(context.parameters["solver"])
    request = SolveRequest(
        context.remaining(), context.task.threads, context.task.tol, context.task.seed,
        warm_start=start,
    )  # fmt: skip
    outcome = solve_isolated(form, solver, request, memory_limit_gib=context.task.memory_limit_gib)
    values = first
    if outcome.x is not None:
        found = rounds.schedule_of(stated, form.values(outcome.x))
        if found is not None and found.rounds <= sum(each.rounds for each in starts):
            values = found.values()
    bound = None
    if not data.use_bounds or sum(data.least) < rounds.objective(data, values):
        request = replace(request, time_limit_s=context.remaining(), warm_start=None)
        bound = relaxation_bound(form, request, context.task.memory_limit_gib)
    return Answer(
        outcome.termination,
        values=values,
        bound=None if bound is None else bound.value,
        bound_source=None if bound is None else bound.name,
        solver={"name": solver, "version": outcome.version, "algorithm": outcome.algorithm, "options": outcome.options},
        metrics={
            "start_rounds": [each.rounds for each in starts],
            "program_variables": form.size["variables"],
            "program_constraints": form.size["constraints"],
            "nodes": outcome.nodes,
        },
        message=outcome.message,
    )


def _constructed(context: Context) -> list[RoundSchedule]:
    """A schedule of every phase, on its own arena."""
    data: RoundModel = context.data
    found = []
    for k, phase in enumerate(data.phases):
        tied = tied_routes(data, k)
        search = PhaseSearch(
            data.arena(phase), phase.copying, data.limits, data.least[k], tied, context.task.seed
        )  # fmt: skip
        search.construct()
        if not search.done:
            end = time.monotonic() + float(context.parameters["search_s"])
            search.search(lambda end=end: end - time.monotonic(), lambda: None)  # type: ignore[misc]
        assert search.best is not None
        found.append(search.best)
    return found


def _program(context: Context, k: int, schedule: RoundSchedule) -> RoundProgram:
    """The program of a phase over its candidate routes, or those of least overlap, and the schedule's."""
    data: RoundModel = context.data
    program = replace(data.program(data.phases[k], schedule.rounds), symmetry=False)
    least_overlap = context.parameters["candidates"] == "min-overlap"
    if data.fixed:
        if least_overlap:
            msg = "round-program: wavelengths=fixed ties them to the straight or shortest routes; use candidates=routes"
            raise NotApplicable(msg)
        return program
    source, target = np.divmod(program.pairs, data.topology.n)
    if least_overlap:
        found = min_overlap_routes(program.topology, source, target, seed=context.task.seed).routes
        known = [[found.path(p)] for p in range(source.size)]
    else:
        routes = program.routes
        known = [[routes.path(p) for p in range(*ends)] for ends in pairwise(routes.first.tolist())]
    at = np.searchsorted(program.pairs, schedule.circuit_source * data.topology.n + schedule.circuit_target)
    for circuit, pair in enumerate(at.tolist()):
        path = schedule.path(circuit)
        if path not in known[pair]:
            known[pair].append(path)
    return replace(program, given=RouteSet.of_paths(source, target, known))


def column_vector(program: RoundProgram, schedule: RoundSchedule) -> NDArray[np.float64]:
    """C of a schedule in which every circuit carries one chunk, over the program's columns.

    Raises
    ------
    KeyError
        If the schedule uses what is no column.
    """
    routes, columns = program.routes, program.columns
    n = program.topology.n
    of_path = {tuple(routes.path(p)): p for p in range(routes.paths)}
    delivery, source = program.moves
    chunk, target = program.collective.deliveries[delivery].T
    of_move = {key: m for m, key in enumerate(zip(chunk.tolist(), source.tolist(), target.tolist(), strict=True))}
    keys = zip(columns["round"].tolist(), columns["move"].tolist(), columns["path"].tolist(),
               columns["wavelength"].tolist(), strict=True)  # fmt: skip
    of_column = {key: j for j, key in enumerate(keys)}
    circuits: dict[tuple[int, int, int], list[int]] = {}
    ends = (schedule.circuit_round * n + schedule.circuit_source) * n + schedule.circuit_target
    for circuit, key in enumerate(ends.tolist()):
        circuits.setdefault(key, []).append(circuit)
    found = np.zeros(columns["round"].size)
    sent = zip(schedule.transfer_round.tolist(), schedule.transfer_source.tolist(),
               schedule.transfer_target.tolist(), schedule.transfer_chunk.tolist(), strict=True)  # fmt: skip
    for r, s, d, c in sent:
        circuit = circuits[(r * n + s) * n + d].pop()
        path = of_path[tuple(schedule.path(circuit))]
        found[of_column[r, of_move[c, s, d], path, int(schedule.circuit_wavelength[circuit])]] = 1.0
    return found


METHOD = Method(
    name="round-program",
    title="Algorithm 1's program with bounds and a constructed start",
    summary="the round ILP over candidate and constructed routes, started from a constructed schedule",
    applies=lambda formulation: formulation.name == rounds.NAME,
    parameters=(
        Parameter("solver", str, default="highs", help="MIP solver of the program"),
        Parameter(
            "candidates",
            str,
            default="routes",
            help="routes of a pair: as `paths` and `routes` say, or the one of least overlap among all pairs",
            choices=("routes", "min-overlap"),
        ),
        Parameter("search_s", float, default=5.0, help="seconds of search for the start where no construction is best"),
    ),
    run=run,
)
