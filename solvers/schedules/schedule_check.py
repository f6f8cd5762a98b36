"""Verdicts on schedules, and the reasons for refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from opticoll.extensions import parts
from opticoll.plugin_faults import called

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.instances.topology import Topology
    from opticoll.types import Json


#: Reasons for rejecting a schedule.
REASONS = {
    "collective": "the schedule performs a different collective",
    "demand": "the schedule does not send the amounts of the demand",
    "ranks": "the schedule has a different number of ranks",
    "no-arc": "a transfer uses an arc that the topology does not have",
    "two-owners": "two thread blocks of a rank use one end of a connection",
    "unmatched-send": "a send without a receive",
    "unmatched-receive": "a receive without a send",
    "count-mismatch": "the k-th send and the k-th receive of a connection move different numbers of chunks",
    "numbering": "steps of a thread block do not count up from 0",
    "bounds": "a step accesses chunks outside its buffer",
    "no-peer": "a thread block without a peer sends or receives",
    "dependency": "an instruction waits for a step that does not exist",
    "deadlock": "no thread block can proceed",
    "race": "two thread blocks access a chunk, at least one writing it, in no defined order",
    "missing-chunk": "a chunk never arrives",
    "wrong-chunk": "an output holds the wrong chunk",
    "wrong-sum": "a sum lacks a contribution or counts it more than once",
    "uninitialised": "a chunk was read before it was written",
    "not-held": "a rank sends a chunk that it does not hold yet",
    "no-chunk": "a transfer names a chunk that the collective does not have",
    "duplicate": "a rank receives a chunk that it already holds",
    "no-route": "a route is not a path from its source to its target",
    "ports": "circuits are not those that ports, directions or the start allow",
    "early": "a configuration or a transfer takes too little time",
    "dark": "a transfer uses a circuit that is not set at the time",
    "rate": "circuits carry more than their rate",
    "relayed": "data take more than one circuit in a configuration",
    "cycle": "routes of a layer of virtual channels wait for each other in a circle",
    "split": "a pair has several routes, but virtual channels are given to one",
    "layers": "routes use more layers of virtual channels than are available",
    "load": "the largest load is more than is allowed",
    "symmetry": "images by which routes stand for others do not keep the links",
    "weights": "the routes of a pair do not carry exactly its shard",
}


@dataclass(frozen=True)
class ScheduleCheck:
    """The result of a check; an invalid one has a ``reason`` (a key of REASONS) and the first violation."""

    valid: bool
    reason: str = ""
    message: str = ""
    rank: int | None = None
    chunk: int | None = None
    step: str | None = None
    metrics: dict[str, float | list[str] | dict[str, str] | None] = field(default_factory=dict)

    @property
    def time(self) -> float | None:
        """Time of a valid schedule; None if it has none."""
        result = self.metrics.get("time", self.metrics.get("async_time"))
        return float(result) if isinstance(result, (int, float)) else None


@dataclass(frozen=True)
class ScheduleFormat:
    """A format of schedule files that an extension reads (:attr:`opticoll.extensions.Extension.schedules`).

    Parameters
    ----------
    recognises
        Whether a file is of the format, given its parsed JSON (None for XML) and its path.
    execute
        The verdict on the file, given the same, a topology and the collective that it must perform: ``alltoall`` with
        1 shard between all ranks, ``allgather``, ... Malformed files raise :class:`opticoll.errors.BadFile`.
    """

    recognises: Callable[[Any, Path], bool]
    execute: Callable[[Any, Path, Any, str], ScheduleCheck]

    def check(self, document: Json, path: Path, topology: Topology, collective: str) -> ScheduleCheck:
        """The verdict of ``execute``."""
        verdict = called(self.execute, ScheduleCheck, "a ScheduleCheck", document, path, topology, collective)
        return cast("ScheduleCheck", verdict)


def format_of(document: Json, path: Path) -> ScheduleFormat | None:
    """The format of another tool that a file has, see :class:`ScheduleFormat`; None if it has none."""
    return next((one for one in parts("schedules") if called(one.recognises, object, "", document, path)), None)


def refused(
    reason: str, message: str, *, rank: int | None = None, chunk: int | None = None, step: str | int | None = None
) -> ScheduleCheck:
    """Return an invalid verdict; its message starts with the reason."""
    where = None if step is None else str(step)
    return ScheduleCheck(False, reason, f"{reason}: {message}", rank, chunk, where)
