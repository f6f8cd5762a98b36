"""Data, bounds and solutions of ``lumorph.forwarded-rounds``: classes of chunks, and the schedule of a program."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.lumorph import scheduled_rounds
from opticoll.formulations.lumorph.collective_bounds import PAPER
from opticoll.formulations.model import Bound
from opticoll.formulations.rounds.round_schedule import RoundSchedule
from opticoll.formulations.rounds.segments import select

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from numpy.typing import NDArray

    from opticoll.formulations.lumorph.forwarded_rounds import ForwardedRounds
    from opticoll.instances.topology import I64, Mask


def classes(data: ForwardedRounds) -> I64:
    """Q of every chunk, ``(chunks,)``; chunks with the same Pre have the same, in the order of first chunks."""
    held = np.zeros((data.collective.chunks, data.collective.n), dtype=bool)
    held[tuple(data.collective.pre.T)] = True
    packed = np.packbits(held, axis=1)  # as one word a row they are sorted much faster than as columns
    rows = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, which = np.unique(rows, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[which]


def holders(data: ForwardedRounds) -> Mask:
    """Whether v is in Pre[q], ``(|Q|, n)``."""
    return _of_classes(data, data.collective.pre)


def receivers(data: ForwardedRounds) -> Mask:
    """Whether v is in Post[q] and not in Pre[q], ``(|Q|, n)``."""
    return _of_classes(data, data.collective.deliveries)


def _of_classes(data: ForwardedRounds, pairs: I64) -> Mask:
    result = np.zeros((int(data.class_of.max()) + 1, data.collective.n), dtype=bool)
    result[data.class_of[pairs[:, 0]], pairs[:, 1]] = True
    return result


def most_peers(data: ForwardedRounds) -> int:
    """k: the most circuits that a vertex sends, or receives, in a round."""
    limits, topology = data.limits, data.topology
    room = limits.room(topology).astype(float)
    on_arcs = int(max(topology.outflow(room).max(), topology.inflow(room).max()))
    each = on_arcs if limits.ports is None else min(on_arcs, limits.ports)
    return each * limits.wavelengths


def forwarded_bounds(data: ForwardedRounds) -> list[Bound]:
    """Analytic bounds on the number of rounds, for any routes."""
    k, bounds = most_peers(data), []
    spread = [(int(h.sum()), int((h | w).sum())) for h, w in zip(data.given, data.wanted, strict=True)]
    holders, reached = max(spread, key=lambda pair: rounds_to_reach(k, *pair))
    reason = f"chunks of {holders} vertices reach {reached}; with {k} peers a round their number grows {k + 1}-fold"
    bounds.append(Bound("spread", float(rounds_to_reach(k, holders, reached)), reason, PAPER))
    alone = data.given.sum(axis=1) == 1  # classes with the same single holder are one class
    heard = (data.wanted & alone[:, None]).sum(axis=0) + 1
    v = int(heard.argmax())
    reason = f"vertex {v} hears from {int(heard[v]) - 1} others; with {k} peers a round, {k + 1} times as many"
    bounds.append(Bound("gather", float(rounds_to_reach(k, 1, int(heard[v]))), reason, PAPER))
    return bounds


def doubling_rounds(data: ForwardedRounds) -> int:
    """Rounds of doubling steps, whose circuits are packed into rounds first fit: always enough."""
    members = np.flatnonzero((data.given | data.wanted).any(axis=0))
    routes, n, p = data.routes, data.topology.n, members.size
    room = data.limits.room(data.topology).tolist()
    total, stride = 0, 1
    while stride < p:
        used: defaultdict[tuple[int, str, int, int], int] = defaultdict(int)
        last = 0
        for position, s in enumerate(members.tolist()):
            d = int(members[(position + stride) % p])
            pair = s * (n - 1) + d - (d > s)
            needs = [("arc", arc, room[arc]) for arc in routes.path(int(routes.first[pair]))]
            if data.limits.ports is not None:
                needs += [("laser", s, data.limits.ports), ("photodiode", d, data.limits.ports)]
            slot = 0
            while any(used[slot, kind, item, 0] >= most for kind, item, most in needs):
                slot += 1
            for kind, item, _ in needs:
                used[slot, kind, item, 0] += 1
            last = max(last, slot)
        total += last // data.limits.wavelengths + 1
        stride *= 2
    return total


def rounds_to_reach(k: int, held: int, reached: int) -> int:
    """Least R with held (k+1)^R >= reached, in integers."""
    rounds = 0
    while held < reached:
        held, rounds = held * (k + 1), rounds + 1
    return rounds


def schedule_of_circuits(data: ForwardedRounds, values: Mapping[str, NDArray[Any]]) -> RoundSchedule:
    """The circuits that carry something, and the transfers of the chunks that somebody further on requires."""
    D, X = (np.asarray(values[name], dtype=float) for name in ("D", "X"))
    n, members = data.topology.n, [np.flatnonzero(data.class_of == q) for q in range(len(data.given))]
    needed = np.zeros((data.collective.chunks, n), dtype=bool)
    needed[tuple(data.collective.deliveries.T)] = True
    xr, xq, xs, xd = (data.sends[name][X > 0.5] for name in data.sends.key)
    parts = []
    for k in range(xr.size - 1, -1, -1):  # backwards in time: X is in the order of rounds
        q, sender, receiver = int(xq[k]), int(xs[k]), int(xd[k])
        chunks = members[q][needed[members[q], receiver]]
        if not data.given[q, sender]:
            needed[chunks, sender] = True
        parts.append(np.column_stack([np.broadcast_to([xr[k], sender, receiver], (chunks.size, 3)), chunks]))
    moved = np.concatenate(parts[::-1]) if parts else np.zeros((0, 4), dtype=np.int64)
    when, source, target, chunk = moved.T
    taken = np.flatnonzero(D > 0.5)
    key = (data.circuits["r"][taken] * n + data.circuits["s"][taken]) * n + data.circuits["d"][taken]
    taken = taken[np.isin(key, (when * n + source) * n + target)]
    start, arcs = select(data.routes.start, data.routes.arcs, data.circuits["path"][taken])
    r, s, d, w = (data.circuits[name][taken] for name in ("r", "s", "d", "w"))
    adds = np.zeros(when.size, dtype=bool)
    return RoundSchedule(r, s, d, w, start, arcs, when, source, target, chunk, adds)


def estimate(data: ForwardedRounds) -> dict[str, int]:
    """About the size with ``rmax`` rounds, or as few as the bounds allow, without listing columns."""
    n, T, waves = data.topology.n, data.rmax or max(data.fewest, 1), data.limits.wavelengths
    D, B = T * n * (n - 1) * data.plain.paths * waves, T * int((~data.given).sum())
    X, ends = B * (n - 1), 0 if data.limits.ports is None else 2 * n
    hops = scheduled_rounds.farthest(data.topology)
    return {
        "variables": D + X + B + T,
        "constraints": B + int(data.wanted.sum()) + 2 * X + T * waves * (ends + data.topology.arcs),
        "nonzeros": int(D * (2 + hops)) + 2 * B + X * (4 + data.plain.paths * waves),
    }
