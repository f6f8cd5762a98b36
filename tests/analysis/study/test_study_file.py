"""Study files: parsed strictly and expanded to validated cells; nothing is guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from case_families import each

from opticoll.analysis.study.study_file import Study, find, load, studies, tasks
from opticoll.errors import BadFile, BadInput, BadSpec
from opticoll.formulations.alltoall.master import Master
from opticoll.instances.spec import expand

if TYPE_CHECKING:
    from pathlib import Path

    from opticoll.instances import Instance

BASE = """
name = "t"
formulations = ["alltoall.master"]
instances = ["ring:{4,6}"]
methods = ["highs-simplex"]
"""


def read(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "t.toml"
    path.write_text(text)
    return load(path)


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("ring:8", ["ring:8"]),
        ("ring:{4,8}", ["ring:4", "ring:8"]),
        ("genkautz:n={16, 32},d={2,4}", [f"genkautz:n={n},d={d}" for n in (16, 32) for d in (2, 4)]),
        ("ring:{3..5}", ["ring:3", "ring:4", "ring:5"]),
        ("ring:{4..10..3}", ["ring:4", "ring:7", "ring:10"]),
        ("{ring,path}:4", ["ring:4", "path:4"]),
    ],
)
def test_products(text: str, specs: list[str]) -> None:
    assert expand(text) == specs


@pytest.mark.parametrize(
    "text",
    ["ring:{4", "ring:4}", "ring:{}", "ring:{4,,5}", "ring:{5..4}", "ring:{1..9..0}", "{1..999}{1..999}", "{{4}}"],
)
def test_bad_products(text: str) -> None:
    with pytest.raises(BadSpec, match="instance"):
        expand(text)


def test_equal_cells_count_once(tmp_path: Path) -> None:
    study = read(tmp_path, BASE.replace('"ring:{4,6}"', '"ring:4", "ring:n=4", "ring:{4,4}"'))
    assert len(study.cells) == 1


def test_limits_and_tolerance_reach_the_task(tmp_path: Path) -> None:
    study = read(tmp_path, BASE + "tol = 1e-4\nthreads = 1\n[limits]\ntime_limit_s = 5\nmemory_limit_gib = 1.5\n")
    task = study.cells[0].task
    assert (task.tol, task.threads, task.time_limit_s, task.memory_limit_gib) == (1e-4, 1, 5.0, 1.5)


def test_counted_seeds_come_from_the_name_of_the_cell(tmp_path: Path) -> None:
    study = read(tmp_path, BASE + "seeds = 2\n")
    seeds = [cell.task.seed for cell in study.cells]
    assert len(set(seeds)) == 4
    wider = read(tmp_path, BASE.replace("{4,6}", "{4,6,8}") + "seeds = 3\n")
    assert set(seeds) < {cell.task.seed for cell in wider.cells}


def test_settings_are_a_grid(tmp_path: Path) -> None:
    text = BASE.replace("alltoall.master", "alltoall.link-mcf") + "[settings]\nprinted = [true, false]\n"
    study = read(tmp_path, text)
    assert [cell.task.settings["printed"] for cell in study.cells[:2]] == [True, False]
    assert len(study.cells) == 4


def test_include_and_exclude(tmp_path: Path) -> None:
    study = read(
        tmp_path,
        BASE + '[[include]]\ninstances = ["petersen"]\nmethods = ["highs-ipx"]\n[[exclude]]\ninstance = "ring:6"\n',
    )
    assert [(c.task.instance, c.task.method) for c in study.cells] == [
        ("ring:4", "highs-simplex"),
        ("petersen", "highs-ipx"),
    ]


def test_groups_of_methods(tmp_path: Path) -> None:
    from opticoll.solvers.adapters import adapters

    study = read(tmp_path, BASE.replace("highs-simplex", "@solvers"))
    able = {name for name, adapter in adapters().items() if adapter.capabilities.lp}
    assert {cell.task.method for cell in study.cells} == able
    methods = {c.task.method for c in read(tmp_path, BASE.replace("highs-simplex", "@methods")).cells}
    assert "time-form" in methods
    grouped = tasks(tmp_path / "t.toml", grouped=True)
    assert [task.method for task in grouped] == ["@methods", "@methods"]


def test_cells_that_differ_in_method_share_what_is_prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a solver is missing, and never across instances or settings."""
    prepare, made = Master.prepare, list[object]()

    def counted(instance: Instance, *rest: Any) -> Any:
        made.append((instance.spec, *rest))
        return prepare(instance, *rest)

    monkeypatch.setattr(Master, "prepare", counted)
    text = BASE.replace("highs-simplex", "@solvers") + 'settings = { demand = ["uniform", "permutation:1"] }\n'
    assert {cell.canonical for cell in read(tmp_path, text).cells} == {"ring:4", "ring:6"}
    assert len(made) == len({str(one) for one in made}) == 4


