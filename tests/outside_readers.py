"""What other tools read from MPS and LP files; a script that runs as a process of its own.

    python outside_readers.py READER FILE ...

prints a JSON object: for every file the program that the reader reads, or ``{"error": reason}``. A program is
``sense``, ``offset``, ``columns`` (name: lower bound, upper bound, cost, whether it is integer) and ``rows`` (name:
lower side, upper side, entries by column). The script does not import opticoll.
"""

# ruff: noqa: B905
from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

INF = float("inf")


def by_highs(path: str) -> dict[str, Any]:
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    if highs.readModel(path) == highspy.HighsStatus.kError:
        msg = "not read"
        raise ValueError(msg)
    lp = highs.getLp()
    kinds = list(lp.integrality_) or [highspy.HighsVarType.kContinuous] * lp.num_col_
    names, row_names = list(lp.col_names_), list(lp.row_names_)
    rows: dict[str, Any] = {name: [lo, hi, {}] for name, lo, hi in zip(row_names, lp.row_lower_, lp.row_upper_)}
    matrix = lp.a_matrix_
    matrix_start, index, value = list(matrix.start_), list(matrix.index_), list(matrix.value_)
    for j, name in enumerate(names):
        for at in range(matrix_start[j], matrix_start[j + 1]):
            rows[row_names[index[at]]][2][name] = value[at]
    columns = {
        name: [lo, hi, cost, kind == highspy.HighsVarType.kInteger]
        for name, lo, hi, cost, kind in zip(names, lp.col_lower_, lp.col_upper_, lp.col_cost_, kinds)
    }
    sense = "max" if lp.sense_ == highspy.ObjSense.kMaximize else "min"
    return {"sense": sense, "offset": lp.offset_, "columns": columns, "rows": rows}


def by_scip(path: str) -> dict[str, Any]:
    import pyscipopt

    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(path)
    columns = {
        v.name: [v.getLbOriginal(), v.getUbOriginal(), v.getObj(), v.vtype() != "CONTINUOUS"]
        for v in sorted(model.getVars(), key=lambda v: v.getIndex())
    }
    rows = {c.name: [model.getLhs(c), model.getRhs(c), model.getValsLinear(c)] for c in model.getConss()}
    sense = "max" if model.getObjectiveSense() == "maximize" else "min"
    return {"sense": sense, "offset": model.getObjoffset(), "columns": columns, "rows": rows}


def by_gurobi(path: str) -> dict[str, Any]:
    import gurobipy as gp

    return _gurobi_like(gp, path, _quiet_gurobi(gp))


def _quiet_gurobi(gp: Any) -> Any:
    env = gp.Env(empty=True)
    env.setParam("OutputFlag", 0)
    env.start()
    return env


def _gurobi_like(gp: Any, path: str, env: Any) -> dict[str, Any]:
    with gp.read(path, env) as model:
        columns = {v.VarName: [v.LB, v.UB, v.Obj, v.VType in "IB"] for v in model.getVars()}
        rows: dict[str, Any] = {}
        for c in model.getConstrs():
            line = model.getRow(c)
            entries = {line.getVar(k).VarName: line.getCoeff(k) for k in range(line.size())}
            low = -INF if c.Sense == "<" else c.RHS
            rows[c.ConstrName] = [low, INF if c.Sense == ">" else c.RHS, entries]
        slacks = [name for name in columns if name.startswith(("Rg", "MPS_Rg"))]
        for name in slacks:  # a row with two sides is an equation with a column of its own
            of = name.removeprefix("MPS_").removeprefix("Rg")
            row = rows[of]
            low, high, factor = *columns.pop(name)[:2], row[2].pop(name)
            ends = sorted((row[0] - factor * low, row[0] - factor * high))
            rows[of] = [*ends, row[2]]
        sense = "max" if model.ModelSense < 0 else "min"
        return {"sense": sense, "offset": model.ObjCon, "columns": columns, "rows": rows}


def by_glpk(path: str) -> dict[str, Any]:
    """GLPK writes what it has read in its own format, with the digits of a double."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.glp"
        kind = "--lp" if path.endswith(".lp") else "--freemps"
        done = subprocess.run(["glpsol", kind, path, "--check", "--wglp", str(out)], capture_output=True, text=True)
        if not out.exists():
            raise ValueError(done.stdout[-300:])
        rows: dict[int, Any] = {0: [-INF, INF, {}]}
        columns: dict[int, Any] = {}
        names: dict[tuple[str, int], str] = {}
        sense, offset = "min", 0.0
        mip = False

        def ends(words: list[str]) -> list[float]:
            kind, *values = words
            numbers = [float(value) for value in values]
            return {
                "f": lambda: [-INF, INF],
                "l": lambda: [numbers[0], INF],
                "u": lambda: [-INF, numbers[0]],
                "d": lambda: numbers[:2],
                "s": lambda: [numbers[0]] * 2,
            }[kind]()

        for line in out.read_text().splitlines():
            words = line.split()
            if words[0] == "p":
                mip, sense = words[1] == "mip", words[2]
                rows |= {i: [0.0, 0.0, {}] for i in range(1, int(words[3]) + 1)}
                for j in range(1, int(words[4]) + 1):
                    columns[j] = [0.0, 1.0, 0.0, True] if mip else [0.0, INF, 0.0, False]
            elif words[0] == "n":
                if words[1] in ("i", "j"):
                    names[words[1], int(words[2])] = words[3]
            elif words[0] == "i":
                rows[int(words[1])][:2] = ends(words[2:])
            elif words[0] == "j":
                j, rest = int(words[1]), words[2:]
                if mip:
                    columns[j][3] = rest[0] != "c"
                    if rest[0] == "b":
                        columns[j][:2] = [0.0, 1.0]
                        continue
                    rest = rest[1:]
                columns[j][:2] = ends(rest)
            elif words[0] == "a":
                i, j, value = int(words[1]), int(words[2]), float(words[3])
                if i == 0 and j == 0:
                    offset = value
                elif i == 0:
                    columns[j][2] = value
                else:
                    rows[i][2][names.get(("j", j), f"column{j}")] = value
        named = [name for (kind, _), name in names.items() if kind == "j"]
        for row in rows.values():  # entries come before names
            for key in [key for key in row[2] if re.fullmatch(r"column\d+", key) and key not in named]:
                row[2][names["j", int(key[6:])]] = row[2].pop(key)
        return {
            "sense": sense,
            "offset": offset,
            "columns": {names["j", j]: column for j, column in columns.items()},
            "rows": {names["i", i]: row for i, row in rows.items() if i},
        }


def main(reader: str, *files: str) -> None:
    result = {}
    for file in files:
        try:
            found = globals()[f"by_{reader}"](file)
        except Exception as error:  # noqa: BLE001
            found = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        result[file] = found
    print("\n" + json.dumps(result))


if __name__ == "__main__":
    sys.stdout.flush()
    main(*sys.argv[1:])
