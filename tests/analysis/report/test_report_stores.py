"""`report` and `results` on the smallest stores there are: empty, one default solve, nothing but failures."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cases import PROBLEMS, first_case, first_result
from matplotlib.figure import Figure
from msgspec import structs

from opticoll.analysis.cli.main import main
from opticoll.analysis.report import drawings
from opticoll.analysis.store import Store
from opticoll.analysis.study.cells import failed_run
from opticoll.analysis.study.study_file import Cell
from opticoll.formulations import formulations
from opticoll.instances import parse
from opticoll.solvers.run import Run
from opticoll.solvers.solve import solve
from opticoll.solvers.task import Record, Task, Termination

FAILURES = ("unavailable", "refused", "error", "crashed", "interrupted", "time-limit", "infeasible")
#: A missing value that was written as if it were one.
UNWRITTEN = re.compile(r"\b(nan|NaN|NaT|<NA>)\b|\bNone\b(?!: every| of)")


@pytest.fixture(scope="module", autouse=True)
def few_figures() -> Any:
    """Draw the figures of the store and write no images of them: test_paper_figures and test_report do the rest."""

    def drawing(figure: Figure) -> str:
        figure.set_layout_engine("none")  # it takes most of the time, and the other two tests lay figures out
        figure.draw_without_rendering()
        return "<svg></svg>"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawings, "drawing", drawing)
        yield


def page_and_rows(store: Store, out: Path, capfd: pytest.CaptureFixture[str]) -> tuple[str, list[dict[str, Any]]]:
    """Run ``results``, ``results --csv``, ``results --json`` and ``report``; the page, and the rows of the JSON."""
    folder = ["--store", str(store.root)]
    assert main(["results", *folder]) == 0
    assert main(["results", "--csv", *folder]) == 0
    capfd.readouterr()
    assert main(["results", "SELECT * FROM runs", "--json", *folder]) == 0
    rows: list[dict[str, Any]] = json.loads(capfd.readouterr().out)
    status = main(["report", "--out", str(out), *folder])
    output = capfd.readouterr()
    assert status == 0
    assert output.err.endswith(f"wrote {out / 'index.html'}\n")
    page = (out / "index.html").read_text(encoding="utf-8")
    for words in (output.out, output.err, re.sub(r"<(svg|style|script)\b.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL)):
        assert not UNWRITTEN.search(words), UNWRITTEN.search(words)
    return page, rows


def save(store: Store, run: Run) -> list[str]:
    """Save a run; its record's id, then that of the run it needed."""
    own = store.save(run)
    needed = store.read(own).needed
    return [own] if needed is None else [own, str(needed.id)]


def failure(name: str, termination: str, facts: dict[str, Any], message: str = "") -> Run:
    """A run without an answer, as a study records it: a task of its own, told apart by its seed."""
    seed = 2 * sorted(FAILURES).index(termination) + bool(facts)
    spec = first_case(name)[0]
    cell = Cell(Task(name, spec, "highs", seed=seed), f"{name} {termination} {bool(facts)}", spec)
    run = failed_run(cell, Termination(termination), message)
    return replace(run, record=structs.replace(run.record, key=cell.key, **facts))


def test_an_empty_store(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "store")
    store.records.mkdir(parents=True)
    assert main(["results", "--store", str(store.root)]) == 0
    assert main(["report", "--out", str(tmp_path / "out"), "--store", str(store.root)]) == 0
    assert "This store is empty" in (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert not any(store.records.iterdir())


def test_one_default_solve(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A formulation that needs the run of another, alone in a store."""
    store, name = Store(tmp_path / "store"), "alltoall.child"
    saved = save(store, first_result(name))
    page, rows = page_and_rows(store, tmp_path / "out", capfd)
    result = sorted((row["id"], row["formulation"], row["proof"]) for row in rows)
    assert result == sorted(zip(saved, [name, "alltoall.master"], ["optimal"] * 2, strict=True))
    assert name in page
    assert "Every cell has a value that our own checker verified." in page


def test_one_default_solve_of_every_formulation(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawings, "drawing", lambda figure: "<svg></svg>")  # drawn alone above
    store = Store(tmp_path / "store")
    saved = {record for name in PROBLEMS for record in save(store, first_result(name))}
    assert len(saved) == len(PROBLEMS) + sum(formulations()[name]._needs is not None for name in PROBLEMS)
    page, rows = page_and_rows(store, tmp_path / "out", capfd)
    assert sorted(row["id"] for row in rows) == sorted(saved)
    # A needed run may be one of the cells solved here: the table has the latest record of each.
    shown = set(pd.read_csv(tmp_path / "out" / "tables" / "results.csv")["id"])
    assert shown == set(store.sql()["id"])
    assert all(name in page for name in PROBLEMS)
    headings = re.findall(r'<h3 id="paper-([a-z]+)">', page)
    assert headings
    assert len(headings) == len(set(headings)), "each paper once"
    points = set(re.findall(r"tables/paper-[\w-]+\.csv", page))
    assert points == {f"tables/{path.name}" for path in (tmp_path / "out" / "tables").glob("paper-*.csv")}


def test_failures_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    store = Store(tmp_path / "store")
    names = ("alltoall.master", "lumorph.rounds", "optree.tree", "sipml.placement", "topoopt.topology")
    for name in names:
        instance = parse(first_case(name)[0])
        known = {"n": instance.n, "arcs": getattr(instance, "arcs", None), "instance_hash": instance.hash}
        for termination in FAILURES:
            for facts in (known, {}):
                store.save(failure(name, termination, facts))
    page, rows = page_and_rows(store, tmp_path / "out", capfd)
    total = 2 * len(FAILURES) * len(names)
    assert len(rows) == total
    assert f"{total} of {total} cells have no verified value" in page


def test_an_interrupted_solve_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stop = threading.Event()
    stop.set()
    store = Store(tmp_path / "store")
    store.save(solve(Task("alltoall.master", "ring:3"), stop=stop))
    page, rows = page_and_rows(store, tmp_path / "out", capfd)
    assert [row["termination"] for row in rows] == ["interrupted"]
    assert "1 of 1 cells have no verified value" in page


def test_a_record_with_nothing_but_its_key(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Every field that a record may leave unknown is unknown, and every map is empty."""
    store = Store(tmp_path / "store")
    task = Task("alltoall.master", "ring:3")
    named = {"formulation": task.formulation, "instance": task.instance, "method": "highs"}
    maps = {key: {} for key in ("solver", "kkt", "metrics", "settings", "violations", "time", "size", "requested")}
    for number, content in enumerate(
        ({}, maps, {**maps, "incumbents": [], "verified": True, "termination": "optimal"})
    ):
        record = {"key": f"{number}", **named, **content}
        store.save(Run(task, Record.read(record)))
    _, rows = page_and_rows(store, tmp_path / "out", capfd)
    assert len(rows) == 3
