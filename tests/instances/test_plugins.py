"""Plug-ins: what they contribute is found, a changed file replaces its earlier version, and errors are one line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import opticoll as oc
from opticoll import plugins
from opticoll.analysis.cli.main import main
from opticoll.errors import BadInput
from opticoll.formulations import formulation, formulations
from opticoll.instances.spec import FAMILIES, parse
from opticoll.instances.symmetry import automorphisms
from opticoll.solvers.adapters import adapters
from opticoll.solvers.methods import methods
from opticoll.solvers.resume_key import resume_key

FAMILY = """
import numpy as np
import opticoll as oc

@oc.family("{name}", example="{name}:3", source="own")
def cycle(n: int, back: bool = False) -> oc.Topology:
    "A directed cycle."
    i = np.arange(n)
    return oc.Topology(n, i, (i + {step}) % n)
"""
MODEL = """
import opticoll as oc

class Model(oc.Formulation):
    name, sense = "own.model", "max"

    def cvxpy(self):
        import cvxpy as cp
        x = cp.Variable(self.instance.arcs, name="x", bounds=[0, 1])
        return cp.Problem(cp.Maximize(cp.sum(x)), [cp.sum(x) <= 2])

    def residuals(self, values):
        return {"sum": max(0.0, float(values["x"].sum()) - 2)}

    def objective(self, values):
        return float(values["x"].sum())

FORMULATION = Model
"""
#: The same in Pyomo, which takes less time to import.
PYOMO_MODEL = (
    MODEL[: MODEL.index("    def cvxpy")]
    + """    def pyomo(self):
        import pyomo.environ as pyo
        model = pyo.ConcreteModel()
        model.x = pyo.Var(range(self.instance.arcs), bounds=(0, 1))
        model.total = pyo.Constraint(expr=sum(model.x.values()) <= 2)
        model.value = pyo.Objective(expr=sum(model.x.values()), sense=pyo.maximize)
        return model

"""
    + MODEL[MODEL.index("    def residuals") :]
)
#: One more method of the model, to put before its checker.
CHECKER = "    def residuals"


pytestmark = pytest.mark.usefixtures("forgotten_plugins")


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(dedent(text), encoding="utf-8")
    return path


def test_a_family_without_future_annotations_has_typed_arguments(tmp_path):
    oc.load_plugin(write(tmp_path, "mine.py", FAMILY.format(name="cycle", step=1)))
    topology = parse("cycle:4,back")
    assert topology.spec == "cycle:4,back"
    assert topology.n == 4
    with pytest.raises(BadInput, match="whole number"):
        parse("cycle:four")


def test_a_changed_file_replaces_its_earlier_version(tmp_path):
    path = write(tmp_path, "mine.py", FAMILY.format(name="cycle", step=1))
    first = oc.load_plugin(path)
    assert oc.load_plugin(path) is first
    one = parse("cycle:5").hash
    write(tmp_path, "mine.py", FAMILY.format(name="cycle", step=2))
    assert oc.load_plugin(path) is not first
    assert parse("cycle:5").hash != one
    write(tmp_path, "mine.py", FAMILY.format(name="loop", step=2))
    oc.load_plugin(path)
    assert "cycle" not in FAMILIES
    assert parse("loop:5").n == 5


def test_a_file_that_fails_leaves_nothing_behind(tmp_path):
    text = FAMILY.format(name="cycle", step=1) + MODEL + "raise RuntimeError('late')\n"
    with pytest.raises(BadInput, match=r"mine\.py, line \d+: RuntimeError: late"):
        oc.load_plugin(write(tmp_path, "mine.py", text))
    assert "cycle" not in FAMILIES
    assert "own.model" not in formulations()


def test_the_smallest_formulation_is_solved_checked_and_exported(tmp_path):
    oc.load_plugin(write(tmp_path, "mine.py", MODEL))
    run = oc.solve(oc.Task("own.model", "ring:4"))
    assert (run.objective, str(run.proof)) == (pytest.approx(2.0), "optimal")
    assert list(run.record.plugins) == ["mine.py"]
    file = tmp_path / "solution.json"
    asked = ["own.model", "ring:4", "--plugin", str(tmp_path / "mine.py")]
    assert main(["solve", *asked, "--no-store", "--solution", str(file)]) == 0
    assert main(["check", *asked[:2], str(file), *asked[2:]]) == 0
    text = file.read_text().replace('"shape": [8]', '"shape": [9]')
    file.write_text(text)
    assert main(["check", *asked[:2], str(file), *asked[2:]]) == 2
    assert main(["export", *asked, "--to", str(tmp_path / "model.mps")]) == 0


def test_a_row_that_is_added_to_what_a_class_builds_is_known_by_its_name(tmp_path):
    half = oc.load_plugin(
        write(
            tmp_path,
            "half.py",
            """
