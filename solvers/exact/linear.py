r"""Exact optima of linear programs: HiGHS proposes a basis, rational arithmetic solves and checks it.

With B the basis matrix, :math:`B x_B = b` and :math:`B^\top y = c_B` are solved exactly. An LU factorization in
floating point gives a block of bits of the solution at a time, the remaining residual is computed in integers, and a
rational solution with a small denominator is reconstructed and verified (Z. Wan, *J. Symbolic Computation* 41, 2006).
If B is too ill-conditioned for that, FLINT solves it.

A basis whose exact x or y violates its bounds is refined: the violations, scaled up, are the data of another linear
program with the same matrix, whose optimal basis is more accurate (A. Gleixner, D. Steffy & K. Wolter, *INFORMS J.
Computing* 28, 2016). Infeasibility and unboundedness are proven by the exact optima of two other programs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import NoSolution
from opticoll.formulations.rounds.segments import offsets
from opticoll.formulations.standard_form import StandardForm
from opticoll.solvers.adapters.highs import highs_basis, own_basis, pass_form, quiet_highs
from opticoll.solvers.exact.exact_form import ExactAnswer, ExactForm, Leaf, common, products
from opticoll.solvers.task import BASIC, LOWER, UPPER, SimplexBasis

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64
    from opticoll.solvers.exact.exact_form import End, Whole


#: Programs with more nonzeros are first solved by interior point with crossover.
SIMPLEX_NONZEROS = 10_000
#: Most rounds of refinement, and the largest growth of the scale between two of them, as a power of 2.
ROUNDS, GROWTH = 40, 40
#: Components of a solution whose scales differ by more than this power of 2 are found in different units.
EVEN = 12
#: Scale, as a power of 2, of a problem that is posed around an exact solution.
AROUND = 10
#: Bits that a solve in floating point contributes, tried in turn.
BITS = (26, 13, 6)
#: Numbers of more bits are not divided in floating point; a float has at most 1024.
MOST_FLOAT_BITS = 1000
#: FLINT's dense solver takes systems of at most this many rows.
DENSE = 1200

_ZERO = Fraction(0)


def solve_linear(form: ExactForm, remaining: Callable[[], float | None] = lambda: None) -> ExactAnswer:
    """The exact optimum of a program's linear relaxation, or the proof that it has none.

    Parameters
    ----------
    form
        The program; its integrality is ignored.
    remaining
        Returns the seconds left, None without a limit; raises TimeoutError when no time is left.

    Raises
    ------
    NoSolution
        If no basis is proven optimal.
    TimeoutError
        When no time is left.
    """
    if form.contradiction is not None:
        return ExactAnswer("infeasible", nodes=(Leaf({}),))
    for plain in (False, True):
        result = _refined(form, remaining, plain=plain)
        if result is not None:
            return result
    msg = "exact: no basis was proven optimal in rational arithmetic; only the floating-point value is available"
    raise NoSolution(msg)


def _refined(form: ExactForm, remaining: Callable[[], float | None], *, plain: bool) -> ExactAnswer | None:
    """Refine bases until one is optimal; None if one recurs. ``plain``: by primal simplex without scaling."""
    lp = _FloatingLp(form, remaining, plain=plain)
    primal_scale = dual_scale = 0
    seen: set[bytes] = set()
    settled = False
    for _ in range(ROUNDS):
        status = lp.run()
        if status != "kOptimal" and not settled:
            settled = True
            result = _without_optimum(form, remaining)
            if isinstance(result, ExactAnswer):
                return result
            # There is an optimum: pose the problem around an exact solution of it and of its dual, so that HiGHS can
            # overlook neither.
            lp = _FloatingLp(form, remaining, presolve=False, plain=plain, wide=True)
            paid = form.reduced_costs({i: value for i, value in enumerate(result.y) if value})
            lp.shift(result.x, result.y, form.activity(result.x), paid, AROUND, 0)
            status = lp.run()
        if status not in ("kOptimal", "kUnknown"):
            if not plain:
                return None
            msg = f"exact: HiGHS ended with {status.removeprefix('k')} on a program that has an optimum; none is proven"
            raise NoSolution(msg)
        basis = lp.basis()
        print_key = basis.columns.tobytes() + basis.rows.tobytes()
        pair = _pair(form, basis) or lp.floating()
        z = form.reduced_costs({i: value for i, value in enumerate(pair.y) if value})
        activity = form.activity(pair.x)
        primal = _primal_violation(form, pair.x, activity)
        dual = _dual_violation(form, pair, z, activity)
        if primal == 0 and dual == 0:
            leaf = Leaf({i: value for i, value in enumerate(pair.y) if value})
            return ExactAnswer("optimal", form.objective(pair.x), pair.x, (leaf,))
        mark = print_key + bytes(f"{primal_scale},{dual_scale}", "ascii")
        if mark in seen:
            break
        seen.add(mark)
        primal_scale = _scale(primal, primal_scale)
        dual_scale = _scale(dual, dual_scale)
        if dual > 0 and not lp.wide:
            lp = _FloatingLp(form, remaining, presolve=False, plain=plain, wide=True)
            lp.restart(basis)
        if lp.wide:
            lp.shift(pair.x, pair.y, activity, z, primal_scale, dual_scale)
        else:
            lp.shift(pair.x, [_ZERO] * form.shape[0], activity, form.reduced_costs({}), primal_scale, 0)
    return None


def _scale(violation: Fraction, before: int) -> int:
    if violation == 0:
        return before
    bits = violation.denominator.bit_length() - violation.numerator.bit_length()
    return max(before, min(bits, before + GROWTH))


@dataclass(frozen=True, eq=False)
class _Pair:
    """Values of columns and multipliers of rows for the minimization, by position."""

    x: tuple[Fraction, ...]
    y: Sequence[Fraction]


def _primal_violation(form: ExactForm, x: Sequence[Fraction], activity: Sequence[Fraction]) -> Fraction:
    worst = _ZERO
    for values, lower, upper in ((x, form.col_lower, form.col_upper), (activity, form.row_lower, form.row_upper)):
        for value, low, high in zip(values, lower, upper, strict=True):
            if low is not None and value < low:
                worst = max(worst, low - value)
            elif high is not None and value > high:
                worst = max(worst, value - high)
    return worst


def _dual_violation(form: ExactForm, pair: _Pair, z: dict[int, Fraction], activity: Sequence[Fraction]) -> Fraction:
    """The largest multiplier of a bound that is not attained; if it is 0, x is optimal."""
    worst = _ZERO
    priced = [(value, pair.x[j], form.col_lower[j], form.col_upper[j]) for j, value in z.items()]
    priced += [(value, activity[i], form.row_lower[i], form.row_upper[i]) for i, value in enumerate(pair.y) if value]
    for price, value, low, high in priced:
        if value != (low if price > 0 else high):
            worst = max(worst, abs(price))
    return worst


class _FloatingLp:
    """HiGHS on a program whose bounds and costs are shifted and scaled between runs.

    Multipliers y of rows can only be shifted away if the rows' activities are columns, whose costs then change by y:
    ``wide`` adds them.
    """

    def __init__(
        self,
        form: ExactForm,
        remaining: Callable[[], float | None],
        *,
        presolve: bool = True,
        plain: bool = False,
        wide: bool = False,
    ) -> None:
        import highspy

        self.wide, self._size = wide, form.shape[1]
        form = _with_activities(form) if wide else form
        self._form, self._remaining, self._highspy = form, remaining, highspy
        self._origin = _Pair((_ZERO,) * form.shape[1], [_ZERO] * form.shape[0])
        self._units = (0, 0)
        rows, columns = form.shape
        first = "ipx" if len(form.values) > SIMPLEX_NONZEROS and presolve else "simplex"
        precise = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
        primal = {"simplex_scale_strategy": 0, "simplex_strategy": 4} if plain else {}
        presolved = "on" if presolve else "off"
        self._highs: Any = quiet_highs(highspy, threads=1, solver=first, presolve=presolved, **precise, **primal)
        pass_form(highspy, self._highs, floating_form(form))
        self._columns, self._rows = np.arange(columns, dtype=np.int32), np.arange(rows, dtype=np.int32)

    def restart(self, start: SimplexBasis) -> None:
        if self.wide:
            columns = np.concatenate([start.columns, start.rows])
            start = SimplexBasis(columns, np.full(start.rows.size, LOWER, dtype=np.int8))
        self._highs.setOptionValue("solver", "simplex")
        self._highs.setBasis(highs_basis(self._highspy, start))

    def run(self) -> str:
        left = self._remaining()
        if left is not None:
            self._highs.setOptionValue("time_limit", self._highs.getRunTime() + left)
        self._highs.run()
        status = str(self._highs.getModelStatus().name)
        if status == "kTimeLimit":
            raise TimeoutError
        return status

    def basis(self) -> SimplexBasis:
        found = own_basis(self._highs.getBasis())
        if not self.wide:
            return found
        rows = np.where(found.rows == BASIC, found.rows, found.columns[self._size :])
        return SimplexBasis(found.columns[: self._size], rows)

    def floating(self) -> _Pair:
        """The origin plus the floating-point correction, converted to fractions exactly."""
        solution, flip = self._highs.getSolution(), self._form.flip
        primal, dual = self._units
        x = zip(self._origin.x, solution.col_value, strict=True)
        y = zip(self._origin.y, solution.row_dual, strict=True)
        return _Pair(
            tuple([at + Fraction(v) / 2**primal for at, v in x][: self._size]),
            [at + flip * Fraction(v) / 2**dual for at, v in y],
        )

    def shift(
        self,
        x: Sequence[Fraction],
        y: Sequence[Fraction],
        activity: Sequence[Fraction],
        z: dict[int, Fraction],
        primal: int,
        dual: int,
    ) -> None:
        """Set up the program of the correction to x and y, in units of 2^-primal and 2^-dual."""
        form, highs = self._form, self._highs
        if self.wide:
            z = z | {self._size + i: value for i, value in enumerate(y) if value}
            x, activity = (*x, *activity), [_ZERO] * len(activity)
        self._origin, self._units = _Pair(tuple(x), list(y)), (primal, dual)
        highs.setOptionValue("solver", "simplex")
        highs.setOptionValue("presolve", "off")
        cost = np.zeros(form.shape[1])
        for j, value in z.items():
            cost[j] = form.flip * _scaled(value, dual)
        highs.changeColsCost(cost.size, self._columns, cost)

        def moved(ends: Sequence[End], values: Sequence[Fraction], infinite: float) -> F64:
            pairs = zip(ends, values, strict=True)
            return np.array([infinite if end is None else _scaled(end - at, primal) for end, at in pairs], dtype=float)

        for values, lower, upper, change, index in (
            (x, form.col_lower, form.col_upper, highs.changeColsBounds, self._columns),
            (activity, form.row_lower, form.row_upper, highs.changeRowsBounds, self._rows),
        ):
            change(index.size, index, moved(lower, values, -np.inf), moved(upper, values, np.inf))


def _extended(form: ExactForm, *entries: int) -> ExactForm:
    """The program with more columns, without bounds and costs yet: those of every row have these entries in it."""
    (rows, columns), many = form.shape, len(entries)
    values: list[Fraction] = []
    for i in range(rows):
        values += [*form.values[form.indptr[i] : form.indptr[i + 1]], *map(Fraction, entries)]
    return replace(
        form,
        indptr=form.indptr + many * np.arange(rows + 1),
        indices=np.insert(form.indices, np.repeat(form.indptr[1:], many), columns + np.arange(many * rows)),
        values=tuple(values),
        integer=np.zeros(columns + many * rows, dtype=bool),
        columns={},
        rows={},
    )


def _with_activities(form: ExactForm) -> ExactForm:
    """The program with the activity of every row as one more column."""
    none = (_ZERO,) * form.shape[0]
    return replace(
        _extended(form, -1),
        row_lower=none,
        row_upper=none,
        col_lower=(*form.col_lower, *form.row_lower),
        col_upper=(*form.col_upper, *form.row_upper),
        cost=(*form.cost, *none),
    )


def _scaled(value: Fraction, power: int) -> float:
    if value == 0:
        return 0.0
    try:
        return float(value * 2**power if power >= 0 else value / 2**-power)
    except OverflowError:
        return math.copysign(math.inf, value)


def floating_form(form: ExactForm) -> StandardForm:
    """The program in floating point, every number rounded to the nearest float."""
    import scipy.sparse as sp

    def ends(values: Sequence[End], infinite: float) -> F64:
        return np.array([infinite if value is None else float(value) for value in values], dtype=float)

    A = sp.csr_array(([float(v) for v in form.values], form.indices, form.indptr), shape=form.shape).tocsc()
    return StandardForm(
        A,
        ends(form.row_lower, -np.inf),
        ends(form.row_upper, np.inf),
        ends(form.col_lower, -np.inf),
        ends(form.col_upper, np.inf),
        np.array([float(c) for c in form.cost], dtype=float),
        form.sense,
        float(form.offset),
        None,
    )


def _pair(form: ExactForm, basis: SimplexBasis) -> _Pair | None:
    """The exact basic solutions x and y; None if the basis is singular, or too large where it is ill-conditioned."""
    import scipy.sparse as sp

    basic = np.flatnonzero(basis.columns == BASIC)
    tight = np.flatnonzero(basis.rows != BASIC)
    if basic.size != tight.size:
        return None
    data, factors = form.integral
    places = sp.csr_array((np.arange(1, data.size + 1), form.indices, form.indptr), shape=form.shape)
    square = sp.csr_array(places[tight][:, basic])
    square.sort_indices()
    system = System(square.indptr, square.indices, data[square.data - 1], basic.size)

    x = [_ZERO] * form.shape[1]
    for j in np.flatnonzero(basis.columns != BASIC).tolist():
        x[j] = _resting(basis.columns[j], form.col_lower[j], form.col_upper[j])
    outside = form.activity(x)
    right = [
        factors[i] * (_resting(basis.rows[i], form.row_lower[i], form.row_upper[i]) - outside[i])
        for i in tight.tolist()
    ]
    values = system.solve(right)
    prices = system.solve([form.flip * form.cost[j] for j in basic.tolist()], transposed=True)
    if values is None or prices is None:
        return None
    for j, value in zip(basic.tolist(), values, strict=True):
        x[j] = value
    y = [_ZERO] * form.shape[0]
    for i, value in zip(tight.tolist(), prices, strict=True):
        y[i] = value * factors[i]
    return _Pair(tuple(x), y)


def _resting(status: int, low: End, high: End) -> Fraction:
    """The value of a nonbasic column or row."""
    if status == UPPER and high is not None:
        return high
    if low is not None:
        return low
    return _ZERO if high is None else high


class System:
    """A square sparse system of integers, by row."""

    def __init__(self, indptr: I64, indices: I64, data: Whole, size: int) -> None:
        import scipy.sparse as sp

        self.size, self._data = size, data
        self._rows = (indptr, indices, data)
        order = np.argsort(indices, kind="stable")
        starts = offsets(np.bincount(indices, minlength=size))
        self._columns = (starts, np.repeat(np.arange(size), np.diff(indptr))[order], data[order])
        largest = max((abs(v) for v in data.tolist()), default=0)
        self._small = largest < 2**31
        if self._small:
            whole = data.astype(np.int64)
            self._by_row = sp.csr_array((whole, indices, indptr), shape=(size, size))
            self._by_column = sp.csr_array(self._by_row.T)
            self._most = int(max(abs(self._by_row).sum(axis=k).max(initial=0) for k in (0, 1)))
        self._factors = self._factorize(largest)

    def _factorize(self, largest: int) -> tuple[Any, F64, F64] | None:
        """LU of the scaled matrix, with the scales of rows and columns; None if it is singular."""
        import scipy.sparse as sp
        from scipy.sparse.linalg import splu

        if self.size == 0 or largest.bit_length() > 1000:
            return None
        indptr, indices, data = self._rows
        matrix = sp.csr_array((data.astype(float), indices, indptr), shape=(self.size, self.size))
        with np.errstate(all="ignore"):
            rows = np.exp2(-np.round(np.log2(abs(matrix).max(axis=1).toarray().ravel())))
            matrix = sp.csr_array(sp.diags_array(rows) @ matrix)
            columns = np.exp2(-np.round(np.log2(abs(matrix).max(axis=0).toarray().ravel())))
        if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
            return None  # a row or column without nonzeros
        try:
            lu = splu(sp.csc_array(matrix @ sp.diags_array(columns)))
        except RuntimeError:
            return None
        return lu, rows, columns

    def solve(self, right: Sequence[Fraction], *, transposed: bool = False) -> list[Fraction] | None:
        """The exact solution; None if the system is singular, or ill-conditioned and too large."""
        if self.size == 0:
            return []
        whole, below = common(right)
        if not any(whole.tolist()):
            return [_ZERO] * self.size if self._factors is not None else self._dense(whole, transposed=transposed)
        result = self._lift(whole, transposed=transposed)
        if result is not None:
            values, denominator = result
            return [Fraction(v, denominator * below) for v in values.tolist()]
        dense = self._dense(whole, transposed=transposed)
        return None if dense is None else [value / below for value in dense]

    def _times(self, vector: Whole, *, transposed: bool) -> Whole:
        indptr, indices, data = self._columns if transposed else self._rows
        return products(indptr, indices, data, vector)

    def _lift(self, right: Whole, *, transposed: bool) -> tuple[Whole, int] | None:
        """Numerators and denominator of the solution; None if refinement does not converge."""
        if self._factors is None:
            return None
        lu, rows, columns = self._factors
        before, after, kind = (columns, rows, "T") if transposed else (rows, columns, "N")
        # Components of small scale are found in smaller units, 2^-finer.
        small = np.maximum(-np.log2(after), 0.0).astype(np.int64)
        finer = int(small.max()) if small.max() > EVEN else 0
        units = [2 ** (finer - power) for power in small.tolist()] if finer else 1
        for bits in BITS:
            residual, total, steps, attempt = right * 2**finer, np.zeros(self.size, dtype=object), 0, 3
            size = start = max(abs(v) for v in residual.tolist())
            limit = None
            while True:
                if size.bit_length() > MOST_FLOAT_BITS:
                    return None
                digits = after * lu.solve(before * residual.astype(float), trans=kind)
                if not np.isfinite(digits).all():
                    return None
                step = _as_whole(np.rint(digits * 2.0**bits / np.asarray(units, dtype=float)))
                step = step * np.array(units, dtype=object) if finer else step
                residual = residual * 2**bits - self._product(step, transposed=transposed)
                total = total * 2**bits + step
                steps += 1
                size = max(abs(v) for v in residual.tolist())
                if limit is None:
                    limit = max(start, size)
                if size > 64 * limit:
                    break  # no convergence with this many bits at a time
                if size == 0 or steps == attempt:
                    result = _reconstruct(total, bits * steps + finer, finer)
                    if result is not None:
                        values, denominator = result
                        if np.array_equal(self._times(values, transposed=transposed), denominator * right):
                            return result
                    if bits * steps > self._most_bits:
                        return None
                    attempt *= 2
        return None

    @property
    def _most_bits(self) -> int:
        """Twice the bits that numerators and denominators can have, by Hadamard's inequality, plus a margin."""
        return 200 + 4 * sum(
            max(abs(v) for v in self._data[a:b].tolist() or [1]).bit_length() + (b - a).bit_length()
            for a, b in zip(self._rows[0][:-1].tolist(), self._rows[0][1:].tolist(), strict=True)
        )

    def _product(self, step: Whole, *, transposed: bool) -> Whole:
        """The matrix times a vector, in machine integers where they suffice."""
        if self._small and max(abs(v) for v in step.tolist()) * self._most < 2**62:
            matrix = self._by_column if transposed else self._by_row
            return np.asarray(matrix @ step.astype(np.int64)).astype(object)
        return self._times(step, transposed=transposed)

    def _dense(self, right: Whole, *, transposed: bool) -> list[Fraction] | None:
        """FLINT's solution of the dense system; None if it is singular or too large."""
        import flint

        if self.size > DENSE:
            return None
        starts, at, data = self._columns if transposed else self._rows
        matrix = flint.fmpz_mat(self.size, self.size)
        for i in range(self.size):
            for place in range(int(starts[i]), int(starts[i + 1])):
                matrix[i, int(at[place])] = int(data[place])
        try:
            result = matrix.solve(flint.fmpz_mat(self.size, 1, [int(v) for v in right.tolist()]))
        except ZeroDivisionError:
            return None
        return [Fraction(int(v.p), int(v.q)) for v in result.entries()]


