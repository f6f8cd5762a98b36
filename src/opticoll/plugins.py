"""Plug-ins: user-defined formulations, families, solvers, methods, claims and bounds, from outside the package.

A plug-in is a Python file or an installed module. It contributes the same objects as our own modules, under the same
names: ``FORMULATION``, ``ADAPTER``, ``METHOD`` and ``CLAIM`` (or ``FORMULATIONS``, ..., a list), ``BOUNDS``
(``{formulation: function or list of functions}``, see :func:`opticoll.analysis.bounds.plugin_bounds.plugin_bounds`),
and families and modifiers by their decorators. It is named by ``--plugin``, by the
environment variable ``OPTICOLL_PLUGINS`` (entries separated as in ``PATH``), by ``plugins`` in a study file, or by an
entry point of the group ``opticoll.plugins``.

Every worker process receives the source of the files and the names of the modules, and runs them when it needs them.
A worker on another machine therefore needs no copy of a file, but every module must be installed there.

The resume key of a run that uses a plug-in covers its source and that of every module from outside installed packages
that it imports (:mod:`opticoll.outside_modules`), as they are when it is loaded. Data files are not covered: name them
in settings (``file:PATH``), which are pinned to their contents.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.util import decode_source, find_spec
from pathlib import Path
from platform import node
from types import ModuleType
from typing import Any

from opticoll import plugin_faults
from opticoll.contributions import BOUNDS, KINDS, check, functions, items
from opticoll.errors import BadInput, OpticollError, refuse
from opticoll.extensions import part
from opticoll.file_contents import at_home, read_bytes
from opticoll.outside_modules import imported_in, modules_of

#: Environment variable and entry-point group that name plug-ins.
VARIABLE, GROUP = "OPTICOLL_PLUGINS", "opticoll.plugins"
#: Largest plug-in file [bytes].
MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class Plugin:
    """A plug-in: the absolute path and source of its file, or the name of its module (then ``source`` is None).

    ``module`` is its name in ``sys.modules``, ``digest`` the SHA-256 of the source, and ``modules`` those of the
    modules from outside installed packages that it loads, known once it is loaded. They enter the resume key of every
    run that uses the plug-in.
    """

    place: str
    module: str
    digest: str
    source: str | None
    modules: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def name(self) -> str:
        """Name of the file or module."""
        return self.place if self.source is None else Path(self.place).name

    @property
    def file(self) -> str:
        """Its file on this machine, or where it was on that of its user."""
        spec = find_spec(self.place) if self.source is None else None
        return self.place if spec is None else str(spec.origin)


#: The plug-ins by their places, and the modules of those that have been run.
_known: dict[str, Plugin] = {}
_modules: dict[str, ModuleType] = {}
#: Places of those that are being run, and may use what looks for plug-ins.
_loading: set[str] = set()
_lock = threading.RLock()
_in_worker = False
#: With its number, distinguishes a process from its workers, which may be forked from it or on other machines.
_TOKEN = os.urandom(8).hex()


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
        return _load(_read(str(place)), contributes=contributes)


def _path(place: str) -> Path:
    return at_home(place).resolve()


def _read(place: str) -> Plugin:
    if place.endswith(".py") or os.sep in place:
        path = _path(place)
        if path.suffix != ".py":
            refuse(f"plug-in {place}", "must be a Python file that ends in .py, or the name of an installed module")
        data = read_bytes(path, MAX_BYTES, "name a Python file", f"plug-in {place}")
        try:
            source = decode_source(data)
        except (SyntaxError, UnicodeDecodeError) as error:
            msg = f"plug-in {place}: is not Python source text ({error}); save it as UTF-8"
            raise BadInput(msg) from error
        digest = sha256(data).hexdigest()
        module = f"opticoll_plugin_{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}_{digest[:16]}"
        return Plugin(str(path), module, digest, source)
    try:
        spec = find_spec(place) if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", place) else None
    except (ImportError, ValueError, AttributeError):
        spec = None
    if spec is None:
        what = "is a folder" if Path(place).is_dir() else "no module of this name is installed"
        refuse(f"plug-in {place!r}", f"{what}; name a file that ends in .py, or install the module")
    data = Path(spec.origin).read_bytes() if spec.origin and spec.has_location else place.encode()
    return Plugin(place, place, sha256(data).hexdigest(), None)


def _execute(plugin: Plugin) -> ModuleType:
    if plugin.source is None:
        return import_module(plugin.module)
    module = sys.modules[plugin.module] = ModuleType(plugin.module)  # where pickle and dataclasses look for it
    module.__file__ = plugin.place
    exec(compile(plugin.source, plugin.place, "exec", dont_inherit=True), module.__dict__)
    return module


def _load(plugin: Plugin, *, contributes: bool = True) -> ModuleType:
    """Import a plug-in and check what it contributes; a file that has changed replaces its earlier version."""
    old = _known.get(plugin.place)
    if old == plugin and plugin.place in _modules:
        return _modules[plugin.place]
    if old is not None and old != plugin:
        _forget(old)
    part("opticoll.instances.spec:load_families")()  # names in use are refused by the decorator
    _enter(plugin)
    _loading.add(plugin.place)
    before = set(sys.modules)
    try:
        module = _execute(plugin)
        modules = _modules_of(plugin, sys.modules.keys() - before)
        if _in_worker:  # whose parent has checked what it contributes, with all others
            _refuse_others(plugin, modules)
        else:
            check(module, _modules, contributes=contributes)
            _known[plugin.place] = replace(plugin, modules=modules)
    except BaseException as error:
        _forget(plugin)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise BadInput(_failure(plugin, error)) from error
    finally:
        _loading.discard(plugin.place)
    _modules[plugin.place] = module
    return module


def _modules_of(plugin: Plugin, loaded: set[str]) -> dict[str, str]:
    if plugin.source is not None:
        code = compile(plugin.source, plugin.place, "exec", dont_inherit=True)
        return modules_of({*loaded, *imported_in(code)})
    package = plugin.place.partition(".")[0]
    return modules_of(loaded | {name for name in sys.modules if name.partition(".")[0] == package}, package)


def _refuse_others(plugin: Plugin, modules: Mapping[str, str]) -> None:
    """Refuse a plug-in in a worker if it imports other modules there than where it came from."""
    name = next((name for name, digest in modules.items() if plugin.modules.get(name, digest) != digest), None)
    if name is not None:
        what = f"the module {name!r} differs on {node()} or has changed since it was loaded"
        refuse(f"plug-in {plugin.place}", f"{what}; start a new process")


def _enter(plugin: Plugin) -> None:
    _known[plugin.place] = plugin
    plugin_faults.places[plugin.file] = plugin.place


def _forget(plugin: Plugin) -> None:
    """Let the registries be as before a plug-in, one that failed or whose file has changed."""
    part("opticoll.instances.spec:forget")(plugin.module)
    _known.pop(plugin.place, None)
    _modules.pop(plugin.place, None)


def _failure(plugin: Plugin, error: BaseException) -> str:
    """Message why a plug-in cannot be loaded: file, line, reason, remedy; and the machine, if this is a worker."""
    at = plugin_faults.blame(error) or f"plug-in {plugin.place}"
    at += f" (in a worker process on {node()})" if _in_worker else ""
    text = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())
    if isinstance(error, OpticollError):
        return text if text.startswith("plug-in ") else f"{at}: {text}"
    reason = f"{type(error).__name__}: {text}" if text else type(error).__name__
    remedy, beside = "correct the file", None if plugin.source is None else Path(plugin.place).parent
    if isinstance(error, ModuleNotFoundError):
        top = (error.name or "").partition(".")[0]
        remedy = "install the package, or correct its name"
        if beside is not None and ((beside / top).is_dir() or (beside / f"{top}.py").is_file()):
            remedy = "the folder of a plug-in is not on the import path; set PYTHONPATH, or install the module"
    there = " on that machine" if _in_worker and isinstance(error, ImportError) else ""
    return f"{at}: {reason}; {remedy}{there}"


def file_of(item: object) -> Path | None:
    """The file of the plug-in that defines a function or class; None for installed code."""
    name = getattr(item, "__module__", "")
    return next((Path(one.place) for one in _known.values() if one.module == name and one.source is not None), None)


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


def load_configured() -> None:
    """Load the plug-ins that the environment variable names.

    Raises
    ------
    BadInput
        As :func:`load_plugin`.
    """
    if not _in_worker and not _loading:
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
    return [one for module in load_known() for one in items(module, attribute)]


def bounds_on(formulation: str) -> list[Callable[..., Any]]:
    """Bounds on a formulation contributed by plug-ins."""
    return [one for module in load_known() for one in functions(getattr(module, BOUNDS, {}), formulation)]


def load_known() -> list[ModuleType]:
    """Run all known plug-ins, except any that is being run, and return their modules."""
    load_configured()
    if not _known:
        return []
    with _lock:
        waiting = [plugin for place, plugin in _known.items() if place not in _loading]
        return [_load(plugin, contributes=False) for plugin in waiting]


def known() -> bool:
    """Whether this process has any plug-in."""
    return bool(_known)


def involved(objects: Iterable[object], modules: Iterable[str] = ()) -> list[Plugin]:
    """The plug-ins that contributed any of ``objects``, or whose modules are among ``modules``."""
    wanted, names = {id(item) for item in objects if item is not None}, set(modules)
    for place, module in _modules.items():
        if any(id(one) in wanted for kind in KINDS for one in items(module, kind)):
            names.add(_known[place].module)
    return [one for one in _known.values() if one.module in names]


def digests(chosen: Iterable[Plugin] | None = None) -> dict[str, str]:
    """Name and SHA-256 of plug-ins, by default all, and of the modules from outside installed packages they load.

    Different ones of one name are numbered.
    """
    plugins = list(_known.values() if chosen is None else chosen)
    result: dict[str, str] = {}
    for name, digest in sorted({pair for one in plugins for pair in ((one.name, one.digest), *one.modules.items())}):
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


def _process() -> str:
    return f"{_TOKEN}-{os.getpid()}"


def shipment() -> Shipment:
    """All known plug-ins, for a worker process, and the token of this one."""
    return Shipment(_process(), tuple(_known.values()))


def accept(sent: Shipment) -> None:
    """Register the plug-ins that a parent process sent (:func:`shipment`); this process does not look for others.

    Each is run when one of its objects is needed.

    Raises
    ------
    BadInput
        If a module is not installed here, or in a different version.
    """
    global _in_worker
    if sent.process == _process():  # a thread of the sender itself
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
                _forget(old)
            _enter(plugin)
