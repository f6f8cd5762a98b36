"""Types of formulations: models, their parameters and their bounds.

A formulation is a subclass of :class:`Formulation` in a module of :mod:`opticoll.formulations`, or in a plug-in
(:mod:`opticoll.plugins`), that the module names ``FORMULATION``. Ours are named ``room.module-name``.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self, TypeAlias, TypeVar, cast

from opticoll.errors import BadInput, NotApplicable, refuse
from opticoll.formulations.modelling_layers import import_layer, many_objects
from opticoll.formulations.parameters import Parameter, check_listed, parameters_of, read_parameters, unknown_parameter
from opticoll.plugin_faults import blaming

if TYPE_CHECKING:
    from types import ModuleType

    import cvxpy as cp
    import pyomo.core as pyo

    from opticoll.formulations.standard_form import StandardForm
    from opticoll.formulations.variables import Array, Links
    from opticoll.formulations.variables import Axis as DeclaredAxis
    from opticoll.instances.topology import F64, I64, Mask
    from opticoll.types import Json, Settings

    Values = Mapping[str, F64]
    Changeable = Mapping[str, tuple[F64 | str, ...]]

T = TypeVar("T")
Form = Literal["cvxpy", "pyomo", "matrix"]
#: See :class:`PyomoModel`.
Axis: TypeAlias = "int | Sequence[Hashable]"


@dataclass(frozen=True)
class CvxpyModel:
    """A CVXPY problem with its named variables and constraints.

    The entries of a CVXPY object, flattened in column-major order, are the entries ``index`` (C order) of the named
    array, which has the given ``shape``. An ``index`` of None means that the array is the object itself. With
    ``as_stated``, rows that are stated with >= are not turned to <= as CVXPY does.
    """

    problem: cp.Problem
    variables: Mapping[str, Named]
    constraints: Mapping[str, Named]
    as_stated: bool = False


@dataclass(frozen=True)
class Named:
    """A CVXPY variable or constraint and the positions of its entries in the named array, see :class:`CvxpyModel`."""

    item: Any
    shape: tuple[int, ...]
    index: I64 | None = None


@dataclass(frozen=True)
class PyomoModel:
    """A Pyomo model with the axes of its named variables and constraints.

    An axis is the length of a dimension of the named array, whose Pyomo indices are 0, 1, ...; or the Pyomo indices
    themselves, in the order of the array. Such an index is a number, a string, or a tuple of these: ``chord[i,j,h]``
    may be an array of two dimensions, the pair (i,j) and h. ``labelled`` says whether results name these indices.
    """

    model: pyo.ConcreteModel
    variables: Mapping[str, tuple[Axis, ...]]
    constraints: Mapping[str, tuple[Axis, ...]]
    labelled: bool = False


@dataclass(frozen=True)
class Bound:
    """A bound on the optimum of a formulation, with its reason.

    ``value`` bounds the objective from above for a max problem and from below for a min problem; ``exact`` means
    that it is the optimum (a closed form). ``fraction`` is the bound before rounding, on the data read as decimals
    (:func:`opticoll.formulations.rounding.decimal`); None where it is found, or its data are given, in floating point.
    """

    name: str
    value: float
    reason: str
    paper: str = ""
    exact: bool = False
    detail: Mapping[str, Json] = field(default_factory=dict)
    fraction: Fraction | None = None

    @property
    def rational(self) -> Fraction | None:
        """The bound as a fraction: ``fraction``, or a value that is a whole number, as a count is."""
        if self.fraction is not None or not math.isfinite(self.value):
            return self.fraction
        whole = int(self.value)
        return Fraction(whole) if whole == self.value and abs(whole) < 2**53 else None


@dataclass(frozen=True)
class NeededSolution:
    """The solution of another formulation that is part of the data of one.

    Parameters
    ----------
    formulation
        Name of the other one.
    method
        Parameter that names the method for it; by default ``auto`` chooses it.
    settings
        Its settings: pairs of parameter and value.
    passed_on
        Parameters whose values it takes as well, if it has them.
    """

    formulation: str
    method: str | None = None
    settings: tuple[tuple[str, str], ...] = ()
    passed_on: tuple[str, ...] = ("demand",)

    def __str__(self) -> str:
        return self.formulation


#: The forms in which a model can be stated; methods of these names state it.
FORMS: tuple[Form, ...] = ("cvxpy", "pyomo", "matrix")


class Formulation:
    """A problem: a model with its data, how it is built, checked and bounded.

    A formulation is a subclass; an object of it is the formulation on one instance. The docstring of its module (or of
    the class, for one outside the package) states the mathematics. Required are ``name``, ``sense``, a method that
    states the model (``pyomo`` or ``cvxpy``; of several, the first one in the class is the default form),
    :meth:`residuals` and :meth:`objective`; everything else has a default. A method ``matrix`` states the model as
    sparse rows and columns, for methods that solve many models. The checker and the bounds use numpy alone, and nothing
    here calls a solver. A subclass without a name is a base of others. Methods and attributes with an underscore are
    between the package's formulations and its solvers, and no interface for others.

    An object keeps its instance as ``self.instance`` and the stated parameters as attributes of their names. A class
    with data of its own defines ``__init__(self, instance, *, root=0)``, whose arguments with defaults are then its
    parameters: their kinds are those of the annotations or defaults, and their help is the text below the name in the
    section "Parameters" of the docstring.

    ``values`` (of variables) and ``duals`` (of named constraints) are ``dict[str, ndarray]`` under the names of the
    docstring. Scalars are 0-d arrays.

    Attributes
    ----------
    name
        Such as ``alltoall.master``. The headline of the docstring is the title.
    where
        Where the paper states it, such as equation numbers.
    example
        Spec of a small instance, on which it is described.
    sense, problem
        Objective sense (``"min"`` or ``"max"``) and problem class (``"LP"`` or ``"MILP"``). An object may set its own
        if they depend on the instance; ``problem`` of the class is then the more general one.
    parameters
        What ``--set`` may change; by default the arguments of ``__init__`` that have defaults.
    concurrent
        Name of the variable F if the model is a concurrent flow: F is maximised, and scaling F and all flows by the
        same factor keeps every row except the capacities satisfied. The model can then be solved for T = 1/F.
    meaning
        Meaning of the objective, with its unit in brackets.
    variables, constraints
        What every dimension of a variable or a constraint counts: names of axes. Shapes, labels and positions in both
        builds follow (:mod:`opticoll.formulations.builders`), as do link loads and routes that are not stated
        (:mod:`opticoll.formulations.declared_axes`).
    units
        The units of variables. If one of them, or the ``meaning``, is in shards, a shard size gives bytes and, with a
        unit of capacity, seconds (:func:`counts_shards`).
    """

    name: ClassVar[str] = ""
    where: str = ""
    example: ClassVar[str] = "hypercube:3"
    sense: Literal["min", "max"] = "min"
    problem: Literal["LP", "MILP"] = "LP"
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    concurrent: ClassVar[str | None] = None
    meaning: str = ""
    variables: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    constraints: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    units: ClassVar[Mapping[str, str]] = {}
    #: The formulation whose solution is part of the data: :meth:`prepare` takes its values as third argument.
    _needs: ClassVar[NeededSolution | None] = None
    #: Modules whose functions with the names of methods (``bounds``, ``refute`` for ``_refute``) are the methods, and
    #: ``prepared``, of the class, the instance and the parameters by name, makes the object.
    _beside: ClassVar[tuple[ModuleType, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for module in vars(cls).get("_beside", ()):
            _take_methods(cls, module)
        if "parameters" not in vars(cls) and "__init__" in vars(cls):
            cls.parameters = parameters_of(cls)
        if is_own(cls) and cls.variables:
            _check_axes(cls)
        if isinstance(cls.variables, Mapping) and cls.variables:
            _follow_axes(cls)
        if is_own(cls) and cls.name:
            check_stated(cls)
        if is_own(cls) and "_label_invariant" not in vars(cls):  # what a derived class adds may name vertices
            cls._label_invariant = Formulation._label_invariant  # type: ignore[method-assign]
        if is_own(cls) and any(form in vars(cls) for form in FORMS):
            _relax_closed_forms(cls)

    def __init__(self, instance: Any, **parameters: Any) -> None:
        defaults = {one.name: one.default for one in self.parameters}
        for name, value in {**defaults, **parameters}.items():
            if name not in defaults:
                raise unknown_parameter(name, defaults, self.name)
            setattr(self, name, value)
        self.instance = instance

    def __str__(self) -> str:
        return self.name

    # the data

    @classmethod
    def prepare(cls, instance: Any, parameters: Settings | None = None, *needed: Any) -> Self:
        """The problem on an instance.

        Parameters
        ----------
        instance
            The instance.
        parameters
            Values by name, converted to their types; the others have their defaults. A function that makes data
            (``Parameter.constructs``) stays as it is.
        needed
            Values of the solution of ``_needs``, if there is one.

        Raises
        ------
        NotApplicable
            Where the formulation does not make sense.
        BadInput
            As for :func:`read_parameters`.
        """
        stated = dict(parameters or {})
        made = {one.name: stated.pop(one.name) for one in cls.parameters if one.constructs and one.name in stated}
        given = {**read_parameters(cls.parameters, stated, cls.name), **made}
        problem = cls._prepare(instance, dict(given), *needed)
        if is_own(cls) and not hasattr(problem, "instance"):  # one with its own __init__
            vars(problem)["instance"] = instance
        if "demand" in given and not hasattr(problem, "demand"):
            vars(problem)["demand"] = given["demand"]  # also of a frozen dataclass
        return problem

    @classmethod
    def _prepare(cls, instance: Any, given: dict[str, Any], *needed: Any) -> Self:
        """The problem on an instance, the value of every parameter given."""
        with blaming(cls):
            return cls(instance, *needed, **given)

    @property
    def demand_matrix(self) -> F64:
        """What every rank sends to every other [shards], ``(N, N)``: the parameter ``demand``, else 1.

        Raises
        ------
        ModelError
            If the object has that parameter, but was not made by :meth:`prepare` and does not keep ``self.demand``.
        """
        from opticoll.formulations import declared_axes

        return declared_axes.traffic(self)

    # the model

    def sets(self) -> Mapping[str, Sequence[Hashable] | DeclaredAxis]:
        """The members of the axes that are no part of the topology, by name: labels, or a range of numbers."""
        return {}

    def changeable(self) -> Changeable:
        """Data that ``oc.model(...).update`` changes in a model that is built: by symbol, the array and its axes."""
        return {}

    def cvxpy(self) -> CvxpyModel | cp.Problem:
        """The model in CVXPY's matrix form."""
        self._undefined("cvxpy")

    def pyomo(self) -> PyomoModel | pyo.ConcreteModel:
        """The model in Pyomo; the variables are named as in the model, and their indices are its own."""
        self._undefined("pyomo")

    def _undefined(self, method: str) -> NoReturn:
        msg = f"{self.name}: the class {type(self).__name__} does not define {method}"
        raise NotImplementedError(msg)

    def _estimate(self) -> dict[str, int] | None:
        """About the ``variables``, ``constraints`` and ``nonzeros`` of the matrix, by the axes; None if unknown."""
        from opticoll.formulations import declared_axes

        return declared_axes.size(self)

    def _unfold(self, values: Values) -> dict[str, F64]:
        """Add the named arrays of the docstring to a solver's values; for models with a flat list of variables."""
        return dict(values)

    def _feasible_basis(self) -> dict[str, Mask] | None:
        """The basic entries of variables and constraints in a basis that is feasible and near the optimum, by name.

        All others are at the bound that they have. None if none is known.
        """
        return None

    def _derived(self) -> Iterable[Fraction]:
        """Numbers of the matrix that are computed from the data rather than given there as decimals.

        Such as shares of a total: the exact values of the model's floats, for exact solving. Signs do not matter.
        """
        return ()

    # the checker

    def residuals(self, values: Values) -> dict[str, float]:
        """The worst violation of every block of constraints, computed with numpy alone.

        Violations are relative to the natural size of the block; a block with 0 or less is satisfied. The arrays are
        finite, and have the shapes and ranges that are declared: that is checked before.
        """
        self._undefined("residuals")

    def objective(self, values: Values) -> float:
        """The objective of a solution, computed with numpy alone."""
        self._undefined("objective")

    def repair(self, values: Values) -> dict[str, F64] | None:
        """An exactly feasible solution near an approximate one; None if there is none."""
        return None

    # bounds

    def bounds(self) -> list[Bound]:
        """Analytic bounds on the optimum."""
        return [bound for part in self._bound_parts().values() if (bound := part()) is not None]

    def _bound_parts(self) -> Mapping[str, Callable[[], Bound | None]]:
        """The :meth:`bounds` by name, where each is known without the others: a sweep needs one, a limit loses one."""
        return {}

    def _closed_forms(self) -> list[Bound]:
        """Those among :meth:`bounds` that are exact and cheap; every run is checked against them."""
        return []

    def certify(self, duals: Values) -> Bound | None:
        """A rigorous bound from any dual values, however inexact."""
        return None

    def _refute(self) -> Bound | None:
        """A bound that excludes every solution that the parameters allow. Nothing is solved then."""
        return None

    # what a solution says

    def metrics(self, value: float | None) -> Mapping[str, Json]:
        """Figures at a verified value, by name; at None, those of a formulation of the package that need no value.

        ``conditional_on`` is the restriction of the optimum by a parameter, as words that follow "optimal", such as
        "over the given paths (4 shortest paths)"; None if the value is optimal without it.
        """
        return {}

    def describe(self, values: Values) -> Mapping[str, Json]:
        """Properties of a verified solution, added to the metrics."""
        return {}

    def _arrays(self, names: Collection[str]) -> dict[str, Array] | None:
        """Axes and ranges of the arrays of a solution that consists of ``names``, and of duals for :meth:`certify`.

        Checked before any other method reads them. None: the variables of the model that was built.
        """
        return None

    def links(self, values: Values) -> Links:
        """The load of every link under a verified solution."""
        self._undefined("links")

    @classmethod
    def _label_invariant(cls, parameters: Settings) -> bool:
        """Whether isomorphic topologies have the same optimum: nothing depends on numbers of vertices and arcs.

        Neither a root nor ties between paths. By default this is not assumed, and ``opticoll sweep`` solves isomorphic
        copies too.
        """
        return False


