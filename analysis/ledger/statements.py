"""The claims as the papers state them: rows of data, each joined to the function that measures it.

A paper's folder has ``claims.toml``: a table for every claim, with the fields of
:class:`~opticoll.analysis.ledger.claim.Claim`, and a table for every natural reading that claims name. Without
``natural`` a claim must hold as stated; with ``natural = "none"`` lost or unpublished content decides.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import TYPE_CHECKING

from opticoll.analysis.ledger.claim import Claim
from opticoll.analysis.ledger.verdict import AS_STATED, NaturalReading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.analysis.ledger.claim import Measure


def claims_of(paper: str, measures: Mapping[str, Measure]) -> list[Claim]:
    """The claims of a paper, in the order of its file.

    Parameters
    ----------
    paper
        Short name of the paper.
    measures
        The functions that measure claims, by their ids; a claim without one has a ``reason``.
    """
    text = files(f"opticoll.analysis.papers.{paper}").joinpath("claims.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    readings = {name: NaturalReading(**fields) for name, fields in data["readings"].items()}
    natural = {"none": None, "as-stated": AS_STATED, **readings}
    return [
        Claim(
            id=f"{paper}.{name}",
            paper=paper,
            measure=measures.get(f"{paper}.{name}"),
            natural=natural[fields.pop("natural", "as-stated")],
            **fields,
        )
        for name, fields in data["claims"].items()
    ]
