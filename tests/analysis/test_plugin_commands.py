"""Plug-ins from files outside the package: on the command line, in worker processes and on Dask."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

import opticoll as oc
from opticoll import plugins
from opticoll.analysis.cli.main import main
from opticoll.analysis.cli.new import USES, write_example
from opticoll.analysis.report.page import templates
from opticoll.analysis.store import Store
from opticoll.analysis.study.running import run_study
from opticoll.analysis.study.study_file import load
from opticoll.solvers import run_state as course
from opticoll.solvers.process import worker_imports
from opticoll.solvers.process.budget import limited
from opticoll.solvers.process.executor import InProcess
from opticoll.solvers.process.isolation import probe
from opticoll.solvers.process.worker import ROOT

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
        plugins._forget(plugin)


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
    assert set(NAMES) == set(USES)


def test_examples_pass_their_tests_as_they_stand(tmp_path, monkeypatch):
    for kind in USES:
        (test,) = [path for path in write_example(kind, NAMES[kind], tmp_path) if path.name.startswith("test_")]
        assert "def test_" in test.read_text(encoding="utf-8")
    passed = set()

    class Listener:
        def pytest_runtest_logreport(self, report):
            if report.when == "call" and report.passed:
                passed.add(report.nodeid.partition("::")[0])

    monkeypatch.chdir(tmp_path)
    options = ["-q", "-W", "error", "--import-mode=importlib"]
    without = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "xdist")]
    assert pytest.main([*options, *without, "--rootdir", str(tmp_path)], plugins=[Listener()]) == 0
    assert passed == {f"test_{name.replace('-', '_')}.py" for name in NAMES.values()}


def test_examples_follow_the_rules_of_this_repository(tmp_path):
    for kind in USES:
        write_example(kind, NAMES[kind], tmp_path)
    plugins_ = sorted(path for path in tmp_path.glob("*.py") if not path.name.startswith("test_"))
    tests = sorted(tmp_path.glob("test_*.py"))
    rules = ["--config", ROOT.parent / "pyproject.toml", "--no-cache"]
    for words in (
        ["check", *rules, *plugins_],
        ["check", *rules, "--extend-ignore", "D,C901", *tests],  # as for the tests of this repository
        ["format", "--check", *rules, *plugins_, *tests],
    ):
        done = outside(ROOT.parent, "-m", "ruff", *map(str, words))
        assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_examples_are_typed(tmp_path):
    files = [path for kind in USES for path in write_example(kind, NAMES[kind], tmp_path)]
    plugins_ = [str(path) for path in files if not path.name.startswith("test_")]
    done = outside(ROOT.parent, "-m", "mypy", "--config-file", str(ROOT.parent / "pyproject.toml"), *plugins_)
    assert done.returncode == 0, done.stdout


def test_new_says_how_to_use_what_it_wrote(tmp_path, capfd):
    assert main(["new", "formulation", "broadcast", "--dir", str(tmp_path)]) == 0
    words = capfd.readouterr().err.splitlines()[-1].split()
    assert words[:3] == ["use", "it:", "opticoll"]
    assert main([*words[3:], "--no-store", "--json"]) == 0
    record = json.loads(capfd.readouterr().out)
    assert record["objective"] == pytest.approx(1 / 3)
    assert record["proof"] == "optimal"
    assert list(record["plugins"]) == ["broadcast.py"]


def test_new_names_a_family_as_specs_do(tmp_path, capfd):
    assert main(["new", "family", "twin_rings", "--dir", str(tmp_path)]) == 0
    words = capfd.readouterr().err.splitlines()[-1].split()
    assert words[4:6] == ["alltoall.master", "twin-rings:4"]
    assert main([*words[3:], "--no-store"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["bound", "json"], "would hide the installed module"),
        (["bound", "numpy"], "would hide the installed module"),
        (["bound", "two words"], "cannot be used"),
        (["bound", "class"], "is a keyword of Python"),
        (["bound", "Mine"], "digits, '-' and '_'"),
        (["bound", "../up"], "cannot be used"),
        (["bound", "mine", "--dir", "nowhere"], "create it first"),
        (["bound", "there"], "already exists"),
        (["thing", "mine"], "is not one of 'formulation'"),
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
    assert described["sizes"]["instance"] == "hypercube:3"  # built, as the formulation states no estimate
    assert described["sizes"]["variables"] > 0


EXTENSION = """
import click
from opticoll.extensions import Extension
from opticoll.solvers.schedules.schedule_check import ScheduleCheck, ScheduleFormat

