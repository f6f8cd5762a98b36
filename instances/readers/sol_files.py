"""Solution files of solvers: values of columns by name, and where there are any, duals of rows.

The formats are those of HiGHS, SCIP, Gurobi, CBC and MIPLIB, recognised by their contents::

    HiGHS    Model status / Optimal / # Columns 2 / x 1 / ... / # Dual solution values / # Rows 1 / c1 0.5
    SCIP     solution status: optimal / objective value: 4 / x 1 (obj:2)
    Gurobi   # Objective value = 4 / x 1
    CBC      Optimal - objective value 4.0 / 0 x 1 2
    MIPLIB   =obj= 4 / x 1

Also the tables that HiGHS writes with ``write_solution_style`` 1 (pretty).

Columns that a file does not mention are 0, as these formats define.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from opticoll.errors import BadFile
from opticoll.instances.readers.untrusted import decode, read_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

#: Largest solution file [bytes].
MOST_BYTES = 1 << 30
_REMEDY = "write a solution as HiGHS, SCIP, Gurobi, CBC or MIPLIB do: one `name value` per line"
_CBC = re.compile(r"(?P<status>[A-Z][A-Za-z ]*?)(?: \(.*\))? - objective value\s+(?P<value>\S+)\s*$")
_NO_SOLUTION = ("no solution available", "=infeas=", "=unbd=")


@dataclass
class SolFile:
    """Contents of a solution file.

    ``values`` of columns and ``duals`` of rows by name, the latter None if the file has none; ``objective`` and
    ``status`` (lower case, empty if unknown) as the file states them; ``solved`` whether it holds a solution.
    """

    values: dict[str, float] = field(default_factory=dict)
    duals: dict[str, float] | None = None
    objective: float | None = None
    status: str = ""
    solved: bool = True


def read_sol(path: Path) -> SolFile:
    """Read a solution file.

    Raises
    ------
    BadFile
        If it cannot be read, is too large, or a line of it is in none of the formats.
    """
    where = f"solution file {path}"
    return parse_sol(decode(read_bytes(path, MOST_BYTES, _REMEDY, where), where, _REMEDY), where)


def parse_sol(text: str, where: str) -> SolFile:
    """The contents of a solution file.

    Raises
    ------
    BadFile
        If a line is in none of the formats, a name occurs twice, or a value is no finite number.
    """
    lines = text.splitlines()
    if not text.strip():
        msg = f"{where} is empty; {_REMEDY}"
        raise BadFile(msg)
    if lines[0].strip().lower() == "model status":
        return _highs(lines, where)
    if lines[0].strip().lower() == "columns":
        return _tables(lines, where)
    found = SolFile()
    cbc = False
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        stated = _CBC.match(line)
        if stated:
            found.status, found.objective, cbc = stated["status"].lower(), _objective(stated["value"]), True
        elif line.lower().startswith("solution status:"):
            found.status = line.partition(":")[2].strip().lower()
        elif line.lower().startswith(("objective value:", "# objective value =", "=obj=")):
            found.objective = _objective(re.split(r"[:=]", line)[-1])
        elif line.lower() in _NO_SOLUTION:
            found.solved = False
            found.status = found.status or {"=infeas=": "infeasible", "=unbd=": "unbounded"}.get(line.lower(), "")
        elif line and not line.startswith("#"):
            words = line.removeprefix("**").split()
            _store(found.values, words[1:3] if cbc and len(words) == 4 else words[:2], where, number)
    return found


def _highs(lines: list[str], where: str) -> SolFile:
    """HiGHS: sections under headings that start with ``#``; the first one that has columns is the primal solution."""
    found = SolFile(status=lines[1].strip().lower() if len(lines) > 1 else "", solved=False)
    part, target = "", None
    for number, raw in enumerate(lines[2:], start=3):
        line = raw.strip()
        heading = line.lower()
        if heading.startswith("# basis"):
            break
        if heading.startswith(("# primal", "# dual")):
            part, target = heading.split()[1], None
        elif heading.startswith("# columns"):
            target = found.values if part == "primal" else {}
            found.solved = found.solved or part == "primal"
        elif heading.startswith("# rows"):
            target = {}
            if part == "dual":
                found.duals = target
        elif heading.startswith("objective "):
            found.objective = _objective(line.split()[1])
        elif line and not line.startswith("#") and target is not None:
            _store(target, line.split()[:2], where, number)
    return found


def _tables(lines: list[str], where: str) -> SolFile:
    """HiGHS, pretty: a table of columns and one of rows, each under headings; then status and objective."""
    found = SolFile(solved=False)
    part = ""
    heading: list[str] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.strip().lower()
        words = raw.split()
        if line in {"columns", "rows"}:
            part, heading = line, []
        elif not line:
            part = ""
        elif line.startswith("model status:"):
            found.status = line.partition(":")[2].strip()
        elif line.startswith("objective value:"):
            found.objective = _objective(line.partition(":")[2])
        elif part and not heading:
            heading = line.split()
        elif len(words) != len(heading) or not {"name", "index"} <= set(heading):
            msg = f"{where}, line {number}: {raw.strip()[:60]!r} does not fit its table; write_solution_style 0 is read"
            raise BadFile(msg)
        else:
            row = dict(zip(heading, words, strict=True))
            if part == "columns" and "primal" in row:
                found.solved = True
                _store(found.values, [row["name"], row["primal"]], where, number)
            elif part == "rows" and "dual" in row:
                found.duals = found.duals if found.duals is not None else {}
                _store(found.duals, [row["name"], row["dual"]], where, number)
    return found


def _objective(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _store(target: dict[str, float], words: list[str], where: str, number: int) -> None:
    """Add the name and the value that ``words`` are."""
    try:
        name, text = words
        value = float(text)
    except ValueError:
        msg = f"{where}, line {number}: {' '.join(words)[:60]!r} is not a name and a number; {_REMEDY}"
        raise BadFile(msg) from None
    if not math.isfinite(value):
        msg = f"{where}, line {number}: the value of {name[:60]!r} is not finite; {_REMEDY}"
        raise BadFile(msg)
    if name in target:
        msg = f"{where}, line {number}: {name[:60]!r} occurs twice; give every column one value"
        raise BadFile(msg)
    target[name] = value


def positions(given: Iterable[str], names: Iterable[str], where: str, what: str = "column") -> list[int]:
    """The position in ``names`` of every name in ``given``.

    Raises
    ------
    BadFile
        If one of them is unknown.
    """
    place = {name: position for position, name in enumerate(names)}
    found = []
    for name in given:
        if name not in place:
            msg = f"{where}: the program has no {what} {name[:60]!r}; name the program that the file is a solution of"
            raise BadFile(msg)
        found.append(place[name])
    return found
