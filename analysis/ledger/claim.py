"""What a claim of the ledger is: a number or theorem of a paper, how it is measured again, and the verdict.

Numbers as a paper prints them, and how near to one a measurement must come: fixed before anything is measured.

A printed number stands for all that round to its last digit: 1.11 for 1.105 to 1.115. One that the paper calls about,
nearly or roughly so much stands for all within :data:`ABOUT` of it, and at least for what rounds to its last digit that
is no trailing zero: about 10 for 5 to 15. Orders of magnitude are rounded like digits: two are all from 10^1.5.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from opticoll.analysis.store.schema import plain

if TYPE_CHECKING:
    from opticoll.analysis.store import Store
    from opticoll.solvers.task import Record, Task


#: Share of a number that "about" leaves open.
ABOUT = 0.1
#: Ratios within this of 1 are called similar, equal, near or close.
SIMILAR = (1 - ABOUT, 1 + ABOUT)
#: What is called two orders of magnitude is at least this many times.
TWO_ORDERS = 10**1.5
#: Slack of the ends of an interval, for floating-point numbers.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Told:
    """A number in print.

    Parameters
    ----------
    text
        As it is printed, "1.11".
    about
        Whether the paper calls it about so much.
    """

    text: str
    about: bool = False

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def half_width(self) -> float:
        """How far from the number counts as the number."""
        number = Decimal(self.text)
        if not self.about:
            return 0.5 * 10.0 ** int(number.as_tuple().exponent)
        return max(ABOUT * abs(self.value), 0.5 * 10.0 ** int(number.normalize().as_tuple().exponent))

    @property
    def ends(self) -> tuple[float, float]:
        """Least and largest number that it stands for."""
        return self.value - self.half_width, self.value + self.half_width

    @property
    def tolerance(self) -> str:
        """The rule in words, for a claim."""
        low, high = self.ends
        return f"{'told as about' if self.about else 'its printed digits'}: {low:.6g} to {high:.6g}"

    def holds(self, measured: float) -> bool:
        """Whether a measurement is what the paper says."""
        return abs(measured - self.value) <= self.half_width + _ROUNDING * abs(self.value)

    def verdict(self, measured: float, otherwise: Verdict | None = None) -> Verdict:
        """Reproduced if :meth:`holds`, else ``otherwise`` (by default not reproduced)."""
        otherwise = otherwise or Verdict.NOT_REPRODUCED
        return Verdict.REPRODUCED if self.holds(measured) else otherwise

    def off(self, measured: float) -> str:
        """The deviation in words."""
        return f"{100 * (measured / self.value - 1):+.2g} % off what is told"


def similar(ratio: float) -> bool:
    """Whether a ratio is 1 to what "similar" or "near" leaves open."""
    return SIMILAR[0] - _ROUNDING <= ratio <= SIMILAR[1] + _ROUNDING


def at_least(measured: float, told: Told) -> bool:
    """Whether a measurement is the number told or more."""
    return measured >= told.ends[0] - _ROUNDING * abs(told.value)


class Verdict(StrEnum):
    """What became of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not-reproduced"
    SELF_CONTRADICTED = "self-contradicted"
    NOT_TESTABLE = "not-testable"


@dataclass(frozen=True)
class Measurement:
    """What was found for a claim.

    Parameters
    ----------
    measured
        Our number or finding, in the claim's units; None where nothing can be measured.
    verdict
        What it means for the claim.
    instances
        Instances (specs, or a range in words) that it was measured on.
    reason
        Why the verdict: under which assumption the claim would hold, or what stands in the way of a test.
    count, violations
        For a theorem or bound that is swept: cases examined, and those in which it fails.
    tightness
        For a bound: ratios of bound to optimum as ``{"min":, "median":, "max":}``.
    counterexample
        The smallest case that violates it.
    records
        Names of the records in the store that it rests on.
    """

    measured: Any
    verdict: Verdict
    instances: tuple[str, ...] = ()
    reason: str = ""
    count: int | None = None
    violations: int | None = None
    tightness: dict[str, float] | None = None
    counterexample: str | None = None
    records: tuple[str, ...] = ()


