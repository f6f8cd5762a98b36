"""The claims ledger: the papers' numbers, what we measure for them, and the verdict.

A module of this package with ``CLAIMS`` (a tuple of :class:`~analysis.claims.base.Claim`) adds its own.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, Any

from analysis.claims import journal
from analysis.claims.base import Claim, Laboratory, Measurement, Verdict
from instances.errors import BadInput
from instances.registry import contributed
from instances.spec import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analysis.store import Store


@cache
def claims() -> dict[str, Claim]:
    """All claims by id."""
    return {one.id: one for one in contributed(__name__, "CLAIMS")}


def ledger(identifiers: Sequence[str] = (), store: Store | None = None) -> Iterator[dict[str, Any]]:
    """Examine the claims asked for, all of them if none is named; one row after the other.

    Each row is kept in the store as soon as it is there (:mod:`analysis.claims.journal`).

    Raises
    ------
    BadInput
        For an id that is not in the ledger, before any is examined.
    """
    return (_examined(claim, store) for claim in _chosen(identifiers))


def kept(identifiers: Sequence[str], store: Store) -> list[dict[str, Any]]:
    """Read the last rows that the store keeps of the claims asked for, all if none is named; nothing is measured.

    Raises
    ------
    BadInput
        As :func:`ledger`.
    BadFile
        If the store holds something that is no row.
    """
    return journal.latest(store, [claim.id for claim in _chosen(identifiers)])


def _chosen(identifiers: Sequence[str]) -> list[Claim]:
    known = claims()
    for name in identifiers:
        if name not in known:
            hint = nearest(name, known) if known else "no claims are registered yet"
            msg = f"no claim {name!r}; {hint}"
            raise BadInput(msg)
    return [known[name] for name in dict.fromkeys(identifiers)] or list(known.values())


def _examined(claim: Claim, store: Store | None) -> dict[str, Any]:
    started = time.monotonic()
    row = claim.examine(Laboratory(store))
    return row if store is None else journal.keep(store, row, time.monotonic() - started)


__all__ = ["Claim", "Laboratory", "Measurement", "Verdict", "claims", "kept", "ledger"]
