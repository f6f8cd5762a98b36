"""Dependencies of channels: arcs that some path uses one right after the other (Dally & Seitz 1987).

Wormhole routing is deadlock-free if the dependencies of every layer have no cycle.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.variables import Axis, arc_names

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.instances.topology import F64, I64, Mask


@dataclass(frozen=True, eq=False)
class Dependencies:
    """The dependencies E of a set of paths, ascending by arcs."""

    paths: PathSet

    @property
    def arcs(self) -> int:
        """m, the arcs of the topology."""
        return self.paths.topology.arcs

    @cached_property
    def _following(self) -> tuple[I64, I64]:
        """For every two consecutive arcs a, b of a path: the path, and ``a m + b``."""
        owner = np.repeat(np.arange(self.paths.paths), self.paths.length)
        inside = owner[1:] == owner[:-1]
        return owner[:-1][inside], self.paths.arcs[:-1][inside] * self.arcs + self.paths.arcs[1:][inside]

    @cached_property
    def _keys(self) -> I64:
        return np.unique(self._following[1])

    @property
    def size(self) -> int:
        """|E|."""
        return self._keys.size

    @property
    def pairs(self) -> I64:
        """The two arcs of every dependency, ``(|E|, 2)``."""
        return np.stack(np.divmod(self._keys, self.arcs), axis=1)

    @cached_property
    def uses(self) -> tuple[I64, I64]:
        """Path and dependency of every use, ``(uses,)`` each, path by path."""
        owner, key = self._following
        return owner, np.searchsorted(self._keys, key)

    @cached_property
    def of_pairs(self) -> tuple[I64, I64, I64]:
        """Pair, dependency, and how many of the pair's paths have it, where some have, ``(uses,)`` each."""
        owner, number = self.uses
        both, count = np.unique(self.paths.pair[owner] * max(self.size, 1) + number, return_counts=True)
        pair, dependency = np.divmod(both, max(self.size, 1))
        return pair, dependency, count

    def of_paths(self, chosen: Mask) -> I64:
        """Numbers of the dependencies of some paths."""
        owner, number = self.uses
        return np.unique(number[chosen[owner]])

    def axis(self) -> Axis:
        """The dependencies, as ``arc, next arc`` and by their arcs."""

        def labels() -> list[tuple[str, str]]:
            A = arc_names(self.paths.topology)
            return [(A[a], A[b]) for a, b in self.pairs.tolist()]

        return Axis("dependency", self.size, lambda _: [", ".join(pair) for pair in labels()], labels)


def acyclic(arcs: int, pairs: I64) -> bool:
    """Whether dependencies ``pairs`` ``(|E|, 2)`` among ``arcs`` channels have no cycle."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    first, second = pairs.T
    graph = csr_array((np.ones(first.size), (first, second)), shape=(arcs, arcs))
    circles, _ = connected_components(graph, connection="strong")
    return bool(circles == arcs and (first != second).all())


def circle(after: Mapping[Any, set[Any]], choose: Callable[[Any, set[Any]], Any] | None = None) -> list[Any]:
    """Channels each of which follows the one before, in a circle, given those after each; empty if there is none.

    ``choose`` takes a channel and those after it that lead to a circle, of which it names one, by default the least.
    """
    left = {a: set(following) for a, following in after.items()}
    while ended := [a for a, following in left.items() if not following & left.keys()]:
        for a in ended:
            del left[a]
    walk = [next(iter(left))] if left else []
    while walk and walk[-1] not in walk[:-1]:
        options = left[walk[-1]] & left.keys()
        walk.append(min(options) if choose is None else choose(walk[-1], options))
    return walk[walk.index(walk[-1]) : -1] if walk else []


def positions(arcs: int, pairs: I64) -> F64:
    """Positions of ``arcs`` channels in which dependencies ``pairs`` ``(|E|, 2)`` go forward, if they have no cycle."""
    result, left = np.zeros(arcs), pairs
    for _ in range(arcs):
        following = np.zeros(arcs)
        np.maximum.at(following, left[:, 1], result[left[:, 0]] + 1.0)
        raised = np.maximum(result, following)
        if np.array_equal(raised, result):
            break
        result = raised
    return np.minimum(result, arcs - 1.0)
