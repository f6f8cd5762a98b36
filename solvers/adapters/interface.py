"""Interface of solver adapters, and code they share: options, file names, progress, row types, solution vectors.

To add a solver, add a module to this package that defines a subclass of :class:`Adapter` and an instance of it called
``ADAPTER`` (or a tuple of instances). The solver's package may be imported only inside :meth:`Adapter.solve`,
:meth:`Adapter.write` and :meth:`Adapter.probe_licence`, which run in a separate worker process, because some solver
wheels cannot be imported into one process.
"""

from __future__ import annotations

import difflib
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
import numpy as np

from opticoll.arguments import read_text
from opticoll.errors import BadOption, MethodMismatch, SolverUnavailable, one_line, refuse
from opticoll.formulations.standard_form import StandardForm
from opticoll.instances.readers.reading import in_words
from opticoll.plugin_faults import place_of
from opticoll.solvers.task import Fields, Outcome, SolveRequest, Termination
from opticoll.solvers.verify import FEASIBLE, crossed, kkt, matrix_violations, size_of_terms
from opticoll.types import Json

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from numpy.typing import NDArray

    from opticoll.instances.topology import F64


@cache
def distribution_version(name: str) -> str | None:
    """Version of an installed distribution, from its metadata; None if it is not installed."""
    folders = f"{name.replace('-', '_')}-[0-9]*.dist-info"
    for metadata in (one for place in sys.path for one in Path(place).glob(f"{folders}/METADATA")):
        with metadata.open(encoding="utf-8") as lines:
            return next(line.split()[1] for line in lines if line.startswith("Version:"))
    from importlib.metadata import PackageNotFoundError, version  # takes 15 ms: it imports what reads e-mail

    try:
        return version(name)
    except PackageNotFoundError:
        return None


