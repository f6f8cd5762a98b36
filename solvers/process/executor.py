"""Run independent jobs in this process, in local processes, or on a Dask cluster.

``map_unordered(function, items)`` yields ``(index, result)`` as jobs finish; a job that fails yields its exception
in place of a result and does not affect the others. Except for :class:`InProcess`, functions and items must be
picklable. Plug-ins are sent to the processes with every job.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import threading
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll import package_code, plugins
from opticoll.arguments import whole_number
from opticoll.errors import BadOption, OpticollError, SolverUnavailable
from opticoll.solvers.process.isolation import call_isolated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType
    from typing import Self

    from opticoll.solvers.process.messages import Report

_log = logging.getLogger("opticoll")


class JobCrashed(OpticollError):
    """The process of a job died before it could answer."""

    exit_status = 3


class ClusterLost(OpticollError):
    """The connection to the cluster that ran the jobs was lost."""

    exit_status = 3


class Executor(ABC):
    """Runs independent jobs; a context manager that leaves no process behind, even after Ctrl-C.

    ``shares_files`` is whether jobs can read the user's files.
    """

    shares_files = True

    @property
    def jobs(self) -> int:
        """Number of jobs that run at a time."""
        return 1

    @abstractmethod
    def map_unordered(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[int, Any | Exception]]:
        """Yield ``(index, result or exception)`` as jobs finish."""

    def close(self) -> None:  # noqa: B027 - there may be nothing to end
        """End all processes, running jobs included."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class InProcess(Executor):
    """Runs jobs one by one, in this process and in order."""

    def map_unordered(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[int, Any | Exception]]:
        """Yield ``(index, result or exception)`` in order."""
        for index, item in enumerate(items):
            yield index, _attempt(function, item)


class LocalProcesses(Executor):
    """A pool of worker processes on this machine, each started once and fed one job at a time.

    Not ``concurrent.futures.ProcessPoolExecutor``: there one dead process breaks the pool and every job in it, and
    starting needs a main module that can be imported again. Here each thread of a pool calls its worker, and a dead
    process costs its own job and is replaced.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self._jobs = whole_number(os.cpu_count() or 1 if jobs is None else jobs, "jobs", 1)
        self._stop = threading.Event()

    @property
    def jobs(self) -> int:
        """Number of processes."""
        return self._jobs

    def map_unordered(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[int, Any | Exception]]:
        """Yield ``(index, result or exception)`` as jobs finish; jobs start in order."""
        stop = self._stop = threading.Event()
        with ThreadPoolExecutor(self.jobs) as threads:
            try:
                calls = [threads.submit(_call, function, item, stop) for item in items]
                index = {call: number for number, call in enumerate(calls)}
                del calls
                for call in as_completed(index):
                    yield index.pop(call), call.result()
            finally:
                stop.set()
                threads.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End all processes, running jobs included."""
        self._stop.set()


def _call(function: Callable[[Any], Any], item: Any, stop: threading.Event) -> Any | Exception:
    """Run a job in the worker of this thread, which ends with the thread; the result or what was raised instead.

    Raises
    ------
    BadOption
        If the job cannot be sent.
    """
    import pickle

    packed = _packed(function, item)
    try:
        call = call_isolated(
            "opticoll.solvers.process.executor:run_in_worker",
            {"call": packed},
            modules=("opticoll.solvers.process.executor",),
            stop=stop,
            pooled=True,
        )
    except OpticollError as error:
        return error
    if not call.finished:
        return JobCrashed(f"a job's process died ({call.message}); the other jobs continue")
    return pickle.loads(call.values)  # noqa: S301 - from our own process


def run_in_worker(call: bytes, report: Report) -> bytes:
    """Run a job of :class:`LocalProcesses`; target of :func:`opticoll.solvers.process.isolation.call_isolated`."""
    import pickle

    result = _attempt(_run_packed, call)
    try:
        return pickle.dumps(result)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        return pickle.dumps(OpticollError(f"the result of a job cannot be sent back: {error}"))


def _packed(function: Callable[[Any], Any], item: Any) -> bytes:
    """A function and its argument, with their code if a main script or a notebook defines it.

    Raises
    ------
    BadOption
        If it cannot be pickled.
    """
    import pickle

    import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps((function, item))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        msg = f"a job cannot be sent to another process ({error}): use functions of modules and plain data"
        raise BadOption(msg) from error
    return packed


def _run_packed(call: bytes) -> Any:
    import pickle

    plugins.load_known()
    function, item = pickle.loads(call)  # noqa: S301 - from our own parent or client
    return function(item)


