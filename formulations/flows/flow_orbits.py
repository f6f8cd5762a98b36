r"""Concurrent flow by source, reduced to the orbits of a verified group of automorphisms.

Let G act on vertices and arcs and keep capacities, sources and demands: :math:`D_{\sigma u, \sigma s} = D_{us}`. The
mean over G of an optimal flow is optimal, so :math:`g_{\sigma a, \sigma s} = g_{as}` may be required. The
remaining variables are the flows of a representative r of each orbit of sources, invariant under the stabiliser G_r:

Sets    r in R representatives, w_r the size of their orbits; P in arcs/G; p in arcs/G_r; q in vertices/G_r
Vars    y_pr >= 0 flow [shards] on each arc of p for unit demands; T >= 0 time

min T  s.t.
    balance[q,r]   sum of y over arcs into u - over arcs out of u >= D_ur       u any vertex of q, q != {r}
    capacity[P]    sum_r w_r sum_{p in P} |p| y_pr / |P| <= c_P T

The lifted flow :math:`g_{\sigma a, \sigma r} = y_{p(a) r}` meets all demands and loads all arcs of an orbit equally, so
 T is the optimum of the whole problem. The duals of ``capacity``, divided by |P|, are arc lengths for it.

A transversal (one t_s in G with t_s r = s for each source) comes from breadth-first search over the generators, the
stabilisers from Schreier's lemma: the permutations :math:`t_{\sigma s}^{-1} \sigma t_s` generate G_r (Seress,
Permutation Group Algorithms, 2003, lemma 4.2.1). The order of G is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.model import MatrixModel, NotApplicable
from opticoll.instances.symmetry import arc_image, automorphisms, orbits_of

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Mask

#: Maximum number of entries in a transversal of one orbit (8 bytes each, twice).
MOST_ENTRIES = 150_000_000
#: Number of permutations composed at a time.
CHUNK_ENTRIES = 2_000_000


@dataclass(frozen=True, eq=False)
class Orbits:
    """The reduction of the module docstring, made by :func:`find`.

    Parameters
    ----------
    data
        The whole problem, with one group per source.
    arc_images
        Images of the arcs under each generator, ``(k, m)``.
    representative
        Group that stands for each orbit of sources, ``(|R|,)``.
    weight
        w_r, ``(|R|,)``.
    arc_orbit
        P of every arc, ``(m,)``.
    order, parent, generator
        Generation of all other groups: group ``order[i]`` is the image of group ``parent[i]`` (a representative, or
        earlier in the order) under ``generator[i]``.
    orbit
        Number of the representative of every group, ``(|K|,)``.
    vertex_class, arc_class
        By representative, q and p of every vertex and arc, ``(n,)`` and ``(m,)``; None where G_r is trivial.
    """

    data: ConcurrentFlow
    arc_images: I64
    representative: I64
    weight: F64
    arc_orbit: I64
    order: I64
    parent: I64
    generator: I64
    orbit: I64
    vertex_class: list[I64 | None]
    arc_class: list[I64 | None]

    @property
    def trivial(self) -> bool:
        """Whether the reduction gains nothing."""
        return self.representative.size == self.data.groups

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes of the reduced problem: numbers of orbits."""
        return {"source_orbits": int(self.representative.size), "arc_orbits": int(self.arcs_in_orbit.size)}

    @cached_property
    def arcs_in_orbit(self) -> F64:
        """|P|, by orbit."""
        return np.bincount(self.arc_orbit).astype(float)

    @cached_property
    def reduced(self) -> ConcurrentFlow:
        """Problem of the representatives, demands times w_r; its loads, averaged by :meth:`fold`, are those of all."""
        data, kept = self.data, self.representative
        return ConcurrentFlow(
            data.topology,
            data.sources[kept],
            data.demand[:, kept] * self.weight,
            data.capacity,
            data.blocked[:, kept],
            data.equality,
            data.flow,
        )

    def fold(self, load: F64) -> F64:
        """Average of every arc over its orbit, ``(m,)``."""
        mean = np.bincount(self.arc_orbit, load) / self.arcs_in_orbit
        return np.asarray(mean[self.arc_orbit])

    def settle(self, flows: F64) -> F64:
        """Average each representative's flow over its stabiliser, in place; ``(m, |R|)``."""
        for r, label in enumerate(self.arc_class):
            if label is not None:
                flows[:, r] = (np.bincount(label, flows[:, r]) / np.bincount(label))[label]
        return flows

    def lift(self, flows: F64) -> F64:
        """Lift settled flows of the representatives, ``(m, |R|)``, to the flows of all groups, ``(m, |K|)``."""
        rows = np.empty((self.data.groups, flows.shape[0]))
        rows[self.representative] = flows.T
        back = np.argsort(self.arc_images, axis=1)
        for group, parent, by in zip(self.order.tolist(), self.parent.tolist(), self.generator.tolist(), strict=True):
            np.take(rows[parent], back[by], out=rows[group])
        return rows.T


