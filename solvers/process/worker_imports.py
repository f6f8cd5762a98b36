"""Shorter imports of our own programs, a worker and the command ``solve``, which run no other code while they import.

NumPy, SciPy, CVXPY and Pyomo import modules that our jobs do not use: together they take longer than the rest. These
programs put others in their place. Elsewhere another thread would see them.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from threading import RLock
from types import ModuleType
from typing import TYPE_CHECKING, Any

from opticoll.formulations import modelling_layers

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Parts of NumPy that SciPy copies with all its names, with the tools of compilers and of unit tests; the module of
#: SciPy with these copies, for arrays of other packages; and what writes pages of documentation.
SELDOM_USED = ("numpy.f2py", "numpy.ma", "numpy.testing", "scipy._lib.array_api_compat.numpy", "pydoc")
_IMPORTING = RLock()
#: Part of SciPy's graphs that imports all of its linear algebra, for one function.
_LAPLACIAN = "scipy.sparse.csgraph._laplacian"
#: Solvers that CVXPY imports to list those that are installed; it solves nothing in a worker.
LISTED_BY_CVXPY = (
    *("clarabel", "coptpy", "cosmopy", "cuopt", "cupy", "cvxopt", "cplex", "cyipopt", "cylp", "daqp", "diffcp", "ecos"),
    *("google", "gurobipy", "highspy", "jax", "juliacall", "knitro", "moreau", "mosek", "mpax", "naginterfaces"),
    *("ortools", "osqp", "piqp", "proxsuite", "pyscipopt", "qoco", "qpalm", "scs", "sdpap", "unopy", "xpress"),
)


def shorten_scipy() -> None:
    """Let SciPy import less in this process, before it is imported."""
    defer(*SELDOM_USED)
    sys.modules["numpy.ma"].__dict__.setdefault("is_masked", _is_masked)  # for numpy.unique
    sys.modules.setdefault(_LAPLACIAN, ModuleType(_LAPLACIAN)).laplacian = _laplacian  # type: ignore[attr-defined]


def prepare() -> None:
    """Import less in this process from now on, which is a worker."""
    shorten_scipy()
    modelling_layers.import_first, modelling_layers.shortened = import_layer, True


def defer(*names: str) -> None:
    """Put modules in place that are imported when an attribute of theirs is first used, unless they are loaded."""
    for name in names:
        if name not in sys.modules:
            sys.modules[name] = module = ModuleType(name)
            module.__getattr__ = partial(_imported, module)  # type: ignore[method-assign]
            parent, _, part = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], part, module)


def _imported(deferred: ModuleType, attribute: str) -> Any:
    """An attribute of the module itself, which takes the place of the deferred one."""
    if attribute.startswith("__") and attribute not in ("__path__", "__all__", "__version__"):  # asked of every module
        raise AttributeError(attribute)
    with _IMPORTING:  # threads of a method may ask at the same time
        if sys.modules.get(deferred.__name__) is deferred:
            del sys.modules[deferred.__name__]
        module = import_module(deferred.__name__)
    return getattr(module, attribute)


def import_layer(form: str) -> None:
    """Import a modelling layer; of SciPy, CVXPY's statistics and solvers are left out, and Pyomo's extras.

    They take 0.9 s and 0.7 s, and are loaded when they are used. CVXPY finds no solvers but SciPy's, so that those
    of other jobs do not meet them in one process.
    """
    if form == "cvxpy":
        with stand_ins("scipy.stats", "scipy.optimize", entropy=_entropy), absent(*LISTED_BY_CVXPY):
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


@contextmanager
def absent(*names: str) -> Iterator[None]:
    """Let those of the packages that are not loaded yet seem not to be installed."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules |= dict.fromkeys(hidden)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def _is_masked(array: object) -> bool:
    return bool(sys.modules["numpy"].any(getattr(array, "_mask", False)))


def _laplacian(*arguments: Any, **options: Any) -> Any:
    del sys.modules[_LAPLACIAN]
    return import_module(_LAPLACIAN).laplacian(*arguments, **options)


def _entropy(*arguments: Any, **options: Any) -> Any:
    from scipy.stats import entropy

    return entropy(*arguments, **options)
