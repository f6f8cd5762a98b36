"""Jobs on a Dask cluster that somebody else started: on this machine, by hand, or by ``dask-jobqueue`` on SLURM.

Workers may come and go. A job whose worker dies is run again by another; after as many deaths as the scheduler
allows (``distributed.scheduler.allowed-failures``, 3) it is taken for the cause and answered with
:class:`~opticoll.solvers.executor.JobCrashed`. Results come back to the caller, so that workers need no folder in
common with
him: only the same version of opticoll.
"""

from __future__ import annotations

import itertools
import logging
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticoll.errors import BadOption, SolverUnavailable
from opticoll.solvers.executor import Closing, ClusterLost, JobCrashed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

#: How long [s] a scheduler may take to accept a connection, and then to answer.
CONNECT_S, ANSWER_S = 3.0, 10.0
#: Jobs that are with the scheduler at a time: at least so many, and two a thread of its workers.
WINDOW = 256


class DaskCluster(Closing):
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
        If no scheduler answers at the address, or its workers run another version of opticoll.
    """

    shares_files = False

    def __init__(self, address: str) -> None:
        try:
            import distributed
        except ImportError as error:
            msg = f"the cluster {address} needs the package 'distributed': pip install 'opticoll[cluster]'"
            raise SolverUnavailable(msg) from error
        self.address = address
        place = _scheduler(address)
        _refuse_deaf(address, place)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is told by our own errors
        try:
            self._client = distributed.Client(place, timeout=f"{ANSWER_S}s", set_as_default=False)
        except (OSError, ValueError, TypeError) as error:
            msg = f"--dask {address}: no Dask scheduler answers there ({_line(error)}); start one or mend the address"
            raise BadOption(msg) from error
        try:
            self._refuse_strangers()
        except BaseException:
            self.close()
            raise

    @property
    def jobs(self) -> int:
        """Threads that the workers have now; at least 1, though none may have come yet."""
        return max(1, sum(self._client.nthreads().values()))

    def _refuse_strangers(self) -> None:
        """Ask every worker that is there which opticoll it has."""
        try:
            found: dict[str, str] = self._client.run(installed_version)
        except ModuleNotFoundError as error:
            msg = (
                f"--dask {self.address}: a worker cannot import {error.name!r}: start the workers in an environment "
                "with opticoll and its solvers, the same as here"
            )
            raise SolverUnavailable(msg) from error
        ours = installed_version()
        for worker, theirs in found.items():
            if theirs != ours:
                msg = f"--dask {self.address}: worker {worker} has opticoll {theirs}, here is {ours}; use one version"
                raise BadOption(msg)
        if not found:
            _log.warning("the cluster %s has no workers yet: waiting until some come", self.address)

    def map_unordered(
        self, function: Callable[[Any], Any], items: Iterable[Any]
    ) -> Iterator[tuple[int, Any | Exception]]:
        """Yield ``(index, result or exception)`` as jobs finish; items are drawn as workers get free.

        Raises
        ------
        ClusterLost
            If the scheduler is gone.
        """
        from distributed import as_completed

        numbered = enumerate(items)
        index: dict[Any, int] = {}
        done = as_completed(loop=self._client.loop)

        def submit() -> None:
            try:
                count = max(WINDOW, 2 * self.jobs) - len(index)
            except OSError as error:
                raise self._lost(error) from error
            for number, item in itertools.islice(numbered, count):
                future = self._client.submit(function, item, pure=False)
                index[future.key] = number
                done.add(future)

        try:
            submit()
            for future in done:
                number = index.pop(future.key)
                result = self._result(future)
                future.release()
                yield number, result
                submit()
        finally:
            with suppress(Exception):
                self._client.cancel([*done.futures], force=True)

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
            return JobCrashed(f"its worker died each time it was tried ({_line(error)}); the other jobs go on")
        return error

    def _lost(self, error: BaseException) -> ClusterLost:
        msg = f"the Dask scheduler {self.address} is gone ({_line(error)}); what came back is kept: start again"
        return ClusterLost(msg)

    def close(self) -> None:
        """Leave the cluster, which goes on."""
        with suppress(Exception):
            self._client.close(timeout=2)


def installed_version() -> str:
    """Version of opticoll in this process, on a worker too."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("opticoll")
    except PackageNotFoundError:
        return "unknown"


def _scheduler(address: str) -> str:
    """The scheduler's own address, out of a scheduler file if one is named."""
    if not address.endswith(".json"):
        return address
    import json

    try:
        return str(json.loads(Path(address).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        msg = f"--dask {address}: is no scheduler file ({_line(error)}); name the one given to --scheduler-file"
        raise BadOption(msg) from error


def _refuse_deaf(address: str, place: str) -> None:
    """Refuse at once where no scheduler listens: a client would go on trying, or wait for ever for a greeting."""
    protocol, _, rest = place.rpartition("://")
    host, _, port = rest.rpartition(":")
    if protocol not in {"", "tcp", "tls"}:
        return  # ucx and others: their own client knows
    if not host or not port.isdigit():
        msg = f"--dask {address}: is no address; write tcp://HOST:PORT, as the scheduler prints it, or its FILE.json"
        raise BadOption(msg)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S) as connection:
            if protocol != "tls":
                connection.settimeout(ANSWER_S)
                if not connection.recv(1):  # both ends of a Dask connection speak first
                    raise ConnectionResetError("it hangs up")  # noqa: EM101
    except (OSError, OverflowError) as error:
        msg = f"--dask {address}: no Dask scheduler answers there ({_line(error)}); start one or mend the address"
        raise BadOption(msg) from error


def _line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


_log = logging.getLogger("opticoll")
