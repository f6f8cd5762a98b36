"""Whatever a worker does, its caller gets an answer and nothing is left behind."""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import scipy.sparse as sp

from opticoll import plugins, shared_files
from opticoll.errors import BadOption, SolverUnavailable
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.adapters import adapter
from opticoll.solvers.process import isolation, memory, processes
from opticoll.solvers.process import worker as worker_module
from opticoll.solvers.process.isolation import WorkerAnswer, call_isolated, solve_isolated
from opticoll.solvers.process.messages import Inbox, Report, send
from opticoll.solvers.process.worker_main import may_stay
from opticoll.solvers.task import SolveRequest, Termination

#: Jobs for workers, in a module of its own that imports little.
HERE = "worker_jobs"


# Helpers -------------------------------------------------------------------------------------------------------


def gone(pid: int, within_s: float = 240.0) -> bool:
    end = time.perf_counter() + within_s
    while time.perf_counter() < end:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def kill_workers() -> None:
    """Kill the workers that do a job."""
    idle = [psutil.Process(worker.process.pid) for worker in waiting()]
    spared = {process for worker in idle for process in (worker, *worker.children(recursive=True))}
    for child in set(psutil.Process().children(recursive=True)) - spared:
        try:
            if any("opticoll.solvers.process.worker" in word for word in child.cmdline()):
                child.kill()
        except psutil.NoSuchProcess:  # it has ended, perhaps by an earlier call
            continue


