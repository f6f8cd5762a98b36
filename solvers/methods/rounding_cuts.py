r"""Cutting planes from rows of the simplex tableau, valid in spite of rounding.

Any weights :math:`\lambda` of the rows make an equation of columns x and row activities r, :math:`\lambda A x - \lambda
r = 0`. With every variable z measured from one of its bounds, :math:`t = z - l` or :math:`t = u - z`, it reads
:math:`\sum_j c_j t_j = \beta` over :math:`t \ge 0`. With f the fractional part of :math:`\beta` and f_j that of c_j
follows Gomory's mixed-integer cut (Marchand & Wolsey, Operations Research 49, 2001)

.. math:: \sum_{j \text{ integer}} \Big(\lfloor c_j \rfloor + \frac{\max(0, f_j - f)}{1 - f}\Big) t_j
          + \sum_{j \text{ continuous}} \frac{\min(0, c_j)}{1 - f} t_j \le \lfloor \beta \rfloor ,

which is written in x again. Weights are rows of the inverse basis, so that a basic column of fractional value violates
the cut.

All numbers are computed in floating point with bounds on their errors. As t is at least 0, a smaller coefficient and a
larger right-hand side are weaker: every error moves them that way, and the errors of the final coefficients are paid
for by the columns' bounds (Cook, Dash, Fukasawa & Goycoolea, INFORMS Journal on Computing 21, 2009). So every solution
of the program satisfies every cut.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from opticoll.formulations.rounding import TINY, UNIT
from opticoll.solvers.adapters.highs import pass_form

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64, Mask

#: Most rounds of cuts, most cuts of a round, and columns tried for them.
ROUNDS, MOST_CUTS, TRIED = 40, 60, 200
#: Least and largest f, and the least violation of a cut, whose norm is near 1.
LEAST_PART, LEAST_VIOLATION = 0.01, 1e-5
#: Cuts whose normals have a larger cosine are nearly parallel, so that one is enough.
PARALLEL = 0.9
#: Coefficients smaller than this share of the largest are replaced by 0.
SMALL = 1e-9
#: Weights smaller than this share of the largest are noise of the inverse basis.
NOISE = 1e-12
#: Distance from an integer at which a basic column counts as fractional.
FRACTIONAL = 1e-5


@dataclass(frozen=True, eq=False)
class Cuts:
    """Cuts ``matrix @ x <= limit``, ``(cuts, columns)`` and ``(cuts,)``; the relaxation's value before and after."""

    matrix: sp.csr_array
    limit: F64
    before: float
    after: float


def rounding_cuts(form: StandardForm) -> Cuts | None:
    """Cuts of a minimization from several rounds that are tight at last; None if there are none.

    None also if HiGHS does not solve a relaxation.
    """
    now = replace(form, columns={}, rows={})
    stated = form.row_lower.size
    vertex = _vertex(now)
    before = None if vertex is None else vertex.value
    for _ in range(ROUNDS):
        cuts = [] if vertex is None else _separated(now, vertex)
        if vertex is None or not cuts:
            break
        kept = vertex.tight(now) | (np.arange(now.row_lower.size) < stated)
        now = _with_rows(now, kept, cuts)
        vertex = _vertex(now)
    if vertex is None or before is None or now.row_lower.size == stated:
        return None
    tight = stated + np.flatnonzero(vertex.tight(now)[stated:])
    return Cuts(sp.csr_array(now.A)[tight], now.row_upper[tight], before, vertex.value)


@dataclass(frozen=True, eq=False)
class _Vertex:
    """The optimal vertex of a relaxation: x, row activities, the value, and weights of rows for fractional columns."""

    x: F64
    activity: F64
    value: float
    weights: list[F64]

    def tight(self, form: StandardForm) -> Mask:
        """Which rows are at their upper bound, ``(rows,)``."""
        return form.row_upper - self.activity <= 1e-7 * (1.0 + np.abs(self.activity))