@click.command()
def hello():
    click.echo("hello")

def rows():
    return [{"name": "good morning", "words": 2}]

FORMAT = ScheduleFormat(
    lambda document, path: isinstance(document, dict) and "greeting" in document,
    lambda document, path, topology, collective: ScheduleCheck(True, metrics={"time": document["greeting"]}),
)
EXTENSION = Extension(
    "greetings",
    commands={"hello": (f"{__name__}:hello", "Say hello.")},
    lists={"greetings": (f"{__name__}:rows", ("name", "words"))},
    schedules=(f"{__name__}:FORMAT",),
)
"""


def test_a_plug_in_adds_a_command_a_list_and_a_format_of_schedules(tmp_path, monkeypatch, capfd):
    (tmp_path / "greeting.py").write_text(EXTENSION, encoding="utf-8")
    (tmp_path / "s.json").write_text('{"greeting": 4.0}', encoding="utf-8")
    for words in (["--plugin", "greeting.py", "hello"], ["hello", "--plugin", "greeting.py"]):
        said = outside(tmp_path, "-m", "opticoll", *words)
        assert (said.returncode, said.stdout) == (0, "hello\n")
    monkeypatch.chdir(tmp_path)
    plugin = ["--plugin", "greeting.py", "--json"]
    assert main(["check", "alltoall.master", "ring:4", "s.json", *plugin]) == 0
    assert json.loads(capfd.readouterr().out)["metrics"]["over_bound"] == 2.0
    assert main(["list", "greetings", *plugin]) == 0
    assert json.loads(capfd.readouterr().out) == [{"name": "good morning", "words": 2}]


def test_a_function_of_an_extension_changes_with_its_file(tmp_path):
    text = EXTENSION.replace("lists=", 'functions=(f"{__name__}:rows",), lists=')
    (tmp_path / "greeting.py").write_text(text, encoding="utf-8")
    oc.load_plugin(tmp_path / "greeting.py")
    assert oc.rows() == [{"name": "good morning", "words": 2}]
    (tmp_path / "greeting.py").write_text(text.replace("good", "bad"), encoding="utf-8")
    oc.load_plugin(tmp_path / "greeting.py")
    assert oc.rows()[0]["name"] == "bad morning"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (":FORMAT", ":OTHER", "schedules must name what is in a module, .* has no attribute 'OTHER'"),
        ('"hello": (f"{__name__}:hello", "Say hello.")', '"hello": "hello"', "commands must name what is in a module"),
        ('"hello": (f"', '"solve": (f"', "commands has 'solve', which is already in use; choose another name"),
        ('"greetings": (f"', '"claims": (f"', "lists has 'claims', which is already in use; choose another name"),
        ("lists=", "functions=('opticoll:solve',), lists=", "functions has 'solve', which is already in use"),
        ("{__name__}:hello", "{__name__}:rows", "commands has .*:rows, of type function; it must be a Command"),
        (
            "{__name__}:FORMAT",
            "{__name__}:rows",
            "schedules has .*:rows, of type function; it must be a Schedule",
        ),
        ("lists=", "examples={'a': 'b'}, lists=", "states examples, which a plug-in cannot add; leave them out"),
    ],
)
def test_an_extension_that_is_wrong_is_refused_when_it_is_loaded(old, new, message, tmp_path, capfd):
    assert old in EXTENSION
    (tmp_path / "greeting.py").write_text(EXTENSION.replace(old, new), encoding="utf-8")
    assert main(["list", "methods", "--plugin", str(tmp_path / "greeting.py")]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert re.search(f"^opticoll: plug-in .*greeting.py: EXTENSION:? {message}", line), line


CHECKED = "check alltoall.master ring:4 s.json"
ROWS = '[{"name": "good morning", "words": 2}]'


@pytest.mark.parametrize(
    ("old", "new", "words", "message"),
    [
        ("ScheduleCheck(True, metrics", "dict(a", CHECKED, r"line 15: <lambda> returned dict; return a ScheduleCheck"),
        ("path, topology, collective:", "path:", CHECKED, r"line 15: TypeError: .* takes 2 positional arguments"),
        ("document, path: isinstance", "document: isinstance", CHECKED, r"line 14: TypeError: .* takes 1 positional"),
        (ROWS, "3", "list greetings", r"line 10: rows returned int; return a list of rows"),
        (ROWS, "[3]", "list greetings", r"line 10: rows: every row must be a dictionary that has a 'name'"),
        ("schedules=", 'describe=(f"{__name__}:rows",), schedules=', "describe ring", "line 10: TypeError: rows"),
    ],
)
def test_a_part_of_an_extension_that_is_wrong_is_named_in_one_line(
    old, new, words, message, tmp_path, monkeypatch, capfd
):
    assert old in EXTENSION
    (tmp_path / "greeting.py").write_text(EXTENSION.replace(old, new), encoding="utf-8")
    (tmp_path / "s.json").write_text('{"greeting": 4.0}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main([*words.split(), "--plugin", "greeting.py"]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert re.search(f"plug-in .*greeting.py, {message}", line), line


def test_a_report_has_the_sections_of_an_extension_outside_or_names_its_fault(tmp_path, capfd):
    store, path = ["--store", str(tmp_path / "store")], tmp_path / "greeting.py"
    assert main(["solve", "alltoall.master", "ring:4", *store]) == 0
    asked = ["report", *store, "--out", str(tmp_path / "out"), "--plugin", str(path)]
    for section, status in (("lambda store, findings: None", 0), ("lambda store: None", 2)):
        templates.cache_clear()  # as in a process of its own
        text = EXTENSION.replace("schedules=", 'sections=(f"{__name__}:section",), schedules=')
        path.write_text(f"section = {section}{text}", encoding="utf-8")
        assert main(asked) == status
    assert re.search(f"plug-in {path}, line 1: TypeError: .* takes 1 positional", capfd.readouterr().err)


def test_a_plug_in_finds_scipy_whole(tmp_path, monkeypatch):
    """The command solve lets SciPy import less, but not in a process that is a plug-in's, too."""
    shortened: list[bool] = []
    monkeypatch.setattr(worker_imports, "shorten_scipy", lambda: shortened.append(True))
    (tmp_path / "one.py").write_text("BOUNDS = {'alltoall.master': lambda topology: 0.0}\n")
    asked = ["solve", "alltoall.master", "ring:4", "--no-store"]
    assert main(asked) == 0
    assert shortened.pop()
    assert main([*asked, "--plugin", str(tmp_path / "one.py")]) == 0
    assert not shortened


