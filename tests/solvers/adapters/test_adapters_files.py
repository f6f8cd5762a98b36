"""Model files: a file written by an adapter holds the same problem, checked by solving it with HiGHS."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import scipy.sparse as sp

from opticoll.errors import BadOption, SolverUnavailable
from opticoll.formulations.standard_form import Block, StandardForm
from opticoll.solvers.adapters import adapter
from opticoll.solvers.isolation import call_isolated, probe, solve_here, solve_isolated, write_in_worker, write_isolated
from opticoll.solvers.task import SolveRequest

if TYPE_CHECKING:
    from pathlib import Path

INF = np.inf


def problem(sense: Any, *, integer: bool) -> StandardForm:
    """Equality, range, both inequalities, a free row; free, negative and boxed columns; an offset."""
    A = [[1, 1, 1, 0], [1, -1, 0, 0], [0, 1, 0, 1], [1, 1, 1, 1], [2, 0, 1, 0]]
    cost = np.array([1.0, 2, -3, 1]) * (1 if sense == "min" else -1)
    return StandardForm(
        sp.csc_array(np.array(A, dtype=float)),
        np.array([2, -1, -INF, -4.5, -INF]),
        np.array([2, 1.5, 3, INF, INF]),
        np.array([-INF, 0, -2, -5]),
        np.array([INF, INF, 1.5, 5]),
        cost,
        sense,
        -2.5,
        np.array([integer, False, integer, integer]),
        columns={"flow [x]": Block("flow [x]", (2, 2), np.arange(4))},
        rows={"balance": Block("balance", (5,), np.arange(5))},
    )


KINDS = [(sense, integer) for sense in ("min", "max") for integer in (False, True)]


def simple() -> StandardForm:
    """A maximization without ranges and free rows, which MOSEK cannot write to LP files."""
    form, kept = problem("max", integer=True), np.array([0, 2, 3])
    lower, upper = form.row_lower[kept], form.row_upper[kept]
    return replace(form, A=sp.csc_array(form.A.tocsr()[kept]), row_lower=lower, row_upper=upper, rows={})


def write_all(report: Any, **arguments: Any) -> dict[str, Any]:
    """Write every problem with one adapter; runs in a worker."""
    forms = {f"{sense}-{integer}.mps": problem(sense, integer=integer) for sense, integer in KINDS}
    for file, form in (forms | {"simple.lp": simple()}).items():
        names = (form.column_names(), form.row_names())
        write_in_worker(form, arguments["adapter"], arguments["folder"] / file, names, report)
    return {}


def solve_all(report: Any, **arguments: Any) -> dict[str, Any]:
    """Solve model files, and the problems they were written from, with HiGHS; runs in a worker."""
    import highspy

    results: dict[str, Any] = {}
    for path in arguments["paths"]:
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("mip_rel_gap", 0.0)
        results[path] = {"read": highs.readModel(path).name}
        highs.run()
        lp = highs.getLp()
        results[path]["names"] = [highs.getColName(j)[1] for j in range(highs.getNumCol())]
        results[path]["integers"] = sum(kind == highspy.HighsVarType.kInteger for kind in lp.integrality_)
        results[path]["value"] = highs.getInfo().objective_function_value
    for sense, integer in KINDS:
        outcome = solve_here(problem(sense, integer=integer), "highs", SolveRequest())
        results[f"{sense}-{integer}"] = outcome.objective
    results["simple"] = solve_here(simple(), "highs", SolveRequest()).objective
    return results


def need(name: str) -> None:
    for solver in (name, "highs"):
        if not adapter(solver).installed():
            pytest.skip(f"{adapter(solver).distribution} is not installed")


@pytest.fixture(scope="module", params=["highs", "mosek"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The folder with the files of one adapter, and the results of HiGHS on them."""
    need(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    written = call_isolated(f"{__name__}:write_all", {"adapter": request.param, "folder": folder})
    assert written.finished, written.message
    paths = [str(path) for path in folder.iterdir()]
    solved = call_isolated(f"{__name__}:solve_all", {"paths": paths})
    assert solved.finished, solved.message
    return folder, solved.values


@pytest.mark.parametrize(("sense", "integer"), KINDS)
def test_mps_file_is_the_same_problem(files: tuple[Path, dict[str, Any]], sense: str, integer: bool) -> None:
    folder, solved = files
    file, known = solved[str(folder / f"{sense}-{integer}.mps")], solved[f"{sense}-{integer}"]
    assert file["read"] == "kOk"
    assert abs(file["value"]) == pytest.approx(abs(known), abs=1e-6)  # HiGHS writes max as min of the negative
    assert file["integers"] == 3 * integer
    assert file["names"] == ["flow_x_0_0", "flow_x_0_1", "flow_x_1_0", "flow_x_1_1"]


def test_lp_file_is_the_same_problem(files: tuple[Path, dict[str, Any]]) -> None:
    folder, solved = files
    assert solved[str(folder / "simple.lp")]["value"] == pytest.approx(solved["simple"], abs=1e-6)


def domains_of(report: Any, **arguments: Any) -> dict[str, Any]:
    """Integrality and bounds of every column of a model file, as HiGHS reads it; runs in a worker."""
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(arguments["path"]).name == "kOk"
    lp = highs.getLp()
    whole = list(lp.integrality_) or [highspy.HighsVarType.kContinuous] * lp.num_col_
    kinds = [kind == highspy.HighsVarType.kInteger for kind in whole]
    names = [highs.getColName(j)[1] for j in range(lp.num_col_)]
    columns = zip(kinds, map(float, lp.col_lower_), map(float, lp.col_upper_), strict=True)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
@pytest.mark.parametrize("name", ["highs", "mosek"])
def test_columns_without_entries_keep_their_domain(name: str, suffix: str, tmp_path: Path) -> None:
    need(name)
    whole, low, high = [True, False, True, False, True], [1.0, 2.5, 0, 0.5, 1], [3.0, 2.5, 3, 0.75, 3]
    row, cost = [[0, 0, 1, 0, 0]], np.array([0.0, 0, 1, 0, 0])
    form = StandardForm(
        sp.csc_array(np.array(row, dtype=float)),
        np.array([1.0]),
        np.array([INF]),
        np.array(low),
        np.array(high),
        cost,
        "min",
        integer=np.array(whole),
    )
    write_isolated(form, name, tmp_path / f"model{suffix}")
    read = call_isolated(f"{__name__}:domains_of", {"path": str(tmp_path / f"model{suffix}")})
    assert read.finished, read.message
    assert read.values == {f"x{j}": [whole[j], low[j], high[j]] for j in range(5)}


def test_mosek_rejects_ranges_in_lp_files(tmp_path: Path) -> None:
    need("mosek")
    with pytest.raises(BadOption, match=r"ranged.*try \.mps"):
        write_isolated(problem("max", integer=True), "mosek", tmp_path / "model.lp")


def test_mosek_writes_a_task_without_a_licence(tmp_path: Path) -> None:
    need("mosek")
    write_isolated(problem("min", integer=True), "mosek", tmp_path / "model.task")
    assert (tmp_path / "model.task").stat().st_size > 100


def test_mosek_without_a_licence_is_reported_after_checking_options() -> None:
    need("mosek")
    form = problem("min", integer=False)
    with pytest.raises(BadOption, match="did you mean 'MSK_IPAR_NUM_THREADS'"):
        solve_isolated(form, "mosek", SolveRequest(options={"NUM_THREAD": 1}))
    with pytest.raises(BadOption, match="MSK_IPAR_NUM_THREADS"):
        solve_isolated(form, "mosek", SolveRequest(options={"MSK_IPAR_NUM_THREADS": "x"}))
    if probe("mosek").usable:
        pytest.skip("mosek has a licence here")
    with pytest.raises(SolverUnavailable, match="MOSEKLM_LICENSE_FILE") as caught:
        solve_isolated(form, "mosek", SolveRequest())
    assert caught.value.exit_status == 4


@pytest.mark.parametrize("name", ["highs", "mosek"])
def test_unknown_suffix_is_rejected(name: str, tmp_path: Path) -> None:
    need(name)
    with pytest.raises(BadOption, match=r"model\.xyz"):
        write_isolated(problem("min", integer=False), name, tmp_path / "model.xyz")


def test_missing_folder_is_named(tmp_path: Path) -> None:
    need("highs")
    with pytest.raises(BadOption, match="nowhere"):
        write_isolated(problem("min", integer=False), "highs", tmp_path / "nowhere" / "model.mps")
