r"""Test a bound on many instances: violations, tightness, the smallest counterexample, tables and plots.

Every case is one instance. A run of the formulation gives an interval [lower, upper] that contains its optimum: one end
is the value of a verified solution, the other a certified bound. A claimed bound b is compared with it:

    sense lower (optimum >= b)   violated if b > upper (1 + tol)
    sense upper (optimum <= b)   violated if b < lower (1 - tol)

so that a violation is certain, whether or not the optimum is proven. Otherwise the bound holds if the optimum is
proven, and the case is undecided if not. The tightness of a bound is b / optimum; 1 means that the bound is attained.

Isomorphic topologies count as one case (:func:`opticoll.instances.symmetry.isomorphism_classes`) where the formulation
states that its optimum is the same for them (``label_invariant``) and the bound has the same value. The runs are cells
of a study: they are recorded in the store, and a repeated sweep runs only what has no answer yet. Bounds
are evaluated again each time, before anything is solved; cases to which the bound does not apply are not solved.
"""

from __future__ import annotations

import inspect
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from opticoll.errors import BadInput, SolverUnavailable
from opticoll.instances import Instance, Topology, as_instance, parse
from opticoll.instances.plugins import FAULTS, load_plugin
from opticoll.instances.spec import expand, nearest
from opticoll.solvers.task import PROVEN, Fields, Task, plain, texts

if TYPE_CHECKING:
    import os

    import pandas as pd
    from matplotlib.figure import Figure

    from opticoll.analysis.store.records import Store
    from opticoll.formulations import Formulation
    from opticoll.instances.types import Seconds
    from opticoll.solvers.task import Record


Sense = Literal["lower", "upper"]


class Status(StrEnum):
    """Outcome of one case."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNDECIDED = "undecided"
    INAPPLICABLE = "inapplicable"
    ERROR = "error"


class Case(Fields, frozen=True, kw_only=True):
    """One isomorphism class of instances: the optimum, the bound, and their ratio.

    ``case`` is a spec; ``copies`` counts the instances of the class. ``lower`` and ``upper`` enclose the optimum.
    ``optimum`` and ``ratio`` (bound / optimum) are None unless the optimum is proven; ``optimum_exact`` is a fraction
    if it was requested and proven.
    """

    case: str
    n: int
    arcs: int | None = None
    copies: int = 1
    status: Status
    bound: float | None = None
    optimum: float | None = None
    optimum_exact: str | None = None
    lower: float | None = None
    upper: float | None = None
    ratio: float | None = None
    message: str | None = None


class Tightness(Fields, frozen=True, kw_only=True):
    """Distribution of bound / optimum over the cases with a proven optimum; ``exact`` counts ratios of 1."""

    min: float
    lower_quartile: float
    median: float
    upper_quartile: float
    max: float
    exact: int


class SweepResult(Fields, frozen=True, kw_only=True):
    """The result of a sweep; also the JSON object of ``opticoll sweep --json``.

    ``instances`` counts all instances, ``classes`` the cases, see above; the other counts are of cases. ``decided``
    are those that hold or are violated. ``counterexample`` is the violated case with the fewest vertices, then arcs.
    """

    formulation: str
    bound: str
    quantity: str
    sense: Sense
    method: str
    settings: dict[str, str]
    over: list[str]
    instances: int
    classes: int
    decided: int
    violations: int
    undecided: int
    inapplicable: int
    errors: int
    tightness: Tightness | None
    counterexample: str | None
    interrupted: bool
    cases: list[Case]

    @property
    def frame(self) -> pd.DataFrame:
        """One row per case, with the fields of :class:`Case`."""
        import pandas as pd

        return pd.DataFrame([plain(case) for case in self.cases], columns=list(Case.__struct_fields__))

    def plot(self) -> Figure:
        """Draw the distribution of the tightness, and the bound against the optimum."""
        from opticoll.analysis.plots.model_plots import bound_sweep

        what = self.quantity if self.quantity != "objective" else "objective [units of the formulation]"
        return bound_sweep(self.frame, title=f"{self.bound}: {self.sense} bound, {self.formulation}", quantity=what)

    def save(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write ``cases.csv``, ``sweep.json``, ``sweep.svg`` and ``sweep.png`` into a folder; returns the files.

        Raises
        ------
        BadInput
            If the folder cannot be written.
        """
        from opticoll.analysis.plots.style import png, svg

        target, figure = Path(folder), self.plot()
        files: dict[str, bytes] = {
            "cases.csv": self.frame.to_csv(index=False).encode(),
            "sweep.json": (json.dumps(plain(self), allow_nan=False) + "\n").encode(),
            "sweep.svg": svg(figure).encode(),
            "sweep.png": png(figure),
        }
        try:
            target.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (target / name).write_bytes(content)
        except OSError as error:
            msg = f"{target}: cannot be written: {error.strerror}; name another folder"
            raise BadInput(msg) from error
        return [target / name for name in files]

    @property
    def summary(self) -> dict[str, str]:
        """The result in words, one entry per line."""
        lines = {
            "claim": f"{self.quantity} {'>=' if self.sense == 'lower' else '<='} bound",
            "cases": f"{self.instances} instances, {self.classes} up to isomorphism",
            "violations": f"{self.violations} of {self.decided} decided cases",
        }
        rest = {"undecided": self.undecided, "not applicable": self.inapplicable, "errors": self.errors}
        lines |= {name: str(count) for name, count in rest.items() if count}
        if self.tightness is not None:
            t = self.tightness
            quartiles = f"quartiles {t.lower_quartile:.6g}, {t.median:.6g}, {t.upper_quartile:.6g}"
            attained = f"attained in {t.exact} case{'s' * (t.exact != 1)}"
            lines["bound / optimum"] = f"min {t.min:.6g}, {quartiles}, max {t.max:.6g}; {attained}"
        if self.counterexample is not None:
            lines["smallest counterexample"] = self.counterexample
        if self.interrupted:
            lines["interrupted"] = "run the same command again to resume"
        return lines

    def __repr__(self) -> str:
        width = max(map(len, self.summary))
        rows = (f"  {name:{width}}  {text}" for name, text in self.summary.items())
        return "\n".join([f"Sweep of {self.bound} over {self.formulation}", *rows])


