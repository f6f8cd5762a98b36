"""Every analytic bound that applies to an instance, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NotRequired, TypedDict

from opticoll.errors import BadInput
from opticoll.instances import Topology, as_instance
from opticoll.instances.spec import expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from opticoll.formulations import Formulation
    from opticoll.formulations.model import Bound
    from opticoll.instances import Instance


class BoundRow(TypedDict):
    """One bound; ``F`` and ``T`` are None where the objective is another quantity.

    ``instance`` is set for bounds of several instances.
    """

    name: str
    formulation: str
    quantity: str
    sense: str
    value: float
    F: float | None
    T: float | None
    exact: bool
    reason: str
    paper: str | None
    instance: NotRequired[str]


#: The formulation that represents all all-to-all flows.
FLOW = "alltoall.master"


def bounds(
    instance: object,
    name: str | None = None,
    settings: Mapping[str, object] | None = None,
    *,
    demand: object = None,
) -> list[BoundRow]:
    """Bounds on the optimum of formulation ``name`` under ``settings``; of every applicable one if None.

    Bounds of plug-ins are included.

    Of the all-to-all formulations None means ``alltoall.master`` alone, whose bounds the others share; a topology of no
    particular machine, and a demand, have these only.

    Parameters
    ----------
    instance
        A spec, in which braces give several instances (``genkautz:n={8..64},d=4``), an instance, or an object that
        :func:`opticoll.instances.as_instance` reads.
    name, settings
        Formulation, and its parameters.
    demand
        The setting ``demand`` of an all-to-all formulation: text or data
        (:class:`opticoll.instances.demands.DemandSpec`).

    Returns
    -------
    Rows, tightest first; for several instances one after the other, each row with its ``instance``.

    Raises
    ------
    BadInput
        For a spec that describes no instance, an unknown formulation or one that does not take the instance.
    """
    given: dict[str, object] = dict(settings or {})
    if demand is not None:
        given["demand"] = demand
    if name is None and given:
        name = FLOW
    if not (isinstance(instance, str) and "{" in instance):
        return _of_instance(as_instance(instance), name, given)
    found: list[BoundRow] = []
    for spec in expand(instance):
        value = as_instance(spec)
        found += [{**row, "instance": value.spec} for row in _of_instance(value, name, given)]
    return found


def _of_instance(instance: Instance, name: str | None, settings: Mapping[str, Any]) -> list[BoundRow]:
    from opticoll.formulations import formulation

    if name is not None or type(instance) is Topology:
        model = formulation(name or FLOW)
        if model.needs is not None:
            msg = f"{model.name} takes its data from a solution of {model.needs}; ask for that one's bounds"
            raise BadInput(msg)
        return _rows(model, instance, settings)
    return _of_every_formulation(instance.spec, instance)


def _of_every_formulation(spec: str, instance: Instance) -> list[BoundRow]:
    from opticoll.formulations import formulations

    found: list[BoundRow] = []
    taken = False
    for model in formulations().values():
        if model.needs is None and (model.name == FLOW or not model.name.startswith("alltoall.")):
            try:
                found += _rows(model, instance)
            except BadInput:
                continue
            taken = True
    if not taken:
        msg = f"instance {spec!r}: no formulation takes it; `opticoll list formulations` shows what they take"
        raise BadInput(msg)
    return found


def _rows(model: Formulation, instance: Instance, settings: Mapping[str, Any] | None = None) -> list[BoundRow]:
    from opticoll.formulations import bounds_of, plugin_bounds
    from opticoll.formulations.model import read_parameters
    from opticoll.solvers.methods import prepared

    data = prepared(model, instance, read_parameters(model.parameters, settings or {}, model.name))
    return rows(model, [*bounds_of(model, data), *plugin_bounds(model, instance, data)])


def rows(model: Formulation, bounds: Iterable[Bound]) -> list[BoundRow]:
    """Bounds on the optimum of a formulation as rows, tightest first."""
    return sorted((_row(model, one) for one in bounds), key=lambda row: row["value"], reverse=model.sense == "min")


def _row(model: Formulation, bound: Bound) -> BoundRow:
    served = model.concurrent is not None
    return {
        "name": bound.name,
        "formulation": model.name,
        "quantity": "F" if served else "objective",
        "sense": "upper" if model.sense == "max" else "lower",
        "value": bound.value,
        "F": bound.value if served else None,
        "T": 1 / bound.value if served and bound.value else None,
        "exact": bound.exact,
        "reason": bound.reason,
        "paper": bound.paper or None,
    }
