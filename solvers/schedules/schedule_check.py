"""Verdicts on schedules, the reasons for refusal, and the costs of their steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from opticoll.extensions import parts
from opticoll.plugin_faults import called

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.instances.topology import Topology
    from opticoll.types import Json, Settings


class Cost(NamedTuple):
    """The alpha-beta model: cost of a step, or of a message, and of a shard on a link of capacity 1."""

    alpha: float = 0.0
    beta: float = 1.0

    @classmethod
    def of(cls, parameters: Settings) -> Self:
        """The costs among the parameters of a formulation."""
        return cls(float(parameters.get("alpha", 0.0)), float(parameters.get("beta", 1.0)))

    def time(self, steps: int, loaded: float) -> float:
        """Time of so many steps, whose busiest links together take ``loaded`` for their shards."""
        return self.alpha * steps + self.beta * loaded


#: Only shards take time.
FREE_STEPS = Cost()


@dataclass(frozen=True)
class ScheduleCheck:
    """The result of a check; an invalid one has a ``reason`` and the first violation.

    ``docs/guide/schedules.md`` lists the reasons.
    """

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
