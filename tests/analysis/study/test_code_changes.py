"""A stored answer counts for the code that computed it, as long as its solution is whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from msgspec import structs

import opticoll as oc
from opticoll import package_code
from opticoll.analysis.cli.main import main
from opticoll.analysis.report.findings import collect
from opticoll.analysis.store import Store, schema
from opticoll.analysis.study.cells import CellJob, record_failure
from opticoll.analysis.study.dry_run import preview
from opticoll.analysis.study.running import run_study
from opticoll.analysis.study.study_file import study_of
from opticoll.solvers import resume_key as keys_of_runs
from opticoll.solvers.process.executor import InProcess, LocalProcesses
from opticoll.solvers.task import Task

TASKS = [Task("alltoall.master", f"ring:{n}", "highs-simplex") for n in (4, 5)]
Change = Callable[[str], None]


@pytest.fixture
def code(monkeypatch: pytest.MonkeyPatch) -> Iterator[Change]:
    """Pretend that the package's code has another digest; an empty one stands for its own."""
    own = package_code.digest()

    def change(digest: str) -> None:
        schema.environment.cache_clear()
        monkeypatch.setattr(package_code, "digest", lambda *_: digest or own)

    yield change
    monkeypatch.undo()
    schema.environment.cache_clear()


def counts(store: Store, tasks: list[Task] = TASKS) -> dict[str, int]:
    with InProcess() as executor:
        summary = run_study(study_of("study", tasks), store, executor)
    return {status: summary.count(status) for status in ("done", "skipped", "failed") if summary.count(status)}


