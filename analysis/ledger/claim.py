"""Claims of the papers: a number or theorem, how it is measured, and the verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from opticoll.errors import BadInput
from opticoll.instances import plugins
from opticoll.solvers.task import PROVEN, Environment, Fields, Json, plain

if TYPE_CHECKING:
    from opticoll.analysis.store import Store
    from opticoll.solvers.task import Record, Task


#: Distance between the seeds of two random samples.
SAMPLE = 1000


class Verdict(StrEnum):
    """Outcome of testing a claim."""

    REPRODUCED = "reproduced"
    DEPENDS = "depends"
    NOT_REPRODUCED = "not-reproduced"
    SELF_CONTRADICTED = "self-contradicted"
    NOT_TESTABLE = "not-testable"

    @property
    def accuses(self) -> bool:
        """Whether the verdict says that the paper is wrong."""
        return self in (Verdict.NOT_REPRODUCED, Verdict.SELF_CONTRADICTED)


def verdict_if(holds: bool, otherwise: Verdict = Verdict.NOT_REPRODUCED) -> Verdict:
    """Reproduced if the claim holds, else ``otherwise``."""
    return Verdict.REPRODUCED if holds else otherwise


class Choice(Fields, frozen=True, kw_only=True):
    """One reading of what the paper leaves open: the choice, the value tried, and the verdict under it.

    ``measured`` is the number under this reading; ``natural`` marks the reading that the paper's words suggest.
    """

    name: str
    tried: str
    verdict: Verdict
    measured: Json = None
    natural: bool = False


def decide(choices: Sequence[Choice], otherwise: Verdict = Verdict.NOT_REPRODUCED) -> Verdict:
    """The verdict that follows from the verdicts under all readings.

    Reproduced if the claim holds under the natural reading, or under every reading if none is marked as natural;
    ``otherwise`` if it holds under none; else it depends on the choice.
    """
    holds = [choice.verdict is Verdict.REPRODUCED for choice in choices]
    natural = [choice.verdict is Verdict.REPRODUCED for choice in choices if choice.natural]
    if not choices:
        msg = "a verdict needs at least one reading"
        raise ValueError(msg)
    if all(holds) or (natural and all(natural)):
        return Verdict.REPRODUCED
    return Verdict.DEPENDS if any(holds) else otherwise


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
        Our number or finding, in the units of the claim; None if nothing can be measured.
    verdict
        Whether the claim holds; see :func:`decide` where readings differ.
    instances
        Instances measured: specs, or a range in words.
    reason
        Explanation of the verdict: under which assumption the claim would hold, or what prevents a test.
    count, violations
        For a theorem or bound tested on many cases: their number, and the number in which it fails.
    tightness
        For a bound: the ratios of bound to optimum, as ``{"min":, "median":, "max":}``.
    witness
        The smallest case in which the claim fails, or the two numbers that contradict each other.
    choices
        Everything that the paper leaves open and that can change the verdict, with the verdict under each reading.
    records
        Names of the stored records used.
    """

    measured: object
    verdict: Verdict
    instances: tuple[str, ...] = ()
    reason: str = ""
    count: int | None = None
    violations: int | None = None
    tightness: dict[str, float] | None = None
    witness: str | None = None
    choices: tuple[Choice, ...] = ()
    records: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.verdict, Verdict):
            msg = f"measurement: verdict must be a Verdict such as Verdict.REPRODUCED, not {self.verdict!r}"
            raise BadInput(msg)


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
        from opticoll.solvers.plan import resume_key

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
    """A claim and its measurement as stored, shown and printed by ``--json``."""

    id: str
    paper: str
    where: str
    claim: str
    verdict: Verdict
    reason: str
    scope: dict[str, Json] = msgspec.field(default_factory=dict)
    lost: str = ""
    weight: int = 3
    expected: Json = None
    tolerance: str = ""
    procedure: str = ""
    measured: Json = None
    choices: list[Choice] = msgspec.field(default_factory=list)
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
        The tolerance in words ("exact", "2 %").
    scope
        The qualifiers as data that the measurement uses: sizes, networks, averages, "about". See :class:`Scope`.
    weight
        1 for the headline results of the abstract, 2 for main results, 3 for all others.
    procedure
        How we test it, for a reader who does not know this software.
    lost
        A formula or figure of this claim that is missing from the available text of the paper.
    measure
        Tests the claim; None if it cannot be tested here. The laboratory has the scope.
    reason
        Why it cannot be tested and what that would need; only for ``measure=None``.
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
    weight: Literal[1, 2, 3] = 3
    procedure: str = ""
    lost: str = ""

    def __post_init__(self) -> None:
        if self.measure is not None and not callable(self.measure):
            msg = f"claim {self.id!r}: measure must be a function of the laboratory, not {self.measure!r}"
            raise BadInput(msg)
        if self.measure is None and not self.reason.strip():
            msg = f"claim {self.id!r}: has no measure; add one, or a reason why it cannot be tested"
            raise BadInput(msg)

    def examine(self, laboratory: Laboratory) -> ClaimRow:
        """Test the claim and return its row of the ledger.

        An exception is no evidence for or against the claim: the row then has ``failed`` set, the verdict
        ``not-testable`` and the error as its reason. The same holds for a measurement that ignores a qualifier of the
        scope, and for violations without a witness. With ``OPTICOLL_DEBUG`` set the error is raised instead.
        """
        laboratory.used.clear()
        laboratory.scope = Scope({name: _reseeded(value, laboratory.seed) for name, value in self.scope.items()})
        failed = False
        if self.measure is None:
            result = Measurement(None, Verdict.NOT_TESTABLE, reason=self.reason)
        else:
            try:
                result = self.measure(laboratory)
                self._refuse_incomplete(result, laboratory.scope)
            except plugins.FAULTS as error:  # one failure must not stop the other claims
                if os.environ.get("OPTICOLL_DEBUG"):
                    raise
                where = plugins.blame(error)
                message = " ".join(f"{where + ': ' if where else ''}{type(error).__name__}: {error}".split())
                result = Measurement(None, Verdict.NOT_TESTABLE, reason=message)
                failed = True
        return self._row(result, laboratory, failed)

    def _refuse_incomplete(self, result: Measurement, scope: Scope) -> None:
        if not isinstance(result, Measurement):
            msg = f"{plugins.place_of(self.measure)}measure returned {type(result).__name__}; return a Measurement"
            raise TypeError(msg)
        if scope.unused:
            msg = f"{self.id}: the measurement does not use the qualifier {', '.join(scope.unused)} of the claim"
            raise ValueError(msg)
        if result.verdict.accuses and result.violations and not result.witness:
            msg = f"{self.id}: {result.violations} violations without a witness"
            raise ValueError(msg)
        verdicts = {choice.verdict for choice in result.choices} | {Verdict.DEPENDS}
        if result.choices and result.verdict not in verdicts:
            msg = f"{self.id}: no reading has the verdict {result.verdict}"
            raise ValueError(msg)

    def _row(self, result: Measurement, laboratory: Laboratory, failed: bool) -> ClaimRow:
        if result.verdict.accuses:
            stated = Choice(name="reading", tried="as stated", verdict=result.verdict, measured=plain(result.measured))
            numbers = f"measured {in_words(plain(result.measured))}, stated {in_words(plain(self.expected))}"
            result = replace(result, choices=result.choices or (stated,), witness=result.witness or numbers)
        seed = f" --seed {laboratory.seed}" if laboratory.seed else ""
        options = plugins.options() if self.id in {one.id for one in plugins.contributed("CLAIM")} else ""
        return ClaimRow.read(
            {
                **{name: getattr(self, name) for name in _STATED},
                **{name: getattr(result, name) for name in _MEASURED},
                "failed": failed,
                "records": result.records or tuple(dict.fromkeys(laboratory.used)),
                "rerun": f"opticoll claims {self.id}{seed}{options}",
            }
        )


