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


def by_mosek(path: str) -> dict[str, Any]:
    import mosek

    with mosek.Env() as env, env.Task() as task:
        task.readdata(path)
        kinds = mosek.boundkey

        def ends(key: Any, low: float, high: float) -> tuple[float, float]:
            return (
                low if key in (kinds.lo, kinds.ra, kinds.fx) else -INF,
                high if key in (kinds.up, kinds.ra, kinds.fx) else INF,
            )

        names = [task.getvarname(j) for j in range(task.getnumvar())]
        columns = {
            name: [
                *ends(*task.getvarbound(j)),
                task.getcj(j),
                task.getvartype(j) == mosek.variabletype.type_int,
            ]
            for j, name in enumerate(names)
        }
        rows = {}
        for i in range(task.getnumcon()):
            size = task.getarownumnz(i)
            index, value = [0] * size, [0.0] * size
            task.getarow(i, index, value)
            entries = dict(zip([names[j] for j in index], map(float, value)))
            rows[task.getconname(i)] = [*ends(*task.getconbound(i)), entries]
        sense = "max" if task.getobjsense() == mosek.objsense.maximize else "min"
        return {"sense": sense, "offset": task.getcfix(), "columns": columns, "rows": rows}


def by_ortools(path: str) -> dict[str, Any]:
    from ortools.linear_solver.python import model_builder

    model = model_builder.Model()
    read = model.import_from_lp_file if path.endswith(".lp") else model.import_from_mps_file
    if not read(path):
        msg = "not read"
        raise ValueError(msg)
    helper = model.helper
    names = [helper.var_name(j) for j in range(helper.num_variables())]
    columns = {
        name: [
            helper.var_lower_bound(j),
            helper.var_upper_bound(j),
            helper.var_objective_coefficient(j),
            helper.var_is_integral(j),
        ]
        for j, name in enumerate(names)
    }
    rows = {
        helper.constraint_name(i): [
            helper.constraint_lower_bound(i),
            helper.constraint_upper_bound(i),
            dict(
                zip(
                    [names[j] for j in helper.constraint_var_indices(i)],
                    helper.constraint_coefficients(i),
                    strict=False,
                )
            ),
        ]
        for i in range(helper.num_constraints())
    }
    sense = "max" if helper.maximize() else "min"
    return {"sense": sense, "offset": helper.objective_offset(), "columns": columns, "rows": rows}


def far(value: float) -> float:
    """A bound, infinite from 1e20 on."""
    return value if abs(value) < 1e20 else INF if value > 0 else -INF


def byfar(path: str) -> dict[str, Any]:
    import coptpy

    env = coptpy.Envr()
    model = env.createModel()
    model.setParam("Logging", 0)
    (model.readMps if path.endswith(".mps") else model.readLp)(path)
    columns = {v.name: [far(v.lb), far(v.ub), v.obj, v.vtype in "IB"] for v in model.getVars().getAll()}
    rows = {}
    for c in model.getConstrs().getAll():
        line = model.getRow(c)
        entries = {line.getVar(k).name: line.getCoeff(k) for k in range(line.getSize())}
        rows[c.name] = [far(c.lb), far(c.ub), entries]
    sense = "max" if model.objsense < 0 else "min"
    return {"sense": sense, "offset": model.objconst, "columns": columns, "rows": rows}


def by_cplex(path: str) -> dict[str, Any]:
    import cplex

    model = cplex.Cplex()
    for channel in (model.set_log_stream, model.set_error_stream, model.set_warning_stream, model.set_results_stream):
        channel(None)
    model.read(path)

    v, c = model.variables, model.linear_constraints
    names = v.get_names()
    count = len(names)
    mixed = model.get_problem_type() not in (model.problem_type.LP,)
    types = v.get_types() if mixed else ["C"] * count
    columns = {
        name: [far(lo), far(hi), cost, kind in "IB"]
        for name, lo, hi, cost, kind in zip(
            names, v.get_lower_bounds(), v.get_upper_bounds(), model.objective.get_linear(), types
        )
    }
    rows = {}
    for i, name in enumerate(c.get_names()):
        sense, side, width, pair = c.get_senses(i), c.get_rhs(i), c.get_range_values(i), c.get_rows(i)
        low, high = {"L": (-INF, side), "G": (side, INF), "E": (side, side), "R": sorted((side, side + width))}[sense]
        rows[name] = [low, high, dict(zip([names[j] for j in pair.ind], pair.val))]
    sense = "max" if model.objective.get_sense() == model.objective.sense.maximize else "min"
    return {"sense": sense, "offset": model.objective.get_offset(), "columns": columns, "rows": rows}


