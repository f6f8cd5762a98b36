"""Resume keys follow the versions of every solver that a run may use, and the run whose solution it needs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from cases import CASES, first_case
from msgspec import structs

import opticoll as oc
from opticoll.analysis.study.study_file import study_of, unplanned_key
from opticoll.formulations import formulations
from opticoll.solvers import plan as planning
from opticoll.solvers import resume_key as keys_of_runs
from opticoll.solvers.plan import make_plan
from opticoll.solvers.process.memory import TooLarge
from opticoll.solvers.resume_key import plan_key, resume_key

VERSIONED = {
    "alltoall.master": "ring:4",
    "alltoall.min-congestion": "ring:4",
    "lumorph.rounds": "lightpath:2x2",
    "topology.design": "servers:n=4,degree=2",
    "topology.sequence": "servers:n=4,degree=2",
    "topology.matchings": "servers:n=4,degree=2",
    "optree.tree": "wdm-line:n=4,wavelengths=2",
}
#: Formulations that need a solution of another.
NEEDING = {name: first_case(name)[0] for name in CASES if formulations()[name]._needs}

Upgrade = Callable[[str], None]


@pytest.fixture
def upgrade(monkeypatch: pytest.MonkeyPatch) -> Upgrade:
    """Pretend that a distribution has another version."""
    changed: dict[str, str] = {}

    def version(name: str) -> str | None:
        return changed.get(name, "1")

    for module in ("opticoll.solvers.resume_key", "opticoll.solvers.adapters.interface"):
        monkeypatch.setattr(f"{module}.distribution_version", version)

    def replaced(name: str) -> None:
        changed[name] = f"{changed.get(name, '1')}.1"

    return replaced


def followed(task: oc.Task, upgrade: Upgrade, name: str) -> bool:
    """Whether the key of a task changes with the version of a distribution."""
    before = resume_key(task)
    upgrade(name)
    return resume_key(task) != before


@pytest.mark.parametrize(("name", "spec"), [*(VERSIONED | NEEDING).items()])
def test_auto_follows_the_solver_of_whatever_it_chooses(name: str, spec: str, upgrade: Upgrade) -> None:
    task = oc.Task(name, spec)
    assert followed(task, upgrade, "highspy")
    assert not followed(task, upgrade, "ortools")


@pytest.mark.parametrize(
    ("method", "settings", "used"),
    [
        ("clarabel", {}, {"clarabel", "highspy", "cvxpy"}),
        ("pdlp", {}, {"ortools", "highspy", "cvxpy"}),
        ("certified-pdlp", {"solver": "pdlp"}, {"ortools", "highspy"}),
        ("certified-pdlp", {}, {"highspy"}),
        ("scip", {}, {"PySCIPOpt", "highspy", "cvxpy"}),
    ],
)
def test_a_method_follows_its_solver_and_the_one_that_proves(method, settings, used, upgrade) -> None:
    task = oc.Task("alltoall.master", "ring:4", method, settings=settings)
    names = ("clarabel", "ortools", "PySCIPOpt", "highspy", "python-flint", "pyomo", "cvxpy", "opticoll")
    assert {name for name in names if followed(task, upgrade, name)} == used


def test_a_model_follows_the_layer_that_compiles_it_and_every_run_the_code(
    upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = oc.Task("alltoall.master", "ring:4", "highs", form="pyomo")
    assert followed(task, upgrade, "pyomo")
    assert not followed(task, upgrade, "cvxpy")
    before = resume_key(task)
    monkeypatch.setattr("opticoll.package_code.digest", lambda: "other")
    assert resume_key(task) != before


def test_the_exact_step_follows_its_arithmetic(upgrade: Upgrade) -> None:
    assert followed(oc.Task("alltoall.master", "ring:4", exact=True), upgrade, "python-flint")


@pytest.mark.parametrize("method", ["auto", "highs-simplex"])
def test_a_run_follows_the_run_that_it_needs(method: str, upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch) -> None:
    task = oc.Task("alltoall.child", "ring:4", method)
    assert followed(task, upgrade, "highspy")
    before = resume_key(task)
    basis = planning.needed_task(task, make_plan(task))
    monkeypatch.setattr(keys_of_runs, "needed_task", lambda *_: structs.replace(basis, method="clarabel"))
    assert resume_key(task) != before


def test_the_key_on_record_is_the_key_before_the_run() -> None:
    for name, spec in NEEDING.items():
        for exact in (False, True):
            task = oc.Task(name, spec, exact=exact)
            run = oc.solve(task)
            assert run.record.key == resume_key(task)
            assert run.needed is not None
            assert run.needed.record.key == resume_key(planning.needed_task(task, make_plan(task)))


def test_the_parameter_that_names_the_method_of_a_needed_run_counts() -> None:
    tasks = [
        oc.Task("alltoall.virtual-channels", "ring:4", settings={"routes": one})
        for one in ("lp-rounding", "exact-routing")
    ]
    assert resume_key(tasks[0]) != resume_key(tasks[1])


METHOD = """
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

