"""Direct-connect topologies: directed multigraphs with arc capacities.

Conventions used by every layer
    A topology has vertices ``0 .. n-1`` and arcs ``0 .. m-1``; arc ``a`` runs from ``tail[a]`` to
    ``head[a]`` with capacity ``capacity[a] > 0`` in units of one link's bandwidth *b*. Arcs are in
    canonical order: by tail, then head, then capacity. Parallel arcs are allowed; families drop loops unless
    asked to keep them. An undirected link is a pair of opposite arcs. ``terminals`` are the vertices that send
    and receive shards: all of them, except where a modifier adds relay vertices (NICs).
"""

from __future__ import annotations

import hashlib
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from opticoll.arguments import array_of, number, whole_number
from opticoll.errors import BadInput, refuse
from opticoll.instances.quantities import parse_rate

if TYPE_CHECKING:
    import scipy.sparse as sp
    from numpy.typing import ArrayLike, NDArray

    from opticoll.types import Json, Settings

    F64 = NDArray[np.float64]
    I64 = NDArray[np.int64]
    I32 = NDArray[np.int32]
    Mask = NDArray[np.bool_]


class Instance(ABC):
    """A frozen value for which a formulation is solved.

    Attributes
    ----------
    n
        Number of vertices or servers.
    spec
        The one-line spec that regenerates the instance.
    parameters
        Arguments of the family and the modifiers, including defaults and seeds.
    family
        Name of the family, such as ``"genkautz"``, also after modifiers; None for an instance of your own.

    Two instances are equal if they have the same class and the same hash.
    """

    n: int
    spec: str
    parameters: tuple[tuple[str, Any], ...]
    family: ClassVar[str | None] = None  # every instance has its own
    _parsed: ClassVar[str | None] = None  # the spec from which it was made, if there was one

    @property
    def arguments(self) -> dict[str, Json]:
        """The parameters by name, such as ``{"n": 16, "d": 4, "loops": "drop"}``; of ``+fail``, ``fail.links``."""
        return dict(self.parameters)

    @property
    @abstractmethod
    def hash(self) -> str:
        """SHA-256 of the contents in hexadecimal; spec and labels are not included."""

    @property
    def _contents_and_names(self) -> tuple[str, ...]:
        """The hash of its contents, its own name and those of its vertices, by which settings and results name them."""
        return (self.hash, self.spec, *getattr(self, "labels", ()))

    def renamed(self, spec: str, parameters: Mapping[str, object] | None = None) -> Self:
        """A copy with another spec, and with other parameters if they are given."""
        new = copy(self)
        new._put(spec=spec, parameters=self.parameters if parameters is None else parameters)
        return new

    def _put(self, **values: Any) -> None:
        """Set attributes of an instance that is being made; arrays become read-only, mappings tuples of their items."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, tuple(value.items()) if isinstance(value, Mapping) else value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instance) and type(self) is type(other) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec!r}, n={self.n}, hash={self.hash[:12]})"

    def __setstate__(self, state: dict[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):  # arrays are writable after unpickling
                value.setflags(write=False)
        self.__dict__.update(state)


#: Limits on the size of a topology, checked before anything is allocated.
MAX_VERTICES = 1_000_000
MAX_ARCS = 20_000_000


def check_size(n: int, arcs: int, what: str) -> None:
    """Refuse a topology that is too large, before it is allocated.

    Raises
    ------
    BadInput
        If ``n`` exceeds :data:`MAX_VERTICES` or ``arcs`` exceeds :data:`MAX_ARCS`.
    """
    if n > MAX_VERTICES or arcs > MAX_ARCS:
        msg = (
            f"{what}: {n} vertices and {arcs} arcs exceed the limits "
            f"({MAX_VERTICES} vertices, {MAX_ARCS} arcs); choose a smaller instance"
        )
        raise BadInput(msg)


def _frozen(values: ArrayLike, dtype: type) -> NDArray[Any]:
    array: NDArray[Any] = np.ascontiguousarray(values, dtype=dtype)
    if array is values or array.base is not None:
        array = array.copy()
    array.setflags(write=False)
    return array


def _checked_arcs(
    n: int, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike | None, spec: str
) -> tuple[I64, I64, NDArray[np.float64]]:
    """Ends and capacities as arrays of one length; refuse ends outside ``0 .. n-1`` and impossible capacities."""
    tails, heads = (array_of(ends, f"{spec}: tail and head", np.int64) for ends in (tail, head))
    check_size(n, tails.size, spec)
    caps = np.ones(tails.size) if capacity is None else array_of(capacity, f"{spec}: capacity", np.float64)
    if tails.ndim != 1 or tails.shape != heads.shape or tails.shape != caps.shape:
        refuse(spec, "tail, head and capacity must be one-dimensional arrays of equal length")
    if tails.size and (min(tails.min(), heads.min()) < 0 or max(tails.max(), heads.max()) >= n):
        refuse(spec, f"an arc ends outside the vertices 0..{n - 1}")
    possible = np.isfinite(caps) & (caps > 0)
    if not possible.all():
        worst = int(np.argmin(possible))
        msg = (
            f"{spec}: arc {tails[worst]}->{heads[worst]} has capacity {caps[worst]}; "
            "capacities must be positive and finite (omit arcs without capacity)"
        )
        raise BadInput(msg)
    return tails, heads, caps


def _grouped(ends: I64, n: int) -> tuple[tuple[int, ...], ...]:
    """The arcs whose end is each of ``n`` vertices."""
    parts = np.split(np.argsort(ends, kind="stable"), np.cumsum(np.bincount(ends, minlength=n))[:-1])
    return tuple(tuple(part.tolist()) for part in parts)


@dataclass(frozen=True, eq=False, repr=False)
class Topology(Instance):
    """A directed multigraph with capacities, in canonical arc order.

    Parameters
    ----------
    n
        Number of vertices.
    tail, head
        Arc ends, shape ``(m,)``, integers in ``0 .. n-1``.
    capacity
        Arc capacities [link bandwidths], shape ``(m,)``; all ones if None.
    spec
        The one-line spec that regenerates this instance; ``custom:HASH``, which cannot be parsed, if None.
    terminals
        Vertices that send and receive shards, ascending; all vertices if None.
    labels
        Vertex names for reading results; the vertex numbers if None.
    parameters
        Arguments of the family, including the seed.
    capacity_unit
        Physical rate of capacity 1, such as ``Gb/s`` or ``100Gb/s`` (:mod:`opticoll.instances.quantities`); None if it
        is only relative. It does not affect the hash.
    places
        Position of every vertex in a drawing, shape ``(n, 2)``; None to let the drawing choose. They do not affect the
        hash.
    notes
        What a reader of the topology must be told, in sentences without a full stop. They do not affect the hash.

    Raises
    ------
    BadInput
        For no vertices, ends outside the range, capacities that are not positive and finite, or sizes
        above :data:`MAX_VERTICES` and :data:`MAX_ARCS`.
    """

    n: int
    tail: NDArray[np.int64]
    head: NDArray[np.int64]
    capacity: NDArray[np.float64]
    spec: str
    terminals: NDArray[np.int64]
    labels: tuple[str, ...]
    parameters: tuple[tuple[str, Any], ...] = ()
    capacity_unit: str | None = None
    places: NDArray[np.float64] | None = None
    notes: tuple[str, ...] = ()

    def __init__(
        self,
        n: int,
        tail: ArrayLike,
        head: ArrayLike,
        capacity: ArrayLike | None = None,
        *,
        spec: str | None = None,
        terminals: ArrayLike | None = None,
        labels: tuple[str, ...] | None = None,
        parameters: Settings | tuple[tuple[str, Any], ...] = (),
        capacity_unit: str | None = None,
        places: ArrayLike | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        spec, own = spec or "topology", spec
        n = whole_number(n, f"{spec}: the number of vertices")
        if capacity_unit is not None:
            parse_rate(capacity_unit, f"{spec}: capacity_unit")
        if n < 1:
            refuse(spec, f"a topology needs at least one vertex, not {n}")
        tails, heads, caps = _checked_arcs(n, tail, head, capacity, spec)
        order = np.lexsort((caps, heads, tails))
        ends = np.arange(n) if terminals is None else np.unique(np.asarray(terminals, dtype=np.int64))
        if ends.size and (ends[0] < 0 or ends[-1] >= n):
            refuse(spec, f"a terminal lies outside the vertices 0..{n - 1}")
        names = tuple(str(v) for v in range(n)) if labels is None else tuple(labels)
        if len(names) != n:
            refuse(spec, f"{len(names)} labels for {n} vertices")
        if places is not None and np.shape(places) != (n, 2):
            refuse(spec, f"places of shape {np.shape(places)} for {n} vertices; give x and y of each")
        self._put(
            n=n,
            tail=tails[order],
            head=heads[order],
            capacity=caps[order],
            spec="custom" if own is None else own,
            terminals=ends,
            labels=names,
            parameters=parameters,
            capacity_unit=capacity_unit,
            places=None if places is None else np.array(places, dtype=float),
            notes=notes,
        )
        if own is None and type(self) is Topology:
            self._put(spec=f"custom:{self.hash[:12]}")

    @property
    def arcs(self) -> int:
        """Number of arcs *m*."""
        return int(self.tail.size)

    @property
    def ranks(self) -> tuple[str, ...]:
        """Labels of the terminals, ascending: the vertices that ``opticoll.topology(ranks=...)`` names."""
        return tuple(self.labels[v] for v in self.terminals.tolist())

    @property
    def num_ranks(self) -> int:
        """Number of terminals: the ranks of the collective."""
        return int(self.terminals.size)

    def extras(self) -> dict[str, Json]:
        """Fields that a subclass adds; they are part of the hash."""
        own = {f.name for f in fields(Topology)}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in own}

    @cached_property
    def hash(self) -> str:
        """SHA-256 of vertices, arcs, capacities and terminals (not of spec or labels).

        A subclass includes its name and its :meth:`extras`.
        """
        digest = hashlib.sha256(b"opticoll-topology-1")
        digest.update(np.int64(self.n).astype("<i8").tobytes())
        for array in (self.tail, self.head, self.capacity, self.terminals):
            digest.update(np.int64(array.size).astype("<i8").tobytes())
            digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes())
        if type(self) is not Topology:
            digest.update(f"{type(self).__name__}{self.extras()!r}".encode())
        return digest.hexdigest()

    def with_arcs(self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike) -> Self:
        """Copy this instance, with its class and extras, but with other arcs."""
        new = object.__new__(type(self))
        for f in fields(self):
            object.__setattr__(new, f.name, getattr(self, f.name))
        same = {f.name: getattr(self, f.name) for f in fields(Topology)}
        Topology.__init__(new, **(same | {"tail": tail, "head": head, "capacity": capacity}))
        return new

    def with_changes(self, **changes: Any) -> Topology:
        """A plain topology, named after its contents, that differs in these arguments of :class:`Topology`."""
        kept = ("n", "tail", "head", "capacity", "terminals", "labels", "capacity_unit")
        return Topology(**({name: getattr(self, name) for name in kept} | changes))

    def joined(self) -> Self:
        """Join parallel arcs to one arc of their total capacity; this instance if there are none."""
        key, arc = np.unique(self.tail * self.n + self.head, return_inverse=True)
        if key.size == self.arcs:
            return self
        return self.with_arcs(key // self.n, key % self.n, np.bincount(arc, weights=self.capacity))

    @cached_property
    def out_degree(self) -> NDArray[np.int64]:
        """Arcs leaving each vertex, shape ``(n,)``."""
        return _frozen(np.bincount(self.tail, minlength=self.n), np.int64)

    @cached_property
    def in_degree(self) -> NDArray[np.int64]:
        """Arcs entering each vertex, shape ``(n,)``."""
        return _frozen(np.bincount(self.head, minlength=self.n), np.int64)

    @cached_property
    def arcs_out(self) -> tuple[tuple[int, ...], ...]:
        """Arcs that leave every vertex."""
        return _grouped(self.tail, self.n)

    @cached_property
    def arcs_in(self) -> tuple[tuple[int, ...], ...]:
        """Arcs that enter every vertex."""
        return _grouped(self.head, self.n)

    def outflow(self, flow: F64) -> F64:
        """Flow out of every vertex, ``(n, ...)``, for flow over arcs, ``(m, ...)``."""
        return self._at(self.tail, flow)

    def inflow(self, flow: F64) -> F64:
        """Flow into every vertex, ``(n, ...)``, for flow over arcs, ``(m, ...)``."""
        return self._at(self.head, flow)

    def _at(self, ends: NDArray[np.int64], flow: F64) -> F64:
        """The sums of a flow over the arcs with the same end."""
        amounts = array_of(flow, "the flow", np.float64)
        if amounts.ndim == 0 or len(amounts) != self.arcs:
            msg = f"the flow: its first axis must be the {self.arcs} arcs of {self.spec}, not of shape {amounts.shape}"
            raise BadInput(msg)
        result = np.zeros((self.n, *amounts.shape[1:]))
        np.add.at(result, ends, amounts)
        return result

    def net(self, flow: F64) -> F64:
        """Flow into every vertex less that out of it, ``(n, ...)``: :meth:`incidence` times flow, ``(m, ...)``."""
        if not self._few:
            return np.asarray(self.incidence() @ flow)
        result = np.zeros((self.n, *flow.shape[1:]))
        ends = np.stack([self.head, self.tail], axis=1).ravel()
        np.add.at(result, ends, np.stack([flow, -flow], axis=1).reshape(-1, *flow.shape[1:]))
        return result

    def incidence(self) -> sp.csr_array:
        """Vertex-arc incidence, shape ``(n, m)``: +1 where an arc enters, -1 where it leaves."""
        import scipy.sparse as sp

        m = self.arcs
        rows = np.concatenate([self.head, self.tail])
        columns = np.concatenate([np.arange(m), np.arange(m)])
        signs = np.concatenate([np.ones(m), -np.ones(m)])
        return sp.csr_array((signs, (rows, columns)), shape=(self.n, m))

    def length_matrix(self, lengths: NDArray[np.float64]) -> sp.csr_array:
        """Smallest length among parallel arcs, shape ``(n, n)``; zero lengths are explicit entries."""
        import scipy.sparse as sp

        lengths = array_of(lengths, "the lengths", np.float64)
        if lengths.shape != (self.arcs,):
            refuse("the lengths", f"must be {self.arcs}, one per arc of {self.spec}, not of shape {lengths.shape}")
        order = np.lexsort((lengths, self.head, self.tail))
        tail, head = self.tail[order], self.head[order]
        first = np.ones(tail.size, dtype=bool)
        first[1:] = (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])
        indptr = np.concatenate([[0], np.cumsum(np.bincount(tail[first], minlength=self.n))])
        return sp.csr_array((lengths[order][first], head[first], indptr), shape=(self.n, self.n))

    @cached_property
    def hops(self) -> NDArray[np.float64]:
        """Hop distances from every terminal to every vertex, shape ``(ranks, n)``; ``inf`` if unreachable."""
        distances = self.distances(np.ones(self.arcs), self.terminals)
        distances.setflags(write=False)
        return distances

    def distances(self, lengths: NDArray[np.float64], sources: NDArray[np.int64] | None = None) -> NDArray[np.float64]:
        """Least total length of a path from every source (vertex, if None) to every vertex; ``inf`` without any.

        The shape is ``(sources, n)``. Lengths are at least 0; every distance is rounded less than n times.
        """
        equal = bool(lengths.size and 0.0 < lengths.min() == lengths.max())
        if self._few and "scipy.sparse.csgraph" not in sys.modules:
            reach = self._relaxed(np.ones(self.arcs) if equal else lengths, sources)
        else:
            from scipy.sparse.csgraph import dijkstra

            reach = np.asarray(dijkstra(self.length_matrix(lengths), indices=sources, unweighted=equal))
        return lengths[0] * reach if equal else reach

    @property
    def _few(self) -> bool:
        """Whether distances take less time in NumPy than SciPy's graphs to be imported."""
        return self.n <= 64 and self.arcs <= 512

    def _relaxed(self, lengths: NDArray[np.float64], sources: NDArray[np.int64] | None) -> NDArray[np.float64]:
        """The distances of Dijkstra's algorithm, to the last bit, by Bellman and Ford's: sums from the source on."""
        ends = np.arange(self.n) if sources is None else np.atleast_1d(sources)
        reach, by_head = np.where(ends[:, None] == np.arange(self.n), 0.0, np.inf), np.argsort(self.head)
        head, first = np.unique(self.head[by_head], return_index=True)
        tail, lengths, farther = self.tail[by_head], lengths[by_head], self.arcs > 0
        while farther:
            closer = np.minimum(reach[:, head], np.minimum.reduceat(reach[:, tail] + lengths, first, axis=1))
            farther = not np.array_equal(closer, reach[:, head])
            reach[:, head] = closer
        return reach

    def breadth_first(self, root: int) -> NDArray[np.int64]:
        """The vertices that arcs reach from a vertex, in either direction, in the order of breadth-first search."""
        if not self._few:
            from scipy.sparse.csgraph import breadth_first_order

            graph = self.length_matrix(np.ones(self.arcs))
            order = breadth_first_order(graph + graph.T, root, directed=False, return_predecessors=False)
            return np.asarray(order, dtype=np.int64)
        beside = np.zeros((self.n, self.n), dtype=bool)
        beside[self.tail, self.head] = beside[self.head, self.tail] = True
        order, seen = [root], {root}
        for vertex in order:
            new = [other for other in np.flatnonzero(beside[vertex]).tolist() if other not in seen]
            order += new
            seen.update(new)
        return np.array(order)

    @cached_property
    def is_terminal(self) -> NDArray[np.bool_]:
        """Whether every vertex is a terminal, shape ``(n,)``."""
        return np.isin(np.arange(self.n), self.terminals)

    @property
    def diameter(self) -> float:
        """Largest hop distance between two terminals; ``inf`` if some pair is unreachable."""
        return float(self.hops[:, self.terminals].max(initial=0.0))

    @cached_property
    def connected(self) -> bool:
        """Whether every terminal reaches every other terminal (they lie in one strongly connected component)."""
        if self._few:
            return bool(np.isfinite(self.hops[:, self.terminals]).all())
        from scipy.sparse.csgraph import connected_components

        graph = self.length_matrix(np.ones(self.arcs))
        _, component = connected_components(graph, directed=True, connection="strong")
        return bool(np.unique(component[self.terminals]).size <= 1)

    def relabelled(self, order: ArrayLike) -> Topology:
        """Rename vertex ``v`` to ``order[v]`` (a permutation of ``0 .. n-1``); labels follow.

        Raises
        ------
        BadInput
            If ``order`` is not a permutation of the vertices.
        """
        new = array_of(order, "relabelled: order", np.int64)
        if new.ndim != 1 or not np.array_equal(np.sort(new), np.arange(self.n)):
            refuse("relabelled", "order must be a permutation of the vertices")
        back = np.argsort(new)
        return self.with_changes(
            tail=new[self.tail],
            head=new[self.head],
            terminals=new[self.terminals],
            labels=tuple(self.labels[v] for v in back),
        )

    def reversed(self) -> Topology:
        """Reverse every arc."""
        return self.with_changes(tail=self.head, head=self.tail)

    def scaled(self, factor: float) -> Topology:
        """Multiply every capacity by ``factor``.

        Raises
        ------
        BadInput
            If ``factor`` is not positive and finite.
        """
        factor = number(factor, "scaled: the factor", positive=True)
        return self.with_changes(capacity=decimal_products(self.capacity, factor))


