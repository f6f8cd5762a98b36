"""Solution files of solvers: values of columns by name and, optionally, duals of rows.

The formats are those of HiGHS, SCIP, Gurobi, CBC, GLPK, lp_solve and MIPLIB, recognised by content::

    HiGHS     Model status / Optimal / # Columns 2 / x 1 / ... / # Dual solution values / # Rows 1 / c1 0.5
    SCIP      solution status: optimal / objective value: 4 / x 1 (obj:2)
    Gurobi    # Objective value = 4 / x 1
    CBC       Optimal - objective value 4.0 / 0 x 1 2
    MIPLIB    =obj= 4 / x 1
    GLPK      c Problem: / s mip 1 1 o 4 / i 1 0.5 / j 1 1
    lp_solve  Value of objective function: 4 / Actual values of the variables: / x 1

HiGHS tables (``write_solution_style`` 1, pretty) are read too. GLPK's have the numbers of columns and rows
instead of names.

Columns that a file does not mention are 0, as these formats define.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from opticoll.errors import BadFile
from opticoll.file_contents import read_bytes
from opticoll.instances.readers.reading import decode, refuse, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

#: Largest solution file [bytes].
MOST_BYTES = 1 << 30
_REMEDY = "write a solution as HiGHS, SCIP, Gurobi, CBC, GLPK, lp_solve or MIPLIB do: one `name value` per line"
_CBC = re.compile(r"(?P<status>[A-Z][A-Za-z ]*?)(?: \(.*\))? - objective value\s+(?P<value>\S+)\s*$")
#: Status letters of GLPK: in words, and whether there is a solution; for a basis, of the primal and the dual.
_GLPK_STATUS = {
    "o": ("optimal", True),
    "f": ("feasible", True),
    "n": ("infeasible", False),
    "u": ("", False),
    "f f": ("optimal", True),
    "f n": ("unbounded", False),
    "f u": ("feasible", True),
    "n f": ("infeasible", False),
    "n n": ("infeasible", False),
}
_NO_SOLUTION = ("no solution available", "=infeas=", "=unbd=")


@dataclass
class SolFile:
    """Contents of a solution file.

    ``values`` of columns and ``duals`` of rows by name, the latter None if the file has none; ``objective`` and
    ``status`` (lower case, empty if unknown) as given in the file; ``solved``: whether it contains a solution.
    ``numbered``: whether the names are the positions of the columns and rows in the program's file, from 1.
    """

    values: dict[str, float] = field(default_factory=dict)
    duals: dict[str, float] | None = None
    objective: float | None = None
    status: str = ""
    solved: bool = True
    numbered: bool = False

    def named(self, columns: Sequence[str], rows: Sequence[str], where: str) -> SolFile:
        """The solution with names, which are given in the order of the program's file.

        Raises
        ------
        BadFile
            If it is of another number of columns or rows.
        """
        if not self.numbered:
            return self
        if not self.solved:
            return replace(self, numbered=False)
        for what, given, names in (("columns", self.values, columns), ("rows", self.duals, rows)):
            if given is not None and set(given) != {str(k) for k in range(1, len(names) + 1)}:
                refuse(where, f"has {len(given)} {what}, the program has {len(names)}, from 1; {_REMEDY}")
        duals = None if self.duals is None else {rows[int(k) - 1]: value for k, value in self.duals.items()}
        values = {columns[int(k) - 1]: value for k, value in self.values.items()}
        return replace(self, values=values, duals=duals, numbered=False)


def read_sol(path: Path) -> SolFile:
    """Read a solution file.

    Raises
    ------
    BadFile
        If it cannot be read, is too large, or contains a line in none of the formats.
    """
    where = f"solution file {path}"
    content = read_bytes(path, MOST_BYTES, _REMEDY, where)
    if path.suffix == ".gz":
        content = unpack(content, MOST_BYTES, where, _REMEDY)
    return parse_sol(decode(content, where, _REMEDY), where)


def parse_sol(text: str, where: str) -> SolFile:
    """Parse the contents of a solution file.

    Raises
    ------
    BadFile
        If a line is in none of the formats, a name occurs twice, or a value is not a finite number.
    """
    lines = text.splitlines()
    if not text.strip():
        msg = f"{where} is empty; {_REMEDY}"
        raise BadFile(msg)
    if lines[0].strip().lower() == "model status":
        return _highs(lines, where)
    if lines[0].strip().lower() == "columns":
        return _tables(lines, where)
    if lines[0].startswith("c Problem:"):
        return _glpk(lines, where)
    if lines[0].startswith("Problem:") and any(line.startswith("Status:") for line in lines[:8]):
        refuse(where, "the report of `glpsol -o` has six digits; write the solution with `glpsol -w FILE`")
    if "Actual values of the variables:" in lines or "This problem is infeasible" in lines:
        return _lp_solve(lines, where)
    solution = SolFile()
    cbc = False
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        stated = _CBC.match(line)
        if stated:
            solution.status, solution.objective, cbc = stated["status"].lower(), _objective(stated["value"]), True
        elif line.lower().startswith("solution status:"):
            solution.status = line.partition(":")[2].strip().lower()
        elif line.lower().startswith(("objective value:", "# objective value =", "=obj=")):
            solution.objective = _objective(re.split(r"[:=]", line)[-1])
        elif line.lower() in _NO_SOLUTION:
            solution.solved = False
            solution.status = solution.status or {"=infeas=": "infeasible", "=unbd=": "unbounded"}.get(line.lower(), "")
        elif line and not line.startswith("#"):
            words = line.removeprefix("**").split()
            _store(solution.values, words[1:3] if cbc and len(words) == 4 else words[:2], where, number)
    return solution


def _highs(lines: list[str], where: str) -> SolFile:
    """HiGHS: sections under headings that start with ``#``; the first one that has columns is the primal solution."""
    solution = SolFile(status=lines[1].strip().lower() if len(lines) > 1 else "", solved=False)
    part, target = "", None
    for number, raw in enumerate(lines[2:], start=3):
        line = raw.strip()
        heading = line.lower()
        if heading.startswith("# basis"):
            break
        if heading.startswith(("# primal", "# dual")):
            part, target = heading.split()[1], None
        elif heading.startswith("# columns"):
            target = solution.values if part == "primal" else {}
            solution.solved = solution.solved or part == "primal"
        elif heading.startswith("# rows"):
            target = {}
            if part == "dual":
                solution.duals = target
        elif heading.startswith("objective "):
            solution.objective = _objective(line.split()[1])
        elif line and not line.startswith("#") and target is not None:
            _store(target, line.split()[:2], where, number)
    return solution


