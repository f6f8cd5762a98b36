"""The exact method of the topology design: exchanges for a good wiring, enumeration with bounds for the proof."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from formulations.base import Parameter
from solvers.methods.base import Answer, Method
from solvers.outcome import Termination

if TYPE_CHECKING:
    from formulations.topoopt.design import TopologyDesign
    from solvers.methods.base import Context
    from solvers.wiring.search import WiringSearch

#: Seconds between two saved states.
SAVE_S = 1.0


def run(context: Context) -> Answer:
    """Exchanges, then proof."""
    from solvers.wiring.search import WiringSearch

    proof = bool(context.parameters["prove"])
    saved = time.monotonic()

    def save() -> None:
        context.save(answer(search, Termination.TOLERANCE), search.value)

    def tick() -> None:
        nonlocal saved
        context.remaining()
        if time.monotonic() - saved > SAVE_S:
            saved = time.monotonic()
            save()

    def found(_: TopologyDesign) -> None:
        save()

    search = WiringSearch(context.data, tol=context.task.tol, seed=context.task.seed, tick=tick, found=found)
    save()
    ending, message = Termination.TOLERANCE, "exchanges alone prove nothing beyond the analytic bounds"
    try:
        search.exchanges(int(context.parameters["descents"]))
        if proof:
            done = search.prove()
            ending = Termination.OPTIMAL if done else Termination.TOLERANCE
            message = "" if done else "too many ways to wire one server: the bound is analytic"
    except TimeoutError:
        ending, message = Termination.TIME_LIMIT, ""
    return answer(search, ending, message)


def answer(search: WiringSearch, ending: Termination, message: str = "") -> Answer:
    """The best design so far and what is proven."""
    counted: dict[str, Any] = dict(
        zip(("survivors", "nodes", "whole_wirings", "closed_by_lengths"), search.tally.tolist(), strict=True)
    )
    source = f"enumeration of circuits, {counted['nodes']} nodes, by hops, lengths and recomputed duals"
    return Answer(
        ending,
        values=search.best.values(),
        bound=search.bound if search.stages else None,
        bound_source=source if search.stages else None,
        solver={"name": "design-search", "version": None, "algorithm": "exchanges and enumeration", "options": {}},
        metrics={**counted, "routed": search.oracle.solved, "stages": search.stages},
        message=message,
    )


METHOD = Method(
    name="design-search",
    title="Exchanges and enumeration of circuits",
    summary="simulated annealing over circuits, then every wiring ruled out by hops, lengths, or duals of its routing",
    applies=lambda formulation: formulation.name == "topoopt.topology",
    parameters=(
        Parameter("descents", int, default=12, help="descents by 2-exchanges, each from other circuits"),
        Parameter("prove", bool, default=True, help="enumerate afterwards; no: a heuristic"),
    ),
    run=run,
)
