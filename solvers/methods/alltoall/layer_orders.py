"""Layers as orders of arcs in which routes go forward, by simulated annealing.

A layer has no dependency cycle if and only if its arcs have an order in which all its routes go forward (Dally & Seitz,
IEEE Trans. Computers 36(5), 1987). So L layers suffice if L orders have, for every route, one in which it does. A step
moves one arc past another one in one order; the number of routes that go forward in no order falls to 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import max_of
from opticoll.formulations.rounds.segments import offsets

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.instances.topology import F64, I64

#: First and last temperature [routes]; parts between two checks of the clock.
HOT, COOL, PARTS = 0.4, 0.1, 64
#: Probability that an arc is moved past one that is next to it on some route, and not to a random place.
NEXT = 0.9


@compiled(nogil=True)
def _backward(place: F64, before: int, at: float, after: int) -> int:
    """Dependencies that go back where an arc at a place stands between two others (-1 for none) on a route."""
    return int(before >= 0 and place[before] >= at) + int(after >= 0 and at >= place[after])


@compiled(nogil=True)
def anneal_orders(
    over: I64,
    users: I64,
    before: I64,
    after: I64,
    place: F64,
    backward: I64,
    forward: I64,
    moves: int,
    heat: float,
    seed: int,
) -> int:
    """Change orders at one temperature until every route goes forward in one; return how many go forward in none.

    Parameters
    ----------
    over, users, before, after
        Over arc a go the routes ``users[over[a]:over[a+1]]``, which use the arc ``before`` right before and ``after``
        right after, -1 for none.
    place
        Places of the arcs in every order, ``(L, m)``; changed.
    backward, forward
        Number of dependencies of every route that go back in every order, ``(R, L)``, and of orders in which it goes
        forward, ``(R,)``; changed.
    heat, seed
        Temperature [routes]; of the random steps.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    layers, m = place.shape
    left, ends = 0, max_of(place) + 1.0
    for r in range(forward.size):
        left += forward[r] == 0
    for _ in range(moves):
        if left == 0:
            break
        own, a = np.random.randint(layers), np.random.randint(m)  # noqa: NPY002
        if over[a] == over[a + 1]:
            continue
        old, new = place[own, a], np.random.random() * ends  # noqa: NPY002
        if np.random.random() < NEXT:  # noqa: NPY002
            use = np.random.randint(over[a], over[a + 1])  # noqa: NPY002
            b = before[use] if np.random.random() < 0.5 else after[use]  # noqa: NPY002
            if b < 0:
                continue
            new = place[own, b] + (1e-9 if place[own, b] > old else -1e-9) * np.random.random()  # noqa: NPY002
        more = 0
        for i in range(over[a], over[a + 1]):
            change = _backward(place[own], before[i], new, after[i]) - _backward(place[own], before[i], old, after[i])
            if change != 0:
                r = users[i]
                was, now = backward[r, own] == 0, backward[r, own] + change == 0
                if forward[r] - int(was) == 0:
                    more += int(was) - int(now)
        if more > 0 and np.random.random() >= np.exp(-more / heat):  # noqa: NPY002
            continue
        left += more
        for i in range(over[a], over[a + 1]):
            change = _backward(place[own], before[i], new, after[i]) - _backward(place[own], before[i], old, after[i])
            if change != 0:
                r = users[i]
                forward[r] += int(backward[r, own] + change == 0) - int(backward[r, own] == 0)
                backward[r, own] += change
        place[own, a] = new
    return left


class LayerOrders:
    """Orders of arcs for given routes, ``place`` ``(L, m)``, and the routes that go forward in each.

    ``group`` ``(m,)`` puts the arcs into groups at first, one after the other; ``place`` are orders to start from.
    With ``kind`` ``(m,)`` the orders are those of kinds of arcs; two of a kind on a route do not go forward.
    """

    def __init__(
        self,
        routes: PathSet,
        layers: int,
        seed: int,
        group: I64 | None = None,
        place: F64 | None = None,
        kind: I64 | None = None,
    ) -> None:
        kind = np.arange(routes.topology.arcs) if kind is None else kind
        m, arcs = int(kind.max()) + 1, kind[routes.arcs]
        self.random = np.random.default_rng(seed)
        if place is None:
            place = self.random.random((layers, m))
            if group is not None:
                place += group[np.unique(kind, return_index=True)[1]]
        self.place = place
        owner = np.repeat(np.arange(routes.paths), routes.length)
        inside = owner[1:] == owner[:-1]
        order = np.argsort(arcs, kind="stable")
        before = np.concatenate([[-1], np.where(inside, arcs[:-1], -1)])
        after = np.concatenate([np.where(inside, arcs[1:], -1), [-1]])
        over = offsets(np.bincount(arcs, minlength=m))
        self.uses = over, owner[order], before[order], after[order]
        first, second, route = arcs[:-1][inside], arcs[1:][inside], owner[:-1][inside]
        back = [np.bincount(route, row[first] >= row[second], routes.paths) for row in self.place]
        self.backward = np.ascontiguousarray(np.array(back).T.astype(np.int64))
        self.forward = (self.backward == 0).sum(axis=1)

    def anneal(self, moves: int, tick: Callable[[], object]) -> int:
        """The number of routes that go forward in no order, after at most ``moves`` steps.

        ``tick`` is called now and then, and ends the search by raising.
        """
        left = int((self.forward == 0).sum())
        for heat in np.geomspace(HOT, COOL, PARTS).tolist() if left else ():
            tick()
            part, seed = -(-moves // PARTS), int(self.random.integers(2**31))
            left = anneal_orders(*self.uses, self.place, self.backward, self.forward, part, heat, seed)
            if left == 0:
                break
        return left

    @property
    def layer(self) -> I64:
        """The first layer in which every route goes forward, ``(R,)``; -1 where there is none."""
        return np.where(self.forward > 0, (self.backward == 0).argmax(axis=1), -1)
