"""Closed forms conjectured from exact optima: the points, the forms and their exceptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from opticoll.analysis.bounds.bound_comparison import Quantity
from opticoll.analysis.bounds.bound_values import parameters_of
from opticoll.analysis.bounds.sweep import check_metric, instances_of
from opticoll.analysis.conjectures.fitting import ResidueClass, by_residues, explained
from opticoll.analysis.rendering import Printed
from opticoll.arguments import check_mapping, refused, whole_number
from opticoll.errors import BadInput, refuse
from opticoll.instances import Instance
from opticoll.instances.spec import Dimensions
from opticoll.nearest_names import nearest
from opticoll.solvers.task import Fields, Task, texts

if TYPE_CHECKING:
    import os

    import pandas as pd

    from opticoll.analysis.store.records import Store
    from opticoll.formulations import Formulation

#: Names of the sizes of a family whose argument is a shape such as 3x4.
SIZES = ("a", "b", "c", "d", "e")


class Value(Fields, frozen=True, kw_only=True):
    """The exact optimum of an instance, None if it is not proven, and the value of the variable there."""

    case: str
    at: int
    value: str | None


class ClassFormula(Fields, frozen=True, kw_only=True):
    """A closed form on the instances with the same residues, or None if none was found.

    ``coefficients`` were free; ``fitted`` instances determine them and ``held_back`` others agree. ``exceptions`` are
    smaller instances that do not.
    """

    condition: str
    formula: str | None
    latex: str | None
    points: int
    coefficients: int | None
    fitted: int
    held_back: int
    exceptions: list[str]


class Conjecture(Printed, Fields, frozen=True, kw_only=True):
    """What was found; also the JSON object of ``opticoll conjecture --json``.

    ``unproven`` counts instances without an exact optimum, which are left out.
    """

    formulation: str
    quantity: str
    over: list[str]
    settings: dict[str, str]
    variable: str
    period: int
    formulas: list[ClassFormula]
    unproven: int
    interrupted: bool
    values: list[Value]

    @property
    def frame(self) -> pd.DataFrame:
        """One row per instance: its value of the variable, and the exact optimum as a fraction."""
        import pandas as pd

        table = pd.DataFrame([(one.case, one.at) for one in self.values], columns=["case", self.variable])
        exact = [None if one.value is None else Fraction(one.value) for one in self.values]
        table[self.quantity] = pd.Series(exact, table.index, dtype=object)
        return table

    @property
    def _title(self) -> str:
        return f"{self.quantity} of {self.formulation}"

    def lines(self) -> dict[str, str]:
        """The result in words, by name of the line."""
        solved = sum(one.value is not None for one in self.values)
        lines = {"exact optima": f"{solved} of {len(self.values)} instances"}
        for one in self.formulas:
            name = f"{self.quantity}" if one.condition == "all" else f"{self.quantity}, {one.condition}"
            lines[name] = _sentence(one)
        if self.interrupted:
            lines["interrupted"] = "run the same command again to resume"
        return lines


def _sentence(one: ClassFormula) -> str:
    if one.formula is None:
        found = f"no closed form found in {one.points} instance{'s' * (one.points != 1)}"
        return f"{found}; more allow for more coefficients: c of them take 2 c + 2 instances, half of them held back"
    few = f"; smallest exception {one.exceptions[0]} of {len(one.exceptions)}" if one.exceptions else ""
    return f"{one.formula}  ({one.coefficients} coefficients, {one.fitted} fitted, {one.held_back} held back{few})"


@dataclass(frozen=True)
class _Family:
    """Instances by their value of a variable, and the base of a power of it that forms may have."""

    variable: str
    points: dict[int, Instance]
    base: int | None


def conjecture(
    formulation: str | type[Formulation],
    over: object,
    *,
    on: str | None = None,
    variable: str | None = None,
    period: int | None = None,
    settings: Mapping[str, object] | None = None,
    demand: object = None,
    method: str = "auto",
    time_limit: float | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> Conjecture:
    """Fit closed forms in a parameter of a family to exact optima.

    Forms are quotients of polynomials, on classes of instances with equal residues of the parameter; for a parameter
    ``D`` or ``dimension`` also polynomials in it and in a power such as ``2^D``. See
    :mod:`opticoll.analysis.conjectures.fitting` for what counts as a form. A form is a conjecture: it is proven only
    for the instances solved.

    Parameters
    ----------
    formulation, settings, demand, method, time_limit
        As in ``oc.sweep``; every instance is solved exactly.
    over
        Instances of one family, as in ``oc.sweep``: ``"genkautz:n={8..64},d=4"``.
    on
        ``"T"``, ``"objective"`` or a metric that is a whole number; by default T where the formulation has it.
    variable
        The parameter of the family that varies, or ``"n"``, the number of nodes. By default the parameter; if it
        explains less than ``n`` does, ``n``.
    period
        Period of the residues; by default the best one up to 12.
    store, jobs
        As in ``oc.sweep``.

    Raises
    ------
    BadInput
        If the instances are not of one family, or several have the same value of the variable.
    """
    from opticoll.formulations.registry import formulation as find

    model = find(formulation)
    check_mapping({} if settings is None else settings, "conjecture: settings")
    if period is not None:
        whole_number(period, "conjecture: period", 1)
    if variable is not None and not isinstance(variable, str):
        raise refused(variable, "conjecture: variable", "a name, such as 'n'")
    given = dict(settings or {}) | ({} if demand is None else {"demand": demand})
    specs, instances = instances_of(over)
    families = dict.fromkeys(str(one.family) for one in instances)
    if len(families) > 1:
        msg = f"conjecture: over has instances of {len(families)} families ({', '.join(families)}); give those of one"
        raise BadInput(msg)
    quantity = _quantity(model, instances[0], on, given)
    choices = _choices(instances, variable)
    exact, interrupted = _exact_values(model, instances, quantity, given, method, time_limit, store, jobs)
    best = _best_fit(choices, exact, period)
    if best is None:
        refuse("conjecture", f"no instance has an exact optimum; `opticoll solve {model.name} ... --exact` says why")
    family, found, classes = best
    rows = [Value(case=one.spec, at=x, value=_text(exact[one])) for x, one in family.points.items()]
    return Conjecture(
        formulation=model.name,
        quantity=quantity.name,
        over=specs,
        settings=texts(given),
        variable=family.variable,
        period=found,
        formulas=[_formula(family, found, one) for one in classes],
        unproven=sum(value is None for value in exact.values()),
        interrupted=interrupted,
        values=rows,
    )


def _text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def _quantity(model: type[Formulation], instance: Instance, on: str | None, settings: Mapping[str, object]) -> Quantity:
    from opticoll.solvers.methods.registry import prepared

    timed = False
    if model.concurrent is not None and model._needs is None and on in (None, "T"):
        timed = "T" in prepared(model, instance, parameters_of(model, settings)).metrics(1.0)
    name = on or ("T" if timed else "objective")
    if name == "T" and not timed:
        msg = f"{model.name} with these settings has no time T = 1/F; use"
        raise BadInput(msg, option="on", value="T", remedy={"on": "objective"})
    return Quantity(name, "lower", metric=name not in {"objective", "F", "T"}, inverse=name == "T")


def _exact_values(
    model: type[Formulation],
    instances: Sequence[Instance],
    quantity: Quantity,
    settings: Mapping[str, object],
    method: str,
    time_limit: float | None,
    store: Store | str | os.PathLike[str] | None,
    jobs: int | None,
) -> tuple[dict[Instance, Fraction | None], bool]:
    """The exact optimum of every instance, None where it is not proven; whether it was interrupted."""
    from opticoll.analysis.store.records import Store
    from opticoll.analysis.study.running import run_with_progress
    from opticoll.analysis.study.study_file import refuse_unavailable, study_of
    from opticoll.formulations.registry import is_registered

    stated = model.name if is_registered(model) else model
    different = list(dict.fromkeys(instances))
    tasks = [
        Task(stated, one, method, settings=dict(settings), time_limit_s=time_limit, exact=True) for one in different
    ]
    study = study_of("conjecture", tasks)
    refuse_unavailable(study)
    home = Store.at(store)
    summary = run_with_progress(study, home, jobs, None)
    answers = home.answered({cell.key for cell in study.cells})
    check_metric(quantity, [*answers.values()])
    values: dict[Instance, Fraction | None] = {}
    for one, cell in zip(different, study.cells, strict=True):
        record = answers.get(cell.key)
        text = None if record is None else quantity.fraction(record)
        values[one] = None if text is None else Fraction(text)
    return values, summary.interrupted


# the family -----------------------------------------------------------------------------------------------------------


def _best_fit(
    choices: list[_Family], exact: Mapping[Instance, Fraction | None], period: int | None
) -> tuple[_Family, int, list[ResidueClass]] | None:
    """The variable whose forms explain most, or the first of equal ones, with period and forms; None without any."""
    fits = []
    for family in choices:
        known = {x: value for x, one in family.points.items() if (value := exact[one]) is not None}
        if known:
            fits.append((family, *by_residues(known, family.variable, family.base, period)))
    return max(fits, key=lambda fit: explained(fit[2]), default=None)


def _vary(values: list[object]) -> bool:
    """Whether values are whole numbers that are not all the same."""
    return all(isinstance(value, int) for value in values) and len(set(values)) > 1


def _choices(instances: Sequence[Instance], variable: str | None) -> list[_Family]:
    """The instances by the variable given, or by the parameter that varies and by n."""
    flat = {one.spec: _flat(one) for one in instances}
    names = list(dict.fromkeys(name for values in flat.values() for name in values))
    if variable is not None:
        if variable not in names:
            msg = f"the instances have no parameter of this name; {nearest(variable, names)}"
            raise BadInput(msg, option="variable", value=variable)
        return [_family(instances, flat, variable)]
    free = [name for name in names if name != "n" and _vary([values.get(name) for values in flat.values()])]
    by_n = len({one.n for one in instances}) == len({one.hash for one in instances})
    own = {name for one in instances for name in one.arguments}
    found = [_family(instances, flat, free[0])] if len(free) == 1 and not (by_n and "n" in own) else []
    return [*found, _family(instances, flat, "n")] if by_n or not found else found


def _flat(instance: Instance) -> dict[str, Any]:
    """Arguments of the family as numbers, the sizes of a shape one by one; and n."""
    values: dict[str, Any] = {"n": instance.n}
    for name, value in instance.arguments.items():
        if isinstance(value, Dimensions):
            values |= dict(zip(SIZES, value, strict=False))
        elif not isinstance(value, bool):
            values[name] = value
    return values


def _family(instances: Sequence[Instance], flat: Mapping[str, Mapping[str, Any]], name: str) -> _Family:
    points: dict[int, Instance] = {}
    for one in instances:
        x = flat[one.spec].get(name)
        if not isinstance(x, int):
            msg = f"{one.spec} has no whole number for it; name a parameter that all have"
            raise BadInput(msg, option="variable", value=name)
        if points.setdefault(x, one) != one:
            both = f"{points[x].spec} and {one.spec}"
            msg = f"conjecture: {both} have the same {name}; vary one parameter alone, and name it by"
            raise BadInput(msg, remedy={"variable": None})
    base = instances[0].arguments.get("d", 2) if name in {"D", "dimension"} else None
    return _Family(name, points, base if isinstance(base, int) else None)


# forms ----------------------------------------------------------------------------------------------------------------


def _formula(family: _Family, period: int, one: ResidueClass) -> ClassFormula:
    """The form of a class, with its exceptions."""
    fit = one.fit
    return ClassFormula(
        condition=f"{family.variable} = {one.residue} mod {period}" if period > 1 else "all",
        formula=None if fit is None else fit.form.text,
        latex=None if fit is None else fit.form.latex,
        points=len(one.points),
        coefficients=None if fit is None else fit.coefficients,
        fitted=0 if fit is None else len(fit.fitted),
        held_back=0 if fit is None else len(fit.held_back),
        exceptions=[] if fit is None else [family.points[x].spec for x in fit.exceptions],
    )
