"""Read an MPS or LP file with HiGHS and save its matrix: the script that :mod:`..matrix_program` runs as a process.

    python matrix_reader.py FILE FOLDER

writes ``FOLDER/arrays.npz`` and ``FOLDER/names.json``, or ``FOLDER/refused.txt`` with the reason in one line. HiGHS
accepts more than it can represent: anything it would drop or ignore is refused. This file does not import opticoll.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

_CONTINUOUS, _INTEGER = 0, 1
#: Largest coefficient that HiGHS drops.
SMALLEST = 1e-12
#: Sections of MPS files; a data line need not be indented.
SECTIONS = frozenset({
    "NAME", "OBJSENSE", "MAX", "MIN", "OBJNAME", "REFROW", "ROWS", "USERCUTS", "LAZYCONS", "COLUMNS", "RHS", "RANGES",
    "BOUNDS", "SOS", "SOS1", "SOS2", "SETS", "QSECTION", "QMATRIX", "QUADOBJ", "QCMATRIX", "CSECTION", "INDICATORS",
    "GENCONS", "DELAYEDROWS", "MODELCUTS", "ENDATA",
})  # fmt: skip


def main(file: str, folder: str) -> None:
    """Read ``file`` and write the result to ``folder``."""
    import highspy

    wrong = malformed_line(Path(file)) if file.endswith(".mps") else ""
    if wrong:
        _refuse(folder, wrong)
        return
    messages: list[str] = []
    highs = highspy.Highs()
    highs.setOptionValue("log_to_console", False)
    highs.setOptionValue("small_matrix_value", SMALLEST)
    highs.cbLogging += lambda event: messages.append(event.message.strip())
    status = highs.readModel(file)
    reason = _refusal(messages, failed=status == highspy.HighsStatus.kError) or _unsupported(highs)
    if reason:
        _refuse(folder, reason)
        return
    lp = highs.getLp()
    count = lp.num_col_
    kinds = np.array([int(kind) for kind in lp.integrality_] or np.zeros(count), dtype=np.int64)
    matrix = lp.a_matrix_
    arrays = {
        "indptr": np.array(matrix.start_, dtype=np.int64), "indices": np.array(matrix.index_, dtype=np.int64),
        "data": np.array(matrix.value_, dtype=float), "cost": np.array(lp.col_cost_, dtype=float),
        "row_lower": np.array(lp.row_lower_, dtype=float), "row_upper": np.array(lp.row_upper_, dtype=float),
        "col_lower": np.array(lp.col_lower_, dtype=float), "col_upper": np.array(lp.col_upper_, dtype=float),
        "integer": kinds == _INTEGER, "offset": np.array(lp.offset_),
        "maximise": np.array(lp.sense_ == highspy.ObjSense.kMaximize),
    }  # fmt: skip
    np.savez(Path(folder) / "arrays.npz", **arrays)
    names = {"columns": list(lp.col_names_), "rows": list(lp.row_names_)}
    (Path(folder) / "names.json").write_text(json.dumps(names), encoding="utf-8")


def _refuse(folder: str, reason: str) -> None:
    (Path(folder) / "refused.txt").write_text(" ".join(reason.split()), encoding="utf-8")


def malformed_line(path: Path) -> str:
    """Describe the first data line of an MPS file that HiGHS would read only in part; empty if there is none.

    HiGHS takes ``4.5x`` for 4.5, ignores fields beyond the fifth, and does not end on a column without a number.
    """
    section = ""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith(("*", "$")) or not line.strip():
                continue
            words = line.split()
            if not line[0].isspace() and words[0].upper() in SECTIONS:
                section = words[0].upper()
                continue
            if section in ("COLUMNS", "RHS", "RANGES") and "'MARKER'" not in words:
                most, numbers = 5, [words[-1], *words[-3:-2]] if len(words) >= 4 else [words[-1]]
            elif section == "BOUNDS":
                most = 4
                numbers = [words[-1]] if words[0].upper() in ("UP", "LO", "FX", "UI", "LI", "SC", "SI") else []
            else:
                continue
            if len(words) > most or not all(map(_is_number, numbers)):
                return f"line {number}: {line.strip()[:60]!r} is not a line of the section {section}"
    return ""


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def _refusal(messages: list[str], *, failed: bool) -> str:
    """Reason to refuse the file, from the reader's messages; empty if it read everything."""
    lines = [line.strip() for message in messages for line in message.splitlines()]
    reports = [line for line in lines if line.startswith(("ERROR", "WARNING")) and "inconsistent bounds" not in line]
    if not reports:
        return "it is not a linear program in MPS or LP format" if failed else ""
    telling = [line for line in reports if "Parser error reading" not in line] or ["ERROR: syntax error"]
    return telling[0].partition(":")[2]


def _unsupported(highs: Any) -> str:
    """Name anything in the program beyond linear rows and continuous or integer columns; empty if there is nothing."""
    lp = highs.getLp()
    if highs.getModel().hessian_.dim_:
        return "it has a quadratic objective"
    other = [j for j, kind in enumerate(lp.integrality_) if int(kind) not in (_CONTINUOUS, _INTEGER)]
    if other:
        return f"column {lp.col_names_[other[0]]!r} is semi-continuous or semi-integer"
    negative = [
        j for j, (low, high) in enumerate(zip(lp.col_lower_, lp.col_upper_, strict=True)) if low == 0.0 and high < 0.0
    ]
    if negative:
        return (
            f"column {lp.col_names_[negative[0]]!r} has a negative upper bound and the default lower bound 0, which "
            "readers interpret differently: state its lower bound"
        )
    return ""


if __name__ == "__main__":
    main(*sys.argv[1:])
