"""Solutions of ``optree.one-stage``: arrays, wavelengths of routes, and rounds of circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.errors import NotApplicable, refuse
from opticoll.formulations.model import Bound
from opticoll.formulations.rounds.collectives import collective
from opticoll.formulations.rounds.round_schedule import Limits, direct, violations
from opticoll.formulations.rounds.segments import select
from opticoll.formulations.rounds.wavelengths import (
    arcs_taken,
    assign,
    lemma_1,
    load_bound,
    wavelengths_needed,
    whole_fibres,
)
from opticoll.formulations.variables import Array, Axis, Links, members, pair_labels

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.optree.one_stage import AllToAll
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.instances.photonics import WdmFibres
    from opticoll.instances.topology import F64, I64, Mask


#: Maximum number of nodes whose pairs are listed and checked.
MOST_NODES = 1024


def prepared(cls: type[AllToAll], instance: object, *, colours: int) -> AllToAll:
    """The problem on intact fibres of at most ``MOST_NODES`` nodes."""
    fibres = whole_fibres(instance, cls.name)
    if fibres.n > MOST_NODES:
        refuse(cls.name, f"{fibres.n} nodes have too many pairs to list; use at most {MOST_NODES}", NotApplicable)
    return cls(fibres, colours or lemma_1(fibres.n, ring=fibres.circular))


def topology(data: AllToAll) -> WdmFibres:
    """The fibres."""
    return data.fibres


def ends_of_routes(data: AllToAll) -> tuple[I64, I64, Mask]:
    """Source, target and direction of every route, ``(|R|,)``: by pair, onward before backward."""
    source, target = np.divmod(np.flatnonzero(~np.eye(data.fibres.n, dtype=bool).ravel()), data.fibres.n)
    if not data.fibres.circular:
        return source, target, target > source
    return np.repeat(source, 2), np.repeat(target, 2), np.tile([True, False], source.size)


def number_of_routes(data: AllToAll) -> int:
    """Number of routes |R|."""
    return data.fibres.n * (data.fibres.n - 1) * (2 if data.fibres.circular else 1)


def pairs_of_routes(data: AllToAll) -> I64:
    """The pair of every route, ``(|R|,)``."""
    return np.arange(data.routes) // (2 if data.fibres.circular else 1)


def arcs_of_routes(data: AllToAll) -> tuple[I64, I64]:
    """Arc and route of every use of an arc by a route, ``(uses,)`` each."""
    span, _, owner = arcs_taken(data.fibres.n, *data.ends)
    up, down = data.fibres.arcs_onward()
    return np.where(data.ends[2][owner], up[span], down[span]), owner


def arrays(data: AllToAll, names: Collection[str]) -> dict[str, Array]:
    """Shapes of ``route_colour``, or of x and y; a route has a commodity and a direction."""

    def routes(_values: object) -> dict[str, list[str]]:
        source, target, onward = data.ends
        ways = ["onward" if one else "backward" for one in onward.tolist()]
        return {"commodity": pair_labels(data.fibres, source, target), "direction": ways}

    route = Axis("route", data.routes, routes)
    if "route_colour" in names:
        return {"route_colour": members(route, of=Axis("wavelength", data.routes + 1), low=-1)}
    wavelength = Axis("wavelength", data.colours)
    return {"x": Array((route, wavelength)), "y": Array((wavelength,), required=False)}


def links(data: AllToAll, values: Mapping[str, F64]) -> Links:
    """Number of circuits over every fibre, within the rounds that its wavelengths need."""
    used = np.bincount(routes_and_colours(data, values)[0], minlength=data.routes)
    arc, route = data.taken
    load, width = np.bincount(arc, used[route], data.fibres.arcs).astype(float), data.fibres.channels
    rounds = -(-data.objective(values) // width)
    return Links(data.fibres, load, np.full(load.size, float(width)), rounds, "circuits", "wavelengths per round")


def bounds(data: AllToAll) -> list[Bound]:
    """Arc-counting bound, and the closed form that an assignment attains for every n, if ``colours`` suffices."""
    n, ring = data.fibres.n, data.fibres.circular
    needed = wavelengths_needed(n, ring=ring)
    reason = "shortest paths use more arcs than fewer wavelengths provide" if ring else "pairs across the middle arc"
    return [
        Bound("arc-load", float(load_bound(n, ring=ring)), reason, "optree"),
        Bound(
            "full-circles" if ring else "chains",
            float(needed),
            "attained by an assignment in closed form",
            "optree",
            exact=data.colours >= needed,
        ),
    ]


closed_forms = bounds


def refute(data: AllToAll) -> Bound | None:
    """Bound that proves infeasibility if ``colours`` is below the number of wavelengths needed."""
    needed = wavelengths_needed(data.fibres.n, ring=data.fibres.circular)
    if data.colours >= needed:
        return None
    reason = f"colours={data.colours}, but the pairs of {data.fibres.n} nodes need {needed} wavelengths"
    return Bound("full-circles" if data.fibres.circular else "chains", float(needed), reason, "optree", exact=True)


def metrics(data: AllToAll, value: float | None) -> dict[str, float | int | None]:
    """Wavelengths, and rounds with the channels of the fibres."""
    rounds = None if value is None else int(-(-value // data.fibres.channels))
    return {"wavelengths": value, "rounds": rounds}


def rounds_of_channels(data: AllToAll, values: Mapping[str, F64]) -> RoundSchedule:
    """Return the circuits, in as many rounds as the fibres' wavelengths need; chunk s n + t goes from s to t."""
    routes, colour, _ = routes_and_colours(data, values)
    when, channel = np.divmod(colour, data.fibres.channels)
    wavelength = channel % data.fibres.wavelengths
    order = np.lexsort((routes, when))
    arc, owner = data.taken
    start, arcs = select(np.searchsorted(owner, np.arange(data.routes + 1)), arc, routes[order])
    source, target, _ = (ends[routes[order]] for ends in data.ends)
    return direct(when[order], source, target, source * data.fibres.n + target, wavelength[order], start, arcs)


def replayed(data: AllToAll, schedule: RoundSchedule) -> dict[str, float]:
    """Violations of a schedule of rounds: one circuit per wavelength of a fibre, one chunk per circuit."""
    limits = Limits(data.fibres.wavelengths, waveguides=data.fibres.fibres, ports=None, load=1)
    return violations(data.fibres, collective(data.performs, data.fibres.n), limits, schedule)


def routes_and_colours(data: AllToAll, values: Mapping[str, F64]) -> tuple[I64, I64, float]:
    """Routes taken, their wavelengths, and the distance from integers."""
    if "route_colour" in values:
        given = np.asarray(values["route_colour"]).astype(np.int64)
        routes = np.flatnonzero(given >= 0)
        return routes, given[routes], 0.0
    x = np.asarray(values["x"], dtype=float)
    routes, colours = np.nonzero(x > 0.5)
    return routes, colours, float(np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0))


def values_of(data: AllToAll) -> dict[str, F64]:
    """The closed-form assignment, as ``route_colour``."""
    n, ring = data.fibres.n, data.fibres.circular
    pairs = assign(n, ring=ring)
    onward, colour = pairs.by_pair()
    source, target, way = data.ends
    chosen = onward[source, target] == way
    return {"route_colour": np.where(chosen, colour[source, target], -1).astype(float)}
