"""Resume keys follow every module that a plug-in loads from outside installed packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from textwrap import dedent
from types import SimpleNamespace

import pytest
from slow_cases import marked

import opticoll as oc
from opticoll import plugins
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput
from opticoll.outside_modules import imported_in, modules_of
from opticoll.solvers.resume_key import resume_key

#: A model whose optimum is the expression ``{limit}``.
MODEL = """
{header}
import opticoll as oc

def build(topology):
    import cvxpy as cp
    {lazy}
    x = cp.Variable(topology.arcs, name="x", bounds=[0, 1])
    return cp.Problem(cp.Maximize(cp.sum(x)), [cp.sum(x) <= {limit}])

def residuals(topology, values):
    {lazy}
    return {{"sum": max(0.0, float(values["x"].sum()) - {limit})}}

class FORMULATION(oc.Formulation):
    name, sense = "own.model", "max"
    def cvxpy(self): return build(self.instance)
    def residuals(self, values): return residuals(self.instance, values)
    def objective(self, values): return float(values["x"].sum())
"""
TASK = oc.Task("own.model", "ring:4")


def model(header: str = "", lazy: str = "pass", limit: str = "helper.LIMIT") -> str:
    return MODEL.format(header=header, lazy=lazy, limit=limit)


@pytest.fixture(autouse=True)
def nothing_stays(monkeypatch: pytest.MonkeyPatch, forgotten_plugins: None) -> Iterator[None]:
    """Modules of a test are gone after it, before its plug-ins; those changed within a second leave no bytecode."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    yield
    unload()


def unload() -> None:
    for name, module in list(sys.modules.items()):
        if "pytest-of-" in str(getattr(module, "__path__", getattr(module, "__file__", ""))):
            del sys.modules[name]


