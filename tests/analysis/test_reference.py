"""Help at the console: descriptions by name, JSON Schemas that real outputs follow, completion of names."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import json_outputs
import pytest
from case_families import each
from light_imports import without_grammars

from opticoll.analysis import catalog
from opticoll.analysis.cli.main import main
from opticoll.analysis.describe import _text, describe
from opticoll.analysis.study import study_file
from opticoll.formulations import formulations
from opticoll.formulations.model import Formulation, forms_of, title_of
from opticoll.formulations.registry import PAPERS, paper_of
from opticoll.instances import parse
from opticoll.instances.spec import FAMILIES, MODIFIERS, POPULATIONS, expand, load_families
from opticoll.solvers.adapters import adapters
from opticoll.solvers.methods import methods
from opticoll.solvers.plan import make_plan
from opticoll.solvers.task import Task

load_families()


def shown(capfd: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main([*arguments]) == status
    return capfd.readouterr().out


# describe -------------------------------------------------------------------------------------------------------------


def test_the_title_of_a_formulation_is_the_headline_of_its_docstring():
    class Stated(Formulation):
        """Least loads of
        all links.

        min T  s.t. ...
        """

    class Bare(Formulation):
        pass

    Bare.name = "own.bare"
    assert title_of(Stated) == "Least loads of all links"
    assert title_of(Bare) == "own.bare"
    assert paper_of(Bare) == "own"
    named = type("Named", (Stated,), {"title": "My loads", "paper": "lumorph"})
    assert title_of(named) == "My loads"
    assert paper_of(named) == PAPERS["lumorph"]
    titles = {title_of(model) for model in formulations().values()}
    assert len(titles) == len(formulations())


@each("name", sorted(formulations()))
def test_a_formulation_is_described_in_full(name, capfd):
    model = formulations()[name]
    one = next(one for one in describe(name) if one.kind == "formulation")
    assert "Source" in one.text
    assert model.where, 'where: the place in the paper, or "ours" (CONTRIBUTING.md)'
    assert [p.name for p in one.parameters] == [p.name for p in model.parameters]
    assert one.forms == forms_of(model)
    assert "highs" in one.solvers
    text = shown(capfd, "describe", name)
    assert title_of(model) in text
    assert all(f"\n{p.name} " in text for p in model.parameters)
    if name == "matrix.program":  # its instances are files
        return
    command = re.fullmatch(r"opticoll solve (\S+) '(\S+)'", one.example)
    assert command[1] == name
    if model._needs is None:
        make_plan(Task(command[1], command[2]))  # the example can be solved
        assert one.sizes.bounds
        assert one.sizes.variables > 0
    else:
        assert one.sizes is None
        assert one.facts["needs"] == (model._needs and model._needs.formulation)


def test_example_of_matrix_programs_works(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (one,) = describe("matrix.program")
    for command in one.example.split(" && "):
        shown(capfd, *command.removeprefix("opticoll ").split())
    assert main(["bounds", "mps:program.mps"]) == 0
    out = capfd.readouterr().out
    assert out == "mps:program.mps: no analytic bounds; `opticoll solve` computes a bound\n"


def test_sizes_and_bounds_follow_the_instance():
    small, large = (describe("alltoall.master", spec)[0].sizes for spec in ("ring:4", "ring:8"))
    assert (small.instance, small.n, small.arcs) == ("ring:4", 4, 8)
    assert (small.variables, large.variables) == (4 * 8 + 1, 8 * 16 + 1)
    closed = next(b for b in small.bounds if b.name == "closed-form")
    assert (closed.value, closed.exact) == (pytest.approx(1 / 2), True)
    shortest = describe("alltoall.path-mcf", "ring:4", {"paths": "shortest"})[0].sizes
    assert shortest.variables == 4 * 3 + 4 + 1  # two shortest paths between opposite vertices


@each("name", [*FAMILIES, *POPULATIONS, *MODIFIERS])
def test_a_family_is_described(name, capfd):
    one = next(one for one in describe(name) if one.kind in {"family", "population", "modifier"})
    undocumented = ", ".join(p.name for p in one.parameters if not p.help)
    assert not undocumented, f"{name}: the section Parameters of its docstring does not describe {undocumented}"
    assert "Raises" not in one.text
    assert "----" not in one.text
    text = shown(capfd, "describe", name)
    assert one.title in text
    assert ":math:" not in text
    task = re.search(r"opticoll (solve|sweep) (\S+) .*'(.*)'$", one.example)
    if name == "circuits":
        assert one.example == f"opticoll iteration vgg '{FAMILIES[name].example}'"
    elif name not in {"file", "mps"}:
        make_plan(Task(task[2], (expand(task[3]) if task[1] == "sweep" else [task[3]])[0]))


def test_a_spec_is_described_with_its_facts():
    one = describe("genkautz:n=16,d=4")[0]
    topology = parse("genkautz:n=16,d=4")
    assert (one.kind, one.name) == ("family", "genkautz")
    assert (one.facts["arcs"], one.facts["diameter"], one.facts["hash"]) == (60, 2, topology.hash)
    assert {p.name: p.default for p in one.parameters} == {"n": None, "d": None, "loops": "drop"}
    assert [p.required for p in one.parameters] == [True, True, False]


@each("name", sorted(methods()))
def test_a_method_is_described(name):
    one = next(one for one in describe(name) if one.kind == "method")
    assert one.formulations == tuple(model for model, f in formulations().items() if methods()[name].applies(f))
    assert one.example.endswith(f"--method {name}")
    does = methods()[name].run or methods()[name].reformulate
    assert one.text.startswith(f"{methods()[name].summary}\n\n{inspect.getdoc(does).splitlines()[0]}")
    assert "----" not in one.text


def test_methods_and_solvers_of_one_module_have_separate_descriptions():
    texts = [one.text for name in ("glop", "pdlp", "cp-sat", "sssp", "lp-rounding") for one in describe(name)]
    assert len(set(texts)) == 5
    assert texts[0].startswith("GLOP: ")
    assert "PDLP" not in texts[0]


def test_a_function_without_a_docstring_is_described_by_its_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "own_way", ModuleType("own_way", "The way of this module."))

    def run():
        return None

    run.__module__ = "own_way"
    assert _text(run) == "The way of this module."


def test_solvers_studies_and_claims_are_described(capfd):
    solver = describe("highs")[0]
    assert (solver.kind, solver.facts["usable"], solver.facts["licence"]) == ("solver", True, "free")
    assert "alltoall.master" in solver.formulations
    study = describe("demo")[0]
    assert (study.kind, study.facts["cells"], study.formulations) == ("study", 16, ("alltoall.master",))
    claim = describe("alltoall.theorem-2")[0]
    assert (claim.kind, claim.facts["tolerance"], claim.example) == (
        "claim",
        "exact",
        "opticoll claims alltoall.theorem-2",
    )
    assert "expected" in shown(capfd, "describe", "alltoall.theorem-2")


def test_a_name_with_two_meanings_has_both():
    assert [one.kind for one in describe("ring")] == ["family", "method"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["alltoall.mastr"], "describe: unknown name 'alltoall.mastr'; did you mean 'alltoall.master'?"),
        (["genkauz"], "did you mean 'genkautz'?"),
        (["ring", "--instance", "ring:4"], "an instance and parameters are for formulations; 'ring' is a family"),
        (["alltoall.child", "--instance", "ring:4"], "takes its data from a solution of alltoall.master"),
        (["alltoall.master", "--instance", "servers:n=4,degree=1"], "alltoall.master"),
        (["alltoall.master", "--set", "k=1"], "no parameter 'k'"),
        (["ring:1"], "n: must be a whole number of at least 2"),
    ],
)
def test_unknown_names_are_refused_in_one_line(capfd, arguments, message):
    assert main(["describe", *arguments]) == 2
    out, err = capfd.readouterr()
    assert message in err
    assert len(err.splitlines()) == 1
    assert not out


# schemas --------------------------------------------------------------------------------------------------------------


def strict(schema: Any) -> Any:
    """The schema with no room for fields that it does not document."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: strict(value) for key, value in schema.items()}
    return {"additionalProperties": False, **closed} if "properties" in schema else closed


