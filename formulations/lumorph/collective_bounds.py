"""Lower bounds on the number of rounds of a collective, on any topology.

Source  LuMorph, section 3 (the constraints of Algorithm 1); the arguments are elementary

In one round a vertex v sends at most o_v = L min(P, sum of W_a over the arcs out of v) circuits and receives at most
i_v = L min(P, sum of W_a over the arcs into v), each with at most ``load`` chunks; an arc a holds at most L W_a
circuits. L wavelengths, P ports per wavelength, W_a waveguides of an arc, or fibres between wafers.

Copies (:func:`round_bounds`). Only vertices of Post receive a chunk. D_v and D_c count the deliveries to v and of chunk
c.

    receptions   v receives all its deliveries:             R >= D_v / (load i_v)
    sole holder  chunks that only s holds leave s at least once, and those that need q rounds to spread leave it q - 1
                 rounds before the end:                     R >= #{c only at s, q_c >= q} / (load o_s) + q - 1
    spread       holders of a chunk grow by a factor of at most 1 + max o per round:   h_c (1 + o)^R >= h_c + D_c
    supply       a vertex without chunks sends nothing, and the vertices with chunks grow by a factor of 1 + max o
    cut          chunks required inside S and held only outside enter S at least once, over the arcs into S:
                                                            R >= X(S) / (load L sum of W_a over the arcs into S)
    arc use      a delivery (c, v) comes from another vertex u of Pre[c] or Post[c], over at least dist(u, v) arcs; for
                 any arc prices p >= 0:                     R >= sum_(c,v) min_u dist_p(u, v) / (load L sum_a W_a p_a)

    line spread  on an optical line or ring, a chunk of one holder that all others require takes at least a(R) arcs in R
                 rounds (:mod:`opticoll.formulations.rounds.line_spread`):   sum_c a_c(R) <= R load L W |arcs|

The cut between two wafers is one of these: an all-to-all of N tiles on each of two wafers, in rows of F fibres each,
takes at least N^2 / (rows F L) rounds.

The bound of arc use holds for the duals of any relaxation, however inexact (:func:`priced_bound`).

Sums (:func:`sum_bounds`) required by several vertices, for any composition: reduce-scatter and all-gather, exchange
of whole buffers, two trees, etc. P_c are the contributors and T_c the targets of chunk c.

    transfers    before the first vertex has the complete sum, |P_c| - 1 transfers combine it, each from a different
                 contributor; every further target completes by another reception, later than all of these:
                                                       R >= sum_c (|P_c| - 1 + |T_c| - 1) / (load min(sum o, sum i))
    receptions   v receives every chunk that it requires and others contribute to
    sends        v sends every chunk that it contributes to and others require
    spread       the contributions in a vertex grow by a factor of at most 1 + max i per round, the vertices that have
                 a given contribution by 1 + max o
    one round    nothing is summed on the way if there is only one: every contribution then comes from its own vertex,
                 sum_{c: v in T_c} |P_c - v| receptions at v, and as many sends; R >= 2 if they exceed the room
    cut          every chunk contributed to outside S and required inside enters S at least once
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.formulations import rounding
from opticoll.formulations.model import Bound
from opticoll.formulations.rounds.line_spread import arcs_to_fill
from opticoll.instances.photonics import WdmFibres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from opticoll.formulations.rounds.collectives import Collective
    from opticoll.formulations.rounds.round_schedule import Limits
    from opticoll.instances.topology import F64, I64, Mask, Topology


PAPER = "lumorph"
#: Maximum number of multiplications in the search for a tight cut.
MOST_WORK = 250_000_000
#: Size up to which tables of chunks by vertices are dense.
FEW_ENTRIES = 100_000


def round_bounds(topology: Topology, collective: Collective, limits: Limits) -> list[Bound]:
    """Bounds for one copying collective, each at least 0, rounded up; of one that sums, for its phases."""
    assert not collective.summing
    if collective.deliveries.size == 0:
        return [Bound("nothing to deliver", 0.0, "every vertex already holds its required chunks", PAPER, exact=True)]
    return [
        receptions(topology, collective, limits),
        sole_sends(topology, collective, limits),
        spread(topology, collective, limits),
        supply(topology, collective, limits),
        cut(topology, collective, limits),
        priced_bound(topology, collective, limits, np.ones(topology.arcs)),
        *line_spread(topology, collective, limits),
    ]


def _many(count: float, noun: str) -> str:
    """Count with noun: ``1 vertex``, ``2 vertices``."""
    return f"{int(count)} {noun if count == 1 else {'vertex': 'vertices'}.get(noun, noun + 's')}"


def rounded_up(value: float) -> float:
    """``ceil(value)`` for a quotient of integers below 2^53 computed with at most three roundings, at least 0."""
    return float(max(np.ceil(rounding.down(value, 3)), 0.0))


def circuits(topology: Topology, limits: Limits) -> tuple[F64, F64]:
    """Maximum numbers of circuits per round out of and into every vertex, ``(n,)`` each."""
    room = limits.room(topology).astype(np.float64)
    out, into = topology.outflow(room), topology.inflow(room)
    if limits.ports is not None:
        out, into = np.minimum(out, limits.ports), np.minimum(into, limits.ports)
    return limits.wavelengths * out, limits.wavelengths * into


def per_circuit(limits: Limits) -> float:
    """Number of chunks that a circuit carries in a round."""
    return np.inf if limits.load is None else float(limits.load)


def _over(count: NDArray[np.generic], room: F64) -> F64:
    """``count / room``; 0 where either is 0, since an unreachable vertex gives no bound."""
    required = np.asarray(count, dtype=np.float64)
    return np.divide(required, room, out=np.zeros_like(required), where=(required > 0) & (room > 0))


def receptions(topology: Topology, collective: Collective, limits: Limits) -> Bound:
    """Bound from the deliveries to one vertex."""
    wanted = np.bincount(collective.deliveries[:, 1], minlength=topology.n)
    need = _over(wanted, circuits(topology, limits)[1]) / per_circuit(limits)
    worst = int(need.argmax())
    return Bound("receptions", rounded_up(float(need[worst])), f"vertex {worst} receives {wanted[worst]} chunks", PAPER)


def _rounds_to_spread(collective: Collective, most: float) -> I64:
    """Rounds until every chunk can have its required holders, ``(chunks,)``; holders grow by ``1 + most`` per round."""
    holders = collective.holders.astype(np.float64)
    wanted = holders + collective.spread
    rounds = np.zeros(collective.chunks, dtype=np.int64)
    while most > 0 and (holders < wanted).any():
        rounds += holders < wanted
        holders = np.minimum(holders * (1.0 + most), wanted)
    return rounds


def _most_sent(topology: Topology, limits: Limits) -> float:
    return float(circuits(topology, limits)[0].max(initial=0.0))


def spread(topology: Topology, collective: Collective, limits: Limits) -> Bound:
    """Bound from the holders of one chunk, which grow by at most ``1 + max o`` per round."""
    most = _most_sent(topology, limits)
    rounds = _rounds_to_spread(collective, most)
    worst = int(rounds.argmax())
    held, more = _many(collective.holders[worst], "holder"), collective.spread[worst]
    reason = f"chunk {worst} goes from {held} to {more} more, each sending at most {most:g} copies per round"
    return Bound("spread", float(rounds[worst]), reason, PAPER)


def sole_sends(topology: Topology, collective: Collective, limits: Limits) -> Bound:
    """Bound from chunks with one holder, which must leave it early enough to be spread."""
    rounds = _rounds_to_spread(collective, _most_sent(topology, limits))
    holder = _sole_holder(collective)
    sole = np.flatnonzero((collective.holders == 1) & (rounds > 0))
    room = circuits(topology, limits)[0]
    best, where, many, late, load = 0.0, 0, 0, 0, per_circuit(limits)
    for q in np.unique(rounds[sole]).tolist():
        count = np.bincount(holder[sole[rounds[sole] >= q]], minlength=topology.n)
        need = np.maximum(np.ceil(rounding.down(_over(count, room) / load, 3)), 0.0) + np.where(count > 0, q - 1, 0)
        worst = int(need.argmax())
        if need[worst] > best:
            best, where, many, late = float(need[worst]), worst, int(count[worst]), q - 1
    reason = f"{_many(many, 'chunk')} must leave vertex {where}, the only holder"
    if late:
        reason += f", at least {_many(late, 'round')} before the end"
    return Bound("sole holder", best, reason, PAPER)


def supply(topology: Topology, collective: Collective, limits: Limits) -> Bound:
    """Bound from the vertices that have a chunk to send, which grow by at most ``1 + max o`` per round."""
    most, load = _most_sent(topology, limits), per_circuit(limits)
    chunks = np.flatnonzero(collective.spread)
    able = np.unique(collective.pre[np.isin(collective.pre[:, 0], chunks), 1]).size
    everyone = np.union1d(collective.pre[:, 1], collective.deliveries[:, 1]).size
    left, rounds, active = float(collective.deliveries.shape[0]), 0, float(able)
    while left > 0 and active > 0 and most > 0 and active < everyone:
        left -= active * most * load
        rounds += 1
        active = min(active * (1.0 + most), everyone)
    if left > 0 and most > 0:
        rounds += int(rounded_up(left / (everyone * most * load)))
    reason = f"{collective.deliveries.shape[0]} deliveries, of which {able} vertices can send in the first round"
    return Bound("supply", float(rounds), reason, PAPER)


def cut(topology: Topology, collective: Collective, limits: Limits) -> Bound:
    """Best bound among cuts: mesh rectangles, balls and eigenvector sweeps."""
    demand, rest = single_demand(collective)

    def entering(inside: Mask) -> I64:
        wanted = np.rint(crossings(inside, demand) if demand.any() else np.zeros(inside.shape[0])).astype(np.int64)
        return wanted + _copies_inside(collective, rest, inside) if rest.size else wanted

    return _best_cut(topology, collective, limits, entering)


def _best_cut(topology: Topology, collective: Collective, limits: Limits, entering: Callable[[Mask], I64]) -> Bound:
    """Best cut by the chunks that must enter each set, ``(B, n)``."""
    best, many, members = 0.0, 0, np.zeros(topology.n, dtype=bool)
    joined = _between(topology, limits.room(topology))
    for inside in candidate_sets(topology, collective):
        wanted = entering(inside)
        need = _over(wanted, crossings(inside, joined) * limits.wavelengths) / per_circuit(limits)
        worst = int(need.argmax())
        if need[worst] > best:
            best, many, members = float(need[worst]), int(wanted[worst]), inside[worst]
    size, into = int(members.sum()), np.flatnonzero(~members[topology.tail] & members[topology.head])
    reason = f"{_many(many, 'chunk')} must enter {_many(size, 'vertex')} over {_of_arcs(topology, limits, into)}"
    return Bound("cut", rounded_up(best), reason, PAPER, detail={"inside": np.flatnonzero(members).tolist()})


def _of_arcs(topology: Topology, limits: Limits, arcs: I64) -> str:
    """Number of arcs, and what they hold together if that differs from arc to arc."""
    text = _many(arcs.size, "arc")
    if limits.fibres is None:
        return text
    room = int(limits.room(topology)[arcs].sum())
    return f"{text} of {_many(room, 'waveguide')} or {'fibre' if room == 1 else 'fibres'}"


def _between(topology: Topology, weight: I64) -> F64:
    """Sum of the ``weight`` of the arcs, ``(m,)``, from every vertex to every other, ``(n, n)``."""
    total = np.zeros((topology.n, topology.n))
    np.add.at(total, (topology.tail, topology.head), weight.astype(np.float64))
    return total


def crossings(inside: Mask, pairs: F64) -> F64:
    """Sum of ``pairs[u, v]`` over u outside and v inside of each set, ``(B,)``; ``inside`` is ``(B, n)``.

    Exact for whole numbers below 2^24 per set, since single-precision products are summed.
    """
    single = np.float32 if pairs.sum() < 2**24 else np.float64
    dense = inside.astype(single)
    return np.asarray((((1 - dense) @ pairs.astype(single)) * dense).sum(axis=1, dtype=np.float64))


def _sole_holder(collective: Collective) -> I64:
    """Holder of each chunk that has only one, ``(chunks,)``; other entries are arbitrary."""
    holder = np.zeros(collective.chunks, dtype=np.int64)
    holder[collective.pre[:, 0]] = collective.pre[:, 1]
    return holder


def _one_to_one(collective: Collective) -> Mask:
    """Whether each chunk has one holder and one delivery, ``(chunks,)``."""
    return np.asarray((collective.holders == 1) & (collective.spread == 1))


def single_demand(collective: Collective) -> tuple[F64, I64]:
    """One-to-one chunks by pair, ``(n, n)``, and the numbers of all other chunks with deliveries."""
    single, n = _one_to_one(collective), collective.n
    alone = collective.deliveries[single[collective.deliveries[:, 0]]]
    pairs = np.bincount(_sole_holder(collective)[alone[:, 0]] * n + alone[:, 1], minlength=n * n)
    return pairs.reshape(n, n).astype(np.float64), np.flatnonzero(~single & (collective.spread > 0))


def _copies_inside(collective: Collective, chunks: I64, inside: Mask) -> I64:
    """Number of ``chunks`` that each set requires but does not hold, ``(B,)``."""
    place = np.full(collective.chunks, -1)
    place[chunks] = np.arange(chunks.size)

    def members(pairs: I64) -> Any:
        mine = pairs[place[pairs[:, 0]] >= 0]
        if chunks.size * collective.n <= FEW_ENTRIES:
            dense = np.zeros((chunks.size, collective.n), dtype=np.float32)
            dense[place[mine[:, 0]], mine[:, 1]] = 1.0
            return dense
        import scipy.sparse as sp

        entries = (np.ones(mine.shape[0], dtype=np.float32), (place[mine[:, 0]], mine[:, 1]))
        return sp.csr_array(entries, shape=(chunks.size, collective.n))

    held, wanted = members(collective.pre), members(collective.post)
    count = np.zeros(inside.shape[0], dtype=np.int64)
    for first in range(0, inside.shape[0], 256):
        block = inside[first : first + 256].T.astype(np.float32)
        count[first : first + 256] = ((held @ block == 0) & (wanted @ block > 0)).sum(axis=0)
    return count


def candidate_sets(topology: Topology, collective: Collective) -> Iterator[Mask]:
    """Vertex sets to evaluate as cuts, in blocks ``(B, n)``: all sets of a small topology, else promising ones."""
    n = topology.n
    if n <= 10:
        codes = np.arange(1, 2**n - 1)
        yield (codes[:, None] >> np.arange(n)) & 1 == 1
        return
    nonzeros = collective.pre.shape[0] + collective.post.shape[0]
    alone = bool(_one_to_one(collective)[collective.deliveries[:, 0]].all())
    room = max(int(MOST_WORK // (n * n + (0 if alone else nonzeros))), 64)
    shape = getattr(topology, "shape", None)
    sets = [np.eye(n, dtype=bool), _sweeps(topology)]
    if shape is not None and len(shape) == 2:
        sets.insert(0, _rectangles(int(shape[0]), int(shape[1]), room))
    sets.append(_balls(topology))
    for family in sets:
        for first in range(0, min(family.shape[0], room), 2048):
            block = family[first : min(first + 2048, room)]
            yield block
            yield ~block


def _rectangles(rows: int, columns: int, room: int) -> Mask:
    """Rectangles of a mesh: bands, those at a corner, then all if ``room`` allows, ``(B, n)``."""

    def intervals(size: int, least: int) -> Mask:
        """Intervals of ``0 .. size - 1``; with ``least`` = 1 only those at an end, ``(B, size)``."""
        first, last = np.triu_indices(size)
        keep = (first == 0) | (last == size - 1) | (least == 0)
        at = np.arange(size)
        return (at >= first[keep, None]) & (at <= last[keep, None])

    def products(tall: Mask, wide: Mask) -> Mask:
        return (tall[:, None, :, None] & wide[None, :, None, :]).reshape(-1, rows * columns)

    tall, wide = intervals(rows, 0), intervals(columns, 0)
    sets = [
        products(np.ones((1, rows), dtype=bool), wide),
        products(tall, np.ones((1, columns), dtype=bool)),
        products(intervals(rows, 1), intervals(columns, 1)),
    ]
    if tall.shape[0] * wide.shape[0] <= room:
        sets.append(products(tall, wide))
    return np.concatenate(sets)


def _balls(topology: Topology) -> Mask:
    """Vertices within d arcs of a terminal, for at most 256 terminals and 64 distances."""
    every = np.unique(np.linspace(0, topology.num_ranks - 1, min(topology.num_ranks, 256)).astype(np.int64))
    hops = topology.hops[every]
    farthest = int(np.max(hops, where=np.isfinite(hops), initial=0.0))
    return np.concatenate([hops <= d for d in range(min(farthest, 64))]) if farthest else hops <= -1


def _sweeps(topology: Topology) -> Mask:
    """Prefixes of the vertices ordered by each of a few eigenvectors of the Laplacian."""
    n = topology.n
    if n > 2048:
        return np.zeros((0, n), dtype=bool)
    arcs = _between(topology, np.ones(topology.arcs, dtype=np.int64))
    joined = (arcs + arcs.T) / 2
    _, vectors = np.linalg.eigh(np.diag(joined.sum(axis=1)) - joined)
    rank = np.argsort(np.argsort(vectors[:, 1 : min(n, 6)], axis=0, kind="stable"), axis=0)
    return np.concatenate([rank[:, k] < np.arange(1, n)[:, None] for k in range(rank.shape[1])])


def line_spread(topology: Topology, collective: Collective, limits: Limits) -> list[Bound]:
    """Bound from the arcs that chunks for everybody take on an intact optical line or ring; none elsewhere.

    Tries numbers of rounds in turn and stops early (at a valid bound) where that takes more than ``MOST_WORK``
    operations.
    """
    n = topology.n
    everyone = np.flatnonzero((collective.holders == 1) & (collective.spread == n - 1))
    if not isinstance(topology, WdmFibres) or not topology.intact or limits.load is None or not everyone.size:
        return []
    if n**3 > MOST_WORK:
        return []
    chunks = np.bincount(_sole_holder(collective)[everyone], minlength=n)
    room = topology.arcs * limits.wavelengths * limits.waveguides * limits.load
    rounds, needed = 1, 0.0
    for closed, open_ended in arcs_to_fill(n - 1):
        ends = open_ended + open_ended[::-1]  # of a holder with v nodes before it
        needed = float((chunks * (closed[n - 1] if topology.circular else ends)).sum())
        if needed <= rounds * room:
            break
        rounds += 1
        if rounds * n**3 > MOST_WORK:
            break
    reason = f"in {rounds - 1} rounds the chunks would take more arcs than there are" if rounds > 1 else "one round"
    return [Bound("line spread", float(rounds), reason, PAPER)]


def priced_bound(topology: Topology, collective: Collective, limits: Limits, prices: F64) -> Bound:
    """Arc-use bound with prices p >= 0 on arcs, ``(m,)``; unit prices count arcs.

    Distances are shortened by their rounding error, so the bound holds for any prices.
    """
    price = np.asarray(prices, dtype=np.float64)
    price = np.where(np.isfinite(price) & (price > 0), price, 0.0)
    unit = bool((price == 1.0).all())
    name = "arc use" if unit else "priced arc use"
    if not unit:
        price = np.ldexp(price, -rounding.exponent(price))
    weighted = rounding.sum_up(rounding.up(price * limits.room(topology)))
    room = float(rounding.up(weighted * limits.wavelengths * per_circuit(limits), 2))
    distance = topology.hops if unit and topology.num_ranks == topology.n else topology.distances(price)
    total = float(rounding.down(rounding.sum_down(_least_distances(collective, distance)), topology.n))
    value = max(rounding.quotient_down(total, room), 0.0) if np.isfinite(room) else 0.0
    what = "arcs" if unit else "units of price"
    reason = f"the deliveries take at least {total:.6g} {what}, with {room:.6g} per round"
    return Bound(name, rounded_up(value), reason, PAPER)


def _least_distances(collective: Collective, distance: F64) -> F64:
    """Shortest distance of every delivery from another vertex that may hold its chunk, ``(D,)``; 0 if unreachable."""
    n = collective.n
    single = _one_to_one(collective)
    deliveries = collective.deliveries
    least = distance[_sole_holder(collective)[deliveries[:, 0]], deliveries[:, 1]]
    several = np.flatnonzero(~single[deliveries[:, 0]])
    if several.size:
        between = distance + np.diag(np.full(n, np.inf))
        keys = np.unique(np.concatenate([collective.key(collective.pre), collective.key(collective.post)]))
        chunk, vertex = keys // n, keys % n
        first = np.searchsorted(chunk, np.arange(collective.chunks + 1))
        groups: dict[bytes, F64] = {}
        which = deliveries[several, 0]
        start = np.searchsorted(which, np.unique(which))
        for c, part in zip(np.unique(which).tolist(), np.split(several, start[1:]), strict=True):
            members = vertex[first[c] : first[c + 1]]
            # In most collectives many chunks share a set of members, so one minimum per distinct set suffices.
            code = members.tobytes()
            if code not in groups:
                groups[code] = between[members].min(axis=0)
            least[part] = groups[code][deliveries[part, 1]]
    return np.where(np.isfinite(least), least, 0.0)


def sum_bounds(topology: Topology, collective: Collective, limits: Limits) -> list[Bound]:
    """Bounds for a collective that sums, rounded up."""
    assert collective.summing
    out, into = (most * per_circuit(limits) for most in circuits(topology, limits))
    given = np.zeros((collective.chunks, collective.n), dtype=bool)
    wanted = given.copy()
    given[collective.pre[:, 0], collective.pre[:, 1]] = True
    wanted[collective.post[:, 0], collective.post[:, 1]] = True
    real = wanted.any(axis=1)
    kinds, multiplicity = np.unique(np.packbits(np.hstack([given, wanted])[real], axis=1), axis=0, return_counts=True)
    both = np.unpackbits(kinds, axis=1, count=2 * collective.n).astype(bool)
    P, T = both[:, : collective.n], both[:, collective.n :]
    return [
        _transfers(P, T, multiplicity, out, into),
        _ends(P, T, multiplicity, into, "receptions", "receives"),
        _ends(T, P, multiplicity, out, "sends", "sends"),
        _spread(P, T, out, into),
        _one_round(P, T, multiplicity, out, into),
        _cut(topology, collective, limits, P, T, multiplicity),
    ]


def _one_round(P: Mask, T: Mask, multiplicity: I64, out: F64, into: F64) -> Bound:
    """Bound of two rounds if one is too short: in a single round nothing is summed on the way.

    A vertex of T then receives a contribution from every other vertex of P, and a vertex of P sends to all of T.
    """
    for members, others, room, verb in ((T, P, into, "receives"), (P, T, out, "sends")):
        count = ((members * (others.sum(axis=1)[:, None] - others)) * multiplicity[:, None]).sum(axis=0)
        if (count > room).any():
            worst = int(np.argmax(count - room))
            reason = (
                f"in a single round vertex {worst} {verb} {count[worst]} contributions with room for {room[worst]:g}"
            )
            return Bound("one-round", 2.0, reason, PAPER)
    return Bound("one-round", float((P.sum(axis=1) > 1).any()), "a single round is long enough for the ends", PAPER)


def _transfers(P: Mask, T: Mask, multiplicity: I64, out: F64, into: F64) -> Bound:
    least = np.maximum(P.sum(axis=1) - 1, 0) + np.maximum(T.sum(axis=1) - 1, 0)
    takes_part = (P | T).any(axis=0)
    room = float(min(out[takes_part].sum(), into[takes_part].sum()))
    total = int((least * multiplicity).sum())
    value = total / room if room > 0 else 0.0
    return Bound("transfers", rounded_up(value), f"{total} transfers, at most {room:g} per round", PAPER)


def _ends(P: Mask, T: Mask, multiplicity: I64, room: F64, name: str, verb: str) -> Bound:
    """Bound from the chunks of each vertex in T with another vertex in P."""
    others = P.sum(axis=1)[:, None] - P > 0
    count = ((T & others) * multiplicity[:, None]).sum(axis=0)
    need = np.divide(count, room, out=np.zeros(count.size), where=room > 0)
    worst = int(need.argmax())
    return Bound(name, rounded_up(float(need[worst])), f"vertex {worst} {verb} {count[worst]} chunks", PAPER)


def _spread(P: Mask, T: Mask, out: F64, into: F64) -> Bound:
    best, reason = 0, "no chunk is spread"
    for members, most, what in ((P, into, "contributions are combined"), (T, out, "sums are spread")):
        wide, fan = int(members.sum(axis=1).max(initial=0)), float(most.max(initial=0.0))
        rounds, reached = 0, 1.0
        while reached < wide and fan > 0:
            reached *= 1.0 + fan
            rounds += 1
        if rounds > best:
            best, reason = rounds, f"{wide} {what}, at most {1 + fan:g} times as many per round"
    return Bound("spread", float(best), reason, PAPER)


def _cut(topology: Topology, collective: Collective, limits: Limits, P: Mask, T: Mask, multiplicity: I64) -> Bound:
    def entering(inside: Mask) -> I64:
        held = P.astype(np.float32) @ (~inside).T.astype(np.float32) > 0
        wanted = T.astype(np.float32) @ inside.T.astype(np.float32) > 0
        return np.asarray(((held & wanted) * multiplicity[:, None]).sum(axis=0))

    return _best_cut(topology, collective, limits, entering)
