"""The ledger: the claims of the papers, our measurements of them, and the verdicts."""

from __future__ import annotations

import json
import secrets
import time
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from opticoll import package_code, plugins
from opticoll.analysis.ledger.claim import Claim, ClaimRow, Laboratory, Measurement
from opticoll.analysis.ledger.statements import claims_of
from opticoll.analysis.papers.paper_figure import PAPERS, modules_about
from opticoll.analysis.store.records import CLAIMS
from opticoll.analysis.store.schema import environment
from opticoll.errors import BadFile, BadInput
from opticoll.instances.spec import contributed
from opticoll.nearest_names import nearest
from opticoll.shared_files import publish
from opticoll.solvers.process.executor import JobCrashed, make_executor
from opticoll.solvers.task import Environment, plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from opticoll.analysis.store.records import Store


#: Version of the rows; rows of other versions are not read.
VERSION = 3
#: Size limit of a row; a larger file is rejected.
LARGEST_BYTES = 1 << 20


def folder(store: Store) -> Path:
    """The folder of the ledger in a store."""
    return store.root / CLAIMS


def keep(store: Store, row: ClaimRow, seconds: float) -> ClaimRow:
    """Add a row to the store with its date; return the row as stored.

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
    dated = msgspec.structs.replace(
        row,
        schema=VERSION,
        measured_at=now.isoformat(timespec="microseconds"),
        seconds=seconds,
        environment=_environment(),
    )
    line = json.dumps(plain(dated), allow_nan=False, ensure_ascii=False) + "\n"
    name = f"{row.id}~{now:%Y%m%dT%H%M%S.%f}-{secrets.token_hex(4)}.json"
    publish(folder(store) / name, partial(_write, line=line))
    return dated


def _write(file: BinaryIO, line: str) -> None:
    file.write(line.encode())


def latest(store: Store, known: Iterable[str]) -> list[ClaimRow]:
    """Read the latest row of every claim id in ``known``, in that order; claims never measured are omitted.

    A claim whose latest row was stored by another version of this format counts as never measured.

    Raises
    ------
    BadFile
        If a file is not a valid row.
    """
    last: dict[str, Path] = {}
    if folder(store).is_dir():
        for path in sorted(folder(store).glob("*~*.json"), key=lambda path: path.name.rpartition("~")[2]):
            last[path.name.rpartition("~")[0]] = path
    rows = [_read(last[name], name) for name in known if name in last]
    return [row for row in rows if row is not None]


def _read(path: Path, name: str) -> ClaimRow | None:
    try:
        if path.stat().st_size > LARGEST_BYTES:
            msg = f"larger than {LARGEST_BYTES} bytes"
            raise ValueError(msg)
        fields = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(schema := fields.get("schema"), int) and schema != VERSION:
            return None
        row = ClaimRow.read(fields)
        if row.id != name:
            msg = f"unexpected id {row.id!r}"
            raise ValueError(msg)
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        msg = f"store: {path} is not a valid row of the ledger ({error}); move it out of the store"
        raise BadFile(msg) from error
    return row


@cache
def _ours() -> dict[str, Claim]:
    measures = {name: one for part in contributed(modules_about("claims"), "MEASURES") for name, one in part.items()}
    return {claim.id: claim for paper in PAPERS for claim in claims_of(paper, measures)}


def package_names() -> frozenset[str]:
    """Ids of the claims of the package."""
    return frozenset(_ours())


def claims() -> dict[str, Claim]:
    """All claims by id."""
    plugins.load_installed()
    return {**_ours(), **{claim.id: claim for claim in plugins.contributed("CLAIM")}}


def ledger(
    identifiers: Sequence[str] = (),
    store: Store | None = None,
    *,
    resume: bool = False,
    seed: int = 0,
    jobs: int | None = None,
) -> Iterator[ClaimRow]:
    """Measure the selected claims (:func:`chosen`) and yield their rows one by one.

    Up to ``jobs`` claims are measured at a time, in local processes if there are several; rows then come as they are
    measured, otherwise in order. Each row is stored as soon as it is measured. With ``resume``, the latest stored row
    of a claim is returned instead of a new measurement if it did not fail, states the same claim and was measured by
    this version of the code.

    ``seed`` is the number of the random sample (:class:`~opticoll.analysis.ledger.claim.Laboratory`). The rows of
    samples other than 0 serve to check the verdicts; they are neither stored nor resumed.

    Raises
    ------
    BadInput
        For an unknown id, before anything is measured.
    BadFile
        With ``resume``, if a stored file is not a valid row.
    """
    selected = chosen(identifiers)
    stored: dict[str, ClaimRow] = {}
    if resume and store is not None and not seed:
        rows, current = latest(store, [claim.id for claim in selected]), _version(_environment())
        rows = [row for row in rows if not row.failed and _version(row.environment) == current]
        known = {claim.id: claim for claim in selected}
        stored = {row.id: row for row in rows if _states(row, known[row.id])}
    if jobs is None or jobs == 1:
        return (stored.get(claim.id) or _measured(claim, store, seed) for claim in selected)
    return _in_processes(selected, store, stored, seed, jobs)


def kept(identifiers: Sequence[str], store: Store) -> list[ClaimRow]:
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
    hint = nearest(name, [*known, *papers])
    return hint if hint.startswith("did") else f"`opticoll list claims` lists them; papers: {', '.join(papers)}"


def _version(origin: Environment | None) -> tuple[str | None, str | None] | None:
    return None if origin is None else (origin.opticoll, origin.code)


def _environment() -> Environment:
    """That of this process, with the digest of all code: a claim is measured by the code of its paper, too."""
    return msgspec.structs.replace(environment(), code=package_code.whole_digest())


def _states(row: ClaimRow, claim: Claim) -> bool:
    """Whether a stored row states this claim, of the same plug-in if it is from one."""
    return row.plugins == plugins.digests(plugins.involved([claim])) and all(
        plain(row[name]) == plain(getattr(claim, name))
        for name in ("claim", "expected", "tolerance", "scope", "natural")
    )


def _measured(claim: Claim, store: Store | None, seed: int, crash: JobCrashed | None = None) -> ClaimRow:
    """Measure a claim; ``crash`` is the error of a process that died while measuring it."""
    started = time.monotonic()
    tried = claim if crash is None else replace(claim, measure=partial(_raise, crash))
    row = tried.examine(Laboratory(store, seed=seed))
    row = msgspec.structs.replace(row, plugins=plugins.digests(plugins.involved([claim])))
    return row if store is None or seed else keep(store, row, time.monotonic() - started)


def _in_processes(
    selected: Sequence[Claim], store: Store | None, stored: Mapping[str, ClaimRow], seed: int, jobs: int
) -> Iterator[ClaimRow]:
    yield from stored.values()
    missing = [claim for claim in selected if claim.id not in stored]
    with make_executor(jobs) as executor:
        tasks = [(claim.id, store, seed) for claim in missing]
        for index, result in executor.map_unordered(_measured_by_id, tasks):
            if isinstance(result, JobCrashed):  # affects only this claim
                yield _measured(missing[index], store, seed, result)
            elif isinstance(result, Exception):
                raise result
            else:
                yield result


def _measured_by_id(task: tuple[str, Store | None, int]) -> ClaimRow:
    identifier, store, seed = task
    return _measured(claims()[identifier], store, seed)


def _raise(error: Exception, _: Laboratory) -> Measurement:
    raise error