@dataclass(frozen=True)
class Capabilities:
    """Problem classes that a solver accepts and results that it returns.

    ``exact`` marks finite methods (simplex, branch and bound) as opposed to methods that converge to a tolerance;
    ``licensed`` marks solvers that need a licence beyond installing the package.
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


#: Packages of solvers that this process has found.
_found: set[str] = set()


@dataclass(frozen=True)
class LicenceState:
    """Result of a licence probe: whether the solver is usable, its size limit, and how to get a full licence."""

    usable: bool
    state: str
    remedy: str = ""


class ProgressCallback(Protocol):
    """Callback through which a running solver reports a new incumbent, a new bound, or both."""

    def __call__(self, objective: float | None, bound: float | None, x: F64 | None = None) -> None:
        """Report an objective value, a bound and the incumbent; each may be None."""


class Adapter(ABC):
    """Base class of the adapters: one solver, or one algorithm of a solver.

    Class attributes
        name            name for ``--method``
        title           display name
        package         import name of the Python package
        distribution    name of the distribution to install
        algorithm       algorithm it runs ("simplex", "interior point", "branch and bound", …)
        capabilities    see :class:`Capabilities`
        install         installation instructions, one line
        modules         modules to import before timing starts; by default the package
        absolute        options in units of the objective, by the last part of the name, in small letters
        limits_cpu      whether it enforces ``SolveRequest.cpu_limit_s`` itself; otherwise the kernel ends its process
    """

    name: str
    title: str
    package: str
    distribution: str
    algorithm: str
    capabilities: Capabilities
    install: str = ""
    modules: tuple[str, ...] = ()
    absolute: frozenset[str] = frozenset()
    limits_cpu: bool = False

    def installed(self) -> bool:
        """Return whether the package can be found, without importing it."""
        from importlib.util import find_spec

        try:
            if self.package not in _found and find_spec(self.package) is not None:
                _found.add(self.package)
        except (ImportError, ValueError):
            return False
        return self.package in _found

    def version(self) -> str | None:
        """Return the installed version from the package's metadata, or None if it is not installed."""
        return distribution_version(self.distribution)

    def missing(self) -> str:
        """Return the error message for a missing package, with installation instructions."""
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
        """Check the problem and the options before a worker is started, without importing the solver.

        Raises
        ------
        MethodMismatch
            If the solver does not support this class of problems.
        SolverUnavailable
            If its package is missing.
        BadOption
            If an option is one that :meth:`refuse_options` refuses.
        """
        if form.is_mip and not self.capabilities.mip:
            msg = (
                f"solver {self.name!r} does not support integer variables; this problem has {form.size['integers']}: "
                "use 'highs', 'scip' or another MIP solver"
            )
            raise MethodMismatch(msg)
        if not self.capabilities.lp and not np.all(form.integer):
            free = int(np.argmin(np.asarray(form.integer)))
            msg = (
                f"solver {self.name!r} supports only integer variables, but column {free} is continuous: "
                "use 'highs' or 'scip'"
            )
            raise MethodMismatch(msg)
        if not self.installed():
            raise SolverUnavailable(self.missing())
        self.refuse_options(request.options)

    def refuse_options(self, options: Iterable[str]) -> None:
        """Refuse options that make the solver write files, those in units of the objective, and those the runner sets.

        Raises
        ------
        BadOption
            For the first such option.
        """
        for name in options:
            if _FILES.search(name):
                msg = (
                    f"solver {self.name!r}: option {name!r} is refused, because the solver would read or write a file; "
                    "save the solution, show the log or export the model instead"
                )
                raise BadOption(msg)
            if name.rpartition(".")[2].lower().removeprefix("msk_dpar_") in self.absolute:
                msg = (
                    f"solver {self.name!r}: option {name!r} is refused, because problems are scaled, and values of the "
                    "objective with them; for a relative gap use"
                )
                raise BadOption(msg, remedy={"tol": None})
            for ours, pattern in _OWN.items():
                if pattern.search(name):
                    msg = f"solver {self.name!r}: option {name!r} is set by opticoll; use [limits] in a study, or"
                    raise BadOption(msg, remedy={ours: None})

    def read_options(
        self,
        request: SolveRequest,
        known: Collection[str],
        kind: Callable[[str], type],
        full: Callable[[str], str] = str,
    ) -> dict[str, object]:
        """Options of a request by their ``full`` names, checked against ``known`` and converted to their types.

        Raises
        ------
        BadOption
            If there is no such option, or its value has the wrong type.
        """
        read: dict[str, object] = {}
        for name, value in request.options.items():
            own = full(name)
            if own not in known:
                raise unknown_option(self.name, name, known)
            read[own] = parse_value(self.name, name, value, kind(own))
        return read

    def apply_options(
        self,
        options: Mapping[str, object],
        set_option: Callable[[str, Any], object],
        errors: tuple[type[Exception], ...],
    ) -> None:
        """Set all options by ``set_option(name, value)``.

        Raises
        ------
        BadOption
            If setting one raises any of ``errors``, or its value is an integer too large for the solver.
        """
        kinds: tuple[type[Exception], ...] = (OverflowError, *errors)
        for name, value in options.items():
            try:
                set_option(name, value)
            except kinds as error:
                raise self.rejected_value(name, value, str(error)) from error

    def rejected_value(self, name: str, value: Any, reason: str = "") -> BadOption:
        """Make the error for an option value that the solver does not accept."""
        return _rejected(self.name, name, value, reason)

    def rejected_options(self, options: Mapping[str, object], reason: str) -> BadOption:
        """Make the error for options that the solver rejects together: those that its reason names, or else all."""
        named = {name: value for name, value in options.items() if name.rsplit(".", 1)[-1] in reason} or options
        listed = ", ".join(f"{name} = {value!r}" for name, value in named.items()) or "a common option"
        detail = f": {one_line(reason, 300)}" if reason else ""
        return BadOption(f"solver {self.name!r} rejects {listed}{detail}; see its documentation for the range")

    @staticmethod
    def claim_bound(outcome: Outcome, bound: float, dual_tolerance: float = 0.0) -> None:
        """Store the bound of a branch and bound, unless nothing is bounded or its relaxations are too inaccurate.

        A solver's "infinity" stands for an unknown value.
        """
        if outcome.termination not in NO_SOLUTION and dual_tolerance <= LOOSE and abs(bound) < 1e19:
            outcome.bound = float(bound)

    def probe_licence(self) -> LicenceState:
        """Check that the package loads, and the licence if it needs one; imports the package, so call it in a worker.

        Raises
        ------
        SolverUnavailable
            If the package cannot be loaded.
        """
        for module in self.modules or (self.package,):
            self.load(module)
        return LicenceState(usable=True, state="free")

    @abstractmethod
    def solve(self, form: StandardForm, request: SolveRequest, progress: ProgressCallback) -> Outcome:
        """Solve ``form`` in this process.

        Raises
        ------
        SolverUnavailable
            If the package or licence is missing, or the licence is too small for this problem.
        BadOption
            If an option of the request does not exist or is rejected by the solver.
        """


