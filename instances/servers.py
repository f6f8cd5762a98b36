"""Photonic meshes, lines and rings; pools of servers; and the communication of a training job.

Photonic topologies are LIGHTPATH meshes (LuMorph), and optical lines and rings (OpTree, TeraRack). Pools of servers
(TopoOpt, SiP-ML) and training iterations (LuMorph) have no topology.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from opticoll.errors import BadInput
from opticoll.instances.digraph import Instance, Topology, both_ways, check_size
from opticoll.instances.spec import Dimensions, check_positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from opticoll.instances.readers import Settings


@dataclass(frozen=True, eq=False, repr=False, init=False)
class LightpathMesh(Topology):
    """A rectangular mesh of tiles whose arcs are bundles of waveguides.

    Attributes
    ----------
    shape
        Rows and columns; tile ``(i, j)`` is vertex ``i * columns + j``.
    lasers
        Number of wavelengths that a tile can send, and that it can receive, at a time.
    waveguides
        Waveguides of every arc: the number of circuits of the *same* wavelength that it can carry at a time.

    The capacity of every arc is 1, a bundle of waveguides; formulations read ``waveguides`` and ``lasers``.

    Raises
    ------
    BadInput
        For fewer than one laser or waveguide, and as in :class:`~opticoll.instances.digraph.Topology`.
    """

    shape: Dimensions = field(default=Dimensions())
    lasers: int = field(default=16)
    waveguides: int = field(default=1)

    def __init__(self, mesh: Topology, shape: Dimensions, lasers: int, waveguides: int) -> None:
        check_positive(lasers, "lasers", "lightpath")
        check_positive(waveguides, "waveguides", "lightpath")
        super().__init__(mesh.n, mesh.tail, mesh.head, mesh.capacity, spec="lightpath", labels=mesh.labels)
        object.__setattr__(self, "shape", Dimensions(shape))
        object.__setattr__(self, "lasers", int(lasers))
        object.__setattr__(self, "waveguides", int(waveguides))

    @cached_property
    def intact(self) -> bool:
        """Whether the arcs are exactly those between neighbouring tiles, one each way."""
        rows, columns = self.shape
        (row, column), (to_row, to_column) = (np.divmod(ends, columns) for ends in (self.tail, self.head))
        neighbours = np.abs(row - to_row) + np.abs(column - to_column) == 1
        return bool(neighbours.all()) and self.arcs == 2 * (rows * (columns - 1) + columns * (rows - 1))

    @cached_property
    def hops(self) -> NDArray[np.float64]:
        """Hop distances as for every topology; Manhattan distances of the tiles if the mesh is intact."""
        if not self.intact:
            return super().hops
        row, column = np.divmod(np.arange(self.n), self.shape[1])
        hops = np.abs(row[self.terminals, None] - row) + np.abs(column[self.terminals, None] - column)
        distances = hops.astype(np.float64)
        distances.setflags(write=False)
        return distances


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmFibres(Topology):
    """Nodes ``0 .. n-1`` in a line or a ring, with a fibre each way between neighbours.

    Parameters
    ----------
    n
        Number of nodes, at least 2 (line) or 3 (ring).
    wavelengths
        Wavelengths of every fibre: the number of transfers that an arc can carry at a time.

    The capacity of every arc is 1, a whole fibre; formulations read ``wavelengths``.

    Raises
    ------
    BadInput
        For too few nodes or wavelengths, or too many nodes.
    """

    wavelengths: int = field(default=1)

    #: Name of the family, minimum number of nodes, and whether the last node is adjacent to the first.
    family: ClassVar[str]
    least: ClassVar[int]
    circular: ClassVar[bool]

    def __init__(self, n: int, wavelengths: int) -> None:
        check_positive(n, "n", self.family, least=self.least)
        check_positive(wavelengths, "wavelengths", self.family)
        fibres = n if self.circular else n - 1
        check_size(n, 2 * fibres, self.family)
        nodes = np.arange(fibres)
        super().__init__(n, *both_ways(nodes, (nodes + 1) % n), spec=self.family)
        object.__setattr__(self, "wavelengths", int(wavelengths))

    @property
    def intact(self) -> bool:
        """Whether the topology is the one that the family generates for ``n`` and ``wavelengths``."""
        whole = type(self)(self.n, self.wavelengths) if self.n >= self.least else None
        return whole is not None and whole.hash == self.hash

    def arcs_onward(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Arcs ``i -> i + 1`` and arcs ``i + 1 -> i`` for every node i with a successor, ``(fibres,)`` each.

        On a ring, node 0 succeeds the last node. Requires ``intact``.
        """
        nodes = np.arange(self.n if self.circular else self.n - 1)
        key = self.tail * self.n + self.head  # ascending: canonical arc order
        after = (nodes + 1) % self.n
        return np.searchsorted(key, nodes * self.n + after), np.searchsorted(key, after * self.n + nodes)


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmLine(WdmFibres):
    """Nodes in a line."""

    family: ClassVar[str] = "wdm-line"
    least: ClassVar[int] = 2
    circular: ClassVar[bool] = False


