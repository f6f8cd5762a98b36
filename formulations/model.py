"""What a formulation is: one module that states one model of one paper, its checker and its bounds.

A new formulation is one module in a sub-package of :mod:`formulations` that ends with ``FORMULATION =
Formulation(...)``; the registry finds it as ``paper.module-name``. A formulation never calls a solver: it
builds declarative models, reads values back, checks them with numpy alone, and computes bounds.

Named arrays
    Everything passes as ``dict[str, ndarray]`` under the names of the docstring: ``values`` (variables) and
    ``duals`` (of named constraints). Scalars are 0-d arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

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
    """An instance or parameter for which the formulation does not make sense."""


@dataclass(frozen=True)
class Parameter:
    """One ``--set`` parameter of a formulation or a method."""

    name: str
    kind: type
    default: Any
    help: str
    choices: tuple[str, ...] = ()

    def read(self, text: Any, where: str) -> Any:
        """The typed value of ``text``.

        Raises
        ------
        BadInput
            If it has the wrong type or is not among the choices.
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
    """Defaults overlaid with what was given, typed.

    Raises
    ------
    BadInput
        For an unknown name (with the nearest known) or a bad value.
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
    """A CVXPY problem with the names of its variables and constraints, and the shapes they have here.

    ``variables`` and ``constraints`` map a name to ``(object, shape, index)``: flat entries of the CVXPY object,
    in its own column-major order, are entries ``index`` (C order) of the named array of that ``shape``; an
    ``index`` of None means all of them, the array being the object's own.
    """

    problem: cp.Problem
    variables: Mapping[str, Named]
    constraints: Mapping[str, Named]


@dataclass(frozen=True)
class Named:
    """A CVXPY variable or constraint and where its entries lie in the named array, see :class:`CvxpyModel`."""

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
    """The rows and columns themselves, for the inner loops of methods where a modelling layer would cost more.

    ``A`` is sparse, ``(rows, columns)``; bounds may be infinite. ``variables`` and ``constraints`` map a name to its
    shape and the columns (rows) of its entries in C order, -1 where there is none. A formulation that has one is
    also stated declaratively, and a test shows that both are the same matrix.
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
    """A bound on a formulation's optimum that holds for a stated reason.

    ``value`` bounds the objective from above for a max problem and from below for a min problem;
    ``exact`` says that it is the optimum itself (a closed form).
    """

    name: str
    value: float
    reason: str
    paper: str = ""
    exact: bool = False
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Formulation:
    """One model: how it is built, read back, checked and bounded.

    Parameters
    ----------
    name, paper, where, title
        ``alltoall.master``; the paper's short name; equation numbers; one line.
    sense, problem
        Objective sense and class (``"LP"`` or ``"MILP"``).
    parameters
        What ``--set`` may change.
    prepare
        ``(instance, parameters) -> data``: refuses what makes no sense, returns the typed data of the
        docstring. Everything else takes this data.
    build
        By form, ``data -> CvxpyModel | PyomoModel | MatrixModel``; the first is the default.
    residuals
        ``(data, values) -> {constraint block: worst violation}`` from numpy alone, each relative to the natural
        size of the block, 0 for a satisfied one.
    objective
        ``(data, values) -> float`` from numpy alone.
    bounds
        ``data -> [Bound, ...]`` analytic bounds.
    closed_forms
        ``data -> [Bound, ...]`` those of ``bounds`` that say the optimum itself and cost next to nothing: every run is
        held against them, whatever else proves its value.
    arrays
        ``(data, names) -> {name: Array}`` the arrays that a solution may have which gives those called ``names``:
        shapes and ranges, checked before ``residuals`` and all that follows see any values.
    dual_arrays
        ``data -> {name: Array}`` the duals that ``certify`` reads; given where that is.
    certify
        ``(data, duals) -> Bound | None`` a rigorous bound out of any dual values, however inexact.
    repair
        ``(data, values) -> values | None`` an exactly feasible solution near an approximate one.
    metrics
        ``(data, objective) -> {name: number}``.
    describe
        ``(data, values) -> {name: number or list}`` what a verified solution looks like, added to the metrics.
    needs
        Formulation whose solution this one takes as data, if any: ``prepare`` then gets its values as third
        argument.
    foresee
        ``(instance, parameters) -> size`` as ``estimate`` gives it, or at most that, before the data are made: where
        those alone may be larger than the memory.
    smaller
        Formulation with the same optimum and a smaller matrix, if there is one.
    unfold
        ``(data, values) -> values`` what a solver's values mean in the formulation's own named arrays, beside them:
        for models whose variables are a flat list of possibilities.
    refute
        ``data -> Bound | None`` a bound that leaves no solution within what the parameters allow: nothing is solved
        then, and the bound is reported.
    concurrent
        Name of the served-fraction variable if the model is a concurrent flow (every row homogeneous but
        the capacities): methods that exploit this ask here.
    prefers
        Method that ``auto`` stands for, where it is not a matter of size.
    needs_method
        Own parameter that names the method by which ``needs`` is solved, if there is a choice.
    given_by
        Own parameter that names the method whose ``construct`` gives data that the instance lacks: ``prepare`` then
        gets this function as third argument.
    """

    name: str
    paper: str
    where: str
    title: str
    sense: Literal["min", "max"]
    problem: Literal["LP", "MILP"]
    prepare: Callable[..., Any]
    build: Mapping[Form, Callable[[Any], Any]]
    residuals: Callable[[Any, Values], dict[str, float]]
    objective: Callable[[Any, Values], float]
    bounds: Callable[[Any], list[Bound]]
    arrays: Callable[[Any, Collection[str]], dict[str, Array]]
    closed_forms: Callable[[Any], list[Bound]] | None = None
    parameters: tuple[Parameter, ...] = ()
    certify: Callable[[Any, Values], Bound | None] | None = None
    dual_arrays: Callable[[Any], dict[str, Array]] | None = None
    repair: Callable[[Any, Values], dict[str, NDArray[np.float64]] | None] | None = None
    metrics: Callable[[Any, float | None], dict[str, Any]] | None = None
    describe: Callable[[Any, Values], dict[str, Any]] | None = None
    decode: Callable[[Any, Values], Any] | None = None
    estimate: Callable[[Any], dict[str, int]] | None = None
    foresee: Callable[[Any, Mapping[str, Any]], dict[str, int] | None] | None = None
    smaller: str | None = None
    unfold: Callable[[Any, Values], dict[str, NDArray[np.float64]]] | None = None
    refute: Callable[[Any], Bound | None] | None = None
    needs: str | None = None
    concurrent: str | None = None
    prefers: str | None = None
    needs_method: str | None = None
    given_by: str | None = None
    size: str = ""

    @property
    def forms(self) -> tuple[Form, ...]:
        """The modelling layers it is stated in, preferred first."""
        return tuple(self.build)
