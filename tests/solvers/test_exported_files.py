"""Exported files, read by the solvers' own readers: every solver finds the best known value of the benchmark."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
import worker_jobs
from slow_cases import marked

from opticoll.analysis.benchmark.benchmark_set import BenchmarkProblem, best_known, problems
from opticoll.formulations import formulation
from opticoll.solvers.export import export
from opticoll.solvers.process.isolation import call_isolated
from opticoll.solvers.solution_json import check

if TYPE_CHECKING:
    from pathlib import Path

KNOWN = best_known()
#: Names of small problems of every formulation: proven, and solved by HiGHS in less than half a second.
SMALL = sorted(
    (name for name, best in KNOWN.items() if best.proof == "optimal" and (best.highs_s or 9.0) < 0.5),
    key=lambda name: KNOWN[name].size["nonzeros"],
)
FORTY = SMALL[:40]
#: A linear maximization and an integer minimization; the rest are slow.
FEW = ("min-congestion-hypercube-3", "master-ring-16")
#: The name of a group of rows that their files hold.
ROWS = {"min-congestion-hypercube-3": "choose", "master-ring-16": "balance"}


def by_glpk(path: Path, sol: Path) -> float | None:
    kind = "--lp" if path.suffix == ".lp" else "--freemps"
    printed = printed_by("glpsol", kind, str(path), "-w", str(sol), "--tmlim", "60")
    assert "invalid" not in printed, printed
    if "TIME LIMIT" in printed:
        return None
    return float(re.search(r"^c Objective: .* = (\S+) \(MINimum\)", sol.read_text(), re.MULTILINE)[1])


def by_cbc(path: Path, sol: Path) -> float | None:
    printed_by("cbc", str(path), "-sec", "60", "-ratioGap", "0", "-solve", "-solution", str(sol))
    if sol.read_text().startswith("Stopped on time"):
        return None
    return float(re.match(r"Optimal - objective value\s+(\S+)", sol.read_text())[1])


def printed_by(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=90).stdout


READERS: dict[str, Any] = {
    "highs": ("highspy", worker_jobs.by_highs),
    "scip": ("pyscipopt", worker_jobs.by_scip),
    "gurobi": ("gurobipy", worker_jobs.by_gurobi),
    "glpsol": (None, by_glpk),
    "cbc": (None, by_cbc),
}


def value_by(reader: str, path: Path, sol: Path) -> float | None:
    """Optimum of a file by a solver's own reader; skips if the solver is not installed."""
    module, function = READERS[reader]
    if module is None:
        if shutil.which(reader) is None:
            pytest.skip(f"{reader} is not installed")
        try:
            return function(path, sol)
        except subprocess.TimeoutExpired:
            return None
    if find_spec(module) is None:
        pytest.skip(f"{module} is not installed")
    target = f"{function.__module__}:{function.__name__}"
    answer = call_isolated(target, {"path": str(path), "sol": str(sol)}, wall_limit_s=120, modules=(module,))
    assert answer.finished, answer.message
    return answer.values["value"]


@pytest.fixture(scope="module")
def by_name() -> dict[str, BenchmarkProblem]:
    return {one.name: one for one in problems()}


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", [marked(name, slow=name not in FEW) for name in FORTY])
def test_every_solver_reads_the_same_program(
    name: str, reader: str, suffix: str, by_name: dict[str, BenchmarkProblem], tmp_path: Path
) -> None:
    problem, best = by_name[name], KNOWN[name]
    settings = dict(problem.settings)
    path, sol = tmp_path / f"program{suffix}", tmp_path / f"{reader}.sol"
    export(problem.formulation, problem.instance, path, settings=settings)
    assert name not in ROWS or ROWS[name] in path.read_text()
    value = value_by(reader, path, sol)
    if value is None:
        pytest.skip("beyond the size of the licence of the package, or the limit of a minute")
    if reader == "glpsol":
        assert f"\nc Columns:    {best.size['variables']}\n" in sol.read_text()
    flip = -1.0 if best.sense == "max" else 1.0
    assert flip * value == pytest.approx(best.value, rel=2e-6, abs=1e-9)
    if reader == "highs" or (suffix == ".lp" and reader == "glpsol"):
        return  # no file was written; GLPK numbers columns as they occur in the LP file
    if formulation(problem.formulation)._needs is not None:
        return  # the file of a solver does not hold the data, which come from another solution
    checked = check(problem.formulation, problem.instance, sol, settings)
    assert checked["verified"], checked["reason"]
    assert checked["objective"] == pytest.approx(best.value, rel=2e-6, abs=1e-9)


def test_forty_problems_are_of_every_kind(by_name: dict[str, BenchmarkProblem]) -> None:
    assert len(FORTY) == 40
    assert set(FEW) <= set(FORTY)
    assert {KNOWN[name].sense for name in FORTY} == {"min", "max"}
    assert len({by_name[name].formulation for name in FORTY}) >= 12
    assert {KNOWN[name].size["integers"] > 0 for name in FORTY} == {True, False}
