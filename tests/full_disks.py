"""A disk that is full."""

from __future__ import annotations

import resource
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def no_file_above(size: int) -> Iterator[None]:
    """A disk on which no file can be larger than a size [bytes].

    Python writes no compiled modules there: it would keep cut ones, which no later run can load.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    compiling, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = compiling
