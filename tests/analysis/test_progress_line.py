"""Long solves say how far they have come: time, incumbent, bound and gap."""

from __future__ import annotations

import math
import os
import re
import signal
import threading

import pytest

import opticoll as oc
from opticoll.analysis.cli import output
from opticoll.analysis.cli.main import main
from opticoll.analysis.result import interruption, progress_line
from opticoll.analysis.result.progress_line import PlainLines, ProgressLine
from opticoll.solvers import solve as runner
from opticoll.solvers.plan import make_plan
from opticoll.solvers.process.budget import Budget
from opticoll.solvers.task import Task


def test_a_line_names_what_is_known(monkeypatch):
    monkeypatch.setattr(progress_line, "FIRST_S", 0.001)
    monkeypatch.setattr(progress_line, "MOST_S", 0.001)
    said, enough = [], threading.Event()

    def say(line):
        said.append(line)
        if len(said) >= 2 and "gap" in line:
            enough.set()

    with ProgressLine("model ring:4", PlainLines(say)) as line:
        assert "no incumbent yet, no bound yet" in line.text()
        line({"objective": 8.0, "bound": None, "elapsed_s": 0.0})
        line({"objective": None, "bound": 6.0, "elapsed_s": 0.0})
        assert enough.wait(60)
    assert said[-1].startswith("model ring:4: ")
    assert said[-1].endswith(" s, incumbent 8, bound 6, gap 25.00%")
    count = len(said)
    assert count == len(said), "it is silent after the solve"


def test_where_nothing_is_searched_for_the_time_is_shown():
    with ProgressLine("writing", PlainLines(print), searches=False) as line:
        assert re.fullmatch(r"\d+ s", line.text())


def test_a_schedule_that_takes_long_shows_the_time(monkeypatch, tmp_path):
    said, enough, write = [], threading.Event(), oc.Result.write

    def say(line):
        said.append(line)
        if "writing" in line:
            enough.set()

    def slowly(result, outputs):
        assert enough.wait(60)
        return write(result, outputs)

    monkeypatch.setattr(progress_line, "FIRST_S", 0.001)
    monkeypatch.setattr(output, "notify", say)
    monkeypatch.setattr(oc.Result, "write", slowly)
    run = ["solve", "alltoall.master", "ring:4", "--no-store", "--schedule", str(tmp_path / "s.json")]
    assert main(run) == 0
    assert any(re.fullmatch(r"alltoall.master ring:4: writing: \d+ s", line) for line in said)


def test_values_of_the_formulation_that_gives_the_data_are_named_as_such(monkeypatch):
    class Ended(Exception):
        pass

    def tell(task, instance, budget, *_, **__):
        budget.on_progress({"objective": 32.0, "bound": None, "elapsed_s": 0.0})
        raise Ended

    line = ProgressLine("", PlainLines(print))
    task = Task("alltoall.virtual-channels", "ring:4")
    plan = make_plan(task)
    monkeypatch.setattr(runner, "_solve", tell)
    with pytest.raises(Ended):
        runner.solve_needed(task, plan.instance, plan, Budget(task, None, line))
    assert line.text().endswith(" s, first alltoall.min-congestion, incumbent 32, no bound yet")
    line({"objective": None, "bound": 2.0, "elapsed_s": 0.0})
    assert line.text().endswith(" s, no incumbent yet, bound 2")


def test_the_gap_of_zero_is_not_divided_by():
    line = ProgressLine("", PlainLines(print))
    line({"objective": 0.0, "bound": -1.0, "elapsed_s": 0.0})
    assert line.text().endswith("incumbent 0, bound -1")


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_the_command_line_shows_it_on_stderr_and_not_beside_json(monkeypatch, capsys, words):
    monkeypatch.setattr(progress_line, "FIRST_S", 0.001)
    slowly(monkeypatch)
    assert main(["solve", "alltoall.min-congestion", "ring:4", "--no-store", *words]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "incumbent" in line]
    assert bool(lines) == (not words)
    assert all(line.startswith("opticoll: alltoall.min-congestion ring:4: ") for line in lines)