def test_bounds_take_the_instance_and_the_data(tmp_path, capfd):
    text = """
import opticoll as oc
def one(topology):
    return topology.n
def two(topology, data):
    return oc.Bound("total", float(data.demand_matrix.sum()), "a reason", paper="mine")
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


def test_output_of_a_plug_in_while_it_is_loaded_is_not_in_the_result(tmp_path, monkeypatch, capfd):
    path = tmp_path / "loud.py"
    path.write_text(
        "import os, sys\nprint('one')\nos.write(1, b'two\\n')\nos.system('echo three')\n"
        "def mine(topology):\n    return 0.25\nBOUNDS = {'alltoall.master': mine}\n"
    )
    for options in (["--plugin", str(path)], []):
        assert main(["bounds", "ring:4", "--json", *options]) == 0
        out, err = capfd.readouterr()
        assert "mine" in {row["name"] for row in json.loads(out)}
        assert sorted(err.split()) == ["one", "three", "two"]
        for plugin in list(plugins._known.values()):
            plugins._forget(plugin)
        monkeypatch.setenv(plugins.VARIABLE, str(path))
        plugins._load_all.cache_clear()


def test_a_bound_cannot_take_the_name_of_another(tmp_path, capfd):
    path = tmp_path / "clash.py"
    for text, message in (
        ("def moore(topology):\n    return 1.0\nBOUNDS = {'alltoall.master': moore}", "'moore' .* used by opticoll"),
        ("def a(topology):\n    return 1.0\nBOUNDS = {'alltoall.master': [a, a]}", "'a' .* another bound of a plug-in"),
    ):
        path.write_text(text)
        assert main(["bounds", "ring:4", "--plugin", str(path)]) == 2
        (line,) = capfd.readouterr().err.strip().splitlines()
        assert re.search(f"{path}, line 1: the bound name {message}; choose another name", line), line


def test_a_bound_a_claim_and_a_cell_that_end_the_program_have_failed(tmp_path, capfd):
    bound, claim, model = (tmp_path / name for name in ("bound.py", "claim.py", "model.py"))
    bound.write_text("def mine(topology):\n    raise SystemExit\nBOUNDS = {'alltoall.master': mine}\n")
    assert main(["bounds", "ring:4", "--plugin", str(bound)]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert f"{bound}, line 2: SystemExit; a plug-in must not end the program" in line
    asked = ["--over", "ring:4", "--store", str(tmp_path / "store")]
    assert main(["sweep", "alltoall.master", "--bound", f"{bound}:mine", *asked]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert "fails on every case, first on ring:4: SystemExit (bound.py:2)" in line
    claim.write_text(
        "from opticoll.analysis.ledger.claim import Claim\ndef measure(laboratory):\n    raise SystemExit(3)\n"
        "CLAIM = Claim('own.a', 'own', 'here', 'one is one', 1.0, measure=measure)\n"
    )
    assert main(["claims", "own.a", "--no-store", "--json", "--plugin", str(claim)]) == 1
    (row,) = json.loads(capfd.readouterr().out)
    assert row["reason"] == f"plug-in {claim}, line 3: SystemExit: 3"
    write_example("formulation", "model", tmp_path)
    text = model.read_text()
    assert text.count("b = oc.Pyo(self)\n") == 1
    model.write_text(text.replace("b = oc.Pyo(self)\n", "raise SystemExit(0)\n"))
    file = tmp_path / "tiny.toml"
    file.write_text(
        "name = 'tiny'\nplugins = ['model.py']\nformulations = ['own.model']\ninstances = ['ring:{4,5}']\n"
        "methods = ['highs']\n"
    )
    assert main(["study", str(file), "--json", "--store", str(tmp_path / "store")]) == 3
    out = capfd.readouterr().out
    assert json.loads(out)["failed"] == 2
    assert out.count("SystemExit: 0; a plug-in must not end the program") == 2


OWN = """
import numpy as np, opticoll as oc
class M(oc.Formulation):
    name, sense = "own.m", "max"
    def cvxpy(self):
        import cvxpy as cp
        t = self.instance
        f, R = cp.Variable(t.arcs, name="f", nonneg=True), cp.Variable(name="R", nonneg=True)
        return cp.Problem(cp.Maximize(R), [t.incidence()[1:] @ f == R, f <= t.capacity])
    def residuals(self, v):
        return {"capacity": float((v["f"] - self.instance.capacity).max())}
    def objective(self, v):
        return float(v["R"])
    def bounds(self):
        return [oc.Bound("planted", 8.0, "a reason")]
