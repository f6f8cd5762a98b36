"""Seeded expanders; explicit small digraphs, and all regular digraphs and graphs of a size up to isomorphism."""

from __future__ import annotations

import heapq
import random
from collections import Counter
from functools import cache
from itertools import pairwise, permutations
from typing import TYPE_CHECKING

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import BadInput, refuse
from opticoll.instances.spec import family, population
from opticoll.instances.topology import Topology, both_ways, check_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.instances.topology import I64, Mask


#: Maximum number of links (n d / 2) of random regular graphs and Xpander, which are drawn in Python.
MAX_DRAWN_LINKS = 500_000
_TRIES = 1000


def _check(n: int, d: int, seed: int, name: str) -> None:
    whole_number(n, f"{name}: n", 2)
    whole_number(d, f"{name}: d", 1)
    whole_number(seed, f"{name}: seed", 0)
    check_size(n, n * d, name)
    if n * d > 2 * MAX_DRAWN_LINKS:
        refuse(name, f"n*d/2 = {n * d // 2} links exceed the limit of {MAX_DRAWN_LINKS}; choose a smaller n or d")
    if d >= n:
        refuse(name, f"degree d={d} must be below n={n} in a graph without parallel links")


@family(
    "random-regular",
    example="random-regular:n=32,d=4,seed=1",
    source="Steger & Wormald, Combinatorics, Probability & Computing 8(4), 1999; Jellyfish, NSDI 2012",
)
def random_regular(n: int, d: int, seed: int = 0) -> Topology:
    r"""Random d-regular graph: simple and connected, links both ways.

    Stubs are paired at random (networkx ``random_regular_graph``) and drawn again until the graph is
    connected. For :math:`d > (n-1)/2` the complement of a random :math:`(n-1-d)`-regular graph is taken;
    for :math:`d = 2` a random Hamiltonian cycle, the only connected case. Degree :math:`d`, :math:`n d`
    arcs.

    Parameters
    ----------
    n
        Number of nodes.
    d
        Degree, ``1 <= d < n`` with ``n d`` even; 1 only for two nodes.
    seed
        Seed, nonnegative.

    Raises
    ------
    BadInput
        If no connected simple d-regular graph on n nodes exists, or it would be too large.
    """
    import networkx as nx

    name = "random-regular"
    _check(n, d, seed, name)
    if n * d % 2:
        refuse(name, f"n={n} times d={d} is odd, but every link has two ends; make one of them even")
    if d == 1 and n > 2:
        refuse(name, f"d=1 on n={n} nodes cannot be connected; choose d of at least 2")
    source = random.Random(seed)
    if d == 2:
        order = np.array(source.sample(range(n), n))
        return Topology(n, *both_ways(order, np.roll(order, -1)), spec=name)
    for _ in range(_TRIES):
        if 2 * d > n - 1:
            graph = nx.complement(nx.random_regular_graph(n - 1 - d, n, source))
        else:
            graph = nx.random_regular_graph(d, n, source)
        if nx.is_connected(graph):
            ends = np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2)
            return Topology(n, *both_ways(ends[:, 0], ends[:, 1]), spec=name)
    msg = f"{name}: no connected graph in {_TRIES} draws for n={n}, d={d}, seed={seed}; try another seed"
    raise BadInput(msg)