METHOD = Method(
    name="mine", title="mine", summary="", serves=("alltoall.master",),
    run=lambda context: Answer(Termination.ERROR),
)
"""


@pytest.mark.usefixtures("forgotten_plugins")
def test_a_method_of_a_plug_in_may_use_any_solver(tmp_path: Path, upgrade: Upgrade) -> None:
    (tmp_path / "mine.py").write_text(dedent(METHOD))
    oc.load_plugin(tmp_path / "mine.py")
    task = oc.Task("alltoall.master", "ring:4", "mine")
    for name in ("ortools", "PySCIPOpt", "clarabel", "highspy", "numpy", "scipy"):
        assert followed(task, upgrade, name)
    assert not followed(oc.Task("alltoall.master", "ring:4", "highs"), upgrade, "numpy")


@pytest.mark.parametrize("settings", ["demand", "instance"])
def test_the_contents_of_files_count(settings: str, tmp_path: Path) -> None:
    file, keys = tmp_path / "data.txt", set()
    for capacity in (1, 2):
        if settings == "instance":
            file.write_text(f"0 1 {capacity}\n1 2 1\n2 0 1\n1 0 1\n")
            task = oc.Task("alltoall.master", f"file:{file}")
        else:
            file.write_text(f"0,{capacity},1\n1,0,1\n1,1,0\n")
            task = oc.Task("alltoall.master", "ring:3", settings={"demand": f"file:{file}"})
        keys.add(resume_key(task))
    assert len(keys) == 2


def refuse_as_too_large(*_: object, **__: object) -> None:
    raise TooLarge


def test_a_cell_without_a_plan_follows_what_every_run_uses(upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "make_plan", refuse_as_too_large)
    keys = []
    for _ in range(2):
        (cell,) = study_of("mine", [oc.Task("alltoall.master", "ring:4")]).cells
        assert (cell.planned, cell.key) == (False, unplanned_key(cell.task, oc.parse("ring:4")))
        keys.append(cell.key)
        upgrade("highspy")
    assert keys[0] != keys[1]


def test_a_known_needed_key_is_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    task = oc.Task("alltoall.child", "ring:4")
    plan = make_plan(task)
    key, needed = plan_key(task, plan), resume_key(planning.needed_task(task, plan))
    monkeypatch.setattr(keys_of_runs, "needed_task", None)
    assert plan_key(task, plan, needed) == key


SCRIPT = """
import opticoll as oc
class Flow(oc.Formulation):
    name, sense = "script.flow", "max"
    def pyomo(self):
        import pyomo.core as pyo
        model = pyo.ConcreteModel()
        model.x = pyo.Var(bounds=(0, 1))
        model.total = pyo.Objective(expr=model.x, sense=pyo.maximize)
        return model
    def residuals(self, values):
        return {"most": float(values["x"]) - 1}
    def objective(self, values):
        return float(values["x"])
"""


def test_the_code_of_a_script_is_read_once_a_solve(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    digest_of = keys_of_runs.code_digest

    def reading(value: object) -> str:
        read.append(value)
        return digest_of(value)

    monkeypatch.setattr(keys_of_runs, "code_digest", reading)
    script: dict[str, Any] = {"__name__": "__main__"}
    exec(SCRIPT, script)
    record = oc.solve(script["Flow"], "ring:4").record
    assert read == [script["Flow"]]
    assert dict(record.plugins or {}) == {"script.flow": digest_of(script["Flow"])}


def test_names_of_equal_networks_count(tmp_path: Path) -> None:
    """A demand by names is another one on a network with other names; 1 and 2 are the loads of a directed ring."""
    (tmp_path / "demand.csv").write_text("source,target,demand\na,b,1\nb,c,1\n")
    settings = {"demand": f"file:{tmp_path / 'demand.csv'}"}
    for name, ring in {"net": "abca", "other": "bacb"}.items():
        (tmp_path / f"{name}.csv").write_text("".join(f"{u},{v}\n" for u, v in pairwise(ring)))
    shown, columns, store = [f"file:{tmp_path}/{name}.csv" for name in ("net", "other")], ["instance", "T"], tmp_path
    table = oc.study("alltoall.master", shown, "highs", columns=columns, store=store, **settings)
    assert table.to_numpy().tolist() == [[shown[0], 1.0], [shown[1], 2.0]]
    (tmp_path / "net.csv").write_text((tmp_path / "other.csv").read_text())
    table = oc.study("alltoall.master", shown, "highs", columns="T", store=store, **settings)
    assert table["T"].tolist() == [2.0, 2.0]


def test_every_instance_of_a_study_has_a_row_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    named = ["ring:3", "complete:3", "kautz:d=2,D=1"]
    assert len({oc.parse(spec).hash for spec in named}) == 1
    tasks = [oc.Task("alltoall.master", spec) for spec in named]
    assert [cell.canonical for cell in study_of("mine", tasks).cells] == named
    monkeypatch.setattr(planning, "make_plan", refuse_as_too_large)
    assert [cell.canonical for cell in study_of("mine", tasks).cells] == named


def test_equal_numbers_of_other_types_are_one_cell() -> None:
    plain = oc.Task("alltoall.master", "ring:4", time_limit_s=60.0, memory_limit_gib=8.0, tol=0.5, repetition=1)
    others: list[dict[str, Any]] = [
        {"time_limit_s": 60, "memory_limit_gib": 8},
        {"time_limit_s": np.float32(60), "memory_limit_gib": np.int64(8)},
        {"tol": np.float32(0.5)},
        {"repetition": np.int64(1)},
    ]
    assert {resume_key(structs.replace(plain, **other)) for other in others} == {resume_key(plain)}
    with pytest.raises(oc.BadInput, match="repetition"):
        structs.replace(plain, repetition=-1)