FORMULATION = M
"""


def own(tmp_path: Path, old: str = "", new: str = "") -> list[str]:
    """The options of a plug-in with one line of the formulation changed; its optimum on ring:4 is 2/3."""
    assert old in OWN
    path = tmp_path / "mine.py"
    path.write_text(OWN.replace(old, new))
    return ["--plugin", str(path)]


@pytest.mark.parametrize("method", ["auto", "clarabel", "scip"])
def test_a_wrong_bound_is_reported_whatever_the_solver_proves(method, tmp_path, capfd):
    plugin = own(tmp_path, "8.0", "0.001")
    for shown in ([], ["--json"]):
        assert main(["solve", "own.m", "ring:4", "--method", method, "--no-store", *shown, *plugin]) == 3
        (line,) = capfd.readouterr().err.strip().splitlines()
        assert "value and bound contradict each other" in line
        assert "planted gives 0.001; nothing is proven" in line


def test_a_bound_within_the_checkers_tolerance_is_no_contradiction(tmp_path, capfd):
    plugin = own(tmp_path, "8.0", "2 / 3 * (1 - 1e-8)")
    assert main(["solve", "own.m", "ring:4", "--no-store", "--json", *plugin]) == 0
    assert json.loads(capfd.readouterr().out)["proof"] == "optimal"


@pytest.mark.parametrize("value", ["np.float64(2 / 3)", "np.float32(1)", "np.int64(1)"])
@pytest.mark.parametrize("hook", ["bounds(self)", "certify(self, duals)"])
def test_bounds_may_be_numbers_of_numpy(hook, value, tmp_path, capfd):
    bound = f"oc.Bound('least', {value}, 'a reason')"
    body = f"return {bound if hook.startswith('certify') else [bound]}".replace('"', "")
    old = 'def bounds(self):\n        return [oc.Bound("planted", 8.0, "a reason")]'
    plugin = own(tmp_path, old, f"def {hook}:\n        import numpy as np\n        {body}")
    saved = tmp_path / "s.json"
    words = ["solve", "own.m", "ring:4", "--no-store", "--solution", str(saved), "--json", *plugin]
    assert main(words) == 0, capfd.readouterr().err
    assert json.loads(saved.read_text())["bound"] == json.loads(capfd.readouterr().out)["bound"]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ("None", "bounds returned None; return a list of Bound objects"),
        ("[3.0]", "bounds returned [3.0]; return a list"),
        ("[oc.Bound('b', float('nan'), 'r')]", "bounds returned nan for 'b'; return a list"),
        ("[oc.Bound('b', 'x', 'r')]", "bounds returned x for 'b'; return a list"),
        ("[oc.Bound('b', 1j, 'r')]", "bounds returned 1j for 'b'; return a list"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)
def test_wrong_bounds_are_refused_and_nothing_is_stored(bounds, message, tmp_path, capfd):
    plugin = own(tmp_path, 'return [oc.Bound("planted", 8.0, "a reason")]', f"return {bounds}")
    kept = ["--store", str(tmp_path / "store")]
    for words in (
        ["solve", "own.m", "ring:4", *kept],
        ["solve", "own.m", "ring:4", "--json", *kept],
        ["bounds", "ring:4", "--formulation", "own.m"],
    ):
        assert main([*words, *plugin]) == 2
        shown = capfd.readouterr()
        (line,) = shown.err.strip().splitlines()
        assert message in line
        assert "mine.py, line " in line
        assert not shown.out
    assert not list(Store(tmp_path / "store").names())
    (tmp_path / "study.toml").write_text(
        'name = "s"\nplugins = ["mine.py"]\nformulations = ["own.m"]\ninstances = ["ring:4"]\nmethods = ["auto"]\n'
    )
    summary = run_study(load(tmp_path / "study.toml"), Store(tmp_path / "of-study"), InProcess())
    assert (summary.count("failed"), summary.count("done")) == (1, 0)


def test_infinite_and_rational_bounds_are_numbers(tmp_path, capfd):
    two = "8.0, 'r'), oc.Bound('none', np.inf, 'r'), oc.Bound('third', __import__('fractions').Fraction(2, 3)"
    plugin = own(tmp_path, "8.0", two)
    assert main(["solve", "own.m", "ring:4", "--no-store", *plugin]) == 0
    assert "inf" in capfd.readouterr().out


@pytest.mark.parametrize("worst", ["'fine'", "1j", "[1.0]", "np.array('x')", "[[1.0], [1.0, 2.0]]"])
def test_residuals_that_are_no_numbers_are_refused(worst, tmp_path, capfd):
    plugin = own(tmp_path, 'float((v["f"] - self.instance.capacity).max())', worst)
    assert main(["solve", "own.m", "ring:4", "--store", str(tmp_path / "store"), *plugin]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert "mine.py, line 10: formulation 'own.m': residuals returned {'capacity': " in line
    assert not list(Store(tmp_path / "store").names())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('float((v["f"] - self.instance.capacity).max())', "0.0, 'x': float('nan')", "residuals returned nan for 'x'"),
        ('float((v["f"] - self.instance.capacity).max())', "0.25", "not verified: capacity is violated by 0.25"),
        ("f <= t.capacity", "f <= t.capacity, R >= 9", "ended with infeasible: there is none: proven by multipl"),
        (
            "t.incidence()[1:] @ f == R, ",
            "",
            "the objective is unbounded: proven by a solution and a ray",
        ),
    ],
)
def test_the_reason_for_no_solution_is_named(old, new, message, tmp_path, capfd):
    assert main(["solve", "own.m", "ring:4", "--exact", "--no-store", *own(tmp_path, old, new)]) == 3
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert message in line


SOLVER = """
import numpy as np
from opticoll.solvers.adapters.interface import Adapter, Capabilities, set_solution
from opticoll.solvers.task import Outcome, Termination
class Mine(Adapter):
    name, title, package, distribution, algorithm, install = "mine", "t", "scipy", "scipy", "a", "pip install scipy"
    capabilities = Capabilities(lp=True, mip=False, duals=False)
    def solve(self, form, request, progress):
        outcome = Outcome(Termination.OPTIMAL, algorithm="a")
        set_solution(outcome, form, np.full(form.A.shape[1], np.nan))
        return outcome
