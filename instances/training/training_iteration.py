"""Communication of one training iteration: all-reduces and transfers between layers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import refuse
from opticoll.instances.topology import Instance

if TYPE_CHECKING:
    from opticoll.instances.topology import I64
    from opticoll.types import Settings


@dataclass(frozen=True)
class AllReduceCall:
    """An all-reduce among ``ranks``, ascending, each with a buffer of ``size`` bytes; one rank alone sends nothing.

    ``ready`` is the stage of the iteration at whose end it is issued, if the iteration states stages. ``time_us`` is
    the time that it takes, if that is known from elsewhere, in place of a formula.
    """

    ranks: tuple[int, ...]
    size: int
    ready: int = 0
    time_us: float | None = None


@dataclass(frozen=True)
class Stage:
    """Computing of ``computing_us`` microseconds, and then the transfers of a layer, which the next stage waits for.

    ``layer`` is that of the transfers (:class:`LayerTransfer`) that are sent at its end; -1 for none. ``transfers_us``
    is the time that these take, if that is known from elsewhere, in place of a formula.
    """

    computing_us: float
    layer: int = -1
    transfers_us: float | None = None


@dataclass(frozen=True)
class LayerTransfer:
    """Activations between layers: every GPU of ``sources`` sends ``size`` bytes to every GPU of ``targets``.

    In the backward pass every target sends the same number of bytes of gradients to every source. ``layer`` is the
    operator that consumes the data; a source listed twice sends twice, and data that a GPU sends to itself are not
    traffic.
    """

    layer: int
    size: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TrainingIteration(Instance):
    """Communication of the GPUs of a training job in one iteration, call by call (LuMorph, section 6).

    Parameters
    ----------
    n
        Number of GPUs.
    calls
        All-reduces in the order in which they are issued.
    transfers
        Transfers between layers.
    stages
        What is computed, in the order of time, with the transfers between; empty if that is not known.
    spec, parameters
        As for every instance.

    Raises
    ------
    BadInput
        For a call or transfer without GPUs, with a GPU that does not exist, or of less than one byte; for a time that
        is negative or not finite, or a call that is ready after a stage that does not exist.
    """

    n: int
    calls: tuple[AllReduceCall, ...]
    transfers: tuple[LayerTransfer, ...] = ()
    stages: tuple[Stage, ...] = ()
    spec: str = "custom"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __init__(
        self,
        n: int,
        calls: Iterable[AllReduceCall],
        transfers: Iterable[LayerTransfer] = (),
        stages: Iterable[Stage] = (),
        *,
        spec: str = "custom",
        parameters: Settings | tuple[tuple[str, Any], ...] = (),
    ) -> None:
        whole_number(n, f"{spec}: n", 2)
        calls, transfers, stages = tuple(calls), tuple(transfers), tuple(stages)
        groups = [(f"call {k}", call.ranks, call.size) for k, call in enumerate(calls)]
        for k, each in enumerate(transfers):
            groups += [(f"transfer {k}", ends, each.size) for ends in (each.sources, each.targets)]
        for name, members, size in groups:
            if not members or size < 1 or not all(0 <= v < n for v in members):
                refuse(spec, f"{name} needs at least 1 byte and GPUs from 0 to {n - 1}")
        for k, call in enumerate(calls):
            if list(call.ranks) != sorted(set(call.ranks)):
                refuse(spec, f"call {k} must name its GPUs once each, in ascending order")
            if not 0 <= call.ready < max(len(stages), 1):
                refuse(spec, f"call {k} is ready after stage {call.ready}; stages are 0 to {max(len(stages), 1) - 1}")
        times = [(f"stage {b} computes", stage.computing_us) for b, stage in enumerate(stages)]
        times += [(f"stage {b} transfers", stage.transfers_us or 0.0) for b, stage in enumerate(stages)]
        times += [(f"call {k} runs", call.time_us or 0.0) for k, call in enumerate(calls)]
        for what, time in times:
            if not 0 <= time < np.inf:
                refuse(spec, f"{what} for {time} us; give a finite time of at least 0")
        self._put(n=int(n), calls=calls, transfers=transfers, stages=stages, spec=spec, parameters=parameters)

    @property
    def all_reduce_bytes(self) -> int:
        """Buffer bytes of all calls of more than one GPU, once per call."""
        return sum(call.size for call in self.calls if len(call.ranks) > 1)

    @cached_property
    def transfer_matrix(self) -> I64:
        """Bytes from GPU i to GPU j between layers, both passes, ``(n, n)``, zero on the diagonal."""
        matrix = np.zeros((self.n, self.n), dtype=np.int64)
        for each in self.transfers:
            sent = np.bincount(each.sources, minlength=self.n)
            received = np.bincount(each.targets, minlength=self.n)
            forward = each.size * np.outer(sent, received)
            matrix += forward + forward.T
        np.fill_diagonal(matrix, 0)
        matrix.setflags(write=False)
        return matrix

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the number of GPUs, the calls, the transfers and, if there are any, the stages and known times."""
        digest = hashlib.sha256(b"opticoll-iteration-1")
        digest.update(np.array([self.n, len(self.calls), len(self.transfers)], dtype="<i8").tobytes())
        for call in self.calls:
            digest.update(np.array([call.size, len(call.ranks), *call.ranks], dtype="<i8").tobytes())
        for each in self.transfers:
            counts = (each.layer, each.size, len(each.sources), len(each.targets))
            digest.update(np.array([*counts, *each.sources, *each.targets], dtype="<i8").tobytes())
        if self.stages:
            digest.update(np.array([stage.computing_us for stage in self.stages], dtype="<f8").tobytes())
            digest.update(np.array([stage.layer for stage in self.stages], dtype="<i8").tobytes())
            digest.update(np.array([call.ready for call in self.calls], dtype="<i8").tobytes())
        known = [*(call.time_us for call in self.calls), *(stage.transfers_us for stage in self.stages)]
        if any(time is not None for time in known):
            digest.update(np.array([np.nan if time is None else time for time in known], dtype="<f8").tobytes())
        return digest.hexdigest()
