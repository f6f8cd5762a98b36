"""Claims of the papers: a number or theorem, how it is measured, and the verdict.

Tolerances are fixed before anything is measured. A printed number stands for every number that rounds to it: 1.11 for
1.105 to 1.115. If the paper says "about", "nearly" or "roughly", the number stands for everything within :data:`ABOUT`
of it, and at least for everything that rounds to its last nonzero digit: about 10 for 5 to 15. Orders of magnitude are
rounded in the same way: two orders of magnitude start at 10^1.5.
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


#: Relative deviation that "about" allows.
ABOUT = 0.1
#: Ratios in this range count as "similar", "equal", "near" or "close".
SIMILAR = (1 - ABOUT, 1 + ABOUT)
#: Least ratio that counts as two orders of magnitude.
TWO_ORDERS = 10**1.5
#: Relative slack of interval ends, for rounding errors.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PrintedNumber:
    """A number as a paper prints it.

    Parameters
    ----------
    text
        Its digits, for example "1.11".
    about
        Whether the paper says "about", "nearly" or "roughly".
    """

    text: str
    about: bool = False

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    @property
    def half_width(self) -> float:
        """Largest deviation that still counts as this number."""
        number = Decimal(self.text)
        if not self.about:
            return 0.5 * 10.0 ** int(number.as_tuple().exponent)
        return max(ABOUT * abs(self.value), 0.5 * 10.0 ** int(number.normalize().as_tuple().exponent))

    @property
    def ends(self) -> tuple[float, float]:
        """Least and largest number it stands for."""
        return self.value - self.half_width, self.value + self.half_width

    @property
    def tolerance(self) -> str:
        """The tolerance in words."""
        low, high = self.ends
        return f"{'stated as about' if self.about else 'rounds to the printed digits'}: {low:.6g} to {high:.6g}"

    def holds(self, measured: float) -> bool:
        """Whether a measurement agrees with the printed number."""
        return abs(measured - self.value) <= self.half_width + _ROUNDING * abs(self.value)

    def verdict(self, measured: float, otherwise: Verdict | None = None) -> Verdict:
        """Reproduced if :meth:`holds`, else ``otherwise`` (not reproduced by default)."""
        return verdict_if(self.holds(measured), otherwise or Verdict.NOT_REPRODUCED)

    def deviation(self, measured: float) -> str:
        """The relative deviation in words."""
        return f"{100 * (measured / self.value - 1):+.2g} % from the printed number"


def similar(ratio: float) -> bool:
    """Whether a ratio is close enough to 1 to be called similar."""
    return SIMILAR[0] - _ROUNDING <= ratio <= SIMILAR[1] + _ROUNDING


class Verdict(StrEnum):
    """Outcome of testing a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not-reproduced"
    SELF_CONTRADICTED = "self-contradicted"
    NOT_TESTABLE = "not-testable"


def verdict_if(holds: bool, otherwise: Verdict = Verdict.NOT_REPRODUCED) -> Verdict:
    """Reproduced if the claim holds, else ``otherwise``."""
    return Verdict.REPRODUCED if holds else otherwise


@dataclass(frozen=True)
class Measurement:
    """The result of testing a claim.

    Parameters
    ----------
    measured
        Our number or finding, in the units of the claim; None if nothing can be measured.
    verdict
        Whether the claim holds.
    instances
        Instances measured: specs, or a range in words.
    reason
        Explanation of the verdict: under which assumption the claim would hold, or what prevents a test.
    count, violations
        For a theorem or bound tested on many cases: their number, and the number in which it fails.
    tightness
        For a bound: the ratios of bound to optimum, as ``{"min":, "median":, "max":}``.
    counterexample
        The smallest case in which the claim fails.
    records
        Names of the stored records used.
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
    """Solves the problems that claims need, and reuses the results in a store.

    Without a store every problem is solved again, and nothing is kept.
    """

    store: Store | None = None
    used: list[str] = field(default_factory=list)

    def solve(
        self, formulation: str, instance: str, *, method: str = "auto", time_limit_s: float | None = 120.0,
        tol: float = 1e-6, seed: int = 0, **settings: Any,
    ) -> Record:  # fmt: skip
        """Return the record of a run: the stored one of the same task, or a new one.

        Raises
        ------
        BadInput, SolverUnavailable
            As :func:`opticoll.solvers.runner.solve`.
        """
        from opticoll.solvers.task import Task

        texts = {name: str(value) for name, value in settings.items()}
        return self.record(Task(formulation, instance, method, None, texts, time_limit_s, None, tol, seed))

    def proven(self, formulation: str, instance: str, **options: Any) -> Record:
        """Return the record of a run that proves its optimum; arguments as for :meth:`solve`.

        Raises
        ------
        ArithmeticError
            If the optimum is not proven.
        """
        record = self.solve(formulation, instance, **options)
        if record["proof"] != "optimal":
            msg = f"{formulation} on {instance} is not proven: {record['proof']}, {record['message']}"
            raise ArithmeticError(msg)
        return record

    def record(self, task: Task) -> Record:
        """Return the record of a task, as :meth:`solve`."""
        from datetime import UTC, datetime

        from opticoll.solvers import runner

        if self.store is not None:
            for record in self.store.answered({runner.resume_key(task)}).values():
                self.used.append(str(record["id"]))
                return record
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
        ``paper.subject``, unique in the ledger.
    paper, where
        Short name of the paper; section, figure, table or equation.
    claim
        The claim in our words.
    expected
        The number or statement to compare with.
    tolerance
        The tolerance in words ("exact", "2 %").
    measure
        Tests the claim; None if it cannot be tested here.
    reason
        Why it cannot be tested; only for ``measure=None``.
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
        """Test the claim and return its row of the ledger, ready for JSON.

        An exception is no evidence for or against the claim: the row then has ``failed`` set, the verdict
        ``not-testable`` and the error as its reason. With ``OPTICOLL_DEBUG`` set the error is raised instead.
        """
        laboratory.used.clear()
        failed = False
        if self.measure is None:
            result = Measurement(None, Verdict.NOT_TESTABLE, reason=self.reason)
        else:
            try:
                result = self.measure(laboratory)
            except Exception as error:  # one failure must not stop the other claims
                if os.environ.get("OPTICOLL_DEBUG"):
                    raise
                message = " ".join(f"{type(error).__name__}: {error}".split())
                result = Measurement(None, Verdict.NOT_TESTABLE, reason=f"measurement failed: {message}")
                failed = True
        return plain(self._row(result, laboratory, failed))

    def _row(self, result: Measurement, laboratory: Laboratory, failed: bool) -> dict[str, Any]:
        return {
            "id": self.id,
            "paper": self.paper,
            "where": self.where,
            "claim": self.claim,
            "expected": self.expected,
            "tolerance": self.tolerance,
            "measured": result.measured,
            "verdict": str(result.verdict),
            "instances": list(result.instances),
            "reason": result.reason,
            "failed": failed,
            "count": result.count,
            "violations": result.violations,
            "tightness": result.tightness,
            "counterexample": result.counterexample,
            "records": list(result.records or dict.fromkeys(laboratory.used)),
            "rerun": f"opticoll claims {self.id}",
        }
