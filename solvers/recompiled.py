"""What a Pyomo or CVXPY model consists of, and its matrix after a change of parameters alone."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.model import PyomoModel
from opticoll.solvers.compilation import from_pyomo
from opticoll.solvers.stated_models import compiled, layer_of, named_model, refused

if TYPE_CHECKING:
    from opticoll.formulations.standard_form import StandardForm
    from opticoll.solvers.stated_models import Built


@dataclass(frozen=True)
class Fingerprint:
    """What a model consists of, apart from the values of its parameters: equal if nothing else was changed.

    Objects are told apart by their identity; ``kept`` keeps them alive, so that no other object takes their place.
    """

    objective: list[object]
    rest: list[object]
    kept: list[object] = field(compare=False, repr=False)


def fingerprint(stated: Any) -> Fingerprint:
    """What a Pyomo or CVXPY model consists of."""
    if layer_of(stated) == "cvxpy":
        goal, rows = stated.objective, stated.constraints
        kept = [goal.args[0], *rows]
        return Fingerprint([type(goal), id(goal.args[0])], list(map(id, rows)), kept)
    import pyomo.core as pyo

    objective: list[object] = []
    rest: list[object] = []
    kept = []
    for kind, active in ((pyo.Objective, True), (pyo.Constraint, True), (pyo.Expression, None)):
        target = objective if kind is pyo.Objective else rest
        for one in stated.component_data_objects(kind, active=active):
            expression = one.expr
            target += (id(one), id(expression), getattr(one, "sense", None))
            kept += (one, expression)
    for x in stated.component_data_objects(pyo.Var):
        rest += (id(x), id(x.domain), x.fixed, x.value if x.fixed else None)
        rest += x.bounds
        kept += (x, x.domain)
    return Fingerprint(objective, rest, kept)


@dataclass
class Recompiler:
    """Compiles a model, and only the rows of changed parameters if nothing else was changed since the last time.

    CVXPY does so itself. ``built`` is the model as it was built, whose names are kept; ``fingerprint`` what the model
    consisted of the last time.
    """

    built: Built
    fingerprint: Fingerprint | None = None
    _form: StandardForm | None = None
    _now: Built | None = None
    _rows: list[Any] = field(default_factory=list)
    _columns: dict[int, int] = field(default_factory=dict)
    _values: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    _users: dict[int, list[int]] | None = None

    def __call__(self, stated: Any) -> tuple[StandardForm, Built]:
        """The matrix of the model as it is now, and the model with the names of all its variables and constraints.

        Raises
        ------
        BadInput
            As :func:`opticoll.solvers.stated_models.compiled`.
        """
        now = fingerprint(stated)
        if layer_of(stated) == "cvxpy":
            self.fingerprint = now
            return compiled(stated, self.built, again=True)
        values = _parameter_values(stated)
        if self._form is not None and now == self.fingerprint and values.keys() == self._values.keys():
            changed = [key for key, (_, value) in values.items() if value != self._values[key][1]]
            form = self._refreshed(stated, changed)
            if form is not None:
                self._form, self._values = form, values
                assert self._now is not None
                return form, self._now
        with refused():
            model = named_model(stated, self.built)
            assert isinstance(model, PyomoModel)
            form, columns, self._rows = from_pyomo(model, labelled=True)
        self._columns = {id(one): j for j, one in enumerate(columns)}
        self._form, self._now, self.fingerprint, self._values, self._users = form, model, now, values, None
        return form, model

    def _refreshed(self, stated: Any, changed: list[int]) -> StandardForm | None:
        """The last matrix with the rows of changed parameters compiled again; None if it has to be compiled whole."""
        form = self._form
        assert form is not None
        if not changed:
            return form
        users = self._users_of(stated)
        if any(key not in users for key in changed):
            return None
        rows = sorted({row for key in changed for row in users[key]})
        low, high = form.row_lower.copy(), form.row_upper.copy()
        matrix = form.A.tocsr()
        for row in rows:
            entries = _row(self._rows[row], self._columns)
            part = slice(matrix.indptr[row], matrix.indptr[row + 1])
            if entries is None or set(entries.coefficients) != set(matrix.indices[part].tolist()):
                return None
            matrix.data[part] = [entries.coefficients[column] for column in matrix.indices[part].tolist()]
            low[row], high[row] = entries.lower, entries.upper
        return replace(form, A=matrix.tocsc(), row_lower=low, row_upper=high)

    def _users_of(self, stated: Any) -> dict[int, list[int]]:
        """Rows in which a parameter occurs, by its id; without those that also occur elsewhere."""
        if self._users is not None:
            return self._users
        import pyomo.core as pyo
        from pyomo.core.expr.visitor import identify_mutable_parameters

        found: defaultdict[int, list[int]] = defaultdict(list)
        for row, constraint in enumerate(self._rows):
            for parameter in identify_mutable_parameters(constraint.expr):
                found[id(parameter)].append(row)
        for objective in stated.component_data_objects(pyo.Objective, active=True):
            for parameter in identify_mutable_parameters(objective.expr):
                found.pop(id(parameter), None)
        alone = len(set(map(id, self._rows))) == len(self._rows)  # every constraint is one row
        self._users = dict(found) if alone else {}
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
