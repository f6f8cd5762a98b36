r"""Routes of some pairs that automorphisms move to all pairs, and layers as orders of all arcs.

A set of automorphisms (``images``) takes the routes of some pairs to routes of all of them, each pair to be served
once. They need not be a group, nor keep the layers. A layer is an order of the arcs (``place``): a route is on the
first one in which it ascends. So the dependencies of a layer ascend in its order and have no cycle, and nothing else
needs to be checked of 16 million routes than that each of them ascends somewhere (Dally & Seitz 1987).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.path_sets import PathSet
from opticoll.formulations.rounds.segments import offsets, select

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64


@dataclass(frozen=True, eq=False)
class MovedRoutes:
    """Simple paths, one for each of some pairs; images of all vertices ``(g, n)``; places of arcs in orders ``(m, L)``.

    The topology has no parallel arcs.
    """

    paths: PathSet
    images: I64
    place: F64

    def arc_image(self, image: I64) -> I64:
        """The image of all arcs ``(m,)`` under one of the vertices; empty if it does not keep arcs and capacities."""
        topology = self.paths.topology
        key, there = (ends[topology.tail] * topology.n + ends[topology.head] for ends in (np.arange(topology.n), image))
        arcs = np.minimum(np.searchsorted(key, there), topology.arcs - 1)
        kept = np.array_equal(key[arcs], there) and np.array_equal(topology.capacity[arcs], topology.capacity)
        return arcs if kept and np.unique(image).size == topology.n else arcs[:0]

    def layers(self, arcs: I64) -> I64:
        """The layer of every path ``(P,)`` whose arcs have these images; -1 where it ascends in no order."""
        result = np.full(self.paths.paths, -1)
        inside = self._route[1:] == self._route[:-1]
        for level in reversed(range(self.place.shape[1])):
            at = self.place[arcs, level][self.paths.arcs]
            ascends = np.ones(self.paths.paths, dtype=bool)
            ascends[self._route[1:][inside & ~(at[1:] > at[:-1])]] = False
            result[ascends] = level
        return result

    @cached_property
    def _route(self) -> I64:
        return np.repeat(np.arange(self.paths.paths), self.paths.length)

    @property
    def load(self) -> F64:
        """Paths of all pairs over every arc, ``(m,)``."""
        once, result = np.bincount(self.paths.arcs, minlength=self.paths.topology.arcs), np.zeros(len(self.place))
        for image in self.images:
            result[self.arc_image(image)] += once
        return result

    def examined(self) -> tuple[F64, I64] | tuple[str, str]:
        """Paths over every arc ``(m,)`` and on every layer ``(L,)``, of all pairs; or why they are wrong, and in words.

        The reasons are those of :class:`opticoll.solvers.schedules.schedule_check.ScheduleCheck`.
        """
        paths, topology = self.paths, self.paths.topology
        labels, ends = topology.labels, (paths.sources[paths.pair], paths.targets[paths.pair])
        served = np.zeros((topology.n, topology.n), dtype=bool)
        layers = np.zeros(self.place.shape[1], dtype=np.int64)
        for number, image in enumerate(self.images):
            arcs = self.arc_image(image)
            if not arcs.size:
                return "symmetry", f"image {number} takes some link to none, or to one of another capacity"
            layer = self.layers(arcs)
            if (layer < 0).any():
                s, t = (labels[image[one[layer.argmin()]]] for one in ends)
                return "cycle", f"the route {s}->{t} ascends in no order, so that it may wait in a circle"
            served[image[ends[0]], image[ends[1]]] = True
            layers += np.bincount(layer, minlength=layers.size)
        ranks = topology.terminals
        due = np.zeros_like(served)
        due[np.ix_(ranks, ranks)] = True
        np.fill_diagonal(due, val=False)
        wrong = np.argwhere(served != due)
        if wrong.size:
            s, t = wrong[0].tolist()
            return "weights", f"the routes {labels[s]}->{labels[t]} carry {int(served[s, t])} of the shard"
        if layers.sum() != due.sum():
            return "weights", f"{layers.sum()} routes for {due.sum()} pairs, which need one each"
        return self.load, layers

    def whole(self) -> tuple[PathSet, I64]:
        """The routes and the layers of all pairs, ascending by source and target."""
        paths, moved = self.paths, [self.arc_image(image) for image in self.images]
        sources, targets = (self.images[:, one[paths.pair]].ravel() for one in (paths.sources, paths.targets))
        order = np.lexsort((targets, sources))
        every = offsets(np.tile(paths.length, len(moved)))
        start, arcs = select(every, np.concatenate([arcs[paths.arcs] for arcs in moved]), order)
        pair, layer = np.arange(order.size), np.concatenate([self.layers(arcs) for arcs in moved])[order]
        return PathSet(paths.topology, sources[order], targets[order], arcs, start, pair), layer
