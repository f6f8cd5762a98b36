r"""The matrix of a Pyomo or CVXPY model that was written elsewhere, or of one of ours that was changed by hand.

Source  the model itself
Data    those of ``matrix.program``, and the positions of every named variable and constraint among columns and rows
Vars    the variables of the model under their own names; ``auxiliary`` for columns that belong to none of them, such as
        those that CVXPY adds for an absolute value

The program is that of ``matrix.program``. A model that was one of ours keeps the problem from which it came: a solution
whose variables still fit is also checked against that problem, and puts loads on its links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from opticoll.errors import refuse
from opticoll.formulations.matrix.program import FileProgram
from opticoll.formulations.model import Formulation, of_kind, states
from opticoll.formulations.standard_form import Block, StandardForm, packed
from opticoll.formulations.variables import Array, numbered
from opticoll.instances.matrix_program import MatrixProgram

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

    from opticoll.formulations.variables import Links
    from opticoll.instances import Instance
    from opticoll.instances.topology import F64
    from opticoll.types import Json

    Values = Mapping[str, F64]

#: Largest violation with which a solution still counts as one of the original problem.
FEASIBLE = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class StatedProgram(MatrixProgram):
    """A program with the names of the model that states it.

    Parameters
    ----------
    variables, constraints
        The places of named arrays; every column has one.
    origin, origin_instance
        The problem that the model was before it was changed, and its instance; None for a model from elsewhere.
    same_objective
        Whether its objective is still that of ``origin``.
    """

    variables: Mapping[str, Block] = field(default_factory=dict)
    constraints: Mapping[str, Block] = field(default_factory=dict)
    origin: Formulation | None = None
    origin_instance: Instance | None = None
    same_objective: bool = False


class StatedModel(FileProgram):
    """The problem that the matrix of a model states, under the names of the model."""

    name = "matrix.stated-model"
    where = "the model"
    cvxpy = Formulation.cvxpy  # type: ignore[assignment]  # stated as a matrix alone
    pyomo = Formulation.pyomo
    meaning = "objective of the model"

    def __init__(self, program: StatedProgram) -> None:
        super().__init__(program)
        self.model = program

    @classmethod
    def _prepare(cls, instance: object, given: dict[str, Any]) -> Self:
        """The problem of a stated program.

        Raises
        ------
        NotApplicable
            If the instance is not one.
        """
        return cls(of_kind(StatedProgram, instance, cls.name, "a model, as in oc.solve(model)"))

    @property
    def origin(self) -> Formulation | None:
        """The problem that the model was before it was changed."""
        return self.model.origin

    def matrix(self) -> StandardForm:
        """The matrix, with the named arrays of the model."""
        return replace(super().matrix(), columns=self.model.variables, rows=self.model.constraints)

    def columns(self, values: Values) -> dict[str, F64]:
        """The named arrays as one vector x, shape ``(n,)``."""
        return {"x": packed(self.model.variables, self.program.n, values)}

    def residuals(self, values: Values) -> dict[str, float]:
        """Worst violations of the rows, the bounds and the integrality of the columns."""
        return super().residuals(self.columns(values))

    def objective(self, values: Values) -> float:
        """The objective of the model."""
        return super().objective(self.columns(values))

    def _unfold(self, values: Values) -> dict[str, F64]:
        """Set columns that appear nowhere to a value within their bounds."""
        x = super()._unfold(self.columns(values))["x"]
        return {name: block.gather(x) for name, block in self.model.variables.items()}

    def _arrays(self, names: Collection[str]) -> dict[str, Array]:
        """Shapes of the arrays; axes and units as the original problem declares them."""
        known = self._declared()
        return {name: known.get(name, Array(numbered(block.shape))) for name, block in self.model.variables.items()}

    def _declared(self) -> dict[str, Array]:
        """What the original problem declares about arrays that still have its shape."""
        if self.origin is None:
            return {}
        shapes = {name: block.shape for name, block in self.model.variables.items()}
        declared = self.origin._arrays(shapes.keys()) or {}
        return {name: array for name, array in declared.items() if array.shape == shapes.get(name)}

    def index_labels(self) -> dict[str, tuple[Sequence[Hashable] | None, ...]]:
        """Labels of the indices of all other arrays, by axis."""
        known = self._declared()
        blocks = self.model.variables
        return {name: block.labels for name, block in blocks.items() if block.labels and name not in known}

    def _original(self, values: Values) -> dict[str, F64] | None:
        """The values as a solution of the original problem; None if it needs other variables."""
        if self.origin is None:
            return None
        declared = self.origin._arrays(values.keys()) or {}
        kept = self._declared()
        if any(array.required and not array.dual and name not in kept for name, array in declared.items()):
            return None
        own = {name: np.asarray(values[name], dtype=float) for name in kept}
        return self.origin._unfold(own) if own else None

    def links(self, values: Values) -> Links:
        """Load of every link, where the variables of the original problem still say so.

        Raises
        ------
        BadInput
            Where they do not.
        """
        own = self._original(values)
        if own is None or self.origin is None or not states(self.origin, "links"):
            refuse(self.program.spec, "its variables put no load on links; read them with result.frames")
        return self.origin.links(own)

    def describe(self, values: Values) -> Mapping[str, Json]:
        """What the original problem's checker says about the solution, and its metrics if it is one there too."""
        own = self._original(values)
        if own is None or self.origin is None:
            return {}
        violations = self.origin.residuals(own)
        worst = max(violations, key=lambda block: violations[block])
        result: dict[str, Any] = {"original": self.origin.name, "original_violation": float(violations[worst])}
        if violations[worst] > FEASIBLE:
            return {**result, "original_violated": worst}
        value = self.origin.objective(own)
        result["original_objective"] = value
        return {**(self.origin.metrics(value) if self.same_objective else {}), **result}

    @property
    def same_objective(self) -> bool:
        """Whether the objective is still that of the original problem."""
        return self.model.same_objective