import pyomo.environ as pyo
from opticoll.formulations import formulation
class Half(formulation("alltoall.master")):
    name = "own.half"
    constraints = {**formulation("alltoall.master").constraints, "half": ("arc",)}
    def pyomo(self):
        built = super().pyomo()
        m, arcs = built.model, dict.fromkeys(a for a, _ in built.model.g)
        m.half = pyo.Constraint(list(arcs), rule=lambda _, a: sum(m.g[k] for k in m.g if k[0] == a) <= 0.5)
        return built
    def residuals(self, values):
        return {**super().residuals(values), "half": (values["g"].sum(axis=1) - 0.5).max()}
FORMULATION = Half
""",
        )
    ).FORMULATION
    result = oc.solve(half, "ring:4")
    assert (result.proof, round(result.objective, 9), result.record.message) == ("optimal", 0.25, "")
    assert result.duals["half"].shape == (8,)


def test_the_digest_of_a_plug_in_is_in_the_resume_key_of_its_runs_only(tmp_path):
    path = write(tmp_path, "mine.py", MODEL)
    ours = resume_key(oc.Task("alltoall.master", "ring:4", "highs-simplex"))
    oc.load_plugin(path)
    first = resume_key(oc.Task("own.model", "ring:4"))
    write(tmp_path, "mine.py", MODEL + "# changed\n")
    oc.load_plugin(path)
    assert resume_key(oc.Task("own.model", "ring:4")) != first
    assert resume_key(oc.Task("alltoall.master", "ring:4", "highs-simplex")) == ours


def test_environment_names_plug_ins(tmp_path, monkeypatch):
    write(tmp_path, "mine.py", FAMILY.format(name="cycle", step=1))
    monkeypatch.setenv(plugins.VARIABLE, str(tmp_path / "mine.py"))
    code = "import opticoll as oc; print(oc.topology('cycle:4').n)"  # in a process that has looked up nothing
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "4\n"


def test_entry_points_and_modules_are_loaded_by_name(tmp_path, monkeypatch):
    write(tmp_path, "installed_cycles.py", FAMILY.format(name="cycle", step=1))
    info = tmp_path / "own_cycles-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-cycles\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[opticoll.plugins]\ncycles = installed_cycles\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins._entry_points.cache_clear()
    try:
        assert parse("cycle:4").n == 4
        assert "installed_cycles" in plugins.digests()
    finally:
        plugins._entry_points.cache_clear()


BAD = {
    "syntax": ("x = (", "line 1: SyntaxError"),
    "raises": ("raise ValueError('no\\nway')", "line 1: ValueError: no way; correct the file"),
    "exits": ("import sys; sys.exit(3)", "SystemExit"),
    "nothing": ("x = 1", "defines nothing for opticoll; define one of FORMULATION"),
    "missing package": ("import no_such_package", "install the package"),
    "type": ("FORMULATION = 3", "FORMULATION is an object of int; it must be a subclass of Formulation"),
    "class": (
        "from opticoll.solvers.adapters.clarabel import Clarabel\nADAPTER = Clarabel",
        r"write ADAPTER = Clarabel\(\)",
    ),
    "solver name": (
        "from opticoll.solvers.adapters.clarabel import Clarabel\nADAPTERS = [Clarabel()]",
        "'clarabel' is already used by opticoll",
    ),
    "method name": (
        "from opticoll.solvers.methods.method import Method\n"
        "METHOD = Method(name='highs', title='', summary='', serves=(), run=len)",
        "'highs' is already used by opticoll",
    ),
    "formulation name": (MODEL.replace("own.model", "alltoall.master"), "already used by opticoll"),
    "family name": (FAMILY.format(name="ring", step=1), "already used in .*rings_and_grids.py"),
    "no annotation": (FAMILY.format(name="cycle", step=1).replace("n: int", "n"), "argument 'n' must be annotated"),
    "formulation of a class": (
        "import opticoll as oc\nFORMULATION = oc.Formulation",
        "must be a subclass of Formulation",
    ),
    "formulation of an object": (f"{MODEL}\nFORMULATION = Model(oc.parse('ring:4'))", "write FORMULATION = Model$"),
    "no name": (
        MODEL.replace("name, sense = ", "_, sense = "),
        "the class Model does not set name; see opticoll.formulations.model.Formulation",
    ),
    "bad name": (MODEL.replace("own.model", "own/model"), "line 4: class Model: name must consist of letters"),
    "missing method": (
        MODEL.replace("residuals", "residual"),
        r"line 4: formulation 'own.model': define the method residuals\(self, values\) of the class Model",
    ),
    "misspelt hook": (
        MODEL.replace(CHECKER, f"    def certifiy(self, duals):\n        return None\n{CHECKER}"),
        "line 4: .*: nothing calls certifiy; did you mean 'certify'",
    ),
    "no build": (MODEL.replace("cvxpy(", "cvxpi("), r"line 4: .*: state the model in a method cvxpy\(self\) or pyomo"),
    "no method": (MODEL.replace(CHECKER, f"    bounds = 3\n{CHECKER}"), "line 4: .*: bounds must be a method, not 3"),
    "other arguments": (
        MODEL.replace("objective(self, values)", "objective(self, topology, values)"),
        r"line 4: .*: objective must take \(self, values\), not \(self, topology, values\)",
    ),
    "no class method": (
        MODEL.replace(CHECKER, f"    def prepare(cls, instance, parameters): ...\n{CHECKER}"),
        "line 4: .*: prepare must be a class method; write @classmethod above it",
    ),
    "parameter without a default": (
        MODEL.replace(CHECKER, f"    def __init__(self, instance, *, k): ...\n{CHECKER}"),
        "line 4: .*: parameter 'k' of __init__ needs a default",
    ),
    "parameter of no kind": (
        MODEL.replace(CHECKER, f"    def __init__(self, instance, *, k=None): ...\n{CHECKER}"),
        "line 4: .*: parameter 'k' of __init__ must be annotated as one of int, float, bool, str",
    ),
    "parameter that is not taken": (
        MODEL.replace(
            CHECKER,
            f"    parameters = (oc.Parameter('k', int, 2, 'k'),)\n    def __init__(self, instance): ...\n{CHECKER}",
        ),
        r"line 4: .*: __init__ must take the parameters k, not \(self, instance\)",
    ),
    "parameter that hides a method": (
        MODEL.replace(CHECKER, f"    parameters = (oc.Parameter('bounds', int, 2, 'k'),)\n{CHECKER}"),
        "line 4: .*: the parameter 'bounds' has the name of an attribute",
    ),
    "wrong sense": (MODEL.replace('"max"', '"most"'), "sense must be 'min' or 'max'"),
    "solver without a title": (
        "from opticoll.solvers.adapters.interface import Adapter, Capabilities\n"
        "class Mine(Adapter):\n    name = 'mine'\n    def solve(self, form, request, progress): pass\n"
        "ADAPTER = Mine()",
        "the class Mine does not set title, package",
    ),
    "method without a function": (
        "from opticoll.solvers.methods.method import Method\n"
        "METHOD = Method(name='mine', title='', summary='', serves=())",
        "one of run and reformulate",
    ),
    "method for a string": (
        "from opticoll.solvers.methods.method import Method\n"
        "METHOD = Method(name='mine', title='', summary='', serves='alltoall.master', run=len)",
        "serves must be a tuple of names of formulations",
    ),
    "method beyond a number": (
        "from opticoll.solvers.methods.method import Method\n"
        "METHOD = Method(name='mine', title='', summary='', serves=(), takes_over=(1000,), run=len)",
        "takes_over must be a tuple of Beyond",
    ),
    "automorphisms of some arguments": (
        FAMILY.format(name="cycle", step=1).replace('"own"', '"own", automorphisms=lambda n: []'),
        r"line 5: family 'cycle': automorphisms must be a function of all arguments .*: n, back \(",
    ),
    "closed form no function": (
        FAMILY.format(name="cycle", step=1).replace('"own"', '"own", closed_form=3'),
        "family 'cycle': closed_form must be a function of all arguments",
    ),
    "module of ours": ("\nfrom opticoll.solvers.plann import x", "line 2: .*plann'; install .* or correct its name"),
    "package of ours": ("import opticoll.solver", "No module named 'opticoll.solver'; install the package, or correct"),
    "inside a module": ("import opticoll.errors.x", "is not a package; install .* or correct its name"),
    "parameter kind": (
        "import opticoll as oc\nk = oc.Parameter('k', 'int', 1, 'number')",
        "line 2: parameter 'k': kind must be a type such as int, .*, not 'int'",
    ),
    "parameter name": (
        "import opticoll as oc\noc.Parameter('a=b', int, 1, 'number')",
        "line 2: parameter 'a=b': the name",
    ),
    "parameter help": (
        "import opticoll as oc\noc.Parameter('k', int, 1, '')",
        "line 2: parameter 'k': help must be a string",
    ),
    "parameter choices": ("import opticoll as oc\noc.Parameter('k', str, 'a', 'k', 'ab')", "choices must be a tuple"),
    "parameter default": (
        "import opticoll as oc\noc.Parameter('k', int, 'many', 'k')",
        "the default: .*a whole number",
    ),
    "bounds of three arguments": (
        "def mine(topology, data, more): pass\nBOUNDS = {'alltoall.master': mine}",
        r"line 1: BOUNDS\['alltoall.master'\]: mine must take the instance, or the instance and the data",
    ),
    "bounds without arguments": ("BOUNDS = {'alltoall.master': lambda: 1}", "line 1: .*must take the instance"),
    "claim without reason": (
        "from opticoll.analysis.ledger.claim import Claim\nCLAIM = Claim('own.a', 'own', 'here', 'one is one', 1.0)",
        "line 2: claim 'own.a': has no measure; add one, or a reason",
    ),
    "bounds of nothing": (
        "BOUNDS = {'own.nothing': len}",
        "'own.nothing', which is unknown; see .*; if another plug-in defines it, name that one first",
    ),
    "bounds of a misspelt name": ("BOUNDS = {'alltoall.mastr': len}", "did you mean 'alltoall.master'[?] If another"),
    "no meaning": (
        MODEL.replace("    def cvxpy", "    meaning = None\n\n    def cvxpy"),
        "line 4: .*'own.model': meaning must be a string, not None",
    ),
    "base exception": ("raise BaseException('no')", "line 1: BaseException: no; correct the file"),
    "generator exit": ("raise GeneratorExit", "line 1: GeneratorExit; correct the file"),
    "bounds no mapping": ("BOUNDS = len", "write BOUNDS ="),
    "bounds no function": ("BOUNDS = {'alltoall.master': [3]}", "contains 3"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused(case, tmp_path):
    text, message = BAD[case]
    with pytest.raises(BadInput, match=message) as refused:
        oc.load_plugin(write(tmp_path, "mine.py", text))
    assert str(tmp_path / "mine.py") in str(refused.value)
    assert not plugins.digests()


def test_a_module_beside_a_plug_in_is_not_on_the_import_path(tmp_path):
    path = write(tmp_path, "mine.py", "import helpers")
    with pytest.raises(BadInput, match="install the package"):
        oc.load_plugin(path)
    (tmp_path / "helpers.py").write_text("")
    with pytest.raises(BadInput, match="not on the import path; set PYTHONPATH, or install the module"):
        oc.load_plugin(path)


def test_arguments_of_a_family_may_have_any_name(tmp_path):
    oc.load_plugin(
        write(
            tmp_path,
            "named.py",
            "import opticoll as oc\n@oc.family('named', example='named:3', source='own')\n"
            "def named(wanted: int, function: int = 1, sizes: oc.Dimensions = oc.Dimensions((2, 2))) -> oc.Topology:\n"
            "    return oc.Topology(wanted, [*range(wanted)], [*range(1, wanted), 0], [float(function)] * wanted)\n",
        )
    )
    assert parse("named:3,function=2").capacity.tolist() == [2.0, 2.0, 2.0]


FAULTS = {
    "tuple": ("return oc.Topology(n", "return (n", r"line 5: cycle returned tuple; return oc\.Topology"),
    "lengths": ("i, (i + 1)", "i[1:], (i + 1)", "line 9: .*arrays of equal length"),
    "exception": ("np.arange(n)", "n / 0", "line 8: ZeroDivisionError"),
    "automorphisms raise": ('"own"', '"own", automorphisms=lambda n, back: [n / 0]', "line 5: ZeroDivisionError"),
    "automorphisms are nothing": ('"own"', '"own", automorphisms=lambda n, back: 3', "line 5: TypeError"),
    "closed form raises": ('"own"', '"own", closed_form=lambda n, back: 1 / (n - 4)', "line 5: ZeroDivisionError"),
    "closed form is a float": (
        '"own"',
        '"own", closed_form=lambda n, back: 6.0',
        "line 5: closed_form .* returned 6.0",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_fault_of_a_family_is_one_line_with_its_place(case, tmp_path, capfd):
    old, new, message = FAULTS[case]
    text = FAMILY.format(name="cycle", step=1)
    assert text.count(old) == 1
    path = write(tmp_path, "mine.py", text.replace(old, new))
    if case.startswith("automorphisms"):
        oc.load_plugin(path)
        with pytest.raises(BadInput, match=f"{path}, {message}"):
            automorphisms(parse("cycle:4"))
    else:
        assert main(["bounds", "cycle:4", "--plugin", str(path)]) == 2
        (line,) = capfd.readouterr().err.strip().splitlines()
        assert re.search(f"plug-in {path}, {message}", line), line


def test_a_refusal_by_a_family_is_about_its_arguments(tmp_path):
    refusal = '    if n > 9: raise oc.NotApplicable("cycle: n must be at most 9")\n    return'
    oc.load_plugin(write(tmp_path, "mine.py", FAMILY.format(name="cycle", step=1).replace("    return", refusal)))
    with pytest.raises(oc.NotApplicable, match=r"^cycle: n must be at most 9$"):
        parse("cycle:10")


def test_the_same_file_under_another_spelling_is_the_same_plug_in(tmp_path, monkeypatch):
    write(tmp_path, "one.py", MODEL)
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.py").symlink_to(tmp_path / "one.py")
    monkeypatch.chdir(tmp_path)
    first = oc.load_plugin("one.py")
    for place in ("folder/../one.py", "./one.py", tmp_path / "one.py", "link.py"):
        assert oc.load_plugin(place) is first
    assert main(["describe", "own.model", "--plugin", "one.py", "--plugin", "./folder/../one.py"]) == 0
    assert list(plugins.digests()) == ["one.py"]


def test_a_failure_in_a_worker_names_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(plugins, "_in_worker", True)
    monkeypatch.setattr(plugins, "node", lambda: "far")
    place = r"mine\.py, line 1 \(in a worker process on far\): "
    with pytest.raises(BadInput, match=f"{place}ModuleNotFoundError: .*; install the package, .* on that machine$"):
        oc.load_plugin(write(tmp_path, "mine.py", "import no_such_package"))
    with pytest.raises(BadInput, match=f"{place}ValueError: no; correct the file$"):
        oc.load_plugin(write(tmp_path, "mine.py", "raise ValueError('no')"))


def test_two_plug_ins_cannot_use_one_name(tmp_path):
    oc.load_plugin(write(tmp_path, "one.py", MODEL))
    with pytest.raises(BadInput, match=r"two\.py: .*'own.model' is already used by the plug-in .*one\.py"):
        oc.load_plugin(write(tmp_path, "two.py", MODEL))
    assert str(plugins.file_of(formulation("own.model"))).endswith("one.py")


@pytest.mark.parametrize(
    ("place", "message"), [("no.py", "cannot be read"), ("no_such", "no module"), ("a b", "no mod")]
)
def test_a_place_without_a_plug_in_is_refused(place, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=message):
        oc.load_plugin(place)


SUM = 'return {"sum": max(0.0, float(values["x"].sum()) - 2)}'
VALUE = 'return float(values["x"].sum())'
WRONG = {
    "build raises": ("cp.Maximize", "cp.Maximise", "AttributeError", r"line \d+"),
    "build returns": ("return cp.Problem", "return 3 or cp.Problem", r"line 7: .*'own.model': its build returned int"),
    "not a number": ("<= 2]", "<= float('nan')]", r"line 7: .*row_upper contains NaN at position 0 \(constraint0\)"),
    "infinite": (
        "[cp.sum(x) <= 2]",
        "[float('inf') * x[3] <= 2]",
        r"line 7: .*infinity in row constraint0, column x\[3\]",
    ),
    "unnamed": ('name="x", ', "", "has no name", "own.model"),
    "integer": ("bounds=[0, 1]", "boolean=True", "problem='MILP'", "own.model"),
    "sense": ("cp.Maximize", "cp.Minimize", "its build has 'min'", "own.model"),
    "not linear": ("cp.sum(x)), ", "cp.sum(cp.sqrt(x))), ", "own.model", "linear|SCIPY|compile"),
    "residuals": (SUM, "return {}", "residuals returned", r"line 12"),
    "objective": (VALUE, 'return "2"', "objective returned 2", "own.model"),
    "bounds": (CHECKER, f"    def bounds(self): return [2.0]\n{CHECKER}", "bounds returned", "line 12: .*own.model"),
    "sets": (
        CHECKER,
        f"    def sets(self): return None\n{CHECKER}",
        "sets returned NoneType; return a dict",
        "line 12",
    ),
    "instance": (CHECKER, f"    def __init__(self): pass\n{CHECKER}", "TypeError: .*takes 1 positional", "mine.py: "),
    "metrics": (CHECKER, f"    def metrics(self, value): return 2.5\n{CHECKER}", "metrics returned 2.5", "line 12"),
    "metrics of objects": (
        CHECKER,
        f"    def metrics(self, value): return {{'T': sum}}\n{CHECKER}",
        "metrics returned",
        "line 12",
    ),
    "description": (
        CHECKER,
        f"    def describe(self, values): return {{1: 2}}\n{CHECKER}",
        "describe returned {1: 2}",
        "line 12",
    ),
    "key": ('float(values["x"]', 'float(values["y"]', "KeyError: 'y'", r"line \d+"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_hook_that_is_wrong_is_named_in_one_line(case, tmp_path, capfd):
    old, new, *messages = WRONG[case]
    assert old in MODEL
    path = write(tmp_path, "mine.py", MODEL.replace(old, new))
    assert main(["solve", "own.model", "ring:4", "--plugin", str(path), "--no-store"]) == 2
    (line,) = capfd.readouterr().err.strip().splitlines()
    for message in messages:
        assert re.search(message, line), line


ENDED = {
    "exit in build": ("    import cvxpy as cp", "    raise SystemExit(0)", r"line 8: SystemExit: 0; .* must not end"),
    "exit in residuals": (
        "max(0.0, float(",
        "exit(1) if len(values) else (0.0 + (",
        r"line \d+: SystemExit: 1; .* not end",
    ),
    "exit in __init__": (
        CHECKER,
        f"    def __init__(self, instance): exit(0)\n{CHECKER}",
        r"line 13: SystemExit: 0; .* not end",
    ),
    "generator exit": ("    import cvxpy as cp", "    raise GeneratorExit", "line 8: GeneratorExit; correct it there"),
    "base exception": (
        "    import cvxpy as cp",
        "    raise BaseException('a\\nb')",
        "line 8: BaseException: a b; correct",
    ),
}


@pytest.mark.parametrize("case", ENDED)
def test_a_hook_that_ends_the_program_is_refused(case, tmp_path, capfd):
    old, new, message = ENDED[case]
    assert old in MODEL
    path = write(tmp_path, "mine.py", "from sys import exit\n" * ("exit(" in new) + MODEL.replace(old, new))
    asked = ["solve", "own.model", "ring:4", "--plugin", str(path), "--json", "--store", str(tmp_path / "store")]
    assert main(asked) == 2
    out, err = capfd.readouterr()
    (line,) = err.strip().splitlines()
    assert out == ""
    assert re.search(f"plug-in {path}, {message}", line), line
    assert not list(tmp_path.glob("store/records/*"))


def test_ctrl_c_in_a_plug_in_stays_an_interrupt(tmp_path, capfd):
    for text in (MODEL.replace("    import cvxpy as cp", "    raise KeyboardInterrupt"), "raise KeyboardInterrupt"):
        path = write(tmp_path, "mine.py", text)
        assert main(["solve", "own.model", "ring:4", "--plugin", str(path), "--no-store"]) == 130
        assert capfd.readouterr().err.strip().endswith("interrupted")


def test_what_a_script_defines_is_solved_in_workers_too(tmp_path):
    """A formulation object by a method, and a family by a solver and a method."""
    script = write(
        tmp_path,
        "script.py",
        FAMILY.format(name="cycle", step=1)
        + PYOMO_MODEL
        + """
