"""Programs in MPS files, free and fixed.

Sections and fields are those in the documents of CPLEX, Gurobi and SCIP. Where these contradict each other, or their
programs read a construct differently, the file is refused with the line:

* two names of right-hand sides, ranges or bounds (CPLEX and SCIP take the first set, Gurobi and HiGHS all);
* an entry, a right-hand side, a range or a bound that is stated twice with different values;
* a negative upper bound without a lower bound (CPLEX and Gurobi: no lower bound; HiGHS and SCIP: 0);
* exponents written with D (SCIP and Gurobi read ``1.5D2`` as 1.5, CPLEX as 150).

They read an integer column between markers for which no bound is stated as one in [0, 1], the right-hand side of the
objective as minus its constant, and rows of type N beyond the objective as absent. What single programs read otherwise
is noted.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal, NoReturn

from opticoll.errors import BadFile
from opticoll.instances.readers.program_reader import INFINITE, ProgramReader, Relation, parse_number, quoted, sides

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.instances.matrix_program import MatrixProgram

#: Sections that are read, in the order in which they may occur.
ORDER = ("NAME", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")
#: Sections that state a sense or an objective, anywhere before ROWS (the sense also later).
HEADERS = ("OBJSENSE", "OBJNAME", "MAX", "MIN")
#: Sections of what is not a linear program.
OTHER = {
    **dict.fromkeys(("SOS", "SOS1", "SOS2", "SETS"), "special ordered sets"),
    **dict.fromkeys(("QUADOBJ", "QMATRIX"), "quadratic objective"),
    "QSECTION": "quadratic terms",
    "QCMATRIX": "quadratic rows",
    "CSECTION": "cones",
    "INDICATORS": "indicator rows",
    "GENCONS": "general constraints",
    **dict.fromkeys(("PWLOBJ", "PWLNAM"), "piecewise linear objective"),
    "PWLCON": "piecewise linear rows",
    "USERCUTS": "user cuts",
    "LAZYCONS": "lazy constraints",
    "DELAYEDROWS": "delayed rows",
    "MODELCUTS": "model cuts",
    "REFROW": "reference rows of sets",
    "BRANCH": "branching priorities",
    "SCENARIOS": "scenarios",
}
_SECTIONS = frozenset((*ORDER, *HEADERS, *OTHER))
_SENSES: dict[str, Literal["min", "max"]] = {
    **dict.fromkeys(("MIN", "MINIMIZE", "MINIMISE"), "min"),
    **dict.fromkeys(("MAX", "MAXIMIZE", "MAXIMISE"), "max"),
}
_RELATIONS: dict[str, Relation] = {"L": "<", "G": ">", "E": "="}
#: What the types of bounds state; None for the number on the line.
_BOUNDS: dict[str, tuple[tuple[Relation, float | None], ...]] = {
    **dict.fromkeys(("UP", "UI"), (("<", None),)),
    **dict.fromkeys(("LO", "LI"), ((">", None),)),
    "FX": (("=", None),),
    "FR": ((">", -math.inf), ("<", math.inf)),
    "MI": ((">", -math.inf),),
    "PL": (("<", math.inf),),
    "BV": ((">", 0.0), ("<", 1.0)),
}
#: A comment by which PuLP records the sense; no reader regards it.
_PULP = re.compile(r"\*\s*SENSE\s*:\s*max", re.IGNORECASE)
#: A number with an exponent of Fortran's double precision.
_DOUBLE = re.compile(r"(?<!\S)[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[dD][+-]?[0-9]+(?!\S)")
#: Columns of the fields of fixed format, from 0, and of the gaps between them.
_FIELDS = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))
_GAPS = ((0, 1), (3, 4), (12, 14), (22, 24), (36, 39), (47, 49))
_REMEDY = "write a linear program"
#: What to do about semi-continuous columns: without LO, `SC` is {0} or [0, u] by its documents, {0} or [1, u] for some.
SEMI = "CPLEX, SCIP, COPT and python-mip differ about what it may be; write x <= u b with a binary column b"
#: Row numbers of the objective and of other rows of type N.
_OBJECTIVE, _IGNORED = -1, -2


def read_mps(content: bytes, where: str) -> MatrixProgram:
    """Read an MPS file: in free format, and in fixed format if that fails and all lines have its fields.

    Raises
    ------
    BadFile
        With the line, if it is not a linear program or readers disagree about it.
    """
    try:
        return _Reader(content, where, str.split).read()
    except BadFile as error:
        if not _has_fields_of_fixed_format(ProgramReader(content, where)):
            raise
        try:
            return _Reader(content, where, _fixed_fields).read()
        except BadFile:
            raise error from None


def _fixed_fields(line: str) -> list[str]:
    return [field for first, last in _FIELDS if (field := line[first:last].strip())]


def _has_fields_of_fixed_format(file: ProgramReader) -> bool:
    """Whether all data lines have text only in the columns of fixed format's fields."""
    data = (line for _, line in file.lines() if line[:1].isspace())
    return not any(
        "\t" in line or line[61:].strip() or any(line[first:last].strip() for first, last in _GAPS) for line in data
    )


