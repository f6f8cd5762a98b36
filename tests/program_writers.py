"""Random small programs, and their files by others' writers; a script that writes many at once.

    python program_writers.py WRITER SUFFIX SEED COUNT FOLDER

The writers are HiGHS, SCIP, Gurobi and Pyomo. It runs as a process of its own because HiGHS and OR-Tools cannot
be loaded into one.
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
