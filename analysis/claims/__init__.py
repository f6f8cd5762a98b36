"""The claims ledger: the papers' numbers, what we measure for them, and the verdict.

A module of this package with ``CLAIMS`` (a tuple of :class:`~analysis.claims.base.Claim`) adds its own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from analysis.claims.base import Claim, Laboratory, Measurement, Verdict, within
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

    Raises
    ------
    BadInput
        For an id that is not in the ledger, before any is examined.
    """
    known = claims()
    for name in identifiers:
        if name not in known:
            hint = nearest(name, known) if known else "no claims are registered yet"
            msg = f"no claim {name!r}; {hint}"
            raise BadInput(msg)
    chosen = list(identifiers) or list(known)
    return (known[name].examine(Laboratory(store)) for name in chosen)


__all__ = ["Claim", "Laboratory", "Measurement", "Verdict", "claims", "ledger", "within"]
