"""One current answer to every task: earlier versions are marked in ``runs``, ``latest``, ``results`` and the report."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec import structs

import opticoll as oc
from opticoll.analysis.cli.main import main
from opticoll.analysis.report.findings import best_runs, collect
from opticoll.analysis.store import Store
from opticoll.analysis.study.running import run_study
from opticoll.analysis.study.study_file import study_of
from opticoll.solvers.process.executor import InProcess
from opticoll.solvers.run import Run
from opticoll.solvers.task import Record, Requested, digest

START = datetime(2026, 1, 1, tzinfo=UTC)


def save(store: Store, task: oc.Task, version: str, value: float | None, day: int, **changes: object) -> None:
    """A record of a task under one version of everything, finished on one day."""
    known = {
        "key": digest({"task": str(task), "version": version}),
        "formulation": task.formulation,
        "sense": "max",
        "instance": task.instance,
        "instance_hash": "h",
        "method": task.method,
        "requested": Requested.of(task),
        "termination": "optimal" if value is not None else "crashed",
        "objective": value,
        "bound": value,
        "gap": 0.0,
        "verified": value is not None,
        "proof": "optimal" if value is not None else "none",
        "settings": {},
        "metrics": {},
        "solver": {"version": version},
        "n": 8,
        "arcs": 16,
    }
    record = Record.read({**known, **changes})
    store.save(Run(task, record), finished=START + timedelta(days=day))


def current(store: Store) -> list[float]:
    return list(store.sql("SELECT objective FROM latest WHERE NOT superseded ORDER BY objective")["objective"])


TASK = oc.Task("alltoall.master", "ring:8", "highs-simplex")


def test_the_latest_version_of_a_task_is_current(store: Store) -> None:
    for day, (version, value) in enumerate((("1", 0.5), ("2", 0.25), ("2", 0.25))):
        save(store, TASK, version, value, day)
    save(store, structs.replace(TASK, seed=1), "1", 0.125, 0)
    assert current(store) == [0.125, 0.25]
    latest = store.sql("SELECT objective, superseded FROM latest ORDER BY objective").to_numpy().tolist()
    assert latest == [[0.125, False], [0.25, False], [0.5, True]]
    assert store.sql("SELECT count(*) AS n FROM runs WHERE superseded")["n"].item() == 1


OTHERS = {
    "tol": 1e-3,
    "seed": 1,
    "threads": 1,
    "repetition": 1,
    "exact": True,
    "time_limit_s": 3.0,
    "memory_limit_gib": 2.0,
    "form": "pyomo",
    "settings": {"k": 2},
    "method": "clarabel",
    "instance": "ring:9",
    "formulation": "alltoall.sccl",
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_task_supersedes_nothing(name: str, store: Store) -> None:
    save(store, TASK, "1", 0.5, 0)
    save(store, structs.replace(TASK, **{name: OTHERS[name]}), "2", 0.25, 1)
    assert current(store) == [0.25, 0.5]


def test_a_failed_run_of_a_new_version_supersedes_the_old_answer(store: Store) -> None:
    save(store, TASK, "1", 0.5, 0)
    save(store, TASK, "2", None, 1)
    assert store.sql("SELECT termination, superseded FROM latest ORDER BY superseded").to_numpy().tolist() == [
        ["crashed", False],
        ["optimal", True],
    ]


@pytest.mark.parametrize("word", ["unavailable", "refused"])
def test_a_run_that_was_not_tried_supersedes_nothing(word: str, store: Store) -> None:
    save(store, TASK, "1", 0.5, 0)
    save(store, TASK, "2", None, 1, termination=word)
    assert current(store) == [0.5]
    save(store, structs.replace(TASK, seed=3), "2", None, 1, termination=word)
    assert len(store.sql("FROM latest WHERE NOT superseded")) == 2


def test_contents_of_files_are_versions_and_contents_of_python_objects_are_tasks(store: Store) -> None:
    for number, instance in enumerate(("file:net.json", "file:net.json", "custom:aaa", "custom:aaa")):
        changes = {"instance": instance, "instance_hash": f"h{number}"}
        save(store, TASK, str(number), number / 8, number, **changes)
    assert current(store) == [1 / 8, 2 / 8, 3 / 8]
    for number, pin in enumerate(("ab", "cd")):
        task = structs.replace(TASK, settings={"demand": f"file:d.csv#sha256={pin}", "k": 1})
        save(store, task, str(number), 4.0 + number, number)
    assert current(store)[3:] == [5.0]


def test_results_and_report_show_the_current_answer_and_mark_the_others(
    store: Store, tmp_path: Path, capfd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("opticoll.analysis.papers.report_section.figures", tuple)  # other tests draw these
    folder = ["--store", str(store.root)]
    save(store, TASK, "1", 0.5, 0)
    assert main(["results", *folder]) == 0
    assert "superseded" not in capfd.readouterr().out
    assert collect(store).omitted is None
    save(store, TASK, "2", 0.25, 1)
    assert main(["results", *folder]) == 0
    old, new = (line for line in capfd.readouterr().out.splitlines() if "ring:8" in line)
    assert ("superseded" in old, "superseded" in new) == (True, False)
    assert ("0.5" in old, "0.25" in new) == (True, True)
    assert main(["results", "--json", *folder]) == 0
    assert [row["superseded"] for row in json.loads(capfd.readouterr().out)] == [True, False]
    assert main(["report", "--out", str(tmp_path / "out"), *folder]) == 0
    printed, written = "".join(capfd.readouterr()), (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    for text in (printed, written):
        assert "1 result is superseded by another version" in text
        assert "FROM latest WHERE superseded" in text
    findings = collect(store)
    assert (list(findings.results["objective"]), findings.superseded) == ([0.25], 1)
    assert list(best_runs(store)["objective"]) == [0.25]
    assert len(best_runs(store, superseded=True)) == 2


def test_a_damaged_note_is_skipped_with_a_warning(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    save(store, TASK, "1", 0.5, 0)
    save(store, TASK, "2", 0.25, 1)
    (store.root / "confirmed").mkdir()
    (store.root / "confirmed" / "a.json").write_text('{"at": 3}')
    assert current(store) == [0.25]
    assert "confirmed/a.json" in caplog.text
    store.confirm(store.sql("SELECT id FROM runs WHERE objective = 0.5")["id"])
    assert current(store) == [0.5]


def test_a_study_makes_its_answers_current_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change is taken back, what the study finds in the store is current, not what was run last."""
    versions = {"highspy": "1"}
    for module in ("opticoll.solvers.resume_key", "opticoll.solvers.adapters.interface"):
        monkeypatch.setattr(f"{module}.distribution_version", lambda name: versions.get(name, "0"))
    said = []
    for version in ("1", "2", "1"):
        versions["highspy"] = version
        study = study_of("mine", [TASK])
        summary = run_study(study, store, InProcess())
        said.append((summary.count("done"), summary.count("skipped")))
        (key,) = store.sql("SELECT key FROM latest WHERE NOT superseded")["key"]
        assert key == study.cells[0].key
    assert said == [(1, 0), (1, 0), (0, 1)]
