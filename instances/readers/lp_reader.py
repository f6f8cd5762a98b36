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

import math
import re
from typing import TYPE_CHECKING, Literal, NoReturn

from opticoll.instances.readers.program_reader import ProgramReader, Relation, quoted

if TYPE_CHECKING:
    from opticoll.instances.matrix_program import MatrixProgram

    Section = Literal["objective", "rows", "bounds", "general", "integer", "binary", "semi", "sets", "end"]

_RELATIONS: dict[str, Relation] = {"<": "<", "<=": "<", "=<": "<", ">": ">", ">=": ">", "=>": ">", "=": "="}
_FLIPPED: dict[Relation, Relation] = {"<": ">", "=": "=", ">": "<"}
_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_LETTER = r"[^\s+\-*/^<>=:\\\[\].0-9]"
_NAME = rf"{_LETTER}(?:{_LETTER}|[.0-9]|\[[^\s\[\]]*\])*"
#: Words of a line; what fits nothing else is a word of one character.
_WORDS = re.compile(rf"{_NUMBER}|{_NAME}|[<>=]+|\S")
#: A coefficient that runs into the name of its column.
_JOINED = re.compile(rf"(?<![^\s+\-<>=:])(?P<number>(?>{_NUMBER})){_NAME}")
#: A number that runs into a name, such as 1.5D2.
_DOUBLE = re.compile(r"(?<![^\s+\-<>=:])(?:[0-9]+\.?[0-9]*|\.[0-9]+)[dD][+-]?[0-9]+")
#: A bound, its words joined by blanks.
_VALUE, _RELATION = rf"(?:[+-] )*(?:{_NUMBER}|inf(?:inity)?)", r"(?:[<>]=?|=[<>]?)"
_BOUND = re.compile(
    rf"(?:(?P<left>{_VALUE}) (?P<flipped>{_RELATION}) )?"
    rf"(?P<name>{_NAME})(?: (?P<relation>{_RELATION}) (?P<right>{_VALUE}))?"
    rf"|(?P<free>{_NAME}) free",
    re.IGNORECASE,
)
_SENSES: dict[str, Literal["min", "max"]] = {
    **dict.fromkeys(("min", "minimize", "minimum"), "min"),
    **dict.fromkeys(("max", "maximize", "maximum"), "max"),
}
#: Place of a section among the others (those of one number may come in any order), its title, and the words that begin
#: it, in lower case.
_SECTIONS: dict[Section, tuple[int, str, tuple[str, ...]]] = {
    "objective": (0, "the objective", ()),
    "rows": (1, "Subject To", ("subject to", "such that", "st", "s.t.", "st.")),
    "bounds": (2, "Bounds", ("bounds", "bound")),
    "general": (3, "General", ("general", "generals", "gen")),
    "integer": (3, "Integer", ("integer", "integers", "int")),
    "binary": (3, "Binary", ("binary", "binaries", "bin")),
    "semi": (3, "Semi-continuous", ("semi - continuous", "semicontinuous", "semis", "semi")),
    "sets": (3, "SOS", ("sos", "sos1", "sos2")),
    "end": (4, "End", ("end",)),
}
_KEYWORDS = {tuple(words.split()): section for section, row in _SECTIONS.items() for words in row[2]}
_TITLES = {section: row[1] for section, row in _SECTIONS.items()}
#: What begins with other words, and is not part of a linear program.
_OTHER = {
    ("lazy", "constraints"): "lazy constraints",
    ("user", "cuts"): "user cuts",
    **dict.fromkeys((("general", "constraints"), ("gencons",)), "general constraints"),
    ("pwlobj",): "piecewise linear objectives",
    **dict.fromkeys((("sin",), ("semi", "-", "integer")), "semi-integer columns"),
    ("multi", "-", "objectives"): "several objectives",
    ("scenario",): "scenarios",
}
_FIRST_WORDS = frozenset(words[0] for words in (*_KEYWORDS, *_OTHER)) | frozenset(_SENSES)
_INFINITY = frozenset({"inf", "infinity"})
#: Characters of what is not linear.
_OPERATORS = {
    "*": "products of columns; write '2 x' for '2 * x'",
    "/": "quotients; write a decimal number",
    "^": "powers; write a linear program",
    **dict.fromkeys("[]", "quadratic terms; write a linear program"),
}


