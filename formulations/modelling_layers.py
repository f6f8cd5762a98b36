"""Import of CVXPY and Pyomo, and building with them."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Whether importing a layer takes little, as in worker programs, which leave out parts of it.
shortened = False


def import_first(form: str) -> None:
    """Import a modelling layer for the first time.

    Of Pyomo, models need ``pyomo.core``: ``pyomo.environ`` offers the same names, and imports solvers and extensions
    as well (0.13 s).
    """
    import_module("cvxpy" if form == "cvxpy" else "pyomo.core")


def import_layer(form: str) -> None:
    """Import a modelling layer, which takes seconds the first time and is not part of building a model."""
    if form != "matrix" and form not in sys.modules:
        import_module("scipy.sparse")
        import_first(form)


def is_loaded(form: str) -> bool:
    """Whether a modelling layer can be used here without a long import."""
    return form == "matrix" or form in sys.modules or shortened


@contextmanager
def many_objects() -> Iterator[None]:
    """Suspend garbage collection while millions of objects are made that stay: it would scan them again and again.

    It takes half of the time in which Pyomo builds a model.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
