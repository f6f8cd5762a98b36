"""Method ``combined-rounds``: an all-reduce in phases, then the program of sums with one round fewer."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from opticoll.formulations.lumorph.rounds_solution import program_only
from opticoll.formulations.lumorph.sum_rounds import NAME as SUMS
from opticoll.solvers.methods.lumorph.certified_rounds import direct_exchange
from opticoll.solvers.methods.lumorph.round_algorithms import PROGRAM_S, own_settings, sub_schedule
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.sum_rounds import SumModel
    from opticoll.solvers.methods.method import Context

#: Most variables of a small program.
MOST_VARIABLES = 60_000
#: Time limit of ``auto`` on a small program of the phases [s].
PHASES_S = 20.0


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
        small = data.plain.estimate()["variables"] <= MOST_VARIABLES
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
        if replace(data, rmax=best.rounds - 1).estimate()["variables"] <= MOST_VARIABLES:
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


METHOD = Method(
    name="combined-rounds",
    title="Phases, then the program of sums",
    summary="reduce-scatter and all-gather, then the program of combined sums with one round fewer",
    serves=(SUMS,),
    takes_over=(Beyond("lumorph.sum-rounds", 2_500, 20_000),),
    refuse=lambda data: program_only(data.plain),
    parameters=(PROGRAM_S,),
    run=_run_combined,
)
