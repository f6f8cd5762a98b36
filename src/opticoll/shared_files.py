"""Files that processes share: atomic writing and locks; private folders.

This also works on a file system that several machines share.

A file is written under a temporary name in its own folder and then renamed (:func:`rewrite`) or linked
(:func:`publish`) to its name, so readers never see a partial file. ``link`` fails if the name exists, also between
machines, so exactly one of several writers succeeds.

The system releases an advisory lock when its holder dies. On a file system without locks, every claim succeeds: a claim
only avoids duplicate work.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from opticoll.errors import BadFile, BadInput, OpticollError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


TEMPORARY = ".tmp-"
#: Age [s] from which a temporary file counts as abandoned by its writer.
STALE_S = 24 * 3600.0
#: Shortest time [s] between two flushes of a folder.
SYNC_S = 1.0


def working_folder() -> str:
    """The working folder of this process.

    Raises
    ------
    BadInput
        If it has been removed.
    """
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        msg = "the working folder has been removed; change to another one"
        raise BadInput(msg) from None


class AlreadyStored(Exception):
    """The file already exists, because another writer published it first."""


def publish(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Create ``path`` with the content that ``write`` writes, complete and flushed to disk.

    Raises
    ------
    AlreadyStored
        If ``path`` exists; it is not changed.
    BadInput
        If the folder cannot be written.
    """
    temporary = _temporary(path.parent)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        _link(temporary, path)
        _sync_folder(path.parent)
    except OSError as error:
        msg = f"store: cannot write {path}: {error.strerror or error}; choose another folder by"
        raise BadInput(msg, remedy={"store": "DIR"}) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def rewrite(path: Path, content: str | bytes | Iterable[str] | Callable[[BinaryIO], None]) -> None:
    """Replace the content of ``path``, given or written by a function; readers see either the old or the new file.

    It is flushed to disk first, so that it also survives a crash of the machine. What is no file of its own, such as a
    pipe or ``/dev/stdout``, is written where it is.
    """
    own = not path.is_symlink() and (path.is_file() or not path.exists())
    target = _temporary(path.parent) if own else path
    try:
        with target.open("xb" if own else "wb") as file:
            if callable(content):
                content(file)
            elif isinstance(content, bytes):
                file.write(content)
            else:
                file.writelines(part.encode() for part in ([content] if isinstance(content, str) else content))
            if own:
                file.flush()
                os.fsync(file.fileno())
        if own:
            target.replace(path)
    finally:
        if own:
            target.unlink(missing_ok=True)


def write_file(path: Path, content: str | bytes | Iterable[str] | Callable[[BinaryIO], None]) -> Path:
    """As :func:`rewrite`, a file that a user names; an earlier one stays if that fails.

    Raises
    ------
    BadFile
        If it cannot be written.
    """
    try:
        rewrite(path, content)
    except (OSError, ValueError) as error:  # a path may hold a NUL character
        if isinstance(error, OpticollError):  # about the contents
            raise
        reason = getattr(error, "strerror", None) or error
        msg = f"{path}: cannot be written: {reason}; name a file in an existing, writable folder"
        raise BadFile(msg) from error
    return path


def _temporary(folder: Path) -> Path:
    return folder / f"{TEMPORARY}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(6)}"


def _link(temporary: Path, path: Path) -> None:
    try:
        os.link(temporary, path)
    except OSError as error:
        # A network file system may carry out a link but lose the reply: two names then mean that it succeeded.
        if temporary.stat().st_nlink == 2:
            return
        if isinstance(error, FileExistsError):
            raise AlreadyStored(path.name) from None
        raise


_synced: dict[Path, float] = {}


def _sync_folder(folder: Path) -> None:
    """Flush new names in a folder to disk, at most once a second, where the system allows it.

    A crash of the machine may lose the names of the last second, but never part of a file.
    """
    now = time.monotonic()
    if now < _synced.get(folder, -SYNC_S) + SYNC_S:
        return
    _synced[folder] = now
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sweep(folder: Path, *, stale_s: float = STALE_S) -> int:
    """Remove temporary files that writers abandoned at least ``stale_s`` seconds ago; return their number."""
    removed = 0
    oldest = time.time() - stale_s
    for path in folder.glob(f"{TEMPORARY}*"):
        with suppress(OSError):  # another process may remove it first
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
    """Hold the lock file ``path`` during the block; yield False if another process holds it."""
    descriptor = _lock(path)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        with suppress(OSError):
            path.unlink()  # while we still hold the lock
        os.close(descriptor)


def _lock(path: Path) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        locked = try_lock(descriptor)
        if locked is False:
            os.close(descriptor)
            return None
        if locked is None or _is_current(path, descriptor):
            return descriptor
        os.close(descriptor)  # its holder removed the file between our opening and locking it


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file; return False if another process holds the lock, None if the file system has no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_current(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


#: Environment variable with the place for the folders of a worker; its parent removes it when the worker has ended.
SCRATCH = "OPTICOLL_SCRATCH"


def scratch_place() -> Path:
    """A path for a private folder that does not exist yet.

    Raises
    ------
    BadInput
        If there is no folder for temporary files.
    """
    try:
        place = os.environ.get(SCRATCH) or tempfile.gettempdir()
    except FileNotFoundError:
        msg = "no folder for temporary files can be written, which every solve needs; name one in TMPDIR"
        raise BadInput(msg) from None
    return Path(place) / f"opticoll-{secrets.token_hex(8)}"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a private folder, and remove it afterwards."""
    folder = scratch_place()
    folder.mkdir(mode=0o700, parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