def read_lp(content: bytes, where: str) -> MatrixProgram:
    """Read an LP file.

    Raises
    ------
    BadFile
        With the line, if it is not a linear program or readers disagree about it.
    """
    return _Reader(content, where).read()


class _Reader(ProgramReader):
    """State of reading one file."""

    def __init__(self, content: bytes, where: str) -> None:
        super().__init__(content, where)
        self.section: Section | None = None
        self.line, self.text = 0, ""
        self.kinds: dict[int, tuple[Section, int]] = {}
        self._clear()

    def _clear(self) -> None:
        """Begin a row or the objective."""
        self.label: str | None = None
        self.begun = 0  # its line
        self.terms: dict[int, tuple[float, int]] = {}  # value and line by column
        self.sign = 0  # what stands before the next column or the right-hand side
        self.number: float | None = None
        self.relation = ""

    def _is_open(self) -> bool:
        """Whether something of a row or of the objective has been read since the last one ended."""
        return self.label is not None or bool(self.terms or self.relation or self.sign) or self.number is not None

    def read(self) -> MatrixProgram:
        """Read all lines."""
        for line, text in self.lines():
            self.line, self.text = line, text
            words, place = _WORDS.findall(text.partition("\\")[0]), 0
            while place < len(words):
                if self.section is None:
                    place = self._begin(words)
                elif self.section in {"objective", "rows"}:
                    place = self._expression(words, place)
                elif section := self._section_at(words, place):
                    place = self._enter(*section, words, place)
                elif self.section == "bounds":
                    place = self._bound(words, place)
                else:
                    place = self._kind(words, place)
                if self.section == "end":
                    return self._whole()
        if self.section is None:
            self.refuse_file("it has no objective; begin with Minimize or Maximize")
        return self.refuse(self.line, "the file has no End at its end; it is incomplete or not in LP format")

    # Sections

    def _begin(self, words: list[str]) -> int:
        self.sense = _SENSES.get(words[0].lower())
        if self.sense is None:
            self.refuse(self.line, f"{quoted(words[0])} is not a sense; begin with Minimize or Maximize")
        if words[1:2] == [":"]:
            self.refuse(self.line, f"no colon may follow {words[0]}; write a line with {words[0]} only")
        following = tuple(word.lower() for word in words[1:4])
        if following in _OTHER:
            self.refuse(self.line, f"a linear program has no {_OTHER[following]}; write one objective")
        self.section = "objective"
        return 1

    def _section_at(self, words: list[str], place: int) -> tuple[Section, int] | None:
        """Section that begins with the word at ``place``, and the number of its words; None if none does."""
        first = words[place].lower()
        if first not in _FIRST_WORDS:
            return None
        for size in (3, 2, 1):
            given = tuple(word.lower() for word in words[place : place + size])
            if given in _OTHER:
                what = _OTHER[given]
                self.refuse(self.line, f"section {quoted(' '.join(given))}: a linear program has no {what}; remove it")
            if given in _KEYWORDS:
                return _KEYWORDS[given], len(given)
        if first in _SENSES:
            self.refuse(self.line, f"{quoted(words[place])} is reserved and the objective is already stated; rename it")
        return None

    def _enter(self, section: Section, size: int, words: list[str], place: int) -> int:
        """Begin a section of so many words; return the place after them."""
        assert self.section is not None
        if words[place + size : place + size + 1] == [":"]:
            self.refuse(self.line, f"no colon may follow {quoted(' '.join(words[place : place + size]))}")
        if section == self.section and section in {"rows", "bounds"}:
            self.refuse(self.line, f"a second section {_TITLES[section]}; write one")
        if _SECTIONS[section][0] < _SECTIONS[self.section][0]:
            others = "where CPLEX ignores it and Gurobi refuses it"
            self.refuse(
                self.line, f"section {_TITLES[section]} comes after {_TITLES[self.section]}, {others}; write it before"
            )
        self.section = section
        return place + size

    # The objective and rows

    def _expression(self, words: list[str], place: int) -> int:
        """Read words of the objective or of rows, up to the end of the line or to a section."""
        columns = self.columns
        if found := _JOINED.search(self.text.partition("\\")[0]):
            scip = "SCIP 10, " if found["number"][-1] == "." else ""
            self.note(
                self.line, f"{quoted(found[0])}, a number and a name", f"for {scip}Gurobi 13 and COPT 8 another column"
            )
        while place < len(words):
            word = words[place]
            first = word[0]
            if first in "+-":
                if self.number is not None:
                    self._refuse_constant(self.number)
                if self.sign < 0 and not self.relation:
                    self.note(
                        self.line, "a second sign after a minus", "of which CBC 2.10 and 2.935 make another column"
                    )
                self.sign = (self.sign or 1) * (-1 if first == "-" else 1)
            elif (self.sign or self.number is not None) and word in columns and not self.relation:
                self._term(columns[word])
            elif first in "0123456789." and word != ".":
                self._number(words, place)
            elif first in "<>=":
                self._relation(word)
            elif (
                words[place + 1 : place + 2] == [":"]
                and word[0] not in _OPERATORS
                and not self._section_at(words, place)
            ):
                self._label(word)
                place += 1
            elif (after := self._word(words, place)) is not None:
                return after
            place += 1
        return place

    def _label(self, word: str) -> None:
        if self.section == "objective" and (self.label is not None or self.terms):
            self.refuse(self.line, f"a second objective, {quoted(word)}; begin the rows with Subject To")
        if self._is_open():
            self.refuse(self.line, f"the row before {quoted(word)} has no relation and right-hand side; complete it")
        self._check_name(word)
        if self.section == "rows":
            self.name_row(word, self.line)
        self.label, self.begun = word, self.line

    def _number(self, words: list[str], place: int) -> None:
        """Read a number: a coefficient, or the right-hand side that ends a row."""
        word = words[place]
        if self.number is not None or not (self.sign or self.relation or not self.terms):
            self.refuse(self.line, f"no operator before {quoted(word)}; write + or - between terms")
        self.number = float(word)
        if self.relation:
            self._end_row((self.sign or 1) * self.number, words, place)

    def _term(self, column: int) -> None:
        value = 1.0 if self.number is None else self.number
        value = -value if self.sign < 0 else value
        if column in self.terms:
            value += self.terms[column][0]
            name = quoted(self.column_names[column])
            if self.section == "rows":
                self.note(self.line, f"{name} twice in a row", "of which SCIP 10 takes one term")
            else:
                self.note(self.line, f"{name} twice in the objective", "of which HiGHS 1.15 takes the last term")
        self.terms[column] = value, self.line
        self.sign, self.number = 0, None
        self.begun = self.begun or self.line

    def _relation(self, word: str) -> None:
        if word not in _RELATIONS:
            self.refuse(self.line, f"{quoted(word)} is not a relation; write <=, >= or =")
        if self.section == "objective":
            self.refuse(self.line, f"{quoted(word)} in the objective; begin the rows with Subject To")
        if self.relation:
            self.refuse(self.line, f"row {self._row_name()} has two relations; write one row for each")
        if self.number is not None and not self.terms:
            remedy = f"write it right of {word}, and a row for each side"
            self.refuse(self.line, f"row {self._row_name()} begins with a number; {remedy}")
        if self.number is not None:
            self._refuse_constant(self.number)
        if self.sign:
            self.refuse(self.line, f"row {self._row_name()}: nothing between the sign and {word}; complete the term")
        if word in {"=<", "=>"}:
            self.note(self.line, f"the relation {word}", "which MOSEK 11.2 reads the other way round")
        self.relation, self.begun = word, self.begun or self.line

    def _word(self, words: list[str], place: int) -> int | None:
        """Read the first word of a section, infinity or a column; return the place after the words of a section."""
        word = words[place]
        if word[0] in _OPERATORS:
            self.refuse(self.line, f"{quoted(word)}: a linear program has no {_OPERATORS[word[0]]}")
        if section := self._section_at(words, place):
            after_constant = self.section == "objective" and self.number is not None and place == 0
            if (self.sign or self.number is not None) and not after_constant:
                self.refuse(self.line, f"{quoted(word)} is reserved for a section; rename it")
            self._finish()
            return self._enter(*section, words, place)
        if self.relation:
            if word.lower() not in _INFINITY:
                what = f"{quoted(word)} stands right of {self.relation}; move it to the left"
                self.refuse(self.line, f"row {self._row_name()}: {what}")
            self._end_row((self.sign or 1) * math.inf, words, place)
            return None
        if self.terms and not self.sign:
            self.refuse(self.line, f"no operator before {quoted(word)}; write + or - between terms")
        self._term(self._column(word))
        return None

    def _finish(self) -> None:
        """End the objective or the rows at the beginning of a section."""
        if self.section == "rows":
            if self._is_open():
                self.refuse(self.line, f"row {self._row_name()} has no relation or no right-hand side; complete it")
            return
        if self.sign and self.number is None:
            self.refuse(self.line, "the objective ends with a sign; complete it")
        self.offset = (self.sign or 1) * (self.number or 0.0)
        if self.offset:
            others = "which Gurobi 13 takes for a column"
            others += ", and whose sign MOSEK 11.2 drops" if self.offset < 0 else ""
            self.note(self.line, f"the constant {self.offset:.15g} of the objective", others)
        for column, (value, line) in self.terms.items():
            self.set_cost(column, value, line)
        self._clear()

    def _end_row(self, side: float, words: list[str], place: int) -> None:
        """End a row with its right-hand side, the word at ``place``; a row after it on the line begins with a label."""
        row = self.add_row(self.label or "", _RELATIONS[self.relation], side, self.line)
        for column, (value, line) in self.terms.items():
            self.add_entry(row, column, value, line)
        self._clear()
        following = words[place + 1 : place + 3]
        if following == ["-", ">"]:
            self.refuse(self.line, "'->': a linear program has no indicator rows; remove it")
        if following[1:] == [":"]:
            self.note(self.line, "a second row on the line", "which MOSEK 11.2 and CPLEX 22.2 leave out")
        elif following and not self._section_at(words, place + 1):
            what = f"{quoted(following[0])} follows the right-hand side of a row, which is one number"
            self.refuse(self.line, f"{what}; begin the next row on a new line")

    def _refuse_constant(self, value: float) -> NoReturn:
        if self.section == "objective":
            self.refuse(self.line, f"the constant {value:g} is not the last term of the objective; write it last")
        others = "which HiGHS 1.16 and Xpress 9.9 drop and Gurobi 13 and COPT 8 take for a column"
        what = f"the constant {value:g} stands left, {others}; move it to the right-hand side"
        self.refuse(self.line, f"row {self._row_name()}: {what}")

    def _row_name(self) -> str:
        return quoted(self.label) if self.label else f"that begins in line {self.begun or self.line}"

    # Columns

    def _column(self, word: str) -> int:
        """Number of a column, which is new if its name is."""
        if word in self.columns:
            return self.columns[word]
        self._check_name(word)
        return self.add_column(word)

    def _check_name(self, word: str) -> None:
        if word[0] in _OPERATORS:
            self.refuse(self.line, f"{quoted(word)}: a linear program has no {_OPERATORS[word[0]]}")
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

    def _late_column(self, name: str) -> int:
        """Number of a column that a section after the rows names; a new one if no row and not the objective has it."""
        assert self.section is not None
        if name not in self.columns:
            where = f"in no row and not in the objective, only in {_TITLES[self.section]}"
            what = f"column {quoted(name)}, which occurs {where}"
            others = "and which CPLEX 22.2 and Xpress 9.9 leave out and MOSEK 11.2 fixes at 0"
            self.note(self.line, what, others)
        return self._column(name)

    # Bounds and kinds

    def _bound(self, words: list[str], place: int) -> int:
        """Read a bound: the whole line."""
        text = " ".join(words[place:])
        found = _BOUND.fullmatch(text)
        if found is None or found["name"] == text:
            remedy = "write one a line, such as x <= 4, 1 <= x <= 4 or x free"
            self.refuse(self.line, f"{quoted(text)} is not a bound; {remedy}")
        column = self._late_column(found["name"] or found["free"])
        ends = [(_FLIPPED[_RELATIONS[found["flipped"]]], found["left"])] if found["left"] else []
        ends += [(_RELATIONS[found["relation"]], found["right"])] if found["right"] else []
        if found["free"]:
            earlier = self.lowers.get(column) or self.uppers.get(column)
            if earlier is not None:
                what = f"{quoted(self.column_names[column])} is free and has a bound in line {earlier[1]}"
                self.refuse(self.line, f"{what}; keep one of the two")
            ends = [(">", "- inf"), ("<", "inf")]
        elif len(ends) == 2 and {relation for relation, _ in ends} != {"<", ">"}:
            self.refuse(self.line, f"{quoted(text)}: the two relations must point the same way; write 1 <= x <= 4")
        elif not found["right"]:
            self.note(self.line, f"the bound {quoted(text)} with its column right", "which MOSEK 11.2 ignores")
        for relation, end in ends:
            *signs, size = end.split()
            value = (-1) ** signs.count("-") * float(size)
            for bounds, other in ((self.lowers, "<"), (self.uppers, ">")):
                if relation == other or column not in bounds:
                    continue
                before, line = bounds.pop(column)  # the last one counts
                if before != value:
                    what = f"the bound {value:.15g} of {quoted(self.column_names[column])} after {before:.15g}"
                    others = "which Gurobi 13 and SCIP 10 write for two columns of one name"
                    self.note(self.line, f"{what} in line {line}", others)
            self.set_bound(column, relation, value, self.line)
        return len(words)

    def _kind(self, words: list[str], place: int) -> int:
        """Read the name of a column that is integer."""
        assert self.section is not None
        word = words[place]
        if self.section in {"semi", "sets"}:
            what = "semi-continuous columns" if self.section == "semi" else "special ordered sets"
            self.refuse(self.line, f"section {_TITLES[self.section]}: a linear program has no {what}; remove it")
        if word[0] in "+-<>=:*/^0123456789.":
            self.refuse(self.line, f"{quoted(word)} is not the name of a column in the section {_TITLES[self.section]}")
        column = self._late_column(word)
        if column not in self.kinds or self.kinds[column][0] != "binary":
            self.kinds[column] = (self.section, self.line)
        return place + 1

    def _whole(self) -> MatrixProgram:
        """The program, with the bounds of binary columns; integer columns about which programs disagree are refused."""
        for column, (section, line) in self.kinds.items():
            name, stated = quoted(self.column_names[column]), column in self.lowers or column in self.uppers
            if section == "binary":
                if column not in self.uppers:
                    self.set_bound(column, "<", 1.0, line)
                if stated and (self.lowers.get(column, (0.0, 0))[0] < 0 or self.uppers[column][0] > 1):
                    others = "which CPLEX and HiGHS keep and Gurobi and SCIP do not"
                    self.refuse(
                        line,
                        f"{name} is binary and has bounds outside [0, 1], {others}; change them or make it General",
                    )
            elif section == "integer" and stated:
                self.note(line, f"{name} in the section Integer", "which makes [0, 1] of its bounds for MOSEK 11.2")
            elif section == "integer":
                others = "which means [0, 1] for CPLEX and [0, infinity) for Gurobi and SCIP"
                remedy = "write it in the section General or state its bounds"
                self.refuse(line, f"{name} is Integer without bounds, {others}; {remedy}")
        self.integer = set(self.kinds)
        return self.program()
