"""The ledger: the claims of the papers, our measurements of them, and the verdicts.

Claims are the ``CLAIMS`` of the modules named ``claims`` or ``..._claims`` in :mod:`opticoll.analysis.papers`.

A store keeps every measurement, and the latest one of each claim is shown. The file ``claims/ID~TIME-RANDOM.json`` of
the store holds one row of :meth:`~opticoll.analysis.ledger.claim.Claim.examine` with ``schema``, ``measured_at`` (UTC),
``seconds`` and ``environment``. Files are written atomically and never changed.
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
#: Size limit of a row; a larger file is rejected.
LARGEST_BYTES = 1 << 20
_TEXTS = ("id", "paper", "where", "claim", "verdict", "reason", "measured_at")


def folder(store: Store) -> Path:
    """The folder of the ledger in a store."""
    return store.root / "claims"


def keep(store: Store, row: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Add a row to the store with its date; returns the row as it is stored.

    Parameters
    ----------
    store
        The store; its folder is created if missing.
    row
        One row of the ledger.
    seconds
        Duration of the measurement; stored results were reused.

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
    """Read the latest row of every claim id in ``known``, in that order; claims never measured are left out.

    Raises
    ------
    BadFile
        If a file is not a valid row.
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
        msg = f"store: {path} is not a valid row of the ledger ({error}); move it out of the store"
        raise BadFile(msg) from error
    return dict(row)


def _check(row: Any, name: str) -> None:
    """Check the fields of a row.

    Raises
    ------
    ValueError
        If a field is missing or has the wrong type.
    """
    if not isinstance(row, dict) or not all(isinstance(row.get(field), str) for field in _TEXTS):
        msg = f"not an object with the strings {', '.join(_TEXTS)}"
        raise ValueError(msg)
    if row["id"] != name or row["verdict"] not in set(Verdict):
        msg = f"unexpected id {row['id']!r} or verdict {row['verdict']!r}"
        raise ValueError(msg)
    for field in ("instances", "records"):
        if not isinstance(row.get(field), list) or not all(isinstance(item, str) for item in row[field]):
            msg = f"{field} is not a list of strings"
            raise ValueError(msg)
    spread = row.get("tightness")
    if spread is not None and not (
        isinstance(spread, dict) and all(isinstance(spread.get(k), (int, float)) for k in ("min", "median", "max"))
    ):
        msg = "tightness lacks min, median or max"
        raise ValueError(msg)


@cache
def claims() -> dict[str, Claim]:
    """All claims by id."""
    return {claim.id: claim for claim in contributed(modules_about("claims"), "CLAIMS")}


def ledger(
    identifiers: Sequence[str] = (), store: Store | None = None, *, resume: bool = False
) -> Iterator[dict[str, Any]]:
    """Measure the selected claims (:func:`chosen`) and yield their rows one by one.

    Each row is stored as soon as it is measured. With ``resume``, the latest stored row of a claim is returned instead
    of a new measurement if it did not fail, states the same claim and was measured by this version of the code.

    Raises
    ------
    BadInput
        For an unknown id, before anything is measured.
    BadFile
        With ``resume``, if a stored file is not a valid row.
    """
    wanted = chosen(identifiers)
    done: dict[str, dict[str, Any]] = {}
    if resume and store is not None:
        current = _version(plain({"environment": environment()}))
        rows = latest(store, [claim.id for claim in wanted])
        done = {row["id"]: row for row in rows if not row.get("failed") and _version(row) == current}
    return (_row(claim, store, done.get(claim.id)) for claim in wanted)


def kept(identifiers: Sequence[str], store: Store) -> list[dict[str, Any]]:
    """Read the latest stored rows of the selected claims (:func:`chosen`) without measuring anything.

    Raises
    ------
    BadInput
        As :func:`ledger`.
    BadFile
        If a stored file is not a valid row.
    """
    return latest(store, [claim.id for claim in chosen(identifiers)])


def chosen(identifiers: Sequence[str] = ()) -> list[Claim]:
    """Select claims by id, by paper (``optree``) or by pattern (``topoopt.tax*``), each once; all without identifiers.

    Raises
    ------
    BadInput
        If an identifier matches no claim.
    """
    known = claims()
    selected: dict[str, Claim] = {}
    for name in identifiers:
        matches = [claim for claim in known.values() if name in (claim.id, claim.paper) or fnmatchcase(claim.id, name)]
        if not matches:
            msg = f"no claim {name!r}; {_near(name, known)}"
            raise BadInput(msg)
        selected |= {claim.id: claim for claim in matches}
    return list(selected.values()) if identifiers else list(known.values())


def _near(name: str, known: dict[str, Claim]) -> str:
    """A hint for an unknown identifier: the nearest ids, or the papers."""
    if not known:
        return "no claims are registered yet"
    papers = sorted({claim.paper for claim in known.values()})
    if get_close_matches(name, [*known, *papers]):
        return nearest(name, [*known, *papers])
    return f"`opticoll list claims` lists them; papers: {', '.join(papers)}"


def _version(row: dict[str, Any]) -> tuple[Any, ...] | None:
    origin = row.get("environment")
    return tuple(origin.get(name) for name in ("opticoll", "git_commit")) if isinstance(origin, dict) else None


def _row(claim: Claim, store: Store | None, done: dict[str, Any] | None) -> dict[str, Any]:
    if done is not None and all(
        done.get(name) == plain(getattr(claim, name)) for name in ("claim", "expected", "tolerance")
    ):
        return done
    started = time.monotonic()
    row = claim.examine(Laboratory(store))
    return row if store is None else keep(store, row, time.monotonic() - started)


__all__ = ["Claim", "Laboratory", "Measurement", "Verdict", "chosen", "claims", "kept", "ledger"]
