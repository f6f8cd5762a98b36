"""Methods: known collective algorithms as schedules of Algorithm 1, with one chunk per circuit and round.

A step that is one round in the cost model may take several here, since b chunks for a peer need b circuits. The index
all-to-all is not a method: it forwards through GPUs that do not require the chunk, which (3) forbids.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from opticoll.formulations.lumorph.co_scheduling import values_of
from opticoll.formulations.lumorph.rounds import program_only
from opticoll.formulations.lumorph.sum_rounds import NAME as SUMS
from opticoll.formulations.model import NotApplicable, Parameter
from opticoll.formulations.rounds.round_schedule import chained, from_values, together
from opticoll.instances import parse
from opticoll.instances.photonics import LightpathMesh
from opticoll.solvers.methods.lumorph.certified_rounds import MOST_VARIABLES, direct_exchange
from opticoll.solvers.methods.lumorph.collective_algorithms import (
    ALGORITHMS,
    independent_sets,
    layer_to_layer,
    pattern_of,
    square_order,
    square_radices,
)
from opticoll.solvers.methods.lumorph.patterns import whole_exchange
from opticoll.solvers.methods.lumorph.realisation import compacted, realised
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Task, Termination

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.co_scheduling import CallBatches
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.sum_rounds import SumModel
    from opticoll.formulations.model import Formulation
    from opticoll.formulations.rounds.round_schedule import Limits, RoundSchedule
    from opticoll.instances.topology import I64, Topology
    from opticoll.solvers.methods.lumorph.collective_algorithms import Algorithm, LaserLimit
    from opticoll.solvers.methods.lumorph.patterns import Pattern
    from opticoll.solvers.methods.lumorph.realisation import Routing
    from opticoll.solvers.methods.method import Context

_SHARED = (
    Parameter("routing", str, "min-overlap", "routes of minimum overlap (Algorithm 2), or random shortest ones",
              ("min-overlap", "random")),
    Parameter("compact", bool, True, "start transfers as soon as their senders have the chunk, not step by step"),
    Parameter("search_s", float, 0.0, "seconds of search per step if first fit misses the step's bound"),
)  # fmt: skip
_LIMIT = Parameter(
    "limit", str, "both", "whose lasers limit the greedy rounds; receivers is as printed", ("both", "receivers")
)
#: Remarks on algorithms that are not designed for one chunk per circuit.
_STRICT = {
    "ring": "a ring has one peer, so with one piece per shard all lasers but one are idle",
    "tree": "a tree is designed for large payloads: leaves send nothing, and depth adds rounds",
    "double-binary-tree": "trees are designed for large payloads: depth adds rounds",
}


def _applies(formulation: Formulation) -> bool:
    return formulation.name == "lumorph.rounds"


def _answer(context: Context, name: str, pattern: Pattern, batches: int, message: str) -> Answer:
    data: RoundModel = context.data
    settings = context.parameters
    seconds, routing = float(settings["search_s"]), cast("Routing", settings["routing"])
    if seconds < 0 or not np.isfinite(seconds):
        msg = f"{name}: search_s={seconds} must be at least 0 seconds"
        raise NotApplicable(msg)
    schedule = realised(
        data.topology, data.limits, pattern, routing=routing, seed=context.task.seed,
        search_s=seconds, tick=context.remaining,
    )  # fmt: skip
    stepwise = schedule.rounds
    if settings["compact"]:
        schedule = compacted(schedule, data.limits, tick=context.remaining)
    metrics: dict[str, Any] = {
        "steps": pattern.steps, "stepwise_rounds": stepwise, "transfers": schedule.transfers,
        "circuits": schedule.circuits, "batches": batches,
    }  # fmt: skip
    return Answer(
        Termination.TOLERANCE,
        values=schedule.values(),
        solver={"name": name, "version": None, "algorithm": f"{routing} routes, first fit", "options": {}},
        metrics=metrics,
        message=message or "a construction without an optimality proof",
    )


def _free_wavelengths(context: Context, name: str) -> RoundModel:
    data: RoundModel = context.data
    if data.fixed:
        msg = f"{name} chooses wavelengths freely; remove wavelengths=fixed"
        raise NotApplicable(msg)
    return data


def _method(algorithm: Algorithm) -> Method:
    """An algorithm as a method."""
    # Exchanges of whole buffers are not the two phases that Algorithm 1 has for an all-reduce.
    own = tuple(parameter for parameter in algorithm.parameters if parameter.name != "whole")

    def run(context: Context) -> Answer:
        """A known collective algorithm as a schedule of Algorithm 1, with one chunk per circuit and round.

        The transfers of each step are those of :mod:`opticoll.solvers.methods.lumorph.collective_algorithms`. Routes of
        minimum overlap, wavelengths and rounds are assigned step by step
        (:mod:`opticoll.solvers.methods.lumorph.realisation`). With ``compact`` a transfer starts as soon as its sender
        has the chunk; ``metrics.stepwise_rounds`` is the number of rounds without that.

        A step that is one round in the cost model may take several here, since b chunks for a peer need b circuits.
        """
        data = _free_wavelengths(context, algorithm.name)
        settings = {parameter.name: context.parameters[parameter.name] for parameter in own}
        pattern, batches = pattern_of(algorithm.name, data.collective, data.topology, data.limits, **settings)
        return _answer(context, algorithm.name, pattern, len(batches), _STRICT.get(algorithm.name, ""))

    return Method(
        name=algorithm.name, title=algorithm.title,
        summary=f"{algorithm.title}: the known pattern, routed and coloured step by step",
        applies=_applies, refuse=program_only, parameters=(*own, *_SHARED), run=run,
    )  # fmt: skip


def _run_layers(context: Context) -> Answer:
    """Greedy LayerToLayer rounds (Algorithm 3) as a schedule of Algorithm 1, with one chunk per circuit and round.

    The transfers of each round are those of :func:`.collective_algorithms.layer_to_layer`. Routes of minimum overlap,
    wavelengths and rounds are assigned step by step (:mod:`opticoll.solvers.methods.lumorph.realisation`). With
    ``compact`` a transfer starts as soon as its sender has the chunk; ``metrics.stepwise_rounds`` is the number of
    rounds without that.
    """
    data = _free_wavelengths(context, "layer-to-layer")
    lasers = data.limits.wavelengths * (data.limits.ports or 1)
    limit = cast("LaserLimit", context.parameters["limit"])
    pattern = layer_to_layer(data.collective, lasers, limit=limit, seed=context.task.seed)
    return _answer(context, "layer-to-layer", pattern, 1, "")


def _run_sets(context: Context) -> Answer:
    """Greedy maximal independent sets of the conflict graph, each a batch (appendix C)."""
    data: CallBatches = context.data
    batches = independent_sets([np.flatnonzero(row) for row in data.member], data.member.shape[1])
    return Answer(
        Termination.TOLERANCE,
        values=values_of(data, batches),
        solver={"name": "independent-sets", "version": None, "algorithm": "fewest conflicts first", "options": {}},
        metrics={"batches": len(batches)},
        message="a heuristic without an optimality proof",
    )


def _sub_schedule(context: Context, **changed: Any) -> RoundSchedule | None:
    """The verified schedule of another task, by default with this one's instance and settings; None without one."""
    task = context.task
    fields = {
        "formulation": SUMS, "instance": task.instance, "memory_limit_gib": task.memory_limit_gib, "tol": task.tol,
        "seed": task.seed, "threads": task.threads, "time_limit_s": context.remaining(),
    }  # fmt: skip
    run = context.solve(Task(**{**fields, **changed}))
    return from_values(run.values) if run.verified and run.values is not None else None


