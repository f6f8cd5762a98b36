"""Every analytic bound that applies to an instance, as plain rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opticoll.errors import BadInput
from opticoll.instances import Topology, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opticoll.formulations import Formulation
    from opticoll.formulations.model import Bound


#: The formulation that stands for all all-to-all flows.
FLOW = "alltoall.master"


def bounds(spec: str, name: str | None = None, settings: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    """Bounds on the optimum of formulation ``name`` under ``settings``; of every one that takes the instance if None.

    Of the all-to-all formulations None means ``alltoall.master`` alone, whose bounds the others share; a topology of no
    particular machine has these only.

    Raises
    ------
    BadInput
        For a spec that describes no instance, an unknown formulation or one that does not take the instance.
    """
    from opticoll.formulations import formulation

    instance = parse(spec)
    if name is not None or type(instance) is Topology:
        model = formulation(name or FLOW)
        if model.needs is not None:
            msg = f"{model.name} takes its data from a solution of {model.needs}; ask for that one's bounds"
            raise BadInput(msg)
        return _rows(model, instance, settings)
    return _of_every_formulation(spec, instance)


def _of_every_formulation(spec: str, instance: Any) -> list[dict[str, Any]]:
    from opticoll.formulations import formulations

    rows: list[dict[str, Any]] = []
    taken = False
    for model in formulations().values():
        if model.needs is None and (model.name == FLOW or not model.name.startswith("alltoall.")):
            try:
                rows += _rows(model, instance)
            except BadInput:
                continue
            taken = True
    if not taken:
        msg = f"instance {spec!r}: no formulation takes it; `opticoll list formulations` shows what they take"
        raise BadInput(msg)
    return rows


def _rows(model: Formulation, instance: Any, settings: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    from opticoll.formulations.model import read_parameters
    from opticoll.solvers.methods import prepared

    data = prepared(model, instance, read_parameters(model.parameters, settings or {}, model.name))
    rows = [_row(model, bound) for bound in model.bounds(data)]
    return sorted(rows, key=lambda row: row["value"], reverse=model.sense == "min")


def _row(model: Formulation, bound: Bound) -> dict[str, Any]:
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
