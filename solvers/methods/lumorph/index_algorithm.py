"""Method ``index-algorithm``: Bruck's algorithm, which forwards combined chunks in ceil(log_r N) steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np

from opticoll.errors import NotApplicable
from opticoll.formulations.lumorph.forwarded_solution import most_peers
from opticoll.formulations.parameters import Parameter
from opticoll.solvers.methods.lumorph.patterns import Pattern, copies
from opticoll.solvers.methods.lumorph.realisation import realised
from opticoll.solvers.methods.lumorph.round_algorithms import ROUTING
from opticoll.solvers.methods.method import Answer, Beyond, Method
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opticoll.formulations.lumorph.forwarded_rounds import ForwardedRounds
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import RoundSchedule
    from opticoll.solvers.methods.lumorph.realisation import Routing
    from opticoll.solvers.methods.method import Context

NAME = "lumorph.forwarded-rounds"

#: Chunks that one circuit carries, if every pair has one.
ANY = 2**40


def index_pattern(collective: Collective, radix: int) -> Pattern:
    """The steps of the index algorithm of a radix r for any collective that copies.

    The p vertices that hold or require chunks are numbered in order. A chunk held at position i and required at j moves
    in step t by digit t, to base r, of (j - i) mod p, times r^t. A chunk with several receivers takes their common
    moves once, which is a tree; one that several hold starts at the first of them.
    """
    members = np.unique(np.concatenate([collective.pre[:, 1], collective.post[:, 1]]))
    p, (chunk, target) = members.size, collective.deliveries.T
    first = np.searchsorted(collective.pre[:, 0], chunk)
    start = np.searchsorted(members, collective.pre[first, 1])
    ahead = (np.searchsorted(members, target) - start) % p
    held = collective.key(collective.pre)
    parts, stride, steps = [], 1, 0
    while stride < p:
        digit = (ahead // stride) % radix
        moving = np.flatnonzero(digit)
        at = (start + ahead % stride)[moving] % p
        to = (at + digit[moving] * stride) % p
        moves = np.unique(np.column_stack([members[at], members[to], chunk[moving]]), axis=0)
        moves = moves[~np.isin(moves[:, 2] * collective.n + moves[:, 1], held)]
        parts.append((steps, *moves.T))
        stride, steps = stride * radix, steps + 1
    return copies(steps, *parts)


def messages(schedule: RoundSchedule) -> tuple[int, int]:
    """The most chunks on a circuit in a round, and their sum over the rounds, in chunks."""
    most = np.zeros(schedule.rounds, dtype=np.int64)
    pairs = [
        np.column_stack([when, source, target])
        for when, source, target in (
            (schedule.transfer_round, schedule.transfer_source, schedule.transfer_target),
            (schedule.circuit_round, schedule.circuit_source, schedule.circuit_target),
        )
    ]
    (sent, chunks), (connected, circuits) = (np.unique(each, axis=0, return_counts=True) for each in pairs)
    lanes = dict(zip(map(tuple, connected.tolist()), circuits.tolist(), strict=True))
    for key, count in zip(map(tuple, sent.tolist()), chunks.tolist(), strict=True):
        most[key[0]] = max(most[key[0]], -(-count // lanes[key]))
    return int(most.max(initial=0)), int(most.sum())


def radices(p: int, most: int) -> Iterator[int]:
    """The least radix for every number of steps of p vertices, at most ``most``, fewest steps first."""
    known = 0
    for steps in range(1, p.bit_length() + 1):
        radix = 2
        while radix**steps < p:
            radix += 1
        if radix != known and radix <= most:
            yield radix
        known = radix


def _run_index(context: Context) -> Answer:
    """The index algorithm (Bruck et al., IEEE TPDS 8(11), 1997), step by step on routes of minimum overlap.

    In every step a vertex sends to at most r - 1 peers, to each all chunks that go there, on one circuit, or on as many
    as its lasers allow (``lanes=all``). A step is one round unless waveguides or lasers are too few; then it is split.
    ``metrics.largest_message`` is the most chunks on one circuit in a round, ``metrics.volume`` the sum over the rounds
    of the most in each; times the time of one chunk, it is the transmission delay of the cost model.
    """
    data: ForwardedRounds = context.data
    asked, routing = int(context.parameters["radix"]), cast("Routing", context.parameters["routing"])
    p = np.unique(np.concatenate([data.collective.pre[:, 1], data.collective.post[:, 1]])).size
    if asked < 0 or asked == 1:
        msg = f"index-algorithm: radix={asked} must be at least 2 (simultaneous peers + 1), or 0 to choose it"
        raise NotApplicable(msg)
    one_lane = context.parameters["lanes"] == "one"
    limits = replace(data.limits, load=ANY if one_lane else None)
    best: tuple[int, int, int, Pattern, RoundSchedule] | None = None
    for radix in [asked] if asked else radices(p, max(most_peers(data) + 1, 2)):
        pattern = index_pattern(data.collective, radix)
        if best is not None and pattern.steps >= best[0]:
            break
        schedule = realised(
            data.topology, limits, pattern, routing=routing, seed=context.task.seed, tick=context.remaining
        )
        found = (schedule.rounds, messages(schedule)[1], radix, pattern, schedule)
        if best is None or found[:2] < best[:2]:
            best = found
            context.save(Answer(Termination.TOLERANCE, values=schedule.values()), float(schedule.rounds))
    assert best is not None
    rounds, volume, radix, pattern, schedule = best
    return Answer(
        Termination.OPTIMAL if rounds <= data.fewest else Termination.TOLERANCE,
        values=schedule.values(),
        solver={"algorithm": f"radix {radix}, {routing} routes"},
        metrics={
            "radix": radix,
            "steps": pattern.steps,
            "circuits": schedule.circuits,
            "transfers": schedule.transfers,
            "wavelengths": int(schedule.circuit_wavelength.max(initial=-1)) + 1,
            "largest_message": messages(schedule)[0],
            "volume": volume,
        },
        message="" if rounds <= data.fewest else "a construction without an optimality proof",
    )


METHOD = Method(
    name="index-algorithm",
    title="Index algorithm (Bruck)",
    summary="Bruck's index algorithm: chunks move by one digit of their distance per step, forwarded and combined",
    serves=(NAME,),
    # lightpath:2x4,lasers=1 1,780 variables in 3.9 s, lightpath:1x6,lasers=1 935 in 3 s.
    takes_over=(Beyond("lumorph.forwarded-rounds", 2_000, 9_000, proves=False),),
    refuse=lambda data: (
        "chooses its own routes, not among the stated ones (paths, routes)" if data.plain.routes_stated else None
    ),
    parameters=(
        Parameter("radix", int, 0, "simultaneous peers + 1; 0 for the radix with the fewest rounds"),
        Parameter("lanes", str, "one", "circuits of a pair in a round: one, or as many as its lasers", ("one", "all")),
        ROUTING,
    ),
    run=_run_index,
)
