"""Computation graphs of one training step, partitioned into sub-operations by a time quantum (SiP-ML)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from decimal import Context, Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import BadInput, BadSpec, refuse
from opticoll.instances.spec import Dimensions, family
from opticoll.instances.topology import Instance
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from opticoll.instances.topology import F64, I64


#: Limits on the size of a graph.
MAX_SUB_OPS, MAX_DEPENDENCIES = 1_000_000, 10_000_000


@dataclass(frozen=True, eq=False, repr=False, init=False)
class OpGraph(Instance):
    """Sub-operations ``0 .. n-1`` in topological order, and the data that each sends to later ones.

    Parameters
    ----------
    duration
        Computing time of every sub-operation [us], positive, ``(n,)``.
    operation
        The operation to which each sub-operation belongs, ``(n,)``, nondecreasing.
    tail, head
        Dependencies ``tail -> head``, ``tail < head``, ``(m,)``; stored by head, then tail.
    volume
        Bytes of every dependency, positive, ``(m,)``.
    weights
        Bytes of model parameters of every sub-operation, ``(n,)``, which replicas synchronise.

    Raises
    ------
    BadInput
        For mismatched shapes, numbers out of range, or a dependency that is repeated or violates the order.
    """

    n: int
    duration: F64
    operation: I64
    tail: I64
    head: I64
    volume: F64
    weights: F64
    spec: str = "custom"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __init__(
        self,
        duration: ArrayLike,
        operation: ArrayLike,
        tail: ArrayLike,
        head: ArrayLike,
        volume: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        spec: str = "op-graph",
        parameters: tuple[tuple[str, Any], ...] = (),
    ) -> None:
        time = np.array(duration, dtype=np.float64)
        whole_number(time.size, f"{spec}: the number of sub-operations", 1)
        _refuse(time.ndim != 1 or time.size > MAX_SUB_OPS, spec, f"durations have shape {time.shape}; give one list")
        n = time.size
        ops = np.array(operation, dtype=np.int64)
        ends = np.array(tail, dtype=np.int64), np.array(head, dtype=np.int64)
        size = np.array(volume, dtype=np.float64)
        held = np.zeros(n) if weights is None else np.array(weights, dtype=np.float64)
        same = ops.shape == held.shape == (n,) and ends[0].shape == ends[1].shape == size.shape == (ends[0].size,)
        _refuse(not same, spec, "lists differ in length; give one entry per sub-operation and one per dependency")
        _refuse(size.size > MAX_DEPENDENCIES, spec, f"{size.size} dependencies exceed the limit of {MAX_DEPENDENCIES}")
        _refuse(not (np.isfinite(time) & (time > 0)).all(), spec, "a duration is not a positive number of microseconds")
        _refuse(not (np.isfinite(size) & (size > 0)).all(), spec, "the bytes of a dependency are not a positive number")
        _refuse(not (np.isfinite(held) & (held >= 0)).all(), spec, "weights must be bytes, finite and not negative")
        _refuse(
            bool((np.diff(ops) < 0).any()) or ops[0] < 0, spec, "parts of an operation must be consecutive and in order"
        )
        inside = ((ends[0] >= 0) & (ends[1] < n)).all()
        _refuse(not inside, spec, f"a dependency names a sub-operation outside 0 .. {n - 1}")
        _refuse(
            not (ends[0] < ends[1]).all(),
            spec,
            "a dependency violates the order; number sub-operations along dependencies",
        )
        order = np.lexsort(ends)
        first, last = ends[0][order], ends[1][order]
        twice = (first[1:] == first[:-1]) & (last[1:] == last[:-1])
        _refuse(bool(twice.any()), spec, "a dependency is given twice; add up its bytes")
        self._put(
            n=n,
            duration=time,
            operation=ops,
            tail=first,
            head=last,
            volume=size[order],
            weights=held,
            spec=spec,
            parameters=parameters,
        )

    @property
    def dependencies(self) -> int:
        """Number of dependencies."""
        return int(self.tail.size)

    @cached_property
    def first_in(self) -> I64:
        """Dependencies into v are ``first_in[v] .. first_in[v+1] - 1``, ``(n + 1,)``."""
        return np.searchsorted(self.head, np.arange(self.n + 1))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of times, operations, dependencies and weights."""
        digest = hashlib.sha256(b"opticoll-op-graph-1")
        digest.update(np.array([self.n, self.dependencies], dtype="<i8").tobytes())
        for array in (self.duration, self.volume, self.weights):
            digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        for whole in (self.operation, self.tail, self.head):
            digest.update(np.ascontiguousarray(whole, dtype="<i8").tobytes())
        return digest.hexdigest()


