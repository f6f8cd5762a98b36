"""Random regular graphs and Xpander: undirected expanders, seeded."""

from __future__ import annotations

import random

import numpy as np

from instances.errors import BadInput
from instances.links import both_ways
from instances.spec import check_positive, family
from instances.topology import Topology, check_size

#: Most links (n d / 2) that the generators below draw; they are loops in Python.
MAX_DRAWN_LINKS = 500_000
_TRIES = 1000


def _check(n: int, d: int, seed: int, what: str) -> None:
    check_positive(n, "n", what, least=2)
    check_positive(d, "d", what)
    check_positive(seed, "seed", what, least=0)
    check_size(n, n * d, what)
    if n * d > 2 * MAX_DRAWN_LINKS:
        msg = f"{what}: n*d/2 = {n * d // 2} links are more than the {MAX_DRAWN_LINKS} drawn; ask for fewer"
        raise BadInput(msg)
    if d >= n:
        msg = f"{what}: degree d={d} must be below n={n} in a graph without parallel links"
        raise BadInput(msg)


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
        Seed, not negative.

    Raises
    ------
    BadInput
        If no connected simple d-regular graph on n nodes exists, or it would be too large.
    """
    import networkx as nx

    what = "random-regular"
    _check(n, d, seed, what)
    if n * d % 2:
        msg = f"{what}: n={n} times d={d} is odd, and every link has two ends; make one of them even"
        raise BadInput(msg)
    if d == 1 and n > 2:
        msg = f"{what}: d=1 on n={n} nodes cannot be connected; take d of at least 2"
        raise BadInput(msg)
    source = random.Random(seed)
    if d == 2:
        order = np.array(source.sample(range(n), n))
        return Topology(n, *both_ways(order, np.roll(order, -1)), spec=what)
    for _ in range(_TRIES):
        if 2 * d > n - 1:
            graph = nx.complement(nx.random_regular_graph(n - 1 - d, n, source))
        else:
            graph = nx.random_regular_graph(d, n, source)
        if nx.is_connected(graph):
            ends = np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2)
            return Topology(n, *both_ways(ends[:, 0], ends[:, 1]), spec=what)
    msg = f"{what}: no connected graph in {_TRIES} draws for n={n}, d={d}, seed={seed}; try another seed"
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
    *Growth*, for the :math:`n \bmod (d+1)` nodes left: remove :math:`d/2` disjoint random links and join
    their ends to the new node, which needs an even :math:`d`. Draws that are disconnected are repeated.
    Simple, connected, degree :math:`d`, :math:`n d` arcs.

    Parameters
    ----------
    n
        Number of nodes, more than ``d``; a multiple of ``d + 1`` if ``d`` is odd.
    d
        Degree, at least 1.
    seed
        Seed of :func:`numpy.random.default_rng`, not negative.

    Raises
    ------
    BadInput
        If ``n`` and ``d`` do not fit, or the graph would be too large.
    """
    what = "xpander"
    _check(n, d, seed, what)
    lift, grown = divmod(n, d + 1)
    if d % 2 and grown:
        msg = (
            f"{what}: with an odd degree d={d}, n={n} must be a multiple of d+1={d + 1}; "
            f"take n={lift * (d + 1)} or n={(lift + 1) * (d + 1)}, or an even d"
        )
        raise BadInput(msg)
    if d == 1 and n > 2:
        msg = f"{what}: d=1 on n={n} nodes cannot be connected; take d of at least 2"
        raise BadInput(msg)
    rng = np.random.default_rng(seed)
    a, b = np.triu_indices(d + 1, k=1)
    for _ in range(_TRIES):
        partner = rng.permuted(np.tile(np.arange(lift), (a.size, 1)), axis=1)
        u = (a[:, None] * lift + np.arange(lift)).ravel()
        v = (b[:, None] * lift + partner).ravel()
        links = list(zip(u.tolist(), v.tolist(), strict=True))
        if all(_grow(links, node, d // 2, rng) for node in range(n - grown, n)):
            ends = np.array(links, dtype=np.int64)
            topology = Topology(n, *both_ways(ends[:, 0], ends[:, 1]), spec=what)
            if topology.connected:
                return topology
    msg = f"{what}: no connected graph in {_TRIES} draws for n={n}, d={d}, seed={seed}; try another seed"
    raise BadInput(msg)


def _grow(links: list[tuple[int, int]], node: int, count: int, rng: np.random.Generator) -> bool:
    """Put ``node`` into the middle of ``count`` disjoint links; False if the draw found too few."""
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
