"""Closed forms conjectured from exact optima: the points, the forms, their exceptions, and what is proven beyond."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

from opticoll.analysis.bounds.bound_comparison import Quantity
from opticoll.analysis.bounds.bound_values import parameters_of
from opticoll.analysis.bounds.sweep import instances_of
from opticoll.analysis.conjectures.arc_lengths import ArcOrbits, arc_orbits, candidates, optimal_lengths
from opticoll.analysis.conjectures.closed_forms import ClosedForm
from opticoll.analysis.conjectures.fitting import Fit, ResidueClass, by_residues, explained, fitted
from opticoll.analysis.rendering import Printed
from opticoll.arguments import check_mapping, refused, whole_number
from opticoll.errors import BadInput
from opticoll.instances import Instance, Topology, parse
from opticoll.instances.spec import Dimensions
from opticoll.nearest_names import nearest
from opticoll.solvers.task import Fields, Task, texts

if TYPE_CHECKING:
    import os

    import pandas as pd

    from opticoll.analysis.store.records import Store
    from opticoll.formulations import Formulation

#: The formulation whose conjectured times are also tested without solving a program.
PROVABLE = "alltoall.master"
#: Largest number of orbits of arcs for which lengths are read from exact duals.
MOST_DUAL_ORBITS = 12
#: Maximum number of places beyond the solved instances that are tried.
MOST_BEYOND = 1000
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
    smaller instances that do not. Beyond the solved instances, ``at_least`` are those for which the optimum is proven
    to be no smaller than the form (by arc ``lengths`` of every orbit, in formulas), ``proven`` those for which it is
    proven to equal it, and ``refuted`` those for which it is proven to differ.
    """

    condition: str
    formula: str | None
    latex: str | None
    points: int
    coefficients: int | None
    fitted: int
    held_back: int
    exceptions: list[str]
    lengths: list[str] | None
    at_least: list[str]
    proven: list[str]
    refuted: list[str]


class Conjecture(Printed, Fields, frozen=True, kw_only=True):
    """What was found; also the JSON object of ``opticoll conjecture --json``.

    ``unproven`` counts instances without an exact optimum, which are left out. ``untested`` says why forms are not
    tested beyond the instances; it is empty if they are.
    """

    formulation: str
    quantity: str
    over: list[str]
    settings: dict[str, str]
    variable: str
    period: int
    formulas: list[ClassFormula]
    untested: str
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
        if self.untested and any(one.formula is not None for one in self.formulas):
            lines["beyond"] = f"not tested: {self.untested}"
        if self.interrupted:
            lines["interrupted"] = "run the same command again to resume"
        return lines


def _sentence(one: ClassFormula) -> str:
    if one.formula is None:
        found = f"no closed form found in {one.points} instance{'s' * (one.points != 1)}"
        return f"{found}; more allow for more coefficients: c of them take 2 c + 2 instances, half of them held back"
    parts = [f"{one.formula}  ({one.coefficients} coefficients, {one.fitted} fitted, {one.held_back} held back"]
    few = f"; smallest exception {one.exceptions[0]} of {len(one.exceptions)}" if one.exceptions else ""
    text = parts[0] + few + ")"
    if one.lengths is not None and set(one.lengths) != {"1"}:
        text += f"; arc lengths {', '.join(one.lengths)} by orbit"
    if one.proven:
        text += f"; proven for {len(one.proven)} more, to {one.proven[-1]}"
    if len(one.at_least) > len(one.proven):
        text += f"; at least that proven for {len(one.at_least)} more, to {one.at_least[-1]}"
    if one.refuted:
        text += f"; refuted by {one.refuted[0]}"
    return text


@dataclass(frozen=True)
class _Family:
    """Instances by their value of a variable, and the instance at another value.

    ``step`` is that of the values, between which there are no other members; None where the instances do not determine
    how the family goes on, for the reason ``ends``.
    """

    variable: str
    points: dict[int, Instance]
    base: int | None
    at: Callable[[int], Topology | None]
    step: int | None
    ends: str