class LicensedAdapter(Adapter):
    """Base class of adapters whose solver needs a licence beyond installing the package.

    Class attributes
        remedy          how to get a full licence
        trial_columns   columns of a program that only a full licence covers
    """

    remedy: str
    trial_columns: int

    def probe_licence(self) -> LicenceState:
        """Solve a program that only a full licence covers: columns in [0, 1] without rows."""
        import scipy.sparse as sp

        n, none = self.trial_columns, np.zeros(0)
        zero, one = np.zeros(n), np.ones(n)
        form = StandardForm(sp.csc_array((0, n)), none, none, zero, one, zero, "min", 0.0, np.zeros(n, dtype=bool))
        try:
            self.solve(form, SolveRequest(threads=1), lambda *_: None)
        except LicenceTooSmall as error:
            return LicenceState(usable=True, state=f"size-limited: {error.reason}", remedy=self.remedy)
        except SolverUnavailable as error:
            state = str(error).removesuffix(f": {self.remedy}")
            return LicenceState(usable=False, state=state, remedy=self.remedy)
        return LicenceState(usable=True, state="licensed")

    def too_small(self, form: StandardForm, reason: str) -> LicenceTooSmall:
        """Make the error for a problem larger than the licence allows."""
        size = f"{form.size['variables']} variables and {form.size['constraints']} constraints"
        error = LicenceTooSmall(f"solver {self.name!r}: the licence does not cover {size} ({reason}): {self.remedy}")
        error.reason = reason
        return error


class LicenceTooSmall(SolverUnavailable):
    """A problem is larger than the licence allows; ``reason`` says what it allows."""

    reason = ""


#: Largest relative error of the duals, and of the value that they prove, with which an exact algorithm ends.
ACCURATE = 1e-8
#: Largest dual tolerance with which the relaxations of a branch and bound still prove its bound: solvers' default.
LOOSE = 1e-6
#: ``Outcome.raw`` of an outcome that replaces an invalid one.
INVALID = "invalid outcome"


class _Stated(Fields, frozen=True, kw_only=True):
    """The fields of an outcome that are no vectors, as plain values: an adapter from elsewhere may state anything."""

    termination: Termination
    objective: float | None
    bound: float | None
    solve_s: float | None
    cpu_s: float | None
    iterations: float | None
    nodes: float | None
    incumbents: list[tuple[float, float]]
    options: dict[str, Json]


def accepted(solver: str, form: StandardForm, outcome: Outcome) -> Outcome:
    """Check the shapes and types of a solver's outcome and return it; an invalid one becomes an error outcome."""
    try:
        return _typed(form, outcome)
    except TypeError as error:
        message = one_line(f"solver {solver!r} returned {error}")
        return Outcome(Termination.ERROR, raw=INVALID, message=message, peak_memory_mb=outcome.peak_memory_mb)


def returned(chosen: Adapter, form: StandardForm, outcome: object) -> Outcome:
    """Check what an adapter's ``solve`` returned, as :func:`accepted`; its faults are named with file and line.

    Raises
    ------
    BadInput
        If it is not an Outcome.
    """
    where = place_of(chosen.solve)
    if not isinstance(outcome, Outcome):
        refuse(f"{where}solver {chosen.name!r}", f"solve returned {type(outcome).__name__}; return an Outcome")
    result = accepted(chosen.name, form, outcome)
    if where and result.raw == INVALID:
        result.message = where + result.message
    return result


