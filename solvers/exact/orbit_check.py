r"""The interval of T that flows and lengths on orbits prove, checked in integers.

Permutations of the arcs that keep ends, capacities and ranks generate a group. The flow of one rank r of every orbit
(of :math:`w_r` ranks) stands for those of the others, its images, so the arcs of an orbit P share its load:

.. math:: T \le \max_P \frac{\sum_r w_r \sum_{a \in P} f_{ar}}{\sum_{a \in P} c_a}, \qquad
          T \ge \frac{\sum_r w_r \sum_{v \text{ rank}} \pi_{vr}}{\sum_a c_a l_a}

for flows :math:`f \ge 0` of 1 to every other rank, lengths :math:`l \ge 0` that are equal on orbits, and potentials
:math:`\pi_{rr} = 0, \; \pi_{vr} \le \pi_{ur} + l_a` for every arc a = (u, v). None of this depends on how they were
found.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from opticoll.errors import NoSolution

if TYPE_CHECKING:
    from opticoll.instances.topology import I64, Topology
    from opticoll.solvers.exact.exact_form import Whole


def refuse_unless(condition: bool, reason: str) -> None:
    """Refuse flows or lengths that prove nothing."""
    if not condition:
        msg = f"exact: the flows and lengths on orbits prove nothing: {reason}"
        raise NoSolution(msg)


def interval(
    topology: Topology,
    capacity: list[Fraction],
    images: I64,
    sources: I64,
    flows: Whole,
    below: int,
    lengths: Whole,
    potentials: Whole,
) -> tuple[Fraction, Fraction]:
    """The ends of the interval of T.

    Parameters
    ----------
    topology
        n vertices and m arcs; its terminals are the ranks.
    capacity
        Of every arc, m.
    images
        Images of the arcs under each generator, ``(k, m)``.
    sources
        One rank of every orbit, ``(R,)``.
    flows
        Flows of the arcs times ``below``, ``(m, R)``.
    lengths, potentials
        Integers, ``(m,)`` and ``(n, R)``.

    Raises
    ------
    NoSolution
        If a condition of the module's docstring does not hold.
    """
    n, tail, head = topology.n, topology.tail, topology.head
    rank = np.zeros(n, dtype=bool)
    rank[topology.terminals] = True
    room = np.array(capacity, dtype=object)
    moved = np.full((len(images), n), -1)
    for image, to in zip(images, moved, strict=True):
        refuse_unless(np.array_equal(np.sort(image), np.arange(topology.arcs)), "a symmetry is no permutation")
        to[tail], to[head] = tail[image], head[image]
        kept = np.array_equal(to[tail], tail[image]) and np.array_equal(to[head], head[image])
        refuse_unless(kept and np.array_equal(np.sort(to), np.arange(n)), "a symmetry does not keep the ends of arcs")
        refuse_unless(bool((room[image] == room).all()), "a symmetry does not keep the capacities")
        refuse_unless(np.array_equal(rank[to], rank), "a symmetry does not keep the ranks")
        refuse_unless(bool((lengths[image] == lengths).all()), "lengths differ on an orbit")
    vertex_orbit, arc_orbit = _orbits(moved), _orbits(images)
    orbit_of_rank, weight = np.unique(vertex_orbit[rank], return_counts=True)
    refuse_unless(np.array_equal(np.sort(vertex_orbit[sources]), orbit_of_rank), "not one rank of each orbit")
    weight = weight[np.searchsorted(orbit_of_rank, vertex_orbit[sources])].astype(object)

    each = np.arange(sources.size)
    balance = np.zeros((n, sources.size), dtype=object)
    np.add.at(balance, head, flows)
    np.subtract.at(balance, tail, flows)
    wanted = np.repeat(rank[:, None].astype(object), sources.size, axis=1)  # times numbers of any length
    wanted[sources, each] = False
    balance[sources, each] = 0
    refuse_unless(bool((flows >= 0).all() and (balance >= wanted * below).all()), "a flow does not deliver its demand")
    load = np.zeros(arc_orbit.max() + 1, dtype=object)
    offered = load.copy()
    np.add.at(load, arc_orbit, flows @ weight)
    np.add.at(offered, arc_orbit, room)
    high = max(Fraction(used) / (below * most) for used, most in zip(load.tolist(), offered.tolist(), strict=True))

    within = (lengths >= 0).all() and (potentials[head] <= potentials[tail] + lengths[:, None]).all()
    refuse_unless(bool(within and not potentials[sources, each].any()), "a potential is above a distance")
    low = Fraction((potentials[rank] @ weight).sum()) / (room @ lengths)
    return low, high


def _orbits(images: I64) -> I64:
    """The number of the orbit of every element, ``(size,)``, under permutations, ``(k, size)``."""
    k, size = images.shape
    if not k:
        return np.arange(size)
    joined = coo_array((np.ones(k * size), (np.tile(np.arange(size), k), images.ravel())), (size, size))
    return np.asarray(connected_components(joined, directed=False)[1], dtype=np.int64)