def start_again() -> None:
    """What has been loaded is gone, as in a new process."""
    for plugin in list(plugins._known.values()):
        plugins._forget(plugin)
    unload()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the import path."""
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


#: Where a plug-in takes its number from: the files, and the one that holds the number. ``plugin`` is what is loaded.
LAYOUTS: dict[str, tuple[dict[str, str], str, str]] = {
    "import": ({"mine.py": model("import helper"), "path/helper.py": "LIMIT = {}"}, "path/helper.py", "mine.py"),
    "from import": (
        {"mine.py": model("from helper import LIMIT", limit="LIMIT"), "path/helper.py": "LIMIT = {}"},
        "path/helper.py",
        "mine.py",
    ),
    "import in a hook": (
        {"mine.py": model(lazy="import helper"), "path/helper.py": "LIMIT = {}"},
        "path/helper.py",
        "mine.py",
    ),
    "import of an import": (
        {"mine.py": model("import helper"), "path/helper.py": "from other import LIMIT", "path/other.py": "LIMIT = {}"},
        "path/other.py",
        "mine.py",
    ),
    "path set by the plug-in": (
        {
            "lib/helper.py": "LIMIT = {}",
            "mine.py": model(
                "import sys\nfrom pathlib import Path\n"
                "sys.path.insert(0, str(Path(__file__).parent / 'lib'))\nimport helper"
            ),
        },
        "lib/helper.py",
        "mine.py",
    ),
    "package": (
        {
            "mine.py": model("from pack.inner import numbers as helper"),
            "path/pack/__init__.py": "",
            "path/pack/inner/__init__.py": "",
            "path/pack/inner/numbers.py": "LIMIT = {}",
        },
        "path/pack/inner/numbers.py",
        "mine.py",
    ),
    "namespace package": (
        {"mine.py": model("import space.deep.helper as helper"), "path/space/deep/helper.py": "LIMIT = {}"},
        "path/space/deep/helper.py",
        "mine.py",
    ),
    "submodule of a plug-in package": (
        {
            "path/pack/__init__.py": model("from . import helper"),
            "path/pack/helper.py": "from .numbers import LIMIT",
            "path/pack/numbers.py": "LIMIT = {}",
        },
        "path/pack/numbers.py",
        "pack",
    ),
    "submodule in a hook": (
        {
            "path/pack/__init__.py": "",
            "path/pack/plugin.py": model(lazy="from . import helper"),
            "path/pack/helper.py": "LIMIT = {}",
        },
        "path/pack/helper.py",
        "pack.plugin",
    ),
    "init of a plug-in package": (
        {"path/pack/__init__.py": "LIMIT = {}", "path/pack/plugin.py": model("from pack import LIMIT", limit="LIMIT")},
        "path/pack/__init__.py",
        "pack.plugin",
    ),
    "submodules found by a loop": (
        {
            "path/pack/__init__.py": model(
                "import pkgutil\nfrom importlib import import_module\n"
                "parts = [import_module(f'{__name__}.{m.name}') for m in pkgutil.iter_modules(__path__)]",
                limit="parts[0].LIMIT",
            ),
            "path/pack/helper.py": "LIMIT = {}",
        },
        "path/pack/helper.py",
        "pack",
    ),
    "function of a helper": (
        {
            "mine.py": "from helper import *",
            "path/helper.py": model(lazy="from other import LIMIT", limit="LIMIT"),
            "path/other.py": "LIMIT = {}",
        },
        "path/other.py",
        "mine.py",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_changed_module_changes_the_key(layout: str, tmp_path: Path, path: Path) -> None:
    files, changing, plugin = LAYOUTS[layout]
    place = str(tmp_path / plugin) if plugin.endswith(".py") else plugin
    keys = []
    for value in (2, 3, 2):
        for name, text in files.items():
            write(tmp_path / name, text.replace("LIMIT = {}", f"LIMIT = {value}"))
        start_again()
        oc.load_plugin(place)
        keys.append(resume_key(TASK))
    assert keys[0] == keys[2] != keys[1]
    (tmp_path / changing).write_text(f"LIMIT = {3}  # the file that the layout says")
    start_again()
    oc.load_plugin(place)
    assert resume_key(TASK) not in keys


def test_the_record_lists_the_modules_as_they_were_loaded(tmp_path: Path, path: Path) -> None:
    file = write(path / "helper.py", "import json, numpy, cvxpy\nLIMIT = 2")
    own = write(tmp_path / "mine.py", model("import helper"))
    first = oc.load_plugin(own)
    key = resume_key(TASK)
    write(file, "LIMIT = 3")
    assert oc.load_plugin(own) is first
    run = oc.solve(TASK)
    assert (run.objective, run.record.key) == (pytest.approx(2), key)
    assert list(run.record.plugins or ()) == ["helper", "mine.py"]
    start_again()
    oc.load_plugin(own)
    run = oc.solve(TASK)
    assert run.objective == pytest.approx(3)
    assert run.record.key != key


def test_modules_of_one_name_in_two_folders_both_count(tmp_path: Path) -> None:
    header = "import sys\nfrom pathlib import Path\nsys.modules.pop('helper', None)\n"
    header += "sys.path.insert(0, str(Path(__file__).parent))\nimport helper\nLIMIT = helper.LIMIT"
    for folder, name in (("a", "own.model"), ("b", "own.other")):
        write(tmp_path / folder / "helper.py", f"LIMIT = {2 if folder == 'a' else 3}")
        text = model(header, limit="LIMIT").replace("own.model", name)
        oc.load_plugin(write(tmp_path / folder / f"{folder}.py", text))
    runs = [oc.solve(oc.Task(name, "ring:4")) for name in ("own.model", "own.other")]
    assert [run.objective for run in runs] == pytest.approx([2, 3])
    assert runs[0].record.plugins["helper"] != runs[1].record.plugins["helper"]
    assert len(plugins.digests()) == 4
    assert {"helper", "helper#2"} <= plugins.digests().keys()


def test_plug_in_files_of_one_name_both_count(tmp_path: Path) -> None:
    family = 'import opticoll as oc\n@oc.family("loop", example="loop:3", source="own")\n'
    family += (
        'def loop(n: int) -> oc.Topology:\n    "A loop."\n    return oc.Topology(n, range(n), [*range(1, n), 0])\n'
    )
    oc.load_plugin(write(tmp_path / "a" / "mine.py", family))
    oc.load_plugin(write(tmp_path / "b" / "mine.py", model(limit="2")))
    task = oc.Task("own.model", "loop:4")
    key = resume_key(task)
    for folder in ("a", "b"):
        file = tmp_path / folder / "mine.py"
        oc.load_plugin(write(file, file.read_text() + "# changed\n"))
        assert resume_key(task) != key
        key = resume_key(task)


def test_installed_packages_do_not_count_unless_they_are_the_plug_in(tmp_path: Path, monkeypatch) -> None:
    site = tmp_path / "lib" / "site-packages"
    write(site / "library" / "__init__.py", "LIMIT = 2")
    write(site / "pack" / "__init__.py", "")
    write(site / "pack" / "plugin.py", model("import library\nfrom pack import numbers", limit="numbers.LIMIT"))
    write(site / "pack" / "numbers.py", "LIMIT = 2")
    monkeypatch.syspath_prepend(str(site))
    assert modules_of(["library", "json", "opticoll.solvers.solve", "numpy.linalg"]) == {}
    oc.load_plugin("pack.plugin")
    assert plugins.digests().keys() == {"pack", "pack.plugin", "pack.numbers"}


def test_an_editable_install_counts(tmp_path: Path, monkeypatch) -> None:
    """Editable installs are found by a finder of their own, not on the import path."""
    write(tmp_path / "project" / "pack" / "__init__.py", "")
    write(tmp_path / "project" / "pack" / "part.py", "LIMIT = 2")

    class Finder:
        @staticmethod
        def find_spec(name: str, places: object = None, target: object = None) -> object:
            return PathFinder.find_spec(name, [str(tmp_path / "project")]) if name == "pack" else None

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder])
    oc.load_plugin(write(tmp_path / "mine.py", model("import pack.part", limit="pack.part.LIMIT")))
    assert plugins.digests().keys() == {"mine.py", "pack", "pack.part"}


def test_nothing_is_run_to_find_the_modules(path: Path) -> None:
    write(path / "loud.py", "import quiet\nraise RuntimeError('imported')")
    write(path / "quiet.py", "")
    write(path / "wrong.py", "import (")
    code = compile("def f():\n    import loud, wrong, absent, loud.inner", "", "exec")
    assert modules_of(imported_in(code)).keys() == {"loud", "quiet", "wrong"}
    assert "loud" not in sys.modules


KEY = """
import json, sys
import opticoll as oc
from opticoll.solvers.resume_key import resume_key
oc.load_plugin(sys.argv[1])
print(json.dumps([resume_key(oc.Task("own.model", "ring:4")), "helper" in sys.modules]))
"""


def test_the_key_is_the_same_in_every_process_and_place(tmp_path: Path) -> None:
    keys = set()
    for folder, seed in (("one", "1"), ("two", "2")):
        here = tmp_path / folder
        write(here / "lib" / "helper.py", "import other\nLIMIT = 2")
        write(here / "lib" / "other.py", "")
        text = model(lazy="import helper")
        file = write(here / "mine.py", text)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(here / "lib"), *sys.path]),
            "PYTHONHASHSEED": seed,
        }
        done = subprocess.run(
            [sys.executable, "-c", KEY, file], env=environment, capture_output=True, text=True, check=True
        )
        key, loaded = json.loads(done.stdout)
        assert not loaded
        keys.add(key)
    assert len(keys) == 1


STUDY = """
name = "mine"
plugins = ["mine.py"]
formulations = ["own.model"]
instances = ["ring:4"]
methods = ["{method}"]
"""


def studied(folder: Path, capfd: pytest.CaptureFixture[str], *options: str) -> SimpleNamespace:
    """What a study of the plug-in in a folder did, and the value that it ends with."""
    assert main(["study", str(folder / "mine.toml"), "--store", str(folder / "store"), "--json", *options]) == 0
    said = json.loads(capfd.readouterr().out)
    (row,) = oc.study(folder / "mine.toml", store=folder / "store", columns="all").to_dict("records")
    return SimpleNamespace(done=said["done"], skipped=said["skipped"], value=row["objective"], row=row)


Write = Callable[[int], None]


@pytest.mark.parametrize(
    ("method", "options"), [("highs-simplex", []), ("auto", ["--jobs", "1"])], ids=["here", "in a process"]
)
def test_a_study_never_serves_the_value_of_an_earlier_module(method, options, tmp_path, path, capfd):
    write(tmp_path / "mine.toml", STUDY.format(method=method))
    write(tmp_path / "mine.py", model(lazy="import helper"))
    for value in (2, 3):
        write(path / "helper.py", f"LIMIT = {value}")
        start_again()
        first = studied(tmp_path, capfd, *options)
        assert (first.done, first.value) == (1, pytest.approx(value))
        again = studied(tmp_path, capfd, *options)
        assert (again.skipped, again.value) == (1, pytest.approx(value))


SOLVER = """
import scipy.optimize
from opticoll.solvers.adapters.interface import Adapter, Capabilities
from opticoll.solvers.task import Outcome, Termination

