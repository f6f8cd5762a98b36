"""Resume keys follow the versions of every solver that a run may use, and the run whose solution it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

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


def test_a_cell_without_a_plan_follows_what_every_run_uses(upgrade: Upgrade, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TooLarge

    monkeypatch.setattr(planning, "make_plan", refuse)
    keys = []
    for _ in range(2):
        (cell,) = study_of("mine", [oc.Task("alltoall.master", "ring:4")]).cells
        assert (cell.planned, cell.key) == (False, unplanned_key(cell.task, str(cell.facts["instance_hash"])))
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
