"""Compare a reading of an MPS or LP file with what HiGHS and SCIP read.

Both run in a process of their own, with limits on time and memory: a file can crash only that process. A reading is
accepted if at least one of them reads the same program and neither reads another one. One that does not read the file
at all, or is known to misread a construct in it, has no vote. Of a large file, the slower one is asked only if the
faster one does not confirm the reading.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.readers.program_draft import infinite_beyond, quoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances.readers.program_draft import ProgramDraft, Witness

#: Limits of the readers' process: wall clock [s] and data segment [bytes].
TIME_LIMIT_S, MEMORY_LIMIT = 600.0, 16 << 30
#: Readers, the faster one first: with 10^6 nonzeros HiGHS takes 2.0 s for MPS and 3.9 s for LP, SCIP 3.9 s and 3.2 s.
WITNESSES: dict[str, tuple[Witness, ...]] = {".mps": ("HiGHS", "SCIP"), ".lp": ("SCIP", "HiGHS")}
#: Size [bytes] from which the slower one is asked only if the faster one does not confirm the reading.
LARGE = 4 << 20
#: Relative difference of numbers that a reader may add: HiGHS computes ranges; SCIP rounds to its tolerance.
_TOLERANCE: dict[Witness, float] = {"HiGHS": 1e-14, "SCIP": 1e-9}
#: Coefficients that SCIP takes for 0.
_DROPPED_BY_SCIP = 1e-9
#: Rows and columns named in a difference.
_MOST_SHOWN = 3


def compare_with_others(draft: ProgramDraft, content: bytes, suffix: str, where: str) -> None:
    """Refuse a reading that no other reader confirms.

    Parameters
    ----------
    draft
        Our reading.
    content, suffix
        The file: its contents and ``.mps`` or ``.lp``.
    where
        How messages name the file.

    Raises
    ------
    BadFile
        If another reader reads another program (with the first differences), or none reads this one.
    """
    asked = [witness for witness in WITNESSES[suffix] if witness not in draft.misread]
    reasons = {witness: f"misreads {what}" for witness, what in draft.misread.items()}
    confirmed = False
    for group in [[witness] for witness in asked] if len(content) >= LARGE else [asked]:
        readings = _readings(draft, content, suffix, where, group)
        for witness in group:
            reading = readings[witness]
            if isinstance(reading, str):
                reasons[witness] = reading
                continue
            difference = _difference(draft, reading, witness)
            if difference:
                msg = f"{where}: two readings differ: {difference}; write the file so that all readers agree"
                raise BadFile(msg)
            confirmed = True
        if confirmed:
            break
    if not confirmed:
        said = "; ".join(f"{witness}: {reason[:150]}" for witness, reason in reasons.items())
        msg = f"{where}: no second reader confirms what it states ({said}); write it in plainer MPS or LP"
        raise BadFile(msg)


@dataclass
class _Reading:
    """What another reader read: its arrays, and the position of its rows and columns in ours."""

    arrays: dict[str, NDArray[Any]]
    names: dict[str, list[str]]


def _readings(
    draft: ProgramDraft, content: bytes, suffix: str, where: str, asked: list[Witness]
) -> dict[Witness, _Reading | str]:
    """Reading of every reader, or why it has none."""
    found: dict[Witness, _Reading | str] = {}
    with tempfile.TemporaryDirectory(prefix="opticoll-matrix-") as name:
        folder = Path(name)
        plain = folder / f"program{suffix}"
        plain.write_bytes(content)
        files = dict.fromkeys(asked, plain)
        for witness in asked:
            if witness in draft.copies:
                files[witness] = folder / f"for-{witness}{suffix}"
                files[witness].write_bytes(draft.copies[witness]())
        left = list(asked)
        while left:
            ended = _run(folder, {witness: files[witness] for witness in left}, where)
            for witness in list(left):
                reading = _result(folder, witness)
                if reading is not None:
                    found[witness] = reading
                    left.remove(witness)
            if left:  # the process ended in the first of these
                found[left.pop(0)] = ended
    return found


def _run(folder: Path, files: dict[Witness, Path], where: str) -> str:
    """Run the readers; return how the process ended."""
    script = Path(__file__).with_name("matrix_reader.py")
    tasks = [f"{witness.lower()}={file}" for witness, file in files.items()]
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(script), str(folder), *tasks],
            capture_output=True,
            timeout=TIME_LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            preexec_fn=_limit_memory,
        )
    except subprocess.TimeoutExpired:
        msg = f"{where}: reading it took more than {TIME_LIMIT_S:.0f} s; use a smaller file"
        raise BadFile(msg) from None
    last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
    return f"its process ended with status {done.returncode}" + (f" ({last[0][:100]})" if last else "")


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # this platform has no such limits
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = MEMORY_LIMIT if hard == resource.RLIM_INFINITY else min(MEMORY_LIMIT, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _result(folder: Path, witness: Witness) -> _Reading | str | None:
    """What a reader has written; None if nothing."""
    stem = witness.lower()
    if (reason := folder / f"{stem}.txt").exists():
        return reason.read_text(encoding="utf-8")
    if not (folder / f"{stem}.json").exists():
        return None
    with np.load(folder / f"{stem}.npz", allow_pickle=False) as saved:
        arrays = {key: saved[key] for key in saved.files}
    return _Reading(arrays, json.loads((folder / f"{stem}.json").read_text(encoding="utf-8")))


def _difference(draft: ProgramDraft, reading: _Reading, witness: Witness) -> str:
    """The first differences between two readings, in words; empty if there are none."""
    other = reading.arrays
    columns = _positions(draft.columns, reading.names["columns"])
    rows = _positions(draft.rows, reading.names["rows"])
    for what, ours, theirs, places in (
        ("column", draft.columns, reading.names["columns"], columns),
        ("row", draft.rows, reading.names["rows"], rows),
    ):
        if places is None:
            only = [name for name in ours if name not in set(theirs)][:1] or ours[:1]
            extra = [name for name in theirs if name not in set(ours)][:1] or theirs[:1]
            shown = ", ".join(map(quoted, only)) or "none", ", ".join(map(quoted, extra)) or "none"
            return f"{len(ours)} {what}s ({shown[0]}) here, {len(theirs)} ({shown[1]}) for {witness}"
    assert columns is not None
    assert rows is not None
    tolerance = _TOLERANCE[witness]
    ours_sense, theirs_sense = draft.sense or "min", "max" if other["maximise"] else "min"
    if ours_sense != theirs_sense:
        return f"the sense is {ours_sense} here and {theirs_sense} for {witness}"
    if not _close(np.array([draft.offset]), np.array([float(other["offset"])]), tolerance).all():
        return (
            f"the constant of the objective is {draft.offset:.15g} here and {float(other['offset']):.15g} for {witness}"
        )
    for what, mine, of_other, names, places in (
        ("the lower bound of column", draft.lower, other["lower"], draft.columns, columns),
        ("the upper bound of column", draft.upper, other["upper"], draft.columns, columns),
        ("the cost of column", draft.cost, other["cost"], draft.columns, columns),
        ("column (1: integer)", draft.integer * 1.0, other["integer"] * 1.0, draft.columns, columns),
        ("the lower end of row", draft.row_lower, other["row_lower"], draft.rows, rows),
        ("the upper end of row", draft.row_upper, other["row_upper"], draft.rows, rows),
    ):
        placed = np.empty(len(names))
        placed[places] = infinite_beyond(of_other)
        wrong = np.flatnonzero(~_close(mine, placed, tolerance))
        if wrong.size:
            return _shown(f"{what} {{}} is", [(names[k], mine[k], placed[k]) for k in wrong[:_MOST_SHOWN]], witness)
    return _difference_of_matrices(draft, other, rows, columns, witness)


def _difference_of_matrices(
    draft: ProgramDraft,
    other: dict[str, NDArray[Any]],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    witness: Witness,
) -> str:
    import scipy.sparse as sp

    shape = (len(draft.rows), len(draft.columns))
    ours = sp.csr_array((draft.entry_value, (draft.entry_row, draft.entry_column)), shape=shape)
    if "by_row" in other:
        entry_row = np.repeat(rows, np.diff(other["by_row"]))
        entry_column = columns[other["indices"]]
    else:
        entry_row = rows[other["indices"]]
        entry_column = np.repeat(columns, np.diff(other["indptr"]))
    theirs = sp.csr_array((other["data"], (entry_row, entry_column)), shape=shape)
    change = sp.coo_array(ours - theirs)
    at, of = change.coords
    size = np.abs(change.data)
    wrong = size > 0
    if wrong.any():
        mine = np.abs(np.asarray(ours[at[wrong], of[wrong]]).ravel())
        allowed = _TOLERANCE[witness] * mine
        if witness == "SCIP":
            allowed = np.maximum(allowed, np.where(mine <= _DROPPED_BY_SCIP, mine, 0.0))
        places = np.flatnonzero(wrong)[size[wrong] > allowed][:_MOST_SHOWN]
        if places.size:
            return _shown(
                "the coefficient of {} is",
                [
                    (f"{draft.columns[of[k]]} in row {draft.rows[at[k]]}", ours[at[k], of[k]], theirs[at[k], of[k]])
                    for k in places
                ],
                witness,
            )
    return ""


def _shown(text: str, values: list[tuple[str, float, float]], witness: Witness) -> str:
    parts = [
        f"{text.format(quoted(name))} {float(ours):.15g} here and {float(theirs):.15g} for {witness}"
        for name, ours, theirs in values
    ]
    return ", ".join(parts)


def _close(ours: NDArray[Any], theirs: NDArray[np.float64], tolerance: float) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return (ours == theirs) | (np.abs(ours - theirs) <= tolerance * np.maximum(np.abs(ours), np.abs(theirs)))


def _positions(ours: list[str], theirs: list[str]) -> NDArray[np.int64] | None:
    """Position among our names of each of theirs; None if they do not name the same things.

    Names given to unnamed rows differ from reader to reader, and so do replaced names and blanks in names: such rows
    and columns are matched by their order.
    """
    if len(ours) != len(theirs):
        return None
    if ours == theirs:
        return np.arange(len(ours), dtype=np.int64)
    place = {name: position for position, name in enumerate(ours)}
    found = [place.pop(name, -1) for name in theirs]
    left = iter(sorted(place.values()))
    return np.array([position if position >= 0 else next(left) for position in found], dtype=np.int64)