class _Reader(ProgramReader):
    """State of reading one file. ``split`` returns the fields of a line."""

    def __init__(self, content: bytes, where: str, split: Callable[[str], list[str]]) -> None:
        super().__init__(content, where)
        self.split = split
        self.section, self.section_line = "", 0
        self.begun: set[str] = set()
        self.header_is_open = False  # OBJSENSE or OBJNAME, whose word comes on the next line
        self.sense_line = self.pulp_line = 0
        self.objective_name, self.objective_line = "", 0
        self.row_of: dict[str, int] = {}
        self.relations: list[Relation] = []
        self.free_rows: list[str] = []
        self.column = ""  # that of the line before; empty after a marker
        self.column_rows: set[int] = set()
        self.in_integers = False
        self.marked: set[int] = set()
        self.rhs: dict[int, tuple[float, int]] = {}
        self.ranges: dict[int, tuple[float, int]] = {}
        self.sets: dict[str, str] = {}

    def read(self) -> MatrixProgram:
        """Read all sections."""
        readers = {
            "ROWS": self._row,
            "COLUMNS": self._entries,
            "RHS": self._sides,
            "RANGES": self._ranges,
            "BOUNDS": self._bound,
            **dict.fromkeys(HEADERS, self._header_word),
        }
        read: Callable[[int, list[str]], None] = self._refuse_data
        for number, line in self.lines():
            if not line[:1].isspace() and (words := self._section_words(number, line)):
                self._begin(number, words)
                if self.section == "ENDATA":
                    return self._whole(number)
                read = readers.get(self.section, self._refuse_data)
            elif fields := self._fields(number, line) if line[0] == "*" or "$" in line else self.split(line):
                read(number, fields)
        return self.refuse_file("no ENDATA line at the end; the file is incomplete or not in MPS format")

    # Sections

    def _section_words(self, number: int, line: str) -> list[str] | None:
        """Words of a line that begins a section; None for other lines."""
        if line[0] == "*":
            return None
        words = line.split()
        first = words[0]
        if self.header_is_open and (first not in _SECTIONS or first in {"MAX", "MIN"}):
            return None
        if first not in _SECTIONS:
            if first.upper() in _SECTIONS or first.rstrip(":") in _SECTIONS:
                self.refuse(number, f"{quoted(first)} is not a section; write {first.rstrip(':').upper()}")
            if len(words) == 1 and first.isupper():
                self.refuse(number, f"the section {quoted(first)} is unknown; {_REMEDY}")
            return None
        if len(words) > 1 and first not in {"NAME", *HEADERS, *OTHER}:
            self.refuse(number, f"{quoted(line)}: nothing may follow {first}; indent lines of data")
        return words

    def _fields(self, number: int, line: str) -> list[str]:
        """Fields of a line of data without its comment, which is the line after ``*`` or begins with ``$``."""
        if line[0] == "*":
            if number <= 100 and self.sense is None and _PULP.match(line):
                self.pulp_line = number
            return []
        words = self.split(line)
        for place in range(2, len(words)):
            if words[place][0] == "$" and words[place] not in self.row_of and words[place] not in self.columns:
                return words[:place]
        return words

    def _begin(self, number: int, words: list[str]) -> None:
        section = words[0]
        if self.header_is_open:
            self.refuse(self.section_line, f"{self.section} states nothing; write it on the line that follows")
        if section in self.begun:
            self.refuse(number, f"a second section {section}; write one")
        if section in ORDER[:-1]:
            place = ORDER.index(section)
            after = next(
                (late for late in ORDER[place:] if late in self.begun and (section, late) != ("RHS", "BOUNDS")), ""
            )
            if after:
                others = ", whose ranges HiGHS 1.16 then takes for those of sides 0" if after == "RANGES" else ""
                self.refuse(number, f"section {section} comes after {after}{others}; write it before")
            if place > ORDER.index("ROWS") and "ROWS" not in self.begun:
                self.refuse(number, f"section {section} comes before ROWS; write ROWS first")
            self.begun.add(section)
        self.section, self.section_line = section, number
        if section == "COLUMNS":
            self._choose_objective()
        elif section in HEADERS:
            self._begin_header(number, words)

    def _refuse_data(self, number: int, fields: list[str]) -> NoReturn:
        if self.section in OTHER:
            self.refuse(number, f"section {self.section}: a linear program has no {OTHER[self.section]}; remove it")
        line = quoted(" ".join(fields))
        if self.section in {"", "NAME"}:
            where = f"the section {self.section} has no lines" if self.section else "it is in no section of an MPS file"
            self.refuse(number, f"{line}: {where}; begin with NAME or ROWS")
        if found := _DOUBLE.search(" ".join(fields)):
            self.refuse(
                number, f"{quoted(found[0])}: write exponents with e; SCIP and Gurobi read a number with D only in part"
            )
        remedy = "; write a column, a row and a number" if self.section == "COLUMNS" else ""
        self.refuse(number, f"{line} is not a line of the section {self.section}{remedy}")

    # Sense and name of the objective

    def _begin_header(self, number: int, words: list[str]) -> None:
        given = words if words[0] in {"MAX", "MIN"} else words[1:]
        if words[0] in {"MAX", "MIN"}:
            self.section = "OBJSENSE"
        if given == ["MAX"] == words:
            self.note(number, "a section MAX", "which HiGHS 1.16, CPLEX 22.2 and Xpress 9.9 take for a minimization")
        elif self.section == "OBJSENSE" and given and _SENSES.get(given[0].upper()) == "max":
            who = "CPLEX 22.2 and PuLP 3.3" if given[0] == "MAX" else "HiGHS 1.16, CPLEX 22.2 and PuLP 3.3"
            self.note(number, "OBJSENSE and its word on one line", f"which {who} take for a minimization")
        self.header_is_open = True
        if given:
            self._header_word(number, given)

    def _header_word(self, number: int, given: list[str]) -> None:
        what = "sense" if self.section == "OBJSENSE" else "name"
        if len(given) != 1 or not self.header_is_open:
            self.refuse(number, f"{quoted(' '.join(given))} is not one {what}; write {self.section} and one {what}")
        self.header_is_open = False
        line, word = self.section_line, given[0]
        if self.section == "OBJSENSE":
            sense = _SENSES.get(word.upper())
            if sense is None:
                self.refuse(number, f"{quoted(word)} is not a sense; write MIN or MAX")
            if self.sense_line:
                self.refuse(line, f"a second sense; line {self.sense_line} states one")
            if sense == "max" and line != number:
                self.note(line, "a maximization", "which PuLP 3.3 takes for a minimization")
            self.sense, self.sense_line = sense, line
        else:
            if self.objective_line:
                self.refuse(line, f"a second OBJNAME; line {self.objective_line} states one")
            if self.row_of:
                self.refuse(line, "OBJNAME comes after ROWS; write it before")
            self.objective_name, self.objective_line = word, line

    def _choose_objective(self) -> None:
        """Choose the objective among the rows of type N."""
        name, line = self.objective_name, self.objective_line
        if name and name not in self.free_rows:
            self.refuse(line, f"OBJNAME: there is no row {quoted(name)} of type N; name one")
        if name and name != self.free_rows[0]:
            others = "which is the objective for HiGHS 1.16 and Gurobi 13"
            self.note(line, "OBJNAME of another row than the first of type N", others)
        if self.free_rows:
            self.row_of[name or self.free_rows[0]] = _OBJECTIVE

    # Rows and columns

    def _row(self, number: int, fields: list[str]) -> None:
        if len(fields) != 2 or fields[0] not in {"N", *_RELATIONS}:
            self.refuse(number, f"{quoted(' '.join(fields))} is not a row; write N, L, G or E and a name")
        kind, name = fields
        self.name_row(name, number)
        if kind == "N":
            self.row_of[name] = _IGNORED
            self.free_rows.append(name)
        else:
            self.relations.append(_RELATIONS[kind])
            self.row_of[name] = self.add_row(name, _RELATIONS[kind], 0.0, number)

    def _entries(self, number: int, fields: list[str]) -> None:
        size = len(fields)
        if size not in (3, 5):
            self._refuse_data(number, fields)
        name = fields[0]
        if fields[1] == "'MARKER'":
            self._marker(number, fields)
            return
        if name != self.column:
            if name in self.columns:
                self.refuse(number, f"column {quoted(name)} occurs twice; write its entries together")
            if name in {"NAME", "OBJSENSE"}:
                self.note(number, f"a column {name}", "from which on HiGHS 1.16 reads no columns")
            self.column, self.column_rows = name, set()
            column = self.add_column(name)
            if self.in_integers:
                self.marked.add(column)
        column = len(self.column_names) - 1
        for place in range(1, size, 2):
            row, value = self._pair(number, fields, place)
            if row in self.column_rows and row != _IGNORED:
                self.refuse(
                    number,
                    f"a duplicate nonzero: column {quoted(name)} has two entries in row {quoted(fields[place])}, of "
                    "which HiGHS and Gurobi take the first, SCIP the last, MOSEK, COPT and Xpress the sum; write one",
                )
            self.column_rows.add(row)
            if row >= 0:
                self.add_entry(row, column, value, number)
            elif row == _OBJECTIVE:
                self.set_cost(column, value, number)

    def _marker(self, number: int, fields: list[str]) -> None:
        """Begin or end columns that are integer."""
        kinds = {"'INTORG'": True, "'INTEND'": False}
        if len(fields) != 3 or fields[2] not in kinds:
            what = "special ordered sets" if "SOS" in fields[-1] else quoted(" ".join(fields))
            self.refuse(number, f"{what}: a marker is 'INTORG' or 'INTEND'; {_REMEDY}")
        if kinds[fields[2]] == self.in_integers:
            state = "already" if self.in_integers else "not"
            self.refuse(number, f"{fields[2]} where columns are {state} integer; write pairs")
        self.in_integers, self.column = kinds[fields[2]], ""

    def _pair(self, number: int, fields: list[str], place: int) -> tuple[int, float]:
        """The row and the value at a place of a line of COLUMNS, RHS or RANGES."""
        row, value = self.row_of.get(fields[place]), parse_number(fields[place + 1])
        if row is None:
            self.refuse(number, f"there is no row {quoted(fields[place])}; name a row of the section ROWS")
        if value is None:
            self._refuse_data(number, fields)
        return row, value

    # Right-hand sides and ranges

    def _sides(self, number: int, fields: list[str]) -> None:
        for name, row, value in self._pairs(number, fields):
            if row == _IGNORED:
                what = f"a right-hand side of {quoted(name)}, a row of type N that is not the objective"
                self.note(number, what, "which HiGHS 1.16 adds to the constant")
                continue
            others = ", of which HiGHS, Gurobi and Xpress take the first, SCIP, MOSEK, COPT and CPLEX the last"
            self.state_once(self.rhs, row, value, number, f"the right-hand side of {quoted(name)}", others)
            if row >= 0:
                self.set_sides(row, *sides(self.relations[row], value), number)
            elif abs(value) >= INFINITE:
                self.refuse(number, f"the constant {-value:g} of the objective is not a finite number; state one")
            elif value:
                self.offset = -value
                others = "which GLPK 5.0 and lp_solve 5.5 read with the other sign, and OMMX 2.9 not at all"
                self.note(number, "a right-hand side of the objective, minus its constant", others)

    def _ranges(self, number: int, fields: list[str]) -> None:
        for name, row, value in self._pairs(number, fields):
            if row < 0:
                continue
            self.state_once(self.ranges, row, value, number, f"the range of {quoted(name)}")
            relation, side = self.relations[row], self.rhs.get(row, (0.0, 0))[0]
            if relation == "<" or (relation == "=" and value < 0):
                self.set_sides(row, side - abs(value), side, number)
            else:
                self.set_sides(row, side, side + abs(value), number)

    def _pairs(self, number: int, fields: list[str]) -> Iterator[tuple[str, int, float]]:
        """Name, row and value of each pair on a line of RHS or RANGES."""
        section, named = self.section, len(fields) % 2
        if len(fields) not in (2, 3, 4, 5):
            self._refuse_data(number, fields)
        self._one_set(number, fields[0] if named else "")
        if named and fields[0] in self.row_of:
            self.note(number, f"a set of {section} named like a row", "which HiGHS 1.16 takes for the row")
        for place in range(named, len(fields), 2):
            yield (fields[place], *self._pair(number, fields, place))

    def _one_set(self, number: int, name: str) -> None:
        section = self.section
        earlier = self.sets.setdefault(section, name)
        if name != earlier:
            which = " and ".join(quoted(one) if one else "none" for one in (earlier, name))
            others = "CPLEX and SCIP take the first, Gurobi and HiGHS all"
            self.refuse(number, f"section {section} has two sets, {which}: {others}; keep one")
        if not name:
            others = " and SCIP 10 takes numbers such as 5e0 for names" if section == "BOUNDS" else ""
            self.note(number, f"no name of a set in {section}", f"without which Xpress 9.9 ignores {section}{others}")

    # Bounds

    def _bound(self, number: int, fields: list[str]) -> None:
        kind, given = fields[0], fields[1:]
        if kind in {"SC", "SI", "SB"}:
            name = next((word for word in reversed(given) if word in self.columns), kind)
            self.refuse(number, f"column {quoted(name)} is semi-continuous; {SEMI}")
        if kind not in _BOUNDS:
            self.refuse(number, f"the bound {quoted(kind)} is unknown; write {', '.join(_BOUNDS)}")
        has_number = _BOUNDS[kind][0][1] is None
        if not 1 + has_number <= len(given) <= 3:
            self._refuse_data(number, fields)
        value = parse_number(given[-1]) if has_number or len(given) == 3 else 0.0
        if value is None:
            self._refuse_data(number, fields)
        named = len(given) > 1 + has_number
        self._one_set(number, given[0] if named else "")
        if named and given[0] in self.columns:
            self.note(number, "a set of BOUNDS named like a column", "which HiGHS 1.16 takes for the column")
        column = self.columns.get(given[named])
        if column is None:
            self.refuse(number, f"there is no column {quoted(given[named])}; name a column of the section COLUMNS")
        upper = self.uppers.get(column, (math.inf, 0))[0]
        if kind in {"LO", "MI"} and column in self.marked and upper <= 1:
            what = f"a lower bound of the integer column {quoted(given[named])} after its upper bound {upper:g}"
            self.note(number, what, "which is infinite for SCIP 10")
        for relation, end in _BOUNDS[kind]:
            self.set_bound(column, relation, value if end is None else end, number)
        if kind in {"BV", "LI", "UI"}:
            self.integer.add(column)
        if kind == "BV":
            self.note(number, "a bound BV", "which PuLP 3.3 takes for a continuous column")

    # The program

    def _whole(self, number: int) -> MatrixProgram:
        if "COLUMNS" not in self.begun:
            self.refuse(number, "no section COLUMNS before ENDATA; the file is incomplete")
        for column, (value, line) in self.uppers.items():
            if value == 0 and column not in self.lowers:
                what = f"an upper bound 0 of {quoted(self.column_names[column])}"
                self.note(line, what, "below which OMMX 2.9 takes it for unbounded")
        for column in sorted(self.marked - self.uppers.keys()):
            if column in self.lowers:
                what = f"a lower bound of the integer column {quoted(self.column_names[column])}"
                self.note(self.lowers[column][1], what, "whose upper bound is 1 for GLPK 5.0")
            else:
                what = f"the integer column {quoted(self.column_names[column])} without bounds, 0 or 1"
                self.note(number, what, "which has no upper bound for PuLP 3.3")
                self.set_bound(column, "<", 1.0, number)
        self.integer |= self.marked
        if self.pulp_line and self.sense is None:
            others = "which no reader of MPS regards: the objective is minimised; append ,sense=max to maximise, or"
            self.note(self.pulp_line, "a comment that says 'maximise'", f"{others} ,sense=min to confirm")
        return self.program()
