"""``matrix.program``: programs of MPS and LP files, solvers' solution files, and files that are refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from opticoll.analysis.cli.main import main
from opticoll.errors import BadFile, NotApplicable, OpticollError
from opticoll.formulations.matrix.program import FORMULATION, NAME
from opticoll.formulations.model import build_model, forms_of
from opticoll.instances import parse
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.export import export
from opticoll.solvers.solution_json import check
from opticoll.solvers.task import Proof, Task

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


def test_all_forms_build_the_same_program(mixed):
    program = parse(mixed)
    problem = FORMULATION.prepare(program)
    forms = {form: compile_model(build_model(problem, form)) for form in forms_of(problem)}
    x = np.array([1, 3.5, 1.5, 2.0])
    for form in forms.values():
        assert form.sense == "max"
        for name in ("idle", "z"):
            column = form.columns["x"].index[program.column_names.index(name)]
            assert column < 0 or np.isneginf(form.col_lower[column]) == (name == "z")
        taken = form.columns["x"].index >= 0
        packed = np.zeros(form.A.shape[1])
        packed[form.columns["x"].index[taken]] = x[taken]
        assert form.objective(packed) == pytest.approx(9.5)
        assert int(np.asarray(form.integer).sum()) == 1


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
        ("a.mps", edited("4.5", "4.5x"), "line 18: 'rhs c1 4.5x c2 1'"),
        ("a.mps", edited(" rhs c1 4.5 c2 1", " rhs c1 4.5 c2 1 c3 1"), "line 18: 'rhs c1 4.5 c2 1 c3 1'"),
        ("a.mps", edited(" UP b x 3", " UP b x three"), "line 24: 'UP b x three'"),
        ("a.mps", edited(" y obj 2 c1 1", " y obj 2 c1 1e-13"), "line 14: the coefficient 1e-13 of 'y'"),
        ("a.mps", "NAME\nROWS\n N o\nCOLUMNS\nENDATA\n", "no columns"),
        ("a.mps", edited("COLUMNS\n", "COLUMNS\né1\n"), "line 10: 'é1'"),
        ("a.mps", edited(" y obj 2 c1 1", "y obj 2 c1 1x"), "line 14: 'y obj 2 c1 1x'"),
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
    with pytest.raises(OpticollError, match="is not a topology"):
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


def test_data_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("opticoll.instances.readers.program_files.MOST_UNPACKED", 1000)
    file = tmp_path / "t.mps.gz"
    file.write_bytes(gzip.compress(MIXED.encode() * 100))
    with pytest.raises(BadFile, match="after decompression"):
        parse(f"mps:{file}")