#: Tests a claim; the laboratory has its scope.
Measure = Callable[[Laboratory], Measurement]


class Claims(list[Claim]):
    """The claims of a paper, each stated where it is measured.

    Parameters
    ----------
    paper
        Short name of the paper.
    """

    def __init__(self, paper: str) -> None:
        super().__init__()
        self.paper = paper

    def stated(
        self, name: str, where: str, claim: str, expected: object, tolerance: str = "exact", **words: Any
    ) -> Callable[[Measure], Measure]:
        """Decorate the function that measures a claim; arguments as of :class:`Claim`, the name without the paper."""

        def add(measure: Measure) -> Measure:
            self.append(Claim(f"{self.paper}.{name}", self.paper, where, claim, expected, tolerance, measure, **words))
            return measure

        return add

    def untestable(
        self, name: str, where: str, claim: str, expected: object, tolerance: str = "exact", **words: Any
    ) -> None:
        """Add a claim that cannot be tested here, for the ``reason`` given; arguments as of :meth:`stated`."""
        self.append(Claim(f"{self.paper}.{name}", self.paper, where, claim, expected, tolerance, **words))


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
_STATED = ("id", "paper", "where", "claim", "expected", "tolerance", "scope", "weight", "procedure", "lost")
_MEASURED = (
    "measured",
    "verdict",
    "instances",
    "reason",
    "count",
    "violations",
    "tightness",
    "witness",
    "choices",
)
