"""What the tests of every paper's ledger share: verdicts, second measurements, and checks of one claim.

A second measurement shares no code with the first.

A falsified measurement shows that a verdict is not a constant: with another scope, or with a wrong value in place of
what the measurement computes, the claim gets another verdict.

A module ``test_*_ledger.py`` of a paper decorates a function with :func:`second`: it computes the claim's number from
the paper's definitions with numpy, networkx or scipy alone, and returns what the ledger's row must contain. The
verdicts of all claims of the paper are listed in ``VERDICTS`` of the same module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from opticoll.analysis.ledger.claim import Claim, ClaimRow, Laboratory, Verdict
from opticoll.solvers.task import Json, plain

Second = Callable[[ClaimRow], None]
#: An object, one of its attributes, and the function that makes the wrong value out of the right one.
Wrong = tuple[Any, str, Callable[[Any], Any]]
#: A claim's name, other qualifiers, the verdict with them, and what is replaced by a wrong value.
Case = tuple[Any, ...]

REPRODUCED, DEPENDS, NOT, CONTRADICTED, UNTESTABLE = (
    Verdict.REPRODUCED,
    Verdict.DEPENDS,
    Verdict.NOT_REPRODUCED,
    Verdict.SELF_CONTRADICTED,
    Verdict.NOT_TESTABLE,
)


def verdicts_of(paper: str, names: dict[Verdict, str]) -> dict[str, Verdict]:
    """The verdict of every claim of a paper, from the names of the claims by verdict."""
    return {f"{paper}.{name}": verdict for verdict, words in names.items() for name in words.split()}


def examined(claim: Claim, **changes: Json) -> ClaimRow:
    """The row of a claim, with other values of its qualifiers; its measurement must not fail."""
    row = replace(claim, scope={**claim.scope, **changes}).examine(Laboratory())
    assert not row.failed, row.reason
    return row


def turned(claim: Claim, changes: dict[str, Json], *wrong: Wrong) -> Verdict:
    """The verdict with other qualifiers, and with attributes replaced by functions of what they are."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, replacement in wrong:
            patch.setattr(owner, name, replacement(getattr(owner, name)))
        return examined(claim, **changes).verdict


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


def not_turned(claims: dict[str, Claim], verdicts: dict[str, Verdict], cases: Sequence[Case]) -> list[str]:
    """Measured claims of which no case changes the verdict; without a verdict on the claim there is none to change."""
    paper = next(iter(claims)).partition(".")[0]
    known = {f"{paper}.{name}" for name, _, verdict, *_ in cases if verdict is not verdicts[f"{paper}.{name}"]}
    return [
        name
        for name, claim in claims.items()
        if claim.measure and verdicts[name] is not Verdict.NOT_TESTABLE and name not in known
    ]


@dataclass
class Measurements:
    """The second measurements of one paper by claim."""

    by_claim: dict[str, Second] = field(default_factory=dict)

    def second(self, *claims: str) -> Callable[[Second], Second]:
        """Register a function that asserts what the rows of ``claims`` must contain."""

        def register(function: Second) -> Second:
            for claim in claims:
                assert claim not in self.by_claim
                self.by_claim[claim] = function
            return function

        return register

    def confirm(self, claim: Claim, verdict: Verdict) -> ClaimRow:
        """Examine a claim, and compare its row with the verdict and with its second measurement."""
        row = examined(claim)
        assert row.verdict is verdict
        if claim.id in self.by_claim:
            self.by_claim[claim.id](row)
        return row

    def missing(self, claims: dict[str, Claim], verdicts: dict[str, Verdict]) -> list[str]:
        """Claims without a second measurement that need one: accusations, and headlines that are reproduced."""
        return [
            name
            for name, verdict in verdicts.items()
            if name not in self.by_claim
            and (verdict.accuses or (verdict is Verdict.REPRODUCED and claims[name].weight == 1))
        ]
