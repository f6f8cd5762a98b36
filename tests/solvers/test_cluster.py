"""Studies and child LPs on a real Dask cluster of separate processes, some of which die."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from slow_cases import marked

from opticoll.analysis.cli.main import main
from opticoll.analysis.cli.new import write_example
from opticoll.analysis.store import Store
from opticoll.analysis.study.running import run_study
from opticoll.analysis.study.study_file import load
from opticoll.errors import BadOption, SolverUnavailable
from opticoll.solvers import solve as runner
from opticoll.solvers.process import executor as executor_module
from opticoll.solvers.process import worker as worker_module
from opticoll.solvers.process.executor import ClusterLost, DaskCluster, InProcess, JobCrashed, OtherCode
from opticoll.solvers.task import Task

STUDY = """
name = "over-there"
title = "A few cells"
formulations = ["alltoall.master"]
instances = ["ring:5", "ring:3", "ring:4", "path:3", "path:4"]
methods = ["highs-simplex"]

[limits]
time_limit_s = 240
"""


#: Where the processes find this module (jobs are sent by name), what it imports, and opticoll.
PLACES = (Path(__file__).parent, Path(__file__).parents[1], worker_module.ROOT)

#: Dask's own command line in a process that does not outlive ours, however ours ends.
DASK = """
import sys
from opticoll.solvers.process.processes import tie_to_parent
tie_to_parent(int(sys.argv.pop(1)))
from dask.__main__ import main
main()
"""


class Machines:
    """A scheduler and its workers, as processes of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", self.file)
        try:
            # The file is not written in one go.
            self.until(lambda: self.file.exists() and self.file.read_text().endswith("}"))
        except BaseException:
            self.stop()
            raise

    def start(self, *command: str | Path, places: tuple[Path, ...] = ()) -> subprocess.Popen[bytes]:
        # Workers start elsewhere: nothing may depend on the folder of the caller.
        place = self.folder / f"place-{len(self.processes)}"
        place.mkdir()
        log = (place / "log").open("wb")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (*places, *PLACES))),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
        }
        with log:
            process = subprocess.Popen(
                [sys.executable, "-c", DASK, str(os.getpid()), *map(str, command)],
                cwd=place,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    def worker(self, *options: str, places: tuple[Path, ...] = ()) -> subprocess.Popen[bytes]:
        return self.start(
            "worker",
            "--scheduler-file",
            self.file,
            "--nthreads",
            "1",
            "--host",
            "127.0.0.1",
            "--no-dashboard",
            "--memory-limit",
            "0",
            *options,
            places=places,
        )

    @property
    def address(self) -> str:
        return str(json.loads(self.file.read_text())["address"])

    def until(self, condition: Any) -> None:
        """Wait for the condition; fail at once if a process ends meanwhile."""
        until(lambda: self.check_alive() or condition())

    def check_alive(self) -> None:
        for number, process in enumerate(self.processes):
            log = self.folder / f"place-{number}" / "log"
            assert process.poll() is None, log.read_text(errors="replace")[-2000:]

    def stop(self) -> None:
        family = [child for p in self.processes if p.poll() is None for child in children(p)]
        for process in self.processes:
            process.kill()
        for child in family:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        for process in self.processes:
            process.wait()


def children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def until(condition: Any, limit_s: float = 240.0) -> None:
    end = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.05)


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """A scheduler on a busy machine has time to answer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("opticoll.solvers.process.executor.CONNECT_S", 240.0)
        patch.setattr("opticoll.solvers.process.executor.ANSWER_S", 240.0)
        yield


@contextmanager
def machines(folder: Path, *workers: tuple[str, ...]) -> Iterator[Machines]:
    result = Machines(folder)
    try:
        for options in workers:
            result.worker(*options)
        if workers:
            with DaskCluster(result.address) as current:
                result.until(lambda: current.jobs == len(workers))
        yield result
    finally:
        result.stop()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two workers: one on its own, one under a nanny, which makes it a daemon."""
    with machines(tmp_path_factory.mktemp("cluster"), ("--no-nanny",), ("--nanny",)) as result:
        yield result