def _as_whole(floats: F64) -> Whole:
    if np.abs(floats).max() < 2.0**62:
        return floats.astype(np.int64).astype(object)
    return np.array([int(v) for v in floats.tolist()], dtype=object)


def _reconstruct(total: Whole, bits: int, unsure: int = 0) -> tuple[Whole, int] | None:
    """Numerators over a common denominator of about half the bits, near ``total`` / 2^bits; None if there are none.

    The last 12 + ``unsure`` bits of ``total`` may be wrong.
    """
    one, half = 1 << bits, bits // 2
    below = 1
    while True:
        scaled = total * below
        rounded = (scaled + (one >> 1)) >> bits
        error = abs(scaled - (rounded << bits))
        wrong = np.flatnonzero(error > below << (12 + unsure))
        if not wrong.size:
            return rounded, below
        value = Fraction(int(scaled[wrong[0]]), one)
        room = half - below.bit_length()
        if room < 8:
            return None
        nearest = value.limit_denominator(1 << room)
        if nearest.denominator == 1:
            return None
        below *= nearest.denominator


def _without_optimum(form: ExactForm, remaining: Callable[[], float | None]) -> ExactAnswer | _Pair:
    """The proof that a program is infeasible or unbounded; feasible x and y if it has an optimum."""
    rows, columns = form.shape
    slack = replace(
        _extended(form, 1, -1),
        col_lower=(*form.col_lower, *[_ZERO] * (2 * rows)),
        col_upper=(*form.col_upper, *[None] * (2 * rows)),
        cost=(*[_ZERO] * columns, *[Fraction(1)] * (2 * rows)),
        sense="min",
        offset=_ZERO,
    )
    least = solve_linear(slack, remaining)
    assert least.objective is not None
    assert least.x is not None  # any x with slacks is a solution, and 0 is a bound
    if least.objective > 0:
        leaf = least.nodes[0]
        assert isinstance(leaf, Leaf)
        return ExactAnswer("infeasible", nodes=(Leaf(leaf.y, farkas=True),))
    x = least.x[:columns]

    def cone(ends: Sequence[End], limit: End) -> tuple[End, ...]:
        return tuple(limit if end is None else _ZERO for end in ends)

    one = Fraction(1)
    ways = replace(
        form,
        row_lower=cone(form.row_lower, None),
        row_upper=cone(form.row_upper, None),
        col_lower=cone(form.col_lower, -one),
        col_upper=cone(form.col_upper, one),
        offset=_ZERO,
    )
    best = solve_linear(ways, remaining)
    if best.objective == 0:
        # The bounds that `ways` adds cost nothing, so its multipliers price no column that the program leaves free.
        paid = best.nodes[0]
        assert isinstance(paid, Leaf)
        return _Pair(x, [paid.y.get(i, _ZERO) for i in range(rows)])
    return ExactAnswer("unbounded", x=x, ray=best.x)
