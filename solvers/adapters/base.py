"""What a solver adapter is: one small file that declares what it can do and does it.

A new solver is one module in this package with one subclass of :class:`Adapter` instantiated as ``ADAPTER`` (or
several as ``ADAPTERS``); the registry finds it. Its package is imported only inside :meth:`Adapter.solve`,
:meth:`Adapter.write` and :meth:`Adapter.probe_licence`, which run in a worker process of their own: some
solver wheels cannot share a process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from solvers.outcome import Outcome, SolveRequest
    from solvers.standard_form import StandardForm


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

    def __call__(
        self, objective: float | None, bound: float | None, x: NDArray[np.float64] | None = None
    ) -> None: ...


class Adapter(ABC):
    """One way to solve a StandardForm.

    Class attributes
        name            what ``--method`` calls it
        title           what people call it
        package         import name of the Python package it needs
        distribution    name to install it by
        algorithm       the algorithm it runs ("simplex", "interior point", "first order", "branch and bound", …)
        capabilities    see :class:`Capabilities`
        install         how to get it, one line
    """

    name: str
    title: str
    package: str
    distribution: str
    algorithm: str
    capabilities: Capabilities
    install: str = ""

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