def decimal_products(values: F64, factor: float) -> F64:
    """The products of numbers and a factor, as decimals: 1.5 times 0.3 is 0.45, and not the float below it.

    Infinite where a product is too large for a float.
    """
    distinct, places = np.unique(values, return_inverse=True)
    exact = Fraction(repr(float(factor)))
    products = []
    for value in distinct.tolist():
        try:
            products.append(float(Fraction(repr(value)) * exact))
        except OverflowError:
            products.append(math.inf)
    return np.array(products, dtype=float)[places]


def connecting_remedy(topology: Topology) -> str:
    """Advice for messages: how to connect a topology in which some rank does not reach another."""
    both = Topology(
        topology.n,
        np.concatenate([topology.tail, topology.head]),
        np.concatenate([topology.head, topology.tail]),
        terminals=topology.terminals,
    )
    if both.connected:
        how = "add the arcs back"
        if topology.spec.startswith("file:"):
            how = "if the file lists every link once, read it both ways: file:PATH,directed=false"
        return f"all ranks would be connected if every arc ran both ways; {how}"
    return "use a connected topology" + (" or another failure seed" if "+fail" in topology.spec else "")


def both_ways(
    u: ArrayLike, v: ArrayLike, capacity: ArrayLike | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Replace every link ``{u, v}`` by the arcs ``u -> v`` and ``v -> u``.

    Parameters
    ----------
    u, v
        Ends of the links, shape ``(links,)``.
    capacity
        Capacity of each direction [link bandwidths], shape ``(links,)``; all ones if None.

    Returns
    -------
    tuple of arrays
        Tails, heads and capacities of the arcs, each of shape ``(2 links,)``.
    """
    first = np.asarray(u, dtype=np.int64).ravel()
    second = np.asarray(v, dtype=np.int64).ravel()
    caps = np.ones(first.size) if capacity is None else np.asarray(capacity, dtype=np.float64)
    return np.concatenate([first, second]), np.concatenate([second, first]), np.concatenate([caps, caps])


def link_groups(
    tail: NDArray[np.int64], head: NDArray[np.int64], capacity: NDArray[np.float64]
) -> tuple[NDArray[np.int64], int]:
    """Group the arcs that make up one link.

    If the arcs other than loops can be paired as ``u -> v`` and ``v -> u`` of equal capacity, each pair is one
    link, and so is each loop; otherwise every arc is a link of its own.

    Returns
    -------
    group, links
        The link of every arc, shape ``(m,)``, and the number of links.
    """
    order = np.lexsort((capacity, np.maximum(tail, head), np.minimum(tail, head)))
    ahead, back = order[tail[order] < head[order]], order[tail[order] > head[order]]
    group: NDArray[Any] = np.arange(tail.size)
    if (
        ahead.size != back.size
        or not np.array_equal(tail[ahead], head[back])
        or not np.array_equal(head[ahead], tail[back])
        or not np.array_equal(capacity[ahead], capacity[back])
    ):
        return group, int(tail.size)
    loops = np.flatnonzero(tail == head)
    group[ahead] = np.arange(ahead.size)
    group[back] = np.arange(ahead.size)
    group[loops] = ahead.size + np.arange(loops.size)
    return group, int(ahead.size + loops.size)
