"""Links of a topology by name, and the topology after a change of their capacities."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.arguments import refuse_masked
from opticoll.errors import BadInput, refuse
from opticoll.instances.quantities import parse_rate, split_rate
from opticoll.instances.topology import Topology
from opticoll.nearest_names import nearest

if TYPE_CHECKING:
    from collections.abc import Hashable

    from opticoll.instances.topology import F64, I64


class LinkNames:
    """The arcs of a topology by their names, which are listed once."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology

    @cached_property
    def _copies(self) -> dict[str, list[int]]:
        """Arcs from one vertex to another, by ``u->v``."""
        labels, found = self.topology.labels, defaultdict(list)
        for a, (u, v) in enumerate(zip(self.topology.tail.tolist(), self.topology.head.tolist(), strict=True)):
            found[f"{labels[u]}->{labels[v]}"].append(a)
        return found

    @cached_property
    def _arcs(self) -> dict[str, list[int]]:
        """Arcs by every name that they have, without blanks."""
        known = dict(self._copies)
        for name, arcs in self._copies.items():
            known |= {f"{name}#{number}": [a] for number, a in enumerate(arcs, start=1)}
        return {name.replace(" ", ""): arcs for name, arcs in known.items()}

    @cached_property
    def _numbered(self) -> bool:
        """Whether labels are numbers, so that a number is a label and not a position."""
        return any(label.isdecimal() for label in self.topology.labels)

    def _label(self, end: object) -> str:
        """The label of a vertex that is given by it or, where no label is a number, by its number."""
        if not self._numbered and isinstance(end, int | np.integer) and 0 <= int(end) < self.topology.n:
            return self.topology.labels[int(end)]
        return str(end)

    def _cable(self, name: str) -> I64 | None:
        """Positions of the arcs from u to v and back, named ``u--v``; None if they are not in both directions."""
        for place in (found.start() for found in re.finditer("(?=--)", name)):
            u, v = name[:place], name[place + 2 :]
            ahead, back = self._arcs.get(f"{u}->{v}"), self._arcs.get(f"{v}->{u}")
            if ahead is not None and back is not None:
                return np.array([*ahead, *back])
        return None

    def arcs(self, link: Hashable) -> I64:
        """Positions of the arcs that a name stands for.

        Parameters
        ----------
        link
            ``"u->v"`` or ``(u, v)`` by labels, or by vertex numbers where no label is a number: all arcs from u to v;
            ``"u->v#2"``: the second one; ``"u--v"``: the cable, all arcs in both directions; or the
            position of one arc.

        Raises
        ------
        BadInput
            If there is no such arc; the message suggests the closest name.
        """
        topology = self.topology
        if isinstance(link, int | np.integer) and not isinstance(link, bool):
            if not 0 <= int(link) < topology.arcs:
                refuse(f"link {int(link)}", f"{topology.spec} has links 0..{topology.arcs - 1}")
            return np.array([int(link)])
        text = "->".join(map(self._label, link)) if isinstance(link, tuple) else str(link)
        plain = text.replace(" ", "")
        if plain not in self._arcs:
            if (cable := self._cable(plain)) is not None:
                return cable
            refuse(f"link {text!r}", f"{topology.spec} has no such link; {nearest(plain, list(self._copies))}")
        return np.array(self._arcs[plain])


def changed_capacities(topology: Topology, changes: Any, now: F64) -> F64:
    """Capacities after changes [link bandwidths], ``(m,)``; 0 for a link that is left out.

    Parameters
    ----------
    topology
        The topology.
    changes
        Capacities [link bandwidths]: a number for all links, one per arc, ``(m,)``, or a mapping (also a Series) from
        links, as :meth:`LinkNames.arcs` reads them, to numbers; or to rates such as ``"200Gb/s"``, if the capacities
        have a unit.
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
        names, changed = LinkNames(topology), np.zeros(topology.arcs, dtype=bool)
        for link, value in changes.items():
            arcs = names.arcs(link)
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