#: A bound: a function of the instance, or of the instance and the formulation's data. None where it does not apply.
BoundFunction = Callable[..., float | None]

#: Relative difference up to which a bound counts as attained, and beyond which as violated.
TOLERANCE = 1e-6
#: Field of a record that holds the fraction of a quantity.
_EXACT = {"objective": "objective_exact", "T": "T_exact"}


@dataclass(frozen=True)
class _Class:
    """A representative of an isomorphism class of instances."""

    instance: Instance
    copies: int

    @property
    def name(self) -> str:
        return self.instance.spec


@dataclass(frozen=True)
class _Quantity:
    """The bounded quantity (the objective, T = 1 / F, or a metric) and the sense of the bound."""

    name: str
    sense: Sense
    metric: bool = False
    inverse: bool = False

    def interval(self, record: Record) -> tuple[float | None, float | None, float | None]:
        """Lower end, upper end and proven value; None where it is unknown."""
        proven = record.verified is True and record.proof in PROVEN
        if self.metric:
            value = (record.metrics or {}).get(self.name)
            value = float(value) if proven and isinstance(value, (int, float)) else None
            return value, value, value
        value = record.objective if record.verified is True else None
        ends = [record.bound, value] if record.sense == "min" else [value, record.bound]
        if self.inverse:
            ends = [_inverse(end) for end in reversed(ends)]
            value = _inverse(value)
        return ends[0], ends[1], value if proven else None


def _inverse(value: float | None) -> float | None:
    return 1 / value if value else None


