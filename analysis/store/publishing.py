"""Atomic files and advisory locks on a file system that several machines share.

A file is written under a temporary name in its own folder, flushed to the disk, and then linked to its name.
``link`` fails if the name exists, also between machines, so of several writers exactly one wins.

A cell is claimed by an advisory lock, which the system releases when its holder dies. The lock only avoids duplicate
work: on a file system without locks every claim succeeds, and the exclusive name of the record decides.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from opticoll.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


TEMPORARY = ".tmp-"
#: Age [s] from which a temporary file counts as left behind by a writer that is gone.
STALE_S = 24 * 3600.0


class AlreadyStored(Exception):
    """The name is taken: another writer has published it first."""


def publish(path: Path, write: Callable[[BinaryIO], None]) -> None:
    """Create ``path`` with what ``write`` writes, whole and on disk.

    Raises
    ------
    AlreadyStored
        If ``path`` exists; it is left as it is.
    BadInput
        If the folder cannot be written.
    """
    temporary = path.parent / f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(6)}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        _link(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        msg = f"store: cannot write {path}: {error.strerror or error}; choose another folder with --store"
        raise BadInput(msg) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except OSError as error:
        # A network file system may carry out a link and lose the answer: two names then mean that we won.
        if temporary.stat().st_nlink == 2:
            return
        if isinstance(error, FileExistsError):
            raise AlreadyStored(path.name) from None
        raise


def _sync_folder(folder: Path) -> None:
    """Put the new name on disk, where the system lets folders be flushed."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sweep(folder: Path, *, stale_s: float = STALE_S) -> int:
    """Remove temporary files that writers left behind ``stale_s`` seconds ago or more; their number."""
    removed = 0
    oldest = time.time() - stale_s
    for path in folder.glob(f"{TEMPORARY}*"):
        with suppress(OSError):  # another process may sweep too
            if path.stat().st_mtime <= oldest:
                path.unlink()
                removed += 1
    return removed


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
