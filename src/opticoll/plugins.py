"""Plug-ins: user-defined formulations, families, solvers, methods, claims and bounds, from outside the package.

A plug-in is a Python file or an installed module. It contributes the same objects as our own modules, under the same
names: ``FORMULATION``, ``ADAPTER``, ``METHOD`` and ``CLAIM`` (or ``FORMULATIONS``, ..., a list), ``BOUNDS``
(``{formulation: function or list of functions}``, see :func:`opticoll.formulations.registry.plugin_bounds`), and
families and modifiers by their decorators. It is named by ``--plugin``, by the
environment variable ``OPTICOLL_PLUGINS`` (entries separated as in ``PATH``), by ``plugins`` in a study file, or by an
entry point of the group ``opticoll.plugins``.

Every worker process receives the source of the files and the names of the modules, and runs them when it needs them.
A worker on another machine therefore needs no copy of a file, but every module must be installed there.

The resume key of a run that uses a plug-in covers its source and that of every module from outside installed packages
that it loads (:mod:`opticoll.outside_modules`). A module that has changed since it was loaded is refused: a
new process loads it. Data files whose path is computed are not covered: name them in settings (``file:PATH``), which
are pinned to their contents.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from hashlib import sha256
from importlib import import_module
from importlib.abc import ExecutionLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source, find_spec, spec_from_loader
from pathlib import Path
from platform import node
from secrets import token_hex
from types import ModuleType
from typing import Any

from opticoll import outside_modules, plugin_faults
from opticoll.contribution_checks import check, functions, items, resolve
from opticoll.contributions import BOUNDS, KINDS
from opticoll.errors import BadInput, OpticollError, import_remedy
from opticoll.instances.readers.reading import read_bytes

#: Environment variable and entry-point group that name plug-ins.
VARIABLE, GROUP = "OPTICOLL_PLUGINS", "opticoll.plugins"
#: Largest plug-in file [bytes].
MAX_BYTES = 4 << 20
_PREFIX = "opticoll_plugin_"


@dataclass(frozen=True)
class Plugin:
    """A plug-in: the absolute path and source of its file, or the name of its module (then ``source`` is None).

    ``digest`` is the SHA-256 of the source, and ``modules`` those of the modules from outside installed packages that
    it loads, known once it is loaded. They enter the resume key of every run that uses the plug-in.
    """

    place: str
    digest: str
    source: str | None
    modules: Mapping[str, str] = field(default_factory=dict, compare=False)

    @cached_property
    def module(self) -> str:
        """Name of the module in ``sys.modules``."""
        if self.source is None:
            return self.place
        return f"{_PREFIX}{re.sub(r'[^A-Za-z0-9_]', '_', Path(self.place).stem)}_{self.digest[:16]}"

    @property
    def name(self) -> str:
        """Name of the file or module."""
        return self.place if self.source is None else Path(self.place).name


_known: dict[str, Plugin] = {}
_checked: set[str] = set()
_loading: set[str] = set()
_lock = threading.RLock()
_in_worker = False
#: Token that distinguishes this process from its workers.
_PROCESS = token_hex(8)


# loading ------------------------------------------------------------------------------------------------------


def load_plugin(place: str | Path, *, contributes: bool = True) -> ModuleType:
    """Load a plug-in, unless it is already loaded with the same contents.

    Parameters
    ----------
    place
        A Python file, or the name of an installed module.
    contributes
        Whether to refuse a plug-in that defines nothing that opticoll looks for.

    Returns
    -------
    The module. Its formulations, families, solvers, methods, claims and bounds can be used by name from now on, also in
    worker processes.

    Raises
    ------
    BadInput
        If it cannot be read, raises an exception, or defines a name that is in use or an object of the wrong type.
    """
    with _lock:
        if _in_worker and str(place) in _known:  # use what the parent sent
            return _load(_known[str(place)], contributes=contributes)
        before = set(sys.modules)
        plugin = _read(str(place))
        old, modules = _known.get(plugin.place), _modules_now(plugin)
        _refuse_change(plugin, outside_modules.outdated({name: modules[name] for name in modules.keys() & before}))
        if old == plugin and old.module in _checked and modules != old.modules:  # its data
            _drop(old)
        return _load(plugin, contributes=contributes)


def _path(place: str) -> Path:
    return Path(os.path.expanduser(place)).resolve()  # noqa: PTH111  which fails where there is no home folder


def _read(place: str) -> Plugin:
    if place.endswith(".py") or os.sep in place:
        path = _path(place)
        if path.suffix != ".py":
            msg = f"plug-in {place}: must be a Python file that ends in .py, or the name of an installed module"
            raise BadInput(msg)
        data = read_bytes(path, MAX_BYTES, "name a Python file", f"plug-in {place}")
        try:
            source = decode_source(data)
        except (SyntaxError, UnicodeDecodeError) as error:
            msg = f"plug-in {place}: is not Python source text ({error}); save it as UTF-8"
            raise BadInput(msg) from error
        return Plugin(str(path), sha256(data).hexdigest(), source)
    try:
        spec = find_spec(place) if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", place) else None
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None and Path(place).is_dir():
        msg = f"plug-in {place!r}: is a folder; name a file in it that ends in .py"
        raise BadInput(msg)
    if spec is None:
        msg = f"plug-in {place!r}: no module of this name is installed; name a file that ends in .py, or install it"
        raise BadInput(msg)
    origin = Path(spec.origin) if spec.has_location and spec.origin else None
    data = origin.read_bytes() if origin is not None and origin.is_file() else place.encode()
    return Plugin(place, sha256(data).hexdigest(), None)


def _load(plugin: Plugin, *, contributes: bool = True) -> ModuleType:
    """Import a plug-in and check what it contributes; a file that has changed replaces its earlier version."""
    old = _known.get(plugin.place)
    if old is not None and old.digest != plugin.digest:
        _drop(old)
    if old == plugin and plugin.module in _checked:
        return sys.modules[plugin.module]
    resolve("opticoll.instances.spec:load_families")()  # names in use are refused by the decorator
    _enter(plugin)
    _loading.add(plugin.place)
    try:
        module = import_module(plugin.module)
        others = {one.module: one.place for one in _known.values() if one != plugin and one.module in _checked}
        check(module, others, contributes=contributes)
        _known[plugin.place] = plugin = _with_modules(plugin)
    except BaseException as error:
        message = None if plugin_faults.passes(error) else _failure(plugin, error)
        _drop(plugin)
        if message is None:
            raise
        raise BadInput(message) from error
    finally:
        _loading.discard(plugin.place)
    _checked.add(plugin.module)
    return module


def _enter(plugin: Plugin) -> None:
    if _FINDER not in sys.meta_path:
        sys.meta_path.append(_FINDER)
    _known[plugin.place] = plugin
    plugin_faults.places[plugin.module] = plugin.place


def _drop(plugin: Plugin) -> None:
    resolve("opticoll.instances.spec:forget")(plugin.module)
    _known.pop(plugin.place, None)
    plugin_faults.places.pop(plugin.module, None)
    _checked.discard(plugin.module)
    sys.modules.pop(plugin.module, None)


def _modules_now(plugin: Plugin) -> dict[str, str]:
    """The modules from outside installed packages that a plug-in loads, as their files are now."""
    if plugin.source is not None:
        return outside_modules.modules_of(plugin.source, file=Path(plugin.place))
    return outside_modules.modules_of(f"import {plugin.place}", own=plugin.place.partition(".")[0])


def _with_modules(plugin: Plugin) -> Plugin:
    """The plug-in, just loaded, with its modules; in a worker, those of its parent."""
    modules = plugin.modules if _in_worker else _modules_now(plugin)
    _refuse_change(plugin, outside_modules.note_loaded(modules))
    return replace(plugin, modules=modules)


def _refuse_change(plugin: Plugin, name: str | None) -> None:
    """Refuse to go on after a module of a plug-in has changed."""
    if name is not None:
        where = f"differs on {node()} or has changed" if _in_worker else "has changed"
        msg = f"plug-in {plugin.place}: the module {name!r} {where} since it was loaded; start a new process"
        raise BadInput(msg)


def check_imports() -> None:
    """Refuse modules that plug-ins have imported while they ran, and that are not those of their resume keys.

    Raises
    ------
    BadInput
        If one has changed between the load of its plug-in and its own.
    """
    for place, plugin in list(_known.items()):
        if place not in _loading:
            _refuse_change(plugin, outside_modules.note_loaded(plugin.modules))


def _failure(plugin: Plugin, error: BaseException) -> str:
    """Message why a plug-in cannot be loaded: file, line, reason, remedy; and the machine, if this is a worker."""
    place, line = plugin.place, plugin_faults.line_of(error, plugin.module)
    at = (f", line {line}" if line else "") + (f" (in a worker process on {node()})" if _in_worker else "")
    text = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    if isinstance(error, OpticollError):
        return text if text.startswith("plug-in ") else f"plug-in {place}{at}: {text}"
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    remedy, beside = "correct the file", None if plugin.source is None else Path(place).parent
    if isinstance(error, ModuleNotFoundError):
        remedy = import_remedy(error.name or "", beside)
    elif isinstance(error, ImportError) and "part of opticoll now" in text:  # the layers refuse their old names
        reason, remedy = text.partition(":")[0], import_remedy(text.partition(" ")[0], beside)
    there = " on that machine" if _in_worker and isinstance(error, ImportError) else ""
    return f"plug-in {place}{at}: {reason}; {remedy}{there}"


class _Finder(MetaPathFinder, ExecutionLoader):
    """Importer of plug-in files by module name, from the source that was read or received."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of the plug-in called ``fullname``, if any."""
        plugin = _by_module(fullname) if fullname.startswith(_PREFIX) else None
        return None if plugin is None else spec_from_loader(fullname, self)

    def get_source(self, fullname: str) -> str | None:
        """Return the source of a plug-in."""
        plugin = _by_module(fullname)
        return None if plugin is None else plugin.source

    def get_filename(self, fullname: str) -> str:
        """Return the file of a plug-in, which may be on another machine."""
        plugin = _by_module(fullname)
        if plugin is None:
            msg = f"no plug-in {fullname!r}"
            raise ImportError(msg)
        return plugin.place