ADAPTER = Mine()
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("", "", "the solver returned a solution with entries that are not finite"),
        ("return outcome", "return Outcome(Termination.ERROR, raw='no licence today')", "reports 'no licence today'"),
        ("return outcome", "return Outcome(Termination.OPTIMAL)", "mine returned no solution"),
    ],
)
def test_what_a_solver_reports_is_named(old, new, message, tmp_path, capfd):
    path = tmp_path / "mine.py"
    path.write_text(SOLVER.replace(old, new))
    asked = ["solve", "alltoall.master", "ring:3", "--method", "mine", "--no-store", "--plugin", str(path)]
    assert main(asked) == 3
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert message in line


LIES = """
import numpy as np
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination
def run(context):
    t = context.data.topology
    return Answer(Termination.OPTIMAL, {"g": np.zeros((t.arcs, t.n)), "F": np.array(9.0)})
METHOD = Method(name="lies", title="t", summary="s", serves=("alltoall.master",), run=run)
"""


def test_a_repair_is_shown(tmp_path, capfd):
    path = tmp_path / "lies.py"
    path.write_text(LIES)
    asked = ["solve", "alltoall.master", "ring:4", "--no-store", "--method"]
    assert main([*asked, "lies", "--plugin", str(path)]) == 0
    (line,) = [line.strip() for line in capfd.readouterr().out.splitlines() if line.startswith("repaired")]
    assert line == "repaired     from 9   (worst violation before the repair 1)"
    assert main([*asked, "lies", "--json", "--plugin", str(path)]) == 0
    assert json.loads(capfd.readouterr().out)["repaired"] == {"violation": 1.0, "claimed": 9.0}
    result = oc.solve("alltoall.master", "ring:4", method="lies", plugins=[path])
    assert result.summary()["repaired"].startswith("from 9 ")
    assert main([*asked, "highs"]) == 0
    assert "repaired" not in capfd.readouterr().out