def _own_settings(context: Context, *names: str) -> dict[str, Any]:
    known = {parameter.name for parameter in context.formulation.parameters} - set(names)
    return {name: value for name, value in context.task.settings.items() if name in known}


def _run_combined(context: Context) -> Answer:
    """Sums by a reduce-scatter and an all-gather of ``certified-rounds``, or by one round of direct sends.

    Where that misses the bound, HiGHS solves the program with one round fewer, if it is small.
    """
    data: SumModel = context.data
    best, found_by, program = direct_exchange(data.phased), "direct exchange", "not tried"
    if best is None:
        found_by = "reduce-scatter, then all-gather"
        settings = {"collective": "all-reduce", **_own_settings(context, "rmax")}
        best = _sub_schedule(context, formulation="lumorph.rounds", method="certified-rounds", settings=settings)
    if best is None:
        return Answer(Termination.TIME_LIMIT, message="certified-rounds found no schedule in the remaining time")

    phased = best.rounds
    context.save(Answer(Termination.TOLERANCE, values=best.values()), float(phased))
    left, seconds = context.remaining(), float(context.parameters["program_s"])
    size = context.formulation.estimate
    if best.rounds > data.least and seconds > 0 and size is not None:
        program = "too large"
        if size(replace(data, rmax=best.rounds - 1))["variables"] <= MOST_VARIABLES:
            better = _sub_schedule(
                context, method="highs", form="cvxpy", settings={**_own_settings(context), "rmax": best.rounds - 1},
                time_limit_s=seconds if left is None else min(seconds, left),
            )  # fmt: skip
            program = "no better schedule found"
            if better is not None and better.rounds < best.rounds:
                best, found_by, program = better, "program", "improved"
    return Answer(
        Termination.OPTIMAL if best.rounds <= data.least else Termination.TOLERANCE,
        values=best.values(),
        solver={"name": "combined-rounds", "version": None, "algorithm": found_by, "options": {}},
        metrics={"found_by": found_by, "phased_rounds": phased, "program": program},
    )


def _refuse_squares(data: SumModel) -> str | None:
    mesh, wanted = data.topology, data.collective
    if not isinstance(mesh, LightpathMesh) or not mesh.intact or mesh.shape[0] % 2 or mesh.shape[1] % 2:
        return "needs an intact mesh of even sides, such as lightpath:4x4"
    if wanted.name != "all-reduce":
        return f"supports only collective=all-reduce of all tiles, not {wanted.name}"
    return None


