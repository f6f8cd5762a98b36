"""BERT's iteration of figure 11 replayed: one queue of all-reduces beside computing with published times.

Source  LuMorph, appendix C (one device, one queue), figure 11; the computing times that TopoOpt's authors published for
        the same operators (:mod:`opticoll.instances.training.training_jobs`), at 16 sequences of 64 tokens per GPU

LuMorph publishes neither its computing times nor the moment at which each call is issued. Its logs of BERT have 134
calls of more than one GPU: weights and biases of 48 + 1 fully connected layers, and the weights of 36 attentions. Those
are the operators of TopoOpt's BERT, in their number and their sizes, and here a call is issued as soon as its operator
has computed backwards. As all calls use all GPUs, the optimum of ``lumorph.iteration`` with ``boundaries=stages`` is
that queue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opticoll.formulations.lumorph.iteration import StagedCalls
from opticoll.formulations.lumorph.iteration_solution import values_of
from opticoll.instances.training.task_graph import operator_sequence
from opticoll.instances.training.training_iteration import AllReduceCall, Stage, TrainingIteration
from opticoll.instances.training.training_jobs import NUMBER_BYTES, data_parallel_times
from opticoll.solvers.methods.lumorph.call_batches import at_boundaries

if TYPE_CHECKING:
    from opticoll.types import Setting

#: Samples per GPU.
BATCH = 16
#: Names of the formulation's algorithms by those of the figures.
_ALGORITHMS = {"Ideal switch+Ring": "ring", "Lumorph-2": "lumorph-2", "Lumorph-4": "lumorph-4"}


def bert_iteration(gpus: int, *, free_us: float | None = None, split: bool = True) -> TrainingIteration:
    """BERT's stages and calls: the forward pass, then the operators backwards.

    Parameters
    ----------
    gpus
        Number of GPUs.
    free_us
        Time of all computing, to which the published times are scaled; None for these themselves [us].
    split
        Whether weights and biases of a layer are two calls, as in the logs.
    """
    layers, _ = operator_sequence("bert")
    forward, backward = data_parallel_times("bert", BATCH)
    whole = 1e6 * sum(forward[name] + backward[name] for name, _ in layers)
    scale = 1e6 * (1.0 if free_us is None else free_us / whole)
    stages = [Stage(scale * sum(forward[name] for name, _ in layers))]
    calls: list[AllReduceCall] = []
    for name, weights in reversed(layers):
        stages.append(Stage(scale * backward[name]))
        kind, *sizes = name.split("_")
        biases = int(sizes[1]) if kind == "Dense" and split else 0
        for numbers in (weights - biases, biases):
            if numbers:
                calls.append(AllReduceCall(tuple(range(gpus)), NUMBER_BYTES * numbers, len(stages) - 1))
    return TrainingIteration(gpus, calls, (), stages, spec=f"BERT on {gpus} GPUs")


def iteration_us(job: TrainingIteration, algorithm: str, *, overlap: bool = True) -> float:
    """Time of an iteration in one queue, or with all calls at the end, by the costs of the figures [us]."""
    settings: dict[str, Setting] = {
        "algorithm": _ALGORITHMS[algorithm],
        "variant": "plotted",
        "boundaries": "stages",
        "batches": False,
        "overlap": overlap,
    }
    data = StagedCalls.prepare(job, settings)
    return float(values_of(data, at_boundaries(data, fitting=False))["z"])


def replayed_gain(gpus: int, *, free_us: float | None = None, split: bool = True, overlap: bool = True) -> float:
    """Training throughput over that with the ring, of the better variant; see :func:`bert_iteration`."""
    job = bert_iteration(gpus, free_us=free_us, split=split)
    ring, *mine = (iteration_us(job, name, overlap=overlap) for name in _ALGORITHMS)
    return ring / min(mine)