@pytest.fixture
def study_file(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(STUDY)
    return path


def records(store: Store) -> dict[str, dict[str, Any]]:
    results = [store.read(name) for name in store.names()]
    assert len({record["key"] for record in results}) == len(results)  # one a cell
    return {f"{record['instance']} {record['method']}": record for record in results}


def test_a_worker_of_four_threads_finds_what_is_found_in_turn(study_file: Path, tmp_path: Path) -> None:
    import distributed  # noqa: F401 - which sets the level of its logger

    study, level = load(study_file), logging.getLogger("distributed").level
    with machines(tmp_path) as machine, DaskCluster(machine.address) as executor:
        machine.worker("--nthreads", "4", "--no-nanny")
        machine.until(lambda: executor.jobs == 4)
        assert run_study(study, Store(tmp_path / "there"), executor).count("done") == len(study.cells)
    assert logging.getLogger("distributed").level == level
    run_study(study, Store(tmp_path / "here"), InProcess())
    here, there = (records(Store(tmp_path / name)) for name in ("here", "there"))
    assert {cell: one["objective"] for cell, one in there.items()} == pytest.approx(
        {cell: one["objective"] for cell, one in here.items()}, rel=1e-9
    )


def test_study_loses_nothing_when_a_worker_is_killed(both: Machines, study_file: Path, tmp_path: Path) -> None:
    study = load(study_file)
    current, there = Store(tmp_path / "here"), Store(tmp_path / "there")
    alone = both.processes[1]  # the worker without a nanny
    seen: list[str] = []

    def kill(result: Any) -> None:
        seen.append(result.key)
        if len(seen) == 2:
            os.kill(alone.pid, signal.SIGKILL)

    with DaskCluster(both.address) as executor:
        assert executor.jobs == 2
        summary = run_study(study, there, executor, on_result=kill)
    assert alone.wait(timeout=240) == -signal.SIGKILL
    assert summary.complete
    assert summary.count("done") == len(study.cells) == len(seen) == len(set(seen)) == 5
    run_study(study, current, InProcess())
    local, remote = records(current), records(there)
    assert local.keys() == remote.keys()
    for cell, record in remote.items():
        assert record["verified"]
        assert record["attempt"] == 1
        assert record["objective"] == pytest.approx(local[cell]["objective"], rel=1e-9)
        assert record["environment"]["host"] == socket.gethostname()
        values, _ = there.solution(record["id"])
        assert values.keys() == current.solution(local[cell]["id"])[0].keys()
    # All of it is answered now: nothing is sent.
    with DaskCluster(str(both.file)) as executor:
        again = run_study(study, there, executor)
    assert again.count("skipped") == 5
    assert not list(there.locks.glob("*"))
    both.worker("--no-nanny")  # for the tests after this one


def test_study_takes_instances_from_files_that_only_the_caller_has(
    both: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("tail,head\n0,1\n1,2\n2,0\n1,0\n")
    study_file = tmp_path / "files.toml"
    study_file.write_text(
        'name = "files"\nformulations = ["alltoall.master"]\n'
        'instances = ["file:edges.csv"]\nmethods = ["highs-simplex"]\n'
    )
    store = Store(tmp_path / "store")
    with DaskCluster(both.address) as executor:
        summary = run_study(load(study_file), store, executor)
    assert summary.count("done") == 1, summary.results
    (record,) = records(store).values()
    assert record["verified"]


def test_study_takes_plug_ins_that_only_the_caller_has(both: Machines, tmp_path: Path) -> None:
    examples = [*write_example("family", "twin-cliques", tmp_path), *write_example("formulation", "sums", tmp_path)]
    plugins = [path for path in examples if "test" not in path.name]
    study_file = tmp_path / "own.toml"
    study_file.write_text(
        f'name = "own"\nplugins = {[path.name for path in plugins]}\nformulations = ["own.sums"]\n'
        'instances = ["twin-cliques:2"]\nmethods = ["highs-simplex"]\n'
    )
    study = load(study_file)
    for plugin in plugins:
        plugin.unlink()
    store = Store(tmp_path / "store")
    with DaskCluster(both.address) as executor:
        summary = run_study(study, store, executor)
    assert summary.count("done") == 1, summary.results
    (record,) = records(store).values()
    assert record["verified"]
    assert sorted(record["plugins"]) == sorted(path.name for path in plugins)


def test_command_line_runs_a_study_there(both: Machines, study_file: Path, tmp_path: Path, capfd: Any) -> None:
    study_file.write_text(study_file.read_text().replace(', "ring:3", "ring:4", "path:3", "path:4"', ""))
    asked = ["study", str(study_file), "--dask", both.address, "--store", str(tmp_path / "store"), "--json"]
    assert main(asked) == 0
    output = json.loads(capfd.readouterr().out)
    assert (output["done"], output["failed"]) == (1, 0)


def test_children_on_the_cluster_equal_local_ones(both: Machines) -> None:
    def solve(**settings: Any) -> Any:
        return runner.solve(Task("alltoall.link-mcf", "ring:3", "master-child", settings=settings))

    current, there = solve(jobs=1), solve(dask=both.address)
    assert current.verified
    assert there.verified
    assert there.proof == current.proof == "optimal"
    assert there.objective == pytest.approx(current.objective, rel=1e-12)
    np.testing.assert_allclose(there.values["f"], current.values["f"], atol=1e-12)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:{free}", "127.0.0.1:{free}", "nonsense", "tcp://no.such.host.invalid:8786", "no.json"]
)
def test_an_address_without_a_scheduler_is_refused_at_once(
    address: str, study_file: Path, tmp_path: Path, capfd: Any
) -> None:
    store = tmp_path / "store"
    asked = ["study", str(study_file), "--dask", address.format(free=free_port()), "--store", str(store)]
    assert main(asked) == 2
    lines = capfd.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert "--dask" in lines[0]
    assert not store.exists()


def test_a_listener_that_is_not_a_scheduler_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opticoll.solvers.process.executor.ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(BadOption, match="no Dask scheduler answers"):
            DaskCluster(f"tcp://127.0.0.1:{port}")


def test_workers_with_another_version_are_refused(both: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0.1")
    with pytest.raises(BadOption, match=r"this process opticoll 0\.0\.1"):
        DaskCluster(both.address)


#: Changes of the code: one that changes nothing, and one that removes what this version asks a worker for.
CHANGES = {"other": ("\n", "\n# another line\n"), "earlier": ("code_here", "installed_version")}


@pytest.fixture(scope="module", params=[marked("other", slow=True), "earlier"])
def elsewhere(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package whose code differs."""
    folder = tmp_path_factory.mktemp(request.param)
    shutil.copytree(worker_module.ROOT / "opticoll", folder / "opticoll", ignore=shutil.ignore_patterns("*.nb[ci]"))
    file = folder / "opticoll" / "solvers" / "process" / "executor.py"
    file.write_text(file.read_text().replace(*CHANGES[request.param]))
    return folder


def test_workers_with_other_code_are_refused_at_the_start_and_when_they_join(elsewhere: Path, tmp_path: Path) -> None:
    message = r"^dask=\S+: worker tcp://\S+ \(stranger\) has .*opticoll.*, this process opticoll .*; start the worker"
    with machines(tmp_path, ("--no-nanny",)) as cluster, DaskCluster(cluster.address) as executor:

        def items() -> Iterator[int]:
            yield from range(3)
            cluster.worker("--no-nanny", "--name", "stranger", places=(elsewhere,))
            cluster.until(lambda: executor.jobs == 2)

        with pytest.raises(OtherCode, match=message):
            list(executor.map_unordered(abs, items()))
        with pytest.raises(OtherCode, match=message):
            DaskCluster(cluster.address)


def test_a_worker_compares_the_code_before_it_runs_a_job(both: Machines) -> None:
    with DaskCluster(both.address) as executor:
        executor.code = f"opticoll 0 with code {'f' * 12}"
        with pytest.raises(OtherCode, match=f"with code {'f' * 12}"):
            list(executor.map_unordered(abs, [-1]))


def test_dask_logs_nothing_beside_our_errors(both: Machines) -> None:
    loggers = [logging.getLogger(name) for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    before = [logger.level for logger in loggers]
    with DaskCluster(both.address):
        assert not [logger.name for logger in loggers if logger.isEnabledFor(logging.ERROR)]
    assert [logger.level for logger in loggers] == before


def _answer_or_die(item: str | Path) -> str | Path:
    """Return a string; kill this process when a file exists."""
    while isinstance(item, Path):
        if item.exists():
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
    return item


def test_what_dies_costs_only_what_it_must(both: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that a job kills, that job; a scheduler that does not answer, or has died, what has not come back.

    The last of those on these machines, whose scheduler dies. A job that kills is tried twice; the nanny replaces its
    worker.
    """

    async def silent() -> None:
        await asyncio.sleep(3600)

    with DaskCluster(both.address) as executor:
        answers, ready = {}, tmp_path / "ready"
        # It comes last and waits for the others: Dask blames a job, too, that waits, or whose result waits, at a worker
        # whenever that is killed.
        for index, answer in executor.map_unordered(_answer_or_die, ["a", "b", "c", ready]):
            answers[index] = answer
            if len(answers) == 3:
                ready.touch()
        assert isinstance(answers[3], JobCrashed)
        assert [answers[index] for index in range(3)] == ["a", "b", "c"]
        assert list(executor.map_unordered(_answer_or_die, ["d"])) == [(0, "d")]
        with monkeypatch.context() as patch:
            patch.setattr(executor_module, "ANSWER_S", 0.1)
            patch.setattr(executor._client.scheduler, "ncores", silent, raising=False)
            with pytest.raises(ClusterLost, match="start again"):
                next(executor.map_unordered(str, [1]))
    with DaskCluster(both.address) as executor:
        results = executor.map_unordered(time.sleep, [0, 600, 600])
        assert next(results) == (0, None)
        monkeypatch.setattr(executor_module, "ANSWER_S", 5.0)  # threads may be counted just then
        both.processes[0].kill()
        with pytest.raises(ClusterLost, match="start again"):
            next(results)


def test_missing_package_is_status_4(study_file: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["study", str(study_file), "--dask", "tcp://127.0.0.1:1"]) == SolverUnavailable.exit_status == 4
    assert "pip install '.[cluster]'" in capfd.readouterr().err