def _tables(lines: list[str], where: str) -> SolFile:
    """HiGHS, pretty: a table of columns and one of rows, each under headings; then status and objective."""
    solution = SolFile(solved=False)
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
            solution.status = line.partition(":")[2].strip()
        elif line.startswith("objective value:"):
            solution.objective = _objective(line.partition(":")[2])
        elif part and not heading:
            heading = line.split()
        elif len(words) != len(heading) or not {"name", "index"} <= set(heading):
            msg = f"{where}, line {number}: {raw.strip()[:60]!r} does not fit its table; use write_solution_style 0"
            raise BadFile(msg)
        else:
            row = dict(zip(heading, words, strict=True))
            if part == "columns" and "primal" in row:
                solution.solved = True
                _store(solution.values, [row["name"], row["primal"]], where, number)
            elif part == "rows" and "dual" in row:
                solution.duals = solution.duals if solution.duals is not None else {}
                _store(solution.duals, [row["name"], row["dual"]], where, number)
    return solution


def _glpk(lines: list[str], where: str) -> SolFile:
    """GLPK (``glpsol -w``): lines ``s`` of sizes and status, ``i`` of rows and ``j`` of columns by their numbers."""
    solution = SolFile(solved=False, numbered=True)
    kind, at = "", -1
    for number, raw in enumerate(lines, start=1):
        words = raw.split()
        letter = words[0] if words else ""
        if letter == "s" and len(words) >= 6:
            kind = words[1]
            stated, solution.objective = words[4:-1], _objective(words[-1])
            solution.status, solution.solved = _GLPK_STATUS.get(" ".join(stated), ("", False))
            at = -1 if kind == "mip" else -2  # value and dual of a linear program, with its status in the basis before
            solution.duals = None if kind == "mip" or solution.status != "optimal" else {}
        elif letter in ("i", "j") and solution.solved:
            if len(words) < 2 - at or not words[1].isdigit():
                msg = f"{where}, line {number}: {raw.strip()[:60]!r} is not a row or column of GLPK; write it again"
                raise BadFile(msg)
            if letter == "j":
                _store(solution.values, [words[1], words[at]], where, number)
            elif solution.duals is not None:
                _store(solution.duals, [words[1], words[-1]], where, number)
    return solution


def _lp_solve(lines: list[str], where: str) -> SolFile:
    """lp_solve, printed with ``-S3`` or more: the values under a heading, to six digits."""
    solution = SolFile(status="infeasible" if "This problem is infeasible" in lines else "", solved=False)
    target: dict[str, float] | None = None
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if line.startswith("Value of objective function:"):
            solution.objective = _objective(line.rpartition(":")[2])
        elif line.endswith(":") or not line or line.startswith("Dual value"):
            target = solution.values if line == "Actual values of the variables:" else None
            solution.solved = solution.solved or target is not None
        elif target is not None:
            _store(target, line.split(), where, number)
    return solution


def _objective(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _store(target: dict[str, float], words: list[str], where: str, number: int) -> None:
    """Store the value in ``words`` under the name in ``words``."""
    try:
        name, text = words
        value = float(text)
    except ValueError:
        msg = f"{where}, line {number}: {' '.join(words)[:60]!r} is not a name and a number; {_REMEDY}"
        raise BadFile(msg) from None
    if not math.isfinite(value):
        refuse(f"{where}, line {number}", f"the value of {name[:60]!r} is not finite; {_REMEDY}")
    if name in target:
        refuse(f"{where}, line {number}", f"{name[:60]!r} occurs twice; give every column one value")
    target[name] = value


def positions(
    given: Iterable[str],
    names: Iterable[str],
    where: str,
    what: str = "column",
    remedy: str = "use the program whose solution the file contains",
) -> list[int]:
    """Position in ``names`` of every name in ``given``.

    Raises
    ------
    BadFile
        If one of them is unknown.
    """
    place = {name: position for position, name in enumerate(names)}
    results = []
    for name in given:
        if name not in place:
            refuse(where, f"the program has no {what} {name[:60]!r}; {remedy}")
        results.append(place[name])
    return results
