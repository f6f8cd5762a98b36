"""Solution files of solvers: values of columns by name and, optionally, duals of rows.

The formats are recognised by content::

    HiGHS      Model status / Optimal / # Columns 2 / x 1 / ... / # Dual solution values / # Rows 1 / c1 0.5
    SCIP       solution status: optimal / objective value: 4 / x 1 (obj:2)
    Gurobi     # Objective value = 4 / x 1
    CBC        Optimal - objective value 4.0 / 0 x 1 2
    python-mip Feasible solution - objective 0.0 / 0 x 1.0 2.0
    MIPLIB     =obj= 4 / x 1
    CPLEX      <CPLEXSolution> ... <variable name="x" value="1"/> ...
    Xpress     NAME p / C x 1 / ENDATA (.slx); 1,"c1","L","LL",1,0,-1e+09,1,0.5,1 (.asc)
    MOSEK      NAME : p / ... / VARIABLES / INDEX NAME AT ACTIVITY ...
    GLPK       c Problem: / s mip 1 1 o 4 / i 1 0.5 / j 1 1

COPT writes as Gurobi does. HiGHS tables (``write_solution_style`` 1, pretty) are read too. GLPK's have the numbers of
columns and rows instead of names.

Columns that a file does not mention are 0, as these formats define, unless it is ``partial``.
"""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from opticoll.errors import BadFile
from opticoll.file_contents import read_bytes
from opticoll.instances.readers.program_reader import parse_number
from opticoll.instances.readers.reading import decode, line_of, parse_xml, refuse, unpack
from opticoll.instances.readers.tables import is_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

#: Largest solution file [bytes].
MOST_BYTES = 1 << 30
_REMEDY = "write a solution as HiGHS, SCIP, Gurobi, CPLEX, Xpress, CBC, GLPK or MIPLIB do: one `name value` per line"
_CBC = re.compile(r"(?P<status>[A-Z][A-Za-z ]*?)(?: \(.*\))? - objective(?: value)?\s+(?P<value>\S+)\s*$")
#: First line of the files of python-mip, which state the objective 0 whatever the values are.
_PYTHON_MIP = "Feasible solution - objective 0.0"
#: What a text begins with that is a solver's solution, whatever its name is.
_BEGIN = re.compile(
    r"model status\s|columns\s*\n|c problem:|solution status:|# (?:solution for model|objective value|mip start)|=obj="
    r"|[a-z][a-z ]* - objective (?:value )?\s*[-+.\d]|(?:<\?xml[^>]*>\s*)*<cplexsolution|\s*1,\"|name\s+: "
    r"|name\s[^\n]*\n\s+C |\s*problem statistics\n",
    re.IGNORECASE,
)
#: Status letters of GLPK in words; for a basis, of the primal and the dual.
_GLPK_STATUS = {"o": "optimal", "f": "feasible", "n": "infeasible", "f f": "optimal", "f n": "unbounded"}
_GLPK_STATUS |= {"f u": "feasible", "n f": "infeasible", "n n": "infeasible"}
_NO_SOLUTION = ("no solution available", "=infeas=", "=unbd=")


@dataclass
class SolFile:
    """Contents of a solution file.

    ``values`` of columns and ``duals`` of rows by name, the latter None if the file has none; ``objective`` and
    ``status`` (lower case, empty if unknown) as given in the file; ``solved``: whether it contains a solution.
    ``numbered``: whether the names are the positions of the columns and rows in the program's file, from 1.
    ``digits``: the most significant digits of a value; ``count``: the number of solutions in the file, of which this is
    the first; ``partial``: whether columns that are absent are open, not 0.
    """

    values: dict[str, float] = field(default_factory=dict)
    duals: dict[str, float] | None = None
    objective: float | None = None
    status: str = ""
    solved: bool = True
    numbered: bool = False
    digits: int = 0
    count: int = 1
    partial: bool = False

    def store(self, words: Sequence[str], where: str, number: int, target: dict[str, float] | None = None) -> None:
        """Store the value in ``words`` under the name in ``words``, as that of a column unless a target is given."""
        try:
            name, text = words
            value = float(text)
        except ValueError:
            msg = f"{where}, line {number}: {' '.join(words)[:60]!r} is not a name and a number; {_REMEDY}"
            raise BadFile(msg) from None
        if not math.isfinite(value):
            refuse(f"{where}, line {number}", f"the value of {name[:60]!r} is not finite; {_REMEDY}")
        values = self.values if target is None else target
        if name in values:
            refuse(f"{where}, line {number}", f"{name[:60]!r} occurs twice; give every column one value")
        values[name] = value
        if values is self.values and len(text) > self.digits:
            mantissa = text.lower().partition("e")[0].lstrip("+-0.")
            self.digits = max(self.digits, len(mantissa.replace(".", "")))

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
    if b"\0" in content[:1024]:
        refuse(where, "is no text; if Xpress wrote it (writeBinSol), write it with writeSlxSol or writeSol")
    return parse_sol(decode(content, where, _REMEDY), where)


