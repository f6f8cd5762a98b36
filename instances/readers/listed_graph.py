"""Graphs as files and objects list them: nodes and links with attributes, of which one is the capacity.

All readers of topologies fill a :class:`ListedGraph`, so that names, capacities, directions and ranks follow the same
rules whether a graph comes from GraphML, GML, JSON, SNDlib, a dump of NCCL, networkx, a matrix or a table.

What is malformed is refused (:class:`opticoll.errors.BadFile`) in one line with the place and the remedy.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from opticoll.errors import BadFile, BadInput
from opticoll.instances.quantities import is_size, parse_rate, split_rate
from opticoll.instances.readers.ranks import chosen, marked_switches, names_switch, plain, seeming_switches
from opticoll.instances.readers.read_options import ReadOptions
from opticoll.instances.readers.reading import refuse
from opticoll.instances.readers.stated_rates import rate_in, resembles_rate
from opticoll.instances.topology import MAX_ARCS, MAX_VERTICES, Topology

if TYPE_CHECKING:
    from opticoll.instances.topology import I64

#: Node attributes that may give the kind of a node, with names as of :func:`plain`, and its name; of the latter the
#: first that is given counts.
KINDS = ("type", "kind", "role", "function", "nodetype", "device", "devicetype")
NAMES = ("label", "name")
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
#: Attributes of links that state a least flow.
_LOWER = re.compile(r"low(?:er)?(?:bound|capacity)?[0-9]*|min(?:imum)?flow")
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


def short(value: object) -> str:
    """A value as messages show it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _place(attributes: Mapping[str, object]) -> tuple[float, float] | None:
    """The place that the attributes of a node give it in a drawing; None if they give none."""
    pair = attributes.get("pos")
    x, y = (
        pair
        if isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2
        else (attributes.get("x"), attributes.get("y"))
    )
    try:
        place = float(x), float(y)
    except (TypeError, ValueError, OverflowError):
        return None
    return place if isfinite(place[0]) and isfinite(place[1]) else None


class Link(NamedTuple):
    """A link with its ends, attributes and place in the file; ``directed`` if the format itself states it."""

    tail: Hashable | None
    head: Hashable | None
    attributes: Mapping[str, object]
    place: int | str
    directed: bool | None


class Arc(NamedTuple):
    """An arc with its ends, capacity and place in the file; ``back`` if it is the second of an undirected link."""

    tail: Hashable
    head: Hashable
    capacity: float
    place: int | str
    back: bool