def _typed(form: StandardForm, outcome: Outcome) -> Outcome:
    rows, columns = form.stored.shape
    x, duals = _vector("x", outcome.x, columns), _vector("row_duals", outcome.row_duals, rows)
    try:
        read = _Stated.read({name: getattr(outcome, name) for name in _Stated.__struct_fields__})
    except msgspec.ValidationError as error:
        msg = f"an invalid outcome: {in_words(error)}"
        raise TypeError(msg) from None
    stated = dict(read.items())
    counts = {name: None if stated[name] is None else int(stated[name]) for name in ("iterations", "nodes")}
    options = {one_line(name, 200): value for name, value in stated.pop("options").items()}
    words: dict[str, Any] = {
        name: None if getattr(outcome, name) is None else one_line(getattr(outcome, name), 200)
        for name in ("algorithm", "version")
    }
    message = outcome.message
    if stated["termination"] is Termination.ERROR and not message and outcome.raw:
        message = f"the solver reports {one_line(outcome.raw, 200)!r}"
    raw = one_line(outcome.raw, 200)
    return replace(
        outcome, x=x, row_duals=duals, raw=raw, message=one_line(message), options=options, **words, **(stated | counts)
    )


def _vector(name: str, value: object, size: int) -> F64 | None:
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "fiub" or array.shape != (size,):
        msg = f"{name} of type {array.dtype} and shape {array.shape}, expected real numbers of shape ({size},)"
        raise TypeError(msg)
    return array.astype(float)


#: Options of solvers that name a file or folder, or make the solver write one.
_FILES = re.compile(
    r"file|(^|[._/])(write|workdir|record|tempdir|server|cloud)|dir(ectory)?$|path(name)?$|paramsetprefix$",
    re.IGNORECASE,
)
#: Options of solvers that the runner sets from the limits of the solve, by the argument to use instead.
_OWN = {
    "threads": re.compile(r"(^|[._/])(num_|max_|maxn|min_|minn|n)?threads$|num_(search_)?workers$", re.IGNORECASE),
    "time_limit": re.compile(
        r"(^|[._/]|optimizer_|mio_)(max_?time|time_?limit|max_time_in_seconds|time_sec_limit)$|^limits/time$",
        re.IGNORECASE,
    ),
}


def trivial_outcome(form: StandardForm) -> Outcome | None:
    """Solve a problem with crossing bounds or without columns, which solvers treat differently; else return None."""
    if (message := crossed(form)) is not None:
        return Outcome(Termination.INFEASIBLE, raw="bounds cross", algorithm="none", message=message)
    if form.stored.shape[1]:
        return None
    if ((form.row_lower > 0) | (form.row_upper < 0)).any():
        return Outcome(Termination.INFEASIBLE, raw="no columns", algorithm="none")
    return Outcome(
        Termination.OPTIMAL,
        form.offset,
        form.offset,
        np.zeros(0),
        np.zeros(form.stored.shape[0]),
        raw="no columns",
        algorithm="none",
    )


_KIND_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}

NO_SOLUTION = (Termination.INFEASIBLE, Termination.UNBOUNDED, Termination.INFEASIBLE_OR_UNBOUNDED)
"""Terminations after which a vector is meaningless."""


def unknown_option(solver: str, name: str, known: Iterable[str]) -> BadOption:
    """Make the error for an option that the solver does not have, suggesting the closest name."""
    full_names = {}  # also without prefixes, which users often omit; the shorter of two equal names wins
    for full in sorted(known, key=len, reverse=True):
        full_names[re.split(r"[./]|PAR_", full)[-1].lower()] = full
        full_names[full.lower()] = full
    close = difflib.get_close_matches(name.lower(), list(full_names), n=1, cutoff=0.7)
    hint = f"did you mean {full_names[close[0]]!r}?" if close else "see the solver's list of parameters"
    return BadOption(f"solver {solver!r} has no option {name!r}; {hint}")


def _rejected(solver: str, name: str, value: Any, reason: str) -> BadOption:
    detail = f": {reason}" if reason else ""
    return BadOption(f"solver {solver!r} rejects {name} = {value!r}{detail}; see its documentation for the range")


def parse_value(solver: str, name: str, value: Any, kind: type) -> Any:
    """Convert ``value``, possibly given as a string, to ``kind`` (bool, int, float or str).

    Raises
    ------
    BadOption
        If it cannot be converted.
    """
    text = str(value).strip()
    if kind is bool:
        text = {"on": "yes", "off": "no"}.get(text.lower(), text)
    try:
        return read_text(text, kind)
    except ValueError:
        raise _rejected(solver, name, value, f"it must be {_KIND_NAMES[kind]}") from None


