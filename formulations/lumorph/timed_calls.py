"""All-reduces and stages of a training iteration with their times by the authors' costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.lumorph.cost_formulas import LUMORPH_2, LUMORPH_4, RING, formula, layer_time
from opticoll.formulations.model import of_kind
from opticoll.formulations.parameters import Parameter
from opticoll.instances.quantities import Duration, relative
from opticoll.instances.training.training_iteration import TrainingIteration

if TYPE_CHECKING:
    from opticoll.formulations.lumorph.cost_formulas import Variant
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.instances.training.training_iteration import Stage
    from opticoll.types import Settings


#: Maximum number of calls: their pairs are listed.
MOST_CALLS = 2000
_ALGORITHMS = {"lumorph-4": LUMORPH_4, "lumorph-2": LUMORPH_2, "ring": RING}
#: Parameters that determine the times of calls.
COSTS = (
    Parameter(
        "algorithm",
        str,
        default="lumorph-4",
        help="algorithm that determines the times",
        choices=tuple(_ALGORITHMS),
    ),
    Parameter(
        "variant",
        str,
        default="plotted",
        help="the authors' costs as printed, plotted or coded",
        choices=("printed", "plotted", "coded"),
    ),
    Parameter(
        "synchronise",
        Duration,
        default=Duration(0.0),
        help="time in which GPUs and controller agree before every change of circuits [us], or as 5us (appendix C)",
    ),
)


def _agreement(parameters: Settings, formulation: str) -> float:
    """Time in which GPUs and controller agree [us]."""
    return relative(Duration(parameters["synchronise"]), 1e-6, f"{formulation}: synchronise")


def timed_calls(instance: object, parameters: Settings, formulation: str) -> tuple[Mask, F64, I64]:
    """Calls of more than one GPU, longest first: ``member`` ``(K, n)``, ``time`` [us] and ``call``, ``(K,)`` each.

    Raises
    ------
    NotApplicable
        For anything but a training iteration, or one without calls of more than one GPU, or with too many.
    BadInput
        For a time ``synchronise`` that is negative or infinite.
    """
    instance = of_kind(TrainingIteration, instance, formulation, "an iteration such as training:bert,gpus=256")
    shared = [(k, call) for k, call in enumerate(instance.calls) if len(call.ranks) > 1]
    if not 0 < len(shared) <= MOST_CALLS:
        msg = f"{formulation}: {instance.spec} has {len(shared)} calls of more than one GPU; use 1 to {MOST_CALLS}"
        raise NotApplicable(msg)
    name, variant = _ALGORITHMS[str(parameters["algorithm"])], cast("Variant", parameters["variant"])
    cost = {size: formula(name, 1 << (size - 1).bit_length(), variant) for size in {len(c.ranks) for _, c in shared}}
    wait = _agreement(parameters, formulation)
    waited = {size: one.paid * wait for size, one in cost.items()}
    times = [
        cost[len(call.ranks)].time(call.size) + waited[len(call.ranks)] if call.time_us is None else call.time_us
        for _, call in shared
    ]
    time = np.array([round(each, 3) for each in times])
    member = np.zeros((len(shared), instance.n), dtype=bool)
    for row, (_, call) in enumerate(shared):
        member[row, list(call.ranks)] = True
    order = np.argsort(-time, kind="stable")
    return member[order], time[order], np.array([k for k, _ in shared])[order]


def timed_stages(instance: object, parameters: Settings, formulation: str) -> tuple[F64, F64, I64]:
    """Computing and transfers of every stage [us], ``(S,)``, and the stage at whose end each call is ready.

    With boundaries at transfers, a stage without transfers is one with the next that has some.

    Raises
    ------
    NotApplicable
        For an iteration that does not state its stages.
    """
    assert isinstance(instance, TrainingIteration)
    if not instance.stages:
        msg = (
            f"{formulation}: {instance.spec} does not state when what is computed; use training:random,..,stages=S, or "
            "TrainingIteration(.., stages=..) in Python"
        )
        raise NotApplicable(msg)
    waited = _agreement(parameters, formulation)
    sent = np.array([_transfer_time(instance, stage, waited) for stage in instance.stages])
    ends: Mask = (sent > 0) | (parameters["boundaries"] == "stages")
    ends[-1] = True
    merged: I64 = np.cumsum(ends) - ends  # the boundary at which each stage of the instance ends
    computing = np.bincount(merged, [stage.computing_us for stage in instance.stages])
    return np.round(computing, 3), np.round(sent[ends], 3), merged[[call.ready for call in instance.calls]]


def _transfer_time(instance: TrainingIteration, stage: Stage, waited: float) -> float:
    """Time of the transfers of a stage, known or of its layer, one after the other, a wait before each round [us]."""
    if stage.transfers_us is not None:
        return stage.transfers_us
    layers = [each for each in instance.transfers if each.layer == stage.layer >= 0]
    return float(sum(layer_time(each.sources, each.targets, each.size, waited) for each in layers))
