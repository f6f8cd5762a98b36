"""Functions that numba compiles, with a cache on disk where one can be written."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_noted = False


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function by ``numba.njit`` with these options; what is compiled is kept for the next processes.

    Where neither the folder of the source nor a cache folder of the user can be written, as in a container, every
    process compiles anew.
    """
    from numba import njit

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        try:
            dispatcher.enable_caching()
        except RuntimeError:
            note()
        return dispatcher

    return decorate


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
