"""What the programs of rounds without phases share: parameters, analytic bounds, and the replay of a schedule."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.formulations.lumorph.rounds import PIECES, ROUTES, Circuit, RoundModel, circuits_off
from opticoll.formulations.model import Bound, NotApplicable, Parameter
from opticoll.formulations.rounds.round_formulation import RoundFormulation
from opticoll.formulations.rounds.round_schedule import RoundSchedule, from_values, stated, violations
from opticoll.formulations.variables import round_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.formulations.variables import Links
    from opticoll.instances.topology import F64, Topology
    from opticoll.types import Json, Settings

    Values = Mapping[str, NDArray[Any]]

#: Maximum number of variables that a build lists.
MOST_VARIABLES = 3_000_000
#: Parameters after those of the collective.
PARAMETERS = (
    PIECES,
    Parameter("paths", int, 0, "routes per pair, K; 0 for any routes, 2 in the program (algorithm-2: 1)"),
    ROUTES,
    Parameter("lasers", int, 0, "lasers per tile; 0 for the instance's"),
    Parameter("waveguides", int, 0, "waveguides per arc; 0 for the instance's"),
    Parameter("rmax", int, 0, "maximum number of rounds; 0 for a sufficient number"),
    Parameter("bounds", bool, True, "use analytic bounds; false leaves the proof to the program"),
)


@dataclass(frozen=True, eq=False)
class UnphasedRounds(RoundFormulation):
    """Data of a program that chooses circuits and transfers in rounds without phases.

    ``plain`` is the same collective as :mod:`opticoll.formulations.lumorph.rounds` has it; ``rmax`` and ``use_bounds``
    are the parameters. ``chosen`` are the names of the two arrays that determine a schedule, ``relays`` whether its
    tiles forward what they receive, ``unlisted`` a method that needs no list of variables.
    """

    sense = "min"
    problem = "MILP"
    meaning = "rounds of circuits"
    chosen: ClassVar[tuple[str, str]]
    relays: ClassVar[bool]
    unlisted: ClassVar[str]

    plain: RoundModel
    rmax: int
    use_bounds: bool

    @property
    def topology(self) -> Topology:
        """The tiles or nodes."""
        return self.plain.topology

    @property
    def collective(self) -> Collective:
        """The collective."""
        return self.plain.collective

    @property
    def limits(self) -> Limits:
        """Limits of a round."""
        return self.plain.limits

    @property
    @abstractmethod
    def known_bounds(self) -> list[Bound]:
        """Analytic bounds on the number of rounds, for any routes."""

    @abstractmethod
    def estimate(self) -> dict[str, int]:
        """Size with ``rmax`` rounds, or as few as the bounds allow, without listing columns."""

    @abstractmethod
    def sufficient(self) -> int:
        """Rounds in which the program has a solution."""

    @abstractmethod
    def of_program(self, values: Values) -> RoundSchedule | None:
        """The schedule that the arrays ``chosen`` encode; None if they are invalid."""

    @abstractmethod
    def candidates(self) -> set[Circuit]:
        """The circuits over candidate routes."""

    @classmethod
    def read(cls, instance: object, parameters: Settings | None) -> tuple[RoundModel, int, bool]:
        """``plain``, ``rmax`` and ``use_bounds`` from the parameters.

        Raises
        ------
        NotApplicable
            As for :func:`opticoll.formulations.lumorph.rounds.prepare`.
        """
        given = cls._completed(parameters)
        rmax, use_bounds = given.pop("rmax"), given.pop("bounds")
        if rmax < 0:
            msg = f"{cls.name}: rmax={rmax} is negative; use 0 for the default"
            raise NotApplicable(msg)
        return RoundModel.prepare(instance, given), rmax, use_bounds

    @cached_property
    def least(self) -> int:
        """Best analytic bound [rounds]."""
        return int(max((bound.value for bound in self.known_bounds), default=0.0))

    @cached_property
    def floor(self) -> int:
        """R_min."""
        return min(self.least, self.horizon) if self.use_bounds else 0

    @cached_property
    def horizon(self) -> int:
        """T: ``rmax``, or a sufficient number of rounds.

        Raises
        ------
        NotApplicable
            For a program that is too large to list.
        """
        size = self.estimate()["variables"]  # before routes are listed
        if size > MOST_VARIABLES:
            msg = (
                f"{self.name}: {size:,} variables on {self.topology.spec} are too many to list; lower rmax, paths or "
                f"lasers, or use --method {self.unlisted}"
            )
            raise NotApplicable(msg)
        return self.rmax or self.sufficient()

    def schedule(self, values: Values) -> RoundSchedule | None:
        """The schedule in the values, from its named arrays or else from the chosen ones; None if neither is valid."""
        if "transfer_round" in values or any(name not in values for name in self.chosen):
            return from_values(values)
        return self.of_program(values)

    def unfold(self, values: Values) -> dict[str, F64]:
        """Add the schedule's named arrays to the chosen ones if these are valid."""
        schedule = self.of_program(values)
        return {**values, **({} if schedule is None else schedule.values())}

    def residuals(self, values: Values) -> dict[str, float]:
        """Violations in a replay of the schedule, by block (:mod:`opticoll.formulations.rounds.round_schedule`).

        ``rmax`` counts rounds beyond it, ``candidates`` circuits that are not on a stated route. If the chosen arrays
        are given, ``binary`` is their distance from 0 and 1, and ``columns`` is 0 if they encode the same schedule.
        """
        schedule = self.schedule(values)
        result = violations(self.topology, self.collective, self.limits, schedule, relays=self.relays)
        if self.rmax:
            result["rmax"] = np.inf if schedule is None else float(max(schedule.rounds - self.rmax, 0))
        if self.plain.routes_stated:
            allowed = self.candidates()
            result["candidates"] = np.inf if schedule is None else circuits_off(allowed, schedule, fixed=False)
        if all(name in values for name in self.chosen):
            encoded = self.of_program(values)
            same = encoded is not None and all(
                np.array_equal(array, np.asarray(values.get(name, array))) for name, array in encoded.values().items()
            )
            both = np.concatenate([np.asarray(values[name], dtype=float).ravel() for name in self.chosen])
            result["columns"] = 0.0 if same else np.inf
            result["binary"] = float(np.minimum(np.abs(both), np.abs(both - 1.0)).max(initial=0.0)) if same else np.inf
        return result

    def objective(self, values: Values) -> float:
        """Rounds of the schedule, infinite if the values contain none."""
        schedule = self.schedule(values)
        return np.inf if schedule is None else float(schedule.rounds)

    def rounds(self, values: Values) -> RoundSchedule:
        """Return the schedule; an error if the values contain none."""
        return stated(self.schedule(values), self.name)

    def replay(self, schedule: RoundSchedule) -> dict[str, float]:
        """Violations of an external schedule."""
        return self.residuals(schedule.values())

    def bounds(self) -> list[Bound]:
        """Analytic bounds for any routes; none with ``bounds=false``."""
        return self.known_bounds if self.use_bounds else []

    def refute(self) -> Bound | None:
        """A bound that excludes every schedule within ``rmax`` rounds, if there is one."""
        if not self.rmax or not self.use_bounds or self.least <= self.rmax:
            return None
        best = max(self.known_bounds, key=lambda bound: bound.value)
        reason = f"rmax={self.rmax}, but {best.name} needs {best.value:g} rounds: {best.reason}"
        return Bound(best.name, best.value, reason, best.paper)

    def metrics(self, value: float | None) -> dict[str, Json]:
        """Rounds, size of the collective and limits."""
        proven = value is not None and bool(value <= self.least)
        return {
            "rounds": None if value is None or not np.isfinite(value) else int(value),
            "collective": self.collective.name,
            "chunks": self.collective.chunks,
            "lasers": self.limits.wavelengths,
            "waveguides": self.limits.waveguides,
            **({} if self.limits.fibres is None else {"fibres": self.limits.fibres.number}),
            "unrestricted_proven": None if value is None else proven,
            "conditional_on": None if proven else self.plain.restriction,
        }

    def links(self, values: Mapping[str, F64]) -> Links:
        """Load of every link."""
        per_round = self.limits.wavelengths * self.limits.room(self.topology)
        return round_links(self.topology, self.rounds(values), per_round)