def file_of(item: object) -> Path | None:
    """The file of the plug-in that defines a function or class; None for installed code."""
    plugin = _by_module(str(getattr(item, "__module__", "")))
    return None if plugin is None or plugin.source is None else Path(plugin.place)


def options_for(*items: object) -> str:
    """Options by which a command loads the plug-ins that define these functions and classes."""
    return _options(str(file) for item in items if (file := file_of(item)) is not None)


def options() -> str:
    """Options that load the plug-ins of this process, except those that every process finds by itself."""
    named = os.environ.get(VARIABLE, "").split(os.pathsep)
    files = {*_entry_points(), *named, *(str(_path(place)) for place in named)}
    return _options(plugin.place for plugin in _known.values() if plugin.place not in files)


def _options(places: Iterable[str]) -> str:
    folder = Path.cwd()
    shown = [Path(place).relative_to(folder) if Path(place).is_relative_to(folder) else place for place in places]
    return "".join(f" --plugin {shlex.quote(str(place))}" for place in dict.fromkeys(shown))


def _by_module(name: str) -> Plugin | None:
    return next((plugin for plugin in _known.values() if plugin.module == name), None)


_FINDER = _Finder()


def load_configured() -> None:
    """Load the plug-ins that the environment variable names.

    Raises
    ------
    BadInput
        As :func:`load_plugin`.
    """
    if not _in_worker:
        _load_all(os.environ.get(VARIABLE, ""))


