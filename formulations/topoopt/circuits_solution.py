"""Solutions of ``topoopt.circuits``: arrays, checker, and a fluid replay of given circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import axis_of, size
from opticoll.formulations.variables import Array

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from fractions import Fraction

    from opticoll.formulations.topoopt.circuits import TaskCircuits
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json

#: Arrays that the checker does not read.
_FOLLOW = ("o", "c")


def wave_horizon(data: TaskCircuits) -> float:
    """End of a schedule that sends the transfers one by one over a ring of servers, wave by wave [ms]."""
    e, wave = data.transfers, data.transfers.wave
    end, at = np.zeros(e.count), 0.0
    for k in range(int(wave.max()) + 1):
        own = np.flatnonzero(wave == k)
        held = np.isin(e.after, own)
        at = max(at, float(e.head[own].max()), float((end[e.before[held]] + e.lag[held]).max(initial=0.0)))
        at += float(e.size[own].sum())
        end[own] = at
    last = max(e.computing, float((end + e.tail).max())) + data.delay * (data.configurations - 1)
    return float(np.ceil(last * 1e3) / 1e3)


def arrays(data: TaskCircuits, names: Collection[str]) -> dict[str, Array]:
    """Shapes of all variables; those that the checker does not read may be left out."""
    axes = {name: axis_of(data, name) for along in data.variables.values() for name in along}
    units = {"o": "ms", "f": "ms", "b": "ms", "t": "ms", "l": "ms", "c": "ms", "z": "ms"}
    return {
        name: Array(tuple(axes[one] for one in along), required=name not in _FOLLOW, unit=units.get(name, ""))
        for name, along in data.variables.items()
        if name in names or name not in _FOLLOW
    }


def estimate(data: TaskCircuits) -> dict[str, int] | None:
    """About the size of the model."""
    n, K, E = data.n, data.intervals, data.transfers.count
    circuits = n * (n - 1) * data.degree
    flows = len(np.unique(data.transfers.source)) * (n - 1) ** 2
    columns = circuits * (data.configurations + K) + K * (flows + 2 * E + 2) + E + 1
    rows = K * (2 * circuits + 3 * E + data.transfers.before.size + 2 * n * n) + 2 * E
    return size(data, variables=columns, constraints=rows)


def derived(data: TaskCircuits) -> list[Fraction]:
    """What the rows of ``wait`` hold: H less the computing between two transfers."""
    horizon = rounding.decimal(data.horizon)
    return [horizon - rounding.decimal(float(lag)) for lag in np.unique(data.transfers.lag)]


def circuits_of(data: TaskCircuits, values: Mapping[str, F64]) -> F64:
    """Number of circuits from server to server of every configuration, ``(C, n, n)``."""
    return np.nan_to_num(np.asarray(values["y"], dtype=float)).sum(axis=3)


def violations(data: TaskCircuits, values: Mapping[str, F64]) -> dict[str, float]:
    """Worst violation of every block."""
    e, n, d = data.transfers, data.n, data.degree
    unit = max(bound.value for bound in data.bounds())
    y, f, a, share = (np.nan_to_num(np.asarray(values[name], dtype=float)) for name in "yfab")
    t, length, z = (np.asarray(values[name], dtype=float) for name in "tlz")
    x, on = y.sum(axis=3), np.rint(a) > 0.5
    loops = np.eye(n, dtype=bool)
    back = np.zeros((n, n, n), dtype=bool)
    back[np.arange(n), :, np.arange(n)] = True  # into the source
    sent = np.array([e.between(n, one) for one in share])
    net = f.sum(axis=2) - f.sum(axis=3)  # into less out of v
    net[:, np.arange(n), np.arange(n)] = 0.0
    stop = t + length
    end = np.where(on, stop[:, None], 0.0).max(axis=0)
    held = np.where(on[:, e.after], end[e.before] + e.lag - t[:, None], -np.inf)
    change = data.delay * (np.diff(data.configuration) > 0)
    late = np.where(on, e.head - t[:, None], -np.inf)
    room = x[data.configuration] * length[:, None, None]
    return {
        "binary": float(max(np.abs(y - np.rint(np.clip(y, 0, 1))).max(), np.abs(a - np.rint(np.clip(a, 0, 1))).max())),
        "apart": float(max(np.abs(x[:, loops]).max(), np.abs(f[:, back | loops]).max() / unit)),
        "out": float(x.sum(axis=2).max()) - d,
        "into": float(x.sum(axis=1).max()) - d,
        "capacity": float((f.sum(axis=1) - room).max()) / unit,
        "balance": float(np.abs(net - sent).max()) / unit,
        "all": float(np.abs(share.sum(axis=0) - e.size).max()) / unit,
        "shares": float((share - e.size * on).max()) / unit,
        "ready": float(late.max()) / unit,
        "wait": float(held.max(initial=-np.inf)) / unit,
        "follow": float((stop[:-1] + change - t[1:]).max(initial=-np.inf)) / unit,
        "last": float(max((end + e.tail).max(), data.transfers.computing) - z) / unit,
        "nonnegative": -float(min(f.min(), share.min(), t.min(), length.min())) / unit,
    }


def repair(data: TaskCircuits, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """The schedule with these circuits and intervals in which everything is sent, and nothing earlier than it may be.

    Shares are scaled to the sizes, flows deliver them in the same proportions, an interval lasts as long as its busiest
    circuits need, and starts once what its transfers wait for has ended. None if that is impossible.
    """
    from opticoll.formulations.flows.single_source import unit_flow
    from opticoll.instances.topology import Topology

    e, n = data.transfers, data.n
    y, f, a, share = (np.nan_to_num(np.asarray(values[name], dtype=float)) for name in "yfab")
    y, on = np.rint(np.clip(y, 0, 1)), np.rint(a) > 0.5
    share = np.where(on, np.maximum(share, 0.0), 0.0)
    sent = share.sum(axis=0)
    if not (sent > 0).all():
        return None
    share *= e.size / sent
    senders = np.unique(e.source)
    t, length, end, stop = np.zeros(data.intervals), np.zeros(data.intervals), np.zeros(e.count), 0.0
    for k, q in enumerate(data.configuration.tolist()):
        x = y[q].sum(axis=2)
        tail, head = np.nonzero(x)
        demand = e.between(n, share[k]).T
        flow = unit_flow(Topology(n, tail, head), senders, demand[:, senders], f[k][senders][:, tail, head].T)
        if flow is None:
            return None
        f[k] = 0.0
        f[k][senders[:, None], tail, head] = flow.T
        own = on[k, e.after]
        if (on[k:, e.before] & own).any():  # what waits is sent with what it waits for
            return None
        held = (end[e.before] + e.lag)[own].max(initial=0.0)
        t[k] = max(stop + data.pause[k], e.head[on[k]].max(initial=0.0), held)
        length[k] = (flow.sum(axis=1) / x[tail, head]).max(initial=0.0)
        stop = t[k] + length[k]
        end[on[k]] = stop
    z = max(data.transfers.computing, float((end + e.tail).max()))
    o, c = y[data.configuration] * length[:, None, None, None], np.maximum(end, data.least_end)
    return {"y": y, "o": o, "f": f, "a": on.astype(float), "b": share, "t": t, "l": length, "c": c, "z": np.asarray(z)}


def describe(data: TaskCircuits, values: Mapping[str, F64]) -> dict[str, Json]:
    """Properties of a verified solution: circuits of every configuration, and the time in which something is sent."""
    x = np.rint(circuits_of(data, values)).astype(int)
    listed = [[[u, v, int(one[u, v])] for u, v in np.argwhere(one).tolist()] for one in x]
    busy = np.asarray(values["l"])[np.asarray(values["b"]).sum(axis=1) > 0]
    return {"circuits": listed, "sending_ms": float(busy.sum())}


def metrics(data: TaskCircuits, value: float | None) -> dict[str, Json]:
    """Figures at a value."""
    e = data.transfers
    figures: dict[str, Json] = {"computing_ms": e.computing, "transfers": e.count, "waves": int(e.wave.max()) + 1}
    if data.intervals < 2 * e.count - 1:
        figures["conditional_on"] = f"over schedules of {data.intervals} intervals"
    return figures


# replay ---------------------------------------------------------------------------------------------------------


def shortest_shares(x: F64, source: I64, target: I64) -> F64 | None:
    """Share of every transfer over every pair of servers, ``(E, n, n)``, on shortest paths; None if one has none.

    At every server the share is split over the circuits to servers that are nearer to the target.
    """
    n = len(x)
    there = x > 0
    distance = np.where(np.eye(n, dtype=bool), 0, n)
    reached = np.eye(n, dtype=bool)
    for h in range(1, n):
        reached = reached @ there | reached
        distance = np.minimum(distance, np.where(reached, h, n))
    if (distance[source, target] >= n).any():
        return None
    left = distance[:, target].T  # of every transfer, from every server to its target
    split = np.where((left[:, :, None] == left[:, None, :] + 1) & there, x, 0.0)
    total = split.sum(axis=2, keepdims=True)
    split = np.divide(split, total, out=np.zeros_like(split), where=total > 0)
    at, flow = np.zeros((source.size, n)), np.zeros((source.size, n, n))
    at[np.arange(source.size), source] = 1.0
    for _ in range(int(left[np.arange(source.size), source].max(initial=0))):
        step = at[:, :, None] * split
        flow += step
        at = step.sum(axis=1)
    return flow


def replayed(data: TaskCircuits, x: F64, paths: F64 | None = None) -> dict[str, F64] | None:
    """The schedule of circuits x, ``(n, n)``, of the one configuration; None if a transfer has no path.

    Transfers take shortest paths, or their shares over every pair of servers are ``paths``, ``(E, n, n)``.

    The better one of two. *Wave by wave*: all that waits for nothing is sent once all of it is ready, with rates that
    end it together. *At once*: whatever is ready is sent, transfers of earlier waves first (:func:`rates_of`), and an
    interval ends when a transfer ends or another gets ready; once no more intervals are left than transfers wait for
    each other in a chain, it goes on wave by wave.
    """
    if paths is None:
        paths = shortest_shares(x, data.transfers.source, data.transfers.target)
    if paths is None:
        return None
    found = [_replay(data, x, paths, waves=waves) for waves in (True, False)]
    return min(found, key=lambda values: float(values["z"]))


def rates_of(x: F64, paths: F64, left: F64, wave: I64) -> F64:
    """Rates of transfers of which so much is left on paths ``(., n, n)`` over circuits x, earlier waves first.

    With rho_e the largest load of a pair of servers on the paths of e, what is left of its wave over the circuits that
    earlier waves leave, e gets the rate that ends it in rho_e: no circuit is overloaded. Three rounds, since a transfer
    that is slow elsewhere leaves room.
    """
    free, rate, used = x.copy(), np.zeros(left.size), paths > 0
    for _ in range(3):
        for k in np.unique(wave):
            own = np.flatnonzero(wave == k)
            load = np.tensordot(left[own], paths[own], 1)
            full = np.divide(load, free, out=np.full_like(free, np.inf), where=free > 1e-9 * x)
            more = left[own] / np.where(used[own], full, 0.0).reshape(own.size, -1).max(axis=1)
            rate[own] += more
            free = np.maximum(free - np.tensordot(more, paths[own], 1), 0.0)
    return rate


def _replay(data: TaskCircuits, x: F64, paths: F64, *, waves: bool) -> dict[str, F64]:
    e, n, E = data.transfers, data.n, data.transfers.count
    depth, wave = e.following, e.wave
    left, end, ready = e.size.copy(), np.full(E, np.inf), e.head.copy()
    waits = np.bincount(e.after, minlength=E)
    lists: dict[str, list[F64]] = {"t": [], "l": [], "b": [], "f": []}
    now = 0.0
    while (todo := left > 0).any():
        together = waves or data.intervals - len(lists["t"]) <= int(depth[todo].max())
        waiting = todo & (waits == 0)
        now = max(now, float(ready[waiting].max() if together else ready[waiting].min()))
        own = np.flatnonzero(waiting & (ready <= now))
        if together:
            part, last = left[own], 0.0
        else:
            rate = rates_of(x, paths[own], left[own], wave[own])
            needs = np.divide(left[own], rate, out=np.full(own.size, np.inf), where=rate > 0)
            last = min(float(needs.min()), float(ready[waiting & (ready > now)].min(initial=np.inf)) - now)
            part = np.where(needs <= last * (1 + 1e-9), left[own], rate * last)
        load = np.tensordot(part, paths[own], 1)
        last = max(last, float(np.divide(load, x, out=np.zeros_like(x), where=x > 0).max()))
        flow, share = np.zeros((n, n, n)), np.zeros(E)
        np.add.at(flow, e.source[own], part[:, None, None] * paths[own])
        share[own] = part
        for name, one in zip("tlbf", (now, last, share, flow), strict=True):
            lists[name].append(np.asarray(one))
        left[own] = np.where(part >= left[own], 0.0, left[own] - part)
        now += last
        done = np.zeros(E, dtype=bool)
        done[own] = left[own] <= 0
        end[done] = now
        freed = done[e.before]
        np.maximum.at(ready, e.after[freed], now + e.lag[freed])
        np.subtract.at(waits, e.after[freed], 1)
    return _as_values(data, x, end, lists)


def _as_values(data: TaskCircuits, x: F64, end: F64, lists: Mapping[str, list[F64]]) -> dict[str, F64]:
    """The arrays of a replay of one configuration: intervals without a transfer follow at its end."""
    more = data.intervals - len(lists["t"])
    stop = float(lists["t"][-1] + lists["l"][-1])
    t, length = (np.append(np.array(lists[name]), np.full(more, rest)) for name, rest in (("t", stop), ("l", 0.0)))
    share, f = (np.stack([*lists[name], *[np.zeros_like(lists[name][0])] * more]) for name in "bf")
    y = (x[None, :, :, None] > np.arange(data.degree)).astype(float)
    z = max(data.transfers.computing, float((end + data.transfers.tail).max()))
    return {"y": y, "f": f, "a": (share > 0).astype(float), "b": share, "t": t, "l": length, "z": np.asarray(z)}
