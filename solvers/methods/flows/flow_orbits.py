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

A transversal (one t_s in G with t_s r = s for each source) comes from breadth-first search over the generators. Random
elements :math:`\sigma` of G, found by product replacement (Celler et al., Communications in Algebra 23(13), 1995), give
the elements :math:`t_{\sigma r}^{-1} \sigma` of G_r, almost surely enough to generate it (Seress, Permutation Group
Algorithms, 2003, chapter 4). If not, the reduced problem is larger than necessary, and has the same optimum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from opticoll.formulations.flows.concurrent_flow import ConcurrentFlow
from opticoll.formulations.flows.symmetric_flow import SymmetricFlow, Trees, group_images, keeps, trees
from opticoll.formulations.standard_form import StandardForm, blocks
from opticoll.instances.symmetry import automorphisms, orbits_of
from opticoll.solvers.task import Termination

if TYPE_CHECKING:
    from opticoll.instances.topology import F64, I64, Mask

#: Random elements of the group: how many are taken, multiplied, and multiplied before the first.
RANDOM_ELEMENTS, POOL, MIXING = 24, 10, 60
#: Up to so many orbits of sources, stabilisers are computed to choose a method.
COUNTED_ORBITS = 8


@dataclass(frozen=True, eq=False)
class Orbits:
    """The reduction of the module docstring, made by :func:`find`.

    Parameters
    ----------
    data
        The whole problem, with one group per source.
    vertex_images, arc_images
        Images of vertices and arcs under each generator, ``(k, n)`` and ``(k, m)``.
    representative
        Group that stands for each orbit of sources, ``(|R|,)``.
    weight
        w_r, ``(|R|,)``.
    arc_orbit
        P of every arc, ``(m,)``.
    orbit
        Number of the representative of every group, ``(|K|,)``.
    vertex_class, arc_class
        By representative, q and p of every vertex and arc, ``(n,)`` and ``(m,)``; None where G_r is trivial.
    """

    data: ConcurrentFlow
    vertex_images: I64
    arc_images: I64
    representative: I64
    weight: F64
    arc_orbit: I64
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
            data.demand_of(kept) * self.weight,
            data.capacity,
            None if data.barred is None else data.barred[:, kept],
            data.equality,
        )

    def fold(self, load: F64) -> F64:
        """Average of every arc over its orbit, ``(m,)``."""
        return self.by_orbit(load)[self.arc_orbit]

    def by_orbit(self, load: F64) -> F64:
        """Average over every orbit of arcs, ``(orbits,)``."""
        return np.asarray(np.bincount(self.arc_orbit, load) / self.arcs_in_orbit)

    def settle(self, flows: F64) -> F64:
        """Average each representative's flow over its stabiliser, in place; ``(m, |R|)``."""
        for r, label in enumerate(self.arc_class):
            if label is not None:
                flows[:, r] = (np.bincount(label, flows[:, r]) / np.bincount(label))[label]
        return flows

    def symmetric(self, flows: F64) -> SymmetricFlow | F64:
        """The flows of all groups that settled flows of the representatives, ``(m, |R|)``, stand for."""
        return flows if self.trivial else SymmetricFlow(self.vertex_images, self.arc_images, self.data.sources, flows)

    def averaged(self, flows: F64) -> F64:
        """The mean of all groups' flows, ``(m, |K|)``, each moved to its representative, ``(m, |R|)``."""
        made = trees(group_images(self.vertex_images, self.data.sources, self.data.topology.n))
        total = flows.T.copy()
        for group, parent, by in reversed(list(zip(*(one.tolist() for one in made[2:]), strict=True))):
            total[parent] += total[group][self.arc_images[by]]
        return np.asarray(total[made.root].T / self.weight)

    def lift(self, flows: F64) -> F64:
        """The same as an array, ``(m, |K|)``."""
        return np.asarray(self.symmetric(flows))


def find(data: ConcurrentFlow) -> Orbits:
    """Reduce by the automorphisms (possibly none) that can be proposed and verified on ``data``."""
    return _reduce(data, *_symmetries(data, searched=True))