def sweep(
    formulation: str | type[Formulation],
    bound: str | BoundFunction,
    over: object,
    *,
    on: str = "objective",
    sense: Sense | None = None,
    settings: Mapping[str, object] | None = None,
    method: str = "auto",
    time_limit: Seconds | None = None,
    tol: float = TOLERANCE,
    exact: bool = False,
    keep_copies: bool = False,
    store: Store | str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    dask: str | None = None,
) -> SweepResult:
    """Test a bound on the optimum of a formulation on many instances.

    Parameters
    ----------
    formulation
        Name of the formulation, or a formulation of your own.
    bound
        A function ``bound(instance) -> float | None`` or ``bound(instance, data)``, where ``data`` is what the
        formulation's ``prepare`` returns; the name of a bound of the formulation, also one from the ``BOUNDS`` of a
        plug-in; or ``"FILE.py:FUNCTION"``.
    over
        An instance, a spec with braces (``"genkautz:n={8..64},d=4"``) or of a population (``"all-digraphs:n=5,d=2"``),
        an object that ``oc.solve`` takes as an instance (a networkx graph, a matrix, a DataFrame), or a list of these.
    on
        What is bounded: ``"objective"``, ``"T"`` (= 1/F, where that is the time), or a metric of the solution.
    sense
        ``"lower"`` or ``"upper"``. By default the sense of the relaxation: a lower bound on an objective that is
        minimised and on T, an upper bound on one that is maximised. Required for a metric.
    settings, method, time_limit
        As in ``oc.solve``, for every case.
    tol
        Relative gap at which an optimum counts as proven, and relative tolerance of the comparison.
    exact
        Also solve every case in rational arithmetic: a counterexample then has its optimum as a fraction.
    keep_copies
        Solve isomorphic copies too. They are always solved if their optima may differ: with a demand, with paths chosen
        by number, for a metric, and for formulations that do not state ``label_invariant``.
    store
        A store or its folder; by default ``$OPTICOLL_STORE``, or ``results``.
    jobs, dask
        Number of cases to run at a time, or the address of a Dask scheduler.

    Returns
    -------
    SweepResult
        Returned after Ctrl-C as well: finished cases stay recorded, and the same call resumes.

    Raises
    ------
    BadInput
        For anything that can be refused before a case runs, and for a function that fails on every case.
    SolverUnavailable
        If the solver can run no case.
    """
    from opticoll.analysis.store.records import Store
    from opticoll.analysis.study.running import run_with_progress
    from opticoll.analysis.study.study_file import study_of
    from opticoll.formulations.registry import formulation as find
    from opticoll.formulations.registry import named

    model = find(formulation)
    stated = model.name if named(model) else model  # workers look up a named bound themselves
    given = dict(settings or {})
    function, label = _bound_function(bound)
    quantity = _quantity(model, on, sense, named=function is None)
    specs, instances = _instances(over)
    alike = not keep_copies and not quantity.metric and _label_invariant(model, given)
    classes = _classes(model, function or label, instances, given, merged=alike)
    if quantity.inverse:
        _refuse_without_time(model, classes[0].instance, given)
    limits: dict[str, Any] = {"time_limit_s": time_limit, "tol": tol, "exact": exact}
    tasks = [Task(stated, one.instance, method, settings=given, **limits) for one in classes]
    study = study_of("sweep", tasks)
    if all(cell.unavailable is not None for cell in study.cells):
        raise SolverUnavailable(str(study.cells[0].unavailable))
    values = _evaluate(model, function or label, classes, given, quantity)
    home = store if isinstance(store, Store) else Store(store)
    bounded = tuple(cell for cell, value in zip(study.cells, values, strict=True) if isinstance(value, float))
    summary = run_with_progress(replace(study, cells=bounded), home, jobs, dask)
    if summary.results and all(result.status == "unavailable" for result in summary.results.values()):
        raise SolverUnavailable(next(iter(summary.results.values())).message)
    answers = home.answered(set(summary.results))
    cases: list[Case] = []
    for one, cell, value in zip(classes, study.cells, values, strict=True):
        result = summary.results.get(cell.key)
        if result is None and isinstance(value, float):
            continue  # interrupted
        attempts = [] if result is None or cell.key in answers else home.attempts(cell.key)
        record = answers.get(cell.key) or (attempts[-1] if attempts else None)
        cases.append(_case(one, value, record, quantity, tol, "" if result is None else result.message))
    _check_metric(quantity, [*answers.values()])
    return _result(
        model, label, quantity, method, given, specs, len(instances), len(classes), cases, summary.interrupted
    )


