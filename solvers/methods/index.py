"""Where every method of the package is defined, so that it is found without importing the others.

``index.json`` lists them. A test compares it with the modules; ``python tests/solvers/methods/test_methods_index.py``
writes it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec


class MethodIndex(msgspec.Struct, frozen=True):
    """Module of every method, below this package, and the methods that take over a formulation beyond a size."""

    modules: dict[str, str]
    taking_over: dict[str, tuple[str, ...]]


#: The index, as data.
FILE = Path(__file__).with_name("index.json")
_INDEX = msgspec.json.decode(FILE.read_bytes(), type=MethodIndex)
MODULES, TAKING_OVER = _INDEX.modules, _INDEX.taking_over
