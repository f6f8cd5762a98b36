"""Read MPS or LP files with HiGHS and SCIP and save their matrices: a script that runs as a process of its own.

    python matrix_reader.py FOLDER READER=FILE ...

where READER is ``highs`` or ``scip``, writes ``FOLDER/READER.npz`` and ``FOLDER/READER.json`` (names), or
``FOLDER/READER.txt`` with the reason in one line if the reader does not read the file as a linear program. This file
does not import opticoll.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CONTINUOUS, _INTEGER = 0, 1
#: Largest coefficient that HiGHS drops.
SMALLEST = 1e-12


class Unread(Exception):
    """The reader does not read the file as a linear program."""


def main(folder: str, *tasks: str) -> None:
    """Read every file with its reader."""
    for task in tasks:
        reader, _, file = task.partition("=")
        try:
            arrays, names = {"highs": read_by_highs, "scip": read_by_scip}[reader](file)
        except Exception as error:  # noqa: BLE001 (whatever a reader raises is a reason not to use its reading)
            reason = " ".join(str(error).replace(file, "the file").split()) or type(error).__name__
            (Path(folder) / f"{reader}.txt").write_text(reason, encoding="utf-8")
            continue
        np.savez(Path(folder) / f"{reader}.npz", allow_pickle=False, **arrays)
        (Path(folder) / f"{reader}.json").write_text(json.dumps(names), encoding="utf-8")


def read_by_highs(file: str) -> tuple[dict[str, NDArray[Any]], dict[str, list[str]]]:
    """Read a file with HiGHS."""
    import highspy

    messages: list[str] = []
    highs = highspy.Highs()
    highs.setOptionValue("log_to_console", False)
    highs.setOptionValue("small_matrix_value", SMALLEST)
    highs.cbLogging += lambda event: messages.append(event.message.strip())
    status = highs.readModel(file)
    _check_messages(messages, failed=status == highspy.HighsStatus.kError)
    lp = highs.getLp()
    count = lp.num_col_
    kinds = np.array([int(kind) for kind in lp.integrality_] or np.zeros(count), dtype=np.int64)
    if highs.getModel().hessian_.dim_ or not np.isin(kinds, (_CONTINUOUS, _INTEGER)).all():
        msg = "it reads another kind of program"
        raise Unread(msg)
    matrix = lp.a_matrix_
    arrays = {
        "indptr": np.array(matrix.start_, dtype=np.int64),
        "indices": np.array(matrix.index_, dtype=np.int64),
        "data": np.array(matrix.value_, dtype=float),
        "cost": np.array(lp.col_cost_, dtype=float),
        "row_lower": np.array(lp.row_lower_, dtype=float),
        "row_upper": np.array(lp.row_upper_, dtype=float),
        "lower": np.array(lp.col_lower_, dtype=float),
        "upper": np.array(lp.col_upper_, dtype=float),
        "integer": kinds == _INTEGER,
        "offset": np.array(lp.offset_),
        "maximise": np.array(lp.sense_ == highspy.ObjSense.kMaximize),
    }
    return arrays, {"columns": list(lp.col_names_), "rows": list(lp.row_names_)}


#: Warnings about what other readers see as well: crossed bounds, and columns that occur twice in a row of an LP file.
_HARMLESS = ("inconsistent bounds", "values summed", "repeated variable")


def _check_messages(messages: list[str], *, failed: bool) -> None:
    lines = [line.strip() for message in messages for line in message.splitlines()]
    reports = [
        line
        for line in lines
        if line.startswith(("ERROR", "WARNING")) and not any(words in line for words in _HARMLESS)
    ]
    telling = [line for line in reports if "Parser error reading" not in line] or reports
    if failed or reports:
        reason = telling[0].partition(":")[2].strip() if telling else "it does not read the file"
        raise Unread("a syntax error" if "Parser error" in reason else reason)


def read_by_scip(file: str) -> tuple[dict[str, NDArray[Any]], dict[str, list[str]]]:
    """Read a file with SCIP."""
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(file)
    variables = sorted(model.getVars(), key=lambda variable: variable.getIndex())  # in the order of the file
    position = {variable.name: place for place, variable in enumerate(variables)}
    starts, indices, rows = [0], list[int](), list[str]()
    data, row_lower, row_upper = list[float](), list[float](), list[float]()
    for row in model.getConss():
        if not row.isLinear():
            msg = f"it reads {row.name!r} as a constraint of type {row.getConshdlrName()}"
            raise Unread(msg)
        entries = model.getValsLinear(row)
        indices += map(position.__getitem__, entries)
        data += entries.values()
        starts.append(len(indices))
        row_lower.append(model.getLhs(row))
        row_upper.append(model.getRhs(row))
        rows.append(row.name)
    arrays = {
        "by_row": np.array(starts, dtype=np.int64),
        "indices": np.array(indices, dtype=np.int64),
        "data": np.array(data, dtype=float),
        "cost": np.array([v.getObj() for v in variables], dtype=float),
        "row_lower": np.array(row_lower, dtype=float),
        "row_upper": np.array(row_upper, dtype=float),
        "lower": np.array([v.getLbOriginal() for v in variables], dtype=float),
        "upper": np.array([v.getUbOriginal() for v in variables], dtype=float),
        "integer": np.array([v.vtype() != "CONTINUOUS" for v in variables]),
        "offset": np.array(model.getObjoffset()),
        "maximise": np.array(model.getObjectiveSense() == "maximize"),
    }
    return arrays, {"columns": list(position), "rows": rows}


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)  # without the time to free what the readers hold