class Mine(Adapter):
    name = title = "mine"
    package = distribution = "scipy"
    algorithm = "none"
    capabilities = Capabilities()

    def solve(self, form, request, progress):
        import importlib
        return Outcome(Termination.TIME_LIMIT, message=importlib.import_module("help" + "er").TEXT)

ADAPTER = Mine()
"""


def test_a_worker_refuses_a_module_that_has_changed_since(tmp_path: Path, path: Path) -> None:
    file = write(path / "helper.py", "TEXT = 'first'")
    oc.load_plugin(write(tmp_path / "mine.py", "import helper" + SOLVER))
    write(file, "TEXT = 'second'")
    with pytest.raises(
        BadInput, match=r"mine\.py: the module 'helper' differs on .* or has changed .*; start a new process"
    ):
        oc.solve(oc.Task("alltoall.master", "ring:4", "mine"))


SCRIPT = """
import opticoll as oc
from opticoll.solvers.resume_key import resume_key
import helper

def build(topology):
    import cvxpy as cp
    {lazy}
    x = cp.Variable(topology.arcs, name="x", bounds=[0, 1])
    return cp.Problem(cp.Maximize(cp.sum(x)), [cp.sum(x) <= {limit}])

class FORMULATION(oc.Formulation):
    name, sense = "own.model", "max"
    def cvxpy(self): return build(self.instance)
    def residuals(self, values): return {{"sum": 0.0}}
    def objective(self, values): return float(values["x"].sum())
