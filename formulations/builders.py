"""Builders of stated models: variables, data and rows by name, along the axes that a formulation declares.

A formulation declares the axes of every array by name: ``variables``, ``constraints``, and the data that
``oc.model(...).update`` sets (``changeable``). From them follow shapes, indices, positions and labels in both modelling
layers, so a build states nothing but its rows:

    def cvxpy(self):                                        def pyomo(self):
        b, M = Cvx(self), self.topology.incidence()             b = Pyo(self)
        f, F = b.var("f"), b.var("F")                           f, F = b.var("f"), b.var("F")
        b.row("balance", M @ f == F * D, where=mask)            b.row("balance", rule, where=lambda u, s: u != s)
        return b.maximize(F)                                    return b.maximize(F)

Both share the data of the problem, never which rows there are: CVXPY takes masks as arrays, Pyomo states the condition
again by labels, so that an error in one of them shows when the builds are compared.
"""

from __future__ import annotations

import math
from difflib import get_close_matches
from functools import cached_property
from itertools import accumulate, chain, product
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.errors import ModelError, refuse
from opticoll.formulations.declared_axes import axis_of, sets_of, topology_of
from opticoll.formulations.index import Index
from opticoll.formulations.model import CvxpyModel, Named, PyomoModel, is_own
from opticoll.plugin_faults import place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    import cvxpy as cp
    import pyomo.core as pyo
    from numpy.typing import ArrayLike

    from opticoll.formulations.model import Formulation
    from opticoll.formulations.variables import Axis
    from opticoll.instances.topology import F64, I64

Key = tuple["Hashable", ...]


class _Builder:
    """What both layers share: the declared axes of every name."""

    def __init__(self, problem: Formulation) -> None:
        self.problem = problem
        self._axes: dict[str, Axis] = {}

    def axes(self, kind: str, name: str) -> tuple[Axis, ...]:
        """Axes of a variable, a constraint or data, as the formulation declares them.

        Raises
        ------
        ModelError
            If it declares none of this name.
        """
        declared = getattr(self.problem, kind)
        if name not in declared:
            hint = f"which is none of its {kind}: {', '.join(declared)}" if declared else f"but no {kind} = {{...}}"
            msg = f"{place_of(type(self.problem))}{self.problem.name}: the build has {name!r}, {hint}"
            raise ModelError(msg)
        return tuple(self.axis(axis) for axis in declared[name])

    def axis(self, name: str) -> Axis:
        """The members of an axis."""
        if name not in self._axes:
            self._axes[name] = axis_of(self.problem, name, self._sets)
        return self._axes[name]

    def _refuse(
        self, stated: Mapping[str, object], name: str, where: object, over: object, *, integer: object = False
    ) -> None:
        """Refuse what is stated a second time, two ways of choosing indices at once, and kinds that are none."""
        if not isinstance(integer, bool):
            refuse(self.problem.name, f"integer= of {name} must be True or False, not {integer!r}", ModelError)
        if name in stated:
            msg = f"{self.problem.name}: {name} is stated twice; state all entries at once, or under two names"
            raise ModelError(msg)
        if where is not None and over is not None:
            refuse(self.problem.name, f"{name} has where= and over=; give one of them", ModelError)

    def _check_bounds(self, name: str, shape: tuple[int, ...], **bounds: ArrayLike) -> None:
        for side, bound in bounds.items():
            if isinstance(bound, int | float):
                continue
            if np.ndim(bound) > len(shape) or not _broadcasts(np.shape(bound), shape):
                msg = f"{self.problem.name}: {side}= of {name} has the shape {np.shape(bound)}, and {shape} by its axes"
                raise ModelError(msg)

    def _undeclared(self, name: str) -> bool:
        """Whether a constraint over an index set has no declared axes; refused where it is nearly a declared name."""
        declared = self.problem.constraints
        if name not in declared and (close := get_close_matches(name, declared, n=1, cutoff=0.84)):
            refuse(self.problem.name, f"the build has the constraint {name!r}; did you mean {close[0]!r}?", ModelError)
        return name not in declared

    def _positions(self, kind: str, name: str, over: Index) -> tuple[I64, ...]:
        """Positions of the indices along every axis: by the axes' names, if the key has these, else in their order."""
        axes = getattr(self.problem, kind)[name]
        key = axes if sorted(axes) == sorted(over.key) else over.key
        if len(key) != len(axes):
            refuse(self.problem.name, f"{name} has the axes {axes}, but its index set the key {over.key}", ModelError)
        return tuple(over[column] for column in key)

    def _places(self, kind: str, name: str, over: Index, shape: tuple[int, ...]) -> I64:
        """Positions of indices in the named array, in C order."""
        places = np.ravel_multi_index(self._positions(kind, name, over), shape)
        if is_own(self.problem) and np.unique(places).size < places.size:
            msg = f"{self.problem.name}: over= of {name} has an index twice; list every index once, "
            msg += "and give a joined set its key, as in a.join(b).keyed('path layer')"
            raise ModelError(msg)
        return places

    @cached_property
    def _sets(self) -> Mapping[str, Sequence[Hashable] | Axis]:
        sets = sets_of(self.problem)
        for name, members in sets.items() if is_own(self.problem) else ():
            if isinstance(members, list | tuple) and len(set(members)) < len(members):
                twice = next(one for one in members if members.count(one) > 1)
                refuse(self.problem.name, f"sets() has {twice!r} twice in {name!r}; list every member once", ModelError)
        return sets

    def changeable(self, name: str) -> tuple[F64, tuple[Axis, ...]]:
        """An array of data that can change, and its axes."""
        data = self.problem.changeable()
        if name not in data:
            listed = ", ".join(data) or "nothing"
            refuse(self.problem.name, f"the build has the data {name!r}; changeable() returns {listed}", ModelError)
        values, *axes = data[name]
        return np.asarray(values, dtype=float), tuple(self.axis(str(axis)) for axis in axes)

    def _shape(self, axes: Sequence[Axis], name: str) -> tuple[int, ...]:
        sizes = tuple(axis.size for axis in axes)
        for axis, size in zip(axes, sizes, strict=True):
            if not isinstance(size, int):
                msg = (
                    f"{self.problem.name}: the axis {axis.name!r} of {name} needs its members: return them from sets()"
                )
                raise ModelError(msg)
        return sizes  # type: ignore[return-value]


