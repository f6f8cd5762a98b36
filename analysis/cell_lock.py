"""Who works on a cell: an advisory lock that the system releases when its holder dies, however he dies.

Only a courtesy that saves double work. Where the file system has no locks everybody gets one, and the exclusive
name of the record decides.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

try:
    import fcntl
except ImportError:  # not a POSIX system
    fcntl = None  # type: ignore[assignment]


@contextmanager
def claim(path: Path) -> Iterator[bool]:
    """Hold the lock file ``path`` for the time of the block; False if another process holds it."""
    descriptor = _lock(path)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            path.unlink()  # while it is still ours
        os.close(descriptor)


def _lock(path: Path) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        if fcntl is None:
            return descriptor
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:  # no locks on this file system
            return descriptor
        if _is_current(path, descriptor):
            return descriptor
        os.close(descriptor)  # its holder removed the file between our opening and locking it


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