def begins_as_solution(text: str) -> bool:
    """Whether a file that begins with a text is a solver's solution, whatever its name is."""
    return bool(_BEGIN.match(text))


def parse_sol(text: str, where: str) -> SolFile:
    """Parse the contents of a solution file.

    Raises
    ------
    BadFile
        If a line is in none of the formats, a name occurs twice, or a value is not a finite number.
    """
    if not text.strip():
        refuse(where, f"is empty; {_REMEDY}")
    solution = _cplex(text, where) if text.startswith("<") else _parsed(text.rstrip().splitlines(), where)
    solution.solved = solution.solved and not re.search(r"(?<![a-z])infeasible(?![a-z])", solution.status)
    return solution


def _parsed(lines: list[str], where: str) -> SolFile:
    first = lines[0].strip().lower()
    if first == "model status":
        return _highs(lines, where)
    if first == "columns" or re.match(r"name\s+: ", lines[0], re.IGNORECASE):
        return _tables(lines, where)
    if lines[0].startswith("c Problem:"):
        return _glpk(lines, where)
    if lines[0].startswith("Problem:") and any(line.startswith("Status:") for line in lines[:8]):
        refuse(where, "the report of `glpsol -o` has six digits; write the solution with `glpsol -w FILE`")
    if "Problem Statistics" in lines[:3]:
        refuse(where, "the report of Xpress has six decimals; write the solution with writeSlxSol or writeSol")
    if first.startswith('1,"'):
        return _asc(lines, where)
    if lines[-1].strip() == "ENDATA":
        return _slx(lines, where)
    solution = SolFile()
    cbc = False
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        lower = line.lower()
        stated = _CBC.match(line)
        if stated:
            solution.status, cbc = stated["status"].lower(), True
            solution.objective = None if line == _PYTHON_MIP else parse_number(stated["value"])
        elif lower.startswith("solution status:"):
            solution.status = line.partition(":")[2].strip().lower()
        elif lower.startswith(("objective value:", "# objective value", "=obj=")):
            solution.objective = parse_number(re.split(r"[:=\s]+", line)[-1])
        elif lower in _NO_SOLUTION:
            solution.solved = False
            solution.status = solution.status or {"=infeas=": "infeasible", "=unbd=": "unbounded"}.get(lower, "")
        elif line and not line.startswith("#"):
            words = line.removeprefix("**").split()
            solution.store(words[1:3] if cbc and len(words) == 4 else words[:2], where, number)
        elif lower == "# mip start":
            solution.partial = True
    return solution


def _cplex(text: str, where: str) -> SolFile:
    """CPLEX: one ``CPLEXSolution``, or several in ``CPLEXSolutions``, of which the first is read."""
    root = parse_xml(text.encode(), where, "write the solution again")
    found = [one for one in root.iter() if one.tag == "CPLEXSolution"]
    if not found or not root.tag.startswith("CPLEXSolution"):
        refuse(where, f"is XML without <CPLEXSolution>; {_REMEDY}")
    header = next(found[0].iter("header"), root).attrib
    solution = SolFile(
        objective=parse_number(header.get("objectiveValue", "")),
        status=header.get("solutionStatusString", "").lower(),
        count=len(found),
        partial=header.get("writeLevel") in ("2", "4") or "MIPStartEffortLevel" in header,
    )
    for one in found[0].iter("variable"):
        solution.store([one.get("name", ""), one.get("value", "")], where, line_of(one))
    priced = [one for one in found[0].iter("constraint") if "dual" in one.attrib]
    solution.duals = {} if priced else None
    for one in priced:
        solution.store([one.get("name", ""), one.attrib["dual"]], where, line_of(one), solution.duals)
    solution.solved = bool(solution.values)
    return solution


def _slx(lines: list[str], where: str) -> SolFile:
    """Xpress (``writeSlxSol``): ``C name value``; a heading ``NAME`` begins each of several solutions."""
    solution = SolFile(count=0)
    escape = ""
    for number, raw in enumerate(lines[:-1], start=1):
        letter, *rest = raw.split(maxsplit=1) or ["*"]
        if raw.startswith("* Names escaped using:"):
            escape = re.escape(raw.split()[-1])
        elif letter == "NAME":
            solution.count += 1
        elif letter == "C" and rest and solution.count < 2:
            words = rest[0].rsplit(maxsplit=1)
            if escape:  # a blank is @20
                words[0] = re.sub(f"{escape}([0-9A-Fa-f]{{2}})", lambda found: chr(int(found[1], 16)), words[0])
            solution.store(words, where, number)
        elif letter not in ("*", "C"):
            refuse(f"{where}, line {number}", f"{raw.strip()[:60]!r} is no line of Xpress's .slx; write it again")
    solution.solved = bool(solution.values)
    return solution