if __name__ == "__main__":
    from opticoll.solvers.process.executor import LocalProcesses
    from opticoll.solvers.resume_key import resume_key

    class FORMULATION(Model):
        problem = "MILP"

    run = oc.solve(oc.Task(FORMULATION, "ring:4", "certified-branching"))
    print(round(run.objective, 6), run.proof, *run.record.plugins)
    task = oc.Task(FORMULATION, "ring:4")
    with LocalProcesses(1) as executor:
        print(dict(executor.map_unordered(resume_key, [task])) == {0: resume_key(task)})
    runs = [oc.solve(oc.Task("alltoall.master", "cycle:5", method)) for method in ("highs-simplex", "orbit-lp")]
    print([round(1 / run.objective, 3) for run in runs])
""",
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["2.0 optimal own.model", "True", "[10.0, 10.0]"]


def test_a_formulation_object_cannot_have_the_name_of_another(tmp_path):
    module = oc.load_plugin(write(tmp_path, "mine.py", MODEL))
    assert oc.solve(oc.Task(module.FORMULATION, "ring:4")).verified
    for name in ("own.model", "alltoall.master"):
        with pytest.raises(BadInput, match="choose another name"):
            oc.solve(oc.Task(type("Other", (module.FORMULATION,), {"name": name}), "ring:4"))


def test_arguments_of_init_are_parameters_in_the_package_too():
    def init(self, instance, *, root: int = 2): ...

    model = type("Model", (oc.Formulation,), {"__module__": "opticoll.formulations.model_of_ours", "__init__": init})
    assert [(one.name, one.default) for one in model.parameters] == [("root", 2)]


SOLVERS = """
import numpy as np
from opticoll.solvers.adapters.interface import Adapter, Capabilities, set_solution
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Outcome, Termination

