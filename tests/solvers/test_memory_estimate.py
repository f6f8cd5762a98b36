"""A model that cannot fit into memory is refused before it is built; one that fits is not."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.store import Store
from opticoll.analysis.study.running import run_study
from opticoll.analysis.study.study_file import load
from opticoll.formulations.model import build_model
from opticoll.solvers import solve
from opticoll.solvers.compile.compilation import compile_model
from opticoll.solvers.plan import make_plan
from opticoll.solvers.process import memory
from opticoll.solvers.process.executor import InProcess
from opticoll.solvers.process.isolation import call_isolated
from opticoll.solvers.process.memory import GIB, TooLarge, available_bytes
from opticoll.solvers.task import Task

LARGE = "genkautz:n=200,d=4"


def test_link_mcf_of_200_ranks_is_refused_at_once_and_the_message_helps(tmp_path: Path, capfd: Any) -> None:
    asked = ["solve", "alltoall.link-mcf", LARGE, "--method", "highs-ipx", "--memory-limit", "8"]
    asked += ["--store", str(tmp_path / "store")]
    assert main(asked) == 2  # which imports what it needs
    capfd.readouterr()
    tracemalloc.start()
    try:
        assert main(asked) == 2
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    out, err = capfd.readouterr()
    (line,) = err.strip().splitlines()
    assert out == ""
    assert "31,840,001 variables" in line
    assert "8.0 GiB" in line
    assert "column-generation" in line
    assert "alltoall.master" in line
    assert not (tmp_path / "store").exists()
    # Nothing was built for it: a gigabyte would be one array of its matrix.
    assert peak <= 50_000_000


def test_a_model_for_itself_is_refused_before_it_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 0.01 * GIB)
    file = tmp_path / "m.mps"
    name, spec = "alltoall.link-mcf", "genkautz:n=32,d=4"
    asked = (lambda: oc.model(name, spec), lambda: oc.export(name, spec, file), lambda: oc.problem(name, spec).cvxpy())
    for ask in asked:
        with pytest.raises(
            TooLarge, match=r"this machine has 0\.0 GiB left: solve alltoall\.master, which has the same"
        ):
            ask()
    assert not file.exists()


def test_without_a_limit_the_machine_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("alltoall.link-mcf", "genkautz:n=32,d=4", "highs-ipx")
    monkeypatch.setattr(memory, "available_bytes", lambda: 0.01 * GIB)
    with pytest.raises(TooLarge, match=r"this machine has 0\.0 GiB left.*set a memory limit to override this check"):
        memory.refuse_plan(task, make_plan(task))
    monkeypatch.setattr(memory, "available_bytes", lambda: 8.0 * GIB)
    memory.refuse_plan(task, make_plan(task))
    allowed = Task("alltoall.link-mcf", "genkautz:n=32,d=4", "highs-ipx", memory_limit_gib=8.0)
    memory.refuse_plan(allowed, make_plan(allowed))


@pytest.mark.parametrize(
    ("name", "spec", "parameters"),
    [
        ("alltoall.link-mcf", "genkautz:n=9,d=2", {}),
        ("alltoall.link-mcf", "torus:3x3", {"printed": True}),
        ("alltoall.timestep-mcf", "genkautz:n=9,d=2", {"steps": 0, "aggregate": "commodity", "relays": "pass"}),
        ("alltoall.timestep-mcf", "torus:3x3", {"steps": 4, "aggregate": "source", "relays": "pass"}),
        ("alltoall.timestep-mcf", "ring:5", {"steps": 0, "aggregate": "commodity", "relays": "pass"}),
    ],
)
def test_estimates_are_close_to_what_is_built(name: str, spec: str, parameters: dict[str, Any]) -> None:
    plan = make_plan(Task(name, spec, "highs", settings=parameters))
    built, estimated = compile_model(build_model(plan.problem, plan.form)).size, plan.problem._estimate()
    assert estimated is not None
    assert estimated["variables"] == built["variables"]

    def entries(size: Mapping[str, int]) -> int:
        return sum(size[name] for name in ("variables", "constraints", "nonzeros"))

    assert 0.4 * entries(built) <= entries(estimated) <= 1.5 * entries(built)


@pytest.mark.parametrize("form", ["matrix", *(pytest.param(f, marks=pytest.mark.slow) for f in ("cvxpy", "pyomo"))])
def test_building_takes_what_is_estimated_and_not_less(form: str) -> None:
    spec = "genkautz:n=100,d=4" if form == "pyomo" else "genkautz:n=250,d=4"
    asked = {"formulation": "alltoall.master", "instance": spec, "form": form, "settings": {}}
    answer = call_isolated("measured_tables:build_in_worker", asked)
    assert answer.finished, answer.message
    size = answer.values["estimate"]
    estimate = (size["variables"] + size["constraints"] + size["nonzeros"]) * memory.BUILD[form] / 1e6
    assert estimate <= answer.values["peak"] <= 3 * estimate


def test_what_fits_is_solved_at_the_limit_that_it_needs() -> None:
    """The limit is set to what was measured: the estimate must not be above it."""
    task = Task("alltoall.link-mcf", "genkautz:n=12,d=4", "highs-ipx")
    measured = solve.solve(task).record["peak_memory_mb"] * 1e6 / GIB
    again = solve.solve(Task(task.formulation, task.instance, task.method, memory_limit_gib=1.3 * measured + 0.1))
    assert again.verified


def test_methods_that_build_no_model_are_named_and_not_refused() -> None:
    task = Task("alltoall.master", "genkautz:n=600,d=4", "highs-ipx", memory_limit_gib=0.4)
    with pytest.raises(TooLarge, match=r"use method .*certified-pdhg.*; raise"):
        memory.refuse_plan(task, make_plan(task))
    other = Task("alltoall.master", "genkautz:n=600,d=4", "certified-pdhg", memory_limit_gib=0.4)
    memory.refuse_plan(other, make_plan(other))


def test_leaner_layer_is_named() -> None:
    task = Task("alltoall.master", "genkautz:n=300,d=4", "pdlp", form="pyomo", memory_limit_gib=0.2)
    with pytest.raises(TooLarge, match="form matrix"):
        memory.refuse_plan(task, make_plan(task))


def test_estimate_counts_where_the_instance_alone_tells_nothing() -> None:
    task = Task("alltoall.path-mcf", "torus:4x4", "highs", settings={"paths": "shortest"}, memory_limit_gib=1e-5)
    plan = make_plan(task)
    with pytest.raises(TooLarge, match="path-mcf"):
        memory.refuse_plan(task, plan)


def test_refusal_in_a_study_is_a_row_and_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.toml"
    path.write_text(
        'name = "mixed"\nformulations = ["alltoall.link-mcf"]\ninstances = ["ring:4", "genkautz:n=64,d=4"]\n'
        'methods = ["highs-simplex"]\n[limits]\nmemory_limit_gib = 0.3\n'
    )
    store = Store(tmp_path / "store")
    summary = run_study(load(path), store, InProcess())
    assert summary.complete
    assert sorted(result.termination or "" for result in summary.results.values()) == ["optimal", "refused"]
    rows = {record["instance"]: record for record in map(store.read, store.names())}
    refused = rows["genkautz:n=64,d=4"]
    assert (refused["termination"], refused["proof"], refused["verified"]) == ("refused", "none", False)
    assert "column-generation" in refused["message"]
    again = run_study(load(path), store, InProcess())
    assert again.count("skipped") == 1
    assert len(list(store.names())) == 2  # refused again: no second row for that


#: Threads that no other test asks for: the worker has not imported what their jobs needed.
FRESH = 7


@pytest.fixture(scope="module")
def empty() -> float:
    """Peak memory of a worker that does nothing [MB]."""
    return call_isolated("worker_jobs:hold", {"mb": 0}, threads=FRESH).peak_memory_mb or 0.0


def test_peak_counts_the_worker_and_its_workers(empty: float) -> None:
    flat = call_isolated("worker_jobs:hold", {"mb": 200}, threads=FRESH)
    assert 195 <= (flat.peak_memory_mb or 0.0) - empty <= 260
    deep = call_isolated("worker_jobs:hold_below", {"mb": 200, "own": 100}, threads=FRESH)
    assert deep.finished, deep.message
    assert 195 <= deep.values["inner"] - empty <= 260
    assert 295 <= (deep.peak_memory_mb or 0.0) - 2 * empty <= 400


def test_a_method_tells_the_peak_of_its_sub_solves(empty: float) -> None:
    """Master-child's children are processes below its own: the record counts them all."""
    run = solve.solve(Task("alltoall.link-mcf", "ring:4", "master-child", settings={"jobs": 2}))
    assert run.verified
    assert run.record["peak_memory_mb"] > 1.7 * empty


# Available memory -----------------------------------------------------------------------------------------------


def group(folder: Path, limit: str, used: int, cached: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("memory.max", limit), ("memory.current", str(used))):
        (folder / name).write_text(text + "\n")
    (folder / "memory.stat").write_text(f"anon 1\ninactive_file {cached // 5}\nactive_file {cached - cached // 5}\n")


@pytest.mark.parametrize("inside", [True, False], ids=["own-view", "path-not-visible"])
def test_container_limits_are_respected(tmp_path: Path, inside: bool) -> None:
    processes, groups = tmp_path / "self", tmp_path / "groups"
    processes.mkdir()
    (processes / "cgroup").write_text("4:cpu:/other\n0::/outer/inner\n")
    group(groups, "1000000" if not inside else "9" * 15, 400_000, 100_000)
    if inside:
        group(groups / "outer", "800000", 500_000, 50_000)
        group(groups / "outer" / "inner", "max", 10, 0)
    assert available_bytes(processes, groups) == (350_000 if inside else 700_000)


def test_no_groups_leave_the_machine(tmp_path: Path) -> None:
    import psutil

    result = available_bytes(tmp_path, tmp_path)
    assert result == pytest.approx(psutil.virtual_memory().available, rel=0.2)