# the digest -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "package"
    for name in ("errors.py", "solvers/a.py", "instances/data/t.csv", "formulations/f.py", "analysis/plots/p.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"one\ntwo\n")
    for part in package_code.OF_RUNS:
        (root / part).mkdir(parents=True, exist_ok=True)
    return root


@pytest.mark.parametrize(
    ("name", "content", "counts"),
    [
        ("solvers/a.py", b"one\n2\n", True),
        ("solvers/b.py", b"", True),
        ("solvers/deep/er/b.py", b"", True),
        ("instances/data/t.csv", b"1\n", True),
        ("errors.py", b"1\n", True),
        ("analysis/store/s.py", b"", True),
        ("solvers/a.py", b"one\r\ntwo\r\n", False),
        ("analysis/plots/p.py", b"1\n", False),
        ("solvers/__pycache__/a.cpython-311.pyc", b"1", False),
        ("solvers/a.pyc", b"bytecode beside its source", False),
        ("solvers/a.py~", b"1\n", False),
        ("solvers/notes.md", b"1\n", False),
    ],
)
def test_what_the_digest_covers(name: str, content: bytes, counts: bool, package: Path) -> None:
    before = package_code.digest_of(package)
    (package / name).parent.mkdir(parents=True, exist_ok=True)
    (package / name).write_bytes(content)
    assert (package_code.digest_of(package) != before) == counts


def test_the_digest_of_a_copy_and_a_linked_layer_is_the_same(package: Path, tmp_path: Path) -> None:
    own, copy = package_code.digest_of(package), tmp_path / "copy"
    shutil.copytree(package, copy)
    shutil.move(copy / "solvers", tmp_path / "solvers")
    (copy / "solvers").symlink_to(tmp_path / "solvers")
    assert package_code.digest_of(copy) == own


def test_every_file_of_the_layers_that_solve_counts() -> None:
    listed = [path for part in package_code.OF_RUNS for path in (package_code.ROOT / part).rglob("*") if path.is_file()]
    files = [path for path in listed if "__pycache__" not in path.parts and not path.name.startswith(".")]
    assert len(files) > 300
    assert [path for path in files if not path.name.endswith(package_code.SUFFIXES)] == []


# studies --------------------------------------------------------------------------------------------------------------


def test_cells_run_again_under_other_code_and_count_again_after_it_is_taken_back(store: Store, code: Change) -> None:
    assert counts(store) == {"done": 2}
    assert counts(store) == {"skipped": 2}
    code("other")
    assert list(store.sql("SELECT same_code FROM latest")["same_code"]) == [False, False]
    assert counts(store, TASKS[:1]) == {"done": 1}
    marks = "SELECT instance, same_code, superseded FROM latest ORDER BY instance, superseded"
    assert store.sql(marks).to_numpy().tolist() == [
        ["ring:4", True, False],
        ["ring:4", False, True],
        ["ring:5", False, False],
    ]
    code("")
    assert counts(store) == {"skipped": 2}
    current = store.sql("SELECT same_code FROM latest WHERE NOT superseded")["same_code"]
    assert list(current) == [True, True]


def test_a_process_with_other_code_than_the_key_gives_no_answer(store: Store, code: Change) -> None:
    study = study_of("study", TASKS[:1])
    code("other")
    with InProcess() as executor:
        (result,) = run_study(study, store, executor).results.values()
    assert (result.status, "start the study again" in result.message) == ("failed", True)


def test_what_other_code_computed_is_marked(store: Store, code: Change, capsys: pytest.CaptureFixture[str]) -> None:
    counts(store)
    assert collect(store).other_code is None
    folder = ["--store", str(store.root)]
    assert main(["results", *folder]) == 0
    clean = capsys.readouterr()
    assert "code" not in clean.out
    assert clean.err == ""
    code("other")
    assert main(["results", *folder]) == 0
    shown = capsys.readouterr()
    assert shown.out.count(" other ") == 2
    note = "computed by other code: 2, of 2; `opticoll study NAME --dry-run` says what would run again"
    assert shown.err.strip() == note
    assert collect(store).other_code == note
    assert main(["report", *folder, "--out", str(store.root / "page")]) == 0
    assert note in " ".join(capsys.readouterr().err.split())
    page = (store.root / "page" / "index.html").read_text()
    assert note in page
    assert page.count(">other<") == 2
    assert main(["results", *folder, "--json"]) == 0
    assert [row["same_code"] for row in json.loads(capsys.readouterr().out)] == [False, False]


def test_a_comparison_takes_and_marks_what_other_code_computed(
    tmp_path: Path, code: Change, capsys: pytest.CaptureFixture[str]
) -> None:
    study, folder = tmp_path / "s.toml", str(tmp_path / "store")
    study.write_text(
        'name = "s"\nformulations = ["alltoall.master"]\ninstances = ["ring:{4..5}"]\nmethods = ["highs-simplex"]\n'
    )
    command = ["compare", str(study), "--store", folder, "--json"]

    def compared() -> tuple[int, int, str | None]:
        capsys.readouterr()
        assert main(command) == 0
        printed = json.loads(capsys.readouterr().out)
        return printed["missing"], printed["classes"][0]["contestants"][0]["runs"], printed["other_code"]

    assert main(["study", str(study), "--store", folder]) == 0
    assert compared() == (0, 2, None)
    code("other")
    assert compared() == (0, 2, "computed by other code: 2, of 2")
    counts(Store(folder), TASKS[:1])
    assert compared() == (0, 2, "computed by other code: 1, of 2")
    assert main(command[:-1]) == 0
    assert "--dry-run` says what would run again" in capsys.readouterr().err


def test_records_of_unknown_code_are_marked(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    counts(store, TASKS[:1])
    (name,) = store.names()
    path = store.records / f"{name}.json"
    old = json.loads(path.read_bytes())
    for field in ("versions", "checksum"):
        del old[field]
    del old["environment"]["code"]
    body = json.dumps(old).encode()[:-1]
    path.write_bytes(body + b',"checksum":"' + schema._sum(body) + b'"}\n')
    assert store.sql("SELECT same_code FROM latest")["same_code"].isna().all()
    assert main(["results", "--store", str(store.root)]) == 0
    shown = capsys.readouterr()
    assert " unknown " in shown.out
    assert "computed by unknown code: 1, of 1" in shown.err
    assert counts(store, TASKS[:1]) == {"skipped": 1}  # its key is of this code


@pytest.mark.usefixtures("forgotten_plugins")
def test_rows_of_a_plug_in_are_marked_by_its_code(store: Store, tmp_path: Path) -> None:
    file, task = tmp_path / "mine.py", Task("alltoall.master", "ring:4", "mine")
    file.write_text(METHOD)
    oc.load_plugin(file)
    counts(store, [task])
    same = "SELECT same_code FROM runs"
    assert list(store.sql(same)["same_code"]) == [True]
    file.write_text(METHOD + "# another line\n")
    oc.load_plugin(file)
    assert list(store.sql(same)["same_code"]) == [False]
    assert reasons(store, [task]) == ["plug-in changed: mine.py"]


METHOD = """
from opticoll.solvers.methods.method import Answer, Method
from opticoll.solvers.task import Termination

METHOD = Method(
    name="mine", title="mine", summary="", serves=("alltoall.master",),
    run=lambda context: Answer(Termination.ERROR),
)
"""


def test_a_copy_of_the_package_runs_again_what_an_edit_may_change(tmp_path: Path) -> None:
    places = [tmp_path / "first", tmp_path / "second"]
    for place in places:  # with the bytecode, which saves compiling it again
        shutil.copytree(package_code.ROOT, place / "opticoll", ignore=shutil.ignore_patterns("*.nb[ci]"))
    for name in ("solvers/solve.py", "analysis/plots/style.py"):
        with (places[name.startswith("solvers")] / "opticoll" / name).open("a") as file:
            file.write("\n# another line\n")
    study = tmp_path / "s.toml"
    study.write_text(
        'name = "s"\nformulations = ["alltoall.master"]\ninstances = ["ring:4"]\nmethods = ["highs-simplex"]\n'
    )
    command = [sys.executable, "-m", "opticoll", "study", str(study), "--store", str(tmp_path / "store"), "--json"]
    ended = []
    for place in (package_code.ROOT.parent, *places):
        environment = {**os.environ, "PYTHONPATH": str(place)}
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, check=True)
        ended.append([json.loads(done.stdout)[status] for status in ("done", "skipped")])
    assert ended == [[1, 0], [0, 1], [1, 0]]


def reasons(store: Store, tasks: list[Task] = TASKS) -> list[str]:
    return [cell.reason or cell.status for cell in preview(study_of("study", tasks), store).cells]


def test_a_dry_run_says_what_would_run_and_why(
    store: Store, code: Change, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert reasons(store) == ["new", "new"]
    assert not store.root.exists()
    counts(store)
    assert reasons(store) == ["stored", "stored"]
    code("other")
    assert reasons(store) == ["code changed", "code changed"]
    code("")
    looser = [structs.replace(task, tol=1e-3) for task in TASKS]
    assert reasons(store, looser) == ["new", "new"]
    assert reasons(store, [*TASKS, looser[0]]) == ["stored", "stored", "new"]  # beside the cell of the other tolerance
    (known,) = set(store.sql("SELECT versions->>'highspy' AS v FROM latest")["v"])
    version = keys_of_runs.distribution_version
    with monkeypatch.context() as patch:
        for module in ("opticoll.solvers.resume_key", "opticoll.solvers.adapters.interface"):
            patch.setattr(f"{module}.distribution_version", lambda name: "9" if name == "highspy" else version(name))
        assert reasons(store) == [f"highspy {known} -> 9"] * 2
    record = store.read(str(store.sql("SELECT id FROM latest WHERE instance = 'ring:5'")["id"].item()))
    (store.solutions / str(record.solution)).unlink()
    assert reasons(store) == ["stored", "its solution file is missing, cut or changed"]
    (cell,) = study_of("study", looser[:1]).cells
    record_failure(CellJob(cell, store, "study"), "it died")
    assert reasons(store, looser[:1]) == ["no answer before: crashed"]
    network = tmp_path / "network.csv"
    for capacity in (1, 2):
        network.write_text(f"tail,head,capacity\n0,1,{capacity}\n1,2,1\n2,0,1\n")
        of_file = [Task("alltoall.master", f"file:{network}", "highs-simplex")]
        assert reasons(store, of_file) == ["new" if capacity == 1 else "the instance changed"]
        counts(store, of_file)
    traffic = tmp_path / "traffic.csv"
    of_traffic = [Task("alltoall.master", "ring:3", "highs-simplex", settings={"demand": f"file:{traffic}"})]
    for amount in (1, 2):
        traffic.write_text(f"0,{amount},1\n1,0,1\n1,1,0\n")
        assert reasons(store, of_traffic) == ["new" if amount == 1 else "file changed: demand"]
        counts(store, of_traffic)


def test_a_dry_run_by_command_and_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = tmp_path / "s.toml"
    study.write_text(
        'name = "s"\nformulations = ["alltoall.master"]\ninstances = ["ring:{3..5}"]\nmethods = ["highs-simplex"]\n'
    )
    command = ["study", str(study), "--dry-run", "--store", str(tmp_path / "store")]
    assert main([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["cells"], printed["stored"], printed["would_run"]) == (3, 0, 3)
    assert {cell["reason"] for cell in printed["plan"]} == {"new"}
    assert main(command) == 0
    assert "3: 0 stored, 3 would run" in capsys.readouterr().out
    table = oc.study(study, store=tmp_path / "store", dry_run=True)
    assert list(table["status"]) == ["would run"] * 3
    assert list(oc.study("alltoall.master", "ring:4", dry_run=True)["reason"]) == ["new"]
    assert [path.name for path in tmp_path.iterdir()] == ["s.toml"]


# solutions ------------------------------------------------------------------------------------------------------------


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def changed(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "executor"),
    [
        *((damage, InProcess) for damage in (Path.unlink, Path.touch, cut, changed)),
        (changed, partial(LocalProcesses, 1)),
    ],
)
def test_a_cell_whose_solution_is_lost_runs_again(
    damage: Callable[[Path], None],
    executor: Callable[[], InProcess],
    store: Store,
    caplog: pytest.LogCaptureFixture,
) -> None:
    study = study_of("study", TASKS)
    with executor() as first:
        run_study(study, store, first)
    victim = next(iter(store.solutions.glob("*.npz")))
    if damage is Path.touch:
        victim.write_bytes(b"")
    damage(victim)
    with executor() as second:
        summary = run_study(study, store, second)
    assert (summary.count("done"), summary.count("skipped")) == (1, 1)
    (warning,) = caplog.messages
    assert victim.name in warning
    with executor() as third:
        assert run_study(study, store, third).count("skipped") == 2


def test_only_the_size_of_a_large_solution_counts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MOST_MARKED", 100)
    counts(store, TASKS[:1])
    (victim,) = store.solutions.glob("*.npz")
    changed(victim)
    assert counts(store, TASKS[:1]) == {"skipped": 1}
    cut(victim)
    assert counts(store, TASKS[:1]) == {"done": 1}


# infeasible cells, and stores that are not there ----------------------------------------------------------------------


def test_a_proof_of_infeasibility_is_an_answer_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study, folder = tmp_path / "s.toml", str(tmp_path / "store")
    study.write_text(
        'name = "s"\nformulations = ["lumorph.rounds"]\ninstances = ["lightpath:2x2"]\nmethods = ["highs"]\n'
        'settings = {program = ["printed", "coded"], bounds = [false, true]}\n'
    )
    assert main(["study", str(study), "--store", folder, "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["done"], summary["failed"]) == (4, 0)
    findings = collect(Store(folder))
    assert (len(findings.infeasible), len(findings.failures)) == (2, 0)
    assert main(["compare", str(study), "--store", folder, "--json"]) == 0
    (programs,) = json.loads(capsys.readouterr().out)["classes"]
    assert [(row["solved"], row["failed"]) for row in programs["contestants"]] == [(4, 0)]
    assert main(["compare", str(study), "--store", folder, "--time", "solver"]) == 2
    assert "--time solve" in capsys.readouterr().err
    assert main(["report", "--store", folder, "--out", str(tmp_path / "page")]) == 0
    assert "2 cells proven infeasible" in capsys.readouterr().err
    assert (tmp_path / "page" / "index.html").read_text().count("✓ infeasible") == 2


READERS = (["results"], ["report"], ["figure", "lumorph-5"], ["claims", "--cached"])


@pytest.mark.parametrize("command", READERS, ids=lambda command: command[0])
@pytest.mark.parametrize("there", [False, True])
def test_a_named_store_that_is_none_is_refused(
    command: list[str], there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if there:
        (tmp_path / "nothere").mkdir()
        (tmp_path / "nothere" / "thesis.tex").touch()
    assert main([*command, "--store", "nothere"]) == 2
    assert "nothere: " in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["nothere", "thesis.tex"] * there
    with pytest.raises(oc.BadInput, match="nothere"):
        oc.figure("lumorph-5", store="nothere")
