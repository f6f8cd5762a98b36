"""Modules from outside installed packages that Python source loads: which they are, and the SHA-256 of each.

Installed packages change with their version; a module beside a plug-in, on ``PYTHONPATH`` or of an editable install
changes at any time, and with it the answers of the runs that use it. The modules are found from the source, without
running anything: every ``import`` at any depth, also inside functions, and ``import_module`` with a constant name.
Source that loads code by names or paths that are known only when it runs (``import_module(name)``, ``exec``, ...) is
taken to load every Python file of its package, or of its folder if it is in none.

Files of data count, too, if a string of the source is their path from the source's folder, such as ``"costs.csv"``.
Those whose path is computed are not found: a plug-in states them as parameters of its own.

Neither opticoll, the standard library nor anything in ``site-packages`` counts, except the package that is asked about.
"""

from __future__ import annotations

import ast
import hashlib
import re
import struct
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.machinery import ModuleSpec
from importlib.util import decode_source, resolve_name
from pathlib import Path

#: Calls that load code under a name or path which is known only when they run, unless the name is a constant.
_IMPORTERS = frozenset({"import_module", "__import__", "run_module"})
_LOADERS = frozenset(
    {"exec", "run_path", "spec_from_file_location", "SourceFileLoader", "iter_modules", "walk_packages"}
)
#: Strings that may be the path of a file of data, and the largest such file that is read [bytes].
_PATH = re.compile(r"[^\s:*?<>|\"']{1,200}\.[A-Za-z0-9]{1,8}")
MOST_DATA = 256 << 20
_STARTED = time.time()
#: Digest of each module as it was when it was loaded, with the spec by which it was.
_loaded: dict[str, tuple[ModuleSpec, str]] = {}


@dataclass(frozen=True)
class _Imports:
    """Names that a source imports, strings that may be paths, and whether it also loads code by computed names."""

    names: tuple[str, ...]
    paths: tuple[str, ...]
    computed: bool


def modules_of(source: str, *, file: Path | None = None, own: str = "") -> dict[str, str]:
    """The modules from outside installed packages that a source loads, directly or not, with their SHA-256.

    Parameters
    ----------
    source
        Python source.
    file
        Its file, in whose folder source that loads code by computed names may find it; listed as ``./name.py``.
    own
        Name of a top-level package that counts in any case, wherever it is installed.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()
    todo = _candidates(_imports(source, ""), "", file, found)
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        spec = _spec(name)
        if spec is None or not _counts(spec, name, own):
            continue
        data = _contents(spec)
        if data is None:  # a namespace package
            continue
        found[name] = hashlib.sha256(data).hexdigest()
        text = _decoded(data) if spec.origin is not None and spec.origin.endswith(".py") else ""
        inside = name if spec.submodule_search_locations is not None else name.rpartition(".")[0]
        todo += _candidates(_imports(text, inside), inside, Path(spec.origin or ""), found)
    return dict(sorted(found.items()))


def digest_of(name: str) -> str | None:
    """The SHA-256 of a module's file as it is now; None if there is no such module."""
    spec = _spec(name)
    data = None if spec is None else _contents(spec)
    return None if data is None else hashlib.sha256(data).hexdigest()


def note_loaded(modules: Mapping[str, str]) -> str | None:
    """Remember with which digests modules are loaded, of those that are; the first one whose file differs now."""
    for name, digest in modules.items():
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is not None and not _is_known(name, spec):
            if digest_of(name) not in (None, digest):  # it may be missing on another machine
                return name
            _loaded[name] = (spec, digest)
    return None


def outdated(modules: Mapping[str, str]) -> str | None:
    """The first of the modules that is loaded with contents other than those of its digest, if any.

    A module that was loaded before anyone asked counts as such if its file has changed since this process started, and
    its bytecode is not that of the file.
    """
    for name, digest in modules.items():
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if spec is not None and (_loaded[name][1] != digest if _is_known(name, spec) else _edited(spec)):
            return name
    return None


def _is_known(name: str, spec: ModuleSpec) -> bool:
    return name in _loaded and _loaded[name][0] is spec  # a reload makes another spec


def _edited(spec: ModuleSpec) -> bool:
    """Whether a module's file has changed since this process started, and its bytecode is of another state of it."""
    try:
        file = Path(spec.origin or "").stat()
    except OSError:
        return False
    header = b""
    with suppress(OSError):
        header = Path(spec.cached or "").read_bytes()[8:16]
    stamps = struct.pack("<II", int(file.st_mtime) & 0xFFFFFFFF, file.st_size & 0xFFFFFFFF)
    return file.st_mtime > _STARTED and header != stamps


