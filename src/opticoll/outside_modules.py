"""Modules from outside installed packages that Python source loads, with the SHA-256 of each file.

Installed packages change with their version; a module beside a plug-in, on ``PYTHONPATH`` or of an editable install
changes at any time, and with it the answers of the runs that use it. Found are those that Python has loaded, and those
that its :mod:`modulefinder` sees in ``import`` statements at any depth, also inside functions. Neither opticoll, the
standard library nor anything in ``site-packages`` counts.
"""

from __future__ import annotations

import io
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

_OURS = "opticoll"
_SOURCE = ("", "r", 1)  # modulefinder's description of a module of source text


def modules_of(source: str, place: str = "", loaded: Iterable[str] = (), own: str = "") -> dict[str, str]:
    """The modules from outside installed packages that a source loads, directly or not, with their SHA-256.

    Parameters
    ----------
    source, place
        Python source, and its file.
    loaded
        Names of modules that were loaded while the source ran.
    own
        Name of a top-level package that counts in any case, wherever it is installed.
    """
    finder = _finder()
    with suppress(ImportError):
        finder.load_module("__main__", io.StringIO(source), place, _SOURCE)
    files: dict[str, object] = {name: module.__file__ for name, module in finder.modules.items()}
    files |= {name: getattr(sys.modules.get(name), "__file__", None) for name in loaded}
    outside = [name for name in sorted(files) if files[name] != place and _is_outside(name, files[name], own)]
    return {name: digest for name in outside if (digest := digest_of(str(files[name]))) is not None}


def _finder() -> Any:
    """A finder that searches the import path, except installed packages and the standard library."""
    from modulefinder import ModuleFinder  # inside, for processes without plug-ins

    class Finder(ModuleFinder):
        def find_module(self, name: str, path: Any, parent: Any = None) -> Any:
            if parent is None and name == _OURS:  # which does not count: hundreds of files, in a checkout
                raise ImportError(name)
            try:
                return super().find_module(name, path, parent)
            except (AttributeError, TypeError) as error:  # a package without __init__.py
                raise ImportError(name) from error

        def load_module(self, fqname: str, fp: Any, pathname: str, file_info: Any) -> Any:
            try:
                return super().load_module(fqname, fp, pathname, file_info)
            except (SyntaxError, ValueError) as error:  # it cannot be imported either
                raise ImportError(fqname) from error

    return Finder([place for place in sys.path if place and not is_installed(place)])


def digest_of(file: str) -> str | None:
    """The SHA-256 of a file as it is now; None if it cannot be read."""
    with suppress(OSError):
        return sha256(Path(file).read_bytes()).hexdigest()
    return None


def changed(digests: Mapping[str, str]) -> str | None:
    """The first module whose file is not that of its digest, of those that are loaded."""
    for name, digest in digests.items():
        file = getattr(sys.modules.get(name), "__file__", None)
        if file and digest_of(file) not in (None, digest):
            return name
    return None


def _is_outside(name: str, file: object, own: str) -> bool:
    top = name.partition(".")[0]
    ours = top in {_OURS, "__main__", "__mp_main__"} or top.startswith("opticoll_plugin_")
    return bool(file) and not ours and (top == own or not is_installed(str(file)))


@cache
def is_installed(place: str) -> bool:
    """Whether a file or folder belongs to an installed package or to the standard library."""
    path = Path(place).resolve()
    roots = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    return any(path.is_relative_to(Path(root).resolve()) for root in roots if root)
