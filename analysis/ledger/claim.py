"""Claims of the papers: a number or theorem, how it is measured, and the verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from opticoll import plugins
from opticoll.analysis.ledger.tolerances import PrintedNumber
from opticoll.analysis.ledger.verdict import (
    AS_STATED,
    Choice,
    NaturalReading,
    Sensitivity,
    Verdict,
    Weight,
    decide,
    distance,
    marked,
    sensitivity,
)
from opticoll.errors import debugging, refuse
from opticoll.plugin_faults import FAULTS, blame, place_of
from opticoll.solvers.task import PROVEN, Environment, Fields, plain
from opticoll.types import Json

if TYPE_CHECKING:
    from opticoll.analysis.store import Store
    from opticoll.solvers.task import Record, Task


#: Distance between the seeds of two random samples.
SAMPLE = 1000


def in_words(value: Json) -> str:
    """A value of a row as text: numbers with six digits, mappings as ``name: value``, inner lists in parentheses."""
    if value in ([], {}):
        return "none"
    if isinstance(value, dict):
        return "; ".join(f"{name}: {in_words(part)}" for name, part in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(f"({in_words(part)})" if isinstance(part, (list, tuple)) else in_words(part) for part in value)
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Measurement:
    """The result of testing a claim.

    Parameters
    ----------
    measured
        Everything measured, in the units of the claim; None if nothing can be measured.
    verdict
        Whether the claim holds; None if it follows from the ``choices``, or if what is measured decides nothing.
    instances
        Instances measured: specs, or a range in words.
    reason
        Explanation of the verdict: under which assumption the claim would hold, or what prevents a test. By default
        that of the claim, which does not depend on what is measured.
    count, violations
        For a theorem or bound tested on many cases: their number, and the number in which it fails.
    tightness
        For a bound: the ratios of bound to optimum, as ``{"min":, "median":, "max":}``.
    witness
        The smallest case in which the claim fails, or the two numbers that contradict each other, for anybody to check.
    choices
        Everything that the paper leaves open and that can change the verdict, with the verdict under each reading.
    value
        The numbers to compare with those that the paper prints, in the same form (:attr:`Claim.printed`). By default
        those of the natural reading, else ``measured`` if it has that form.
    saved_by
        Under which reading or assumption the claim would hold, if that is none of the ``choices``.
    records
        Names of the stored records used.
    """

    measured: object
    verdict: Verdict | None = None
    instances: tuple[str, ...] = ()
    reason: str = ""
    count: int | None = None
    violations: int | None = None
    tightness: dict[str, float] | None = None
    witness: str | None = None
    choices: tuple[Choice, ...] = ()
    value: object = None
    saved_by: str = ""
    records: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.verdict is not None and not isinstance(self.verdict, Verdict):
            refuse("measurement", f"verdict must be a Verdict such as Verdict.REPRODUCED, not {self.verdict!r}")


class Scope:
    """The qualifiers of a claim by name, as the paper states them, and a record of those that were used.

    A measurement reads every qualifier that it tests from here: ``scope["sizes"]``. :meth:`Claim.examine` rejects a
    measurement that omits one, since it would test a different statement from the paper's.
    """

    def __init__(self, qualifiers: Mapping[str, Json]) -> None:
        self._qualifiers = qualifiers
        self.used: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name not in self._qualifiers:
            msg = f"the claim has no qualifier {name!r}; it has {', '.join(self._qualifiers) or 'none'}"
            raise KeyError(msg)
        self.used.add(name)
        return self._qualifiers[name]

    def values(self, *names: str) -> tuple[Any, ...]:
        """Several qualifiers at once."""
        return tuple(self[name] for name in names)

    @property
    def unused(self) -> list[str]:
        """Qualifiers that the measurement has not read."""
        return [name for name in self._qualifiers if name not in self.used]


@dataclass
class Laboratory:
    """Solves the problems that claims need, and reuses the results in a store.

    Without a store every problem is solved again, and nothing is kept.

    Parameters
    ----------
    store
        The store of the results.
    seed
        Number of the random sample: each number gives other random graphs, orders and tie-breaks (:meth:`seeds`), also
        if a spec in the scope names a seed.
    """

    store: Store | None = None
    used: list[str] = field(default_factory=list)
    scope: Scope = field(default_factory=lambda: Scope({}))
    seed: int = 0
    tolerance: str = "printed"

    def number(self, text: str, whole: float | None = None) -> PrintedNumber:
        """A number that the paper prints, with the tolerance of the claim."""
        return PrintedNumber(text, self.tolerance, whole)

    def seeds(self, count: int, first: int = 0) -> range:
        """Seeds of ``count`` random draws, starting with ``first`` in sample 0."""
        start = first + self.seed * SAMPLE
        return range(start, start + count)

    def solve(
        self,
        formulation: str,
        instance: str,
        *,
        method: str = "auto",
        time_limit_s: float | None = 120.0,
        tol: float = 1e-6,
        seed: int = 0,
        exact: bool = False,
        **settings: Any,
    ) -> Record:
        """Return the record of a run, solved exactly with ``exact``: the stored one of the same task, or a new one.

        Raises
        ------
        BadInput, SolverUnavailable
            As :func:`opticoll.solvers.solve.solve`.
        """
        from opticoll.solvers.task import Task

        texts = {name: str(value) for name, value in settings.items()}
        return self.record(Task(formulation, instance, method, None, texts, time_limit_s, None, tol, seed, exact=exact))

    def proven(self, formulation: str, instance: str, **options: Any) -> Record:
        """Return the record of a run that proves its optimum; arguments as for :meth:`solve`.

        Raises
        ------
        ArithmeticError
            If the optimum is not proven.
        """
        record = self.solve(formulation, instance, **options)
        if record["proof"] not in PROVEN:
            msg = f"{formulation} on {instance} is not proven: {record['proof']}, {record['message']}"
            raise ArithmeticError(msg)
        return record

    def record(self, task: Task) -> Record:
        """Return the record of a task, as :meth:`solve`."""
        from datetime import UTC, datetime

        from opticoll.solvers import solve as runner
        from opticoll.solvers.resume_key import resume_key

        if self.store is not None:
            for record in self.store.answered({resume_key(task)}).values():
                self.used.append(str(record["id"]))
                return record
        started = datetime.now(UTC)
        run = runner.solve(task)
        if self.store is not None:
            self.used.append(self.store.save(run, started=started))
        return run.record


class Spread(Fields, frozen=True, kw_only=True):
    """Smallest, median and largest ratio."""

    min: float | None
    median: float | None
    max: float | None


class ClaimRow(Fields, frozen=True, kw_only=True):
    """A claim and its measurement as stored, shown and printed by ``--json``.

    ``printed`` has the numbers of the paper, ``measured`` ours in the same form, and ``distance`` the relative
    deviation; for a statement about many cases, the share of those in which it fails. ``details`` has everything that
    was measured, if that is more.
    """

    id: str
    paper: str
    where: str
    claim: str
    verdict: Verdict
    reason: str
    weight: Weight = Weight.SUPPORTING
    natural: NaturalReading | None = None
    scope: dict[str, Json] = msgspec.field(default_factory=dict)
    lost: str = ""
    unpublished: str = ""
    rests_on: str = ""
    expected: Json = None
    tolerance: str = ""
    procedure: str = ""
    printed: Json = None
    measured: Json = None
    distance: float | None = None
    details: Json = None
    sensitivity: Sensitivity | None = None
    choices: list[Choice] = msgspec.field(default_factory=list)
    saved_by: list[str] = msgspec.field(default_factory=list)
    second: str = ""
    witness: str | None = None
    instances: list[str]
    failed: bool = False
    count: int | None = None
    violations: int | None = None
    tightness: Spread | None = None
    records: list[str]
    rerun: str = ""
    plugins: dict[str, str] = msgspec.field(default_factory=dict)
    schema: int | None = None
    measured_at: str | None = None
    seconds: float | None = None
    environment: Environment | None = None

    @property
    def everything(self) -> Json:
        """Everything that was measured."""
        return self.measured if self.details is None else self.details

    @property
    def sensitive(self) -> str:
        """One line on the readings tried, such as "fails under 2 of 5 other readings"."""
        if self.sensitivity is None or not self.sensitivity.tried:
            return "no other reading tried"
        tried, agree = self.sensitivity.tried, self.sensitivity.agree
        other = "" if self.natural is None or not self.natural.choices else "other "
        of = f"{tried} {other}reading{'s' * (tried != 1)}"
        if self.verdict is Verdict.OPEN:
            return f"holds under {agree} of {of}"
        if self.verdict.favours:
            return f"fails under {tried - agree} of {of}"
        return f"holds under {tried - agree} of {of}"

    @property
    def fragile(self) -> bool:
        """Whether it holds, but fails under most (60 %) of three or more other readings."""
        most = self.sensitivity
        return self.verdict.favours and most is not None and most.tried >= 3 and most.agree <= 0.4 * most.tried

    @property
    def outcome(self) -> str:
        """The verdict, or "failed" where the measurement failed and there is none."""
        return "failed" if self.failed else str(self.verdict)


@dataclass(frozen=True)
class Claim:
    """One claim of a paper.

    Parameters
    ----------
    id
        ``paper.subject``, unique in the ledger.
    paper, where
        Short name of the paper; section, figure, table or equation. For a contradiction, both places.
    claim
        The claim in our words, with every qualifier of the paper.
    expected
        The number or statement to compare with.
    tolerance
        The kind of its numbers, of :data:`~opticoll.analysis.ledger.tolerances.TOLERANCES`, or the tolerance in words.
    scope
        The qualifiers as data that the measurement uses: sizes, networks, averages, "about". See :class:`Scope`.
    weight
        What hangs on it: a headline of the paper, a supporting result, textbook knowledge, or a misprint.
    natural
        The natural reading; None if content that is ``lost`` or ``unpublished`` decides.
    printed
        The numbers that the paper prints: a number, a list, or a mapping; by default ``expected`` if it has this form.
    procedure
        How we test it, for a reader who does not know this software.
    lost
        A formula or figure of this claim that is missing from the available text of the paper.
    unpublished
        An input of this claim that the paper does not state.
    rests_on
        The authors' own curves or data, if they decide: a claim that holds agrees with them, and is not reproduced.
    second
        Name of the second, independent measurement, which the tests of the package run.
    measure
        Tests the claim; None if it cannot be tested here. The laboratory has the scope.
    reason
        Explanation of the verdict where it does not depend on what is measured; for ``measure=None`` why the claim
        cannot be tested, and what that would need.
    """

    id: str
    paper: str
    where: str
    claim: str
    expected: object
    tolerance: str = "exact"
    measure: Callable[[Laboratory], Measurement] | None = None
    reason: str = ""
    scope: Mapping[str, Json] = field(default_factory=dict)
    weight: Weight | str = Weight.SUPPORTING
    natural: NaturalReading | None = AS_STATED
    printed: object = None
    procedure: str = ""
    lost: str = ""
    unpublished: str = ""
    rests_on: str = ""
    second: str = ""

    def __post_init__(self) -> None:
        if self.weight not in list(Weight):
            refuse(f"claim {self.id!r}", f"weight must be one of {', '.join(Weight)}, not {self.weight!r}")
        if self.natural is None and not (self.lost or self.unpublished):
            refuse(f"claim {self.id!r}", "has no natural reading; state one, or what is lost or unpublished")
        if self.measure is not None and not callable(self.measure):
            refuse(f"claim {self.id!r}", f"measure must be a function of the laboratory, not {self.measure!r}")
        if self.measure is None and not self.reason.strip():
            refuse(f"claim {self.id!r}", "has no measure; add one, or a reason why it cannot be tested")

    def examine(self, laboratory: Laboratory) -> ClaimRow:
        """Test the claim and return its row of the ledger.

        An exception is no evidence for or against the claim: the row then has ``failed`` set, the verdict
        ``not-testable`` and the error as its reason. The same holds for a measurement that ignores a qualifier of the
        scope, and for violations without a witness. With ``OPTICOLL_DEBUG=1`` the error is raised instead.
        """
        laboratory.used.clear()
        laboratory.tolerance = self.tolerance
        laboratory.scope = Scope({name: _reseeded(value, laboratory.seed) for name, value in self.scope.items()})
        failed = False
        choices: tuple[Choice, ...] = ()
        verdict = Verdict.NOT_TESTABLE
        if self.measure is None:
            result = Measurement(None)
            verdict = self._undecided
        else:
            try:
                result = self.measure(laboratory)
                choices, verdict = self._decided(result, laboratory.scope)
            except FAULTS as error:  # one failure must not stop the other claims
                if debugging():
                    raise
                where = blame(error)
                message = " ".join(f"{where + ': ' if where else ''}{type(error).__name__}: {error}".split())
                result = Measurement(None, reason=message)
                failed = True
        return self._row(result, choices, verdict, laboratory, failed)

    @property
    def _undecided(self) -> Verdict:
        """The verdict where nothing measured decides."""
        return Verdict.OPEN if self.natural is None else Verdict.NOT_TESTABLE

    def _decided(self, result: Measurement, scope: Scope) -> tuple[tuple[Choice, ...], Verdict]:
        """The readings tried, the natural ones marked, and the verdict that follows.

        Raises
        ------
        TypeError, ValueError
            If the measurement is incomplete.
        """
        if not isinstance(result, Measurement):
            msg = f"{place_of(self.measure)}measure returned {type(result).__name__}; return a Measurement"
            raise TypeError(msg)
        if scope.unused:
            msg = f"{self.id}: the measurement does not use the qualifier {', '.join(scope.unused)} of the claim"
            raise ValueError(msg)
        choices = marked(result.choices, self.natural)
        if choices and result.verdict is None:
            verdict = decide(choices, result.witness)
        elif result.verdict is None:
            verdict = self._undecided
        else:
            verdict = result.verdict
            if verdict is Verdict.NOT_REPRODUCED and result.witness and not choices:
                verdict = Verdict.REFUTED
        if verdict.accuses and result.violations and not result.witness:
            msg = f"{self.id}: {result.violations} violations without a witness"
            raise ValueError(msg)
        return choices, Verdict.AGREES if verdict is Verdict.REPRODUCED and self.rests_on else verdict

    def _row(
        self,
        result: Measurement,
        choices: tuple[Choice, ...],
        verdict: Verdict,
        laboratory: Laboratory,
        failed: bool,
    ) -> ClaimRow:
        seed = f" --seed {laboratory.seed}" if laboratory.seed else ""
        options = plugins.options() if self.id in {one.id for one in plugins.contributed("CLAIM")} else ""
        details = plain(result.measured)
        printed = plain(self.expected if self.printed is None else self.printed)
        if distance(printed, printed) is None:
            printed = None
        value, away = self._compared(printed, plain(result.value), details, choices)
        if away is None and verdict is not Verdict.OPEN and result.count and result.violations is not None:
            away = result.violations / result.count
        saved = [one.tried for one in choices if one.verdict is Verdict.REPRODUCED] if verdict.accuses else []
        return ClaimRow.read(
            {
                **{name: getattr(self, name) for name in _STATED},
                **{name: getattr(result, name) for name in _MEASURED},
                "reason": result.reason or self.reason,
                "verdict": verdict,
                "choices": plain(choices),
                "printed": printed,
                "measured": value,
                "distance": away,
                "details": None if value == details else details,
                "sensitivity": plain(sensitivity(choices)),
                "saved_by": [*saved, *([result.saved_by] if verdict.accuses and result.saved_by else [])],
                "failed": failed,
                "records": result.records or tuple(dict.fromkeys(laboratory.used)),
                "rerun": f"opticoll claims {self.id}{seed}{options}",
            }
        )

    @staticmethod
    def _compared(printed: Json, value: Json, details: Json, choices: tuple[Choice, ...]) -> tuple[Json, float | None]:
        """The numbers to compare with the printed ones, in the same form, and their distance."""
        natural = [one.measured for one in choices if one.natural]
        found = [(away, number) for number in natural if (away := distance(printed, number)) is not None]
        worst = [max(found, key=lambda pair: pair[0])[1]] if found else []
        for one in (value, *worst, details):
            away = distance(printed, one)
            if away is not None:
                same = (
                    {name: one[name] for name in printed}
                    if isinstance(one, dict) and isinstance(printed, dict)
                    else one
                )
                return same, away
        return (details if value is None else value), None


#: Tests a claim; the laboratory has its scope.
Measure = Callable[[Laboratory], Measurement]


class Measures(dict[str, Measure]):
    """The functions that measure the claims of a paper, by the ids of the claims.

    Parameters
    ----------
    paper
        Short name of the paper.
    """

    def __init__(self, paper: str) -> None:
        super().__init__()
        self.paper = paper

    def of(self, name: str) -> Callable[[Measure], Measure]:
        """Decorate the function that measures a claim of the paper's ``claims.toml``."""

        def add(measure: Measure) -> Measure:
            self[f"{self.paper}.{name}"] = measure
            return measure

        return add


def _reseeded(value: Json, sample: int) -> Json:
    """A qualifier with the seeds of its specs moved to another random sample."""
    if not sample:
        return value
    if isinstance(value, str):
        return re.sub(r"(?<=seed=)\d+", lambda seed: str(int(seed[0]) + sample * SAMPLE), value)
    if isinstance(value, (list, tuple)):
        return [_reseeded(part, sample) for part in value]
    if isinstance(value, dict):
        return {name: _reseeded(part, sample) for name, part in value.items()}
    return value


#: Fields that a row takes from its claim, and from the measurement.
_STATED = (
    "id",
    "paper",
    "where",
    "claim",
    "expected",
    "tolerance",
    "scope",
    "weight",
    "natural",
    "procedure",
    "lost",
    "unpublished",
    "rests_on",
    "second",
)
_MEASURED = ("instances", "count", "violations", "tightness", "witness")
