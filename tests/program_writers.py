"""Random small programs, and their files by others' writers; a script that writes many at once.

    python program_writers.py WRITER SUFFIX SEED COUNT FOLDER

The writers are HiGHS, SCIP, Gurobi, Pyomo and ``dialects``, our own with the liberties of the formats.
It runs as a process of its own because HiGHS and OR-Tools cannot be loaded into one.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances import MatrixProgram

INF = float("inf")
PLAIN = ("x1", "y_2", "flow_1_2", "alpha", "Z", "w3", "capacity", "u10", "t")
HARD = (
    "inflow_1",
    "info",
    "infeas",
    "Infinity_1",
    "free_1",
    "freedom",
    "bound_2",
    "bounds_x",
    "e5",
    "E1x",
    "general_1",
    "integer_2",
    "st_1",
    "end1",
    "max_x",
    "min_1",
    "semi_x",
    "sos1_x",
    "binary_1",
    "subject",
    "x#1",
    "x(1,2)",
)


@dataclass
class Row:
    """A row: its bounds, and its entries by the position of their column."""

    name: str
    lower: float
    upper: float
    entries: dict[int, float]


@dataclass
class Program:
    """A program; column j has ``names[j]``, ``bounds[j]``, ``cost[j]`` and ``integer[j]``."""

    sense: str
    offset: float
    names: list[str]
    bounds: list[tuple[float, float]]
    cost: list[float]
    integer: list[bool]
    rows: list[Row] = field(default_factory=list)


def number(rng: np.random.Generator) -> float:
    """A number that every writer writes exactly."""
    kind = rng.integers(5)
    size = float(rng.integers(1, 40))
    value = (size, size / 8, size * 1e5, size / 1024, size / 4 + 100)[kind]
    return value if rng.random() < 0.6 else -value


def random_program(seed: int, *, hard_names: bool = True, ranges: bool = True) -> Program:
    """A program of at most seven columns and six rows."""
    rng = np.random.default_rng(seed)
    pool = list(PLAIN) + (list(HARD) if hard_names else [])
    count = int(rng.integers(1, 8))
    names = [pool[k] for k in rng.permutation(len(pool))[:count]]
    bounds, integer = [], []
    for _ in names:
        integer.append(bool(rng.random() < 0.4))
        low, width = float(rng.integers(-24, 16)), float(rng.integers(1, 12))
        low = low if integer[-1] else low / 4  # Gurobi writes rounded bounds of integer columns
        bounds.append(
            [
                (0.0, INF),
                (0.0, width),
                (low, low + width),
                (-INF, INF),
                (-INF, low),
                (low, INF),
                (low, low),
                (0.0, 1.0),
            ][rng.integers(8)]
        )
    cost = [number(rng) if rng.random() < 0.8 else 0.0 for _ in names]
    program = Program(
        "max" if rng.random() < 0.4 else "min", number(rng) if rng.random() < 0.4 else 0.0, names, bounds, cost, integer
    )
    for i in range(int(rng.integers(1, 7))):
        chosen = rng.permutation(count)[: int(rng.integers(1, count + 1))]
        entries = {int(j): number(rng) for j in sorted(chosen)}
        low = number(rng)
        ends = [(low, INF), (-INF, low), (low, low), (low, low + float(rng.integers(1, 9)))][
            rng.integers(4 if ranges else 3)
        ]
        program.rows.append(Row(f"{'row' if rng.random() < 0.7 or not hard_names else 'infrow'}_{i}", *ends, entries))
    used = {j for row in program.rows for j in row.entries}
    for j in range(count):
        if j not in used and not program.cost[j]:
            program.cost[j] = number(rng)
    return program


#: Names that tools do not read as they are, and ones that clash once they are made readable.
ODD = (
    *("a b", "x[0,1]", "x[0,2]", "x_0_1", "X[0,1]", "3rd", "2x", "e12", "E5", "e", "inf", "nan", "free", "st", "end"),
    *("min", "bounds", "integer", "lazy", "Gr\u00f6\u00dfe", "\u00e9", "x" * 300, "obj", "RHS", "rhs", "BND", "MARKER"),
    *("constant", "a:b", "x+y", "x<=1", "_q", "$c", "*k"),
)


def odd_program(seed: int) -> Program:
    """A random program with odd names, free and empty rows, empty columns, and integers in [0, inf)."""
    rng = np.random.default_rng(seed)
    program = random_program(seed)
    names = [ODD[k] for k in rng.permutation(len(ODD))]
    program.names = [names[j] if rng.random() < 0.5 else name for j, name in enumerate(program.names)]
    for j in range(len(program.names)):
        if program.integer[j] and rng.random() < 0.4:
            program.bounds[j] = (0.0, INF)
        elif rng.random() < 0.1:
            program.bounds[j] = (0.0 if rng.random() < 0.3 else -INF, 0.0)
    if rng.random() < 0.4:
        ends = [(0.0, INF), (-INF, INF), (-3.0, -1.0), (0.0, 4.0), (-INF, -2.0)][rng.integers(5)]
        program.names.append("empty column")
        program.bounds.append(ends)
        program.cost.append(0.0)
        program.integer.append(bool(rng.random() < 0.5))
    for row in program.rows:
        row.name = names.pop() if rng.random() < 0.3 else row.name
    if rng.random() < 0.3:
        program.rows.append(Row("free row", -INF, INF, {0: 1.0}))
    if rng.random() < 0.2:
        program.rows.append(Row("empty row", -1.0, INF, {}))
    return program


def standard_form(program: Program) -> StandardForm:
    """The matrix of a program."""
    import scipy.sparse as sp

    from opticoll.formulations.standard_form import StandardForm

    A = np.zeros((len(program.rows), len(program.names)))
    for i, row in enumerate(program.rows):
        A[i, list(row.entries)] = list(row.entries.values())
    row_ends = np.array([(row.lower, row.upper) for row in program.rows])
    ends = np.array(program.bounds)
    return StandardForm(
        sp.csc_array(A),
        *(row_ends[:, 0], row_ends[:, 1], ends[:, 0], ends[:, 1]),
        np.array(program.cost),
        program.sense,
        program.offset,
        np.array(program.integer),
    )


def canonical(program: Program, constants: tuple[str, ...] = ()) -> dict[str, object]:
    """What must be equal: columns by name, and one-sided rows as a sorted list.

    Writers split a row with two ends into two rows; some write the constant of the objective as a column, named in
    ``constants``, that its bounds or a row fix to 1.
    """
    offset, columns, rows = program.offset, {}, []
    for name, bound, cost, integer in zip(program.names, program.bounds, program.cost, program.integer, strict=True):
        if name in constants:
            offset += cost
        else:
            columns[name] = (bound, cost, integer)
    for row in program.rows:
        entries = tuple(sorted((program.names[j], value) for j, value in row.entries.items() if value))
        if [name for name, _ in entries] == list(constants):
            continue
        rows += [(entries, ">=", row.lower)] if row.lower > -INF else []
        rows += [(entries, "<=", row.upper)] if row.upper < INF else []
    return {"sense": program.sense, "offset": offset, "columns": columns, "rows": sorted(rows)}


def write_by_highs(program: Program, path: Path, seed: int) -> None:
    """Write a file with HiGHS."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for (low, high), cost in zip(program.bounds, program.cost, strict=True):
        highs.addCol(cost, low, high, 0, np.array([], dtype=np.int32), np.array([]))
    for row in program.rows:
        places = np.array(list(row.entries), dtype=np.int32)
        highs.addRow(row.lower, row.upper, places.size, places, np.array(list(row.entries.values())))
    for j, name in enumerate(program.names):
        highs.passColName(j, name)
        if program.integer[j]:
            highs.changeColIntegrality(j, highspy.HighsVarType.kInteger)
    for i, row in enumerate(program.rows):
        highs.passRowName(i, row.name)
    highs.changeObjectiveOffset(program.offset)
    highs.changeObjectiveSense(highspy.ObjSense.kMaximize if program.sense == "max" else highspy.ObjSense.kMinimize)
    highs.writeModel(str(path))


