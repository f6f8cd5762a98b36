"""Closed forms conjectured from exact optima: the points, the forms, their exceptions, and what is proven beyond."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

from opticoll.analysis.bounds.bound_comparison import Quantity
from opticoll.analysis.bounds.bound_values import parameters_of
from opticoll.analysis.bounds.sweep import instances_of
from opticoll.analysis.conjectures.arc_lengths import ArcOrbits, arc_orbits, candidates, optimal_lengths
from opticoll.analysis.conjectures.closed_forms import ClosedForm, Point
from opticoll.analysis.conjectures.fitting import Fit, ResidueClass, by_residues, explained, fitted
from opticoll.analysis.rendering import Listing, Printed
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
#: Maximum number of instances in a table.
MOST_VALUES = 60
#: Names of the sizes of a family whose argument is a shape such as 3x4.
SIZES = ("a", "b", "c", "d", "e")


class Value(Fields, frozen=True, kw_only=True):
    """The exact optimum of an instance, and the analytic bounds that are equal to it."""

    case: str
    point: list[int]
    value: str | None
    attained: list[str]


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
    variables: list[str]
    period: int
    formulas: list[ClassFormula]
    untested: str
    unproven: int
    interrupted: bool
    values: list[Value]

    @property
    def frame(self) -> pd.DataFrame:
        """One row per instance: its point, the exact optimum as a fraction, and the bounds attained."""
        import pandas as pd

        rows = [{"case": one.case, **dict(zip(self.variables, one.point, strict=True))} for one in self.values]
        table = pd.DataFrame(rows, columns=["case", *self.variables])
        exact = [None if one.value is None else Fraction(one.value) for one in self.values]
        table[self.quantity] = pd.Series(exact, table.index, dtype=object)
        table["attained"] = [", ".join(one.attained) for one in self.values]
        return table

    def to_latex(self) -> str:
        """The formulas as a LaTeX table, with the numbers of instances behind each."""
        lines = [r"\begin{tabular}{llrrl}", r"\hline"]
        lines += [rf"condition & ${self.quantity}$ & fitted & held back & exceptions \\", r"\hline"]
        for one in self.formulas:
            formula = "none found" if one.latex is None else f"${one.latex}$"
            condition = one.condition.replace(" = ", r" \equiv ").replace(" mod ", r" \bmod ")
            shown = "all" if one.condition == "all" else f"${condition}$"
            apart = ", ".join(one.exceptions[:3]) + (", \\dots" if len(one.exceptions) > 3 else "") or "--"
            apart = apart.replace("_", r"\_")
            lines.append(rf"{shown} & {formula} & {one.fitted} & {one.held_back} & {apart} \\")
        return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])

    @property
    def _title(self) -> str:
        return f"{self.quantity} of {self.formulation}"

    def lines(self) -> dict[str, str]:
        """The result in words, by name of the line."""
        solved = sum(one.value is not None for one in self.values)
        lines = {"exact optima": f"{solved} of {len(self.values)} instances"}
        for one in self.formulas:
            name = f"{self.quantity}" if one.condition == "all" else f"{self.quantity}, {one.condition}"
            lines[name] = _sentence(one, len(self.variables))
        if self.untested and any(one.formula is not None for one in self.formulas):
            lines["beyond"] = f"not tested: {self.untested}"
        if self.interrupted:
            lines["interrupted"] = "run the same command again to resume"
        return lines

    def table_of_values(self) -> Listing:
        """The first exact optima, and the bounds that they attain."""
        rows = [
            {"case": one.case, self.quantity: one.value, "attained by": one.attained}
            for one in self.values[:MOST_VALUES]
        ]
        more = f"... {len(self.values) - MOST_VALUES} more; --json gives all" if len(self.values) > MOST_VALUES else ""
        return Listing("exact optima", ["case", self.quantity, "attained by"], rows, more)


def _sentence(one: ClassFormula, variables: int) -> str:
    if one.formula is None:
        found = f"no closed form found in {one.points} instance{'s' * (one.points != 1)}"
        if variables > 1:
            return f"{found}; of several parameters only polynomials are tried: fix all but one, for quotients"
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
    """Instances as points: the variables, and the instance at another point.

    ``step`` is that of the points of one variable, between which there are no other members; None where the points do
    not determine how the family goes on, for the reason ``ends``.
    """

    variables: tuple[str, ...]
    points: dict[Point, Instance]
    base: int | None
    at: Callable[[Point], Topology | None]
    step: int | None
    ends: str


def conjecture(
    formulation: str | type[Formulation],
    over: object,
    *,
    on: str | None = None,
    variables: str | Sequence[str] | None = None,
    period: int | None = None,
    reach: int | None = None,
    settings: Mapping[str, object] | None = None,
    demand: object = None,
    method: str = "auto",
    time_limit: float | None = None,
    store: Store | str | os.PathLike[str] | None = None,
    jobs: int | None = None,
) -> Conjecture:
    """Fit closed forms in the parameters of a family to exact optima, and test them where nothing was solved.

    Forms are quotients of polynomials, on classes of instances with equal residues of the parameters; for a parameter
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
    variables
        Parameters of the family that vary, or ``"n"``, the number of nodes. By default those that vary; if they explain
        less than ``n`` does, ``n``.
    period
        Period of the residues; by default the best one up to 12 (4 for two variables).
    reach
        Number of nodes up to which the forms are tested beyond the solved instances, by paths alone; by default twice
        that of the largest instance solved, 0 for none.
    store, jobs
        As in ``oc.sweep``.

    Raises
    ------
    BadInput
        If the instances are not of one family, or several have the same values of the variables.
    """
    from opticoll.formulations.registry import formulation as find

    model = find(formulation)
    check_mapping({} if settings is None else settings, "conjecture: settings")
    for name, value, least in (("period", period, 1), ("reach", reach, 0)):
        if value is not None:
            whole_number(value, f"conjecture: {name}", least)
    if variables is not None and not isinstance(variables, Iterable):
        raise refused(variables, "conjecture: variables", "a list of names, such as ['n', 'd']")
    given = dict(settings or {}) | ({} if demand is None else {"demand": demand})
    specs, instances = instances_of(over)
    families = dict.fromkeys(str(one.family) for one in instances)
    if len(families) > 1:
        msg = f"conjecture: over has instances of {len(families)} families ({', '.join(families)}); give those of one"
        raise BadInput(msg)
    quantity = _quantity(model, instances[0], on, given)
    choices = _choices(instances, variables)
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
    attained = _attained(model, given, quantity)
    rows = [
        Value(case=one.spec, point=list(point), value=_text(exact[one]), attained=attained(one, exact[one]))
        for point, one in family.points.items()
    ]
    return Conjecture(
        formulation=model.name,
        quantity=quantity.name,
        over=specs,
        settings=texts(given),
        variables=list(family.variables),
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
    if model.concurrent is not None and model.needs is None and on in (None, "T"):
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


def _attained(
    model: type[Formulation], settings: Mapping[str, object], quantity: Quantity
) -> Callable[[Instance, Fraction | None], list[str]]:
    """Names of the analytic bounds that equal the exact optimum of an instance."""
    from opticoll.formulations.registry import bounds_of
    from opticoll.solvers.methods.registry import prepared

    def names(instance: Instance, value: Fraction | None) -> list[str]:
        if value is None or model.needs is not None or quantity.metric:
            return []
        wanted = 1 / value if quantity.inverse and value else value
        found = bounds_of(prepared(model, instance, parameters_of(model, settings)))
        return [one.name for one in found if one.rational == wanted]

    return names


# the family -----------------------------------------------------------------------------------------------------------


def _best_fit(
    choices: list[_Family], exact: Mapping[Instance, Fraction | None], period: int | None
) -> tuple[_Family, int, list[ResidueClass]] | None:
    """The points whose forms explain most, the first of equal ones, with the period and the forms; None without any."""
    fits = []
    for family in choices:
        points = {point: exact[one] for point, one in family.points.items()}
        known = {point: value for point, value in points.items() if value is not None}
        if known:
            fits.append((family, *by_residues(known, family.variables, family.base, period)))
    return max(fits, key=lambda fit: explained(fit[2]), default=None)


def _vary(values: list[object]) -> bool:
    """Whether values are whole numbers that are not all the same."""
    return all(isinstance(value, int) for value in values) and len(set(values)) > 1


def _choices(instances: Sequence[Instance], variables: str | Sequence[str] | None) -> list[_Family]:
    """The instances as points in the variables given, or in those that vary and in n."""
    flat = {one.spec: _flat(one) for one in instances}
    names = list(dict.fromkeys(name for values in flat.values() for name in values))
    if variables is not None:
        wanted = (variables,) if isinstance(variables, str) else tuple(variables)
        if not wanted:
            raise refused(variables, "conjecture: variables", "a list of names, such as ['n', 'd']")
        for name in wanted:
            if name not in names:
                msg = f"the instances have no parameter of this name; {nearest(name, names)}"
                raise BadInput(msg, option="variables", value=name)
        return [_family(instances, flat, wanted)]
    free = tuple(name for name in names if name != "n" and _vary([values.get(name) for values in flat.values()]))
    by_n = len({one.n for one in instances}) == len({one.hash for one in instances})
    found = []
    if free:
        own = {name for one in instances for name in one.arguments}
        found.append(_family(instances, flat, ("n", *free) if "n" in own else free))
    if by_n or not found:
        found.append(_family(instances, flat, ("n",)))
    return found


def _flat(instance: Instance) -> dict[str, Any]:
    """Arguments of the family as numbers, the sizes of a shape one by one; and n."""
    values: dict[str, Any] = {"n": instance.n}
    for name, value in instance.arguments.items():
        if isinstance(value, Dimensions):
            values |= dict(zip(SIZES, value, strict=False))
        elif not isinstance(value, bool):
            values[name] = value
    return values


def _family(instances: Sequence[Instance], flat: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]) -> _Family:
    points: dict[Point, Instance] = {}
    for one in instances:
        values = [flat[one.spec].get(name) for name in names]
        if not all(isinstance(value, int) for value in values):
            msg = f"{one.spec} has no whole number for it; name a parameter that all have"
            raise BadInput(msg, option="variables", value=",".join(names))
        point = tuple(int(value) for value in values if value is not None)
        if point in points and points[point] != one:
            both = f"{points[point].spec} and {one.spec}"
            msg = f"conjecture: {both} have the same {', '.join(names)}; name the parameters that vary by"
            raise BadInput(msg, remedy={"variables": None})
        points[point] = one
    first: dict[str, Any] = dict(instances[0].arguments)
    base = (first.get("d", 2) if names in {("D",), ("dimension",)} else None) if len(names) == 1 else None
    at = _generator(instances[0], names)
    return _Family(names, points, base, at, *_continuation(points, names, at))


def _continuation(
    points: Mapping[Point, Instance], names: tuple[str, ...], at: Callable[[Point], Topology | None]
) -> tuple[int | None, str]:
    """The step with which the points of one variable go on, or None and why they do not determine it.

    The family must generate every point itself, and have no member between them that is left out.
    """
    if len(names) > 1:
        return None, "several parameters vary"
    first = next(iter(points.values()))
    for point, one in points.items():
        found = at(point)
        if found is None:
            return None, f"{names[0]} alone does not give an instance"
        if found != one:
            return None, f"{one.spec} differs from {first.spec} in more than {names[0]}"
    places = sorted(place for (place,) in points)
    if len(places) < 2:
        return None, "there is one instance"
    step = gcd(*(place - places[0] for place in places))
    gaps = (k for low, high in pairwise(places) for k in range(low + step, high, step))
    left = next((other for k in gaps if (other := at((k,))) is not None), None)
    return (step, "") if left is None else (None, f"{left.spec} is left out, so that the next instance is not known")


def _generator(instance: Instance, names: tuple[str, ...]) -> Callable[[Point], Topology | None]:
    """The member of the family of an instance at a point, or None; other arguments and modifiers as there."""
    _, plus, changes = instance.spec.partition("+")

    def at(point: Point) -> Topology | None:
        arguments: dict[str, Any] = dict(instance.arguments)
        if instance.family is None or "." in "".join(names):
            return None
        for name, value in zip(names, point, strict=True):
            if name in arguments:
                arguments[name] = value
            elif name in SIZES:
                key = next((key for key, one in arguments.items() if isinstance(one, Dimensions)), None)
                if key is None:
                    return None
                sizes = list(arguments[key])
                sizes[SIZES.index(name)] = value
                arguments[key] = Dimensions(sizes)
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
    condition = "all"
    if period > 1:
        pairs = zip(family.variables, one.residues, strict=True)
        condition = ", ".join(f"{name} = {residue} mod {period}" for name, residue in pairs)
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
        exceptions=[] if fit is None else [family.points[point].spec for point in fit.exceptions],
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
    held = [*fit.fitted, *fit.held_back]
    assert family.step is not None
    members = {point: family.points[point] for point in sorted(held)}
    orbits = {point: arc_orbits(top) for point, top in members.items() if isinstance(top, Topology)}
    lengths = _pattern(family.variables, orbits, fit)
    if lengths is None:
        return result
    step, last = lcm(family.step, period), max(one.points)[0]
    for place in range(last + step, last + step * (MOST_BEYOND + 1), step):
        point, topology = (place,), family.at((place,))
        if topology is None:
            continue
        if topology.n > reach:
            break
        more, wanted = arc_orbits(topology), fit.form.at(point)
        if more.number == len(lengths) and wanted is not None:
            _judge(more, [form.at(point) for form in lengths], wanted, result)
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


def _pattern(variables: tuple[str, ...], orbits: Mapping[Point, ArcOrbits], fit: Fit) -> list[ClosedForm] | None:
    """Lengths by orbit as forms that prove the optimum of the given topologies, or None.

    Only those with as many orbits as the largest one count. Lengths of 0 and 1 are tried first, then those of exact
    duals, with a form fitted to each orbit.
    """
    count = orbits[max(orbits)].number
    alike = {point: one for point, one in orbits.items() if one.number == count}
    if 2 * len(alike) < len(orbits):
        return None
    orbits = alike
    for constant in candidates(count):
        if all(one.at_least(constant) == fit.form.at(point) for point, one in orbits.items()):
            zero = (0,) * len(variables)
            return [ClosedForm(variables, {zero: one}, {zero: Fraction(1)}) for one in constant]
    if count > MOST_DUAL_ORBITS:
        return None
    duals = {point: optimal_lengths(one.topology, one) for point, one in orbits.items()}
    known = {point: dual for point, dual in duals.items() if dual is not None}
    if len(known) < len(orbits):
        return None
    forms = []
    for k in range(count):
        found = fitted({point: dual[k] for point, dual in known.items()}, variables)
        if found is None or found.exceptions:
            return None
        forms.append(found.form)
    return forms
