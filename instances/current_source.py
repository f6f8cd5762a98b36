"""Modules from outside installed packages run from their source, never from bytecode.

Python takes a module's cached bytecode for current if the source's size and its time in whole seconds are unchanged. A
module that was changed within a second, or copied with its old time, would run as it was, while its digest
(:mod:`opticoll.instances.outside_modules`) says what it is now.
"""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

from opticoll.instances.outside_modules import is_installed

if TYPE_CHECKING:
    from types import CodeType

_OWN = str(Path(__file__).parents[1])
_by_python = SourceFileLoader.get_code


def _code(self: SourceFileLoader, fullname: str) -> CodeType | None:
    path = self.get_filename(fullname)
    ours = fullname.partition(".")[0] == "opticoll" or path.startswith(_OWN)
    if ours or "site-packages" in path or is_installed(path):
        return _by_python(self, fullname)
    return self.source_to_code(self.get_data(path), path)


def always_from_source() -> None:
    """Compile modules from outside installed packages from their source from now on, in this process.

    This replaces a method of Python's loader, since a plug-in may also load a file by its path, past all finders.
    """
    SourceFileLoader.get_code = _code  # type: ignore[method-assign, assignment]