def find(data: ConcurrentFlow) -> Orbits:
    """Reduce by the automorphisms (possibly none) that can be proposed and verified on ``data``.

    Raises
    ------
    NotApplicable
        If two groups share a source.
    """
    vertices, arcs, place = _symmetries(data, searched=True)
    return _reduce(data, vertices, arcs, place)


def source_orbits(data: ConcurrentFlow) -> int:
    """Number of orbits of sources under the symmetries proposed by family and numbering, to choose a method.

    Raises
    ------
    NotApplicable
        If two groups share a source.
    """
    vertices, _, place = _symmetries(data, searched=False)
    return int(np.unique(orbits_of(vertices, data.topology.n)[np.flatnonzero(place >= 0)]).size)


def _symmetries(data: ConcurrentFlow, *, searched: bool) -> tuple[I64, I64, I64]:
    """Automorphisms that preserve ``data``, as images of vertices and arcs; and the group of every vertex or -1."""
    topology, sources = data.topology, data.sources
    if np.unique(sources).size != sources.size:
        msg = f"{topology.spec}: the reduction needs one group per source, but two groups share a source"
        raise NotApplicable(msg)
    vertices, arcs = automorphisms(topology, searched=searched)
    place = np.full(topology.n, -1, dtype=np.int64)
    place[sources] = np.arange(sources.size)
    if not _uniform(data, place):
        good = [i for i in range(len(vertices)) if _keeps(data, vertices[i], arcs[i], place)]
        vertices, arcs = vertices[good], arcs[good]
    return vertices, arcs, place


def _uniform(data: ConcurrentFlow, place: I64) -> bool:
    """Whether automorphisms of the topology also preserve the rest of the problem.

    They do if capacities are the topology's, sources its terminals, all demands between them equal, and the blocked
    arcs those into a source.
    """
    topology, sources = data.topology, data.sources
    own = place[topology.head]
    inner = np.flatnonzero(own >= 0)
    return bool(
        np.array_equal(data.capacity, topology.capacity)
        and np.array_equal(np.sort(sources), topology.terminals)
        and data.uniform
        and np.count_nonzero(data.demand) == sources.size * (sources.size - 1)
        and data.blocked[inner, own[inner]].all()
        and np.count_nonzero(data.blocked) == inner.size
    )