def _bound_function(bound: str | BoundFunction) -> tuple[BoundFunction | None, str]:
    """A function, if the bound is one, and the name of the bound."""
    if callable(bound):
        return bound, getattr(bound, "__name__", "bound")
    file, colon, name = bound.rpartition(":")
    if not colon:
        return None, bound
    try:
        module = load_plugin(file, contributes=False)
    except BadInput as error:
        msg = f"--bound {bound}: {error}"
        raise BadInput(msg) from error
    function = getattr(module, name, None)
    if not callable(function):
        known = [key for key, item in vars(module).items() if inspect.isfunction(item)]
        msg = (
            f"--bound {bound}: {file} has no function {name!r}; {nearest(name, known) if known else 'it defines none'}"
        )
        raise BadInput(msg)
    return function, name


def _quantity(model: type[Formulation], on: str, sense: Sense | None, *, named: bool) -> _Quantity:
    natural: Sense = "upper" if model.sense == "max" else "lower"
    if on == "objective" or (on == "F" and model.concurrent is not None):
        result = _Quantity(on, sense or natural)
    elif on == "T" and model.concurrent is not None:
        natural = "lower"
        result = _Quantity("T", sense or natural, inverse=True)
    elif sense is None or named:
        msg = f"--on {on}: a bound on a metric is a function FILE.py:FUNCTION and needs --sense lower or --sense upper"
        raise BadInput(msg)
    else:
        return _Quantity(on, sense, metric=True)
    if named and result.sense != natural:
        msg = f"--sense {sense}: the bounds of {model.name} are {natural} bounds; omit --sense"
        raise BadInput(msg)
    return result


def _refuse_without_time(model: type[Formulation], instance: Instance, settings: Mapping[str, Any]) -> None:
    """Refuse ``on="T"`` where 1/F is not the time of the collective."""
    from opticoll.solvers.methods.registry import prepared

    data = prepared(model, instance, _parameters(model, settings))
    if "T" not in data.metrics(1.0):
        msg = f"--on T: 1/F of {model.name} with these settings is not the time of a collective; use --on objective"
        raise BadInput(msg)


def _check_metric(quantity: _Quantity, records: Sequence[Record]) -> None:
    known = {
        name for record in records for name, value in (record.metrics or {}).items() if isinstance(value, (int, float))
    }
    if quantity.metric and records and quantity.name not in known:
        msg = f"--on {quantity.name}: no such metric; {nearest(quantity.name, ['objective', *sorted(known)])}"
        raise BadInput(msg)


def _instances(over: object) -> tuple[list[str], list[Instance]]:
    """The specs as given, and the instances that they describe."""
    from opticoll.instances.families.regular_graphs import digraph_spec

    listed = list(over) if isinstance(over, (list, tuple, set, frozenset, Iterator)) else [over]
    specs: list[str] = []
    instances: list[Instance] = []
    for item in listed:
        if isinstance(item, str):
            specs.append(item)
            instances += [parse(spec) for spec in expand(item)]
        else:
            value = as_instance(item)
            spec = digraph_spec(value) if isinstance(value, Topology) and value.spec.startswith("custom") else None
            specs.append(spec or value.spec)
            instances.append(value if spec is None else parse(spec))
    if not instances:
        msg = "--over names no instance; write for example --over 'ring:{4..8}'"
        raise BadInput(msg)
    return specs, instances


def _label_invariant(model: type[Formulation], settings: Mapping[str, object]) -> bool:
    """Whether isomorphic topologies have the same optimum with these settings."""
    return model.label_invariant(_parameters(model, settings))


