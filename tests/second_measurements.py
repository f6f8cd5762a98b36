"""What the ledgers of the papers share: verdicts, second measurements, and checks of one claim.

A second measurement shares no code with the first: it computes the claim's number from the paper's definitions with
numpy, networkx or scipy alone, and asserts what the ledger's row must contain.

A falsified measurement shows that a verdict is not a constant: with another scope, or with a wrong value in place of
what the measurement computes, the claim gets another verdict.

The module of a paper in ``ledgers`` lists the verdicts of all its claims, the falsified measurements, and the second
measurements, decorated with :meth:`PaperLedger.second`; ``test_ledgers.py`` runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pytest

from opticoll.analysis.ledger.claim import Claim, ClaimRow, Laboratory
from opticoll.analysis.ledger.ledger import claims
from opticoll.analysis.ledger.verdict import Verdict, Weight
from opticoll.solvers.task import Json, plain

Second = Callable[[ClaimRow], None]
#: An object, one of its attributes, and the function that makes the wrong value out of the right one.
Wrong = tuple[Any, str, Callable[[Any], Any]]
#: A claim's name, other qualifiers, the verdict with them, and what is replaced by a wrong value.
Case = tuple[Any, ...]

REPRODUCED, AGREES, NOT, REFUTED, OPEN, UNTESTABLE = (
    Verdict.REPRODUCED,
    Verdict.AGREES,
    Verdict.NOT_REPRODUCED,
    Verdict.REFUTED,
    Verdict.OPEN,
    Verdict.NOT_TESTABLE,
)


def examined(claim: Claim, **changes: Json) -> ClaimRow:
    """The row of a claim, with other values of its qualifiers; its measurement must not fail."""
    row = replace(claim, scope={**claim.scope, **changes}).examine(Laboratory())
    assert not row.failed, row.reason
    return row


def scaled(factor: float) -> Callable[[Callable[..., float]], Callable[..., float]]:
    """Replace a function by one whose value is ``factor`` times as large."""
    return lambda true: lambda *args, **kwargs: factor * true(*args, **kwargs)


def constant(value: Any) -> Callable[[Any], Callable[..., Any]]:
    """Replace a function by one that always returns ``value``."""
    return lambda _true: lambda *_args, **_kwargs: value


def edited(**fields: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace a function that returns a record by one that changes some of its fields."""

    def replacement(true: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: {**plain(true(*args, **kwargs)), **fields}

    return replacement


@dataclass
class PaperLedger:
    """The verdicts and second measurements of one paper.

    Parameters
    ----------
    paper
        Its short name.
    names
        Names of its claims by verdict, separated by spaces.
    slow, quick
        Names of the claims that take more than a few seconds, or of all others.
    undecided
        Names of the measured claims whose verdict is open whatever is measured.
    falsified_slowly
        Names of the claims whose falsified measurement takes more than a few seconds.
    """

    paper: str
    names: dict[Verdict, str]
    slow: str = ""
    quick: str = ""
    undecided: str = ""
    falsified_slowly: str = ""
    falsified: list[Case] = field(default_factory=list)
    slowly_falsified: list[Case] = field(default_factory=list)
    by_claim: dict[str, Second] = field(default_factory=dict)

    @cached_property
    def claims(self) -> dict[str, Claim]:
        """The claims of the paper by name."""
        return {name.partition(".")[2]: claim for name, claim in claims().items() if claim.paper == self.paper}

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """The verdict of every claim by name."""
        return {name: verdict for verdict, words in self.names.items() for name in words.split()}

    def second(self, *claims: str) -> Callable[[Second], Second]:
        """Register a function that asserts what the rows of ``claims`` must contain."""

        def register(function: Second) -> Second:
            for claim in claims:
                assert claim not in self.by_claim
                self.by_claim[claim] = function
            return function

        return register

    def takes_long(self, name: str) -> bool:
        """Whether a claim takes more than a few seconds."""
        return name not in self.quick.split() if self.quick else name in self.slow.split()

    def cases(self) -> list[tuple[Case, bool]]:
        """The falsified measurements, and whether they take more than a few seconds."""
        quick = [(case, case[0] in self.falsified_slowly.split()) for case in self.falsified]
        return quick + [(case, True) for case in self.slowly_falsified]

    def confirm(self, name: str) -> ClaimRow:
        """Examine a claim, and compare its row with the verdict and with its second measurement."""
        row = examined(self.claims[name])
        assert row.verdict is self.verdicts[name]
        if row.id in self.by_claim:
            self.by_claim[row.id](row)
        return row

    def turned(self, name: str, changes: dict[str, Json], *wrong: Wrong) -> Verdict:
        """The verdict with other qualifiers, and with attributes replaced by functions of what they are."""
        with pytest.MonkeyPatch.context() as patch:
            for owner, attribute, replacement in wrong:
                patch.setattr(owner, attribute, replacement(getattr(owner, attribute)))
            return examined(self.claims[name], **changes).verdict

    def lacking(self) -> list[str]:
        """A line for everything that the module of the paper or a claim lacks."""
        lines = [f"{self.paper}.{name} has a verdict and is no claim" for name in {*self.verdicts} - {*self.claims}]
        turned = {name for (name, _, verdict, *_), _ in self.cases() if verdict is not self.verdicts.get(name)}
        for name, claim in self.claims.items():
            verdict, second = self.verdicts.get(name), self.by_claim.get(claim.id)
            if verdict is None:
                lines.append(f"{claim.id} has no verdict in LEDGER")
                continue
            headline = verdict is Verdict.REPRODUCED and claim.weight == Weight.HEADLINE
            if second is None and (verdict.accuses or headline or claim.second):
                lines.append(f'{claim.id} needs a second measurement, decorated with LEDGER.second("{claim.id}")')
            elif second is not None and claim.second != second.__name__ and (claim.second or verdict.accuses):
                lines.append(f'{claim.id} does not name its second measurement: second="{second.__name__}"')
            if claim.measure and name not in turned and name not in self.undecided.split():
                lines.append(f"{claim.id} needs a case in LEDGER.falsified that changes its verdict")
        return [f"tests/ledgers/{self.paper}.py: {line}" for line in lines]