class Mine(Adapter):
    name = title = "mine"
    package = distribution = "scipy"
    algorithm = "none"
    capabilities = Capabilities()

    def solve(self, form, request, progress):
        return form.{solve}

class Short(Mine):
    name = "short"

    def solve(self, form, request, progress):
        outcome = Outcome(Termination.OPTIMAL)
        set_solution(outcome, form, np.zeros(3))
        return outcome

class Missing(Mine):
    name = "missing"
    package = distribution = "no-such-package"

def run(context):
    return context.{run}

ADAPTERS = [Mine(), Short(), Missing()]
def leave(context):
    raise SystemExit(0)

def texts(context):
    return Answer("optimal")

def keeping(context):
    context.save({{}})

METHODS = [
    Method(name="texts", title="", summary="", serves=lambda formulation: True, run=texts),
    Method(name="my-method", title="", summary="", serves=lambda formulation: True, run=run),
    Method(name="leaving", title="", summary="", serves=lambda formulation: True, run=leave),
    Method(name="keeping", title="", summary="", serves=lambda formulation: True, run=keeping),
]
"""


@pytest.mark.parametrize(
    ("method", "status", "message"),
    [
        ("mine", 2, "mine.py, line 13: solver 'mine': solve returned str; return an Outcome"),
        ("short", 3, "mine.py, line 19: solver 'short' returned x of type float64 and shape (3,), expected"),
        ("my-method", 2, "mine.py, line 28: method 'my-method': run returned dict; write Answer("),
        ("texts", 2, "mine.py, line 35: method 'texts': run returned an Answer with termination 'optimal'; use"),
        ("keeping", 2, "mine.py, line 38: method 'keeping': run saved dict; write Answer("),
        ("leaving", 3, "ended with error: SystemExit: 0 (plug-in"),
        ("missing", 4, "pip install no-such-package"),
    ],
)
def test_solvers_and_methods_that_answer_wrongly_are_named(method, status, message, tmp_path, capfd):
    path = write(tmp_path, "mine.py", SOLVERS.format(solve="sense", run="parameters"))
    asked = ["solve", "alltoall.master", "ring:4", "--no-store", "--method", method, "--plugin", str(path)]
    assert main(asked) == status
    (line,) = capfd.readouterr().err.strip().splitlines()
    assert message in line


@pytest.mark.parametrize(("method", "line"), [("mine", 14), ("my-method", 29)])
def test_an_exception_in_a_worker_names_the_line_of_the_plug_in(method, line, tmp_path):
    oc.load_plugin(write(tmp_path, "mine.py", SOLVERS.format(solve="nothing", run="nothing")))
    run = oc.solve(oc.Task("alltoall.master", "ring:4", method))
    assert str(run.termination) == "error"
    assert f"mine.py, line {line}" in str(run.record.message)


TIRED = """
import numpy as np
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

def run(context):
    paths = context.data.routing.paths
    x = np.zeros(paths.paths)
    x[paths.first[:-1]] = 1.0
    context.save(Answer(Termination.TOLERANCE, values={"x": x, "Lambda": np.array(3.0)}), 3.0)
    raise TimeoutError

METHODS = [Method(name="tired", title="", summary="", serves=("alltoall.min-congestion",), run=run)]
"""


def test_what_a_method_saved_is_its_answer_when_time_is_up(tmp_path):
    oc.load_plugin(write(tmp_path, "tired.py", TIRED))
    run = oc.solve("alltoall.min-congestion", "ring:5", method="tired", paths="shortest", time_limit=60)
    assert (run.objective, run.verified, str(run.termination)) == (3.0, True, "time-limit")
    assert "between two steps" in run.record.message


def test_plug_ins_add_to_the_registries_and_change_nothing_else(tmp_path):
    before = (list(formulations()), list(adapters()), list(methods()))
    oc.load_plugin(write(tmp_path, "mine.py", MODEL))
    assert (list(formulations()), list(adapters()), list(methods())) == ([*before[0], "own.model"], *before[1:])