def write_by_scip(program: Program, path: Path, seed: int) -> None:
    """Write a file with SCIP."""
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    x = [
        model.addVar(name, "I" if integer else "C", low if low > -INF else None, high if high < INF else None, cost)
        for name, (low, high), cost, integer in zip(
            program.names, program.bounds, program.cost, program.integer, strict=True
        )
    ]
    if program.sense == "max":
        model.setMaximize()
    model.addObjoffset(program.offset)
    for row in program.rows:
        expression = pyscipopt.quicksum(value * x[j] for j, value in row.entries.items())
        if row.lower == row.upper:
            made = expression == row.lower
        elif row.upper == INF:
            made = expression >= row.lower
        elif row.lower == -INF:
            made = expression <= row.upper
        else:
            made = (row.lower <= expression) <= row.upper
        model.addCons(made, row.name)
    model.writeProblem(str(path), verbose=False)


def write_by_gurobi(program: Program, path: Path, seed: int) -> None:
    """Write a file with Gurobi, whose rows with two ends would get columns of their own."""
    import gurobipy as gp

    with gp.Env(empty=True) as env:
        env.setParam("OutputFlag", 0)
        env.start()
        with gp.Model(env=env) as model:
            x = [
                model.addVar(low, high, cost, "I" if integer else "C", name)
                for name, (low, high), cost, integer in zip(
                    program.names, program.bounds, program.cost, program.integer, strict=True
                )
            ]
            model.update()
            model.ObjCon = program.offset
            model.ModelSense = -1 if program.sense == "max" else 1
            for row in program.rows:
                left = gp.LinExpr(list(row.entries.values()), [x[j] for j in row.entries])
                sense = "=" if row.lower == row.upper else ">" if row.upper == INF else "<"
                model.addLConstr(left, sense, row.lower if sense != "<" else row.upper, row.name)
            model.write(str(path))