def _refuse(wrong: bool, spec: str, reason: str) -> None:
    if wrong:
        refuse(spec, reason)


#: Sustained rate of one GPU [flop/us], and bytes per number.
FLOPS, NUMBER = 100e6, 2.0
MODELS = ("transformer", "resnet", "dlrm", "random", "chain")


@dataclass
class _Net:
    """Operations in order: time [us], weights and edges [bytes], and whether each part of a head needs all input."""

    time: list[float] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    edges: dict[tuple[int, int], tuple[float, bool]] = field(default_factory=dict)
    #: Operations whose parts all hold all parameters.
    copied: set[int] = field(default_factory=set)

    def op(self, flops: float, weights: float, inputs: list[tuple[int, float]], *, every: bool = False) -> int:
        """Add an operation of ``flops`` with ``inputs`` (operation, bytes)."""
        number = len(self.time)
        self.time.append(flops / FLOPS)
        self.weights.append(weights)
        for tail, size in inputs:
            before = self.edges.get((tail, number), (0.0, False))
            self.edges[tail, number] = (before[0] + size, every or before[1])
        return number

    def train(self) -> None:
        """Add the backward pass: twice the arithmetic, gradients on reversed edges, stored activations."""
        forward = list(self.edges.items())
        behind: dict[int, list[tuple[int, float, bool]]] = {}
        for (tail, head), (amount, every) in forward:
            behind.setdefault(tail, []).append((head, amount, every))
        size = max((amount for _, (amount, _) in forward), default=1.0)
        back: dict[int, int] = {}
        for v in reversed(range(len(self.time))):
            inputs = [(back[head], amount) for head, amount, _ in behind.get(v, [])]
            every = any(whole for *_, whole in behind.get(v, []))
            back[v] = self.op(2.0 * self.time[v] * FLOPS, 0.0, inputs, every=every)
            self.edges[v, back[v]] = (inputs[0][1] if inputs else size, False)


def _transformer(layers: int, hidden: int, batch: int, *, broadcast: bool) -> _Net:
    """Layers on sequences of 512: queries, keys and values; attention; projection; two feed-forward products.

    Elementwise operations (norms, residual sums) are part of the product that follows them.
    """
    net, tokens = _Net(), batch * 512
    act, square = tokens * hidden * NUMBER, float(hidden) ** 2
    at: list[tuple[int, float]] = []
    for _ in range(layers):
        qkv = net.op(6.0 * tokens * square, 3 * square * NUMBER, at, every=broadcast)
        attention = net.op(4.0 * tokens * 512 * hidden, 0.0, [(qkv, 3 * act)])
        out = net.op(2.0 * tokens * square, square * NUMBER, [(attention, act), *at], every=broadcast)
        wide = net.op(8.0 * tokens * square, 4 * square * NUMBER, [(out, act)], every=broadcast)
        at = [(net.op(8.0 * tokens * square, 4 * square * NUMBER, [(wide, 4 * act), (out, act)]), act)]
    return net