@dataclass(frozen=True, eq=False, repr=False, init=False)
class WdmRing(WdmFibres):
    """Nodes in a ring."""

    family: ClassVar[str] = "wdm-ring"
    least: ClassVar[int] = 3
    circular: ClassVar[bool] = True


#: Maximum number of servers: the traffic matrix is dense.
MAX_SERVERS = 8192


def check_servers(n: int) -> None:
    """Refuse a pool whose traffic matrix is too large, before it is allocated.

    Raises
    ------
    BadInput
        If ``2 <= n <= MAX_SERVERS`` does not hold.
    """
    check_positive(n, "n", "servers", least=2)
    if n > MAX_SERVERS:
        msg = f"servers: n={n} exceeds the limit of {MAX_SERVERS} (the traffic matrix is dense); choose fewer servers"
        raise BadInput(msg)


@dataclass(frozen=True)
class AllReduceGroup:
    """Servers that sum the gradients of one part of a model once per iteration.

    Their traffic is *mutable* (TopoOpt, section 4.3): the ring may visit the members in any order.

    Parameters
    ----------
    members
        At least two distinct servers, in the order of the default ring.
    transfer
        Bytes over each hop of a ring all-reduce, 2 (k-1)/k times the bytes summed by k members.

    Raises
    ------
    BadInput
        For fewer than two members, a repeated member, or a transfer that is not positive and finite.
    """

    members: tuple[int, ...]
    transfer: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(int(v) for v in self.members))
        if len(self.members) < 2 or len(set(self.members)) < len(self.members):
            shown = ", ".join(map(str, self.members[:8]))
            msg = f"all-reduce group ({shown}): give at least two distinct servers"
            raise BadInput(msg)
        if not 0 < self.transfer < float("inf"):
            msg = f"all-reduce group: transfer is {self.transfer} bytes; give a positive finite number"
            raise BadInput(msg)

    @property
    def size(self) -> int:
        """Number of members k."""
        return len(self.members)

    @property
    def total(self) -> float:
        """Bytes sent by all members in one iteration."""
        return self.size * self.transfer

    def ring(self, step: int = 1) -> NDArray[np.int64]:
        """Members in the order of the +step ring: position i + step mod k follows position i.

        Raises
        ------
        BadInput
            If step and k are not co-prime (the step would give several rings).
        """
        if np.gcd(step, self.size) != 1:
            msg = f"all-reduce group of {self.size}: step {step} gives several rings; choose a co-prime step"
            raise BadInput(msg)
        return np.asarray(self.members, dtype=np.int64)[np.arange(self.size) * step % self.size]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class ServerPool(Instance):
    """Servers, their optical degree, and the traffic of a job in one iteration.

    Parameters
    ----------
    n
        Number of servers, ``2 <= n <= 8192``.
    degree
        Optical interfaces of each server: circuits out of it, and circuits into it, at a time.
    point_to_point
        Bytes from server ``i`` (row) to server ``j`` (column), shape ``(n, n)``, zero on the diagonal: traffic with
        fixed ends (model-parallel traffic), or all traffic if there are no groups.
    groups
        All-reduce groups, whose traffic is not in ``point_to_point``.
    spec, parameters
        As for every instance.

    Raises
    ------
    BadInput
        For sizes out of range, traffic that is not square, not finite, negative, or on the diagonal, or groups
        with servers outside the pool.
    """

    n: int
    degree: int
    point_to_point: NDArray[np.float64]
    groups: tuple[AllReduceGroup, ...] = ()
    spec: str = "custom"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __init__(
        self,
        n: int,
        degree: int,
        point_to_point: ArrayLike,
        *,
        groups: Iterable[AllReduceGroup] = (),
        spec: str = "custom",
        parameters: Settings | tuple[tuple[str, Any], ...] = (),
    ) -> None:
        check_servers(n)
        check_positive(degree, "degree", spec)
        try:
            matrix = np.array(point_to_point, dtype=np.float64)
        except (TypeError, ValueError):
            msg = f"{spec}: the traffic is not a matrix of numbers; give {n} rows of {n} numbers [bytes]"
            raise BadInput(msg) from None
        if matrix.shape != (n, n):
            shape = "x".join(map(str, matrix.shape)) or "one number"
            msg = f"{spec}: the traffic matrix is {shape}, not {n}x{n}; give one row and one column per server"
            raise BadInput(msg)
        bad = ~(np.isfinite(matrix) & (matrix >= 0))
        if bad.any():
            i, j = (int(k) for k in np.argwhere(bad)[0])
            msg = f"{spec}: traffic from {i} to {j} is {matrix[i, j]} bytes; give a finite nonnegative number"
            raise BadInput(msg)
        if np.diagonal(matrix).any():
            i = int(np.flatnonzero(np.diagonal(matrix))[0])
            msg = f"{spec}: server {i} sends {matrix[i, i]} bytes to itself; write 0 on the diagonal"
            raise BadInput(msg)
        together = tuple(groups)
        for k, group in enumerate(together):
            outside = [v for v in group.members if not 0 <= v < n]
            if outside:
                msg = f"{spec}: all-reduce group {k} names server {outside[0]}; servers are 0 to {n - 1}"
                raise BadInput(msg)
        matrix += 0.0  # -0.0 becomes 0.0, so that equal traffic has equal hashes
        matrix.setflags(write=False)
        put = object.__setattr__
        put(self, "n", int(n))
        put(self, "degree", int(degree))
        put(self, "point_to_point", matrix)
        put(self, "groups", together)
        put(self, "spec", spec)
        put(self, "parameters", tuple(parameters.items()) if isinstance(parameters, dict) else parameters)

    @cached_property
    def traffic(self) -> NDArray[np.float64]:
        """Bytes between servers if every group uses its default ring, ``(n, n)``."""
        matrix = self.point_to_point.copy()
        for group in self.groups:
            ring = group.ring()
            matrix[ring, np.roll(ring, -1)] += group.transfer
        matrix.setflags(write=False)
        return matrix

    @property
    def all_reduce_bytes(self) -> float:
        """Total bytes of all ring all-reduces."""
        return float(sum(group.total for group in self.groups))

    def relabelled(self, order: ArrayLike) -> ServerPool:
        """Rename server ``v`` to ``order[v]`` (a permutation of ``0 .. n-1``).

        Raises
        ------
        BadInput
            If ``order`` is not a permutation of the servers.
        """
        new = np.asarray(order, dtype=np.int64)
        if not np.array_equal(np.sort(new), np.arange(self.n)):
            msg = "relabelled: order must be a permutation of the servers"
            raise BadInput(msg)
        back = np.argsort(new)
        groups = [AllReduceGroup(tuple(new[list(g.members)].tolist()), g.transfer) for g in self.groups]
        return ServerPool(self.n, self.degree, self.point_to_point[np.ix_(back, back)], groups=groups)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of servers, degree, traffic and groups."""
        digest = hashlib.sha256(b"opticoll-servers-2" if self.groups else b"opticoll-servers-1")
        digest.update(np.array([self.n, self.degree], dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(self.point_to_point, dtype="<f8").tobytes())
        for group in self.groups:
            digest.update(np.array([group.size, *group.members], dtype="<i8").tobytes())
            digest.update(np.array([group.transfer], dtype="<f8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class AllReduceCall:
    """An all-reduce among ``ranks``, ascending, each with a buffer of ``size`` bytes; one rank alone sends nothing."""

    ranks: tuple[int, ...]
    size: int


@dataclass(frozen=True)
class LayerTransfer:
    """Activations between layers: every GPU of ``sources`` sends ``size`` bytes to every GPU of ``targets``.

    In the backward pass every target sends the same number of bytes of gradients to every source. ``layer`` is the
    operator that consumes the data; a source listed twice sends twice, and data that a GPU sends to itself are not
    traffic.
    """

    layer: int
    size: int
    sources: tuple[int, ...]
    targets: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TrainingIteration(Instance):
    """Communication of the GPUs of a training job in one iteration, call by call (LuMorph, section 6).

    Parameters
    ----------
    n
        Number of GPUs.
    calls
        All-reduces in the order in which they are issued.
    transfers
        Transfers between layers.
    spec, parameters
        As for every instance.

    Raises
    ------
    BadInput
        For a call or transfer without GPUs, with a GPU that does not exist, or of less than one byte.
    """

    n: int
    calls: tuple[AllReduceCall, ...]
    transfers: tuple[LayerTransfer, ...] = ()
    spec: str = "custom"
    parameters: tuple[tuple[str, Any], ...] = ()

    def __init__(
        self,
        n: int,
        calls: Iterable[AllReduceCall],
        transfers: Iterable[LayerTransfer] = (),
        *,
        spec: str = "custom",
        parameters: Settings | tuple[tuple[str, Any], ...] = (),
    ) -> None:
        check_positive(n, "n", spec, least=2)
        calls, transfers = tuple(calls), tuple(transfers)
        groups = [(f"call {k}", call.ranks, call.size) for k, call in enumerate(calls)]
        for k, each in enumerate(transfers):
            groups += [(f"transfer {k}", ends, each.size) for ends in (each.sources, each.targets)]
        for name, members, size in groups:
            if not members or size < 1 or not all(0 <= v < n for v in members):
                msg = f"{spec}: {name} needs at least 1 byte and GPUs from 0 to {n - 1}"
                raise BadInput(msg)
        for k, call in enumerate(calls):
            if list(call.ranks) != sorted(set(call.ranks)):
                msg = f"{spec}: call {k} must name its GPUs once each, in ascending order"
                raise BadInput(msg)
        put = object.__setattr__
        put(self, "n", int(n))
        put(self, "calls", calls)
        put(self, "transfers", transfers)
        put(self, "spec", spec)
        put(self, "parameters", tuple(parameters.items()) if isinstance(parameters, dict) else parameters)

    @property
    def all_reduce_bytes(self) -> int:
        """Buffer bytes of all calls of more than one GPU, once per call."""
        return sum(call.size for call in self.calls if len(call.ranks) > 1)

    @cached_property
    def transfer_matrix(self) -> NDArray[np.int64]:
        """Bytes from GPU i to GPU j between layers, both passes, ``(n, n)``, zero on the diagonal."""
        matrix = np.zeros((self.n, self.n), dtype=np.int64)
        for each in self.transfers:
            sent = np.bincount(each.sources, minlength=self.n)
            received = np.bincount(each.targets, minlength=self.n)
            forward = each.size * np.outer(sent, received)
            matrix += forward + forward.T
        np.fill_diagonal(matrix, 0)
        matrix.setflags(write=False)
        return matrix

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the number of GPUs, the calls and the transfers."""
        digest = hashlib.sha256(b"opticoll-iteration-1")
        digest.update(np.array([self.n, len(self.calls), len(self.transfers)], dtype="<i8").tobytes())
        for call in self.calls:
            digest.update(np.array([call.size, len(call.ranks), *call.ranks], dtype="<i8").tobytes())
        for each in self.transfers:
            counts = (each.layer, each.size, len(each.sources), len(each.targets))
            digest.update(np.array([*counts, *each.sources, *each.targets], dtype="<i8").tobytes())
        return digest.hexdigest()
