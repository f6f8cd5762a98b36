"""What a measurement collects: readings of what the paper leaves open, and cases of a sweep."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from opticoll.analysis.ledger.claim import Measurement
from opticoll.analysis.ledger.tolerances import SAME
from opticoll.analysis.ledger.verdict import Choice, Verdict, verdict_if
from opticoll.solvers.task import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from opticoll.types import Json


class Readings(list[Choice]):
    """The readings of a claim, in the order in which they were tried.

    Parameters
    ----------
    name
        The open choice that they are about, unless a reading names another.
    """

    def __init__(self, name: str = "") -> None:
        super().__init__()
        self.name = name

    def add(self, tried: object, holds: bool, measured: Any = None, *, name: str = "") -> None:
        """Add a reading: the value tried, whether the claim holds under it, and the number measured.

        If a reading is about several choices, their names and the values tried are separated by semicolons; the values
        may be given as a tuple.
        """
        text = "; ".join(map(str, tried)) if isinstance(tried, tuple) else str(tried)
        self.append(Choice(name=name or self.name, tried=text, verdict=verdict_if(holds), measured=plain(measured)))

    @property
    def by_reading(self) -> dict[str, Json]:
        """What was measured under every reading."""
        return {choice.tried: choice.measured for choice in self}

    @property
    def agreement(self) -> dict[str, Json]:
        """The number of readings under which the claim holds, and the range of what was measured if all are numbers."""
        agree = sum(choice.verdict is Verdict.REPRODUCED for choice in self)
        numbers = [choice.measured for choice in self if isinstance(choice.measured, (int, float))]
        ends = {"least": min(numbers), "most": max(numbers)} if len(numbers) == len(self) else {}
        return {"readings that agree": f"{agree} of {len(self)}", **ends}

    def measurement(
        self, instances: tuple[str, ...], reason: str = "", measured: object = None, **more: Any
    ) -> Measurement:
        """Return the measurement that follows from the readings; ``measured`` is by default :attr:`by_reading`."""
        found = self.by_reading if measured is None else measured
        return Measurement(found, None, instances, reason, choices=tuple(self), **more)


def spread(ratios: Sequence[float]) -> dict[str, float]:
    """Smallest, median and largest ratio."""
    return {"min": min(ratios), "median": float(np.median(ratios)), "max": max(ratios)}


def swept(
    wrong: Sequence[str], count: int, measured: object, instances: tuple[str, ...], reason: str = "", **more: Any
) -> Measurement:
    """Return the measurement of a claim about ``count`` cases: it holds if none is wrong; the first is the witness."""
    first = wrong[0] if wrong else None
    return Measurement(measured, verdict_if(not wrong), instances, reason, count, len(wrong), witness=first, **more)


class SweepFields(TypedDict):
    """Fields of :class:`~opticoll.analysis.ledger.claim.Measurement` that a sweep gives."""

    count: int
    violations: int
    tightness: dict[str, float]
    witness: str | None


@dataclass
class Sweep:
    """Cases of a bound or theorem: ratios of bound to optimum, and the failing cases with their sizes."""

    ratios: list[float] = field(default_factory=list)
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def add(self, ratio: float, *, holds: bool, size: int, case: str) -> None:
        """Add a case, described by ``case``; ``size`` ranks counterexamples."""
        self.ratios.append(ratio)
        if not holds:
            self.wrong.append((size, case))

    @property
    def row(self) -> SweepFields:
        """Fields of :class:`~opticoll.analysis.ledger.claim.Measurement`."""
        return {
            "count": len(self.ratios),
            "violations": len(self.wrong),
            "tightness": spread(self.ratios),
            "witness": min(self.wrong)[1] if self.wrong else None,
        }

    @property
    def met(self) -> int:
        """Number of cases with ratio 1."""
        return sum(abs(ratio - 1) <= SAME for ratio in self.ratios)

    def measurement(self, measured: object, instances: tuple[str, ...], reason: str = "", **more: Any) -> Measurement:
        """Return the measurement of a claim that holds if no case fails."""
        return Measurement(measured, verdict_if(not self.wrong), instances, reason, **self.row, **more)
