"""``matrix.program``: programs of MPS and LP files, solvers' solution files, and files that are refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile, BadInput, NotApplicable, OpticollError
from opticoll.formulations.matrix.program import FORMULATION
from opticoll.instances import parse
from opticoll.solvers import solve
from opticoll.solvers.export import export
from opticoll.solvers.solution_json import check
from opticoll.solvers.task import Proof, Task

NAME = "matrix.program"

MIXED = """NAME t
OBJSENSE
  MAX
ROWS
 N obj
 L c1
 G c2
 E c3
COLUMNS
 M1 'MARKER' 'INTORG'
 x obj 1 c1 1
 x c2 1
 M2 'MARKER' 'INTEND'
 y obj 2 c1 1
 z obj -1 c3 1
 idle obj 0
RHS
 rhs c1 4.5 c2 1
 rhs c3 1.5
 rhs obj -3
RANGES
 rng c1 4 c2 2
BOUNDS
 UP b x 3
 LO b idle 2
 FR b z
ENDATA
"""


def write(folder: Path, text: str, name: str = "t.mps") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return f"mps:{folder / name}"


@pytest.fixture
def mixed(tmp_path):
    return write(tmp_path, MIXED)


def test_compressed_and_renamed_files_are_the_same_program(tmp_path, mixed):
    (tmp_path / "u.mps.gz").write_bytes(gzip.compress(MIXED.replace(" c1", " first").encode()))
    other = parse(f"mps:{tmp_path / 'u.mps.gz'}")
    assert other == parse(mixed)
    assert other.row_names[0] == "first"
    changed = parse(write(tmp_path, MIXED.replace("4.5", "4.25"), "v.mps"))
    assert changed.hash != other.hash


@pytest.mark.parametrize("form", ["matrix", "cvxpy", "pyomo"])
@pytest.mark.parametrize("method", ["highs", "scip"])
def test_every_form_and_solver_has_the_optimum(mixed, form, method):
    run = solve.solve(Task(NAME, mixed, method, form))
    assert run.verified
    assert run.proof is Proof.OPTIMAL
    assert run.objective == pytest.approx(3 + 1 + 2 * 3.5 - 1.5)  # x = 1, y = 3.5, z = 1.5
    assert run.record.sense == "max"
    assert run.values is not None
    assert run.values["x"] == pytest.approx([1, 3.5, 1.5, 2])


@pytest.mark.parametrize(
    ("values", "block"),
    [([2, 4, 1.5, 2], "row"), ([1.5, 3, 1.5, 2], "integrality"), ([1, 3.5, 1.5, 0], "column"), ([0, 1, 1.5, 2], "row")],
)
def test_the_checker_finds_each_violation(mixed, values, block):
    result = FORMULATION.prepare(parse(mixed)).residuals({"x": np.array(values, dtype=float)})
    assert max(result, key=lambda name: result[name]) == block
    assert result[block] > 1e-3


@pytest.mark.parametrize(
    ("formulation", "instance", "settings", "suffix"),
    [
        ("alltoall.master", "torus:3x3", {}, ".mps"),
        ("alltoall.path-mcf", "ring:5", {}, ".lp"),
        ("lumorph.rounds", "lightpath:2x2,lasers=4", {}, ".lp"),
        ("topoopt.strategy", "servers:n=8,degree=2,traffic=dlrm", {}, ".mps"),
    ],
)
def test_exported_models_come_back(tmp_path, formulation, instance, settings, suffix):
    file = tmp_path / f"a{suffix}"
    export(formulation, instance, file, settings=settings)
    stated = solve.solve(Task(formulation, instance, "highs", settings=settings))
    again = solve.solve(Task(NAME, f"mps:{file}"))
    assert again.verified
    flip = -1.0 if stated.record.sense == "max" else 1.0
    assert again.record.sense == "min"
    assert flip * again.objective == pytest.approx(stated.objective, rel=1e-6)
    assert again.record.solver.name == "highs"
    for size in ("variables", "integers"):
        assert getattr(again.record.size, size) == getattr(stated.record.size, size)


@pytest.mark.parametrize(
    ("formulation", "instance", "column", "block"),
    [
        ("alltoall.master", "ring:4", "F", "balance"),
        ("lumorph.rounds", "lightpath:2x2,lasers=4", "R_0", ""),
    ],
)
def test_solutions_of_exported_models_are_checked(tmp_path, formulation, instance, column, block):
    export(formulation, instance, tmp_path / "a.mps")
    solved = solve.solve(Task(NAME, f"mps:{tmp_path / 'a.mps'}"))
    values = dict(zip(solved.plan.instance.column_names, solved.values["x"].tolist(), strict=True))
    file = tmp_path / "a.sol"

    def checked():
        file.write_text("".join(f"{name} {value!r}\n" for name, value in values.items()), encoding="utf-8")
        return check(formulation, instance, file)

    result = checked()
    assert result["verified"], result["reason"]
    assert abs(result["objective"]) == pytest.approx(abs(solved.objective), rel=1e-6)
    assert result["formulation"] == formulation
    values[column] += 1.0
    result = checked()
    assert not result["verified"]
    assert block in result["reason"]
    values["unknown"] = 1.0
    with pytest.raises(BadFile, match="no column 'unknown'"):
        checked()


def edited(old: str, new: str) -> str:
    assert old in MIXED
    return MIXED.replace(old, new)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.mps", "", "is empty"),
        ("a.mps", "hello", "line 1: 'hello': it is in no section of an MPS file"),
        ("a.lp", "min\n obj: x\nst\n c1: x + y >>= 4\nend\n", "line 4: '>>=' is not a relation"),
        ("a.txt", MIXED, "unknown suffix '.txt'"),
        ("a.mps.gz", MIXED, "is not a gzip file"),
        ("a.mps", edited("4.5", "nan"), "line 18: 'rhs c1 nan c2 1'"),
        ("a.mps", edited(" y obj 2 c1 1", " y obj 2 c1 1e-13"), "line 14: the coefficient 1e-13 of 'y'"),
        ("a.mps", "NAME\nROWS\n N o\nCOLUMNS\nENDATA\n", "no columns"),
    ],
)
def test_a_file_that_cannot_be_solved_is_refused_in_one_line(tmp_path, capsys, name, text, reason):
    spec = write(tmp_path, text, name)
    with pytest.raises(BadFile, match="matrix file") as refused:
        parse(spec)
    assert reason in str(refused.value)
    store = tmp_path / "store"
    assert main(["solve", NAME, spec, "--store", str(store)]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not store.exists()


def test_truncated_compressed_data_are_refused(tmp_path):
    file = tmp_path / "t.mps.gz"
    file.write_bytes(gzip.compress(MIXED.encode())[:-20])
    with pytest.raises(BadFile, match="ends in the middle of its compressed data"):
        parse(f"mps:{file}")


def test_other_formulations_and_instances_are_refused(mixed):
    with pytest.raises(NotApplicable, match="mps:FILE"):
        solve.solve(Task(NAME, "ring:4"))
    with pytest.raises(OpticollError, match="needs a topology"):
        solve.solve(Task("alltoall.master", mixed))


SOLUTIONS = {
    "highs": "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 9.5\n# Columns 4\nx 1\ny 3.5\n"
    "z 1.5\nidle 2\n# Rows 3\nc1 4.5\nc2 1\nc3 1.5\n\n# Dual solution values\nNone\n\n# Basis\nNone\n",
    "scip": "solution status: optimal\nobjective value:                 9.5\nx   1 \t(obj:1)\ny  3.5 \t(obj:2)\n"
    "z   1.5 \t(obj:-1)\nidle 2 \t(obj:0)\n",
    "gurobi": "# Solution for model t\n# Objective value = 9.5\nx 1\ny 3.5\nz 1.5\nidle 2\n",
    "cbc": "Optimal - objective value 9.50000000\n      0 x      1     1\n      1 y     3.5     2\n"
    "      2 z      1.5     -1\n      3 idle     2    0\n",
    "highs, pretty": "Columns\n    Index  Lower  Upper  Primal  Type  Name\n    0  0  9  1  Integer  x\n"
    "    1  0  9  3.5  Continuous  y\n    2  0  9  1.5  Continuous  z\n    3  2  2  2  Continuous  idle\n"
    "Rows\n    Index  Lower  Upper  Primal  Name\n    0  0  inf  4.5  c1\n\n"
    "Model status: Optimal\n\nObjective value: 9.5\n",
    "miplib": "=obj= 9.5\nx 1\ny 3.5\nz 1.5\nidle 2\n",
}


@pytest.mark.parametrize("writer", SOLUTIONS)
def test_solution_files_of_solvers_are_checked(tmp_path, mixed, capsys, writer):
    file = tmp_path / "s.sol"
    file.write_text(SOLUTIONS[writer], encoding="utf-8")
    assert main(["check", NAME, mixed, str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["verified"], document["objective"], document["claimed"]) == (True, 9.5, 9.5)


CPLEX = """<?xml version = "1.0" encoding="UTF-8" standalone="yes"?>
<CPLEXSolution version="1.2">
 <header
   problemName="t.mps"
   objectiveValue="9.5"
   solutionStatusString="integer optimal solution"
   writeLevel="1"/>
 <linearConstraints>
  <constraint name="c1" index="0" slack="0"/>
 </linearConstraints>
 <variables>
  <variable name="x" index="0" value="1"/>
  <variable name="y" index="1" value="3.5"/>
  <variable name="z" index="2" value="1.5"/>
  <variable name="idle" index="3" value="2"/>
 </variables>
