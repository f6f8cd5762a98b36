r"""Lower bounds on the rounds of sums that several vertices need, however they are composed.

An all-reduce may be a reduce-scatter and an all-gather, an exchange of whole buffers, two trees, ...: these bounds hold
for each. With P_c the contributors and T_c the targets of chunk c, o_v and i_v circuits out of and into a vertex in a
round (:mod:`formulations.lumorph.round_bounds`) and one chunk a circuit and ``load``:

    transfers    before the first vertex has the whole sum, |P_c| - 1 transfers bring it together, each from another
                 contributor; every further target completes by a reception of its own, later than all of these:
                                                     R >= sum_c (|P_c| - 1 + |T_c| - 1) / (load min(sum o, sum i))
    receptions   v receives each chunk that it wants and others contribute to
    sends        v sends each chunk that it contributes to and others want
    spread       what a vertex knows of grows by 1 + max i in a round, who knows of it by 1 + max o
    cut          each chunk contributed to outside S and wanted inside enters S at least once
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formulations.base import Bound
from formulations.lumorph.round_bounds import PAPER, candidate_sets, circuits, crossings, per_circuit, rounded_up

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from formulations.rounds.check import Limits
    from formulations.rounds.collectives import Collective
    from instances import Topology


def sum_bounds(topology: Topology, collective: Collective, limits: Limits) -> list[Bound]:
    """Every bound of the module, rounded up.

    Raises
    ------
    ValueError
        For a copying collective.
    """
    if not collective.summing:
        msg = f"collective {collective.name!r} copies: see round_bounds"
        raise ValueError(msg)
    out = circuits(topology.out_degree, limits) * per_circuit(limits)
    into = circuits(topology.in_degree, limits) * per_circuit(limits)
    given = np.zeros((collective.chunks, collective.n), dtype=bool)
    wanted = given.copy()
    given[collective.pre[:, 0], collective.pre[:, 1]] = True
    wanted[collective.post[:, 0], collective.post[:, 1]] = True
    real = wanted.any(axis=1)
    kinds, many = np.unique(np.packbits(np.hstack([given, wanted])[real], axis=1), axis=0, return_counts=True)
    both = np.unpackbits(kinds, axis=1, count=2 * collective.n).astype(bool)
    P, T = both[:, : collective.n], both[:, collective.n :]
    return [
        _transfers(P, T, many, out, into),
        _ends(P, T, many, into, "receptions", "receives"),
        _ends(T, P, many, out, "sends", "sends"),
        _spread(P, T, out, into),
        _cut(topology, collective, limits, P, T, many),
    ]


def _transfers(
    P: NDArray[np.bool_], T: NDArray[np.bool_], many: NDArray[np.int64], out: NDArray[np.float64],
    into: NDArray[np.float64],
) -> Bound:  # fmt: skip
    least = np.maximum(P.sum(axis=1) - 1, 0) + np.maximum(T.sum(axis=1) - 1, 0)
    takes_part = (P | T).any(axis=0)
    room = float(min(out[takes_part].sum(), into[takes_part].sum()))
    total = int((least * many).sum())
    value = total / room if room > 0 else 0.0
    return Bound("transfers", rounded_up(value), f"{total} transfers, at most {room:g} in a round", PAPER)


def _ends(
    P: NDArray[np.bool_], T: NDArray[np.bool_], many: NDArray[np.int64], room: NDArray[np.float64], name: str, verb: str
) -> Bound:  # fmt: skip
    """Vertices of T whose chunk has some other vertex in P."""
    others = P.sum(axis=1)[:, None] - P > 0
    count = ((T & others) * many[:, None]).sum(axis=0)
    need = np.divide(count, room, out=np.zeros(count.size), where=room > 0)
    worst = int(need.argmax())
    return Bound(name, rounded_up(float(need[worst])), f"vertex {worst} {verb} {count[worst]} chunks", PAPER)


def _spread(
    P: NDArray[np.bool_], T: NDArray[np.bool_], out: NDArray[np.float64], into: NDArray[np.float64]
) -> Bound:  # fmt: skip
    best, reason = 0, "nothing is spread"
    for members, most, what in ((P, into, "contributions come together"), (T, out, "sums are spread")):
        wide, fan = int(members.sum(axis=1).max(initial=0)), float(most.max(initial=0.0))
        rounds, reached = 0, 1.0
        while reached < wide and fan > 0:
            reached *= 1.0 + fan
            rounds += 1
        if rounds > best:
            best, reason = rounds, f"{wide} {what}, at most {1 + fan:g} times as many a round"
    return Bound("spread", float(best), reason, PAPER)


def _cut(
    topology: Topology, collective: Collective, limits: Limits, P: NDArray[np.bool_], T: NDArray[np.bool_],
    many: NDArray[np.int64],
) -> Bound:  # fmt: skip
    joined = np.zeros((topology.n, topology.n))
    np.add.at(joined, (topology.tail, topology.head), 1.0)
    best, reason = 0.0, "no cut tried holds anything up"
    for inside in candidate_sets(topology, collective):
        entering = crossings(inside, joined)
        held = P.astype(np.float32) @ (~inside).T.astype(np.float32) > 0
        wanted = T.astype(np.float32) @ inside.T.astype(np.float32) > 0
        count = ((held & wanted) * many[:, None]).sum(axis=0)
        room = entering * limits.wavelengths * limits.waveguides * per_circuit(limits)
        need = np.divide(count, room, out=np.zeros(count.size), where=room > 0)
        worst = int(need.argmax())
        if need[worst] > best:
            best = float(need[worst])
            reason = (
                f"{count[worst]} chunks enter a set of {inside[worst].sum()} vertices over {entering[worst]:g} arcs"
            )
    return Bound("cut", rounded_up(best), reason, PAPER)
