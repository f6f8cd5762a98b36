"""What every adapter does alike: the trail of incumbents, row kinds, and honest words for a vector.

Names for model files.

Options by the solver's own names: every adapter refuses what does not exist in the same words.
"""

from __future__ import annotations

import difflib
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import BadOption
from opticoll.solvers.task import PrimalStatus, Termination
from opticoll.solvers.verify import FEASIBLE, matrix_violations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from opticoll.solvers.adapters.interface import Progress
    from opticoll.solvers.standard_form import StandardForm
    from opticoll.solvers.task import Outcome


def plain_names(names: list[str], letter: str) -> list[str]:
    """Make names that MPS and LP readers accept: no blanks or brackets, unique, not a number or a keyword."""
    plain = [re.sub(r"[^A-Za-z0-9_.]+", "_", name).strip("_.") for name in names]
    plain = [name if re.match(r"[A-DF-Za-df-z_]", name) else f"{letter}_{name}" for name in plain]
    if len(set(plain)) < len(plain):
        plain = [f"{name}.{position}" for position, name in enumerate(plain)]
    return plain


_TRUE = ("true", "yes", "on", "1")
_FALSE = ("false", "no", "off", "0")


def unknown(solver: str, name: str, known: Iterable[str]) -> BadOption:
    """Make the error for an option that the solver does not have, naming the nearest that it has."""
    forms = {}  # also without their prefixes, which are easily forgotten; of two alike the shorter
    for full in sorted(known, key=len, reverse=True):
        forms[re.split(r"[./]|PAR_", full)[-1].lower()] = full
        forms[full.lower()] = full
    close = difflib.get_close_matches(name.lower(), list(forms), n=1, cutoff=0.7)
    hint = f"did you mean {forms[close[0]]!r}?" if close else "see the solver's list of parameters"
    return BadOption(f"solver {solver!r} has no option {name!r}; {hint}")


def refused(solver: str, name: str, value: Any, why: str = "") -> BadOption:
    """Make the error for a value that the solver does not accept."""
    reason = f": {why}" if why else ""
    return BadOption(f"solver {solver!r} refuses {name} = {value!r}{reason}; see its documentation for the range")


def typed(solver: str, name: str, value: Any, kind: type) -> Any:
    """``value``, perhaps written as text, as a value of ``kind`` (bool, int, float or str).

    Raises
    ------
    BadOption
        If it is no such value.
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
    raise refused(solver, name, value, f"it wants {_WANTS[kind]}")


_WANTS = {bool: "true or false", int: "an integer", float: "a number", str: "text"}


NO_ANSWER = (Termination.INFEASIBLE, Termination.UNBOUNDED, Termination.INFEASIBLE_OR_UNBOUNDED)
"""Terminations after which a vector means nothing."""


class Trail:
    """Improving incumbents and new bounds, told once each to ``progress`` and kept with their time."""

    def __init__(self, form: StandardForm, progress: Progress) -> None:
        self.incumbents: list[tuple[float, float]] = []
        self._form, self._progress = form, progress
        self._start = time.perf_counter()
        self._bound: float | None = None
        self._flip = -1.0 if form.sense == "max" else 1.0

    def found(self, x: NDArray[np.float64], bound: float | None = None) -> None:
        """Note an incumbent; one that improves nothing is passed over."""
        value = self._form.objective(x)
        if self.incumbents and self._flip * value >= self._flip * self.incumbents[-1][1]:
            return
        self.incumbents.append((time.perf_counter() - self._start, value))
        self._progress(value, self._fresh(bound), x)

    def bounded(self, bound: float | None) -> None:
        """Note a bound, if it is finite and new."""
        fresh = self._fresh(bound)
        if fresh is not None:
            self._progress(None, fresh)

    def _fresh(self, bound: float | None) -> float | None:
        if bound is None or not abs(bound) < 1e19 or bound == self._bound:
            return None
        self._bound = float(bound)
        return self._bound


@dataclass(frozen=True)
class RowKinds:
    """Rows as most solvers want them: a letter, a right-hand side and a range.

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


def fill(
    outcome: Outcome,
    form: StandardForm,
    x: NDArray[np.float64] | None,
    duals: NDArray[np.float64] | None = None,
    *,
    exact: bool = True,
    believed: bool = False,
) -> None:
    """Put a solver's vectors into ``outcome``, with the words they deserve.

    A vector after a proof of infeasibility or unboundedness is dropped. A vector after a limit is called feasible
    only if it is, measured on the matrix, unless it is ``believed``: an incumbent that the solver accepted.
    """
    if x is None or outcome.termination in NO_ANSWER or not np.isfinite(x).all():
        return
    x = np.array(x, dtype=float)
    solved = outcome.termination == Termination.OPTIMAL
    if not (solved or believed) and max(matrix_violations(form, x).values()) > FEASIBLE:
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


def finite(value: float | None) -> float | None:
    """``value``, or None where a solver writes infinity for "not known"."""
    return None if value is None or not abs(value) < 1e19 else float(value)
