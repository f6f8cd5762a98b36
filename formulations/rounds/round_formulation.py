"""What a formulation whose solutions are schedules of rounds has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import F64


@runtime_checkable
class RoundFormulation(Protocol):
    """A formulation with a solution that is a :class:`~opticoll.formulations.rounds.round_schedule.RoundSchedule`."""

    def rounds(self, values: Mapping[str, F64]) -> RoundSchedule:
        """The schedule that a solution is; an error if the values contain none."""

    def replay(self, schedule: RoundSchedule) -> dict[str, float]:
        """The violations of an external schedule, by block."""