def source_orbits(data: ConcurrentFlow) -> int:
    """Number of orbits of sources under the symmetries proposed by family and numbering."""
    vertices, _ = _symmetries(data, searched=False)
    return int(np.unique(orbits_of(vertices, data.topology.n)[data.sources]).size)


def few_columns(data: ConcurrentFlow, most: int, most_of_few: int) -> bool:
    """Whether few flow variables remain, under the symmetries proposed by family and numbering.

    At most ``most`` without counting stabilisers; or, for a few orbits of sources, at most ``most_of_few`` with them.
    """
    left, m = source_orbits(data), data.topology.arcs
    if left * m <= most or left > COUNTED_ORBITS:
        return left * m <= most
    classes = _reduce(data, *_symmetries(data, searched=False)).arc_class
    return sum(m if one is None else int(one.max()) + 1 for one in classes) <= most_of_few


def _symmetries(data: ConcurrentFlow, *, searched: bool) -> tuple[I64, I64]:
    """Automorphisms that preserve ``data``, as images of vertices and arcs."""
    topology, sources = data.topology, data.sources
    vertices, arcs = automorphisms(topology, searched=searched)
    good = [
        i
        for i, groups in enumerate(group_images(vertices, sources, topology.n))
        if (groups >= 0).all()
        and np.array_equal(data.capacity[arcs[i]], data.capacity)
        and keeps(data, vertices[i], arcs[i], groups)
    ]
    return vertices[good], arcs[good]


