"""Functions that numba compiles, with a cache on disk where one can be written."""

from __future__ import annotations

import logging
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_noted = False


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function by ``numba.njit`` with these options; what is compiled is kept for the next processes.

    Where neither the folder of the source nor a cache folder of the user can be written, as in a container, every
    process compiles anew. numba itself takes what it has kept for current while the file of the function is unchanged,
    though it compiles functions and constants of other files into it: here it is current while these are, too.
    """
    from numba import njit
    from numba.core.caching import IndexDataCacheFile

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        try:
            dispatcher.enable_caching()
        except RuntimeError:
            note()
            return dispatcher
        kept = dispatcher._cache
        stamp = (kept._impl.locator.get_source_stamp(), code_of(function.__globals__))
        kept._cache_file = IndexDataCacheFile(kept.cache_path, kept._impl.filename_base, stamp)
        return dispatcher

    return decorate


def code_of(names: Mapping[str, Any]) -> str:
    """SHA-256 of what functions of a module are compiled from, by the names in it.

    It covers its source, the constants that it defines or imports, and the modules of compiled functions that it
    imports, with theirs.
    """
    from numba.core.dispatcher import Dispatcher

    content, seen, left = sha256(), set(), [names]
    while left:
        names = left.pop()
        if names["__name__"] in seen:
            continue
        seen.add(names["__name__"])
        content.update(_digest(names.get("__file__")))
        for name, value in sorted(names.items()):
            if isinstance(value, Dispatcher):
                left.append(value.py_func.__globals__)
            elif isinstance(value, int | float | str | tuple) and not name.startswith("__"):
                content.update(f"{name} = {value!r}\n".encode())
    return content.hexdigest()


@cache
def _digest(file: str | None) -> bytes:
    return sha256(b"" if file is None else Path(file).read_bytes()).digest()


def noted() -> bool:
    """Whether this process compiles without a cache, and has said so."""
    return _noted


def note() -> None:
    """Say once a process that there is no cache."""
    global _noted
    if not _noted:
        _noted = True
        logging.getLogger("opticoll").warning(
            "no folder for compiled functions can be written, so every process compiles them anew; "
            "name one in NUMBA_CACHE_DIR"
        )
