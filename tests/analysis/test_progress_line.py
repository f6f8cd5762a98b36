"""Long solves say how far they have come: time, incumbent, bound and gap."""

from __future__ import annotations

import logging
import threading

import pytest

import opticoll as oc
from opticoll.analysis import progress_line
from opticoll.analysis.cli.main import main
from opticoll.analysis.progress_line import ProgressLine
from opticoll.solvers import solve as runner


def test_a_line_names_what_is_known(monkeypatch):
    monkeypatch.setattr(progress_line, "FIRST_S", 0.001)
    monkeypatch.setattr(progress_line, "MOST_S", 0.001)
    said, enough = [], threading.Event()

    def say(line):
        said.append(line)
        if len(said) >= 2 and "gap" in line:
            enough.set()

    with ProgressLine("model ring:4", say) as line:
        assert "no incumbent yet, no bound yet" in line.text()
        line({"objective": 8.0, "bound": None, "elapsed_s": 0.0})
        line({"objective": None, "bound": 6.0, "elapsed_s": 0.0})
        assert enough.wait(60)
    assert said[-1].startswith("model ring:4: ")
    assert said[-1].endswith(" s, incumbent 8, bound 6, gap 25.00%")
    count = len(said)
    assert count == len(said), "it is silent after the solve"


def test_the_gap_of_zero_is_not_divided_by():
    line = ProgressLine("", print)
    line({"objective": 0.0, "bound": -1.0, "elapsed_s": 0.0})
    assert line.text().endswith("incumbent 0, bound -1")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_the_command_line_shows_it_on_stderr_and_not_beside_json(monkeypatch, capsys, words):
    monkeypatch.setattr(progress_line, "FIRST_S", 0.001)
    solve = runner.solve

    def slow(task, **options):
        run = solve(task, **options)
        threading.Event().wait(0.1)
        return run

    monkeypatch.setattr(runner, "solve", slow)
    assert main(["solve", "alltoall.min-congestion", "ring:4", "--no-store", *words]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "incumbent" in line]
    assert bool(lines) == (not words)
    assert all(line.startswith("opticoll: alltoall.min-congestion ring:4: ") for line in lines)


def test_python_logs_it_unless_the_caller_watches(monkeypatch, caplog):
    monkeypatch.setattr(progress_line, "FIRST_S", 0.001)
    solve = runner.solve

    def slow(task, **options):
        run = solve(task, **options)
        threading.Event().wait(0.1)
        return run

    monkeypatch.setattr(runner, "solve", slow)
    with caplog.at_level(logging.WARNING, logger="opticoll"):
        oc.solve("alltoall.min-congestion", "ring:4", on_progress=lambda progress: None)
        assert not caplog.records
        oc.solve("alltoall.min-congestion", "ring:4")
    assert any("incumbent" in record.message for record in caplog.records)