def _vertex(form: StandardForm) -> _Vertex | None:
    """The optimal vertex; the weights are rows of the inverse basis, those of the most fractional columns first."""
    import highspy

    highs: Any = highspy.Highs()
    for name, value in (("output_flag", False), ("presolve", "off"), ("solver", "simplex"), ("threads", 1)):
        highs.setOptionValue(name, value)
    pass_form(highspy, highs, replace(form, integer=np.zeros(form.cost.size, dtype=bool)))
    highs.run()
    if highs.getModelStatus().name != "kOptimal":
        return None
    solution = highs.getSolution()
    x, activity = np.array(solution.col_value, dtype=float), np.array(solution.row_value, dtype=float)
    away, integer = np.abs(x - np.rint(x)), np.asarray(form.integer, dtype=bool)
    _, basic = highs.getBasicVariables()
    fractional = [
        (away[column], position)
        for position, column in enumerate(np.asarray(basic).tolist())
        if column >= 0 and integer[column] and away[column] > FRACTIONAL
    ]
    chosen = [position for _, position in sorted(fractional, key=lambda pair: -pair[0])[:TRIED]]
    weights = [np.array(highs.getBasisInverseRow(position)[1], dtype=float) for position in chosen]
    return _Vertex(x, activity, float(highs.getObjectiveValue()), weights)


def _separated(form: StandardForm, vertex: _Vertex) -> list[tuple[F64, float]]:
    """Cuts that the vertex violates, the most violated first and none nearly parallel to another."""
    system = _System.of(form)
    point = np.concatenate([vertex.x, system.A @ vertex.x])
    found = []
    for weights in vertex.weights:
        cut = system.cut(weights, point)
        if cut is None:
            continue
        violation = float(cut[0] @ vertex.x) - cut[1]
        if violation > LEAST_VIOLATION:
            found.append((violation, cut))
    kept: list[tuple[F64, float]] = []
    units: list[F64] = []
    for _, cut in sorted(found, key=lambda pair: -pair[0]):
        unit = cut[0] / np.linalg.norm(cut[0])
        if all(abs(float(unit @ other)) < PARALLEL for other in units):
            kept.append(cut)
            units.append(unit)
        if len(kept) == MOST_CUTS:
            break
    return kept