class ListedGraph:
    """Vertices and links of one file or object, in reading order.

    Capacities are found once all links are known. The option ``capacity`` names their attribute, or is the capacity of
    every link. Otherwise it is the one attribute of :data:`CAPACITY_NAMES`, else of :data:`OTHER_NAMES`, else a text
    that states one rate for every link; a link without it is refused if another has it, and so are numbers and rates
    under other names. If there are none, all are 1.

    Parameters
    ----------
    what
        Name of the file in messages.
    options
        How to read it.
    place
        Unit of position in messages: ``line``, ``arc`` or ``edge``; positions that are strings have none.

    Attributes
    ----------
    directed
        Whether links that do not state it are arcs.
    spec
        Spec of the topology; None for one that is named after its contents.
    keep_loops
        Whether self-loops are accepted.
    multigraph
        False if the file says that it has no parallel links, so that a link listed again is the same one; True if it
        may have some, listed in any direction; None if it does not say.
    terminals
        Names of the terminals, or None for all vertices except ``relays``.
    relays
        Names of vertices that are not terminals.
    labels
        A label for some names; the names themselves for others.
    kinds
        Kind that the file gives a vertex, such as ``switch``.
    stated
        Whether the file specifies the terminals, so that names like those of switches are not ambiguous.
    unit
        Unit of the capacities, see :attr:`opticoll.instances.Topology.capacity_unit`.
    demands
        Amounts by pair that the file states beside the network.
    links
        All links, in reading order.
    ask_ranks, ask_arcs, ask_loops, ask_direction, ask_capacity
        How to choose the terminals, to state arcs, loops and direction, and to choose the attribute of capacities, with
        ``{name}`` for it, for messages.
    notes
        What the user must be told, each once (:attr:`opticoll.instances.Topology.notes`).
    """

    def __init__(self, what: str, options: ReadOptions | None = None, *, place: str = "line") -> None:
        self.what, self.place, self.directed = what, place, True
        self.spec: str | None = what
        self.options = options or ReadOptions()
        self.keep_loops, self.stated = False, False
        self.multigraph: bool | None = None
        self.terminals: list[Hashable] | None = None
        self.relays: set[Hashable] = set()
        self.labels: dict[Hashable, str] = {}
        self.kinds: dict[Hashable, str] = {}
        self.unit: str | None = None
        self.demands: dict[tuple[str, str], float] = defaultdict(float)
        self.links: list[Link] = []
        self.notes: list[str] = []
        self.ask_ranks = (
            "write file:PATH,ranks=PATTERN for the vertices that send and receive (ranks=* for all), or "
            "file:PATH,switches=PATTERN for the others"
        )
        self.ask_arcs = "write one arc per line: tail head capacity"
        self.ask_loops = "write file:PATH,loops=drop, or loops=keep"
        self.ask_direction = "write file:PATH,directed=true or file:PATH,directed=false"
        self.ask_capacity = "write file:PATH,capacity={name}, or file:PATH,capacity=1 for equal links"
        self._rated: bool | None = None  # whether capacities have units
        self._attributes: dict[Hashable, Mapping[str, object]] = {}
        self._drawn_at: dict[Hashable, tuple[float, float]] = {}
        self._vertices: dict[Hashable, None] = {}

    def add_vertex(self, name: Hashable, *, relay: bool = False) -> None:
        """Add a vertex, unless it has been added before; a relay sends and receives nothing of its own."""
        self._vertices[name] = None
        self.check_vertices(len(self._vertices))
        if relay:
            self.relays.add(name)

    def add_node(self, name: Hashable | None, attributes: Mapping[str, object], place: int | str | None = None) -> None:
        """Add a node of a graph with its attributes ``label`` or ``name`` and ``terminal``, and its place in a drawing.

        The place is ``x`` and ``y``, or ``pos`` as networkx has it; other words there are no place. A traffic among the
        attributes is noted.
        """
        if name is None or self.has_vertex(name):
            where = self.what if place is None else self.where(place)
            refuse(where, f"a node has no id, or id {short(name)} is used twice; give every node a unique id")
        self.add_vertex(name)
        self.describe(name, attributes)

    def describe(self, name: Hashable, attributes: Mapping[str, object]) -> None:
        """Give a vertex its attributes, as :meth:`add_node` does."""
        called = [str(attributes[key]) for word in NAMES for key in attributes if key.lower() == word]
        if called:  # networkx writes the numbers of vertices as labels of GML
            spoken = [text for text in called if text.strip()] or called
            self.labels[name] = next((text for text in spoken if not text.strip().isdigit()), spoken[0])
        self._attributes[name] = attributes
        kind = next((attributes[key] for key in attributes if plain(key) in KINDS), None)
        if isinstance(kind, str):
            self.kinds[name] = kind
        marks = [attributes[key] for key in attributes if plain(key) == "terminal"]
        self.stated = self.stated or bool(marks)
        terminal = str(marks[0] if marks else True).strip().lower()
        if terminal not in {"true", "false", "1", "0"}:
            refuse(self.what, f"node {short(name)} has terminal {short(terminal)}; write true or false")
        if terminal in {"false", "0"}:
            self.relays.add(name)
        place = _place(attributes)
        if place is not None:
            self._drawn_at[name] = place
        self.note_traffic(attributes, "nodes have")

    def describe_graph(self, attributes: Mapping[str, object]) -> None:
        """Take from the attributes of the graph the unit of capacities, and whether loops are kept; note a traffic.

        igraph states ``loops`` as true or false, which keeps none.
        """
        self.keep_loops = self.keep_loops or attributes.get("loops") == "keep"
        self.unit = self.unit or self.checked_unit(attributes.get("unit"))
        self.note_traffic(attributes, "the graph has")

    def checked_unit(self, unit: object) -> str | None:
        """Check a unit of capacities; None if there is none."""
        if unit is None:
            return None
        try:
            parse_rate(str(unit), f"{self.what}: unit")
        except BadInput as error:
            raise BadFile(str(error)) from None
        return str(unit)

    def check_vertices(self, n: int) -> None:
        """Refuse too many vertices before allocating anything of that size."""
        if n > MAX_VERTICES:
            refuse(self.what, f"{short(n)} vertices are more than the {MAX_VERTICES} allowed; split the file")

    def number_vertices(self, count: int | str, first: int = 1) -> None:
        """Add so many vertices, 1, 2, ... or 0, 1, ..., numbers or texts as the count, after checking it."""
        number = int(count) if len(str(count)) < 16 else 10**16
        self.check_vertices(number)
        self._vertices.update((type(count)(v), None) for v in range(first, first + number))

    @property
    def order(self) -> int:
        """Number of vertices read so far."""
        return len(self._vertices)

    def vertices(self) -> list[Hashable]:
        """Names of the vertices in reading order."""
        return list(self._vertices)

    def has_vertex(self, name: Hashable) -> bool:
        """Whether the vertex has been read."""
        return name in self._vertices

    def where(self, place: int | str) -> str:
        """Position of a link in the file, for messages."""
        return f"{self.what}, {place}" if isinstance(place, str) else f"{self.what}, {self.place} {place}"

    def list_link(
        self,
        tail: Hashable | None,
        head: Hashable | None,
        given: object,
        place: int | str,
        directed: bool | None = None,
    ) -> None:
        """List a link with its attributes or its capacity; ``directed`` if the format itself states it."""
        attributes = given if isinstance(given, Mapping) else {"capacity": given}
        self.links.append(Link(tail, head, attributes, place, directed))

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

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
        """Build the topology of the vertices and links read."""
        self._refuse_least_flows()
        arcs = self._arcs()
        if self.demands:
            lone = sum((target, source) not in self.demands for source, target in self.demands)
            how = f"{len(self.demands)} amounts{f', {lone} of them in one direction only' if lone else ''}"
            self.note(f"the file also states demands ({how}); demand=file:PATH takes them")
        if not self._vertices:
            demands = "name it as demand=file:PATH beside the network" if self.demands else self.ask_arcs
            refuse(self.what, f"it contains no vertices and no arcs; {demands}")
        self._refuse_both_ways(arcs)
        order = self._numbered()
        names = tuple(map(str, order))
        alike = next((name for name, count in Counter(names).items() if count > 1), None)
        if alike is not None:
            refuse(self.what, f"several vertices are called {short(alike)} as text; give them different names")
        numbers = {name: v for v, name in enumerate(order)}
        tail, head = self._arc_ends(arcs, numbers)
        labels = [self.labels.get(name, text) for name, text in zip(order, names, strict=True)]
        self._choose_ranks(order, labels, tail, head)
        terminals = self._terminal_numbers(numbers)
        try:
            return Topology(
                len(order),
                tail,
                head,
                np.array([arc.capacity for arc in arcs]),
                spec=self.spec,
                terminals=terminals,
                labels=tuple(labels),
                capacity_unit=self.unit,
                places=[self._drawn_at[name] for name in order] if len(self._drawn_at) == len(order) else None,
                notes=tuple(self.notes),
            )
        except BadInput as error:
            raise BadFile(str(error)) from error

    def _refuse_least_flows(self) -> None:
        for key in dict.fromkeys(key for keys in {tuple(link.attributes) for link in self.links} for key in keys):
            for link in self.links if _LOWER.fullmatch(plain(key)) else ():
                if _numeric(low := link.attributes.get(key, 0)) and float(str(low)):
                    reason = f"the arc has the lower bound {short(low)}; opticoll supports no lower bounds; write 0"
                    refuse(self.where(link.place), reason)

    def _numbered(self) -> list[Hashable]:
        """Vertices by number: names that are 0 .. n-1 (integers or their digits) keep these, others are as read."""
        names = list(self._vertices)
        if self.options.first or set(map(str, names)) == set(map(str, range(len(names)))):
            names.sort(key=lambda name: int(str(name)))
        return names

    def _arcs(self) -> list[Arc]:
        """Arcs of all links, with their capacities; a link of a graph without parallel ones counts once."""
        given = self.options.capacity
        name: str | None = None
        if given is None:
            name = self._capacity_name([link.attributes for link in self.links])
        elif isinstance(given, str) and split_rate(given) is None:
            name = given
        equal = 1.0 if given is None else given
        arcs: list[Arc] = []
        once: dict[object, float] = {}
        listed = 0
        for link in self.links:
            tail, head, attributes, place, _ = link
            if tail == head and self.options.loops == "drop":
                continue
            value = equal if name is None else attributes.get(name)
            if value is None:
                self._refuse_missing(link, str(name))
            if tail is None or head is None:
                refuse(self.where(place), "source or target is missing; name both nodes")
            try:
                capacity = self._capacity(value)
            except ValueError as error:
                refuse(f"{self.where(place)} ({short(tail)}->{short(head)})", f"capacity {short(value)} {error}")
            directed = self._is_directed(link) if self.options.directed is None else self.options.directed
            if self.multigraph is False:
                ends = (tail, head) if directed or self.options.directed is not None else frozenset((tail, head))
                if once.setdefault(ends, capacity) != capacity:
                    what = f"the link {short(tail)}->{short(head)} of a graph without parallel links is listed with"
                    reason = f"{what} capacity {once[ends]:g} and {capacity:g}; list it once, or with one capacity"
                    refuse(self.where(place), reason)
                if len(once) == listed:
                    continue
                listed = len(once)
            arcs.append(Arc(tail, head, capacity, place, False))
            if not directed and tail != head:
                arcs.append(Arc(head, tail, capacity, place, True))
            if len(arcs) > MAX_ARCS:
                refuse(self.what, f"more than the {MAX_ARCS} arcs allowed; split the file")
        if name is None and given is None and arcs:
            links = sum(not arc.back for arc in arcs)
            self.note(f"no link states a capacity; each of the {links} has capacity 1")
        return arcs

    def _capacity(self, value: object) -> float:
        """Read a capacity, with a unit if the others have one; rates are converted to the first unit."""
        rate = rate_in(value)
        reason = None
        if rate is None and is_size(value):
            reason = "is a size, not a rate; write it per second, such as 400Gb/s"
        elif self._rated not in (None, rate is not None):
            reason = f"has {'a' if rate else 'no'} unit, unlike the previous ones; give all capacities a unit, or none"
        if reason is not None:
            raise ValueError(reason)
        self._rated = rate is not None
        if rate is not None:
            self.unit = self.unit or rate[1]
            value = rate[0] if rate[1] == self.unit else rate[0] * (parse_rate(rate[1]) / parse_rate(self.unit))
        try:
            if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
                raise TypeError
            number = float(value)  # type: ignore[arg-type]
        except (ValueError, TypeError, OverflowError):
            reason = "is not a number; write a positive number, such as 1.0 or 400Gb/s"
            raise ValueError(reason) from None
        if not isfinite(number) or number <= 0:
            remedy = "write a number that it cannot exceed" if number > 0 else "omit arcs without capacity"
            reason = f"must be positive and finite ({remedy})"
            raise ValueError(reason)
        return number

    def _is_directed(self, link: Link) -> bool:
        """Whether a link is an arc: as the format, its attributes, or the graph says."""
        if link.directed is not None:
            return link.directed
        for key, value in link.attributes.items():
            word = str(value).strip().lower() if key.lower() in DIRECTIONS else ""
            said = _DIRECTED.get(word, _YES_NO.get(word) if key.lower() == "directed" else None)
            if said is None:
                continue
            if said and not self.directed:
                refuse(self.where(link.place), f"{key} {short(value)} in an undirected graph; {self.ask_direction}")
            return said
        return self.directed

    def _refuse_missing(self, link: Link, name: str) -> NoReturn:
        missing = sum(one.attributes.get(name) is None for one in self.links)
        present = dict.fromkeys(key for one in self.links for key in one.attributes)
        others = "" if name in present else f" (attributes: {', '.join(list(present)[:8]) or 'none'})"
        msg = (
            f"{self.where(link.place)}: the edge {short(link.tail)}->{short(link.head)} has no attribute "
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
            refuse(
                self.what, f"edges have {' and '.join(map(repr, known[:4]))}; {self.ask_capacity.format(name=known[0])}"
            )
        other = [key for key in present if key.lower() in OTHER_NAMES]
        if len(other) == 1:
            self.unit = self.unit or OTHER_NAMES[other[0].lower()]
            return other[0]
        asked = [key for key in present if key.lower() not in NEUTRAL]
        numbers = [key for key in asked if all(_numeric(one[key]) for one in edges if one.get(key) is not None)]
        if numbers:
            msg = f"{self.what}: edges have numbers under {', '.join(map(repr, numbers[:4]))}, but no capacity; "
            raise BadFile(msg + self.ask_capacity.format(name=numbers[0]))
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
            raise BadFile(msg + self.ask_capacity.format(name=complete))
        odd = next((one[first] for one in edges if resembles_rate(one.get(first)) and not rate_in(one[first])), None)
        example = "" if odd is None else f" (not {short(odd)})"
        equal = self.ask_capacity.rpartition(", or ")[2]
        msg = (
            f"{self.what}: {len(edges) - rates[first].count(None)} of {len(edges)} edges state one rate as text under "
            f"{first!r}{example}; give each a rate, such as 155 Mbps, or take {equal}"
        )
        raise BadFile(msg)

    def _arc_ends(self, arcs: Sequence[Arc], numbers: Mapping[Hashable, int]) -> tuple[I64, I64]:
        """Tail and head of every arc, given the numbers of the vertices; refuse unknown ends and loops."""
        for tail, head, _, place, _ in arcs:
            for end in (tail, head):
                if end not in numbers:
                    refuse(self.where(place), f"vertex {short(end)} is not declared; add it to the vertices")
            if tail == head and not self.keep_loops and self.options.loops is None:
                msg = f"arc {short(tail)}->{short(head)} is a loop and carries no flow; "
                refuse(self.where(place), msg + self.ask_loops)
        tails, heads = ([numbers[end] for end in side] for side in ((a.tail for a in arcs), (a.head for a in arcs)))
        return np.array(tails, dtype=np.int64), np.array(heads, dtype=np.int64)

    def _terminal_numbers(self, numbers: Mapping[Hashable, int]) -> list[int]:
        """Numbers of the terminals; refuse none, and ones that are not vertices."""
        terminals = [v for v in self._vertices if v not in self.relays] if self.terminals is None else self.terminals
        unknown = [name for name in terminals if name not in numbers]
        if unknown:
            refuse(self.what, f"terminal {short(unknown[0])} is not a vertex; name vertices of the file")
        if not terminals:
            refuse(self.what, "no vertex is a terminal; mark the vertices that send and receive")
        return [numbers[name] for name in terminals]

    def _refuse_both_ways(self, arcs: Sequence[Arc]) -> None:
        """Refuse undirected links that are listed in both directions, which would double them.

        Where the file says that it has parallel links, these may be some; so all links must be listed twice, between
        more than two vertices.
        """
        listed = [(arc.head, arc.tail, arc.place) for arc in arcs if arc.back]
        forth = {(u, v) for u, v, _ in listed}
        back = [(v, u) in forth for u, v, _ in listed]
        stated = self.options.directed is None
        if not any(back) or (stated and self.multigraph and not (all(back) and len(forth) > 2)):
            return
        u, v, place = listed[back.index(True)]
        link = f"between {short(u)} and {short(v)} is listed in both directions"
        if stated:
            remedy = "list every link once, parallel ones in the same direction, or state that they are directed"
            refuse(self.where(place), f"the undirected link {link}; {remedy} (directed=true)")
        refuse(self.where(place), f"the link {link}; omit directed=false, or list every link once")

    def _choose_ranks(self, order: list[Hashable], labels: list[str], tail: I64, head: I64) -> None:
        """Apply ``ranks=`` or ``switches=``; ask if some vertices seem to be switches and nothing states the ranks."""
        marked = marked_switches([self._attributes.get(v, {}) for v in order])
        texts = [
            (str(v), str(self.labels.get(v, "")), self.kinds.get(v, ""), marked[1].get(k, ""))
            for k, v in enumerate(order)
        ]
        found = chosen(texts, self.options.ranks, self.options.switches, self.what)
        if found is not None:
            self.terminals = [order[k] for k in found]
            odd = [labels[k] for k in found if self.options.switches is not None and any(map(names_switch, texts[k]))]
            if odd:
                self.note(f"{len(odd)} ranks have names like switches ({odd[0][:40]}), which switches= does not name")
            return
        if self.terminals is not None or self.relays or self.stated:
            return
        switches, how = seeming_switches([words[:3] for words in texts], labels, marked, tail, head)
        if switches:
            example = " ".join(dict.fromkeys(text for text in texts[switches[0]] if text))[:60]
            msg = (
                f"{self.what}: {len(switches)} of {len(order)} vertices {how} ({example}), but nothing tells which "
                f"vertices are ranks; {self.ask_ranks}, or mark nodes terminal true or false"
            )
            raise BadFile(msg)


def declarations(topology: Topology) -> dict[str, list[int] | list[str] | str]:
    """What a file must state of a topology beside vertices and arcs, where it is not the default."""
    labels = list(topology.labels)
    stated: dict[str, list[int] | list[str] | str] = {}
    if topology.num_ranks != topology.n:
        stated["terminals"] = topology.terminals.tolist()
    if labels != list(map(str, range(topology.n))):
        stated["labels"] = labels
    if topology.capacity_unit is not None:
        stated["unit"] = topology.capacity_unit
    if (topology.tail == topology.head).any():
        stated["loops"] = "keep"
    return stated