print(resume_key(oc.Task(FORMULATION, "ring:4")))
"""


@pytest.mark.parametrize(
    ("lazy", "limit"),
    [
        ("pass", "helper.number()"),
        marked("import lazy", "2", slow=True),
        marked("pass", "helper.LIMIT", slow=True),
        marked("from lazy import LIMIT", "LIMIT", slow=True),
    ],
)
def test_a_formulation_of_a_script_follows_its_modules(lazy: str, limit: str, tmp_path: Path) -> None:
    script = write(tmp_path / "script.py", SCRIPT.format(lazy=lazy, limit=limit))
    write(tmp_path / "helper.py", "from other import LIMIT\ndef number(): return LIMIT")
    write(tmp_path / "lazy.py", "from other import LIMIT")
    keys = set()
    for value in (2, 3):
        write(tmp_path / "other.py", f"LIMIT = {value}")
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
        keys.add(done.stdout)
    assert len(keys) == 2


def test_a_claim_is_measured_again_when_a_module_of_its_plug_in_changes(tmp_path, path, capfd):
    claim = """
        from opticoll.analysis.ledger.claim import Claim, Measurement, Verdict
        import helper

        def measure(laboratory):
            return Measurement(helper.ONE, Verdict.REPRODUCED)

        CLAIM = Claim("own.a", "own", "here", "one is one", 1.0, measure=measure)
    """
    file = write(tmp_path / "mine.py", dedent(claim))
    asked = ["claims", "own.a", "--plugin", str(file), "--store", str(tmp_path / "store"), "--resume", "--json"]
    for value in (1.0, 1.0, 2.0):
        write(path / "helper.py", f"ONE = {value}")
        start_again()
        main(asked)
        (row,) = json.loads(capfd.readouterr().out)
        assert row["measured"] == value
    assert len(list((tmp_path / "store" / "claims").iterdir())) == 2
