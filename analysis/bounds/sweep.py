r"""Test a bound on many instances: violations, tightness, the smallest counterexample, tables and plots.

Every case is one instance, compared as :mod:`opticoll.analysis.bounds.bound_comparison` says, so that a violation is
certain, whether or not the optimum is proven. Otherwise the bound holds if the optimum is proven, and the case is
undecided if not. The tightness of a bound is bound / optimum; 1 means that the bound is attained.

Isomorphic topologies count as one case (:func:`opticoll.instances.symmetry.isomorphism_classes`) where the formulation
states that its optimum is the same for them (``label_invariant``) and the bound has the same value. The runs are cells
of a study: they are recorded in the store, and a repeated sweep runs only what has no answer yet. Bounds
are evaluated again each time, before anything is solved; cases to which the bound does not apply are not solved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opticoll.analysis.bounds.bound_comparison import SAME, TOLERANCE, Case, Quantity, Status, compared
from opticoll.analysis.bounds.bound_values import (
    BoundFunction,
    ComparedBound,
    bound_function,
    called,
    data_of,
    evaluated,
    parameters_of,
    takes_data,
)
from opticoll.analysis.bounds.bounded_quantity import Sense, declaration
from opticoll.analysis.rendering import Listing, Printed
from opticoll.arguments import check_mapping, number
from opticoll.errors import BadInput, SolverUnavailable
from opticoll.instances import Instance, Topology, parse
from opticoll.instances.readers.objects import as_instance
from opticoll.instances.spec import expand, is_population
from opticoll.nearest_names import nearest
from opticoll.solvers.task import Fields, Task, plain, texts

if TYPE_CHECKING:
    import os

    import pandas as pd

    from opticoll.analysis.store.records import Store
    from opticoll.analysis.study.running import Summary
    from opticoll.analysis.study.study_file import Study
    from opticoll.formulations import Formulation
    from opticoll.solvers.task import Record
    from opticoll.types import Seconds


#: Maximum number of cases in a table, and the columns of values of an exact sweep.
MOST_CASES = 40
EXACT_VALUES = ["bound_exact", "optimum_exact", "excess"]


class Tightness(Fields, frozen=True, kw_only=True):
    """Distribution of bound / optimum over the cases with a proven optimum; ``exact`` counts where they are equal."""

    min: float
    lower_quartile: float
    median: float
    upper_quartile: float
    max: float
    exact: int


class SweepResult(Printed, Fields, frozen=True, kw_only=True):
    """The result of a sweep; also the JSON object of ``opticoll sweep --json``.

    ``instances`` counts all instances, ``classes`` the cases, see above; the other counts are of cases. ``decided``
    are those that hold or are violated. ``counterexample`` is the violated case with the fewest vertices, then arcs.
    ``exact`` says that fractions were compared.
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
    exact: bool
    cases: list[Case]

    @property
    def frame(self) -> pd.DataFrame:
        """One row per case, with the fields of :class:`Case`."""
        import pandas as pd

        return pd.DataFrame([plain(case) for case in self.cases], columns=list(Case.__struct_fields__))

    @property
    def _title(self) -> str:
        return f"sweep of {self.bound} over {self.formulation}"

    def lines(self) -> dict[str, str]:
        """The result in words, by name of the line."""
        lines = {
            "claim": f"{self.quantity} {'>=' if self.sense == 'lower' else '<='} bound",
            "cases": f"{self.instances} instances, {self.classes} up to isomorphism",
            "violations": f"{self.violations} of {self.decided} decided cases",
        }
        rest = {"undecided": self.undecided, "not applicable": self.inapplicable, "errors": self.errors}
        lines |= {name: str(count) for name, count in rest.items() if count}
        if self.tightness is not None:
            t, digits = self.tightness, 15 if self.exact else 6
            quartiles = ", ".join(f"{value:.{digits}g}" for value in (t.lower_quartile, t.median, t.upper_quartile))
            attained = f"attained in {t.exact} case{'s' * (t.exact != 1)}"
            ends = f"min {t.min:.{digits}g}, quartiles {quartiles}, max {t.max:.{digits}g}"
            lines["bound / optimum"] = f"{ends}; {attained}"
        within = [] if self.exact else [one.excess for one in self.cases if one.status is Status.HOLDS and one.excess]
        way = 1 if self.sense == "lower" else -1
        past = [way * one for one in within if way * one > SAME]
        if past:
            lines["within the tolerance"] = (
                f"{len(past)} bounds pass the optimum, by up to {max(past):.2g}; an exact sweep tells"
            )
        if self.counterexample is not None:
            lines["smallest counterexample"] = self._counterexample()
        if self.interrupted:
            lines["interrupted"] = "run the same command again to resume"
        return lines

    def _counterexample(self) -> str:
        """The counterexample, with the fractions that were compared."""
        case = next(case for case in self.cases if case.case == self.counterexample)
        if case.bound_exact is None:
            return case.case
        sign = ">" if self.sense == "lower" else "<"
        return f"{case.case}: bound {case.bound_exact} {sign} optimum {case.optimum_exact}"

    def tables(self) -> list[Listing]:
        """The first cases in which the bound is violated or undecided, or fails."""
        noted = [case for case in self.cases if case.status not in {Status.HOLDS, Status.INAPPLICABLE}]
        values = ["bound", "optimum", "lower", "upper", "ratio"]
        columns = ["case", "n", "copies", "status", *(EXACT_VALUES if self.exact else values), "message"]
        more = f"... {len(noted) - MOST_CASES} more; --json gives all" if len(noted) > MOST_CASES else ""
        title = "cases in which the bound is violated, undecided or fails"
        return [Listing(title, columns, noted[:MOST_CASES], more)] if noted else []


