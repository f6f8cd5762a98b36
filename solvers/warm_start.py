"""What a caller of a solve has already: a solution to start from, a basis, or the compiled model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from opticoll.arguments import array_of
from opticoll.errors import BadInput
from opticoll.formulations.variables import check_arrays
from opticoll.solvers import verify
from opticoll.solvers.compile.compilation import declared_arrays

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.instances.topology import F64
    from opticoll.solvers.run import Plan
    from opticoll.solvers.task import SimplexBasis

    Arrays = Mapping[str, F64]


@dataclass(frozen=True)
class WarmStart:
    """What a caller has already.

    Parameters
    ----------
    values
        Named values of a known solution.
    source
        Where they come from, in words for messages and the record.
    basis
        SimplexBasis of the compiled model, with which an earlier solve ended.
    form
        The stated model, compiled.
    want_basis
        Whether the run shall return the basis with which it ends.
    """

    values: Arrays | None = None
    source: str = "the given start"
    basis: SimplexBasis | None = None
    form: StandardForm | None = None
    want_basis: bool = False

    def checked(self, plan: Plan) -> WarmStart:
        """The same, after the formulation's checker has accepted the values.

        Raises
        ------
        BadInput
            If they are not a solution; the message names the block that is violated most.
        """
        if self.values is None:
            return self
        problem = plan.problem
        given = {
            str(name): array_of(one, f"{self.source}: {str(name)[:60]!r}", float) for name, one in self.values.items()
        }
        check_arrays(declared_arrays(problem, given.keys()), given, self.source)
        values = problem._unfold(given)
        if (missed := verify.violated(verify.residuals(problem, values))) is not None:
            msg = f"{self.source} is no solution of {problem.name} on {plan.instance.spec}: {missed}"
            raise BadInput(msg)
        return replace(self, values=values)