def _keeps(data: ConcurrentFlow, vertices: I64, arcs: I64, place: I64) -> bool:
    """Whether an automorphism of the topology preserves capacities, sources, demands and blocked arcs of ``data``."""
    groups = place[vertices[data.sources]]
    if (groups < 0).any() or not np.array_equal(data.capacity[arcs], data.capacity):
        return False
    step = max(1, CHUNK_ENTRIES // max(data.topology.n, data.topology.arcs))
    for first in range(0, groups.size, step):
        block, images = slice(first, min(first + step, groups.size)), groups[first : first + step]
        if not np.array_equal(data.demand[np.ix_(vertices, images)], data.demand[:, block]):
            return False
        if not np.array_equal(data.blocked[np.ix_(arcs, images)], data.blocked[:, block]):
            return False
    return True


def _reduce(data: ConcurrentFlow, vertices: I64, arcs: I64, place: I64) -> Orbits:
    topology, sources = data.topology, data.sources
    moves = place[vertices[:, sources]] if len(vertices) else np.empty((0, sources.size), dtype=np.int64)
    orbit = np.full(sources.size, -1, dtype=np.int64)
    representative: list[int] = []
    order: list[int] = []
    parent: list[int] = []
    generator: list[int] = []
    vertex_class: list[I64 | None] = []
    arc_class: list[I64 | None] = []
    for root in range(sources.size):
        if orbit[root] >= 0:
            continue
        orbit[root] = len(representative)
        representative.append(root)
        members, above, by = [root], [-1], [-1]
        at = 0
        while at < len(members):
            selected = members[at]
            for g, there in enumerate(moves[:, selected].tolist()):
                if orbit[there] < 0:
                    orbit[there] = orbit[root]
                    members.append(there)
                    above.append(at)
                    by.append(g)
            at += 1
        order += members[1:]
        parent += [members[i] for i in above[1:]]
        generator += by[1:]
        fixing = _stabiliser(vertices, moves, np.array(members), above, by)
        if fixing.size:
            vertex_class.append(orbits_of(fixing, topology.n))
            images = [arc_image(topology, image) for image in fixing]
            arc_class.append(orbits_of(np.array(images), topology.arcs))
        else:
            vertex_class.append(None)
            arc_class.append(None)
    return Orbits(
        data=data,
        arc_images=arcs,
        representative=np.array(representative, dtype=np.int64),
        weight=np.bincount(orbit).astype(float),
        arc_orbit=orbits_of(arcs, topology.arcs),
        order=np.array(order, dtype=np.int64),
        parent=np.array(parent, dtype=np.int64),
        generator=np.array(generator, dtype=np.int64),
        orbit=orbit,
        vertex_class=vertex_class,
        arc_class=arc_class,
    )


def _stabiliser(vertices: I64, moves: I64, members: I64, above: list[int], by: list[int]) -> I64:
    """Schreier's generators of the stabiliser of ``members[0]``, without duplicates and the identity, ``(k, n)``.

    Raises
    ------
    NotApplicable
        If the transversal would be too large to keep.
    """
    count, n = members.size, vertices.shape[1]
    if not vertices.size:
        return np.empty((0, n), dtype=np.int64)
    if count * n > MOST_ENTRIES:
        msg = f"an orbit of {count} sources on {n} vertices exceeds the limit of {MOST_ENTRIES} entries"
        raise NotApplicable(msg)
    ahead = np.empty((count, n), dtype=np.int64)
    ahead[0] = np.arange(n)
    for i in range(1, count):
        np.take(vertices[by[i]], ahead[above[i]], out=ahead[i])
    back = np.empty_like(ahead)
    for i in range(count):
        back[i, ahead[i]] = ahead[0]
    where = np.empty(moves.shape[1], dtype=np.int64)
    where[members] = np.arange(count)
    mark = np.random.default_rng(0).integers(1, 1 << 62, size=n)
    identity = int((mark * np.arange(n)).sum())
    result: dict[int, I64] = {}
    step = max(1, CHUNK_ENTRIES // n)
    for g, image in enumerate(vertices):
        for first in range(0, count, step):
            last = min(first + step, count)
            moved = np.take(image, ahead[first:last])
            moved += n * where[moves[g, members[first:last]]][:, None]
            moved = np.take(back, moved)
            # Duplicates are found by a random linear form; if two permutations share a value, one generator is lost,
            # which the later check of the loads would reveal.
            value = moved @ mark
            for i in np.unique(value, return_index=True)[1].tolist():
                if value[i] != identity:
                    result.setdefault(int(value[i]), moved[i])
    return np.array(list(result.values())) if result else np.empty((0, n), dtype=np.int64)


def model(orbits: Orbits, keep: Mask | None = None) -> MatrixModel:
    """The reduced LP; with ``keep``, ``(m, |R|)``, only over those arcs (an orbit p needs its first arc).

    Variables: ``y`` by (arc, representative), one column for all arcs of an orbit p, and ``T``; constraints ``balance``
    by (vertex, representative), ``capacity`` by arc orbit.
    """
    import scipy.sparse as sp

    data = orbits.data
    topology, n, m = data.topology, data.topology.n, data.topology.arcs
    count, orbit = orbits.representative.size, orbits.arc_orbit
    column = np.full((count, m), -1, dtype=np.int64)
    row = np.full((count, n), -1, dtype=np.int64)
    parts: list[tuple[I64, I64, F64]] = []
    demand = []
    columns = rows = 0
    places = orbits.arcs_in_orbit.size
    for r, group in enumerate(orbits.representative.tolist()):
        arc_class, vertex_class = orbits.arc_class[r], orbits.vertex_class[r]
        open_ = ~data.blocked[:, group]
        if arc_class is None or vertex_class is None:
            if keep is not None:
                open_ = open_ & keep[:, r]
            used = np.flatnonzero(open_)
            size = np.ones(used.size)
            column[r, used] = columns + np.arange(used.size)
            first_vertex = np.delete(np.arange(n), data.sources[group])
            row[r, first_vertex] = rows + np.arange(n - 1)
            into = outof = used
        else:
            least = np.unique(arc_class, return_index=True)[1]
            chosen = open_[least] if keep is None else open_[least] & keep[least, r]
            number = np.full(least.size, -1, dtype=np.int64)
            number[chosen] = columns + np.arange(int(chosen.sum()))
            column[r] = number[arc_class]
            used, size = least[chosen], np.bincount(arc_class)[chosen].astype(float)
            first_vertex = np.unique(vertex_class, return_index=True)[1]
            first_vertex = first_vertex[first_vertex != data.sources[group]]
            row[r, first_vertex] = rows + np.arange(first_vertex.size)
            some = column[r] >= 0
            into = np.flatnonzero(some & (row[r, topology.head] >= 0))
            outof = np.flatnonzero(some & (row[r, topology.tail] >= 0))
        outof = outof[row[r, topology.tail[outof]] >= 0]
        parts += [
            (row[r, topology.head[into]], column[r, into], np.ones(into.size)),
            (row[r, topology.tail[outof]], column[r, outof], -np.ones(outof.size)),
            (-1 - orbit[used], column[r, used], orbits.weight[r] * size / orbits.arcs_in_orbit[orbit[used]]),
        ]
        demand.append(data.demand[first_vertex, group])
        columns, rows = columns + used.size, rows + first_vertex.size
    at, to, value = (np.concatenate(x) for x in zip(*parts, strict=True))
    at = np.where(at < 0, rows - 1 - at, at)
    capacity = data.capacity[np.unique(orbit, return_index=True)[1]]
    at = np.concatenate([at, rows + np.arange(places)])
    to = np.concatenate([to, np.full(places, columns)])
    value = np.concatenate([value, -capacity])
    A = sp.coo_array((value, (at, to)), shape=(rows + places, columns + 1)).tocsc()
    cost = np.zeros(columns + 1)
    cost[-1] = 1.0
    right = np.concatenate(demand)
    return MatrixModel(
        A=A,
        row_lower=np.concatenate([right, np.full(places, -np.inf)]),
        row_upper=np.concatenate([np.full(rows, np.inf), np.zeros(places)]),
        col_lower=np.zeros(columns + 1),
        col_upper=np.full(columns + 1, np.inf),
        cost=cost,
        sense="min",
        variables={"y": ((m, count), np.ascontiguousarray(column.T).ravel()), "T": ((), np.array([columns]))},
        constraints={
            "balance": ((n, count), np.ascontiguousarray(row.T).ravel()),
            "capacity": ((places,), rows + np.arange(places)),
        },
    )


def lengths(orbits: Orbits, duals: F64) -> F64:
    """Arc lengths of the whole problem from the duals of the reduced ``capacity``, ``(m,)``."""
    return np.asarray((np.abs(duals) / orbits.arcs_in_orbit)[orbits.arc_orbit])
