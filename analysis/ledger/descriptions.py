"""Claims as ``opticoll list claims`` and ``opticoll describe`` show them, without measuring anything."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, TypedDict

from opticoll import plugins
from opticoll.analysis.describe import Description
from opticoll.analysis.ledger.ledger import claims
from opticoll.docstrings import without_sections
from opticoll.solvers.task import plain

if TYPE_CHECKING:
    from opticoll.types import Json


class ClaimNameRow(TypedDict):
    """A claim of the ledger, without its measurement."""

    name: str
    id: str
    paper: str
    where: str
    claim: str


def listed() -> list[ClaimNameRow]:
    """The claims."""
    return [
        {"name": one.id, "id": one.id, "paper": one.paper, "where": one.where, "claim": one.claim}
        for one in claims().values()
    ]


def describe(name: str) -> Description | None:
    """The claim of that name; None if there is none."""
    claim = claims().get(name) if "." in name else None
    if claim is None:
        return None
    facts: dict[str, Json] = {
        "expected": plain(claim.expected),
        "tolerance": claim.tolerance,
        "weight": str(claim.weight),
        "natural reading": claim.natural.name if claim.natural else "none: lost content or unpublished inputs decide",
    }
    if claim.measure is None:
        facts["not testable"] = claim.reason
    body = "" if claim.measure is None else (inspect.getdoc(claim.measure) or "").partition("\n")[2]
    return Description(
        kind="claim",
        name=name,
        title=claim.claim,
        text=without_sections(body),
        source=", ".join(filter(None, (claim.paper, claim.where))),
        example=f"opticoll claims {name}{plugins.options() if plugins.involved([claim]) else ''}",
        facts=facts,
    )
