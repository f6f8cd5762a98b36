"""Plug-ins from files outside the package: on the command line, in worker processes and on Dask."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from opticoll.analysis.cli import main
from opticoll.analysis.commands import KINDS, write_example
from opticoll.analysis.store import Store
from opticoll.analysis.study import run_study
from opticoll.analysis.study.study_file import load
from opticoll.instances import plugins
from opticoll.solvers.executor import DaskCluster
from opticoll.solvers.isolation import Budget, OwnLimits, probe
from opticoll.solvers.worker import ROOT

NAMES = {
    "formulation": "broadcast",
    "family": "twin-cliques",
    "solver": "scipy-highs",
    "method": "trees",
    "claim": "even-rings",
    "bound": "mean-distance",
}

STUDY = """
name = "own"
plugins = ["broadcast.py", "twin_cliques.py", "scipy_highs.py", "trees.py"]
formulations = ["own.broadcast"]
instances = ["ring:4", "twin-cliques:2"]
methods = ["highs-simplex", "scipy-highs"]

[[include]]
formulations = ["alltoall.master"]
instances = ["twin-cliques:2"]
methods = ["trees"]
"""


@pytest.fixture(autouse=True)
def nothing_stays():
    """Plug-ins of a test are gone after it."""
    yield
    for plugin in list(plugins._known.values()):
        plugins._drop(plugin)


@pytest.fixture
def folder(tmp_path):
    """One example of every kind, and a study of them."""
    for kind, name in NAMES.items():
        write_example(kind, name, tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def outside(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder that knows nothing of the checkout."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_every_kind_has_a_name_here():
    assert set(NAMES) == set(KINDS)


def test_examples_pass_their_tests_as_they_stand(tmp_path):
    for kind in KINDS:
        (test,) = [path for path in write_example(kind, NAMES[kind], tmp_path) if path.name.startswith("test_")]
        assert "def test_" in test.read_text(encoding="utf-8")
    done = outside(tmp_path, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", "-rA")
    assert done.returncode == 0, done.stdout[-3000:]
    for kind in KINDS:
        assert f"PASSED test_{NAMES[kind].replace('-', '_')}.py::" in done.stdout


def test_new_says_how_to_use_what_it_wrote(tmp_path, capfd):
    assert main(["new", "formulation", "broadcast", "--dir", str(tmp_path)]) == 0
    words = capfd.readouterr().err.splitlines()[-1].split()
    assert words[:3] == ["use", "it:", "opticoll"]
    assert main([*words[3:], "--no-store", "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["objective"] == pytest.approx(1 / 3)
    assert record["proof"] == "optimal"
    assert list(record["plugins"]) == ["broadcast.py"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bound", "json"], "would hide the installed module"),
        (["bound", "numpy"], "would hide the installed module"),
        (["bound", "two words"], "cannot be used"),
        (["bound", "class"], "cannot be used"),
        (["bound", "../up"], "cannot be used"),
        (["bound", "mine", "--dir", "nowhere"], "create it first"),
        (["bound", "there"], "already exists"),
        (["thing", "mine"], "is not one of"),
    ],
)
def test_new_refuses(words, message, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    Path("test_there.py").write_text("")
    assert main(["new", *words]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert message in line
    assert [path.name for path in tmp_path.iterdir()] == ["test_there.py"]


def test_everything_is_listed_from_outside(folder, capfd):
    options = [word for name in NAMES.values() for word in ("--plugin", str(folder / f"{name.replace('-', '_')}.py"))]
    assert main(["list", "--json", *options]) == 0
    listed = {(row["kind"], row["name"]) for row in json.loads(capfd.readouterr().out)}
    own = {("instances", "twin-cliques"), ("formulations", "own.broadcast"), ("solvers", "scipy-highs")}
    assert own | {("methods", "trees"), ("claims", "own.even-rings")} <= listed
    assert main(["bounds", "ring:5", "--json", *options]) == 0
    assert {"mean_distance"} <= {row["name"] for row in json.loads(capfd.readouterr().out)}
    assert main(["claims", "own.even-rings", "--no-store", "--json", *options]) == 0
    (claim,) = json.loads(capfd.readouterr().out)
    assert claim["verdict"] == "reproduced"
    assert list(claim["plugins"]) == ["even_rings.py"]
    loaded = [Path(word).name for word in shlex.split(claim["rerun"]) if word.endswith(".py")]
    assert sorted(loaded) == sorted(f"{name.replace('-', '_')}.py" for name in NAMES.values())
    assert main(["describe", "own.broadcast", "--json", *options]) == 0
    (described,) = json.loads(capfd.readouterr().out)
    assert "balance[u,v]" in described["text"]


def test_bounds_of_plug_ins_prove_nothing(tmp_path, capfd):
    (tmp_path / "wrong.py").write_text("def zero(topology):\n    return 0.0\nBOUNDS = {'alltoall.master': zero}\n")
    asked = ["solve", "alltoall.master", "ring:4", "--no-store", "--json", "--plugin", str(tmp_path / "wrong.py")]
    assert main(asked) == 0
    record = json.loads(capfd.readouterr().out)
    assert (record["proof"], record["bound"]) == ("optimal", pytest.approx(0.5))


def test_bounds_take_the_instance_and_the_data(tmp_path, capfd):
    text = """