def _parameters(model: type[Formulation], settings: Mapping[str, object]) -> dict[str, Any]:
    from opticoll.formulations.model import read_parameters

    own = {p.name for p in model.parameters}
    return read_parameters(model.parameters, {k: v for k, v in settings.items() if k in own}, model.name)


def _classes(
    model: type[Formulation],
    bound: BoundFunction | str,
    instances: list[Instance],
    settings: Mapping[str, object],
    *,
    merged: bool,
) -> list[_Class]:
    """One representative per isomorphism class and value of the bound if ``merged``, or per instance.

    Equal instances are always one case. Only a user's function can have several values in a class.
    """
    from opticoll.instances.symmetry import isomorphism_classes

    equal: dict[Instance, int] = {}
    first = [equal.setdefault(one, place) for place, one in enumerate(instances)]
    compared = [place for place in equal.values() if merged and type(instances[place]) is Topology]
    topologies = [one for place in compared if isinstance(one := instances[place], Topology)]
    of_class = {place: compared[c] for place, c in zip(compared, isomorphism_classes(topologies), strict=True)}
    if not isinstance(bound, str):
        members = Counter(of_class.values())
        takes_data, parameters = _takes_data(bound), _parameters(model, settings)
        distinct: dict[tuple[int, str], int] = {}
        for place, top in of_class.items():
            if members[top] > 1:
                data = _data_of(model, instances[place], parameters, takes_data)
                value = _called(bound, _Class(instances[place], 1), data)
                text = f"{value:.9g}" if isinstance(value, float) else str(value)
                of_class[place] = distinct.setdefault((top, text), place)
    counts = Counter(of_class.get(place, place) for place in first)
    return [_Class(instances[place], copies) for place, copies in counts.items()]


def _data_of(
    model: type[Formulation], instance: Instance, parameters: Mapping[str, Any], taken: bool
) -> tuple[Any, ...]:
    """The second argument of a bound: the formulation's data, or none."""
    from opticoll.solvers.methods.registry import prepared

    if not taken:
        return ()
    if model.needs is not None:
        msg = f"{model.name} takes its data from a solution of {model.needs}; give a bound of the instance alone"
        raise BadInput(msg)
    return (prepared(model, instance, parameters),)


def _evaluate(
    model: type[Formulation],
    bound: BoundFunction | str,
    classes: list[_Class],
    settings: Mapping[str, object],
    quantity: _Quantity,
) -> list[float | Exception | None]:
    """The bound of every case: a number, None where it does not apply, or the error that it raised."""
    parameters = _parameters(model, settings)
    takes_data = isinstance(bound, str) or _takes_data(bound)
    values: list[float | Exception | None] = []
    names: set[str] = set()
    for one in classes:
        data = _data_of(model, one.instance, parameters, takes_data)
        if isinstance(bound, str):
            value = _named(model, bound, one, data[0], names)
            values.append(_inverse(value) if quantity.inverse and isinstance(value, float) else value)
        else:
            values.append(_called(bound, one, data))
    if isinstance(bound, str) and bound not in names:
        msg = f"--bound {bound}: {model.name} has no bound of this name here; {nearest(bound, sorted(names))}"
        raise BadInput(msg + "; or write FILE.py:FUNCTION")
    errors = [value for value in values if isinstance(value, Exception)]
    if len(errors) == len(values):
        msg = f"--bound: the function fails on every case, first on {classes[0].name}: {errors[0]}"
        raise BadInput(msg)
    return values


def _named(
    model: type[Formulation], bound: str, one: _Class, data: Formulation, names: set[str]
) -> float | Exception | None:
    """The bound called ``bound`` of the formulation or of a plug-in; adds the names that exist to ``names``."""
    from opticoll.formulations.registry import bounds_of, plugin_bounds

    own = bounds_of(data)
    result = {b.name: float(b.value) for b in own}
    error: Exception | None = None
    if bound not in result:
        try:
            result |= {b.name: float(b.value) for b in plugin_bounds(data, one.instance, own)}
        except FAULTS as raised:  # the user's own code
            error = ValueError(_one_line(raised))
            names.add(bound)
    names.update(result)
    return result.get(bound, error)


