r"""One case of a sweep: an optimum compared with a bound, in floating point or in rational arithmetic.

A run gives an interval [lower, upper] that contains the optimum: one end is the value of a verified solution, the other
a certified bound. A claimed bound b is compared with it:

    sense lower (optimum >= b)   violated if b > upper (1 + tol)
    sense upper (optimum <= b)   violated if b < lower (1 - tol)

With an exact optimum, which is a fraction, both ends are that fraction and tol is 0; b is then the fraction that the
function returned, or the exact value of the float.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from opticoll.analysis.bounds.bound_values import ComparedBound, Found
from opticoll.solvers.task import PROVEN, Fields

if TYPE_CHECKING:
    from opticoll.analysis.bounds.bounded_quantity import Sense
    from opticoll.instances import Instance
    from opticoll.solvers.task import Record

#: Relative difference up to which a bound counts as attained, and beyond which as violated, in floating point.
TOLERANCE = 1e-6
#: Relative difference of two floats that stand for the same number.
SAME = 1e-9
#: Field of a record that holds the fraction of a quantity.
_EXACT = {"objective": "objective_exact", "T": "T_exact", "F": "F_exact"}


class Status(StrEnum):
    """Outcome of one case."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "undecided"
    INAPPLICABLE = "inapplicable"
    ERROR = "error"


class Case(Fields, frozen=True, kw_only=True):
    """One isomorphism class of instances: the optimum, the bound, and their ratio.

    ``case`` is a spec; ``copies`` counts the instances of the class. ``lower`` and ``upper`` enclose the optimum.
    ``optimum``, ``ratio`` (bound / optimum), ``excess`` (ratio - 1, without cancellation) and ``attained`` (whether the
    two are equal) are None unless the optimum is proven, ``attained`` of an exact sweep unless it is proven exactly.
    ``bound_exact`` is the bound as a fraction if fractions were requested, ``optimum_exact`` if the exact optimum is
    also proven: they are then what is compared.
    """

    case: str
    n: int
    arcs: int | None = None
    copies: int = 1
    status: Status
    bound: float | None = None
    bound_exact: str | None = None
    optimum: float | None = None
    optimum_exact: str | None = None
    lower: float | None = None
    upper: float | None = None
    ratio: float | None = None
    excess: float | None = None
    attained: bool | None = None
    message: str | None = None


@dataclass(frozen=True)
class Quantity:
    """The bounded quantity (the objective, T = 1 / F, or a metric) and the sense of the bound."""

    name: str
    sense: Sense
    metric: bool = False
    inverse: bool = False

    def interval(self, record: Record) -> tuple[float | None, float | None, float | None]:
        """Lower end, upper end and proven value; None where it is unknown."""
        proven = record.verified is True and record.proof in PROVEN
        if self.metric:
            value = (record.metrics or {}).get(self.name)
            value = float(value) if proven and isinstance(value, (int, float)) else None
            return value, value, value
        value = record.objective if record.verified is True else None
        ends = [record.bound, value] if record.sense == "min" else [value, record.bound]
        if self.inverse:
            ends = [_inverse(end) for end in reversed(ends)]
            value = _inverse(value)
        return ends[0], ends[1], value if proven else None

    def fraction(self, record: Record) -> str | None:
        """The exact optimum, or a metric that is a whole number at an exact optimum."""
        if self.metric:
            value = (record.metrics or {}).get(self.name)
            whole = isinstance(value, int) and not isinstance(value, bool)
            return str(value) if whole and record.objective_exact is not None else None
        found = {**record, **(record.metrics or {})}.get(_EXACT[self.name])
        if found is None and self.name == "F":
            found = record.objective_exact
        return None if found is None else str(found)


def _inverse(value: float | None) -> float | None:
    return 1 / value if value else None


def compared(
    instance: Instance,
    copies: int,
    value: Found,
    record: Record | None,
    quantity: Quantity,
    *,
    tol: float = TOLERANCE,
    exact: bool = False,
    message: str = "",
) -> Case:
    """Compare a bound on an instance with the record of a run on it.

    Parameters
    ----------
    copies
        Number of instances for which it stands.
    tol
        Relative tolerance where the optimum is known in floating point only.
    exact
        Whether to compare fractions where the optimum is known exactly.
    message
        Why a run ended without a proof.
    """
    known: dict[str, Any] = {
        "case": instance.spec,
        "n": instance.n,
        "copies": copies,
        "arcs": getattr(instance, "arcs", None),
    }
    if record is not None:
        known["lower"], known["upper"], known["optimum"] = quantity.interval(record)
        known["optimum_exact"] = quantity.fraction(record)
    if isinstance(value, Exception):
        return Case(**known, status=Status.ERROR, message=str(value))
    if value is None:
        return Case(**known, status=Status.INAPPLICABLE, message="the bound does not apply")
    known["bound"] = value.value
    known["bound_exact"] = str(value.fraction) if exact and not value.rounded else None
    if record is not None and record.infeasible_by is not None:
        return Case(**known, status=Status.INAPPLICABLE, message="the case has no solution")
    fraction = known.get("optimum_exact") if exact else None
    if fraction is not None:
        return _in_fractions(known, value, Fraction(fraction), quantity.sense)
    return _in_floats(known, value.value, quantity.sense, tol, message, exact=exact)


def _in_floats(known: dict[str, Any], value: float, sense: Sense, tol: float, message: str, *, exact: bool) -> Case:
    lower, upper, optimum = (known.get(name) for name in ("lower", "upper", "optimum"))
    if sense == "lower":
        violated = upper is not None and value > upper + tol * abs(upper)
    else:
        violated = lower is not None and value < lower - tol * abs(lower)
    if optimum is not None:
        ratio = value / optimum if optimum else (1.0 if value == 0 else None)
        known |= {"ratio": ratio, "excess": None if ratio is None else ratio - 1}
        known["attained"] = None if exact else ratio is not None and abs(ratio - 1) <= TOLERANCE
    if violated or (optimum is not None and not exact):
        return Case(**known, status=Status.VIOLATED if violated else Status.HOLDS)
    reason = "no exact optimum is proven" if optimum is not None else "the optimum is not proven within the limits"
    return Case(**known, status=Status.UNDECIDED, message=" ".join(message.split()) or reason)


def _in_fractions(known: dict[str, Any], value: ComparedBound, optimum: Fraction, sense: Sense) -> Case:
    bound = value.fraction
    violated = bound > optimum if sense == "lower" else bound < optimum
    ratio = float(bound / optimum) if optimum else (1.0 if bound == 0 else None)
    message = None
    near = abs(bound - optimum) <= Fraction(1, 10**12) * abs(optimum)
    if value.rounded and near and bound != optimum:
        message = "the bound is a float and differs from the optimum by rounding; return a Fraction"
    known["bound_exact"] = str(bound)
    return Case(
        **known,
        ratio=ratio,
        excess=float(bound / optimum - 1) if optimum else None,
        attained=bound == optimum,
        status=Status.VIOLATED if violated else Status.HOLDS,
        message=message,
    )