</CPLEXSolution>
"""
POOL = CPLEX.partition("\n")[2]
OTHER = POOL.replace('"3.5"', '"4.5"').replace('"9.5"', '"11.5"')
SLX = "NAME          t\n  C x                     1\n  C y                   3.5\n  C z   1.5\n  C idle   2\nENDATA\n"
ASC = (
    '     1,"c1  ","L","SB",4.5,0,-1e+09,4.5,0,4.5\n     2,"x   ","C","SB",1,1,0,3,0\n'
    '     3,"y   ","C","SB",3.5,2,0,1e+09,0\n     4,"z   ","C","SB",1.5,-1,0,9,0\n     5,"idle","C","SB",2,0,2,2,0\n'
)
MOSEK = """NAME                : t
PROBLEM STATUS      : PRIMAL_FEASIBLE
SOLUTION STATUS     : INTEGER_OPTIMAL
OBJECTIVE NAME      : obj
PRIMAL OBJECTIVE    : 9.5

CONSTRAINTS
INDEX      NAME             AT ACTIVITY                 LOWER LIMIT        UPPER LIMIT
0          c1               UL 4.5                      NONE               4.5

VARIABLES
INDEX      NAME             AT ACTIVITY                 LOWER LIMIT        UPPER LIMIT
0          x                SB 1                        0                  3
1          y                SB 3.5                      0                  NONE
2          z                SB 1.5                      0                  NONE
3          idle             EQ 2                        2                  2
"""
PYTHON_MIP = "Feasible solution - objective 0.0\n0 x 1.0 1.0\n1 y 3.5 2.0\n2 z 1.5 -1.0\n3 idle 2.0 0.0\n"


@pytest.mark.parametrize(
    ("name", "text", "claimed", "note"),
    [
        ("s.sol", CPLEX, 9.5, "status 'integer optimal solution' was ignored"),
        ("s.xml", CPLEX, 9.5, "integer optimal"),
        ("s.sol", f"<CPLEXSolutions>\n{POOL}{OTHER}</CPLEXSolutions>\n", 9.5, "has 2 solutions: the first is read"),
        ("s.slx", SLX, None, ""),
        ("s.slx", SLX.replace("ENDATA", SLX.replace("3.5", "4.5")), None, "has 2 solutions: the first is read"),
        ("s.asc", ASC, None, ""),
        ("s.txt", ASC, None, ""),
        ("s.sol", MOSEK, 9.5, "status 'integer_optimal'"),
        ("s.mst", PYTHON_MIP, None, "feasible solution"),
        ("s.sol", PYTHON_MIP.replace("3 idle 2.0 0.0\n", "4 idle 2.0 0.0\n"), None, "feasible solution"),
        ("s.sol", "# Objective value 9.5\nx     1\ny     3.5\nz  1.5\nidle  2\n", 9.5, ""),
    ],
)
def test_files_of_cplex_xpress_mosek_copt_and_python_mip(tmp_path, mixed, capsys, name, text, claimed, note):
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    assert main(["check", NAME, mixed, str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["verified"], document["objective"], document["claimed"]) == (True, 9.5, claimed)
    assert note in " ".join(document["notes"])
    started = oc.solve(NAME, mixed, start=file, method="highs")
    assert (started.record.start.objective, started.objective) == (9.5, 9.5)


def test_columns_that_a_file_does_not_hold_are_told(tmp_path, mixed, capsys):
    file = tmp_path / "s.sol"
    file.write_text("y 4.5\nz 2\nidle 2\n", encoding="utf-8")
    main(["check", NAME, mixed, str(file)])
    assert "note: the file has no value of 1 of 4 columns: they are 0" in capsys.readouterr().out


def test_a_solution_of_the_exported_file_has_its_names(tmp_path, capsys):
    spec = write(tmp_path, "max\n obj: 2 x[0,1] - y + 7\nst\n c1: x[0,1] + y <= 4\nend\n", "a.lp")
    exported = tmp_path / "e.mps"
    assert main(["export", NAME, spec, "--to", str(exported)]) == 0
    file = tmp_path / "s.sol"
    file.write_text("# Objective value = -15\nx_0_1 4\ny 0\nconstant 1\n", encoding="utf-8")
    for one in (spec, f"mps:{exported}"):
        capsys.readouterr()
        assert main(["check", NAME, one, str(file), "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert (document["verified"], abs(document["objective"])) == (True, 15)
    file.write_text("c Problem:\ns mip 1 3 o -15\ni 1 4\nj 1 4\nj 2 0\nj 3 1\ne o f\n", encoding="utf-8")
    assert main(["check", NAME, spec, str(file)]) == 0  # by number: three columns, as the file that was exported has
    file.write_text("x[0,1] 4\n", encoding="utf-8")
    assert main(["check", NAME, spec, str(file)]) == 0


@pytest.mark.parametrize(
    ("text", "digits"),
    [
        ("x 0.333333\ny 0.666667\nz 100000\n", 6),
        ("x 0.33333333\ny 0.7\nz 100000\n", 8),
        ("x 1\ny 1\nz 1\n", None),
        ("x 0.333333333333\ny 0.7\nz 100000\n", None),
    ],
)
def test_a_refusal_says_that_a_file_has_few_digits(tmp_path, capsys, text, digits):
    spec = write(tmp_path, "min\n obj: x\nst\n c: 3 x = 1\n d: 1.5 y - x + 0 z = 0.66666666666666666\nend\n", "a.lp")
    file = tmp_path / "s.sol"
    file.write_text(text, encoding="utf-8")
    assert main(["check", NAME, spec, str(file)]) == 3
    error = capsys.readouterr().err
    assert ("digits" in error) == (digits is not None)
    assert digits is None or f"; its values have {digits} digits, write more" in error
    with pytest.raises(BadInput, match="is no solution of"):
        oc.solve(NAME, spec, start=file)


def test_a_refused_objective_says_that_a_file_has_few_digits(tmp_path, capsys):
    spec = write(tmp_path, "min\n obj: 1000 x - 1000 y\nst\n c: x - y >= 0\nend\n", "a.lp")
    file = tmp_path / "s.sol"
    file.write_text("=obj= 0.0004\nx 1.23457\ny 1.23457\n", encoding="utf-8")
    assert main(["check", NAME, spec, str(file)]) == 3
    assert "; its values have 6 digits" in capsys.readouterr().err


def test_a_solution_written_to_a_sol_file_is_read_back(tmp_path, mixed, capsys):
    file = tmp_path / "s.sol"
    assert main(["solve", NAME, mixed, "--no-store", "--solution", str(file)]) == 0
    capsys.readouterr()
    assert main(["check", NAME, mixed, str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["objective"] == pytest.approx(9.5)


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("x 1\ny 4\nz 1.5\nidle 2\n", 3, "row is violated by"),
        ("x 1.5\ny 3\nz 1.5\nidle 2\n", 3, "integrality is violated by 0.5 (relative; 1e-06 allowed), most at x"),
        ("x 1\ny 3.5\nz 1.5\n", 3, "column is violated by 1 (relative; 1e-06 allowed), most at idle"),
        ("=obj= 10\nx 1\ny 3.5\nz 1.5\nidle 2\n", 3, "claims objective 10"),
        ("w 1\n", 2, "no column 'w'"),
        ("x 1\nx 1\n", 2, "occurs twice"),
        ("x inf\n", 2, "not finite"),
        ("x\n", 2, "not a name and a number"),
        ("=infeas=\n", 2, "contains no solution"),
        ("", 2, "is empty"),
        ("Columns\nIndex Lower Upper Primal Name\n0 0 9 1 a name\n", 2, "line 3: '0 0 9 1 a name' does not fit"),
        ("Columns\nIndex Lower Upper Name\n0 0 9 x\n\nModel status: Infeasible\n", 2, "contains no solution"),
        (CPLEX.replace("integer optimal solution", "infeasible"), 2, "contains no solution (status infeasible)"),
        (CPLEX.replace("idle", "z2"), 2, "no column 'z2'"),
        (
            CPLEX.replace('writeLevel="1"', 'writeLevel="2"').replace(
                '  <variable name="y" index="1" value="3.5"/>', ""
            ),
            2,
            "leaves 1 of 4 columns open, as a MIP start may",
        ),
        ("# MIP start\nx 1\n", 2, "leaves 3 of 4 columns open"),
        (CPLEX.replace("</CPLEXSolution>\n", ""), 2, "not well-formed XML"),
        (CPLEX.replace("CPLEXSolution", "solution"), 2, "is XML without <CPLEXSolution>"),
        (CPLEX.replace('value="3.5"', 'value=""'), 2, "line 13: 'y ' is not a name and a number"),
        (SLX.replace("ENDATA\n", ""), 2, "is not a name and a number"),
        ("NAME t\nENDATA\n", 2, "contains no solution"),
        ("NAME t\n  R c1 4.5\nENDATA\n", 2, "line 2: 'R c1 4.5' is no line of Xpress's .slx"),
        (ASC.replace(",3.5,", ",3.5;"), 2, ",C,SB,3.5;2,0,1e+09,0' is no line of Xpress's .asc"),
        ("\nProblem Statistics\nMatrix t\n", 2, "has six decimals; write the solution with writeSlxSol"),
        ("t\0\0\0\1\0\0\0", 2, "is no text; if Xpress wrote it (writeBinSol)"),
        ('{"SolutionInfo": {"Status": 2}, "Vars": []}', 2, "is JSON of Gurobi or MOSEK"),
        (MOSEK.replace("INTEGER_OPTIMAL", "PRIMAL_INFEASIBLE_CER"), 2, "status primal_infeasible_cer"),
        ("Infeasible - objective value 0.0\n0 x 1 1\n", 2, "contains no solution (status infeasible)"),
    ],
)
def test_wrong_solution_files_are_refused_with_the_reason(tmp_path, mixed, capsys, text, status, reason):
    file = tmp_path / "s.sol"
    file.write_text(text, encoding="utf-8")
    assert main(["check", NAME, mixed, str(file)]) == status
    error = capsys.readouterr().err
    assert reason in error
    assert len(error.strip().splitlines()) == 1


def test_duals_of_a_solution_file_give_a_bound(tmp_path, capsys):
    spec = write(tmp_path, "min\nobj: 2 x + y\nst\nc1: x + y >= 4\nbounds\nx <= 3\nend\n", "d.lp")
    file = tmp_path / "d.sol"
    file.write_text(
        "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 4\n# Columns 2\nx 0\ny 4\n# Rows 1\n"
        "c1 4\n\n# Dual solution values\nFeasible\n# Columns 2\nx 1\ny 0\n# Rows 1\nc1 1\n",
        encoding="utf-8",
    )
    assert main(["check", NAME, spec, str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["bound"] == pytest.approx(4)
    assert document["bound_source"] == "lp-dual"
    file.write_text(file.read_text(encoding="utf-8").replace("c1 1\n", "c1 0.5\n"), encoding="utf-8")
    assert main(["check", NAME, spec, str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bound"] == pytest.approx(2)


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_duals_of_an_exported_program_may_be_of_other_rows_than_its_own(tmp_path, capsys, suffix):
    columns = "COLUMNS\n x obj 2 eq 1\n x two 1\n y obj 1 eq 1\nRHS\n RHS eq 4 two 2\n"
    spec = write(tmp_path, f"NAME d\nROWS\n N obj\n G eq\n G two\n{columns}RANGES\n RNG two 1\nENDATA\n", "d.mps")
    exported, file = tmp_path / f"e{suffix}", tmp_path / "e.sol"  # the name eq is a word of MPS files
    assert main(["export", NAME, spec, "--to", str(exported)]) == 0
    assert "1 rows with two sides are two rows each" in capsys.readouterr().err
    file.write_text(
        "Model status\nOptimal\n\n# Primal solution values\nFeasible\nObjective 6\n# Columns 2\nx 2\ny 2\n# Rows 3\n"
        "r_eq 4\ntwo 2\ntwo_up 2\n\n# Dual solution values\nFeasible\n# Columns 2\nx 0\ny 0\n# Rows 3\n"
        "r_eq 1\ntwo 1\ntwo_up 0\n",
        encoding="utf-8",
    )
    capsys.readouterr()
    assert main(["check", NAME, spec, str(file), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["verified"], document["bound"]) == (True, pytest.approx(6))