def _resnet(layers: int, hidden: int, batch: int, *, broadcast: bool) -> _Net:
    """Bottleneck blocks in four stages of ``layers`` each, images of 56 by 56 halved per stage, channels doubled."""
    net, side = _Net(), 56
    at = net.op(2.0 * batch * 112**2 * 49 * 3 * hidden, 49 * 3 * hidden * NUMBER, [])
    channels = hidden
    for _ in range(4):
        for _ in range(layers):
            cells = batch * side**2
            narrow, wide = cells * channels * NUMBER, 4 * cells * channels * NUMBER
            shortcut = net.op(8.0 * cells * channels**2, 4 * channels**2 * NUMBER, [(at, wide)], every=broadcast)
            two = net.op(18.0 * cells * channels**2, 9 * channels**2 * NUMBER, [(shortcut, narrow)])
            at = net.op(
                8.0 * cells * channels**2, 4 * channels**2 * NUMBER, [(two, narrow), (at, wide)], every=broadcast
            )
        side, channels = max(side // 2, 1), 2 * channels
    net.op(2.0 * batch * channels * 1000, channels * 1000 * NUMBER, [(at, batch * channels * NUMBER)], every=True)
    return net


def _dlrm(layers: int, hidden: int, batch: int, *, broadcast: bool) -> _Net:
    """Four embedding tables per layer, bottom and top perceptrons of ``layers`` each, and their interaction."""
    net, act = _Net(), batch * hidden * NUMBER
    at = net.op(2.0 * batch * 13 * hidden, 13 * hidden * NUMBER, [])
    for _ in range(layers):
        at = net.op(2.0 * batch * hidden**2, hidden**2 * NUMBER, [(at, act)], every=broadcast)
    tables = [net.op(64.0 * batch * hidden, 1e6 * hidden * NUMBER, []) for _ in range(4 * layers)]
    features = len(tables) + 1
    at = net.op(2.0 * batch * features**2 * hidden, 0.0, [(v, act) for v in (*tables, at)])
    for _ in range(layers):
        at = net.op(2.0 * batch * hidden**2, hidden**2 * NUMBER, [(at, act)], every=broadcast)
    return net


#: Powers to 28 digits: NumPy's differ in the last digit between processors, and the instance would too.
_DECIMAL = Context(prec=28)


def _random(layers: int, hidden: int, batch: int, seed: int, *, broadcast: bool) -> _Net:
    """``layers`` operations, with one to three of the last five as inputs; times, bytes log-uniform over one decade."""
    random, net = np.random.default_rng(seed), _Net()
    for v in range(layers):
        factors = [float(_DECIMAL.power(10, Decimal(u))) for u in random.uniform(0.0, 1.0, 2).tolist()]
        flops, size = factors[0] * (batch * hidden**2), factors[1] * (batch * hidden)
        near = np.arange(max(0, v - 5), v)
        count = min(near.size, int(random.integers(1, 4)))
        tails = random.choice(near, size=count, replace=False) if v else near
        net.op(flops, size, [(int(u), size) for u in tails], every=broadcast and bool(random.integers(2)))
    return net


def chosen(by_sample: _Net, by_channel: _Net, *, training: bool) -> _Net:
    """Combine two nets: split each product by the dimension that moves fewer bytes between its p parts.

    By sample, every part holds all parameters W, and training adds up their gradients: 2 (p-1) W bytes on a ring. By
    output channel, every part receives all inputs I, and returns the gradient of all of them: 2 (p-1) I bytes more. So
    a product is split by channel if I < W. SiP-ML selects "the most efficient dimension for each op" (section 3.2); the
    measure is ours.
    """
    received = dict.fromkeys(range(len(by_sample.time)), 0.0)
    for (_, v), (size, _) in by_sample.edges.items():
        received[v] += size
    for (u, v), (size, whole) in by_channel.edges.items():
        before = by_sample.edges[u, v][1]
        wide = training and whole and not before and received[v] < by_sample.weights[v]
        by_sample.edges[u, v] = size, before or wide
        if whole and not before and not wide:
            by_sample.copied.add(v)
    return by_sample


def partition(net: _Net, parts: list[int], spec: str) -> OpGraph:
    """Split every operation into equal parts, and every edge by the data that the parts share.

    Part i of p sends to part j of q the share in which the intervals [i/p, (i+1)/p) and [j/q, (j+1)/q) overlap; if
    every part needs all of the input, each part of the tail sends to each part of the head.

    Raises
    ------
    BadInput
        If there are too many sub-operations or dependencies.
    """
    links = sum(parts[u] * parts[v] if every else parts[u] + parts[v] for (u, v), (_, every) in net.edges.items())
    if sum(parts) > MAX_SUB_OPS or links > MAX_DEPENDENCIES:
        refuse(spec, f"{sum(parts)} sub-operations with up to {links} dependencies exceed the limits; use fewer parts")
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(parts)])
    tail, head, volume = [], [], []
    for (u, v), (size, every) in sorted(net.edges.items()):
        p, q = parts[u], parts[v]
        if every:
            i, j = (part.ravel() for part in np.mgrid[0:p, 0:q])
            share = np.full(i.size, 1.0 / p)
        else:
            marks = np.unique(np.concatenate([np.arange(p + 1) * q, np.arange(q + 1) * p]))  # in units of 1/(p q)
            i, j, share = marks[:-1] // q, marks[:-1] // p, np.diff(marks) / (p * q)
        tail.append(first[u] + i)
        head.append(first[v] + j)
        volume.append(size * share)
    none: list[np.ndarray] = [np.zeros(0)]
    counts = np.array(parts)
    return OpGraph(
        np.repeat(np.array(net.time) / counts, counts),
        np.repeat(np.arange(counts.size), counts),
        np.concatenate(tail or none).astype(np.int64),
        np.concatenate(head or none).astype(np.int64),
        np.concatenate(volume or none),
        np.repeat(np.array(net.weights) / np.where([v in net.copied for v in range(counts.size)], 1, counts), counts),
        spec=spec,
    )


