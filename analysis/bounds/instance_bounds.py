"""Analytic bounds of instances as rows: ``oc.bounds``."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from opticoll.analysis.result.units import Scale, shard_of
from opticoll.arguments import check_mapping
from opticoll.errors import BadInput, refuse
from opticoll.formulations import rounding
from opticoll.formulations.model import counts_shards
from opticoll.instances import Topology
from opticoll.instances.readers.objects import as_instance
from opticoll.instances.spec import expand
from opticoll.solvers.task import Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd

    from opticoll.formulations import Formulation
    from opticoll.formulations.model import Bound
    from opticoll.instances import Instance
    from opticoll.solvers.run import Run
    from opticoll.types import DataSize


class BoundRow(TypedDict):
    """One bound on the ``quantity``: F, T or another objective, of which ``F`` and ``T`` are None.

    ``value_exact`` and ``T_exact`` are fractions such as ``"13/3"``, None where the bound is known in floating point
    only, or the data are floating-point numbers, which a longer fraction would only restate (:data:`MOST_BITS`).
    ``T_s`` is T in seconds, None without a size of shards and a unit of capacity. ``instance`` is set for bounds of
    several instances.
    """

    name: str
    formulation: str
    quantity: str
    sense: str
    value: float
    value_exact: str | None
    F: float | None
    T: float | None
    T_exact: str | None
    T_s: float | None
    exact: bool
    reason: str
    paper: str | None
    instance: NotRequired[str]


#: The formulation that stands for all all-to-all flows.
FLOW = "alltoall.master"
#: Bits of the numerator and denominator of a fraction that is shown; those of a floating-point number have about 106.
MOST_BITS = 90


def bounds(
    instance: object,
    formulation: str | None = None,
    settings: Mapping[str, object] | None = None,
    *,
    demand: object = None,
    shard: DataSize | None = None,
) -> pd.DataFrame:
    """Bounds on the optimum of a formulation, or of every applicable one, as a table; see :func:`bound_rows`.

    Returns
    -------
    The tightest first: ``instance`` (for several instances), ``formulation``, ``name``, ``quantity``, ``sense``,
    ``value``, ``value_exact``, ``F``, ``T``, ``T_exact``, ``T_s`` (in seconds, where they are known), ``exact``,
    ``reason``, ``paper``; the exact values are fractions. ``to_latex()`` writes it for a paper.
    """
    import pandas as pd

    found = bound_rows(instance, formulation, settings, demand=demand, shard=shard)
    columns = ["formulation", "name", "quantity", "sense", "value", "value_exact", "F", "T", "T_exact"]
    columns += ["T_s"] if any(row["T_s"] is not None for row in found) else []
    columns += ["exact", "reason", "paper"]
    several = any("instance" in row for row in found)
    table = pd.DataFrame(found, columns=[*(["instance"] if several else []), *columns])
    exact = {"value_exact": [row["value_exact"] for row in found], "T_exact": [row["T_exact"] for row in found]}
    for name, texts in exact.items():
        fractions = [None if text is None else Fraction(text) for text in texts]
        table[name] = pd.Series(fractions, table.index, dtype=object)
    return table


def bound_rows(
    instance: object,
    formulation: str | None = None,
    settings: Mapping[str, object] | None = None,
    *,
    demand: object = None,
    shard: DataSize | None = None,
) -> list[BoundRow]:
    """Bounds on the optimum of a formulation under ``settings``, or of every applicable formulation if None.

    Bounds of plug-ins are included.

    Of the all-to-all formulations, None selects ``alltoall.master`` alone, whose bounds the others share. A plain
    topology has only these bounds; with settings or a demand, a pool of servers has those of all formulations that take
    them.

    Parameters
    ----------
    instance
        A spec, in which braces give several instances (``genkautz:n={8..64},d=4``), an instance, or an object that
        :func:`opticoll.instances.as_instance` reads.
    formulation, settings
        Name of the formulation, and its parameters.
    demand
        The setting ``demand`` of an all-to-all formulation: a string or data
        (:class:`opticoll.instances.demands.DemandSpec`).
    shard
        Size of a shard, such as ``"64MB"``, for times in seconds; the capacities of the instance need a unit.

    Returns
    -------
    Rows, tightest first; for several instances in sequence, each row with its ``instance``.

    Raises
    ------
    BadInput
        For a spec that describes no instance, an unknown formulation or one that does not take the instance.
    """
    from opticoll.formulations import formulations

    if isinstance(instance, str) and ":" not in instance and instance in formulations():
        refuse("bounds", f"{instance!r} is a formulation; the instance comes first, then the formulation")
    if settings is not None:
        check_mapping(settings, "bounds: settings")
    given: dict[str, object] = dict(settings or {})
    if demand is not None:
        given["demand"] = demand
    if not (isinstance(instance, str) and "{" in instance):
        return _of_instance(as_instance(instance), formulation, given, shard)
    result: list[BoundRow] = []
    for spec in expand(instance):
        value = as_instance(spec)
        result += [{**row, "instance": value.spec} for row in _of_instance(value, formulation, given, shard)]
    return result


def _of_instance(
    instance: Instance, name: str | None, settings: Mapping[str, Any], shard: DataSize | None
) -> list[BoundRow]:
    from opticoll.formulations import formulation

    if name is not None or type(instance) is Topology or (settings and isinstance(instance, Topology)):
        model = formulation(name or FLOW)
        if model._needs is not None:
            msg = f"{model.name} takes its data from a solution of {model._needs}; ask for the bounds of {model._needs}"
            raise BadInput(msg)
        return _rows(instance, *_prepared(model, instance, settings, shard))
    return _of_every_formulation(instance.spec, instance, settings, shard)


def _of_every_formulation(
    spec: str, instance: Instance, settings: Mapping[str, Any], shard: DataSize | None
) -> list[BoundRow]:
    from opticoll.formulations import formulations

    result: list[BoundRow] = []
    taken = False
    for model in formulations().values():
        known = {one.name for one in model.parameters} >= settings.keys()
        if known and model._needs is None and (model.name == FLOW or not model.name.startswith("alltoall.")):
            try:
                found = _prepared(model, instance, settings, shard)
            except BadInput:  # it does not take the instance
                continue
            result, taken = result + _rows(instance, *found), True
    if not taken:
        given = f" with {', '.join(settings)}" if settings else ""
        msg = f"instance {spec!r}: no formulation takes it{given}; `opticoll list formulations` shows what they take"
        raise BadInput(msg)
    return result


def _prepared(
    model: type[Formulation], instance: Instance, settings: Mapping[str, Any], shard: DataSize | None
) -> tuple[Formulation, float | None]:
    from opticoll.formulations.parameters import read_parameters
    from opticoll.solvers.methods import prepared

    problem = prepared(model, instance, read_parameters(model.parameters, settings, model.name))
    size = shard_of(Task(model, instance, settings=dict(settings)), model, shard)
    return problem, Scale.of(model, instance, size, settings.get("bandwidth")).seconds


def _rows(instance: Instance, problem: Formulation, seconds: float | None) -> list[BoundRow]:
    from opticoll.analysis.bounds.plugin_bounds import plugin_bounds
    from opticoll.formulations import bounds_of

    own = bounds_of(problem)
    return rows(problem, [*own, *plugin_bounds(problem, instance, own)], seconds)


def rows(model: Formulation, bounds: Iterable[Bound], seconds: float | None = None) -> list[BoundRow]:
    """Bounds on the optimum of a formulation as rows, tightest first; a shard takes ``seconds`` over a link."""
    return sorted(
        (_row(model, one, seconds) for one in bounds), key=lambda row: row["value"], reverse=model.sense == "min"
    )


def rows_of(run: Run, seconds: float | None = None) -> list[BoundRow]:
    """The analytic bounds of a run as rows; empty if they need more than the instance."""
    if run.plan is None or run.plan.problem._needs is not None:
        return []
    return rows(run.plan.problem, run.bounds or (), seconds)


def _row(model: Formulation, bound: Bound, seconds: float | None) -> BoundRow:
    served = model.concurrent is not None or {"F", "T"} <= model.metrics(1.0).keys()
    is_time = served and model.sense == "min"  # the objective is T, and F = 1 / T
    timed = served and counts_shards(model)
    fraction = bound.rational
    inverse = 1 / bound.value if bound.value else None
    if fraction:
        rounded = rounding.fraction_up if is_time else rounding.fraction_down
        inverse = rounded(1 / fraction)
    F, time = (inverse, bound.value) if is_time else (bound.value, inverse)
    if fraction is not None and fraction.numerator.bit_length() + fraction.denominator.bit_length() > MOST_BITS:
        fraction = None
    exact_time = fraction if is_time or not fraction else 1 / fraction
    return {
        "name": bound.name,
        "formulation": model.name,
        "quantity": "T" if is_time else "F" if served else "objective",
        "sense": "upper" if model.sense == "max" else "lower",
        "value": bound.value,
        "value_exact": None if fraction is None else str(fraction),
        "F": F if served else None,
        "T": time if timed else None,
        "T_exact": str(exact_time) if timed and exact_time else None,
        "T_s": time * seconds if timed and time is not None and seconds is not None else None,
        "exact": bound.exact,
        "reason": bound.reason,
        "paper": bound.paper or None,
    }