def _take_methods(cls: type[Formulation], module: ModuleType) -> None:
    """Make methods of the functions of a module that have the names of methods, where the class defines none.

    The names of hooks have their underscore in the class only.
    """
    own = {name: one for name, one in vars(module).items() if getattr(one, "__module__", None) == module.__name__}
    for name in vars(Formulation):
        function = None if name.startswith("__") else own.get(name.removeprefix("_"))
        if function is not None and name not in vars(cls):
            setattr(cls, name, function)
    if (prepared := own.get("prepared")) is not None:
        cls._prepare = classmethod(  # type: ignore[method-assign,assignment]
            lambda kind, instance, given, *needed: prepared(kind, instance, *needed, **given)
        )


def _relax_closed_forms(cls: type[Formulation]) -> None:
    """Make inherited optima mere bounds: the model of a class that states it anew has rows that its base has not."""
    if "_closed_forms" not in vars(cls) and states(cls, "_closed_forms"):
        cls._closed_forms = Formulation._closed_forms  # type: ignore[method-assign]
    if "bounds" not in vars(cls):
        inherited = cls.bounds

        def bounds(self: Formulation) -> list[Bound]:
            return [replace(bound, exact=False) for bound in inherited(self)]

        cls.bounds = bounds  # type: ignore[method-assign]