def by_xpress(path: str) -> dict[str, Any]:
    import xpress as xp

    model = xp.problem()
    model.setControl("outputlog", 0)
    model.read(path)

    count, height = model.attributes.cols, model.attributes.rows
    names = [v.name for v in model.getVariable()]
    lows, highs = model.getLB(0, count - 1), model.getUB(0, count - 1)
    costs, kinds = model.getObj(0, count - 1), model.getColType(0, count - 1)
    kinds = [k if isinstance(k, str) else k.decode() for k in kinds]
    columns = {
        name: [far(lo), far(hi), cost, kind in "IB"]
        for name, lo, hi, cost, kind in zip(names, lows, highs, costs, kinds)
    }
    rows: dict[str, Any] = {}
    if height:
        types, sides, widths = (
            model.getRowType(0, height - 1),
            model.getRHS(0, height - 1),
            model.getRHSRange(0, height - 1),
        )
        row_names = [c.name for c in model.getConstraint()]
        for i, name in enumerate(row_names):
            kind, side, width = types[i] if isinstance(types[i], str) else types[i].decode(), sides[i], widths[i]
            low, high = {
                "L": (-INF, side),
                "G": (side, INF),
                "E": (side, side),
                "R": (side - width, side),
                "N": (-INF, INF),
            }[kind]
            rows[name] = [low, high, {}]
        for j, name in enumerate(names):
            _, index, value = model.getCols(j, j)
            for i, entry in zip(index, value):
                row = i if isinstance(i, int) else i.index
                rows[row_names[row]][2][name] = entry
    sense = "max" if model.attributes.objsense < 0 else "min"
    return {"sense": sense, "offset": -model.attributes.objrhs, "columns": columns, "rows": rows}


def by_ommx(path: str) -> dict[str, Any]:
    from ommx.v1 import DecisionVariable, Instance

    instance = Instance.load_mps(path)
    variables = {v.id: v for v in instance.decision_variables}
    names = {k: v.name for k, v in variables.items()}
    whole = (DecisionVariable.BINARY, DecisionVariable.INTEGER)
    objective = instance.objective
    costs = dict(objective.linear_terms) if objective.degree() else {}
    columns = {v.name: [v.bound.lower, v.bound.upper, costs.get(k, 0.0), v.kind in whole] for k, v in variables.items()}
    rows: dict[str, Any] = {}
    for c in instance.constraints.values() if isinstance(instance.constraints, dict) else instance.constraints:
        entries = {names[k]: value for k, value in c.function.linear_terms.items()}
        side = -c.function.constant_term
        rows[f"{c.name or ''}#{len(rows)}"] = [side if c.equality == c.EQUAL_TO_ZERO else -INF, side, entries]
    sense = "max" if instance.sense == Instance.MAXIMIZE else "min"
    return {"sense": sense, "offset": objective.constant_term, "columns": columns, "rows": rows}


def by_mip(path: str) -> dict[str, Any]:
    import mip

    model = mip.Model(solver_name="CBC")
    model.verbose = 0
    model.read(path)
    columns = {v.name: [far(v.lb), far(v.ub), v.obj, v.var_type != "C"] for v in model.vars}
    from mip import cbc

    if not hasattr(cbc.cbclib, "Cbc_getRowLower"):
        cbc.ffi.cdef("const double *Cbc_getRowLower(void *m); const double *Cbc_getRowUpper(void *m);")
    inner, rows, names = model.solver._model, {}, [v.name for v in model.vars]
    lows, highs = cbc.cbclib.Cbc_getRowLower(inner), cbc.cbclib.Cbc_getRowUpper(inner)
    for i in range(model.num_rows):
        size = cbc.cbclib.Cbc_getRowNz(inner, i)
        index, value = cbc.cbclib.Cbc_getRowIndices(inner, i), cbc.cbclib.Cbc_getRowCoeffs(inner, i)
        buffer = cbc.ffi.new("char[]", 512)
        cbc.cbclib.Cbc_getRowName(inner, i, buffer, 512)
        entries = {names[index[k]]: value[k] for k in range(size)}
        rows[cbc.ffi.string(buffer).decode()] = [lows[i], highs[i], entries]
    return {"sense": model.sense.lower(), "offset": model.objective_const, "columns": columns, "rows": rows}


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
