r"""What closes a leaf of a branch-and-bound tree, recomputed from vectors that anybody may have made.

For min c'x with rows ``l <= A x <= u`` and the leaf's own column bounds, any y bounds the leaf's optimum from below
(:func:`solvers.verify.dual_bound`); a ray y whose bound with c = 0 is positive shows that the leaf is empty (Farkas).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from solvers.standard_form import StandardForm

    F64 = NDArray[np.float64]

#: A ray counts only if it separates by more than this, relative to what it adds up.
SEPARATES = 1e-9


@dataclass(frozen=True, eq=False)
class LeafBounds:
    """Bounds of leaves of one minimization problem, fast enough for thousands a second."""

    form: StandardForm
    At: sp.csr_array
    absolute: sp.csr_array

    @classmethod
    def of(cls, form: StandardForm) -> LeafBounds:
        """Prepare a problem (a minimization)."""
        assert form.sense == "min"
        return cls(form, form.A.T.tocsr(), abs(form.A.T).tocsr())

    def bound(self, y: F64, lower: F64, upper: F64) -> float:
        """The bound that row duals y, ``(rows,)``, prove with these column bounds, ``(columns,)``."""
        return self._value(y, self.form.cost, lower, upper)[0] + self.form.offset

    def empty(self, ray: F64, lower: F64, upper: F64) -> bool:
        """Whether the ray, or its opposite, shows that no x lies within rows and column bounds."""
        zero = np.zeros(self.form.cost.size)
        scale = float(np.abs(ray).max(initial=0.0))
        if not 0 < scale < np.inf:
            return False
        for y in (ray / scale, -ray / scale):
            value, size = self._value(y, zero, lower, upper)
            if value > SEPARATES * max(size, 1.0):
                return True
        return False

    def _value(self, y: F64, cost: F64, lower: F64, upper: F64) -> tuple[float, float]:
        """The dual value and the sum of its terms' absolute values."""
        form = self.form
        y = np.where((y > 0) & np.isneginf(form.row_lower) | (y < 0) & np.isposinf(form.row_upper), 0.0, y)
        reduced = cost - self.At @ y
        noise = 1e-12 * (np.abs(cost) + self.absolute @ np.abs(y))
        reduced[np.abs(reduced) <= noise] = 0.0
        value = size = 0.0
        for price, low, high in ((y, form.row_lower, form.row_upper), (reduced, lower, upper)):
            paid = price != 0
            terms = price[paid] * np.where(price[paid] > 0, low[paid], high[paid])
            value += float(terms.sum())
            size += float(np.abs(terms).sum())
        return value, size
