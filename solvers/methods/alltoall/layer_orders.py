"""Layers as orders of arcs in which routes go forward, by simulated annealing.

A layer has no dependency cycle if and only if its arcs have an order in which all its routes go forward (Dally & Seitz,
IEEE Trans. Computers 36(5), 1987). So L layers suffice if L orders have, for every route, one in which it does. A step
moves one arc to another place in one order; the number of routes that go forward in no order falls to 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from opticoll.formulations.flows.path_sets import PathSet
    from opticoll.instances.topology import F64, I64

#: First and last temperature [routes]; parts between two checks of the clock.
HOT, COOL, PARTS = 0.4, 0.15, 64


@compiled()
def backward_steps(first: I64, arcs: I64, place: F64, route: int) -> int:
    """Number of dependencies of a route that go back in the order of ``place`` ``(m,)``."""
    count = 0
    for i in range(first[route], first[route + 1] - 1):
        if place[arcs[i]] >= place[arcs[i + 1]]:
            count += 1
    return count


@compiled()
def anneal_orders(
    first: I64, arcs: I64, over: I64, users: I64, place: F64, backward: I64, moves: int, heat: float, seed: int
) -> bool:
    """Change orders at one temperature until every route goes forward in one; False after ``moves`` steps.

    Parameters
    ----------
    first, arcs
        Route r takes ``arcs[first[r]:first[r+1]]``.
    over, users
        The routes over arc a are ``users[over[a]:over[a+1]]``.
    place
        Places of the arcs in every order, ``(L, m)``; changed.
    backward
        :func:`backward_steps` of every route in every order, ``(L, R)``; changed.
    heat, seed
        Temperature [routes]; of the random steps.
    """
    np.random.seed(seed)  # noqa: NPY002 - the generator of the compiled code
    layers, m = place.shape
    left = 0
    for r in range(backward.shape[1]):
        left += backward[:, r].min() > 0
    for _ in range(moves):
        if left == 0:
            return True
        own, a = np.random.randint(layers), np.random.randint(m)  # noqa: NPY002
        before = place[own, a]
        place[own, a] = np.random.random()  # noqa: NPY002
        if np.random.random() < 0.5:  # noqa: NPY002 - right before or after another arc
            place[own, a] = place[own, np.random.randint(m)] + 1e-9 * (np.random.random() - 0.5)  # noqa: NPY002
        more = 0
        for i in range(over[a], over[a + 1]):
            r = users[i]
            elsewhere = False
            for k in range(layers):
                elsewhere |= k != own and backward[k, r] == 0
            if not elsewhere:
                more += int(backward_steps(first, arcs, place[own], r) > 0) - int(backward[own, r] > 0)
        if more > 0 and np.random.random() >= np.exp(-more / heat):  # noqa: NPY002
            place[own, a] = before
            continue
        left += more
        for i in range(over[a], over[a + 1]):
            backward[own, users[i]] = backward_steps(first, arcs, place[own], users[i])
    return left == 0


def ordered_layers(routes: PathSet, layers: int, moves: int, seed: int, tick: Callable[[], object]) -> I64 | None:
    """The layer of every route, ``(|R|,)``, for this number of layers; None if ``moves`` steps find none.

    ``tick`` is called now and then, and ends the search by raising.
    """
    random, m = np.random.default_rng(seed), routes.topology.arcs
    first, arcs = routes.start.astype(np.int64), routes.arcs.astype(np.int64)
    users = np.repeat(np.arange(routes.paths), routes.length)[np.argsort(arcs, kind="stable")]
    over = np.concatenate([[0], np.cumsum(np.bincount(arcs, minlength=m))])
    place = random.random((layers, m))
    backward = np.array([[backward_steps(first, arcs, row, r) for r in range(routes.paths)] for row in place])
    for heat in np.geomspace(HOT, COOL, PARTS).tolist():
        tick()
        part = int(random.integers(2**31))
        if anneal_orders(first, arcs, over, users, place, backward, -(-moves // PARTS), heat, part):
            return np.asarray((backward == 0).argmax(axis=0))
    return None