import opticoll as oc
def one(topology):
    return topology.n
def two(topology, data):
    return oc.Bound("total", float(data.demand.sum()), "a reason", paper="mine")
def none(topology):
    return None
def text(topology):
    return "x"
BOUNDS = {"alltoall.master": [one, two, none]}
"""
    (tmp_path / "mine.py").write_text(text)
    assert main(["bounds", "ring:4", "--json", "--plugin", str(tmp_path / "mine.py")]) == 0
    rows = {row["name"]: (row["value"], row["paper"]) for row in json.loads(capfd.readouterr().out)}
    assert rows["one"] == (4.0, "own")
    assert rows["total"] == (12.0, "mine")
    assert "none" not in rows
    (tmp_path / "mine.py").write_text(text.replace("[one,", "[text,"))
    assert main(["bounds", "ring:4", "--plugin", str(tmp_path / "mine.py")]) == 2
    assert "return a number" in capfd.readouterr().err


def test_a_study_from_outside_runs_in_two_processes_and_resumes(folder, tmp_path):
    place = folder / "elsewhere"
    place.mkdir()
    asked = ["-m", "opticoll", "study", "../study.toml", "--jobs", "2", "--store", "store", "--json"]
    done = outside(place, *asked)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["cells"], result["done"]) == (5, 5), result
    again = json.loads(outside(place, *asked).stdout)
    assert (again["done"], again["skipped"]) == (0, 5)
    path = folder / "scipy_highs.py"
    path.write_text(path.read_text() + "# changed\n")
    changed = json.loads(outside(place, *asked).stdout)
    assert (changed["done"], changed["skipped"]) == (2, 3), changed


def test_a_study_runs_on_dask_workers_that_have_no_copy_of_the_files(folder, tmp_path):
    distributed = pytest.importorskip("distributed")
    study = load(folder / "study.toml")
    for path in folder.glob("*.py"):
        path.unlink()
    store = Store(tmp_path / "store")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    options["local_directory"] = str(tmp_path)
    with (
        distributed.LocalCluster(**options) as cluster,
        DaskCluster(cluster.scheduler_address) as executor,
    ):
        summary = run_study(study, store, executor)
    assert summary.count("done") == 5, summary.results
    records = {store.read(name)["id"]: store.read(name) for name in store.names()}
    assert all(record["verified"] and record["plugins"] for record in records.values())
    values = {f"{r['formulation']} {r['instance']} {r['method']}": r["objective"] for r in records.values()}
    assert values["own.broadcast twin-cliques:2 scipy-highs"] == pytest.approx(1 / 2)
    assert values["own.broadcast ring:4 highs-simplex"] == pytest.approx(1 / 2)


def test_templates_are_in_the_package():
    data = tomllib.loads((ROOT.parent / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    assert "templates/*" in data["opticoll.analysis"]


@pytest.mark.parametrize("command", ["list", "bounds", "check", "export", "study", "claims", "results", "report"])
def test_every_command_loads_plug_ins_first(command, tmp_path, capfd):
    assert main([command, "--plugin", str(tmp_path / "none.py")]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert "none.py cannot be read" in line


TWO_RINGS = """
name = "tiny"
formulations = ["alltoall.master"]
instances = ["ring:{{4,6}}"]
methods = {methods}
plugins = ["broken.py"]
"""
BROKEN = """
from opticoll.solvers.adapters.interface import Adapter, Capabilities
from opticoll.solvers.task import Outcome, Termination

class Broken(Adapter):
    name = title = "broken"
    package = distribution = "scipy"
    algorithm = "none"
    capabilities = Capabilities(lp=True, mip=False, duals=False)
    modules = ("scipy",)

    def solve(self, form, request, progress):
        return Outcome(Termination.ERROR, message="gives up")