class Cvx(_Builder):
    """The build in CVXPY: arrays along the declared axes."""

    def __init__(self, problem: Formulation) -> None:
        super().__init__(problem)
        self.variables: dict[str, Named] = {}
        self.constraints: dict[str, Named] = {}

    def var(
        self,
        name: str,
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: bool = False,
        where: ArrayLike | None = None,
        over: Index | None = None,
    ) -> Any:
        """The variables of a name, an array along its axes.

        Parameters
        ----------
        name
            Name of the variables.
        lower, upper
            Bounds: numbers, or arrays along the axes.
        integer
            Whether they are whole numbers.
        where
            Where there are variables, an array along the axes; the others are 0 and have no column. None: everywhere.
        over
            The indices at which there are variables, instead; the result has one entry for each, in their order.
        """
        import cvxpy as cp
        import scipy.sparse as sp

        self._refuse(self.variables, name, where, over, integer=integer)
        shape = self._shape(self.axes("variables", name), name)
        self._check_bounds(name, shape, lower=lower, upper=upper)
        if not math.prod(shape) or (over is not None and not len(over)):
            return np.zeros(shape if over is None else 0)
        if where is None and over is None:
            x = cp.Variable(shape, name=name, **_domain(integer, lower, upper))
            self.variables[name] = Named(x, shape, None if len(shape) < 3 else _column_major(shape))
            return x
        index = self._where(name, where, shape) if over is None else self._places("variables", name, over, shape)
        low, high = (_chosen(bound, shape, index) for bound in (lower, upper))
        x = cp.Variable(index.size, name=name, **_domain(integer, low, high))
        self.variables[name] = Named(x, shape, index)
        if over is not None:
            return x
        if (size := math.prod(shape)) > index.size:
            x = sp.csc_array((np.ones(index.size), index, np.arange(index.size + 1)), shape=(size, index.size)) @ x
        return cp.reshape(x, shape, order="C")

    def _refuse(
        self, stated: Mapping[str, object], name: str, where: object, over: object, *, integer: object = False
    ) -> None:
        super()._refuse(stated, name, where, over, integer=integer)
        if over is not None and not isinstance(over, Index):
            refuse(self.problem.name, f"over= of {name} must be an Index, such as Index.grid(row=2)", ModelError)

    def _where(self, name: str, where: ArrayLike | None, shape: tuple[int, ...]) -> I64:
        """Places at which an array along the axes is true, in C order; all for None."""
        if where is None:
            return np.arange(math.prod(shape))
        there = np.asarray(where)
        if there.dtype.kind not in "biuf" or not _broadcasts(there.shape, shape):
            found = "a function" if callable(where) else f"an array of the shape {there.shape}"
            msg = f"{self.problem.name}: where= of {name} must be true or false along its axes, {shape}, not {found}"
            raise ModelError(msg)
        return np.flatnonzero(np.broadcast_to(there, shape))

    def data(self, name: str) -> cp.Parameter:
        """Data that can change in the model, a parameter along its axes."""
        import cvxpy as cp

        values, axes = self.changeable(name)
        return cp.Parameter(self._shape(axes, name), name=name, value=values)

    def row(self, name: str, constraint: Any, *, where: ArrayLike | None = None, over: Index | None = None) -> None:
        """The rows of a constraint.

        Parameters
        ----------
        name
            Name of the constraint.
        constraint
            An array of rows along its axes, or of one row for every index in ``over``.
        where
            Which of these are rows, an array along the axes. None: all.
        over
            The indices of the rows. A constraint whose axes are not declared has these as its only axis.
        """
        import cvxpy as cp

        self._refuse(self.constraints, name, where, over)
        if not isinstance(constraint, cp.constraints.constraint.Constraint):
            found = "no variable; leave out rows that nothing can change"
            if not isinstance(constraint, bool | np.bool_ | np.ndarray):
                found = f"{str(constraint)[:60]!r}, no comparison such as a <= b, of arrays"
            refuse(self.problem.name, f"{name} has {found}", ModelError)
        if over is not None and self._undeclared(name):
            if len(over):
                self.constraints[name] = Named(constraint, (len(over),))
            return
        shape = self._shape(self.axes("constraints", name), name)
        if not math.prod(shape):
            return
        if over is not None:
            if len(over):
                self.constraints[name] = Named(constraint, shape, self._places("constraints", name, over, shape))
            return
        if where is None and constraint.shape == shape and len(shape) < 3:
            self.constraints[name] = Named(constraint, shape)
            return
        index = self._where(name, where, shape)
        if not index.size:
            return
        rows = self._chosen(constraint.expr, name, shape, index)
        equal = isinstance(constraint, cp.constraints.Equality)
        self.constraints[name] = Named(rows == 0 if equal else rows <= 0, shape, index)

    def _chosen(self, rows: Any, name: str, shape: tuple[int, ...], index: I64) -> Any:
        """The entries of an array of rows at their places."""
        import cvxpy as cp

        if rows.ndim > len(shape) or not _broadcasts(rows.shape, shape):
            msg = f"{self.problem.name}: {name} has rows of the shape {rows.shape}, and {shape} by their axes"
            raise ModelError(msg)
        places = np.unravel_index(index, shape)[len(shape) - rows.ndim :]
        own = tuple(place if size > 1 else 0 * place for place, size in zip(places, rows.shape, strict=True))
        if rows.ndim < 3:
            return rows[own]
        return cp.reshape(rows, (rows.size,), order="C")[np.ravel_multi_index(own, rows.shape)]

    def minimize(self, objective: Any) -> CvxpyModel:
        """The model, whose objective is minimised."""
        import cvxpy as cp

        return self._model(cp.Minimize(objective))

    def maximize(self, objective: Any) -> CvxpyModel:
        """The model, whose objective is maximised."""
        import cvxpy as cp

        return self._model(cp.Maximize(objective))

    def _model(self, objective: Any) -> CvxpyModel:
        import cvxpy as cp

        rows = [one.item for one in self.constraints.values()]
        return CvxpyModel(cp.Problem(objective, rows), self.variables, self.constraints)