OUTPUTS = {
    "solve": ["solve", "alltoall.master", "ring:4", "--no-store"],
    "check": ["check", "alltoall.master", "ring:4", "ring.json"],
    "study": ["study", "rings.toml", "--store", "runs"],
    "results": ["results", "--store", "runs"],
    "bounds": ["bounds", "ring:4"],
    "claims": ["claims", "optree.theorem1", "optree.table1-one-stage", "optree.table1-wrht"],
    "describe": ["describe", "alltoall.path-mcf"],
    "sweep": ["sweep", "alltoall.master", "--bound", "moore", "--over", "ring:{3,4}"],
    "conjecture": ["conjecture", "alltoall.master", "--over", "complete:{3..6}", "--store", "runs"],
    "iteration": ["iteration", "vgg", "ideal-switch:n=4"],
    "figure": ["figure", "lumorph-6", "--out", "six.svg", "--store", "runs"],
    "cluster": ["cluster", "topoopt", "--servers", "8", "--job-servers", "4", "--jobs", "3"],
    "list": ["list"],
    **{f"list {kind}": ["list", kind] for kind in catalog.kinds()},
}


def test_every_json_output_with_a_schema_is_tested():
    assert set(OUTPUTS) == set(json_outputs.OUTPUTS)


RINGS = """
name = "rings"
formulations = ["alltoall.master", "alltoall.min-congestion"]
instances = ["ring:4"]
methods = ["highs", "scip"]
repetitions = 2
"""


@pytest.fixture(scope="module")
def jsonschema():
    """Imported where it is used."""
    return without_grammars("jsonschema")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a study that was run, a solution, and a schedule."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("outputs"))
        Path("rings.toml").write_text(RINGS, encoding="utf-8")
        assert main(["study", "rings.toml", "--store", "runs"]) == 0
        files = ["--solution", "ring.json", "--schedule", "schedule.json"]
        assert main(["solve", "alltoall.master", "ring:4", "--no-store", *files]) == 0
        return Path.cwd()


