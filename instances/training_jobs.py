r"""Training jobs: neural networks trained by the servers of a pool, and their traffic in one iteration.

Source  TopoOpt, appendix D, List 1 (widths, batch sizes, tables); per model the paper that gives its layers

Weights, activations and gradients have 4 bytes. Choices that List 1 leaves open: all layers of a stack
have the same width; stacks are connected by one projection (DLRM and NCF concatenate the looked-up rows); a server
has four GPUs (section 5.1), or one in the testbed (section 6). DLRM's dense layers are the bottom stack and its feature
layers the top one, as in the authors' scripts and measurements: the first top layer takes all looked-up rows and the
bottom stack's output, Dense_18432_4096 in section 5.4. Its numbers of layers count widths, as in the scripts: 8 widths
of 2048 are 7 layers.

Data parallel    one all-reduce of all weights over all servers
Hybrid, tables   (DLRM, NCF) table j of J on server floor(j n / J), the rest replicated: its server sends every other
                 server the rows looked up by the samples of the latter, and receives as many gradients
Hybrid, shards   (others) blocks of s consecutive servers; each split layer has s equal parts on them (tensor
                 parallelism), and its outputs are exchanged within the block in both passes; the j-th servers of all
                 blocks sum the gradients of their part, all servers those of the layers that are not split

An all-reduce of S bytes among k servers takes 2 (k-1)/k S bytes over each hop of a ring.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadInput, BadSpec
from opticoll.instances.servers import AllReduceGroup
from opticoll.instances.spec import nearest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Traffic = tuple[NDArray[np.float64], tuple[AllReduceGroup, ...]]

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
        Samples of one GPU in one iteration.
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
        """Samples of one server."""
        return self.batch * self.gpus


# the models ---------------------------------------------------------------------------------------------------


def _stack(count: int, width: int, *, split: bool = False) -> tuple[Layer, ...]:
    """Fully connected layers of one width."""
    return (Layer(width * width + width, width, split),) * count


def _joint(inputs: int, outputs: int) -> Layer:
    return Layer(inputs * outputs + outputs, outputs)


def dlrm(section: str) -> TrainingJob:
    """Naumov et al., arXiv:1906.00091: bottom and top stack, a concatenation of the looked-up rows between them."""
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
        "ncf", section, 128, _gpus(section), layers,
        (Tables(2 * tables, rows, factors), Tables(2 * tables, rows, columns)),
    )  # fmt: skip


def candle(section: str) -> TrainingJob:
    """CANDLE Uno (ECP-CANDLE Benchmarks, Pilot 1): feature stack and dense stack, all of one width here."""
    batch, depth, features, width = {"5.3": (256, 8, 16, 16384), "5.6": (256, 8, 16, 4096), "6": (10, 4, 8, 4096)}[
        section
    ]
    layers = _stack(features + depth, width, split=True)
    return TrainingJob("candle", section, batch, _gpus(section), (*layers, _joint(width, 1)))


def bert_layers(blocks: int, hidden: int, length: int, embedded: int) -> tuple[Layer, ...]:
    """Devlin et al., NAACL 2019: 12 h^2 + 13 h weights a block; embeddings of pieces, places, segments; a pooler."""
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
    """He et al., CVPR 2016: bottleneck blocks 3, 4, 6, 3; normalisation has two weights a channel."""
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
    """A model of List 1.

    Parameters
    ----------
    name, section
        Key of :data:`JOBS`, and the section of the paper.
    batch
        Samples per GPU; 0 for that of List 1.

    Raises
    ------
    BadSpec
        For an unknown model, a section without it, or a negative batch.
    """
    if name not in JOBS:
        msg = f"unknown model {name!r}; {nearest(name, list(JOBS))}"
        raise BadSpec(msg)
    build, sections = JOBS[name]
    if section not in sections:
        msg = f"model {name}: List 1 has no parameters for section {section!r}; known: {', '.join(sections)}"
        raise BadSpec(msg)
    if batch < 0:
        msg = f"model {name}: the batch has {batch} samples; give a positive number, or 0 for that of List 1"
        raise BadSpec(msg)
    job = build(section)
    return TrainingJob(name, section, batch or job.batch, job.gpus, job.layers, job.tables)


# their traffic ------------------------------------------------------------------------------------------------


def all_reduce(members: range | tuple[int, ...], weights: float) -> tuple[AllReduceGroup, ...]:
    """The group in which ``members`` sum ``weights`` numbers; empty for a single server or no weights."""
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
        msg = f"servers: parallel must be one of {', '.join(PLACEMENTS)}, not {placement!r}"
        raise BadSpec(msg)


def traffic_of(job: TrainingJob, n: int, placement: str = "auto", shards: int = 2) -> Traffic:
    """Point-to-point bytes, shape ``(n, n)``, and all-reduce groups of a job on n servers.

    Parameters
    ----------
    job
        The job.
    n
        Servers.
    placement
        ``data``; ``hybrid``; ``auto``: hybrid for models with embedding tables, data parallel for the others.
    shards
        Parts of every split layer, for hybrid placement of models without tables; divides n.

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


def _lookups(job: TrainingJob, n: int) -> NDArray[np.float64]:
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
