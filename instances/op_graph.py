"""Computation graphs: sub-operations of a training step with durations, weights and data dependencies."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.digraph import Instance
from opticoll.instances.spec import check_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]

#: Larger graphs are refused.
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
        For mismatched shapes, numbers out of range, or a dependency that is repeated or against the order.
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
        check_positive(time.size, "the number of sub-operations", spec)
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
            bool((np.diff(ops) < 0).any()) or ops[0] < 0, spec, "parts of an operation must be consecutive, in order"
        )
        inside = ((ends[0] >= 0) & (ends[1] < n)).all()
        _refuse(not inside, spec, f"a dependency names a sub-operation outside 0 .. {n - 1}")
        _refuse(
            not (ends[0] < ends[1]).all(),
            spec,
            "a dependency is against the order; number sub-operations along dependencies",
        )
        order = np.lexsort(ends)
        first, last = ends[0][order], ends[1][order]
        twice = (first[1:] == first[:-1]) & (last[1:] == last[:-1])
        _refuse(bool(twice.any()), spec, "a dependency is given twice; add up its bytes")
        put = object.__setattr__
        arrays = {
            "duration": time, "operation": ops, "tail": first, "head": last, "volume": size[order], "weights": held,
        }  # fmt: skip
        for name, array in arrays.items():
            array.setflags(write=False)
            put(self, name, array)
        put(self, "n", n)
        put(self, "spec", spec)
        put(self, "parameters", parameters)

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
        msg = f"{spec}: {reason}"
        raise BadInput(msg)
