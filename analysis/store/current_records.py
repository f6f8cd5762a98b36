"""Which record is the current answer to a task, where a store holds several.

A task is a formulation, an instance, a method and form, settings and limits, as they were requested. Its runs differ in
their resume keys if a plug-in, a file, opticoll or a solver has changed between them. The version of the latest run is
current, all others are superseded. A study that finds an answer in the store confirms it, which counts as a run: after
a change is taken back, the earlier answer is current again. Runs that were not tried, since a solver or memory was
missing, count only where there are no others.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from opticoll import package_code, plugins
from opticoll.analysis.store import schema
from opticoll.errors import BadInput
from opticoll.shared_files import rewrite
from opticoll.solvers.task import Proof, Requested, Termination

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import duckdb
    import pandas as pd

#: What identifies a task, next to its instance and settings: the columns of its request.
_REQUEST = [name for name in Requested.__struct_fields__ if name != "settings"]
#: Settings as sorted words; files count by their names, since their contents may change.
_SETTINGS = r"""list_sort([
    concat(name, '=', regexp_replace(json_extract_string(requested_settings, name), '#sha256=[0-9a-f]+$', ''))
    for name in json_keys(requested_settings)])"""
#: Instances that are made in Python have no other name than their contents.
_INSTANCE = "CASE WHEN instance LIKE 'custom%' THEN instance_hash ELSE instance END"
_TASK = ", ".join(["formulation", _INSTANCE, _SETTINGS, *(f"requested_{name}" for name in _REQUEST)])
_VERSION = "coalesce(key, id)"
#: The remedy for what other code computed.
AGAIN = "`opticoll study NAME --dry-run` says what would run again"
#: Terminations of runs that were not tried.
_UNTRIED = (Termination.UNAVAILABLE, Termination.REFUSED)

#: Proofs from the strongest to none: the order in which ``latest`` prefers the runs of one version.
_PROOFS = [proof.value for proof in Proof]


class Confirmation(msgspec.Struct):
    """Records that a study found to hold at a time (UTC, ISO)."""

    at: str
    ids: list[str]


def confirm(folder: Path, ids: Iterable[str]) -> None:
    """Note in a folder that records still hold; a later note on the same records replaces this one."""
    listed = sorted(ids)
    if not listed:
        return
    folder.mkdir(parents=True, exist_ok=True)
    name = hashlib.sha256("\n".join(listed).encode()).hexdigest()[:32]
    note = Confirmation(datetime.now(UTC).isoformat().replace("+00:00", "Z"), listed)
    rewrite(folder / f"{name}.json", msgspec.json.encode(note))


def confirmations(folder: Path) -> Iterator[tuple[str, str]]:
    """Record ids and times at which they were confirmed; a damaged note is skipped with a warning."""
    bad = []
    for path in sorted(folder.glob("*.json")):
        try:
            note = msgspec.json.decode(path.read_bytes(), type=Confirmation)
        except (OSError, msgspec.MsgspecError) as error:
            bad.append(schema.damaged(path, error))
            continue
        yield from ((name, note.at) for name in note.ids)
    schema.warn(bad)


def _same_code() -> str:
    """SQL for whether the code that is here made a run: opticoll's own, and that of its plug-ins if it used some.

    It is NULL if that is unknown: for old records, and for plug-ins that are not loaded.
    """
    with suppress(BadInput):  # a plug-in that cannot be loaded stays unknown
        plugins.load_configured()
    known = json.dumps(plugins.digests()).replace("'", "''")
    changed = f"""len([name for name in json_keys(plugins)
        if json_extract_string('{known}', name) <> json_extract_string(plugins, name)]) > 0"""
    own = "environment.code"
    return f"""CASE WHEN {own} IS NULL THEN NULL WHEN {own} <> '{package_code.digest()}' THEN false
        WHEN plugins IS NULL THEN true WHEN {changed} THEN false WHEN json_contains('{known}', plugins) THEN true END"""


def code_marks(same: pd.Series[Any]) -> pd.Series[str]:
    """Marks of rows by their column ``same_code``: nothing for the code that is here, else "other" or "unknown"."""
    import pandas as pd

    return same.astype(object).map(lambda one: "unknown" if pd.isna(one) else "" if one else "other")


def code_note(marks: Iterable[str]) -> str | None:
    """How many rows have the marks of :func:`code_marks`, in words; None if none has."""
    counts = Counter(marks)
    made = [f"by {mark} code: {counts[mark]}" for mark in ("other", "unknown") if counts[mark]]
    return f"computed {', '.join(made)}, of {counts.total()}" if made else None


def create_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the views ``runs`` and ``latest`` over the tables ``records`` and ``confirmed`` (id, moment)."""
    columns = ", ".join(f'{expression} AS "{name}"' for name, _, expression in schema.flat_columns())
    columns += f", {_same_code()} AS same_code"
    untried = ", ".join(f"'{word}'" for word in _UNTRIED)
    connection.execute(
        f"""
        CREATE VIEW runs AS
        WITH flat AS (SELECT {columns} FROM records),
        dated AS (
            SELECT flat.*, {_VERSION} AS version_, coalesce(termination NOT IN ({untried}), true) AS tried_,
                greatest(finished, (SELECT max(moment) FROM confirmed WHERE confirmed.id = flat.id)) AS seen_
            FROM flat
        )
        SELECT * EXCLUDE (version_, tried_, seen_), version_ <> first_value(version_) OVER (
            PARTITION BY {_TASK} ORDER BY tried_ DESC, seen_ DESC NULLS LAST, attempt DESC NULLS LAST, id
        ) AS superseded
        FROM dated
        """
    )
    failures = ", ".join(f"'{word}'" for word in (*schema.FAILURES, schema.UNAVAILABLE))
    connection.execute(
        f"""
        CREATE VIEW latest AS SELECT * FROM runs QUALIFY row_number() OVER (
            PARTITION BY {_VERSION}
            ORDER BY answer DESC, coalesce(verified, false) DESC, coalesce(termination NOT IN ({failures}), false) DESC,
                coalesce(list_position({_PROOFS}, proof), 99), gap ASC NULLS LAST,
                finished DESC NULLS LAST, attempt DESC NULLS LAST, id
        ) = 1
        """
    )
