"""Pools of servers, and the all-reduce groups among them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opticoll.arguments import whole_number
from opticoll.errors import BadInput, refuse
from opticoll.instances.demands import refuse_amounts
from opticoll.instances.topology import Instance

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from opticoll.instances.topology import F64, I64
    from opticoll.types import Settings


#: Maximum number of servers: the traffic matrix is dense.
MAX_SERVERS = 8192


def check_servers(n: int) -> None:
    """Refuse a pool whose traffic matrix is too large, before it is allocated.

    Raises
    ------
    BadInput
        If ``2 <= n <= MAX_SERVERS`` does not hold.
    """
    whole_number(n, "servers: n", 2)
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
            refuse(f"all-reduce group ({shown})", "give at least two distinct servers")
        if not 0 < self.transfer < float("inf"):
            refuse("all-reduce group", f"transfer is {self.transfer} bytes; give a positive finite number")

    @property
    def size(self) -> int:
        """Number of members k."""
        return len(self.members)

    @property
    def total(self) -> float:
        """Bytes sent by all members in one iteration."""
        return self.size * self.transfer

    def ring(self, step: int = 1) -> I64:
        """Members in the order of the +step ring: position i + step mod k follows position i.

        Raises
        ------
        BadInput
            If step and k are not co-prime (the step would give several rings).
        """
        if np.gcd(step, self.size) != 1:
            refuse(f"all-reduce group of {self.size}", f"step {step} gives several rings; choose a co-prime step")
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
    point_to_point: F64
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
        whole_number(degree, f"{spec}: degree", 1)
        try:
            matrix = np.array(point_to_point, dtype=np.float64)
        except (TypeError, ValueError):
            msg = f"{spec}: the traffic is not a matrix of numbers; give {n} rows of {n} numbers [bytes]"
            raise BadInput(msg) from None
        if matrix.shape != (n, n):
            shape = "x".join(map(str, matrix.shape)) or "one number"
            refuse(spec, f"the traffic matrix is {shape}, not {n}x{n}; give one row and one column per server")
        refuse_amounts(matrix, [f"server {i}" for i in range(n)], spec)
        together = tuple(groups)
        for k, group in enumerate(together):
            outside = [v for v in group.members if not 0 <= v < n]
            if outside:
                refuse(spec, f"all-reduce group {k} names server {outside[0]}; servers are 0 to {n - 1}")
        matrix += 0.0  # -0.0 becomes 0.0, so that equal traffic has equal hashes
        self._put(
            n=int(n), degree=int(degree), point_to_point=matrix, groups=together, spec=spec, parameters=parameters
        )

    @cached_property
    def traffic(self) -> F64:
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
            refuse("relabelled", "order must be a permutation of the servers")
        back = np.argsort(new)
        groups = [AllReduceGroup(tuple(new[list(g.members)].tolist()), g.transfer) for g in self.groups]
        return ServerPool(self.n, self.degree, self.point_to_point[np.ix_(back, back)], groups=groups)

    def at_racks(self, rack: int) -> ServerPool:
        """The pool whose servers are the switches over ``rack`` consecutive servers each; the last may have fewer.

        What stays in a rack is left out. A ring visits rack by rack, so that one hop leaves every rack of its group.
        """
        place = np.arange(self.n) // rack
        sent = np.zeros((place[-1] + 1, place[-1] + 1))
        np.add.at(sent, (place[:, None], place), self.point_to_point)
        np.fill_diagonal(sent, 0.0)
        racks = [(tuple(np.unique(place[list(group.members)]).tolist()), group.transfer) for group in self.groups]
        groups = [AllReduceGroup(members, transfer) for members, transfer in racks if len(members) > 1]
        return ServerPool(len(sent), self.degree, sent, groups=groups, spec=self.spec)

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