@pytest.mark.parametrize("command", list(OUTPUTS))
def test_real_outputs_follow_their_schema(command, capfd, folder, monkeypatch, jsonschema):
    monkeypatch.chdir(folder)
    if command == "list solvers":  # test_cli probes all of them
        few = {name: adapters()[name] for name in ("highs", "copt")}
        monkeypatch.setattr("opticoll.solvers.adapters.adapters", lambda: few)
    value = json.loads(shown(capfd, *OUTPUTS[command], "--json"))
    schema = json_outputs.schema(command)
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(strict(schema)).validate(value)
    assert value
    spoilt = [{**value[0], "unheard": 1}] if isinstance(value, list) else {**value, "unheard": 1}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(strict(schema)).validate(spoilt)


def test_schedules_that_fail_follow_the_schema(capfd, folder, monkeypatch, jsonschema):
    monkeypatch.chdir(folder)
    schedule = json.loads(Path("schedule.json").read_text(encoding="utf-8"))
    schedule["steps"][-1].pop()
    Path("short.json").write_text(json.dumps(schedule), encoding="utf-8")
    schema = jsonschema.Draft202012Validator(strict(json_outputs.schema("check")))
    for file, status in (("schedule.json", 0), ("short.json", 3)):
        assert main(["check", "alltoall.master", "ring:4", file, "--json"]) == status
        document = json.loads(capfd.readouterr().out)
        schema.validate(document)
        assert (document["schedule"]["violation"] is None) == (status == 0)


def test_metrics_of_several_formulations_are_documented(capfd, jsonschema):
    options = ["--set", "paths=shortest", "--shard", "1MB", "--no-store", "--json"]
    document = json.loads(shown(capfd, "solve", "alltoall.path-mcf", "torus:3x3+unit=Gb/s", *options))
    schema = json_outputs.schema("solve")
    known = schema["$defs"]["SolveOutput"]["properties"]["metrics"]["properties"]
    assert {"F", "T", "T_s", "conditional_on"} <= known.keys() & document["metrics"].keys()
    validator = jsonschema.Draft202012Validator(strict(schema))
    validator.validate(document)
    with pytest.raises(jsonschema.ValidationError):
        validator.validate({**document, "metrics": {**document["metrics"], "T_s": "fast"}})


# completion -----------------------------------------------------------------------------------------------------------


def asked(*words: str) -> dict[str, str]:
    """The environment in which the shell function of bash asks for the last word."""
    line = " ".join(["opticoll", *words])
    return {"_OPTICOLL_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words))}


def names_in(output: str) -> list[str]:
    return [line.partition(",")[2] for line in output.splitlines()]


def test_the_shell_gets_its_names_from_the_command():
    command = [sys.executable, "-m", "opticoll"]
    done = subprocess.run(command, env={**os.environ, **asked("sw")}, capture_output=True, text=True, check=True)
    assert names_in(done.stdout) == ["sweep"]


@pytest.mark.parametrize(
    ("words", "some", "none"),
    [
        (["sw"], {"sweep"}, {"solve"}),
        (["solve", "alltoall.m"], {"alltoall.master", "alltoall.min-congestion"}, {"lumorph.rounds"}),
        (["solve", "alltoall.master", "gen"], {"genkautz"}, {"ring"}),
        (["sweep", "alltoall.master", "--over", "all-"], {"all-graphs", "all-digraphs"}, set()),
        (["solve", "alltoall.child", "ring:4", "--method", ""], {"highs", "time-form"}, {"alltoall.child"}),
        (["study", "de"], {"demo"}, set()),
        (["claims", "optree.t"], {"optree.theorem1"}, {"alltoall.theorem-2"}),
        (["describe", "certified-p"], {"certified-pdhg"}, {"highs"}),
        (["list", "f"], {"formulations"}, {"claims"}),
    ],
)
def test_names_are_completed(words, some, none, capfd, monkeypatch):
    for name, value in asked(*words).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0
    names = set(names_in(capfd.readouterr().out))
    assert some <= names
    assert not none & names
    assert all(name.startswith(words[-1]) for name in names)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_of_their_shell(shell, capfd, tmp_path, monkeypatch):
    monkeypatch.setenv("_OPTICOLL_COMPLETE", f"{shell}_source")
    with pytest.raises(SystemExit):
        main([])
    script = capfd.readouterr().out
    assert f"_OPTICOLL_COMPLETE={shell}_complete" in script
    path = tmp_path / "script"
    path.write_text(script, encoding="utf-8")
    if (program := shutil.which(shell)) is not None:
        subprocess.run([program, "-n", str(path)], check=True)


def test_a_solver_of_integer_columns_is_listed_where_the_example_has_no_others():
    names, takes = ("sipml.placement", "lumorph.rounds"), describe("cp-sat")[0].formulations
    for listed in (
        [name for name in names if "cp-sat" in describe(name)[0].solvers],
        [name for name in names if "cp-sat" in study_file._methods(["@solvers"], name, "here")],
        [name for name in names if name in takes],
    ):
        assert listed == ["lumorph.rounds"]
