"""Translations: a group of automorphisms of which all but the identity move every rank.

What one rank of every orbit does, moved by every translation, is done by all ranks, by each once. A translation takes
the arcs of an orbit to each other, and each of them equally often, so all arcs of an orbit carry the same load.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from opticoll.instances.symmetry import arc_image, automorphisms

if TYPE_CHECKING:
    from opticoll.instances.topology import I64, Topology

#: Maximum number of entries of the images of all vertices.
MOST_IMAGES = 30_000_000


@lru_cache(maxsize=8)
def translations(topology: Topology, most: int | None = None) -> I64:
    """Images of all vertices under every translation, the identity first, ``(g, n)``; of a group of at most ``most``.

    The generators are automorphisms that family or numbering suggest, taken one after the other as long as what they
    generate moves every rank: of a vertex-transitive network often as many translations as ranks, of another only the
    identity.
    """
    ranks, n = topology.terminals, topology.n
    group = np.arange(n)[None, :]
    if ranks.size < 2 or ranks.size * n > MOST_IMAGES:
        return group
    generators: list[I64] = []
    for image in automorphisms(topology, searched=False)[0]:
        if len(group) == ranks.size:
            break
        wider = _generated([*generators, image], ranks)
        if wider is not None and len(group) < len(wider) <= (most or ranks.size):
            generators, group = [*generators, image], wider
    return group


def _generated(generators: list[I64], ranks: I64) -> I64 | None:
    """The group that permutations generate, identity first; None if an element other than the identity keeps a rank.

    Its elements are told apart by where they take the first rank, so there are at most as many as ranks.
    """
    first, identity = int(ranks[0]), np.arange(generators[0].size)
    elements = {first: identity}
    queue = [identity]
    for element in queue:
        for image in generators:
            moved = image[element]
            known = elements.get(int(moved[first]))
            if known is None:
                if (moved[ranks] == ranks).any():
                    return None
                elements[int(moved[first])] = moved
                queue.append(moved)
            elif not np.array_equal(known, moved):
                return None
    return np.array(queue)


def moved_arcs(topology: Topology, images: I64) -> I64:
    """Images of all arcs under translations ``(g, n)``, ``(g, m)``."""
    return np.array([arc_image(topology, image) for image in images], dtype=np.int64)


def first_of_orbits(ranks: I64, images: I64) -> I64:
    """The first rank of every orbit of ranks under translations ``(g, n)``, ascending."""
    return np.unique(images[:, ranks].min(axis=0))
