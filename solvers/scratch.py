"""Private folders through which a parent and its worker exchange JSON and arrays.

A worker that is killed during a write leaves the previous state readable. The owner of a folder locks it; a folder
whose owner was killed is removed by the next process that makes one.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.atomic import rewrite, try_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

PREFIX = "opticoll-"
NESTED = "OPTICOLL_SCRATCH"
"""Environment variable: the folder of the enclosing worker, so that nested folders are removed with it."""

_MIB = 2**20
_SWEEP_AGE_S = 60.0


def write_json(path: Path, value: Any) -> None:
    """Write ``value`` atomically."""
    rewrite(path, json.dumps(value, default=_plain), durable=False)


def read_json(path: Path) -> Any:
    """Read what :func:`write_json` wrote, or None if there is nothing yet."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None


def write_arrays(folder: Path, arrays: Arrays, tag: str) -> dict[str, str]:
    """Save named arrays; returns the file name of each."""
    files = {}
    for position, (name, array) in enumerate(arrays.items()):
        files[name] = f"{tag}-{position}.npy"
        np.save(folder / files[name], np.asarray(array, order="C"), allow_pickle=False)
    return files


def read_arrays(folder: Path, files: Mapping[str, str], *, mapped: bool = False) -> dict[str, NDArray[Any]]:
    """Load arrays by the names :func:`write_arrays` returned; ``mapped`` leaves them on file, read-only."""
    return {name: _read_array(folder / file, mapped=mapped) for name, file in files.items()}


def _read_array(path: Path, *, mapped: bool) -> NDArray[Any]:
    if mapped:
        with suppress(ValueError):  # an array without elements cannot be mapped
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
            return array
    whole: NDArray[Any] = np.load(path, allow_pickle=False)
    return whole


class Report:
    """The progress of a worker, which the parent can read even after the worker has died.

    New values and arrays replace earlier ones of the same name and leave the others: a new bound keeps the incumbent.
    Callable from any thread of the solver.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._serial = 0
        self._values: dict[str, Any] = {}
        self._files: dict[str, str] = {}

    def __call__(self, values: Mapping[str, Any], arrays: Arrays | None = None) -> None:
        """Save ``values`` and ``arrays``."""
        with self._lock:
            self._serial += 1
            self._values.update(values)
            old = []
            if arrays:
                new = write_arrays(self._folder, arrays, f"progress-{self._serial}")
                old = [self._files[name] for name in new if name in self._files]
                self._files.update(new)
            write_json(
                self._folder / "progress.json",
                {"serial": self._serial, "values": self._values, "files": self._files},
            )
            for name in old:
                (self._folder / name).unlink(missing_ok=True)


def read_progress(
    folder: Path, after: int = 0, *, mapped: bool = False
) -> tuple[int, dict[str, Any], dict[str, NDArray[Any]]] | None:
    """Read the last report if its serial is above ``after``: serial, values, arrays; else None.

    ``mapped`` leaves the arrays on file, for callers that may not look at them.
    """
    for _ in range(20):
        state = read_json(folder / "progress.json")
        if state is None or state["serial"] <= after:
            return None
        try:
            return state["serial"], state["values"], read_arrays(folder, state["files"], mapped=mapped)
        except FileNotFoundError:
            continue  # replaced by a newer report between the two reads
    return None


@contextmanager
def scratch_folder(size_bytes: int) -> Iterator[Path]:
    """Make a private folder with room for ``size_bytes``, in memory if possible, and remove it afterwards."""
    _sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=_place(size_bytes)))
    lock = _lock(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.exists():  # a dying worker may have written once more meanwhile
            time.sleep(0.05)
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _place(size_bytes: int) -> str | None:
    outer = os.environ.get(NESTED)
    if outer and Path(outer).is_dir():
        return outer
    shared = Path("/dev/shm")
    if shared.is_dir() and os.access(shared, os.W_OK):
        with suppress(OSError):
            if shutil.disk_usage(shared).free > 4 * size_bytes + 256 * _MIB:
                return str(shared)
    return None


def _lock(folder: Path) -> int | None:
    """Lock a folder until the descriptor is closed; None if another process holds it or there are no locks."""
    handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    if try_lock(handle):
        return handle
    os.close(handle)
    return None


@cache
def _sweep() -> None:
    """Remove folders of this user whose owner was killed (their lock is free)."""
    for parent in {_place(0) or tempfile.gettempdir(), tempfile.gettempdir()}:
        for folder in Path(parent).glob(f"{PREFIX}*"):
            with suppress(OSError):
                status = folder.stat()
                if status.st_uid != os.getuid() or time.time() - status.st_mtime < _SWEEP_AGE_S:
                    continue
                if not (folder / "lock").exists():
                    continue
                handle = _lock(folder)
                if handle is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(handle)


def _plain(value: Any) -> Any:
    """JSON for values that solvers return: numpy scalars, paths, enumerations."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    return str(value)