def _domain(integer: bool, lower: ArrayLike, upper: ArrayLike) -> dict[str, Any]:
    """The numbers that a variable takes, in CVXPY's words: it compiles those that it has a word for faster."""
    if np.ndim(lower) == np.ndim(upper) == 0:
        if (lower, upper) == (0, np.inf):
            return {"nonneg": True, "integer": integer}
        if integer and (lower, upper) == (0, 1):
            return {"boolean": True}
    bounds = [np.asarray(bound, dtype=float) if np.ndim(bound) else bound for bound in (lower, upper)]
    return {"integer": integer, "bounds": bounds}


def _chosen(bound: ArrayLike, shape: tuple[int, ...], index: I64) -> ArrayLike:
    return np.broadcast_to(bound, shape).ravel()[index] if np.ndim(bound) else bound


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    """Whether an array of one shape can stand for one of another."""
    return all(size in (1, wanted) for size, wanted in zip(shape[::-1], to[::-1], strict=False))


def _column_major(shape: tuple[int, ...]) -> I64:
    """Positions, in C order, of the entries of an array in column-major order, in which CVXPY flattens it."""
    return np.arange(math.prod(shape)).reshape(shape).ravel(order="F")


class Variables(dict[Any, Any]):
    """The variables of a name by index, where those that are not listed are the number 0; read faster than Pyomo's own.

    Parameters
    ----------
    listed
        The variables that there are, by index.
    name
        Their name.
    axes
        Labels along every axis: any other index is an error.
    """

    def __init__(
        self, listed: Iterable[tuple[Hashable, object]], name: str, axes: Sequence[Sequence[Hashable]]
    ) -> None:
        super().__init__(listed)
        self.name, self._axes = name, axes

    @cached_property
    def _places(self) -> _Places:
        return _Places(self._axes)

    def __missing__(self, index: Any) -> int:
        if self._places.of(_spread(index)) is None:
            raise KeyError(f"{self.name}[{index}]")  # noqa: EM102 - as Pyomo's own message
        return 0


