"""Types of formulations: models, their parameters and their bounds.

A formulation is a module in a paper's sub-package of :mod:`opticoll.formulations`, or a plug-in
(:mod:`opticoll.instances.plugins`), that ends with ``FORMULATION = Formulation(...)``; the name of ours is
``paper.module-name``. It builds declarative models, checks solutions with numpy alone,
and computes bounds. It neither calls nor chooses a solver.

Values (of variables) and duals (of named constraints) are passed as ``dict[str, ndarray]`` under the names of the
module's docstring. Scalars are 0-d arrays.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, get_args

from opticoll.errors import BadInput
from opticoll.instances.spec import nearest

if TYPE_CHECKING:
    from fractions import Fraction

    import cvxpy as cp
    import numpy as np
    import pyomo.environ as pyo
    import scipy.sparse as sp
    from numpy.typing import NDArray

    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.formulations.variables import Array, IndexSets, Links
    from opticoll.instances.types import Json, Setting, Settings

    Values = Mapping[str, NDArray[np.float64]]

Form = Literal["cvxpy", "pyomo", "matrix"]
#: See :class:`PyomoModel`.
Axis: TypeAlias = "int | Sequence[Hashable]"


#: Name of the kind of a parameter's value in messages.
_KINDS: Mapping[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}


class NotApplicable(BadInput):
    """The formulation does not make sense for this instance or parameter."""


@dataclass(frozen=True)
class Parameter:
    """One ``--set`` parameter of a formulation or a method."""

    name: str
    kind: type
    default: Setting
    help: str
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        where = f"parameter {self.name!r}"
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z_][\w.-]*", self.name):
            msg = f"{where}: the name must consist of letters, digits, '_', '.' and '-', and begin with a letter"
            raise BadInput(msg)
        if not callable(self.kind):
            msg = f"{where}: kind must be a type such as int, float, bool or str, not {self.kind!r}"
            raise BadInput(msg)
        if not isinstance(self.help, str) or not self.help.strip():
            msg = f"{where}: help must be a string, not {self.help!r}"
            raise BadInput(msg)
        if not isinstance(self.choices, tuple) or not all(isinstance(one, str) for one in self.choices):
            msg = f"{where}: choices must be a tuple of strings, not {self.choices!r}"
            raise BadInput(msg)
        if self.kind in _KINDS and self.default is not None:
            self.read(self.default, "the default")

    def read(self, text: object, where: str) -> Setting:
        """Convert ``text`` to the parameter's type.

        Raises
        ------
        BadInput
            If it has the wrong type, such as a fraction for a whole number, or is not one of the choices.
        """
        try:
            if self.kind is bool:
                word = str(text).lower()
                if word not in {"true", "false", "yes", "no", "1", "0"}:
                    raise ValueError(word)
                return word in {"true", "yes", "1"}
            value = self.kind(text)
            if self.kind in (int, float):
                changed = not isinstance(text, str) and value != text  # int() truncates 2.5
                if changed or math.isnan(value) or str(text) in {"True", "False"}:
                    raise ValueError(text)
        except BadInput:
            raise
        except (TypeError, ValueError, OverflowError):
            msg = f"{where}: parameter {self.name!r} must be {_KINDS.get(self.kind, self.kind.__name__)}, not {text!r}"
            raise BadInput(msg) from None
        if self.choices and value not in self.choices:
            msg = f"{where}: parameter {self.name!r} must be one of {', '.join(self.choices)}, not {text!r}"
            raise BadInput(msg)
        return value


def read_parameters(parameters: tuple[Parameter, ...], given: Mapping[str, object], where: str) -> dict[str, Setting]:
    """Return the value of every parameter: as given, converted to its type, or its default.

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
    """A CVXPY variable or constraint and the positions of its entries in the named array, see :class:`CvxpyModel`."""

    item: Any
    shape: tuple[int, ...]
    index: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class PyomoModel:
    """A Pyomo model with the axes of its named variables and constraints.

    An axis is the length of a dimension of the named array, whose Pyomo indices are 0, 1, ...; or the Pyomo indices
    themselves, in the order of the array. Such an index is a number, a string, or a tuple of these: ``chord[i,j,h]``
    may be an array of two dimensions, the pair (i,j) and h.
    """

    model: pyo.ConcreteModel
    variables: Mapping[str, tuple[Axis, ...]]
    constraints: Mapping[str, tuple[Axis, ...]]


