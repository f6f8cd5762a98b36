r"""Training jobs: neural networks trained by the servers of a pool, and their traffic in one iteration.

Source  TopoOpt, appendix D, List 1 (widths, batch sizes, tables); for each model, the paper that defines its layers

Weights, activations and gradients have 4 bytes. Choices that List 1 leaves open: all layers of a stack
have the same width; stacks are connected by one projection (DLRM and NCF concatenate the looked-up rows); a server
has four GPUs (section 5.1), or one in the testbed (section 6). DLRM's dense layers are the bottom stack and its feature
layers the top one, as in the authors' scripts and measurements: the first top layer takes all looked-up rows and the
bottom stack's output, Dense_18432_4096 in section 5.4. Its numbers of layers count widths, as in the scripts: 8 widths
of 2048 are 7 layers.

Data parallel    one all-reduce of all weights over all servers
Hybrid, tables   (DLRM, NCF) table j of J on server floor(j n / J), the rest replicated: its server sends each other
                 server the rows that the latter's samples look up, and receives as many gradients
Hybrid, shards   (others) blocks of s consecutive servers; each split layer has s equal parts on them (tensor
                 parallelism), and its outputs are exchanged within the block in both passes; the j-th servers of all
                 blocks sum the gradients of their part, all servers those of the layers that are not split

An all-reduce of S bytes among k servers takes 2 (k-1)/k S bytes over each hop of a ring.

Measured computing times of the operators of training jobs, as published with TopoOpt and FlexFlow's fork STEAM.

Source  hipersys-team/TopoOpt, commit 4a68a66 (batch sweep of DLRM with 128 tables), and usc-isi/STEAM-FlexFlow, commit
        b310c02 (the other models), both Apache-2.0; numbers only

Columns of ``published/topoopt_compute_times.csv``

    model            candle, vgg, bert, resnet50, ncf, dlrm (64 tables in section 5.3, 16 in 5.6), dlrm-128-tables
    servers          128 (sections 5.3 and 5.4) or 16 (section 5.6)
    samples_per_gpu  batch of one GPU; a server is simulated as one device with the batch of its four GPUs
    operator         type and sizes: Dense_IN_OUT, Conv2D_K_K_OUT, Embed_ROWSxCOLUMNS, ..
    occurrences      number in the whole model (of embedding tables, their number), from the published task graphs and
                     settings
    parts            servers over which the whole batch is split: all for data parallelism, the only one of resnet50; 1
                     for an embedding table, which one server looks up for the whole batch
    forward_ms, backward_ms
                     time of one occurrence on one server [ms]

Columns of ``published/topoopt_fig16.csv``: iterations of jobs of 16 servers on a shared cluster (figure 16)

    network, degree, link_gbps   topoopt, or ideal-switch with one link of link_gbps [Gb/s]
    jobs, model                  active jobs; the model, inferred from the times
    samples                      iterations, with mean_ms, least_ms and most_ms [ms]

Operators with the same name share one time although their inputs may differ. NCF has one dense layer fewer than
in List 1, as does DLRM.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput, BadSpec, refuse
from opticoll.instances.servers import AllReduceGroup
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    from opticoll.instances.topology import F64

    Traffic = tuple[F64, tuple[AllReduceGroup, ...]]


#: Bytes of a weight, an activation, a gradient.
NUMBER_BYTES = 4
#: Word pieces of BERT's vocabulary (Devlin et al. 2019).
_VOCABULARY = 30_522
#: Classes of ImageNet.
_CLASSES = 1000


@dataclass(frozen=True)
class Layer:
    """A layer: weights, outputs per sample, and whether tensor parallelism splits it."""

    weights: int
    outputs: int = 0
    split: bool = False


@dataclass(frozen=True)
class Tables:
    """Equal embedding tables: their number, rows and columns."""

    count: int
    rows: int
    columns: int

    @property
    def weights(self) -> int:
        """Weights of all tables."""
        return self.count * self.rows * self.columns


@dataclass(frozen=True)
class TrainingJob:
    """A network and its batch size.

    Parameters
    ----------
    name, section
        Model, and the section of the paper in List 1.
    batch
        Samples per GPU in one iteration.
    gpus
        GPUs of one server.
    layers, tables
        Parts of the network that have weights.
    """

    name: str
    section: str
    batch: int
    gpus: int
    layers: tuple[Layer, ...]
    tables: tuple[Tables, ...] = ()

    @property
    def dense_weights(self) -> int:
        """Weights outside the tables."""
        return sum(layer.weights for layer in self.layers)

    @property
    def table_weights(self) -> int:
        """Weights of the embedding tables."""
        return sum(tables.weights for tables in self.tables)

    @property
    def server_batch(self) -> int:
        """Samples per server."""
        return self.batch * self.gpus


# the models ---------------------------------------------------------------------------------------------------


def _stack(count: int, width: int, *, split: bool = False) -> tuple[Layer, ...]:
    """Fully connected layers of one width."""
    return (Layer(width * width + width, width, split),) * count


def _joint(inputs: int, outputs: int) -> Layer:
    return Layer(inputs * outputs + outputs, outputs)


def dlrm(section: str) -> TrainingJob:
    """Naumov et al., arXiv:1906.00091: bottom and top stack, with the looked-up rows concatenated between them."""
    batch, tables, columns, rows, bottom, top = {
        "5.3": (128, 64, 128, 10**7, (8, 2048), (16, 4096)),
        "5.4": (128, 128, 128, 10**7, (8, 2048), (16, 4096)),
        "5.6": (256, 16, 256, 10**7, (8, 1024), (16, 2048)),
        "6": (64, 12, 32768, 10**5, (4, 1024), (8, 2048)),
    }[section]
    joint, last = _joint(tables * columns + bottom[1], top[1]), _joint(top[1], 1)
    layers = (*_stack(bottom[0] - 1, bottom[1]), joint, *_stack(top[0] - 2, top[1]), last)
    return TrainingJob("dlrm", section, batch, _gpus(section), layers, (Tables(tables, rows, columns),))


def ncf(section: str) -> TrainingJob:
    """He et al., WWW 2017 (NeuMF): products of the MF rows beside a stack over the MLP rows, then one output."""
    tables, rows, factors, columns, depth, width = 32, 10**6, 64, 128, 8, 4096
    layers = (_joint(2 * tables * columns, width), *_stack(depth - 1, width), _joint(tables * factors + width, 1))
    return TrainingJob(
        "ncf",
        section,
        128,
        _gpus(section),
        layers,
        (Tables(2 * tables, rows, factors), Tables(2 * tables, rows, columns)),
    )


def candle(section: str) -> TrainingJob:
    """CANDLE Uno (ECP-CANDLE Benchmarks, Pilot 1): feature stack and dense stack, here all of one width."""
    batch, depth, features, width = {"5.3": (256, 8, 16, 16384), "5.6": (256, 8, 16, 4096), "6": (10, 4, 8, 4096)}[
        section
    ]
    layers = _stack(features + depth, width, split=True)
    return TrainingJob("candle", section, batch, _gpus(section), (*layers, _joint(width, 1)))


def bert_layers(blocks: int, hidden: int, length: int, embedded: int) -> tuple[Layer, ...]:
    """Devlin et al., NAACL 2019: 12 h^2 + 13 h weights per block; embeddings of pieces, positions, segments; pooler."""
    inputs = (_VOCABULARY + length + 2) * embedded + 2 * embedded
    if embedded != hidden:
        inputs += embedded * hidden + hidden
    attention = Layer(4 * hidden * hidden + 6 * hidden, length * hidden, split=True)
    forward = Layer(8 * hidden * hidden + 7 * hidden, length * hidden, split=True)
    return (Layer(inputs, length * hidden), *(attention, forward) * blocks, Layer(hidden * hidden + hidden, hidden))


def bert(section: str) -> TrainingJob:
    """BERT with the blocks, width and sequence length of List 1; word pieces embedded in 512 columns."""
    batch, blocks, hidden, length = {"5.3": (16, 12, 1024, 64), "5.6": (16, 6, 768, 256), "6": (2, 6, 1024, 1024)}[
        section
    ]
    return TrainingJob("bert", section, batch, _gpus(section), bert_layers(blocks, hidden, length, 512))


def vgg(section: str) -> TrainingJob:
    """Simonyan & Zisserman, ICLR 2015, configuration D (VGG16): the three fully connected layers can be split."""
    widths = (3, *(64,) * 2, *(128,) * 2, *(256,) * 3, *(512,) * 6)
    convolutions = tuple(Layer(9 * a * b + b) for a, b in pairwise(widths))
    ends = (512 * 49, 4096, 4096, _CLASSES)
    dense = tuple(Layer(a * b + b, b, split=True) for a, b in pairwise(ends))
    return TrainingJob("vgg", section, {"5.3": 64, "5.6": 64, "6": 32}[section], _gpus(section), convolutions + dense)


def resnet50(section: str) -> TrainingJob:
    """He et al., CVPR 2016: bottleneck blocks 3, 4, 6, 3; normalisation has two weights per channel."""
    layers, inputs = [Layer(3 * 49 * 64 + 128)], 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            outputs = 4 * width
            weights = inputs * width + 9 * width * width + width * outputs + 2 * (2 * width + outputs)
            if block == 0:
                weights += inputs * outputs + 2 * outputs
            layers.append(Layer(weights))
            inputs = outputs
    layers.append(Layer(inputs * _CLASSES + _CLASSES, _CLASSES, split=True))
    return TrainingJob("resnet50", section, {"5.3": 128, "6": 20}[section], _gpus(section), tuple(layers))


def _gpus(section: str) -> int:
    return 1 if section == "6" else 4


#: Builders by name, with the sections for which List 1 has parameters.
JOBS = {
    "dlrm": (dlrm, ("5.3", "5.4", "5.6", "6")),
    "candle": (candle, ("5.3", "5.6", "6")),
    "bert": (bert, ("5.3", "5.6", "6")),
    "ncf": (ncf, ("5.3",)),
    "resnet50": (resnet50, ("5.3", "6")),
    "vgg": (vgg, ("5.3", "5.6", "6")),
}
PLACEMENTS = ("auto", "data", "hybrid")


def training_job(name: str, section: str = "5.3", batch: int = 0) -> TrainingJob:
    """Build a model of List 1.

    Parameters
    ----------
    name, section
        Key of :data:`JOBS`, and the section of the paper.
    batch
        Samples per GPU; 0 for the value of List 1.

    Raises
    ------
    BadSpec
        For an unknown model, a section without this model, or a negative batch.
    """
    if name not in JOBS:
        msg = f"unknown model {name!r}; {nearest(name, list(JOBS))}"
        raise BadSpec(msg)
    build, sections = JOBS[name]
    if section not in sections:
        msg = f"model {name}: List 1 has no parameters for section {section!r}; known: {', '.join(sections)}"
        raise BadSpec(msg)
    if batch < 0:
        msg = f"model {name}: the batch has {batch} samples; give a positive number, or 0 for the value of List 1"
        raise BadSpec(msg)
    job = build(section)
    return TrainingJob(name, section, batch or job.batch, job.gpus, job.layers, job.tables)


# their traffic ------------------------------------------------------------------------------------------------


def all_reduce(members: range | tuple[int, ...], weights: float) -> tuple[AllReduceGroup, ...]:
    """Group in which ``members`` sum ``weights`` numbers; empty for a single server or no weights."""
    k = len(members)
    if k < 2 or weights <= 0:
        return ()
    return (AllReduceGroup(tuple(members), 2 * (k - 1) / k * NUMBER_BYTES * weights),)


def check_placement(placement: str) -> None:
    """Refuse an unknown placement.

    Raises
    ------
    BadSpec
        If it is not in :data:`PLACEMENTS`.
    """
    if placement not in PLACEMENTS:
        refuse("servers", f"parallel must be one of {', '.join(PLACEMENTS)}, not {placement!r}", BadSpec)


def traffic_of(job: TrainingJob, n: int, placement: str = "auto", shards: int = 2) -> Traffic:
    """Point-to-point bytes, shape ``(n, n)``, and all-reduce groups of a job on n servers.

    Parameters
    ----------
    job
        Training job.
    n
        Number of servers.
    placement
        ``data``; ``hybrid``; ``auto``: hybrid for models with embedding tables, data parallel for all others.
    shards
        Parts of every split layer, for hybrid placement of models without tables; a divisor of n.

    Raises
    ------
    BadSpec
        For an unknown placement.
    BadInput
        If the shards do not divide the servers.
    """
    check_placement(placement)
    if placement == "data" or (placement == "auto" and not job.tables):
        return np.zeros((n, n)), all_reduce(range(n), job.dense_weights + job.table_weights)
    if job.tables:
        return _lookups(job, n), all_reduce(range(n), job.dense_weights)
    return _sharded(job, n, shards)


def _lookups(job: TrainingJob, n: int) -> F64:
    columns = np.repeat([t.columns for t in job.tables], [t.count for t in job.tables])
    owner = np.arange(columns.size) * n // columns.size
    held = np.bincount(owner, columns, n).astype(np.float64) * job.server_batch * NUMBER_BYTES
    matrix = held[:, None] + held[None, :]  # rows to every server, gradients back
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _sharded(job: TrainingJob, n: int, shards: int) -> Traffic:
    if shards < 2 or n % shards:
        msg = f"servers: no blocks of shards={shards} on {n} servers; choose a divisor of n above 1, or parallel=data"
        raise BadInput(msg)
    split = [layer for layer in job.layers if layer.split]
    # A server has 1/s of the outputs for the s batches of its block, and sends them to every other server of the block.
    sent = 2 * job.server_batch * sum(layer.outputs for layer in split) * NUMBER_BYTES
    block = np.arange(n) // shards
    matrix = np.where(block[:, None] == block[None, :], float(sent), 0.0)
    np.fill_diagonal(matrix, 0.0)
    whole = sum(layer.weights for layer in job.layers if not layer.split)
    groups = all_reduce(range(n), whole)
    part = sum(layer.weights for layer in split) / shards
    for j in range(shards):
        groups += all_reduce(range(j, n, shards), part)
    return matrix, groups


#: Servers for which the times of a section were measured; a look-up covers the samples of all of them.
MEASURED_SERVERS = {"5.3": 128, "5.4": 128, "5.6": 16}
TABLE = Path(__file__).parents[1] / "published" / "topoopt_compute_times.csv"


@dataclass(frozen=True)
class Operator:
    """An operator of a model: its occurrences, and the times of one on one server, each way [s], by parts."""

    name: str
    occurrences: int
    forward: dict[int, float]
    backward: dict[int, float]

    @property
    def looked_up(self) -> bool:
        """Whether it is an embedding table, which one server looks up for the whole batch."""
        return self.name.startswith("Embed_")

    @property
    def most_parts(self) -> int:
        """Parts of the batch with data parallelism: the number of servers, and 1 for an embedding table."""
        return max(self.forward)

    def seconds(self, parts: int) -> float:
        """Time of one occurrence, forward and backward [s]."""
        return self.forward[parts] + self.backward[parts]


@cache
def _measured() -> dict[tuple[str, int, int], tuple[Operator, ...]]:
    """Operators by model, samples per GPU and servers."""
    result: dict[tuple[str, int, int], dict[str, Operator]] = defaultdict(dict)
    with TABLE.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            model = result[row["model"], int(row["samples_per_gpu"]), int(row["servers"])]
            one = model.setdefault(row["operator"], Operator(row["operator"], int(row["occurrences"]), {}, {}))
            one.forward[int(row["parts"])] = float(row["forward_ms"]) / 1000.0
            one.backward[int(row["parts"])] = float(row["backward_ms"]) / 1000.0
    return {key: tuple(model.values()) for key, model in result.items()}


def operators(model: str, samples: int, servers: int = 128) -> tuple[Operator, ...]:
    """Operators of a model at a batch of ``samples`` per GPU on that many servers.

    Raises
    ------
    BadInput
        For a model, batch or number of servers without measurements.
    """
    measured = _measured()
    if (model, samples, servers) not in measured:
        listed = ", ".join(f"{name} {batch} on {count}" for name, batch, count in sorted(measured))
        msg = f"compute times: none of {model} at {samples} samples per GPU on {servers} servers; available: {listed}"
        raise BadInput(msg)
    return measured[model, samples, servers]


def measured_model(model: str, section: str) -> str:
    """Name of a model of a section in the table of times."""
    return f"{model}-128-tables" if section == "5.4" else model


def data_parallel_times(model: str, samples: int, servers: int = 128) -> tuple[dict[str, float], dict[str, float]]:
    """Times of one occurrence of every operator, forward and backward [s], with the batch split over all servers."""
    measured = operators(model, samples, servers)
    forward = {one.name: one.forward[one.most_parts] for one in measured}
    return forward, {one.name: one.backward[one.most_parts] for one in measured}


def compute_time(model: str, samples: int, servers: int = 128) -> float:
    """Computing time of one data-parallel iteration on the busiest server [s], without overlap of its operators."""
    return sum(
        (-(-one.occurrences // servers) if one.looked_up else one.occurrences) * one.seconds(one.most_parts)
        for one in operators(model, samples, servers)
    )


def dense_size(name: str) -> int:
    """Weights of a fully connected layer ``Dense_IN_OUT``; 0 for other operators."""
    kind, *sizes = name.split("_")
    return (int(sizes[0]) + 1) * int(sizes[1]) if kind == "Dense" else 0


#: Weights of operators whose name does not give them: the average of VGG16's convolutions, whose inputs differ.
_CONVOLUTIONS = {
    "Conv2D_3_3_64": 19_360,
    "Conv2D_3_3_128": 110_720,
    "Conv2D_3_3_256": 491_776,
    "Conv2D_3_3_512": 2_163_200,
}
#: Hidden size, heads and sequence length of both BERTs (the heads as in the authors' scripts).
_ATTENTION = {"MultiHeadAttention_102416": (1024, 16), "MultiHeadAttention_76812": (768, 12)}
_TOKENS = {128: 64, 16: 256}


@dataclass(frozen=True)
class MeasuredKind:
    """Equal operators with weights: one of them as a job, their number, and the time of one by its shards [s].

    ``seconds[0]`` is the time with the batch split over all servers, or of a server's tables; ``seconds[s]`` is that of
    one of s shards.
    """

    job: TrainingJob
    count: int
    seconds: dict[int, float]


def measured_kinds(model: str, section: str, batch: int, servers: int) -> tuple[tuple[MeasuredKind, ...], float]:
    """Operators with weights by kind, and the time per iteration of those without weights, on one server [s].

    In s shards, blocks of s servers hold 1/s of an operator each, for the batches of all s. The whole operator was
    measured with this batch; a shard is assumed to take 1/s of that time.

    Parameters
    ----------
    model, section, batch
        As in :func:`~opticoll.instances.training.training_jobs.training_job`.
    servers
        Number of servers in the measurement.

    Raises
    ------
    BadInput
        If there are no measurements, or only those with data parallelism.
    """
    bare = replace(training_job(model, section, batch), layers=(), tables=())
    measured = operators(measured_model(model, section), bare.batch, servers)
    if all(len(one.forward) == 1 for one in measured):
        refuse("compute times", f"those of {model} are for data parallelism alone; choose another model")
    kinds, rest = [], 0.0
    for operator in measured:
        kind, *sizes = operator.name.split("_")
        count = operator.occurrences
        if operator.looked_up:
            rows, columns = map(int, sizes[0].split("x"))
            held = -(-count // servers) * operator.seconds(1)
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
            rest += count * operator.seconds(servers)
            continue
        seconds = {0: operator.seconds(servers)} | {
            servers // parts: operator.seconds(parts) * parts / servers
            for parts in operator.forward
            if parts < servers and units % (servers // parts) == 0
        }
        kinds.append(MeasuredKind(replace(bare, layers=(layer,)), count, seconds))
    return tuple(kinds), rest


@dataclass(frozen=True)
class PublishedIterations:
    """Iterations of a model on a shared cluster: their number, and their mean, shortest and longest time [s]."""

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
    """Published iteration times of figure 16."""
    with (TABLE.parent / "topoopt_fig16.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            PublishedIterations(
                row["network"],
                int(row["degree"]),
                int(row["link_gbps"]),
                int(row["jobs"]),
                row["model"],
                int(row["samples"]),
                *(float(row[f"{name}_ms"]) / 1000.0 for name in ("mean", "least", "most")),
            )
            for row in csv.DictReader(file)
        )
