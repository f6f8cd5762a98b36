"""Methods ``combined-rounds`` and ``squares``: sums by phases and the program, and by 2x2 squares (section 3.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.lumorph import rounds_data, sum_solution
from opticoll.formulations.lumorph.collective_bounds import sum_bounds
from opticoll.formulations.lumorph.rounds_solution import program_only
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.round_schedule import chained, together
from opticoll.instances import parse
from opticoll.instances.photonics import LightpathMesh
from opticoll.solvers.methods.lumorph.collective_algorithms import calls, square_order, square_radices
from opticoll.solvers.methods.lumorph.patterns import whole_exchange
from opticoll.solvers.methods.lumorph.realisation import realised
from opticoll.solvers.methods.lumorph.round_algorithms import PROGRAM_S, own_settings, sub_schedule
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.sum_rounds import SumModel
    from opticoll.formulations.rounds.round_schedule import Limits, RoundSchedule
    from opticoll.instances.topology import I64, Topology
    from opticoll.solvers.methods.method import Context

SUMS = "lumorph.sum-rounds"


#: Most variables of a small program.
MOST_VARIABLES = 60_000
#: Time limit of ``auto`` on a small program of the phases [s].
PHASES_S = 20.0


def direct_exchange(data: RoundModel) -> RoundSchedule | None:
    """An all-reduce in one round, in which every vertex sends its contributions to all others; None if that fails."""
    wanted = data.collective
    if not wanted.summing or data.fixed or not np.array_equal(wanted.pre, wanted.post):
        return None
    needed = calls(wanted)
    least = max(bound.value for bound in sum_bounds(data.topology, wanted, data.limits))
    if len(needed) != 1 or least > 1:
        return None
    (call,) = needed
    pattern = whole_exchange((call.ranks.size,), call.chunks.size).renamed(call.ranks, call.chunks)
    try:
        schedule = realised(data.topology, data.limits, pattern)
    except NotApplicable:
        return None
    return schedule if schedule.rounds == 1 else None


def _run_combined(context: Context) -> Answer:
    """Sums by a reduce-scatter and an all-gather, or by one round of direct sends.

    The phases are those of ``certified-rounds``, or of ``auto`` if their program is small.
    Where that misses the bound, HiGHS solves the program with one round fewer, if it is small.
    """
    data: SumModel = context.data
    best, found_by, program = direct_exchange(data.plain), "direct exchange", "not tried"
    if best is None:
        found_by = "reduce-scatter, then all-gather"
        settings = {"collective": "all-reduce", **own_settings(context, "rmax")}
        small = rounds_data.estimate(data.plain)["variables"] <= MOST_VARIABLES
        best = sub_schedule(
            context,
            PHASES_S if small else None,
            formulation="lumorph.rounds",
            method="auto" if small else "certified-rounds",
            settings=settings,
        )
    if best is None:
        return Answer(Termination.TIME_LIMIT, message="no schedule in phases was found in the remaining time")

    phased = best.rounds
    context.save(Answer(Termination.TOLERANCE, values=best.values()), float(phased))
    seconds = float(context.parameters["program_s"])
    if best.rounds > data.fewest and seconds > 0:
        program = "too large"
        if sum_solution.estimate(replace(data, rmax=best.rounds - 1))["variables"] <= MOST_VARIABLES:
            better = sub_schedule(
                context,
                seconds,
                method="highs",
                form="cvxpy",
                settings={**own_settings(context), "rmax": best.rounds - 1},
            )
            program = "no better schedule found"
            if better is not None and better.rounds < best.rounds:
                best, found_by, program = better, "program", "improved"
    return Answer(
        Termination.OPTIMAL if best.rounds <= data.fewest else Termination.TOLERANCE,
        values=best.values(),
        solver={"algorithm": found_by},
        metrics={"found_by": found_by, "phased_rounds": phased, "program": program},
    )


COMBINED_ROUNDS = Method(
    name="combined-rounds",
    title="Phases, then the program of sums",
    summary="reduce-scatter and all-gather, then the program of combined sums with one round fewer",
    serves=(SUMS,),
    takes_over=(Beyond("lumorph.sum-rounds", 2_500, 20_000),),
    refuse=lambda data: program_only(data.plain),
    parameters=(PROGRAM_S,),
    run=_run_combined,
)


def _refuse_squares(data: SumModel) -> str | None:
    mesh, wanted = data.topology, data.collective
    if (reason := program_only(data.plain)) is not None:
        return reason
    if not isinstance(mesh, LightpathMesh) or not mesh.intact or mesh.shape[0] % 2 or mesh.shape[1] % 2:
        return "needs an intact mesh of even sides, such as lightpath:4x4"
    if data.limits.fibres is not None and data.limits.fibres.wafer_columns % 2:
        return f"needs wafers of an even number of columns, not {data.limits.fibres.wafer_columns}"
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
        square = sub_schedule(
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
    metrics = {
        "square_rounds": inside,
        "exchange_rounds": schedule.rounds - inside,
        "fixed_square_rounds": None if fixed is None else fixed.rounds,
    }
    return Answer.heuristic(schedule.values(), str(context.parameters["square"]), metrics)


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
        circuit_source=tiles[schedule.circuit_source],
        circuit_target=tiles[schedule.circuit_target],
        circuit_arcs=arcs[schedule.circuit_arcs],
        transfer_source=tiles[schedule.transfer_source],
        transfer_target=tiles[schedule.transfer_target],
    )


SQUARES = Method(
    name="squares",
    title="Divide and conquer with the program on 2x2 squares",
    summary="2x2 squares by the program, then exchanges of whole buffers between squares (section 3.2)",
    serves=(SUMS,),
    refuse=_refuse_squares,
    parameters=(
        Parameter(
            "square",
            str,
            "program",
            "all-reduce within a square: by the program, or the fixed exchange",
            ("program", "exchange"),
        ),
        PROGRAM_S,
    ),
    run=_run_squares,
)


METHODS = (
    COMBINED_ROUNDS,
    SQUARES,
)