def _reduce(data: ConcurrentFlow, vertices: I64, arcs: I64) -> Orbits:
    topology, n = data.topology, data.topology.n
    moves = group_images(vertices, data.sources, n)
    made = trees(moves)
    images = np.hstack([vertices, n + arcs])
    elements, back = _elements(images, moves), np.argsort(images, axis=1)
    vertex_class: list[I64 | None] = []
    arc_class: list[I64 | None] = []
    # The trees are listed one after the other, each without its root.
    ends = np.cumsum(np.bincount(made.orbit) - 1)
    for root, first, last in zip(made.root.tolist(), [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        branch = Trees(made.orbit, made.root, *(one[first:last] for one in made[2:]))
        fixing = _stabiliser(elements, back, root, branch)
        if fixing.size:
            vertex_class.append(orbits_of(fixing[:, :n], n))
            arc_class.append(orbits_of(fixing[:, n:] - n, topology.arcs))
        else:
            vertex_class.append(None)
            arc_class.append(None)
    return Orbits(
        data=data,
        vertex_images=vertices,
        arc_images=arcs,
        representative=made.root,
        weight=np.bincount(made.orbit).astype(float),
        arc_orbit=orbits_of(arcs, topology.arcs),
        orbit=made.orbit,
        vertex_class=vertex_class,
        arc_class=arc_class,
    )


def _elements(images: I64, moves: I64) -> list[tuple[I64, I64]]:
    """Elements of the group, its generators and random ones: images of vertices and of arcs, ``(n + m,)``, and groups.

    Arcs are numbered after the vertices; those of the generators are ``(k, n + m)`` and ``(k, |K|)``.
    """
    result = list(zip(images, moves, strict=True))
    if not result:
        return []
    random = np.random.default_rng(0)
    pool = [result[i % len(result)] for i in range(max(POOL, len(result)))]
    element = pool[0]
    for step in range(MIXING + RANDOM_ELEMENTS):
        i, j = random.choice(len(pool), 2, replace=False).tolist()
        pool[i] = (pool[j][0][pool[i][0]], pool[j][1][pool[i][1]])
        element = (pool[i][0][element[0]], pool[i][1][element[1]])
        if step >= MIXING:
            result.append(element)
    return result


def _stabiliser(elements: list[tuple[I64, I64]], back: I64, root: int, branch: Trees) -> I64:
    """Elements that fix a group, without duplicates and the identity, ``(j, n + m)``.

    ``back`` are the inverses of the generators, and ``branch`` the tree of the group's orbit, by which every element is
    followed by the way back to it.
    """
    found: dict[bytes, I64] = {}
    above = {root: (-1, -1)}
    above |= {one: (up, by) for one, up, by in zip(*(a.tolist() for a in branch[2:]), strict=True)}
    for image, move in elements:
        at = int(move[root])
        while at != root:
            at, by = above[at]
            image = back[by][image]
        found[image.tobytes()] = image
    found.pop(np.arange(back.shape[1]).tobytes(), None)
    return np.array(list(found.values()), dtype=np.int64).reshape(-1, back.shape[1])


def model(orbits: Orbits, keep: Mask | None = None) -> StandardForm:
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
        arc_class, vertex_class = (
            np.arange(size) if one is None else one
            for one, size in ((orbits.arc_class[r], m), (orbits.vertex_class[r], n))
        )
        open_ = ~data.blocked_of(np.array([group]))[:, 0]
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
        parts += [
            (row[r, topology.head[into]], column[r, into], np.ones(into.size)),
            (row[r, topology.tail[outof]], column[r, outof], -np.ones(outof.size)),
            (-1 - orbit[used], column[r, used], orbits.weight[r] * size / orbits.arcs_in_orbit[orbit[used]]),
        ]
        demand.append(data.demand_of(np.array([group]))[first_vertex, 0])
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
    return StandardForm(
        A=A,
        row_lower=np.concatenate([right, np.full(places, -np.inf)]),
        row_upper=np.concatenate([np.full(rows, np.inf), np.zeros(places)]),
        col_lower=np.zeros(columns + 1),
        col_upper=np.full(columns + 1, np.inf),
        cost=cost,
        sense="min",
        columns=blocks({"y": ((m, count), np.ascontiguousarray(column.T).ravel()), "T": ((), np.array([columns]))}),
        rows=blocks(
            {
                "balance": ((n, count), np.ascontiguousarray(row.T).ravel()),
                "capacity": ((places,), rows + np.arange(places)),
            }
        ),
    )


def lengths(orbits: Orbits, duals: F64) -> F64:
    """Arc lengths of the whole problem from the duals of the reduced ``capacity``, ``(m,)``."""
    return np.asarray((np.abs(duals) / orbits.arcs_in_orbit)[orbits.arc_orbit])


@dataclass
class ReducedSolution:
    """Unit flows of the representatives, arc lengths, and the bounds on T* that they prove.

    ``flows``, ``(m, |R|)``, are settled; without them ``upper`` is infinite, and without ``lengths``, ``(m,)``,
    ``lower`` is 0.
    """

    termination: Termination
    flows: F64 | None = None
    lengths: F64 | None = None
    upper: float = np.inf
    lower: float = 0.0
    algorithm: str = ""
    version: str | None = None
    columns: int = 0
    message: str = ""

    @property
    def gap(self) -> float:
        """Relative gap between the bounds."""
        return self.upper / self.lower - 1.0 if self.lower > 0 else np.inf

    def with_flows(self, orbits: Orbits, flows: F64) -> ReducedSolution:
        """With exact flows in the proportions of approximate ones, ``(m, |R|)``, if their loads are smaller."""
        from opticoll.formulations.flows.single_source import unit_flow

        reduced = orbits.reduced
        exact = unit_flow(reduced.topology, reduced.sources, reduced.demand / orbits.weight, np.maximum(flows, 0.0))
        if exact is None:
            return self
        exact = orbits.settle(exact)
        upper = float((orbits.fold(exact @ orbits.weight) / reduced.capacity).max())
        return replace(self, flows=exact, upper=upper) if upper < self.upper else self

    def with_lengths(self, orbits: Orbits, lengths: F64) -> ReducedSolution:
        """With other lengths, ``(m,)``, if they prove more."""
        bound = orbits.reduced.length_bound(lengths)
        better = np.isfinite(bound) and bound > 0 and 1.0 / bound > self.lower
        return replace(self, lengths=lengths, lower=1.0 / bound) if better else self
