r"""Algorithm 1 as printed and as coded by its authors, in addition to the corrected program of ``lumorph.rounds``.

Source  LuMorph, Algorithm 1, (1)-(9); the authors' published code (commit 53cbbf7), as described by its readers

Sets and data as in :mod:`opticoll.formulations.lumorph.rounds`; i, w number the paths of a pair: every route of P_sd on
every wavelength, WAVE = w. Both need a copying collective. Variables C, R in {0,1} and z in {0,1,...}, at most the
number of the last round, for the maximum in the objective; implications between binaries are linear rows.

``program=printed``: r in 1..R_max; every c, every s != d.

min z  s.t.
    unique[r,s,d,c]         sum_iw C[r,s,d,c,i,w] <= 1                                                           (1)
    possess[r,s,d,c,i,w]    C[r,s,d,c,i,w] - S <= 0                        (C = 1 implies S = 1)                 (2)
    once[r,s,d,c,i,w]       S + (m - 1) C[r,s,d,c,i,w] <= m                where S has m > 1 terms               (2)
                            S = sum_(l<r) sum_(o in Post[c]) sum_iw C[l,o,s,c,i,w]
    deliver[c]              sum_rs sum_(d in Post[c]) sum_iw C[r,s,d,c,i,w] = 1                                  (3)
    laser[r,s,w]            sum_dci C[r,s,d,c,i,w] = 1                                                           (4)
    photodiode[r,d,w]       sum_sci C[r,s,d,c,i,w] = 1                                                           (5)
    waveguide[r,e,w]        sum over routes i through e of C[r,s,d,c,i,w] <= W                                   (6)
    used[r,s,d,c,i,w]       C[r,s,d,c,i,w] - R[r] <= 0                                                           (7)
    minimum[r]              R[r] = 1              for 0 < r < R_min                                              (8)
    order[r]                R[r] - R[r-1] <= 0    for 1 < r < R_max                                              (9)
    span[r]                 r R[r] - z <= 0       for R_min < r < R_max

No instance has a solution: in round 1, S is an empty sum, so (2) forbids every transfer, and by induction none
takes place in any round; but (3) requires one for every chunk, and (4) and (5) require every laser in every round.

``program=coded``: r in 0..R_max-1; d in Post[c] without Pre[c], s in Post[c] without d. By default four wavelengths, 20
circuits of one wavelength on an undirected edge, one route per pair, R_min = 1 and R_max = 5, which are constants and
arguments of that code. Its one route per pair comes from the authors' multi-commodity flow (MCF) of least overlap and
is offered on every wavelength; here it is the first of P_sd, whose overlap is equally small on intact meshes.

min z  s.t.
    possess[r,s,d,c,i,w]    C[r,s,d,c,i,w] - sum_(l<r) sum_oiw C[l,o,s,c,i,w] <= 0      for s not in Pre[c]      (2)
    deliver[c,d]            sum_rsiw C[r,s,d,c,i,w] = 1                                                          (3)
    laser[r,s,w]            sum_dci C[r,s,d,c,i,w] <= 1                                                          (4)
    photodiode[r,d,w]       sum_sci C[r,s,d,c,i,w] <= 1                                                          (5)
    edge[r,a,b,w]           sum over routes i along or against edge a < b of C[r,s,d,c,i,w] <= W                 (6)
    used[r,s,d,c,i,w]       C[r,s,d,c,i,w] - R[r] <= 0                                                           (7)
    unused[r]               R[r] - sum_sdciw C[r,s,d,c,i,w] <= 0                                                 (7)
    minimum[r]              R[r] = 1              for r < R_min                                                  (8)
    order[r]                R[r] - R[r-1] <= 0    for r > 1                                                      (9)
    span[r]                 r R[r] - z <= 0       for r > 0; one round has value 0

A chunk whose holders are not in Post[c] cannot be sent, so gather, scatter and all-to-all have no solution.
Every solution is a schedule of z + 1 rounds under ``Limits(L, W)`` for each direction of an edge, so bounds on rounds
minus 1 bound z.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations.index import Index
from opticoll.formulations.model import Bound
from opticoll.formulations.rounds.round_schedule import violations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from opticoll.formulations.builders import Cvx, Pyo
    from opticoll.formulations.lumorph.rounds import RoundModel
    from opticoll.formulations.lumorph.transfer_sets import RoundProgram, Version
    from opticoll.formulations.model import CvxpyModel, PyomoModel
    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.instances.topology import F64, I64, Mask

#: Constants and arguments of the authors' code: wavelengths, circuits per edge, routes per pair, R_min, R_max.
CODED_LASERS, CODED_WAVEGUIDES, CODED_PATHS, CODED_RMIN, CODED_RMAX = 4, 20, 1, 1, 5


def first_round(program: RoundProgram) -> int:
    """Number of the first round: 1 as printed, 0 as coded."""
    return int(program.version == "printed")


def contradiction(version: Version, collective: Collective) -> str | None:
    """Reason why the program is infeasible for all limits; None if there is no such reason."""
    if version == "printed":
        return (
            "as printed, (2) lets a vertex send only what it received in an earlier round, so nothing is ever sent, "
            "and (3) requires a transfer of every chunk"
        )
    starts = np.isin(collective.key(collective.pre), collective.key(collective.post))
    lost = np.setdiff1d(np.flatnonzero(collective.spread), collective.pre[starts, 0])
    if not lost.size:
        return None
    c = lost[0]
    return f"as coded, only vertices of Post[{c}] send chunk {c}, and none of them holds it at the start (2), (3)"


# Builds -------------------------------------------------------------------------------------------------------------


def sets(program: RoundProgram) -> dict[str, Sequence[Any]]:
    """Transfers and rounds."""
    first = first_round(program)
    transfers = program.columns.given(r=program.columns["r"] + first)
    return {"transfer": transfers, "received": (), "round": range(first, first + program.rounds)}


def received(C: Index) -> Index:
    """Receptions from vertices of Post[c]: in round ``l``, by ``d``, of ``c``."""
    relayed = C.where(C["relays"] > 0)
    return relayed.given(l=relayed["r"]).known_by("d c l")


def earlier(transfer: Mapping[str, I64], reception: Mapping[str, I64]) -> Mask:
    """Whether the reception is in an earlier round than the transfer: l < r."""
    return reception["l"] < transfer["r"]


def cvxpy_build(b: Cvx, program: RoundProgram, rmin: int) -> CvxpyModel:
    """The program in CVXPY, by the axes of ``lumorph.rounds``."""
    import cvxpy as cp

    printed, n, W = program.version == "printed", program.collective.n, program.limits.waveguides
    first, post = first_round(program), program.collective.key(program.collective.post)
    T = program.columns
    T = T.given(r=T["r"] + first, relays=np.isin(T["c"] * n + T["s"], post), wanted=np.isin(T["c"] * n + T["d"], post))
    E, rounds = (
        T.join(Index.table("s d i e", program.routes.crossed)),
        Index.table("r", {"r": first + np.arange(program.rounds)}),
    )
    wanted, before, r, last = T.where(T["wanted"] > 0), received(T), rounds["r"], first + program.rounds - 1
    laser, photodiode, deliver = T.by("r s w"), T.by("r d w"), wanted.by("c" if printed else "c d")
    C, R, z = b.var("C", upper=1, integer=True), b.var("R", upper=1, integer=True), b.var("z", upper=last, integer=True)
    possess = T if printed else T.where(T["pre"] == 0)
    b.row("possess", possess.of(T) @ C <= possess.of(before, d="s", where=earlier) @ C, over=possess)
    b.row("deliver", deliver.of(wanted) @ C == 1, over=deliver)
    sent, got = laser.of(T) @ C, photodiode.of(T) @ C
    b.row("laser", sent == 1 if printed else sent <= 1, over=laser)
    b.row("photodiode", got == 1 if printed else got <= 1, over=photodiode)
    b.row("used", C - T.of(rounds) @ R <= 0, over=T)
    if printed:
        unique, waveguide, m = T.by("r s d c"), E.by("r e w"), T.of(before, d="s", where=earlier).sum(axis=1)
        once, m = T.where(m > 1), m[m > 1]
        b.row("unique", unique.of(T) @ C <= 1, over=unique)
        S = once.of(before, d="s", where=earlier) @ C
        b.row("once", S + cp.multiply(m - 1, once.of(T) @ C) <= m, over=once)
        b.row("waveguide", waveguide.of(E) @ C <= W, over=waveguide)
        when = (r < rmin, (r > 1) & (r < last), (r > rmin) & (r < last))
    else:
        ends = program.topology.tail[E["e"]], program.topology.head[E["e"]]
        E = E.given(a=np.minimum(*ends), b=np.maximum(*ends))
        edge = E.by("r a b w")
        b.row("edge", edge.of(E) @ C <= W, over=edge)
        b.row("unused", R - rounds.of(T) @ C <= 0, over=rounds)
        when = (r < rmin, r > 1, r > 0)
    minimum, order, span = (rounds.where(kept) for kept in when)
    b.row("minimum", minimum.of(rounds) @ R == 1, over=minimum)
    b.row("order", order.of(rounds) @ R <= order.of(rounds, r=order["r"] - 1) @ R, over=order)
    b.row("span", cp.multiply(span["r"], span.of(rounds) @ R) <= z, over=span)
    return b.minimize(z)


def pyomo_build(b: Pyo, program: RoundProgram, rmin: int) -> PyomoModel:
    """The program in Pyomo, by the axes of ``lumorph.rounds``."""
    printed, W, P = program.version == "printed", program.limits.waveguides, program.routes.by_ends
    rounds = range(1, program.rounds + 1) if printed else range(program.rounds)
    tail, head = program.topology.tail.tolist(), program.topology.head.tolist()
    pre, post = (set(map(tuple, x.tolist())) for x in (program.collective.pre, program.collective.post))
    V, chunks, waves = range(program.topology.n), range(program.collective.chunks), range(program.limits.wavelengths)
    T = [
        (r, s, d, c, i, w)
        for r in rounds
        for s in V
        for d in V
        for c in chunks
        if s != d and (printed or ((c, s) in post and (c, d) in post and (c, d) not in pre))
        for i in range(len(P[s, d]))
        for w in waves
    ]
    C, R = b.var("C", upper=1, integer=True, over=T), b.var("R", upper=1, integer=True)
    z = b.var("z", upper=rounds[-1], integer=True)

    unique, deliver, laser, photodiode, waveguide, edge, unused, into = (defaultdict(list) for _ in range(8))
    for r, s, d, c, i, w in T:
        x = C[r, s, d, c, i, w]
        unique[r, s, d, c].append(x)
        laser[r, s, w].append(x)
        photodiode[r, d, w].append(x)
        unused[r].append(x)
        if (c, d) in post:
            deliver[(c,) if printed else (c, d)].append(x)
        if (c, s) in post:
            into[r, d, c].append(x)
        for e in P[s, d][i]:
            waveguide[r, e, w].append(x)
            edge[r, min(tail[e], head[e]), max(tail[e], head[e]), w].append(x)

    S = {(r, s, c): [x for q in rounds if q < r for x in into[q, s, c]] for r in rounds for s in V for c in chunks}

    def once(r: int, s: int, d: int, c: int, i: int, w: int) -> Any:
        m = len(S[r, s, c])
        return b.sum(S[r, s, c]) + (m - 1) * C[r, s, d, c, i, w] <= m

    def each(terms: list[Any]) -> Any:
        return b.sum(terms) == 1 if printed else b.sum(terms) <= 1

    b.row(
        "possess",
        lambda r, s, d, c, i, w: C[r, s, d, c, i, w] - b.sum(S[r, s, c]) <= 0,
        over=[j for j in T if printed or (j[3], j[1]) not in pre],
    )
    b.row("deliver", lambda *key: b.sum(deliver[key]) == 1, over=sorted(deliver))
    b.row("laser", lambda r, s, w: each(laser[r, s, w]), over=sorted(laser))
    b.row("photodiode", lambda r, d, w: each(photodiode[r, d, w]), over=sorted(photodiode))
    b.row("used", lambda r, s, d, c, i, w: C[r, s, d, c, i, w] - R[r] <= 0, over=T)
    if printed:
        b.row("unique", lambda r, s, d, c: b.sum(unique[r, s, d, c]) <= 1, over=sorted(unique))
        b.row("once", once, over=[j for j in T if len(S[j[0], j[1], j[3]]) > 1])
        b.row("waveguide", lambda r, e, w: b.sum(waveguide[r, e, w]) <= W, over=sorted(waveguide))
        least, ordered, spanned = range(1, rmin), range(2, rounds[-1]), range(rmin + 1, rounds[-1])
    else:
        b.row("edge", lambda r, u, v, w: b.sum(edge[r, u, v, w]) <= W, over=sorted(edge))
        b.row("unused", lambda r: R[r] - b.sum(unused[r]) <= 0, over=rounds)
        least, ordered, spanned = range(rmin), rounds[2:], rounds[1:]
    b.row("minimum", lambda r: R[r] == 1, over=least)
    b.row("order", lambda r: R[r] - R[r - 1] <= 0, over=ordered)
    b.row("span", lambda r: r * R[r] - z <= 0, over=spanned)
    return b.minimize(z)


# Check --------------------------------------------------------------------------------------------------------------


def residuals(data: RoundModel, values: Mapping[str, NDArray[Any]]) -> dict[str, float]:
    """Worst violation of (1)-(9), named as in the module docstring; ``replay`` of the schedule as coded."""
    C, R = (np.asarray(values[name], dtype=float) for name in ("C", "R"))
    result = program_residuals(data.programs[0], data.rmin, C, R)
    if data.version == "coded":
        schedule = data.of_program(values)
        result["replay"] = max(violations(data.topology, data.collective, data.limits, schedule).values())
    return result


def program_residuals(program: RoundProgram, rmin: int, C: F64, R: F64) -> dict[str, float]:
    """Worst violation of (1)-(9) by C ``(N,)`` and R ``(T,)``, from numpy alone.

    ``binary`` is the distance of C and R from 0 and 1.
    """
    printed, collective = program.version == "printed", program.collective
    T, n = program.rounds, collective.n
    r, s, d, c, w = (program.columns[name] for name in "rsdcw")
    L, W = program.limits.wavelengths, program.limits.waveguides

    def table(sizes: Sequence[int], *keys: I64, of: F64) -> F64:
        total = np.zeros(sizes)
        np.add.at(total, keys, of)
        return total

    def over(values: F64, most: float) -> float:
        return max(float(values.max(initial=most)) - most, 0.0)

    senders = np.zeros((collective.chunks, n), dtype=bool)
    senders[tuple(collective.post.T)] = True
    moved = table((collective.chunks, n, T), c, d, r, of=C * senders[c, s])
    before = (np.cumsum(moved, axis=2) - moved)[c, s, r]
    start = np.zeros((collective.chunks, n))
    start[tuple(collective.pre.T)] = 0.0 if printed else 1.0
    wanted = senders[c, d]
    delivered = table((collective.chunks, n), c, d, of=C * wanted)
    result = {
        "possess": float((C - before - start[c, s]).max(initial=0.0)),
        "used": float((C - R[r]).max(initial=0.0)),
        "binary": float(max(np.minimum(np.abs(x), np.abs(x - 1.0)).max(initial=0.0) for x in (C, R))),
    }
    sent, got = table((T, n, L), r, s, w, of=C), table((T, n, L), r, d, w, of=C)
    column, arc = program.arcs
    tail, head = program.topology.tail[arc], program.topology.head[arc]
    if printed:
        active = C > 0.5
        result["once"] = float(np.abs(before - 1.0)[active].max(initial=0.0))
        per_chunk = delivered.sum(axis=1)[senders.any(axis=1)]
        result["deliver"] = float(np.abs(per_chunk - 1.0).max(initial=0.0))
        result["laser"], result["photodiode"] = (float(np.abs(x - 1.0).max()) for x in (sent, got))
        result["unique"] = over(table((T, n, n, collective.chunks), r, s, d, c, of=C), 1.0)
        load = table((T, program.topology.arcs, L), r[column], arc, w[column], of=C[column])
        result["waveguide"] = over(load, W)
        fixed, ordered = R[: max(min(rmin, T + 1) - 1, 0)], R[: max(T - 1, 1)]
    else:
        chunk, vertex = collective.deliveries.T
        result["deliver"] = float(np.abs(delivered[chunk, vertex] - 1.0).max(initial=0.0))
        result["laser"], result["photodiode"] = over(sent, 1.0), over(got, 1.0)
        low, high = np.minimum(tail, head), np.maximum(tail, head)
        result["edge"] = over(table((T, n, n, L), r[column], low, high, w[column], of=C[column]), W)
        result["unused"] = float((R - np.bincount(r, C, T)).max(initial=0.0))
        fixed, ordered = R[:rmin], R[1:]
    result["minimum"] = float((1.0 - fixed).max(initial=0.0)) if fixed.size else 0.0
    result["order"] = float(np.diff(ordered).max(initial=0.0)) if ordered.size > 1 else 0.0
    return result


def objective(program: RoundProgram, rmin: int, R: NDArray[Any]) -> float:
    """z: the largest r R[r], over R_min < r < R_max as printed, over all r as coded."""
    r = np.arange(first_round(program), first_round(program) + program.rounds)
    counted = (r > rmin) & (r < program.rounds) if program.version == "printed" else r >= 0
    return float((r * np.asarray(R, dtype=float))[counted].max(initial=0.0)) + 0.0


def bounds(version: Version, rmin: int, on_rounds: Sequence[Bound]) -> list[Bound]:
    """Bounds on z from bounds on the number of rounds; none as printed, where nothing is feasible."""
    if version == "printed":
        return []
    result = [Bound(b.name, max(b.value - 1.0, 0.0), f"{b.reason}; z is rounds - 1", b.paper) for b in on_rounds]
    if rmin > 1:
        result.append(Bound("R_min", rmin - 1.0, f"(8) requires round {rmin - 1}"))
    return result