def _follow_axes(cls: type[Formulation]) -> None:
    """Define what follows from the axes of variables, where the class does not define it itself."""
    from opticoll.formulations import declared_axes

    methods: dict[str, Any] = {"_arrays": declared_axes.arrays}
    if any(declared_axes.ARC in along for along in cls.variables.values()):
        methods["links"] = declared_axes.links
    if cls.concurrent is not None:
        methods["metrics"] = declared_axes.metrics
    if cls.concurrent in cls.variables:
        methods["objective"] = declared_axes.concurrent_objective
        stated = {name for kind in cls.__mro__[: cls.__mro__.index(Formulation)] for name in vars(kind)}
        declared_axes.state_concurrent_flow(cls, stated)
    for name, method in methods.items():
        if not states(cls, name):
            setattr(cls, name, method)


def _check_axes(cls: type[Formulation]) -> None:
    """Check the names of axes, and that units and the concurrent flow name variables with axes.

    Raises
    ------
    BadInput
        If they do not.
    """
    from opticoll.formulations import declared_axes

    for table in ("variables", "constraints"):
        for name, along in getattr(cls, table).items():
            if not isinstance(along, tuple) or not all(isinstance(axis, str) for axis in along):
                msg = f"formulation {cls.name!r}: {table}[{name!r}] must be a tuple of names such as ('arc', 'source')"
                raise BadInput(msg)
    for name, along in cls.variables.items():
        near = [(axis, get_close_matches(axis, declared_axes.KNOWN, n=1, cutoff=0.75)) for axis in along]
        wrong = next(((axis, close[0]) for axis, close in near if close and axis not in declared_axes.KNOWN), None)
        if wrong is not None:
            refuse(f"formulation {cls.name!r}", f"variables[{name!r}] has {wrong[0]!r}; did you mean {wrong[1]!r}?")
    if "units" not in vars(cls):  # those of a class from which it is derived
        cls.units = {name: unit for name, unit in cls.units.items() if name in cls.variables}
    for name, unit in cls.units.items():
        if not isinstance(unit, str):
            refuse(f"formulation {cls.name!r}", f"units[{name!r}] must be a text such as 'shards', not {unit!r}")
    for name in (*cls.units, *([] if cls.concurrent is None else [cls.concurrent])):
        if name not in cls.variables:
            what = "concurrent" if name == cls.concurrent else "units"
            stated = ", ".join(cls.variables)
            refuse(f"formulation {cls.name!r}", f"{what} names {name!r}, which is none of the variables: {stated}")
    if cls.concurrent is not None and (cls.variables[cls.concurrent] != () or vars(cls).get("sense", "max") != "max"):
        refuse(f"formulation {cls.name!r}", f"the concurrent flow {cls.concurrent} has the axes () and is maximised")


