"""Links of a topology by name, and the topology after a change of their capacities."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.arguments import refuse_masked
from opticoll.errors import BadInput, refuse
from opticoll.instances.quantities import parse_rate, split_rate
from opticoll.instances.topology import Topology
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from opticoll.instances.topology import F64


def _spelling(topology: Topology) -> Callable[[str], str]:
    """How names of links are compared: without blanks; where labels differ by these alone, without those at ends."""
    if len({label.replace(" ", "") for label in topology.labels}) == topology.n:
        return lambda name: name.replace(" ", "")
    return lambda name: re.sub(r"\s*(->|--|#)\s*", r"\1", name.strip())


def links_by_name(topology: Topology, spelled: Callable[[str], str]) -> dict[str, list[int]]:
    """Positions of the arcs that a name stands for, as it is ``spelled``.

    ``u->v`` are all arcs from u to v by labels, ``u->v#2`` is the second one, and ``u--v`` the cable, all arcs in both
    directions. Blanks in names are ignored unless labels differ by these alone.
    """
    copies = defaultdict[tuple[str, str], list[int]](list)
    labels = list(map(spelled, topology.labels))
    for a, (u, v) in enumerate(zip(topology.tail.tolist(), topology.head.tolist(), strict=True)):
        copies[labels[u], labels[v]].append(a)
    cables = {f"{u}--{v}": [*arcs, *copies[v, u]] for (u, v), arcs in copies.items() if (v, u) in copies}
    numbered = {f"{u}->{v}#{k}": [a] for (u, v), arcs in copies.items() for k, a in enumerate(arcs, start=1)}
    return cables | numbered | {f"{u}->{v}": arcs for (u, v), arcs in copies.items()}


def _arcs(
    topology: Topology, known: Mapping[str, list[int]], spelled: Callable[[str], str], link: Hashable
) -> list[int]:
    """Positions of the arcs of a link; refuse an unknown one with the closest name."""
    if isinstance(link, int | np.integer) and not isinstance(link, bool):
        if not 0 <= int(link) < topology.arcs:
            refuse(f"link {int(link)}", f"{topology.spec} has links 0..{topology.arcs - 1}")
        return [int(link)]
    ends = list(link) if isinstance(link, tuple) else []
    if not any(label.isdecimal() for label in topology.labels):  # else a number is a label, and no position
        numbers = [isinstance(end, int | np.integer) and 0 <= int(end) < topology.n for end in ends]
        ends = [topology.labels[int(v)] if given else v for v, given in zip(ends, numbers, strict=True)]
    text = "->".join(map(str, ends)) if isinstance(link, tuple) else str(link)
    plain = spelled(text)
    if plain not in known:
        near = nearest(plain, [name for name in known if "->" in name and "#" not in name])
        refuse(f"link {text!r}", f"{topology.spec} has no such link; {near}")
    return known[plain]


def changed_capacities(topology: Topology, changes: Any, now: F64) -> F64:
    """Capacities after changes [link bandwidths], ``(m,)``; 0 for a link that is left out.

    Parameters
    ----------
    topology
        The topology.
    changes
        Capacities [link bandwidths]: a number for all links, one per arc, ``(m,)``, or a mapping (also a Series) from
        links to numbers; or to rates such as ``"200Gb/s"``, if the capacities have a unit. A link is a name
        (:func:`links_by_name`), ``(u, v)`` by labels or, where no label is a number, by vertex numbers, or the position
        of an arc.
    now
        Capacities before the change [link bandwidths], ``(m,)``.

    Raises
    ------
    BadInput
        For an unknown link, or a number that is negative or not finite.
    """
    new: F64 = np.array(now, dtype=float)
    if isinstance(changes, Mapping) or hasattr(changes, "items"):
        if not len(changes):
            refuse("capacity", "no link is given; give numbers by link, such as {'a->b': 2}")
        spelled, changed = _spelling(topology), np.zeros(topology.arcs, dtype=bool)
        known = links_by_name(topology, spelled)
        for link, value in changes.items():
            arcs = _arcs(topology, known, spelled, link)
            where = f"link {link!r}"
            if changed[arcs].any():
                refuse(where, "another name given here stands for the same link, or a direction of it; name it once")
            changed[arcs] = True
            if split_rate(value) is not None:
                if topology.capacity_unit is None:
                    refuse(where, f"{value!r} is no number, and {topology.spec} has no unit of capacity; give a number")
                value = parse_rate(str(value), where) / parse_rate(topology.capacity_unit)
            new[arcs] = _number(value, where)
    else:
        refuse_masked(changes, "capacity")
        try:
            values = np.asarray(changes)
            if values.dtype.kind in "bc":
                raise TypeError
            values = np.asarray(values, dtype=float)
        except (TypeError, ValueError, OverflowError):
            msg = f"capacity: {str(changes)[:60]!r} is no number; give numbers by link, such as {{'a->b': 2}}"
            raise BadInput(msg) from None
        if values.shape not in {(), (topology.arcs,)}:
            refuse("capacity", f"has shape {values.shape}; give a number, or one per link: ({topology.arcs},)")
        new = np.broadcast_to(values, new.shape).copy()
    if not (np.isfinite(new).all() and (new >= 0).all()):
        worst = float(new[~(np.isfinite(new) & (new >= 0))][0])
        refuse("capacity", f"{worst:g} is no capacity; give finite numbers of at least 0")
    return new


def with_links_of(topology: Topology, capacity: F64) -> Topology:
    """The links of a topology whose new capacity, ``(m,)``, is not 0.

    It keeps a name given by ``oc.topology(name=)``, and is otherwise named after its contents.
    """
    kept = capacity > 0
    own = topology.spec.startswith("custom:") and not re.fullmatch(r"custom:[0-9a-f]{12}", topology.spec)
    return topology.with_changes(
        tail=topology.tail[kept],
        head=topology.head[kept],
        capacity=capacity[kept],
        spec=topology.spec if own else None,
    )


def _number(value: object, where: str) -> float:
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        msg = f"{where}: {value!r} is no number; give a capacity"
        raise BadInput(msg) from None
