"""Many jobs: each has its own result or failure."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from typing import Any

import psutil
import pytest

from opticoll.errors import BadInput, BadOption, SolverUnavailable
from opticoll.solvers.process.executor import Executor, InProcess, JobCrashed, LocalProcesses, make_executor


def work(item: Any) -> Any:
    if item == "die":
        os.abort()
    if item == "raise":
        raise ValueError(item)
    if item == "unsendable":
        return lambda: None
    if isinstance(item, float):
        time.sleep(item)
    return item, os.getpid()


def leave(item: int) -> int:
    os._exit(item)


@pytest.mark.parametrize("executor", [InProcess(), LocalProcesses(2)], ids=["in-process", "local"])
def test_every_item_is_answered_once_by_its_result_or_exception(executor: Executor) -> None:
    items = [0, 1, "raise", 3, 4, 5]
    with executor:
        answers = list(executor.map_unordered(work, items))
    outcome = dict(answers)
    assert len(answers) == len(outcome) == len(items)
    assert isinstance(outcome.pop(2), ValueError)
    assert {index: result[0] for index, result in outcome.items()} == {index: index for index in (0, 1, 3, 4, 5)}
    assert list(executor.map_unordered(work, [])) == []


def test_dead_process_costs_only_its_own_job() -> None:
    with LocalProcesses(2) as executor:
        result = dict(executor.map_unordered(work, [0, "die", 2, "unsendable", 4]))
    assert isinstance(result[1], JobCrashed)
    assert "cannot be sent back" in str(result[3])
    assert [result[index][0] for index in (0, 2, 4)] == [0, 2, 4]


def test_processes_are_reused() -> None:
    with LocalProcesses(1) as executor:
        pids = {result[1] for _, result in executor.map_unordered(work, range(5))}
    assert len(pids) == 1
    assert os.getpid() not in pids


def below(known: set[psutil.Process]) -> list[psutil.Process]:
    """The processes below this one but for those known, and what those have forked meanwhile."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            # Python's own resource tracker stays for the life of this process.
            if not {process, process.parent()} & known and "resource_tracker" not in str(process.cmdline()):
                found.append(process)
    return found


def test_leaving_early_leaves_no_process() -> None:
    earlier = set(psutil.Process().children(recursive=True))
    with LocalProcesses(2) as executor:
        for _ in executor.map_unordered(work, [0, 600.0, 600.0]):
            running = below(earlier)
            assert running
            break
    _, alive = psutil.wait_procs(running, timeout=240)
    assert not alive


def test_what_cannot_be_sent_is_refused() -> None:
    with LocalProcesses(1) as executor, pytest.raises(BadOption, match="functions of modules"):
        next(executor.map_unordered(work, [threading.Lock()]))


def test_a_function_that_no_module_defines_is_sent_with_its_code() -> None:
    with LocalProcesses(1) as executor:
        assert list(executor.map_unordered(lambda item: 2 * item, [4])) == [(0, 8)]


def test_make_executor() -> None:
    assert isinstance(make_executor(), InProcess)
    assert isinstance(make_executor(1), InProcess)
    assert make_executor(3).jobs == 3
    with pytest.raises(BadInput, match="at least 1"):
        make_executor(0)
    with pytest.raises(BadOption, match="mutually exclusive"):
        make_executor(2, "tcp://localhost:8786")


def test_dask_without_its_package_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(SolverUnavailable, match=r"pip install .\.\[cluster\]") as caught:
        make_executor(dask="tcp://localhost:8786")
    assert caught.value.exit_status == 4