def conjecture(
    formulation: str | type[Formulation],
    over: object,
    *,
    on: str | None = None,
    variable: str | None = None,
    period: int | None = None,
    reach: int | None = None,
    settings: Mapping[str, object] | None = None,
    demand: object = None,
    method: str = "auto",
    time_limit: float | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> Conjecture:
    """Fit closed forms in a parameter of a family to exact optima, and test them where nothing was solved.

    Forms are quotients of polynomials, on classes of instances with equal residues of the parameter; for a parameter
    ``D`` or ``dimension`` also polynomials in it and in a power such as ``2^D``. See
    :mod:`opticoll.analysis.conjectures.fitting` for what counts as a form, and
    :mod:`opticoll.analysis.conjectures.arc_lengths` for what is proven. A form is a conjecture: it is proven only for
    the instances solved, and for those listed as ``proven``.

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
    reach
        Number of nodes up to which the forms are tested beyond the solved instances, by paths alone; by default twice
        that of the largest instance solved, 0 for none.
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
    for name, value, least in (("period", period, 1), ("reach", reach, 0)):
        if value is not None:
            whole_number(value, f"conjecture: {name}", least)
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
        msg = f"conjecture: no instance has an exact optimum; `opticoll solve {model.name} ... --exact` says why"
        raise BadInput(msg)
    family, found, classes = best
    provable = model.name == PROVABLE and quantity.name == "T" and "demand" not in given
    most = 2 * max(one.n for one in instances) if reach is None else reach
    untested = family.ends if provable else f"only the time T of {PROVABLE}, of one shard for each pair, can be"
    formulas = [_formula(family, found, one, 0 if untested else most) for one in classes]
    rows = [Value(case=one.spec, at=x, value=_text(exact[one])) for x, one in family.points.items()]
    return Conjecture(
        formulation=model.name,
        quantity=quantity.name,
        over=specs,
        settings=texts(given),
        variable=family.variable,
        period=found,
        formulas=formulas,
        untested=untested if most else "",
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
    at = _generator(instances[0], name)
    return _Family(name, points, base if isinstance(base, int) else None, at, *_continuation(points, name, at))


def _continuation(
    points: Mapping[int, Instance], name: str, at: Callable[[int], Topology | None]
) -> tuple[int | None, str]:
    """The step with which the values go on, or None and why the instances do not determine it.

    The family must generate every instance itself, and have no member between them that is left out.
    """
    first = next(iter(points.values()))
    for x, one in points.items():
        found = at(x)
        if found is None:
            return None, f"{name} alone does not give an instance"
        if found != one:
            return None, f"{one.spec} differs from {first.spec} in more than {name}"
    places = sorted(points)
    if len(places) < 2:
        return None, "there is one instance"
    step = gcd(*(place - places[0] for place in places))
    gaps = (k for low, high in pairwise(places) for k in range(low + step, high, step))
    left = next((other for k in gaps if (other := at(k)) is not None), None)
    return (step, "") if left is None else (None, f"{left.spec} is left out, so that the next instance is not known")


def _generator(instance: Instance, name: str) -> Callable[[int], Topology | None]:
    """The member of the family of an instance at a value, or None; other arguments and modifiers as there."""
    _, plus, changes = instance.spec.partition("+")
    shape = next((key for key, one in instance.arguments.items() if isinstance(one, Dimensions)), None)

    def at(x: int) -> Topology | None:
        arguments: dict[str, Any] = dict(instance.arguments)
        if instance.family is None or "." in name:
            return None
        if name in arguments:
            arguments[name] = x
        elif name in SIZES and shape is not None:
            sizes = list(arguments[shape])
            sizes[SIZES.index(name)] = x
            arguments[shape] = Dimensions(sizes)
        else:
            return None
        words = ",".join(f"{key}={value}" for key, value in arguments.items() if "." not in key and value is not None)
        try:
            found = parse(f"{instance.family}:{words}{plus}{changes}")
        except BadInput:
            return None
        return found if type(found) is Topology else None

    return at


# forms ----------------------------------------------------------------------------------------------------------------


def _formula(family: _Family, period: int, one: ResidueClass, reach: int) -> ClassFormula:
    """The form of a class, with its exceptions and what is proven beyond its points."""
    condition = f"{family.variable} = {one.residue} mod {period}" if period > 1 else "all"
    fit = one.fit
    beyond = _Beyond([], [], [], None) if fit is None or not reach else _tested(family, period, one, fit, reach)
    return ClassFormula(
        condition=condition,
        formula=None if fit is None else fit.form.text,
        latex=None if fit is None else fit.form.latex,
        points=len(one.points),
        coefficients=None if fit is None else fit.coefficients,
        fitted=0 if fit is None else len(fit.fitted),
        held_back=0 if fit is None else len(fit.held_back),
        exceptions=[] if fit is None else [family.points[x].spec for x in fit.exceptions],
        lengths=None if beyond.lengths is None else [form.text for form in beyond.lengths],
        at_least=beyond.at_least,
        proven=beyond.proven,
        refuted=beyond.refuted,
    )


@dataclass(frozen=True)
class _Beyond:
    """Specs beyond the solved ones for which one half, or both, are proven; those that differ; lengths by orbit."""

    at_least: list[str]
    proven: list[str]
    refuted: list[str]
    lengths: list[ClosedForm] | None


def _tested(family: _Family, period: int, one: ResidueClass, fit: Fit, reach: int) -> _Beyond:
    """Test a form on members of the family that were not solved, by lengths that are a pattern on the solved ones."""
    result = _Beyond([], [], [], None)
    assert family.step is not None
    members = {x: family.points[x] for x in sorted([*fit.fitted, *fit.held_back])}
    orbits = {x: arc_orbits(top) for x, top in members.items() if isinstance(top, Topology)}
    lengths = _pattern(family.variable, orbits, fit)
    if lengths is None:
        return result
    step, last = lcm(family.step, period), max(one.points)
    for x in range(last + step, last + step * (MOST_BEYOND + 1), step):
        topology = family.at(x)
        if topology is None:
            continue
        if topology.n > reach:
            break
        more, wanted = arc_orbits(topology), fit.form.at(x)
        if more.number == len(lengths) and wanted is not None:
            _judge(more, [form.at(x) for form in lengths], wanted, result)
    return _Beyond(result.at_least, result.proven, result.refuted, lengths)


def _judge(orbits: ArcOrbits, lengths: Sequence[Fraction | None], wanted: Fraction, result: _Beyond) -> None:
    """Enter a topology among those for which a value of T is proven, or refuted."""
    spec = orbits.topology.spec
    known = [max(one, Fraction(0)) for one in lengths if one is not None]
    if len(known) < len(lengths) or not any(known):
        return
    least, most = orbits.at_least(known), orbits.at_most(known)
    if (least is not None and least > wanted) or (most is not None and most < wanted):
        result.refuted.append(spec)
    elif least == wanted:
        result.at_least.append(spec)
        if most == wanted:
            result.proven.append(spec)


def _pattern(variable: str, orbits: Mapping[int, ArcOrbits], fit: Fit) -> list[ClosedForm] | None:
    """Lengths by orbit as forms that prove the optimum of the given topologies, or None.

    Only those with as many orbits as the largest one count. Lengths of 0 and 1 are tried first, then those of exact
    duals, with a form fitted to each orbit.
    """
    count = orbits[max(orbits)].number
    alike = {x: one for x, one in orbits.items() if one.number == count}
    if 2 * len(alike) < len(orbits):
        return None
    orbits = alike
    for constant in candidates(count):
        if all(one.at_least(constant) == fit.form.at(x) for x, one in orbits.items()):
            return [ClosedForm(variable, {(0, 0): one}, {(0, 0): Fraction(1)}) for one in constant]
    if count > MOST_DUAL_ORBITS:
        return None
    duals = {x: optimal_lengths(one.topology, one) for x, one in orbits.items()}
    known = {x: dual for x, dual in duals.items() if dual is not None}
    if len(known) < len(orbits):
        return None
    forms = []
    for k in range(count):
        found = fitted({x: dual[k] for x, dual in known.items()}, variable)
        if found is None or found.exceptions:
            return None
        forms.append(found.form)
    return forms