@dataclass(frozen=True)
class MatrixModel:
    """Rows and columns built without a modelling layer, for methods that solve many models.

    ``A`` is sparse, ``(rows, columns)``; bounds may be infinite. ``variables`` and ``constraints`` map a name to its
    shape and the columns (rows) of its entries in C order, -1 for entries without one. A formulation with this form
    is also stated in CVXPY and Pyomo; the three share no rows, and a test checks that they give the same matrix.
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
    offset: float = 0.0


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
    detail: Mapping[str, Json] = field(default_factory=dict)


Data = TypeVar("Data")


#: Hooks of a formulation that may be None.
_OPTIONAL_HOOKS = (
    "arrays", "closed_forms", "certify", "dual_arrays", "repair", "metrics", "describe", "estimate", "early_estimate",
    "unfold", "refute", "derived", "replay",
)  # fmt: skip


def _instance_itself(instance: Any, parameters: Settings) -> Any:
    """Default data of a formulation: the instance itself."""
    return instance


def _no_bounds(data: object) -> list[Bound]:
    """Default bounds of a formulation: none."""
    return []


@dataclass(frozen=True, kw_only=True)
class Formulation(Generic[Data]):
    """A model over its own type of data: how it is built, checked and bounded.

    Required are ``name``, ``title``, ``sense``, ``build``, ``residuals`` and ``objective``.

    Parameters
    ----------
    name, title
        Name, e.g. ``alltoall.master``; one-line title.
    paper, where
        Short name of the paper; equation numbers.
    sense, problem
        Objective sense (``"min"`` or ``"max"``) and problem class (``"LP"`` or ``"MILP"``).
    parameters
        Parameters that ``--set`` may change.
    prepare
        ``(instance, parameters) -> data``. Returns the typed data of the docstring; raises :class:`NotApplicable`
        where the formulation does not make sense. All other functions take these data; by default the instance.
    build
        ``data -> CvxpyModel | PyomoModel | MatrixModel`` by form (``"cvxpy"``, ``"pyomo"``, ``"matrix"``); the first
        form is the default. Also ``data -> cp.Problem`` or ``data -> pyo.ConcreteModel``: the variables then have the
        full names of the model, and an array has an axis per index set (:mod:`opticoll.solvers.pyomo_models`).
    residuals
        ``(data, values) -> {constraint block: worst violation}``, computed with numpy alone. Violations are relative
        to the natural size of the block; a block with 0 or less is satisfied.
    objective
        ``(data, values) -> float``, computed with numpy alone.
    bounds
        ``data -> [Bound, ...]``, analytic bounds; none by default.
    closed_forms
        ``data -> [Bound, ...]``, those among ``bounds`` that are exact and cheap. Every run is checked against them.
    arrays
        ``(data, names) -> {name: Array}``, shapes and ranges of the arrays of a solution that consists of ``names``.
        Checked before any other function reads the values. By default the variables of the model that was built.
    dual_arrays
        ``data -> {name: Array}``, the duals that ``certify`` reads; required with ``certify``.
    certify
        ``(data, duals) -> Bound | None``, a rigorous bound from any dual values, however inexact.
    repair
        ``(data, values) -> values | None``, an exactly feasible solution near an approximate one.
    metrics
        ``(data, objective) -> {name: number}``. ``objective`` is the verified value. Without a value, a formulation of
        the package gets None, to give metrics that need no value; one from outside the package is not called.
    describe
        ``(data, values) -> {name: number or list}``, properties of a verified solution, added to the metrics.
    restriction
        ``data -> str | None``, the restriction of the optimum by a parameter, as words that follow "optimal": "over the
        given paths (4 shortest paths)". None if the optimum is unconditional. A solution whose metrics have
        ``unrestricted_proven`` is optimal without the restriction. Reported as ``metrics.conditional_on``.
    estimate
        ``data -> {"variables", "constraints", "nonzeros", "integers"}``, the size of the matrix.
    early_estimate
        ``(instance, parameters) -> size``, at most what ``estimate`` returns, before ``prepare``; for formulations
        whose data alone may exceed the memory. None if unknown.
    unfold
        ``(data, values) -> values``, adds the named arrays of the docstring to a solver's values; for models whose
        variables are a flat list.
    refute
        ``data -> Bound | None``, a bound that excludes every solution that the parameters allow. Nothing is solved
        then, and the bound is reported.
    derived
        ``data -> Fractions``, the numbers of the matrix that are computed from the data rather than given there as
        decimals, such as shares of a total: the exact values of the model's floats, for exact solving. Signs do not
        matter.
    needs
        Formulation whose solution is part of the data. ``prepare`` takes its values as third argument.
    concurrent
        Name of the variable F if the model is a concurrent flow: F is maximised, and scaling F and all flows by the
        same factor keeps every row except the capacities satisfied. The model can then be solved for T = 1/F.
    given_by
        Parameter that names the method whose ``construct`` gives data that the instance lacks. ``prepare`` then takes
        that function as third argument.
    size
        Number of variables as a formula.
    meaning
        Meaning of the objective, with its unit in brackets; a function of the data if it depends on parameters.
    shards
        Whether data are counted in shards, so that a shard size gives bytes and, with a unit of capacity, seconds.
    index_sets
        ``(data, values) -> {axis: names}``, names of the indices along the axes that ``arrays`` declares
        (:mod:`opticoll.formulations.variables`). Indices of other axes are numbered.
    links
        ``(data, values) -> Links``, the load of every link under a verified solution.
    rounds
        ``(data, values) -> RoundSchedule``, for formulations whose solutions are schedules of rounds.
    label_invariant
        ``parameters -> bool``, whether isomorphic topologies have the same optimum: nothing depends on the numbers of
        vertices and arcs, neither a root nor ties between paths. By default this is not assumed, and ``opticoll sweep``
        solves isomorphic copies too.
    replay
        ``(data, RoundSchedule) -> {block: violation}``, the check of an external schedule of rounds.
    of_instance
        ``instance -> Formulation``, the formulation with the sense and problem class of an instance, if these
        depend on it; ``problem`` is then the more general class.
    """

    name: str
    title: str
    sense: Literal["min", "max"]
    build: Mapping[Form, Callable[[Data], CvxpyModel | PyomoModel | MatrixModel | Any]]
    residuals: Callable[[Data, Values], dict[str, float]]
    objective: Callable[[Data, Values], float]
    paper: str = "own"
    where: str = ""
    problem: Literal["LP", "MILP"] = "LP"
    prepare: Callable[..., Data] = _instance_itself
    bounds: Callable[[Data], list[Bound]] = _no_bounds
    arrays: Callable[[Data, Collection[str]], dict[str, Array]] | None = None
    closed_forms: Callable[[Data], list[Bound]] | None = None
    parameters: tuple[Parameter, ...] = ()
    certify: Callable[[Data, Values], Bound | None] | None = None
    dual_arrays: Callable[[Data], dict[str, Array]] | None = None
    repair: Callable[[Data, Values], dict[str, NDArray[np.float64]] | None] | None = None
    metrics: Callable[[Data, float | None], Mapping[str, Json]] | None = None
    describe: Callable[[Data, Values], Mapping[str, Json]] | None = None
    restriction: Callable[[Data], str | None] | None = None
    estimate: Callable[[Data], dict[str, int]] | None = None
    early_estimate: Callable[[object, Settings], dict[str, int] | None] | None = None
    unfold: Callable[[Data, Values], dict[str, NDArray[np.float64]]] | None = None
    refute: Callable[[Data], Bound | None] | None = None
    derived: Callable[[Data], Iterable[Fraction]] | None = None
    needs: str | None = None
    concurrent: str | None = None
    given_by: str | None = None
    size: str = ""
    meaning: str | Callable[[Data], str] = ""
    shards: bool = False
    index_sets: Callable[[Data, Values], IndexSets] | None = None
    links: Callable[[Data, Values], Links] | None = None
    rounds: Callable[[Data, Values], RoundSchedule] | None = None
    label_invariant: Callable[[Settings], bool] | None = None
    replay: Callable[[Data, RoundSchedule], dict[str, float]] | None = None
    of_instance: Callable[[object], Formulation[Any]] | None = None

    def __post_init__(self) -> None:
        where = f"formulation {self.name!r}"
        if not isinstance(self.name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            msg = f"{where}: the name must consist of letters, digits, '.', '-' and '_'"
            raise BadInput(msg)
        for word in ("title", "paper", "where", "size"):
            if not isinstance(getattr(self, word), str) or (word == "title" and not self.title.strip()):
                kind = "a string that is not empty" if word == "title" else "a string"
                msg = f"{where}: {word} must be {kind}, not {getattr(self, word)!r}"
                raise BadInput(msg)
        for hook, choices in (("sense", ("min", "max")), ("problem", ("LP", "MILP"))):
            if getattr(self, hook) not in choices:
                msg = f"{where}: {hook} must be {' or '.join(map(repr, choices))}, not {getattr(self, hook)!r}"
                raise BadInput(msg)
        if not isinstance(self.build, Mapping) or not self.build or set(self.build) - set(get_args(Form)):
            msg = f"{where}: build must map forms ({', '.join(map(repr, get_args(Form)))}) to functions of the data"
            raise BadInput(msg)
        hooks = {f"build[{form!r}]": function for form, function in self.build.items()}
        hooks |= {hook: getattr(self, hook) for hook in ("prepare", "residuals", "objective", "bounds")}
        hooks |= {hook: getattr(self, hook) for hook in _OPTIONAL_HOOKS if getattr(self, hook) is not None}
        for hook, function in hooks.items():
            if not callable(function):
                msg = f"{where}: {hook} must be a function, not {function!r}"
                raise BadInput(msg)
        if not isinstance(self.parameters, tuple) or not all(isinstance(one, Parameter) for one in self.parameters):
            msg = f"{where}: parameters must be a tuple of Parameter objects; end a one-element tuple with a comma"
            raise BadInput(msg)

    def __str__(self) -> str:
        return self.name

    @property
    def own(self) -> bool:
        """Whether its build is defined outside the package: in a plug-in, a script or a notebook."""
        return not str(getattr(next(iter(self.build.values())), "__module__", "")).startswith("opticoll.")

    @property
    def forms(self) -> tuple[Form, ...]:
        """Forms in which the model can be built, the default first."""
        return tuple(self.build)

    def metrics_at(self, data: Data, objective: float | None) -> Mapping[str, Json]:
        """Metrics at a verified value, or at None without one; empty if ``metrics`` is not called."""
        if self.metrics is None or (objective is None and self.own):
            return {}
        return self.metrics(data, objective)
