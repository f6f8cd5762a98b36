"""Server pools, whose topology a formulation chooses, and logged or random iterations of training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import BadSpec
from opticoll.instances.published.lumorph_tables import GPUS, MODELS, iteration
from opticoll.instances.readers.files import read_matrix
from opticoll.instances.servers import AllReduceCall, AllReduceGroup, ServerPool, TrainingIteration, check_servers
from opticoll.instances.spec import check_positive, family, nearest
from opticoll.instances.training_jobs import JOBS, check_placement, traffic_of, training_job

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances.training_jobs import Traffic

#: TopoOpt, section 2.1: size of one ring-AllReduce transfer with all tables replicated, and without them.
_REPLICATED_BYTES, _HYBRID_BYTES = 44e9, 4e9
#: TopoOpt, appendix D: 8192 samples a server, 512 activations a sample, 8 bytes each (32 MiB).
_ACTIVATION_BYTES = 8192 * 512 * 8
#: TopoOpt, section 2.1: the servers of the four embedding tables, of 16.
_TABLES = (0, 3, 8, 13)
#: Traffic that is not from a training job.
_PLAIN = ("alltoall", "random", "file:PATH.csv")
#: Most calls of a random iteration.
_MOST_CALLS = 10_000


def example_dlrm(n: int) -> Traffic:
    r"""Traffic of the DLRM of TopoOpt's section 2.1 under hybrid parallelism (its figure 1b) [bytes].

    An all-reduce of the replicated part, 4 GB over each hop of its ring; and for each of the four embedding tables
    32 MiB (8192 samples · 512 activations · 8 bytes) from its server to every other, and as much back (gradients).
    The tables are on servers 0, 3, 8, 13 of 16, and in general on
    :math:`\lfloor n \cdot (0, 3, 8, 13) / 16 \rfloor`, which may coincide.
    """
    matrix = np.zeros((n, n))
    for table in _TABLES:
        owner = table * n // 16
        matrix[owner, :] += _ACTIVATION_BYTES
        matrix[:, owner] += _ACTIVATION_BYTES
    np.fill_diagonal(matrix, 0.0)
    return matrix, (AllReduceGroup(tuple(range(n)), _HYBRID_BYTES),)


def replicated_dlrm(n: int) -> Traffic:
    """Traffic of the same DLRM under pure data parallelism (figure 1a): 44 GB over each hop of a ring [bytes]."""
    return np.zeros((n, n)), (AllReduceGroup(tuple(range(n)), _REPLICATED_BYTES),)


def _plain(n: int, traffic: str, seed: int, volume: float) -> NDArray[np.float64]:
    if traffic.startswith("file:"):
        return read_matrix(traffic.removeprefix("file:"), n)
    if traffic == "alltoall":
        matrix = np.full((n, n), float(volume))
    elif traffic == "random":
        matrix = np.random.default_rng(seed).uniform(0.0, 2.0 * volume, size=(n, n))
    else:
        known = [*_PLAIN, "dlrm-replicated", *JOBS]
        msg = f"servers: unknown traffic {traffic!r}; {nearest(traffic, known)}"
        if "known" not in msg:
            msg += f" (known: {', '.join(known)})"
        raise BadSpec(msg)
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _job(n: int, traffic: str, parallel: str, section: str, batch: int, shards: int) -> Traffic | None:
    """Traffic of a training job; None for other traffic, for which the settings of a job are refused."""
    example = traffic == "dlrm" and section in {"", "2.1"}
    options = {"parallel": parallel != "auto", "section": bool(section), "batch": batch != 0, "shards": shards != 2}
    reads = {"parallel", "section"} if example else {"parallel", "section", "batch"} if traffic in JOBS else set()
    if parallel == "hybrid" and traffic in JOBS and not example and not training_job(traffic).tables:
        reads = {*reads, "shards"}
    unread = [name for name, is_given in options.items() if is_given and name not in reads]
    if unread:
        msg = f"servers: traffic={traffic} does not use {' or '.join(unread)}; leave that out, or name a section"
        raise BadSpec(msg)
    check_placement(parallel)
    if traffic == "dlrm-replicated" or (example and parallel == "data"):
        return replicated_dlrm(n)
    if example:
        return example_dlrm(n)
    if traffic in JOBS:
        return traffic_of(training_job(traffic, section or "5.3", batch), n, parallel, shards)
    return None


@family(
    "servers",
    example="servers:n=12,degree=4,traffic=dlrm",
    source="TopoOpt (Wang et al., NSDI 2023), sections 2.1 and D; SiP-ML (Khani et al., SIGCOMM 2021)",
)
def servers(
    n: int,
    degree: int,
    traffic: str = "alltoall",
    seed: int = 0,
    volume: float = 1e6,
    parallel: str = "auto",
    section: str = "",
    batch: int = 0,
    shards: int = 2,
) -> ServerPool:
    r"""Servers with optical ports and a traffic matrix; their topology is what a formulation chooses.

    Parameters
    ----------
    n
        Number of servers, ``2 <= n <= 8192``.
    degree
        Optical interfaces of each server, at least 1.
    traffic
        ``alltoall``: ``volume`` bytes between every ordered pair. ``random``: independent and uniform on
        :math:`[0, 2\,volume)`, so ``volume`` in the mean. ``file:PATH.csv``: an n×n matrix in bytes,
        comma or space separated, zero on the diagonal. Or one iteration of a training job, all-reduce groups
        and point-to-point traffic: ``dlrm``, ``candle``, ``bert``, ``ncf``, ``resnet50``, ``vgg``, see
        :mod:`opticoll.instances.training_jobs`; ``dlrm`` without a section is the example of section 2.1, see
        :func:`example_dlrm`, and ``dlrm-replicated`` that example under data parallelism.
    seed
        Seed of ``random``; unused otherwise.
    volume
        Bytes per pair for ``alltoall`` and ``random``; unused otherwise.
    parallel
        Placement of a training job: ``data``, ``hybrid``, or ``auto`` (hybrid for jobs with embedding tables).
    section
        The section of TopoOpt whose row of List 1 the job takes (``5.3``, ``5.4``, ``5.6``, ``6``).
    batch
        Samples per GPU; 0 for that of List 1.
    shards
        Parts of every split layer, for hybrid jobs without tables; a divisor of n.

    Raises
    ------
    BadSpec
        For an unknown name of traffic, section or placement, or settings of a job for other traffic.
    BadInput
        For sizes out of range, or traffic that is negative, not finite, not square or on the diagonal.
    BadFile
        For a traffic file that cannot be read.
    """
    check_servers(n)
    check_positive(degree, "degree", "servers")
    check_positive(seed, "seed", "servers", least=0)
    if not volume > 0:
        msg = f"servers: volume must be a positive number of bytes, not {volume}"
        raise BadSpec(msg)
    job = _job(n, traffic, parallel, section, batch, shards)
    matrix, groups = (_plain(n, traffic, seed, volume), ()) if job is None else job
    return ServerPool(n, degree, matrix, groups=groups, spec="servers")


@family(
    "training",
    example="training:bert,gpus=256",
    source="LuMorph, section 6 and appendix C; logs of the authors' simulator, https://github.com/lumorphnetwork/code",
)
def training(model: str, gpus: int, calls: int = 0, seed: int = 0) -> TrainingIteration:
    """One iteration of training: all-reduce calls in order, and transfers between layers.

    Parameters
    ----------
    model
        ``bert``, ``ncf`` or ``inception``: the authors' logs on 4, 8, 16, 32, 64, 128 or 256 GPUs. ``random``:
        independent calls among 2 to gpus / 2 random GPUs, of 4 KiB to 64 MiB (a random power of two).
    gpus
        Number of GPUs; at least 4.
    calls
        Number of calls of ``random``; 0 for as many as GPUs.
    seed
        Seed of ``random``.

    Raises
    ------
    BadSpec
        For an unknown model, a number of GPUs without a log, settings of ``random`` for another model, or sizes out of
        range.
    """
    known = (*MODELS, "random")
    if model not in known:
        msg = f"training: unknown model {model!r}; {nearest(model, list(known))}"
        raise BadSpec(msg)
    check_servers(gpus)
    if model != "random":
        if gpus not in GPUS:
            msg = f"training: {model} has no log on {gpus} GPUs; take {', '.join(map(str, GPUS))}"
            raise BadSpec(msg)
        if calls or seed:
            msg = f"training: {model} is a log, which does not use calls or seed; leave them out, or take random"
            raise BadSpec(msg)
        return TrainingIteration(gpus, *iteration(model, gpus), spec="training")
    check_positive(gpus, "gpus", "training", least=4)
    check_positive(calls, "calls", "training", least=0)
    check_positive(seed, "seed", "training", least=0)
    if calls > _MOST_CALLS:
        msg = f"training: calls={calls} exceeds the limit of {_MOST_CALLS}; choose fewer"
        raise BadSpec(msg)
    random = np.random.default_rng(seed)
    made = []
    for _ in range(calls or gpus):
        ranks = random.choice(gpus, int(random.integers(2, gpus // 2, endpoint=True)), replace=False)
        made.append(AllReduceCall(tuple(sorted(ranks.tolist())), 2 ** int(random.integers(12, 26, endpoint=True))))
    return TrainingIteration(gpus, made, spec="training")
