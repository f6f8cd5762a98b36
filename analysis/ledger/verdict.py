"""Verdicts on claims: readings of what a paper leaves open, the natural one, and what follows from them.

The natural reading is part of the claim, with a reason in the paper's words, chosen by a rule that needs no measurement
(``docs/reference/readings.md``). The verdict is the one under it; the other readings only say how sensitive it is. "Not
reproduced" speaks of our model and its stated inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import msgspec

from opticoll.solvers.task import Fields
from opticoll.types import Json


class Verdict(StrEnum):
    """Outcome of testing a claim."""

    REPRODUCED = "reproduced"
    AGREES = "agrees-with-its-figure"
    NOT_REPRODUCED = "not-reproduced"
    REFUTED = "refuted"
    OPEN = "open"
    NOT_TESTABLE = "not-testable"

    @property
    def favours(self) -> bool:
        """Whether the claim holds."""
        return self in (Verdict.REPRODUCED, Verdict.AGREES)

    @property
    def accuses(self) -> bool:
        """Whether the verdict speaks against the claim."""
        return self in (Verdict.NOT_REPRODUCED, Verdict.REFUTED)


class Weight(StrEnum):
    """What hangs on a claim."""

    HEADLINE = "headline"
    SUPPORTING = "supporting"
    TEXTBOOK = "textbook"
    MISPRINT = "misprint"


def verdict_if(holds: bool) -> Verdict:
    """Reproduced if the claim holds, else not reproduced."""
    return Verdict.REPRODUCED if holds else Verdict.NOT_REPRODUCED


class Choice(Fields, frozen=True, kw_only=True):
    """One reading of what the paper leaves open: the choice, the value tried, and the verdict under it.

    If a reading is about several open choices, their names, and the values tried, are separated by semicolons.
    ``measured`` is the number under this reading; ``natural`` says whether it is, or belongs to, the natural reading.
    """

    name: str
    tried: str
    verdict: Verdict
    measured: Json = None
    natural: bool = False

    @property
    def settings(self) -> dict[str, str]:
        """The value of each open choice by name."""
        names = self.name.split("; ")
        values = self.tried.split("; ", len(names) - 1)
        return dict(zip(names, values, strict=True)) if len(names) == len(values) else {self.name: self.tried}


class NaturalReading(Fields, frozen=True, kw_only=True):
    """What a claim most plainly says where its words leave something open; claims that share a convention share it.

    Parameters
    ----------
    name
        Its name in words.
    because
        Why this is the plainest reading; from the paper, not from what was measured.
    choices
        The value of each open choice, or several values if the claim is about all of them. Without choices, the claim
        must hold under every reading tried.
    """

    name: str
    because: str
    choices: dict[str, str | list[str]] = msgspec.field(default_factory=dict)

    def covers(self, choice: Choice) -> bool:
        """Whether a reading tried belongs to this one: it is about its choices, and agrees in all of them."""
        fixed = {name: value for name, value in choice.settings.items() if name in self.choices}
        return bool(fixed) and all(
            value in ([allowed] if isinstance(allowed := self.choices[name], str) else allowed)
            for name, value in fixed.items()
        )


#: The words of the claim leave nothing open that could change the verdict: it must hold in every reading tried.
AS_STATED = NaturalReading(name="as stated", because="Nothing that the words leave open is needed to decide the claim.")


class Sensitivity(Fields, frozen=True, kw_only=True):
    """Number of readings other than the natural one, and number of those with the same verdict as it."""

    tried: int
    agree: int


def marked(choices: Sequence[Choice], natural: NaturalReading | None) -> tuple[Choice, ...]:
    """Mark the readings that belong to the natural one.

    Raises
    ------
    ValueError
        If the natural reading makes choices, and no reading tried agrees with them.
    """
    if natural is None or not choices:
        return tuple(choices)
    whole = not natural.choices
    result = tuple(msgspec.structs.replace(one, natural=whole or natural.covers(one)) for one in choices)
    if not any(one.natural for one in result):
        msg = f"the natural reading {natural.name!r} is none of those tried: {'; '.join(c.tried for c in choices)}"
        raise ValueError(msg)
    return result


def decide(choices: Sequence[Choice], witness: str | None = None) -> Verdict:
    """The verdict that follows from the verdicts under all readings.

    Reproduced if the claim holds under the natural reading, not reproduced if it does not; refuted if it holds under no
    reading and there is a ``witness``, a case that anybody can check. If no reading is marked as natural, what is lost
    or unpublished decides: the verdict is open, unless all readings agree.

    Raises
    ------
    ValueError
        Without a reading.
    """
    if not choices:
        msg = "a verdict needs at least one reading"
        raise ValueError(msg)
    holds = [choice.verdict is Verdict.REPRODUCED for choice in choices]
    natural = [choice.verdict is Verdict.REPRODUCED for choice in choices if choice.natural]
    if not any(holds):
        return Verdict.REFUTED if witness else Verdict.NOT_REPRODUCED
    if natural:
        return verdict_if(all(natural))
    return Verdict.REPRODUCED if all(holds) else Verdict.OPEN


def sensitivity(choices: Sequence[Choice]) -> Sensitivity | None:
    """How the other readings compare with the natural one, or all with the verdict if each is part of the natural one.

    Without a natural one, ``agree`` counts the readings under which the claim holds. None without readings.
    """
    if not choices:
        return None
    natural = [choice.verdict is Verdict.REPRODUCED for choice in choices if choice.natural]
    others = [choice.verdict is Verdict.REPRODUCED for choice in choices if not choice.natural] or natural
    return Sensitivity(tried=len(others), agree=sum(one == all(natural) for one in others))


def distance(printed: Json, measured: Json) -> float | None:
    """Relative deviation of the measured number from the printed one; of several, the largest; absolute from 0.

    None if they are not numbers of the same form: a number each, lists of equal length, or mappings where ``measured``
    has every key of ``printed``.
    """
    if isinstance(printed, dict):
        if not printed or not isinstance(measured, dict) or not set(printed) <= set(measured):
            return None
        return _largest([distance(value, measured[name]) for name, value in printed.items()])
    if isinstance(printed, (list, tuple)):
        if not isinstance(measured, (list, tuple)) or not printed or len(printed) != len(measured):
            return None
        return _largest([distance(*pair) for pair in zip(printed, measured, strict=True)])
    if not _is_number(printed) or not _is_number(measured):
        return None
    one, other = float(str(printed)), float(str(measured))
    return abs(other - one) / abs(one) if one else abs(other)


def _is_number(value: Json) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _largest(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return max(numbers) if len(numbers) == len(values) else None
