"""Bounds on the time of a training iteration on circuits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.variables import Array, Axis

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

    from opticoll.formulations.lumorph.iteration import StagedCalls
    from opticoll.instances.topology import F64
    from opticoll.types import Json


def arrays(data: StagedCalls, names: Collection[str]) -> dict[str, Array]:
    """The choices x, by stage, first call of the batch and call as the instance numbers them; the starts s; z."""
    b, j, k = data.choices
    named = {"stage": b.tolist(), "first": data.call[j].tolist(), "call": data.call[k].tolist()}
    return {
        "x": Array((Axis("choice", b.size, named),)),
        "s": Array((Axis("stage", data.stages),), unit="µs"),
        "z": Array(unit="µs"),
    }


def bounds(data: StagedCalls) -> list[Bound]:
    """Bounds from computing alone, and from what the device has to do after every stage."""
    alone = float(rounding.down(data.computing.sum() + data.transfers.sum(), 2 * data.stages))
    best, reason = 0.0, ""
    for b in range(data.stages):
        open_calls = data.ready >= b if data.overlap else np.full(data.ready.size, b == data.stages - 1)
        if not open_calls.any():
            continue
        share = data.time[open_calls] @ data.member[open_calls] if data.batches else [data.time[open_calls].sum()]
        before = data.computing[: b + 1].sum() + data.transfers[:b].sum()
        value = float(before + data.transfers[b:].sum() + np.max(share))
        if value > best:
            best = value
            who = f"the calls of GPU {int(np.argmax(share))} take turns" if data.batches else "calls take turns"
            reason = f"after the computing of stage {b}, its transfers and all later ones are sent, and {who}"
    additions = 2 * data.stages + data.time.size + 3
    return [
        Bound("computing", alone, "all stages compute and send their transfers", "lumorph"),
        Bound("device", float(rounding.down(best, additions)), reason, "lumorph"),
    ]


def metrics(data: StagedCalls, value: float | None) -> dict[str, Json]:
    """The naive time of computing, transfers and then all calls [us], and the share of it that is saved."""
    naive = sum(float(each.sum()) for each in (data.computing, data.transfers, data.time))
    return {"naive_us": naive, "saved": None if value is None else round(max(0.0, 1.0 - value / naive), 9)}


def derived(data: StagedCalls) -> list[Any]:
    """Transfers and computing between two starts, which are sums."""
    computing, sent = ([rounding.decimal(v) for v in each.tolist()] for each in (data.computing, data.transfers))
    return [
        sum(computing[p + 1 : b + 1], sent[p] if p >= 0 else rounding.decimal(0.0))
        for b, p in enumerate(data.before.tolist())
    ]


def values_of(data: StagedCalls, batches: Sequence[tuple[int, Sequence[int]]]) -> dict[str, F64]:
    """The values of batches, each its stage and its calls by their numbers in the model; s and z follow from them."""
    b, j, k = data.choices
    place = {key: at for at, key in enumerate(zip(b.tolist(), j.tolist(), k.tolist(), strict=True))}
    x, busy = np.zeros(b.size), np.zeros(data.stages)
    for stage, calls in batches:
        first = min(calls)
        busy[stage] += data.time[first]
        x[[place[stage, first, call] for call in calls]] = 1.0
    starts: list[float] = []
    at = 0.0
    for stage, previous in enumerate(data.before.tolist()):
        start = float(data.gap[stage])
        if previous >= 0:
            start += starts[previous] + (busy[previous] if data.first == "calls" else 0.0)
        start = max(start, at + (busy[stage - 1] if stage else 0.0))
        starts.append(start)
        at = start + data.transfers[stage]
    return {"x": x, "s": np.array(starts), "z": np.asarray(at + busy[-1])}
