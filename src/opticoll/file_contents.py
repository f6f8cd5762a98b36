"""Contents of files from outside, within a limit of size."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from opticoll.errors import BadFile


def at_home(path: str | os.PathLike[str]) -> Path:
    """The path, with the home folder for ``~``: shells leave it within words such as ``file:~/net.txt``."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  which fails where there is no home folder


def check_file(path: Path, most: int, remedy: str, where: str = "") -> None:
    """Refuse anything but a regular file (a pipe or device may be endless) of at most ``most`` bytes.

    Parameters
    ----------
    remedy
        What to do if the file cannot be read, such as ``name a solution file``.
    where
        How messages name the file; its path if empty.

    Raises
    ------
    BadFile
        With a one-line message that ends in ``remedy``.
    """
    try:
        status = at_home(path).stat()
    except OSError as error:
        raise unreadable(where or path, error.strerror or "", remedy) from None
    except ValueError:
        raise unreadable(where or path, "it is not a path", remedy) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file"
        raise unreadable(where or path, f"it is {kind}", remedy)
    if status.st_size > most:
        raise _too_large(where or path, status.st_size, most)


def unreadable(where: str | Path, reason: str, remedy: str) -> BadFile:
    """The error that a file cannot be read for a reason."""
    return BadFile(f"{where} cannot be read ({reason}); {remedy}")


def _too_large(where: str | Path, size: int, most: int) -> BadFile:
    return BadFile(f"{where} has {size} bytes, more than the limit of {most}; use a smaller file")


def read_bytes(path: Path, most: int, remedy: str, where: str = "") -> bytes:
    """Read the contents of a file; arguments and errors as for :func:`check_file`."""
    check_file(path, most, remedy, where)
    try:
        with at_home(path).open("rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise unreadable(where or path, error.strerror or "", remedy) from None
    if len(data) > most:  # it has grown, or its size was unknown
        raise _too_large(where or path, len(data), most)
    return data
