"""Machines: DGX-1, optical lines and rings, server pools, switched networks; topologies and programs from files."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import BadFile, BadInput, BadSpec, refuse
from opticoll.instances.matrix_program import MatrixProgram
from opticoll.instances.photonics import WdmLine, WdmRing
from opticoll.instances.published.lumorph_numbers import GPUS, MODELS, iteration
from opticoll.instances.readers.files import read_matrix, read_specified
from opticoll.instances.readers.program_files import read_program
from opticoll.instances.servers import AllReduceGroup, ServerPool, check_servers
from opticoll.instances.spec import family
from opticoll.instances.topology import Instance, Topology, both_ways, check_size
from opticoll.instances.training.training_iteration import AllReduceCall, LayerTransfer, Stage, TrainingIteration
from opticoll.instances.training.training_jobs import JOBS, check_placement, traffic_of, training_job
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.topology import F64, I64
    from opticoll.instances.training.training_jobs import Traffic


#: NVLinks between the eight V100 of a DGX-1: pairs joined by one link, and by two.
_SINGLE = ((0, 1), (0, 2), (1, 3), (2, 6), (3, 7), (4, 5), (4, 6), (5, 7))
_DOUBLE = ((0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7))


@family("dgx1", example="dgx1", source="NVIDIA DGX-1 With Tesla V100 System Architecture, WP-08437-002, 2017")
def dgx1() -> Topology:
    r"""NVIDIA DGX-1V: eight V100 GPUs in a hybrid cube-mesh of NVLinks.

    Two quads 0..3 and 4..7, each complete, joined by :math:`i \leftrightarrow i + 4`. Each GPU has six
    NVLinks: two neighbours by two links (capacity 2), two by one (capacity 1). 32 arcs of total
    capacity 48 [NVLinks], degree 4, diameter 2.
    """
    u, v = np.array(_SINGLE + _DOUBLE).T
    return Topology(8, *both_ways(u, v, np.repeat([1.0, 2.0], 8)), spec="dgx1")


def _shifts_of_boxes(boxes: int, gpus: int = 8, **_: float) -> Iterator[I64]:
    """Shifts of the boxes, and of the GPUs in all boxes."""
    ranks = np.arange(boxes * gpus).reshape(boxes, gpus)
    switches = ranks.size + np.arange(boxes)
    network = [ranks.size + boxes] if boxes > 1 else []
    if boxes > 1:
        yield np.concatenate([np.roll(ranks, -1, axis=0).ravel(), np.roll(switches, -1), network]).astype(np.int64)
    yield np.concatenate([np.roll(ranks, -1, axis=1).ravel(), switches, network]).astype(np.int64)


@family(
    "nvswitch",
    example="nvswitch:boxes=2,gpus=8",
    automorphisms=_shifts_of_boxes,
    source="NVIDIA DGX H100 user guide (defaults: 450 GB/s of NVLink each way and a 400 Gb/s adapter for each GPU)",
)
def nvswitch(boxes: int, gpus: int = 8, inside: float = 450.0, outside: float = 50.0) -> Topology:
    """Boxes of GPUs, each behind an NVSwitch, joined by one network switch.

    Every GPU has a link to the switch of its box and one to the network, in both directions. Switches hold no shards.

    Parameters
    ----------
    boxes
        Number of boxes, at least 1.
    gpus
        GPUs per box, at least 2.
    inside, outside
        Capacity of the links of a GPU to the NVSwitch and to the network [GB/s].

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    whole_number(boxes, "nvswitch: boxes", 1)
    whole_number(gpus, "nvswitch: gpus", 2)
    n = boxes * gpus
    check_size(n + boxes + 1, 4 * n, "nvswitch")
    ranks = np.arange(n)
    u, v = np.tile(ranks, 2), np.concatenate([n + ranks // gpus, np.full(n, n + boxes)])
    names = [f"gpu[{r // gpus},{r % gpus}]" for r in range(n)] + [f"switch[{b}]" for b in range(boxes)] + ["network"]
    kept = slice(0, n if boxes == 1 else 2 * n)
    return Topology(
        n + boxes + (boxes > 1),
        *both_ways(u[kept], v[kept], np.repeat([inside, outside], n)[kept]),
        spec="nvswitch",
        terminals=ranks,
        labels=tuple(names[: n + boxes + (boxes > 1)]),
        capacity_unit="GB/s",
    )


@family("wdm-line", example="wdm-line:n=16,wavelengths=2", source="OpTree, section II (optical interconnect)")
def wdm_line(n: int, wavelengths: int, fibres: int = 1) -> WdmLine:
    """Optical line: fibres each way between neighbours, all with the same wavelengths.

    Parameters
    ----------
    n
        Number of nodes, at least 2.
    wavelengths
        Wavelengths on every fibre, at least 1.
    fibres
        Fibres from a node to each neighbour, at least 1.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    return WdmLine(n, wavelengths, fibres)


@family(
    "wdm-ring",
    example="wdm-ring:n=1024,wavelengths=64",
    source="OpTree, section II (TeraRack, Khani et al., SIGCOMM 2021)",
)
def wdm_ring(n: int, wavelengths: int, fibres: int = 1) -> WdmRing:
    """Optical ring: fibres each way between neighbours, all with the same wavelengths.

    Parameters
    ----------
    n
        Number of nodes, at least 3.
    wavelengths
        Wavelengths on every fibre, at least 1.
    fibres
        Fibres from a node to each neighbour, at least 1 (TeraRack has 2).

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    return WdmRing(n, wavelengths, fibres)


@family("file", example="file:PATH", source="formats: opticoll.instances.readers.files", rest=True)
def from_file(path: str) -> Topology:
    """Topology from a file: edge list, GraphML, GEXF, GML, DOT, Pajek, JSON, SNDlib, NCCL, matrix and more.

    Parameters
    ----------
    path
        File; its suffix and contents select the format (:mod:`opticoll.instances.readers.files`). Options follow:
        ``PATH,capacity=NAME`` (attribute or column) or ``capacity=1``, ``directed=true|false``, ``first=1`` for
        vertices numbered from 1, ``ranks=PATTERN`` or ``switches=PATTERN``, ``loops=drop|keep``, ``format=NAME`` and
        ``wiring=NAME``
        (:class:`opticoll.instances.readers.read_options.ReadOptions`).

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or does not describe a topology.
    """
    return read_specified(path)


@family("mps", example="mps:PATH", source="formats: opticoll.instances.readers.program_files", rest=True)
def from_matrix_file(path: str) -> MatrixProgram:
    """Linear or mixed-integer program from an MPS or LP file, also compressed (.mps.gz).

    Parameters
    ----------
    path
        File; its suffix selects the format. ``PATH,sense=max`` or ``PATH,sense=min`` states the sense of the objective.

    Raises
    ------
    BadFile
        If the file cannot be read, is too large, or contains no linear or mixed-integer program.
    """
    file, found, sense = path.partition(",sense=")
    if not found:
        return read_program(path)
    if sense not in {"min", "max"}:
        refuse(f"mps:{file}", f"sense={sense[:40]} is unknown; write sense=min or sense=max", BadFile)
    return read_program(file, "max" if sense == "max" else "min")


#: TopoOpt, section 2.1: size of one ring-AllReduce transfer with all tables replicated, and without them.
_REPLICATED_BYTES, _HYBRID_BYTES = 44e9, 4e9
#: TopoOpt, appendix D: 8192 samples per server, 512 activations per sample, 8 bytes each (32 MiB).
_ACTIVATION_BYTES = 8192 * 512 * 8
#: TopoOpt, section 2.1: servers, out of 16, with the four embedding tables.
_TABLES = (0, 3, 8, 13)
#: Traffic that is not from a training job.
_PLAIN = ("alltoall", "random", "file:PATH.csv")
#: Maximum number of calls in a random iteration.
_MOST_CALLS = 10_000


def example_dlrm(n: int) -> Traffic:
    r"""Traffic of the DLRM of TopoOpt's section 2.1 under hybrid parallelism (its figure 1b) [bytes].

    An all-reduce of the replicated part, 4 GB over each hop of its ring; and for each of the four embedding tables
    32 MiB (8192 samples · 512 activations · 8 bytes) from its server to every other, and the same amount back
    (gradients). The tables are on servers 0, 3, 8, 13 of 16, and in general on
    :math:`\lfloor n \cdot (0, 3, 8, 13) / 16 \rfloor`, which may coincide.
    """
    matrix = np.zeros((n, n))
    for table in _TABLES:
        owner = table * n // 16
        matrix[owner, :] += _ACTIVATION_BYTES
        matrix[:, owner] += _ACTIVATION_BYTES
    np.fill_diagonal(matrix, 0.0)
    return matrix, (AllReduceGroup(tuple(range(n)), _HYBRID_BYTES),)


def _plain(n: int, traffic: str, seed: int, volume: float) -> F64:
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
    """Traffic of a training job; None for other traffic, which accepts no settings of a job."""
    example = traffic == "dlrm" and section in {"", "2.1"}
    options = {"parallel": parallel != "auto", "section": bool(section), "batch": batch != 0, "shards": shards != 2}
    reads = {"parallel", "section"} if example else {"parallel", "section", "batch"} if traffic in JOBS else set()
    if parallel == "hybrid" and traffic in JOBS and not example and not training_job(traffic).tables:
        reads = {*reads, "shards"}
    unread = [name for name, is_given in options.items() if is_given and name not in reads]
    if unread:
        refuse("servers", f"traffic={traffic} does not use {' or '.join(unread)}; omit it, or name a section", BadSpec)
    check_placement(parallel)
    if traffic == "dlrm-replicated" or (example and parallel == "data"):
        # The same DLRM under pure data parallelism (figure 1a): 44 GB over each hop of a ring.
        return np.zeros((n, n)), (AllReduceGroup(tuple(range(n)), _REPLICATED_BYTES),)
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
    rack: int = 1,
) -> ServerPool:
    r"""Servers with optical ports and a traffic matrix; a formulation chooses their topology.

    Parameters
    ----------
    n
        Number of servers, ``2 <= n <= 8192``.
    degree
        Optical interfaces of each server, at least 1.
    traffic
        ``alltoall``: ``volume`` bytes between every ordered pair. ``random``: independent and uniform on
        :math:`[0, 2\,volume)`, with mean ``volume``. ``file:PATH.csv``: an n×n matrix in bytes,
        separated by commas or spaces, zero on the diagonal. Or one iteration of a training job, all-reduce groups
        and point-to-point traffic: ``dlrm``, ``candle``, ``bert``, ``ncf``, ``resnet50``, ``vgg``, see
        :mod:`opticoll.instances.training.training_jobs`; ``dlrm`` without a section is the example of section 2.1, see
        :func:`example_dlrm`, and ``dlrm-replicated`` that example under data parallelism.
    seed
        Seed of ``random``; unused otherwise.
    volume
        Bytes per pair for ``alltoall`` and ``random``; unused otherwise.
    parallel
        Placement of a training job: ``data``, ``hybrid``, or ``auto`` (hybrid for jobs with embedding tables).
    section
        Section of TopoOpt whose row of List 1 defines the job (``5.3``, ``5.4``, ``5.6``, ``6``).
    batch
        Samples per GPU; 0 for the value of List 1.
    shards
        Parts of every split layer, for hybrid jobs without tables; a divisor of n.
    rack
        Servers of a rack, consecutive ones: with more than 1 the optical interfaces are those of the switches of racks
        (section 3), which are then what the formulations call servers, with the traffic between racks.

    Raises
    ------
    BadSpec
        For unknown traffic, an unknown section or placement, or settings of a job with other traffic.
    BadInput
        For sizes out of range, or traffic that is negative, not finite, not square or on the diagonal.
    BadFile
        For a traffic file that cannot be read.
    """
    check_servers(n)
    whole_number(degree, "servers: degree", 1)
    whole_number(seed, "servers: seed", 0)
    if not volume > 0:
        refuse("servers", f"volume must be a positive number of bytes, not {volume}", BadSpec)
    job = _job(n, traffic, parallel, section, batch, shards)
    matrix, groups = (_plain(n, traffic, seed, volume), ()) if job is None else job
    whole_number(rack, "servers: rack", 1)
    if rack >= n:
        refuse("servers", f"rack={rack} holds all {n} servers; use a smaller rack")
    pool = ServerPool(n, degree, matrix, groups=groups, spec="servers")
    return pool if rack == 1 else pool.at_racks(rack)


@family(
    "training",
    example="training:bert,gpus=256",
    source="LuMorph, section 6 and appendix C; logs of the authors' simulator, https://github.com/lumorphnetwork/code",
)
def training(model: str, gpus: int, calls: int = 0, seed: int = 0, stages: int = 0) -> TrainingIteration:
    """One iteration of training: all-reduce calls in order, and transfers between layers.

    Parameters
    ----------
    model
        ``bert``, ``ncf`` or ``inception``: the authors' logs on 4, 8, 16, 32, 64, 128 or 256 GPUs. ``random``:
        independent calls among 2 to gpus / 2 random GPUs, of 4 KiB to 64 MiB (a random power of two).
    gpus
        Number of GPUs; at least 4.
    calls
        Number of calls of ``random``; 0 for one per GPU.
    seed
        Seed of ``random``.
    stages
        Stages of ``random``, 0 if computing is not stated: each computes for 10 to 1000 us, then two out of three send
        1 KiB to 1 MiB (a random power of two) from one GPU to another, and every call is ready after a random one.

    Raises
    ------
    BadSpec
        For an unknown model, a number of GPUs without a log, settings of ``random`` for another model, or sizes out of
        range.
    """
    known = (*MODELS, "random")
    if model not in known:
        refuse("training", f"unknown model {model!r}; {nearest(model, list(known))}", BadSpec)
    check_servers(gpus)
    if model != "random":
        if gpus not in GPUS:
            refuse("training", f"{model} has no log on {gpus} GPUs; use one of {', '.join(map(str, GPUS))}", BadSpec)
        if calls or seed or stages:
            msg = f"training: {model} is a log, which does not use calls, seed or stages; omit them, or use random"
            raise BadSpec(msg)
        return TrainingIteration(gpus, *iteration(model, gpus), spec="training")
    whole_number(gpus, "training: gpus", 4)
    whole_number(calls, "training: calls", 0)
    whole_number(seed, "training: seed", 0)
    whole_number(stages, "training: stages", 0)
    for name, number in (("calls", calls), ("stages", stages)):
        if number > _MOST_CALLS:
            refuse("training", f"{name}={number} exceeds the limit of {_MOST_CALLS}; choose fewer", BadSpec)
    random = np.random.default_rng(seed)
    made = []
    for _ in range(calls or gpus):
        ranks = random.choice(gpus, int(random.integers(2, gpus // 2, endpoint=True)), replace=False)
        made.append(AllReduceCall(tuple(sorted(ranks.tolist())), 2 ** int(random.integers(12, 26, endpoint=True))))
    if not stages:
        return TrainingIteration(gpus, made, spec="training")
    computing, sent = [], []
    for b in range(stages):
        source, target = random.choice(gpus, 2, replace=False).tolist()
        sends = bool(random.integers(3))
        computing.append(Stage(round(float(random.uniform(10.0, 1000.0)), 3), b if sends else -1))
        if sends:
            sent.append(LayerTransfer(b, 2 ** int(random.integers(10, 20, endpoint=True)), (source,), (target,)))
    issued = [replace(call, ready=int(random.integers(stages))) for call in made]
    return TrainingIteration(gpus, issued, sent, computing, spec="training")


_FAT_TREE = "Al-Fares, Loukissas & Vahdat, SIGCOMM 2008; oversubscribed: TopoOpt (Wang et al., NSDI 2023), section 5.1"


def _check_capacity(capacity: float, what: str) -> None:
    if not 0 < capacity < np.inf:
        refuse(what, f"capacity={capacity} link bandwidths; give a positive finite number")


@family("fat-tree", example="fat-tree:k=4", source=_FAT_TREE)
def fat_tree(k: int, oversubscription: int = 1, capacity: float = 1.0) -> Topology:
    r"""Fat-tree of switches with k ports: k³/4 servers, three layers of switches.

    Pod :math:`p` has edge switches :math:`e` and aggregation switches :math:`a`, :math:`0 \le e, a < k/2`; each edge
    switch has :math:`k/2` servers and a link to every aggregation switch of its pod. Core switch :math:`(a, c)`,
    :math:`0 \le c < k/2`, joins the aggregation switches :math:`a` of all pods. Servers come first, numbered by pod,
    edge switch and position; switches hold no shards.

    Parameters
    ----------
    k
        Ports of a switch, even and at least 2.
    oversubscription
        Servers of an edge switch per uplink, a divisor of :math:`k/2`: only aggregation switches
        :math:`a < k / (2 \cdot oversubscription)` and their core switches are kept. 1 is full bisection bandwidth.
    capacity
        Capacity of every link [link bandwidths].

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    whole_number(k, "fat-tree: k", 2)
    whole_number(oversubscription, "fat-tree: oversubscription", 1)
    half = k // 2
    if k % 2 or half % oversubscription:
        msg = f"fat-tree: k={k}, oversubscription={oversubscription}; k must be even and oversubscription divide k/2"
        raise BadInput(msg)
    _check_capacity(capacity, "fat-tree")
    kept = half // oversubscription
    servers = k * half * half
    check_size(servers + k * (half + kept) + kept * half, 2 * (servers + 2 * k * half * kept), "fat-tree")
    edges = servers + np.arange(k * half).reshape(k, half)
    above = edges.max() + 1 + np.arange(k * kept).reshape(k, kept)
    cores = above.max() + 1 + np.arange(kept * half).reshape(kept, half)
    u = [np.arange(servers)]
    v = [np.repeat(edges.ravel(), half)]
    for pod in range(k):
        u += [np.repeat(edges[pod], kept), np.repeat(above[pod], half)]
        v += [np.tile(above[pod], half), cores.ravel()]
    n = int(cores.max()) + 1
    names = [f"server[{s}]" for s in range(servers)]
    names += [f"edge[{p},{e}]" for p in range(k) for e in range(half)]
    names += [f"aggregation[{p},{a}]" for p in range(k) for a in range(kept)]
    names += [f"core[{a},{c}]" for a in range(kept) for c in range(half)]
    first, second = np.concatenate(u), np.concatenate(v)
    return Topology(
        n,
        *both_ways(first, second, np.full(first.size, float(capacity))),
        spec="fat-tree",
        terminals=np.arange(servers),
        labels=tuple(names),
    )


@family("ideal-switch", example="ideal-switch:n=8", source="TopoOpt (Wang et al., NSDI 2023), section 5.1")
def ideal_switch(n: int, capacity: float = 1.0) -> Topology:
    """Servers with one link each to a switch that is never a bottleneck.

    Parameters
    ----------
    n
        Number of servers, at least 2; vertex n is the switch, which holds no shards.
    capacity
        Capacity of every link, each way [link bandwidths].

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    whole_number(n, "ideal-switch: n", 2)
    _check_capacity(capacity, "ideal-switch")
    check_size(n + 1, 2 * n, "ideal-switch")
    servers = np.arange(n)
    names = (*(f"server[{s}]" for s in range(n)), "switch")
    ends = both_ways(servers, np.full(n, n), np.full(n, float(capacity)))
    return Topology(n + 1, *ends, spec="ideal-switch", terminals=servers, labels=names)


#: Rule -> interval [s], pause [s], forwarding, factor on the demand of a pair after each of its circuits.
RULES: dict[str, tuple[float, float, bool, float]] = {
    "topoopt": (math.inf, 0.0, True, 0.5),
    "sip-ocs": (math.inf, 0.0, True, 1.0),
    "ocs-reconfig": (0.05, 0.01, True, 0.5),
    "sip-ring": (0.05, 25e-6, False, 1.0),
    "sip-ring-wavelengths": (250e-6, 25e-6, False, 1.0),
}


@dataclass(frozen=True, eq=False, repr=False)
class CircuitNetwork(Instance):
    """Servers with optical interfaces, and the rule by which circuits between them are chosen.

    Parameters
    ----------
    n, degree
        Number of servers, and interfaces of each: circuits out of it, and into it, at one time. With rule
        ``sip-ring-wavelengths``, wavelengths of each of the two fibres.
    rule
        Key of :data:`RULES`.
    interval
        Time from one choice of circuits to the next [s]; infinite if they are chosen once for a job.
    pause
        Time without traffic after each choice but the first [s].
    forwarding
        Whether servers forward traffic for pairs without a circuit.
    discount
        Factor on the demand of a pair after each of its circuits.
    """

    n: int
    degree: int
    rule: str
    interval: float
    pause: float
    forwarding: bool
    discount: float
    spec: str = "circuits"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        check_servers(self.n)
        whole_number(self.degree, "circuits: degree", 1)
        if self.rule not in RULES:
            refuse("circuits", f"unknown rule {self.rule!r}; {nearest(self.rule, list(RULES))}", BadSpec)
        if not (self.interval > self.pause >= 0 and math.isfinite(self.pause)):
            msg = (
                f"circuits: interval {self.interval} s, pause {self.pause} s; the pause must be at least 0 and shorter"
            )
            raise BadInput(msg)
        if not 0 < self.discount <= 1:
            refuse("circuits", f"discount={self.discount}; use a factor above 0 and at most 1")
        if math.isinf(self.interval) and not self.forwarding:
            refuse("circuits", "pairs without a circuit would wait forever; set an interval, or forwarding=true")

    @property
    def most_circuits(self) -> int:
        """Maximum number of simultaneous circuits out of a server, and into it."""
        return self.degree * (2 if self.rule == "sip-ring-wavelengths" else 1)

    @property
    def periodic(self) -> bool:
        """Whether circuits change during an iteration."""
        return math.isfinite(self.interval)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all parameters."""
        values = (self.n, self.degree, self.rule, self.interval, self.pause, self.forwarding, self.discount)
        return hashlib.sha256(f"opticoll-circuits-1{values!r}".encode()).hexdigest()


@family(
    "circuits",
    example="circuits:n=8,degree=2,rule=ocs-reconfig",
    source="TopoOpt (Wang et al., NSDI 2023), sections 4.3, 5.1, E.4 and F; SiP-ML (Khani et al., SIGCOMM 2021)",
)
def circuits(
    n: int,
    degree: int,
    rule: str = "topoopt",
    interval_ms: float | None = None,
    pause_us: float | None = None,
    forwarding: bool | None = None,
) -> CircuitNetwork:
    """Optical circuit switches between servers, with circuits for the traffic of a job.

    Parameters
    ----------
    n, degree
        Number of servers, and optical interfaces of each (``sip-ring-wavelengths``: wavelengths of each fibre).
    rule
        ``topoopt``: chosen once by TopologyFinder (Algorithm 1). ``ocs-reconfig``: by the remaining demand
        (Algorithm 5), every 50 ms with a pause of 10 ms. ``sip-ring``: appendix F's substitute for SiP-Ring, the
        same without discount, with a pause of 25 us and without forwarding. ``sip-ocs``: chosen once by demand,
        without discount. ``sip-ring-wavelengths``: a ring of two fibres, one each way, on which a
        wavelength is used once in a segment (SiP-ML, section 3.3); circuits by the remaining demand, every 250 us
        with a pause of 25 us (a duty cycle of 90 %), without forwarding.
    interval_ms, pause_us
        Time from one choice to the next [ms] and pause after it [us], instead of the rule's values.
    forwarding
        Whether servers forward traffic, instead of the rule's setting.

    Raises
    ------
    BadSpec
        For an unknown rule.
    BadInput
        For sizes out of range, a pause as long as its interval, or circuits that neither change nor forward.
    """
    interval, pause, forwards, discount = RULES.get(rule, RULES["topoopt"])
    return CircuitNetwork(
        n,
        degree,
        rule,
        interval if interval_ms is None else interval_ms / 1e3,
        pause if pause_us is None else pause_us / 1e6,
        forwards if forwarding is None else forwarding,
        discount,
    )
