"""Functions that numba compiles, with a cache on disk where one can be written."""

from __future__ import annotations

import sys
from contextvars import ContextVar
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

_noted = False
#: Steps that kernels may take as plain Python in a process: about as long as importing numba (0.3 s).
_MOST_PLAIN = 350_000
_plain_steps = 0
_plain: ContextVar[bool] = ContextVar("plain", default=False)


def kernels(module: str, steps: int) -> ModuleType:
    """A module of kernels for so many steps: as plain Python while all such steps take less than importing numba."""
    global _plain_steps
    _plain_steps += steps
    return import_module(module) if module in sys.modules or _plain_steps > _MOST_PLAIN else interpreted(module)


@cache
def interpreted(module: str) -> ModuleType:
    """A copy of a module of kernels whose functions are not compiled."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.loader is not None
    copy, token = module_from_spec(spec), _plain.set(True)
    try:
        spec.loader.exec_module(copy)
    finally:
        _plain.reset(token)
    return copy


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function by ``numba.njit`` with these options; what is compiled is kept for the next processes.

    Where neither the folder of the source nor a cache folder of the user can be written, as in a container, every
    process compiles anew. numba itself takes what it has kept for current while the file of the function is unchanged,
    though it compiles functions and constants of other files into it: here it is current while these are, too.
    """
    if _plain.get():
        return lambda function: function
    from numba import njit
    from numba.core.caching import IndexDataCacheFile

    options["no_cfunc_wrapper"] = True  # takes 5 % of the time, and is of no use here

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(**options)(function)
        if dispatcher is function:  # NUMBA_DISABLE_JIT: to debug kernels, or to see which lines tests reach
            return function
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
        import logging

        logging.getLogger("opticoll").warning(
            "no folder for compiled functions can be written, so every process compiles them anew; "
            "name one in NUMBA_CACHE_DIR"
        )
