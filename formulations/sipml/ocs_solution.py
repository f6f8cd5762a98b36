"""Bounds on the slowest transfer over optical switches, from the ports of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.declared_axes import size
from opticoll.formulations.model import Bound, of_kind
from opticoll.formulations.sipml.chords import pair_axis, pair_links
from opticoll.formulations.sipml.transfers import TIME_ROUNDINGS, least_times, transfers_of
from opticoll.formulations.variables import Array, Axis, members
from opticoll.instances.servers import ServerPool

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from opticoll.formulations.sipml.ocs_circuits import OcsCircuits
    from opticoll.formulations.variables import Links
    from opticoll.instances.topology import F64, I64
    from opticoll.types import Json


def prepared(cls: type[OcsCircuits], instance: object, *, model: str, bandwidth: float) -> OcsCircuits:
    """The problem on a pool of servers."""
    needed = "servers with ports and traffic, servers:n=...,degree=...,traffic=..."
    pool = of_kind(ServerPool, instance, cls.name, needed)
    return cls(pool, transfers_of(pool.traffic, bandwidth, f"{cls.name}: {pool.spec}"), model)


def pairs_by_port(data: OcsCircuits) -> tuple[I64, I64]:
    """Entries (group, pair) of the port limits: group i is out of server i, n + j into server j."""
    moves = data.transfers
    group = np.concatenate([moves.source, data.n + moves.target])
    return group, np.tile(np.arange(moves.pairs), 2)


def estimate(data: OcsCircuits) -> dict[str, int] | None:
    """About the size of the model: circuits by pair have no switches."""
    return size(
        data, without=("x", "count", "light_out", "light_in") if data.model == "counts" else ("ports_out", "ports_in")
    )


def least_server_times(data: OcsCircuits) -> F64:
    """Smallest T allowed by the ports out of (first n) and into (last n) each server [s]."""
    group, pair = data.by_server
    capacity = np.full(2 * data.n, float(data.degree))
    result = least_times(data.transfers, group, pair, np.ones(pair.size), capacity)
    return np.where(np.bincount(group, minlength=2 * data.n) > 0, result, 0.0)


def refute(data: OcsCircuits) -> Bound | None:
    """Bound that proves infeasibility if a server has more peers than ports."""
    out, into = data.peers
    for count, verb in ((out, "sends to"), (into, "receives from")):
        i = int(count.argmax())
        if count[i] > data.degree:
            reason = f"server {i} {verb} {int(count[i])} others but has {data.degree} ports"
            return Bound("ports", np.inf, reason, "sipml")
    return None


def arrays(data: OcsCircuits, names: Collection[str]) -> dict[str, Array]:
    """Shapes of ``match``, x or c, and t if given."""
    pair, switch, server = pair_axis(data.transfers), Axis("switch", data.degree), Axis("server", data.n)
    return {
        "match": members(switch, server, of=server, low=-1, required=False),
        "x": Array((pair, switch), required=False),
        "c": Array((pair,), required={"match", "x"}.isdisjoint(names), unit="circuits"),
        "t": Array(required=False),
    }


def links(data: OcsCircuits, values: Mapping[str, F64]) -> Links:
    """Bytes over the circuits of every pair, within the time of the slowest transfer."""
    return pair_links(data.transfers, circuits_of(data, values), data.objective(values))


def repair(data: OcsCircuits, values: Mapping[str, F64]) -> dict[str, F64] | None:
    """Round to integer circuits and recompute t; None if a pair has none."""
    c = circuits_of(data, values)
    if (c < 1).any():
        return None
    rounded = {name: np.rint(np.asarray(values[name], dtype=float)) for name in ("match", "x") if name in values}
    return {"c": c, "t": np.asarray(data.transfers.slowest(c) / data.transfers.unit_time), **rounded}


def divided_time(data: OcsCircuits) -> float:
    """Time of the largest number of bytes that a server sends or receives, over all its ports [s]."""
    moves = data.transfers
    sides = (np.bincount(ends, moves.volume, data.n) for ends in (moves.source, moves.target))
    return max(float(side.max()) for side in sides) / data.degree / moves.bandwidth


def bounds(data: OcsCircuits) -> list[Bound]:
    """Bounds from the bytes of a server over all its ports, and, exact, from integer circuits of a server."""
    n, volume = data.n, float(rounding.down(divided_time(data), data.n + 2))
    result = [Bound("volume", volume, "bytes of a server over all its ports", "sipml")]
    worst = int(data.server_times.argmax())
    side = f"{'out of' if worst < n else 'into'} server {worst % n}"
    reason = f"less time needs more circuits {side} than its {data.degree} ports; attained by Koenig's theorem"
    least = float(rounding.down(data.server_times[worst], TIME_ROUNDINGS))
    result.append(Bound("ports", least, reason, "sipml", exact=True))
    return result


def metrics(data: OcsCircuits, value: float | None) -> dict[str, Json]:
    """The slowest transfer, and its ratio to the time with fractional circuits."""
    return {
        "transfer_s": value,
        "max_load": None if value is None else value * data.transfers.bandwidth,
        "whole_circuits_cost": None if value is None else value / divided_time(data),
    }


def from_match(data: OcsCircuits, match: F64) -> tuple[F64, float]:
    """Circuits of every pair and the largest excess of circuits on one port."""
    n, d = data.n, data.degree
    switch, source = np.nonzero(match >= 0)
    target = match[switch, source].astype(np.int64)
    arrivals = np.bincount(switch * n + target, minlength=d * n)
    counts = np.bincount(source * n + target, minlength=n * n)
    loops = float((source == target).sum())
    moves = data.transfers
    return counts[moves.source * n + moves.target].astype(float), max(float(arrivals.max(initial=0)) - 1.0, loops, 0.0)


def circuits_of(data: OcsCircuits, values: Mapping[str, F64]) -> F64:
    """Circuits of every pair, ``(|P|,)``, from ``match``, else ``x``, else ``c``."""
    if "match" in values:
        return from_match(data, np.asarray(values["match"], dtype=float))[0]
    if "x" in values:
        return np.asarray(np.rint(np.asarray(values["x"], dtype=float)).sum(axis=1))
    return np.rint(np.asarray(values["c"], dtype=float))