class ProgressLog:
    """Improving incumbents with their times; passes each one, and each new bound, to ``progress``."""

    def __init__(self, form: StandardForm, progress: ProgressCallback) -> None:
        self.incumbents: list[tuple[float, float]] = []
        self._form, self._progress = form, progress
        self._start = time.perf_counter()
        self._bound: float | None = None
        self._flip = -1.0 if form.sense == "max" else 1.0

    def incumbent(self, x: F64, bound: float | None = None) -> None:
        """Record an incumbent unless it does not improve on the last one."""
        value = self._form.objective(x)
        if self.incumbents and self._flip * value >= self._flip * self.incumbents[-1][1]:
            return
        self.incumbents.append((time.perf_counter() - self._start, value))
        self._progress(value, self._new_bound(bound), x)

    def bound(self, bound: float | None) -> None:
        """Report a bound if it is finite and new."""
        new = self._new_bound(bound)
        if new is not None:
            self._progress(None, new)

    def _new_bound(self, bound: float | None) -> float | None:
        if bound is None or not abs(bound) < 1e19 or bound == self._bound:
            return None
        self._bound = float(bound)
        return self._bound


@dataclass(frozen=True)
class RowKinds:
    """Rows in the form that most solvers expect: a letter, a right-hand side and a range.

    ``letter``, shape ``(rows,)``: E equality, L <=, G >=, R range ``[rhs - width, rhs]``, N free (then rhs 0).
    """

    letter: NDArray[np.str_]
    rhs: F64
    width: F64


def row_kinds(form: StandardForm) -> RowKinds:
    """Classify the rows of ``form``."""
    lower, upper = np.asarray(form.row_lower), np.asarray(form.row_upper)
    has_lower, has_upper = np.isfinite(lower), np.isfinite(upper)
    letter = np.full(lower.size, "N")
    letter[has_upper] = "L"
    letter[has_lower] = "G"
    letter[has_lower & has_upper] = "R"
    letter[has_lower & (lower == upper)] = "E"
    rhs = np.where(has_upper, upper, np.where(has_lower, lower, 0.0))
    width = np.zeros(lower.size)
    ranged = letter == "R"
    width[ranged] = upper[ranged] - lower[ranged]
    return RowKinds(letter, rhs, width)


def set_solution(
    outcome: Outcome,
    form: StandardForm,
    x: F64 | None,
    duals: F64 | None = None,
    *,
    exact: bool = True,
    accepted: bool = False,
) -> None:
    """Store a solver's vectors in ``outcome``.

    A vector returned with a proof of infeasibility or unboundedness is dropped; so is that of an integer program
    returned at a limit, unless it satisfies the matrix or is an incumbent that the solver ``accepted``. The value of a
    linear program is a bound only if the algorithm was ``exact``, and the duals agree: options may turn that off.
    """
    if x is None or outcome.termination in NO_SOLUTION:
        return
    if np.shape(x) != (form.stored.shape[1],):
        outcome.x = x  # refused by accepted(), which names the solver
        return
    if not np.isfinite(x).all():
        if outcome.termination == Termination.OPTIMAL:
            outcome.message += " the solver returned a solution with entries that are not finite"
        return
    x = np.array(x, dtype=float)
    solved = outcome.termination == Termination.OPTIMAL
    if form.is_mip and not (solved or accepted) and max(matrix_violations(form, x).values()) > FEASIBLE:
        return
    outcome.x, outcome.objective = x, form.objective(x)
    if form.is_mip:
        return
    if duals is not None and np.isfinite(duals).all():
        outcome.row_duals = np.array(duals, dtype=float)
    if solved and exact and outcome.row_duals is not None:
        errors = kkt(form, x, outcome.row_duals)
        size = max(size_of_terms(form, x), 1e-12)
        far = (errors["gap"] or 0.0) * abs(outcome.objective) > ACCURATE * size
        outcome.bound = None if far or (errors["dual"] or 0.0) > ACCURATE else outcome.objective
