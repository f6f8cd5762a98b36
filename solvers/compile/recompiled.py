"""What a Pyomo or CVXPY model consists of, and its matrix after a change of parameters alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.solvers.compile.user_models import compiled, layer_of

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
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
    """Compiles a model, and only the rows of changed parameters if nothing else was changed since the last time.

    CVXPY does so itself, in a problem of ours with the same objective and constraints. ``built`` is the model as it was
    built, whose names are kept; ``fingerprint`` what the model consisted of the last time.
    """

    built: Built
    fingerprint: Fingerprint | None = None
    _last: Compiled | None = None
    _program: Any = None
    _columns: dict[int, int] = field(default_factory=dict)
    _values: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    _users: dict[int, list[int]] | None = None

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
        now = fingerprint(stated)
        if layer_of(stated) == "cvxpy":
            if self._program is None or now != self.fingerprint:
                self._program = type(stated)(stated.objective, stated.constraints)
            self.fingerprint = now
            return compiled(stated, self.built, program=self._program)
        values, last = _parameter_values(stated), self._last
        if last is not None and now == self.fingerprint and values.keys() == self._values.keys():
            changed = [key for key, (_, value) in values.items() if value != self._values[key][1]]
            form = self._refreshed(stated, last, changed)
            if form is not None:
                self._last, self._values = replace(last, form=form), values
                return self._last
        self._last = compiled(stated, self.built)
        self._columns = {id(one): j for j, one in enumerate(self._last.columns)}
        self.fingerprint, self._values, self._users = now, values, None
        return self._last

    def _refreshed(self, stated: Any, last: Compiled, changed: list[int]) -> StandardForm | None:
        """The last matrix with the rows of changed parameters compiled again; None if it has to be compiled whole."""
        form = last.form
        if not changed:
            return form
        users = self._users_of(stated, last)
        if any(key not in users for key in changed):
            return None
        rows = sorted({row for key in changed for row in users[key]})
        low, high = form.row_lower.copy(), form.row_upper.copy()
        matrix = form.A.tocsr()
        for row in rows:
            entries = _row(last.rows[row], self._columns)
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            if entries is None or set(entries.coefficients) != set(matrix.indices[part].tolist()):
                return None
            matrix.data[part] = [entries.coefficients[column] for column in matrix.indices[part].tolist()]
            low[row], high[row] = entries.lower, entries.upper
        return replace(form, A=matrix.tocsc(), row_lower=low, row_upper=high)

    def _users_of(self, stated: Any, last: Compiled) -> dict[int, list[int]]:
        """Rows in which a parameter occurs, by its id; without those that also occur elsewhere."""
        if self._users is not None:
            return self._users
        import pyomo.core as pyo
        from pyomo.core.expr.visitor import identify_mutable_parameters

        found: defaultdict[int, list[int]] = defaultdict(list)
        for row, constraint in enumerate(last.rows):
            for parameter in identify_mutable_parameters(constraint.expr):
                found[id(parameter)].append(row)
        for objective in stated.component_data_objects(pyo.Objective, active=True):
            for parameter in identify_mutable_parameters(objective.expr):
                found.pop(id(parameter), None)
        self._users = dict(found)
        return self._users


@dataclass(frozen=True)
class _Row:
    """Coefficients of a row by column, and its bounds."""

    coefficients: dict[int, float]
    lower: float
    upper: float


def _row(constraint: Any, columns: dict[int, int]) -> _Row | None:
    """A linear Pyomo constraint as a row; None if it is not linear in these columns."""
    import pyomo.core as pyo
    from pyomo.repn import generate_standard_repn

    lower, body, upper = constraint.to_bounded_expression()
    linear = generate_standard_repn(body, compute_values=True)
    if not linear.is_linear() or any(id(x) not in columns for x in linear.linear_vars):
        return None
    terms = zip(linear.linear_vars, linear.linear_coefs, strict=True)
    coefficients = {columns[id(x)]: float(value) for x, value in terms if value != 0}
    low = -np.inf if lower is None else float(pyo.value(lower)) - float(linear.constant)
    high = np.inf if upper is None else float(pyo.value(upper)) - float(linear.constant)
    return _Row(coefficients, low, high)


def data_besides(stated: Any, name: str) -> list[object]:
    """The values of all parameters of a Pyomo or CVXPY model but those called ``name``, in order."""
    if layer_of(stated) == "cvxpy":
        return [np.asarray(one.value).tobytes() for one in stated.parameters() if one.name() != name]
    kept = stated.find_component(name)
    return [value for one, value in _parameter_values(stated).values() if one.parent_component() is not kept]


def _parameter_values(stated: Any) -> dict[int, tuple[Any, Any]]:
    """All mutable parameters of a Pyomo model, which are kept alive, and their values, by id."""
    import pyomo.core as pyo

    found: dict[int, tuple[Any, Any]] = {}
    for parameter in stated.component_objects(pyo.Param):
        if parameter.mutable:
            found |= {id(one): (one, one.value) for one in parameter.values()}
    return found
