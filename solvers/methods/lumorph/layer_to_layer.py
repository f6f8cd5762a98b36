"""Method ``layer-to-layer``: greedy rounds of direct transfers (Algorithm 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from opticoll.formulations.lumorph.rounds import program_only
from opticoll.formulations.model import Parameter
from opticoll.solvers.methods.lumorph.collective_algorithms import layer_to_layer
from opticoll.solvers.methods.lumorph.round_algorithms import SHARED, answer, free_wavelengths
from opticoll.solvers.methods.method import Answer, Method

if TYPE_CHECKING:
    from opticoll.solvers.methods.lumorph.collective_algorithms import LaserLimit
    from opticoll.solvers.methods.method import Context

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


METHOD = Method(
    name="layer-to-layer",
    title="Greedy rounds of direct transfers",
    summary="every delivery directly from a holder, random senders per round (Algorithm 3, with its missing limit)",
    serves=("lumorph.rounds",),
    refuse=program_only,
    parameters=(_LIMIT, *SHARED),
    run=_run_layers,
)