def write_by_pyomo(program: Program, path: Path, seed: int) -> None:
    """Write a file with Pyomo."""
    import pyomo.environ as pyo

    model = pyo.ConcreteModel()
    x = []
    for name, (low, high), integer in zip(program.names, program.bounds, program.integer, strict=True):
        domain = pyo.Integers if integer else pyo.Reals
        ends = (low if low > -INF else None, high if high < INF else None)
        model.add_component(name, pyo.Var(domain=domain, bounds=ends))
        x.append(model.component(name))
    model.objective = pyo.Objective(
        expr=program.offset + sum(cost * x[j] for j, cost in enumerate(program.cost) if cost),
        sense=pyo.maximize if program.sense == "max" else pyo.minimize,
    )
    for row in program.rows:
        left = sum(value * x[j] for j, value in row.entries.items())
        if row.lower == row.upper:
            made = left == row.lower
        else:
            made = (row.lower if row.lower > -INF else None, left, row.upper if row.upper < INF else None)
        model.add_component(row.name, pyo.Constraint(expr=made))
    model.write(str(path), io_options={"symbolic_solver_labels": True})


def write_in_dialects(program: Program, path: Path, seed: int) -> None:
    """Write a file in a random mixture of the liberties that the formats allow."""
    writer = _Dialects(program, np.random.default_rng(seed))
    text = writer.lp() if path.suffix == ".lp" else writer.mps()
    path.write_bytes(text.encode())