@dataclass(frozen=True, eq=False)
class _System:
    """Columns x and row activities r with their bounds and integrality, ``(columns + rows,)`` each."""

    A: sp.csr_array
    size: sp.csr_array
    lower: F64
    upper: F64
    whole: Mask
    pattern: sp.csr_array

    @classmethod
    def of(cls, form: StandardForm) -> _System:
        """A row's activity is whole if its columns, entries and finite bounds are."""
        A, integer = sp.csr_array(form.A), np.asarray(form.integer, dtype=bool)
        entries = A.tocoo()
        loose = np.bincount(entries.row, ~integer[entries.col] | (entries.data != np.rint(entries.data)), A.shape[0])
        lower = np.concatenate([form.col_lower, form.row_lower])
        upper = np.concatenate([form.col_upper, form.row_upper])
        whole = np.concatenate([integer, loose == 0])
        for bound in (lower, upper):
            whole &= ~np.isfinite(bound) | (bound == np.rint(bound))
        pattern = sp.csr_array((np.ones(A.nnz), A.indices, A.indptr), A.shape)
        return cls(A, abs(A), lower, upper, whole, pattern)

    def cut(self, weights: F64, point: F64) -> tuple[F64, float] | None:
        """The cut of the weights, ``(rows,)``, as coefficients of a norm near 1 and a limit; None if there is none.

        Variables are measured from the bound that is nearer to the ``point``, ``(columns + rows,)``.
        """
        columns = self.A.shape[1]
        weights = np.where(np.abs(weights) > NOISE * np.abs(weights).max(initial=0.0), weights, 0.0)
        entries, error = self._sums(weights)
        entries, error = np.append(entries, -weights), np.append(error, np.zeros(weights.size))
        used = (entries != 0) | (error > 0)
        with np.errstate(invalid="ignore"):
            below, above = np.abs(point - self.lower), np.abs(self.upper - point)
        at_lower = np.where(np.isfinite(below), below, np.inf) <= np.where(np.isfinite(above), above, np.inf)
        bound = np.where(at_lower, self.lower, self.upper)
        if not np.isfinite(bound[used]).all():
            return None
        bound = np.where(used, bound, 0.0)
        sign = np.where(at_lower, 1.0, -1.0)
        spread = error * np.abs(bound)
        beta = _sum_up(spread - entries * bound, spread + np.abs(entries * bound))
        part = beta - math.floor(beta)
        if not LEAST_PART <= part <= 1.0 - LEAST_PART:
            return None
        lowered = np.nextafter(sign * entries - error, -np.inf)
        gain = _rounded(np.where(used, np.where(error > 0, lowered, sign * entries), 0.0), part, self.whole)
        back = np.where(used, sign * gain, 0.0)
        coefficients, error = self._sums(back[columns:])
        coefficients = coefficients + back[:columns]
        error = error + 4.0 * UNIT * np.abs(coefficients) + TINY
        products = np.append(back * bound, math.floor(beta))
        limit = _sum_up(products, np.abs(products))
        return self._clean(coefficients, error, limit)

    def _sums(self, weights: F64) -> tuple[F64, F64]:
        """Weighted sums of the rows, ``(columns,)``, and bounds on their errors."""
        terms = (weights != 0).astype(float) @ self.pattern
        return weights @ self.A, np.where(terms > 0, _loss(np.abs(weights) @ self.size, terms), 0.0)

    def _clean(self, coefficients: F64, error: F64, limit: float) -> tuple[F64, float] | None:
        """The cut without small coefficients; these and all errors are paid for by the columns' bounds."""
        columns = coefficients.size
        largest = float(np.abs(coefficients).max(initial=0.0))
        if not 0.0 < largest < np.inf:
            return None
        small = np.abs(coefficients) < SMALL * largest
        lost = np.where(small, np.abs(coefficients), 0.0) + error
        lost[(coefficients == 0) & (error <= TINY)] = 0.0
        reach = np.maximum(np.abs(self.lower[:columns]), np.abs(self.upper[:columns]))
        if not np.isfinite(reach[lost > 0]).all():
            return None
        paid = np.append(lost[lost > 0] * reach[lost > 0], limit)
        limit = _sum_up(paid, np.abs(paid))
        kept = np.where(small, 0.0, coefficients)
        scale = 2.0 ** -np.round(np.log2(np.linalg.norm(kept)))  # exact: a power of 2
        return kept * scale, limit * scale


def _loss(size: F64, terms: F64) -> F64:
    """Bounds on the rounding errors of sums of products whose absolute values add up to ``size``."""
    return size * UNIT * 4.0 * (terms + 4.0) + TINY * 8.0 * (terms + 1.0)


def _sum_up(values: F64, size: F64) -> float:
    """Upper bound on the sum of values whose absolute values, and errors, are at most ``size``, ``(terms,)`` each."""
    terms = values.size
    return float(values.sum()) + float(size.sum()) * UNIT * 4.0 * (terms + 4.0) + TINY * 8.0 * (terms + 1.0)


def _rounded(c: F64, part: float, whole: Mask) -> F64:
    """Coefficients of the cut from those of the equation, rounded down."""
    floor = np.floor(c)
    integer = floor + np.maximum(c - floor - part, 0.0) / (1.0 - part)
    result = np.where(whole, integer, np.minimum(c, 0.0) / (1.0 - part))
    exact = np.where(whole, c == floor, c >= 0)
    return np.where(exact, np.where(whole, floor, 0.0), result - 16.0 * UNIT * (1.0 + np.abs(result)) / (1.0 - part))


def _with_rows(form: StandardForm, kept: Mask, cuts: list[tuple[F64, float]]) -> StandardForm:
    """The program with the kept rows and with the cuts."""
    A = sp.csr_array(form.A)[np.flatnonzero(kept)]
    added = [sp.csr_array(cut[None, :]) for cut, _ in cuts]
    return replace(
        form,
        A=sp.csc_array(sp.vstack([A, *added])),
        row_lower=np.concatenate([form.row_lower[kept], np.full(len(cuts), -np.inf)]),
        row_upper=np.concatenate([form.row_upper[kept], [limit for _, limit in cuts]]),
    )