def of_kind(kind: type[T], instance: object, where: str, needed: str) -> T:
    """The instance, if it is of the kind that is ``needed``, in words.

    Raises
    ------
    NotApplicable
        If it is not.
    """
    if not isinstance(instance, kind):
        refuse(where, f"needs {needed}, not {getattr(instance, 'spec', type(instance).__name__)}", NotApplicable)
    return instance


def states(formulation: Formulation | type[Formulation], method: str) -> bool:
    """Whether a formulation defines a method that has a default, such as ``certify`` or ``links``."""
    kind = formulation if isinstance(formulation, type) else type(formulation)
    stated, default = getattr(kind, method, None), getattr(Formulation, method, None)
    return stated is not default and getattr(stated, "__func__", None) is not getattr(default, "__func__", 0)


def is_own(formulation: Formulation | type[Formulation]) -> bool:
    """Whether a formulation is defined outside the package: in a plug-in, a script or a notebook."""
    kind = formulation if isinstance(formulation, type) else type(formulation)
    return not kind.__module__.startswith("opticoll.")


def title_of(formulation: Formulation | type[Formulation]) -> str:
    """The headline of the docstring that states the mathematics; the name if there is none.

    A class from outside the package may state a ``title`` instead.
    """
    import inspect

    kind = formulation if isinstance(formulation, type) else type(formulation)
    if is_own(kind) and isinstance(stated := getattr(kind, "title", None), str) and stated.strip():
        return stated
    text = kind.__doc__ if is_own(kind) else sys.modules[kind.__module__].__doc__
    headline, _, _ = inspect.cleandoc(text or "").partition("\n\n")
    return " ".join(headline.split()).rstrip(".") or kind.name


