r"""Task graphs of one training iteration: computing, transfers, all-reduces, and their dependencies.

Source  TopoOpt, sections 4.1 and 5.1; operators in the order of the models, with times of
        :mod:`opticoll.instances.training.training_jobs`

Tasks ``0 .. T-1`` are numbered so that a task waits only for tasks with smaller numbers.

    computing   ``amount`` seconds on one server, which runs one task at a time; server -1 only joins
    transfer    ``amount`` bytes from server to target (model-parallel traffic)
    all-reduce  a buffer of ``amount`` bytes on every server of a group

The graph of a model, see :func:`training_iteration`: every server runs the operators forward in their order and
backward in the reverse order. The weights of an operator are all-reduced as soon as every server has its gradient. A
server that holds embedding tables looks up the rows of all samples, sends each other server its rows, and gets as many
gradients back; the operators after the tables wait for the rows of all servers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from opticoll.arguments import number, refused, whole_number
from opticoll.errors import BadInput, refuse
from opticoll.instances.training.training_jobs import (
    MEASURED_SERVERS,
    NUMBER_BYTES,
    data_parallel_times,
    dense_size,
    measured_model,
    training_job,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike

    from opticoll.instances.topology import F64, I64
    from opticoll.instances.training.training_jobs import TrainingJob

COMPUTING, TRANSFER, ALL_REDUCE = 0, 1, 2
#: Overlap of communication and computing: whatever the dependencies allow, or none (Eq. (1) of TopoOpt).
OVERLAPS = ("backward", "none")


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """Tasks of one iteration (see the module docstring).

    Parameters
    ----------
    servers
        Number of servers.
    kind
        ``COMPUTING``, ``TRANSFER`` or ``ALL_REDUCE``, ``(T,)``.
    server, target
        Server of a computing task, ends of a transfer; -1 where not applicable, ``(T,)`` each.
    amount
        Seconds or bytes, ``(T,)``.
    group
        Position in ``groups`` of an all-reduce; -1 for other tasks, ``(T,)``.
    groups
        Servers of every all-reduce group.
    waits
        Pairs (first, then): task ``then`` waits for ``first``, ``(E, 2)``.

    Raises
    ------
    BadInput
        For servers out of range, amounts that are negative or not finite, or a task that waits for a later one.
    """

    servers: int
    kind: I64
    server: I64
    target: I64
    amount: F64
    group: I64
    groups: tuple[tuple[int, ...], ...]
    waits: I64

    def __post_init__(self) -> None:
        source, target = self.server, self.target
        ends = (source >= -1) & (source < self.servers) & (target >= -1) & (target < self.servers)
        moved = self.kind == TRANSFER
        bad = ~ends | (moved & ((source < 0) | (target < 0) | (source == target)))
        bad |= ~(np.isfinite(self.amount) & (self.amount >= 0))
        bad |= (self.kind == ALL_REDUCE) & ((self.group < 0) | (self.group >= len(self.groups)))
        if bad.any():
            msg = (
                f"task graph: task {int(np.argmax(bad))} has servers outside 0..{self.servers - 1}, no group, or an "
                "amount that is not a finite nonnegative number"
            )
            raise BadInput(msg)
        for members in self.groups:
            if len(members) < 2 or len(set(members)) < len(members) or not set(members) <= set(range(self.servers)):
                refuse("task graph", f"the group {members[:8]} needs at least two distinct servers of the graph")
        if (
            self.waits.size
            and (
                (self.waits[:, 0] >= self.waits[:, 1]) | (self.waits < 0).any(axis=1) | (self.waits[:, 1] >= self.tasks)
            ).any()
        ):
            msg = "task graph: a task waits for itself or a later one; number tasks so that they wait for earlier ones"
            raise BadInput(msg)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return int(self.kind.size)

    @property
    def computing(self) -> F64:
        """Computing time of every server [s], ``(servers,)``."""
        chosen = (self.kind == COMPUTING) & (self.server >= 0)
        return np.bincount(self.server[chosen], self.amount[chosen], self.servers).astype(np.float64)

    @property
    def transferred(self) -> F64:
        """Bytes of all transfers from server to server, ``(servers, servers)``."""
        matrix, chosen = np.zeros((self.servers, self.servers)), self.kind == TRANSFER
        np.add.at(matrix, (self.server[chosen], self.target[chosen]), self.amount[chosen])
        return matrix

    @property
    def reduced(self) -> dict[tuple[int, ...], float]:
        """Bytes of the buffers of every group."""
        result: dict[tuple[int, ...], float] = {}
        for task in np.flatnonzero(self.kind == ALL_REDUCE):
            members = self.groups[self.group[task]]
            result[members] = result.get(members, 0.0) + float(self.amount[task])
        return result


class TaskGraphDraft:
    """A task graph under construction; every method that adds a task returns its number."""

    def __init__(self, servers: int) -> None:
        self.servers = servers
        self._rows: list[tuple[int, int, int, float, int]] = []
        self._waits: list[tuple[int, int]] = []
        self._groups: dict[tuple[int, ...], int] = {}

    def _add(self, kind: int, server: int, target: int, amount: float, group: int, after: Iterable[int]) -> int:
        task = len(self._rows)
        what = f"task graph: task {task}"
        if isinstance(after, str) or not hasattr(after, "__iter__"):
            raise refused(after, f"{what}, after", "a list of numbers of tasks")
        waits = [(whole_number(first, f"{what}, after"), task) for first in after]
        source, to = (whole_number(one, f"{what}, server") for one in (server, target))
        self._rows.append((kind, source, to, number(amount, f"{what}, amount"), group))
        self._waits += waits
        return task

    def compute(self, server: int, seconds: float, after: Iterable[int] = ()) -> int:
        """Add ``seconds`` of computing on a server."""
        return self._add(COMPUTING, server, -1, seconds, -1, after)

    def join(self, after: Iterable[int]) -> int:
        """Add a task without duration that waits for others."""
        return self._add(COMPUTING, -1, -1, 0.0, -1, after)

    def transfer(self, source: int, target: int, size: float, after: Iterable[int] = ()) -> int:
        """Add a transfer of ``size`` bytes from one server to another."""
        return self._add(TRANSFER, source, target, size, -1, after)

    def all_reduce(self, members: Sequence[int], size: float, after: Iterable[int] = ()) -> int:
        """Add an all-reduce of a buffer of ``size`` bytes among servers, in the order of their default ring."""
        group = self._groups.setdefault(tuple(members), len(self._groups))
        return self._add(ALL_REDUCE, -1, -1, size, group, after)

    def finished(self) -> TaskGraph:
        """Return the graph.

        Raises
        ------
        BadInput
            As for :class:`TaskGraph`.
        """
        columns: list[ArrayLike] = list(zip(*self._rows, strict=True)) if self._rows else [()] * 5
        kind, server, target, group = (np.array(columns[k], dtype=np.int64) for k in (0, 1, 2, 4))
        waits = np.array(self._waits, dtype=np.int64).reshape(-1, 2)
        amount = np.array(columns[3], dtype=np.float64)
        return TaskGraph(self.servers, kind, server, target, amount, group, tuple(self._groups), waits)


# the models ----------------------------------------------------------------------------------------------------


def _convolutions() -> list[tuple[str, int]]:
    layers: list[tuple[str, int]] = []
    inputs = 3
    for width, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        for _ in range(count):
            layers.append((f"Conv2D_3_3_{width}", (9 * inputs + 1) * width))
            inputs = width
        layers.append(("Pool2D_3_3", 0))
    return layers


def _bottlenecks() -> list[tuple[str, int]]:
    layers, inputs = [("Conv2D_7_7_64", 148 * 64), ("Pool2D_3_3", 0)], 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            outputs = 4 * width
            chain = [
                (f"Conv2D_1_1_{width}", inputs * width),
                (f"Conv2D_3_3_{width}", 9 * width * width),
                (f"Conv2D_1_1_{outputs}", width * outputs),
            ]
            if block == 0:
                chain.append((f"Conv2D_1_1_{outputs}", inputs * outputs))
            layers += [*chain, ("ElementBinary_31", 0), ("ElementUnary_13", 0)]
            inputs = outputs
    return [*layers, ("Pool2D_7_7", 0), ("Flat", 0), ("Dense_8192_10", 0), ("Softmax", 0)]


def _dense(*names: str) -> list[tuple[str, int]]:
    return [(name, 0) for name in names]


def _transformer(blocks: int, width: int, attention: str) -> list[tuple[str, int]]:
    dense = _dense(*[f"Dense_{width}_{width}"] * 2)
    mixed = [(attention, 4 * width * width), ("ElementBinary_31", 0)]
    return (mixed + dense + mixed + mixed + dense) * blocks + _dense(f"Dense_{width}_1")


def _uno(width: int, depth: int) -> list[tuple[str, int]]:
    stacks = [
        [f"Dense_{inputs}_{width}"] + [f"Dense_{width}_{width}"] * depth for inputs in (942, 5270, 2048, 5270, 2048)
    ]
    joined = 5 * width + 2
    ends = ["Dense_1_1", "Concat_1", f"Dense_{joined}_{width}", *[f"Dense_{width}_{width}"] * 7, f"Dense_{width}_1"]
    return _dense(*(name for stack in stacks for name in stack), *ends)


def _dlrm(bottom: int, top: int, joint: int) -> tuple[list[tuple[str, int]], int]:
    below = _dense(*[f"Dense_{bottom}_{bottom}"] * 7)
    above = _dense("Concat_1", f"Dense_{joint}_{top}", *[f"Dense_{top}_{top}"] * 14, f"Dense_{top}_1")
    return below + above, len(below)


def _ncf() -> tuple[list[tuple[str, int]], int]:
    return _dense(
        "ElementBinary_32", "Dense_2048_1", "Concat_1", "Dense_8192_4096", *["Dense_4096_4096"] * 7, "Dense_4097_1"
    ), 0


#: Operators of a model in the order of the forward pass with their weights (0: given by the name of a dense layer),
#: and the number of them before the rows of the embedding tables are used.
_SEQUENCES = {
    ("vgg", "5.3"): lambda: (
        _convolutions() + _dense("Flat", "Dense_61952_4096", "Dense_4096_4096", "Dense_4096_1000", "Softmax"),
        0,
    ),
    ("resnet50", "5.3"): lambda: (_bottlenecks(), 0),
    ("bert", "5.3"): lambda: (_transformer(12, 1024, "MultiHeadAttention_102416"), 0),
    ("bert", "5.6"): lambda: (_transformer(6, 768, "MultiHeadAttention_76812"), 0),
    ("candle", "5.3"): lambda: (_uno(16384, 15), 0),
    ("candle", "5.6"): lambda: (_uno(4096, 11), 0),
    ("dlrm", "5.3"): lambda: _dlrm(2048, 4096, 10240),
    ("dlrm", "5.4"): lambda: _dlrm(2048, 4096, 18432),
    ("dlrm", "5.6"): lambda: _dlrm(1024, 2048, 5120),
    ("ncf", "5.3"): _ncf,
}
_SEQUENCES["vgg", "5.6"] = _SEQUENCES["vgg", "5.3"]
MODELS = tuple(sorted({model for model, _ in _SEQUENCES}))


def operator_sequence(model: str, section: str = "5.3") -> tuple[list[tuple[str, int]], int]:
    """Operators of the forward pass with their weights, and the number of them before the tables' rows are used.

    Raises
    ------
    BadInput
        For a model and section whose operators were not measured.
    """
    if (model, section) not in list(_SEQUENCES):  # a list as model has no hash
        known = ", ".join(f"{name} {part}" for name, part in sorted(_SEQUENCES))
        refuse("iteration", f"no operator times of {model} in section {section}; available: {known}")
    layers, early = _SEQUENCES[model, section]()
    return [(name, weights or dense_size(name)) for name, weights in layers], early


def training_iteration(
    model: str, servers: int, *, section: str = "5.3", batch: int = 0, overlap: str = "backward"
) -> TaskGraph:
    """One iteration of a model of TopoOpt: data parallel, embedding tables placed whole.

    Parameters
    ----------
    model
        ``bert``, ``candle``, ``dlrm``, ``ncf``, ``resnet50``, ``vgg``.
    servers
        Number of servers, each with the batch of four GPUs. The time of a look-up, which covers the samples of all
        servers, grows with it.
    section
        Section of the paper that sets the sizes: 5.3, 5.4 (DLRM, 128 tables) or 5.6.
    batch
        Samples per GPU, among those measured; 0 for the value of List 1.
    overlap
        ``backward``: communication overlaps with computing wherever the dependencies allow it. ``none``: all computing,
        then the rows of the tables, then their gradients, then all all-reduces, as Eq. (1) assumes.

    Raises
    ------
    BadInput
        For fewer than two servers, an unknown model, section or overlap, or a batch without measured times.
    """
    if servers < 2 or overlap not in OVERLAPS:
        msg = f"iteration: {servers} servers, overlap {overlap!r}; use at least 2 servers and {' or '.join(OVERLAPS)}"
        raise BadInput(msg)
    layers, early = operator_sequence(model, section)
    job = training_job(model, section, batch)
    measured = MEASURED_SERVERS[section]
    times = data_parallel_times(measured_model(model, section), job.batch, measured)
    draft = TaskGraphDraft(servers)
    _write(draft, job, layers, early, times, servers / measured, overlap == "none")
    return draft.finished()


def _write(
    draft: TaskGraphDraft,
    job: TrainingJob,
    layers: list[tuple[str, int]],
    early: int,
    times: tuple[dict[str, float], dict[str, float]],
    larger: float,
    apart: bool,
) -> None:
    """Write the tasks of :func:`training_iteration`."""
    n, (forward, backward) = draft.servers, times
    tables, size = _placed_tables(job, n)
    looked: list[list[int]] = [[] for _ in range(n)]
    for name, server in tables:
        looked[server] = [draft.compute(server, larger * forward[name], looked[server])]
    holders = [server for server in range(n) if looked[server]]
    rows = looked if apart else _rows_sent(draft, looked, size)
    last: list[list[int]] = [[] for _ in range(n)]
    for place, (name, _) in enumerate(layers):
        for server in range(n):
            after = last[server] + (rows[server] if place == early else [])
            last[server] = [draft.compute(server, forward[name], after)]
    shared: list[int] = []
    for place in range(len(layers) - 1, -1, -1):
        name, weights = layers[place]
        for server in range(n):
            last[server] = [draft.compute(server, backward[name], last[server])]
        if weights and apart:
            shared.append(weights)
        elif weights:
            draft.all_reduce(range(n), NUMBER_BYTES * weights, list(chain.from_iterable(last)))
        for target in holders if place == early else ():
            sent = [] if apart else _gradients_sent(draft, target, float(size[target]), last)
            rows[target] = sent + last[target]
    for name, server in tables:
        rows[server] = [draft.compute(server, larger * backward[name], rows[server])]
    if apart:
        _exchanges_apart(draft, size, holders, list(chain(*last, *rows)), shared)


def _placed_tables(job: TrainingJob, servers: int) -> tuple[list[tuple[str, int]], F64]:
    """Name and server of every table, and the size of the rows for one server's batch on every server [bytes]."""
    columns = np.repeat([t.columns for t in job.tables], [t.count for t in job.tables])
    names = [f"Embed_{t.rows}x{t.columns}" for t in job.tables for _ in range(t.count)]
    owner: list[int] = (np.arange(columns.size) * servers // max(columns.size, 1)).tolist()
    held = np.bincount(owner, columns, servers) if owner else np.zeros(servers)
    return list(zip(names, owner, strict=True)), held.astype(np.float64) * job.server_batch * NUMBER_BYTES


def _rows_sent(draft: TaskGraphDraft, looked: list[list[int]], size: F64) -> list[list[int]]:
    """Send the rows of every server that looked some up to all others; the tasks after which a server has all rows."""
    rows: list[list[int]] = [[] for _ in looked]
    for source, lookup in enumerate(looked):
        for target in range(draft.servers) if lookup else ():
            kept = target == source
            rows[target] += lookup if kept else [draft.transfer(source, target, float(size[source]), lookup)]
    return rows


def _gradients_sent(draft: TaskGraphDraft, target: int, size: float, last: list[list[int]]) -> list[int]:
    """Send the gradients of the rows of one server to it from all others, after the last tasks of these."""
    return [draft.transfer(source, target, size, last[source]) for source in range(draft.servers) if source != target]


def _exchanges_apart(draft: TaskGraphDraft, size: F64, holders: list[int], after: list[int], shared: list[int]) -> None:
    """Add all communication after all computing: rows, then gradients, then all-reduces."""
    n, done = draft.servers, draft.join(sorted(set(after)))
    for ahead in (True, False):
        pairs = [(s, t) if ahead else (t, s) for s in holders for t in range(n) if t != s]
        sent = [draft.transfer(a, b, float(size[a if ahead else b]), [done]) for a, b in pairs]
        done = draft.join(sent) if sent else done
    for weights in shared:
        draft.all_reduce(range(n), NUMBER_BYTES * weights, [done])