@pytest.fixture(autouse=True)
def own_scratch(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Scratch folders of each test in a place of their own, empty at the end."""
    place = tmp_path_factory.mktemp("scratch")
    monkeypatch.setenv(shared_files.SCRATCH, str(place))
    yield place
    assert list(place.iterdir()) == []


def misbehaving(how: str, **limits: Any) -> WorkerAnswer:
    return call_isolated(f"{HERE}:misbehave", {"how": how}, **limits)


def killed_at_a_wall_limit(function: str, arguments: dict[str, Any], message: str) -> WorkerAnswer:
    """What a hanging worker leaves; the limit grows until a worker on a busy machine had printed ``message``."""
    for limit in (0.8, 3.0, 12.0, 48.0, 192.0):
        answer = call_isolated(f"{HERE}:{function}", arguments, wall_limit_s=limit)
        assert answer.ending == Termination.TIME_LIMIT
        assert answer.wall_s >= limit
        if message in answer.values:
            break
    return answer


def kept(answer: WorkerAnswer) -> bool:
    """The last report survived: the new bound, and the incumbent before it."""
    values = dict(answer.values)
    return np.array_equal(values.pop("x"), [0.0, 1.0, 2.0]) and values == {"objective": 5.0, "bound": 8.0}


def knapsack(rows: int = 30, size: int = 100) -> StandardForm:
    rng = np.random.default_rng(1)
    A = rng.integers(1, 1000, (rows, size)).astype(float)
    value = A.mean(axis=0).round() + rng.integers(0, 500, size)
    zeros, ones = np.zeros(size), np.ones(size)
    lower, upper = np.full(rows, -np.inf), A.sum(axis=1) // 2
    return StandardForm(sp.csc_array(A), lower, upper, zeros, ones, value, "max", 0.0, ones.astype(bool))


def need(*names: str) -> None:
    for name in names:
        if not adapter(name).installed():
            pytest.skip(f"{adapter(name).distribution} is not installed")


# Answers -------------------------------------------------------------------------------------------------------


def test_arguments_and_arrays_cross_both_ways() -> None:
    answer = call_isolated(f"{HERE}:double", {"value": 21, "x": np.arange(4.0), "none": np.zeros((0, 3))})
    assert answer.finished
    assert answer.values["twice"] == 42
    assert answer.values["pid"] != os.getpid()
    np.testing.assert_array_equal(answer.values["x"], 2 * np.arange(4.0))
    assert (answer.peak_memory_mb or 0) > 5


def test_a_caller_may_have_closed_the_standard_streams(tmp_path: Path) -> None:
    found = tmp_path / "found"
    code = (
        "import os, opticoll as oc; [os.close(number) for number in range(3)];"
        f"open({str(found)!r}, 'w').write(str(oc.solve('alltoall.link-mcf', 'ring:4', method='highs').termination))"
    )
    subprocess.run([sys.executable, "-c", code], check=False, timeout=90)
    assert found.read_text(encoding="utf-8") == "optimal"


def test_a_caller_may_have_very_many_files_open() -> None:
    code = (
        "import os, resource, opticoll as oc\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (1500, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))\n"
        "files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]\n"
        "print(oc.solve('alltoall.link-mcf', 'ring:4', method='highs').termination)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.stdout == "optimal\n", done.stderr


def test_peak_memory_is_the_workers_not_ours() -> None:
    ballast = np.ones(30_000_000)  # 240 MB here
    answer = call_isolated(f"{HERE}:double", {"value": 1, "x": np.arange(4.0)})
    assert ballast.size
    assert answer.peak_memory_mb is not None
    assert answer.peak_memory_mb < 200


def test_thread_pools_get_their_size() -> None:
    assert call_isolated(f"{HERE}:environment", {}, threads=3).values == {"threads": "3"}


@pytest.mark.parametrize(
    ("how", "words"), [("abort", ["SIGABRT", "last words"]), ("kill", ["SIGKILL"]), ("exit", ["7"])]
)
def test_crash_keeps_the_last_report(how: str, words: list[str]) -> None:
    answer = misbehaving(how)
    assert answer.ending == Termination.CRASHED
    for word in words:
        assert word in answer.message
    assert kept(answer)


def test_exception_is_an_error_with_its_text() -> None:
    answer = misbehaving("raise")
    assert answer.ending == Termination.ERROR
    assert answer.message == "ValueError: raise"
    assert kept(answer)


def test_hang_is_killed_at_the_wall_limit() -> None:
    answer = killed_at_a_wall_limit("misbehave", {"how": "hang"}, message="objective")
    assert answer.values["objective"] == 5.0
    np.testing.assert_array_equal(answer.values["x"], [0.0, 1.0, 2.0])


def test_a_large_job_of_a_worker_that_never_imports_its_modules_ends_at_its_limit() -> None:
    answer = call_isolated(
        f"{HERE}:double", {"value": 1, "x": np.zeros(2**20)}, wall_limit_s=1.5, modules=("signal:pause",)
    )
    assert answer.ending == Termination.TIME_LIMIT


def test_a_worker_that_dies_before_it_takes_its_job_does_not_end_a_caller_who_heeds_sigpipe() -> None:
    code = (
        "import signal, numpy; from opticoll.solvers.process.isolation import call_isolated\n"
        "signal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
        "job = {'x': numpy.zeros(2**22)}\n"
        "print(call_isolated('worker_jobs:double', job, modules=('os:abort',)).ending)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.stdout == "crashed\n", (done.returncode, done.stderr)


@pytest.mark.parametrize("how", ["grow", "leap", "child grows"])
def test_memory_hog_is_stopped(how: str) -> None:
    answer = misbehaving(how, memory_limit_gib=0.3, wall_limit_s=240)
    assert answer.ending == Termination.MEMORY_LIMIT, answer.message
    assert kept(answer)


def test_without_a_limit_a_job_is_stopped_when_it_leaves_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    end = memory.available_bytes() - 2**29  # the machine seems to have half a gigabyte
    monkeypatch.setattr(memory, "available_bytes", lambda: max(psutil.virtual_memory().available - end, 0.0))
    answer = misbehaving("grow", wall_limit_s=240)
    assert answer.ending == Termination.MEMORY_LIMIT, answer.message
    assert "because this machine has no more" in answer.message
    assert kept(answer)


def test_stop_from_another_thread() -> None:
    stop = threading.Event()
    seen: list[dict[str, Any]] = []

    def on_progress(values: dict[str, Any]) -> None:
        seen.append(values)
        if "objective" in values:  # the first report may be seen before the second is written
            stop.set()

    answer = call_isolated(f"{HERE}:misbehave", {"how": "hang"}, stop=stop, on_progress=on_progress)
    assert answer.ending == Termination.INTERRUPTED
    assert seen[-1]["objective"] == 5.0


def test_a_stop_set_before_the_call_starts_no_worker(none_waiting: None) -> None:
    stop = threading.Event()
    stop.set()
    answer = call_isolated(f"{HERE}:double", {"value": 1}, stop=stop)
    assert answer.ending == Termination.INTERRUPTED
    assert waiting() == []


def test_keyboard_interrupt_kills_the_worker() -> None:
    pids: list[int] = []

    def on_progress(values: dict[str, Any]) -> None:
        pids.append(values["pid"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call_isolated(f"{HERE}:tell_and_sleep", {"seconds": 600}, on_progress=on_progress)
    assert gone(pids[0])


# Trees and parents ---------------------------------------------------------------------------------------------


def test_killing_the_outer_worker_kills_the_inner() -> None:
    answer = killed_at_a_wall_limit("nest", {"seconds": 600}, message="inner")
    assert gone(answer.values["inner"])
    assert gone(answer.values["outer"])


def test_killing_the_outer_worker_from_outside_ends_the_inner_one() -> None:
    def on_progress(values: dict[str, Any]) -> None:
        os.kill(values["outer"], signal.SIGKILL)

    answer = call_isolated(f"{HERE}:nest", {"seconds": 600}, on_progress=on_progress, wall_limit_s=240)
    assert answer.ending == Termination.CRASHED
    assert gone(answer.values["inner"])


SCRIPT = """
import sys
sys.path.insert(0, {tests!r})
from opticoll.solvers.process.isolation import call_isolated
answer = call_isolated("worker_jobs:tell_and_sleep", {{"seconds": {seconds}}},
                       on_progress=lambda values: print(values["pid"], flush=True))
print("finished", answer.finished)
"""


def start_script(tmp_path: Path, seconds: float) -> subprocess.Popen[str]:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(tests=str(Path(__file__).parents[1]), seconds=seconds), encoding="utf-8")
    (tmp_path / "opticoll").mkdir()  # a folder of the same name in the working directory must not be taken for ours
    (tmp_path / "opticoll" / "__init__.py").write_text("raise RuntimeError('the wrong opticoll')", encoding="utf-8")
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(worker_module.ROOT)!r}); "
        f"runpy.run_path({str(script)!r}, {{}}, '__main__')"
    )
    return subprocess.Popen([sys.executable, "-P", "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True)


def test_script_without_main_guard_from_any_directory(tmp_path: Path) -> None:
    with start_script(tmp_path, 0.3) as script:
        out, _ = script.communicate(timeout=240)
    assert out.split()[-2:] == ["finished", "True"]


def test_killing_the_parent_ends_the_worker(tmp_path: Path) -> None:
    with start_script(tmp_path, 600) as script:
        assert script.stdout is not None
        worker = int(script.stdout.readline())
        script.kill()
        script.wait()
    assert gone(worker)


def test_scratch_folders_of_a_killed_worker_are_removed(own_scratch: Path) -> None:
    answer = killed_at_a_wall_limit("scratch_and_hang", {}, message="folder")
    assert own_scratch in Path(answer.values["folder"]).parents
    assert not Path(answer.values["folder"]).exists()


# Solving -------------------------------------------------------------------------------------------------------


def test_killed_solver_keeps_incumbent_and_bound() -> None:
    need("highs")
    form = knapsack()
    seen: list[tuple[float | None, float | None]] = []

    def on_progress(objective: float | None, bound: float | None, x: Any = None) -> None:
        seen.append((objective, bound))
        if objective is not None and bound is not None:
            kill_workers()

    outcome = solve_isolated(form, "highs", SolveRequest(time_limit_s=240, threads=1), on_progress=on_progress)
    assert outcome.termination == Termination.CRASHED
    assert "SIGKILL" in outcome.message
    assert outcome.x is not None
    assert (form.A @ outcome.x <= form.row_upper + 1e-6).all()
    assert outcome.objective == pytest.approx(form.objective(outcome.x))
    assert outcome.bound is not None
    assert outcome.bound >= outcome.objective
    assert outcome.incumbents[-1][1] == pytest.approx(outcome.objective)
    assert seen


def test_one_session_uses_libraries_that_cannot_share_a_process() -> None:
    need("highs", "cp-sat")
    form = knapsack(1, 15)
    before = set(sys.modules)
    values = [solve_isolated(form, name, SolveRequest()).objective for name in ("highs", "cp-sat", "highs")]
    assert values[0] == values[1] == values[2]
    assert not {"highspy", "ortools"} & (set(sys.modules) - before)


def test_typed_errors_of_adapters_reach_the_caller() -> None:
    need("highs")
    with pytest.raises(BadOption, match="time_limit"):
        solve_isolated(knapsack(), "highs", SolveRequest(options={"time_limt": 3}))


def test_an_error_of_a_job_is_raised_with_what_helps() -> None:
    with pytest.raises(SolverUnavailable) as error:
        misbehaving("typed")
    assert error.value.said(lambda name, value: f"--{name} {value}") == "typed --method highs"
    with pytest.raises(BadOption, match=r"^jobs=2: typed by a user$") as own:
        misbehaving("typed by a user")
    assert type(own.value) is BadOption


# Exchange ------------------------------------------------------------------------------------------------------


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_message_whose_sender_dies_leaves_those_before_it(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    inbox = Inbox(ours)
    send(theirs, {"objective": 1.0, "x": np.arange(2.0)})
    send(theirs, {"objective": 2.0})
    whole = ours.recv(1 << 20)
    theirs.sendall(whole[:-1])
    theirs.close()
    [values] = inbox.arrived()
    assert values["objective"] == 1.0
    assert values["x"].tolist() == [0.0, 1.0]
    assert inbox.arrived() == []


def test_reports_arrive_in_order_whatever_their_size(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    report, inbox, received = Report(theirs), Inbox(ours), list[tuple[int, int]]()
    sizes = [0, 3, 1_000_000, 1]
    sender = threading.Thread(target=lambda: [report({"k": k, "x": np.zeros(n)}) for k, n in enumerate(sizes)])
    sender.start()
    while len(received) < len(sizes):
        received += [(values["report"]["k"], values["report"]["x"].size) for values in inbox.arrived()]
    sender.join()
    assert received == list(enumerate(sizes))


def test_arrays_arrive_as_they_were(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    sent = {
        "scalar": np.array(2.5),
        "empty": np.zeros((0, 3)),
        "bits": np.array([True, False]),
        "text": np.array(["ä"]),
        "columns": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "last": np.int8([7]),
    }
    send(theirs, sent)
    [read] = Inbox(ours).arrived()
    assert list(read) == list(sent)
    for name, array in sent.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(read[name], array)
    with pytest.raises(TypeError, match="cannot be sent"):
        send(theirs, {"x": lambda: None})
    assert Inbox(ours).arrived() == []


def test_a_malformed_message_is_refused(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    send(theirs, {"objective": 1.0})
    whole = bytearray(ours.recv(1 << 20))
    whole[16:20] = b"\xff" * 4
    theirs.sendall(whole)
    with pytest.raises(pickle.UnpicklingError, match="malformed"):
        Inbox(ours).arrived()


@pytest.mark.parametrize(
    ("function", "message"),
    [("write_to_an_argument", "read-only"), ("return_a_function", "cannot be sent to another process")],
)
def test_what_cannot_be_changed_or_sent_is_an_error(function: str, message: str) -> None:
    answer = call_isolated(f"{HERE}:{function}", {"x": np.zeros(3)})
    assert answer.ending is Termination.ERROR
    assert message in answer.message


@pytest.mark.skipif(not worker_module.FORKS, reason="needs a worker that adopts processes")
def test_a_process_that_a_job_leaves_has_ended_when_the_call_returns() -> None:
    for _ in range(3):
        answer = call_isolated(f"{HERE}:fork_and_answer", {})
        assert answer.finished
        assert not psutil.pid_exists(answer.values["child"])
        assert call_isolated(f"{HERE}:double", {"value": 1, "x": np.zeros(1)}).values["twice"] == 2


# Started ahead ---------------------------------------------------------------------------------------------------

SMALL = StandardForm(
    sp.csc_array([[1.0, 1.0]]),
    np.zeros(1),
    np.ones(1),
    np.zeros(2),
    np.ones(2),
    np.array([1.0, 2.0]),
    "max",
    integer=np.zeros(2, dtype=bool),
)


def waiting() -> list[worker_module.Worker]:
    return list(worker_module.idle_workers.waiting.values())


@pytest.fixture
def none_waiting() -> Iterator[None]:
    """No worker waits at first; those of other tests wait again afterwards."""
    others = worker_module.idle_workers.waiting
    worker_module.idle_workers.waiting = {}
    yield
    worker_module.end_waiting()
    worker_module.idle_workers.waiting = others


def test_a_worker_started_ahead_takes_the_next_solves(none_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    worker_module.start_ahead(isolation.modules_of("highs"), 2)
    [first] = waiting()
    worker_module.start_ahead(isolation.modules_of("highs"), 2)
    assert waiting() == [first]  # one waits already
    for test in ("one", "another"):
        monkeypatch.setenv("PYTEST_CURRENT_TEST", test)
        assert solve_isolated(SMALL, "highs", SolveRequest(threads=2)).objective == pytest.approx(2.0)
        if worker_module.FORKS:
            assert waiting() == [first]


def test_a_waiting_worker_takes_nothing_else(none_waiting: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "MOST_IDLE", 3)
    worker_module.start_ahead(isolation.modules_of("highs"), 2)
    [first] = waiting()
    assert solve_isolated(SMALL, "highs", SolveRequest(threads=1)).objective == pytest.approx(2.0)  # other threads
    assert solve_isolated(SMALL, "glop", SolveRequest(threads=2)).objective == pytest.approx(2.0)  # another solver
    assert first in waiting()
    seen = []
    other = threading.Thread(target=lambda: seen.extend(waiting()))
    other.start()
    other.join()
    assert seen == []
    monkeypatch.setenv("ANYTHING", "else")
    assert solve_isolated(SMALL, "highs", SolveRequest(threads=2)).objective == pytest.approx(2.0)
    assert len(waiting()) <= 3
    if worker_module.FORKS:  # the others wait too
        assert first.process.poll() is not None  # the one that has waited longest


def test_a_worker_that_died_while_waiting_is_replaced(none_waiting: None) -> None:
    worker_module.start_ahead(isolation.modules_of("highs"), 2)
    [first] = waiting()
    first.process.kill()
    first.process.wait()
    assert solve_isolated(SMALL, "highs", SolveRequest(threads=2)).objective == pytest.approx(2.0)
    assert first not in waiting()


@pytest.mark.skipif(not worker_module.FORKS, reason="needs a worker that takes several jobs")
def test_solves_share_a_process_until_one_may_have_left_something(none_waiting: None) -> None:
    def process() -> list[int]:
        assert solve_isolated(SMALL, "highs", SolveRequest(threads=2)).objective == pytest.approx(2.0)
        [worker] = waiting()
        return processes.descendants(worker.process.pid)

    first = process()
    assert process() == first
    assert solve_isolated(SMALL, "highs", SolveRequest(threads=2), memory_limit_gib=8.0).objective == pytest.approx(2.0)
    second = process()
    assert second != first
    os.kill(second[0], signal.SIGKILL)
    assert gone(second[0])
    assert process() != second


CALM: dict[str, Any] = {"plugins": plugins.Shipment("", ()), "data_limit_bytes": None, "log": False}


@pytest.mark.parametrize(
    ("job", "loaded", "may"),
    [
        ({}, {"opticoll.errors", "scipy.sparse", "json"}, True),
        ({"plugins": plugins.Shipment("", (plugins.Plugin("p", "p", "0", None),))}, set(), False),
        ({"data_limit_bytes": 2**33}, set(), False),
        ({"log": True}, set(), False),
        ({}, {"ortools.sat"}, False),
        ({}, {"users_own"}, False),
    ],
)
def test_what_a_job_leaves_in_its_process(job: Any, loaded: set[str], may: bool) -> None:
    room_mb = processes.own_memory_mb() + 1000.0
    assert may_stay(CALM | job, loaded, room_mb) is may
    assert not may_stay(CALM | job, loaded, most_mb=1.0)


@pytest.mark.skipif(not worker_module.FORKS, reason="needs a worker that takes several jobs")
def test_earlier_jobs_of_a_process_do_not_count_for_the_next(none_waiting: None) -> None:
    form = knapsack()
    first = solve_isolated(form, "highs", SolveRequest(threads=1, time_limit_s=1.0))
    [worker] = waiting()
    killed = solve_isolated(form, "highs", SolveRequest(threads=1), wall_limit_s=0.3)
    assert worker.process.poll() is not None, "it was the same worker"
    assert first.termination is killed.termination is Termination.TIME_LIMIT
    assert killed.cpu_s is not None
    assert killed.solve_s is not None
    assert killed.cpu_s <= killed.solve_s + 0.1  # the system counts in hundredths


@pytest.mark.skipif(not worker_module.FORKS, reason="needs a worker that takes several jobs")
@pytest.mark.parametrize("killed", [False, True])
def test_the_processor_time_of_a_worker_that_is_ended_counts(killed: bool, none_waiting: None) -> None:
    for limit_s in (1.0, 4.0, 16.0, 64.0):  # a worker on a busy machine begins late
        before = processes.processor_s_of_children()
        request = SolveRequest(threads=1, time_limit_s=None if killed else limit_s)
        used = solve_isolated(knapsack(), "highs", request, wall_limit_s=limit_s if killed else None).cpu_s
        worker_module.end_waiting()
        counted = processes.processor_s_of_children() - before
        if used:
            break
    assert used is not None
    assert counted >= 0.9 * used > 0.0


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs a system that forgets a peak")
def test_the_peak_of_an_earlier_job_is_forgotten() -> None:
    large = np.ones(20_000_000)
    before = processes.tree_peak_mb()
    del large
    processes.note_nested_peak(1e6)
    assert processes.forget_peak()
    after = processes.tree_peak_mb()
    assert before is not None
    assert after is not None
    assert after < before - 100.0


def test_a_function_of_a_users_module_has_a_process_of_its_own() -> None:
    first = misbehaving("state")
    second = misbehaving("state")
    assert first.values["calls"] == second.values["calls"] == 1
    assert first.values["pid"] != second.values["pid"]


@pytest.mark.skipif(not worker_module.FORKS, reason="needs a worker that takes several jobs")
def test_a_worker_imports_what_its_last_job_has_imported(
    none_waiting: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgotten_plugins: None
) -> None:
    """Packages of ours that no solver conflicts with; nothing of a user, whose files may change between two jobs."""
    (tmp_path / "users_own.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    slow = ["networkx", "opticoll.instances.families"]
    arguments = {"modules": [*slow, "users_own", "clarabel"]}

    def loaded() -> list[str]:
        answer = call_isolated(f"{HERE}:importing", arguments, modules=("json",))
        loaded: list[str] = answer.values["before"]
        return loaded

    assert loaded() == []
    assert loaded() == slow
    (tmp_path / "plugged.py").write_text("")
    plugins.load_plugin(tmp_path / "plugged.py", contributes=False)
    assert loaded() == slow


def test_a_worker_does_a_job_in_the_folder_of_its_caller(
    none_waiting: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        assert call_isolated(f"{HERE}:folder", {}, modules=("json",)).values["folder"] == str(tmp_path / name)
        seen += waiting()
    assert len(set(seen)) <= 1, "one worker for both"


@pytest.mark.skipif(not worker_module.FORKS, reason="needs a worker that adopts processes")
def test_a_process_in_a_session_of_its_own_does_not_outlive_the_job() -> None:
    answer = misbehaving("daemon")
    assert gone(answer.values["daemon"])


@pytest.mark.skipif(not worker_module.FORKS, reason="needs a worker that takes several jobs")
def test_a_process_with_threads_takes_no_other_job(none_waiting: None) -> None:
    first = misbehaving("thread").values["pid"]
    assert misbehaving("state").values["pid"] != first


def test_a_waiting_worker_ends_with_its_parent(tmp_path: Path) -> None:
    script = tmp_path / "starts.py"
    script.write_text(
        f"import os, sys; sys.path.insert(0, {str(worker_module.ROOT)!r})\n"
        "from opticoll.solvers.process import worker as worker_module\n"
        "worker_module.start_ahead(('json',), 1)\n"
        "[worker] = worker_module.idle_workers.waiting.values()\n"
        "print(worker.process.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert gone(int(done.stdout))


@pytest.mark.parametrize("listed", [True, False])
def test_descendants_are_the_processes_below_one(listed, monkeypatch):
    if not listed:
        monkeypatch.setattr(processes, "_LISTED", Path("/nowhere"))
    nested = "import subprocess, sys; subprocess.Popen(['sleep', '60']); print(flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", nested], stdin=-1, stdout=-1, start_new_session=True) as process:
        process.stdout.readline()
        below = processes.descendants(process.pid)
        assert [psutil.Process(pid).ppid() for pid in below] == [process.pid]
        assert process.pid in processes.descendants(os.getpid())
        processes.kill_tree(process)
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != "zombie" for pid in below)


#: Reports what a worker that was forked ahead has of its parent.
FORKED = """
import json, os, signal, sys, threading
import opticoll.solvers.solve
from opticoll.solvers.process import worker
from opticoll.solvers.process.isolation import call_isolated
case = sys.argv[1]
signal.signal(signal.SIGALRM, print)
print(end="once ")  # not flushed while the process is copied
file = os.dup2(os.open(os.devnull, os.O_RDONLY), 200)
if case == "thread":
    threading.Thread(target=threading.Event().wait, daemon=True).start()
if case == "package":
    import psutil
worker.fork_ahead()
ahead = [one.process.pid for one in worker._ahead.values()]
os.environ["SET_LATER"] = "yes"
answer = call_isolated("worker_jobs:surroundings", {"file": file}, modules=("json",), threads=1)
[used] = worker.idle_workers.waiting.values()
hung = call_isolated("worker_jobs:misbehave", {"how": "hang"}, modules=("json",), threads=1, wall_limit_s=1.5)
print(json.dumps({"ahead": ahead, "used": used.process.pid, "ending": hung.ending, "kept": hung.values["objective"],
                  "own": os.getpid(), **answer.values}))
"""


#: Endings of jobs whose caller ignores or blocks the signals that end them or tell of it.
SIGNALS = """
import signal, sys
import opticoll.solvers.solve
from opticoll.solvers.process import worker
from opticoll.solvers.process.isolation import call_isolated
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.signal(signal.SIGALRM, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGPROF])
if sys.argv[1] == "forked":
    worker.fork_ahead()
