"""Helpers shared by the adapters: options, file names, progress, row types and solution vectors."""

from __future__ import annotations

import difflib
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadOption, SolverUnavailable
from opticoll.solvers.task import PrimalStatus, Termination
from opticoll.solvers.verify import FEASIBLE, matrix_violations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    from opticoll.solvers.adapters.interface import Progress
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import Outcome

_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")
_KIND_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "text"}

NO_SOLUTION = (Termination.INFEASIBLE, Termination.UNBOUNDED, Termination.INFEASIBLE_OR_UNBOUNDED)
"""Terminations after which a vector is meaningless."""


def plain_names(names: list[str], letter: str) -> list[str]:
    """Make names that MPS and LP readers accept: no blanks or brackets, unique, not a number or a keyword."""
    plain = [re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("_.") for name in names]
    plain = [name if re.match(r"[A-DF-Za-df-z_]", name) else f"{letter}_{name}" for name in plain]
    if len(set(plain)) < len(plain):
        plain = [f"{name}.{position}" for position, name in enumerate(plain)]
    return plain


def unknown_option(solver: str, name: str, known: Iterable[str]) -> BadOption:
    """Make the error for an option that the solver does not have, suggesting the closest name."""
    full_names = {}  # also without prefixes, which users often omit; the shorter of two equal names wins
    for full in sorted(known, key=len, reverse=True):
        full_names[re.split(r"[./]|PAR_", full)[-1].lower()] = full
        full_names[full.lower()] = full
    close = difflib.get_close_matches(name.lower(), list(full_names), n=1, cutoff=0.7)
    hint = f"did you mean {full_names[close[0]]!r}?" if close else "see the solver's list of parameters"
    return BadOption(f"solver {solver!r} has no option {name!r}; {hint}")


def rejected_value(solver: str, name: str, value: Any, reason: str = "") -> BadOption:
    """Make the error for an option value that the solver does not accept."""
    detail = f": {reason}" if reason else ""
    return BadOption(f"solver {solver!r} rejects {name} = {value!r}{detail}; see its documentation for the range")


def parse_value(solver: str, name: str, value: Any, kind: type) -> Any:
    """Convert ``value``, possibly given as text, to ``kind`` (bool, int, float or str).

    Raises
    ------
    BadOption
        If it cannot be converted.
    """
    text = str(value).strip()
    if kind is str:
        return text
    if kind is bool and text.lower() in _TRUE + _FALSE:
        return text.lower() in _TRUE
    try:
        number = float("nan" if kind is bool else text)
    except ValueError:
        number = float("nan")
    if kind is float and number == number:
        return number
    if kind is int and number.is_integer():
        return int(text) if text.lstrip("+-").isdigit() else int(number)
    raise rejected_value(solver, name, value, f"it must be {_KIND_NAMES[kind]}")


def apply_options(
    solver: str,
    options: Mapping[str, object],
    set_option: Callable[[str, Any], object],
    errors: tuple[type[Exception], ...],
) -> None:
    """Set all options by ``set_option(name, value)``.

    Raises
    ------
    BadOption
        If setting one raises any of ``errors``.
    """
    for name, value in options.items():
        try:
            set_option(name, value)
        except errors as error:
            raise rejected_value(solver, name, value, str(error)) from error


def licence_too_small(solver: str, form: StandardForm, reason: str, remedy: str) -> SolverUnavailable:
    """Make the error for a problem larger than the licence allows."""
    size = f"{form.size['variables']} variables and {form.size['constraints']} constraints"
    return SolverUnavailable(f"solver {solver!r}: the licence does not cover {size} ({reason}): {remedy}")


class ProgressLog:
    """Improving incumbents with their times; passes each one, and each new bound, to ``progress``."""

    def __init__(self, form: StandardForm, progress: Progress) -> None:
        self.incumbents: list[tuple[float, float]] = []
        self._form, self._progress = form, progress
        self._start = time.perf_counter()
        self._bound: float | None = None
        self._flip = -1.0 if form.sense == "max" else 1.0

    def incumbent(self, x: NDArray[np.float64], bound: float | None = None) -> None:
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
    """Rows as most solvers take them: a letter, a right-hand side and a range.

    ``letter``, shape ``(rows,)``: E equality, L <=, G >=, R range ``[rhs - width, rhs]``, N free (then rhs 0).
    """

    letter: NDArray[np.str_]
    rhs: NDArray[np.float64]
    width: NDArray[np.float64]


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
    x: NDArray[np.float64] | None,
    duals: NDArray[np.float64] | None = None,
    *,
    exact: bool = True,
    accepted: bool = False,
) -> None:
    """Store a solver's vectors in ``outcome`` with the primal status they justify.

    A vector returned with a proof of infeasibility or unboundedness is dropped. A vector returned at a limit
    counts as feasible only if it satisfies the matrix, unless it is an incumbent that the solver ``accepted``.
    """
    if x is None or outcome.termination in NO_SOLUTION or not np.isfinite(x).all():
        return
    x = np.array(x, dtype=float)
    solved = outcome.termination == Termination.OPTIMAL
    if not (solved or accepted) and max(matrix_violations(form, x).values()) > FEASIBLE:
        outcome.primal = PrimalStatus.INFEASIBLE
        if form.is_mip:
            return
    else:
        outcome.primal = PrimalStatus.FEASIBLE if exact else PrimalStatus.APPROXIMATE
    outcome.x, outcome.objective = x, form.objective(x)
    if form.is_mip:
        return
    if duals is not None and np.isfinite(duals).all():
        outcome.row_duals = np.array(duals, dtype=float)
    if solved and exact:
        outcome.bound = outcome.objective


def rounded_bounds(form: StandardForm) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Column bounds, those of integer columns rounded inwards: readers of files ignore their fractions."""
    whole = np.asarray(form.integer)
    lower = np.where(whole, np.ceil(form.col_lower - 1e-9), form.col_lower)
    return lower, np.where(whole, np.floor(form.col_upper + 1e-9), form.col_upper)


def finite_or_none(value: float | None) -> float | None:
    """Replace a solver's "infinity", which stands for an unknown value, by None."""
    return None if value is None or not abs(value) < 1e19 else float(value)
