"""Measured computing times of the operators of training jobs, as published with TopoOpt and FlexFlow's fork STEAM.

Source  hipersys-team/TopoOpt, commit 4a68a66 (batch sweep of DLRM with 128 tables), and usc-isi/STEAM-FlexFlow, commit
        b310c02 (the other models), both Apache-2.0; numbers only, reduced to data parallelism over 128 servers, or
        over 16 for section 5.6

Columns of ``published/topoopt_compute_times.csv``

    model            candle, vgg, bert, resnet50, dlrm (64 tables), ncf, dlrm-128-tables; those of section 5.6 are
                     candle-, vgg-, bert- and dlrm-16-servers
    samples_per_gpu  batch of one GPU; a server is simulated as one device with the batch of its four GPUs
    operator         type and sizes: Dense_IN_OUT, Conv2D_K_K_OUT, Embed_ROWSxCOLUMNS, ..
    occurrences      how often the operator occurs in the model, from the published task graphs and settings
    forward_ms, backward_ms
                     time of one occurrence on one server [ms]; an embedding table is looked up by one server for the
                     whole batch

Columns of ``published/topoopt_split_times.csv``: the same with the batch split over fewer servers

    model, samples_per_gpu, operator, forward_ms, backward_ms
                     as above; dlrm has 64 tables in section 5.3 and 16 in 5.6
    servers          128 (sections 5.3 and 5.4) or 16 (section 5.6)
    occurrences      in the whole model: of an embedding table, how many there are; from the published task graphs
    parts            servers over which the whole batch is split; 1 for an embedding table

Columns of ``published/topoopt_fig16.csv``: iterations of jobs of 16 servers on a shared cluster (figure 16)

    network, degree, link_gbps   topoopt, or ideal-switch with one link of link_gbps [Gb/s]
    jobs, model                  active jobs; the model, inferred from the times
    samples                      iterations, with mean_ms, least_ms and most_ms [ms]

Operators of one name share one time although their inputs may differ. NCF's number of dense layers is List 1's less
one, as for DLRM.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from opticoll.errors import BadInput
from opticoll.instances.training_jobs import Layer, Tables, TrainingJob, training_job

#: Servers for which the times of a section were measured; a look-up covers the samples of all of them.
MEASURED_SERVERS = {"5.3": 128, "5.4": 128, "5.6": 16}
TABLE = Path(__file__).parent / "published" / "topoopt_compute_times.csv"


@dataclass(frozen=True)
class Operator:
    """An operator of a model: its occurrences, and the times of one of them, forward and backward [s]."""

    name: str
    occurrences: int
    forward: float
    backward: float

    @property
    def seconds(self) -> float:
        """Time of one occurrence, forward and backward [s]."""
        return self.forward + self.backward


@cache
def operators(model: str, samples: int) -> tuple[Operator, ...]:
    """Operators of a model at a batch of ``samples`` per GPU.

    Raises
    ------
    BadInput
        For a model or batch without measurements.
    """
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    known = sorted({(row["model"], int(row["samples_per_gpu"])) for row in rows})
    if (model, samples) not in known:
        listed = ", ".join(f"{name} {batch}" for name, batch in known)
        msg = f"compute times: none of {model} at {samples} samples per GPU; there are {listed}"
        raise BadInput(msg)
    return tuple(
        Operator(
            row["operator"],
            int(row["occurrences"]),
            float(row["forward_ms"]) / 1000.0,
            float(row["backward_ms"]) / 1000.0,
        )
        for row in rows
        if (row["model"], int(row["samples_per_gpu"])) == (model, samples)
    )


def compute_time(model: str, samples: int) -> float:
    """Computing time of one iteration on one server [s], without overlap of its operators."""
    return sum(operator.occurrences * operator.seconds for operator in operators(model, samples))


#: Weights that the name of an operator does not give: convolutions, and BERT's attention of width 1024 or 768.
_OTHER_WEIGHTS = {
    "vgg": 14_714_688, "bert": 36 * 4 * 1024 * 1024, "vgg-16-servers": 14_714_688,
    "bert-16-servers": 18 * 4 * 768 * 768, "resnet50": 23_454_976,
}  # fmt: skip


def dense_size(name: str) -> int:
    """Weights of a fully connected layer ``Dense_IN_OUT``; 0 for other operators."""
    kind, *sizes = name.split("_")
    return (int(sizes[0]) + 1) * int(sizes[1]) if kind == "Dense" else 0


def dense_weights(model: str, samples: int) -> int:
    """Weights that every server holds a copy of, without embedding tables."""
    weights = _OTHER_WEIGHTS.get(model, 0)
    for operator in operators(model, samples):
        weights += operator.occurrences * dense_size(operator.name)
    return weights


# times by strategy ----------------------------------------------------------------------------------------------

SPLIT_TABLE = TABLE.parent / "topoopt_split_times.csv"


@dataclass(frozen=True)
class SplitOperator:
    """An operator with the times of one occurrence on one server, forward and backward [s], by ``parts``."""

    name: str
    occurrences: int
    seconds: dict[int, float]

    @property
    def looked_up(self) -> bool:
        """Whether it is an embedding table, which one server looks up for the whole batch."""
        return self.name.startswith("Embed_")


@cache
def _split() -> dict[tuple[str, int, int], tuple[SplitOperator, ...]]:
    """Operators by model, samples per GPU and servers."""
    with SPLIT_TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found: dict[tuple[str, int, int], dict[str, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["model"], int(row["samples_per_gpu"]), int(row["servers"])][row["operator"]].append(row)
    return {
        key: tuple(
            SplitOperator(name, int(here[0]["occurrences"]), {
                int(row["parts"]): (float(row["forward_ms"]) + float(row["backward_ms"])) / 1000.0 for row in here
            }) for name, here in models.items()
        ) for key, models in found.items()
    }  # fmt: skip


def split_operators(model: str, samples: int, servers: int) -> tuple[SplitOperator, ...]:
    """Operators of a model at a batch of ``samples`` per GPU on so many servers, by the parts of the batch.

    Raises
    ------
    BadInput
        For a model, batch or number of servers without measurements.
    """
    known = _split()
    if (model, samples, servers) not in known:
        listed = ", ".join(f"{name} {batch} on {count}" for name, batch, count in sorted(known))
        msg = f"compute times: none of {model} at {samples} samples per GPU on {servers} servers; there are {listed}"
        raise BadInput(msg)
    return known[model, samples, servers]


#: Weights of one operator that its name does not give: VGG16's convolutions, whose inputs differ, on average.
_CONVOLUTIONS = {
    "Conv2D_3_3_64": 19_360, "Conv2D_3_3_128": 110_720, "Conv2D_3_3_256": 491_776, "Conv2D_3_3_512": 2_163_200,
}  # fmt: skip
#: Hidden layer, heads and length of a sequence of both BERTs (the heads as in the authors' scripts).
_ATTENTION = {"MultiHeadAttention_102416": (1024, 16), "MultiHeadAttention_76812": (768, 12)}
_TOKENS = {128: 64, 16: 256}


@dataclass(frozen=True)
class MeasuredKind:
    """Equal operators with weights: one of them as a job, how many, and the time of one by its shards [s].

    ``seconds[0]`` is the time with the batch split over all servers, or of a server's tables; ``seconds[s]`` that of
    one of s shards.
    """

    job: TrainingJob
    count: int
    seconds: dict[int, float]


def measured_kinds(model: str, section: str, batch: int, servers: int) -> tuple[tuple[MeasuredKind, ...], float]:
    """Operators with weights by kind, and the time per iteration of those without, on one server [s].

    In s shards, blocks of s servers hold 1/s of an operator each, for the batches of all s. The whole operator was
    measured with this batch; a shard is taken to need 1/s of that time.

    Parameters
    ----------
    model, section, batch
        As of :func:`~opticoll.instances.training_jobs.training_job`.
    servers
        Servers of the measurement.

    Raises
    ------
    BadInput
        Without measurements.
    """
    bare = replace(training_job(model, section, batch), layers=(), tables=())
    listed = "dlrm-128-tables" if (model, section) == ("dlrm", "5.4") else model
    kinds, rest = [], 0.0
    for operator in split_operators(listed, bare.batch, servers):
        kind, *sizes = operator.name.split("_")
        count = operator.occurrences
        if operator.looked_up:
            rows, columns = map(int, sizes[0].split("x"))
            held = -(-count // servers) * operator.seconds[1]
            kinds.append(MeasuredKind(replace(bare, tables=(Tables(count, rows, columns),)), 1, {0: held}))
            continue
        tokens = _TOKENS[servers] if model == "bert" else 1
        if kind == "Dense":
            inputs, units = map(int, sizes)
            layer = Layer((inputs + 1) * units, units * tokens, split=True)
        elif operator.name in _ATTENTION:
            hidden, units = _ATTENTION[operator.name]
            layer = Layer(4 * hidden * hidden, hidden * tokens, split=True)
        elif kind == "Conv2D":
            layer, units = Layer(_CONVOLUTIONS[operator.name]), 1
        else:
            rest += count * operator.seconds[servers]
            continue
        seconds = {0: operator.seconds[servers]} | {
            servers // parts: time * parts / servers
            for parts, time in operator.seconds.items()
            if parts < servers and units % (servers // parts) == 0
        }
        kinds.append(MeasuredKind(replace(bare, layers=(layer,)), count, seconds))
    return tuple(kinds), rest


@dataclass(frozen=True)
class PublishedIterations:
    """Iterations of a model on a shared cluster: how many, their mean, least and longest time [s]."""

    network: str
    degree: int
    link_gbps: int
    jobs: int
    model: str
    samples: int
    mean: float
    least: float
    most: float


@cache
def shared_cluster() -> tuple[PublishedIterations, ...]:
    """The published iteration times of figure 16."""
    with (TABLE.parent / "topoopt_fig16.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            PublishedIterations(
                row["network"], int(row["degree"]), int(row["link_gbps"]), int(row["jobs"]), row["model"],
                int(row["samples"]), *(float(row[f"{name}_ms"]) / 1000.0 for name in ("mean", "least", "most")),
            )
            for row in csv.DictReader(file)
        )  # fmt: skip