for how in ("exit", "spin"):
    answer = call_isolated("worker_jobs:misbehave", {"how": how}, modules=("json",), threads=1, wall_limit_s=240)
    print(answer.ending, answer.message)
"""


@pytest.mark.skipif(not worker_module.FORKS, reason="needs a worker that collects the processes of its jobs")
@pytest.mark.parametrize("how", ["forked", "new"])
def test_signals_that_a_caller_ignores_or_blocks_end_jobs(how: str) -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(worker_module.ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", SIGNALS, how], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == [
        "crashed the worker ended with status 7 without an answer",
        f"time-limit {isolation.CPU_LIMIT}",
    ], done.stderr


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="the system has no waitid")
def test_a_process_that_nobody_has_collected_yet_has_ended() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert not processes._has_ended(process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
    assert processes._has_ended(process.pid)
    process.communicate()
    assert processes._has_ended(process.pid)


@pytest.mark.skipif(not worker_module.FORKS, reason="needs processes that can be forked")
@pytest.mark.parametrize("case", ["", "thread", "package"])
def test_a_worker_forked_ahead_is_as_a_new_one(case: str) -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(worker_module.ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", FORKED, case], env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True
    )
    first, _, rest = done.stdout.partition(" ")
    assert first == "once", done.stderr
    found = json.loads(rest)
    assert (found["used"] in found["ahead"]) == (case == "")  # where a fork is not safe, a new interpreter
    assert found["later"] == "yes"
    assert found["threads"] == "1"
    assert not found["open"]
    assert not found["alarmed"]
    assert found["session"] != found["own"]
    assert (found["ending"], found["kept"]) == ("time-limit", 5.0)
    assert gone(found["used"])
