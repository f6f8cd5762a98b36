"""Bounds on the time of an iteration over every choice of circuits, routes and rates; see ``topoopt.circuits``."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.topoopt.forwarding import travelled

if TYPE_CHECKING:
    from opticoll.formulations.topoopt.circuits import TaskCircuits
    from opticoll.instances.topology import F64, I64


def one_after_another(head: F64, size: F64, tail: F64) -> float:
    r"""Least end of jobs on one machine: max over r, q of r + sum of the sizes with head >= r and tail >= q, + q.

    Of all thresholds r, q that are heads and tails. Also holds where jobs are divisible and share the machine.
    """
    order = np.argsort(-head, kind="stable")
    begin, best = head[order], 0.0
    for q in np.unique(tail):
        work = np.cumsum(np.where(tail[order] >= q, size[order], 0.0))
        best = max(best, float((begin + work)[tail[order] >= q].max()) + float(q))
    return best


def sides(data: TaskCircuits, transfers: I64, lines: I64) -> list[tuple[str, I64]]:
    """The lines whose transfers leave or enter the same server, with its name."""
    result = []
    for name, ends in (("out of", data.transfers.source), ("into", data.transfers.target)):
        server = ends[transfers[lines]]
        result += [(f"{name} server {v}", lines[server == v]) for v in np.unique(server)]
    return result


def chains(data: TaskCircuits) -> tuple[F64, F64]:
    """Time that every transfer cannot begin before, and that is left after its end, over all circuits, ``(E,)`` each.

    What it waits for, and shares a server, goes through the ports of that server: at most d circuits at a time.
    Likewise for what waits for it, in the reversed graph.
    """
    e, d = data.transfers, data.degree
    head, tail, busy = e.head.copy(), e.tail.copy(), e.size / d
    for i in range(e.count):
        for _, own in sides(data, e.before, e.into[i]):
            g = e.before[own]
            head[i] = max(head[i], one_after_another(head[g], busy[g], e.lag[own]))
    for i in range(e.count - 1, -1, -1):
        for _, own in sides(data, e.after, e.out_of[i]):
            g = e.after[own]
            tail[i] = max(tail[i], one_after_another(e.lag[own], busy[g], tail[g]))
    return head, tail


def wave_time(data: TaskCircuits) -> float:
    """Least end where there are as many intervals as waves: the k-th carries the k-th of every longest chain whole.

    It lasts at least as long as these take over the ports of a server, and over all hops over all circuits.
    """
    e, d, n = data.transfers, data.degree, data.n
    fixed, end = e.wave + e.following == data.intervals, np.full(e.count, -np.inf)
    stop, last = 0.0, e.computing
    for k in range(data.intervals):
        own = fixed & (e.wave == k)
        sent = e.between(n, np.where(own, e.size, 0.0))
        held = own[e.after] & fixed[e.before]
        waited = max(float(e.head[own].max()), float((end[e.before] + e.lag)[held].max(initial=0.0)))
        begin = max(stop + float(data.pause[k]), waited)
        ports = max(float(sent.sum(axis=0).max()), float(sent.sum(axis=1).max()))
        stop = begin + max(ports / d, travelled(sent, d) / (n * d))
        end[own] = stop
        last = max(last, stop + float(e.tail[own].max()))
    return last


def bounds(data: TaskCircuits) -> list[Bound]:
    r"""Bounds over all circuits, routes and rates, whatever the number of configurations and, but for waves, intervals.

    path
        The longest chain, with every transfer over all d circuits of its ends.
    ports
        The transfers that leave (enter) a server have d circuits together: the earliest of them, their sum over d, and
        what is left after the last, of those that begin no earlier and have no less left than some.
    reach
        For one configuration: at most d servers are one hop away, d^2 two, ..., which bounds the time of one circuit
        that the transfers take on all hops (:func:`~opticoll.formulations.topoopt.forwarding.travelled`); there are n d
        circuits. Transfers that begin no earlier and have no less left than some, as in ``ports``.
    waves
        For as many intervals as waves (:func:`wave_time`): what is computed between two waves is not overlapped.
    """
    e, d, n = data.transfers, data.degree, data.n
    head, tail = chains(data)
    everything = np.arange(e.count)
    longest = int(np.argmax(head + e.size / d + tail))
    path = max(float((head + e.size / d + tail)[longest]), e.computing)
    groups = sides(data, everything, everything)
    value, where = max((one_after_another(head[own], e.size[own] / d, tail[own]), name) for name, own in groups)
    roundings = 4 * e.count + 8  # sums of at most so many terms on a chain
    found = [
        Bound("path", float(rounding.down(path, roundings)), "the longest chain, every transfer over all ports"),
        Bound(
            "ports", float(rounding.down(value, roundings)), f"the transfers {where} over {d} ports, one after another"
        ),
    ]
    if data.configurations == 1:
        best = 0.0
        for r, q in product(_some(head), _some(tail)):
            own = (head >= r) & (tail >= q)
            if own.any():
                sent = e.between(n, np.where(own, e.size, 0.0))
                best = max(best, float(r + q) + travelled(sent, d) / (n * d))
        reason = f"at most {d}^h servers are h hops away, and all circuits carry that together"
        found.append(Bound("reach", float(rounding.down(best, roundings)), reason))
    if data.intervals == int(e.wave.max()) + 1:
        reason = f"{data.intervals} intervals for chains of {data.intervals} transfers, one for each"
        found.append(Bound("waves", float(rounding.down(wave_time(data), roundings + 2 * n * n)), reason))
    return found


def _some(values: F64) -> F64:
    """Up to 20 of the values, the least among them: any thresholds give a bound."""
    distinct = np.unique(values)
    return distinct[np.unique(np.linspace(0, distinct.size - 1, 20).astype(int))]