class Watched:
    """A place that keeps the lines it is given."""

    waits = 0.001, 0.001, 0.001

    def __init__(self):
        self.lines, self.cleared = [], False

    def show(self, line):
        self.lines.append(line)

    def clear(self):
        self.cleared = True


def slowly(monkeypatch):
    solve = runner.solve

    def slow(task, **options):
        run = solve(task, **options)
        threading.Event().wait(0.1)
        return run

    monkeypatch.setattr(runner, "solve", slow)


def test_python_shows_it_where_somebody_watches(monkeypatch):
    slowly(monkeypatch)
    place = Watched()
    monkeypatch.setattr(progress_line, "in_notebook", lambda: True)
    monkeypatch.setattr(progress_line, "RedrawnLine", lambda: place)
    oc.solve("alltoall.min-congestion", "ring:4", on_progress=lambda progress: None)
    assert not place.lines
    oc.solve("alltoall.min-congestion", "ring:4")
    assert place.cleared
    assert any("incumbent" in line for line in place.lines)


def test_a_script_is_silent(monkeypatch, capsys, caplog):
    slowly(monkeypatch)
    oc.solve("alltoall.min-congestion", "ring:4")
    assert capsys.readouterr() == ("", "")
    assert not caplog.records


def test_a_session_keeps_what_was_found_on_ctrl_c(monkeypatch, capsys):
    monkeypatch.setattr(interruption, "interactive", lambda: True)
    pressed = []

    def press(progress):
        if progress["objective"] is not None and not pressed:
            pressed.append(progress["objective"])
            os.kill(os.getpid(), signal.SIGINT)

    result = oc.solve("topology.design", "servers:n=24,degree=3", on_progress=press, time_limit=120)
    assert pressed
    assert result.termination == "interrupted"
    assert result.verified
    assert result.bound is not None
    assert "the incumbent is kept" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_script_ends_on_ctrl_c():
    assert not interruption.interactive()
    with interruption.stoppable_here(None) as stop:
        assert stop is None


KERNEL = """
import opticoll as oc
result = oc.solve("topoopt.topology", "servers:n=8,degree=2,traffic=random,seed=1", method="highs", time_limit=300)
print("ended", result.termination, result.verified, result.gap is not None)
"""


@pytest.mark.slow
def test_the_stop_button_of_a_notebook_keeps_what_was_found():
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    shown, printed = [], ""
    try:
        client.execute(KERNEL)
        while True:
            message = client.get_iopub_msg(timeout=120)
            kind, content = message["header"]["msg_type"], message["content"]
            if kind in {"display_data", "update_display_data"}:
                shown.append(content["data"]["text/plain"])
                if len([line for line in shown if "incumbent" in line and "no incumbent" not in line]) == 2:
                    manager.interrupt_kernel()
                    shown.append("")
            elif kind == "stream" and content["name"] == "stdout":
                printed += content["text"]
            elif kind == "error":
                raise AssertionError(content["evalue"])
            elif kind == "status" and content["execution_state"] == "idle" and printed:
                break
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    assert printed.strip() == "ended interrupted True True"
    assert any("incumbent" in line for line in shown)
    assert shown[-1] == ""


def test_ctrl_c_again_within_two_seconds_ends_the_loop_around_the_solves(monkeypatch):
    monkeypatch.setattr(interruption, "_last_stop", -1e9)
    said = []
    with interruption.stoppable(said.append) as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(5)
    assert "within 2 s ends what runs around this solve" in said[0]
    with interruption.stoppable(said.append), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    monkeypatch.setattr(interruption, "_last_stop", interruption._last_stop - 3.0)
    with interruption.stoppable(said.append) as stop:  # later it is a first one again
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_line_is_written_stops_the_solve_and_is_said_afterwards(number, monkeypatch):
    monkeypatch.setattr(interruption, "_last_stop", -math.inf)
    said, written, here = [], threading.Event(), threading.current_thread()

    def notify(line):
        if threading.current_thread() is here:  # as Python's streams do
            msg = "reentrant call inside <_io.BufferedWriter name='<stderr>'>"
            raise RuntimeError(msg)
        said.append(line)
        written.set()

    with interruption.stoppable(notify) as stop:
        signal.raise_signal(number)
        assert stop.is_set()
    assert written.wait(60)
    assert "the incumbent is kept" in said[0]
