"""The claims ledger: the papers' numbers, what we measure for them, and the verdict.

A module of this package with ``CLAIMS`` (a tuple of :class:`~opticoll.analysis.ledger.claim.Claim`) adds its own.

The ledger's rows in a results store: every measurement of a claim is kept, the latest one is shown.

``claims/ID~TIME-RANDOM.json`` beside the records: one row as :meth:`~opticoll.analysis.ledger.claim.Claim.examine`
gives it, with
``schema``, ``measured_at`` (UTC), ``seconds`` and the ``environment``. Files appear whole and are never changed.
"""

from __future__ import annotations

import json
import secrets
import time
from datetime import UTC, datetime
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import TYPE_CHECKING, Any, BinaryIO

from opticoll.analysis.ledger.claim import Claim, Laboratory, Measurement, Verdict
from opticoll.analysis.papers import modules_about
from opticoll.analysis.store.publishing import publish
from opticoll.analysis.store.schema import environment, plain
from opticoll.errors import BadFile, BadInput
from opticoll.instances.registry import contributed
from opticoll.instances.spec import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from opticoll.analysis.store import Store


VERSION = 1
#: No row is larger; a file that is has not been written here.
LARGEST_BYTES = 1 << 20
_TEXTS = ("id", "paper", "where", "claim", "verdict", "reason", "measured_at")


def folder(store: Store) -> Path:
    """Where a store keeps the ledger."""
    return store.root / "claims"


def keep(store: Store, row: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Put a row into the store, dated; the row as it is kept.

    Parameters
    ----------
    store
        Its folder is made if missing.
    row
        One row of the ledger.
    seconds
        How long the measurement took, with the answers that the store had.

    Raises
    ------
    BadInput
        If the folder cannot be written.
    """
    now = datetime.now(UTC)
    kept: dict[str, Any] = plain(
        {**row, "schema": VERSION, "measured_at": f"{now.isoformat(timespec='microseconds')}", "seconds": seconds,
         "environment": environment()}
    )  # fmt: skip
    line = json.dumps(kept, allow_nan=False, ensure_ascii=False) + "\n"
    name = f"{row['id']}~{now:%Y%m%dT%H%M%S.%f}-{secrets.token_hex(4)}.json"
    publish(folder(store) / name, partial(_write, line=line))
    return kept


def _write(file: BinaryIO, line: str) -> None:
    file.write(line.encode())


def latest(store: Store, known: Iterable[str]) -> list[dict[str, Any]]:
    """Read the last kept row of each claim of ``known``, in that order; claims never measured are left out.

    Raises
    ------
    BadFile
        If a file is no row of a ledger.
    """
    last: dict[str, Path] = {}
    if folder(store).is_dir():
        for path in sorted(folder(store).glob("*~*.json"), key=lambda path: path.name.rpartition("~")[2]):
            last[path.name.rpartition("~")[0]] = path
    return [_read(last[name], name) for name in known if name in last]


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            msg = f"larger than {LARGEST_BYTES} bytes"
            raise ValueError(msg)
        row = json.loads(path.read_text(encoding="utf-8"))
        _check(row, name)
    except (OSError, ValueError, RecursionError) as error:
        msg = f"store: {path} is no row of the ledger ({error}); move it out of the store"
        raise BadFile(msg) from error
    return dict(row)


def _check(row: Any, name: str) -> None:
    """Refuse what is not shaped like a row.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    if not isinstance(row, dict) or not all(isinstance(row.get(field), str) for field in _TEXTS):
        msg = f"no object with the texts {', '.join(_TEXTS)}"
        raise ValueError(msg)
    if row["id"] != name or row["verdict"] not in set(Verdict):
        msg = f"it says id {row['id']!r} and verdict {row['verdict']!r}"
        raise ValueError(msg)
    for field in ("instances", "records"):
        if not isinstance(row.get(field), list) or not all(isinstance(item, str) for item in row[field]):
            msg = f"{field} is no list of texts"
            raise ValueError(msg)
    spread = row.get("tightness")
    if spread is not None and not (
        isinstance(spread, dict) and all(isinstance(spread.get(k), (int, float)) for k in ("min", "median", "max"))
    ):
        msg = "tightness has no min, median and max"
        raise ValueError(msg)


@cache
def claims() -> dict[str, Claim]:
    """All claims by id."""
    return {one.id: one for one in contributed(modules_about("claims"), "CLAIMS")}


def ledger(
    identifiers: Sequence[str] = (), store: Store | None = None, *, resume: bool = False
) -> Iterator[dict[str, Any]]:
    """Examine the claims asked for (:func:`chosen`); one row after the other.

    Each row is kept in the store as soon as it is there (:mod:`opticoll.analysis.ledger`). With ``resume`` a claim is
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
        rows = latest(store, [claim.id for claim in wanted])
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
    return latest(store, [claim.id for claim in chosen(identifiers)])


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
    return row if store is None else keep(store, row, time.monotonic() - started)


__all__ = ["Claim", "Laboratory", "Measurement", "Verdict", "chosen", "claims", "kept", "ledger"]