class _Places:
    """Where labels stand along axes, and in an index, over whose places a label that is a tuple is spread."""

    def __init__(self, along: Sequence[Sequence[Hashable]]) -> None:
        lengths = _lengths(along)
        *starts, self._length = accumulate((length or 1 for length in lengths), initial=0)
        self._axes = [
            (slice(start, start + length) if length else start, {label: place for place, label in enumerate(labels)})
            for start, length, labels in zip(starts, lengths, along, strict=True)
        ]

    def of(self, key: Key) -> int | None:
        """The position of an index in an array along the axes, in C order; None if they do not have it."""
        if len(key) != self._length:
            return None
        at = 0
        for part, places in self._axes:
            place = places.get(key[part])
            if place is None:
                return None
            at = at * len(places) + place
        return at


class Pyo(_Builder):
    """The build in Pyomo: rules of the labels of the declared axes."""

    def __init__(self, problem: Formulation) -> None:
        import pyomo.core as pyo

        super().__init__(problem)
        self.sum: Callable[[Iterable[Any]], Any] = pyo.quicksum
        self.model = pyo.ConcreteModel(name=problem.name)
        self.variables: dict[str, tuple[Sequence[Hashable], ...]] = {}
        self.constraints: dict[str, tuple[Sequence[Hashable], ...]] = {}

    def sets(self, *names: str) -> list[Sequence[Any]]:
        """Members of axes, by their names: the indices of the model."""
        axes = [self.axis(name) for name in names]
        self._shape(axes, "the build")
        return [axis.members for axis in axes]

    def incident(self) -> tuple[dict[Hashable, list[Any]], dict[Hashable, list[Any]]]:
        """The arcs into every vertex, and those out of it, by the labels of vertices and arcs."""
        V, A, topology = self.axis("vertex").members, self.axis("arc").members, topology_of(self.problem)
        into: dict[Hashable, list[Any]] = {u: [] for u in V}
        out_of: dict[Hashable, list[Any]] = {u: [] for u in V}
        for name, tail, head in zip(A, topology.tail.tolist(), topology.head.tolist(), strict=True):
            into[V[head]].append(name)
            out_of[V[tail]].append(name)
        return into, out_of

    def by_label(self, values: ArrayLike, *axes: str) -> Mapping[Hashable, float]:
        """The entries of an array along axes, by the labels of their members."""
        along, array = self.sets(*axes), np.asarray(values)
        if array.shape != tuple(map(len, along)):
            msg = f"{self.problem.name}: by_label has an array of the shape {array.shape} along the axes {axes}, which "
            raise ModelError(msg + f"have {', '.join(str(len(axis)) for axis in along)} members")
        return dict(zip(_indices(_keys(along)), array.ravel().tolist(), strict=True))

    def _members(self, kind: str, name: str) -> tuple[Sequence[Hashable], ...]:
        axes = self.axes(kind, name)
        self._shape(axes, name)
        return tuple(axis.members for axis in axes)

    def _ordered(self, name: str, over: Iterable[Any], along: Sequence[Sequence[Hashable]]) -> tuple[list[Key], I64]:
        """Indices in the order of the axes, and their positions in the named array; sets have an order of their own."""
        listed = list(over)
        if len(along) == 1 and listed == list(along[0]):  # all members of one axis, in their order
            return list(map(_spread, listed)), np.arange(len(listed))
        places, found = _Places(along), dict[int, Key]()
        for key in map(_spread, listed):
            if (at := places.of(key)) is None:
                refuse(self.problem.name, f"{name} has the index {key}, which its axes do not have", ModelError)
            found[at] = key
        order = sorted(found)
        return [found[at] for at in order], np.array(order, dtype=np.int64)

    def var(
        self,
        name: str,
        *,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
        integer: bool = False,
        where: Callable[..., object] | None = None,
        over: Index | Iterable[Any] | None = None,
    ) -> Any:
        """The variables of a name by index.

        Parameters
        ----------
        name
            Name of the variables.
        lower, upper
            Bounds: numbers, or arrays along the axes.
        integer
            Whether they are whole numbers.
        where
            Whether there is a variable for the labels of an index; the others are the number 0. None: everywhere.
        over
            The indices at which there are variables, instead: labels, or positions along the axes.
        """
        import pyomo.core as pyo

        self._refuse(self.variables, name, where, over, integer=integer)
        along = self._members("variables", name)
        shape = tuple(map(len, along))
        self._check_bounds(name, shape, lower=lower, upper=upper)
        signed = not np.ndim(lower) and lower == 0
        domain = (
            (pyo.NonNegativeIntegers if integer else pyo.NonNegativeReals)
            if signed
            else (pyo.Integers if integer else pyo.Reals)
        )
        if isinstance(over, Index):
            positions = self._positions("variables", name, over)
            keys = _keys(along, positions)
            there = self._places("variables", name, over, shape)
        elif over is not None:
            keys, there = self._ordered(name, over, along)
        else:
            keys = _keys(along)
            there = np.arange(len(keys)) if where is None else np.flatnonzero([bool(where(*key)) for key in keys])
            keys = keys if len(there) == len(keys) else [keys[place] for place in there.tolist()]
        if along and not keys:
            return Variables((), name, along)
        ends = ((lower, "setlb", 0.0 if signed else -np.inf), (upper, "setub", np.inf))
        common = tuple(None if np.ndim(bound) or bound == free else bound for bound, _, free in ends)
        x = pyo.Var(*([_index_set(_indices(keys))] if along else []), domain=domain, bounds=common)
        self._add(name, x)
        self.variables[name] = along
        for bound, state, free in ends:
            if np.ndim(bound):
                items, stated = list(x.values()), np.broadcast_to(bound, shape).ravel()[there]
                for place in np.flatnonzero(stated != free).tolist():
                    getattr(items[place], state)(stated[place].item())
        if not along or (is_own(self.problem) and len(keys) == math.prod(shape)):
            return x  # with the sums, slices and sets of Pyomo, which a formulation from outside may use
        return Variables(x.items(), name, along)

    def _add(self, name: str, component: Any) -> None:
        if hasattr(self.model, name):
            msg = f"{self.problem.name}: Pyomo's models have an attribute {name!r} already; give {name!r} another name"
            raise ModelError(msg)
        self.model.add_component(name, component)

    def data(self, name: str, *, where: Callable[..., object] | None = None) -> pyo.Param:
        """Data that can change in the model, by index: all entries, or those for whose labels ``where`` is true."""
        import pyomo.core as pyo

        values, axes = self.changeable(name)
        keys = _keys([axis.members for axis in axes])
        entries = {
            index: number
            for index, key, number in zip(_indices(keys), keys, values.ravel().tolist(), strict=True)
            if where is None or where(*key)
        }
        param = pyo.Param(_index_set(entries), initialize=entries, mutable=True, within=pyo.Any)
        self._add(name, param)
        return param

    def row(
        self,
        name: str,
        rule: Any,
        *,
        where: Callable[..., object] | None = None,
        over: Iterable[Any] | None = None,
    ) -> None:
        """The rows of a constraint: ``rule`` of the labels of every index.

        Parameters
        ----------
        name
            Name of the constraint.
        rule
            The row of an index; of a constraint without axes, the row itself will do.
        where
            Whether there is a row for the labels of an index. None: for all.
        over
            The indices themselves, where they are stated instead. A constraint whose axes are not declared has these as
            its only axis.
        """
        import pyomo.core as pyo
        from pyomo.core.expr import EqualityExpression

        self._refuse(self.constraints, name, where, over)
        # Expressions of Pyomo can be called, too: that is their value.
        given = None if callable(rule) and not hasattr(rule, "is_expression_type") else rule
        along: tuple[Sequence[Hashable], ...]
        if over is not None and self._undeclared(name):
            keys = list(map(_spread, over))
            along = (_indices(keys),)
        else:
            along = self._members("constraints", name)
            if over is not None:
                keys, _ = self._ordered(name, over, along)
            else:
                keys = [key for key in _keys(along) if where is None or where(*key)]
        if given is not None and along:
            msg = f"{self.problem.name}: the row {name} has axes; give a function of their labels that returns the row"
            raise ModelError(msg)
        rows = {}  # made before: Pyomo would log an error of the rule
        for index, key in zip(_indices(keys), keys, strict=True):
            row = rule(*key) if given is None else given
            if type(row) is not EqualityExpression and (row := self._row(name, key, row)) is None:
                continue
            rows[index] = row
        if not rows:
            return
        self._add(
            name,
            pyo.Constraint(_index_set(rows), rule=rows) if along else pyo.Constraint(expr=next(iter(rows.values()))),
        )
        self.constraints[name] = along

    def _row(self, name: str, key: Key, row: Any) -> Any:
        """A row; None where its terms are all absent and it holds without them."""
        if row is True:
            return None
        numeric = hasattr(row, "is_numeric_type") and row.is_numeric_type()
        strict = getattr(row, "strict", False) in (True, (True, True), (True, False), (False, True))
        if numeric or strict or row is None or isinstance(row, bool | int | float):
            found = f"{str(row)[:60]!r}, no comparison such as a <= b"
            found = "no variable and does not hold" if row is False else found
            refuse(self.problem.name, f"the row {name}{list(key) if key else ''} has {found}", ModelError)
        return row

    def minimize(self, objective: Any) -> PyomoModel:
        """The model, whose objective is minimised."""
        import pyomo.core as pyo

        return self._model(pyo.Objective(expr=objective, sense=pyo.minimize))

    def maximize(self, objective: Any) -> PyomoModel:
        """The model, whose objective is maximised."""
        import pyomo.core as pyo

        return self._model(pyo.Objective(expr=objective, sense=pyo.maximize))

    def _model(self, objective: Any) -> PyomoModel:
        self.model.add_component("objective", objective)
        return PyomoModel(self.model, self.variables, self.constraints)


