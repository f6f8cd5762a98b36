"""Types of formulations: models, their parameters and their bounds.

A formulation is a module in a paper's sub-package of :mod:`opticoll.formulations` that ends with ``FORMULATION =
Formulation(...)``; its name is ``paper.module-name``. It builds declarative models, checks solutions with numpy alone,
and computes bounds. It never calls a solver and does not choose one.

Values (of variables) and duals (of named constraints) are passed as ``dict[str, ndarray]`` under the names of the
module's docstring. Scalars are 0-d arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from opticoll.errors import BadInput
from opticoll.instances.spec import nearest

if TYPE_CHECKING:
    import cvxpy as cp
    import numpy as np
    import pyomo.environ as pyo
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.formulations.arrays import Array

    Values = Mapping[str, NDArray[np.float64]]

Form = Literal["cvxpy", "pyomo", "matrix"]


class NotApplicable(BadInput):
    """The formulation does not make sense for this instance or parameter."""


@dataclass(frozen=True)
class Parameter:
    """One ``--set`` parameter of a formulation or a method."""

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()

    def read(self, text: Any, where: str) -> Any:
        """Convert ``text`` to the parameter's type.

        Raises
        ------
        BadInput
            If it has the wrong type or is not one of the choices.
        """
        try:
            if self.kind is bool:
                word = str(text).lower()
                if word not in {"true", "false", "yes", "no", "1", "0"}:
                    raise ValueError(word)
                return word in {"true", "yes", "1"}
            value = self.kind(text)
        except (TypeError, ValueError):
            msg = f"{where}: parameter {self.name!r} takes a {self.kind.__name__}, not {text!r}"
            raise BadInput(msg) from None
        if self.choices and value not in self.choices:
            msg = f"{where}: parameter {self.name!r} is one of {', '.join(self.choices)}, not {text!r}"
            raise BadInput(msg)
        return value


def read_parameters(parameters: tuple[Parameter, ...], given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The value of every parameter: as given, converted to its type, or its default.

    Raises
    ------
    BadInput
        For an unknown name (the message suggests the closest known one) or a bad value.
    """
    known = {p.name: p for p in parameters}
    for name in given:
        if name not in known:
            hint = nearest(name, known) if known else "it has no parameters"
            msg = f"{where}: no parameter {name!r}; {hint}"
            raise BadInput(msg)
    return {name: p.read(given[name], where) if name in given else p.default for name, p in known.items()}


@dataclass(frozen=True)
class CvxpyModel:
    """A CVXPY problem with its named variables and constraints.

    The entries of a CVXPY object, flattened in column-major order, are the entries ``index`` (C order) of the named
    array, which has the given ``shape``. An ``index`` of None means that the array is the object itself.
    """

    problem: cp.Problem
    variables: Mapping[str, Named]
    constraints: Mapping[str, Named]


@dataclass(frozen=True)
class Named:
    """A CVXPY variable or constraint and the place of its entries in the named array, see :class:`CvxpyModel`."""

    item: Any
    shape: tuple[int, ...]
    index: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class PyomoModel:
    """A Pyomo model with the shapes of its named variables and constraints (indices are array indices)."""

    model: pyo.ConcreteModel
    variables: Mapping[str, tuple[int, ...]]
    constraints: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class MatrixModel:
    """Rows and columns built without a modelling layer, for methods that solve many models.

    ``A`` is sparse, ``(rows, columns)``; bounds may be infinite. ``variables`` and ``constraints`` map a name to its
    shape and the columns (rows) of its entries in C order, -1 for entries without one. A formulation with this form
    has a declarative form too, and a test checks that both give the same matrix.
    """

    A: sp.csc_array
    row_lower: NDArray[np.float64]
    row_upper: NDArray[np.float64]
    col_lower: NDArray[np.float64]
    col_upper: NDArray[np.float64]
    cost: NDArray[np.float64]
    sense: Literal["min", "max"]
    variables: Mapping[str, tuple[tuple[int, ...], NDArray[np.int64]]]
    constraints: Mapping[str, tuple[tuple[int, ...], NDArray[np.int64]]]
    integer: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class Bound:
    """A bound on the optimum of a formulation, with its reason.

    ``value`` bounds the objective from above for a max problem and from below for a min problem; ``exact`` means
    that it is the optimum (a closed form).
    """

    name: str
    value: float
    reason: str
    paper: str = ""
    exact: bool = False
    detail: Mapping[str, Any] = field(default_factory=dict)


