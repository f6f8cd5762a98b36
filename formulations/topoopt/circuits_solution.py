"""Solutions of ``topoopt.circuits``: arrays and checker."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import axes_arrays, size
from opticoll.formulations.variables import Array

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from fractions import Fraction

    from opticoll.formulations.topoopt.circuits import TaskCircuits
    from opticoll.instances.topology import F64
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
    return {name: replace(array, required=name not in _FOLLOW) for name, array in axes_arrays(data).items()}


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
    """Worst violation of every block, relative to the best bound; of amounts, at most to 100,000 times the smallest.

    So a transfer that is not sent, and what waits for it, is never within the tolerance.
    """
    e, n, d = data.transfers, data.n, data.degree
    unit = max(bound.value for bound in data.bounds())
    amount = min(unit, 1e5 * float(e.size.min()))
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
        "apart": float(max(np.abs(x[:, loops]).max(), np.abs(f[:, back | loops]).max() / amount)),
        "out": float(x.sum(axis=2).max()) - d,
        "into": float(x.sum(axis=1).max()) - d,
        "capacity": float((f.sum(axis=1) - room).max()) / amount,
        "balance": float(np.abs(net - sent).max()) / amount,
        "all": float(np.abs(share.sum(axis=0) - e.size).max()) / amount,
        "shares": float((share - e.size * on).max()) / amount,
        "ready": float(late.max()) / unit,
        "wait": float(held.max(initial=-np.inf)) / unit,
        "follow": float((stop[:-1] + change - t[1:]).max(initial=-np.inf)) / unit,
        "last": float(max((end + e.tail).max(), data.transfers.computing) - z) / unit,
        "nonnegative": -float(min(min(f.min(), share.min()) / amount, min(t.min(), length.min()) / unit)),
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
    """Properties of a verified solution: the circuits of every configuration."""
    x = np.rint(circuits_of(data, values)).astype(int)
    listed = [[[u, v, int(one[u, v])] for u, v in np.argwhere(one).tolist()] for one in x]
    return {"circuits": listed}


def metrics(data: TaskCircuits, value: float | None) -> dict[str, Json]:
    """Figures at a value."""
    e = data.transfers
    figures: dict[str, Json] = {"waves": int(e.wave.max()) + 1}
    if data.intervals < 2 * e.count - 1:
        figures["conditional_on"] = f"over schedules of {data.intervals} intervals"
    return figures