class _Dialects:
    def __init__(self, program: Program, rng: np.random.Generator) -> None:
        self.program, self.rng = program, rng

    def maybe(self, share: float = 0.5) -> bool:
        return bool(self.rng.random() < share)

    def any(self, *choices: str) -> str:
        return choices[int(self.rng.integers(len(choices)))]

    def value(self, value: float) -> str:
        """A finite number in one of its spellings."""
        plain = repr(value)
        mantissa, _, exponent = f"{value:.17e}".partition("e")
        kinds = [plain, f"{mantissa}e{int(exponent):+d}", f"{mantissa}E{int(exponent):+03d}"]
        if value == int(value):
            kinds += [f"{int(value)}", f"{int(value)}.", f"{int(value)}.e+0"]
        if 0 < abs(value) < 1:
            kinds.append(plain.replace("0.", ".", 1))
        text = self.any(*kinds)
        return f"+{text}" if value > 0 and self.maybe(0.15) else text

    def layout(self, lines: list[str], comment: str) -> str:
        """Lines with blank lines, comments, tabs and either end of line."""
        made = []
        for line in lines:
            if self.maybe(0.1):
                made.append(self.any("", "   ", f"{comment} a comment: x >= 1 ENDATA"))
            made.append(line.replace("  ", "\t") if self.maybe(0.1) else line)
        return self.any("\n", "\r\n").join([*made, ""])

    # MPS

    def mps(self) -> str:
        program = self.program
        fixed = self.maybe(0.3)
        self.gap = self.any(" ", "  ", "      ")
        spare = self.maybe(0.4)
        named_objective = spare and self.maybe()
        lines = [self.any("NAME", "NAME  a program")]
        if program.sense == "max" or self.maybe(0.3):
            word = {"max": self.any("MAX", "MAXIMIZE"), "min": self.any("MIN", "MINIMIZE")}[program.sense]
            lines += [f"OBJSENSE {word}"] if self.maybe() else ["OBJSENSE", f"    {word}"]
        if named_objective:
            lines += ["OBJNAME cost"] if self.maybe() else ["OBJNAME", "    cost"]
        objectives = ["spare", "cost"] if named_objective else ["cost", "spare"] if spare else ["cost"]
        rows = [f" N  {name}" for name in objectives]
        kinds = []
        for row in program.rows:
            if row.lower == row.upper:
                kinds.append("E")
            elif row.upper == INF or (row.lower > -INF and self.maybe()):
                kinds.append("G")
            else:
                kinds.append("L")
            if row.lower > -INF and row.upper < INF and row.lower != row.upper and self.maybe(0.3):
                kinds[-1] = "E"
            rows.append(f" {kinds[-1]}  {row.name}")
        lines += ["ROWS", *rows, "COLUMNS"]
        lines += self.mps_columns(spare=spare)
        lines += self.mps_sides(kinds, spare=spare)
        lines += self.mps_bounds()
        text = [*lines, "ENDATA"]
        if fixed and all(len(name) <= 8 for name in [*program.names, *(row.name for row in program.rows)]):
            text = [self.fixed(line) for line in text]
            return self.any("\n", "\r\n").join([*text, ""])
        return self.layout(text, "*")

    def mps_columns(self, *, spare: bool) -> list[str]:
        program, lines, whole, marks = self.program, [], False, 0
        for j, name in enumerate(program.names):
            if program.integer[j] != whole and not self.by_bound(j):
                whole = not whole
                lines.append(f"    M{marks}  'MARKER'  {chr(39)}{'INTORG' if whole else 'INTEND'}{chr(39)}")
                marks += 1
            elif self.by_bound(j) and whole:
                whole = False
                lines.append(f"    M{marks}  'MARKER'  'INTEND'")
                marks += 1
            pairs = [("cost", program.cost[j])] if program.cost[j] or self.maybe() else []
            pairs += [("spare", 7.0)] if spare and self.maybe() else []
            pairs += [(row.name, row.entries[j]) for row in program.rows if j in row.entries]
            lines += self.paired(name, pairs or [("cost", 0.0)])
        return lines

    def by_bound(self, j: int) -> bool:
        """Whether column j is made integer by its bound, not by markers; the same answer each time."""
        return self.program.integer[j] and self.program.bounds[j] == (0.0, 1.0) and j % 2 == 0

    def paired(self, name: str, pairs: list[tuple[str, float]]) -> list[str]:
        lines, place = [], 0
        while place < len(pairs):
            size = 2 if self.maybe() else 1
            part = pairs[place : place + size]
            lines.append(
                "    "
                + self.gap.join([*([name] if name else []), *(f"{row}{self.gap}{self.value(v)}" for row, v in part)])
            )
            place += size
        return lines

    def mps_sides(self, kinds: list[str], *, spare: bool) -> list[str]:
        program = self.program
        sides, ranges = [], []
        for row, kind in zip(program.rows, kinds, strict=True):
            width = row.upper - row.lower
            right = row.lower if kind == "G" else row.upper
            if 0 < width < INF:
                signed = width if kind != "E" and self.maybe() else -width
                ranges.append((row.name, signed))
            if right or self.maybe():
                sides.append((row.name, right))
        if program.offset:
            sides.append(("cost", -program.offset))
        if spare and self.maybe():
            sides.append(("spare", 11.0))
        lines = ["RHS", *self.paired(self.any("RHS", "rhs", ""), sides)]
        if ranges:
            lines += ["RANGES", *self.paired("RNG", ranges)]
        return lines

    def mps_bounds(self) -> list[str]:
        program, lines, name = self.program, [], self.any("BND", "b1", "")
        for j, (low, high) in enumerate(program.bounds):
            column, g = program.names[j], self.gap

            def bound(kind: str, value: float | str | None = None, column: str = column, g: str = g) -> str:
                end = [] if value is None else [value if isinstance(value, str) else self.value(value)]
                return f" {kind} " + g.join([*([name] if name else []), column, *end])

            if self.by_bound(j):
                lines.append(bound("BV"))
            elif low == high:
                lines.append(bound("FX", low))
            elif (low, high) == (-INF, INF):
                lines += [bound("FR")] if self.maybe(0.7) else [bound("MI"), bound("PL")]
            else:
                ends = []
                if low == -INF:
                    ends.append(bound("MI") if self.maybe(0.7) else bound("LO", self.any("-1e30", "-inf", "-Infinity")))
                elif low or high < 0 or program.integer[j] or self.maybe(0.2):
                    ends.append(bound("LO", low))
                if high < INF:
                    ends.append(bound("UP", high))
                elif self.maybe(0.3):
                    ends.append(bound("PL") if self.maybe() else bound("UP", self.any("1e30", "inf", "+infinity")))
                lines += ends if self.maybe() else ends[::-1]
        return ["BOUNDS", *lines] if lines else []

    @staticmethod
    def fixed(line: str) -> str:
        """A line of data in the columns of fixed format, or a header."""
        if not line.startswith(" ") or len(words := line.split()) < 2:
            return line
        kinds = {"N", "L", "G", "E", "UP", "LO", "FX", "FR", "MI", "PL", "BV"}
        fields = words if words[0] in kinds and len(words) <= 4 and line[1] != " " else ["", *words]
        if words[0] in kinds and fields is words and len(words) > 2 and words[1] not in {"BND", "b1"}:
            fields = [words[0], "", *words[1:]]
        if fields[0] == "" and _is_number(fields[2]):  # without the name of a set
            fields = ["", "", *fields[1:]]
        if len(fields) > 2 and fields[2] == "'MARKER'":
            fields = [*fields[:3], "", fields[3]]
        made = ""
        for text, start in zip(fields, (1, 4, 14, 24, 39, 49), strict=False):
            width = 12 if start in (24, 49) else 8
            if len(text) > width:
                text = repr(float(text))
            made = made.ljust(start) + text
        return made

    # LP

    def lp(self) -> str:
        program = self.program
        word = {"max": ("Maximize", "MAX", "maximum"), "min": ("Minimize", "min", "MINIMUM")}[program.sense]
        lines = [self.any(*word)]
        objective = self.expression({j: cost for j, cost in enumerate(program.cost) if cost or self.maybe(0.3)})
        if program.offset:
            objective.append(f"{'+' if program.offset > 0 else '-'} {self.value(abs(program.offset)).lstrip('+')}")
        if self.maybe():
            objective = [self.any("obj:", "cost :", "z:"), *objective]
        lines += self.broken(objective)
        lines.append(self.any("Subject To", "st", "s.t.", "such that", "SUBJECT  TO", "ST"))
        for row in program.rows:
            for name, relation, right in self.sides(row):
                label = [self.any(f"{name}:", f"{name} :")] if name else []
                text = self.value(right)
                lines += self.broken([*label, *self.expression(row.entries), relation, text])
        lines += self.lp_bounds()
        return self.layout([*lines, self.any("End", "END", "end")], "\\")

    def sides(self, row: Row) -> list[tuple[str, str, float]]:
        less, more = self.any("<=", "<", "=<"), self.any(">=", ">", "=>")
        if row.lower == row.upper:
            return [(row.name, "=", row.lower)]
        both = row.lower > -INF and row.upper < INF
        made = [(row.name + ("_lo" if both else ""), more, row.lower)] if row.lower > -INF else []
        return made + ([(row.name + ("_up" if both else ""), less, row.upper)] if row.upper < INF else [])

    def expression(self, entries: dict[int, float]) -> list[str]:
        words = []
        for place, (j, value) in enumerate(entries.items()):
            name, size = self.program.names[j], abs(value)
            sign = "-" if value < 0 else "+" if place or self.maybe(0.3) else ""
            text = "" if size == 1 and self.maybe() else self.value(size).lstrip("+")
            if name[0] in "eEdD" or text.endswith(".") or self.maybe(0.7):  # 2.x is 2 x or 2 .x
                text += " " if text else ""
            words.append(f"{sign}{self.any(' ', '') if sign else ''}{text}{name}")
        return words

    def broken(self, words: list[str]) -> list[str]:
        """Words of an expression on one or several lines."""
        lines = [""]
        for place, word in enumerate(words):
            if place and self.maybe(0.2):
                lines.append("")
            lines[-1] += self.any(" ", "  ") + word
        return lines

    def lp_bounds(self) -> list[str]:
        program, lines, general, binary = self.program, [], [], []
        for j, (low, high) in enumerate(program.bounds):
            name, less, more = program.names[j], self.any("<=", "<", "=<"), self.any(">=", ">", "=>")
            if program.integer[j]:
                (binary if (low, high) == (0.0, 1.0) and self.maybe() else general).append(name)
            if (binary and binary[-1] == name) or ((low, high) == (0.0, INF) and self.maybe(0.7)):
                continue
            minus = self.any("-inf", "-Infinity", "- inf", "-1e30")
            plus = self.any("inf", "+infinity", "+Inf", "1e30")
            low_text, high_text = (
                (minus if low == -INF else self.value(low)),
                (plus if high == INF else self.value(high)),
            )
            if low == high and self.maybe():
                lines.append(f" {name} = {low_text}")
            elif (low, high) == (-INF, INF) and self.maybe():
                lines.append(f" {name} {self.any('free', 'Free', 'FREE')}")
            elif self.maybe():
                lines.append(f" {low_text} {less} {name} {less} {high_text}")
            elif self.maybe():
                lines += [f" {name} {more} {low_text}", f" {name} {less} {high_text}"]
            else:
                lines += [f" {low_text} {less} {name}", f" {high_text} {more} {name}"]
        made = [self.any("Bounds", "BOUNDS", "bound"), *lines] if lines else []
        sections = [(self.any("General", "generals", "GEN"), general), (self.any("Binary", "binaries", "BIN"), binary)]
        for title, names in sections if self.maybe() else sections[::-1]:
            if names:
                made += [title, *([" " + " ".join(names)] if self.maybe() else [f" {name}" for name in names])]
        return made


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def program_of(writer: str, seed: int) -> Program:
    """The random program with a seed, with what the writer can write."""
    return random_program(seed, hard_names=writer != "pyomo", ranges=writer != "gurobi")


