"""What a solver adapter is: one small file that declares what it can do and does it.

A new solver is one module in this package with one subclass of :class:`Adapter` instantiated as ``ADAPTER``
(or a tuple of several); the registry finds it. Its package is imported only inside :meth:`Adapter.solve`,
:meth:`Adapter.write` and :meth:`Adapter.probe_licence`, which run in a worker process of their own: some
solver wheels cannot share a process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opticoll.errors import BadOption, MethodMismatch, SolverUnavailable
from opticoll.solvers.task import Outcome, PrimalStatus, Termination

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import SolveRequest


@dataclass(frozen=True)
class Capabilities:
    """What a solver can do: problem classes and what it returns.

    ``exact`` says that the method is finite (simplex, branch and bound) rather than approximating to a
    tolerance; ``licensed`` that it needs a licence beyond installing the package.
    """

    lp: bool = True
    mip: bool = False
    duals: bool = False
    bound: bool = False
    incumbents: bool = False
    warm_start: bool = False
    exact: bool = True
    licensed: bool = False
    integer_data_only: bool = False


@dataclass(frozen=True)
class LicenceState:
    """Result of a licence probe: whether one can solve, how large, and how to get more."""

    usable: bool
    state: str
    remedy: str = ""


class Progress(Protocol):
    """How a running solver reports: a new incumbent and/or bound; either may be None."""

    def __call__(self, objective: float | None, bound: float | None, x: NDArray[np.float64] | None = None) -> None:
        """Take note."""


class Adapter(ABC):
    """One way to solve a StandardForm.

    Class attributes
        name            what ``--method`` calls it
        title           what people call it
        package         import name of the Python package it needs
        distribution    name to install it by
        algorithm       the algorithm it runs ("simplex", "interior point", "branch and bound", …)
        capabilities    see :class:`Capabilities`
        install         how to get it, one line
        modules         modules to import before the clock starts; by default the package
    """

    name: str
    title: str
    package: str
    distribution: str
    algorithm: str
    capabilities: Capabilities
    install: str = ""
    modules: tuple[str, ...] = ()

    def installed(self) -> bool:
        """Whether the package can be found; cheap, imports nothing."""
        from importlib.util import find_spec

        try:
            return find_spec(self.package) is not None
        except (ImportError, ValueError):
            return False

    def version(self) -> str | None:
        """Installed version from the package's metadata; None if it is not installed."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None

    def missing(self) -> str:
        """One line for a package that is not there: what, and how to get it."""
        how = self.install or f"pip install {self.distribution}"
        return f"solver {self.name!r} needs the package {self.distribution!r}, which is not installed: {how}"

    def load(self, module: str | None = None) -> Any:
        """Import the solver's package, or ``module`` of it.

        Raises
        ------
        SolverUnavailable
            If it is missing or cannot be loaded.
        """
        if not self.installed():
            raise SolverUnavailable(self.missing())
        try:
            return import_module(module or self.package)
        except (ImportError, OSError) as error:
            line = str(error).splitlines()[0] if str(error) else type(error).__name__
            msg = f"solver {self.name!r}: package {self.distribution!r} cannot be loaded ({line}); reinstall it"
            raise SolverUnavailable(msg) from error

    def check(self, form: StandardForm, request: SolveRequest) -> None:
        """Refuse what cannot work before anything is started; imports no solver.

        Raises
        ------
        MethodMismatch
            If the solver does not take this class of problems.
        SolverUnavailable
            If its package is missing.
        BadOption
            If a limit, tolerance or warm start of the request is impossible.
        """
        if form.is_mip and not self.capabilities.mip:
            msg = (
                f"solver {self.name!r} takes no integer variables; this problem has {form.size['integers']}: "
                "use 'highs', 'scip' or another MIP solver"
            )
            raise MethodMismatch(msg)
        if not self.capabilities.lp and not np.all(form.integer):
            free = int(np.argmin(np.asarray(form.integer)))
            msg = (
                f"solver {self.name!r} takes integer variables only and column {free} is continuous: "
                "use 'highs' or 'scip'"
            )
            raise MethodMismatch(msg)
        if not self.installed():
            raise SolverUnavailable(self.missing())
        limits = (
            ("time_limit_s", request.time_limit_s is None or request.time_limit_s > 0, request.time_limit_s),
            ("threads", isinstance(request.threads, int) and request.threads >= 1, request.threads),
            ("rel_tol", 0 <= request.rel_tol < 1, request.rel_tol),
            ("seed", isinstance(request.seed, int) and 0 <= request.seed < 2**31, request.seed),
        )
        for name, fine, value in limits:
            if not fine:
                msg = f"{name} = {value!r} is impossible: it must be {_LIMITS[name]}"
                raise BadOption(msg)
        start = request.warm_start
        if start is not None and start.shape != (form.A.shape[1],):
            msg = f"warm_start has shape {start.shape}, expected ({form.A.shape[1]},), one value a column"
            raise BadOption(msg)

    def probe_licence(self) -> LicenceState:
        """Whether the licence lets this solver run; imports the package, so run it in a worker."""
        return LicenceState(usable=True, state="free")

    @abstractmethod
    def solve(self, form: StandardForm, request: SolveRequest, progress: Progress) -> Outcome:
        """Solve ``form`` in this process.

        Raises
        ------
        SolverUnavailable
            If the package or licence is missing, or the licence is too small for this problem.
        BadOption
            If an option of the request does not exist or is refused by the solver.
        """

    def write(self, form: StandardForm, path: Path, names: tuple[list[str], list[str]] | None = None) -> None:
        """Write ``form`` to a file through the solver's own writer, where it has one.

        Raises
        ------
        NotImplementedError
            If this adapter has no writer.
        """
        msg = f"{self.name} writes no model files"
        raise NotImplementedError(msg)


_LIMITS = {
    "time_limit_s": "a positive number of seconds, or None",
    "threads": "an integer >= 1",
    "rel_tol": "in [0, 1)",
    "seed": "an integer in [0, 2**31)",
}


def trivial_outcome(form: StandardForm) -> Outcome | None:
    """Settle a problem that needs no solver, on which solvers disagree how to fail; else None.

    Crossing bounds make it infeasible; without columns it is its own constant.
    """
    for what, lower, upper in (
        ("row", form.row_lower, form.row_upper),
        ("column", form.col_lower, form.col_upper),
    ):
        crossed = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
        if crossed.any():
            at = int(np.argmax(crossed))
            message = f"the bounds of {what} {at} cross: [{lower[at]}, {upper[at]}]"
            return Outcome(Termination.INFEASIBLE, raw="bounds cross", algorithm="none", message=message)
    if form.A.shape[1]:
        return None
    if ((form.row_lower > 0) | (form.row_upper < 0)).any():
        return Outcome(Termination.INFEASIBLE, raw="no columns", algorithm="none")
    return Outcome(
        Termination.OPTIMAL, PrimalStatus.FEASIBLE, form.offset, form.offset, np.zeros(0),
        np.zeros(form.A.shape[0]), raw="no columns", algorithm="none",
    )  # fmt: skip
