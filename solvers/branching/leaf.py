r"""What closes a leaf of a branch-and-bound tree, recomputed from vectors that anybody may have made.

For min c'x with rows ``l <= A x <= u`` and the leaf's own column bounds, any y bounds the leaf's optimum from below;
a ray y whose bound with c = 0 is positive shows that the leaf is empty (Farkas). Both hold in exact arithmetic, see
:mod:`solvers.weak_duality`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from solvers.weak_duality import WeakDuality

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from solvers.standard_form import StandardForm

    F64 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeafBounds:
    """Bounds of leaves of one minimization problem, fast enough for thousands a second."""

    problem: WeakDuality
    offset: float

    @classmethod
    def of(cls, form: StandardForm) -> LeafBounds:
        """Prepare a problem (a minimization)."""
        assert form.sense == "min"
        return cls(WeakDuality.of(form), form.offset)

    def bound(self, y: F64, lower: F64, upper: F64) -> float:
        """The bound that row duals y, ``(rows,)``, prove with these column bounds, ``(columns,)``."""
        return self.problem.bound(y, lower, upper, self.offset)

    def empty(self, ray: F64, lower: F64, upper: F64) -> bool:
        """Whether the ray, or its opposite, shows that no x lies within rows and column bounds."""
        scale = float(np.abs(ray).max(initial=0.0))
        if not 0 < scale < np.inf:
            return False
        return any(self.problem.empty(sign * ray / scale, lower, upper) for sign in (1.0, -1.0))
