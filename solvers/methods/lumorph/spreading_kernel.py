r"""Compiled search for one round of copies: sender, chunk, wavelength and path of every reception.

Source  McMurchie & Ebeling, PathFinder, FPGA 1995 (negotiated congestion)

Receivers take turns. A receiver looks, on a wavelength that is still free for it, for the nearest vertex with a free
laser that holds a missing chunk, over arcs with room (breadth first, against the arcs), and takes the rarest one there.
If there is none, it takes the path of least conflict and ejects the circuits on it (rip-up and reroute); the prices of
contested arcs grow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.compiled import compiled
from opticoll.compiled_arrays import max_of, sum_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from opticoll.instances.topology import F64, I32, I64, Mask

    U64 = NDArray[np.uint64]


@compiled(nogil=True)
def _shuffle(items: I64) -> None:
    for i in range(items.size - 1, 0, -1):
        j = np.random.randint(i + 1)  # noqa: NPY002
        items[i], items[j] = items[j], items[i]


@compiled(nogil=True)
def _pick(available: U64, missing: U64, holders: I64) -> int:
    """The rarest chunk in both sets, ties at random; -1 if there is none."""
    best, ties, least = -1, 0, np.int64(1) << 60
    for w in range(available.size):
        bits = available[w] & missing[w]
        while bits != np.uint64(0):
            low = bits & (~bits + np.uint64(1))
            bits ^= low
            b = 0
            while (low >> np.uint64(b)) != np.uint64(1):
                b += 1
            c = 64 * w + b
            if holders[c] < least:
                best, least, ties = c, holders[c], 1
            elif holders[c] == least:
                ties += 1
                if np.random.randint(ties) == 0:  # noqa: NPY002
                    best = c
    return best


@compiled(nogil=True)
def _meets(a: U64, b: U64) -> bool:
    for w in range(a.size):  # noqa: SIM110 - compiled
        if a[w] & b[w] != np.uint64(0):
            return True
    return False


@compiled(nogil=True)
def _nearest(
    v: int,
    base: int,
    ports: int,
    room: I64,
    reach: int,
    first_in: I64,
    in_arc: I64,
    tail: I64,
    holds: U64,
    mask: U64,
    used: I32,
    sends: I32,
    depth: I64,
    way: I64,
    queue: I64,
) -> int:
    """The nearest vertex with a chunk of ``mask`` and a free laser, over arcs with room; -1 if there is none.

    ``used`` and ``sends`` are those of one wavelength; ``base`` rotates the order of arcs; ``way`` receives the arc out
    of every vertex towards v.
    """
    sender, touched, front = -1, 1, 0
    queue[0], depth[v] = v, 0
    while front < touched and sender < 0:
        u = queue[front]
        front += 1
        if depth[u] >= reach:
            break
        degree = first_in[u + 1] - first_in[u]
        for i in range(degree):
            a = in_arc[first_in[u] + (i + base) % degree]
            s = tail[a]
            if used[a] >= room[a] or depth[s] >= 0:
                continue
            depth[s], way[s] = depth[u] + 1, a
            queue[touched] = s
            touched += 1
            if sends[s] < ports and _meets(holds[s], mask):
                sender = s
                break
    for i in range(touched):
        depth[queue[i]] = -1
    return sender


@compiled(nogil=True)
def _least_conflict(
    v: int,
    ports: int,
    room: I64,
    first_in: I64,
    in_arc: I64,
    tail: I64,
    holds: U64,
    mask: U64,
    used: I32,
    sends: I32,
    price: F64,
    cost: F64,
    settled: Mask,
    way: I64,
) -> int:
    """The vertex that can send v a chunk of ``mask`` with least conflict on one wavelength; -1 if unreachable."""
    n = cost.size
    cost[:] = np.inf
    settled[:] = False
    cost[v] = 0.0
    best, sender = np.inf, -1
    while True:
        u, least = -1, np.inf
        for x in range(n):
            if not settled[x] and cost[x] < least:
                u, least = x, cost[x]
        if u < 0 or least >= best:
            return sender
        settled[u] = True
        if u != v and _meets(holds[u], mask):
            end = least if sends[u] < ports else least + 2.0 + 4.0 * np.random.random()  # noqa: NPY002
            if end < best:
                best, sender = end, u
        for i in range(first_in[u], first_in[u + 1]):
            a = in_arc[i]
            step = 0.2 + price[a] + 0.3 * np.random.random()  # noqa: NPY002
            if used[a] >= room[a]:
                step += 3.0
            if cost[u] + step < cost[tail[a]]:
                cost[tail[a]], way[tail[a]] = cost[u] + step, a


@compiled(nogil=True)
def _eject(
    w: int,
    x: int,
    source: I32,
    chunk: I32,
    hops: I32,
    path: I32,
    users: I32,
    used: I32,
    sends: I32,
    holders: I64,
    wants: U64,
) -> None:
    """Remove the circuit into x on wavelength w."""
    for i in range(hops[w, x]):
        a = path[w, x, i]
        for j in range(used[w, a]):
            if users[w, a, j] == x:
                users[w, a, j] = users[w, a, used[w, a] - 1]
                break
        used[w, a] -= 1
    sends[w, source[w, x]] -= 1
    c = chunk[w, x]
    holders[c] -= 1
    wants[x, c // 64] |= np.uint64(1) << np.uint64(c % 64)
    source[w, x] = -1


@compiled(nogil=True)
def one_round(
    first_in: I64,
    in_arc: I64,
    tail: I64,
    head: I64,
    room: I64,
    ports: int,
    holds: U64,
    wants: U64,
    holders: I64,
    quota: I64,
    most_steps: int,
    seed: int,
    source: I32,
    chunk: I32,
    hops: I32,
    path: I32,
) -> None:
    """Schedule one round.

    Parameters
    ----------
    first_in, in_arc
        Arcs into v are ``in_arc[first_in[v]:first_in[v + 1]]``.
    room, ports
        Most circuits of one wavelength on every arc, ``(m,)``; sent by a vertex.
    holds, wants
        Bit sets of chunks, ``(n, words)``, at the start of the round; planned chunks are removed from ``wants``.
    holders
        Holders of every chunk; planned receptions are added.
    quota
        Chunks that every vertex should receive, at most one per wavelength.
    most_steps
        Most turns with ejections.
    source, chunk, hops, path
        Output: entry ``[w, v]`` is the circuit into vertex v on wavelength w: its source (-1 for none), chunk, number
        of arcs, and arcs (``path`` is ``(wavelengths, n, longest)``).
    """
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator is a process-wide one
    n, m, waves, longest = holds.shape[0], tail.size, source.shape[0], path.shape[2]
    source[:] = -1
    users = np.full((waves, m, max_of(room)), -1, dtype=np.int32)
    used = np.zeros((waves, m), dtype=np.int32)
    sends = np.zeros((waves, n), dtype=np.int32)
    price = np.zeros((waves, m))
    queue, way = np.empty(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    depth = np.full(n, -1, dtype=np.int64)
    cost, settled = np.empty(n), np.empty(n, dtype=np.bool_)
    turn = np.empty(int(sum_of(quota)) + 1, dtype=np.int64)
    count = 0
    for v in range(n):
        for _ in range(quota[v]):
            turn[count] = v
            count += 1
    _shuffle(turn[:count])
    order = np.arange(waves)
    steps, stale, least_missing = 0, 0, count
    while count > 0 and steps < most_steps and stale < 40 * least_missing + 400:
        at = count - 1 if steps == 0 else np.random.randint(count)  # noqa: NPY002
        v = turn[at]
        into, s = -1, -1
        _shuffle(order)
        for w in order:
            if source[w, v] < 0:
                turned = np.random.randint(64)  # noqa: NPY002
                s = _nearest(
                    v,
                    turned,
                    ports,
                    room,
                    longest,
                    first_in,
                    in_arc,
                    tail,
                    holds,
                    wants[v],
                    used[w],
                    sends[w],
                    depth,
                    way,
                    queue,
                )
                if s >= 0:
                    into = int(w)
                    break
        if s < 0:
            steps += 1
            stale += 1
            for w in order:
                if source[w, v] < 0:
                    into = int(w)
                    break
            s = _least_conflict(
                v,
                ports,
                room,
                first_in,
                in_arc,
                tail,
                holds,
                wants[v],
                used[into],
                sends[into],
                price[into],
                cost,
                settled,
                way,
            )
            length, u = 0, int(s)
            while s >= 0 and u != v:
                length += 1
                u = head[way[u]]
            if s < 0 or length > longest:
                # No reachable vertex has a chunk for v in this round.
                count -= 1
                turn[at] = turn[count]
                continue
            if sends[into, s] >= ports:
                skip = np.random.randint(ports)  # noqa: NPY002
                for x in range(n):
                    if source[into, x] == s:
                        if skip == 0:
                            _eject(into, x, source, chunk, hops, path, users, used, sends, holders, wants)
                            turn[count] = x
                            count += 1
                            break
                        skip -= 1
            u = s
            while u != v:
                a = way[u]
                if used[into, a] >= room[a]:
                    price[into, a] += 0.5
                    x = users[into, a, np.random.randint(room[a])]  # noqa: NPY002
                    _eject(into, x, source, chunk, hops, path, users, used, sends, holders, wants)
                    turn[count] = x
                    count += 1
                u = head[a]
        c = _pick(holds[s], wants[v], holders)
        source[into, v], chunk[into, v] = s, c
        length, vertex = 0, int(s)
        while vertex != v:
            a = way[vertex]
            path[into, v, length] = a
            length += 1
            users[into, a, used[into, a]] = v
            used[into, a] += 1
            vertex = int(head[a])
        hops[into, v] = length
        sends[into, s] += 1
        holders[c] += 1
        wants[v, c // 64] &= ~(np.uint64(1) << np.uint64(c % 64))
        count -= 1
        turn[at] = turn[count]
        if count < least_missing:
            least_missing, stale = count, 0