ADAPTER = Broken()
"""


@pytest.mark.parametrize(
    ("methods", "status", "says"),
    [
        (["highs-simplex", "broken"], 1, "study tiny: 2 of 4 cells have no answer (2 failed)"),
        (["broken"], 3, "study tiny: 2 of 2 cells have no answer (2 failed)"),
        (["mosek"], 4, "study tiny: 2 of 2 cells have no answer (2 without a usable solver)"),
        (["highs-simplex", "mosek"], 0, "study tiny: 2 of 4 cells have no answer (2 without a usable solver)"),
    ],
)
def test_a_study_says_how_many_cells_have_no_answer(capfd, tmp_path, methods, status, says):
    if "mosek" in methods and probe("mosek").usable:
        pytest.skip("has the solver that must be missing")
    (tmp_path / "broken.py").write_text(BROKEN)
    file = tmp_path / "tiny.toml"
    file.write_text(TWO_RINGS.format(methods=json.dumps(methods)))
    assert main(["study", str(file), "--json"]) == status
    out, err = capfd.readouterr()
    assert says in err
    document = json.loads(out)
    assert document["failed"] == (2 if "broken" in methods else 0)
    assert document["done"] == (2 if "highs-simplex" in methods else 0)
    if "highs-simplex" in methods:
        assert main(["compare", str(file)]) == 0
        assert ("mosek: 2 runs had no usable solver" in capfd.readouterr().err) == ("mosek" in methods)


def test_the_mathematics_of_a_formulation_from_outside_is_that_of_its_file(tmp_path, capfd):
    text = """'''Largest capacity.\n\nmax R  s.t.  cap  R <= c_0'''
import opticoll as oc
def build(topology):
    import cvxpy as cp
    R = cp.Variable(name="R")
    return cp.Problem(cp.Maximize(R), [R <= topology.capacity[0]])
FORMULATION = oc.Formulation(
    name="own.largest", title="Largest", sense="max", build={"cvxpy": build},
    residuals=lambda topology, values: {"cap": float(values["R"] - topology.capacity[0])},
    objective=lambda topology, values: float(values["R"]),
)
"""
    (tmp_path / "largest.py").write_text(text)
    assert main(["describe", "own.largest", "--json", "--plugin", str(tmp_path / "largest.py")]) == 0
    (described,) = json.loads(capfd.readouterr().out)
    assert described["text"].startswith("Largest capacity.")
    for instance, variables in (("ring:4", 1), ("ring:64", None)):  # without an estimate, small ones are built
        command = ["describe", "own.largest", "--instance", instance, "--json", "--plugin"]
        assert main([*command, str(tmp_path / "largest.py")]) == 0
        (described,) = json.loads(capfd.readouterr().out)
        assert described["sizes"]["variables"] == variables


HANGING = '''
"""Largest flow into a vertex."""
import time
import cvxpy as cp
import opticoll as oc
def build(t):
    BUILD
    f, R = cp.Variable(t.arcs, name="f", nonneg=True), cp.Variable(name="R", nonneg=True)
    return cp.Problem(cp.Maximize(R), [t.incidence()[1:] @ f == R, f <= t.capacity])
def residuals(t, v):
    RESIDUALS
    return {"capacity": float((v["f"] - t.capacity).max())}
FORMULATION = oc.Formulation(
    name="own.hanging", title="hanging", sense="max", prepare=lambda instance, parameters: instance,
    build={"cvxpy": build}, residuals=residuals, objective=lambda t, v: float(v["R"]), bounds=lambda t: [],
)
'''


def test_a_plug_in_that_sleeps_in_its_build_is_ended(tmp_path, capfd):
    (tmp_path / "hanging.py").write_text(HANGING.replace("BUILD", "time.sleep(600)").replace("RESIDUALS", "pass"))
    asked = ["solve", "own.hanging", "ring:4", "--no-store", "--time-limit", "1"]
    assert main([*asked, "--plugin", str(tmp_path / "hanging.py")]) == 3
    assert "the time limit was reached while the model was built" in capfd.readouterr().err


def test_a_plug_in_whose_check_does_not_return_is_a_failed_row(tmp_path, monkeypatch, capfd):
    (tmp_path / "hanging.py").write_text(HANGING.replace("BUILD", "pass").replace("RESIDUALS", "while True: pass"))
    over = lambda self: (OwnLimits(time.monotonic(), None, None, 2.0), 20.0)  # noqa: E731
    monkeypatch.setattr(Budget, "checking", over)  # as if the limit were over after the solve, on any machine
    asked = ["own.hanging", "ring:4", "--time-limit", "3600", "--store", str(tmp_path / "store")]
    assert main(["solve", *asked, "--plugin", str(tmp_path / "hanging.py")]) == 3
    message = "line 10: formulation 'own.hanging': residuals did not return within 20 s of work"
    assert message in capfd.readouterr().err.splitlines()[-1]
    store = Store(tmp_path / "store")
    (record,) = map(store.read, store.names())
    assert (record["termination"], record["verified"]) == ("time-limit", False)
    assert message in record["message"]