def test_a_study_from_outside_runs_in_two_processes_and_resumes(folder, monkeypatch, capfd):
    place = folder / "elsewhere"
    place.mkdir()
    asked = ["study", "../study.toml", "--store", "store", "--json"]
    done = outside(place, "-m", "opticoll", *asked, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["cells"], result["done"]) == (5, 5), result
    monkeypatch.chdir(place)
    assert main(asked) == 0
    again = json.loads(capfd.readouterr().out)
    assert (again["done"], again["skipped"]) == (0, 5)
    path = folder / "scipy_highs.py"
    path.write_text(path.read_text() + "# changed\n")
    assert main(asked) == 0
    changed = json.loads(capfd.readouterr().out)
    assert (changed["done"], changed["skipped"]) == (2, 3), changed


@pytest.mark.parametrize(
    "command", ["list", "bounds", "check", "export", "study", "claims", "results", "report", "benchmark run"]
)
def test_every_command_loads_plug_ins_first(command, tmp_path, capfd):
    assert main([*command.split(), "--plugin", str(tmp_path / "none.py")]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert "none.py cannot be read" in line


TWO_RINGS = """
name = "tiny"
formulations = ["alltoall.master"]
instances = ["ring:{{4,6}}"]
methods = {methods}
plugins = ["mine.py"]
"""


@pytest.mark.parametrize(
    ("methods", "status", "says"),
    [
        (["highs-simplex", "mine"], 1, "study tiny: 2 of 4 cells have no answer (2 failed)"),
        (["mine"], 3, "study tiny: 2 of 2 cells have no answer (2 failed)"),
        (["mosek"], 4, "study tiny: 2 of 2 cells have no answer (2 without a usable solver)"),
        (["highs-simplex", "mosek"], 0, "study tiny: 2 of 4 cells have no answer (2 without a usable solver)"),
    ],
)
def test_a_study_says_how_many_cells_have_no_answer(capfd, tmp_path, methods, status, says):
    if "mosek" in methods and probe("mosek").usable:
        pytest.skip("has the solver that must be missing")
    (tmp_path / "mine.py").write_text(SOLVER.replace("return outcome", "return Outcome(Termination.ERROR)"))
    file = tmp_path / "tiny.toml"
    file.write_text(TWO_RINGS.format(methods=json.dumps(methods)))
    assert main(["study", str(file), "--json"]) == status
    out, err = capfd.readouterr()
    assert says in err
    document = json.loads(out)
    assert document["failed"] == (2 if "mine" in methods else 0)
    assert document["done"] == (2 if "highs-simplex" in methods else 0)
    if "highs-simplex" in methods:
        assert main(["compare", str(file)]) == 0
        assert ("mosek: 2 runs had no usable solver" in capfd.readouterr().err) == ("mosek" in methods)


@pytest.mark.parametrize("place", ["file", "class"])
def test_the_mathematics_of_a_formulation_from_outside_is_that_of_its_class_or_file(place, tmp_path, capfd):
    text = """'''Largest capacity.\n\nmax R  s.t.  cap  R <= c_0'''
import opticoll as oc
class Model(oc.Formulation):
    name, sense = "own.largest", "max"
    def cvxpy(self):
        import cvxpy as cp
        R = cp.Variable(name="R")
        return cp.Problem(cp.Maximize(R), [R <= self.instance.capacity[0]])
    def residuals(self, values):
        return {"cap": float(values["R"] - self.instance.capacity[0])}
    def objective(self, values):
        return float(values["R"])
FORMULATION = Model
"""
    if place == "class":
        stated, _, rest = text.partition("import")
        text = "'Models.'\nimport" + rest.replace("\n    name,", f"\n    {stated}\n    name,")
    (tmp_path / "largest.py").write_text(text)
    assert main(["describe", "own.largest", "--json", "--plugin", str(tmp_path / "largest.py")]) == 0
    (described,) = json.loads(capfd.readouterr().out)
    assert described["text"] == "Largest capacity.\n\nmax R  s.t.  cap  R <= c_0"
    for instance, variables in (("ring:4", 1), ("ring:64", None)):  # without an estimate, small ones are built
        command = ["describe", "own.largest", "--instance", instance, "--json", "--plugin"]
        assert main([*command, str(tmp_path / "largest.py")]) == 0
        (described,) = json.loads(capfd.readouterr().out)
        assert described["sizes"]["variables"] == variables


def test_a_plug_in_that_sleeps_in_its_build_is_ended(tmp_path, capfd):
    plugin = own(tmp_path, "t = self.instance", "t = self.instance; import time; time.sleep(600)")
    assert main(["solve", "own.m", "ring:4", "--no-store", "--time-limit", "1", *plugin]) == 3
    assert "the time limit was reached while the model was built" in capfd.readouterr().err


def test_a_plug_in_whose_check_does_not_return_is_a_failed_row(tmp_path, monkeypatch, capfd):
    plugin = own(tmp_path, "return {", "import time; time.sleep(60)\n        return {")
    over = lambda step, *given, **named: limited(step, time.monotonic(), least_s=0.4)  # noqa: E731
    monkeypatch.setattr(course, "limited", over)  # as if the limit were over after the solve, on any machine
    asked = ["own.m", "ring:4", "--time-limit", "3600", "--store", str(tmp_path / "store")]
    assert main(["solve", *asked, *plugin]) == 3
    message = "formulation 'own.m': residuals, objective or repair did not return within 3600 s of work"
    assert message in capfd.readouterr().err.splitlines()[-1]
    store = Store(tmp_path / "store")
    (record,) = map(store.read, store.names())
    assert (record["termination"], record["verified"]) == ("time-limit", False)
    assert message in record["message"]


def test_a_wrong_bound_is_refused_also_where_every_formulation_is_asked(tmp_path, capfd):
    """All bounds of its formulation were left out instead, without a word."""
    path = tmp_path / "mine.py"
    path.write_text('def wrong(instance):\n    return "many"\n\n\nBOUNDS = {"topoopt.topology": wrong}\n')
    assert main(["bounds", "servers:n=5,degree=2,traffic=dlrm", "--plugin", str(path)]) == 2
    assert "bound 'wrong' of topoopt.topology: returned 'many'" in capfd.readouterr().err