def _takes_data(function: BoundFunction) -> bool:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds for p in inspect.signature(function).parameters.values()) > 1


def _called(function: BoundFunction, one: _Class, data: tuple[Any, ...]) -> float | Exception | None:
    try:
        value = function(one.instance, *data)
    except FAULTS as error:  # the user's own code
        return ValueError(_one_line(error))
    if value is None:
        return None
    try:
        number = float(getattr(value, "value", value))
    except (TypeError, ValueError):
        return ValueError(f"returned {value!r}; return a number, or None where the bound does not apply")
    if not math.isfinite(number):
        return ValueError(f"returned {number}; return a finite number, or None where the bound does not apply")
    return number


def _one_line(error: BaseException) -> str:
    """An error of the user's code with its location."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = "" if trace is None else f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ") + at


def _case(
    one: _Class, value: float | Exception | None, record: Record | None, quantity: _Quantity, tol: float, message: str
) -> Case:
    known: dict[str, Any] = {
        "case": one.name,
        "n": one.instance.n,
        "copies": one.copies,
        "arcs": getattr(one.instance, "arcs", None),
    }
    lower, upper, optimum = (None, None, None) if record is None else quantity.interval(record)
    known |= {"lower": lower, "upper": upper, "optimum": optimum}
    if record is not None and quantity.name in _EXACT:
        known["optimum_exact"] = {**record, **(record.metrics or {})}.get(_EXACT[quantity.name])
    if isinstance(value, Exception):
        return Case(**known, status=Status.ERROR, message=str(value))
    if value is None:
        return Case(**known, status=Status.INAPPLICABLE, message="the bound does not apply")
    if record is not None and record.infeasible_by is not None:
        return Case(**known, bound=value, status=Status.INAPPLICABLE, message="the case has no solution")
    if quantity.sense == "lower":
        violated = upper is not None and value > upper + tol * abs(upper)
    else:
        violated = lower is not None and value < lower - tol * abs(lower)
    ratio = None
    if optimum is not None:
        ratio = value / optimum if optimum else (1.0 if value == 0 else None)
    status = Status.VIOLATED if violated else Status.UNDECIDED if optimum is None else Status.HOLDS
    why = " ".join(message.split()) or "the optimum is not proven within the limits"
    shown = why if status is Status.UNDECIDED else None
    return Case(**known, bound=value, ratio=ratio, status=status, message=shown)


def _result(
    model: type[Formulation],
    label: str,
    quantity: _Quantity,
    method: str,
    settings: Mapping[str, object],
    over: list[str],
    instances: int,
    classes: int,
    cases: list[Case],
    interrupted: bool,
) -> SweepResult:
    count = Counter(case.status for case in cases)
    violated = [case for case in cases if case.status is Status.VIOLATED]
    smallest = min(violated, key=lambda case: (case.n, case.arcs or 0, case.case), default=None)
    return SweepResult(
        formulation=model.name,
        bound=label,
        quantity=quantity.name,
        sense=quantity.sense,
        method=method,
        settings=texts(settings),
        over=over,
        instances=instances,
        classes=classes,
        decided=count[Status.HOLDS] + count[Status.VIOLATED],
        violations=count[Status.VIOLATED],
        undecided=count[Status.UNDECIDED],
        inapplicable=count[Status.INAPPLICABLE],
        errors=count[Status.ERROR],
        tightness=_tightness([case.ratio for case in cases if case.ratio is not None]),
        counterexample=None if smallest is None else smallest.case,
        interrupted=interrupted,
        cases=cases,
    )


def _tightness(ratios: list[float]) -> Tightness | None:
    import numpy as np

    if not ratios:
        return None
    low, first, middle, third, high = np.quantile(ratios, [0, 0.25, 0.5, 0.75, 1]).tolist()
    exact = sum(abs(ratio - 1) <= TOLERANCE for ratio in ratios)
    return Tightness(min=low, lower_quartile=first, median=middle, upper_quartile=third, max=high, exact=exact)