@family(
    "xpander",
    example="xpander:n=32,d=4,seed=1",
    source="Valadarsky, Shahaf, Dinitz & Schapira, CoNEXT 2016 (Xpander)",
)
def xpander(n: int, d: int, seed: int = 0) -> Topology:
    r"""Xpander: a random lift of the complete graph on d + 1 nodes, grown node by node.

    *Lift.* With :math:`k = \lfloor n/(d+1) \rfloor`, node :math:`i` of :math:`K_{d+1}` becomes the meta-node
    :math:`i k .. i k + k - 1`, and each link a random perfect matching between two meta-nodes.
    *Growth*, for the remaining :math:`n \bmod (d+1)` nodes: remove :math:`d/2` disjoint random links and join
    their ends to the new node, which needs an even :math:`d`. Draws that are disconnected are repeated.
    Simple, connected, degree :math:`d`, :math:`n d` arcs.

    Parameters
    ----------
    n
        Number of nodes, more than ``d``; a multiple of ``d + 1`` if ``d`` is odd.
    d
        Degree, at least 1.
    seed
        Seed of :func:`numpy.random.default_rng`, nonnegative.

    Raises
    ------
    BadInput
        If no such graph exists for ``n`` and ``d``, or it would be too large.
    """
    name = "xpander"
    _check(n, d, seed, name)
    lift, grown = divmod(n, d + 1)
    if d % 2 and grown:
        msg = (
            f"{name}: with an odd degree d={d}, n={n} must be a multiple of d+1={d + 1}; "
            f"use n={lift * (d + 1)} or n={(lift + 1) * (d + 1)}, or an even d"
        )
        raise BadInput(msg)
    if d == 1 and n > 2:
        refuse(name, f"d=1 on n={n} nodes cannot be connected; choose d of at least 2")
    rng = np.random.default_rng(seed)
    a, b = np.triu_indices(d + 1, k=1)
    for _ in range(_TRIES):
        partner = rng.permuted(np.tile(np.arange(lift), (a.size, 1)), axis=1)
        u = (a[:, None] * lift + np.arange(lift)).ravel()
        v = (b[:, None] * lift + partner).ravel()
        links = list(zip(u.tolist(), v.tolist(), strict=True))
        if all(_grow(links, node, d // 2, rng) for node in range(n - grown, n)):
            ends = np.array(links, dtype=np.int64)
            topology = Topology(n, *both_ways(ends[:, 0], ends[:, 1]), spec=name)
            if topology.connected:
                return topology
    msg = f"{name}: no connected graph in {_TRIES} draws for n={n}, d={d}, seed={seed}; try another seed"
    raise BadInput(msg)


def _grow(links: list[tuple[int, int]], node: int, count: int, rng: np.random.Generator) -> bool:
    """Insert ``node`` into ``count`` random disjoint links; False if there are too few."""
    chosen: list[int] = []
    touched: set[int] = set()
    for at in rng.permutation(len(links)).tolist():
        if len(chosen) == count:
            break
        if touched.isdisjoint(links[at]):
            chosen.append(at)
            touched.update(links[at])
    for at in chosen:
        u, v = links[at]
        links[at] = (u, node)
        links.append((v, node))
    return len(chosen) == count


#: Size limit of shortest-path expanders: thousands of paths are routed in Python.
MAX_NODES, MAX_ARCS_FORMED = 1024, 8192
_PAIRING_TRIES = 100


@family(
    "sp-expander",
    example="sp-expander:n=64,d=4,seed=1",
    source="Efficient all-to-all schedules for direct-connect topologies, appendix E",
)
def sp_expander(n: int, d: int, seed: int = 0, two_way: bool = False) -> Topology:
    r"""Shortest-path expander: a d-regular digraph formed by routing every pair on a shortest path.

    Start from the complete digraph, every link of weight :math:`\varepsilon`. Route the pairs
    :math:`(s, t)` one by one on a shortest path; add 1 to the weight of each of its links, which are then
    *formed*; as soon as a node has :math:`d` formed links out (in), remove its other links out (in).
    The formed links are the topology: directed, simple, strongly connected, in- and out-degree :math:`d`.

    Choices that the source leaves open: :math:`\varepsilon = 1/(2n)`, so the number of new
    links on a path only breaks ties between weights; pairs are routed source by source, sources and each
    source's destinations in a seeded random order; among paths of equal weight, the one found first by Dijkstra's
    algorithm with a heap on (weight, node). Routing stops when no unformed link is left, because the
    topology can no longer change. If nodes then have too few links (the only link left would be a
    loop or a parallel arc), they are linked at random, if necessary by an exchange with a formed link:
    :math:`a \to b` is replaced by :math:`a \to v` and :math:`u \to b`. A draw that is not strongly
    connected, or in which a pair has no path left, is repeated with the next random order.

    With ``two_way``, as the source suggests, a link is formed together with its reverse, which keeps the weight
    :math:`\varepsilon` until a path takes it, and counts against the degree of both its ends. A path does not form
    more links at a node than it has left. Nodes with too few links are linked at random or by an exchange:
    :math:`a - b` is replaced by :math:`a - v` and :math:`u - b`.

    Parameters
    ----------
    n
        Number of nodes, 2 to 1024.
    d
        Degree, ``1 <= d < n``, with ``n d`` at most 8192.
    seed
        Seed of :func:`numpy.random.default_rng`, nonnegative.
    two_way
        Whether every link has its reverse; ``n d`` must then be even.

    Raises
    ------
    BadInput
        If a parameter is out of range.
    """
    name = "sp-expander"
    _check(n, d, seed, name)
    if two_way and n * d % 2:
        refuse(name, f"n={n}, d={d} with two_way needs an even n*d; change n or d")
    if n > MAX_NODES or n * d > MAX_ARCS_FORMED:
        refuse(name, f"n={n}, d={d} exceeds n={MAX_NODES} or n*d={MAX_ARCS_FORMED}; choose a smaller n or d")
    rng = np.random.default_rng(seed)
    for _ in range(_PAIRING_TRIES):
        formation = _TwoWayFormation(n, d) if two_way else LinkFormation(n, d)
        if not all(formation.route(s, t) for s, t in formation.pairs(rng) if not formation.settled()):
            continue
        if not formation.complete(rng):
            continue
        topology = Topology(
            n,
            [u for u, weights in enumerate(formation.weight) for _ in weights],
            [v for weights in formation.weight for v in weights],
            spec=name,
        )
        if topology.connected:
            return topology
    msg = f"{name}: no strongly connected digraph in {_PAIRING_TRIES} draws for n={n}, d={d}; try another seed"
    raise BadInput(msg)


class LinkFormation:
    """Links that routing every pair on a shortest path has formed so far, with weights in units of 1/(2n)."""

    def __init__(self, n: int, d: int) -> None:
        self.d = d
        self.unit = 2 * n
        self.weight: list[dict[int, int]] = [{} for _ in range(n)]
        self.indegree = [0] * n
        self.open_out = set(range(n))
        self.open_in = set(range(n))

    def pairs(self, rng: np.random.Generator, *, by_source: bool = True) -> Iterator[tuple[int, int]]:
        """All pairs in a random order: source by source in one, each with its destinations in one; or one of all."""
        n = len(self.weight)
        if by_source:
            for s in rng.permutation(n).tolist():
                yield from ((s, t) for t in rng.permutation(n).tolist() if t != s)
        else:
            yield from map(tuple, rng.permutation(list(permutations(range(n), 2))).tolist())

    def settled(self) -> bool:
        """Whether no unformed link is left."""
        return not any(self.unformed(u, v) for u in self.open_out for v in self.open_in)

    def unformed(self, u: int, v: int) -> bool:
        """Whether the link u -> v could be formed as far as it alone is concerned."""
        return u != v and v not in self.weight[u]

    def form(self, u: int, v: int) -> None:
        """Form the link u -> v, and close nodes that reach degree d."""
        self.weight[u][v] = 1 + self.unit
        self.indegree[v] += 1
        if len(self.weight[u]) == self.d:
            self.open_out.discard(u)
        if self.indegree[v] == self.d:
            self.open_in.discard(v)

    def route(self, s: int, t: int) -> bool:
        """Route a shortest path from s to t; False if there is none."""
        if s in self.open_out and t in self.open_in and self.unformed(s, t):
            self.form(s, t)  # no path is shorter than one unformed link
            return True
        path = self.shortest(s, t, self.open_out, self.open_in)
        if path is None:
            return False
        self.lay(path)
        return True

    def lay(self, path: list[int]) -> None:
        """Add 1 to the weight of every link of a path, and form those that are not formed."""
        for u, v in reversed(list(pairwise(path))):
            if v in self.weight[u]:
                self.weight[u][v] += self.unit
            else:
                self.form(u, v)

    def shortest(self, s: int, t: int, open_out: set[int], open_in: set[int]) -> list[int] | None:
        """Nodes of a shortest path over formed links and unformed ones between these nodes; None if there is none."""
        distance, before = {s: 0}, {s: s}
        heap, settled = [(0, s)], set()
        waiting = set(open_in)  # not yet reached over an unformed link; the first such path is shortest
        while heap:
            far, u = heapq.heappop(heap)
            if u in settled:
                continue
            settled.add(u)
            if u == t:
                break
            steps = list(self.weight[u].items())
            if u in open_out and waiting:
                fresh = sorted(v for v in waiting if self.unformed(u, v))
                waiting.difference_update(fresh)
                steps += [(v, 1) for v in fresh]
            for v, weight in steps:
                if v not in settled and (v not in distance or far + weight < distance[v]):
                    distance[v], before[v] = far + weight, u
                    heapq.heappush(heap, (far + weight, v))
        if t not in settled:
            return None
        path = [t]
        while path[-1] != s:
            path.append(before[path[-1]])
        return path[::-1]

    def complete(self, rng: np.random.Generator) -> bool:
        """Complete every node to d links out and in; False if a necessary exchange is impossible."""
        n = len(self.weight)
        out = [u for u in range(n) for _ in range(self.d - len(self.weight[u]))]
        into = [v for v in range(n) for _ in range(self.d - self.indegree[v])]
        for u, v in zip(rng.permutation(out).tolist(), rng.permutation(into).tolist(), strict=True):
            if self.unformed(u, v):
                self.form(u, v)
                continue
            formed = [(a, b) for a in range(n) for b in self.weight[a]]
            options = [(a, b) for a, b in formed if self.unformed(a, v) and self.unformed(u, b) and a != u]
            if not options:
                return False
            a, b = options[int(rng.integers(len(options)))]
            del self.weight[a][b]
            self.indegree[b] -= 1
            self.form(a, v)
            self.form(u, b)
        return True


class _TwoWayFormation(LinkFormation):
    """Links formed with their reverses."""

    def form(self, u: int, v: int) -> None:
        """Form u -> v and v -> u, and close nodes that reach degree d."""
        self.weight[u][v], self.weight[v][u] = 1 + self.unit, 1
        for node in (u, v):
            if len(self.weight[node]) == self.d:
                self.open_out.discard(node)
                self.open_in.discard(node)

    def route(self, s: int, t: int) -> bool:
        """Route a shortest path from s to t that forms no more links at a node than it has left."""
        allowed = set(self.open_out)
        while True:
            path = self.shortest(s, t, allowed, allowed)
            if path is None:
                return False
            new = Counter(node for u, v in pairwise(path) if self.unformed(u, v) for node in (u, v))
            over = {node for node, links in new.items() if links > self.d - len(self.weight[node])}
            if not over:
                self.lay(path)
                return True
            allowed -= over

    def complete(self, rng: np.random.Generator) -> bool:
        """Complete every node to d links; False if a necessary exchange is impossible."""
        n = len(self.weight)
        ends = rng.permutation([u for u in range(n) for _ in range(self.d - len(self.weight[u]))]).tolist()
        for u, v in zip(ends[::2], ends[1::2], strict=True):
            if self.unformed(u, v):
                self.form(u, v)
                continue
            formed = [(a, b) for a in range(n) for b in self.weight[a]]
            options = [(a, b) for a, b in formed if self.unformed(a, v) and self.unformed(u, b)]
            if not options:
                return False
            a, b = options[int(rng.integers(len(options)))]
            del self.weight[a][b], self.weight[b][a]
            self.form(a, v)
            self.form(u, b)
        return True


#: Names of vertices in a spec: vertex v is the v-th character.
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"
#: Largest number of arcs in a spec.
MOST_ARCS = 3000
#: Largest number of vertices to enumerate, by degree: at most a few thousand members and a few seconds.
LARGEST_DIGRAPHS = {1: 40, 2: 9, 3: 7, 4: 7, 5: 7, 6: 7}
LARGEST_ANY_DEGREE = 7
LARGEST_GRAPHS = {1: 40, 2: 40, 3: 16, 4: 12, 5: 10, 6: 9, 7: 8}


@family("digraph", example="digraph:12.20.01", source="Diestel, Graph Theory, 5th ed. 2017, section 1.10 (digraphs)")
def digraph(rows: str) -> Topology:
    """Digraph given by the out-neighbours of every node.

    The rows are separated by dots: ``digraph:12.20.01`` has the arcs 0->1, 0->2, 1->2, 1->0, 2->0 and 2->1. Nodes 10
    and above are the letters ``a`` to ``z`` and ``A`` to ``Z``, then ``-`` and ``_``. A repeated node stands for
    parallel arcs, an empty row for a node without outgoing arcs. All capacities are 1.
    :func:`digraph_spec` prints a topology in this form.

    Parameters
    ----------
    rows
        Heads of the arcs leaving nodes 0, 1, …; at most 64 nodes.

    Raises
    ------
    BadInput
        For more than 64 nodes, too many arcs, or a head that is not a node.
    """
    heads = [row.strip() for row in rows.split(".")]
    n, arcs = len(heads), sum(map(len, heads))
    if n > len(DIGITS) or arcs > MOST_ARCS:
        msg = f"digraph: {n} nodes and {arcs} arcs exceed the limits ({len(DIGITS)} nodes, {MOST_ARCS} arcs); use file:"
        raise BadInput(msg)
    for node, row in enumerate(heads):
        wrong = [letter for letter in row if letter not in DIGITS[:n]]
        if wrong:
            refuse("digraph", f"row {node} names the node {wrong[0]!r}; the {n} rows define the nodes {DIGITS[:n]}")
    tail = np.repeat(np.arange(n), [len(row) for row in heads])
    return Topology(n, tail, [DIGITS.index(letter) for row in heads for letter in row], spec="digraph")


def digraph_spec(topology: Topology) -> str | None:
    """Return the spec ``digraph:…`` of a topology with the same arcs in the same numbering.

    Returns
    -------
    str or None
        None if the spec cannot express it: more than 64 nodes, too many arcs, capacities other than 1, nodes that are
        not ranks, or further data of a subclass.
    """
    n = topology.n
    plain = type(topology) is Topology and topology.num_ranks == n and bool((topology.capacity == 1.0).all())
    if not plain or n > len(DIGITS) or not 0 < topology.arcs <= MOST_ARCS:
        return None
    rows = [""] * n
    for tail, head in zip(topology.tail.tolist(), topology.head.tolist(), strict=True):
        rows[tail] += DIGITS[head]
    return "digraph:" + ".".join(rows)


def circuits_spec(counts: I64) -> str | None:
    """Spec of a topology by its arcs from every node to every other, ``(n, n)``; None as for :func:`digraph_spec`."""
    tail, head = np.nonzero(counts)
    copies = counts[tail, head]
    return digraph_spec(Topology(len(counts), np.repeat(tail, copies), np.repeat(head, copies)))


@population(
    "all-digraphs",
    example="all-digraphs:n=5,d=2",
    source="Read, Annals of Discrete Mathematics 2, 1978 (orderly generation)",
)
def all_digraphs(n: int, d: int) -> list[str]:
    """All connected d-regular digraphs on n nodes, one per isomorphism class.

    Every node has d arcs in and d out; there are no loops or parallel arcs. A connected regular digraph is strongly
    connected.

    Parameters
    ----------
    n, d
        Number of nodes, and in- and out-degree, 1 <= d < n.

    Raises
    ------
    BadInput
        If there is no such digraph, or there are too many to enumerate.
    """
    _check_sizes("all-digraphs", n, d, LARGEST_DIGRAPHS)
    return [_printed(rows) for rows in codes(n, d, directed=True)]


@population(
    "all-graphs",
    example="all-graphs:n=6,d=3",
    source="Read, Annals of Discrete Mathematics 2, 1978 (orderly generation)",
)
def all_graphs(n: int, d: int | None = None) -> list[str]:
    """All connected d-regular graphs on n nodes, or of any degrees, one per isomorphism class, with links both ways.

    There are no loops or parallel links.

    Parameters
    ----------
    n, d
        Number of nodes and degree, 1 <= d < n; n d is even. Without d, all connected graphs.

    Raises
    ------
    BadInput
        If there is no such graph, or there are too many to enumerate.
    """
    if d is None:
        whole_number(n, "all-graphs: n", 2)
        if n > LARGEST_ANY_DEGREE:
            refuse(
                "all-graphs", f"n={n} has too many members to enumerate; the limit without d is {LARGEST_ANY_DEGREE}"
            )
        return [_printed(rows) for rows in codes(n, None, directed=False)]
    _check_sizes("all-graphs", n, d, LARGEST_GRAPHS)
    graphs = [] if n * d % 2 else [_printed(rows) for rows in codes(n, d, directed=False)]
    if not graphs:
        msg = f"all-graphs: there is no connected {d}-regular graph on {n} nodes; n d must be even, and d > 1 if n > 2"
        raise BadInput(msg)
    return graphs


def _check_sizes(name: str, n: int, d: int, largest: dict[int, int]) -> None:
    whole_number(n, f"{name}: n", 2)
    whole_number(d, f"{name}: d", 1)
    if d >= n:
        refuse(name, f"d must be below n={n}, not {d}; there are no parallel arcs")
    if n > largest.get(d, 0):
        limits = ", ".join(f"n={size} for d={degree}" for degree, size in largest.items())
        refuse(name, f"n={n},d={d} has too many members to enumerate; the limits are {limits}")


def _printed(rows: tuple[int, ...]) -> str:
    heads = ("".join(DIGITS[v] for v in range(len(rows)) if row >> v & 1) for row in rows)
    return "digraph:" + ".".join(heads)


@cache
def codes(n: int, d: int | None, *, directed: bool) -> tuple[tuple[int, ...], ...]:
    """Smallest code of every connected d-regular digraph or graph on n vertices, the heads of each as bit masks.

    Without d, graphs of any degrees.
    """
    from opticoll.instances.enumeration import wirings

    vertices = np.arange(n)

    def fillable(links: Mask, decided: int, _: int) -> bool:
        """Whether the undecided vertices can give every vertex d links in."""
        givers = n - decided - (vertices >= decided)
        return d is None or bool((d - links.sum(axis=0) <= givers).all())

    found = wirings(n, n - 1 if d is None else d, directed=directed, wanted=fillable, lacking=None if d is None else 0)
    return tuple(tuple((links @ (1 << vertices)).tolist()) for links in found)
