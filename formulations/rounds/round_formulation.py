"""Formulations whose solutions are schedules of rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from opticoll.formulations.model import Formulation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.topology import F64


class RoundFormulation(Formulation, ABC):
    """A formulation with a solution that is a :class:`~opticoll.formulations.rounds.round_schedule.RoundSchedule`."""

    @abstractmethod
    def rounds(self, values: Mapping[str, F64]) -> RoundSchedule:
        """The schedule that a solution is.

        Raises
        ------
        NotApplicable
            If the values contain none.
        """

    @abstractmethod
    def replay(self, schedule: RoundSchedule) -> dict[str, float]:
        """The violations of an external schedule, by block."""