@dataclass
class Laboratory:
    """Where claims are measured: runs come from the store where they are answered there, and go into it.

    Without a store every run is made anew and none is kept.
    """

    store: Store | None = None
    used: list[str] = field(default_factory=list)

    def solve(
        self, formulation: str, instance: str, *, method: str = "auto", time_limit_s: float | None = 120.0,
        tol: float = 1e-6, seed: int = 0, **settings: Any,
    ) -> Record:  # fmt: skip
        """Give the record of a run: the store's answer to the same task, or a new one.

        Raises
        ------
        BadInput, SolverUnavailable
            As :func:`opticoll.solvers.runner.solve`.
        """
        from opticoll.solvers.task import Task

        named = {name: str(value) for name, value in settings.items()}
        return self.record(Task(formulation, instance, method, None, named, time_limit_s, None, tol, seed))

    def record(self, task: Task) -> Record:
        """Give the record of a task, as :meth:`solve`."""
        from datetime import UTC, datetime

        from opticoll.solvers import runner

        if self.store is not None:
            known = self.store.answered({runner.resume_key(task)})
            for answer in known.values():
                self.used.append(str(answer["id"]))
                return answer
        started = datetime.now(UTC)
        run = runner.solve(task)
        if self.store is not None:
            self.used.append(self.store.save(run, started=started))
        return run.record


@dataclass(frozen=True)
class Claim:
    """One claim of a paper.

    Parameters
    ----------
    id
        ``paper.what``, unique in the ledger.
    paper, where
        The paper's short name; section, figure, table or equation.
    claim
        What it says, in our words.
    expected
        The number or statement that is held against ours.
    tolerance
        How near counts, in words ("exact", "2 %").
    measure
        Measures it again; None for a claim that cannot be tested here, of which ``reason`` says why.
    reason
        For ``measure=None``.
    """

    id: str
    paper: str
    where: str
    claim: str
    expected: Any
    tolerance: str = "exact"
    measure: Callable[[Laboratory], Measurement] | None = None
    reason: str = ""

    def examine(self, laboratory: Laboratory) -> dict[str, Any]:
        """Measure it: one row of the ledger, JSON-able.

        A measurement that raises is no evidence for or against the claim: its row has ``failed`` set, the verdict
        ``not-testable`` and the error as its reason. With ``OPTICOLL_DEBUG`` set the error is raised.
        """
        laboratory.used.clear()
        failed = False
        if self.measure is None:
            found = Measurement(None, Verdict.NOT_TESTABLE, reason=self.reason)
        else:
            try:
                found = self.measure(laboratory)
            except Exception as error:  # whatever it is, the other claims are still to be measured
                if os.environ.get("OPTICOLL_DEBUG"):
                    raise
                told = " ".join(f"{type(error).__name__}: {error}".split())
                found = Measurement(None, Verdict.NOT_TESTABLE, reason=f"measurement failed: {told}")
                failed = True
        return plain(self._row(found, laboratory, failed))

    def _row(self, found: Measurement, laboratory: Laboratory, failed: bool) -> dict[str, Any]:
        return {
            "id": self.id,
            "paper": self.paper,
            "where": self.where,
            "claim": self.claim,
            "expected": self.expected,
            "tolerance": self.tolerance,
            "measured": found.measured,
            "verdict": str(found.verdict),
            "instances": list(found.instances),
            "reason": found.reason,
            "failed": failed,
            "count": found.count,
            "violations": found.violations,
            "tightness": found.tightness,
            "counterexample": found.counterexample,
            "records": list(found.records or dict.fromkeys(laboratory.used)),
            "rerun": f"opticoll claims {self.id}",
        }
