"""Import of CVXPY and Pyomo without the parts of SciPy that they import and models do not use."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def import_layer(form: str) -> None:
    """Import a modelling layer, which takes up to a second the first time and is not part of building a model.

    If SciPy is loaded, Pyomo also imports parts of it that take longer (0.7 s) than Pyomo itself, and CVXPY its
    statistics for one function (0.8 s). They are loaded on access. Of Pyomo, models need ``pyomo.core``:
    ``pyomo.environ`` offers the same names, and imports solvers and extensions as well (0.13 s).
    """
    if form == "matrix" or form in sys.modules:
        return
    import_module("scipy.sparse")
    if form == "cvxpy":
        with stand_ins("scipy.stats", entropy=_entropy):
            import_module("cvxpy")
    else:
        with stand_ins("numpy.testing", "scipy.stats", "scipy.integrate", "scipy.spatial"):
            import_module("pyomo.common.dependencies")
        import_module("pyomo.core")


@contextmanager
def stand_ins(*names: str, **attributes: Any) -> Iterator[None]:
    """Empty modules with these attributes in the place of those that are not loaded yet."""
    before = {name: sys.modules.get(name) for name in names}
    replaced = {name: module for name, module in before.items() if type(module) is not ModuleType}
    for name in replaced:
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(attributes)
    try:
        yield
    finally:
        for name, deferred in replaced.items():
            if deferred is None:
                del sys.modules[name]
            else:
                sys.modules[name] = deferred


def _entropy(*arguments: Any, **options: Any) -> Any:
    from scipy.stats import entropy

    return entropy(*arguments, **options)
