"""The ledger's rows in a results store: every measurement of a claim is kept, the latest one is shown.

``claims/ID~TIME-RANDOM.json`` beside the records: one row as :meth:`~analysis.claims.base.Claim.examine` gives it, with
``schema``, ``measured_at`` (UTC), ``seconds`` and the ``environment``. Files appear whole and are never changed.
"""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO

from analysis.claims.base import Verdict
from analysis.environment import environment
from analysis.publish import publish
from analysis.schema import plain
from instances.errors import BadFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from analysis.store import Store

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