@cache
def _load_all(places: str) -> None:
    for place in filter(None, places.split(os.pathsep)):
        try:
            load_plugin(place)
        except BadInput as error:
            msg = f"{VARIABLE}: {error}"
            raise BadInput(msg) from error


def load_installed() -> None:
    """Load the plug-ins of installed packages; called when a name is unknown, or names are listed.

    Raises
    ------
    BadInput
        As :func:`load_plugin`.
    """
    load_configured()
    if not _in_worker:
        for name in _entry_points():
            if name not in _loading:
                load_plugin(name)


@cache
def _entry_points() -> tuple[str, ...]:
    from importlib.metadata import entry_points

    return tuple(dict.fromkeys(entry.module for entry in entry_points(group=GROUP)))


# contributions ------------------------------------------------------------------------------------------------


def contributed(attribute: str) -> list[Any]:
    """All contributions of a kind, a key of :data:`~opticoll.contributions.KINDS`, by the order of the plug-ins."""
    return [one for _, module in load_known() for one in items(module, attribute)]


def own_bounds(formulation: str) -> list[Callable[..., Any]]:
    """Bounds on a formulation contributed by plug-ins."""
    return [function for _, bounds in load_known() for function in functions(getattr(bounds, BOUNDS, {}), formulation)]


def load_known() -> list[tuple[Plugin, ModuleType]]:
    """Run all known plug-ins, except any that is being run, and return them with their modules."""
    load_configured()
    if not _known:
        return []
    with _lock:
        return _all_loaded()


