"""Methods: known collective algorithms as schedules of Algorithm 1, with one chunk per circuit and round.

A step that is one round in the cost model may take several here, since b chunks for a peer need b circuits. The index
all-to-all is a method of ``lumorph.forwarded-rounds``, not of Algorithm 1: it forwards through GPUs that do not require
the chunk, which (3) forbids.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from opticoll.errors import NotApplicable
from opticoll.formulations.lumorph.rounds_solution import phase_violations, program_only
from opticoll.formulations.parameters import Parameter
from opticoll.formulations.rounds.round_schedule import from_values
from opticoll.solvers.methods.lumorph.collective_algorithms import ALGORITHMS, layer_to_layer, pattern_of
from opticoll.solvers.methods.lumorph.realisation import compacted, realised
from opticoll.solvers.methods.method import Answer, Method

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.sum_rounds import SumModel
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.solvers.methods.lumorph.collective_algorithms import Algorithm, LaserLimit
    from opticoll.solvers.methods.lumorph.patterns import Pattern
    from opticoll.solvers.methods.lumorph.realisation import Routing
    from opticoll.solvers.methods.method import Context

SUMS = "lumorph.sum-rounds"


ROUTING = Parameter(
    "routing",
    str,
    "min-overlap",
    "routes of minimum overlap (Algorithm 2), or random shortest ones",
    ("min-overlap", "random"),
)
SHARED = (
    ROUTING,
    Parameter("compact", bool, True, "start transfers as soon as their senders have the chunk, not step by step"),
)
#: Remarks on algorithms that are not designed for one chunk per circuit.
_STRICT = {
    "ring": "a ring has one peer, so with one piece per shard all lasers but one are idle",
    "tree": "a tree is designed for large payloads: leaves send nothing, and depth adds rounds",
    "double-binary-tree": "trees are designed for large payloads: depth adds rounds",
}


def answer(context: Context, name: str, pattern: Pattern, batches: int, message: str) -> Answer:
    """Schedule a communication pattern on the topology of the context."""
    data: RoundModel | SumModel = context.data
    settings = context.parameters
    routing = cast("Routing", settings["routing"])
    schedule = realised(
        data.topology,
        data.limits,
        pattern,
        routing=routing,
        seed=context.task.seed,
        tick=context.remaining,
    )
    stepwise = schedule.rounds
    if settings["compact"]:
        schedule = compacted(data.topology, data.limits, schedule, tick=context.remaining)
    if data is data.plain and data.plain.phased and phase_violations(data.plain, schedule):
        msg = f"{name}: its {data.collective.name} is not a reduce-scatter followed by an all-gather; use {SUMS}"
        raise NotApplicable(msg)
    metrics: dict[str, Any] = {
        "steps": pattern.steps,
        "stepwise_rounds": stepwise,
        "transfers": schedule.transfers,
        "circuits": schedule.circuits,
        "batches": batches,
    }
    result = Answer.heuristic(schedule.values(), f"{routing} routes, first fit", metrics)
    return replace(result, message=message or result.message)


def free_wavelengths(context: Context, name: str) -> RoundModel | SumModel:
    """The data of the context; refused if their wavelengths are fixed."""
    data: RoundModel | SumModel = context.data
    if data.plain.fixed:
        msg = f"{name} chooses wavelengths freely; remove wavelengths=fixed"
        raise NotApplicable(msg)
    return data


def as_method(algorithm: Algorithm) -> Method:
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
        data = free_wavelengths(context, algorithm.name)
        settings = {parameter.name: context.parameters[parameter.name] for parameter in own}
        pattern, batches = pattern_of(algorithm.name, data.collective, data.topology, data.limits, **settings)
        return answer(context, algorithm.name, pattern, len(batches), _STRICT.get(algorithm.name, ""))

    return Method(
        name=algorithm.name,
        title=algorithm.title,
        summary=f"{algorithm.title}: the known pattern, routed and coloured step by step",
        serves=("lumorph.rounds", SUMS),
        refuse=lambda data: program_only(data.plain),
        parameters=(*own, *SHARED),
        run=run,
    )


def own_settings(context: Context, *names: str) -> dict[str, object]:
    """Settings of the context's task that the formulation has as parameters, without those in ``names``."""
    known = {parameter.name for parameter in context.formulation.parameters} - set(names)
    return {name: value for name, value in context.task.settings.items() if name in known}


def sub_schedule(context: Context, most_s: float | None = None, **changed: Any) -> RoundSchedule | None:
    """The verified schedule of another task, by default with this one's instance and settings; None without one.

    It has at most ``most_s`` of the remaining seconds.
    """
    run = context.solve(context.part(changed.pop("formulation", SUMS), most_s, **changed))
    return from_values(run.values) if run.verified and run.values is not None else None


PROGRAM_S = Parameter("program_s", float, 60.0, "seconds for the program with one round fewer; 0 for none")


_LIMIT = Parameter(
    "limit", str, "both", "whose lasers limit the greedy rounds; receivers is as printed", ("both", "receivers")
)


def _run_layers(context: Context) -> Answer:
    """Greedy LayerToLayer rounds (Algorithm 3) as a schedule of Algorithm 1, with one chunk per circuit and round.

    The transfers of each round are those of :func:`.collective_algorithms.layer_to_layer`. Routes of minimum overlap,
    wavelengths and rounds are assigned step by step (:mod:`opticoll.solvers.methods.lumorph.realisation`). With
    ``compact`` a transfer starts as soon as its sender has the chunk; ``metrics.stepwise_rounds`` is the number of
    rounds without that.
    """
    data = free_wavelengths(context, "layer-to-layer")
    lasers = data.limits.wavelengths * (data.limits.ports or 1)
    limit = cast("LaserLimit", context.parameters["limit"])
    pattern = layer_to_layer(data.collective, lasers, limit=limit, seed=context.task.seed)
    return answer(context, "layer-to-layer", pattern, 1, "")


LAYER_TO_LAYER = Method(
    name="layer-to-layer",
    title="Greedy rounds of direct transfers",
    summary="every delivery directly from a holder, random senders per round (Algorithm 3, with its missing limit)",
    serves=("lumorph.rounds",),
    refuse=program_only,
    parameters=(_LIMIT, *SHARED),
    run=_run_layers,
)


METHODS = (
    LAYER_TO_LAYER,
    *(
        as_method(ALGORITHMS[name])
        for name in ("divide-and-conquer", "double-binary-tree", "neighbour-exchange", "recursive", "ring", "tree")
    ),
)