@family(
    "op-graph",
    example="op-graph:model=transformer,layers=2,parts=4",
    source="SiP-ML (Khani et al., SIGCOMM 2021), section 3.2: partitioning; layer sizes as published for each model",
)
def op_graph(
    model: str,
    layers: int = 2,
    parts: int = 4,
    quantum: float = 0.0,
    hidden: int = 1024,
    batch: int = 16,
    seed: int = 0,
    training: bool = True,
    broadcast: bool = False,
    choose: bool = False,
    splits: Dimensions | None = None,
) -> OpGraph:
    r"""Computation graph of one training step, with every operation split into sub-operations by a time quantum.

    An operation of time :math:`t` is split into :math:`\min(k, \max(1, \mathrm{round}(t / \tau)))` equal parts.

    Parameters
    ----------
    model
        ``transformer``, ``resnet``, ``dlrm``: times from their arithmetic at 100 Tflop/s, bytes from their activations
        at two bytes per number. ``random``: see ``seed``. ``chain``: parts of one microsecond, one byte per dependency,
        with ``splits`` parts (``splits=4x1x4``); every part depends on all parts of the previous operation; no
        backward pass.
    layers
        Decoder layers; bottleneck blocks in each of four stages; layers of either perceptron (and a quarter of the
        embedding tables); operations of ``random``.
    parts
        Maximum number of parts per operation, k.
    quantum
        Time quantum :math:`\tau` [us]; 0 for 1/k of the time of the longest operation.
    hidden, batch
        Width of a layer (channels of the first stage), samples per step.
    seed
        Seed of ``random``; unused otherwise.
    training
        Include the backward pass (twice the arithmetic of the forward pass).
    broadcast
        Split products by output channel, so every part needs all of its input, instead of by sample.
    choose
        Split each product by the dimension that moves fewer bytes in training, see :func:`chosen`; by sample without a
        backward pass.
    splits
        Number of parts of every operation of ``chain``.

    Raises
    ------
    BadSpec
        For an unknown model, splits for anything but a chain, or both ``broadcast`` and ``choose``.
    BadInput
        For sizes out of range.
    """
    if model not in MODELS:
        refuse("op-graph", f"unknown model {model!r}; {nearest(model, list(MODELS))}", BadSpec)
    if (model == "chain") != (splits is not None):
        refuse("op-graph", "model=chain needs splits=, such as splits=4x1x4, and no other model accepts it", BadSpec)
    if choose and (broadcast or model in {"random", "chain"}):
        msg = "op-graph: choose=true does not apply to broadcast=true, model=random or model=chain; omit choose"
        raise BadSpec(msg)
    for name, value in (("layers", layers), ("parts", parts), ("hidden", hidden), ("batch", batch)):
        whole_number(value, f"op-graph: {name}", 1)
    whole_number(seed, "op-graph: seed", 0)
    if max(layers, parts, hidden, batch) > 10**6 or quantum < 0:
        refuse("op-graph", "layers, parts, hidden and batch must be at most 1000000, and quantum at least 0")
    if splits is not None:
        if min(splits) < 1:
            refuse("op-graph", "every operation of a chain needs at least 1 part")
        net = _Net()
        for number, count in enumerate(splits):
            net.op(FLOPS * count, 0.0, [(number - 1, float(splits[number - 1]))] if number else [], every=True)
        return partition(net, list(splits), "op-graph")
    if layers * parts > MAX_SUB_OPS:
        msg = f"op-graph: {layers} layers in {parts} parts exceed the limit of {MAX_SUB_OPS} sub-operations; use fewer"
        raise BadInput(msg)
    if model == "random":
        net = _random(layers, hidden, batch, seed, broadcast=broadcast)
    else:
        make = {"transformer": _transformer, "resnet": _resnet, "dlrm": _dlrm}[model]
        net = make(layers, hidden, batch, broadcast=broadcast)
        if choose:
            net = chosen(net, make(layers, hidden, batch, broadcast=True), training=training)
    if training:
        net.train()
    tau = quantum or max(net.time) / parts
    parts_of = [int(min(parts, max(1, round(min(time / tau, 1e9))))) for time in net.time]
    return partition(net, parts_of, "op-graph")