def counts_shards(formulation: Formulation | type[Formulation]) -> bool:
    """Whether a unit of the variables, or of the objective, is in shards."""
    return any("shard" in text for text in (*formulation.units.values(), str(formulation.meaning)))


def forms_of(formulation: Formulation | type[Formulation]) -> tuple[Form, ...]:
    """The forms in which a model is stated, in the order of their methods in the class: the default one first.

    A class from outside the package that states a form anew has no others: those of its base lack what it adds.
    """
    kind = formulation if isinstance(formulation, type) else type(formulation)
    stated: list[str] = []
    for one in kind.__mro__:
        stated += [form for form in vars(one) if form in FORMS and states(kind, form)]
        if stated and is_own(one):
            break
    return tuple(dict.fromkeys(cast("Iterable[Form]", stated)))


def build_model(formulation: Formulation, form: str | None = None) -> CvxpyModel | PyomoModel | StandardForm | Any:
    """The model in one of its forms, the default one if None."""
    layer = form or forms_of(formulation)[0]
    import_layer(layer)
    with many_objects():
        return getattr(formulation, layer)()


def check_stated(cls: type[Formulation]) -> None:
    """Check the class attributes and methods of a formulation from outside.

    Raises
    ------
    BadInput
        With the name of the first that is missing or wrong.
    """
    where = f"formulation {cls.name!r}"
    if not isinstance(cls.name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", cls.name):
        refuse(f"class {cls.__name__}", f"name must consist of letters, digits, '.', '-' and '_', not {cls.name!r}")
    for word in ("where", "example", "meaning"):
        value = getattr(cls, word)
        if isinstance(value, property):  # depends on the parameters
            continue
        if not isinstance(value, str):
            refuse(where, f"{word} must be a string, not {value!r}")
    for word, choices in (("sense", ("min", "max")), ("problem", ("LP", "MILP"))):
        if getattr(cls, word) not in choices:
            refuse(where, f"{word} must be {' or '.join(map(repr, choices))}, not {getattr(cls, word)!r}")
    if not forms_of(cls):
        refuse(where, f"state the model in a method cvxpy(self) or pyomo(self) of the class {cls.__name__}")
    for method in ("residuals", "objective"):
        if not states(cls, method):
            refuse(where, f"define the method {method}(self, values) of the class {cls.__name__}")
    _check_methods(cls, where)
    _check_misspelt(cls, where)
    _check_parameters(cls, where)


def _check_methods(cls: type[Formulation], where: str) -> None:
    """Refuse methods that cannot be called as those of :class:`Formulation` that they replace."""
    import inspect

    for name, default in vars(Formulation).items():
        if name.startswith("_") or not (callable(default) or isinstance(default, classmethod)):
            continue
        stated = inspect.getattr_static(cls, name)
        if not callable(stated) and not isinstance(stated, (classmethod, staticmethod)):
            refuse(where, f"{name} must be a method, not {stated!r}")
        if not inspect.isfunction(stated) or stated is default:
            continue
        if isinstance(default, classmethod):
            refuse(where, f"{name} must be a class method; write @classmethod above it")
        taken = [one.name for one in inspect.signature(default).parameters.values()]
        try:
            inspect.signature(stated).bind(*taken)
        except TypeError:
            msg = f"{where}: {name} must take ({', '.join(taken)}), not {_arguments(stated)}"
            raise BadInput(msg) from None


def _check_misspelt(cls: type[Formulation], where: str) -> None:
    """Refuse names that are nearly those of :class:`Formulation`: nothing would call or read them."""
    known = {name: callable(value) for name, value in vars(Formulation).items() if not name.startswith("_")}
    taken = {*known, *(one.name for one in cls.parameters)}
    for name, stated in vars(cls).items():
        if name.startswith("_") or name in taken or not (callable(stated) or isinstance(stated, Mapping | tuple | str)):
            continue
        alike = [one for one, is_method in known.items() if is_method == callable(stated)]
        if close := get_close_matches(name, alike, n=1, cutoff=0.8 if isinstance(stated, str) else 0.84):
            verb = "calls" if callable(stated) else "reads"
            refuse(where, f"nothing {verb} {name}; did you mean {close[0]!r}? A name of your own may begin with '_'")


def _check_parameters(cls: type[Formulation], where: str) -> None:
    """Refuse parameters that are none, or that the class cannot be given."""
    import inspect

    check_listed(cls.parameters, where)
    if cls.__init__ is Formulation.__init__:
        clash = next((one.name for one in cls.parameters if hasattr(cls, one.name) or one.name == "instance"), None)
        if clash is not None:
            refuse(where, f"the parameter {clash!r} has the name of an attribute; choose another, or define __init__")
    elif not (states(cls, "prepare") or states(cls, "_prepare")):
        try:
            inspect.signature(cls.__init__).bind_partial(**{one.name: one.default for one in cls.parameters})
        except TypeError:
            names = ", ".join(one.name for one in cls.parameters)
            msg = f"{where}: __init__ must take the parameters {names}, not {_arguments(cls.__init__)}"
            raise BadInput(msg) from None


def _arguments(function: Any) -> str:
    """Names of the arguments of a function, in parentheses."""
    import inspect

    return f"({', '.join(inspect.signature(function).parameters)})"
