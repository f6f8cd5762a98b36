r"""Steps that need not wait for each other: every transfer as early as its sender and the machine allow.

Within a schedule whose circuits carry one chunk each, transfers are taken in the order of their rounds. Each moves to
the first round after its sender has all that it is to send (a copy, or a sum with every contribution that was added
before), in which the sender's laser, the receiver's photodiode and every arc of its route have room for one
wavelength. Routes stay.

A schedule that sums first and copies then keeps these apart, as Algorithm 1 with a phase for each does (a phase has
rounds of its own); one that does both at the same time, an all-reduce on a tree, is left as it is.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from formulations.rounds.schedule import chained, direct

if TYPE_CHECKING:
    from collections.abc import Callable

    from formulations.rounds.check import Limits
    from formulations.rounds.schedule import RoundSchedule


def compacted(schedule: RoundSchedule, limits: Limits, *, tick: Callable[[], object] = lambda: None) -> RoundSchedule:
    """Move transfers ahead, see the module; the schedule as it was if that takes no fewer rounds.

    For spreadings, these run backwards, and trees. Where two vertices add each other's sums in one round (whole
    buffers), moving one transfer ahead of the other would count twice.

    Raises
    ------
    ValueError
        If circuits and transfers are not one for one.
    """
    sums = int(schedule.transfer_round[schedule.transfer_adds].max(initial=-1)) + 1
    if 0 < sums < schedule.rounds:
        if not schedule.transfer_adds[schedule.transfer_round < sums].all():
            return schedule
        parts = [
            schedule.taken(schedule.circuit_round < sums, schedule.transfer_round < sums),
            schedule.taken(schedule.circuit_round >= sums, schedule.transfer_round >= sums).moved(-sums),
        ]
        return chained([compacted(part, limits, tick=tick) for part in parts])
    n = int(max(schedule.transfer_source.max(initial=0), schedule.transfer_target.max(initial=0))) + 1
    pairs = ((schedule.circuit_round, schedule.circuit_source, schedule.circuit_target),
             (schedule.transfer_round, schedule.transfer_source, schedule.transfer_target))  # fmt: skip
    circuit, transfer = (np.lexsort((target, source, when)) for when, source, target in pairs)
    same = circuit.size == transfer.size and all(
        np.array_equal(one[circuit], other[transfer]) for one, other in zip(*pairs, strict=True)
    )
    if not same:
        msg = "a schedule is compacted where every circuit carries one chunk"
        raise ValueError(msg)
    whole, ports = (1 << limits.wavelengths) - 1, limits.ports
    count: defaultdict[tuple[int, int, int], int] = defaultdict(int)
    full: defaultdict[tuple[int, int], int] = defaultdict(int)
    ready: dict[int, int] = {}
    rounds, waves = np.zeros(circuit.size, dtype=np.int64), np.zeros(circuit.size, dtype=np.int64)
    arcs = schedule.circuit_arcs.max(initial=0) + 1
    start, path = schedule.circuit_start.tolist(), schedule.circuit_arcs.tolist()
    ends = [a.tolist() for a in (schedule.transfer_source, schedule.transfer_target, schedule.transfer_chunk)]
    for i, (k, t) in enumerate(zip(circuit.tolist(), transfer.tolist(), strict=True)):
        if i % 4096 == 0:
            tick()
        s, d, chunk = (column[t] for column in ends)
        needs = [(a, limits.waveguides) for a in path[start[k] : start[k + 1]]]
        if ports is not None:
            needs += [(int(arcs) + s, ports), (int(arcs) + n + d, ports)]
        r = ready.get(chunk * n + s, 0)
        while True:
            taken = 0
            for item, _ in needs:
                taken |= full[r, item]
            free = whole & ~taken
            if free:
                break
            r += 1
        w = (free & -free).bit_length() - 1
        for item, most in needs:
            count[r, item, w] += 1
            if count[r, item, w] >= most:
                full[r, item] |= 1 << w
        rounds[i], waves[i] = r, w
        key = chunk * n + d
        ready[key] = max(ready.get(key, 0), r + 1)
    moved = schedule.taken(circuit, transfer)
    made = direct(
        rounds, moved.transfer_source, moved.transfer_target, moved.transfer_chunk, waves, moved.circuit_start,
        moved.circuit_arcs, adds=moved.transfer_adds,
    )  # fmt: skip
    return made if made.rounds < schedule.rounds else schedule