class OtherCode(BadOption):
    """A worker of a cluster runs other code than its client."""


def code_here() -> str:
    """The code of opticoll in this process: its version, and the begin of its digest (:mod:`opticoll.package_code`)."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        known = version("opticoll")
    except PackageNotFoundError:
        known = "of unknown version"
    return f"opticoll {known} with code {package_code.digest()[:12]}"


def run_same_code(code: str, sent: plugins.Shipment, call: bytes) -> Any:
    """Run a job of :class:`DaskCluster` with the plug-ins of its client.

    Raises
    ------
    OtherCode
        If this worker's code differs from that of the client.
    """
    ours = code_here()
    if ours != code:
        from distributed import get_worker

        worker = get_worker()
        raise OtherCode(_differs(worker.address, worker.name, ours, code))
    plugins.accept(sent)
    return _run_packed(call)


def _differs(address: str, name: object, has: str, code: str) -> str:
    named = "" if name in (None, address) else f" ({name})"
    return f"worker {address}{named} has {has}, this process {code}; start the worker again with the code that is here"


def _attempt(function: Callable[[Any], Any], item: Any) -> Any | Exception:
    try:
        return function(item)
    except Exception as error:  # noqa: BLE001 - reported in place of the result
        return error


# Dask ----------------------------------------------------------------------------------------------------------

#: How long [s] a scheduler may take to accept a connection, and then to answer.
CONNECT_S, ANSWER_S = 3.0, 10.0
#: Loggers of Dask to which its configuration gives levels.
LOGGERS = ("distributed", "distributed.client", "distributed.gc")
#: Jobs submitted to the scheduler at a time: at least this many, and two per thread of its workers.
WINDOW = 256


class DaskCluster(Executor):
    """An executor whose processes are the workers of a Dask cluster.

    Parameters
    ----------
    address
        The scheduler's address, e.g. ``tcp://host:8786``, or a scheduler file ``FILE.json``.

    Raises
    ------
    SolverUnavailable
        If the package ``distributed`` is missing here, or opticoll on a worker.
    BadOption
        If no scheduler answers at the address, or its workers run other code of opticoll (:class:`OtherCode`).
    """

    shares_files = False

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            msg = f"the cluster {address} needs the package 'distributed': pip install '.[cluster]' in the checkout"
            raise SolverUnavailable(msg) from error
        self.address, self.code = address, code_here()
        self._checked: set[str] = set()
        place = _scheduler(address)
        _check_listening(address, place)
        self._levels = {logger: logger.level for logger in map(logging.getLogger, LOGGERS)}
        for logger in self._levels:
            logger.setLevel(logging.CRITICAL)  # failures are reported by our own errors
        try:
            self._client = distributed.Client(place, timeout=f"{ANSWER_S}s", set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            self._restore_levels()
            raise _no_answer(address, error) from error
        try:
            self._check_code(self._threads())
        except OSError as error:
            self.close()
            raise self._lost(error) from error
        except BaseException:
            self.close()
            raise

    @property
    def jobs(self) -> int:
        """Threads of the workers connected now; at least 1, even if none has connected yet.

        Raises
        ------
        OSError
            If the scheduler does not answer.
        """
        return max(1, sum(self._threads().values()))

    def _threads(self) -> dict[str, int]:
        """Threads of the workers connected now, by address."""
        # client.nthreads() would wait without end for a scheduler that has died.
        scheduler = self._client.scheduler
        assert scheduler is not None
        threads: dict[str, int] = self._client.sync(scheduler.ncores, callback_timeout=f"{ANSWER_S}s")
        return threads

    def _check_code(self, workers: Iterable[str]) -> None:
        """Check that the workers at these addresses have the code of this process, those that join later too.

        Raises
        ------
        SolverUnavailable
            If opticoll is missing on one.
        OtherCode
            If one has other code.
        """
        new = [address for address in workers if address not in self._checked]
        if not (new or self._checked):
            _log.warning("the cluster %s has no workers yet: waiting for some to start", self.address)
        for address, theirs in (self._client.run(code_here, workers=new, on_error="return") if new else {}).items():
            if isinstance(theirs, ModuleNotFoundError):
                msg = (
                    f"worker {address} cannot import {theirs.name!r}: start the workers in the "
                    "same environment as this process, with opticoll and its solvers"
                )
                raise SolverUnavailable(msg, option="dask", value=self.address) from theirs
            if isinstance(theirs, OSError):  # it has left
                continue
            if theirs != self.code:
                has = theirs if isinstance(theirs, str) else f"another version of opticoll ({_line(theirs)})"
                name = self._client.scheduler_info(n_workers=-1)["workers"].get(address, {}).get("name")
                raise OtherCode(_differs(address, name, has, self.code), option="dask", value=self.address)
            self._checked.add(address)

    def map_unordered(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[int, Any | Exception]]:
        """Yield ``(index, result or exception)`` as jobs finish; items are drawn as workers become free.

        Raises
        ------
        ClusterLost
            If the connection to the scheduler is lost.
        OtherCode
            If a worker joins that has other code.
        """
        import distributed

        numbered = enumerate(items)
        index: dict[Any, int] = {}
        completed = distributed.as_completed(loop=self._client.loop)

        def submit() -> None:
            try:
                threads = self._threads()
                self._check_code(threads)
            except OSError as error:
                raise self._lost(error) from error
            count = max(WINDOW, 2 * sum(threads.values())) - len(index)
            for number, item in itertools.islice(numbered, count):
                packed = _packed(function, item)
                future = self._client.submit(run_same_code, self.code, plugins.shipment(), packed, pure=False)
                index[future.key] = number
                completed.add(future)

        try:
            submit()
            for future in completed:
                number = index.pop(future.key)
                result = self._result(future)
                future.release()
                yield number, result
                submit()
        finally:
            with suppress(Exception):
                self._client.cancel([*completed.futures], force=True)

    def _result(self, future: Any) -> Any | Exception:
        from concurrent.futures import CancelledError

        from distributed import KilledWorker

        try:
            error = future.exception(timeout=60)
            if error is None:
                return future.result(timeout=600)
        except (CancelledError, OSError) as lost:
            raise self._lost(lost) from lost
        if isinstance(error, KilledWorker):
            return JobCrashed(f"the job's worker died at every attempt ({_line(error)}); the other jobs continue")
        if isinstance(error, OtherCode):
            msg = f"{error}; finished results are kept"
            raise OtherCode(msg, option="dask", value=self.address) from error
        if isinstance(error, ImportError | AttributeError | TypeError):  # perhaps of a worker that cannot read the job
            self._checked.clear()
            self._check_code(self._threads())
        return error

    def _lost(self, error: BaseException) -> ClusterLost:
        msg = f"lost the Dask scheduler {self.address} ({_line(error)}); finished results are kept: start again"
        return ClusterLost(msg)

    def close(self) -> None:
        """Disconnect from the cluster, which keeps running."""
        with suppress(Exception):
            self._client.close(timeout=2)
        self._restore_levels()

    def _restore_levels(self) -> None:
        for logger, level in self._levels.items():
            logger.setLevel(level)


def _scheduler(address: str) -> str:
    """The scheduler's address, read from a scheduler file if one is given."""
    if not address.endswith(".json"):
        return address
    import json

    try:
        return str(json.loads(Path(address).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"not a scheduler file ({_line(error)}); name the one that the scheduler writes"
        raise BadOption(msg, option="dask", value=address) from error


def _check_listening(address: str, place: str) -> None:
    """Refuse at once where no scheduler listens: a client would keep retrying, or wait forever for a greeting."""
    protocol, _, rest = place.rpartition("://")
    host, _, port = rest.rpartition(":")
    if protocol not in {"", "tcp", "tls"}:
        return  # ucx and others are left to their own client
    if not host or not port.isdigit():
        msg = "not an address; write tcp://HOST:PORT, as the scheduler prints it, or its FILE.json"
        raise BadOption(msg, option="dask", value=address)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S) as connection:
            if protocol != "tls":
                connection.settimeout(ANSWER_S)
                if not connection.recv(1):  # both ends of a Dask connection send a greeting
                    raise ConnectionResetError("the connection was closed")  # noqa: EM101
    except (OSError, OverflowError) as error:
        raise _no_answer(address, error) from error


def _no_answer(address: str, error: BaseException) -> BadOption:
    msg = f"no Dask scheduler answers there ({_line(error)}); start one or fix the address"
    return BadOption(msg, option="dask", value=address)


def _line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def make_executor(jobs: int | None = None, dask: str | None = None) -> Executor:
    """Choose the executor that ``jobs`` and ``dask`` describe.

    Raises
    ------
    SolverUnavailable
        If a Dask address is given and ``distributed`` is missing.
    BadOption
        If no scheduler answers at that address, or both are given.
    BadInput
        If ``jobs`` is no whole number of at least 1.
    """
    if dask is not None:
        if jobs is not None:
            msg = "jobs and dask are mutually exclusive: the cluster has its own number of workers"
            raise BadOption(msg)
        return DaskCluster(dask)
    return InProcess() if jobs is None or jobs == 1 else LocalProcesses(jobs)