def _run_squares(context: Context) -> Answer:
    """Sums by divide and conquer (section 3.2).

    Every 2x2 square sums the whole buffer by the program's schedule (or the fixed exchange, ``square=exchange``), then
    squares exchange whole reduced buffers.
    """
    data: SumModel = context.data
    mesh, limits, chunks = data.topology, data.limits, data.collective.chunks
    assert isinstance(mesh, LightpathMesh)
    rows, columns = (int(side) for side in mesh.shape)
    spec = f"lightpath:2x2,lasers={limits.wavelengths},waveguides={limits.waveguides}"
    fixed = _fixed_square(spec, limits, chunks)
    square = fixed
    if context.parameters["square"] == "program":
        seconds = context.parameters["program_s"]
        square = _sub_schedule(
            context, instance=spec, method="combined-rounds", settings={"pieces": chunks // 4, "program_s": seconds}
        )
    if square is None:
        msg = "squares: the exchange in a 2x2 square does not fit into a round; use more lasers, or square=program"
        raise NotApplicable(msg)
    radices, order = square_radices(rows, columns), square_order(rows, columns)
    parts = [_on_tiles(square, parse(spec), mesh, tiles) for tiles in order.reshape(-1, 4)]
    schedule = together(parts)
    inside = schedule.rounds
    exchange = whole_exchange(radices, chunks).renamed(order, np.arange(chunks)).after(1)
    if exchange.transfers:
        between = realised(mesh, limits, exchange, seed=context.task.seed, tick=context.remaining)
        schedule = chained([schedule, between])
    return Answer(
        Termination.TOLERANCE,
        values=schedule.values(),
        solver={"name": "squares", "version": None, "algorithm": context.parameters["square"], "options": {}},
        metrics={
            "square_rounds": inside,
            "exchange_rounds": schedule.rounds - inside,
            "fixed_square_rounds": None if fixed is None else fixed.rounds,
        },
        message="a construction without an optimality proof",
    )


def _fixed_square(spec: str, limits: Limits, chunks: int) -> RoundSchedule | None:
    """The exchange of whole buffers among four tiles; None if a chunk's exchange does not fit into a round."""
    square = parse(spec)
    try:
        return realised(square, limits, whole_exchange((4,), chunks))
    except NotApplicable:
        return None


def _on_tiles(schedule: RoundSchedule, square: Topology, mesh: Topology, tiles: I64) -> RoundSchedule:
    """A schedule of a 2x2 square on four tiles of a mesh."""
    arc_of = {ends: a for a, ends in enumerate(zip(mesh.tail.tolist(), mesh.head.tolist(), strict=True))}
    ends = zip(tiles[square.tail].tolist(), tiles[square.head].tolist(), strict=True)
    arcs = np.array([arc_of[pair] for pair in ends])
    return replace(
        schedule,
        circuit_source=tiles[schedule.circuit_source], circuit_target=tiles[schedule.circuit_target],
        circuit_arcs=arcs[schedule.circuit_arcs],
        transfer_source=tiles[schedule.transfer_source], transfer_target=tiles[schedule.transfer_target],
    )  # fmt: skip


_PROGRAM_S = Parameter("program_s", float, 60.0, "seconds for the program with one round fewer; 0 for none")
METHODS = (
    Method(
        name="combined-rounds",
        title="Phases, then the program of sums",
        summary="reduce-scatter and all-gather, then the program of combined sums with one round fewer",
        applies=lambda formulation: formulation.name == SUMS,
        parameters=(_PROGRAM_S,),
        run=_run_combined,
    ),
    Method(
        name="squares",
        title="Divide and conquer with the program on 2x2 squares",
        summary="2x2 squares by the program, then exchanges of whole buffers between squares (section 3.2)",
        applies=lambda formulation: formulation.name == SUMS,
        refuse=_refuse_squares,
        parameters=(
            Parameter(
                "square",
                str,
                "program",
                "all-reduce within a square: by the program, or the fixed exchange",
                ("program", "exchange"),
            ),
            _PROGRAM_S,
        ),
        run=_run_squares,
    ),
    Method(
        name="independent-sets",
        title="Greedy maximal independent sets",
        summary="greedy maximal independent sets of the conflict graph, calls of fewest conflicts first (appendix C)",
        applies=lambda formulation: formulation.name == "lumorph.co-scheduling",
        run=_run_sets,
    ),
    *(_method(algorithm) for algorithm in ALGORITHMS.values()),
    Method(
        name="layer-to-layer",
        title="Greedy rounds of direct transfers",
        summary="every delivery directly from a holder, random senders per round (Algorithm 3, with its missing limit)",
        applies=_applies,
        refuse=program_only,
        parameters=(_LIMIT, *_SHARED),
        run=_run_layers,
    ),
)