Data = TypeVar("Data")


@dataclass(frozen=True)
class Formulation(Generic[Data]):
    """A model of a paper, stated over its own type of data: how it is built, checked and bounded.

    Parameters
    ----------
    name, paper, where, title
        Name, e.g. ``alltoall.master``; short name of the paper; equation numbers; a title of one line.
    sense, problem
        Objective sense and problem class (``"LP"`` or ``"MILP"``).
    parameters
        Parameters that ``--set`` may change.
    prepare
        ``(instance, parameters) -> data``. Returns the typed data of the docstring; raises :class:`NotApplicable`
        where the formulation does not make sense. All other functions take this data.
    build
        ``data -> CvxpyModel | PyomoModel | MatrixModel`` by form; the first form is the default.
    residuals
        ``(data, values) -> {constraint block: worst violation}``, computed with numpy alone. Violations are relative
        to the natural size of the block; a satisfied block has 0.
    objective
        ``(data, values) -> float``, computed with numpy alone.
    bounds
        ``data -> [Bound, ...]``, analytic bounds.
    closed_forms
        ``data -> [Bound, ...]``, the cheap ones among ``bounds`` that are exact. Every run is checked against them.
    arrays
        ``(data, names) -> {name: Array}``, shapes and ranges of the arrays of a solution that consists of ``names``.
        Checked before any other function reads the values.
    dual_arrays
        ``data -> {name: Array}``, the duals that ``certify`` reads; required with ``certify``.
    certify
        ``(data, duals) -> Bound | None``, a rigorous bound from any dual values, however inexact.
    repair
        ``(data, values) -> values | None``, an exactly feasible solution near an approximate one.
    metrics
        ``(data, objective) -> {name: number}``.
    describe
        ``(data, values) -> {name: number or list}``, properties of a verified solution, added to the metrics.
    estimate
        ``data -> {"variables", "constraints", "nonzeros", "integers"}``, the size of the matrix.
    early_estimate
        ``(instance, parameters) -> size``, at most what ``estimate`` returns, before ``prepare``; for formulations
        whose data alone may exceed the memory. None where it is unknown.
    unfold
        ``(data, values) -> values``, adds the named arrays of the docstring to a solver's values; for models whose
        variables are a flat list.
    refute
        ``data -> Bound | None``, a bound that excludes every solution that the parameters allow. Nothing is solved
        then, and the bound is reported.
    needs
        Formulation whose solution is part of the data. ``prepare`` takes its values as third argument.
    concurrent
        Name of the variable F if the model is a concurrent flow: F is maximised, and scaling F and all flows by the
        same factor keeps every row but the capacities satisfied. The model can then be solved for T = 1/F.
    given_by
        Parameter that names the method whose ``construct`` gives data that the instance lacks. ``prepare`` then takes
        that function as third argument.
    size
        Number of variables as a formula.
    """

    name: str
    paper: str
    where: str
    title: str
    sense: Literal["min", "max"]
    problem: Literal["LP", "MILP"]
    prepare: Callable[..., Data]
    build: Mapping[Form, Callable[[Data], CvxpyModel | PyomoModel | MatrixModel]]
    residuals: Callable[[Data, Values], dict[str, float]]
    objective: Callable[[Data, Values], float]
    bounds: Callable[[Data], list[Bound]]
    arrays: Callable[[Data, Collection[str]], dict[str, Array]]
    closed_forms: Callable[[Data], list[Bound]] | None = None
    parameters: tuple[Parameter, ...] = ()
    certify: Callable[[Data, Values], Bound | None] | None = None
    dual_arrays: Callable[[Data], dict[str, Array]] | None = None
    repair: Callable[[Data, Values], dict[str, NDArray[np.float64]] | None] | None = None
    metrics: Callable[[Data, float | None], Mapping[str, Any]] | None = None
    describe: Callable[[Data, Values], Mapping[str, Any]] | None = None
    estimate: Callable[[Data], dict[str, int]] | None = None
    early_estimate: Callable[[object, Mapping[str, Any]], dict[str, int] | None] | None = None
    unfold: Callable[[Data, Values], dict[str, NDArray[np.float64]]] | None = None
    refute: Callable[[Data], Bound | None] | None = None
    needs: str | None = None
    concurrent: str | None = None
    given_by: str | None = None
    size: str = ""

    @property
    def forms(self) -> tuple[Form, ...]:
        """Forms in which the model can be built, the default first."""
        return tuple(self.build)