def _asc(lines: list[str], where: str) -> SolFile:
    """Xpress (``writeSol``): ten fields for a row, with its dual in the ninth, and nine for a column."""
    solution = SolFile(duals={})
    for number, words in enumerate(csv.reader(lines), start=1):
        if len(words) not in (9, 10):
            refuse(f"{where}, line {number}", f"{','.join(words)[:60]!r} is no line of Xpress's .asc; write it again")
        row = len(words) == 10
        place = 8 if row else 4
        solution.store([words[1].rstrip(), words[place]], where, number, solution.duals if row else None)
    return solution


def _highs(lines: list[str], where: str) -> SolFile:
    """HiGHS: sections under headings that start with ``#``; the first one that has columns is the primal solution."""
    solution = SolFile(status=lines[1].strip().lower() if len(lines) > 1 else "", solved=False)
    part, target, stated = "", None, 0
    for number, raw in enumerate(lines[2:], start=3):
        line = raw.strip()
        heading = line.lower()
        if heading.startswith("# basis"):
            break
        if heading.startswith(("# primal", "# dual")):
            part, target = heading.split()[1], None
        elif heading.startswith("# columns"):
            target = solution.values if part == "primal" else {}
            stated = int(is_number(heading[10:]) and heading[10:28]) if part == "primal" else stated
            solution.solved = solution.solved or part == "primal"
        elif heading.startswith("# rows"):
            target = {}
            if part == "dual":
                solution.duals = target
        elif heading.startswith("objective "):
            solution.objective = parse_number(line.split()[1])
        elif line and not line.startswith("#") and target is not None:
            solution.store(line.split()[:2], where, number, target)
    if len(solution.values) < stated:
        refuse(where, f"ends after {len(solution.values)} of {stated} columns; write it again")
    return solution


def _tables(lines: list[str], where: str) -> SolFile:
    """HiGHS, pretty, and MOSEK: a table of columns and one of rows, each under headings; status and objective."""
    solution = SolFile(solved=False)
    part = ""
    heading: list[str] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.strip().lower()
        words = raw.split()
        stated = re.match(r"(model status|objective value|solution status|primal objective)\s*:(.*)", line)
        if line in {"columns", "rows", "variables", "constraints"}:
            part, heading = line, []
        elif not line:
            part = ""
        elif stated and "objective" in stated[1]:
            solution.objective = parse_number(stated[2])
        elif stated:
            solution.status = stated[2].strip()
        elif part and not heading:
            heading = re.sub(r" limit\b", "_limit", re.sub(r"\bdual (lower|upper)", r"dual_\1", line)).split()
        elif part and (len(words) != len(heading) or not {"name", "index"} <= set(heading)):
            refuse(
                f"{where}, line {number}", f"{raw.strip()[:60]!r} does not fit its table; use write_solution_style 0"
            )
        elif part:
            row = dict(zip(heading, words, strict=True))
            value = row.get("primal", row.get("activity"))
            if part in {"columns", "variables"} and value is not None:
                solution.solved = True
                solution.store([row["name"], value], where, number)
            elif "dual" in row or "dual_lower" in row:
                solution.duals = solution.duals if solution.duals is not None else {}
                ends = [parse_number(row.get(f"dual_{end}", "")) for end in ("lower", "upper")]
                dual = row.get("dual", "none") if None in ends else str(ends[0] - ends[1])  # type: ignore[operator]
                solution.store([row["name"], dual], where, number, solution.duals)
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
            stated, solution.objective = words[4:-1], parse_number(words[-1])
            solution.status = _GLPK_STATUS.get(" ".join(stated), "")
            solution.solved = solution.status in {"optimal", "feasible"}
            at = -1 if kind == "mip" else -2  # value and dual of a linear program, with its status in the basis before
            solution.duals = None if kind == "mip" or solution.status != "optimal" else {}
        elif letter in ("i", "j") and solution.solved:
            if len(words) < 2 - at or not words[1].isdigit():
                refuse(
                    f"{where}, line {number}", f"{raw.strip()[:60]!r} is not a row or column of GLPK; write it again"
                )
            if letter == "j":
                solution.store([words[1], words[at]], where, number)
            elif solution.duals is not None:
                solution.store([words[1], words[-1]], where, number, solution.duals)
    return solution


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