def known() -> bool:
    """Whether this process has any plug-in."""
    return bool(_known)


def _all_loaded() -> list[tuple[Plugin, ModuleType]]:
    known = [plugin for place, plugin in list(_known.items()) if place not in _loading]
    return [(plugin, _load(plugin, contributes=False)) for plugin in known]


def involved(objects: Iterable[object], modules: Iterable[str] = ()) -> list[Plugin]:
    """The plug-ins that contributed any of ``objects``, or whose modules are among ``modules``."""
    wanted, names = {id(item) for item in objects if item is not None}, set(modules)
    return [
        plugin
        for plugin in _known.values()
        if plugin.module in names
        or (
            plugin.module in _checked
            and any(id(item) in wanted for kind in KINDS for item in items(sys.modules[plugin.module], kind))
        )
    ]


def digests(chosen: Iterable[Plugin] | None = None) -> dict[str, str]:
    """Name and SHA-256 of plug-ins, by default all, and of the modules from outside installed packages they load."""
    plugins = list(_known.values() if chosen is None else chosen)
    return _by_name([pair for one in plugins for pair in ((one.name, one.digest), *one.modules.items())])


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Digests by name, sorted; different ones of one name are numbered."""
    result: dict[str, str] = {}
    for name, digest in sorted(set(pairs)):
        count = sum(other.partition("#")[0] == name for other in result)
        result[name if not count else f"{name}#{count + 1}"] = digest
    return result


def everywhere(modules: Iterable[str]) -> bool:
    """Whether worker processes have all of ``modules``: they are ours, or plug-ins."""
    known = {plugin.module for plugin in _known.values()}
    return all(name.startswith("opticoll.") or name in known for name in modules)


# worker processes ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shipment:
    """Token of a process, and its plug-ins."""

    process: str
    plugins: tuple[Plugin, ...]


def shipped() -> Shipment:
    """All known plug-ins, for a worker process, and the token of this one."""
    return Shipment(_PROCESS, tuple(_known.values()))


def accept(sent: Shipment) -> None:
    """Register the plug-ins that a parent process sent (:func:`shipped`); this process does not look for others.

    Each is run when one of its objects is needed.

    Raises
    ------
    BadInput
        If a module is not installed here, or in a different version.
    """
    global _in_worker
    if sent.process == _PROCESS:  # a thread of the sender itself
        return
    with _lock:
        _in_worker = True
        for plugin in sent.plugins:
            old = _known.get(plugin.place)
            if old == plugin and old.modules == plugin.modules:
                continue
            if plugin.source is None and _read(plugin.place) != plugin:
                msg = f"plug-in {plugin.place!r}: the module differs between the machines; install one version on all"
                raise BadInput(msg)
            if old is not None:
                _drop(old)
            _enter(plugin)
