"""Graphs as files and objects list them: nodes and links with attributes, of which one is the capacity.

All readers of graphs fill a :class:`ListedGraph`, so that names, capacities, directions and ranks follow the same rules
whether a graph comes from GraphML, GML, JSON, SNDlib, DIMACS, networkx or a table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from opticoll.errors import BadFile
from opticoll.instances.readers.topology_builder import ReadOptions, TopologyBuilder, short
from opticoll.instances.topology import rate_in, resembles_rate, split_rate

if TYPE_CHECKING:
    from opticoll.instances.topology import Topology

#: Names under which capacities are expected, in lower case; fallback names, with the
#: unit that they imply (Topology Zoo, SNDlib); and numeric attributes that are not capacities.
CAPACITY_NAMES = ("capacity", "cap", "bandwidth", "bw", "link_capacity", "linkcapacity")
OTHER_NAMES = {"linkspeedraw": "b/s", "pre_installed_capacity": None, "preinstalledcapacity": None}
NEUTRAL = frozenset({"", "id", "key", "arc", "index", "directed", "_igraph_index"})
#: Attributes in which a rate that every link has is its capacity.
_LABELS = (
    "label",
    "linklabel",
    "linknote",
    "name",
    "speed",
    "linkspeed",
    "link_speed",
    "rate",
    "data_rate",
    "datarate",
)
#: Attributes of nodes and graphs that may be a traffic, which is no part of a network.
_TRAFFIC = frozenset({"demand", "demands", "traffic", "supply", "traffic_matrix"})
#: Attributes of links that may state a direction, as tables of Gephi do.
DIRECTIONS = ("type", "directed", "edgetype")
_DIRECTED = {"directed": True, "undirected": False, "mutual": False}
_YES_NO = {"true": True, "false": False, "1": True, "0": False}


def stated_direction(name: str, value: object) -> bool | None:
    """Whether an attribute says that a link is directed; None if it says nothing about that."""
    word = str(value).strip().lower()
    return _DIRECTED.get(word, _YES_NO.get(word) if name.lower() == "directed" else None)


class Capacities:
    """Reader of edge capacities from the right attribute.

    Parameters
    ----------
    chosen
        Name of the attribute, or the capacity of every edge; None to look for :data:`CAPACITY_NAMES`.
    what
        Name of the graph in messages.
    remedy
        How to choose, with ``{name}`` for the attribute.

    Attributes
    ----------
    unit
        Unit implied by the name of the attribute.
    absent
        Whether no edge states a capacity.
    """

    def __init__(self, chosen: str | float | None, what: str, remedy: str) -> None:
        self.chosen, self.what, self.remedy = chosen, what, remedy
        self.unit: str | None = None
        self.absent = False

    def of(
        self,
        edges: Sequence[Mapping[str, object]],
        place: Callable[[int], str],
        ends: Sequence[tuple[object, object]],
    ) -> list[object]:
        """The capacity of every edge as given; 1 for all if no edge has a number or a rate.

        Parameters
        ----------
        edges, ends
            Attributes and ends of every edge.
        place
            Where an edge is listed, by its position among ``edges``.

        Raises
        ------
        BadFile
            For numbers or rates under an unknown name, several known names, or edges without a capacity when others
            have one.
        """
        if self.chosen is not None and (not isinstance(self.chosen, str) or split_rate(self.chosen) is not None):
            return [self.chosen] * len(edges)
        name = self._name(edges)
        if name is None:
            self.absent = bool(edges)
            return [1.0] * len(edges)
        for k, attributes in enumerate(edges):
            if attributes.get(name) is None:
                others = "" if any(name in one for one in edges) else f" (attributes: {_listed(edges)})"
                tail, head = ends[k]
                missing = sum(one.get(name) is None for one in edges)
                where = f"{place(k)}: the edge {short(tail)}->{short(head)}"
                msg = f"{where} has no attribute {name!r}{others}; give every edge a capacity (missing at {missing} of "
                raise BadFile(msg + f"{len(edges)}), or take capacity=1 for equal links")
        return [attributes[name] for attributes in edges]

    def _name(self, edges: Sequence[Mapping[str, object]]) -> str | None:
        if self.chosen is not None:
            return str(self.chosen)
        present = dict.fromkeys(key for attributes in edges for key in attributes)
        known = [key for key in present if key.lower() in CAPACITY_NAMES]
        if len(known) == 1:
            return known[0]
        if known:
            msg = f"{self.what}: edges have {' and '.join(map(repr, known[:4]))}; {self.remedy.format(name=known[0])}"
            raise BadFile(msg)
        other = [key for key in present if key.lower() in OTHER_NAMES]
        if len(other) == 1:
            self.unit = OTHER_NAMES[other[0].lower()]
            return other[0]
        asked = [key for key in present if key.lower() not in NEUTRAL]
        numbers = [key for key in asked if all(_numeric(one[key]) for one in edges if one.get(key) is not None)]
        if numbers:
            msg = (
                f"{self.what}: edges have numbers under {', '.join(map(repr, numbers[:4]))}, but no capacity; "
                f"{self.remedy.format(name=numbers[0])}"
            )
            raise BadFile(msg)
        return self._rates(edges, [key for key in asked if any(resembles_rate(one.get(key)) for one in edges)])

    def _rates(self, edges: Sequence[Mapping[str, object]], names: Sequence[str]) -> str | None:
        """The attribute in which every edge states one rate as text, such as ``45 Mbps DS-3``."""
        if not names:
            return None
        rates = {name: [rate_in(one.get(name)) for one in edges] for name in names}
        first = names[0]
        if all(name.lower() in _LABELS and None not in rates[name] == rates[first] for name in names):
            return first
        complete = next((name for name in names if None not in rates[name]), None)
        if complete is not None:
            msg = f"{self.what}: edges have rates under {', '.join(map(repr, names[:4]))}, but no capacity; "
            raise BadFile(msg + self.remedy.format(name=complete))
        odd = next((one[first] for one in edges if resembles_rate(one.get(first)) and not rate_in(one[first])), None)
        example = "" if odd is None else f" (not {short(odd)})"
        msg = (
            f"{self.what}: {len(edges) - rates[first].count(None)} of {len(edges)} edges state one rate as text under "
            f"{first!r}{example}; give each a rate, such as 155 Mbps, or take {self.remedy.rpartition(', or ')[2]}"
        )
        raise BadFile(msg)


def file_capacities(chosen: str | float | None, what: str) -> Capacities:
    """Reader of the capacities of a graph file; its message tells how to choose an attribute in the spec."""
    return Capacities(chosen, what, "write file:PATH,capacity={name}, or file:PATH,capacity=1 for equal links")


def _listed(edges: Sequence[Mapping[str, object]]) -> str:
    names = dict.fromkeys(key for attributes in edges for key in attributes)
    return ", ".join(list(names)[:8]) or "none"


def _numeric(value: object) -> bool:
    """Whether an attribute is a number or a string that contains one."""
    if isinstance(value, bool):
        return False
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


class ListedGraph(TopologyBuilder):
    """A builder whose links have attributes: its capacities are found once all links are known.

    Attributes
    ----------
    directed
        Whether links that do not state it are arcs.
    demands
        Amounts by pair that the file states beside the network.
    links
        Tail, head, attributes, place and own direction (None: that of the graph) of every link.
    """

    def __init__(self, what: str, place: str, options: ReadOptions | None = None, *, directed: bool = True) -> None:
        super().__init__(what, place, options)
        self.directed = directed
        self.capacities = file_capacities(self.options.capacity, what)
        self.demands: dict[tuple[str, str], float] = defaultdict(float)
        self.links: list[tuple[Hashable | None, Hashable | None, Mapping[str, object], int, bool | None]] = []

    def list_link(
        self,
        tail: Hashable | None,
        head: Hashable | None,
        attributes: Mapping[str, object],
        number: int,
        directed: bool | None = None,
    ) -> None:
        """List a link; ``directed`` if the format itself states it."""
        self.links.append((tail, head, attributes, number, directed))

    def add_node(self, name: Hashable | None, attributes: Mapping[str, object]) -> None:
        """Add a node, see :meth:`TopologyBuilder.add_node`; a traffic among its attributes is noted."""
        super().add_node(name, attributes)
        self.note_traffic(attributes, "nodes have")

    def note_traffic(self, attributes: Mapping[str, object], where: str) -> None:
        """Note attributes that may be a traffic, unless they are empty."""
        for key, value in attributes.items():
            if key.lower() in _TRAFFIC and value not in (None, "", {}, []):
                size = ""
                if isinstance(value, Mapping) and all(isinstance(row, Mapping) for row in value.values()):
                    size = f" ({sum(map(len, value.values()))} amounts)"
                self.note(
                    f"{where} {key!r}{size}, which is no part of the network and is not used; give a demand, such as a "
                    "file of src,dst,amount"
                )

    def build(self) -> Topology:
        """Build the topology, with capacities taken from the attributes of the links; errors as :class:`Capacities`."""
        values = self.capacities.of(
            [link[2] for link in self.links],
            lambda k: self.where(self.links[k][3]),
            [link[:2] for link in self.links],
        )
        self.unit = self.unit or self.capacities.unit
        for (tail, head, attributes, number, directed), value in zip(self.links, values, strict=True):
            self.add_edge(tail, head, value, number, directed=self.direction(attributes, number, directed))
        if self.capacities.absent:
            self.note_equal()
        if self.demands:
            self.note(f"the file also states demands ({len(self.demands)} amounts); demand=file:PATH takes them")
        self.links = []
        return super().build()

    def direction(self, attributes: Mapping[str, object], number: int, own: bool | None = None) -> bool:
        """Whether a link is an arc: as the format (``own``), its attributes, or the graph says.

        Raises
        ------
        BadFile
            For an attribute that calls a link of an undirected graph directed.
        """
        if own is not None:
            return own
        for key in attributes:
            said = stated_direction(key, attributes[key]) if key.lower() in DIRECTIONS else None
            if said is None:
                continue
            if said and not self.directed and self.options.directed is None:
                msg = f"{self.where(number)}: {key} {short(attributes[key])} in an undirected graph; "
                raise BadFile(msg + self.ask_direction)
            return said
        return self.directed
