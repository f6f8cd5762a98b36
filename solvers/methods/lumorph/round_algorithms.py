r"""Methods: known collective algorithms as schedules of Algorithm 1, with one chunk per circuit and round.

LUMORPH-2 and -4 (``recursive``), NCCL's ring and trees, divide-and-conquer over 2x2 squares, and the greedy
LayerToLayer rounds. The transfers of each step are those of
:mod:`opticoll.solvers.methods.lumorph.collective_algorithms`; routes of least overlap, wavelengths and rounds are then
assigned step by step (:mod:`opticoll.solvers.methods.lumorph.realisation`). With ``compact`` a transfer starts as soon
as its sender has the chunk; ``metrics.stepwise_rounds`` is the number of rounds without that.

A step that is one round in the cost model may take several here, since b chunks for a peer need b circuits. The index
all-to-all is not a method: it forwards through GPUs that do not require the chunk, which (3) forbids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.lumorph.co_scheduling import values_of
from opticoll.formulations.lumorph.rounds import program_only
from opticoll.formulations.model import NotApplicable, Parameter
from opticoll.solvers.methods.lumorph.collective_algorithms import (
    ALGORITHMS,
    independent_sets,
    layer_to_layer,
    pattern_of,
)
from opticoll.solvers.methods.lumorph.realisation import compacted, realised
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.co_scheduling import CallBatches
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.model import Formulation
    from opticoll.solvers.methods.lumorph.collective_algorithms import Algorithm
    from opticoll.solvers.methods.lumorph.patterns import Pattern
    from opticoll.solvers.methods.method import Context

_SHARED = (
    Parameter("routing", str, "min-overlap", "routes of least overlap (Algorithm 2), or random shortest ones",
              ("min-overlap", "random")),
    Parameter("compact", bool, True, "start transfers as soon as their senders have the chunk, not step by step"),
    Parameter("search_s", float, 0.0, "seconds of search per step if first fit misses the step's bound"),
)  # fmt: skip
_LIMIT = Parameter("limit", str, "both", "whose lasers limit the greedy rounds; receivers is as printed",
                   ("both", "receivers"))  # fmt: skip
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
    if settings["search_s"] < 0 or not np.isfinite(settings["search_s"]):
        msg = f"{name}: search_s={settings['search_s']} must be at least 0 seconds"
        raise NotApplicable(msg)
    schedule = realised(
        data.topology, data.limits, pattern, routing=settings["routing"], seed=context.task.seed,
        search_s=settings["search_s"], tick=context.remaining,
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
        solver={"name": name, "version": None, "algorithm": f"{settings['routing']} routes, first fit", "options": {}},
        metrics=metrics,
        message=message or "a construction without an optimality proof",
    )


def _free_wavelengths(context: Context, name: str) -> RoundModel:
    data: RoundModel = context.data
    if data.fixed:
        msg = f"{name}: chooses wavelengths freely; remove wavelengths=fixed"
        raise NotApplicable(msg)
    return data


def _method(algorithm: Algorithm) -> Method:
    """An algorithm as a method."""
    # Exchanges of whole buffers are not the two phases that Algorithm 1 has for an all-reduce.
    own = tuple(parameter for parameter in algorithm.parameters if parameter.name != "whole")

    def run(context: Context) -> Answer:
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
    data = _free_wavelengths(context, "layer-to-layer")
    lasers = data.limits.wavelengths * (data.limits.ports or 1)
    pattern = layer_to_layer(data.collective, lasers, limit=context.parameters["limit"], seed=context.task.seed)
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


METHODS = (
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
