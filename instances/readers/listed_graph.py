"""Graphs as files and objects list them: nodes and links with attributes, of which one is the capacity.

All readers of graphs fill a :class:`ListedGraph`, so that names, capacities, directions and ranks follow the same rules
whether a graph comes from GraphML, GML, JSON, SNDlib, DIMACS, networkx or a table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from opticoll.errors import BadFile
from opticoll.instances.readers.reading import refuse
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


def _numeric(value: object) -> bool:
    """Whether an attribute is a number or a string that contains one."""
    if isinstance(value, bool):
        return False
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


class Link(NamedTuple):
    """A link with its ends, attributes and place; ``directed`` if the format itself states it."""

    tail: Hashable | None
    head: Hashable | None
    attributes: Mapping[str, object]
    number: int
    directed: bool | None


class ListedGraph(TopologyBuilder):
    """A builder whose links have attributes: its capacities are found once all links are known.

    The option ``capacity`` names their attribute, or is the capacity of every link. Otherwise it is the one attribute
    of :data:`CAPACITY_NAMES`, else of :data:`OTHER_NAMES`, else a text that states one rate for every link; a link
    without it is refused if another has it, and so are numbers and rates under other names. If there are none, all
    are 1.

    Attributes
    ----------
    directed
        Whether links that do not state it are arcs.
    demands
        Amounts by pair that the file states beside the network.
    links
        All links, in reading order.
    ask_capacity
        How to choose the attribute, with ``{name}`` for it, for messages.
    """

    def __init__(self, what: str, place: str, options: ReadOptions | None = None, *, directed: bool = True) -> None:
        super().__init__(what, place, options)
        self.directed = directed
        self.ask_capacity = "write file:PATH,capacity={name}, or file:PATH,capacity=1 for equal links"
        self.demands: dict[tuple[str, str], float] = defaultdict(float)
        self.links: list[Link] = []

    def list_link(
        self,
        tail: Hashable | None,
        head: Hashable | None,
        attributes: Mapping[str, object],
        number: int,
        directed: bool | None = None,
    ) -> None:
        """List a link; ``directed`` if the format itself states it."""
        self.links.append(Link(tail, head, attributes, number, directed))

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
        """Build the topology, with capacities taken from the attributes of the links.

        Raises
        ------
        BadFile
            As :meth:`TopologyBuilder.build`, and for numbers or rates under an unknown name, several known names, or
            links without a capacity when others have one.
        """
        chosen = self.options.capacity
        name: str | None = None
        if chosen is None:
            name = self._capacity_name([link.attributes for link in self.links])
            chosen = 1.0
        elif isinstance(chosen, str) and split_rate(chosen) is None:
            name = chosen
        for link in self.links:
            tail, head, attributes, number, directed = link
            value = chosen if name is None else attributes.get(name)
            if value is None:
                self._refuse_missing(link, str(name))
            self.add_edge(tail, head, value, number, directed=self.direction(attributes, number, directed))
        if name is None and self.options.capacity is None:
            self.note_equal()
        if self.demands:
            self.note(f"the file also states demands ({len(self.demands)} amounts); demand=file:PATH takes them")
        self.links = []
        return super().build()

    def _refuse_missing(self, link: Link, name: str) -> NoReturn:
        missing = sum(one.attributes.get(name) is None for one in self.links)
        present = dict.fromkeys(key for one in self.links for key in one.attributes)
        others = "" if name in present else f" (attributes: {', '.join(list(present)[:8]) or 'none'})"
        msg = (
            f"{self.where(link.number)}: the edge {short(link.tail)}->{short(link.head)} has no attribute "
            f"{name!r}{others}; give every edge a capacity (missing at {missing} of {len(self.links)}), or take "
            "capacity=1 for equal links"
        )
        raise BadFile(msg)

    def _capacity_name(self, edges: Sequence[Mapping[str, object]]) -> str | None:
        """The attribute with the capacity; None if no link has a number or a rate."""
        present = dict.fromkeys(key for attributes in edges for key in attributes)
        known = [key for key in present if key.lower() in CAPACITY_NAMES]
        if len(known) == 1:
            return known[0]
        if known:
            refuse(self.what, f"edges have {' and '.join(map(repr, known[:4]))}; {self._ask(known[0])}")
        other = [key for key in present if key.lower() in OTHER_NAMES]
        if len(other) == 1:
            self.unit = self.unit or OTHER_NAMES[other[0].lower()]
            return other[0]
        asked = [key for key in present if key.lower() not in NEUTRAL]
        numbers = [key for key in asked if all(_numeric(one[key]) for one in edges if one.get(key) is not None)]
        if numbers:
            msg = f"{self.what}: edges have numbers under {', '.join(map(repr, numbers[:4]))}, but no capacity; "
            raise BadFile(msg + self._ask(numbers[0]))
        return self._rate_name(edges, [key for key in asked if any(resembles_rate(one.get(key)) for one in edges)])

    def _rate_name(self, edges: Sequence[Mapping[str, object]], names: Sequence[str]) -> str | None:
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
            raise BadFile(msg + self._ask(complete))
        odd = next((one[first] for one in edges if resembles_rate(one.get(first)) and not rate_in(one[first])), None)
        example = "" if odd is None else f" (not {short(odd)})"
        equal = self.ask_capacity.rpartition(", or ")[2]
        msg = (
            f"{self.what}: {len(edges) - rates[first].count(None)} of {len(edges)} edges state one rate as text under "
            f"{first!r}{example}; give each a rate, such as 155 Mbps, or take {equal}"
        )
        raise BadFile(msg)

    def _ask(self, name: str) -> str:
        return self.ask_capacity.format(name=name)

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
            word = str(attributes[key]).strip().lower() if key.lower() in DIRECTIONS else ""
            said = _DIRECTED.get(word, _YES_NO.get(word) if key.lower() == "directed" else None)
            if said is None:
                continue
            if said and not self.directed and self.options.directed is None:
                msg = f"{self.where(number)}: {key} {short(attributes[key])} in an undirected graph; "
                raise BadFile(msg + self.ask_direction)
            return said
        return self.directed