#: Names of the column by which a writer states the constant of the objective.
CONSTANTS = {"gurobi": ("Constant",), "pyomo": ("ONE_VAR_CONSTANT",)}


def program_in(program: MatrixProgram) -> Program:
    """The program that was read from a file."""
    by_row = program.A.tocsr()
    rows = []
    for i, name in enumerate(program.row_names):
        part = slice(by_row.indptr[i], by_row.indptr[i + 1])
        entries = dict(zip(by_row.indices[part].tolist(), by_row.data[part].tolist(), strict=True))
        rows.append(Row(name, float(program.row_lower[i]), float(program.row_upper[i]), entries))
    bounds = list(zip(program.col_lower.tolist(), program.col_upper.tolist(), strict=True))
    return Program(
        program.sense,
        program.offset,
        list(program.column_names),
        bounds,
        program.cost.tolist(),
        program.integer.tolist(),
        rows,
    )


def outcomes(writer: str, suffix: str, seeds: Iterable[int], folder: Path) -> Iterator[str]:
    """``equal`` for every file that is read back as the program it states, else what happened."""
    from opticoll.errors import BadFile
    from opticoll.instances.readers.program_files import read_program

    for seed in seeds:
        file = folder / f"{writer}-{seed}{suffix}"
        try:
            got = canonical(program_in(read_program(file)), CONSTANTS.get(writer, ()))
        except BadFile as error:
            yield f"refused: {error}"
            continue
        yield "equal" if got == canonical(program_of(writer, seed)) else f"different:\n{file.read_text()}"


#: Functions that write a program to a path, with a seed.
WRITERS: dict[str, Callable[[Program, Path, int], None]] = {
    "highs": write_by_highs,
    "scip": write_by_scip,
    "gurobi": write_by_gurobi,
    "pyomo": write_by_pyomo,
    "dialects": write_in_dialects,
}


def write(writer: str, suffix: str, seed: int, count: int, folder: Path) -> None:
    """Write ``count`` programs with seeds from ``seed``, in a process of its own."""
    command = [sys.executable, __file__, writer, suffix, str(seed), str(count), str(folder)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def main(writer: str, suffix: str, seed: str, count: str, folder: str) -> None:
    for number_of in range(int(seed), int(seed) + int(count)):
        WRITERS[writer](program_of(writer, number_of), Path(folder) / f"{writer}-{number_of}{suffix}", number_of)


if __name__ == "__main__":
    main(*sys.argv[1:])
