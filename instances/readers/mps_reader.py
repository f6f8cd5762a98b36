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

import re
from itertools import islice
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np

from opticoll.errors import BadFile
from opticoll.instances.readers.program_draft import (
    INFINITE,
    Entries,
    LineReader,
    ProgramDraft,
    infinite_beyond,
    parse_number,
    quoted,
)
from opticoll.instances.readers.text_blocks import has_repeated, words_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from opticoll.instances.readers.text_blocks import Lines

#: Sections that are read, in the order in which they may occur.
ORDER = ("NAME", "ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "ENDATA")
#: Sections that state a sense or an objective, anywhere before ROWS (the sense also later).
HEADERS = ("OBJSENSE", "OBJNAME", "MAX", "MIN")
#: Sections of what is not a linear program.
OTHER = {
    "SOS": "special ordered sets",
    "SOS1": "special ordered sets",
    "SOS2": "special ordered sets",
    "SETS": "special ordered sets",
    "QUADOBJ": "quadratic objective",
    "QMATRIX": "quadratic objective",
    "QSECTION": "quadratic terms",
    "QCMATRIX": "quadratic rows",
    "CSECTION": "cones",
    "INDICATORS": "indicator rows",
    "GENCONS": "general constraints",
    "PWLOBJ": "piecewise linear objective",
    "PWLNAM": "piecewise linear objective",
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
#: A comment by which PuLP records the sense; no reader regards it.
_PULP = re.compile(r"\*\s*SENSE\s*:\s*max", re.IGNORECASE)
#: A number with an exponent of Fortran's double precision.
_DOUBLE = re.compile(r"(?<!\S)[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[dD][+-]?[0-9]+(?!\S)")
#: Columns of the fields of fixed format, from 0.
_FIELDS = ((1, 3), (4, 12), (14, 22), (24, 36), (39, 47), (49, 61))
_REMEDY = "write a linear program"
#: Lines read one by one before blocks of lines are tried again.
_LINES = 1024
#: Row numbers of the objective and of other rows of type N.
_OBJECTIVE, _IGNORED = -1, -2


def read_mps(content: bytes, where: str) -> ProgramDraft:
    """Read an MPS file: in free format, and in fixed format if that fails and all lines have its fields.

    Raises
    ------
    BadFile
        With the line, if it is not a linear program or readers disagree about it.
    """
    try:
        return _Reader(content, where, str.split).read()
    except BadFile:
        fixed = _Reader(content, where, _fixed_fields)
        if not fixed.has_fields_of_fixed_format():
            raise
        try:
            return fixed.read()
        except BadFile:
            pass
        raise


def _fixed_fields(line: str) -> list[str]:
    return [field for first, last in _FIELDS if (field := line[first:last].strip())]


def _lines_before(block: str, marks: str) -> str:
    """The lines before the first that contains one of the characters."""
    for mark in marks:
        if (place := block.find(mark)) >= 0:
            block = block[: block.rfind("\n", 0, place) + 1]
    return block


class _Reader(LineReader):
    """State of reading one file. ``split`` returns the fields of a line."""

    def __init__(self, content: bytes, where: str, split: Callable[[str], list[str]]) -> None:
        super().__init__(content, where)
        self.split = split
        self.sense: Literal["min", "max"] | None = None
        self.sense_line = 0
        self.objective_name = ""
        self.objective_line = 0
        self.row_of: dict[str, int] = {}
        self.rows: list[str] = []
        self.types: list[str] = []
        self.free_rows: list[str] = []
        self.column_of: dict[str, int] = {}
        self.columns: list[str] = []
        self.marked: list[bool] = []
        self.in_integers = False
        self.column = ""  # that of the line before; empty after a marker
        self.costs: list[float] = []
        self.entries = Entries()
        self.column_rows: set[str] = set()
        self.rhs: dict[int, tuple[float, int]] = {}
        self.ranges: dict[int, tuple[float, int]] = {}
        self.lowers: dict[int, tuple[float, int]] = {}
        self.uppers: dict[int, tuple[float, int]] = {}
        self.integers: set[int] = set()
        self.sets: dict[str, str] = {}
        self.pulp = ""

    def has_fields_of_fixed_format(self) -> bool:
        """Whether all data lines have text only in the columns of fixed format's fields."""
        gaps = [(0, 1), (3, 4), (12, 14), (22, 24), (36, 39), (47, 49)]
        for line in self.lines():
            if line[:1] in {"*", ""} or not line[0].isspace():
                continue
            if "\t" in line or line[61:].strip() or any(line[first:last].strip() for first, last in gaps):
                return False
        return True

    def read(self) -> ProgramDraft:
        """Read all sections."""
        lines = self.numbered_lines()
        line, words = self._section_after("", lines)
        place = -1
        while words[0] != "ENDATA":
            section = words[0]
            if section in ORDER:
                if ORDER.index(section) == place:
                    self.refuse(line, f"a second section {section}; write one")
                if ORDER.index(section) < place and (section, ORDER[place]) != ("RHS", "BOUNDS"):
                    self.refuse(line, f"section {section} comes after {ORDER[place]}; write it before")
                if place < ORDER.index("ROWS") < ORDER.index(section):
                    self.refuse(line, f"section {section} comes before ROWS; write ROWS first")
                place = max(place, ORDER.index(section))
                if section == "RHS" and "RHS" in self.sets:
                    self.refuse(line, "a second section RHS; write one")
            line, words = self._read_section(line, words, lines)
        if place < ORDER.index("COLUMNS"):
            self.refuse(line, "no section COLUMNS before ENDATA; the file is incomplete")
        return self._draft()

    def _read_section(self, line: int, words: list[str], lines: Lines) -> tuple[int, list[str]]:
        """Read the section whose first line is given; return the first line of the next one."""
        section = words[0]
        if section in HEADERS:
            return self._header(line, words, lines)
        if section in OTHER:
            return self._section_after(section, lines, self._refuse_section)
        if section == "COLUMNS":
            self._number_rows()
            return self._columns(lines)
        read = {"ROWS": self._row, "RHS": self._rhs, "RANGES": self._range, "BOUNDS": self._bound}.get(section)
        return self._section_after(section, lines, read)

    def _section_after(
        self,
        section: str,
        lines: Lines,
        read: Callable[[int, list[str]], None] | None = None,
    ) -> tuple[int, list[str]]:
        """Read the data of a section with ``read``; return the number and the words of the next section's line."""
        for number, line in lines:
            words = self._section_words(number, line)
            if words is not None:
                return number, words
            if (fields := self._fields(line)) is None:
                if number <= 100 and self.sense is None and _PULP.match(line):
                    self._note_pulp(number)
            elif read is None:
                where = f"the section {section} has no lines" if section else "it is in no section of an MPS file"
                self.refuse(number, f"{quoted(line)}: {where}; begin with NAME or ROWS")
            else:
                read(number, fields)
        return self.refuse_file("no ENDATA line at the end; the file is incomplete or not in MPS format")

    def _section_words(self, number: int, line: str) -> list[str] | None:
        """Words of a line that begins a section; None for other lines."""
        if not line or line[0].isspace() or line[0] == "*":
            return None
        words = line.split()
        first = words[0]
        if first not in _SECTIONS:
            if first.upper() in _SECTIONS or first.rstrip(":") in _SECTIONS:
                self.refuse(number, f"{quoted(first)} is not a section; write {first.rstrip(':').upper()}")
            if len(words) == 1 and first.isupper():
                self.refuse(number, f"the section {quoted(first)} is unknown; {_REMEDY}")
            return None
        if len(words) > 1 and first not in {"NAME", *HEADERS, *OTHER}:
            self.refuse(number, f"{quoted(line)}: nothing may follow {first}; indent lines of data")
        return words

    def _fields(self, line: str) -> list[str] | None:
        """Fields of a line of data, without a comment that begins with ``$``; None if there are none."""
        if line[:1] == "*":
            return None
        words = self.split(line)
        if "$" in line:
            for place in range(2, len(words)):
                if words[place][0] == "$" and words[place] not in self.row_of and words[place] not in self.column_of:
                    return words[:place]
        return words or None

    def _note_pulp(self, number: int) -> None:
        self.pulp = (
            f"line {number} is a comment that says 'maximise', which no reader of MPS regards: the objective is "
            "minimised; append ,sense=max to maximise, or ,sense=min to confirm"
        )

    def _refuse_section(self, number: int, fields: list[str]) -> NoReturn:
        before = next(
            words[0]
            for n, text in reversed(list(enumerate(self.lines(), start=1))[: number - 1])
            if (words := self._section_words(n, text)) is not None
        )
        self.refuse(number, f"section {before}: a linear program has no {OTHER[before]}; remove it")

    # Sense and name of the objective

    def _header(self, line: int, words: list[str], lines: Lines) -> tuple[int, list[str]]:
        kind, given, number = words[0], words[1:], line
        if kind in {"MAX", "MIN"}:
            kind, given = "OBJSENSE", [kind, *given]
            if given == ["MAX"]:
                self.note(line, "a section MAX", "which HiGHS 1.16, CPLEX 22.2 and Xpress 9.9 take for a minimization")
        elif kind == "OBJSENSE" and given and _SENSES.get(given[0].upper()) == "max":
            who = "CPLEX 22.2 and PuLP 3.3" if given[0] == "MAX" else "HiGHS 1.16, CPLEX 22.2 and PuLP 3.3"
            self.note(line, "OBJSENSE and its word on one line", f"which {who} take for a minimization")
        if not given:
            for number, text in lines:  # noqa: B007
                given = text.split()
                if given and text[0] != "*":
                    break
            if given and given[0] in _SECTIONS and given[0] not in {"MAX", "MIN"}:
                self.refuse(line, f"{kind} states nothing; write it on the line that follows")
        if len(given) != 1:
            self.refuse(number, f"{quoted(' '.join(given))} is not one {'sense' if kind == 'OBJSENSE' else 'name'}")
        if kind == "OBJSENSE":
            self._state_sense(line, number, given[0])
        else:
            self._state_objective(line, given[0])
        return self._section_after(kind, lines)

    def _state_sense(self, line: int, number: int, word: str) -> None:
        sense = _SENSES.get(word.upper())
        if sense is None:
            self.refuse(number, f"{quoted(word)} is not a sense; write MIN or MAX")
        if self.sense_line:
            self.refuse(line, f"a second sense; line {self.sense_line} states one")
        self.sense, self.sense_line = sense, line

    def _state_objective(self, line: int, name: str) -> None:
        if self.objective_line:
            self.refuse(line, f"a second OBJNAME; line {self.objective_line} states one")
        if self.rows or self.free_rows:
            self.refuse(line, "OBJNAME comes after ROWS; write it before")
        self.objective_name, self.objective_line = name, line

    # Rows

    def _row(self, number: int, fields: list[str]) -> None:
        if len(fields) != 2 or fields[0] not in {"N", "L", "G", "E"}:
            self.refuse(number, f"{quoted(' '.join(fields))} is not a row; write N, L, G or E and a name")
        kind, name = fields
        if name in self.row_of:
            self.refuse(number, f"a second row {quoted(name)}; give each a name of its own")
        if kind == "N":
            self.row_of[name] = _IGNORED
            self.free_rows.append(name)
        else:
            self.row_of[name] = len(self.rows)
            self.rows.append(name)
            self.types.append(kind)

    def _number_rows(self) -> None:
        """Choose the objective among the rows of type N."""
        if self.objective_name:
            if self.objective_name not in self.free_rows:
                self.refuse(
                    self.objective_line, f"OBJNAME: there is no row {quoted(self.objective_name)} of type N; name one"
                )
            if self.objective_name != self.free_rows[0]:
                self.note(
                    self.objective_line,
                    "OBJNAME of another row than the first of type N",
                    "which is the objective for HiGHS 1.16 and Gurobi 13",
                )
        chosen = self.objective_name or (self.free_rows[0] if self.free_rows else "")
        if chosen:
            self.row_of[chosen] = _OBJECTIVE

    # Columns

    def _columns(self, lines: Lines) -> tuple[int, list[str]]:
        """Read the section COLUMNS, which is most of a file: plain blocks of lines at once, the others by line."""
        before = -1
        while before != lines.number:
            before = lines.number
            if self.split is str.split:
                lines.read_blocks(self._plain_columns)
            following = self._columns_by_line(lines)
            if following is not None:
                return following
        return self.refuse_file("no ENDATA line at the end; the file is incomplete or not in MPS format")

    def _plain_columns(self, block: str, number: int) -> str:
        """Read lines of entries at once; the first line of the block has the given number.

        Returns
        -------
        str
            The lines read: all, or none if one of them has to be read by itself.
        """
        block = _lines_before(block, "$'")  # a comment, a marker
        if (words := words_of(block)) is None:
            return ""
        count = words.indented()
        first = words.first[: count + 1]
        sizes = np.diff(first)
        if not count or not ((sizes == 0) | (sizes == 3) | (sizes == 5)).all() or not sizes.any():
            return ""
        heads = first[:-1][sizes > 0]
        pairs = (sizes[sizes > 0] - 1) // 2
        of_row = np.zeros(first[-1], dtype=bool)
        of_row[heads + 1] = True
        of_row[heads[pairs == 2] + 3] = True
        at = np.flatnonzero(of_row)
        values = words.numbers(at + 1)
        names, head_name = words.distinct(heads)
        row_names, place = words.distinct(at)
        numbers = list(map(self.row_of.get, row_names))
        continued = names[0] == self.column
        if values is None or None in numbers or _IGNORED in numbers or (np.diff(head_name) < 0).any():
            return ""
        if not self.column_of.keys().isdisjoint(names[continued:]):
            return ""
        name, row = np.repeat(head_name, pairs), np.array(numbers, dtype=np.int64)[place]
        if has_repeated(name * (len(self.rows) + 1) + row):
            return ""
        begun = {row_names[k] for k in place[name == 0].tolist()}
        if continued and not self.column_rows.isdisjoint(begun):
            return ""
        free = row == _OBJECTIVE
        if not (np.abs(values[free]) < INFINITE).all():
            return ""
        column = name + (len(self.columns) - continued)
        ended = {row_names[k] for k in place[name == name[-1]].tolist()}
        self.column_rows = ended | (self.column_rows if continued and len(names) == 1 else set())
        self.column = names[-1]
        self._add_columns(names[continued:])
        for position, value in zip(column[free].tolist(), values[free].tolist(), strict=True):
            self.costs[position] = value
        line = np.repeat(number + np.flatnonzero(sizes), pairs)
        self.entries.extend(row[~free], column[~free], values[~free], line[~free])
        return block[: int(words.breaks[count - 1]) + 1]

    def _add_columns(self, names: list[str]) -> None:
        self.column_of.update(zip(names, range(len(self.columns), len(self.columns) + len(names)), strict=True))
        self.columns += names
        self.marked += [self.in_integers] * len(names)
        self.costs += [0.0] * len(names)

    def _begin_column(self, number: int, name: str) -> None:
        if name in self.column_of:
            self.refuse(number, f"column {quoted(name)} occurs twice; write its entries together")
        self._add_columns([name])
        self.column, self.column_rows = name, set()

    def _columns_by_line(self, lines: Lines) -> tuple[int, list[str]] | None:
        """Read some lines; return the first line of the next section if it comes."""
        row_of, split = self.row_of, self.split
        for number, line in islice(lines, _LINES):
            if not line[:1].isspace():
                words = self._section_words(number, line)
                if words is not None:
                    return number, words
            fields = split(line) if "$" not in line else self._fields(line) or []
            size = len(fields)
            if line[:1] == "*" or not size:
                continue
            if size not in (3, 5):
                self._refuse_entry(number, line)
            if fields[1] == "'MARKER'":
                self.in_integers = self._marker(number, fields, marked=self.in_integers)
                self.column = ""
                continue
            name = fields[0]
            if name != self.column:
                self._begin_column(number, name)
            column = len(self.columns) - 1
            for place in range(1, size, 2):
                row_name, text = fields[place], fields[place + 1]
                row = row_of.get(row_name)
                if row is None:
                    self.refuse(number, f"there is no row {quoted(row_name)}; name a row of the section ROWS")
                try:
                    value = float(text)
                except ValueError:
                    self._refuse_entry(number, line)
                if "_" in text or not text.isascii():  # as in parse_number
                    self._refuse_entry(number, line)
                if row_name in self.column_rows:
                    self._refuse_repeated(number, name, row_name)
                self.column_rows.add(row_name)
                if row >= 0:
                    self.entries.append(row, column, value, number)
                elif not abs(value) < INFINITE:
                    self.refuse(number, f"the coefficient {value:g} of {quoted(name)} is not a finite number")
                elif row == _OBJECTIVE:
                    self.costs[column] = value
        return None

    def _refuse_entry(self, number: int, line: str) -> NoReturn:
        self._refuse_doubles(number, line)
        self.refuse(number, f"{quoted(line)} is not a line of the section COLUMNS; write a column, a row and a number")

    def _refuse_repeated(self, number: int, column: str, row: str) -> NoReturn:
        self.refuse(
            number,
            f"a duplicate nonzero: column {quoted(column)} has two entries in row {quoted(row)}, which readers add, "
            "replace or ignore; write one",
        )

    def _marker(self, number: int, fields: list[str], *, marked: bool) -> bool:
        """Whether the columns after a marker are integer."""
        kinds = {"'INTORG'": True, "'INTEND'": False}
        if len(fields) != 3 or fields[2] not in kinds:
            what = "special ordered sets" if "SOS" in fields[-1] else quoted(" ".join(fields))
            self.refuse(number, f"{what}: a marker is 'INTORG' or 'INTEND'; {_REMEDY}")
        if kinds[fields[2]] == marked:
            self.refuse(number, f"{fields[2]} where columns are {'already' if marked else 'not'} integer; write pairs")
        return not marked

    # Right-hand sides and ranges

    def _pairs(self, section: str, number: int, fields: list[str]) -> Iterator[tuple[int, str, float]]:
        """Row, its name and value of each pair on a line of RHS or RANGES."""
        named = len(fields) % 2
        if len(fields) not in (2, 3, 4, 5):
            self._refuse_data(section, number, fields)
        self._one_set(section, number, fields[0] if named else "")
        if named and fields[0] in self.row_of:
            self.note(number, f"a set of {section} named like a row", "which HiGHS 1.16 takes for the row")
        elif not named:
            self.note(number, f"no name of a set in {section}", f"without which Xpress 9.9 ignores {section}")
        for place in range(named, len(fields), 2):
            value = parse_number(fields[place + 1], infinite=True)
            if value is None:
                self._refuse_data(section, number, fields)
            row = self.row_of.get(fields[place])
            if row is None:
                self.refuse(number, f"there is no row {quoted(fields[place])}; name a row of the section ROWS")
            yield row, fields[place], value

    def _refuse_doubles(self, number: int, line: str) -> None:
        found = _DOUBLE.search(line)
        if found:
            self.refuse(
                number, f"{quoted(found[0])}: write exponents with e; SCIP and Gurobi read a number with D only in part"
            )

    def _refuse_data(self, section: str, number: int, fields: list[str]) -> NoReturn:
        self._refuse_doubles(number, " ".join(fields))
        self.refuse(number, f"{quoted(' '.join(fields))} is not a line of the section {section}")

    def _one_set(self, section: str, number: int, name: str) -> None:
        earlier = self.sets.setdefault(section, name)
        if name != earlier:
            which = " and ".join(quoted(one) if one else "none" for one in (earlier, name))
            self.refuse(
                number,
                f"section {section} has two sets, {which}: CPLEX and SCIP take the first, Gurobi and HiGHS all; keep "
                "one",
            )

    def _once(self, known: dict[int, tuple[float, int]], number: int, place: int, value: float, what: str) -> None:
        """Store a value, which may be stated again only if it is the same."""
        earlier = known.setdefault(place, (value, number))
        if earlier[0] != value:
            self.refuse(
                number,
                f"{what} is stated twice, as {earlier[0]:.15g} in line {earlier[1]} and as {value:.15g}; keep one",
            )

    def _rhs(self, number: int, fields: list[str]) -> None:
        for row, name, value in self._pairs("RHS", number, fields):
            if row == _IGNORED:
                self.note(
                    number,
                    f"a right-hand side of {quoted(name)}, a row of type N that is not the objective",
                    "which HiGHS 1.16 adds to the constant",
                )
            else:
                self._once(self.rhs, number, row, value, f"the right-hand side of {quoted(name)}")
            if row == _OBJECTIVE and value:
                self.note(
                    number,
                    "a right-hand side of the objective, minus its constant",
                    "which GLPK 5.0 and lp_solve 5.5 read with the other sign, and OMMX 2.9 not at all",
                )

    def _range(self, number: int, fields: list[str]) -> None:
        for row, name, value in self._pairs("RANGES", number, fields):
            if row >= 0:
                self._once(self.ranges, number, row, value, f"the range of {quoted(name)}")

    # Bounds

    def _bound(self, number: int, fields: list[str]) -> None:
        kind, given = fields[0], fields[1:]
        if kind in {"SC", "SI", "SB"}:
            name = next((word for word in reversed(given) if word in self.column_of), kind)
            self.refuse(number, f"column {quoted(name)} is semi-continuous; {_REMEDY}")
        if kind in {"UP", "LO", "FX", "UI", "LI"}:
            if len(given) not in (2, 3):
                self._refuse_data("BOUNDS", number, fields)
            value = parse_number(given[-1], infinite=True)
            if value is None:
                self._refuse_data("BOUNDS", number, fields)
            named, name = len(given) == 3, given[-2]
        elif kind in {"FR", "MI", "PL", "BV"}:
            if (len(given) == 3 and parse_number(given[2], infinite=True) is None) or len(given) not in (1, 2, 3):
                self._refuse_data("BOUNDS", number, fields)
            value, named, name = 0.0, len(given) > 1, given[min(len(given) - 1, 1)]
        else:
            self.refuse(number, f"the bound {quoted(kind)} is unknown; write UP, LO, FX, FR, MI, PL, BV, LI or UI")
        self._one_set("BOUNDS", number, given[0] if named else "")
        if not named:
            self.note(number, "no name of a set in BOUNDS", "without which Xpress 9.9 ignores BOUNDS")
        elif given[0] in self.column_of:
            self.note(number, "a set of BOUNDS named like a column", "which HiGHS 1.16 takes for the column")
        column = self.column_of.get(name)
        if column is None:
            self.refuse(number, f"there is no column {quoted(name)}; name a column of the section COLUMNS")
        self._state_bound(number, kind, column, float(value))

    def _state_bound(self, number: int, kind: str, column: int, value: float) -> None:
        name = quoted(self.columns[column])
        ends = {
            "UP": (None, value),
            "UI": (None, value),
            "LO": (value, None),
            "LI": (value, None),
            "FX": (value, value),
            "FR": (-np.inf, np.inf),
            "MI": (-np.inf, None),
            "PL": (None, np.inf),
            "BV": (0.0, 1.0),
        }
        low, high = ends[kind]
        if (low is not None and low >= INFINITE) or (high is not None and high <= -INFINITE):
            self.refuse(number, f"the bound {value:g} of {name} excludes every number; state a finite one")
        if low is not None:
            self._once(self.lowers, number, column, low, f"the lower bound of {name}")
        if high is not None:
            self._once(self.uppers, number, column, high, f"the upper bound of {name}")
        if kind in {"BV", "LI", "UI"}:
            self.integers.add(column)

    # The program

    def _draft(self) -> ProgramDraft:
        count = len(self.columns)
        lower, upper = np.zeros(count), np.full(count, np.inf)
        integer = np.array(self.marked, dtype=bool).reshape(count)
        for column, (value, _) in self.lowers.items():
            lower[column] = value
        for column, (value, line) in self.uppers.items():
            if value < 0 and column not in self.lowers:
                self.refuse(
                    line,
                    f"column {quoted(self.columns[column])} has a negative upper bound and no lower bound, which is "
                    "-infinity for CPLEX and Gurobi and 0 for HiGHS and SCIP: state its lower bound",
                )
            if value == 0 and column not in self.lowers:
                name = quoted(self.columns[column])
                self.note(line, f"an upper bound 0 of {name}", "below which OMMX 2.9 takes it for unbounded")
            upper[column] = value
        for column in np.flatnonzero(integer).tolist():
            if column not in self.lowers and column not in self.uppers:
                upper[column] = 1.0
            elif column in self.lowers and column not in self.uppers:
                line, name = self.lowers[column][1], quoted(self.columns[column])
                self.note(line, f"a lower bound of the integer column {name}", "whose upper bound is 1 for GLPK 5.0")
        integer[list(self.integers)] = True
        entry_row, entry_column, values, lines = self.entries.arrays()
        self.check_coefficients(values, lines, entry_column, self.columns)
        row_lower, row_upper = self._row_bounds()
        return ProgramDraft(
            columns=self.columns,
            rows=self.rows,
            entry_row=entry_row,
            entry_column=entry_column,
            entry_value=values,
            row_lower=row_lower,
            row_upper=row_upper,
            lower=infinite_beyond(lower),
            upper=infinite_beyond(upper),
            cost=np.array(self.costs, dtype=float),
            offset=-self.rhs.get(_OBJECTIVE, (-0.0, 0))[0],
            integer=integer,
            sense=self.sense,
            notes=[self.pulp, *self.notes] if self.pulp and not self.sense else self.notes,
        )

    def _row_bounds(self) -> tuple[np.ndarray, np.ndarray]:
        count = len(self.rows)
        lower, upper = np.full(count, -np.inf), np.full(count, np.inf)
        for row, kind in enumerate(self.types):
            value, line = self.rhs.get(row, (0.0, 0))
            beyond = {"L": value <= -INFINITE, "G": value >= INFINITE, "E": abs(value) >= INFINITE}[kind]
            if beyond:
                self.refuse(line, f"the right-hand side {value:g} of {quoted(self.rows[row])} excludes every number")
            width = self.ranges.get(row, (None, 0))[0]
            if kind in {"L", "E"}:
                upper[row] = value
            if kind in {"G", "E"}:
                lower[row] = value
            if width is not None:
                if kind == "L" or (kind == "E" and width < 0):
                    lower[row] = value - abs(width)
                else:
                    upper[row] = value + abs(width)
        objective = self.rhs.get(_OBJECTIVE)
        if objective is not None and abs(objective[0]) >= INFINITE:
            self.refuse(objective[1], f"the constant {-objective[0]:g} of the objective is not a finite number")
        return infinite_beyond(lower), infinite_beyond(upper)
