"""The claims ledger: the papers' numbers, what we measure for them, and the verdict.

A module of this package with ``CLAIMS`` (a tuple of :class:`~analysis.claims.base.Claim`) adds its own.
"""

from __future__ import annotations

import time
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any

from analysis.claims import journal
from analysis.claims.base import Claim, Laboratory, Measurement, Verdict
from analysis.environment import environment
from analysis.schema import plain
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


def ledger(
    identifiers: Sequence[str] = (), store: Store | None = None, *, resume: bool = False
) -> Iterator[dict[str, Any]]:
    """Examine the claims asked for (:func:`chosen`); one row after the other.

    Each row is kept in the store as soon as it is there (:mod:`analysis.claims.journal`). With ``resume`` a claim is
    not measured again if the last row that the store has of it did not fail, says the same and was measured by this
    very version: that row is given.

    Raises
    ------
    BadInput
        For an id that is not in the ledger, before any is examined.
    BadFile
        With ``resume``, if the store holds something that is no row.
    """
    wanted = chosen(identifiers)
    done: dict[str, dict[str, Any]] = {}
    if resume and store is not None:
        here = _version({"environment": environment()})
        rows = journal.latest(store, [claim.id for claim in wanted])
        done = {row["id"]: row for row in rows if not row.get("failed") and _version(row) == here}
    return (_row(claim, store, done.get(claim.id)) for claim in wanted)


def kept(identifiers: Sequence[str], store: Store) -> list[dict[str, Any]]:
    """Read the last rows that the store keeps of the claims asked for (:func:`chosen`); nothing is measured.

    Raises
    ------
    BadInput
        As :func:`ledger`.
    BadFile
        If the store holds something that is no row.
    """
    return journal.latest(store, [claim.id for claim in chosen(identifiers)])


def chosen(identifiers: Sequence[str] = ()) -> list[Claim]:
    """The claims asked for, each once: by id, by paper (``optree``), or by pattern (``topoopt.tax*``); all if none is.

    Raises
    ------
    BadInput
        For what names no claim.
    """
    known = claims()
    found: dict[str, Claim] = {}
    for name in identifiers:
        here = [claim for claim in known.values() if name in (claim.id, claim.paper) or fnmatchcase(claim.id, name)]
        if not here:
            msg = f"no claim {name!r}; {_near(name, known)}"
            raise BadInput(msg)
        found |= {claim.id: claim for claim in here}
    return list(found.values()) if identifiers else list(known.values())


def _near(name: str, known: dict[str, Claim]) -> str:
    """What may have been meant: the nearest ids, or else the papers."""
    if not known:
        return "no claims are registered yet"
    papers = sorted({claim.paper for claim in known.values()})
    if get_close_matches(name, [*known, *papers]):
        return nearest(name, [*known, *papers])
    return f"`opticoll list claims` names them all; papers: {', '.join(papers)}"


def _version(row: dict[str, Any]) -> tuple[Any, ...] | None:
    where = row.get("environment")
    return tuple(where.get(name) for name in ("opticoll", "git_commit")) if isinstance(where, dict) else None


def _row(claim: Claim, store: Store | None, done: dict[str, Any] | None) -> dict[str, Any]:
    if done is not None and all(
        done.get(name) == plain(getattr(claim, name)) for name in ("claim", "expected", "tolerance")
    ):
        return done
    started = time.monotonic()
    row = claim.examine(Laboratory(store))
    return row if store is None else journal.keep(store, row, time.monotonic() - started)


__all__ = ["Claim", "Laboratory", "Measurement", "Verdict", "chosen", "claims", "kept", "ledger"]
