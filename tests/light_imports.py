"""Imports for tests without what takes long and no test needs."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType


def without_grammars(name: str) -> ModuleType:
    """Import jsonschema, or a module that imports it, without its optional check of addresses.

    That check compiles 38 grammars at import, which takes seconds, and none of our schemas states such a format.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rfc3987_syntax", None)
        return import_module(name)
