"""Extensions: what adds commands, functions, lists and sections to opticoll, and is imported by nothing of it.

An extension is a folder of ``analysis/`` with a module ``extension``, or a plug-in; either defines ``EXTENSION``. It
names its parts as ``module:name``, and each is imported when it is used. Without the folder, its parts are missing and
everything else works.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Kind:
    """Kind of object that a plug-in may contribute.

    Its class, a function that returns the names that opticoll itself uses, and the attributes that a subclass must set.
    """

    type: str
    taken: str
    attributes: tuple[str, ...] = ()
    #: Whether the plug-in gives a subclass of the class, not an object of it.
    subclass: bool = False


@dataclass(frozen=True)
class Extension:
    """The parts of an extension, each as ``module:name``.

    Parameters
    ----------
    name
        The package; its folder ``templates`` has templates of the report (``*.j2``) and of examples (``*.txt``).
    commands
        Commands of click by name: where each is, and its line in the help of all.
    functions
        Functions and classes that ``import opticoll`` offers, by their own names.
    lists
        Lists of ``opticoll list``: a function without arguments that returns rows with ``name``, and the columns shown.
    describe
        Functions that describe a name, or return None if it is not theirs: ``opticoll describe``.
    examples
        Kinds of examples of ``opticoll new``, with the command that uses one.
    sections
        Functions that make a section of the report from a store and its findings, or return None.
    schedules
        Formats of schedule files, objects of :class:`opticoll.solvers.schedules.schedule_check.ScheduleFormat`.
    kinds
        Kinds of objects that plug-ins contribute to it.
    """

    name: str
    commands: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    lists: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    describe: tuple[str, ...] = ()
    examples: Mapping[str, str] = field(default_factory=dict)
    sections: tuple[str, ...] = ()
    schedules: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)

    def named(self, kind: str) -> list[tuple[str, str]]:
        """Name and place of every part of a kind; those that have no name of their own have that of their place."""
        given = getattr(self, kind)
        if isinstance(given, Mapping):
            return [(name, target) for name, (target, _) in given.items()]
        return [(target.partition(":")[2], target) for target in given]

    @property
    def templates(self) -> list[Path]:
        """The folder of its templates; none if it is no package."""
        from pathlib import Path

        return [Path(folder) / "templates" for folder in getattr(sys.modules.get(self.name), "__path__", ())]


@cache
def shipped() -> tuple[Extension, ...]:
    """The extensions that come with opticoll."""
    # Not by pathlib, whose import takes a tenth of the time of `opticoll --help`.
    rooms = os.path.join(os.path.dirname(__file__), "analysis")  # noqa: PTH118, PTH120
    with os.scandir(rooms) as entries:
        names = sorted(one.name for one in entries if os.path.exists(f"{one.path}/extension.py"))  # noqa: PTH110
    return tuple(import_module(f"opticoll.analysis.{name}.extension").EXTENSION for name in names)


def package_names() -> frozenset[str]:
    """Names of the extensions that come with opticoll."""
    return frozenset(one.name for one in shipped())


def extensions() -> tuple[Extension, ...]:
    """All extensions: those that come with opticoll, then those of plug-ins that are loaded."""
    plugins = sys.modules.get("opticoll.plugins")
    return shipped() + tuple(() if plugins is None else plugins.contributed("EXTENSION"))


def parts(kind: str) -> list[Any]:
    """The parts of a kind (``describe``, ``sections``, ...) of all extensions, imported."""
    return [part(target) for one in extensions() for _, target in one.named(kind)]


def part(target: str) -> Any:
    """What is called ``module:name``."""
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)
