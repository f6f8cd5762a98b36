"""Best known values: submitted files, records that only improve, shipped solutions, and the export of the set."""

from __future__ import annotations

import gzip
import hashlib
import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from slow_cases import marked

from opticoll.analysis.benchmark import benchmark_set, exported_set, runs
from opticoll.analysis.benchmark import best_known as records
from opticoll.analysis.benchmark.benchmark_set import SOLUTIONS, best_known, problems_named
from opticoll.analysis.cli.main import cli
from opticoll.errors import BadInput
from opticoll.solvers import solution_json

NAME, LINEAR = "min-congestion-hypercube-3", "link-mcf-hypercube-3"
FOLDER = SOLUTIONS
BY_SIZE = sorted(FOLDER.glob("*.sol.gz"), key=lambda path: path.stat().st_size)


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Records that a test may change: those of two problems, worse than the best known."""
    read, place = benchmark_set.best_known, tmp_path / "best.json"
    worse = replace(read()[NAME], value=5.0, bound=3.0, proof="certified-gap", value_exact=None)
    monkeypatch.setattr(records, "best_known", lambda: read(place))
    monkeypatch.setattr(records, "BEST", place)
    monkeypatch.setattr(records.write_known, "__defaults__", (place,))
    monkeypatch.setattr(records, "SOLUTIONS", tmp_path / "solutions")
    records.write_known({NAME: worse, LINEAR: read()[LINEAR]}, place)
    return lambda: read(place)


def solution_of(name, tmp_path):
    conditions = runs.Conditions(cpu_limit_s=20.0)
    stated = runs.ProblemMatrix.of(problems_named([name])[0])
    row, x = runs._run(stated, runs.RunKey(name, "highs", 1e-6, 0, 0, 0, 1), conditions, None)
    path = tmp_path / f"{name}.sol"
    path.write_text(runs.solution_text(stated, x))
    return path, row


def test_a_better_solution_becomes_the_record_and_is_kept(copied, tmp_path):
    path, _ = solution_of(NAME, tmp_path)
    problem = records.problem_of(path)
    assert records.examined(problem, path).verdict == "better"
    assert copied()[NAME].value == 5.0
    result = records.submit(problem, path)
    assert (result.verdict, result.value) == ("better", 4.0)
    assert (copied()[NAME].value, copied()[NAME].bound) == (4.0, 3.0)
    kept = gzip.decompress((tmp_path / "solutions" / f"{NAME}.sol.gz").read_bytes()).decode()
    assert kept.startswith("=obj= 4\n")
    assert records.submit(problem, path).verdict == "equal"


def test_a_new_problem_gets_its_first_record(copied, tmp_path):
    path, _ = solution_of(NAME, tmp_path)
    records.write_known({LINEAR: copied()[LINEAR]}, records.BEST)
    assert records.submit(records.problem_of(path), path).verdict == "better"
    first, known = copied()[NAME], best_known()[NAME]
    assert (first.value, first.bound, first.proof) == (4.0, known.bound, "optimal")
    assert (first.sense, first.size, first.instance_hash) == (known.sense, known.size, known.instance_hash)
    assert first.grade == {True: "easy", False: "medium"}[first.highs_s < 1.0]


def test_the_objective_of_a_file_has_the_sense_of_the_file(copied, tmp_path):
    path, row = solution_of(LINEAR, tmp_path)
    assert path.read_text().startswith("=obj= -")
    result = records.submit(records.problem_of(path), path)
    assert (result.verdict, result.value) == ("equal", pytest.approx(row.value))


def test_a_wrong_solution_is_refused_and_changes_nothing(copied, tmp_path):
    path, _ = solution_of(NAME, tmp_path)
    path.write_text(path.read_text().replace("=obj= 4\n", "=obj= 3\n"))
    result = records.submit(records.problem_of(path), path)
    assert result.verdict == "refused"
    assert "claims objective 3" in result.reason
    path.write_text("=obj= 0\n")
    assert records.submit(records.problem_of(path), path).verdict == "refused"
    assert copied()[NAME].value == 5.0


def test_an_infeasible_file_shows_the_objective_of_its_columns_too(tmp_path):
    path, _ = solution_of(NAME, tmp_path)
    path.write_text(path.read_text().replace("=obj= 4\n", "=obj= 3\n").replace("\nLambda 4\n", "\nLambda 3\n"))
    problem = records.problem_of(path)
    checked = solution_json.check(problem.formulation, problem.instance, path, dict(problem.settings))
    assert (checked["verified"], checked["objective"]) == (False, 4.0)
    assert "the file's columns give 3; the objective is recomputed from the solution" in checked["notes"]


def test_a_file_may_state_the_objective_of_its_columns(copied, tmp_path):
    path, _ = solution_of(NAME, tmp_path)
    path.write_text(path.read_text().replace("=obj= 4\n", "=obj= 6\n").replace("\nLambda 4\n", "\nLambda 6\n"))
    result = records.examined(records.problem_of(path), path)
    assert (result.verdict, result.value) == ("better", 4.0)


def test_a_file_is_of_the_problem_that_it_is_named_after(tmp_path):
    for ending in (".sol", ".sol.gz", ".json", ".vipr.gz"):
        assert records.problem_of(tmp_path / f"{NAME}{ending}").name == NAME
    assert records.problem_of(tmp_path / "any.sol", NAME).name == NAME
    with pytest.raises(BadInput, match="--problem"):
        records.problem_of(tmp_path / "any.sol")


def test_the_command_submits(copied, tmp_path):
    path, _ = solution_of(NAME, tmp_path)
    result = CliRunner().invoke(cli, ["benchmark", "submit", str(path), "--json", "--check"])
    assert json.loads(result.stdout)[0]["verdict"] == "better"
    path.write_text("=obj= 0\n")
    assert CliRunner().invoke(cli, ["benchmark", "submit", str(path)], standalone_mode=False).return_value == 3


def test_bounds_are_rounded_outwards_and_only_improve():
    assert records.outward(1.0 + 1e-12, 1.0, "min") == 1.0
    assert records.outward(1.0 - 1e-12, 1.0, "max") == 1.0
    assert records.outward(1.0 - 1e-12, 1.0, "min") == 1.0 - 1e-12
    assert records.outward(0.5, 1.0, "max") == 0.5  # a contradiction is not hidden
    known = replace(best_known()[NAME], value=5.0, bound=3.0)
    assert records.improved(known, 5.0, "m", 3.0, "b") is None
    assert records.improved(known, 6.0, "m", 2.0, "b") is None
    better = records.improved(known, 4.0, "m", 4.0 + 1e-12, "b")
    assert (better.value, better.bound, better.proof) == (4.0, 4.0, "optimal")


@pytest.mark.parametrize("path", [marked(path, slow=k >= 12, id=path.name) for k, path in enumerate(BY_SIZE)])
def test_shipped_solutions_have_the_best_known_value(path):
    assert path.stat().st_size <= records.MOST_BYTES
    result = records.examined(records.problem_of(path), path)
    assert (result.verdict, result.reason) == ("equal", "")


def smallest_of_each():
    """The smallest problem of every formulation, also with settings of these names."""
    found, known = {}, best_known()
    for one in sorted(problems_named(known), key=lambda one: known[one.name].size["nonzeros"]):
        found.setdefault((one.formulation, *(name for name, _ in one.settings)), one)
    return [one for one in found.values() if known[one.name].size["nonzeros"] <= 15_000]


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_record_belongs_to_the_program_that_is_built_now(whole):
    known = best_known()
    chosen = [one for one in problems_named(known) if known[one.name].size["nonzeros"] <= 1_000_000]
    sizes = {one.name: runs.ProblemMatrix.of(one).form.size for one in (chosen if whole else smallest_of_each())}
    assert sizes == {name: dict(known[name].size) for name in sizes}


def test_open_problems_say_what_was_tried():
    assert all(one.tried for one in best_known().values() if one.open)


def test_the_list_says_open_or_how_the_optimum_is_proven():
    known, rows = benchmark_set.best_known(), benchmark_set.problem_rows([])
    assert {row["problem"]: row["proof"] for row in rows if row["proof"] != "open"} == {
        name: best.proof for name, best in known.items() if not best.open
    }
    left = benchmark_set.problem_rows([], only_open=True)
    assert {row["problem"] for row in left} == {row["problem"] for row in rows if row["proof"] == "open"}


def test_problems_are_listed_with_their_sizes_and_an_empty_list_keeps_its_header():
    result = CliRunner().invoke(cli, ["benchmark", "list", NAME])
    size = best_known()[NAME].size
    assert "variables  constraints" in result.output
    assert str(size["variables"]) in result.output
    empty = CliRunner().invoke(cli, ["benchmark", "list", NAME, "--open"]).output.splitlines()
    assert empty[0] == "0 problems"
    assert empty[1].startswith("problem  grade")


# export ---------------------------------------------------------------------------------------------------------------


def test_the_export_has_an_index_values_solutions_and_checksums(tmp_path):
    told = []
    rows = exported_set.export_set(tmp_path / "set", problems_named([NAME, LINEAR]), told.append)
    assert len(told) == 2
    folder = tmp_path / "set"
    assert json.loads((folder / "index.json").read_text()) == rows
    assert [row["name"] for row in rows] == [NAME, LINEAR]
    first, second = rows
    best = best_known()
    assert (first["best_value"], first["file_value"]) == (4.0, 4.0)
    assert second["file_value"] == -best[LINEAR].value
    assert second["file_bound"] <= second["file_value"]
    assert (folder / "benchmark.solu").read_text().splitlines() == [
        f"=opt= {NAME} 4.0",
        f"=opt= {LINEAR} {-best[LINEAR].value!r}",
    ]
    program = gzip.decompress((folder / f"{LINEAR}.mps.gz").read_bytes()).decode()
    assert "objective negated" in program.splitlines()[1]
    assert "OBJSENSE" not in program
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_an_exported_solution_has_the_column_of_the_constant(tmp_path):
    name = "sequence-servers-n-5-degree-2-configurations-2-delay-0-5"
    exported_set.export_set(tmp_path / "set", problems_named([name]))
    solution = tmp_path / "set" / "solutions" / f"{name}.sol.gz"
    assert "\nconstant 1\n" in gzip.decompress(solution.read_bytes()).decode()
    record = solution_json.check("matrix.program", f"mps:{tmp_path / 'set' / f'{name}.mps.gz'}", solution)
    assert record["verified"], record["reason"]
    assert record["objective"] == pytest.approx(best_known()[name].value)


def test_the_command_exports_a_folder_and_refuses_a_file(tmp_path):
    result = CliRunner().invoke(cli, ["benchmark", "export", str(tmp_path / "set"), NAME, "--grade", "easy"])
    assert result.exit_code == 0, result.output
    assert {path.name for path in (tmp_path / "set").iterdir()} >= {f"{NAME}.mps.gz", "SHA256SUMS", "VERSION"}
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert CliRunner().invoke(cli, ["benchmark", "export", str(tmp_path / "file"), NAME]).exit_code == 2
    with pytest.raises(BadInput, match="choose another folder"):
        exported_set.export_set(tmp_path / "file" / "set", problems_named([NAME]))