def _candidates(imports: _Imports, package: str, file: Path | None, found: dict[str, str]) -> list[str]:
    """Names of modules that may be loaded; files outside packages are entered into ``found`` at once."""
    names = [name for full in imports.names for name in _prefixes(full)]
    if file is not None:
        for path in imports.paths:
            _enter(file.parent / path, path, found)
    if not imports.computed:
        return names
    if package:
        return names + _below(package.partition(".")[0])
    for module in sorted(set(file.parent.glob("*.py")) - {file}) if file is not None else ():
        data = _enter(module, module.name, found)
        names += [part for full in _imports(_decoded(data), "").names for part in _prefixes(full)]
    return names


def _enter(path: Path, name: str, found: dict[str, str]) -> bytes:
    """Enter a file into ``found``, if it can be read, and return what it holds."""
    data = b""
    with suppress(OSError, ValueError):
        if not path.is_file() or path.stat().st_size > MOST_DATA:
            return data
        data = path.read_bytes()
        digest, name = hashlib.sha256(data).hexdigest(), f"./{name}"
        while found.get(name, digest) != digest:  # of another folder
            name = f"./{name}"
        found[name] = digest
    return data


def _prefixes(name: str) -> Iterator[str]:
    """``a``, ``a.b`` and ``a.b.c`` for ``a.b.c``: importing the last imports all."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _below(package: str) -> list[str]:
    """Names of all Python modules of a package."""
    spec = _spec(package)
    names = []
    for place in () if spec is None else _places(spec, package):
        for path in sorted(Path(place).rglob("*.py")):
            parts = path.relative_to(place).with_suffix("").parts
            names.append(".".join([package, *(parts[:-1] if parts[-1] == "__init__" else parts)]))
    return names


@lru_cache(maxsize=4096)
def _imports(source: str, package: str) -> _Imports:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it cannot be imported either
        return _Imports((), (), computed=False)
    names: set[str] = set()
    paths: set[str] = set()
    computed = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute("." * node.level + (node.module or ""), package)
            names.update(f"{base}.{alias.name}" if alias.name != "*" else base for alias in node.names if base)
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in _IMPORTERS and node.args and isinstance(node.args[0], ast.Constant):
                names.add(_absolute(str(node.args[0].value), package))
            else:
                computed |= called in _IMPORTERS or called in _LOADERS
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _PATH.fullmatch(node.value):
            paths.add(node.value)
    return _Imports(tuple(sorted(filter(None, names))), tuple(sorted(paths)), computed)  # in one order everywhere


def _absolute(name: str, package: str) -> str:
    """A module's full name; empty for a relative one that leads out of the package."""
    try:
        return resolve_name(name, package or None)
    except (ImportError, ValueError):
        return ""


def _spec(name: str) -> ModuleSpec | None:
    """The spec of a module, loaded or not; nothing is imported."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__spec__", None)
    parent, _, _ = name.rpartition(".")
    places: list[str] | None = None
    if parent:
        above = _spec(parent)
        if above is None or above.submodule_search_locations is None:
            return None
        places = _places(above, parent)
    for finder in list(sys.meta_path):
        with suppress(ImportError, AttributeError, KeyError, ValueError, TypeError):
            spec = finder.find_spec(name, places)
            if spec is not None:
                return spec
    return None


def _places(spec: ModuleSpec, name: str) -> list[str]:
    """Folders of a package."""
    try:
        return list(spec.submodule_search_locations or ())
    except KeyError:  # a namespace package below one that is not imported
        parent, _, last = name.rpartition(".")
        above = _spec(parent)
        folders = [] if above is None else [Path(place) / last for place in _places(above, parent)]
        return [str(folder) for folder in folders if folder.is_dir()]


def _counts(spec: ModuleSpec, name: str, own: str = "") -> bool:
    top = name.partition(".")[0]
    if top in {"opticoll", "__main__", "__mp_main__"} or top.startswith("opticoll_plugin_"):
        return False
    places = [spec.origin] if spec.has_location and spec.origin else _places(spec, name)
    return top == own or any(not is_installed(place) for place in places)


@cache
def is_installed(place: str) -> bool:
    """Whether a file or folder belongs to an installed package or to the standard library."""
    path = Path(place).resolve()
    if {"site-packages", "dist-packages"} & set(path.parts):
        return True
    return any(path.is_relative_to(root) for root in _standard_library())


@cache
def _standard_library() -> tuple[Path, ...]:
    paths = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    return tuple(Path(path).resolve() for path in paths if path)


def _contents(spec: ModuleSpec) -> bytes | None:
    """Contents of a module's file or archive member; None if it has none."""
    if not spec.has_location or not spec.origin:
        return None
    with suppress(OSError):
        return Path(spec.origin).read_bytes()
    with suppress(OSError, AttributeError):
        return spec.loader.get_data(spec.origin)  # type: ignore[union-attr]
    return None


def _decoded(data: bytes) -> str:
    try:
        return decode_source(data)
    except (SyntaxError, UnicodeDecodeError):
        return ""
