"""A digest of code defined in a main script or a notebook, for resume keys."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from dis import get_instructions
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from opticoll.outside_modules import imported_in, modules_of


def code_digest(value: object) -> str:
    """SHA-256 of an object defined in a main script or a notebook, the same in every process.

    For its functions it covers the bytecode, the constants, and the values that they refer to; for functions of other
    modules the source file; and every module from outside installed packages that any of them uses or imports.
    Objects that are neither functions nor plain data count by their representation.
    """
    digest = _Digest()
    digest.add(value)
    return digest.content.hexdigest()


class _Digest:
    """Collects the content of objects, each function, class and module once."""

    def __init__(self) -> None:
        self.content = sha256()
        self._seen: set[object] = set()

    def add(self, *items: object) -> None:
        for item in items:
            if isinstance(item, (FunctionType, type)):
                if id(item) not in self._seen:
                    self._seen.add(id(item))
                    (self._add_function if isinstance(item, FunctionType) else self._add_class)(item)
            elif isinstance(item, CodeType):
                self.content.update(item.co_code)
                self.add(item.co_names, item.co_consts)
            elif isinstance(item, ModuleType):
                self.add(item.__name__)
                self._add_modules(item.__name__)
            else:
                self._add_data(item)

    def _add_data(self, item: Any) -> None:
        if isinstance(item, Mapping):
            self.add(*(part for pair in item.items() for part in pair))
        elif isinstance(item, (tuple, list)):
            self.add(f"{len(item)} items", *item)
        elif isinstance(item, (set, frozenset)):
            self.add(*sorted(map(repr, item)))
        elif is_dataclass(item):
            self.add(type(item).__qualname__, *(getattr(item, field.name) for field in fields(item)))
        elif isinstance(item, partial):
            self.add(item.func, item.args, item.keywords)
        elif hasattr(item, "tobytes"):
            self.content.update(item.tobytes())
        else:
            self.content.update(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(item)).encode() + b"\0")

    def _add_function(self, function: Any) -> None:
        file = _file_of(function)
        if file is not None:
            self.add(function.__qualname__)
            self.content.update(file.read_bytes())
            self._add_modules(function.__module__)
            return
        self.add(function.__code__, function.__defaults__, function.__kwdefaults__)
        self.add(*(cell.cell_contents for cell in function.__closure__ or ()))
        self.add(*(function.__globals__[name] for name in _names_in(function.__code__) if name in function.__globals__))
        for name in imported_in(function.__code__):
            self._add_modules(name)

    def _add_modules(self, name: str) -> None:
        if name not in self._seen:
            self._seen.add(name)
            self.add(modules_of([name]))

    def _add_class(self, kind: Any) -> None:
        self.add(kind.__module__, kind.__qualname__)
        self._add_modules(kind.__module__)
        file = _file_of(kind)
        if file is not None:
            self.content.update(file.read_bytes())
            return
        outside = (base for base in kind.__bases__ if base.__module__.partition(".")[0] not in ("opticoll", "builtins"))
        self.add(*outside)
        for name, member in sorted(vars(kind).items()):
            function = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if isinstance(function, FunctionType) or not name.startswith("_"):
                self.add(name, function)


def _file_of(value: Any) -> Path | None:
    """The file of the module that defines a function or class; None for the main script, or if there is none."""
    file = getattr(sys.modules.get(value.__module__), "__file__", None)
    return Path(file) if value.__module__ != "__main__" and file is not None and Path(file).is_file() else None


def _names_in(code: CodeType) -> list[str]:
    """Names of the globals that a function reads, without attributes of the same names."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _names_in(part)]
    reads = (step.argval for step in get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
    return sorted({*reads, *inner})
