"""Programs in LP files: the format of CPLEX's documents, as Gurobi and SCIP read it.

::

    file       = sense [name ":"] expression
                 ["Subject To" {[name ":"] expression relation number}]
                 ["Bounds" {bound}] {"General" {name} | "Integer" {name} | "Binary" {name}} "End"
    expression = [sign] [number] name {sign [number] name} [sign number]     (the number at the end: objective only)
    bound      = [number relation] name relation number | number relation name | name "free"

Each bound has a line of its own; everything else may be broken into lines anywhere. ``<``, ``=<`` and ``<=`` are one
relation. A backslash begins a comment. A construct that the documents do not have, such as a constant or a variable on
the wrong side of a row, is refused with its line, and so is one that programs read differently:

* a binary column with bounds outside [0, 1] (CPLEX and HiGHS keep them, Gurobi and SCIP do not);
* an integer column (section ``Integer``) without bounds, which is binary for CPLEX and general for SCIP and Gurobi;
* ``Bounds`` after ``General`` (CPLEX ignores them);
* a negative upper bound without a lower bound, which the default lower bound 0 contradicts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NoReturn

import numpy as np

from opticoll.instances.readers.plain_lp import NOTED, RELATIONS, plain_rows
from opticoll.instances.readers.program_draft import (
    INFINITE,
    Entries,
    LineReader,
    ProgramDraft,
    infinite_beyond,
    quoted,
)
from opticoll.instances.readers.text_blocks import has_repeated

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Section = Literal["objective", "rows", "bounds", "general", "integer", "binary", "semi", "sets", "end"]

_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_LETTER = r"[^\s+\-*/^<>=:\\\[\].0-9]"
_NAME = rf"{_LETTER}(?:{_LETTER}|[.0-9]|\[[^\s\[\]]*\])*"
#: Words of a line; what fits nothing else is a word of one character.
_WORDS = re.compile(rf"{_NUMBER}|{_NAME}|[<>=]+|\S")
_WHOLE_NAME = re.compile(_NAME)
#: A number that runs into a name, such as 1.5D2.
_DOUBLE = re.compile(r"(?<![^\s+\-<>=:])(?:[0-9]+\.?[0-9]*|\.[0-9]+)[dD][+-]?[0-9]+")
_SENSES: dict[str, Literal["min", "max"]] = {
    **dict.fromkeys(("min", "minimize", "minimum"), "min"),
    **dict.fromkeys(("max", "maximize", "maximum"), "max"),
}
#: Words that begin sections, in lower case; those of two or three words with the words that follow.
_KEYWORDS: dict[tuple[str, ...], Section] = {
    ("subject", "to"): "rows",
    ("such", "that"): "rows",
    ("st",): "rows",
    ("s.t.",): "rows",
    ("st.",): "rows",
    ("bounds",): "bounds",
    ("bound",): "bounds",
    ("general",): "general",
    ("generals",): "general",
    ("gen",): "general",
    ("integer",): "integer",
    ("integers",): "integer",
    ("int",): "integer",
    ("binary",): "binary",
    ("binaries",): "binary",
    ("bin",): "binary",
    ("semi", "-", "continuous"): "semi",
    ("semicontinuous",): "semi",
    ("semis",): "semi",
    ("semi",): "semi",
    ("sos",): "sets",
    ("sos1",): "sets",
    ("sos2",): "sets",
    ("end",): "end",
}
#: What begins with other words, and is not part of a linear program.
_OTHER = {
    ("lazy", "constraints"): "lazy constraints",
    ("user", "cuts"): "user cuts",
    ("general", "constraints"): "general constraints",
    ("gencons",): "general constraints",
    ("pwlobj",): "piecewise linear objectives",
    ("sin",): "semi-integer columns",
    ("semi", "-", "integer"): "semi-integer columns",
    ("multi", "-", "objectives"): "several objectives",
    ("scenario",): "scenarios",
}
#: Lines read one by one before blocks of lines are tried again.
_LINES = 1024
_FIRST_WORDS = frozenset(words[0] for words in (*_KEYWORDS, *_OTHER)) | frozenset(_SENSES)
#: Sections in their order; those of one number may come in any order.
_PLACE: dict[Section, int] = {
    "objective": 0,
    "rows": 1,
    "bounds": 2,
    "general": 3,
    "integer": 3,
    "binary": 3,
    "semi": 3,
    "sets": 3,
    "end": 4,
}
_TITLES: dict[Section, str] = {
    "objective": "the objective",
    "rows": "Subject To",
    "bounds": "Bounds",
    "general": "General",
    "integer": "Integer",
    "binary": "Binary",
    "semi": "Semi-continuous",
    "sets": "SOS",
    "end": "End",
}
_INFINITY = frozenset({"inf", "infinity"})


def read_lp(content: bytes, where: str) -> ProgramDraft:
    """Read an LP file.

    Raises
    ------
    BadFile
        With the line, if it is not a linear program or readers disagree about it.
    """
    return _Reader(content, where).read()


class _Reader(LineReader):
    """State of reading one file."""

    def __init__(self, content: bytes, where: str) -> None:
        super().__init__(content, where)
        self.section: Section | None = None
        self.sense: Literal["min", "max"] = "min"
        self.section_line = 0
        self.line, self.text = 0, ""
        self.column_of: dict[str, int] = {}
        self.columns: list[str] = []
        self.has_keyword_column = False
        self.cost: dict[int, float] = {}
        self.offset = 0.0
        self.rows: list[str] = []
        self.row_line: dict[str, int] = {}
        self.row_lower: list[float] = []
        self.row_upper: list[float] = []
        self.entries = Entries()
        self.lowers: dict[int, tuple[float, int]] = {}
        self.uppers: dict[int, tuple[float, int]] = {}
        self.freed: dict[int, int] = {}
        self.kinds: dict[int, tuple[Section, int]] = {}
        self.seen_only_after_rows: list[tuple[str, int, str]] = []
        self.ended = False
        # The row or objective that is being read.
        self.label: str | None = None
        self.labelled = False
        self.sign: int | None = None
        self.number: float | None = None
        self.relation = ""
        self.begun = 0
        self.terms: list[int] = []
        self.values: list[float] = []
        self.term_lines: list[int] = []

    def read(self) -> ProgramDraft:
        """Read all lines."""
        lines = self.numbered_lines()
        for line, text in lines:
            self.line, self.text = line, text
            words, place = _WORDS.findall(text if "\\" not in text else text[: text.index("\\")]), 0
            while place < len(words):
                place = self._read_from(words, place)
                if self.section == "end":
                    return self._draft()
            if self.section == "rows" and (line % _LINES == 0 or self.section_line == line):
                lines.read_blocks(self._plain_rows)
        if self.section is None:
            self.refuse_file("it has no objective; begin with Minimize or Maximize")
        return self.refuse(self.line, "the file has no End at its end; it is incomplete or not in LP format")

    def _read_from(self, words: list[str], place: int) -> int:
        """Read words of a line in the current section; return the place of the first that is left."""
        if self.section is None:
            return self._begin(words, place)
        if self.section in {"objective", "rows"}:
            return self._expression(words, place)
        section = self._section_at(words, place)
        if section:
            return self._enter(*section, words, place)
        if self.section == "bounds":
            return self._bound(words, place)
        return self._kind(words, place)

    # Sections

    def _begin(self, words: list[str], place: int) -> int:
        sense = _SENSES.get(words[place].lower())
        if sense is None:
            self.refuse(self.line, f"{quoted(words[place])} is not a sense; begin with Minimize or Maximize")
        if words[place + 1 : place + 2] == [":"]:
            self.refuse(self.line, f"no colon may follow {words[place]}; write a line with {words[place]} only")
        following = tuple(word.lower() for word in words[place + 1 : place + 4])
        if following in _OTHER:
            self.refuse(self.line, f"a linear program has no {_OTHER[following]}; write one objective")
        self.sense, self.section, self.begun = sense, "objective", self.line
        return place + 1

    def _section_at(self, words: list[str], place: int) -> tuple[Section, int] | None:
        """Section that begins with the word at ``place``, and the number of its words; None if none does."""
        first = words[place].lower()
        if first not in _FIRST_WORDS:
            return None
        for size in (3, 2, 1):
            given = tuple(word.lower() for word in words[place : place + size])
            if given in _OTHER and len(given) == size:
                what = _OTHER[given]
                self.refuse(self.line, f"section {quoted(' '.join(given))}: a linear program has no {what}; remove it")
            if given in _KEYWORDS and len(given) == size:
                return _KEYWORDS[given], size
        if first in _SENSES:
            self.refuse(self.line, f"{quoted(words[place])} is reserved and the objective is already stated; rename it")
        return None

    def _enter(self, section: Section, size: int, words: list[str], place: int) -> int:
        assert self.section is not None
        if words[place + size : place + size + 1] == [":"]:
            self.refuse(self.line, f"no colon may follow {quoted(' '.join(words[place : place + size]))}")
        if section == self.section and section in {"rows", "bounds"}:
            self.refuse(self.line, f"a second section {_TITLES[section]}; write one")
        if _PLACE[section] < _PLACE[self.section]:
            self.refuse(
                self.line,
                f"section {_TITLES[section]} comes after {_TITLES[self.section]}, where CPLEX ignores it and Gurobi "
                "refuses it; write it before",
            )
        self.section, self.section_line = section, self.line
        return place + size

    # The objective and rows

    def _plain_rows(self, block: str, number: int) -> str:
        """Read rows in plain form at once; the first line of the block has the given number.

        Returns
        -------
        str
            The lines read; empty, with nothing read, where the block has to be read line by line.
        """
        if self._is_open() or self.has_keyword_column:
            return ""
        rows = plain_rows(block)
        if rows is None or not np.isfinite(infinite_beyond(rows.sides)).all():
            return ""
        labels = set(rows.labels)
        if len(labels) < len(rows.labels) or not self.row_line.keys().isdisjoint(labels):
            return ""
        new = [name for name in rows.names if name not in self.column_of]
        if not (_are_plain(labels) and _are_plain(new)):
            return ""
        number_of = dict(zip(new, range(len(self.columns), len(self.columns) + len(new)), strict=True)) | self.column_of
        columns = np.array([number_of[name] for name in rows.names], dtype=np.int64)[rows.name]
        if has_repeated(rows.row * len(number_of) + columns):
            return ""
        self.column_of = number_of
        self.columns += new
        self.entries.extend(rows.row + len(self.rows), columns, rows.values, rows.name_lines + number)
        self.row_line.update(zip(rows.labels, (rows.label_lines + number).tolist(), strict=True))
        self.rows += rows.labels
        sides = rows.sides.tolist()
        self.row_lower += [-np.inf if r == "<" else side for r, side in zip(rows.relations, sides, strict=True)]
        self.row_upper += [np.inf if r == ">" else side for r, side in zip(rows.relations, sides, strict=True)]
        return rows.text

    def _expression(self, words: list[str], place: int) -> int:
        """Read words of the objective or of rows, up to the end of the line or to a section."""
        column_of, line, size = self.column_of, self.line, len(words)
        while place < size:
            word = words[place]
            place += 1
            first = word[0]
            if word in column_of and (self.terms or self.sign is not None or self.number is not None):
                if self.relation or (self.sign is None and self.terms):
                    return self._section_for_term(words, place - 1)
                self._term(column_of[word], line)
            elif first == "+":
                self.sign = self.sign or 1
                self._before_sign()
            elif first == "-":
                self._before_sign()
                self.sign = -(self.sign or 1)
            elif first in "0123456789." and word != ".":
                place = self._number(words, place)
            elif first in "<>=":
                self._relation(word)
            else:
                found = self._name(words, place - 1)
                if found is not None:
                    return found
                if self.labelled and not self.terms and words[place : place + 1] == [":"]:
                    place += 1
        return place

    def _section_for_term(self, words: list[str], place: int) -> int:
        """Enter a section that is named like a column, where no term may stand; refuse any other name."""
        section = None if self.relation or self.number is not None else self._section_at(words, place)
        if section is None:
            self._refuse_name(words[place])
        self._finish()
        return self._enter(*section, words, place)

    def _number(self, words: list[str], place: int) -> int:
        """Read the number before ``place``: a coefficient, or the right-hand side that ends a row."""
        word = words[place - 1]
        if self.number is not None or (self.sign is None and self.terms and not self.relation):
            self.refuse(self.line, f"no operator before {quoted(word)}; write + or - between terms")
        self.number = float(word)
        if not self.relation:
            if word[-1] == "." and place < len(words) and f"{word}{words[place]}" in self.text:
                self.note(
                    self.line,
                    f"{quoted(word + words[place])}, the number {word} and a name",
                    "for SCIP 10, Gurobi 13 and COPT 8 another column",
                )
            return place
        self._finish_row((self.sign or 1) * self.number)
        return self._after_row(words, place)

    def _is_open(self) -> bool:
        """Whether something of a row or of the objective has been read since the last one ended."""
        return bool(self.labelled or self.terms or self.relation or self.sign is not None or self.number is not None)

    def _before_sign(self) -> None:
        """A sign ends a number without a name: the constant of the objective, which must be its last term."""
        if self.number is not None:
            self._refuse_constant(self.number)

    def _refuse_constant(self, value: float) -> NoReturn:
        if self.section == "objective":
            self.refuse(self.line, f"the constant {value:g} is not the last term of the objective; write it last")
        self.refuse(
            self.line, f"row {self._row_name()}: the constant {value:g} stands left; move it to the right-hand side"
        )

    def _row_name(self) -> str:
        return quoted(self.label) if self.label else f"that begins in line {self.begun or self.line}"

    def _refuse_name(self, word: str) -> NoReturn:
        if self.relation:
            self.refuse(
                self.line,
                f"row {self._row_name()}: {quoted(word)} stands right of {self.relation}; move it to the left",
            )
        self.refuse(self.line, f"no operator before {quoted(word)}; write + or - between terms")

    def _term(self, column: int, line: int) -> None:
        value = 1.0 if self.number is None else self.number
        self.terms.append(column)
        self.values.append(-value if self.sign == -1 else value)
        self.term_lines.append(line)
        self.sign = self.number = None

    def _relation(self, word: str) -> None:
        relation = RELATIONS.get(word)
        if relation is None:
            self.refuse(self.line, f"{quoted(word)} is not a relation; write <=, >= or =")
        if self.section == "objective":
            self.refuse(self.line, f"{quoted(word)} in the objective; begin the rows with Subject To")
        if self.relation:
            self.refuse(self.line, f"row {self._row_name()} has two relations; write one row for each")
        if self.number is not None:
            if not self.terms:
                self.refuse(
                    self.line,
                    f"row {self._row_name()} begins with a number; write it right of {word}, and a row for each side",
                )
            self._refuse_constant(self.number)
        if self.sign is not None:
            self.refuse(self.line, f"row {self._row_name()}: nothing between the sign and {word}")
        self.relation = word
        if word in NOTED:
            self.note(self.line, f"the relation {word}", "which MOSEK 11.2 reads the other way round")
        self.begun = self.begun or self.line

    def _name(self, words: list[str], place: int) -> int | None:
        """Read a word that is no term of a known column: a label, a section, infinity or a new column.

        Returns the place after a section's words if the word begins one, else None.
        """
        word = words[place]
        if word[0] in "*/^[]":
            self._refuse_operator(word)
        complete = self.sign is None and self.number is None
        labels = words[place + 1 : place + 2] == [":"]
        section = self._section_at(words, place)
        if section and section[1] == 1 and word in self.column_of:
            section = None
        if section:
            constant = self.section == "objective" and self.number is not None and place == 0
            if not (complete or constant):
                self.refuse(self.line, f"{quoted(word)} is reserved for a section; rename it")
            self._finish()
            return self._enter(*section, words, place)
        if labels:
            self._label(word)
            return None
        if self.relation:
            if word.lower() in _INFINITY:
                self._finish_row((self.sign or 1) * np.inf)
                self._after_row(words, place + 1)
                return None
            self._refuse_name(word)
        if self.terms and self.sign is None:
            self._refuse_name(word)
        self.begun = self.begun or self.line
        self._term(self._column(word), self.line)
        return None

    def _label(self, word: str) -> None:
        if self.section == "objective" and (self.labelled or self.terms):
            self.refuse(self.line, f"a second objective, {quoted(word)}; begin the rows with Subject To")
        if self._is_open():
            self.refuse(self.line, f"the row before {quoted(word)} has no relation and right-hand side; complete it")
        self._check_name(word)
        self.label, self.labelled, self.begun = word, True, self.line

    def _check_name(self, word: str) -> None:
        if word[0] in "*/^[]":
            self._refuse_operator(word)
        if word in {":", "."}:
            self.refuse(self.line, f"{quoted(word)} begins no name; a name begins with a letter or an underscore")
        if word[0] in "dD" and (found := _DOUBLE.search(self.text)):
            self.refuse(
                self.line, f"{quoted(found[0])}: write exponents with e; readers take D for a name or ignore it"
            )
        if word.lower() in _INFINITY:
            self.refuse(self.line, f"{quoted(word)} is a number for some readers and a name for others; rename it")
        if word.count("(") != word.count(")"):
            self.refuse(self.line, f"{quoted(word)}: parentheses are part of a name; write the expression without them")

    def _column(self, word: str) -> int:
        """Number of a column, which is new if its name is."""
        column = self.column_of.get(word)
        if column is None:
            self._check_name(word)
            self.has_keyword_column |= word.lower() in _FIRST_WORDS
            column = self.column_of[word] = len(self.columns)
            self.columns.append(word)
        return column

    def _refuse_operator(self, word: str) -> NoReturn:
        remedy = {
            "*": "products of columns; write '2 x' for '2 * x'",
            "/": "quotients; write a decimal number",
            "^": "powers; write a linear program",
            "[": "quadratic terms; write a linear program",
            "]": "quadratic terms; write a linear program",
        }[word[0]]
        self.refuse(self.line, f"{quoted(word)}: a linear program has no {remedy}")

    def _finish(self) -> None:
        """End the objective or a row at the beginning of a section."""
        if self.section == "objective":
            if self.sign is not None and self.number is None:
                self.refuse(self.line, "the objective ends with a sign; complete it")
            self.offset = (self.sign or 1) * (self.number or 0.0)
            self._store_objective()
        elif self._is_open():
            self.refuse(self.line, f"row {self._row_name()} has no relation or no right-hand side; complete it")
        self._clear()

    def _clear(self) -> None:
        self.label, self.labelled, self.sign, self.number, self.relation, self.begun = None, False, None, None, "", 0
        self.terms, self.values, self.term_lines = [], [], []

    def _store_objective(self) -> None:
        if self.offset:
            others = "which Gurobi 13 takes for a column"
            others += ", and whose sign MOSEK 11.2 drops" if self.offset < 0 else ""
            self.note(self.line, f"the constant {self.offset:.15g} of the objective", others)
        for column, value, line in zip(self.terms, self.values, self.term_lines, strict=True):
            if abs(value) >= INFINITE:
                self.refuse(line, f"the coefficient {value:g} of {quoted(self.columns[column])} is not a finite number")
            if column in self.cost:
                name = quoted(self.columns[column])
                self.note(line, f"{name} twice in the objective", "of which HiGHS 1.15 takes the last term")
            self.cost[column] = self.cost.get(column, 0.0) + value

    def _finish_row(self, value: float) -> None:
        relation = RELATIONS[self.relation]
        if (relation != ">" and value <= -INFINITE) or (relation != "<" and value >= INFINITE):
            self.refuse(self.line, f"row {self._row_name()}: the right-hand side {value:g} excludes every number")
        row = len(self.rows)
        name = self.label or ""
        if name:
            if name in self.row_line:
                self.refuse(self.line, f"a second row {quoted(name)}; line {self.row_line[name]} has one")
            self.row_line[name] = self.begun
        self.rows.append(name)
        self.row_lower.append(-np.inf if relation == "<" else value)
        self.row_upper.append(np.inf if relation == ">" else value)
        if len(set(self.terms)) < len(self.terms):
            self._add_repeated()
        self.entries.extend(np.full(len(self.terms), row), self.terms, self.values, self.term_lines)
        self._clear()

    def _add_repeated(self) -> None:
        """Add the coefficients of columns that occur several times in a row."""
        name = quoted(next(self.columns[j] for j in self.terms if self.terms.count(j) > 1))
        self.note(self.line, f"{name} twice in a row", "of which SCIP 10 takes one term")
        total: dict[int, list[float]] = {}
        lines = dict(zip(self.terms, self.term_lines, strict=True))
        for column, value in zip(self.terms, self.values, strict=True):
            total.setdefault(column, []).append(value)
        self.terms, self.values = list(total), [sum(parts) for parts in total.values()]
        self.term_lines = [lines[column] for column in self.terms]

    def _after_row(self, words: list[str], place: int) -> int:
        """Require that a new row on the same line begins with a label."""
        if words[place : place + 2] == ["-", ">"]:
            self.refuse(self.line, "'->': a linear program has no indicator rows; remove it")
        if words[place + 1 : place + 2] == [":"]:
            self.note(self.line, "a second row on the line", "which MOSEK 11.2 and CPLEX 22.2 leave out")
        elif place < len(words) and not self._section_at(words, place):
            self.refuse(
                self.line,
                f"{quoted(words[place])} follows the right-hand side of a row, which is one number; begin the next row "
                "on a new line",
            )
        return place

    # Bounds and kinds

    def _bound(self, words: list[str], place: int) -> int:
        """Read a bound: the whole line."""
        items = self._items(words[place:])
        shape = "".join(kind for kind, _, _ in items)
        text = " ".join(words[place:])
        if shape == "nf":
            self._free(self._late_column(items[0][1], "Bounds"))
        elif shape == "nrv":
            self._state(items[0][1], items[1][1], items[2][2])
        elif shape == "vrn":
            self.note(self.line, f"the bound {quoted(text)} with its column right", "which MOSEK 11.2 ignores")
            self._state(items[2][1], _flipped(items[1][1]), items[0][2])
        elif shape == "vrnrv":
            if items[1][1] != items[3][1] or items[1][1] == "=":
                self.refuse(self.line, f"{quoted(text)}: the two relations must point the same way")
            self._state(items[2][1], _flipped(items[1][1]), items[0][2])
            self._state(items[2][1], items[3][1], items[4][2])
        else:
            self.refuse(
                self.line, f"{quoted(text)} is not a bound; write one a line, such as x <= 4, 1 <= x <= 4 or x free"
            )
        return len(words)

    def _items(self, words: Sequence[str]) -> list[tuple[str, str, float]]:
        """Words of a bound as kind (name, free, relation, value), text and value."""
        items: list[tuple[str, str, float]] = []
        sign: int | None = None
        for place, word in enumerate(words):
            if word in {"+", "-"}:
                sign = (sign or 1) * (1 if word == "+" else -1)
                continue
            number = word[0] in "0123456789." and word != "."
            if number or word.lower() in _INFINITY:
                items.append(("v", word, (sign or 1) * (float(word) if number else np.inf)))
                sign = None
                continue
            if sign is not None or word == ":":
                items.append(("?", word, 0.0))
            elif word in RELATIONS:
                items.append(("r", RELATIONS[word], 0.0))
            elif word.lower() == "free" and place == len(words) - 1 and place:
                items.append(("f", word, 0.0))
            else:
                items.append(("n", word, 0.0))
        return items if sign is None else [*items, ("?", "", 0.0)]

    def _late_column(self, name: str, section: str) -> int:
        """Number of a column that a section after the rows names; a new one if no row and not the objective has it."""
        if name not in self.column_of:
            self.seen_only_after_rows.append((name, self.line, section))
        return self._column(name)

    def _state(self, name: str, relation: str, value: float) -> None:
        column = self._late_column(name, "Bounds")
        low, high = (value if relation != "<" else None), (value if relation != ">" else None)
        if (low is not None and low >= INFINITE) or (high is not None and high <= -INFINITE):
            self.refuse(self.line, f"the bound {value:g} of {quoted(name)} excludes every number; state a finite one")
        if low is not None:
            self.lowers[column] = (low, self.line)
        if high is not None:
            self.uppers[column] = (high, self.line)

    def _free(self, column: int) -> None:
        earlier = self.lowers.get(column) or self.uppers.get(column)
        if earlier is not None:
            self.refuse(
                self.line,
                f"{quoted(self.columns[column])} is free and has a bound in line {earlier[1]}; keep one of the two",
            )
        self.lowers[column], self.uppers[column] = (-np.inf, self.line), (np.inf, self.line)

    def _kind(self, words: list[str], place: int) -> int:
        """Read the name of a column that is integer."""
        assert self.section is not None
        word = words[place]
        if self.section in {"semi", "sets"}:
            what = "semi-continuous columns" if self.section == "semi" else "special ordered sets"
            self.refuse(self.line, f"section {_TITLES[self.section]}: a linear program has no {what}; remove it")
        if word[0] in "+-<>=:*/^0123456789.":
            self.refuse(self.line, f"{quoted(word)} is not the name of a column in the section {_TITLES[self.section]}")
        column = self._late_column(word, _TITLES[self.section])
        if self.kinds.get(column, ("", 0))[0] != "binary":
            self.kinds[column] = (self.section, self.line)
        return place + 1

    # The program

    def _draft(self) -> ProgramDraft:
        count = len(self.columns)
        lower, upper = np.zeros(count), np.full(count, np.inf)
        for column, (value, _) in self.lowers.items():
            lower[column] = value
        for column, (value, line) in self.uppers.items():
            upper[column] = value
            if value < 0 and column not in self.lowers:
                self.refuse(
                    line,
                    f"column {quoted(self.columns[column])} has a negative upper bound and the default lower bound 0: "
                    "state its lower bound",
                )
        integer = np.zeros(count, dtype=bool)
        for column, (section, line) in self.kinds.items():
            integer[column] = True
            self._check_kind(column, section, line, lower, upper)
        cost = np.zeros(count)
        cost[list(self.cost)] = list(self.cost.values())
        entry_row, entry_column, values, lines = self.entries.arrays()
        self.check_coefficients(values, lines, entry_column, self.columns)
        return ProgramDraft(
            columns=self.columns,
            rows=_named(self.rows),
            entry_row=entry_row,
            entry_column=entry_column,
            entry_value=values,
            row_lower=infinite_beyond(np.array(self.row_lower)),
            row_upper=infinite_beyond(np.array(self.row_upper)),
            lower=infinite_beyond(lower),
            upper=infinite_beyond(upper),
            cost=cost,
            offset=self.offset,
            integer=integer,
            sense=self.sense,
            notes=[*self._late_columns(), *self.notes],
        )

    def _check_kind(self, column: int, section: Section, line: int, lower: np.ndarray, upper: np.ndarray) -> None:
        """Give a binary column its bounds; refuse integer columns about whose bounds programs disagree."""
        stated = column in self.lowers or column in self.uppers
        name = quoted(self.columns[column])
        if section == "binary":
            if column not in self.uppers:
                upper[column] = 1.0
            if stated and (lower[column] < 0 or upper[column] > 1):
                self.refuse(
                    line,
                    f"{name} is binary and has bounds outside [0, 1], which CPLEX and HiGHS keep and Gurobi and SCIP "
                    "do not; change its bounds or make it General",
                )
        elif section == "integer" and stated:
            self.note(line, f"{name} in the section Integer", "which makes [0, 1] of its bounds for MOSEK 11.2")
        elif section == "integer":
            self.refuse(
                line,
                f"{name} is Integer without bounds, which means [0, 1] for CPLEX and [0, infinity) for Gurobi and "
                "SCIP; write it in the section General or state its bounds",
            )

    def _late_columns(self) -> list[str]:
        if not self.seen_only_after_rows:
            return []
        name, line, section = self.seen_only_after_rows[0]
        more = len(self.seen_only_after_rows) - 1
        others = f" and {more} more" if more else ""
        return [
            f"column {quoted(name)}{others} occurs in no row and not in the objective, only in {section} (line {line})"
            "; CPLEX 22.2 and Xpress 9.9 leave it out, MOSEK 11.2 fixes it at 0"
        ]


def _is_special(name: str) -> bool:
    """Whether a name may begin a section, be a number, or be refused."""
    return (
        (lower := name.lower()) in _FIRST_WORDS
        or lower in _INFINITY
        or name[0] in "dD"
        or name.count("(") != name.count(")")
    )


def _are_plain(names: Iterable[str]) -> bool:
    """Whether no name is special, and those with brackets are one word each, as ``x[1,2]`` is."""
    return not any(map(_is_special, names)) and all(
        _WHOLE_NAME.fullmatch(name) for name in names if "[" in name or "]" in name
    )


def _flipped(relation: str) -> str:
    return {"<": ">", ">": "<", "=": "="}[relation]


def _named(rows: list[str]) -> list[str]:
    """Names of rows, made up for those without one."""
    taken = set(rows)
    names = []
    for place, name in enumerate(rows):
        made = name or f"r{place}"
        while not name and made in taken:
            made += "_"
        names.append(made)
    return names