def _keys(along: Sequence[Sequence[Hashable]], positions: Sequence[I64] | None = None) -> list[Key]:
    """Indices along axes, all in C order or those at positions along each; a label that is a tuple is spread."""
    spread = any(_lengths(along))
    axes: Sequence[Sequence[Any]] = [list(map(_spread, labels)) for labels in along] if spread else along
    lines: Iterable[Any] = product(*axes)
    if positions is not None:
        columns = [[labels[i] for i in at.tolist()] for labels, at in zip(axes, positions, strict=True)]
        lines = zip(*columns, strict=True)
    return [tuple(chain.from_iterable(line)) for line in lines] if spread else list(lines)


def _lengths(along: Sequence[Sequence[Hashable]]) -> list[int]:
    """For every axis, over how many places of an index a label that is a tuple is spread; 0 for other labels."""
    return [len(labels[0]) if labels and isinstance(labels[0], tuple) else 0 for labels in along]


def _spread(index: Any) -> Key:
    """An index as a tuple."""
    return index if isinstance(index, tuple) else (index,)


def _indices(keys: Iterable[Key]) -> list[Any]:
    """Indices as Pyomo writes them: none is a tuple of one."""
    return [key[0] if len(key) == 1 else key for key in keys]


class _Indices(list[Any]):
    """Distinct indices in their order, found as fast as in a set."""

    def __init__(self, indices: Iterable[Any]) -> None:
        super().__init__(indices)
        self._known = frozenset(self)

    def __contains__(self, index: object) -> bool:
        return index in self._known


def _index_set(indices: Iterable[Any]) -> pyo.Set:
    """A set of Pyomo that refers to these indices, instead of a copy that examines each: half of a variable's time."""
    import pyomo.core as pyo

    return pyo.SetOf(_Indices(indices), ctype=pyo.Set)