@each(
    ("change", "message"),
    [
        ("name = ", "not TOML"),
        ('nmae = "x"', "no key 'nmae'; did you mean 'name'"),
        ("seed = 3", "no key 'seed'; did you mean 'seeds'"),
        ("seeds = 0", "seeds must be"),
        ("seeds = [-1]", "seeds must be"),
        ('seeds = "many"', "seeds must be"),
        ("repetitions = 0", "repetitions must be a whole number from 1"),
        ("repetitions = 1.5", "repetitions must be a whole number"),
        ('tol = "small"', "tol must be a number"),
        ("tol = 2.0", "tol: must be a number between 0 and 1"),
        ("tol = nan", "tol: must be a finite number"),
        ("limits = 3", "limits must be a table"),
        ("[limits]\ntime_limit = 3", "no key 'time_limit'; did you mean 'time_limit_s'"),
        ("[limits]\ntime_limit_s = -1", "time limit: must be a positive number"),
        ("[limits]\ntime_limit_s = nan", "time limit: must be a positive number"),
        ("[limits]\nmemory_limit_gib = true", "memory_limit_gib must be a number"),
        ("[settings]\nprinted = []", "setting 'printed'"),
        ('forms = ["ampl"]', "not stated in 'ampl'"),
        ("[[exclude]]", "the rule is empty"),
        ('[[exclude]]\nmethod = "nothing*"', "matches no cell"),
        ("[[exclude]]\nseed = false", "matches no cell"),
        ('shard = "1MB"', "no key 'shard'"),
        ('[[exclude]]\nmethods = "x"', "no key 'methods'; did you mean 'method'"),
        ('[[exclude]]\nmethod = "*"', "has no cells"),
        ('[[include]]\ninstances = ["rin:4"]', "did you mean 'ring'"),
        ("[include]\nseeds = 1", "include must be tables"),
    ],
)
def test_refused(tmp_path: Path, change: str, message: str) -> None:
    top, table = (BASE, change) if change.startswith("[") else (change + "\n", BASE)
    with pytest.raises(BadInput, match=r"t\.toml") as caught:
        read(tmp_path, top + table)
    assert message in str(caught.value)


def test_a_misspelt_setting_is_refused(tmp_path: Path) -> None:
    text = BASE.replace("alltoall.master", "alltoall.link-mcf") + "[settings]\nprintd = true\n"
    with pytest.raises(BadInput, match="did you mean 'printed'"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ring:{4,6}", "ring:{4,0}", "ring:0"),
        ("ring:{4,6}", "ring:{4,6", "braces"),
        ("alltoall.master", "alltoall.mastre", "did you mean 'alltoall.master'"),
        ("highs-simplex", "highs-simplx", "did you mean 'highs-simplex'"),
        ("highs-simplex", "cp-sat", "does not solve continuous LPs"),
        ("highs-simplex", "@solver", "did you mean '@solvers'"),
        ('methods = ["highs-simplex"]', "", "methods is missing"),
        ('methods = ["highs-simplex"]', "methods = []", "methods must be a list of strings that is not empty"),
        ('methods = ["highs-simplex"]', 'methods = "highs"', "methods must be a list of strings"),
        ('name = "t"', "", "name is missing"),
    ],
)
def test_bad_cells_are_refused_with_their_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in BASE
    with pytest.raises(BadInput, match=r"t\.toml") as caught:
        read(tmp_path, BASE.replace(old, new))
    assert message in str(caught.value)


def test_finding_studies(tmp_path: Path) -> None:
    assert find("smoke") == studies()["smoke"]
    with pytest.raises(BadInput, match="did you mean 'smoke'"):
        find("smok")
    with pytest.raises(BadInput, match="no such file"):
        find(str(tmp_path / "x.toml"))
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(BadInput, match="no such file"):
        find(str(tmp_path / "folder.toml"))
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BadFile, match="not TOML"):
        load(tmp_path / "binary.toml")


#: Studies whose instances take seconds to make; ``test_figure`` loads the first of them.
LARGE = {"scaling", "small-networks", "solver-bench", "topoopt-fig15", *(f"alltoall-fig{k}" for k in (7, 13, 14))}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LARGE else ()) for name in sorted(studies())]
)
def test_built_in_studies_are_valid(name: str) -> None:
    study = load(studies()[name])
    assert study.name == name
    assert study.title
    assert study.cells
