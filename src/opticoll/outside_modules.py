"""Modules from outside installed packages that code imports, with the SHA-256 of each file.

Installed packages change with their version; a module beside a plug-in, on ``PYTHONPATH`` or of an editable install
changes at any time, and with it the answers of the runs that use it. Found are modules by their names, and those that
``import`` statements in these name, also inside functions; nothing is run. Neither opticoll, the standard library nor
anything in ``site-packages`` counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dis import get_instructions
from functools import cache, lru_cache
from hashlib import sha256
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import CodeType


def imported_in(code: CodeType) -> Iterator[str]:
    """Names that the ``import`` statements of code may mean: modules, and members of modules."""
    module = ""
    for step in get_instructions(code):
        if step.opname == "IMPORT_NAME":
            module = step.argval
            yield module
        elif step.opname == "IMPORT_FROM":
            yield f"{module}.{step.argval}".lstrip(".")
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from imported_in(part)


def modules_of(names: Iterable[str], own: str = "") -> dict[str, str]:
    """Those of the modules, and of what they import directly or not, from outside installed packages: their SHA-256.

    ``own`` is a top-level package that counts in any case, wherever it is installed.
    """
    found: dict[str, str] = {}
    left, seen = list(names), set[str]()
    while left:
        name = left.pop()
        top, parent = name.partition(".")[0], name.rpartition(".")[0]
        ours = top in {"opticoll", "__main__", "__mp_main__"} or top.startswith("opticoll_plugin_")
        if name in seen or ours or not all(map(str.isidentifier, name.split("."))):
            continue
        seen.add(name)
        left += [parent] if parent else []
        file = _file_of(name)
        if file is None or not (top == own or not _is_installed(file)) or not Path(file).is_file():
            continue
        data = Path(file).read_bytes()
        found[name] = sha256(data).hexdigest()
        package = name if Path(file).stem == "__init__" else parent
        for one in _imported_by(data, file):
            left += [one, *(f"{above}.{one}" for above in _and_parents(package))]  # it may be relative
    return dict(sorted(found.items()))


@lru_cache(256)
def _imported_by(source: bytes, file: str) -> tuple[str, ...]:
    with suppress(SyntaxError, ValueError):  # it is no source text, or cannot be imported
        return tuple(imported_in(compile(source, file, "exec", dont_inherit=True)))
    return ()


def _and_parents(package: str) -> Iterator[str]:
    while package:
        yield package
        package = package.rpartition(".")[0]


def _file_of(name: str) -> str | None:
    """The file of a module, loaded or not."""
    if name in sys.modules:
        return getattr(sys.modules[name], "__file__", None)
    spec = _spec_of(name)
    return None if spec is None or not spec.has_location else spec.origin


def _spec_of(name: str) -> ModuleSpec | None:
    """The specification of a module, without importing the packages that it is in."""
    parent, inside, _ = name.rpartition(".")
    if inside:
        package = _spec_of(parent)
        places = None if package is None else package.submodule_search_locations
        return None if places is None else PathFinder.find_spec(name, list(places))
    with suppress(ImportError, ValueError):
        return find_spec(name)
    return None


@cache
def _is_installed(place: str) -> bool:
    """Whether a file belongs to an installed package or to the standard library."""
    import sysconfig

    path = Path(place).resolve()
    roots = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    return any(path.is_relative_to(Path(root).resolve()) for root in roots if root)