@dataclass(frozen=True)
class _Class:
    """A representative of an isomorphism class of instances."""

    instance: Instance
    copies: int

    @property
    def name(self) -> str:
        return self.instance.spec


def sweep(
    formulation: str | type[Formulation],
    bound: str | BoundFunction,
    over: object,
    *,
    on: str | None = None,
    sense: Sense | None = None,
    settings: Mapping[str, object] | None = None,
    demand: object = None,
    method: str = "auto",
    time_limit: Seconds | None = None,
    tol: float = TOLERANCE,
    exact: bool = False,
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
        A function ``bound(instance) -> float | Fraction | None`` or ``bound(instance, data)``, where ``data`` is what
        the formulation's ``prepare`` returns; the name of a bound of the formulation, also one from the ``BOUNDS`` of a
        plug-in; or ``"FILE.py:FUNCTION"``. A function may declare what it bounds, see :func:`opticoll.bound_on`.
    over
        An instance, a spec with braces (``"genkautz:n={8..64},d=4"``) or of a population (``"all-digraphs:n=5,d=2"``),
        an object that ``oc.solve`` takes as an instance (a networkx graph, a matrix, a DataFrame), or a list of these.
    on
        What is bounded: ``"objective"``, ``"T"`` (= 1/F, where that is the time), or a metric of the solution. By
        default what the function declares, or the objective.
    sense
        ``"lower"`` or ``"upper"``. By default the sense of the relaxation: a lower bound on an objective that is
        minimised and on T, an upper bound on one that is maximised. Required for a metric.
    settings, demand, method, time_limit
        As in ``oc.solve``, for every case.
    tol
        Relative gap at which an optimum counts as proven, and relative tolerance of the comparison of floats.
    exact
        Also solve every case in rational arithmetic, and compare fractions, without a tolerance. A bound that is a
        float stands for its exact value. A case without an exact optimum is violated only beyond ``tol``, and
        otherwise undecided. With ``tol=0``, the usual solves keep their default.
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
    from opticoll.analysis.study.study_file import refuse_unavailable, study_of
    from opticoll.formulations.registry import formulation as find
    from opticoll.formulations.registry import is_registered

    model = find(formulation)
    stated = model.name if is_registered(model) else model  # workers look up a named bound themselves
    check_mapping({} if settings is None else settings, "sweep: settings")
    tol, home = number(tol, "sweep: tol"), Store.at(store)
    home.check_writable()  # before bounds are evaluated, which may take long
    given = dict(settings or {}) | ({} if demand is None else {"demand": demand})
    function, label = bound_function(bound)
    specs, instances = instances_of(over)
    quantity = _quantity(model, function, on, sense, lambda: _quantities(model, instances[0], given))
    alike = not quantity.metric and model._label_invariant(parameters_of(model, given))
    alike = alike and not (len(specs) == 1 and is_population(specs[0]))  # whose members are not isomorphic
    classes = _classes(model, function or label, instances, given, merged=alike)
    if quantity.inverse:
        _refuse_without_time(model, classes[0].instance, given)
    if tol == 0 and not exact:
        msg = "floats are compared with a tolerance; to compare fractions, add"
        raise BadInput(msg, option="tol", value=0, remedy={"exact": True})
    limits: dict[str, Any] = {"time_limit_s": time_limit, "tol": tol or TOLERANCE, "exact": exact}
    tasks = [Task(stated, one.instance, method, settings=given, **limits) for one in classes]
    study = study_of("sweep", tasks)
    refuse_unavailable(study)
    listed = [one.instance for one in classes]
    values = evaluated(model, function or label, listed, given, inverse=quantity.inverse)
    summary = _solved(study, values, home, jobs, dask)
    answers = home.answered(set(summary.results))
    records = answers | {
        key: next(reversed(home.attempts(key)), None) for key in summary.results.keys() - answers.keys()
    }
    why = {key: result.message for key, result in summary.results.items()}
    cases = [
        compared(
            one.instance,
            one.copies,
            value,
            records.get(cell.key),
            quantity,
            tol=tol,
            exact=exact,
            message=why.get(cell.key, ""),
        )
        for one, cell, value in zip(classes, study.cells, values, strict=True)
        if cell.key in summary.results or not isinstance(value, ComparedBound)  # else interrupted
    ]
    check_metric(quantity, [*answers.values()])
    return SweepResult(
        formulation=model.name,
        bound=label,
        quantity=quantity.name,
        sense=quantity.sense,
        method=method,
        settings=texts(given),
        over=specs,
        instances=len(instances),
        classes=len(classes),
        interrupted=summary.interrupted,
        exact=exact,
        cases=cases,
        **_counts(cases),
    )


def _solved(study: Study, values: Sequence[object], home: Store, jobs: int | None, dask: str | None) -> Summary:
    """Solve the cases on which the bound has a value.

    Raises
    ------
    SolverUnavailable
        If the solver can run none of them.
    """
    from opticoll.analysis.study.running import run_with_progress

    bounded = tuple(cell for cell, value in zip(study.cells, values, strict=True) if isinstance(value, ComparedBound))
    summary = run_with_progress(replace(study, cells=bounded), home, jobs, dask)
    if summary.results and all(result.status == "unavailable" for result in summary.results.values()):
        raise SolverUnavailable(next(iter(summary.results.values())).message)
    return summary


def _quantity(
    model: type[Formulation],
    function: BoundFunction | None,
    on: str | None,
    sense: Sense | None,
    quantities: Callable[[], list[str]],
) -> Quantity:
    """What is compared: as requested, else as the function declares, else the objective."""
    if sense not in (None, "lower", "upper"):
        msg = "write lower or upper"
        raise BadInput(msg, option="sense", value=sense)
    declared, own_sense = (None, None) if function is None else declaration(function)
    label = getattr(function, "__name__", "the bound")
    if on is not None and declared is not None and on != declared:
        msg = f"{label} declares that it bounds {declared!r}; omit it, or change the declaration"
        raise BadInput(msg, option="on", value=on)
    name = on or declared or "objective"
    by_function = not on and function is not None
    source = f"@oc.bound_on({name!r}) of {label}: " if by_function else ""
    stated: dict[str, Any] = {} if by_function else {"option": "on", "value": name}
    if name in ("F", "T") and model.concurrent is None and name not in (known := quantities()):
        msg = f"{source}{model.name} has no {name}; its quantities are {', '.join(known)} and the metrics of a solution"
        raise BadInput(msg, **stated)
    bound_sense: Sense | None = sense or own_sense
    metric = name not in ("objective", "F", "T") or (name != "objective" and model.concurrent is None)
    if metric and (bound_sense is None or function is None):
        declare = f"declare it by @oc.bound_on({name!r}, 'lower'), or " if by_function else ""
        msg = f"{source}a bound on a metric is a function FILE.py:FUNCTION and needs a sense; {declare}give"
        raise BadInput(msg, **stated, remedy={"sense": "lower"})
    return _quantity_named(model, name, bound_sense, named=function is None)


def _quantities(model: type[Formulation], instance: Instance, settings: Mapping[str, Any]) -> list[str]:
    """What can be bounded before there is a solution: the objective, and what follows from its value."""
    from opticoll.solvers.methods.registry import prepared

    known = prepared(model, instance, parameters_of(model, settings)).metrics(1.0)
    return ["objective", *(name for name in known if name != "conditional_on")]


def _quantity_named(model: type[Formulation], on: str, sense: Sense | None, *, named: bool) -> Quantity:
    natural: Sense = "lower" if model.sense == "min" or on == "T" else "upper"
    if on != "objective" and (on not in ("F", "T") or model.concurrent is None):
        assert sense is not None
        return Quantity(on, sense, metric=True)
    if named and sense not in (None, natural):
        msg = f"the bounds of {model.name} are {natural} bounds; omit"
        raise BadInput(msg, option="sense", value=sense, remedy={"sense": None})
    return Quantity(on, sense or natural, inverse=on == "T")


def _refuse_without_time(model: type[Formulation], instance: Instance, settings: Mapping[str, Any]) -> None:
    """Refuse ``on="T"`` where 1/F is not the time of the collective."""
    if "T" not in _quantities(model, instance, settings):
        msg = f"1/F of {model.name} with these settings is not the time of a collective; use"
        raise BadInput(msg, option="on", value="T", remedy={"on": "objective"})


def check_metric(quantity: Quantity, records: Sequence[Record]) -> None:
    """Refuse a metric that no solution has."""
    known = {
        name for record in records for name, value in (record.metrics or {}).items() if isinstance(value, (int, float))
    }
    if quantity.metric and records and quantity.name not in known:
        msg = f"no such metric; {nearest(quantity.name, ['objective', *sorted(known)])}"
        raise BadInput(msg, option="on", value=quantity.name)


def instances_of(over: object) -> tuple[list[str], list[Instance]]:
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
        msg = "names no instance; write for example ring:{4..8}"
        raise BadInput(msg, option="over")
    return specs, instances


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
        taken, parameters = takes_data(bound), parameters_of(model, settings)
        distinct: dict[tuple[int, str], int] = {}
        for place, top in of_class.items():
            if members[top] > 1:
                data = data_of(model, instances[place], parameters, taken)
                value = called(bound, instances[place], data)
                text = str(value)
                if isinstance(value, ComparedBound):
                    text = f"{value.value:.9g}" if value.rounded else str(value.fraction)
                of_class[place] = distinct.setdefault((top, text), place)
    counts = Counter(of_class.get(place, place) for place in first)
    return [_Class(instances[place], copies) for place, copies in counts.items()]


def _counts(cases: list[Case]) -> dict[str, Any]:
    """Numbers of cases by outcome, the tightness and the counterexample."""
    count = Counter(case.status for case in cases)
    violated = [case for case in cases if case.status is Status.VIOLATED]
    smallest = min(violated, key=lambda case: (case.n, case.arcs or 0, case.case), default=None)
    return {
        "decided": count[Status.HOLDS] + count[Status.VIOLATED],
        "violations": count[Status.VIOLATED],
        "undecided": count[Status.UNDECIDED],
        "inapplicable": count[Status.INAPPLICABLE],
        "errors": count[Status.ERROR],
        "tightness": _tightness(cases),
        "counterexample": None if smallest is None else smallest.case,
    }


def _tightness(cases: list[Case]) -> Tightness | None:
    import numpy as np

    ratios = [case.ratio for case in cases if case.ratio is not None]
    if not ratios:
        return None
    low, first, middle, third, high = np.quantile(ratios, [0, 0.25, 0.5, 0.75, 1]).tolist()
    exact = sum(case.attained is True for case in cases)
    return Tightness(min=low, lower_quartile=first, median=middle, upper_quartile=third, max=high, exact=exact)
