"""What a Pyomo or CVXPY model consists of, and its matrix after a change of parameters alone."""

from __future__ import annotations

from dataclasses import dataclass
from operator import is_
from typing import TYPE_CHECKING, Any

from opticoll.solvers.compile.user_models import compiled, layer_of

if TYPE_CHECKING:
    from opticoll.solvers.compile.compilation import Built, Compiled


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """What a model consists of, apart from the values of its parameters: equal if nothing else was changed.

    ``objects`` are told apart by their identity, and are copied and pickled with the model; ``data`` are compared. The
    first ``of_objective`` entries of both are those of the objective.
    """

    objects: list[object]
    data: list[object]
    of_objective: tuple[int, int]

    def __eq__(self, other: object) -> bool:
        """Whether both are of one model that nothing was changed in."""
        return isinstance(other, Fingerprint) and self._same(other, None, None)

    __hash__ = None  # type: ignore[assignment]

    def same_objective(self, other: Fingerprint) -> bool:
        """Whether at least the objective is the same."""
        return self.of_objective == other.of_objective and self._same(other, *self.of_objective)

    def _same(self, other: Fingerprint, objects: int | None, data: int | None) -> bool:
        mine, others = self.objects[:objects], other.objects[:objects]
        return len(mine) == len(others) and all(map(is_, mine, others)) and self.data[:data] == other.data[:data]


def fingerprint(stated: Any) -> Fingerprint:
    """What a Pyomo or CVXPY model consists of."""
    objects: list[object]
    data: list[object]
    if layer_of(stated) == "cvxpy":
        goal = stated.objective
        return Fingerprint([goal.args[0], *stated.constraints], [type(goal)], (1, 1))
    import pyomo.core as pyo

    objects, data, first = [], [], (0, 0)
    for kind, active in ((pyo.Objective, True), (pyo.Constraint, True), (pyo.Expression, None)):
        for one in stated.component_data_objects(kind, active=active):
            expression = one.expr
            objects.append(one)
            (data if isinstance(expression, int | float) else objects).append(expression)
            data.append(getattr(one, "sense", None))
        if kind is pyo.Objective:
            first = len(objects), len(data)
    for x in stated.component_data_objects(pyo.Var):
        objects += (x, x.domain)
        data += (x.fixed, x.value if x.fixed else None)
        data += x.bounds
    return Fingerprint(objects, data, first)


@dataclass
class Recompiler:
    """Compiles a model again if anything in it was changed since the last time.

    CVXPY keeps what does not depend on parameters, in a problem of ours with the same objective and constraints.
    ``built`` is the model as it was built, whose names are kept; ``fingerprint`` what the model consisted of the last
    time.
    """

    built: Built
    fingerprint: Fingerprint | None = None
    _last: tuple[list[Any], Compiled] | None = None
    _program: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """What a copy holds: objects of the copied model are not known by identity."""
        return vars(Recompiler(self.built, self.fingerprint))

    def __call__(self, stated: Any) -> Compiled:
        """The model as it is now, compiled.

        Raises
        ------
        BadInput
            As :func:`opticoll.solvers.compile.user_models.compiled`.
        """
        now, before = fingerprint(stated), self.fingerprint
        if layer_of(stated) == "cvxpy":
            if self._program is None or now != before:
                self._program = type(stated)(stated.objective, stated.constraints)
            self.fingerprint = now
            return compiled(stated, self.built, program=self._program)
        import pyomo.core as pyo

        mutable = (one for one in stated.component_objects(pyo.Param) if one.mutable)
        values = [one.value for parameter in mutable for one in parameter.values()]
        if self._last is None or now != before or self._last[0] != values:
            self._last = values, compiled(stated, self.built)
            self.fingerprint = now
        return self._last[1]
